//! `cheops matrix prove`: does a matrix tell the truth about its commands?
//!
//! What to try and what follows from it is decided in `cheops_core::config::prove`; here it is tried.

mod runner;
mod states;
mod told;

use std::path::PathBuf;
use std::time::Duration;

use cheops_core::config::prove::{
    JudgedClaim, TrialResults, TrialSamples, about_target, judge, suggestion, trials,
};
use cheops_core::config::{Config, StateCommands};
use cheops_core::model::ResourceId;
use clap::Args;

use self::runner::{TrialRunner, TrialsStopped};
use self::told::MatrixProof;
use super::document::{self, NamedText};
use super::{check, profiles};
use crate::failure::{Failure, Verdict};
use crate::interrupt::EndSignals;
use crate::output::{Format, VerbOutput};
use crate::text::counted;
use crate::time::duration;

const AFTER_HELP: &str = r#"A matrix is a claim about commands. This tries it on the application itself: every two
samples in both orders, each twice, each again after it was ended half-way. Every trial
begins with the same state, by the config's `State: {Read, Write}`, and ends with `Read`.
In the end the state is as it was, also after Ctrl-C.

Use a target that nobody else works on meanwhile. Commands run here and now, as an agent
would run them, one at a time.

Samples, in YAML or JSON; `$target` stands for the target:
  Samples:
    set: ['echo a > "$target"', 'echo b > "$target"']
    add: ['echo c >> "$target"', 'echo d >> "$target"']
  Start: ['rm -f "$target"', 'echo old > "$target"']

`Start`, which may be left out, has a command for each state to begin with. Two samples of a
type that differ say more than one.

Examples:
  cheops matrix prove notes.json --target /tmp/notes --samples samples.yaml
  cheops matrix prove --profile redis --target trial --samples samples.yaml
  cheops matrix prove notes.json --target /tmp/notes --samples samples.yaml \
      --suggest > better.json

Exit codes:
  0  no claim was found false
  1  a claim is false, or a state could not be read or written
  2  the command cannot be carried out as given"#;

/// Try a matrix on the application: is what it says of the commands true?
///
/// Prints which claims hold, which are false, with the two states side by side, and what would be
/// true instead.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The matrix, in JSON or YAML; `-` reads standard input
    #[arg(value_name = "MATRIX", required_unless_present = "profile")]
    file: Option<PathBuf>,
    /// A built-in profile in place of a file
    #[arg(long, value_name = "NAME", conflicts_with = "file", value_parser = profiles::names())]
    profile: Option<String>,
    /// What the application calls the resource to try on, such as a file or a key
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Operations to try, in JSON or YAML
    #[arg(long, value_name = "FILE")]
    samples: PathBuf,
    /// Print a matrix that is true of the samples; what was found goes to standard error
    #[arg(long)]
    suggest: bool,
    /// What `__ID__` stands for in commands
    #[arg(long, value_name = "ID", default_value = "prove")]
    id: String,
    /// How long one command may take
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let document = match (&arguments.file, &arguments.profile) {
        (Some(file), _) => document::read(file)?,
        (None, Some(name)) => {
            NamedText { name: format!("profile {name}"), text: format!("Profile: {name}") }
        }
        (None, None) => return Err(Failure::caller("there is no matrix to prove")),
    };
    let resource = ResourceId::new(&arguments.id).map_err(|error| {
        Failure::caller(error.to_string()).hint("`--id` is what `__ID__` stands for")
    })?;
    let target = arguments.target.as_deref();
    // What is suggested is about no target, unless the document itself names one.
    let said = check::usable(&document, None, output)?;
    let config = check::usable(&document, target, output)?;
    let Some(state) = config.state.clone() else {
        return Err(no_state(&document, target));
    };
    let samples = samples(arguments, output)?;
    let outcome = tried(&config, &state, &samples, resource, arguments, output)?;
    let Tried { results, starts } = outcome;
    let claims = judge(&config, &samples, &results);
    let proof = MatrixProof {
        source: &document.name,
        target,
        config: &config,
        samples: &samples,
        starts: &starts,
        trials: results.len(),
        claims: &claims,
        better: &suggestion(&config, &samples, &results),
    };
    let better = suggestion(&said, &samples, &results);
    match (output.format, arguments.suggest) {
        (Format::Json, _) => output.json(&proof.as_json(&better)?)?,
        (Format::Table, true) => {
            proof.lines(output.width).into_iter().for_each(|line| output.aside(line));
            output.line(better.to_json())?;
        }
        (Format::Table, false) => {
            for line in proof.lines(output.width) {
                output.line(line)?;
            }
        }
    }
    let is_false = |judged: &JudgedClaim| judged.verdict.is_false();
    Ok(if claims.iter().any(is_false) { Verdict::Problems } else { Verdict::Fine })
}

