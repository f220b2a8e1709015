//! A demo's sites and links, which can be stopped and cut. No other agent has this.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The demo that the agent asked is part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Demo {
    /// Its sites.
    pub sites: Vec<DemoSite>,
    /// The links between them: one for every two.
    pub links: Vec<DemoLink>,
}

/// One site of a demo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DemoSite {
    /// Its name.
    pub site: String,
    /// Whether its agent runs.
    pub running: bool,
    /// Where its agent's API and pages are.
    pub api: String,
    /// Where its services are, by name.
    pub services: BTreeMap<String, String>,
}

/// A link of a demo; also the order to cut or heal it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DemoLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Whether nothing passes.
    pub cut: bool,
}

/// The order to stop a site's agent, as a power cut would, or to start it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSite {
    /// Which.
    pub site: String,
    /// Whether its agent is to run.
    pub running: bool,
}
