//! How the operations of a resource are resolved and repaired, as the operator says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::OperationType;

/// What to do with two operations, taken in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rule {
    /// Only one is kept.
    TakeOne,
    /// Both, in any order.
    TakeBoth,
    /// Both, in this order; the first is the replacing kind.
    KeepOrder,
    /// Both, in the reverse order; the second is the replacing kind.
    ReverseOrder,
    /// Both, in the total order.
    Ordered,
    /// The operator's own logic.
    Logic(String),
}

/// Who stays when a replacing operation and another one are concurrent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Concurrent {
    /// The replacing one only.
    #[default]
    ReplaceWins,
    /// Both, the replacing one first.
    KeepBoth,
}

/// One entry of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// In sequence, and which of two concurrent ones goes first.
    pub rule: Rule,
    /// What concurrency changes.
    pub concurrent: Concurrent,
}

/// How operations of one type can be repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handling {
    /// Command that takes the operation back.
    pub undo: Option<String>,
    /// Whether running it twice is as good as once.
    pub idempotent: bool,
    /// Command that tells whether it happened: exit 0 if it did.
    pub check: Option<String>,
    /// Command that answers with smaller steps when the operation failed.
    pub decompose: Option<String>,
}

/// Commands that save and bring back a resource's whole state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// Prints the state.
    pub snapshot: String,
    /// Reads such a state back.
    pub restore: String,
}

/// A resource's config.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The resolution matrix; a pair that is not listed is `take-both`.
    pub matrix: BTreeMap<(OperationType, OperationType), Resolution>,
    /// Per type.
    pub types: BTreeMap<OperationType, Handling>,
    /// Per resource.
    pub snapshots: Option<Snapshots>,
}
