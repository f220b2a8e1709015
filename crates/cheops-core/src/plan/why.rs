//! Why a site has diverged, for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::OperationId;

/// What keeps a site's state from being that of a fresh run of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Divergence {
    /// An operation took effect here and is not in the list.
    LeftOut {
        /// Which one.
        ran: OperationId,
    },
    /// Two operations whose order matters ran, or have to run, in the wrong one.
    Order {
        /// The one that ran first and should not have.
        ran: OperationId,
        /// The one that stands before it in the list.
        before: OperationId,
    },
    /// Two operations whose order matters took effect before this site lost its disk, and in
    /// which order is not known.
    Forgotten {
        /// One of them.
        ran: OperationId,
    },
    /// This site lost its disk and not its application, which may hold what ran before and has
    /// been pruned since; what should have overwritten that failed here.
    UnknownPast,
    /// The operation was run again and again and the list was not followed yet: the matrix
    /// promises an end that the repair does not reach.
    NoEnd {
        /// Which one.
        ran: OperationId,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut { ran } => write!(
                f,
                "`{ran}` took effect here and was overridden since, and nothing takes it back: \
                 no operation to start again from, no undo, no snapshot"
            ),
            Self::Order { ran, before } => write!(
                f,
                "`{ran}` took effect here before `{before}`, which must come first, and nothing \
                 repairs the order: no operation to start again from, no undo, no snapshot"
            ),
            Self::UnknownPast => f.write_str(
                "this site lost its disk, its application may hold what nobody remembers, and no \
                 operation that would overwrite it has succeeded here since",
            ),
            Self::NoEnd { ran } => write!(
                f,
                "`{ran}` was run again and again for the same list without an end: the matrix may \
                 contradict what the commands do"
            ),
            Self::Forgotten { ran } => write!(
                f,
                "`{ran}` and others took effect here before the disk was lost, and in which order \
                 is not known"
            ),
        }
    }
}
