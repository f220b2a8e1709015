//! Needed resources come first: an operation that names others runs at a site only once these have
//! taken effect there.
//!
//! A resource has taken effect at a site if one of the operations that count did, and, where its
//! service chooses ids, what it is called is known. It has failed there if nothing is left to run and
//! none did, or if it was deleted there. A site that knows nothing of it yet waits: whoever took the
//! operation in left out what some site of the resource does not hold. It waits in vain if that one
//! was shown to lie, or gives sign of life after sign of life and never tells of what it knew.
//!
//! Nobody asks again and again: whoever waits is looked at when a resource it needs has changed here.
//! What needs itself by way of others could never be the first of them, at a site that begins with
//! nothing: it is refused when it is handed in. Where it was made at several sites at once, so that
//! nobody saw it, the first by id fails where it would wait, and the others for want of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Resources;
use super::context::{Context, Turn};
use super::follow_up;
use super::ports::Submission;
use super::resource::Resource;
use super::settings::Settings;
use crate::model::{Act, Operation, OperationId, ResourceId, SiteId};
use crate::plan::{RunEffect, Step};

/// Who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// By the needed one.
    waiting: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    /// By the one that waits: what it was last seen to wait for.
    needed: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    /// To be looked at.
    due: BTreeSet<ResourceId>,
    /// By the one that waits for what is not known here: since when, by the author's signs of life.
    untold: BTreeMap<ResourceId, Untold>,
}

/// An operation of which nobody has told something that it needs.
#[derive(Debug)]
struct Untold {
    operation: OperationId,
    /// Who could tell of it, and how many signs of life of each had been heard then.
    tellers: BTreeMap<SiteId, u64>,
}

/// After so many signs of life, of which any would have come with what was left to tell, nothing more
/// is expected: five minutes, by the usual settings, in which the author is heard.
const MOST_BEATS: u64 = 600;

impl Needs {
    /// A resource changed here: whoever needs it is to be looked at.
    pub(super) fn changed(&mut self, resource: &ResourceId) {
        if let Some(waiting) = self.waiting.get(resource) {
            self.due.extend(waiting.iter().cloned());
        }
    }

    /// A site gave a sign of life: who waited long enough for something that it should have told of is
    /// to be looked at.
    pub(super) fn heard_from(&mut self, site: &SiteId, beats: u64) {
        let is_over = |untold: &Untold| {
            let since = untold.tellers.get(site);
            since.is_some_and(|since| beats.saturating_sub(*since) >= MOST_BEATS)
        };
        let over = self.untold.iter().filter(|(_, untold)| is_over(untold));
        self.due.extend(over.map(|(waiting, _)| waiting.clone()));
    }

    /// Somebody was shown to lie: whoever waits may wait in vain.
    pub(super) fn look_at_all(&mut self) {
        self.due.extend(self.needed.keys().cloned());
    }

    /// Who could tell of what is not known here, since it was first waited for.
    fn tellers(
        &mut self,
        waiting: &ResourceId,
        operation: &OperationId,
        tellers: impl FnOnce() -> BTreeMap<SiteId, u64>,
    ) -> &BTreeMap<SiteId, u64> {
        let known = self.untold.remove(waiting).filter(|untold| untold.operation == *operation);
        let fresh = || Untold { operation: operation.clone(), tellers: tellers() };
        let untold = known.unwrap_or_else(fresh);
        &self.untold.entry(waiting.clone()).or_insert(untold).tellers
    }

    fn wait(&mut self, resource: &ResourceId, needed: BTreeSet<ResourceId>) {
        self.forget(resource);
        for one in &needed {
            self.waiting.entry(one.clone()).or_default().insert(resource.clone());
        }
        self.needed.insert(resource.clone(), needed);
    }

    fn forget(&mut self, resource: &ResourceId) {
        for one in self.needed.remove(resource).into_iter().flatten() {
            if let Some(waiting) = self.waiting.get_mut(&one) {
                waiting.remove(resource);
                if waiting.is_empty() {
                    self.waiting.remove(&one);
                }
            }
        }
    }
}

/// What is known of the needs of the operation that is next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// It waits for this one.
    NotYet(OperationId, ResourceId),
    /// All of them are there.
    There(OperationId),
    /// This one failed, or will never be there; and what is said of it.
    Failed(OperationId, ResourceId, &'static str),
}

/// How a needed resource stands at this site.
#[derive(Debug, PartialEq, Eq)]
enum NeedStanding {
    There,
    NotYet,
    Failed,
    /// It is not known here, and nobody is going to tell of it.
    Untold,
}

/// What an operation may need: those of which every site of its resource has, or will have, a
/// replica. Of another one some site would never hear.
pub(super) fn that_all_hold(
    resources: &Resources,
    needs: BTreeSet<ResourceId>,
    of: &ResourceId,
    sites: &BTreeSet<SiteId>,
) -> BTreeSet<ResourceId> {
    let is_held = |needed: &ResourceId| {
        let held = resources.get(needed);
        needed != of && held.is_some_and(|held| held.declared.sites.is_superset(sites))
    };
    needs.into_iter().filter(is_held).collect()
}

