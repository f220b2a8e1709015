//! Asks a program the same several times, each time with something else around it.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use cheops_agent::exec::{
    ContentStore, ExecSettings, Executor, ProgramSurroundings, RunToken, Saving, program_input,
};
use cheops_core::model::{BlobId, ProgramSaid, ProgramStep, ResourceId, SiteId};
use cheops_core::plan::SnapshotId;
use serde_json::Value;
use tempfile::TempDir;

use super::cases::Case;
use crate::failure::Failure;
use crate::output::VerbOutput;

/// What programs find in `CHEOPS_LOGIC`.
const NAME: &str = "check";
/// Changes the clock of what it runs, where it is installed.
const CLOCK: &str = "faketime";
const OTHER_TIME: &str = "2001-09-09 01:46:40";
/// So many entries of a folder are shown in the other one.
const MOST_LINKS: usize = 10_000;

/// What is different when a program is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variation {
    /// Nothing: as an agent asks.
    None,
    /// Nothing, once more.
    Repeated,
    /// The environment, the time zone and the working directory.
    Surroundings,
    /// How the question is written.
    Spelling,
    /// The clock.
    Clock,
}

impl Variation {
    /// How the answer was come by.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::None => "as an agent asks",
            Self::Repeated => "asked again",
            Self::Surroundings => "in another directory, environment and time zone",
            Self::Spelling => "with members in another order and white space",
            Self::Clock => "at another time",
        }
    }
}

/// What a program answered: steps, or why that is no answer.
pub(super) type CaseAnswer = Result<Vec<ProgramStep>, String>;

/// Runs a program.
pub(super) struct ProgramRunner<'a> {
    program: &'a str,
    limit: Duration,
    executor: Executor,
    /// The working directory under another name.
    elsewhere: TempDir,
    clock: Option<String>,
    /// Where the executor puts files; goes with it.
    _scratch: TempDir,
}

impl<'a> ProgramRunner<'a> {
    pub(super) fn new(program: &'a str, limit: Duration) -> Result<Self, Failure> {
        let cannot = |what: &str, error: Box<dyn std::error::Error>| {
            Failure::ours(format!("programs cannot be run: {what}")).because(error)
        };
        let scratch = tempfile::tempdir().map_err(|error| cannot("no folder", error.into()))?;
        let site = SiteId::new(NAME).map_err(|error| cannot("no site", error.into()))?;
        let run = RunToken::new(scratch.path()).map_err(|error| cannot("no name", error.into()))?;
        let settings = ExecSettings::new(site, run, scratch.path().join("files"));
        let executor = Executor::new(settings, NoContent)
            .map_err(|error| cannot("no executor", error.into()))?;
        let elsewhere =
            linked().map_err(|error| cannot("no other working directory", error.into()))?;
        let clock = is_installed(CLOCK)
            .then(|| format!("exec {CLOCK} {} /bin/sh -c {}", quoted(OTHER_TIME), quoted(program)));
        Ok(Self { program, limit, executor, elsewhere, clock, _scratch: scratch })
    }

    /// In which ways it is asked.
    pub(super) fn variations(&self) -> Vec<Variation> {
        use Variation::{Clock, None, Repeated, Spelling, Surroundings};
        let clock = self.clock.is_some().then_some(Clock);
        [None, Repeated, Surroundings, Spelling].into_iter().chain(clock).collect()
    }

    /// Ends whatever runs.
    pub(super) async fn stop(&self) {
        self.executor.stop().await;
    }

    /// Asks about all cases in all ways; gives the answers to each case, in the order of the ways.
    pub(super) async fn ask_all(
        &self,
        cases: &[Case],
        output: &mut VerbOutput,
    ) -> Vec<Vec<CaseAnswer>> {
        let variations = self.variations();
        let mut answers = vec![Vec::new(); cases.len()];
        for (round, variation) in variations.iter().enumerate() {
            for n in shuffled(cases.len(), round) {
                let (round, all) = (round + 1, variations.len());
                output.status(&format!("round {round} of {all}, case {}", n + 1));
                answers[n].push(self.ask(&cases[n], *variation).await);
            }
        }
        answers
    }

    async fn ask(&self, case: &Case, variation: Variation) -> CaseAnswer {
        let mut surroundings = ProgramSurroundings::of(NAME);
        let mut input = program_input(case.input.clone());
        let mut command = self.program;
        match variation {
            Variation::None | Variation::Repeated => {}
            Variation::Surroundings => {
                surroundings.directory = Some(self.elsewhere.path().to_owned());
                for (name, value) in [
                    ("TZ", "XXX-14"),
                    ("LC_ALL", "C"),
                    ("LANG", "tr_TR.UTF-8"),
                    ("HOME", "/nonexistent"),
                    ("USER", "somebody"),
                    ("HOSTNAME", "elsewhere"),
                    ("CHEOPS_LOGIC", "another"),
                ] {
                    surroundings.variables.insert(name.into(), value.into());
                }
            }
            Variation::Spelling => input = respelled(&case.input),
            Variation::Clock => command = self.clock.as_deref().unwrap_or(command),
        }
        let said = self.executor.ask_program(command, input, &surroundings, self.limit).await?;
        ProgramSaid::read(&said, &case.operations)
    }
}

/// The numbers of the cases in an order that is another one in each round, and the same in each check.
fn shuffled(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    match round {
        0 => {}
        1 => order.reverse(),
        _ => {
            // Far apart, so that each comes after others than before.
            order.sort_by_key(|n| (n * (round + 3) % 7, *n));
            order.rotate_left(count / 2);
        }
    }
    order
}

/// The same JSON with the members of objects the other way round, and white space.
fn respelled(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("\n {} : {}", Value::from(name.as_str()), respelled(value))
            };
            let members: Vec<String> = members.iter().rev().map(member).collect();
            format!("{{{} }}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(respelled).collect();
            format!("[ {} ]\n", items.join(" ,\t"))
        }
        other => other.to_string(),
    }
}

/// A folder with links to all that is in the working directory, so that a program is found there too.
fn linked() -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for entry in std::env::current_dir()?.read_dir()?.take(MOST_LINKS) {
        let entry = entry?;
        std::os::unix::fs::symlink(entry.path(), folder.path().join(entry.file_name()))?;
    }
    Ok(folder)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The text as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Programs have no files, and nothing is kept of them.
struct NoContent;

impl NoContent {
    fn none<T>() -> io::Result<T> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ContentStore for NoContent {
    fn copy_to(&self, _: &BlobId, _: &Path) -> io::Result<()> {
        Self::none()
    }

    fn open(&self, _: &BlobId) -> io::Result<Box<dyn Read + Send>> {
        Self::none()
    }

    fn save(&self, _: &ResourceId, _: SnapshotId) -> io::Result<Box<dyn Saving>> {
        Self::none()
    }

    fn saved(&self, _: &ResourceId, _: SnapshotId) -> io::Result<Box<dyn Read + Send>> {
        Self::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_all_cases_in_an_order_of_its_own() {
        let orders: Vec<_> = (0..5).map(|round| shuffled(20, round)).collect();
        for (round, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
            assert!(orders[..round].iter().all(|other| other != order), "{round}");
        }
    }

    #[test]
    fn a_question_in_another_spelling_is_the_same_question() {
        let text = r#"{"config":{},"operations":[{"after":[],"id":"a-1.1"},2],"state":"\"\n"}"#;
        let question: Value = serde_json::from_str(text).unwrap();
        let other = respelled(&question);
        assert!(other.find("state") < other.find("config"), "{other}");
        assert_eq!(serde_json::from_str::<Value>(&other).unwrap(), question);
    }
}
