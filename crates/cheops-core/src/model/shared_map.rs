//! A sorted map that can be copied at once, however much is in it: what an engine gives to readers, who
//! take their time.
//!
//! A balanced tree, of which copies share all parts. Who changes one of them copies the way to what it
//! changes, as far as another has it too, and nothing else.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// How many parts of maps were looked at one after the other, or copied: for tests of what something
/// costs.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn one_more() {
        LOOKS.set(LOOKS.get() + 1);
    }

    pub(crate) fn during<T>(what: impl FnOnce() -> T) -> (u64, T) {
        let before = LOOKS.get();
        let done = what();
        (LOOKS.get() - before, done)
    }
}

/// Sorted by key. What begins as a copy goes its own way.
#[derive(Clone)]
pub(crate) struct SharedMap<K, V>(Option<Arc<Branch<K, V>>>);

struct Branch<K, V> {
    key: K,
    value: V,
    /// How many there are from here on down.
    size: usize,
    /// What comes before, and after.
    before: SharedMap<K, V>,
    after: SharedMap<K, V>,
}

impl<K: Clone, V: Clone> Clone for Branch<K, V> {
    fn clone(&self) -> Self {
        #[cfg(test)]
        looks::one_more();
        let Self { key, value, size, before, after } = self;
        let (before, after) = (before.clone(), after.clone());
        Self { key: key.clone(), value: value.clone(), size: *size, before, after }
    }
}

