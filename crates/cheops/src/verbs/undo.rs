//! `cheops undo`: take an operation out, everywhere.

use cheops_api::Decision;
use clap::Args;

use super::settle::{self, OperatorWord};
use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;

const AFTER_HELP: &str = "\
It does not count any more, at any site, and what it had overridden counts again. Each site takes it out of
what it ran: by the `Undo` command of its type, by running again from an operation that overwrites, or by
`State` of the resource's config. It is refused where that cannot be done, with the reason: also if it
replaced all before it and no site needs that any more. `cheops explain` names what undid it; undo that to
bring it back.

Examples:
  cheops undo counter paris-5f.7
  cheops explain counter
  cheops undo counter paris-5f.9     brings back what paris-5f.9 undid";

/// Take an operation out, at all sites; or bring back what was taken out
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The operation, or what undid one, as `cheops resource` and `cheops explain` name it
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Ask this site; the agent's own if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Say what would come of it, and which site could not take it back, and undo nothing
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
        decision: Decision::Undo,
        site: arguments.site.as_deref(),
        dry_run: arguments.dry_run,
        what: "is undone; each site takes it out of what it ran",
    };
    settle::tell(&decided, agent, output)
}
