//! What would come of something, before anything is written.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{DecidedPair, Decision, Delete, Replaces, Submit};

/// Whom a dry run asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DryRunAsked {
    /// Nobody but the site asked says what it would make of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
}

/// Something to be tried without writing anything: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DryRun {
    /// An operation. Files need not come along.
    Submit(Box<Submit>),
    /// The deletion of the resource.
    Delete(Delete),
    /// Taking out this operation, or bringing back what this undid.
    Undo(String),
    /// A decision about an operation.
    Decide(TriedDecision),
}

/// A decision to be tried without anything being written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriedDecision {
    /// The operation.
    pub operation: String,
    /// The decision.
    pub decision: Decision,
    /// Which site is asked; if not given, that of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// What would come of it, as the site asked knows things now. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// The resource.
    pub resource: String,
    /// The site that was asked.
    pub site: String,
    /// Whether the resource would be made by it.
    pub new_resource: bool,
    /// Whether the config that comes with it would take the place of another.
    pub config_replaced: bool,
    /// The name that the operation would have, if nothing else comes first; none if it is no operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Whether it would take the place of what is there.
    pub replaces: Replaces,
    /// Where it would go.
    pub sites: Vec<String>,
    /// Those of them that are not connected now: they get it when they are.
    pub not_connected: Vec<String>,
    /// The operations that would count, in the order to run them.
    pub list: Vec<ForecastOperation>,
    /// Those that would not count any more, or not at all, with the reason.
    pub overridden: Vec<DecidedPair>,
    /// Those that do not count now, and would.
    pub back: Vec<String>,
    /// Why the application of the site asked could not follow, if so: it would diverge there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_repair: Option<String>,
    /// What the other sites that are connected say of it, each as it knows things itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SiteForecast>,
}

/// What another site would make of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteForecast {
    /// The site.
    pub site: String,
    /// Whether it would follow.
    pub would: WouldFollow,
    /// Why not, or why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Whether a site would follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WouldFollow {
    /// It would.
    Follow,
    /// Its application could not follow: it would diverge there.
    Diverge,
    /// It would not take it, had it been submitted there.
    Refuse,
    /// It did not say.
    Unknown,
}

/// An operation of that list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForecastOperation {
    /// Its name.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it does, in a line.
    pub summary: String,
}
