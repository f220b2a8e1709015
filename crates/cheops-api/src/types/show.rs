//! Looking: a command that reads, run at every site and not recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::submit::default_timeout_ms;

/// A command to look at a resource with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The command line, which should only read.
    pub command: String,
    /// Where, as a scope's location such as `paris & lyon`; if not given, at every site of the
    /// resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<String>,
    /// How long to wait.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

/// What each site showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShowAnswer {
    /// Site by site.
    pub sites: BTreeMap<String, Shown>,
}

/// What one site showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Shown {
    /// Whether the command succeeded there.
    pub status: ShowStatus,
    /// Its exit code, if it ended.
    pub exit_code: Option<i32>,
    /// What it printed, or why it did not run.
    pub output: String,
    /// Whether it printed more than was kept.
    pub truncated: bool,
}

/// How looking went at one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ShowStatus {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed.
    Ko,
    /// The site did not answer in time.
    Timeout,
    /// The site is not connected.
    Unreachable,
}

impl ShowStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Ko => "KO",
            Self::Timeout => "TIMEOUT",
            Self::Unreachable => "UNREACHABLE",
        }
    }
}
