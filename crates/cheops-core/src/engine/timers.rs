//! What is due when: one ordered set, so that passing time costs only with what is due.

use std::collections::BTreeSet;

use super::ports::Ticket;
use crate::model::{ResourceId, SiteId};

/// Something to look at when its time comes. A timer that is no longer needed does no harm: who
/// set it remembers when it was due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Send a sign of life, and see whether the other side is still heard.
    Link(SiteId),
    /// Confirm what was heard of the resource.
    Confirm(ResourceId),
    /// Ask that site what it knows of the resource.
    Ask(ResourceId, SiteId),
    /// The same, at once: there is room to ask about one more resource.
    AskNow(ResourceId, SiteId),
    /// The same, unless it is going to be asked anyway.
    AskIfForgotten(ResourceId, SiteId),
    /// Try again what could not be tried.
    Retry(ResourceId),
    /// See whether the edits that are waited for still can be.
    Edits(ResourceId),
    /// Read the states that are due.
    ReadStates,
    /// A user has waited long enough.
    GiveUp(Ticket),
    /// Forget what was offered long ago and is not believed.
    ForgetOffers,
}

#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(u64, Timer)>);

impl Timers {
    pub(super) fn set(&mut self, due_ms: u64, timer: Timer) {
        self.0.insert((due_ms, timer));
    }

    /// Takes back a timer that was set for then.
    pub(super) fn cancel(&mut self, due_ms: u64, timer: Timer) {
        self.0.remove(&(due_ms, timer));
    }

    /// Takes out the next timer that is due, with the time it was due at.
    pub(super) fn pop_due(&mut self, now_ms: u64) -> Option<(u64, Timer)> {
        if self.0.first().is_some_and(|(due, _)| *due <= now_ms) {
            self.0.pop_first()
        } else {
            None
        }
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.0.first().map(|(due, _)| *due)
    }
}
