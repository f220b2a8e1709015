//! `cheops logic check`: is a program that decides a function of its input alone?

use std::path::PathBuf;
use std::time::Duration;

use cheops_agent::exec::PROGRAM_LIMIT;
use clap::Args;

use super::cases::{self, Case};
use super::runner::{CaseAnswer, ProgramRunner, Variation};
use super::told::LogicReport;
use crate::failure::{Failure, Verdict};
use crate::interrupt::EndSignals;
use crate::output::{Format, VerbOutput};
use crate::time::duration;

const AFTER_HELP: &str = r#"Each site asks its own program, so two answers to one question are a disagreement. This asks
each question several times: again, in another directory, environment and time zone, with the
members of objects in another order, and at another time if `faketime` is installed. The order
of the cases is another one each time.

PROGRAM is what stands under `[logic]` in the config of an agent: a shell command, here run in
the working directory.

Cases, in JSON, each as a program gets it; with `expect`, what it is to answer:
  [{"name": "added and removed at once",
    "operations": [
      {"id": "paris-1f.7", "site": "paris", "type": "add",
       "does": {"command": "echo milk >> list"}, "after": []},
      {"id": "lyon-2e.3", "site": "lyon", "type": "remove",
       "does": {"command": "sed -i /milk/d list"}, "after": []}],
    "state": "milk\n",
    "config": {},
    "expect": ["paris-1f.7"]}]

A program answers with a list of those ids, in the order in which they are to run; what it leaves
out does not run. In the place of an id, {"id": …, "command": …} runs another command.

Examples:
  cheops logic check 'python3 shopping.py' cases.json
  cheops logic check ./shopping.py cases.json

Exit codes:
  0  every question had one answer, which can be used, and is the one expected
  1  some had not
  2  the command cannot be carried out as given"#;

/// Try a program: does it answer each question in one way, whatever is around it?
///
/// Prints which cases had two answers to one question, which answers cannot be used, and which are
/// not those expected.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// The program, as a shell command
    program: String,
    /// Questions, in JSON
    cases: PathBuf,
    /// How long one answer may take; an agent waits for 10 s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    if arguments.program.trim().is_empty() {
        return Err(Failure::caller("there is no program to check")
            .hint("give the command that stands under `[logic]` in the config of an agent"));
    }
    let cases = cases::read(&arguments.cases)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    let (variations, answers) = runtime.block_on(asked(arguments, &cases, output))?;
    if arguments.timeout > PROGRAM_LIMIT {
        output
            .aside(format!("an agent waits for {PROGRAM_LIMIT:?} only, whatever this check does"));
    }
    if !variations.contains(&Variation::Clock) {
        output.aside("the clock was not changed: `faketime` is not installed");
    }
    let source = arguments.cases.display().to_string();
    let report = LogicReport::new(source, &cases, &variations, &answers);
    match output.format {
        Format::Json => output.json(&report)?,
        Format::Table => {
            for line in report.lines(output.width) {
                output.line(line)?;
            }
        }
    }
    Ok(if report.is_well() { Verdict::Fine } else { Verdict::Problems })
}

/// How it was asked, and what was answered to each case in those ways.
type AllAnswers = (Vec<Variation>, Vec<Vec<CaseAnswer>>);

async fn asked(
    arguments: &Arguments,
    cases: &[Case],
    output: &mut VerbOutput,
) -> Result<AllAnswers, Failure> {
    let mut interrupted = EndSignals::listen()?;
    let runner = ProgramRunner::new(&arguments.program, arguments.timeout)?;
    let answers = tokio::select! {
        answers = runner.ask_all(cases, output) => Some(answers),
        () = interrupted.come() => None,
    };
    runner.stop().await;
    let stopped = || Failure::stopped("stopped before all was asked");
    Ok((runner.variations(), answers.ok_or_else(stopped)?))
}
