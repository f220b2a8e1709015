//! What an engine makes durable, and the only way from a decision to its effects.

use serde::{Deserialize, Serialize};

use super::ports::{Base, Effect, Notice};
use crate::model::{Entry, Evidence, Incarnation, OperationId, ResourceId, SiteId, Vector};
use crate::plan::{Ended, RunLog, Step};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One fact of a site's log.
///
/// A log may forget, at any time, what a later record of the same log made obsolete; which those are
/// say [`Record::empties`] and [`Record::prunes`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// An operation or reply, of this site or another.
    Entry(ResourceId, Arc<Entry>),
    /// A run is about to start.
    Begun(ResourceId, Step),
    /// A run came to its end.
    Finished(ResourceId, Step, Ended),
    /// What ran here, whole: takes the place of all `Begun` and `Finished` before it.
    Ran(ResourceId, Box<RunLog>),
    /// What another site is known to know of a resource, in which of its incarnations.
    Knows(ResourceId, SiteId, Incarnation, Vector),
    /// What an earlier incarnation of another site may have known and run.
    EarlierIncarnation(ResourceId, SiteId, Vector),
    /// In which incarnation of its disk another site was heard last.
    Incarnation(SiteId, Incarnation),
    /// Entries up to the base are no longer needed. The log may forget them now.
    Pruned(ResourceId, Box<Base>),
    /// The files of these operations are no longer needed, though the operations are: every site
    /// has applied them. All there are, each time.
    Shed(ResourceId, BTreeSet<OperationId>),
    /// A site was shown to lie.
    SetApart(Box<Evidence>),
}

impl Record {
    /// The resource it is about, if it is about one.
    pub fn resource(&self) -> Option<&ResourceId> {
        match self {
            Self::Entry(resource, _)
            | Self::Begun(resource, _)
            | Self::Finished(resource, ..)
            | Self::Ran(resource, _)
            | Self::Knows(resource, ..)
            | Self::EarlierIncarnation(resource, ..)
            | Self::Pruned(resource, _)
            | Self::Shed(resource, _) => Some(resource),
            Self::Incarnation(..) | Self::SetApart(_) => None,
        }
    }
}

/// What is made durable at once: all of it or none.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    records: &'a [Record],
    effects: &'a [Effect],
}

impl<'a> Batch<'a> {
    /// The facts an engine is recovered from, in order.
    pub fn records(&self) -> &'a [Record] {
        self.records
    }

    /// News worth keeping beside the records, for those who follow what happens: in one batch
    /// with what they are about, so that a follower misses none. What a reply of this site
    /// already says is not said twice. An engine is recovered without them.
    pub fn notices(&self) -> impl Iterator<Item = &'a Notice> + use<'a> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Notify(notice) if !notice.is_in_a_reply() => Some(notice),
            _ => None,
        })
    }

    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.notices().next().is_none()
    }
}

/// Who signs what a site writes, with the site's own key.
pub trait Sealer {
    /// Signs these, which become durable at once: each has a proof afterwards.
    fn seal(&self, entries: &[&Entry]);
}

/// Signs nothing: for a site without others, which has nobody to prove anything to.
#[derive(Debug, Clone, Copy)]
pub struct Unsigned;

impl Sealer for Unsigned {
    fn seal(&self, _: &[&Entry]) {}
}

/// Where records are kept. Whole batches, in order, all of one or none of it.
pub trait Log {
    /// Why a batch could not be made durable.
    type Error;

    /// Makes the batch durable before it returns. After an error nothing of it may come back.
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Self::Error>;
}

/// What an engine decided on one event. Its effects can be had only by committing the batch, but
/// for those that rest on nothing in it.
#[derive(Debug, Default)]
#[must_use = "a decision that is not committed is lost, and the engine with it"]
pub struct Reaction {
    records: Vec<Record>,
    effects: Vec<Effect>,
    /// What rests on nothing of this: it may be done before.
    free: Vec<Effect>,
}

impl Reaction {
    pub(super) fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// An answer that rests on what another site made durable. But a user hears what happened in
    /// order, so not before an answer that has to wait.
    pub(super) fn free_answer(&mut self, answer: Effect) {
        let to = |effect: &Effect| match effect {
            Effect::Answer { ticket, .. } => Some(*ticket),
            _ => None,
        };
        if self.effects.iter().any(|effect| to(effect).is_some() && to(effect) == to(&answer)) {
            self.effects.push(answer);
        } else {
            self.free.push(answer);
        }
    }

    /// Joins a later decision of the same engine, so that both are committed at once.
    pub fn join(&mut self, later: Self) {
        self.records.extend(later.records);
        later.free.into_iter().for_each(|answer| self.free_answer(answer));
        self.effects.extend(later.effects);
    }

    /// Takes out what may be done before the rest is durable: telling a user what another site
    /// replied. That is durable there, and nothing of this site's hangs on it.
    pub fn take_free(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.free)
    }

    /// Whether anything of it is to be kept: then whoever follows the log has something to read.
    pub fn has_news(&self) -> bool {
        !Batch { records: &self.records, effects: &self.effects }.is_empty()
    }

    /// Whether nobody waits for it: it only spares work after a restart, or says that a resource
    /// converged. Then it may be joined with what comes next instead of being committed alone.
    pub fn may_wait(&self) -> bool {
        self.free.is_empty()
            && self.records.iter().all(|record| matches!(record, Record::Knows(..)))
            && self
                .effects
                .iter()
                .all(|effect| matches!(effect, Effect::Notify(Notice::Converged(_))))
    }

    /// How many records wait to be made durable.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Signs what this site wrote, makes all of it durable, then hands out the effects. There is no
    /// other way to them.
    pub fn commit<L: Log + ?Sized>(
        mut self,
        log: &mut L,
        sealer: &impl Sealer,
    ) -> Result<Vec<Effect>, Uncommitted<L::Error>> {
        let unsigned: Vec<&Entry> = self
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Entry(_, entry) if entry.proof().is_none() => Some(&**entry),
                _ => None,
            })
            .collect();
        if !unsigned.is_empty() {
            sealer.seal(&unsigned);
        }
        let batch = Batch { records: &self.records, effects: &self.effects };
        if !batch.is_empty()
            && let Err(error) = log.append(batch)
        {
            return Err(Uncommitted { error, reaction: self });
        }
        let mut effects = self.take_free();
        effects.append(&mut self.effects);
        Ok(effects)
    }
}

/// A decision that could not be made durable. Either the same reaction is committed later, before
/// any other of its engine, or the engine is dropped and recovered from the log.
#[derive(Debug)]
pub struct Uncommitted<E> {
    /// Why.
    pub error: E,
    /// What to try again.
    pub reaction: Reaction,
}
