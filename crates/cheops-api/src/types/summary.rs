//! All resources of a site in a few numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All resources the agent asked holds. With many of them it is some seconds old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// How many there are that were not deleted.
    pub resources: u64,
    /// How many are in each state, deleted ones too; states nothing is in are missing.
    pub by_state: BTreeMap<String, u64>,
    /// How many of those that were not deleted live on each site.
    pub by_site: BTreeMap<String, u64>,
    /// Every type that some operation has, in order of name.
    pub types: Vec<String>,
    /// When this was counted (RFC 3339).
    pub as_of: String,
}
