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

/// What a forecast is made from, counted out quickly: what follows from it takes the longer the longer the
/// history is, and needs no engine.
#[derive(Debug, Clone)]
pub struct ForecastBasis {
    resolution: Resolution,
    change: ForecastChange,
    log: RunLog,
    /// As far as it can be told without resolving.
    told: Forecast,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum ForecastChange {
    /// With a config, if it brings another one.
    HandedIn(Operation, Option<Arc<Config>>),
    /// The operations that would be void then.
    Undone(Undoing, Vec<OperationId>),
    /// This site's own word on what ran here; the list stays as it is.
    RanOtherwise,
    /// Nothing is run anywhere.
    LetBe,
}

impl Engine {
    /// From what can be told what would come of an operation if it were handed in now.
    ///
    /// # Errors
    ///
    /// Why it would be refused.
    pub fn forecast_basis(
        &self,
        submission: &Submission,
        now: Now,
    ) -> Result<ForecastBasis, Refusal> {
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
        let operation = operation(resource, submission, &self.context, now);
        let told = Forecast {
            new_resource,
            new_config: config.is_some() && !new_resource,
            operation: Some(operation.id.clone()),
            replaces: operation.replaces,
            ..self.told(sites)
        };
        Ok(basis(resource, ForecastChange::HandedIn(operation, config), told))
    }

    /// The same of an undoing.
    pub(super) fn basis_of_undoing(&self, resource: &Resource, undoing: &Undoing) -> ForecastBasis {
        let void = resource.void_after(undoing);
        let told = self.told(resource.declared.sites.clone());
        basis(resource, ForecastChange::Undone(undoing.clone(), void), told)
    }

    /// From what can be told what would come of running an operation again that failed here.
    pub fn forecast_retry(
        &self,
        id: &ResourceId,
        operation: &OperationId,
    ) -> Option<ForecastBasis> {
        self.basis_here(id, |log| log.forget_refusal(operation))
    }

    /// The same of the operator's word on an operation in doubt here.
    pub fn forecast_decision(
        &self,
        id: &ResourceId,
        operation: &OperationId,
        decision: Decision,
    ) -> Option<ForecastBasis> {
        self.basis_here(id, |log| log.decide(operation, decision))
    }

    /// The same of letting a failure be.
    pub fn forecast_dismissal(&self, id: &ResourceId) -> Option<ForecastBasis> {
        let resource = self.resources.get(id)?;
        let told = self.told(resource.declared.sites.clone());
        Some(basis(resource, ForecastChange::LetBe, told))
    }

    fn basis_here(
        &self,
        id: &ResourceId,
        decide: impl FnOnce(&mut RunLog) -> bool,
    ) -> Option<ForecastBasis> {
        let resource = self.resources.get(id)?;
        let here = BTreeSet::from([self.me().site.clone()]);
        let mut basis = basis(resource, ForecastChange::RanOtherwise, self.told(here));
        decide(&mut basis.log);
        Some(basis)
    }

    /// Nothing but where it would go.
    fn told(&self, sites: BTreeSet<SiteId>) -> Forecast {
        let heard: BTreeSet<SiteId> = self
            .sites()
            .into_iter()
            .filter(|site| matches!(site.status, SiteStatus::Up { .. }))
            .map(|site| site.site)
            .collect();
        let me = &self.me().site;
        let not_heard = sites.iter().filter(|site| *site != me && !heard.contains(*site));
        Forecast {
            new_resource: false,
            new_config: false,
            operation: None,
            replaces: Replaces::Nothing,
            not_heard: not_heard.cloned().collect(),
            sites,
            list: Vec::new(),
            left_out: Vec::new(),
            back: Vec::new(),
            cannot_repair: None,
        }
    }
}

fn basis(resource: &Resource, change: ForecastChange, told: Forecast) -> ForecastBasis {
    let (resolution, log) = (resource.resolution.clone(), resource.runs.log.clone());
    ForecastBasis { resolution, change, log, told }
}

impl ForecastBasis {
    /// What would come of it.
    pub fn forecast(&self) -> Forecast {
        let (now, then) = (&self.resolution, self.then());
        let list: Vec<_> =
            then.list().filter_map(|id| then.operations().operation(id)).cloned().collect();
        let items = items_of(&then, list.iter());
        let health = plan::plan(&items, &self.log, then.config()).health;
        let counted: BTreeSet<&OperationId> = now.list().collect();
        let counting: BTreeSet<&OperationId> = then.list().collect();
        let is_lost = |id: &&OperationId| {
            let is_new = !now.operations().contains(id);
            (counted.contains(id) || is_new) && !counting.contains(id)
        };
        let left_out = then.operations().iter().map(|it| &it.id).filter(is_lost);
        let back = counting.iter().filter(|id| !counted.contains(*id));
        let back = back.filter(|id| now.operations().contains(id));
        Forecast {
            left_out: left_out.map(|id| (id.clone(), self.why_left_out(&then, id))).collect(),
            back: back.map(|id| (*id).clone()).collect(),
            cannot_repair: match health {
                Health::Diverged { why } if !matches!(self.change, ForecastChange::LetBe) => {
                    Some(why)
                }
                _ => None,
            },
            list,
            ..self.told.clone()
        }
    }

    fn then(&self) -> Resolution {
        let now = &self.resolution;
        match &self.change {
            ForecastChange::HandedIn(operation, config) => {
                let mut then = match config {
                    Some(config) => {
                        let void = now.operations();
                        let all = void.iter().map(|it| &it.id);
                        now.anew(config.clone(), all.filter(|id| void.is_void(id)))
                    }
                    None => now.clone(),
                };
                then.insert(operation.clone());
                then
            }
            ForecastChange::Undone(_, void) => now.anew(now.rules().clone(), void),
            ForecastChange::RanOtherwise | ForecastChange::LetBe => now.clone(),
        }
    }

    fn why_left_out(&self, then: &Resolution, id: &OperationId) -> String {
        match &self.change {
            ForecastChange::Undone(undoing, _) if undoing.operation == *id => {
                "it is undone".to_owned()
            }
            _ => then.left_out(id).map(|out| out.to_string()).unwrap_or_default(),
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
