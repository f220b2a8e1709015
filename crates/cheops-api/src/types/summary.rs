//! All resources of a site in a few numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::HistoryUse;

/// Which resources to count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SummaryFilter {
    /// Those whose id contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Those that live on this site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Those with an operation of this type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// All resources the agent asked holds, or those asked for. With many of them it is some seconds old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// How many there are that were not deleted.
    pub resources: u64,
    /// How many are in each state, deleted ones too; states nothing is in are missing.
    pub by_state: BTreeMap<String, u64>,
    /// How many of those that were not deleted live on each site.
    pub by_site: BTreeMap<String, u64>,
    /// On how many of them somebody has to do something at each site; sites without any are missing.
    #[serde(default)]
    pub troubled: BTreeMap<String, u64>,
    /// How many are verified: all their sites are known to have read the same state.
    #[serde(default)]
    pub verified: u64,
    /// Since when the one of those is whose proof is oldest (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_since: Option<String>,
    /// How many are in sync and not verified, by the reason: `no-state`, `not-yet`, `unread`.
    #[serde(default)]
    pub unverified: BTreeMap<String, u64>,
    /// On how many somebody should look at something, though nothing failed.
    #[serde(default)]
    pub warnings: u64,
    /// Every type that some operation has, in order of name.
    pub types: Vec<String>,
    /// When this was counted (RFC 3339).
    pub as_of: String,
    /// What is kept here for readers of the history only.
    #[serde(default)]
    pub history: HistoryUse,
}
