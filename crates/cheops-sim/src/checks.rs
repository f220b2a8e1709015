//! What must hold after every step. Apart from the engine's own code, on purpose: a checker that
//! shares the mistake does not see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use cheops_core::engine::{Malformed, ResourceView, RunProgress, SiteStanding, Standing, Update};
use cheops_core::model::{Entry, EntryId, OperationId, Reply, ResourceId, SiteId, Status, Vector};
use cheops_core::plan::Health;

use crate::disk::Disk;
use crate::liar::LiarMove;
use crate::site::SimSite;
use crate::sometimes::Sometimes;

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

/// What somebody said of the sites of a resource, out of what they knew.
#[derive(Debug)]
struct SeenTrouble {
    site: SiteId,
    trouble: BTreeMap<SiteId, &'static str>,
}

/// Whose standing needs somebody, and what it is called.
pub(crate) fn trouble(standings: &[SiteStanding]) -> BTreeMap<SiteId, &'static str> {
    let named = |it: &SiteStanding| {
        let word = match &it.standing {
            Standing::Failed { .. } => "failed",
            Standing::InDoubt { .. } => "in doubt",
            Standing::Diverged { .. } => "diverged",
            Standing::InSync
            | Standing::Running { .. }
            | Standing::Waiting { .. }
            | Standing::Unknown => return None,
        };
        Some((it.site.clone(), word))
    };
    standings.iter().filter_map(named).collect()
}

/// The books of the checker.
#[derive(Debug, Default)]
pub struct Checks {
    /// Where each resource lives, as the users said.
    pub homes: BTreeMap<ResourceId, BTreeSet<SiteId>>,
    /// Operations that users were told are accepted.
    pub(crate) accepted: BTreeMap<OperationId, ResourceId>,
    /// Accepted operations that were on one disk only when that disk was lost.
    pub(crate) excused: BTreeSet<OperationId>,
    /// Every entry ever sent.
    entries: BTreeMap<EntryId, Arc<Entry>>,
    lists: BTreeMap<(ResourceId, Vector, Vector), SeenList>,
    troubles: BTreeMap<(ResourceId, Vector), SeenTrouble>,
    /// What resources of services are below of, or speak of.
    pub needs: BTreeMap<ResourceId, ResourceId>,
    /// Resources whose creation got no answer at some site, so that it failed there and may have
    /// made something that has no name.
    pub may_be_unnamed: BTreeSet<ResourceId>,
    /// Operations in doubt at a site of which nobody has said what became of them there. A creation of
    /// which that is so may have made something that has no name, also when another took its place.
    pub doubted: BTreeSet<(SiteId, ResourceId, OperationId)>,
    /// Resources whose things an operator removed from a service.
    pub removed_by_hand: BTreeSet<ResourceId>,
    /// Operations that failed and that somebody wanted to let be; a crash may have taken that back.
    pub dismissed: BTreeSet<OperationId>,
    /// Resources that somebody changed at a site without asking anybody.
    pub tampered: BTreeSet<ResourceId>,
    found: Option<Violation>,
    pub(crate) a_disk_was_lost: bool,
    /// The sites that lie.
    pub liars: BTreeSet<SiteId>,
    /// Resources of which a liar told one site this and another that: until they find out, sites
    /// may believe that they know the same and know different things.
    forked: BTreeSet<ResourceId>,
    /// Whether a liar counted in as many incarnations as a site may.
    pub(crate) saw_as_many_as_may_be: bool,
}

