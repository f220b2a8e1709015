//! Replies: what a site got from an operation. Failure is data here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one site says of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reply {
    /// What became of the operation there.
    pub status: ReplyStatus,
    /// The operation that took its place, if it is superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Steps that succeeded, if it was run in smaller ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u32>,
    /// Steps there were, if it was run in smaller ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// The command's exit code, if it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The service's HTTP status, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The time limit that it ran into, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// What was printed or answered, or why it could not be started.
    #[serde(default)]
    pub output: String,
    /// Whether there was more output than was kept.
    #[serde(default)]
    pub truncated: bool,
    /// When, by the replying site's clock (RFC 3339).
    pub time: String,
}

/// What became of an operation at one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum ReplyStatus {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed.
    Ko,
    /// It did not run, since another operation took its place.
    Superseded,
    /// The site stopped while it ran: it may or may not have happened.
    InDoubt,
    /// It failed whole and was run in smaller steps, of which some succeeded.
    Partial,
}

impl ReplyStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Ko => "KO",
            Self::Superseded => "SUPERSEDED",
            Self::InDoubt => "IN-DOUBT",
            Self::Partial => "PARTIAL",
        }
    }
}

/// A reply with who says it, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteReply {
    /// The site that replies.
    pub site: String,
    /// The operation.
    pub operation: String,
    /// What it says.
    #[serde(flatten)]
    pub reply: Reply,
}
