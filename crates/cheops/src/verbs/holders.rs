//! `cheops extend`, `shrink` and `move`: which sites hold a resource.

use std::time::{Duration, Instant};

use cheops_api::{ChangeHolders, Client, Resource, Standing};
use clap::Args;
use serde_json::json;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::handing::check_resource;
use crate::look::{BOLD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{listed, printable};
use crate::time::duration;

const EXTEND_HELP: &str = "\
A site that is added is told everything and runs it; it counts as in sync only then. Operations made
meanwhile reach it as they reach the others.

Examples:
  cheops extend counter --to nice
  cheops extend counter --to nice --to lille --timeout 5m
  cheops extend counter --to nice --dry-run

Exit codes:
  0  the sites added are in sync
  1  one of them is in trouble
  2  it cannot be so, or the command is wrong
  3  the agent is out of reach, or it took longer than --timeout; it goes on";

const SHRINK_HELP: &str = "\
A site that is removed is waited for until all others know all that it knew. It runs nothing more of the
resource, and keeps what its application holds and the history it knew.

Examples:
  cheops shrink counter --from lyon
  cheops shrink counter --from lyon --dry-run

Exit codes: as of `cheops extend`; 0 when the site has left";

const MOVE_HELP: &str = "\
Extends it to one site and shrinks it from another: the one that comes is told everything by those that
stay, and by the one that goes, which is waited for.

Examples:
  cheops move counter --from lyon --to nice

Exit codes: as of `cheops extend`";

/// Whether to do it, and how long to wait.
#[derive(Debug, Args)]
struct Patience {
    /// Say where it would live, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// How long to wait until the sites are in sync, or have left; it goes on after that
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

/// Have other sites hold a resource, too
#[derive(Debug, Args)]
#[command(after_help = EXTEND_HELP)]
pub(crate) struct ExtendArguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The site that is to hold it; may be given several times
    #[arg(long, value_name = "SITE", required = true)]
    to: Vec<String>,
    #[command(flatten)]
    patience: Patience,
}

/// Have sites hold a resource no more
#[derive(Debug, Args)]
#[command(after_help = SHRINK_HELP)]
pub(crate) struct ShrinkArguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The site that is to hold it no more; may be given several times
    #[arg(long, value_name = "SITE", required = true)]
    from: Vec<String>,
    #[command(flatten)]
    patience: Patience,
}

/// Have one site hold a resource in the place of another
#[derive(Debug, Args)]
#[command(after_help = MOVE_HELP)]
pub(crate) struct MoveArguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// The site that is to hold it no more
    #[arg(long, value_name = "SITE")]
    from: String,
    /// The site that is to hold it
    #[arg(long, value_name = "SITE")]
    to: String,
    #[command(flatten)]
    patience: Patience,
}

pub(crate) fn extend(
    arguments: &ExtendArguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let ExtendArguments { id, to, patience } = arguments;
    change(id, (to.clone(), Vec::new()), patience, agent, output)
}

pub(crate) fn shrink(
    arguments: &ShrinkArguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let ShrinkArguments { id, from, patience } = arguments;
    change(id, (Vec::new(), from.clone()), patience, agent, output)
}

pub(crate) fn move_to(
    arguments: &MoveArguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let MoveArguments { id, from, to, patience } = arguments;
    change(id, (vec![to.clone()], vec![from.clone()]), patience, agent, output)
}

fn change(
    id: &str,
    (add, remove): (Vec<String>, Vec<String>),
    patience: &Patience,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    check_resource(id)?;
    let asked = ChangeHolders { add, remove, dry_run: patience.dry_run };
    let until = Instant::now() + patience.timeout;
    agent::with(agent, async |client| {
        let then = client.change_holders(id, &asked).await?;
        let verb = if asked.dry_run { "would live" } else { "lives" };
        match output.format {
            Format::Json if asked.dry_run => output.json(&then)?,
            Format::Json => {}
            Format::Table => {
                let sites = listed(&then.sites);
                output.line(format!("{} {verb} at {sites}", styled(BOLD, printable(id))))?;
            }
        }
        if asked.dry_run {
            return Ok(Verdict::Fine);
        }
        wait(&client, id, &asked, until, output).await
    })
}

/// Where the change is.
#[derive(Debug, PartialEq, Eq)]
enum MoveStage {
    Done,
    InTrouble(String),
    /// These are waited for.
    Waits(Vec<String>),
}

fn stage(resource: &Resource, asked: &ChangeHolders) -> MoveStage {
    let added = resource.standings.iter().filter(|at| asked.add.contains(&at.site));
    let mut waits = Vec::new();
    for at in added {
        match at.standing {
            Standing::InSync => {}
            Standing::Failed | Standing::InDoubt | Standing::Diverged => {
                let why = at.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                return MoveStage::InTrouble(format!("{} is in trouble{why}", at.site));
            }
            Standing::Running | Standing::Waiting => waits.push(format!("{} to get it", at.site)),
            Standing::Unknown => waits.push(format!("{}, which is not connected", at.site)),
        }
    }
    let leaving = resource.leaving.iter().filter(|site| asked.remove.contains(site));
    waits.extend(leaving.map(|site| format!("{site} to leave")));
    if waits.is_empty() { MoveStage::Done } else { MoveStage::Waits(waits) }
}

/// Tells how it goes on, until it is done or takes too long.
async fn wait(
    client: &Client,
    id: &str,
    asked: &ChangeHolders,
    until: Instant,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    const LOOK_AGAIN: Duration = Duration::from_millis(250);
    let mut said = Vec::new();
    loop {
        let resource = client.resource(id).await?;
        let stage = stage(&resource, asked);
        let is_late = Instant::now() >= until;
        if let MoveStage::Waits(waits) = &stage {
            if *waits != said && output.format == Format::Table {
                output.line(format!("waiting for {}", printable(&waits.join(", "))))?;
                said.clone_from(waits);
            }
            if !is_late {
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
        }
        return match stage {
            MoveStage::Done => {
                match output.format {
                    Format::Json => output.json(&json!({ "sites": resource.summary.sites }))?,
                    Format::Table => output.line("done".to_owned())?,
                }
                Ok(Verdict::Fine)
            }
            MoveStage::InTrouble(what) => {
                output.line(styled(WARN, printable(&what)))?;
                Ok(Verdict::Problems)
            }
            MoveStage::Waits(_) => {
                output.aside("it goes on; `cheops resource` tells how");
                Ok(Verdict::Missing)
            }
        };
    }
}
