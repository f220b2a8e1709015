//! What a site sees of a resource that is worth counting: conflicts, and operations that failed.

use std::collections::BTreeSet;

use cheops_core::engine::{OperationView, ResourceView, SiteStanding, Standing};
use cheops_core::model::{OperationId, Outcome, SiteId, Status};
use cheops_core::plan::Health;
use cheops_core::resolve::Why;

use crate::sometimes::Sometimes;

/// Counts the kinds of conflict in what a site sees.
pub(crate) fn note_conflicts(view: &ResourceView, sometimes: &mut Sometimes) {
    note_needs(view, sometimes);
    if matches!(view.health, Health::Undecided { .. }) {
        sometimes.saw("run: undecided");
    }
    note_standing(view, sometimes);
    for operation in &view.operations {
        let Some(left_out) = &operation.left_out else { continue };
        sometimes.saw(match left_out.why {
            Why::Replaced => "conflict: replaced in sequence",
            Why::Forced => "conflict: forced",
            Why::LastWriter { .. } => "conflict: last writer wins",
            Why::ReplaceWins { .. } => "conflict: replacing one wins",
            Why::Circle { .. } => "conflict: circle",
            Why::FailedEverywhere => "conflict: failed everywhere, so void",
            Why::Undone => "undo: taken out",
        });
    }
    let listed = view.operations.iter().filter(|operation| operation.left_out.is_none());
    if !view.list.iter().eq(listed.map(OperationView::id)) {
        sometimes.saw("conflict: both kept, reversed");
    }
}

/// Counts what a site says of others, and of what failed and is over.
fn note_standing(view: &ResourceView, sometimes: &mut Sometimes) {
    if view.decided.as_ref().is_some_and(|steps| steps.len() < view.list.len()) {
        sometimes.saw("program: left something out");
    }
    let disagrees = |it: &SiteStanding| match &it.standing {
        Standing::Diverged { why, .. } => why.contains("disagrees"),
        _ => false,
    };
    if view.standings.iter().any(disagrees) {
        sometimes.saw("program: disagrees");
    }
    let diverged = |it: &SiteStanding| matches!(it.standing, Standing::Diverged { .. });
    if view.health == Health::InStep && view.standings.iter().any(diverged) {
        sometimes.saw("standing: another site's divergence known");
    }
    let void = view
        .operations
        .iter()
        .filter(|it| it.left_out.as_ref().is_some_and(|out| out.why == Why::FailedEverywhere));
    if void.into_iter().any(|it| is_set_right(it.id(), view, took_effect)) {
        sometimes.saw("standing: failed everywhere, and set right since");
    }
}

/// Whether an operation made later replaced it and went well somewhere; where one did that was itself
/// superseded, it may have gone well before.
pub(crate) fn is_set_right(
    id: &OperationId,
    view: &ResourceView,
    went_well: impl Fn(&Status) -> bool,
) -> bool {
    let replacing = view.operations.iter().filter(|it| it.operation.replaces.past());
    let mut well = replacing.filter(|it| it.replies.iter().any(|reply| went_well(&reply.status)));
    well.any(|it| is_in_past(id, it, view))
}

/// It took effect, by the last that was said of it.
pub(crate) fn took_effect(status: &Status) -> bool {
    matches!(status, Status::Ok | Status::Partial { .. })
}

fn is_in_past(id: &OperationId, of: &OperationView, view: &ResourceView) -> bool {
    let mut to_see: Vec<&OperationId> = of.operation.parents.iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(parent) = to_see.pop() {
        // Whoever wrote the parent knew what it had written before, also where the parent itself does not
        // count any more, since its author lies, and is not in the view.
        if parent.0.author == id.0.author && parent.0.n >= id.0.n {
            return true;
        }
        if seen.insert(parent) {
            let found = view.operations.iter().find(|it| it.id() == parent);
            to_see.extend(found.iter().flat_map(|it| &it.operation.parents));
        }
    }
    false
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