/// In so many incarnations a site may write on a resource.
const MOST_INCARNATIONS: usize = 64;

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

    /// A short body, which is part of its entry, is not where the operation runs.
    pub fn came_without_body(&mut self, site: &SiteId, operation: &OperationId) {
        self.violated(format!("`{operation}` came to {site} without its body"));
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

    /// A site told the others what state it has.
    pub fn told_state(&mut self, site: &SiteId, resource: &ResourceId, is_so: bool) {
        if !is_so && !self.tampered.contains(resource) {
            self.violated(format!("{site} says of the states of {resource} what is not so"));
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
    pub fn lied_about(&mut self, resource: &ResourceId, _lie: LiarMove) {
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
    pub fn after_step(&mut self, at_ms: u64, site: &SimSite, all: &[SimSite], view: &ResourceView) {
        if !self.forked.contains(&view.id) {
            self.same_knowledge_same_list(at_ms, site, view);
            self.same_knowledge_same_trouble(at_ms, site, view);
        }
        self.undecided_only_while_it_is(site, view);
        self.nobody_is_too_many(site, view);
        self.nothing_said_beyond_what_is_known(at_ms, site, all, view);
        if let Some(missing) = view.list.iter().find(|id| !view.knows.includes(&id.0)) {
            self.violated(format!("{} lists `{missing}` and does not know it", site.id));
        }
    }

    /// In sync is only who knows all that the site knows which says so, but for what is read of states,
    /// and has replied to all that counts; of a site that is not connected, only trouble it told of is said.
    fn nothing_said_beyond_what_is_known(
        &mut self,
        at_ms: u64,
        site: &SimSite,
        all: &[SimSite],
        view: &ResourceView,
    ) {
        // Who lost its disk has forgotten what it had said, and others cannot know that yet. What liars
        // say that they know is their affair.
        if self.a_disk_was_lost || self.has_liar(&view.id) {
            return;
        }
        for said in &view.standings {
            let is_unheard = matches!(said.standing, Standing::Unknown);
            let is_in_sync = matches!(said.standing, Standing::InSync);
            let needs_a_link = is_in_sync
                || matches!(said.standing, Standing::Running { .. } | Standing::Waiting { .. });
            if is_unheard && said.is_connected || needs_a_link && !said.is_connected {
                let (by, of) = (&site.id, &said.site);
                let link = if said.is_connected { "connected" } else { "not connected" };
                let what = format!("{:?} of {} at {of}, {link}", said.standing, view.id);
                self.violated(format!("at {at_ms} ms, {by} says {what}"));
            }
            if !is_in_sync {
                continue;
            }
            let there = all.iter().find(|it| it.id == said.site);
            let engine = there.and_then(|there| there.engine.as_ref());
            for operation in &view.operations {
                let replies = operation.replies.iter();
                let counts = operation.left_out.is_none();
                if counts && !replies.clone().any(|reply| *reply.site() == said.site) {
                    let (by, of, what) = (&site.id, &said.site, operation.id());
                    self.violated(format!(
                        "at {at_ms} ms, {by} says that {} is in sync at {of}, which has not replied to \
                         `{what}`",
                        view.id
                    ));
                }
                let entries = replies.map(|reply| OperationId(reply.id.clone()));
                let unknown = entries.chain([operation.id().clone()]).find(|entry| {
                    engine.is_some_and(|engine| !engine.knows(&view.id, entry))
                        && !site.disk.tells_of_a_state(&view.id, &entry.0)
                });
                if let Some(entry) = unknown {
                    let (by, of) = (&site.id, &said.site);
                    self.violated(format!(
                        "at {at_ms} ms, {by} says that {} is in sync at {of}, which does not know \
                         `{entry}`",
                        view.id
                    ));
                }
            }
        }
    }

    /// Whoever sends what cannot be taken in yet, it takes no more memory than that site has room for.
    pub(crate) fn waits_within_room(&mut self, site: &SimSite, sometimes: &mut Sometimes) {
        let Some(engine) = &site.engine else { return };
        let (counted, booked) = engine.waiting_bytes();
        if counted != *booked {
            self.violated(format!("{} keeps {counted:?} and has booked {booked:?}", site.id));
        }
        let room = site.settings.waiting_bytes;
        for (from, bytes) in counted {
            if bytes > room {
                self.violated(format!("{} keeps {bytes} bytes that wait for {from}", site.id));
            }
            if bytes > room / 2 && self.liars.contains(&from) {
                sometimes.saw("liar: filled its room");
            }
        }
    }

    /// Whoever holds a site's key cannot make it more than so many.
    fn nobody_is_too_many(&mut self, site: &SimSite, view: &ResourceView) {
        let mut incarnations = BTreeMap::<&SiteId, usize>::new();
        for (author, _) in view.knows.iter() {
            *incarnations.entry(&author.site).or_default() += 1;
        }
        let most = incarnations.into_iter().max_by_key(|(_, count)| *count);
        if let Some((of, count)) = most.filter(|(of, _)| **of != site.id) {
            self.saw_as_many_as_may_be |= count == MOST_INCARNATIONS;
            if count > MOST_INCARNATIONS {
                self.violated(format!("{} counts {of} in {count} incarnations", site.id));
            }
        }
    }

    /// To wait for others instead of saying that it has diverged, a site needs an operation that
    /// failed there, and another site that has yet to say what became of it.
    fn undecided_only_while_it_is(&mut self, site: &SimSite, view: &ResourceView) {
        let Health::Undecided { on } = &view.health else { return };
        if view.progress == RunProgress::Running {
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

    /// Who knows the same says the same of every site that is in trouble, itself included: so nobody
    /// says that all is well while a site knows better and has told it.
    fn same_knowledge_same_trouble(&mut self, at_ms: u64, site: &SimSite, view: &ResourceView) {
        // In which incarnation a site is, which decides what it said last, is no part of what is known.
        if self.a_disk_was_lost {
            return;
        }
        let trouble = trouble(&view.standings);
        let key = (view.id.clone(), view.knows.clone());
        match self.troubles.get(&key) {
            Some(seen) if seen.trouble != trouble => {
                let what = format!(
                    "at {at_ms} ms, {} and {} know the same of {} and say otherwise how it stands: \
                     {trouble:?} and {:?}",
                    site.id, seen.site, view.id, seen.trouble
                );
                self.violated(what);
            }
            Some(_) => {}
            None => {
                let seen = SeenTrouble { site: site.id.clone(), trouble };
                self.troubles.insert(key, seen);
            }
        }
    }

    fn same_knowledge_same_list(&mut self, at_ms: u64, site: &SimSite, view: &ResourceView) {
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