/// So many times heavier one side may be than the other, and the inner part of the heavy one than its
/// outer part (Hirai and Yamamoto, Balancing weight-balanced trees, 2011).
const HEAVIER: usize = 3;
const INNER_HEAVIER: usize = 2;

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K, V> SharedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |branch| branch.size)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn weight(&self) -> usize {
        self.len() + 1
    }

    pub(crate) fn first_key_value(&self) -> Option<(&K, &V)> {
        let mut first = self.0.as_deref()?;
        while let Some(before) = first.before.0.as_deref() {
            first = before;
        }
        Some((&first.key, &first.value))
    }

    pub(crate) fn last_key_value(&self) -> Option<(&K, &V)> {
        let mut last = self.0.as_deref()?;
        while let Some(after) = last.after.0.as_deref() {
            last = after;
        }
        Some((&last.key, &last.value))
    }

    /// All of it, in order.
    pub(crate) fn iter(&self) -> SharedMapRange<'_, K, V> {
        SharedMapRange { map: self, from: 0, to: self.len(), coming: None, coming_back: None }
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut at = self.0.as_deref();
        while let Some(branch) = at {
            at = match key.cmp(&branch.key) {
                Ordering::Less => branch.before.0.as_deref(),
                Ordering::Equal => return Some(&branch.value),
                Ordering::Greater => branch.after.0.as_deref(),
            };
        }
        None
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// How many come before those of which that is not so any more.
    fn count_while(&self, is_before: impl Fn(&K) -> bool) -> usize {
        let (mut count, mut at) = (0, self.0.as_deref());
        while let Some(branch) = at {
            at = if is_before(&branch.key) {
                count += branch.before.len() + 1;
                branch.after.0.as_deref()
            } else {
                branch.before.0.as_deref()
            };
        }
        count
    }

    /// What is within these bounds, in order. How many that are is known without a look at them.
    pub(crate) fn range(&self, within: impl RangeBounds<K>) -> SharedMapRange<'_, K, V> {
        let from = match within.start_bound() {
            Bound::Included(first) => self.count_while(|key| key < first),
            Bound::Excluded(last) => self.count_while(|key| key <= last),
            Bound::Unbounded => 0,
        };
        let to = match within.end_bound() {
            Bound::Included(last) => self.count_while(|key| key <= last),
            Bound::Excluded(first) => self.count_while(|key| key < first),
            Bound::Unbounded => self.len(),
        };
        SharedMapRange { map: self, from, to: to.max(from), coming: None, coming_back: None }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        // What is not there is no reason to copy the way to it.
        if !self.contains_key(key) {
            return None;
        }
        let mut at = self;
        loop {
            let branch = Arc::make_mut(at.0.as_mut()?);
            at = match key.cmp(&branch.key) {
                Ordering::Less => &mut branch.before,
                Ordering::Equal => return Some(&mut branch.value),
                Ordering::Greater => &mut branch.after,
            };
        }
    }

    /// Puts it there; what was there before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(branch) = &mut self.0 else {
            let (before, after) = (Self::default(), Self::default());
            self.0 = Some(Arc::new(Branch { key, value, size: 1, before, after }));
            return None;
        };
        let branch = Arc::make_mut(branch);
        let replaced = match key.cmp(&branch.key) {
            Ordering::Less => branch.before.insert(key, value),
            Ordering::Equal => return Some(std::mem::replace(&mut branch.value, value)),
            Ordering::Greater => branch.after.insert(key, value),
        };
        if replaced.is_none() {
            self.balance();
        }
        replaced
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match key.cmp(&self.0.as_deref()?.key) {
            Ordering::Equal => {
                let gone = self.0.take()?;
                let Branch { value, before, after, .. } = Arc::unwrap_or_clone(gone);
                *self = before.with(after);
                Some(value)
            }
            _ if !self.contains_key(key) => None,
            side => {
                let branch = Arc::make_mut(self.0.as_mut()?);
                let (before, after) = (&mut branch.before, &mut branch.after);
                let gone = if side == Ordering::Less { before } else { after }.remove(key);
                self.balance();
                gone
            }
        }
    }

    /// Takes out what comes from that key on.
    pub(crate) fn split_off(&mut self, from: &K) -> Self {
        let Some(mut root) = self.0.take() else { return Self::default() };
        let branch = Arc::make_mut(&mut root);
        if branch.key < *from {
            let mut before = std::mem::take(&mut branch.after);
            let rest = before.split_off(from);
            *self = Self::joined(std::mem::take(&mut branch.before), root, before);
            rest
        } else {
            *self = std::mem::take(&mut branch.before);
            let rest = self.split_off(from);
            let after = std::mem::take(&mut branch.after);
            Self::joined(rest, root, after)
        }
    }

    /// This and what comes after all of it.
    fn with(self, mut after: Self) -> Self {
        match after.take_first() {
            Some(first) => Self::joined(self, first, after),
            None => self,
        }
    }

    fn take_first(&mut self) -> Option<Arc<Branch<K, V>>> {
        let branch = Arc::make_mut(self.0.as_mut()?);
        if let Some(first) = branch.before.take_first() {
            self.balance();
            return Some(first);
        }
        let after = std::mem::take(&mut branch.after);
        std::mem::replace(self, after).0
    }

    /// All of these in one: the key of the branch is between them, and it has no sides.
    fn joined(mut before: Self, mut middle: Arc<Branch<K, V>>, mut after: Self) -> Self {
        if before.weight() > HEAVIER * after.weight()
            && let Some(top) = &mut before.0
        {
            let top = Arc::make_mut(top);
            top.after = Self::joined(std::mem::take(&mut top.after), middle, after);
            before.balance();
            return before;
        }
        if after.weight() > HEAVIER * before.weight()
            && let Some(top) = &mut after.0
        {
            let top = Arc::make_mut(top);
            top.before = Self::joined(before, middle, std::mem::take(&mut top.before));
            after.balance();
            return after;
        }
        let branch = Arc::make_mut(&mut middle);
        (branch.before, branch.after) = (before, after);
        branch.count();
        Self(Some(middle))
    }

    /// One of its sides has changed by one, or was joined with something.
    fn balance(&mut self) {
        let Some(root) = &mut self.0 else { return };
        let branch = Arc::make_mut(root);
        branch.count();
        let (before, after) = (branch.before.weight(), branch.after.weight());
        let inner_is_heavy =
            |inner: &Self, outer: &Self| inner.weight() >= INNER_HEAVIER * outer.weight();
        if after > HEAVIER * before {
            let side = branch.after.0.as_deref();
            if side.is_some_and(|it| inner_is_heavy(&it.before, &it.after)) {
                branch.after.raise_before();
            }
            self.raise_after();
        } else if before > HEAVIER * after {
            let side = branch.before.0.as_deref();
            if side.is_some_and(|it| inner_is_heavy(&it.after, &it.before)) {
                branch.before.raise_after();
            }
            self.raise_before();
        }
    }

    /// What comes after becomes the root.
    fn raise_after(&mut self) {
        let Some(mut root) = self.0.take() else { return };
        let branch = Arc::make_mut(&mut root);
        let Some(mut raised) = branch.after.0.take() else {
            self.0 = Some(root);
            return;
        };
        let top = Arc::make_mut(&mut raised);
        std::mem::swap(&mut branch.after, &mut top.before);
        branch.count();
        top.before = Self(Some(root));
        top.count();
        self.0 = Some(raised);
    }

    /// What comes before becomes the root.
    fn raise_before(&mut self) {
        let Some(mut root) = self.0.take() else { return };
        let branch = Arc::make_mut(&mut root);
        let Some(mut raised) = branch.before.0.take() else {
            self.0 = Some(root);
            return;
        };
        let top = Arc::make_mut(&mut raised);
        std::mem::swap(&mut branch.before, &mut top.after);
        branch.count();
        top.after = Self(Some(root));
        top.count();
        self.0 = Some(raised);
    }
}

