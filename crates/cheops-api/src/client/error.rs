//! What can go wrong between a client and an agent.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::types::Problem;

/// Where something comes from, whatever it is.
pub(super) type Cause = Box<dyn Error + Send + Sync>;

/// The address of an agent is none.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` is not the address of an agent: {rule}")]
pub struct BadAddress {
    address: String,
    rule: String,
}

impl BadAddress {
    pub(super) fn new(address: &str, rule: &str) -> Self {
        Self { address: address.chars().take(200).collect(), rule: rule.to_owned() }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there, or the connection broke off.
    #[error("no agent answers at `{url}`")]
    Unreachable {
        /// Where.
        url: String,
        /// What went wrong.
        source: Cause,
    },
    /// The agent was there and went away before all was said.
    #[error("the connection to `{url}` broke off")]
    BrokeOff {
        /// Where.
        url: String,
        /// What went wrong.
        source: Cause,
    },
    /// Nothing came for too long.
    #[error("the agent at `{url}` says nothing for {} s", limit.as_secs())]
    TimedOut {
        /// Where.
        url: String,
        /// How long.
        limit: Duration,
    },
    /// The agent answered that it cannot.
    #[error("{}", if .0.detail.is_empty() { &.0.title } else { &.0.detail })]
    Refused(Box<Problem>),
    /// Something answered that makes no sense: probably no agent.
    #[error("what `{url}` answers is not what an agent says")]
    Broken {
        /// Where.
        url: String,
        /// What is wrong with it.
        source: Cause,
    },
    /// A file to send cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
