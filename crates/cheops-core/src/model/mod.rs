//! The words of the model as types: who, when, what, and what came of it.

mod clock;
mod dismissal;
mod edit;
mod entry;
mod id_map;
mod inline_body;
mod kept_state;
mod limits;
mod operation;
mod placeholder;
mod reply;
mod request_kind;
mod seal;
mod shared_map;
mod small_map;
mod standing_report;
mod state_report;
mod undoing;
mod vector;
mod verdict;

pub use crate::ids::{
    Author, BadName, BlobId, EntryId, ID_PLACEHOLDER, IdError, Incarnation, LocalId, MetaId,
    OperationId, OperationType, ResourceId, SiteId,
};
pub use clock::{HybridClock, Stamp};
pub(crate) use edit::writer;
pub use edit::{DocumentEdit, MAX_EDIT_BYTES};
pub use entry::{Entry, EntryBody, Extension};
pub use id_map::{Act, IdMap, LocalName, RequestMethod, SaysAlready, ServiceRef};
pub use inline_body::MAX_INLINE_BODY_BYTES;
pub use kept_state::{KeptState, MAX_STATE_BYTES, StateFloor};
pub use limits::{
    MAX_COMMAND_BYTES, MAX_FILES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_NAME_BYTES, MAX_OUTPUT_BYTES,
    MAX_PARENTS, MAX_PATH_BYTES, MAX_SITES, MAX_STEPS, OverLimit,
};
pub use operation::{
    Asker, Declaration, FileRef, Header, Operation, Payload, Position, Replaces, shown_path,
};
pub use placeholder::{UnusableId, id_can_stand_in};
pub use reply::{BROKEN_OFF_STATUS, Outcome, Output, Reply, Status, broken_off_header};
pub use request_kind::RequestKind;
pub use seal::{
    EntryHash, EntryHeader, Evidence, KeyId, Lie, MOST_SIGNED_AT_ONCE, Proof, SealTree, SignedBy,
    resource_hash,
};
pub(crate) use shared_map::SharedMap;
#[cfg(test)]
pub(crate) use shared_map::looks;
pub(crate) use small_map::SmallMap;
pub use standing_report::{MAX_REASON_BYTES, StandingReport};
pub use state_report::{Fingerprint, StateReport};
pub use undoing::Undoing;
pub use vector::{Chain, Vector};
pub use verdict::{ProgramSaid, ProgramStep, ProgramVerdict};
