//! What must hold after every step, and what must hold once all is quiet. Apart from the engine's
//! own code, on purpose: a checker that shares the mistake does not see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use cheops_core::engine::{Malformed, OperationView, Progress, ResourceView, Update};
use cheops_core::model::{Entry, EntryId, OperationId, Reply, ResourceId, SiteId, Status, Vector};
use cheops_core::plan::Health;
use cheops_core::resolve::Why;

use crate::application::{Value, fresh_run};
use crate::disk::Disk;
use crate::liar::Lie;
use crate::site::{Site, command_at};
use crate::sometimes::Sometimes;
use crate::things;
use crate::world::World;

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The list that somebody got out of what they knew.
#[derive(Debug)]
struct SeenList {
    site: SiteId,
    list: Vec<OperationId>,
}

/// The books of the checker.
#[derive(Debug, Default)]
pub struct Checks {
    /// Where each resource lives, as the users said.
    pub homes: BTreeMap<ResourceId, BTreeSet<SiteId>>,
    /// Operations that users were told are accepted.
    accepted: BTreeMap<OperationId, ResourceId>,
    /// Accepted operations that were on one disk only when that disk was lost.
    excused: BTreeSet<OperationId>,
    /// Every entry ever sent.
    entries: BTreeMap<EntryId, Arc<Entry>>,
    lists: BTreeMap<(ResourceId, Vector, Vector), SeenList>,
    /// What resources of services are below of, or speak of.
    pub needs: BTreeMap<ResourceId, ResourceId>,
    /// Resources whose creation got no answer at some site, so that it failed there and may have
    /// made something that has no name.
    pub may_be_unnamed: BTreeSet<ResourceId>,
    /// Resources whose things an operator removed from a service.
    pub removed_by_hand: BTreeSet<ResourceId>,
    found: Option<Violation>,
    a_disk_was_lost: bool,
    /// The sites that lie.
    pub liars: BTreeSet<SiteId>,
    /// Resources of which a liar told one site this and another that: until they find out, sites
    /// may believe that they know the same and know different things.
    forked: BTreeSet<ResourceId>,
}

impl Checks {
    /// What was found so far.
    pub fn verdict(&mut self) -> Result<(), Violation> {
        self.found.take().map_or(Ok(()), Err)
    }

    fn violated(&mut self, what: String) {
        self.found.get_or_insert(Violation(what));
    }

    /// A meta-id led to an object that another resource made.
    pub fn leads_to_another(
        &mut self,
        site: &SiteId,
        resource: &ResourceId,
        path: &str,
        of: &ResourceId,
    ) {
        self.violated(format!("at {site}, {resource} leads to `{path}`, which {of} made"));
    }

    /// A command had its effect a second time.
    pub fn ran_twice(&mut self, site: &SiteId, operation: &OperationId) {
        self.violated(format!("`{operation}` took effect twice at {site}"));
    }

    /// An engine called something malformed that another engine sent.
    pub fn malformed(&mut self, from: &SiteId, what: Malformed, allowed: bool) {
        if !allowed {
            self.violated(format!("{from} sent something malformed: {what}"));
        }
    }

    /// A user was told that an operation is accepted.
    pub fn accepted(&mut self, resource: &ResourceId, operation: &OperationId, durable: bool) {
        if !durable {
            self.violated(format!("`{operation}` was accepted and is not on the disk"));
        }
        self.accepted.insert(operation.clone(), resource.clone());
    }

    /// A site is told something about a resource.
    pub fn told(&mut self, to: &SiteId, update: &Update) {
        let home = self.homes.get(&update.resource);
        if home.is_some_and(|sites| !sites.contains(to)) {
            self.violated(format!("{to} was told of {}, which it does not hold", update.resource));
        }
        for entry in &update.entries {
            self.one_name_one_entry(entry);
        }
    }

    /// A liar made something up about a resource.
    pub fn lied_about(&mut self, resource: &ResourceId, _lie: Lie) {
        // Whatever it made up, it writes on under numbers that it has used: any lie may be a fork.
        self.forked.insert(resource.clone());
    }

    /// Whether some site has lost its log.
    pub(crate) fn was_a_disk_lost(&self) -> bool {
        self.a_disk_was_lost
    }

    /// Whether a liar holds it.
    pub(crate) fn has_liar(&self, resource: &ResourceId) -> bool {
        let home = self.homes.get(resource);
        home.is_some_and(|home| home.iter().any(|site| self.liars.contains(site)))
    }

    /// A site sets another apart that never lied.
    pub fn accused(&mut self, by: &SiteId, honest: &SiteId) {
        self.violated(format!("{by} sets {honest} apart, which is honest"));
    }

