//! What a follower of the log sees: entries and notices, in the order they were written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cheops_core::engine::Notice;
use cheops_core::model::{Entry, ResourceId};
use serde::{Deserialize, Serialize};

/// The place of a row in a site's log. It grows with every row and is never given out twice, so
/// it is a cursor as well. [`Seq::default`] comes before everything.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seq {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// One thing that happened at this site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// Its place in the log.
    pub seq: Seq,
    /// When it was written, by this site's wall clock.
    pub at_ms: u64,
    /// What happened.
    pub what: ChangeKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// An operation or reply became known here.
    Entry(ResourceId, Arc<Entry>),
    /// The engine had news.
    Notice(Notice),
}

impl ChangeKind {
    /// The resource it is about, if it is about one.
    pub fn resource(&self) -> Option<&ResourceId> {
        match self {
            Self::Entry(resource, _) => Some(resource),
            Self::Notice(notice) => resource_of(notice),
        }
    }
}

/// A stretch of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChanges {
    /// What happened, in order.
    pub items: Vec<LoggedChange>,
    /// Where to go on from. It moves past rows that are no changes, or not of the resource asked
    /// for, so that a follower with little to see does not fall behind.
    pub next: Seq,
    /// Whether there was more than the limit.
    pub more: bool,
}

impl LoggedChanges {
    /// Cuts what was found, which is one more than the limit where there is more.
    pub(crate) fn new(mut items: Vec<LoggedChange>, after: Seq, limit: usize, last: Seq) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let reached = items.last().map_or(after, |change| change.seq);
        Self { items, next: if more { reached } else { last.max(after) }, more }
    }
}

/// Something of the history of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastChange {
    /// What happened.
    pub change: LoggedChange,
    /// Whether it is an entry that no site needs any more: it is kept for its readers only.
    pub pruned: bool,
}

/// Where to read a history from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastFrom {
    /// Its end, backwards.
    Latest,
    /// The place before this one, backwards.
    Before(Seq),
    /// The place after this one, forwards.
    After(Seq),
}

/// A stretch of the history of a resource, in the order that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastChanges {
    /// What happened.
    pub items: Vec<PastChange>,
    /// Whether there is more that way.
    pub more: bool,
    /// Whether something was ever dropped here, of whatever resource: then it may be missing.
    pub dropped: bool,
}

impl PastChanges {
    /// Cuts what was found, which is one more than the limit where there is more.
    pub(crate) fn new(mut items: Vec<PastChange>, limit: usize, dropped: bool) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more, dropped }
    }
}

/// What is kept for readers of the history only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistorySize {
    /// How many bytes its rows take, about.
    pub bytes: u64,
    /// How many bytes the contents take that no site needs any more.
    pub bodies: u64,
    /// How many bytes both may take.
    pub most: u64,
    /// When something was last dropped before its time, for want of room, since this was opened.
    pub cut_ms: Option<u64>,
}

pub(crate) fn resource_of(notice: &Notice) -> Option<&ResourceId> {
    match notice {
        Notice::Applied(resource, _)
        | Notice::Failed(resource, _)
        | Notice::PartialError(resource, _)
        | Notice::Superseded(resource, ..)
        | Notice::Diverged(resource, _)
        | Notice::InDoubt(resource, _)
        | Notice::Converged(resource)
        | Notice::Differs(resource)
        | Notice::Warning(resource, _)
        | Notice::Settled(resource, _, _)
        | Notice::StrangeClock(resource, ..)
        | Notice::LeftOut(resource, _)
        | Notice::Pruned(resource, _) => Some(resource),
        Notice::Asked(resource, ..) => resource.as_ref(),
        Notice::SetApart(..)
        | Notice::SharedIdentity(..)
        | Notice::SiteDown(_)
        | Notice::SiteUp(_)
        | Notice::SiteLostItsDisk(_)
        | Notice::Malformed(..) => None,
    }
}
