//! What a site sees of a resource that is worth counting: conflicts, and operations that failed.

use cheops_core::engine::{OperationView, ResourceView};
use cheops_core::model::{Outcome, SiteId, Status};
use cheops_core::plan::Health;
use cheops_core::resolve::Why;

use crate::sometimes::Sometimes;

/// Counts the kinds of conflict in what a site sees.
pub(crate) fn note_conflicts(view: &ResourceView, sometimes: &mut Sometimes) {
    note_needs(view, sometimes);
    if matches!(view.health, Health::Undecided { .. }) {
        sometimes.saw("run: undecided");
    }
    for operation in &view.operations {
        let Some(left_out) = &operation.left_out else { continue };
        sometimes.saw(match left_out.why {
            Why::Replaced => "conflict: replaced in sequence",
            Why::Forced => "conflict: forced",
            Why::LastWriter { .. } => "conflict: last writer wins",
            Why::ReplaceWins { .. } => "conflict: replacing one wins",
            Why::Circle { .. } => "conflict: circle",
            Why::FailedEverywhere => "conflict: failed everywhere, so void",
        });
    }
    let listed = view.operations.iter().filter(|operation| operation.left_out.is_none());
    if !view.list.iter().eq(listed.map(OperationView::id)) {
        sometimes.saw("conflict: both kept, reversed");
    }
}

/// Counts what happens to operations that need others.
fn note_needs(view: &ResourceView, sometimes: &mut Sometimes) {
    if view.waits_for.as_ref().is_some_and(|what| what.starts_with("needs ")) {
        sometimes.saw("needs: waited");
    }
    if view.operations.iter().any(|operation| refusals(operation).any(|it| it.is_need)) {
        sometimes.saw("needs: failed with what it needs");
    }
}

/// An operation that failed at a site.
pub(crate) struct SimRefusal<'a> {
    pub(crate) site: &'a SiteId,
    /// Since something that it needs failed.
    pub(crate) is_need: bool,
    /// Since the service knows no such thing.
    pub(crate) is_unknown: bool,
}

pub(crate) fn refusals(operation: &OperationView) -> impl Iterator<Item = SimRefusal<'_>> {
    operation.replies.iter().filter(|reply| reply.status == Status::Ko).map(|reply| SimRefusal {
        site: reply.site(),
        is_need: matches!(&reply.outcome, Some(Outcome::NotStarted { reason }) if reason.starts_with("needs ")),
        is_unknown: matches!(&reply.outcome, Some(Outcome::Answered { status: 404, .. })),
    })
}
