//! Which scope was seen with which request id, for as long as a service may go on working on it.
//!
//! Ids that were drawn here say so themselves, for half as long again as they have to be known: as
//! long as none is spoken of later than that, only its scope is kept. Those that clients and other
//! sites chose are kept one by one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::ids::{Ids, Name, Stamp};

/// So many names are kept; beyond it the oldest are forgotten.
const MOST: usize = 50_000;
/// So many different scopes are remembered, each of a few kilobytes at most.
const MOST_SCOPES: usize = 4_096;
/// How many names that should stay are passed over to find one that need not.
const PASSED_OVER: usize = 64;

/// What is remembered.
#[derive(Debug)]
pub(super) struct Memory {
    lasts: Duration,
    start: Instant,
    ids: Ids,
    /// Whether there ever was a scope.
    is_used: AtomicBool,
    names: Mutex<Names>,
}

/// A scope that is remembered.
#[derive(Debug)]
pub(super) struct KnownScope {
    scope: Arc<str>,
    stamp: Stamp,
    /// In which millisecond since the start it was last spoken of.
    last: AtomicU64,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Recalled {
    /// Requests under this scope.
    Scope(Arc<KnownScope>),
    /// Requests under different scopes carried it at the same time: it says nothing.
    Several,
}

#[derive(Debug, Default)]
struct Names {
    /// Each scope once, however many names stand for it.
    scopes: HashMap<Arc<str>, Arc<KnownScope>>,
    stamps: HashMap<Stamp, Arc<KnownScope>>,
    kept: HashMap<Name, (Recalled, Instant)>,
    /// When each that is kept is looked at again, about in order: what is spoken of later may stay
    /// somewhat longer than it is known.
    ages: VecDeque<(Instant, Name)>,
    /// Found once: under much load it counts with every request.
    forgotten_early: OnceLock<metrics::Counter>,
}

/// What a name that was drawn here stands for.
struct Drawn {
    scope: Arc<KnownScope>,
    /// Until when it can be read.
    until: Instant,
}

impl Memory {
    pub(super) fn new(lasts: Duration) -> Self {
        let (start, is_used) = (Instant::now(), AtomicBool::new(false));
        Self { lasts, start, ids: Ids::new(start), is_used, names: Mutex::default() }
    }

    /// Whether there never was a scope.
    pub(super) fn is_unused(&self) -> bool {
        !self.is_used.load(Ordering::Relaxed)
    }

    /// Remembers a scope, for names that are drawn or kept under it.
    pub(super) fn scope(&self, scope: &str, now: Instant) -> Arc<KnownScope> {
        self.is_used.store(true, Ordering::Relaxed);
        let mut names = self.names();
        if let Some(known) = names.scopes.get(scope) {
            known.touch(self.since_start(now));
            return known.clone();
        }
        if names.scopes.len() >= MOST_SCOPES {
            let unused_since = self.since_start(now).saturating_sub(self.can_be_read());
            names.forget_scopes(now, unused_since);
        }
        let stamp = loop {
            let stamp = Ids::stamp();
            if !names.stamps.contains_key(&stamp) {
                break stamp;
            }
        };
        let last = AtomicU64::new(millis(self.since_start(now)));
        let known = Arc::new(KnownScope { scope: scope.into(), stamp, last });
        names.scopes.insert(known.scope.clone(), known.clone());
        names.stamps.insert(stamp, known.clone());
        known
    }

    /// A new name under this scope.
    pub(super) fn draw(&self, scope: &KnownScope, now: Instant) -> Name {
        scope.touch(self.since_start(now));
        self.ids.draw(scope.stamp, now)
    }

    /// Remembers that these names are of requests under that scope, from now on.
    pub(super) fn keep(&self, names: &[Name], scope: &Arc<KnownScope>, now: Instant) {
        if names.is_empty() {
            return;
        }
        let mut all = self.names();
        for name in names {
            let until = now + self.lasts;
            match self.drawn(&all, *name, now) {
                Some(drawn) if drawn.scope.scope != scope.scope => {
                    // Not to be believed as long as it can be read.
                    self.keep_one(&mut all, *name, Recalled::Several, now, until.max(drawn.until));
                }
                Some(drawn) if drawn.until >= until && !all.kept.contains_key(name) => {}
                _ => self.keep_one(&mut all, *name, Recalled::Scope(scope.clone()), now, until),
            }
        }
    }

