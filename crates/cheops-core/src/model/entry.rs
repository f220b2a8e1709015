//! Entries: what the log holds and sites exchange.

use serde::{Deserialize, Serialize};

use super::{EntryId, Operation, OperationId, Reply, Stamp};

/// One thing a site wrote on a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the same author's entry before this one on the same resource; 0 if it is the
    /// first. A reader that lacks it waits, so that knowledge never has a hole.
    pub after: u64,
    /// What was written.
    pub body: Body,
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// A change.
    Operation(Operation),
    /// What a site got from a change.
    Reply(Reply),
}

impl Entry {
    /// Its name.
    pub fn id(&self) -> &EntryId {
        match &self.body {
            Body::Operation(operation) => &operation.id.0,
            Body::Reply(reply) => &reply.id,
        }
    }

    /// When it was written, by its author's hybrid clock.
    pub fn stamp(&self) -> Stamp {
        match &self.body {
            Body::Operation(operation) => operation.stamp,
            Body::Reply(reply) => reply.stamp,
        }
    }

    /// About how many bytes it takes when sent: never much less.
    pub fn size(&self) -> usize {
        const FRAME: usize = 256;
        FRAME
            + match &self.body {
                Body::Operation(operation) => operation.size(),
                Body::Reply(reply) => {
                    reply.outcome.as_ref().map_or(0, |outcome| outcome.text().len())
                }
            }
    }

    /// The operations that must be known before this entry makes sense.
    pub fn needs(&self) -> &[OperationId] {
        match &self.body {
            Body::Operation(operation) => &operation.parents,
            Body::Reply(reply) => std::slice::from_ref(&reply.operation),
        }
    }
}
