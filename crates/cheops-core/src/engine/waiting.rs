//! Users who wait for replies. Not durable: a user's connection does not survive a crash either.

use std::collections::{BTreeMap, BTreeSet};

use super::ports::{Answer, Effect, Ticket};
use super::timers::{Timer, Timers};
use crate::model::{OperationId, Reply, SiteId};

#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_operation: BTreeMap<OperationId, Waiter>,
    by_ticket: BTreeMap<Ticket, OperationId>,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    missing: BTreeSet<SiteId>,
    /// When the user has waited long enough.
    gives_up_ms: u64,
}

impl Waiting {
    /// Waits until then for these sites' replies to an operation that was just accepted.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        operation: &OperationId,
        missing: BTreeSet<SiteId>,
        gives_up_ms: u64,
        timers: &mut Timers,
    ) {
        timers.set(gives_up_ms, Timer::GiveUp(ticket));
        self.by_ticket.insert(ticket, operation.clone());
        self.by_operation.insert(operation.clone(), Waiter { ticket, missing, gives_up_ms });
    }

    /// Passes a reply on to who waits for it.
    pub(super) fn replied(&mut self, reply: &Reply, timers: &mut Timers) -> Vec<Effect> {
        let Some(waiter) = self.by_operation.get_mut(&reply.operation) else { return Vec::new() };
        if !waiter.missing.remove(reply.site()) {
            return Vec::new();
        }
        let ticket = waiter.ticket;
        let mut effects = vec![Effect::Answer { ticket, answer: Answer::Replied(reply.clone()) }];
        if waiter.missing.is_empty() {
            // A user may have been ready to wait for minutes, and thousands of them come and go.
            timers.cancel(waiter.gives_up_ms, Timer::GiveUp(ticket));
            self.forget(ticket);
            effects.push(Effect::Answer { ticket, answer: Answer::Done });
        }
        effects
    }

    /// Time is up for this user, if it still waits.
    pub(super) fn give_up(&mut self, ticket: Ticket) -> Option<Effect> {
        let waiter = self.forget(ticket)?;
        let missing = waiter.missing.into_iter().collect();
        Some(Effect::Answer { ticket, answer: Answer::TimedOut { missing } })
    }

    fn forget(&mut self, ticket: Ticket) -> Option<Waiter> {
        let operation = self.by_ticket.remove(&ticket)?;
        self.by_operation.remove(&operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Author, EntryId, Incarnation, Stamp, Status};

    fn reply(site: &str) -> Reply {
        let author =
            |site| Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(1) };
        let operation = OperationId(EntryId { author: author("paris"), n: 1 });
        let id = EntryId { author: author(site), n: 2 };
        let stamp = Stamp { wall_ms: 1, counter: 0 };
        Reply { id, stamp, operation, status: Status::Ok, outcome: None }
    }

    #[test]
    fn nothing_is_left_of_a_user_who_has_heard_all() {
        let (mut waiting, mut timers) = (Waiting::default(), Timers::default());
        let (one, other) = (reply("paris"), reply("lyon"));
        let missing = [one.site().clone(), other.site().clone()].into();
        waiting.add(Ticket(1), &one.operation, missing, 600_000, &mut timers);
        assert_eq!(waiting.replied(&one, &mut timers).len(), 1);
        assert_eq!(timers.next(), Some(600_000), "there is one more to wait for");
        assert_eq!(waiting.replied(&other, &mut timers).len(), 2, "the reply, and that it was all");
        assert_eq!(timers.next(), None);
        assert!(waiting.by_ticket.is_empty() && waiting.by_operation.is_empty());
    }
}
