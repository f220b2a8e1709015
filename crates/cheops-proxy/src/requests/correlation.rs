//! Which scopes were used of late, and which requests' ids stand for them.
//!
//! Ids that were given here say themselves of which scope they are: only the scope is kept. Those
//! that clients chose are kept one by one, each for the client who chose it, or for everybody where
//! the service is told to trust them.
//!
//! Everything has a limit. Beyond it, whoever holds the most gives room, oldest first: so nobody
//! pushes out what others hold who hold less.

mod room;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cheops_core::model::SiteId;

use super::ids::{Ids, Name, ScopeStamp};
use super::key::KeyFile;

/// So many ids that others chose are kept.
const MOST: usize = 50_000;
/// So many different scopes are remembered, each of a few kilobytes at most.
const MOST_SCOPES: usize = 4_096;
/// When there is no room, so much of it is made at once: an eighth.
const MADE_AT_ONCE: usize = 8;

/// What is remembered.
#[derive(Debug)]
pub(super) struct Correlation {
    lasts: Duration,
    start: Instant,
    file: KeyFile,
    /// There are none before the first scope of the site's life.
    ids: OnceLock<Ids>,
    table: Mutex<MemoryTable>,
}

/// A scope that is remembered.
#[derive(Debug)]
pub(super) struct KnownScope {
    scope: Arc<str>,
    stamp: ScopeStamp,
    /// In which millisecond since the start it was last spoken of.
    last: AtomicU64,
    is_forgotten: AtomicBool,
}

/// What a request's ids stand for.
#[derive(Debug, Clone)]
pub(super) enum Recalled {
    /// Requests under this scope.
    Scope(Arc<KnownScope>),
    /// Requests under different scopes carried it at the same time: it says nothing.
    Several,
    /// It was given here, under a scope that is not remembered any more.
    Forgotten,
}

/// Who takes up room.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// Clients from one address; of IPv6, from one network.
    Address(IpAddr),
    /// Another site's agent.
    Site(SiteId),
    /// This agent, with requests that are operations.
    Agent,
}

impl Holder {
    pub(super) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            // Whoever has one address of a network can have them all.
            IpAddr::V6(ip) => {
                let network = ip.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            ip => ip,
        })
    }
}

/// Whose an id is that was not given here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Chooser {
    /// Who has this token, as a hash.
    Token([u8; 16]),
    /// Who has this connection.
    Connection(u64),
}

/// For whom an id that was not given here stands for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum For {
    Everybody,
    Only(Chooser),
}

#[derive(Debug, Default)]
struct MemoryTable {
    /// Each scope once, in its canonical form, however it was written.
    scopes: HashMap<Arc<str>, HeldScope>,
    stamps: HashMap<ScopeStamp, Arc<KnownScope>>,
    kept: HashMap<(For, Name), KeptScope>,
    /// Found once: under much load it counts with every request.
    forgotten_early: OnceLock<metrics::Counter>,
}

#[derive(Debug)]
struct HeldScope {
    scope: Arc<KnownScope>,
    by: Holder,
}

#[derive(Debug)]
struct KeptScope {
    /// None if there were several at the same time.
    scope: Option<Arc<KnownScope>>,
    until: Instant,
    by: Holder,
}

impl Correlation {
    pub(super) fn new(lasts: Duration, file: KeyFile) -> Self {
        let ids = OnceLock::new();
        if let Some(key) = file.read() {
            let _first = ids.set(Ids::new(key));
        }
        Self { lasts, start: Instant::now(), file, ids, table: Mutex::default() }
    }

    /// Whether there never was a scope, in no life of this site.
    pub(super) fn is_unused(&self) -> bool {
        self.ids.get().is_none()
    }

    fn ids(&self) -> &Ids {
        self.ids.get_or_init(|| Ids::new(self.file.make()))
    }