impl<K, V> Branch<K, V> {
    fn count(&mut self) {
        self.size = self.before.len() + self.after.len() + 1;
    }
}

/// A part of a map, from either end: what stands at these places.
pub(crate) struct SharedMapRange<'a, K, V> {
    map: &'a SharedMap<K, V>,
    from: usize,
    to: usize,
    /// From the first look from an end on: the next one is the last of these, and what it has on its inner
    /// side comes after it.
    coming: Option<Vec<&'a Branch<K, V>>>,
    coming_back: Option<Vec<&'a Branch<K, V>>>,
}

impl<K, V> SharedMap<K, V> {
    /// What is on the way to that place and at or behind it, the next one last.
    fn way_to(&self, mut place: usize) -> Vec<&Branch<K, V>> {
        let (mut way, mut at) = (Vec::new(), self.0.as_deref());
        while let Some(branch) = at {
            at = match place.checked_sub(branch.before.len() + 1) {
                Some(rest) => {
                    place = rest;
                    branch.after.0.as_deref()
                }
                None => {
                    way.push(branch);
                    branch.before.0.as_deref()
                }
            };
        }
        way
    }

    /// What is on the way to that place and before it, the next one last.
    fn way_back_to(&self, mut place: usize) -> Vec<&Branch<K, V>> {
        let (mut way, mut at) = (Vec::new(), self.0.as_deref());
        while let Some(branch) = at {
            at = match place.checked_sub(branch.before.len() + 1) {
                Some(rest) => {
                    place = rest;
                    way.push(branch);
                    branch.after.0.as_deref()
                }
                None => branch.before.0.as_deref(),
            };
        }
        way
    }
}

impl<'a, K, V> Iterator for SharedMapRange<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        if self.from == self.to {
            return None;
        }
        #[cfg(test)]
        looks::one_more();
        let coming = self.coming.get_or_insert_with(|| self.map.way_to(self.from));
        let branch = coming.pop()?;
        let mut at = branch.after.0.as_deref();
        while let Some(after) = at {
            coming.push(after);
            at = after.before.0.as_deref();
        }
        self.from += 1;
        Some((&branch.key, &branch.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.to - self.from, Some(self.to - self.from))
    }
}

impl<K, V> DoubleEndedIterator for SharedMapRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from == self.to {
            return None;
        }
        #[cfg(test)]
        looks::one_more();
        let coming = self.coming_back.get_or_insert_with(|| self.map.way_back_to(self.to));
        let branch = coming.pop()?;
        let mut at = branch.before.0.as_deref();
        while let Some(before) = at {
            coming.push(before);
            at = before.after.0.as_deref();
        }
        self.to -= 1;
        Some((&branch.key, &branch.value))
    }
}

