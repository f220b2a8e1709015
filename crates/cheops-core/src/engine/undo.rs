//! Taking an operation out, everywhere, and bringing it back.
//!
//! What is taken out counts as little as what failed everywhere: it rules nothing out, and what it had
//! ruled out counts again. Each site then repairs what it ran, as for any other change of the list. The
//! last word holds, in the order of stamps and names, so all sites that know the same go by the same.

use super::Engine;
use super::context::Turn;
use super::forecast::{Forecast, ForecastBasis};
use super::resource::Resource;
use crate::model::{
    EntryBody, EntryId, Extension, OperationId, Reply, ResourceId, Stamp, Status, Undoing,
};
use crate::plan::Divergence;
use crate::resolve::ListChange;

/// What was last said of an operation that somebody took out.
#[derive(Debug)]
pub(super) struct LastUndoing {
    at: (Stamp, EntryId),
    back: bool,
}

/// Why an operation cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUndoable {
    /// Nobody here needs it any more.
    #[error("operation `{0}` is not known at this site, or no site needs it any more")]
    Unknown(OperationId),
    /// It is out already.
    #[error("`{operation}` is undone already, by `{by}`; undo that to bring it back")]
    Already {
        /// The operation.
        operation: OperationId,
        /// What undid it.
        by: OperationId,
    },
    /// Another took its place.
    #[error("`{0}` does not count any more: another operation took its place")]
    Overridden(OperationId),
    /// It counts nowhere.
    #[error("`{0}` failed at every site, so it counts nowhere")]
    FailedEverywhere(OperationId),
    /// It is a request to a service.
    #[error("`{0}` is a request to a service: send the one that sets things right")]
    OfService(OperationId),
    /// It is merged with what others wrote.
    #[error("`{0}` is an edit that was merged: submit one that takes back what it wrote")]
    Merged(OperationId),
    /// What it replaced is forgotten.
    #[error("`{0}` replaced all before it, and what was before is needed by no site any more")]
    ReplacedAll(OperationId),
    /// All sites verified what it came to.
    #[error(
        "`{0}` is part of a state that all sites verified and that stands for what was before, which is \
         needed no more; submit what sets things right"
    )]
    InState(OperationId),
    /// This site has not run it yet, or cannot tell whether it did.
    #[error("this site has not said yet what became of `{0}`")]
    NotRun(OperationId),
    /// Nothing can tell whether it happened.
    #[error("nothing can tell whether `{0}` happened: settle it")]
    InDoubt(OperationId),
    /// This site could not do it.
    #[error("this site could not take `{operation}` out of what it ran: {why}")]
    NoRepair {
        /// The operation.
        operation: OperationId,
        /// What stands in the way.
        why: Divergence,
    },
}

/// An undoing that nothing forbids at first sight. Whether this site could follow it takes the longer to
/// tell the longer the history is, and needs no engine.
#[derive(Debug, Clone)]
pub struct UndoBasis {
    undoing: Undoing,
    basis: ForecastBasis,
}

impl UndoBasis {
    /// What to hand in, and what would come of it.
    ///
    /// # Errors
    ///
    /// Why this site could not follow it.
    pub fn checked(self) -> Result<(Undoing, Forecast), NotUndoable> {
        let Self { undoing, basis } = self;
        let told = basis.forecast();
        match told.cannot_repair {
            Some(why) => Err(NotUndoable::NoRepair { operation: undoing.operation, why }),
            None => Ok((undoing, told)),
        }
    }
}

impl Engine {
    /// What undoing an operation, or an undoing, comes to; if that can be done here.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn can_undo(&self, id: &ResourceId, named: &OperationId) -> Result<UndoBasis, NotUndoable> {
        let unknown = || NotUndoable::Unknown(named.clone());
        let resource = self.resources.get(id).ok_or_else(unknown)?;
        let undoing = resource.undoing_named(named).ok_or_else(unknown)?;
        let operation = &undoing.operation;
        if resource.declared.id_map.is_some() {
            return Err(NotUndoable::OfService(operation.clone()));
        }
        if resource.merged_as().is_some() {
            return Err(NotUndoable::Merged(operation.clone()));
        }
        if !undoing.back {
            resource.may_undo(operation)?;
        }
        if resource.is_about_to_be_forgotten(operation, self.me()) {
            return Err(NotUndoable::InState(operation.clone()));
        }
        let replies = resource.replies.get(operation);
        match replies.and_then(|replies| replies.by(self.me())).map(|reply| &reply.status) {
            None => Err(NotUndoable::NotRun(operation.clone())),
            Some(Status::InDoubt) => Err(NotUndoable::InDoubt(operation.clone())),
            Some(_) => {
                let basis = self.basis_of_undoing(resource, &undoing);
                Ok(UndoBasis { undoing, basis })
            }
        }
    }
}

