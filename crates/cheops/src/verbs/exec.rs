//! `cheops exec`: submit a shell operation.

use cheops_api::{Action, ShellAction};
use clap::Args;

use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::handing::Handing;
use crate::output::VerbOutput;
use crate::shell::{CommandArguments, on_disk, packed};

const AFTER_HELP: &str = "\
After `--`, one argument is a command line for the shell, as it stands; several are its words, and
each arrives as it was typed.

`{path}` in the command sends that local file along, and stands for its path at each site. In the
command, `__ID__` stands for the resource, if its id is of letters, digits and `._/@:+=,%-`; for
any other id say \"$CHEOPS_RESOURCE\" instead.

Examples:
  cheops exec --id counter --sites 'paris & lyon' --type set --profile redis \\
      -- redis-cli set x 29
  cheops exec --id counter --type inc -- redis-cli incrby x 13
  cheops exec --id notes --type append -- 'echo right >> /srv/notes'
  cheops exec --id web --sites 'paris & lyon' --type apply \\
      --profile kubernetes -- kubectl apply -f {deploy.yaml}

Exit codes:
  0  it happened at every site waited for
  1  it failed at a site, its result is unknown there, or it was overridden
  2  the command cannot be carried out as given
  3  the agent is out of reach, or a site did not reply in time";

/// Run a shell command on a resource, at every site that holds it
///
/// Replies are printed as they arrive, one line per site. Operations made at several sites at once
/// are resolved by the resource's matrix, the same way everywhere.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    handing: Handing,
    #[command(flatten)]
    command: CommandArguments,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let example = "give it after `--`, such as: cheops exec --id x --type set -- redis-cli set x 1";
    let command = arguments.command.required(example)?;
    let packed = packed(&command, on_disk);
    if let Some(name) = packed.doubtful.first() {
        // Every site would fail for want of it, and that would be on record for ever.
        return Err(Failure::caller(format!("`{{{name}}}` names no file here")).hint(
            "`{path}` sends that file along; where braces are meant, put a blank after `{`",
        ));
    }
    let action = Action::Shell(ShellAction { command: packed.command });
    arguments.handing.hand_in(agent, action, &packed.files, output)
}