    /// What the first of these names that says something stands for.
    pub(super) fn recall(&self, names: &[Name], now: Instant) -> Option<Recalled> {
        if names.is_empty() {
            return None;
        }
        let mut all = self.names();
        let mut known = names.iter().filter_map(|name| self.recall_one(&mut all, *name, now));
        match known.next()? {
            Recalled::Several => {
                let other = known.find(|recalled| *recalled != Recalled::Several);
                other.or(Some(Recalled::Several))
            }
            scope => Some(scope),
        }
    }

    fn recall_one(&self, all: &mut Names, name: Name, now: Instant) -> Option<Recalled> {
        let until = now + self.lasts;
        if let Some((recalled, last)) = all.kept.get_mut(&name)
            && *last > now
        {
            // Whoever still speaks of it may go on to; what says nothing is to be forgotten.
            if let Recalled::Scope(scope) = recalled {
                scope.touch(self.since_start(now));
                *last = until;
            }
            return Some(recalled.clone());
        }
        let drawn = self.drawn(all, name, now)?;
        drawn.scope.touch(self.since_start(now));
        let recalled = Recalled::Scope(drawn.scope);
        if drawn.until < until {
            self.keep_one(all, name, recalled.clone(), now, until);
        }
        Some(recalled)
    }

    fn drawn(&self, names: &Names, name: Name, now: Instant) -> Option<Drawn> {
        let said = self.ids.read(name, now)?;
        let scope = names.stamps.get(&said.stamp)?.clone();
        let left = self.can_be_read().checked_sub(said.age).filter(|left| !left.is_zero())?;
        Some(Drawn { scope, until: now + left })
    }

    /// How long a name that was drawn here can be read.
    fn can_be_read(&self) -> Duration {
        self.lasts + self.lasts / 2
    }

    fn keep_one(
        &self,
        all: &mut Names,
        name: Name,
        recalled: Recalled,
        now: Instant,
        until: Instant,
    ) {
        self.forget(all, now);
        match all.kept.entry(name) {
            Entry::Occupied(mut entry) => {
                let (before, last) = entry.get_mut();
                let contradicts = *last > now && *before != recalled;
                *before = if contradicts { Recalled::Several } else { recalled };
                *last = until.max(*last);
            }
            Entry::Vacant(entry) => {
                entry.insert((recalled, until));
                all.ages.push_back((until, name));
            }
        }
    }

    /// What was not spoken of for long enough, and the oldest if there are too many.
    fn forget(&self, all: &mut Names, now: Instant) {
        let mut passed_over = 0;
        while let Some((looked_at, name)) = all.ages.front().copied() {
            let too_many = all.kept.len() >= MOST;
            if looked_at > now && !too_many {
                return;
            }
            all.ages.pop_front();
            let Entry::Occupied(entry) = all.kept.entry(name) else { continue };
            let (recalled, until) = entry.get();
            let stays = match too_many {
                false => *until > now,
                // What was spoken of since it came, or would be believed again.
                true => {
                    passed_over < PASSED_OVER
                        && (*until > looked_at || matches!(recalled, Recalled::Several))
                }
            };
            if stays {
                passed_over += 1;
                all.ages.push_back((*until, name));
                continue;
            }
            let (recalled, until) = entry.remove();
            // What still says the same by itself is not forgotten.
            let known_until = match recalled {
                Recalled::Scope(_) if until > now => self.drawn(all, name, now),
                _ => None,
            };
            if until > known_until.map_or(now, |drawn| drawn.until) {
                all.count_forgotten_early(1);
            }
        }
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        // Nothing here leaves it half changed.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(since_start: Duration) -> u64 {
    u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX)
}

impl KnownScope {
    pub(super) fn text(&self) -> &str {
        &self.scope
    }

    /// Says that it was spoken of. Written only when that changes something: all threads read it
    /// with every request.
    fn touch(&self, since_start: Duration) {
        let now = millis(since_start);
        if self.last.load(Ordering::Relaxed) < now {
            self.last.fetch_max(now, Ordering::Relaxed);
        }
    }
}

impl PartialEq for Recalled {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scope(one), Self::Scope(other)) => one.scope == other.scope,
            (Self::Several, Self::Several) => true,
            _ => false,
        }
    }
}