    fn one_name_one_entry(&mut self, entry: &Arc<Entry>) {
        if self.liars.contains(&entry.id().author.site) {
            return;
        }
        match self.entries.get(entry.id()) {
            Some(seen) if seen.hash() == entry.hash() => {}
            Some(_) => self.violated(format!("two different entries go by `{}`", entry.id())),
            None => {
                self.entries.insert(entry.id().clone(), entry.clone());
            }
        }
    }

    /// A disk was lost: what was on it alone cannot be asked for any more.
    pub fn disk_lost<'a>(&mut self, held: &Disk, others: impl Iterator<Item = &'a Disk>) {
        self.a_disk_was_lost = true;
        let others: Vec<_> = others.collect();
        for (operation, resource) in &self.accepted {
            let elsewhere = others.iter().any(|disk| disk.holds(resource, operation));
            if held.holds(resource, operation) && !elsewhere {
                self.excused.insert(operation.clone());
            }
        }
    }

    /// A site's engine did something about a resource.
    pub fn after_step(&mut self, at_ms: u64, site: &Site, view: &ResourceView) {
        if !self.forked.contains(&view.id) {
            self.same_knowledge_same_list(at_ms, site, view);
        }
        self.undecided_only_while_it_is(site, view);
        if let Some(missing) = view.list.iter().find(|id| !view.knows.includes(&id.0)) {
            self.violated(format!("{} lists `{missing}` and does not know it", site.id));
        }
    }

    /// To wait for others instead of saying that it has diverged, a site needs an operation that
    /// failed there, and another site that has yet to say what became of it.
    fn undecided_only_while_it_is(&mut self, site: &Site, view: &ResourceView) {
        let Health::Undecided { on } = &view.health else { return };
        if view.progress == Progress::Running {
            return; // It looks again when that has ended.
        }
        let ran_at = |replies: &[Reply], at: &SiteId| {
            let ran = |status: &Status| {
                matches!(status, Status::Ok | Status::Ko | Status::Partial { .. })
            };
            replies.iter().any(|reply| reply.site() == at && ran(&reply.status))
        };
        let Some(operation) = view.operations.iter().find(|operation| operation.id() == on) else {
            return self.violated(format!("{} waits for word of `{on}`, unknown", site.id));
        };
        if view.sites.iter().all(|at| ran_at(&operation.replies, at)) {
            self.violated(format!("{} waits for word of `{on}`, and has all", site.id));
        }
    }

    fn same_knowledge_same_list(&mut self, at_ms: u64, site: &Site, view: &ResourceView) {
        // What was pruned is ruled out for good, so that the list is the same with or without it;
        // only an operation made by a site that had lost its memory can be concurrent to the floor.
        let pruned = if self.a_disk_was_lost { view.pruned.clone() } else { Vector::default() };
        let key = (view.id.clone(), view.knows.clone(), pruned);
        match self.lists.get(&key) {
            Some(seen) if seen.list != view.list => {
                let what = format!(
                    "at {at_ms} ms, {} and {} know the same of {} and get different lists: \
                     {:?} and {:?}",
                    site.id, seen.site, view.id, view.list, seen.list
                );
                self.violated(what);
            }
            Some(_) => {}
            None => {
                let seen = SeenList { site: site.id.clone(), list: view.list.clone() };
                self.lists.insert(key, seen);
            }
        }
    }
}

/// Counts the kinds of conflict in what a site sees.
pub(crate) fn note_conflicts(view: &ResourceView, sometimes: &mut Sometimes) {
    things::note(view, sometimes);
    if matches!(view.health, Health::Undecided { .. }) {
        sometimes.saw("run: undecided");
    }
    for operation in &view.operations {
        let Some(left_out) = &operation.left_out else { continue };
        sometimes.saw(match left_out.why {
            Why::Replaced => "conflict: replaced in sequence",
            Why::Forced => "conflict: forced",
            Why::LastWriter { .. } => "conflict: last writer wins",
            Why::ReplaceWins { .. } => "conflict: replacing one wins",
            Why::Circle { .. } => "conflict: circle",
            Why::FailedEverywhere => "conflict: failed everywhere, so void",
        });
    }
    let listed = view.operations.iter().filter(|operation| operation.left_out.is_none());
    if !view.list.iter().eq(listed.map(OperationView::id)) {
        sometimes.saw("conflict: both kept, reversed");
    }
}

