//! The agent's config file: TOML, with every mistake reported at once.
//!
//! [`AgentConfig::load`] reads it. A mistake is named with file, line and column, the setting, the
//! value that was found and what would be right. Variables of the environment override single
//! settings: `CHEOPS_` and the setting's name, such as `CHEOPS_DATA_DIR` or `CHEOPS_API_LISTEN`; one
//! that names no setting is a mistake as well.
//! Paths in the file start from the file's folder; those in the environment from the working
//! directory.
//!
//! | file | what it does |
//! | --- | --- |
//! | `reader` | settings one by one, from the environment or the file |
//! | `sections` | which settings there are, and what must hold between them |
//! | `api` | `[api]` |
//! | `hooks` | `[[hooks]]` and `[webhooks]` |
//! | `logic` | `[logic]` |
//! | `lists` | settings that hold several values |
//! | `cross`, `replication` | how the resources of a service are named, divided and kept alike, as `cheops-proxy` takes it |
//! | `values`, `pattern`, `allowed` | what texts mean |
//! | `problem` | what is reported |
//! | `variables` | variables that name no setting |
//! | `template` | the commented file to start from |

mod allowed;
mod api;
mod cross;
mod hooks;
mod lists;
mod logic;
mod pattern;
mod problem;
mod reader;
mod replication;
mod sections;
mod template;
mod values;
mod variables;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cheops_core::config::Hook;
use cheops_core::engine::Application;
use cheops_core::model::SiteId;
pub use cheops_proxy::config::{
    CrossConfig, HostRule, PathPattern, Pointer, ProxyConfig, ReplicationConfig, ServiceConfig,
};
use http::Uri;
use toml::de::DeTable;

pub use self::allowed::Allowed;
pub use self::pattern::Pattern;
pub use self::problem::{ConfigProblems, SettingPlace, SettingProblem};
pub use self::values::{HostPort, Secret};

pub(crate) use self::api::{LONGEST_SOCKET, is_loopback};
pub(crate) use self::problem::meant;
pub(crate) use self::reader::shortened;
use self::reader::{ConfigReader, Environment};

/// Nobody writes such a file by hand.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What an agent is told when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// This site.
    pub site: SiteId,
    /// Where the log, blobs and snapshots are.
    pub data_dir: PathBuf,
    /// What to assume of the application when the disk is new.
    pub application: Application,
    /// For people and programs.
    pub api: ApiConfig,
    /// For the other sites; without it the site is alone.
    pub mesh: Option<MeshConfig>,
    /// The other sites.
    pub peers: Vec<PeerConfig>,
    /// The application's services.
    pub services: Vec<ServiceConfig>,
    /// How requests to services pass through.
    pub proxy: ProxyConfig,
    /// How commands run.
    pub shell: ShellConfig,
    /// The site's programs that decide about operations made concurrently, by the names that matrices
    /// call them (`logic:exec:NAME`): their shell commands.
    pub logic: BTreeMap<String, String>,
    /// What is kept of the past.
    pub audit: AuditConfig,
    /// What is said of the present.
    pub log: LogConfig,
    /// Who else is told of it.
    pub telemetry: TelemetryConfig,
    /// What is told to whom, whatever the resource.
    pub hooks: Vec<SiteHook>,
    /// How web hooks are delivered.
    pub webhooks: WebhooksConfig,
    /// The socket of the demo that the agent is part of, for orders of its page. Neither a file nor
    /// a variable can say so: only who starts the agent.
    pub demo: Option<PathBuf>,
    /// Whether the process is nothing but this agent, and may go into a control group of its own.
    /// Who starts it says so, not the file.
    pub alone: bool,
}

/// `[api]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiConfig {
    /// Where the API, the UI and the metrics are.
    pub listen: SocketAddr,
    /// The same as a socket of this machine, unless there is to be none: who may open the file is
    /// let in, and known by its user id.
    pub socket: Option<PathBuf>,
    /// What whoever comes by the address has to show.
    pub auth: Auth,
    /// Where the token is; made if it is not there.
    pub token_file: PathBuf,
    /// A certificate and its key: the address is served by TLS then.
    pub tls: Option<PathBuf>,
    /// Who sees the metrics.
    pub metrics: MetricsFor,
    /// How many connections one address, or one user of the socket, may have at once.
    pub connections_per_address: usize,
}

