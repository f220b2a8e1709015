//! Where a resource lives, and what is to change of that.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which other sites are to hold a resource, and which no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeHolders {
    /// Sites that are to hold it, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Sites that are to hold it no more: they keep what their applications hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Only say where it would live then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Where a resource lives from now on, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceHolders {
    /// The sites that hold it. One that was added is told everything first.
    pub sites: Vec<String>,
    /// Those that were removed and are waited for, until all others know all that they knew.
    pub leaving: Vec<String>,
}
