//! `cheops diff`: where the states of a resource's sites differ.

use std::time::Duration;

use cheops_api::{Resource, Show, StateAgreement, StateProof};
use clap::Args;

use super::show;
use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::handing::{check_resource, milliseconds};
use crate::look::{BAD, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, printable};
use crate::time::duration;

const AFTER_HELP: &str = "\
Each site reads the resource's state now, by the `Read` command of its config. Sites with the same
state share a block; where they differ, lines are compared with the first block.

Examples:
  cheops exec --id motd --sites 'paris & lyon' --type set --profile file \\
      --target /srv/motd.txt -- 'echo hello > /srv/motd.txt'
  cheops diff motd

Exit codes:
  0  all sites have the same state
  1  they differ, or a site could not read it, or they are too long to be compared
  2  the resource's config does not say how its state is read
  3  the agent is out of reach, or a site did not answer in time";

/// Compare a resource's state at all its sites
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let id = &arguments.id;
    check_resource(id)?;
    let resource = agent::with(agent, async |client| Ok(client.resource(id).await?))?;
    let Some(command) = read_command(&resource) else {
        return Err(Failure::caller(format!("`{id}` does not say how its state is read")).hint(
            "submit the next operation with `--profile file --target PATH`, or a config with `State`",
        ));
    };
    let show = Show { command, sites: None, timeout_ms: milliseconds(arguments.timeout) };
    let answer = show::ask(id, &show, agent, output)?;
    let differ = show::differ(&answer);
    let proof = resource.proof.as_ref();
    if output.format == Format::Table
        && let Some(proof) = proof
    {
        output.aside(told_beside(proof, differ, output.width));
    }
    // Of states of which only the beginning is shown, what the sites told each other says more.
    let is_verified = proof.is_some_and(|proof| proof.agreement == StateAgreement::Verified);
    let is_unknown = show::is_cut_off(&answer) && !is_verified;
    match show::verdict(&answer) {
        Verdict::Fine if differ || is_unknown => Ok(Verdict::Problems),
        verdict => Ok(verdict),
    }
}

/// What the sites told each other before, beside what was read now.
fn told_beside(proof: &StateProof, differ: bool, width: usize) -> String {
    match (proof.agreement, &proof.since) {
        (StateAgreement::Verified, Some(since)) if differ => {
            let was = format!("all sites read the same state at {since}; some changed it since");
            styled(WARN, hanging("", &was, width))
        }
        _ => told(proof, width),
    }
}

fn read_command(resource: &Resource) -> Option<String> {
    resource.config.pointer("/State/Read")?.as_str().map(str::to_owned)
}

/// What the sites told each other of their states, before this was asked.
pub(super) fn told(proof: &StateProof, width: usize) -> String {
    let styled = |style, text: &str| styled(style, hanging("", text, width));
    let told = match (proof.agreement, &proof.since, &proof.why_not) {
        (StateAgreement::Verified, Some(since), _) => {
            styled(GOOD, &format!("verified: all sites read the same state, the last at {since}"))
        }
        (StateAgreement::Differs, Some(since), _) => {
            styled(BAD, &format!("the sites' states differ, as found at {since}"))
        }
        (_, _, Some(why)) => {
            styled(WARN, &format!("not verified: what was read proves nothing: {}", printable(why)))
        }
        _ => styled(WARN, "not verified yet: not all sites have said what state they have"),
    };
    match &proof.logic_failed {
        None => told,
        Some(why) => format!("{told}\n{}", logic_told(why, width)),
    }
}

/// That a program was of no use.
pub(super) fn logic_told(why: &str, width: usize) -> String {
    styled(WARN, hanging("", &format!("run in the total order: {}", printable(why)), width))
}