impl Names {
    /// The scopes that nobody has spoken of since then; if that is none, an eighth of all, of which
    /// nobody has for longest. With them goes what stands for them.
    fn forget_scopes(&mut self, now: Instant, unused_since: Duration) {
        // Read once: others go on to change it.
        let last = |scope: &Arc<KnownScope>| (scope.last.load(Ordering::Relaxed), scope.clone());
        let mut by_age: Vec<_> = self.scopes.values().map(last).collect();
        by_age.sort_unstable_by_key(|(last, _)| *last);
        let unused = by_age.partition_point(|(last, _)| *last < millis(unused_since));
        let early = if unused == 0 { MOST_SCOPES / 8 } else { 0 };
        for (_, scope) in &by_age[..unused + early] {
            self.scopes.remove(&scope.scope);
            self.stamps.remove(&scope.stamp);
        }
        if early == 0 {
            // What stood for them is known no more.
            return;
        }
        let (scopes, mut forgotten) = (&self.scopes, early as u64);
        self.kept.retain(|_, (recalled, until)| {
            let stays = match recalled {
                Recalled::Scope(scope) => scopes.contains_key(&scope.scope),
                Recalled::Several => true,
            };
            forgotten += u64::from(!stays && *until > now);
            stays
        });
        let kept = &self.kept;
        self.ages.retain(|(_, name)| kept.contains_key(name));
        self.count_forgotten_early(forgotten);
    }

