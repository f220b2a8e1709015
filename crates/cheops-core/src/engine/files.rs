//! Large files of operations: they take room at every site, and are let go once nobody can need
//! them again.

use std::collections::BTreeSet;

use super::context::Turn;
use super::durable::Record;
use super::replies::verdict;
use super::resource::Resource;
use crate::model::{Operation, OperationId, Reply, Vector};

/// Smaller ones are kept as long as their operation: with them, a site that lost its disk gets its
/// resources back.
const LARGE: u64 = 64 * 1024;

/// Which operations have large files, and which of those are no longer needed.
#[derive(Debug, Default)]
pub(super) struct Files {
    held: BTreeSet<OperationId>,
    shed: BTreeSet<OperationId>,
}

impl Files {
    /// Notes an operation. Only requests to services come from where their files are kept anyway:
    /// in the service. What a command made of its files, nobody knows.
    pub(super) fn see(&mut self, operation: &Operation) {
        let is_large = operation.files().iter().any(|file| file.size >= LARGE);
        if is_large && operation.service_ref().is_some() && !self.shed.contains(&operation.id) {
            self.held.insert(operation.id.clone());
        }
    }

    /// Forgets who has large files, but for those whose files are gone.
    pub(super) fn start_over(&mut self) {
        self.held = BTreeSet::new();
    }

    /// Notes that these are gone.
    pub(super) fn shed(&mut self, operations: BTreeSet<OperationId>) {
        self.held.retain(|id| !operations.contains(id));
        self.shed.extend(operations);
    }

    pub(super) fn forget(&mut self, upto: &Vector) {
        self.held.retain(|id| !upto.includes(&id.0));
        self.shed.retain(|id| !upto.includes(&id.0));
    }
}

impl Resource {
    /// Lets go of large files that every site has made use of, where nothing unknown can come
    /// before their operations any more: all sites are known to know the same.
    pub(super) fn shed_files(&mut self, turn: &mut Turn<'_>) {
        let agree = |peer: &super::peer::Peer| peer.knows == self.knows;
        if self.files.held.is_empty() || !self.runs.is_idle() || !self.peers.values().all(agree) {
            return;
        }
        let me = &turn.context.settings.me;
        let ran = |reply: &Reply| verdict(&reply.status).is_some();
        let is_done = |id: &&OperationId| {
            self.declared.sites.iter().all(|site| self.word_of(site, id, me).is_some_and(ran))
        };
        let done: BTreeSet<_> = self.files.held.iter().filter(is_done).cloned().collect();
        if !done.is_empty() {
            self.files.shed(done);
            turn.record(Record::Shed(self.id.clone(), self.files.shed.clone()));
        }
    }
}
