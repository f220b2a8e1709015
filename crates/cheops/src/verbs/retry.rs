//! `cheops retry`: run again what failed at a site.

use cheops_api::Decision;
use clap::Args;

use super::settle::{self, OperatorWord};
use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
Of an operation that failed at some sites and not at others, it runs again at the site asked, or at
the one that `--site` names. One that failed everywhere counts nowhere: submit it again, or dismiss it.

Examples:
  cheops retry counter paris-5f.7
  cheops retry counter paris-5f.7 --site lyon";

/// Run an operation again that failed at a site
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The operation, as `cheops resource` names it
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Where it failed; at the agent's own site if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Say what would come of it there, and run nothing
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
        decision: Decision::Retry,
        site: arguments.site.as_deref(),
        dry_run: arguments.dry_run,
        what: "runs again",
    };
    settle::tell(&decided, agent, output)
}
