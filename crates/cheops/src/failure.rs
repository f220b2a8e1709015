//! How verbs end, and the one place where errors are printed.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use anstyle::Style;
use cheops_api::Fault;
use serde_json::json;

use crate::look::{BAD, DIM, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, printable};

/// What shells give to a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// What came of a verb that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Fine,
    /// What was looked at has problems, or a site failed, and that was printed.
    Problems,
    /// A site did not answer in time, and that was printed.
    Missing,
    /// What was given cannot be used, and that was printed.
    Refused,
    /// A program was run in our place, and ended with this code.
    Ran(u8),
    /// Somebody did not want to wait any longer, and was told that the work goes on.
    Interrupted,
}

impl Verdict {
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Problems => ExitCode::from(1),
            Self::Missing => ExitCode::from(3),
            Self::Refused => ExitCode::from(2),
            Self::Ran(code) => ExitCode::from(code),
            Self::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }
}

/// What a failure comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureOwner {
    /// Who can do something about it.
    Fault(Fault),
    /// Who typed the name of a program, or Ctrl-C: told by the code that shells give to that.
    Program(u8),
}

impl FailureOwner {
    const fn exit_code(self) -> u8 {
        match self {
            Self::Fault(fault) => fault.exit_code(),
            Self::Program(code) => code,
        }
    }
}

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    owner: FailureOwner,
    message: String,
    source: Option<Box<dyn Error>>,
    hint: Option<String>,
}

impl Failure {
    /// By whose fault it is.
    pub(crate) fn of(fault: Fault, message: impl Into<String>) -> Self {
        Self::by(FailureOwner::Fault(fault), message)
    }

    fn by(owner: FailureOwner, message: impl Into<String>) -> Self {
        Self { owner, message: message.into(), source: None, hint: None }
    }

    /// Something is wrong with what was typed.
    pub(crate) fn caller(message: impl Into<String>) -> Self {
        Self::of(Fault::Caller, message)
    }

    /// Something is wrong that whoever typed the command could not know.
    pub(crate) fn ours(message: impl Into<String>) -> Self {
        Self::of(Fault::Ours, message)
    }

    /// Who was asked is out of reach, or does not answer.
    pub(crate) fn away(message: impl Into<String>) -> Self {
        Self::of(Fault::NotNow, message)
    }

    /// There is no such program.
    pub(crate) fn no_program(message: impl Into<String>) -> Self {
        Self::by(FailureOwner::Program(127), message)
    }

    /// The program is there and cannot be run.
    pub(crate) fn program_not_run(message: impl Into<String>) -> Self {
        Self::by(FailureOwner::Program(126), message)
    }

    /// Somebody ended it; the code is that of shells for Ctrl-C.
    pub(crate) fn stopped(message: impl Into<String>) -> Self {
        Self::by(FailureOwner::Program(INTERRUPTED), message)
    }

    /// All of it in one line, where it is the reason of another.
    pub(crate) fn told(&self) -> String {
        let causes: Vec<String> = self.causes().collect();
        [std::slice::from_ref(&self.message), causes.as_slice()].concat().join(": ")
    }

    /// With what it comes from.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// With what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints it, and says what to exit with.
    pub(crate) fn report(&self, output: &mut VerbOutput) -> ExitCode {
        match output.format {
            Format::Table => self.report_as_text(output),
            Format::Json => {
                // If even that cannot be written, the exit code has to do.
                let _unwritten = output.json(&self.as_json());
            }
        }
        ExitCode::from(self.exit_code())
    }

    /// What to exit with.
    pub(crate) fn exit_code(&self) -> u8 {
        self.owner.exit_code()
    }

    fn report_as_text(&self, output: &mut VerbOutput) {
        output.aside(labelled(BAD, "error: ", &self.message, output.width));
        for cause in self.causes() {
            output.aside(labelled(DIM, "because: ", &cause, output.width));
        }
        if let Some(hint) = &self.hint {
            output.aside(labelled(DIM, "hint: ", hint, output.width));
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let causes: Vec<String> = self.causes().collect();
        let error = json!({ "message": self.message, "because": causes, "hint": self.hint });
        json!({ "ok": false, "error": error })
    }

    fn causes(&self) -> impl Iterator<Item = String> {
        let first: Option<&dyn Error> = self.source.as_deref();
        std::iter::successors(first, |&cause| cause.source()).map(ToString::to_string)
    }
}

/// The text after a label, wrapped.
fn labelled(style: Style, label: &str, text: &str, width: usize) -> String {
    let text = hanging(label, &printable(text), width);
    text.replacen(label, &styled(style, label), 1)
}

/// The only input and output errors that are passed on as they are come from writing the answer.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::ours("the answer could not be written").because(error)
    }
}
