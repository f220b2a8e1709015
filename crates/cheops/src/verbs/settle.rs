//! `cheops settle`: the operator's word on an operation in doubt.

use cheops_api::{Decision, DryRun, TriedDecision};
use cheops_core::model::OperationId;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::agent::{self, AgentTarget};
use crate::dry_run;
use crate::failure::{Failure, Verdict};
use crate::handing::check_resource;
use crate::look::{ACCENT, styled};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
The result of an operation is unknown at a site that stopped while it ran: it may or may not have
happened.
Only that site can know; name it with `--site` if it is not the agent's own.

Examples:
  cheops settle counter paris-5f.7 skip    it happened, or should not: go on
  cheops settle counter paris-5f.7 rerun   it did not, or can happen twice
  cheops show --id counter -- redis-cli get x";

/// Say what became of an operation whose result is unknown at a site
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The operation, as `cheops resource` names it
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// What to make of it
    #[arg(value_name = "DECISION")]
    decision: Word,
    /// Where its result is unknown; at the agent's own site if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Say what would come of it there, and decide nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Word {
    /// go on as if it had happened
    Skip,
    /// run it again
    Rerun,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let Arguments { id, operation, decision, site, dry_run } = arguments;
    let (site, dry_run) = (site.as_deref(), *dry_run);
    let (decision, what) = match decision {
        Word::Skip => (Decision::Skip, "is skipped"),
        Word::Rerun => (Decision::Rerun, "runs again"),
    };
    tell(&OperatorWord { id, operation, decision, site, dry_run, what }, agent, output)
}

/// What is decided about an operation, and how that is said.
pub(super) struct OperatorWord<'a> {
    pub(super) id: &'a str,
    pub(super) operation: &'a str,
    pub(super) decision: Decision,
    pub(super) site: Option<&'a str>,
    pub(super) dry_run: bool,
    pub(super) what: &'a str,
}

/// Tells the agent.
pub(super) fn tell(
    decided: &OperatorWord<'_>,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let OperatorWord { id, operation, decision, site, dry_run, what } = *decided;
    check_resource(id)?;
    operation.parse::<OperationId>().map_err(|error| {
        Failure::caller(error.to_string()).hint(format!("`cheops resource {id}` lists them"))
    })?;
    if dry_run {
        let (operation, site) = (operation.to_owned(), site.map(str::to_owned));
        let tried = DryRun::Decide(TriedDecision { operation, decision, site });
        return dry_run::ask(id, &tried, agent, output);
    }
    agent::with(agent, async |client| Ok(client.settle(id, operation, decision, site).await?))?;
    match output.format {
        Format::Json => output.json(&json!({ "ok": true }))?,
        Format::Table => output.line(format!("{} {what}", styled(ACCENT, operation)))?,
    }
    Ok(Verdict::Fine)
}
