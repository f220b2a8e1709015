//! The way to an agent: where it is, what lets us in, one runtime, one client, and what its errors
//! mean to whoever typed.

use std::error::Error;
use std::future::Future;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cheops_api::{Client, ClientError, ClientOptions, Problem, Token, is_loopback};
use clap::Args;

use crate::demo_socket;
use crate::failure::Failure;

/// Where an agent is if nobody says so and no socket is found.
pub(crate) const USUAL_ADDRESS: &str = "http://127.0.0.1:8079";
/// Where an agent of this machine has its socket, if its config says nothing else or what the docs
/// propose.
const USUAL_SOCKETS: [&str; 2] = ["cheops-data/api.sock", "/run/cheops/api.sock"];
const USUAL_TOKEN: &str = "cheops-data/api.token";

const AGENT: &str = "CHEOPS_AGENT";
const TOKEN_FILE: &str = "CHEOPS_TOKEN_FILE";
const AUTHORITY: &str = "CHEOPS_AGENT_CA";

/// The agent to talk to.
#[derive(Debug, Args)]
pub(crate) struct AgentTarget {
    // Not by clap's `env`: what is set there would stand in every usage as if it had to be given.
    #[arg(long, global = true, value_name = "ADDRESS", display_order = 101)]
    #[arg(help = format!(
        "The agent to talk to: unix:SOCKET, or a URL [env: {AGENT}] [default: {}, {} or {USUAL_ADDRESS}]",
        USUAL_SOCKETS[0], USUAL_SOCKETS[1]
    ))]
    agent: Option<String>,
    #[arg(long, global = true, value_name = "FILE", display_order = 102)]
    #[arg(help = format!("The agent's token, for a URL [env: {TOKEN_FILE}] [default: {USUAL_TOKEN}]"))]
    token_file: Option<PathBuf>,
    #[arg(long, global = true, value_name = "FILE", display_order = 103)]
    #[arg(help = format!(
        "Who vouches for the agent's certificate, for https [env: {AUTHORITY}] [default: the system's]"
    ))]
    agent_ca: Option<PathBuf>,
}

fn usual_socket() -> Option<&'static str> {
    USUAL_SOCKETS.into_iter().find(|path| Path::new(path).exists())
}

/// Whether commands talk to that agent if nobody says to which.
pub(crate) fn is_found_by_itself(address: &str) -> bool {
    address == USUAL_ADDRESS && usual_socket().is_none()
}

/// A variable of the environment, unless it says nothing.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|said| !said.is_empty())
}

impl AgentTarget {
    /// Where the agent is.
    pub(crate) fn address(&self) -> String {
        let found = || {
            usual_socket().map_or_else(|| USUAL_ADDRESS.to_owned(), |path| format!("unix:{path}"))
        };
        self.agent.clone().or_else(|| set(AGENT)).unwrap_or_else(found)
    }

    /// Whether somebody said which agent is meant.
    pub(crate) fn is_named(&self) -> bool {
        self.agent.is_some() || set(AGENT).is_some()
    }

    async fn client(&self) -> Result<Client, Failure> {
        let address = self.address();
        let token = match address.starts_with("unix:") {
            true => None,
            false => self.token(&address).await?,
        };
        let file = self.agent_ca.clone().or_else(|| set(AUTHORITY).map(PathBuf::from));
        let authorities = file.map(|file| {
            std::fs::read(&file).map_err(|error| {
                Failure::caller(format!("`{}` cannot be read", file.display()))
                    .because(error)
                    .hint(format!("`--agent-ca` or {AUTHORITY} names the certificate to trust"))
            })
        });
        let options = ClientOptions { token, authorities: authorities.transpose()? };
        Client::with(&address, &options).map_err(|error| {
            Failure::caller(error.to_string())
                .hint(format!("`--agent` or {AGENT} gives it, such as {USUAL_ADDRESS}"))
        })
    }

