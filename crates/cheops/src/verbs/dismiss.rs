//! `cheops dismiss`: let an operation that failed be.

use cheops_api::Decision;
use clap::Args;

use super::settle::{self, OperatorWord};
use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
What it should have done stays undone where it failed; the resource is called `error` for it no more,
at any site. Who dismissed it, and when, stays in the log and the feed.

Examples:
  cheops dismiss counter paris-5f.7";

/// Let an operation that failed be
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The operation, as `cheops resource` names it
    #[arg(value_name = "OPERATION")]
    operation: String,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let decided = OperatorWord {
        id: &arguments.id,
        operation: &arguments.operation,
        decision: Decision::Dismiss,
        site: None,
        what: "is let be",
    };
    settle::tell(&decided, agent, output)
}