impl<K, V> ExactSizeIterator for SharedMapRange<'_, K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// How deep it is, once it is known to be balanced and counted right.
    fn depth(map: &SharedMap<u16, u16>) -> usize {
        let Some(branch) = map.0.as_deref() else { return 0 };
        let (before, after) = (&branch.before, &branch.after);
        assert_eq!(branch.size, before.len() + after.len() + 1);
        let (light, heavy) = (before.weight(), after.weight());
        assert!(light <= HEAVIER * heavy && heavy <= HEAVIER * light, "{light} beside {heavy}");
        1 + depth(before).max(depth(after))
    }

    fn are_alike(shared: &SharedMap<u16, u16>, map: &BTreeMap<u16, u16>, (from, to): (u16, u16)) {
        depth(shared);
        assert!(shared.iter().eq(map) && shared.iter().rev().eq(map.iter().rev()));
        assert!(shared.first_key_value() == map.first_key_value());
        assert!(shared.last_key_value() == map.last_key_value());
        let (from, to) = (from.min(to), from.max(to));
        assert!(shared.range(from..to).eq(map.range(from..to)));
        assert!(shared.range(from..=to).rev().eq(map.range(from..=to).rev()));
        let beyond = (Bound::Excluded(from), Bound::Unbounded);
        assert!(shared.range(beyond).eq(map.range(beyond)));
        assert_eq!(shared.range(beyond).len(), map.range(beyond).count());
        assert!((0..40).all(|key| shared.get(&key) == map.get(&key)));
    }

    #[derive(Debug, Clone)]
    enum Change {
        Put(u16, u16),
        Raise(u16),
        Remove(u16),
        Split(u16),
        Copy,
    }

    fn change() -> impl Strategy<Value = Change> {
        let key = 0u16..40;
        prop_oneof![
            6 => (key.clone(), any::<u16>()).prop_map(|(key, value)| Change::Put(key, value)),
            2 => key.clone().prop_map(Change::Raise),
            3 => key.clone().prop_map(Change::Remove),
            1 => key.prop_map(Change::Split),
            1 => Just(Change::Copy),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map_like_any_other_and_copies_stay_as_they_were(
            changes in prop::collection::vec(change(), 0..120),
            bounds in (0u16..40, 0u16..40),
        ) {
            let (mut shared, mut map) = (SharedMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for change in changes {
                match change {
                    Change::Put(key, value) => {
                        assert_eq!(shared.insert(key, value), map.insert(key, value));
                    }
                    Change::Raise(key) => {
                        let (one, other) = (shared.get_mut(&key), map.get_mut(&key));
                        assert_eq!(one, other);
                        one.into_iter().chain(other).for_each(|value| *value ^= 1);
                    }
                    Change::Remove(key) => assert_eq!(shared.remove(&key), map.remove(&key)),
                    Change::Split(key) => {
                        let (rest, expected) = (shared.split_off(&key), map.split_off(&key));
                        are_alike(&rest, &expected, bounds);
                    }
                    Change::Copy => copies.push((shared.clone(), map.clone())),
                }
                are_alike(&shared, &map, bounds);
            }
            for (shared, map) in copies {
                are_alike(&shared, &map, bounds);
            }
        }
    }

    #[test]
    fn a_copy_of_much_costs_nothing_and_the_next_change_a_few_parts() {
        let mut map = SharedMap::default();
        for n in 0..10_000u16 {
            map.insert(n, n);
        }
        assert!(depth(&map) <= 20, "{}", depth(&map));
        let (looks, copy) = looks::during(|| map.clone());
        assert_eq!(looks, 0);
        let (looks, _) = looks::during(|| map.insert(10_000, 0));
        assert!((1..=25).contains(&looks), "{looks} parts were copied");
        let (looks, _) = looks::during(|| map.insert(10_001, 0));
        assert!(looks <= 3, "{looks} parts were copied, though nobody else has them");
        assert_eq!((copy.len(), map.len()), (10_000, 10_002));
    }
}
