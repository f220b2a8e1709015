//! The last failures, for programs that are asked for smaller steps.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use cheops_core::engine::{Job, Task};
use cheops_core::model::{BROKEN_OFF_STATUS, Operation, OperationId, Outcome};

/// An operation is decomposed right after it failed: no more than run at once are needed.
const KEPT: usize = 256;
/// What a program is told of an output: an environment has not much room.
const TOLD_BYTES: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(super) struct Failures {
    last: Mutex<VecDeque<FailedRun>>,
}

#[derive(Debug)]
struct FailedRun {
    operation: OperationId,
    code: String,
    output: String,
}

impl Failures {
    pub(super) fn note(&self, job: &Job, outcome: &Outcome) {
        let Task::Run(operation) = &job.task else { return };
        if outcome.succeeded() || matches!(outcome, Outcome::NotYet { .. }) {
            return;
        }
        let code = match outcome {
            Outcome::Exited { code, .. } => code.to_string(),
            Outcome::Answered { status, .. } => status.to_string(),
            Outcome::BrokenOff { .. } => BROKEN_OFF_STATUS.to_string(),
            Outcome::TimedOut { .. } => "timed-out".to_owned(),
            Outcome::NotYet { .. } | Outcome::NotStarted { .. } => "not-started".to_owned(),
        };
        let text = outcome.text();
        let output = text[..text.floor_char_boundary(TOLD_BYTES)].replace('\0', "\u{fffd}");
        let failure = FailedRun { operation: operation.id.clone(), code, output };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.truncate(KEPT - 1);
        last.push_front(failure);
    }

    /// What a program is told of an operation that failed.
    pub(super) fn variables(&self, operation: &Operation) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![("CHEOPS_COMMAND", operation.payload.summary().into())];
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = last.iter().find(|failure| failure.operation == operation.id) {
            variables.push(("CHEOPS_CODE", failure.code.clone().into()));
            variables.push(("CHEOPS_OUTPUT", failure.output.clone().into()));
        }
        variables
    }
}