/// Looks at those that wait, until nothing is left that may go on.
pub(super) fn look(resources: &mut Resources, turn: &mut Turn<'_>) {
    while let Some(id) = turn.context.needs.due.pop_first() {
        let Some(resource) = resources.get(&id) else { continue };
        let Some(operation) = resource.waits_with().cloned() else {
            turn.context.needs.forget(&id);
            turn.context.needs.untold.remove(&id);
            continue;
        };
        let is_untold = operation.needs.iter().any(|needed| !resources.contains_key(needed));
        let is_in_vain = is_untold && {
            let Context { needs, links, liars, settings, .. } = &mut *turn.context;
            let beats = |site: &SiteId| links.get(site).map_or(0, |link| link.beats);
            let tellers = needs.tellers(&id, &operation.id, || {
                let tellers = resource.tellers_of(&operation.id, &settings.me.site);
                tellers.map(|site| (site.clone(), beats(site))).collect()
            });
            let is_silent =
                |(site, since): (&SiteId, &u64)| beats(site).saturating_sub(*since) >= MOST_BEATS;
            tellers.iter().any(is_silent)
                || tellers.keys().all(|site| !liars.keys_of(site).is_empty())
        };
        let settings = &turn.context.settings;
        let standing = |needed: &ResourceId| match resources.get(needed) {
            Some(needed) => needed.standing(settings),
            None if is_in_vain => NeedStanding::Untold,
            None => NeedStanding::NotYet,
        };
        let with = |such: NeedStanding| {
            operation.needs.iter().find(|needed| standing(needed) == such).cloned()
        };
        let failed = with(NeedStanding::Failed).map(|needed| (needed, "failed here"));
        let untold =
            || with(NeedStanding::Untold).map(|needed| (needed, "nobody has told of here"));
        let verdict = match (failed.or_else(untold), with(NeedStanding::NotYet)) {
            (Some((needed, why)), _) => Needed::Failed(operation.id.clone(), needed, why),
            (None, Some(needed)) => match in_circle(resources, &id, &operation, settings) {
                Some(needed) => Needed::Failed(operation.id.clone(), needed, "needs it in turn"),
                None => Needed::NotYet(operation.id.clone(), needed),
            },
            (None, None) => Needed::There(operation.id.clone()),
        };
        let waits = matches!(verdict, Needed::NotYet(..));
        if waits {
            turn.context.needs.wait(&id, operation.needs.clone());
        } else {
            turn.context.needs.forget(&id);
            turn.context.needs.untold.remove(&id);
        }
        let Some(resource) = resources.get_mut(&id) else { continue };
        resource.runs.needed = Some(verdict);
        if !waits {
            follow_up(resource, turn);
        }
    }
}

/// What a resource would need by its new operation and what that needs, back to the resource itself:
/// at a site that begins with nothing, none of them could come first. None if there is no such circle,
/// or something that is there without the others comes before.
pub(super) fn circle_made_by(
    resources: &Resources,
    submission: &Submission,
) -> Option<Vec<ResourceId>> {
    let id = &submission.resource;
    let comes_first = |known: &Resource| {
        let resolution = &known.resolution;
        let has_before = resolution.list().next().is_some() || resolution.state().is_some();
        !has_before || resolution.replaces(&submission.kind, submission.force).past()
    };
    if resources.get(id).is_some_and(|known| !comes_first(known)) {
        return None;
    }
    // From which of those that were reached each was reached first.
    let mut reached: BTreeMap<&ResourceId, Option<&ResourceId>> =
        submission.needs.iter().map(|needed| (needed, None)).collect();
    let mut open: Vec<&ResourceId> = submission.needs.iter().collect();
    while let Some(next) = open.pop() {
        for needed in needed_first(resources, next) {
            if needed == id {
                let way = std::iter::successors(Some(next), |at| *reached.get(at)?);
                let mut way: Vec<_> = way.cloned().collect();
                way.reverse();
                return Some(way);
            }
            if !reached.contains_key(needed) {
                reached.insert(needed, Some(next));
                open.push(needed);
            }
        }
    }
    None
}

/// What the first operation of a resource needs: no other can come before it.
fn needed_first<'r>(
    resources: &'r Resources,
    id: &ResourceId,
) -> impl Iterator<Item = &'r ResourceId> + use<'r> {
    let resource = resources.get(id).filter(|it| it.resolution.state().is_none());
    let first = resource.and_then(|it| it.operation(it.resolution.list().next()?));
    first.map(|operation| &operation.needs).into_iter().flatten()
}

