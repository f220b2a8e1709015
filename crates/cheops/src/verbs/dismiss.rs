//! `cheops dismiss`: let an operation that failed be.

use cheops_api::Decision;
use clap::Args;

use super::settle::{self, OperatorWord};
use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Nothing is run: where it failed, things stay as they are. The resource is not `failed` for it any
more, at any site. Who dismissed it, and when, stays in the log and the feed.

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
    /// Say what would come of it, and dismiss nothing
    #[arg(long)]
    dry_run: bool,
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
        dry_run: arguments.dry_run,
        what: "is let be",
    };
    settle::tell(&decided, agent, output)
}
