//! The site's programs that decide about operations which were made concurrently (`logic:exec:NAME`).
//!
//! A program is to be a function of its input alone. So it finds nothing else that differs between sites
//! by accident: its input is one text for one question, and of the agent's environment it has `PATH`
//! alone. That it does not look at the clock, or at files, is up to its author; `cheops logic check` tries.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use cheops_core::engine::{Job, Task};
use cheops_core::model::{Fingerprint, Outcome, Output};
use serde_json::Value;

use super::ask::CommandRequest;
use super::running::UnderWay;
use super::shell::{CommandEnding, ShellScript};
use super::start_failure::StartFailure;
use super::streams::{Input, Prints};
use super::{Executor, ExecutorState, for_good};

/// How long a program may take: a resource stands still meanwhile.
pub const PROGRAM_LIMIT: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes: what is told of it has to fit beside a reply.
const LONGEST_ANSWER: usize = 64 * 1024;
/// The longest state that is put into a question, in bytes, as the longest document that is merged.
const LONGEST_STATE: usize = 2 * 1024 * 1024;
/// Of what a program that failed said, its end: so many characters.
const MOST_SHOWN: usize = 400;

/// What a program finds around it, beside its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSurroundings {
    /// All of its environment, but for the variable by which what outlives it is found.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where it runs, if not where commands do.
    pub directory: Option<PathBuf>,
}

impl ProgramSurroundings {
    /// Those that each agent gives a program of that name: where programs are, a sorting order and a time
    /// zone that are the same everywhere, and the name. Without `HOME`, which belongs to whoever runs the
    /// agent.
    pub fn of(name: &str) -> Self {
        let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
        let same = [("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("CHEOPS_LOGIC", name)];
        let same = same.map(|(name, value)| (name.into(), value.into()));
        Self { variables: path.into_iter().chain(same).collect(), directory: None }
    }
}

/// A question as a program reads it: JSON with the members of each object sorted and no white space, so
/// that equal questions are equal bytes at all sites.
pub fn program_input(mut question: Value) -> String {
    question.sort_all_objects();
    question.to_string()
}

impl Executor {
    /// Runs a program that decides, and gives what it printed.
    ///
    /// # Errors
    ///
    /// Why it gave no answer, in words for people.
    pub async fn ask_program(
        &self,
        command: &str,
        input: String,
        surroundings: &ProgramSurroundings,
        limit: Duration,
    ) -> Result<String, String> {
        let stopping = || Err("it was ended".to_owned());
        let Some(mut under_way) = self.inner.running.enter() else { return stopping() };
        let said = self.inner.program(command, input, surroundings, limit, &mut under_way).await;
        self.inner.sweep_later();
        said.unwrap_or_else(stopping)
    }
}

impl ExecutorState {
    /// Asks the program that a job names; `None` if the agent stops, or the job is another one.
    ///
    /// What comes back is a text in two parts: the fingerprint of what the program was given, or `-`
    /// where it was not asked, on a line of its own; and what it printed, with the code 0, or else why
    /// there is no answer, with another one. The engine reads exactly that.
    pub(super) async fn ask(&self, job: &Job, under_way: &mut UnderWay) -> Option<Outcome> {
        let Task::Ask { program, question, read } = &job.task else { return None };
        let not_asked = |why: String| Outcome::failure(format!("-\n{why}"));
        let Some(command) = self.programs.get(program) else {
            let missing = format!(
                "this site has no program `{program}`; name it under `[logic]` in the config of its \
                 agent, and start that again"
            );
            return Some(not_asked(missing));
        };
        let input = match self.state(job, read, under_way).await? {
            Ok(state) => question_with(question, state),
            Err(why) => Err(why),
        };
        let input = match input {
            Ok(input) => input,
            Err(why) => return Some(not_asked(why)),
        };
        let fingerprint = Fingerprint::of(input.as_bytes());
        let limit = PROGRAM_LIMIT.min(self.time_limit);
        let surroundings = ProgramSurroundings::of(program);
        let said = self.program(command, input, &surroundings, limit, under_way).await?;
        Some(match said {
            Ok(text) => {
                let output = Output::whole(format!("{fingerprint}\n{text}"));
                Outcome::Exited { code: 0, output }
            }
            Err(why) => Outcome::failure(format!("{fingerprint}\n{why}")),
        })
    }

    /// The state before the operations, as it stands in a question.
    async fn state(
        &self,
        job: &Job,
        read: &str,
        under_way: &mut UnderWay,
    ) -> Option<Result<Value, String>> {
        let prints = Prints::JsonText(LONGEST_STATE);
        let ask = CommandRequest { prints, ..CommandRequest::new(read, self.time_limit) };
        let outcome = self.command(Some(&job.resource), ask, under_way).await?;
        let failed = |why: &str| Err(format!("the state could not be read: {}", shown(why)));
        Some(match for_good(outcome) {
            Outcome::Exited { code: 0, output } => serde_json::from_str(&output.text)
                .or_else(|error| failed(&format!("it cannot be put into a question: {error}"))),
            Outcome::TimedOut { limit_ms } => failed(&format!("it took more than {limit_ms} ms")),
            other => failed(other.text()),
        })
    }

    /// Runs a program; `None` if the agent stops.
    async fn program(
        &self,
        command: &str,
        input: String,
        surroundings: &ProgramSurroundings,
        limit: Duration,
        under_way: &mut UnderWay,
    ) -> Option<Result<String, String>> {
        let script = ShellScript {
            text: command.into(),
            variables: Vec::new(),
            surroundings: Some(surroundings),
            input: Input::Bytes(Bytes::from(input)),
            prints: Prints::Answer(LONGEST_ANSWER),
            limit,
        };
        Some(match self.shell.run(script, under_way).await {
            CommandEnding::Exited { code: 0, output } => Ok(output.text),
            CommandEnding::Exited { code, output } => Err(match shown(&output.text) {
                said if said.is_empty() => format!("it ended with exit code {code}"),
                said => format!("it ended with exit code {code}: {said}"),
            }),
            CommandEnding::TimedOut => Err(format!("it did not end within {limit:?}")),
            CommandEnding::StartFailure(StartFailure::ForGood(why) | StartFailure::ForNow(why))
            | CommandEnding::Unseen(why)
            | CommandEnding::Broken(why) => Err(why),
            CommandEnding::Stopped => return None,
        })
    }
}

/// What a program is given.
fn question_with(question: &str, state: Value) -> Result<String, String> {
    match serde_json::from_str(question) {
        Ok(Value::Object(mut question)) => {
            question.insert("state".to_owned(), state);
            Ok(program_input(Value::Object(question)))
        }
        Ok(_) => Err("the question is no object".to_owned()),
        Err(error) => Err(format!("the question is not JSON: {error}")),
    }
}

/// The end of what was said, where errors stand.
fn shown(text: &str) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(MOST_SHOWN);
    text.chars().skip(skipped).collect()
}
