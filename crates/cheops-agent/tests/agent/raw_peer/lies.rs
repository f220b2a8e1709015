//! What it says: operations, replies and updates, true or false.

use std::sync::Arc;

use cheops_core::engine::{Base, Message, Update};
use cheops_core::model::{
    Author, Chain, Entry, EntryBody, EntryHash, EntryId, Extension, Operation, OperationId,
    OperationType, Payload, Replaces, Reply, ResourceId, Stamp, Status, Vector,
};

use super::RawPeer;

/// An entry to be: what it says of itself, whether or not that can be.
pub(crate) struct Claim {
    pub(crate) author: Author,
    pub(crate) n: u64,
    pub(crate) after: (u64, EntryHash),
    pub(crate) claimed: Stamp,
    pub(crate) command: String,
    pub(crate) extra: Vec<Extension>,
}

impl Claim {
    pub(crate) fn new(author: &Author, n: u64, command: &str) -> Self {
        Self {
            author: author.clone(),
            n,
            after: (0, EntryHash::UNSAID),
            claimed: Stamp { wall_ms: 1_760_000_000_000, counter: 0 },
            command: command.to_owned(),
            extra: Vec::new(),
        }
    }

    fn id(&self) -> EntryId {
        EntryId { author: self.author.clone(), n: self.n }
    }

    /// As an operation that adds to what is there.
    pub(crate) fn operation(self, resource: &ResourceId) -> Entry {
        let operation = Operation {
            id: OperationId(self.id()),
            resource: resource.clone(),
            stamp: self.claimed,
            claimed: self.claimed,
            parents: Vec::new(),
            kind: OperationType::new("add").unwrap(),
            payload: Payload::shell(&self.command),
            replaces: Replaces::Nothing,
            declares: None,
            needs: Default::default(),
            asked_by: None,
        };
        Entry::new(resource, self.after, EntryBody::Operation(operation), self.extra)
    }

    /// As a reply to that operation.
    pub(crate) fn reply(self, resource: &ResourceId, to: &OperationId, status: Status) -> Entry {
        let reply = Reply {
            id: self.id(),
            stamp: self.claimed,
            operation: to.clone(),
            status,
            outcome: None,
        };
        Entry::new(resource, self.after, EntryBody::Reply(reply), self.extra)
    }
}

impl RawPeer {
    /// An update that brings these entries.
    pub(crate) fn update(&self, resource: &ResourceId, entries: Vec<Arc<Entry>>) -> Update {
        Update {
            incarnation: self.me.incarnation,
            resource: resource.clone(),
            base: None,
            knows: entries.iter().map(|entry| entry.id().clone()).collect(),
            entries,
            chain: Chain::default(),
            you_may_have_run: Vector::default(),
            asks: false,
        }
    }

    /// The same as a message.
    pub(crate) fn brings(&self, resource: &ResourceId, entries: Vec<Arc<Entry>>) -> Message {
        Message::Update(Box::new(self.update(resource, entries)))
    }

    /// Says that all was forgotten up to there, and further.
    pub(crate) fn base(&self, resource: &ResourceId, upto: Vector) -> Message {
        let mut update = self.update(resource, Vec::new());
        update.knows = upto.clone();
        let (chain, declared) = (Chain::default(), None);
        update.base = Some(Base { upto, declared, chain, order: None, state: None });
        Message::Update(Box::new(update))
    }
}
