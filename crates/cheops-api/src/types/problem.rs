//! Errors, as RFC 9457 has them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that names the kind of problem; `about:blank` if the title says it all.
    #[serde(rename = "type", default = "about_blank")]
    pub kind: String,
    /// The kind of problem in words, the same each time.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time, with its subject.
    #[serde(default)]
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// More about it, for programs.
    #[serde(flatten)]
    pub extensions: Map<String, Value>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

impl Problem {
    /// A problem with that HTTP status, title and detail.
    pub fn new(status: u16, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind: about_blank(),
            title: title.into(),
            status,
            detail: detail.into(),
            hint: None,
            instance: None,
            extensions: Map::new(),
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With what it happened to.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// With more about it, for programs.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }
}
