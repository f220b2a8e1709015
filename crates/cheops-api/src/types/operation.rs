//! Operations as readers see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Reply;

/// One change to one resource, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Operation {
    /// Unique for ever, such as `paris-5f.7`.
    pub id: String,
    /// The site that received it from its user.
    pub site: String,
    /// Its type, by which the matrix decides.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was made, by the receiving site's clock (RFC 3339).
    pub time: String,
    /// Its stamp: with the site's name, its place in the total order.
    pub stamp: String,
    /// The operations it was made on.
    pub parents: Vec<String>,
    /// Whether it took the place of what it was made on.
    pub replaces: Replaces,
    /// What it does, in a line.
    pub summary: String,
    /// What to do at each site.
    #[serde(flatten)]
    pub payload: Payload,
    /// Whether it is in the list.
    pub counts: bool,
    /// Why it is not in the list, if it is not.
    pub left_out: Option<LeftOut>,
    /// The last word of each site that replied.
    pub replies: BTreeMap<String, Reply>,
    /// Who asked for it, if that is known.
    #[serde(default)]
    pub asked_by: Option<Asker>,
}

/// Who asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asker {
    /// As the site that was asked knows them, such as `uid:1000` or `token`.
    pub principal: String,
    /// The site that was asked.
    pub site: String,
}

/// Whether an operation replaces its causal past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Replaces {
    /// It adds to what was there.
    Nothing,
    /// It rules out all it was made on.
    Past,
    /// The same, by the operator's word.
    Force,
}

/// What an operation does at each site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// It runs a shell command.
    Shell(ShellCommand),
    /// It sends a request to a service of the site's own application instance.
    Http(HttpRequest),
}

/// A shell command with the files that come with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShellCommand {
    /// The command line, with `{name}` standing for the path of a file sent along.
    pub command: String,
    /// Files sent along.
    pub files: Vec<File>,
}

/// A request to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HttpRequest {
    /// Which service.
    pub service: String,
    /// `PUT`, `POST`, ...
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers to send.
    pub headers: Vec<Header>,
    /// The body's content, where there is one.
    pub body: Option<File>,
}

/// One HTTP header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A file that travels with an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct File {
    /// The placeholder's name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The hash of its content, in hexadecimal digits.
    pub blob: String,
}

/// What left an operation out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// The reason, in words.
    pub why: String,
    /// The operation that counts in its stead; none if it failed everywhere.
    pub by: Option<String>,
}
