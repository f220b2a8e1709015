//! Resources over several sites, of which each has a part.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// One resource over several sites. Its id says all of this: no site was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cross {
    /// What users call it.
    pub id: String,
    /// In the order of the scope it was made under.
    pub parts: Vec<CrossPart>,
}

/// What one site has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrossPart {
    /// Where.
    pub site: String,
    /// What that site's service calls it.
    pub id: String,
}

/// One that was made or asked for by way of the agent's proxies, since it was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CrossSeen {
    /// What users call it, and its parts.
    #[serde(flatten)]
    pub cross: Cross,
    /// The service that it is of.
    pub service: String,
    /// The path under which it is one of many.
    pub collection: String,
}

/// Where a resource over several sites is; not needed for one that was seen at this site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CrossPlace {
    /// The service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The path under which it is one of many, such as `/v1/servers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
}

/// What a resource over several sites is now, as its services say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CrossValue {
    /// What users call it.
    pub id: String,
    /// The service.
    pub service: String,
    /// The path under which it is one of many.
    pub collection: String,
    /// The parts made into one, with sums of what is divided; none if no part answered, or they are not alike.
    pub whole: Option<Value>,
    /// Each part, in the order of the scope it was made under.
    pub parts: Vec<CrossPartValue>,
}

/// What one site's service says of its part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CrossPartValue {
    /// Where.
    pub site: String,
    /// What that site's service calls it.
    pub id: String,
    /// What it answered.
    pub value: Option<Value>,
    /// Why there is no such answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
