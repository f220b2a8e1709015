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
//! What waits in a circle would do so for ever; there the first by id runs as it is, and its service
//! decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Resources;
use super::context::Turn;
use super::follow_up;
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

/// An operation whose author has not told of something that it needs.
#[derive(Debug)]
struct Untold {
    operation: OperationId,
    /// How many signs of life of the author's site had been heard then.
    beats: u64,
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
            untold.operation.site() == site && beats.saturating_sub(untold.beats) >= MOST_BEATS
        };
        let over = self.untold.iter().filter(|(_, untold)| is_over(untold));
        self.due.extend(over.map(|(waiting, _)| waiting.clone()));
    }

    /// Somebody was shown to lie: whoever waits may wait in vain.
    pub(super) fn look_at_all(&mut self) {
        self.due.extend(self.needed.keys().cloned());
    }

    /// Whether what is not known here is never going to be.
    fn is_in_vain(&mut self, waiting: &ResourceId, operation: &OperationId, beats: u64) -> bool {
        let fresh = || Untold { operation: operation.clone(), beats };
        let untold = self.untold.entry(waiting.clone()).or_insert_with(fresh);
        if untold.operation != *operation {
            *untold = fresh();
        }
        beats.saturating_sub(untold.beats) >= MOST_BEATS
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
        let author = operation.id.site();
        let is_untold = operation.needs.iter().any(|needed| !resources.contains_key(needed));
        let is_in_vain = is_untold && {
            let beats = turn.context.links.get(author).map_or(0, |link| link.beats);
            !turn.context.liars.keys_of(author).is_empty()
                || turn.context.needs.is_in_vain(&id, &operation.id, beats)
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
            (None, Some(_)) if is_first_of_circle(resources, &id) => {
                Needed::There(operation.id.clone())
            }
            (None, Some(needed)) => Needed::NotYet(operation.id.clone(), needed),
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

/// Whether a resource waits for itself by way of others, and is the first by id of those that do.
fn is_first_of_circle(resources: &Resources, id: &ResourceId) -> bool {
    // All that it waits for, near and far.
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ResourceId> = needed_by(resources, id).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(needed_by(resources, next));
        }
    }
    // Those among them that wait for it in turn are its circle; an earlier one there goes first.
    let waits_for_it = |other: &ResourceId| {
        let mut reached = BTreeSet::new();
        let mut open = vec![other];
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if reached.insert(next) {
                open.extend(needed_by(resources, next));
            }
        }
        false
    };
    reached.contains(id) && !reached.iter().any(|other| *other < id && waits_for_it(other))
}

/// What the operation that waits in a resource needs.
fn needed_by<'r>(
    resources: &'r Resources,
    id: &ResourceId,
) -> impl Iterator<Item = &'r ResourceId> + use<'r> {
    let waits = resources.get(id).and_then(|resource| resource.waits_with());
    waits.map(|operation| &operation.needs).into_iter().flatten()
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
