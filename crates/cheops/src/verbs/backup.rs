//! `cheops backup`: a copy of a site's data directory, while it goes on.

use std::path::PathBuf;

use cheops_api::BackupEvent;
use clap::Args;
use serde_json::json;

use crate::agent;
use crate::failure::{Failure, Verdict};
use crate::output::{Format, VerbOutput};

const AFTER_HELP: &str = "\
The agent makes the copy, on its own machine: its log as it is at one moment, the files of
operations and the saved states of the application. It is for its owner alone. The identity of the
site is not in it, nor is the application.

To start from it, stop the site's agent and start one with the copy as its `data_dir`. It goes on
under the site's name in a new life: what the site did after the copy was made comes back from the
other sites. Never run both at once.

Examples:
  cheops backup /var/backups/cheops/monday
  CHEOPS_DATA_DIR=/var/backups/cheops/monday cheops agent --config paris.toml

Exit codes:
  0  the copy is whole
  1  there is none: it could not be made
  2  the command cannot be carried out as given
  3  the agent is out of reach";

/// Copy the data directory of the agent's site, while it runs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A folder on the agent's machine that is new or empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &agent::AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let dir = std::path::absolute(&arguments.dir).map_err(|error| {
        Failure::caller(format!("`{}` is no path", arguments.dir.display())).because(error)
    })?;
    let Some(dir) = dir.to_str() else {
        return Err(Failure::caller("the folder's name is not text"));
    };
    agent::with(agent, async |client| {
        let mut events = client.backup(dir).await?;
        while let Some(event) = events.next().await? {
            match event {
                BackupEvent::Far { doing, done, of } => {
                    output.aside(format!("{doing}: {done} of {of}"));
                }
                BackupEvent::Done { files, missing, snapshots, bytes } => {
                    match output.format {
                        Format::Json => output.json(&json!({
                            "dir": dir,
                            "files": files,
                            "missing": missing,
                            "snapshots": snapshots,
                            "bytes": bytes,
                        }))?,
                        Format::Table => output.line(format!(
                            "a copy in `{dir}`: {bytes} bytes, {files} files, {snapshots} saved states"
                        ))?,
                    }
                    if missing > 0 {
                        output.aside(format!(
                            "{missing} files were still on their way to this site; the copy gets \
                             them from the others"
                        ));
                    }
                    return Ok(Verdict::Fine);
                }
                BackupEvent::Failed { why, hint } => {
                    let failure = Failure::ours(format!("no copy was made: {why}"));
                    return Err(match hint {
                        Some(hint) => failure.hint(hint),
                        None => failure,
                    });
                }
            }
        }
        Err(Failure::away("the agent stopped before the copy was whole"))
    })
}