/// What must hold when nothing is under way any more and no fault is left.
pub fn when_quiet(world: &World) -> Result<(), Violation> {
    let liars = &world.checks.liars;
    for (resource, home) in &world.checks.homes {
        // What liars make of it is their affair; that they do not answer is no reason for others to
        // say that all is done.
        let has_liar = home.iter().any(|site| liars.contains(site));
        let home: BTreeSet<SiteId> = home.difference(liars).cloned().collect();
        let holders: Vec<(&Site, ResourceView)> = world
            .sites
            .iter()
            .filter(|site| home.contains(&site.id))
            .filter_map(|site| Some((site, site.engine.as_ref()?.resource(resource)?)))
            .collect();
        all_agree(resource, &home, &holders)?;
        let gave_up = things::some_site_gave_up(&holders);
        for (site, view) in &holders {
            if !gave_up {
                is_done(site, view, has_liar)?;
                all_replied(site, view, &home, &holders)?;
            }
            follows_the_list(world, site, view, has_liar)?;
        }
        nothing_lost(world, resource, &holders)?;
    }
    things::when_quiet(world)
}

fn all_agree(
    resource: &ResourceId,
    home: &BTreeSet<SiteId>,
    holders: &[(&Site, ResourceView)],
) -> Result<(), Violation> {
    let Some((first, seen)) = holders.first() else { return Ok(()) };
    if holders.len() < home.len() {
        return Err(Violation(format!("{resource} did not reach all of its sites")));
    }
    for (site, view) in holders {
        if view.knows != seen.knows {
            return Err(Violation(format!(
                "{} and {} do not know the same of {resource}: {:?} and {:?}",
                first.id, site.id, seen.knows, view.knows
            )));
        }
        if view.list != seen.list {
            return Err(Violation(format!(
                "{} and {} end with different lists for {resource}: {:?} and {:?}",
                first.id, site.id, seen.list, view.list
            )));
        }
    }
    Ok(())
}

fn is_done(site: &Site, view: &ResourceView, has_liar: bool) -> Result<(), Violation> {
    if view.progress != Progress::Idle || !(view.converged || has_liar) {
        return Err(Violation(format!(
            "{} is not done with {}: {:?}, converged: {}",
            site.id, view.id, view.progress, view.converged
        )));
    }
    Ok(())
}

/// Nothing is left out in silence: every site has said something of every operation.
/// What some site has forgotten, all knew and none needed: who came back without its memory after
/// that never hears of it, and says nothing of it.
fn all_replied(
    site: &Site,
    view: &ResourceView,
    home: &BTreeSet<SiteId>,
    holders: &[(&Site, ResourceView)],
) -> Result<(), Violation> {
    let was_forgotten =
        |id: &OperationId| holders.iter().any(|(_, view)| view.pruned.includes(&id.0));
    for operation in view.operations.iter().filter(|it| !was_forgotten(it.id())) {
        let replied: BTreeSet<&SiteId> = operation.replies.iter().map(Reply::site).collect();
        if let Some(silent) = home.iter().find(|site| !replied.contains(site)) {
            return Err(Violation(format!(
                "{} has no reply of {silent} to `{}` of {}",
                site.id,
                operation.id(),
                view.id
            )));
        }
        if !view.list.contains(operation.id()) && operation.left_out.is_none() {
            return Err(Violation(format!("`{}` is left out without a reason", operation.id())));
        }
    }
    Ok(())
}

/// The application is as a fresh run of the list would leave it, or the site says that it is not.
/// Nobody is waited for any more.
fn follows_the_list(
    world: &World,
    site: &Site,
    view: &ResourceView,
    has_liar: bool,
) -> Result<(), Violation> {
    if let Health::Undecided { on } = &view.health
        && !has_liar
    {
        return Err(Violation(format!("{} still waits for word of `{on}`", site.id)));
    }
    let commands: Vec<&str> = view
        .list
        .iter()
        .filter_map(|id| view.operations.iter().find(|it| it.id() == id))
        .map(|it| command_at(&it.operation, &site.id))
        .collect();
    let expected: Value = fresh_run(commands.iter().copied());
    let found = site.application.value(&view.id);
    // Where a disk was lost and the application was not, it may hold what nobody knows of.
    let beyond_knowledge = world.checks.a_disk_was_lost
        && site.application.holds_any(&view.id, |id| !view.knows.includes(&id.0));
    if found != expected && view.health == Health::InStep && !beyond_knowledge {
        return Err(Violation(format!(
            "{} says that {} is in step, but it holds `{}` where {commands:?} gives `{}`",
            site.id, view.id, found.text, expected.text
        )));
    }
    Ok(())
}

fn nothing_lost(
    world: &World,
    resource: &ResourceId,
    holders: &[(&Site, ResourceView)],
) -> Result<(), Violation> {
    let checks = &world.checks;
    let due = checks.accepted.iter().filter(|(id, of)| {
        let by_liar = checks.liars.contains(id.site());
        *of == resource && !by_liar && !checks.excused.contains(*id)
    });
    for (operation, _) in due {
        if let Some((site, _)) = holders.iter().find(|(_, view)| !view.knows.includes(&operation.0))
        {
            return Err(Violation(format!(
                "`{operation}` of {resource} was accepted, and {} does not know it",
                site.id
            )));
        }
    }
    Ok(())
}