    fn count_forgotten_early(&self, ids: u64) {
        let counter = || metrics::counter!("cheops_proxy_ids_forgotten_early_total");
        self.forgotten_early.get_or_init(counter).increment(ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(10);
    const LYON: &str = "image: lyon";
    const PARIS: &str = "image: paris";

    fn at(memory: &Memory, seconds: u64) -> Instant {
        memory.start + Duration::from_secs(seconds)
    }

    fn keep(memory: &Memory, names: &[Name], scope: &str, now: Instant) {
        memory.keep(names, &memory.scope(scope, now), now);
    }

    /// The scope that a name stands for.
    fn recall(memory: &Memory, name: Name, now: Instant) -> Option<String> {
        match memory.recall(&[name], now)? {
            Recalled::Scope(scope) => Some(scope.text().to_owned()),
            Recalled::Several => Some("several".to_owned()),
        }
    }

    fn is_in_order(memory: &Memory) -> bool {
        let names = memory.names();
        names.scopes.len() == names.stamps.len() && names.ages.len() == names.kept.len()
    }

    #[test]
    fn a_name_is_known_until_nobody_has_spoken_of_it_for_a_while() {
        let memory = Memory::new(LASTS);
        let at = |seconds| at(&memory, seconds);
        keep(&memory, &[1, 2], LYON, at(0));
        assert!(memory.recall(&[9, 1], at(9)).is_some());
        assert_eq!(recall(&memory, 2, at(11)), None);
        assert_eq!(recall(&memory, 1, at(18)).as_deref(), Some(LYON), "it was spoken of at 9");
        keep(&memory, &[3], LYON, at(60));
        assert_eq!(memory.names().kept.len(), 1, "what is too old is gone");
    }

    #[test]
    fn a_name_that_was_drawn_here_is_known_at_least_as_long() {
        let memory = Memory::new(LASTS);
        let at = |seconds| at(&memory, seconds);
        let scope = memory.scope(LYON, at(0));
        for spoken_of in [0, 4, 6, 9] {
            let name = memory.draw(&scope, at(0));
            memory.keep(&[name], &scope, at(spoken_of));
            assert!(recall(&memory, name, at(spoken_of)).is_some());
            assert!(recall(&memory, name, at(spoken_of + 9)).is_some(), "spoken of at {spoken_of}");
            assert_eq!(recall(&memory, name, at(spoken_of + 25)), None);
        }
    }

    #[test]
    fn however_many_names_are_drawn_and_spoken_of_each_is_known_and_no_other_is_forgotten() {
        let memory = Memory::new(LASTS);
        let now = at(&memory, 0);
        keep(&memory, &[1], LYON, now);
        let scopes = [LYON, PARIS].map(|scope| memory.scope(scope, now));
        let drawn = (0..2 * MOST).map(|n| (&scopes[n % 2], memory.draw(&scopes[n % 2], now)));
        for (scope, name) in drawn.collect::<Vec<_>>() {
            assert_eq!(recall(&memory, name, now).as_deref(), Some(scope.text()));
            memory.keep(&[name], scope, now);
        }
        assert_eq!(memory.names().kept.len(), 1);
        assert!(recall(&memory, 1, now).is_some());
    }

    #[test]
    fn what_one_agent_draws_means_nothing_to_another() {
        let [memory, other] = [0, 0].map(|_| Memory::new(LASTS));
        let now = at(&other, 0);
        let drawn = memory.draw(&memory.scope(LYON, now), now);
        other.scope(LYON, now);
        assert_eq!(recall(&other, drawn, now), None);
    }

    #[test]
    fn a_name_used_with_two_scopes_at_once_says_nothing() {
        let memory = Memory::new(LASTS);
        let now = at(&memory, 0);
        let drawn = memory.draw(&memory.scope(LYON, now), now);
        keep(&memory, &[1], LYON, now);
        keep(&memory, &[1, drawn], PARIS, now);
        for name in [1, drawn] {
            assert_eq!(recall(&memory, name, now).as_deref(), Some("several"));
        }
        keep(&memory, &[2], LYON, now);
        let other = memory.recall(&[1, 2], now);
        assert!(matches!(other, Some(Recalled::Scope(scope)) if scope.text() == LYON));
        let as_long_as_it_could_be_read = at(&memory, 14);
        assert_eq!(recall(&memory, drawn, as_long_as_it_could_be_read).as_deref(), Some("several"));
    }

    #[test]
    fn a_name_that_nobody_spoke_of_for_a_while_may_stand_for_another_scope() {
        let memory = Memory::new(LASTS);
        let at = |seconds| at(&memory, seconds);
        let drawn = memory.draw(&memory.scope(LYON, at(0)), at(0));
        // This is looked at again later than what comes after it.
        keep(&memory, &[drawn], PARIS, at(0));
        keep(&memory, &[1], LYON, at(1));
        keep(&memory, &[1], PARIS, at(12));
        assert_eq!(recall(&memory, 1, at(12)).as_deref(), Some(PARIS));
    }

    #[test]
    fn there_is_a_limit_and_the_oldest_go_first() {
        let memory = Memory::new(LASTS);
        let now = at(&memory, 0);
        let drawn = memory.draw(&memory.scope(PARIS, now), now);
        keep(&memory, &[drawn], LYON, now);
        for n in 0..MOST + 100 {
            keep(&memory, &[n as Name], LYON, now);
        }
        assert!(memory.names().kept.len() <= MOST);
        assert!(is_in_order(&memory));
        assert_eq!(recall(&memory, 0, now), None);
        assert!(recall(&memory, MOST as Name + 99, now).is_some());
        assert_eq!(recall(&memory, drawn, now).as_deref(), Some("several"), "not believed again");
    }

    #[test]
    fn a_new_scope_is_remembered_however_many_there_are() {
        let memory = Memory::new(LASTS * 1_000);
        let scopes: Vec<_> = (0..2 * MOST_SCOPES).map(|n| format!("image: site{n}")).collect();
        let mut names = Vec::new();
        for (n, scope) in scopes.iter().enumerate() {
            let now = at(&memory, n as u64);
            let known = memory.scope(scope, now);
            memory.keep(&[n as Name], &known, now);
            names.push([n as Name, memory.draw(&known, now)]);
            for name in names[n] {
                assert_eq!(recall(&memory, name, now).as_ref(), Some(scope));
            }
        }
        assert!(memory.names().scopes.len() <= MOST_SCOPES);
        assert!(is_in_order(&memory));
        let now = at(&memory, scopes.len() as u64);
        assert!(memory.recall(&names[0], now).is_none(), "the oldest went early");
    }

    #[test]
    fn scopes_that_nobody_speaks_of_make_room_for_others() {
        let memory = Memory::new(LASTS);
        let at = |seconds| at(&memory, seconds);
        let scopes: Vec<_> =
            (0..MOST_SCOPES).map(|n| memory.scope(&format!("image: site{n}"), at(0))).collect();
        let name = memory.draw(&scopes[7], at(0));
        for spoken_of in [9, 18] {
            assert!(recall(&memory, name, at(spoken_of)).is_some());
        }
        memory.scope(LYON, at(20));
        assert_eq!(memory.names().scopes.len(), 2);
        assert!(recall(&memory, name, at(27)).is_some());
    }
}
