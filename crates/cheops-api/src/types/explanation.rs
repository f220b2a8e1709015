//! Why a resource's list is what it is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{LeftOut, Replaces};

/// Why the list is what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The resource.
    pub resource: String,
    /// Every operation with what it was made on, in total order.
    pub operations: Vec<ExplainedOperation>,
    /// The operations that count, in the order to run them.
    pub list: Vec<String>,
    /// Every decision that left an operation out, or put it after another: the last of those that the
    /// same entry puts before it.
    pub decisions: Vec<DecidedPair>,
    /// The latest operations that no site needs any more, in total order, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<ExplainedOperation>,
    /// Whether older ones are kept: its history has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub past_more: bool,
}

/// One operation and its place in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedOperation {
    /// Its name.
    pub id: String,
    /// The site that received it from its user.
    pub site: String,
    /// Its type, by which the matrix decides.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was made (RFC 3339).
    pub time: String,
    /// Its stamp: with the site's name, its place in the total order.
    pub stamp: String,
    /// The operations it was made on.
    pub parents: Vec<String>,
    /// Whether it took the place of what it was made on.
    pub replaces: Replaces,
    /// What it does, in a line.
    pub summary: String,
    /// Whether it is in the list.
    pub counts: bool,
    /// Why it is not in the list, if it is not.
    pub left_out: Option<LeftOut>,
}

/// One decision between two operations, or of one that failed everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecidedPair {
    /// The operation left out, or the one that runs after.
    pub operation: String,
    /// The one that won, or runs before; none if the operation failed everywhere.
    pub winner: Option<String>,
    /// Whether `operation` counts all the same.
    pub counts: bool,
    /// The matrix entry that decided, such as `(set, set): take-one`, where one did.
    pub entry: Option<String>,
    /// The decision in words.
    pub sentence: String,
}
