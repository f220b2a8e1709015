//! In how many incarnations one site may write on a resource.
//!
//! Whoever holds a site's key can sign in as many incarnations as it likes. Each takes room in all that
//! is said of the resource from then on, and once there were more than any message may name, nobody could
//! say anything of it any more.
//!
//! So of each site only the first ones count, in an order that can be told by their numbers alone. Who
//! hears of one that comes before drops the last, with all that it wrote, as if it had never been. What
//! is dropped once never counts again, and the first ones of all that two sites have heard of are the
//! same whoever heard of which first: so sites come to the same.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Turn;
use super::ports::{Malformed, Notice};
use super::resource::Resource;
use crate::model::{Author, Incarnation, SiteId, Vector};

/// A new incarnation is a lost disk. No site loses so many and writes on one resource after each; and
/// sites that make up as many as they may, dozens of them, leave room for all others.
const MOST_INCARNATIONS: usize = 64;

/// The place of an incarnation among those of its site. First come those in which only the site itself
/// can have written: for what is from before there were signatures others may vouch, and must not push
/// out what the site signs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Signs(Incarnation),
    FromBeforeSignatures(Incarnation),
}

impl Rank {
    fn of(author: &Author) -> Self {
        let incarnation = author.incarnation;
        match incarnation.is_from_before_signatures() {
            true => Self::FromBeforeSignatures(incarnation),
            false => Self::Signs(incarnation),
        }
    }
}

/// The last incarnation that counts, of each site that wrote in as many as may be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LastIncarnations(BTreeMap<SiteId, Rank>);

impl LastIncarnations {
    fn among<'a>(authors: impl Iterator<Item = &'a Author>, me: &Author) -> Self {
        let mut ranks = BTreeMap::<&SiteId, BTreeSet<Rank>>::new();
        for author in authors {
            ranks.entry(&author.site).or_default().insert(Rank::of(author));
        }
        let last = ranks.into_iter().filter_map(|(site, ranks)| {
            let last = *ranks.iter().nth(MOST_INCARNATIONS - 1)?;
            // What this site writes itself it keeps, whatever others make of it.
            let last = if *site == me.site { last.max(Rank::of(me)) } else { last };
            Some((site.clone(), last))
        });
        Self(last.collect())
    }
}

impl Resource {
    /// Whether its site wrote in as many incarnations as may be, all of which come before this one.
    pub(super) fn is_of_too_many(&self, author: &Author) -> bool {
        self.last_incarnations.0.get(&author.site).is_some_and(|last| Rank::of(author) > *last)
    }

    /// Says whose incarnations are too many: not who passes them on, but who signed them.
    pub(super) fn note_too_many(&self, author: &Author, turn: &mut Turn<'_>) {
        if self.is_of_too_many(author) {
            turn.notify(Notice::Malformed(author.site.clone(), Malformed::TooMany));
        }
    }

    /// Takes out of what is known what does not count here.
    pub(super) fn limit_to_what_counts(&self, vector: &mut Vector) {
        if self.has_liars() {
            vector.limit_each(|author| self.last_that_counts(author));
        }
    }

    /// Whether something that was written on it does not count.
    pub(super) fn has_liars(&self) -> bool {
        !self.cuts.is_empty() || self.last_incarnations != LastIncarnations::default()
    }

    /// The last number of an author that counts here.
    pub(super) fn last_that_counts(&self, author: &Author) -> u64 {
        match self.is_of_too_many(author) {
            true => 0,
            false => self.cuts.get(author).copied().unwrap_or(u64::MAX),
        }
    }

    /// Sees to it that no site counts in more incarnations than it may, after new ones were heard of.
    pub(super) fn bound_incarnations(&mut self, turn: &mut Turn<'_>) {
        // What is dropped may have been awaited by what waits, which may bring others.
        while self.see_last_incarnations(&turn.context.settings.me) {
            let known: Vec<Author> = self.knows.iter().map(|(author, _)| author.clone()).collect();
            known.iter().for_each(|author| self.note_too_many(author, turn));
            self.drop_what_does_not_count(turn);
        }
    }

    /// Looks anew which is the last one of each site that counts; whether that changed.
    fn see_last_incarnations(&mut self, me: &Author) -> bool {
        if self.knows.authors() + self.cuts.len() < MOST_INCARNATIONS {
            return false;
        }
        // Also those of which nothing is left, or others would come back in their place.
        let authors = self.knows.iter().map(|(author, _)| author).chain(self.cuts.keys());
        let last = LastIncarnations::among(authors, me);
        let has_changed = last != self.last_incarnations;
        self.last_incarnations = last;
        has_changed
    }
}
