//! Version vectors: what a site knows, in one small value.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::small_map::SmallMap;
use super::{Author, EntryHash, EntryId};

/// For each author, the number of the last entry known. Knowledge is always causally closed, and
/// an author's entries on a resource form a chain, so the last one stands for all before it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Vector(SmallMap<Author, u64>);

impl Vector {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of the last entry known of this author; 0 if none is.
    pub fn last_of(&self, author: &Author) -> u64 {
        self.0.get(author).copied().unwrap_or(0)
    }

    /// Whether that entry is known.
    pub fn includes(&self, id: &EntryId) -> bool {
        self.last_of(&id.author) >= id.n
    }

    /// Whether everything in `other` is known here too.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(author, n)| self.last_of(author) >= *n)
    }

    /// Adds that entry, and with it all before it by the same author.
    pub fn add(&mut self, id: &EntryId) {
        self.raise(&id.author, id.n);
    }

    /// Adds everything that `other` knows.
    pub fn join(&mut self, other: &Self) {
        for (author, n) in other.iter() {
            self.raise(author, n);
        }
    }

    fn raise(&mut self, author: &Author, n: u64) {
        let last = self.0.get_or_insert_with(author, || n);
        *last = n.max(*last);
    }

    /// Forgets what comes after that number of an author.
    pub fn limit(&mut self, author: &Author, last: u64) {
        if self.last_of(author) > last {
            if last == 0 {
                self.0.remove(author);
            } else {
                *self.0.get_or_insert_with(author, || last) = last;
            }
        }
    }

    /// Forgets what comes after the number that is said of each author.
    pub fn limit_each(&mut self, last_of: impl Fn(&Author) -> u64) {
        self.0.retain(|author, n| {
            *n = (*n).min(last_of(author));
            *n > 0
        });
    }

    /// How many authors there are in it.
    pub fn authors(&self) -> usize {
        self.0.iter().len()
    }

    /// Keeps only what `other` knows too.
    pub fn meet(&mut self, other: &Self) {
        self.limit_each(|author| other.last_of(author));
    }

    /// Author by author, the last entry known.
    pub fn iter(&self) -> impl Iterator<Item = (&Author, u64)> {
        self.0.iter().map(|(author, n)| (author, *n))
    }
}

/// For each author, the hash of the last entry known: two sites that know the same number of
/// entries and not the same entries differ in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain(SmallMap<Author, EntryHash>);

impl Chain {
    /// The hash of the last entry known of this author, if it is known.
    pub fn of(&self, author: &Author) -> Option<EntryHash> {
        self.0.get(author).copied()
    }

    /// Notes the hash of the last entry known of this author.
    pub fn set(&mut self, author: &Author, hash: EntryHash) {
        *self.0.get_or_insert_with(author, || hash) = hash;
    }

    /// Forgets an author.
    pub fn remove(&mut self, author: &Author) {
        self.0.remove(author);
    }

    /// Author by author.
    pub fn iter(&self) -> impl Iterator<Item = (&Author, EntryHash)> {
        self.0.iter().map(|(author, hash)| (author, *hash))
    }
}

impl FromIterator<(Author, EntryHash)> for Chain {
    fn from_iter<T: IntoIterator<Item = (Author, EntryHash)>>(hashes: T) -> Self {
        let mut chain = Self::default();
        hashes.into_iter().for_each(|(author, hash)| chain.set(&author, hash));
        chain
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromIterator<EntryId> for Vector {
    fn from_iter<T: IntoIterator<Item = EntryId>>(ids: T) -> Self {
        let mut vector = Self::default();
        ids.into_iter().for_each(|id| vector.add(&id));
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Incarnation, SiteId};

    fn id(site: &str, n: u64) -> EntryId {
        let author = Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(1) };
        EntryId { author, n }
    }

    #[test]
    fn join_knows_what_either_knows_and_meet_what_both_know() {
        let a: Vector = [id("a", 3), id("b", 1)].into_iter().collect();
        let b: Vector = [id("a", 2), id("c", 4)].into_iter().collect();
        let (mut join, mut meet) = (a.clone(), a.clone());
        join.join(&b);
        meet.meet(&b);
        assert_eq!(join, [id("a", 3), id("b", 1), id("c", 4)].into_iter().collect());
        assert_eq!(meet, [id("a", 2)].into_iter().collect());
        assert!(join.covers(&a) && join.covers(&b) && a.covers(&meet) && b.covers(&meet));
        assert!(!a.covers(&b));
        assert!(a.includes(&id("a", 1)) && !a.includes(&id("c", 1)));
    }
}
