//! What happened to a resource, also what no site needs any more.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Change, Operation, SiteReply};

/// Which part of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct HistoryAsked {
    /// How many at most; the agent may give less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// What was before this: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// As this site kept it; if not given, as the agent asked did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Some of what happened to a resource, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The resource.
    pub resource: String,
    /// The site that noted it.
    pub site: String,
    /// What happened, the latest first.
    pub items: Vec<HistoryItem>,
    /// Where the next page begins, which is older, to be given as `before`; none if this is the last.
    pub next: Option<u64>,
    /// Whether what is older was dropped, for its age or for want of room. Only the last page says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryItem {
    /// Its number in the feed of that site.
    pub id: u64,
    /// When that site noted it, by its clock (RFC 3339).
    pub at: String,
    /// Whether it is an operation or a reply that no site needs any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
    /// What happened.
    #[serde(flatten)]
    pub change: Change,
}

/// Operations that no site needs any more, as long as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastOperations {
    /// The latest of them, in total order, with what became of them.
    pub operations: Vec<Operation>,
    /// Whether older ones are kept: its history has them.
    pub more: bool,
}

/// One operation with all that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperationRecord {
    /// What it changes.
    pub resource: String,
    /// The operation, with the last word of each site.
    #[serde(flatten)]
    pub operation: Operation,
    /// When the site asked noted it, by its clock (RFC 3339).
    pub noted: String,
    /// Whether no site needs it any more: it can be read until its retention has passed.
    pub pruned: bool,
    /// What came with it: files, or the body of a request.
    pub bodies: Vec<RecordedBody>,
    /// What it made of a document that is merged, as the site where it was submitted said. More than one if
    /// that site ran it again, as after it lost its disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<RecordedEdit>,
    /// All that sites said of it, in the order that it was noted here.
    pub said: Vec<SiteReply>,
    /// Whether there may be more that sites said of it, beyond what was looked through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_said: bool,
}

/// Something that came with an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedBody {
    /// What the operation calls it.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The hash of its content, in hexadecimal digits.
    pub blob: String,
    /// Its content, if it is kept and is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its content in base 64, if it is kept and is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Why its content cannot be shown, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// What an operation made of a document that is merged: what all sites merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedEdit {
    /// The writer under whose number it is merged, in decimal digits: no other edit has the same.
    pub made_by: String,
    /// How many bytes it has; none if it changed nothing.
    pub size: u64,
    /// The change in base 64, in the form that `docs/format.md` describes.
    pub base64: String,
}

/// What a site keeps for readers of the history only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryUse {
    /// How many bytes of operations, replies and notices, about.
    pub bytes: u64,
    /// How many bytes of files and bodies.
    pub bodies: u64,
    /// How many bytes both may take: `[audit] size`.
    pub most: u64,
    /// When some was last dropped before its time for want of room, since that agent was started
    /// (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}