    /// Remembers a scope, in its canonical form, for ids that are given or kept under it.
    pub(super) fn scope(&self, scope: &str, by: &Holder, now: Instant) -> Arc<KnownScope> {
        let ids = self.ids();
        let mut table = self.table();
        if let Some(known) = table.used_by(scope, by) {
            known.touch(self.since_start(now));
            return known;
        }
        if table.scopes.len() >= MOST_SCOPES {
            let unused_since = millis(self.since_start(now).saturating_sub(self.lasts));
            table.forget_scopes(now, unused_since);
        }
        let mut stamp = ids.stamp(scope);
        while table.stamps.contains_key(&stamp) {
            stamp = Ids::next_stamp(stamp);
        }
        let last = AtomicU64::new(millis(self.since_start(now)));
        let is_forgotten = AtomicBool::new(false);
        let known = Arc::new(KnownScope { scope: scope.into(), stamp, last, is_forgotten });
        let held = HeldScope { scope: known.clone(), by: by.clone() };
        table.scopes.insert(known.scope.clone(), held);
        table.stamps.insert(stamp, known.clone());
        known
    }

    /// A scope that is remembered already, if this is its canonical form.
    pub(super) fn known(&self, scope: &str, by: &Holder, now: Instant) -> Option<Arc<KnownScope>> {
        let known = self.table().used_by(scope, by)?;
        known.touch(self.since_start(now));
        Some(known)
    }

    /// What a request under that scope is called: by an id that was given here for it, if it has
    /// one, else by a new one. And which of its names others chose.
    pub(super) fn name(
        &self,
        names: &[Name],
        scope: &KnownScope,
        now: Instant,
    ) -> (Name, Vec<Name>) {
        scope.touch(self.since_start(now));
        let ids = self.ids();
        let (mut own, mut chosen) = (None, Vec::new());
        for name in names {
            match ids.read(*name) {
                Some(stamp) if stamp == scope.stamp => own = own.or(Some(*name)),
                Some(_) => {}
                None => chosen.push(*name),
            }
        }
        (own.unwrap_or_else(|| ids.draw(scope.stamp)), chosen)
    }

    /// Remembers that these ids, which others chose, are of requests under that scope from now on:
    /// for who chose them, or for everybody.
    pub(super) fn keep(
        &self,
        names: &[Name],
        scope: &Arc<KnownScope>,
        chooser: Option<Chooser>,
        by: &Holder,
        now: Instant,
    ) {
        let mut table = self.table();
        for name in names {
            table.make_room(now);
            let until = now + self.lasts;
            match table.kept.entry((chooser.map_or(For::Everybody, For::Only), *name)) {
                Entry::Occupied(mut entry) => {
                    let kept = entry.get_mut();
                    let is_same = kept.scope.as_ref().is_some_and(|it| it.scope == scope.scope);
                    let contradicts = kept.until > now && !is_same;
                    kept.scope = (!contradicts).then(|| scope.clone());
                    kept.until = until.max(kept.until);
                }
                Entry::Vacant(entry) => {
                    entry.insert(KeptScope { scope: Some(scope.clone()), until, by: by.clone() });
                }
            }
        }
    }

    /// What these names stand for, if somebody brings them who has none but these choosers' ids:
    /// what the first of them says that says something. An id that others chose for everybody
    /// counts only where they are trusted.
    pub(super) fn recall(
        &self,
        names: &[Name],
        chooser: impl FnOnce() -> Chooser,
        trusts: bool,
        now: Instant,
    ) -> Option<Recalled> {
        let ids = self.ids.get().filter(|_| !names.is_empty())?;
        let chooser = For::Only(chooser());
        let (until, since_start) = (now + self.lasts, self.since_start(now));
        let mut table = self.table();
        let mut found = None;
        for name in names {
            let recalled = match ids.read(*name) {
                Some(stamp) => match table.stamps.get(&stamp) {
                    Some(scope) => Recalled::Scope(scope.clone()),
                    None => Recalled::Forgotten,
                },
                None => {
                    let kept = table.recall_kept((chooser, *name), now, until);
                    let everybody = || (For::Everybody, *name);
                    let kept = match kept {
                        None if trusts => table.recall_kept(everybody(), now, until),
                        kept => kept,
                    };
                    match kept {
                        Some(kept) => kept,
                        None => continue,
                    }
                }
            };
            if let Recalled::Scope(scope) = &recalled {
                scope.touch(since_start);
                return Some(recalled);
            }
            // What says that it cannot be followed counts unless another name says more.
            found = found.or(Some(recalled));
        }
        found
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, MemoryTable> {
        // Nothing here leaves it half changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(since_start: Duration) -> u64 {
    u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX)
}

impl KnownScope {
    pub(super) fn text(&self) -> &str {
        &self.scope
    }

