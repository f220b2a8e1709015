//! The way to an agent: one runtime, one client, and what its errors mean to whoever typed.

use std::error::Error;
use std::future::Future;

use cheops_api::{Client, ClientError, Problem};

use crate::failure::Failure;

/// Where an agent is if nobody says so.
pub(crate) const USUAL_ADDRESS: &str = "http://127.0.0.1:8079";

/// Does something with the agent at this address.
pub(crate) fn with<F, T>(address: &str, verb: impl FnOnce(Client) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let client = Client::new(address).map_err(|error| {
        Failure::caller(error.to_string())
            .hint(format!("`--agent` or CHEOPS_AGENT gives it, such as {USUAL_ADDRESS}"))
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    runtime.block_on(verb(client))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
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

/// Of a long chain of wrappers, the one that says something.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> Box<dyn Error> {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string().into()
}

/// Bad input, not now, or the agent's own fault: the status tells.
fn refused(message: String, problem: Problem) -> Failure {
    let failure = match problem.status {
        408 | 429 | 502 | 503 | 504 => Failure::away(message),
        400..500 => Failure::caller(message),
        _ => Failure::ours(message),
    };
    match problem.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_it_is_decides_the_exit_code() {
        for (status, want) in [(400, 2), (404, 2), (409, 2), (410, 2), (503, 3), (500, 1)] {
            let problem = Problem::new(status, "t", "d");
            let failure = Failure::from(ClientError::Refused(Box::new(problem)));
            assert_eq!(failure.exit_code(), want, "{status}");
        }
    }
}
