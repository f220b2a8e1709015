//! Does a matrix tell the truth about the commands? What to try on the application to find out, and
//! what follows from what was seen: pure, the trials themselves are somebody else's.
//!
//! A matrix is a set of [`MatrixClaim`]s. Each comes down to pairs of [`Trial`]s that must lead to the same
//! state: every trial begins with the same written state, runs some sample operations, and ends with
//! what `Read` gives. Trials can show that a claim is false. That it is true they make likely at best.
//!
//! | file | what it does |
//! | --- | --- |
//! | `claims` | what a config claims, and by which trials a claim would be found false |
//! | `judge` | from what trials gave to verdicts |
//! | `suggest` | the config with what is false put right |

mod claims;
mod judge;
mod suggest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::claims::{Comparison, Expectation, MatrixClaim, claims, trials};
pub use self::judge::{ClaimVerdict, Counterexample, JudgedClaim, Mismatch, NotTried, judge};
pub use self::suggest::suggestion;

use super::document::read_samples;
use super::problem::ConfigErrors;
use super::state;
use crate::ids::OperationType;

/// How many sample operations there may be: the trials grow with their square.
pub const MAX_SAMPLES: usize = 64;
/// How many states trials may start from.
pub const MAX_STARTS: usize = 8;

/// Commands to try a matrix with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialSamples {
    /// The operations, by type.
    pub samples: Vec<Sample>,
    /// Commands that lead to the states to start from; if there are none, that is the state there is.
    pub starts: Vec<String>,
}

/// An operation as somebody could hand it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Its type.
    pub kind: OperationType,
    /// Its command.
    pub command: String,
}

impl TrialSamples {
    /// Reads a document, in JSON or YAML.
    ///
    /// ```
    /// use cheops_core::config::prove::TrialSamples;
    ///
    /// let samples = TrialSamples::parse(
    ///     "Samples: {set: [echo a > $target, echo b > $target], add: [echo c >> $target]}",
    /// );
    /// assert_eq!(samples.unwrap().samples.len(), 3);
    /// ```
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, in the order of the document.
    pub fn parse(text: &str) -> Result<Self, ConfigErrors> {
        read_samples(text)
    }
}

/// The command, with that target in the variable `target` where it speaks of it: as the commands of
/// `State` have it.
pub fn about_target(command: &str, target: &str) -> String {
    if command.contains("$target") || command.contains("${target") {
        state::with_target(command, target)
    } else {
        command.to_owned()
    }
}

/// One way through some operations, from a state to a state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// The how-manieth state it starts from.
    pub start: usize,
    /// What is done, one after the other.
    pub steps: Vec<TrialStep>,
    /// The how-manieth time, for what must come out the same each time.
    pub round: u8,
}

/// One operation, made of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleRun {
    /// Which sample.
    pub sample: usize,
    /// Whether it is the second operation with that very command.
    pub twin: bool,
}

/// What is done with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrialStep {
    /// It is run.
    Run(SampleRun),
    /// It is begun, and ended half-way as by a crash.
    Crash(SampleRun),
    /// It is taken back by its type's `Undo`.
    Undo(SampleRun),
    /// Its type's `Check` is asked whether it happened.
    Check(SampleRun),
}

impl TrialStep {
    /// The operation it is about.
    pub fn operation(&self) -> SampleRun {
        match self {
            Self::Run(run) | Self::Crash(run) | Self::Undo(run) | Self::Check(run) => *run,
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepEnding {
    /// It succeeded.
    Done,
    /// It failed, and said this.
    Failed(String),
    /// It was ended half-way, as it should be.
    Crashed,
}

impl StepEnding {
    fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

/// What a trial gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialResult {
    /// How each step ended.
    pub endings: Vec<StepEnding>,
    /// What `Read` gave in the end.
    pub state: Arc<[u8]>,
}

/// What all trials gave.
pub type TrialResults = BTreeMap<Trial, TrialResult>;
