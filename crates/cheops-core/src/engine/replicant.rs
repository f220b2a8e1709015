//! What the sites call a resource of a service, and whether requests that speak of it are to be
//! known here.

use std::sync::Arc;

use super::context::Turn;
use super::ports::Effect;
use super::resource::Resource;
use crate::model::{Act, Operation, Replicant, Reply};
use crate::plan;

impl Resource {
    /// Notes how an operation speaks of the resource, which may make anew what was deleted.
    pub(super) fn see_replica(
        &mut self,
        operation: &Operation,
        was_retired: bool,
        turn: &mut Turn<'_>,
    ) {
        let Some((service, replica)) = operation.replica() else { return };
        let is_new = match &mut self.declared.replicant {
            Some(known) => known.see(replica),
            unknown => {
                *unknown = Some(Replicant::new(service, replica));
                true
            }
        };
        if is_new || was_retired {
            self.publish_replicant(turn);
        }
    }

    /// Notes what the replying site calls the resource.
    pub(super) fn see_local_id(&mut self, reply: &Reply, turn: &mut Turn<'_>) {
        let Some(id) = reply.outcome.as_ref().and_then(|outcome| outcome.local_id()) else {
            return;
        };
        let known = self.declared.replicant.as_mut();
        if known.is_some_and(|known| known.name(reply.site(), id)) {
            self.publish_replicant(turn);
        }
    }

    /// Says what requests are to be known by from now on.
    pub(super) fn publish_replicant(&self, turn: &mut Turn<'_>) {
        let Some(replicant) = &self.declared.replicant else { return };
        let known = (!self.is_retired()).then(|| Arc::new(replicant.clone()));
        turn.effect(Effect::Publish(self.id.clone(), known));
    }

    /// Whether the last that was to be done here was to end it, and that was done; or all that
    /// was ever to be done failed at every site, so that it never came to be.
    pub(super) fn is_retired(&self) -> bool {
        match self.resolution.last() {
            Some(last) => {
                last.replica().is_some_and(|(_, replica)| replica.act == Act::Deletes)
                    && self.runs.log.outcome(&last.id) == Some(plan::Effect::Took)
            }
            None => self.declared.replicant.is_some() && !self.replies.is_empty(),
        }
    }
}