/// What whoever comes by the API's address has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// The token.
    Token,
    /// Nothing: for loopback only.
    None,
}

/// Who sees the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFor {
    /// Who may see everything else.
    TokenHolders,
    /// Whoever reaches the address.
    Anyone,
}

/// `[mesh]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshConfig {
    /// Where the other sites are listened for; UDP.
    pub listen: SocketAddr,
    /// Where the other sites find this one, if that is another address.
    pub advertise: Option<HostPort>,
    /// The certificate, key and authority that `cheops mesh issue` wrote.
    pub identity: PathBuf,
}

/// One of `[[peers]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    /// The site.
    pub site: SiteId,
    /// Where its mesh port is.
    pub address: HostPort,
}

/// `[shell]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellConfig {
    /// How long one command or request may take.
    pub time_limit: Duration,
    /// How much of its output is kept, in bytes.
    pub output_limit: usize,
    /// How many run at once.
    pub jobs_at_once: usize,
    /// Where commands are run, if not in the agent's working directory.
    pub directory: Option<PathBuf>,
    /// How long after it was read a resource's state is read again.
    pub verify_every: Duration,
    /// From how many operations of a resource on a state that all sites verified stands for them.
    pub short_history: usize,
}

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// How long superseded and stable history can be looked at.
    pub retention: Duration,
    /// How many bytes it may take: beyond that the oldest is dropped before its time.
    pub size: u64,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// From which level on something is logged.
    pub level: tracing::Level,
    /// How.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one object a line.
    Json,
}

/// `[telemetry]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The collector that spans go to, if any. Only a program built with the feature `otlp` takes it.
    pub otlp: Option<Uri>,
}

/// One of `[[hooks]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteHook {
    /// When, what and where.
    pub hook: Hook,
    /// Only for resources of these names; all, if there are none.
    pub resources: Vec<Pattern>,
    /// What its deliveries are signed with, if not with the site's secret.
    pub secret: Option<Secret>,
}

/// `[webhooks]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhooksConfig {
    /// What deliveries are signed with.
    pub secret: Option<Secret>,
    /// How long a receiver may take.
    pub time_limit: Duration,
    /// How often a delivery is tried.
    pub attempts: usize,
    /// Where those may go that come with a resource.
    pub allow: Vec<Allowed>,
}

impl AgentConfig {
    /// Reads a config file, and the environment over it: variables and their values.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them.
    pub fn load(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigProblems> {
        let environment: BTreeMap<String, String> = environment.into_iter().collect();
        let failed = |message: String| {
            let key = String::new();
            let problem = SettingProblem { place: SettingPlace::File, key, message };
            ConfigProblems::new(file, vec![problem])
        };
        let length = std::fs::metadata(file).map(|found| found.len());
        let length = length.map_err(|error| failed(format!("it cannot be read: {error}")))?;
        if length > MAX_FILE_BYTES {
            return Err(failed(format!(
                "it has {length} bytes; at most {MAX_FILE_BYTES} are read"
            )));
        }
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| failed(format!("it cannot be read: {error}")))?;
        let look = |name: &str| environment.get(name).cloned();
        Self::read(&text, file, &look, &environment)
    }

    /// The same from a text, which stands in for that file, and from an environment of which it is
    /// not known what else it has.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse(
        text: &str,
        file: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigProblems> {
        Self::read(text, file, &environment, &BTreeMap::new())
    }

    fn read(
        text: &str,
        file: &Path,
        environment: &Environment<'_>,
        given: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigProblems> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let (variables, problems) = (Vec::new(), Vec::new());
        let mut reader = ConfigReader { text, file, environment, variables, problems };
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            let place = reader.place(offset);
            reader.report(&place, "", format!("this is not TOML: {}", error.message().trim()));
        }
        // What is left of a file with a slip in its grammar would be judged wrongly.
        let config = match reader.problems.is_empty() {
            true => {
                let config = sections::read(&mut reader, &root);
                variables::check(&mut reader, given);
                config
            }
            false => None,
        };
        match config {
            Some(config) if reader.problems.is_empty() => Ok(config),
            _ => Err(ConfigProblems::new(file, reader.problems)),
        }
    }
}
