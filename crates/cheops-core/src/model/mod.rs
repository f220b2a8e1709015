//! The words of the model as types: who, when, what, and what came of it.

mod clock;
mod entry;
mod few;
mod ids;
mod operation;
mod replicant;
mod reply;
mod vector;

pub use clock::{HybridClock, Stamp};
pub use entry::{Body, Entry};
pub(crate) use few::Few;
pub use ids::{
    Author, BlobId, EntryId, IdError, Incarnation, LocalId, MetaId, OperationId, OperationType,
    ResourceId, SiteId,
};
pub use operation::{
    Declaration, FileRef, Header, Operation, Payload, Position, Replaces, shown_path,
};
pub use replicant::{Act, Replica, Replicant};
pub use reply::{Outcome, Output, Reply, Status};
pub use vector::Vector;
