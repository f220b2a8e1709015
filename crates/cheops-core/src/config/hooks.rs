//! Hooks: what is told to whom when something happens to a resource.
//!
//! ```json
//! {"Hooks": [
//!   {"On": "partial-error", "Url": "https://ops.example/cheops", "Run": "once"},
//!   {"On": "applied", "Command": "systemctl reload app", "Types": ["set"]},
//!   {"On": "failed", "Command": "split-decrement", "Types": ["dec"], "Answer": "decompose"}]}
//! ```
//!
//! The last one answers: it prints smaller steps, which are run instead of what failed. It is
//! another spelling of `Decompose` for its types, and becomes just that.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::check::command_fault;
use super::document::HOOKS;
use super::place::{ConfigPlace, short};
use super::problem::{ConfigFault, ConfigProblem};
use super::{Config, MAX_HOOKS, MAX_TYPES, MAX_URL_BYTES};
use crate::ids::OperationType;

/// What a hook waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HookEvent {
    /// An operation ran and succeeded.
    Applied,
    /// An operation ran and failed.
    Failed,
    /// An operation succeeded at some sites and failed at others.
    PartialError,
    /// An operation did not run, or no longer counts, since another took its place.
    Superseded,
    /// The application at a site no longer follows the list.
    Diverged,
    /// Nobody can tell whether an operation happened.
    InDoubt,
    /// Sites that ran the same have different states.
    Differs,
    /// Nothing failed, and somebody should look all the same.
    Warning,
    /// Every site knows everything, and has run it.
    Converged,
    /// Nothing is heard of a site.
    SiteDown,
    /// A site is heard again.
    SiteUp,
}

impl HookEvent {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Applied,
        Self::Failed,
        Self::PartialError,
        Self::Superseded,
        Self::Diverged,
        Self::InDoubt,
        Self::Differs,
        Self::Warning,
        Self::Converged,
        Self::SiteDown,
        Self::SiteUp,
    ];

    /// How each is spelled, in the same order.
    pub const WORDS: [&'static str; 11] = [
        "applied",
        "failed",
        "partial-error",
        "superseded",
        "diverged",
        "in-doubt",
        "differs",
        "warning",
        "converged",
        "site-down",
        "site-up",
    ];

    /// How it is spelled.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The one that is spelled so, in any case and with `-` or `_`.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase().replace('_', "-");
        Self::ALL.into_iter().find(|event| event.word() == word)
    }

    /// Whether it happens to an operation, which has a type.
    pub fn is_of_an_operation(self) -> bool {
        matches!(
            self,
            Self::Applied | Self::Failed | Self::PartialError | Self::Superseded | Self::InDoubt
        )
    }

    /// Why nobody can say it once for all sites, if nobody can.
    pub fn why_not_once(self) -> Option<&'static str> {
        match self {
            Self::SiteDown | Self::SiteUp => {
                Some("each site sees for itself who is connected; use `each-site`")
            }
            Self::Diverged => {
                Some("it is about one site's own application, which tells it; use `each-site`")
            }
            Self::Differs | Self::Warning => Some("each site finds it for itself; use `each-site`"),
            _ => None,
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookAction {
    /// Runs a shell command.
    Command(String),
    /// Posts to an address, `http` or `https`.
    Url(String),
}

/// Where a hook runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookRun {
    /// At every site to which it happens.
    #[default]
    EachSite,
    /// At one: where the operation was handed in, when all have replied.
    Once,
}

impl HookRun {
    /// How each is spelled.
    pub const WORDS: [&'static str; 2] = ["each-site", "once"];

    /// How it is spelled.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The one that is spelled so, in any case and with `-` or `_`.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase().replace('_', "-");
        [Self::EachSite, Self::Once].into_iter().find(|run| run.word() == word)
    }
}

/// One hook of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hook {
    /// When.
    pub on: HookEvent,
    /// What.
    pub action: HookAction,
    /// Where.
    pub run: HookRun,
    /// Only for operations of these types; all, if there are none.
    pub types: BTreeSet<OperationType>,
}

impl Hook {
    /// What it says against itself.
    pub(super) fn faults(&self) -> Vec<ConfigFault> {
        let once = self.on.why_not_once().filter(|_| self.run == HookRun::Once);
        let once = once.map(|reason| ConfigFault::MeansNothing {
            found: "Run: once".to_owned(),
            with: format!("On: {}", self.on),
            reason,
        });
        let typed = !self.types.is_empty() && !self.on.is_of_an_operation();
        let typed = typed.then(|| ConfigFault::MeansNothing {
            found: "Types".to_owned(),
            with: format!("On: {}", self.on),
            reason: "no operation, and so no type, goes with it; leave it out",
        });
        let count = self.types.len();
        let many = (count > MAX_TYPES).then_some(ConfigFault::TooMany {
            what: "types",
            found: count,
            limit: MAX_TYPES,
        });
        [once, typed, many].into_iter().flatten().collect()
    }
}

/// What is wrong with an address to post to, if anything is.
pub fn url_fault(url: &str) -> Option<&'static str> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    if !known {
        return Some("it must begin with `http://` or `https://`");
    }
    if host.is_empty() {
        return Some("it names no host");
    }
    if authority.contains('@') {
        return Some("it holds a user name, which would not be sent");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("it holds blanks, or characters that must be written as `%..`");
    }
    (url.len() > MAX_URL_BYTES).then_some("it is too long")
}

pub(super) fn bad_url(url: &str) -> Option<ConfigFault> {
    url_fault(url).map(|why| ConfigFault::BadUrl { found: short(url), why })
}

/// Everything that is wrong with the hooks of a config that was not read from a document.
pub(super) fn bad_hooks(config: &Config) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    for (i, hook) in config.hooks.iter().enumerate() {
        let place = ConfigPlace::path(HOOKS).index(i, None);
        problems.extend(
            hook.faults().into_iter().map(|fault| ConfigProblem { place: place.clone(), fault }),
        );
        let (key, fault) = match &hook.action {
            HookAction::Command(command) => ("Command", command_fault(command)),
            HookAction::Url(url) => ("Url", bad_url(url)),
        };
        problems.extend(fault.map(|fault| ConfigProblem { place: place.key(key, None), fault }));
    }
    let found = config.hooks.len();
    if found > MAX_HOOKS {
        let fault = ConfigFault::TooMany { what: "hooks", found, limit: MAX_HOOKS };
        problems.push(ConfigProblem { place: ConfigPlace::path(HOOKS), fault });
    }
    problems
}