    /// What lets us in there. Nothing is tried on other machines than this one unless it was said.
    async fn token(&self, address: &str) -> Result<Option<Token>, Failure> {
        if let Some(file) = self.token_file.clone().or_else(|| set(TOKEN_FILE).map(PathBuf::from)) {
            return token_in(&file).map(Some);
        }
        let url = if address.contains("://") { address } else { &format!("http://{address}") };
        if !is_loopback(url) {
            return Ok(None);
        }
        if let Some(token) = demo_socket::token_of(url.trim_end_matches('/')).await {
            return Ok(Some(token));
        }
        Ok(token_in(Path::new(USUAL_TOKEN)).ok())
    }
}

fn token_in(file: &Path) -> Result<Token, Failure> {
    let hint = format!("`--token-file` or {TOKEN_FILE} names the agent's `api.token`");
    let text = std::fs::read_to_string(file).map_err(|error| {
        let denied = error.kind() == io::ErrorKind::PermissionDenied;
        let failure = Failure::caller(format!("the token in `{}` cannot be read", file.display()));
        match denied {
            true => failure.because(error).hint("only its owner can: ask as that user, or as root"),
            false => failure.because(error).hint(hint.clone()),
        }
    })?;
    Token::new(&text).map_err(|error| {
        Failure::caller(format!("`{}` holds no token", file.display())).because(error).hint(hint)
    })
}

/// Does something with that agent.
pub(crate) fn with<F, T>(target: &AgentTarget, verb: impl FnOnce(Client) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    runtime.block_on(async { verb(target.client().await?).await })
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Unreachable { source, url } if is_denied(&*source) => {
                let failure = Self::caller(format!("the socket `{url}` is not open to this user"));
                failure.because(innermost(&*source)).hint(who_may(&url))
            }
            ClientError::Unreachable { source, .. } => Self::away(message)
                .because(innermost(&*source))
                .hint("`--agent URL` or CHEOPS_AGENT points to another; `cheops demo` starts one"),
            ClientError::BrokeOff { source, .. } => Self::away(message)
                .because(innermost(&*source))
                .hint("what was accepted goes on; ask again once the agent is back"),
            ClientError::TimedOut { .. } => {
                Self::away(message).hint("what was accepted goes on; ask again in a while")
            }
            ClientError::Refused(problem) => refused(message, *problem),
            ClientError::Broken { source, .. } => Self::caller(message)
                .because(source as Box<dyn Error>)
                .hint("is it the address of an agent's API, and of the same version?"),
            ClientError::Unreadable { source, .. } => Self::caller(message).because(source),
        }
    }
}

/// Whether the system refused.
fn is_denied(error: &(dyn Error + 'static)) -> bool {
    let mut chain = std::iter::successors(Some(error), |&error| error.source());
    chain.any(|error| {
        let error = error.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}

/// Who may use a socket, as its mode says.
fn who_may(address: &str) -> String {
    let path = Path::new(address.trim_start_matches("unix:"));
    let found = path.metadata().ok();
    let Some(found) = found else {
        let folder = path.parent().unwrap_or(path).display();
        return format!("nor is its folder `{folder}`: ask as the user of the agent, or as root");
    };
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let group = group_named(&groups, found.gid()).unwrap_or_else(|| found.gid().to_string());
    format!(
        "root may use it, the user with id {} and the group `{group}`: `usermod -aG {group} USER`, \
         and a new login, let another user in",
        found.uid()
    )
}

/// The name of a group, as `/etc/group` has it.
fn group_named(groups: &str, gid: u32) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

/// Of a long chain of wrappers, the one that says something.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> Box<dyn Error> {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string().into()
}

fn refused(message: String, problem: Problem) -> Failure {
    let failure = Failure::of(problem.fault(), message);
    match problem.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_called_by_their_names() {
        let groups = "root:x:0:\ncheops:x:990:alice,bob\nodd\n";
        assert_eq!(group_named(groups, 990).as_deref(), Some("cheops"));
        assert_eq!(group_named(groups, 991), None);
    }

    #[test]
    fn whose_fault_it_is_decides_the_exit_code() {
        for (status, want) in [(400, 2), (404, 2), (409, 2), (410, 2), (503, 3), (500, 1)] {
            let problem = Problem::new(status, "t", "d");
            let failure = Failure::from(ClientError::Refused(Box::new(problem)));
            assert_eq!(failure.exit_code(), want, "{status}");
        }
    }
}