    /// Whether it made room for others: ids under it would not be known again.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Relaxed)
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

impl MemoryTable {
    /// A scope that is known. It counts for the one of its users who holds least, so that it does
    /// not go with what somebody else brought along.
    fn used_by(&mut self, scope: &str, by: &Holder) -> Option<Arc<KnownScope>> {
        let held = self.scopes.get(scope)?;
        let known = held.scope.clone();
        if held.by != *by && self.scopes.len() >= MOST_SCOPES / 2 {
            let count =
                |holder: &Holder| self.scopes.values().filter(|it| it.by == *holder).count();
            if count(by) < count(&held.by)
                && let Some(held) = self.scopes.get_mut(scope)
            {
                held.by = by.clone();
            }
        }
        Some(known)
    }

    fn recall_kept(&mut self, name: (For, Name), now: Instant, until: Instant) -> Option<Recalled> {
        let kept = self.kept.get_mut(&name).filter(|kept| kept.until > now)?;
        Some(match &kept.scope {
            Some(scope) => {
                // Whoever still speaks of it may go on to; what says nothing is to be forgotten.
                kept.until = until;
                Recalled::Scope(scope.clone())
            }
            None => Recalled::Several,
        })
    }

    /// Room for one more id: what nobody has spoken of for long enough goes, or else the oldest of
    /// whoever holds the most.
    fn make_room(&mut self, now: Instant) {
        if self.kept.len() < MOST {
            return;
        }
        self.kept.retain(|_, kept| kept.until > now);
        if self.kept.len() < MOST {
            return;
        }
        let held = self.kept.iter().map(|(name, kept)| (&kept.by, kept.until, *name));
        let gone = room::surplus(held, MOST - MOST / MADE_AT_ONCE);
        for name in &gone {
            self.kept.remove(name);
        }
        self.count_forgotten_early(gone.len() as u64);
    }

    /// The scopes that nobody has spoken of since then; if that is none, the oldest of whoever
    /// holds the most. With them goes what stands for them.
    fn forget_scopes(&mut self, now: Instant, unused_since: u64) {
        // Read once: others go on to change it.
        let last = |held: &HeldScope| held.scope.last.load(Ordering::Relaxed);
        let unused = self.scopes.values().filter(|held| last(held) < unused_since);
        let mut gone: Vec<Arc<KnownScope>> = unused.map(|held| held.scope.clone()).collect();
        let mut early = 0;
        if gone.is_empty() {
            let held = self.scopes.values().map(|it| (&it.by, last(it), it.scope.clone()));
            gone = room::surplus(held, MOST_SCOPES - MOST_SCOPES / MADE_AT_ONCE);
            early = gone.len() as u64;
        }
        for scope in &gone {
            scope.is_forgotten.store(true, Ordering::Relaxed);
            self.scopes.remove(&scope.scope);
            self.stamps.remove(&scope.stamp);
        }
        self.kept.retain(|_, kept| {
            let stays = kept.scope.as_ref().is_none_or(|scope| !scope.is_forgotten());
            early += u64::from(!stays && kept.until > now);
            stays
        });
        self.count_forgotten_early(early);
    }

