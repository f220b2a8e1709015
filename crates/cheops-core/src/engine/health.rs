//! How this site's application stands to the list, beyond what the plan can tell: by what other
//! sites said, and by what was pruned.

use super::context::Turn;
use super::replies::Replies;
use super::resource::Resource;
use super::run::items_of;
use super::settings::Application;
use crate::model::{Author, OperationId};
use crate::plan::{self, Divergence, Health, Item, RunEffect};

impl Resource {
    /// What the plan says of the list, with what it cannot know.
    ///
    /// An operation that took the place of others and failed here leaves them in the application
    /// and out of the list. That is no divergence yet while it may turn out to have failed
    /// everywhere: it is void then, and what is here is what counts. Only when one site says that
    /// it succeeded there, this one differs for certain.
    pub(super) fn judge_health(&self, planned: Health, turn: &Turn<'_>) -> Health {
        let health = self.admit_unknown_past(planned, || self.items(), turn);
        if !matches!(health, Health::Diverged { .. }) {
            return health;
        }
        let (listed, left_out) = self.may_turn_void();
        let Some(last) = listed.last().copied() else { return health };
        let list = self.resolution.list_without(listed.into_iter().chain(left_out));
        let list = items_of(&self.resolution, list.iter());
        let then = plan::plan(&list, &self.runs.log, &self.config()).health;
        match self.admit_unknown_past(then, || list, turn) {
            Health::InStep => Health::Undecided { on: last.clone() },
            _ => health,
        }
    }

    /// Those of the list that failed here and wherever else they ran, while some site has yet to
    /// run them; and those of the same kind that would be next, were these void. What is left out
    /// for another reason runs nowhere any more, and nobody will ever know.
    fn may_turn_void(&self) -> (Vec<&OperationId>, Vec<&OperationId>) {
        let sites = &self.declared.sites;
        let is_open = |(id, replies): &(&OperationId, &Replies)| {
            self.runs.log.outcome(id) == Some(RunEffect::Refused)
                && replies.may_fail_everywhere(sites)
        };
        let open = self.replies.iter().filter(is_open).map(|(id, _)| id);
        let (mut listed, mut left_out): (Vec<_>, Vec<_>) =
            open.partition(|id| self.resolution.counts(id));
        listed.sort_by_key(|id| self.operation(id).map(|operation| operation.position()));
        let winner = |id: &OperationId| self.resolution.left_out(id).and_then(|out| out.by);
        left_out.retain(|id| winner(id).is_some_and(|by| listed.contains(&&by)));
        (listed, left_out)
    }

    /// What was pruned is not among the operations that an earlier incarnation may have run, and
    /// may be in the application all the same.
    fn admit_unknown_past(
        &self,
        health: Health,
        list: impl FnOnce() -> Vec<Item>,
        turn: &Turn<'_>,
    ) -> Health {
        let settings = &turn.context.settings;
        let earlier_incarnation =
            |(author, _): (&Author, u64)| author.site == settings.me.site && *author != settings.me;
        if self.base.is_empty()
            || health != Health::InStep
            || settings.application == Application::Empty
            || !self.knows.iter().any(earlier_incarnation)
        {
            return health;
        }
        let config = self.config();
        let overwrote = |item: &Item| {
            (item.replaces.past() || config.overwrites(&item.kind))
                && self.runs.log.outcome(&item.id) == Some(RunEffect::Took)
        };
        let listed = list();
        let to_come = listed.iter().any(|item| !self.runs.log.has_run(&item.id));
        if to_come || listed.iter().any(overwrote) {
            return health;
        }
        Health::Diverged { why: Divergence::UnknownPast }
    }
}
