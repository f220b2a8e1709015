//! What a job asks for, in one command.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use cheops_core::engine::{Job, Task};
use cheops_core::model::{FileRef, MAX_STATE_BYTES, Operation, OperationId, Payload};

use super::ExecutorState;
use super::content::{Keeping, pieces};
use super::streams::{Input, Prints};

/// One shell command, as a task asks for it.
pub(super) struct CommandRequest<'a> {
    pub(super) command: &'a str,
    pub(super) operation: Option<&'a OperationId>,
    pub(super) variables: Vec<(&'static str, OsString)>,
    pub(super) files: &'a [FileRef],
    pub(super) input: Input,
    pub(super) prints: Prints,
    pub(super) limit: Duration,
}

impl<'a> CommandRequest<'a> {
    pub(super) fn new(command: &'a str, limit: Duration) -> Self {
        let (input, prints) = (Input::Nothing, Prints::Output);
        let (operation, variables, files) = (None, Vec::new(), &[][..]);
        Self { command, operation, variables, files, input, prints, limit }
    }

    fn of(mut self, operation: &'a OperationId) -> Self {
        self.operation = Some(operation);
        self
    }

    /// All that is known of an operation, and its files.
    pub(super) fn about(mut self, operation: &'a Operation) -> Self {
        self.variables.push(("CHEOPS_TYPE", operation.kind.as_str().into()));
        if let Payload::Shell { files, .. } = &operation.payload {
            self.files = files;
        }
        self.of(&operation.id)
    }

    /// What a job asks for.
    pub(super) fn of_job(job: &'a Job, executor: &ExecutorState) -> Self {
        let ask = |command: &'a str| CommandRequest::new(command, executor.time_limit);
        match &job.task {
            // Operations do not come here, nor does what takes more than one command.
            Task::Run(operation) | Task::Edit { operation, .. } => ask("false").about(operation),
            Task::Merge { operation, .. } => ask("false").of(operation),
            Task::Ask { .. } => ask("false"),
            Task::RunPart { operation, command } => ask(command).about(operation),
            Task::Decompose { operation, command } => {
                let mut ask =
                    CommandRequest { prints: Prints::List, ..ask(command).about(operation) };
                ask.variables.extend(executor.failures.variables(operation));
                ask
            }
            Task::Undo { operation, command } | Task::Check { operation, command } => {
                ask(command).of(operation)
            }
            Task::Snapshot { id, command } => {
                let (content, resource) = (Arc::clone(&executor.content), job.resource.clone());
                let id = *id;
                let keeping =
                    Keeping::begin(move || content.save(&resource, id), executor.snapshot_limit);
                CommandRequest { prints: Prints::State(keeping), ..ask(command) }
            }
            Task::Read { command, keep } => {
                let (content, resource) = (Arc::clone(&executor.content), job.resource.clone());
                let keeping = keep.then(|| {
                    let limit = executor.snapshot_limit.min(MAX_STATE_BYTES);
                    Keeping::begin(move || content.keep(&resource), limit)
                });
                let prints = Prints::Fingerprint(executor.snapshot_limit, keeping);
                CommandRequest { prints, ..ask(command) }
            }
            Task::Write { state, command, .. } => {
                let (content, state) = (Arc::clone(&executor.content), *state);
                CommandRequest {
                    input: Input::Pieces(pieces(move || content.open(&state))),
                    ..ask(command)
                }
            }
            Task::Restore { id, command, .. } => {
                let (content, resource) = (Arc::clone(&executor.content), job.resource.clone());
                let id = *id;
                CommandRequest {
                    input: Input::Pieces(pieces(move || content.saved(&resource, id))),
                    ..ask(command)
                }
            }
        }
    }
}
