//! `cheops delete`: end a resource everywhere.

use std::time::Instant;

use cheops_api::{Delete, DryRun};
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::dry_run;
use crate::failure::{Failure, Verdict};
use crate::following::follow;
use crate::handing::{WaitSettings, check_resource};
use crate::output::VerbOutput;
use crate::shell::{CommandArguments, on_disk, packed};
use crate::text::{listed, printable};

const AFTER_HELP: &str = "\
Deleting is an operation like others, except that it wins over every concurrent one. The command, if
one is given, removes the thing in the application and runs at every site.

Examples:
  cheops delete counter -- redis-cli del x
  cheops delete notes --yes -- rm -f /srv/notes

Exit codes:
  0  it happened at every site waited for
  1  a site failed, or the answer was no
  2  the command cannot be carried out as given
  3  the agent is out of reach, or a site did not reply in time";

/// Delete a resource at every site that holds it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Say what would come of it, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    waiting: WaitSettings,
    #[command(flatten)]
    command: CommandArguments,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let Arguments { id, waiting, .. } = arguments;
    check_resource(id)?;
    let command = arguments.command.line()?;
    if command.as_deref().is_some_and(|line| !packed(line, on_disk).files.is_empty()) {
        return Err(Failure::caller("no file can come along with a deletion")
            .hint("submit the file with `cheops exec` first, or write the command without it"));
    }
    if arguments.dry_run {
        let delete = Delete { command, wait: waiting.wait, timeout_ms: waiting.timeout_ms() };
        return dry_run::ask(id, &DryRun::Delete(delete), agent, output);
    }
    if !arguments.yes && !output.can_ask() {
        return Err(Failure::caller("nobody is there to ask whether to delete")
            .hint("`--yes` deletes without asking"));
    }
    let delete = Delete { command, wait: waiting.wait, timeout_ms: waiting.timeout_ms() };
    agent::with(agent, async |client| {
        if !arguments.yes {
            let resource = client.resource(id).await?;
            let sites = listed(&resource.summary.sites);
            let question = format!("delete `{}` on {sites}? [y/N]", printable(id));
            let answer = output.ask(&question)?;
            if !matches!(answer.to_lowercase().as_str(), "y" | "yes") {
                output.aside("nothing was deleted");
                return Ok(Verdict::Problems);
            }
        }
        let started = Instant::now();
        let events = client.delete(id, &delete).await?;
        follow(events, delete.wait, started, output).await
    })
}
