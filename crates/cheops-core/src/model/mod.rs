//! The words of the model as types: who, when, what, and what came of it.

mod clock;
mod entry;
mod few;
mod ids;
mod operation;
mod replicant;
mod reply;
mod seal;
mod vector;

pub use clock::{HybridClock, Stamp};
pub use entry::{Body, Entry, Extension};
pub(crate) use few::Few;
pub use ids::{
    Author, BlobId, EntryId, IdError, Incarnation, LocalId, MetaId, OperationId, OperationType,
    ResourceId, SiteId,
};
pub use operation::{Asker, Declaration, FileRef, Header, Operation, Payload, Position, Replaces};
pub use replicant::{Act, LocalName, Replica, Replicant, SaysAlready};
pub use reply::{Outcome, Output, Reply, Status};
pub use seal::{
    EntryHash, EntryHeader, Evidence, KeyId, Lie, MOST_SIGNED_AT_ONCE, Proof, SealTree, SignedBy,
    resource_hash,
};
pub use vector::{Chain, Vector};