/// If a resource waits for itself by way of others, and is the first by id of those that do: which of
/// those that it needs does so.
fn in_circle(
    resources: &Resources,
    id: &ResourceId,
    operation: &Operation,
    settings: &Settings,
) -> Option<ResourceId> {
    if !is_first_of_circle(resources, id, settings) {
        return None;
    }
    operation.needs.iter().find(|needed| waits_for(resources, needed, id, settings)).cloned()
}

/// Whether the one waits for the other, near or far.
fn waits_for(
    resources: &Resources,
    one: &ResourceId,
    other: &ResourceId,
    settings: &Settings,
) -> bool {
    let mut reached = BTreeSet::new();
    let mut open = vec![one];
    while let Some(next) = open.pop() {
        if next == other {
            return true;
        }
        if reached.insert(next) {
            open.extend(needed_by(resources, next, settings));
        }
    }
    false
}

/// Whether a resource waits for itself by way of others, and is the first by id of those that do.
fn is_first_of_circle(resources: &Resources, id: &ResourceId, settings: &Settings) -> bool {
    // All that it waits for, near and far.
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ResourceId> = needed_by(resources, id, settings).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(needed_by(resources, next, settings));
        }
    }
    // Those among them that wait for it in turn are its circle; an earlier one there goes first.
    let waits_for_it = |other: &ResourceId| waits_for(resources, other, id, settings);
    reached.contains(id) && !reached.iter().any(|other| *other < id && waits_for_it(other))
}

/// What the operation that waits in a resource waits for: what it saw before may be there by now.
fn needed_by<'r>(
    resources: &'r Resources,
    id: &ResourceId,
    settings: &'r Settings,
) -> impl Iterator<Item = &'r ResourceId> + use<'r> {
    let waits = resources.get(id).and_then(|resource| resource.waits_with());
    let needs = waits.map(|operation| &operation.needs).into_iter().flatten();
    needs.filter(move |needed| {
        resources.get(*needed).is_some_and(|it| it.standing(settings) == NeedStanding::NotYet)
    })
}

impl Resource {
    /// Whether a step may be begun as far as its needs go; if not, it is looked at when that can
    /// have changed.
    pub(super) fn has_what_it_needs(&mut self, step: &Step, turn: &mut Turn<'_>) -> Go {
        let known = self.runs.needed.take();
        let Step::Run(item) = step else { return Go::On };
        let Some(operation) = self.operation(&item.id) else { return Go::On };
        if operation.needs.is_empty() {
            return Go::On;
        }
        match known {
            Some(Needed::There(of)) if of == item.id => {
                // Until it has begun, which takes a place to run in.
                self.runs.needed = Some(Needed::There(of));
                Go::On
            }
            Some(Needed::Failed(of, needed, why)) if of == item.id => {
                Go::Fail(format!("needs `{needed}`, which {why}"))
            }
            _ => {
                let first = operation.needs.iter().next().cloned();
                let id = item.id.clone();
                self.runs.needed = first.map(|needed| Needed::NotYet(id, needed));
                turn.context.needs.due.insert(self.id.clone());
                Go::Wait
            }
        }
    }

    /// Who could tell of what an operation needs: its author; and where that was this site before it
    /// lost its disk, the other sites.
    fn tellers_of<'r>(
        &'r self,
        operation: &'r OperationId,
        me: &SiteId,
    ) -> impl Iterator<Item = &'r SiteId> + use<'r> {
        let author = operation.site();
        let is_own = author == me;
        let others = self.peers.keys().filter(move |_| is_own);
        others.chain((!is_own).then_some(author))
    }

    /// The operation that waits for what it needs.
    fn waits_with(&self) -> Option<&Arc<Operation>> {
        match &self.runs.needed {
            Some(Needed::NotYet(operation, _)) => self.operation(operation),
            _ => None,
        }
    }

    /// How it stands at this site, for those who need it.
    fn standing(&self, settings: &Settings) -> NeedStanding {
        let ends = |it: &Operation| {
            it.kind.is_deletion()
                || it.service_ref().is_some_and(|(_, service_ref)| service_ref.act == Act::Deletes)
        };
        let took = |it: &Arc<Operation>| {
            !ends(it) && self.runs.log.outcome(&it.id) == Some(RunEffect::Took)
        };
        let is_named =
            || self.names_now(settings).is_none_or(|known| known.at(&settings.me.site).is_some());
        let operations = self.resolution.operations();
        let is_there = match self.resolution.last() {
            // What is to be deleted may still be there, and not for long.
            Some(last) if ends(last) => {
                let is_refused = self.runs.log.outcome(&last.id) == Some(RunEffect::Refused);
                is_refused && operations.iter().any(took)
            }
            _ => self.resolution.list().filter_map(|id| self.operation(id)).any(took),
        };
        match self.runs.is_idle() {
            _ if is_there && is_named() => NeedStanding::There,
            true => NeedStanding::Failed,
            false => NeedStanding::NotYet,
        }
    }
}

/// What to do about a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Wait,
    /// It fails before it is begun.
    Fail(String),
}
