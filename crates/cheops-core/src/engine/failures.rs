//! What a person can do about an operation that failed: have it run again where it did, or let it be.

use std::collections::BTreeSet;

use super::Engine;
use super::context::Turn;
use super::resource::Resource;
use super::standing::went_wrong;
use crate::model::{Author, EntryBody, Extension, OperationId, Reply, ResourceId, SiteId, Status};
use crate::plan::RunEffect;

/// Why an operation cannot be run again, or let be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFailed {
    /// Nobody here knows it.
    #[error("operation `{0}` is not known at this site, or was pruned since")]
    Unknown(OperationId),
    /// It rules nothing out and is in no list: to run it again somewhere would change nothing elsewhere.
    #[error("`{0}` failed at every site, so it counts nowhere; submit it again")]
    FailedEverywhere(OperationId),
    /// Another took its place.
    #[error("`{0}` does not count any more: another operation took its place")]
    Overridden(OperationId),
    /// It did not fail, or not here.
    #[error("`{operation}` did not fail at this site")]
    NotHere {
        /// The operation.
        operation: OperationId,
        /// Where it did.
        failed_at: BTreeSet<SiteId>,
    },
    /// It is not known to have failed.
    #[error("nothing can tell whether `{0}` happened: settle it")]
    InDoubt(OperationId),
}

impl Engine {
    /// Whether an operation can be run again at this site.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn can_retry(&self, id: &ResourceId, operation: &OperationId) -> Result<(), NotFailed> {
        let unknown = || NotFailed::Unknown(operation.clone());
        let resource = self.resources.get(id).ok_or_else(unknown)?;
        resource.operation(operation).ok_or_else(unknown)?;
        let operations = resource.resolution.operations();
        if operations.is_void(operation) && operations.undone_by(operation).is_none() {
            return Err(NotFailed::FailedEverywhere(operation.clone()));
        }
        if !resource.resolution.counts(operation) {
            return Err(NotFailed::Overridden(operation.clone()));
        }
        if resource.is_about_to_be_forgotten(operation, self.me()) {
            return Err(unknown());
        }
        if resource.runs.log.outcome(operation) == Some(RunEffect::Refused) {
            return Ok(());
        }
        let failed_at = resource.failed_at(operation);
        Err(NotFailed::NotHere { operation: operation.clone(), failed_at })
    }

    /// Whether an operation that failed can be let be.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn can_dismiss(&self, id: &ResourceId, operation: &OperationId) -> Result<(), NotFailed> {
        let unknown = || NotFailed::Unknown(operation.clone());
        let resource = self.resources.get(id).ok_or_else(unknown)?;
        let replies = resource.declared.sites.iter();
        let mut words = replies.filter_map(|site| resource.word_of(site, operation, self.me()));
        if words.any(|reply| reply.status == Status::InDoubt) {
            return Err(NotFailed::InDoubt(operation.clone()));
        }
        match resource.in_trouble().any(|troubled| troubled == operation) {
            true => Ok(()),
            false => {
                Err(NotFailed::NotHere { operation: operation.clone(), failed_at: BTreeSet::new() })
            }
        }
    }
}

impl Resource {
    /// The sites that said that an operation failed there, in whichever incarnation.
    fn failed_at(&self, operation: &OperationId) -> BTreeSet<SiteId> {
        let Some(replies) = self.replies.get(operation) else { return BTreeSet::new() };
        let sites = self.declared.sites.iter();
        let failed = sites.filter(|site| replies.of(site, None).is_some_and(went_wrong));
        failed.cloned().collect()
    }

    /// Whether an operation that failed at a site can be run again there, as far as is known here. Not
    /// if it does not count: that would change nothing elsewhere. Nor if some of its steps went well.
    pub(super) fn may_retry(&self, operation: &OperationId, site: &SiteId, me: &Author) -> bool {
        let said_ko = || self.word_of(site, operation, me).map(|reply| &reply.status);
        let failed_there = match *site == me.site {
            true => self.runs.log.outcome(operation) == Some(RunEffect::Refused),
            false => said_ko() == Some(&Status::Ko),
        };
        failed_there
            && self.resolution.counts(operation)
            && !self.is_about_to_be_forgotten(operation, me)
    }

    /// Runs an operation that failed here again.
    pub(super) fn retry(&mut self, operation: &OperationId, turn: &mut Turn<'_>) {
        if self.resolution.counts(operation) {
            self.run_again(operation, turn);
        }
    }

    /// Lets an operation that failed be, at all sites.
    pub(super) fn dismiss(&mut self, operation: &OperationId, turn: &mut Turn<'_>) {
        let me = &turn.context.settings.me;
        if !self.in_trouble().any(|troubled| troubled == operation) {
            return;
        }
        let own = self.replies.get(operation).and_then(|replies| replies.by(me));
        let Some(carrier) = own.or_else(|| self.lightest_own_reply(me)).cloned() else { return };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, ..carrier };
        self.write(EntryBody::Reply(reply), vec![Extension::dismissal(operation)], turn);
    }
}
