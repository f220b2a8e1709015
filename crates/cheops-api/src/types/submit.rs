//! Submitting operations, and what comes back while one waits.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Header, SiteReply};

/// How long to wait if nothing is said.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;

pub(super) fn default_timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

/// An operation to submit: exactly one of `shell` and `http` says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Flat")]
pub struct Submit {
    /// The operation's type, by which the matrix decides.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which sites hold the resource, as a scope's location such as `paris & lyon`. Needed for a
    /// new resource; for a known one it must agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<String>,
    /// How conflicts are resolved, if this is to be said (anew).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// The same by the name of a built-in profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What to do at each site.
    #[serde(flatten)]
    pub action: Action,
    /// Whether it is the operator's own resolution: it replaces everything before it.
    #[serde(default)]
    pub force: bool,
    /// Whose replies to wait for.
    #[serde(default)]
    pub wait: Wait,
    /// How long to wait. The work goes on after that.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

/// What a [`Submit`] reads from. A key that is not known is refused, which `flatten` cannot do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    #[serde(rename = "type")]
    kind: String,
    sites: Option<String>,
    config: Option<Value>,
    profile: Option<String>,
    shell: Option<ShellAction>,
    http: Option<HttpAction>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    wait: Wait,
    #[serde(default = "default_timeout_ms")]
    timeout_ms: u64,
}

impl TryFrom<Flat> for Submit {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<Self, Self::Error> {
        let action = match (flat.shell, flat.http) {
            (Some(shell), None) => Action::Shell(shell),
            (None, Some(http)) => Action::Http(http),
            (None, None) => return Err("one of `shell` and `http` must say what to do"),
            (Some(_), Some(_)) => return Err("only one of `shell` and `http` can be given"),
        };
        if flat.config.is_some() && flat.profile.is_some() {
            return Err("only one of `config` and `profile` can be given");
        }
        Ok(Self {
            kind: flat.kind,
            sites: flat.sites,
            config: flat.config,
            profile: flat.profile,
            action,
            force: flat.force,
            wait: flat.wait,
            timeout_ms: flat.timeout_ms,
        })
    }
}

/// What to do at each site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Run a shell command.
    Shell(ShellAction),
    /// Send a request to a service of the site's own application instance.
    Http(HttpAction),
}

/// A shell command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellAction {
    /// The command line, with `{name}` standing for the path of the file of that name.
    pub command: String,
}

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpAction {
    /// To which service.
    pub service: String,
    /// `PUT`, `POST`, ...
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers to send.
    #[serde(default)]
    pub headers: Vec<Header>,
    /// The body, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// This text.
    Text(String),
    /// The content of the file of that name.
    Part(String),
}

/// Whose replies to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Every site of the resource.
    #[default]
    All,
    /// The receiving site.
    Local,
    /// Nobody's: durable acceptance is enough.
    None,
}

/// What `POST /api/v1/resources/{id}/operations` takes as `multipart/form-data`: this part first,
/// then one part per file, with its placeholder as file name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmitForm {
    /// The operation.
    pub operation: Submit,
}

/// What is told while an operation is submitted and carried out: one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SubmitEvent {
    /// The operation is on the receiving site's disk.
    Accepted {
        /// Its name.
        operation: String,
        /// The resource.
        resource: String,
        /// The sites that hold it.
        sites: Vec<String>,
        /// The receiving site.
        site: String,
        /// Whether the config that came with it takes the place of another one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        config_replaced: bool,
        /// What is accepted and probably not meant, such as a type that the matrix does not list.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// A site replied.
    Reply(SiteReply),
    /// Everyone waited for has replied.
    Done,
    /// Time is up. The work goes on.
    TimedOut {
        /// Who has not replied.
        missing: Vec<String>,
    },
}

/// How to delete a resource: an operation that wins over every concurrent one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// What removes the thing in the application, run at every site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whose replies to wait for.
    #[serde(default)]
    pub wait: Wait,
    /// How long to wait. The work goes on after that.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

impl Default for Delete {
    fn default() -> Self {
        Self { command: None, wait: Wait::All, timeout_ms: DEFAULT_TIMEOUT_MS }
    }
}

/// What to make of an operation whose result is unknown, that failed, or that is to be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// The decision.
    pub decision: Decision,
    /// At which site; if not given, at that of the agent asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// What the operator decides about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is taken as it is: not run again.
    Skip,
    /// It is run again.
    Rerun,
    /// It failed at this site, and is run again.
    Retry,
    /// It failed somewhere, and is let be: it counts as trouble no more, at any site.
    Dismiss,
    /// It is taken out, everywhere; or, if it names an undoing, what that took out counts again.
    Undo,
}
