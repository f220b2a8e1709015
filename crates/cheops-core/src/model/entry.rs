//! Entries: what the log holds and sites exchange.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::seal::{resource_hash, said_hash};
use super::{
    EntryHash, EntryHeader, EntryId, Operation, OperationId, Outcome, Proof, Reply, ResourceId,
    Stamp,
};

/// One thing a site wrote on a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the same author's entry before this one on the same resource; 0 if it is the
    /// first. A reader that lacks it waits, so that knowledge never has a hole.
    pub after: u64,
    /// The hash of that entry.
    pub after_hash: EntryHash,
    /// What was written.
    pub body: EntryBody,
    /// What is said beside that, by this version or a later one.
    pub extra: Vec<Extension>,
    /// The hash of all of the above, with the resource it is on.
    hash: EntryHash,
    /// Whose word it is. Set once, when the entry is made durable or was checked; nothing is sent
    /// without it.
    #[serde(skip)]
    proof: OnceLock<Proof>,
}

/// Something that is said beside what an entry holds. One that this version does not know is kept and
/// passed on as it is; if it must be understood, the entry is refused by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// What the version that made it calls it.
    pub name: String,
    /// Whether the entry means something else without it.
    pub must_understand: bool,
    /// Its value, as that version wrote it.
    pub value: Vec<u8>,
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryBody {
    /// A change.
    Operation(Operation),
    /// What a site got from a change.
    Reply(Reply),
}

impl Entry {
    /// An entry on that resource, which nobody has signed yet.
    pub fn new(
        resource: &ResourceId,
        (after, after_hash): (u64, EntryHash),
        body: EntryBody,
        extra: Vec<Extension>,
    ) -> Self {
        let mut entry = Self {
            after,
            after_hash,
            body,
            extra,
            hash: EntryHash::UNSAID,
            proof: OnceLock::new(),
        };
        entry.hash = entry.header(resource).hash();
        entry
    }

    /// What is signed of it.
    pub fn header(&self, resource: &ResourceId) -> EntryHeader {
        let EntryId { author, n } = self.id().clone();
        let (after, after_hash) = (self.after, self.after_hash);
        let said = said_hash(&self.body, &self.extra);
        EntryHeader { author, n, resource: resource_hash(resource), after, after_hash, said }
    }

    /// The hash of its header.
    pub fn hash(&self) -> EntryHash {
        self.hash
    }

    /// Whose word it is, once that is known.
    pub fn proof(&self) -> Option<&Proof> {
        self.proof.get()
    }

    /// Notes whose word it is, unless that is known already.
    pub fn seal(&self, proof: Proof) {
        // The first one stands: it is the one that was made durable.
        let _known = self.proof.set(proof);
    }

    /// Its name.
    pub fn id(&self) -> &EntryId {
        match &self.body {
            EntryBody::Operation(operation) => &operation.id.0,
            EntryBody::Reply(reply) => &reply.id,
        }
    }

    /// When it was written, by its author's hybrid clock.
    pub fn stamp(&self) -> Stamp {
        match &self.body {
            EntryBody::Operation(operation) => operation.stamp,
            EntryBody::Reply(reply) => reply.stamp,
        }
    }

    /// The same as its author claims.
    pub fn claimed(&self) -> Stamp {
        match &self.body {
            EntryBody::Operation(operation) => operation.claimed,
            EntryBody::Reply(reply) => reply.stamp,
        }
    }

    /// About how many bytes it takes when sent: never much less.
    pub fn size(&self) -> usize {
        const FRAME: usize = 256;
        const HASH: usize = 32;
        let extra: usize = self.extra.iter().map(|it| it.name.len() + it.value.len() + 16).sum();
        let proof = self.proof().map_or(8, |proof| proof.path.len()) * HASH;
        FRAME
            + extra
            + proof
            + match &self.body {
                EntryBody::Operation(operation) => operation.size(),
                EntryBody::Reply(reply) => reply.outcome.as_ref().map_or(0, Outcome::size),
            }
    }

    /// The operations that must be known before this entry makes sense.
    pub fn needs(&self) -> &[OperationId] {
        match &self.body {
            EntryBody::Operation(operation) => &operation.parents,
            EntryBody::Reply(reply) => std::slice::from_ref(&reply.operation),
        }
    }
}