impl Resource {
    /// What undoing this comes to: an operation, or what undid one.
    fn undoing_named(&self, named: &OperationId) -> Option<Undoing> {
        if self.operation(named).is_some() {
            return Some(Undoing { operation: named.clone(), back: false });
        }
        let (operation, _) = self.undone().find(|(_, by)| by == named)?;
        Some(Undoing { operation, back: true })
    }

    fn may_undo(&self, operation: &OperationId) -> Result<(), NotUndoable> {
        if let Some(by) = self.undone_by(operation) {
            return Err(NotUndoable::Already { operation: operation.clone(), by });
        }
        if self.resolution.operations().is_void(operation) {
            return Err(NotUndoable::FailedEverywhere(operation.clone()));
        }
        if !self.resolution.counts(operation) {
            return Err(NotUndoable::Overridden(operation.clone()));
        }
        if !self.resolution.may_be_undone(operation) {
            return Err(NotUndoable::ReplacedAll(operation.clone()));
        }
        Ok(())
    }

    /// The operations that count for nothing once that is done.
    pub(super) fn void_after(&self, undoing: &Undoing) -> Vec<OperationId> {
        let sites = &self.declared.sites;
        let failed = self.replies.iter().filter(|(_, replies)| replies.failed_everywhere(sites));
        let undone = self.undone().map(|(operation, _)| operation);
        let undone = undone.filter(|operation| *operation != undoing.operation);
        let taken_out = (!undoing.back).then(|| undoing.operation.clone());
        failed.map(|(id, _)| id.clone()).chain(undone).chain(taken_out).collect()
    }

    /// The operations that are taken out, and by what.
    pub(super) fn undone(&self) -> impl Iterator<Item = (OperationId, OperationId)> {
        let all = self.undoings.keys();
        all.filter_map(|operation| Some((operation.clone(), self.undone_by(operation)?)))
    }

    /// What took an operation out, if it is.
    pub(super) fn undone_by(&self, operation: &OperationId) -> Option<OperationId> {
        let last = self.undoings.get(operation).filter(|last| !last.back)?;
        self.resolution.may_be_undone(operation).then(|| OperationId(last.at.1.clone()))
    }

    /// Takes in what somebody said of an operation that is known here.
    pub(super) fn take_undoing(&mut self, undoing: Undoing, at: (Stamp, EntryId)) {
        let Undoing { operation, back } = undoing;
        if self.operation(&operation).is_none()
            || self.undoings.get(&operation).is_some_and(|last| last.at > at)
        {
            return;
        }
        self.undoings.insert(operation.clone(), LastUndoing { at, back });
        self.review_undoing(&operation);
    }

    /// An operation that is concurrent to one that was taken out may be what that takes.
    pub(super) fn review_undoings(&mut self) {
        if self.undoings.is_empty() {
            return;
        }
        let all: Vec<OperationId> = self.undoings.keys().cloned().collect();
        all.iter().for_each(|operation| self.review_undoing(operation));
    }

    fn review_undoing(&mut self, operation: &OperationId) {
        let by = self.undone_by(operation);
        if self.resolution.operations().undone_by(operation) == by.as_ref() {
            return;
        }
        match by {
            Some(by) => {
                if self.resolution.mark_undone(operation, &by) != ListChange::Nothing {
                    self.runs.list_rearranged();
                }
            }
            None => self.resolve_anew(self.resolution.rules().clone()),
        }
        self.runs.heard_otherwise();
    }

    /// Takes an operation out at all sites, or brings it back.
    pub(super) fn undo(&mut self, undoing: &Undoing, turn: &mut Turn<'_>) {
        let me = &turn.context.settings.me;
        let own = self.replies.get(&undoing.operation).and_then(|replies| replies.by(me));
        let is_too_late = self.is_about_to_be_forgotten(&undoing.operation, me);
        let Some(carrier) = own.filter(|_| !is_too_late).cloned() else { return };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, ..carrier };
        self.write(EntryBody::Reply(reply), vec![Extension::undoing(undoing)], turn);
    }
}
