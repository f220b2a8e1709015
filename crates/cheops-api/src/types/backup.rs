//! Copies of a site's data directory.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A copy to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// Where: a whole path on the agent's machine, to a folder that is new or empty.
    pub dir: String,
}

/// What is told while a copy is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum BackupEvent {
    /// How far it is.
    Far {
        /// What is being done.
        doing: String,
        /// How much of that is done.
        done: u64,
        /// How much there is.
        of: u64,
    },
    /// It is whole.
    Done {
        /// Files of operations in it.
        files: u64,
        /// Files that were still on their way to this site, and are not in it.
        missing: u64,
        /// Saved states of the application in it.
        snapshots: u64,
        /// How many bytes it takes.
        bytes: u64,
    },
    /// There is none.
    Failed {
        /// Why.
        why: String,
        /// What to do about it, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}
