//! What would come of something, as far as this site knows, before anything is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::Context;
use super::ports::{Now, Refusal, Submission};
use super::resource::Resource;
use super::run::items_of;
use super::submit::declaration;
use super::{Engine, SiteStatus};
use crate::config::Config;
use crate::model::{EntryId, Operation, OperationId, Replaces, ResourceId, SiteId, Undoing};
use crate::plan::{self, Decision, Divergence, Health, RunLog};
use crate::resolve::Resolution;

/// What would come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Whether the resource would be made by it.
    pub new_resource: bool,
    /// Whether the config that comes with it differs from the one that holds.
    pub new_config: bool,
    /// The name that the operation would have here, if nothing else comes first; none if it is no
    /// operation.
    pub operation: Option<OperationId>,
    /// Whether it would take the place of what it is made on.
    pub replaces: Replaces,
    /// Where it would go.
    pub sites: BTreeSet<SiteId>,
    /// Those of them that are not heard now: they get it when they are.
    pub not_heard: BTreeSet<SiteId>,
    /// The operations that would count, in the order to run them.
    pub list: Vec<Arc<Operation>>,
    /// Those that count now and would not, with the reason; with it, the operation itself.
    pub left_out: Vec<(OperationId, String)>,
    /// Those that do not count now, and would.
    pub back: Vec<OperationId>,
    /// Why this site could not follow that list, if it could not.
    pub cannot_repair: Option<Divergence>,
}

impl Engine {
    /// What would come of an operation if it were handed in now.
    ///
    /// # Errors
    ///
    /// Why it would be refused.
    pub fn forecast(&self, submission: &Submission, now: Now) -> Result<Forecast, Refusal> {
        let known = self.resources.get(&submission.resource).map(Box::as_ref);
        let declares = declaration(known, submission, &self.context.settings)?;
        let fresh;
        let (resource, new_resource) = match known {
            Some(known) => (known, known.declared.sites.is_empty()),
            None => {
                let rules = Config::default();
                fresh = Resource::new(submission.resource.clone(), rules.into());
                (&fresh, true)
            }
        };
        let sites = match &declares {
            Some(declared) => declared.sites.clone(),
            None => resource.declared.sites.clone(),
        };
        let config = declares.as_ref().and_then(|declared| declared.config.clone());
        let new_config = config.is_some() && !new_resource;
        let mut then = match &config {
            Some(config) => {
                let void = resource.resolution.operations();
                let void: Vec<_> =
                    void.iter().map(|it| &it.id).filter(|id| void.is_void(id)).collect();
                resource.resolution.anew(config.clone(), void)
            }
            None => resource.resolution.clone(),
        };
        let operation = operation(resource, submission, &self.context, now);
        let (id, replaces) = (operation.id.clone(), operation.replaces);
        then.insert(operation);
        let told = self.told(resource, &then, sites);
        Ok(Forecast { new_resource, new_config, operation: Some(id), replaces, ..told })
    }

    /// What would come of an undoing that is possible here.
    pub fn forecast_undo(&self, id: &ResourceId, undoing: &Undoing) -> Option<Forecast> {
        let resource = self.resources.get(id)?;
        let operations = resource.resolution.operations();
        let void = operations.iter().map(|it| &it.id).filter(|id| operations.is_void(id));
        let void = void.filter(|id| **id != undoing.operation);
        let mut then = resource.resolution.anew(resource.resolution.rules().clone(), void);
        if !undoing.back {
            then.mark_void(&undoing.operation);
        }
        let mut told = self.told(resource, &then, resource.declared.sites.clone());
        for (out, why) in &mut told.left_out {
            if *out == undoing.operation {
                *why = "it is undone".to_owned();
            }
        }
        Some(told)
    }

    /// What would come of running an operation again that failed here.
    pub fn forecast_retry(&self, id: &ResourceId, operation: &OperationId) -> Option<Forecast> {
        self.forecast_here(id, |log| log.forget_refusal(operation))
    }

