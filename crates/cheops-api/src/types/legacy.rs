//! What the first Cheops said, kept word for word so that its clients work unchanged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What `POST /exec/{id}` takes, as `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecForm {
    /// The command line, with `{name}` standing for the path of the file of that name.
    pub command: String,
    /// The sites that hold the resource, separated by `&`.
    pub sites: String,
    /// The operation's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The resolution matrix, in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// What `POST /show/{id}` takes, as `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShowForm {
    /// The command line, which should only read.
    pub command: String,
    /// The sites to ask, separated by `&`.
    pub sites: String,
}

/// One line of the answer of `POST /exec/{id}`: what one site says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ExecLine {
    /// The sites that hold the resource.
    pub locations: Vec<String>,
    /// The site that replies.
    pub site: String,
    /// The operation.
    pub request_id: String,
    /// The resource.
    pub resource_id: String,
    /// What became of the operation there.
    pub status: ExecStatus,
    /// What ran, and what it printed.
    pub cmd: InputOutput,
    /// What ran, once more.
    pub input: String,
    /// What it printed, once more.
    pub output: String,
    /// How long the site took, such as `12.5ms`.
    pub execution_time: String,
    /// Always `REPLY`.
    #[serde(rename = "Type")]
    pub mark: ReplyMark,
}

/// The one value of an [`ExecLine`]'s `Type`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReplyMark {
    /// It is a reply.
    #[default]
    Reply,
}

/// What became of an operation at one site, for a client that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum ExecStatus {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed.
    Ko,
    /// The site did not reply in time. The work goes on.
    Timeout,
    /// It did not run, since another operation took its place.
    Superseded,
    /// The site stopped while it ran: it may or may not have happened.
    InDoubt,
    /// It failed whole and was run in smaller steps, of which some succeeded.
    Partial,
}

/// A command and what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct InputOutput {
    /// The command line.
    pub input: String,
    /// What it printed.
    pub output: String,
}

/// The answer of `POST /show/{id}`: what each site says.
pub type LegacyShow = BTreeMap<String, SiteShow>;

/// What one site says to `POST /show/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct SiteShow {
    /// Whether the command succeeded there.
    pub status: super::ShowStatus,
    /// What it printed.
    pub output: String,
}