    fn count_forgotten_early(&self, ids: u64) {
        if ids > 0 {
            let counter = || metrics::counter!("cheops_proxy_ids_forgotten_early_total");
            self.forgotten_early.get_or_init(counter).increment(ids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(10);
    const LYON: &str = "{image: lyon}";
    const PARIS: &str = "{image: paris}";
    const ALICE: Chooser = Chooser::Connection(1);
    const MALLORY: Chooser = Chooser::Connection(2);

    struct Kit {
        memory: Correlation,
        dir: tempfile::TempDir,
    }

    impl Kit {
        fn new(lasts: Duration) -> Self {
            let dir = tempfile::tempdir().unwrap();
            Self { memory: Correlation::new(lasts, KeyFile::below(dir.path())), dir }
        }

        /// The agent, started anew.
        fn next_life(self) -> Self {
            let memory = Correlation::new(self.memory.lasts, KeyFile::below(self.dir.path()));
            Self { memory, dir: self.dir }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.memory.start + Duration::from_secs(seconds)
        }

        fn scope(&self, scope: &str, seconds: u64) -> Arc<KnownScope> {
            self.memory.scope(scope, &holder(1), self.at(seconds))
        }

        fn draw(&self, scope: &str, seconds: u64) -> Name {
            let known = self.scope(scope, seconds);
            self.memory.name(&[], &known, self.at(seconds)).0
        }

        fn keep(&self, names: &[Name], scope: &str, seconds: u64) {
            let known = self.scope(scope, seconds);
            self.memory.keep(names, &known, Some(ALICE), &holder(1), self.at(seconds));
        }

        /// What names stand for if this one brings them.
        fn recall_by(&self, who: Chooser, names: &[Name], seconds: u64) -> Option<String> {
            match self.memory.recall(names, || who, false, self.at(seconds))? {
                Recalled::Scope(scope) => Some(scope.text().to_owned()),
                Recalled::Several => Some("several".to_owned()),
                Recalled::Forgotten => Some("forgotten".to_owned()),
            }
        }

        fn recall(&self, name: Name, seconds: u64) -> Option<String> {
            self.recall_by(ALICE, &[name], seconds)
        }
    }

    fn holder(n: u8) -> Holder {
        Holder::at(IpAddr::from([10, 0, 0, n]))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn an_id_that_a_client_chose_is_known_until_nobody_has_spoken_of_it_for_a_while() {
        let kit = Kit::new(LASTS);
        kit.keep(&[1, 2], LYON, 0);
        assert_eq!(kit.recall_by(ALICE, &[9, 1], 9), some(LYON));
        assert_eq!(kit.recall(2, 11), None);
        assert_eq!(kit.recall(1, 18), some(LYON), "it was spoken of at 9");
    }

    #[test]
    fn an_id_that_a_client_chose_says_nothing_if_another_brings_it() {
        let kit = Kit::new(LASTS);
        kit.keep(&[1], LYON, 0);
        assert_eq!(kit.recall_by(MALLORY, &[1], 0), None);
        assert_eq!(kit.recall_by(ALICE, &[1], 0), some(LYON));
        let trusting = kit.memory.recall(&[1], || MALLORY, true, kit.at(0));
        assert!(trusting.is_none(), "it was not chosen where everybody is trusted");

        let known = kit.scope(LYON, 0);
        kit.memory.keep(&[2], &known, None, &holder(1), kit.at(0));
        assert_eq!(kit.recall_by(MALLORY, &[2], 0), None, "not where nobody is trusted");
        let trusting = kit.memory.recall(&[2], || MALLORY, true, kit.at(0));
        assert!(matches!(trusting, Some(Recalled::Scope(scope)) if scope.text() == LYON));
    }

    #[test]
    fn an_id_that_was_given_here_is_known_whoever_brings_it_as_long_as_its_scope_is() {
        let kit = Kit::new(LASTS);
        let name = kit.draw(LYON, 0);
        for seconds in [0, 9, 100] {
            assert_eq!(kit.recall_by(MALLORY, &[name], seconds), some(LYON));
        }
    }

    #[test]
    fn an_id_of_an_earlier_life_is_known_to_be_one_and_good_again_once_its_scope_is_used() {
        let kit = Kit::new(LASTS);
        assert!(kit.memory.is_unused());
        let name = kit.draw(LYON, 0);
        let kit = kit.next_life();
        assert!(!kit.memory.is_unused(), "a look at ids is needed from the start");
        assert_eq!(kit.recall(name, 0), some("forgotten"));
        kit.scope(PARIS, 0);
        assert_eq!(kit.recall(name, 0), some("forgotten"));
        kit.scope(LYON, 0);
        assert_eq!(kit.recall(name, 0), some(LYON));
    }

    #[test]
    fn however_many_ids_are_given_each_is_known_and_nothing_is_kept_of_them() {
        let kit = Kit::new(LASTS);
        kit.keep(&[1], LYON, 0);
        for n in 0..2 * MOST {
            let scope = [LYON, PARIS][n % 2];
            let name = kit.draw(scope, 0);
            assert_eq!(kit.recall(name, 0), some(scope));
        }
        assert_eq!(kit.memory.table().kept.len(), 1);
    }

    #[test]
    fn what_one_agent_gives_means_nothing_to_another() {
        let [kit, other] = [0, 0].map(|_| Kit::new(LASTS));
        let drawn = kit.draw(LYON, 0);
        other.scope(LYON, 0);
        assert_eq!(other.recall(drawn, 0), None);
    }

    #[test]
    fn a_request_goes_on_under_the_id_that_it_has_of_its_scope() {
        let kit = Kit::new(LASTS);
        let (of_lyon, of_paris) = (kit.draw(LYON, 0), kit.draw(PARIS, 0));
        let lyon = kit.scope(LYON, 0);
        let (name, chosen) = kit.memory.name(&[of_paris, 7, of_lyon], &lyon, kit.at(0));
        assert_eq!((name, chosen), (of_lyon, vec![7]));
        let (name, _) = kit.memory.name(&[of_paris, 7], &lyon, kit.at(0));
        assert!(![of_paris, of_lyon, 7].contains(&name));
        assert_eq!(kit.recall(name, 0), some(LYON));
    }

    #[test]
    fn an_id_that_a_client_used_with_two_scopes_at_once_says_nothing() {
        let kit = Kit::new(LASTS);
        kit.keep(&[1], LYON, 0);
        kit.keep(&[1], PARIS, 0);
        assert_eq!(kit.recall(1, 0), some("several"));
        kit.keep(&[2], LYON, 0);
        assert_eq!(kit.recall_by(ALICE, &[1, 2], 0), some(LYON), "another one says more");
        kit.keep(&[1], PARIS, 12);
        assert_eq!(kit.recall(1, 12), some(PARIS), "after a while it may stand for another");
    }

    #[test]
    fn who_holds_the_most_gives_room_and_the_others_keep_theirs() {
        let kit = Kit::new(LASTS);
        kit.keep(&[1], LYON, 0);
        let (lyon, now) = (kit.scope(LYON, 0), kit.at(0));
        for n in 0..2 * MOST {
            kit.memory.keep(&[100 + n as Name], &lyon, Some(MALLORY), &holder(2), now);
        }
        assert!(kit.memory.table().kept.len() <= MOST);
        assert_eq!(kit.recall(1, 0), some(LYON), "one client does not push out another's");
        let last = 100 + 2 * MOST as Name - 1;
        assert_eq!(kit.recall_by(MALLORY, &[last], 0), some(LYON), "its own oldest went");
    }

    #[test]
    fn scopes_of_one_client_do_not_push_out_those_of_others() {
        let kit = Kit::new(LASTS * 1_000);
        let of_alice = kit.draw(LYON, 0);
        let first = kit.memory.scope("{image: site0}", &holder(2), kit.at(1));
        let (of_first, _) = kit.memory.name(&[], &first, kit.at(1));
        for n in 1..2 * MOST_SCOPES {
            let now = kit.at(n as u64);
            let known = kit.memory.scope(&format!("{{image: site{n}}}"), &holder(2), now);
            let (name, _) = kit.memory.name(&[], &known, now);
            assert_eq!(kit.recall(name, n as u64).as_deref(), Some(known.text()));
        }
        let table = kit.memory.table();
        assert!(table.scopes.len() <= MOST_SCOPES && table.scopes.len() == table.stamps.len());
        drop(table);
        assert_eq!(kit.recall(of_alice, 9_000), some(LYON));
        assert!(first.is_forgotten());
        assert_eq!(kit.recall(of_first, 9_000), some("forgotten"), "and is refused, not run here");
    }

    #[test]
    fn a_scope_that_many_use_does_not_go_with_those_of_one_who_has_too_many() {
        let kit = Kit::new(LASTS * 1_000);
        // The first who used it is who will use too many.
        kit.memory.scope(LYON, &holder(2), kit.at(0));
        for n in 0..MOST_SCOPES - 1 {
            kit.memory.scope(&format!("{{image: site{n}}}"), &holder(2), kit.at(1));
        }
        let name = kit.draw(LYON, 0);
        kit.memory.scope(PARIS, &holder(2), kit.at(2));
        assert_eq!(kit.recall(name, 2), some(LYON));
    }

    #[test]
    fn scopes_that_nobody_speaks_of_make_room_for_others() {
        let kit = Kit::new(LASTS);
        for n in 0..MOST_SCOPES {
            kit.scope(&format!("{{image: site{n}}}"), 0);
        }
        let name = kit.draw("{image: site7}", 0);
        for spoken_of in [9, 18] {
            assert_eq!(kit.recall(name, spoken_of), some("{image: site7}"));
        }
        kit.scope(LYON, 20);
        assert_eq!(kit.memory.table().scopes.len(), 2);
        assert_eq!(kit.recall(name, 27), some("{image: site7}"));
    }

    #[test]
    fn whoever_has_one_address_of_a_network_is_one_holder() {
        let at = |text: &str| Holder::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::2:3"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