/// What to try, with the target in the place of `$target`.
fn samples(arguments: &Arguments, output: &mut VerbOutput) -> Result<TrialSamples, Failure> {
    let document = document::read(&arguments.samples)?;
    TrialSamples::parse(&document.text).map_err(|errors| {
        check::refused(&document, errors, output)
            .hint("`cheops matrix prove --help` shows what samples look like")
    })
}

fn no_state(document: &NamedText, target: Option<&str>) -> Failure {
    let failure = Failure::caller(format!(
        "`{}` does not say how the state is read and written, so nothing can be compared",
        document.name
    ));
    match target {
        None => failure.hint("the built-in profiles know, given a `--target`"),
        Some(_) => failure.hint("add `State: {Read: …, Write: …}` to the matrix"),
    }
}

/// What was tried.
struct Tried {
    results: TrialResults,
    /// The states that trials began with.
    starts: Vec<states::KeptTrialState>,
}

/// Tries everything, and puts the state back, whatever happens.
fn tried(
    config: &Config,
    state: &StateCommands,
    samples: &TrialSamples,
    resource: ResourceId,
    arguments: &Arguments,
    output: &mut VerbOutput,
) -> Result<Tried, Failure> {
    let target = arguments.target.as_deref();
    let command = |text: &str| match target {
        Some(target) => about_target(text, target),
        None => text.to_owned(),
    };
    let wanted = trials(config, samples);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    runtime.block_on(async {
        let mut interrupted = EndSignals::listen()?;
        let mut runner =
            TrialRunner::new(config, state, samples, resource, arguments.timeout, &command)?;
        let before = tokio::select! {
            before = runner.read() => before.map_err(|stopped| stopped.failure(None))?,
            () = interrupted.come() => {
                runner.stop().await;
                return Err(TrialsStopped::Interrupted.failure(None));
            }
        };
        let aside = states::Aside::keep(&before)?;
        let done = tokio::select! {
            done = runner.try_all(&wanted, &before, output) => done,
            () = interrupted.come() => Err(TrialsStopped::Interrupted),
        };
        output.status("putting the state back …");
        let put_back = runner.put_back(&before).await;
        runner.stop().await;
        let put_back = put_back.map_err(|stopped| aside.lost(stopped));
        match (done, put_back) {
            (Ok((results, starts)), Ok(())) => Ok(Tried { results, starts }),
            (Err(stopped), Ok(())) => Err(stopped.failure(Some("the state before is put back"))),
            (_, Err(lost)) => Err(lost),
        }
    })
}

/// How many of what, for the first line.
fn counts(samples: &TrialSamples, starts: usize, trials: usize) -> String {
    let kinds: std::collections::BTreeSet<_> = samples.samples.iter().map(|it| &it.kind).collect();
    format!(
        "{} of {}, from {}: {}",
        counted(samples.samples.len(), "sample"),
        counted(kinds.len(), "type"),
        counted(starts, "state"),
        counted(trials, "trial"),
    )
}