    /// What would come of the operator's word on an operation in doubt here.
    pub fn forecast_decision(
        &self,
        id: &ResourceId,
        operation: &OperationId,
        decision: Decision,
    ) -> Option<Forecast> {
        self.forecast_here(id, |log| log.decide(operation, decision))
    }

    /// What would come of letting a failure be: nothing is run anywhere.
    pub fn forecast_dismissal(&self, id: &ResourceId) -> Option<Forecast> {
        let resource = self.resources.get(id)?;
        let told = self.told(resource, &resource.resolution, resource.declared.sites.clone());
        Some(Forecast { cannot_repair: None, ..told })
    }

    /// What would come of another word of this site's own on what ran here. The list stays as it is.
    fn forecast_here(
        &self,
        id: &ResourceId,
        decide: impl FnOnce(&mut RunLog) -> bool,
    ) -> Option<Forecast> {
        let resource = self.resources.get(id)?;
        let mut log = resource.runs.log.clone();
        decide(&mut log);
        let here = BTreeSet::from([self.me().site.clone()]);
        Some(self.told_after(resource, &resource.resolution, &log, here))
    }

    fn told(&self, resource: &Resource, then: &Resolution, sites: BTreeSet<SiteId>) -> Forecast {
        self.told_after(resource, then, &resource.runs.log, sites)
    }

    fn told_after(
        &self,
        resource: &Resource,
        then: &Resolution,
        log: &RunLog,
        sites: BTreeSet<SiteId>,
    ) -> Forecast {
        let list: Vec<_> =
            then.list().filter_map(|id| then.operations().operation(id)).cloned().collect();
        let now: BTreeSet<&OperationId> = resource.resolution.list().collect();
        let after: BTreeSet<&OperationId> = then.list().collect();
        let known = then.operations().iter().map(|it| &it.id);
        let is_lost = |id: &&OperationId| {
            let is_new = !resource.resolution.operations().contains(id);
            (now.contains(id) || is_new) && !after.contains(id)
        };
        let why = |id: &OperationId| then.left_out(id).map(|out| out.to_string());
        let left_out = known.filter(is_lost).map(|id| (id.clone(), why(id).unwrap_or_default()));
        let back = after.iter().filter(|id| !now.contains(*id));
        let back = back.filter(|id| resource.resolution.operations().contains(id));
        let heard: BTreeSet<SiteId> = self
            .sites()
            .into_iter()
            .filter(|site| matches!(site.status, SiteStatus::Up { .. }))
            .map(|site| site.site)
            .collect();
        let me = &self.me().site;
        let not_heard = sites.iter().filter(|site| *site != me && !heard.contains(*site));
        let items = items_of(then, list.iter());
        let health = plan::plan(&items, log, then.config()).health;
        Forecast {
            new_resource: false,
            new_config: false,
            operation: None,
            replaces: Replaces::Nothing,
            not_heard: not_heard.cloned().collect(),
            left_out: left_out.collect(),
            back: back.map(|id| (*id).clone()).collect(),
            cannot_repair: match health {
                Health::Diverged { why } => Some(why),
                Health::InStep | Health::Undecided { .. } => None,
            },
            list,
            sites,
        }
    }
}

/// The operation as it would be written now.
fn operation(
    resource: &Resource,
    submission: &Submission,
    context: &Context,
    now: Now,
) -> Operation {
    let author = context.settings.me.clone();
    let id = OperationId(EntryId { author, n: context.written + 1 });
    let claimed = context.clock.clone().tick(now.wall_ms);
    let mut parents = resource.resolution.operations().heads();
    parents.sort_unstable();
    Operation {
        stamp: claimed.placed_after(resource.order_of_past(&id, &parents)),
        id,
        resource: submission.resource.clone(),
        claimed,
        parents,
        replaces: resource.resolution.replaces(&submission.kind, submission.force),
        kind: submission.kind.clone(),
        payload: submission.payload.clone(),
        declares: None,
        needs: BTreeSet::new(),
        asked_by: submission.asked_by.clone(),
    }
}
