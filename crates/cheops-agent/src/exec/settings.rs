//! What an executor is told when it is made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cheops_core::model::{SaysAlready, SiteId};
use cheops_proxy::{IdDirectory, Naming};
use cheops_services::Services;
use http::HeaderMap;

use super::files;
use super::token::RunToken;

/// How commands and requests are run at this site.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// This site.
    pub site: SiteId,
    /// This start of the agent.
    pub run: RunToken,
    /// Where files are placed for commands; nothing else may be in there.
    pub scratch: PathBuf,
    /// How long one command may take, or a request that came from no proxy.
    pub time_limit: Duration,
    /// How many reading commands run at once.
    pub shows_at_once: usize,
    /// How much of an output is kept, in bytes.
    pub output_limit: usize,
    /// How large a saved state may be, in bytes.
    pub snapshot_limit: u64,
    /// How long a command has to end by itself once it was asked to.
    pub grace: Duration,
    /// The services of the site.
    pub services: Services,
    /// What else is known of the services.
    pub(crate) requests: RequestSettings,
    /// Whether this process is nothing but this one agent. Then it goes into a control group of its
    /// own where it may, and nothing that it starts can leave that.
    pub alone: bool,
    /// The site's programs that decide about operations made concurrently: their shell commands, by name.
    pub programs: BTreeMap<String, String>,
    /// Where commands are run; the agent's own working directory if nothing is said.
    pub shell_dir: Option<PathBuf>,
}

/// What requests to services need to know beside where these are.
#[derive(Clone)]
pub(crate) struct RequestSettings {
    pub(crate) rules: BTreeMap<String, AnswerRules>,
    pub(crate) replicas: IdDirectory,
    pub(crate) mark: RequestMarker,
    /// How long one that came from a proxy may take, which is as long as one that passes through.
    pub(crate) answer_limit: Duration,
}

/// Given the service and the headers of each request before it is sent, to mark it for the calls
/// that the service makes.
pub(crate) type RequestMarker = std::sync::Arc<dyn Fn(&str, &mut HeaderMap) + Send + Sync>;

/// What a service's answers mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerRules {
    pub(crate) naming: Naming,
    pub(crate) says_already: SaysAlready,
}

impl fmt::Debug for RequestSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl ExecSettings {
    /// The defaults, without services.
    pub fn new(site: SiteId, run: RunToken, scratch: impl Into<PathBuf>) -> Self {
        let replicas = IdDirectory::new(site.clone());
        let mark: RequestMarker = std::sync::Arc::new(|_, _| {});
        let time_limit = Duration::from_secs(60);
        let answer_limit = time_limit;
        Self {
            site,
            run,
            scratch: scratch.into(),
            time_limit,
            shows_at_once: 64,
            output_limit: 64 * 1024,
            snapshot_limit: 4 * 1024 * 1024 * 1024,
            grace: Duration::from_secs(2),
            services: Services::default(),
            requests: RequestSettings { rules: BTreeMap::new(), replicas, mark, answer_limit },
            alone: false,
            programs: BTreeMap::new(),
            shell_dir: None,
        }
    }

    /// The directory for files, made ready.
    pub(super) fn scratch(&self) -> Result<PathBuf, ExecError> {
        let failed = |source| ExecError::Scratch { dir: self.scratch.clone(), source };
        files::prepare(&self.scratch).map_err(failed)?;
        // Commands may run in another directory than the agent.
        self.scratch.canonicalize().map_err(failed)
    }
}

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// There is nowhere to place files.
    #[error("the directory for files of commands, `{}`, cannot be used", dir.display())]
    Scratch {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody would end the commands of an agent that is killed.
    #[error("the process that ends commands when the agent is killed cannot be started")]
    Keeper(#[source] io::Error),
}

/// Why a reading command was not run: all the room for such is taken.
#[derive(Debug, thiserror::Error)]
#[error("{at_once} reading commands run already, as many as may at once")]
pub struct Crowded {
    pub(super) at_once: usize,
}

/// What commands inherit of the agent's environment: all but what is meant for the agent, which
/// may hold its secrets.
pub(super) fn inherited() -> Vec<(OsString, OsString)> {
    let own = |name: &OsString| name.as_encoded_bytes().starts_with(b"CHEOPS_");
    std::env::vars_os().filter(|(name, _)| !own(name)).collect()
}
