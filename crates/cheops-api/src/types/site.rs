//! Sites, as the agent asked sees them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All sites of the mesh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sites {
    /// The site whose agent answers.
    pub me: String,
    /// Every site, this one included.
    pub sites: Vec<Site>,
    /// The agent's version.
    pub version: String,
    /// Whether the agent is part of a demo, whose links can be cut by `/api/v1/demo`.
    #[serde(default)]
    pub demo: bool,
    /// The services that the answering site has; not there if its agent is too old to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
}

/// One site, and never more than what was really heard of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Site {
    /// Its name.
    pub site: String,
    /// Whether it is connected.
    pub state: SiteState,
    /// Since when it is in that state: up since, or last connected (RFC 3339).
    pub since: Option<String>,
    /// The round trip to it, if one was measured.
    pub round_trip_ms: Option<f64>,
    /// Resources it shares with the agent asked; of that one itself, all it keeps, deleted ones too.
    pub shared: u64,
    /// Resources of which it is not known to know everything.
    pub behind_on: u64,
    /// Operations and replies that it is not known to know, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries_behind: Option<u64>,
    /// Where its agent is reached by the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What is wrong with the link to it, such as another version, a bad certificate, or two agents
    /// that share its identity.
    #[serde(default)]
    pub problem: Option<String>,
}

/// Whether a site is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SiteState {
    /// It is the site asked.
    #[serde(rename = "self")]
    Myself,
    /// It is connected.
    Up,
    /// It is not connected any more; what it does is unknown.
    Unknown,
    /// Nothing was ever heard of it since the agent started.
    NeverHeard,
    /// It signed two entries that cannot both be its word: nothing is taken from it until it is
    /// issued a new identity.
    SetApart,
}

impl SiteState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Myself => "self",
            Self::Up => "up",
            Self::Unknown => "unknown",
            Self::NeverHeard => "never-heard",
            Self::SetApart => "set-apart",
        }
    }
}
