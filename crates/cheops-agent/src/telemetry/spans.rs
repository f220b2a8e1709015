//! Spans: an operation from the moment it is handed in until the last reply that somebody waits for,
//! and each job, both with the operation's id. They are of the level `debug`: where nobody wants that, they
//! cost a look at whether anybody does.

use std::collections::BTreeMap;

use cheops_core::engine::{Answer, Job, Submission, Task, Ticket};
use cheops_core::model::OperationId;
use tracing::Span;
use tracing::field::{Empty, display};

/// Whose spans and events these are, to whoever picks out some.
#[cfg(feature = "otlp")]
pub(super) const TARGET: &str = module_path!();

/// The span of an operation that is handed in; its id is known once it is accepted.
pub(crate) fn operation_span(submission: &Submission) -> Span {
    tracing::debug_span!(
        "operation", resource = %submission.resource, kind = %submission.kind, operation = Empty
    )
}

/// The operations that somebody waits for, if anybody wants to know.
#[derive(Debug, Default)]
pub(crate) struct OperationSpans {
    open: BTreeMap<Ticket, (Span, Option<OperationId>)>,
    /// For the jobs that carry them out.
    by_operation: BTreeMap<OperationId, Span>,
}

impl OperationSpans {
    /// An operation is handed in.
    pub(crate) fn begin(&mut self, ticket: Ticket, span: Span) {
        if !span.is_disabled() {
            span.in_scope(|| tracing::debug!("submitted"));
            self.open.insert(ticket, (span, None));
        }
    }

    /// Who handed it in hears something; with the last word the span ends.
    pub(crate) fn answered(&mut self, ticket: Ticket, answer: &Answer) {
        let Some((span, operation)) = self.open.get_mut(&ticket) else { return };
        if let Answer::Accepted { operation: id, .. } = answer {
            span.record("operation", display(id));
            *operation = Some(id.clone());
            self.by_operation.insert(id.clone(), span.clone());
        }
        let is_last = span.in_scope(|| told(answer));
        if is_last && let Some((_ended, Some(operation))) = self.open.remove(&ticket) {
            self.by_operation.remove(&operation);
        }
    }

    /// The span of a job, within that of its operation if somebody waits for it here.
    pub(crate) fn of_job(&self, job: &Job) -> Span {
        let operation = operation_of(&job.task);
        let within = operation.filter(|_| !self.by_operation.is_empty());
        let within = within.and_then(|operation| self.by_operation.get(operation));
        tracing::debug_span!(
            parent: within.and_then(Span::id),
            "job",
            resource = %job.resource,
            operation = operation.map(display),
        )
    }
}

/// Whether it was the last word.
fn told(answer: &Answer) -> bool {
    match answer {
        Answer::Accepted { .. } => tracing::debug!("accepted"),
        Answer::Replied(reply) => {
            tracing::debug!(site = %reply.site(), status = ?reply.status, "a site replied");
        }
        Answer::Done => tracing::debug!("every site that is waited for has replied"),
        Answer::TimedOut { missing } => tracing::debug!(?missing, "the wait is over"),
        Answer::Refused(why) => tracing::debug!(%why, "refused"),
    }
    !matches!(answer, Answer::Accepted { .. } | Answer::Replied(_))
}

fn operation_of(task: &Task) -> Option<&OperationId> {
    match task {
        Task::Run(operation)
        | Task::Edit { operation, .. }
        | Task::RunPart { operation, .. }
        | Task::Decompose { operation, .. } => Some(&operation.id),
        Task::Undo { operation, .. }
        | Task::Check { operation, .. }
        | Task::Merge { operation, .. } => Some(operation),
        Task::Ask { .. }
        | Task::Snapshot { .. }
        | Task::Restore { .. }
        | Task::Read { .. }
        | Task::Write { .. } => None,
    }
}
