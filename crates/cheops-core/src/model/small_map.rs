//! A map with few entries: the sites and authors of one resource. There are very many such maps
//! with one or two entries each, and a B-tree takes room for eleven with the first.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Sorted by key; reads and is written as any other map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SmallMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> SmallMap<K, V> {
    fn find(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).ok().map(|at| &mut self.0[at].1)
    }

    /// What is there, or else is put there.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V
    where
        K: Clone,
    {
        let at = self.find(key).unwrap_or_else(|at| {
            if self.0.len() == self.0.capacity() {
                // A vector would begin with room for four.
                self.0.reserve_exact(1 + self.0.len() / 2);
            }
            self.0.insert(at, (key.clone(), make()));
            at
        });
        &mut self.0[at].1
    }

    /// Puts it there, whatever was there before.
    pub(crate) fn insert(&mut self, key: &K, value: V)
    where
        K: Clone,
    {
        match self.find(key) {
            Ok(at) => self.0[at].1 = value,
            Err(_) => drop(self.get_or_insert_with(key, || value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for SmallMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Serialize, V: Serialize> Serialize for SmallMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, K: Ord + Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for SmallMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Who sent it may have sorted otherwise, or not at all.
        Ok(Self(BTreeMap::deserialize(deserializer)?.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_like_any_other(
            steps in prop::collection::vec((0u8..12, 0u8..12, prop::bool::weighted(0.7)), 0..40),
        ) {
            let (mut small, mut map) = (SmallMap::default(), BTreeMap::new());
            for (key, value, puts) in steps {
                if puts {
                    *small.get_or_insert_with(&key, || 0) += value;
                    *map.entry(key).or_insert(0) += value;
                } else {
                    prop_assert_eq!(small.remove(&key), map.remove(&key));
                }
            }
            small.retain(|key, value| (key ^ *value) % 3 != 0);
            map.retain(|key, value| (key ^ *value) % 3 != 0);
            prop_assert!(small.iter().eq(&map) && small.keys().eq(map.keys()));
            prop_assert!((0..12).all(|key| small.get(&key) == map.get(&key)));
            prop_assert!((0..12).all(|key| small.contains_key(&key) == map.contains_key(&key)));
            let (written, expected) =
                (serde_json::to_string(&small).unwrap(), serde_json::to_string(&map).unwrap());
            prop_assert_eq!(&written, &expected);
            prop_assert_eq!(serde_json::from_str::<SmallMap<u8, u8>>(&written).unwrap(), small);
        }
    }
}
