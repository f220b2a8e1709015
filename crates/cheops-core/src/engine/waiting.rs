//! Users who wait for replies. Not durable: a user's connection does not survive a crash either.

use std::collections::{BTreeMap, BTreeSet};

use super::ports::{Answer, Effect, Ticket};
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
}

impl Waiting {
    /// Waits for these sites' replies to an operation that was just accepted.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        operation: &OperationId,
        missing: BTreeSet<SiteId>,
    ) {
        self.by_ticket.insert(ticket, operation.clone());
        self.by_operation.insert(operation.clone(), Waiter { ticket, missing });
    }

    /// Passes a reply on to who waits for it.
    pub(super) fn replied(&mut self, reply: &Reply) -> Vec<Effect> {
        let Some(waiter) = self.by_operation.get_mut(&reply.operation) else { return Vec::new() };
        if !waiter.missing.remove(reply.site()) {
            return Vec::new();
        }
        let ticket = waiter.ticket;
        let mut effects = vec![Effect::Answer { ticket, answer: Answer::Replied(reply.clone()) }];
        if waiter.missing.is_empty() {
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
