//! Which scope was seen with which request id, for as long as a service may go on working on it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// So many names are remembered; beyond it the oldest are forgotten. With more, the tables would take
/// twice the memory, and be twice as far from the processor.
const MOST: usize = 50_000;

/// So many different scopes are remembered, each of a few kilobytes at most.
const MOST_SCOPES: usize = 4_096;
/// How many names that were spoken of of late are passed over to find one that was not.
const PASSED_OVER: usize = 64;

/// A name under which a service may speak of a request: an id of 128 bits, or what stands for one.
pub(super) type Name = u128;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recalled {
    /// Requests under this scope.
    Scope(Arc<str>),
    /// Requests under different scopes carried it at the same time: it says nothing.
    Several,
}

/// What is remembered.
#[derive(Debug)]
pub(super) struct Memory {
    lasts: Duration,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    /// Each scope once, however many names stand for it.
    scopes: HashSet<Arc<str>>,
    known: HashMap<Name, (Recalled, Instant)>,
    /// When each is looked at again, in order.
    ages: VecDeque<(Instant, Name)>,
    /// Found once: under much load it counts with every request.
    forgotten_early: OnceLock<metrics::Counter>,
}

impl Memory {
    pub(super) fn new(lasts: Duration) -> Self {
        Self { lasts, names: Mutex::default() }
    }

    /// Whether nothing was ever remembered, or all of it is forgotten.
    pub(super) fn is_empty(&self) -> bool {
        self.names().known.is_empty()
    }

    /// Remembers that these names are of requests under that scope, from now on.
    pub(super) fn keep(&self, names: &[Name], scope: &Arc<str>, now: Instant) {
        let until = now + self.lasts;
        let mut kept = self.names();
        kept.forget(now);
        let scope = kept.the_one(scope, now);
        let Names { known, ages, .. } = &mut *kept;
        for name in names {
            match known.entry(*name) {
                Entry::Occupied(mut entry) => {
                    let (recalled, last) = entry.get_mut();
                    *last = until;
                    if !matches!(recalled, Recalled::Scope(other) if *other == scope) {
                        *recalled = Recalled::Several;
                    }
                }
                Entry::Vacant(entry) => {
                    entry.insert((Recalled::Scope(scope.clone()), until));
                    ages.push_back((until, *name));
                }
            }
        }
    }

    /// What the first of these names that is known stands for.
    pub(super) fn recall(&self, names: &[Name], now: Instant) -> Option<Recalled> {
        let mut kept = self.names();
        let until = now + self.lasts;
        names.iter().find_map(|name| {
            let (recalled, last) = kept.known.get_mut(name)?;
            (*last > now).then(|| {
                // Whoever still speaks of it may go on to; what says nothing is to be forgotten.
                if *recalled != Recalled::Several {
                    *last = until;
                }
                recalled.clone()
            })
        })
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        // Nothing here leaves it half changed.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    /// The same scope as it is kept already, or from now on. If there are too many, the oldest
    /// names go until nothing speaks of one of them.
    fn the_one(&mut self, scope: &Arc<str>, now: Instant) -> Arc<str> {
        if let Some(kept) = self.scopes.get(scope) {
            return kept.clone();
        }
        if self.scopes.len() >= MOST_SCOPES {
            self.scopes.retain(|scope| Arc::strong_count(scope) > 1);
        }
        let mut passed_over = 0;
        while self.scopes.len() >= MOST_SCOPES && !self.ages.is_empty() {
            self.look_at_oldest(now, true, &mut passed_over);
        }
        // One that is nobody else's, so that it can be told when nothing speaks of it any more.
        let kept: Arc<str> = Arc::from(&**scope);
        self.scopes.insert(kept.clone());
        kept
    }

    /// What was not spoken of for long enough, and the oldest if there are too many.
    fn forget(&mut self, now: Instant) {
        let mut passed_over = 0;
        while let Some((looked_at, _)) = self.ages.front() {
            let too_many = self.known.len() >= MOST;
            if *looked_at > now && !too_many {
                return;
            }
            self.look_at_oldest(now, too_many, &mut passed_over);
        }
    }

    fn look_at_oldest(&mut self, now: Instant, too_many: bool, passed_over: &mut usize) {
        let Some((looked_at, name)) = self.ages.pop_front() else { return };
        let until = self.known.get(&name).map_or(now, |(_, until)| *until);
        let stays = match too_many {
            false => until > now,
            // Of those in use, the ones that were spoken of since they came.
            true => until > looked_at && *passed_over < PASSED_OVER,
        };
        if stays {
            *passed_over += 1;
            self.ages.push_back((until, name));
            return;
        }
        if until > now {
            let counter = || metrics::counter!("cheops_proxy_ids_forgotten_early_total");
            self.forgotten_early.get_or_init(counter).increment(1);
        }
        if let Some((Recalled::Scope(scope), _)) = self.known.remove(&name)
            // This one, and that among the scopes.
            && Arc::strong_count(&scope) == 2
        {
            self.scopes.remove(&scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_until_nobody_has_spoken_of_it_for_a_while() {
        let memory = Memory::new(Duration::from_secs(10));
        let (start, scope) = (Instant::now(), Arc::<str>::from("image: lyon"));
        let at = |seconds| start + Duration::from_secs(seconds);
        memory.keep(&[1, 2], &scope, at(0));
        let lyon = Some(Recalled::Scope(scope.clone()));
        assert_eq!(memory.recall(&[9, 1], at(9)), lyon);
        assert_eq!(memory.recall(&[2], at(11)), None);
        assert_eq!(memory.recall(&[1], at(18)), lyon, "it was spoken of at 9");
        memory.keep(&[3], &scope, at(60));
        assert_eq!(memory.names().known.len(), 1, "what is too old is gone");
    }

    #[test]
    fn a_name_used_with_two_scopes_at_once_says_nothing() {
        let memory = Memory::new(Duration::from_secs(10));
        let now = Instant::now();
        for scope in ["image: lyon", "image: paris"] {
            memory.keep(&[1], &scope.into(), now);
        }
        assert_eq!(memory.recall(&[1], now), Some(Recalled::Several));
    }

    #[test]
    fn there_is_a_limit_and_the_oldest_go_first() {
        let memory = Memory::new(Duration::from_secs(10));
        let (now, scope) = (Instant::now(), "image: lyon".into());
        for n in 0..MOST + 100 {
            memory.keep(&[n as Name], &scope, now);
        }
        assert!(memory.names().known.len() <= MOST);
        assert_eq!(memory.recall(&[0], now), None);
        assert!(memory.recall(&[MOST as Name + 99], now).is_some());
    }

    #[test]
    fn a_new_scope_is_remembered_however_many_there_are() {
        let memory = Memory::new(Duration::from_secs(10));
        let now = Instant::now();
        // Whoever resolves scopes holds them as well.
        let scopes: Vec<Arc<str>> =
            (0..MOST_SCOPES + 100).map(|n| format!("image: site{n}").into()).collect();
        for (n, scope) in scopes.iter().enumerate() {
            memory.keep(&[n as Name], scope, now);
            assert_eq!(memory.recall(&[n as Name], now), Some(Recalled::Scope(scope.clone())));
        }
        assert!(memory.names().scopes.len() <= MOST_SCOPES);
        assert_eq!(memory.recall(&[0], now), None, "the oldest went early");
    }
}
