//! The wholes that were made or asked for at this site since its agent started, and where: an id says which
//! parts it has, but not of which service and collection it is, and no site keeps anything of a whole.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are known; of more, those seen first are forgotten.
const MOST_SEEN: usize = 256;

/// A resource over several sites that was made or asked for here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWhole {
    /// What users call it.
    pub id: String,
    /// The service.
    pub service: String,
    /// The path of its collection.
    pub collection: String,
}

#[derive(Default)]
pub(super) struct SeenWholes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    next: u64,
    /// With when they were first seen, by their ids.
    wholes: BTreeMap<String, (u64, SeenWhole)>,
}

impl SeenWholes {
    pub(super) fn note(&self, service: &str, collection: &str, id: &str) {
        let mut kept = self.kept();
        // On the way of every request for it.
        if kept.wholes.contains_key(id) {
            return;
        }
        if kept.wholes.len() >= MOST_SEEN {
            let first = kept.wholes.values().min_by_key(|(at, _)| *at).map(|(_, it)| it.id.clone());
            first.and_then(|first| kept.wholes.remove(&first));
        }
        let at = kept.next;
        kept.next += 1;
        let (id, service) = (id.to_owned(), service.to_owned());
        let collection = collection.trim_end_matches('/').to_owned();
        kept.wholes.insert(id.clone(), (at, SeenWhole { id, service, collection }));
    }

    pub(super) fn forget(&self, id: &str) {
        self.kept().wholes.remove(id);
    }

    pub(super) fn find(&self, id: &str) -> Option<SeenWhole> {
        self.kept().wholes.get(id).map(|(_, whole)| whole.clone())
    }

    /// All of them, the latest first.
    pub(super) fn all(&self) -> Vec<SeenWhole> {
        let mut all: Vec<_> = self.kept().wholes.values().cloned().collect();
        all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        all.into_iter().map(|(_, whole)| whole).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing here leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(seen: &SeenWholes) -> Vec<String> {
        seen.all().into_iter().map(|whole| whole.id).collect()
    }

    #[test]
    fn the_latest_comes_first_and_the_first_are_forgotten_for_want_of_room() {
        let seen = SeenWholes::default();
        for n in 0..=MOST_SEEN {
            seen.note("store", "/v1/things/", &format!("cross-{n}"));
        }
        seen.note("store", "/v1/things", "cross-1");
        let all = ids(&seen);
        assert_eq!((all.len(), all[0].as_str()), (MOST_SEEN, "cross-256"));
        assert_eq!(all.last().map(String::as_str), Some("cross-1"), "seen again, it stays");
        assert_eq!(seen.find("cross-1").unwrap().collection, "/v1/things");
        seen.forget("cross-1");
        assert_eq!((seen.find("cross-1"), ids(&seen).len()), (None, MOST_SEEN - 1));
    }
}
