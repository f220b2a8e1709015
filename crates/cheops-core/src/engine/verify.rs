//! Whether the sites' applications really are in the same state.
//!
//! That all sites ran the same list says that they should be. Where a resource's config says how its
//! state is read, each site reads it once it has run all it knows of and nothing moves, and tells the
//! others what it found, with the list that it had run. Equal lists and equal states at all sites prove
//! that they agree; equal lists and different states, that they do not, whatever the commands said.
//!
//! It is read again every so often, so that a change made behind Cheops' back is found: as a background
//! task that takes a small share of the site's time, however many resources there are. What is found to
//! be the same as before is not told again.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Turn;
use super::ports::{Effect, Job, JobId, Notice, Now, Task};
use super::resource::Resource;
use super::timers::{Timer, Timers};
use super::{Engine, Resources, follow_up};
use crate::model::{
    Author, EntryBody, EntryId, Extension, Fingerprint, Outcome, Reply, ResourceId, SiteId,
    SmallMap, StateReport,
};
use crate::plan::Health;

/// States read at once because something has changed.
const FRESH_AT_ONCE: usize = 4;
/// For every millisecond of reading again, so many of rest: at most a fiftieth of the time is spent.
const REST: u64 = 49;
/// Of a list that grew so often while the state stayed the same, the state is not believed to be its.
const UNMOVED_LIMIT: u32 = 3;

/// What is known of one resource's state.
#[derive(Debug, Default)]
pub(super) struct StateReads {
    /// The job that reads it now, and what had moved until it began.
    under_way: Option<(JobId, u64)>,
    /// Whether what that job reads is kept.
    keeps: bool,
    /// The list after which it was last tried to keep what was read.
    tried_to_keep: Option<Fingerprint>,
    /// What was last read and kept here.
    pub(super) kept: Option<KeptHere>,
    /// Where it stands in the site's queue.
    queued: Option<ReadTurn>,
    /// How often something had moved when it was last read, or is taken as read.
    seen: Option<u64>,
    /// How often something had moved when that was last looked at, and when it was.
    noticed: (u64, u64),
    /// What was last read here.
    pub(super) last: Option<ReadHere>,
    /// How often in a row the list had changed and the state had not.
    unmoved: u32,
    /// What sites said that they read.
    reports: SmallMap<Author, StateReported>,
    /// Whether it was said that they differ.
    said_differs: bool,
    /// Whether it was said that it cannot be read here.
    said_unread: bool,
}

/// What this site last read, or tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadHere {
    /// When, in milliseconds since the Unix epoch by this site's clock.
    pub at_ms: u64,
    /// What it found, or why it could not be read, or is not believed.
    pub found: Result<Fingerprint, String>,
    list: Fingerprint,
    /// What was read, believed or not.
    state: Option<Fingerprint>,
}

/// A state that is kept at this site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptHere {
    pub(super) list: Fingerprint,
    pub(super) state: Fingerprint,
    pub(super) size: u64,
}

impl StateReads {
    /// What that author last said that it read.
    pub(super) fn reported_state(&self, author: &Author) -> Option<Fingerprint> {
        self.reports.get(author).and_then(|said| said.report.found.as_ref().ok().copied())
    }

    /// In which entries what was read is said.
    pub(super) fn said_in(&self) -> impl Iterator<Item = (&Author, &EntryId)> {
        self.reports.iter().map(|(author, said)| (author, &said.entry))
    }
}

/// What a site said that it read.
#[derive(Debug)]
struct StateReported {
    entry: EntryId,
    report: StateReport,
    since_ms: u64,
}

/// Whether the sites' states are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Agreement {
    /// Not all sites have said what they read after this list, and of those that have no two differ.
    #[default]
    Unproven,
    /// All sites read the same.
    Verified {
        /// When the last of them said so, in milliseconds since the Unix epoch by its clock.
        since_ms: u64,
    },
    /// They did not.
    Differs {
        /// What each read.
        states: BTreeMap<SiteId, Fingerprint>,
        /// When the last of them said so.
        since_ms: u64,
    },
}

/// Why it is not known whether the sites' states are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unproven {
    /// The config does not say how the state is read.
    NoState,
    /// Some sites have not said yet what they read after this list.
    NotYet {
        /// Which.
        awaited: BTreeSet<SiteId>,
    },
    /// A site cannot read its state, or does not believe what it read.
    Unread {
        /// Which; of several the one that cannot for longest.
        site: SiteId,
        /// Why, in its own words.
        why: String,
        /// Since when, in milliseconds since the Unix epoch by its clock.
        since_ms: u64,
    },
}

impl Agreement {
    /// The sites whose state is another than that of most; of those that are equally many, than that of
    /// the first by name.
    pub fn odd_ones(&self) -> BTreeSet<&SiteId> {
        let Self::Differs { states, .. } = self else { return BTreeSet::new() };
        let mut groups: BTreeMap<Fingerprint, Vec<&SiteId>> = BTreeMap::new();
        for (site, state) in states {
            groups.entry(*state).or_default().push(site);
        }
        let first = |sites: &[&SiteId]| std::cmp::Reverse(sites.first().copied().cloned());
        let most = groups.iter().max_by_key(|(_, sites)| (sites.len(), first(sites)));
        let most = most.map(|(state, _)| *state);
        states.iter().filter(|(_, state)| Some(**state) != most).map(|(site, _)| site).collect()
    }

    /// Why a site counts as diverged, if it does.
    pub(super) fn trouble_of(&self, site: &SiteId) -> Option<(String, u64)> {
        let Self::Differs { states, since_ms } = self else { return None };
        let odd = self.odd_ones();
        if !odd.contains(site) {
            return None;
        }
        let others: Vec<_> = states.keys().filter(|it| !odd.contains(it)).collect();
        let others: Vec<_> = others.iter().map(|site| format!("`{site}`")).collect();
        Some((format!("its state is not that of {}", others.join(" and ")), *since_ms))
    }
}

/// A place in the queue: when it is due, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReadTurn {
    /// Something changed.
    Fresh(u64),
    /// It is time to look again.
    Again(u64),
}

/// Whose state is to be read when, at this site.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    fresh: BTreeSet<(u64, ResourceId)>,
    again: BTreeSet<(u64, ResourceId)>,
    /// Those under way: since when, and whether it is again.
    running: BTreeMap<JobId, (u64, bool)>,
    /// Until then nothing is read again.
    rest_until_ms: u64,
    /// When this engine began to read again, and how long it has read since.
    again_since_ms: Option<u64>,
    again_spent_ms: u64,
    timer_ms: Option<u64>,
}

impl ReadQueue {
    fn add(&mut self, turn: ReadTurn, id: &ResourceId) {
        match turn {
            ReadTurn::Fresh(due_ms) => self.fresh.insert((due_ms, id.clone())),
            ReadTurn::Again(due_ms) => self.again.insert((due_ms, id.clone())),
        };
    }

    fn remove(&mut self, turn: ReadTurn, id: &ResourceId) {
        match turn {
            ReadTurn::Fresh(due_ms) => self.fresh.remove(&(due_ms, id.clone())),
            ReadTurn::Again(due_ms) => self.again.remove(&(due_ms, id.clone())),
        };
    }

    fn has_room(&self, again: bool) -> bool {
        let running = self.running.values().filter(|(_, of)| *of == again).count();
        running < if again { 1 } else { FRESH_AT_ONCE }
    }

    /// When to look next, if anything could be begun then.
    fn next_ms(&self) -> Option<u64> {
        let due = |queue: &BTreeSet<(u64, ResourceId)>| queue.first().map(|(due_ms, _)| *due_ms);
        let fresh = due(&self.fresh).filter(|_| self.has_room(false));
        let again = due(&self.again).filter(|_| self.has_room(true));
        fresh.into_iter().chain(again.map(|due_ms| due_ms.max(self.rest_until_ms))).min()
    }

    fn take_due(&mut self, now_ms: u64) -> Option<(ResourceId, bool)> {
        let is_due = |queue: &BTreeSet<(u64, ResourceId)>| {
            queue.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms)
        };
        if self.has_room(false) && is_due(&self.fresh) {
            return self.fresh.pop_first().map(|(_, id)| (id, false));
        }
        let may_go_on = self.has_room(true) && self.rest_until_ms <= now_ms;
        if may_go_on && is_due(&self.again) {
            return self.again.pop_first().map(|(_, id)| (id, true));
        }
        None
    }

    /// A job came to its end: reading again rests in proportion.
    fn ended(&mut self, job: JobId, now_ms: u64) {
        if let Some((began_ms, true)) = self.running.remove(&job) {
            let took_ms = now_ms.saturating_sub(began_ms).max(1);
            self.rest_until_ms = now_ms.saturating_add(took_ms.saturating_mul(REST));
            self.again_since_ms.get_or_insert(began_ms);
            self.again_spent_ms = self.again_spent_ms.saturating_add(took_ms);
        }
    }

    /// How long was spent reading again, and out of which time, with the rest that is due.
    fn again_spent(&self, now_ms: u64) -> Option<(u64, u64)> {
        let until_ms = now_ms.max(self.rest_until_ms);
        Some((self.again_spent_ms, until_ms.saturating_sub(self.again_since_ms?).max(1)))
    }

    pub(super) fn set_timer(&mut self, timers: &mut Timers) {
        let Some(next_ms) = self.next_ms() else { return };
        if self.timer_ms.is_none_or(|set_ms| next_ms < set_ms) {
            self.timer_ms = Some(next_ms);
            timers.set(next_ms, Timer::ReadStates);
        }
    }
}

impl Engine {
    /// How many milliseconds were spent reading states again, and out of how many: at most a fiftieth.
    /// None before any was read again.
    pub fn spent_reading_again(&self, now: Now) -> Option<(u64, u64)> {
        self.context.reads.again_spent(now.mono_ms)
    }
}

/// Begins to read what is due.
pub(super) fn read_states(resources: &mut Resources, turn: &mut Turn<'_>) {
    let now_ms = turn.now.mono_ms;
    turn.context.reads.timer_ms = None;
    while let Some((id, again)) = turn.context.reads.take_due(now_ms) {
        let Some(resource) = resources.get_mut(&id) else { continue };
        resource.reads.queued = None;
        match resource.begin_read(turn) {
            Some(job) => {
                turn.context.reads.running.insert(job, (now_ms, again));
            }
            // It comes again when it has come to rest.
            None => follow_up(resource, turn),
        }
    }
    let context = &mut *turn.context;
    context.reads.set_timer(&mut context.timers);
}

impl Resource {
    /// Sees to it that the state is read when this site has come to rest.
    pub(super) fn see_to_reading(&mut self, turn: &mut Turn<'_>) {
        if self.config().state.is_none() || self.is_deleted() {
            self.stop_reading(turn);
            return;
        }
        let moved = self.runs.moved();
        if self.reads.noticed.0 != moved {
            self.reads.noticed = (moved, turn.now.mono_ms);
        }
        if !self.is_at_rest() || self.reads.under_way.is_some() {
            return;
        }
        let is_to_be_kept = self.is_state_to_be_kept(turn)
            && self.reads.tried_to_keep != Some(self.resolution.list_fingerprint());
        let wanted = match self.reads.seen == Some(moved) && !is_to_be_kept {
            false => ReadTurn::Fresh(
                self.reads.noticed.1.saturating_add(turn.context.settings.verify_after_ms),
            ),
            true if self.reads.queued.is_some() => return,
            true => ReadTurn::Again(
                turn.now.mono_ms.saturating_add(turn.context.settings.verify_every_ms),
            ),
        };
        self.queue_read(wanted, turn);
    }

    fn queue_read(&mut self, wanted: ReadTurn, turn: &mut Turn<'_>) {
        if self.reads.queued == Some(wanted) {
            return;
        }
        let context = &mut *turn.context;
        if let Some(queued) = self.reads.queued.replace(wanted) {
            context.reads.remove(queued, &self.id);
        }
        context.reads.add(wanted, &self.id);
        context.reads.set_timer(&mut context.timers);
    }

    fn stop_reading(&mut self, turn: &mut Turn<'_>) {
        if let Some(queued) = self.reads.queued.take() {
            turn.context.reads.remove(queued, &self.id);
        }
        self.reads.seen = None;
    }

    /// It was read before this engine began, after the same list: that is to be looked at again, and no
    /// sooner than others are.
    pub(super) fn recovered_reads(&mut self, me: &Author) {
        let list = self.resolution.list_fingerprint();
        if self.reads.reports.get(me).is_some_and(|said| said.report.list == list) {
            self.reads.seen = Some(self.runs.moved());
        }
        self.reads.said_differs = matches!(self.agreement(me), Agreement::Differs { .. });
    }

    /// Whether all that is known has been run, and could be.
    pub(super) fn is_at_rest(&self) -> bool {
        self.runs.is_idle()
            && self.runs.health == Health::InStep
            && !self.knows.is_empty()
            && !self.edits.are_awaited()
            && !self.programs.are_asked()
    }

    fn begin_read(&mut self, turn: &mut Turn<'_>) -> Option<JobId> {
        let command = self.config().state.as_ref()?.read.clone();
        let moved = self.runs.moved();
        let is_quiet = self.reads.noticed.0 == moved
            && turn.now.mono_ms
                >= self.reads.noticed.1.saturating_add(turn.context.settings.verify_after_ms);
        if !self.is_at_rest() || !is_quiet || self.reads.under_way.is_some() {
            return None;
        }
        let job = turn.context.start_job(&self.id)?;
        self.reads.under_way = Some((job, moved));
        self.reads.keeps = self.is_state_to_be_kept(turn);
        let (resource, keep) = (self.id.clone(), self.reads.keeps);
        let task = Task::Read { command, keep };
        turn.effect(Effect::Run(Job { id: job, resource, again: false, task, inline_body: None }));
        Some(job)
    }

    /// A job ended that is not one of the runs: the state was read.
    pub(super) fn read_ended(&mut self, job: JobId, outcome: &Outcome, turn: &mut Turn<'_>) {
        let context = &mut *turn.context;
        context.reads.ended(job, turn.now.mono_ms);
        context.reads.set_timer(&mut context.timers);
        let Some((_, moved)) = self.reads.under_way.take_if(|(reading, _)| *reading == job) else {
            return;
        };
        if moved != self.runs.moved() || !self.is_at_rest() {
            return; // It may be the state of before, of after, or of neither.
        }
        self.reads.seen = Some(moved);
        let list = self.resolution.list_fingerprint();
        let read = found_by(outcome);
        let state = read.as_ref().ok().copied();
        if self.reads.keeps {
            self.reads.tried_to_keep = Some(list);
            let size =
                outcome.text().trim().split_once(' ').and_then(|(_, size)| size.parse().ok());
            self.reads.kept = state.zip(size).map(|(state, size)| KeptHere { list, state, size });
        }
        let found = self.believe(read, list);
        self.report_state(&StateReport::new(list, found.clone()), turn);
        self.say_unread(turn);
        self.reads.last = Some(ReadHere { at_ms: turn.now.wall_ms, found, list, state });
    }

    /// A state that stays as it is however often the list grows is not that of this resource.
    fn believe(
        &mut self,
        found: Result<Fingerprint, String>,
        list: Fingerprint,
    ) -> Result<Fingerprint, String> {
        let state = found?;
        match &self.reads.last {
            Some(last) if last.list == list => {}
            Some(last) if last.state == Some(state) => {
                self.reads.unmoved = self.reads.unmoved.saturating_add(1);
            }
            _ => self.reads.unmoved = 0,
        }
        if self.reads.unmoved >= UNMOVED_LIMIT {
            return Err(format!(
                "it stayed the same while operations were applied {} times: is this the state of \
                 what they change?",
                self.reads.unmoved
            ));
        }
        Ok(state)
    }

    /// Tells the others, unless they know.
    fn report_state(&mut self, report: &StateReport, turn: &mut Turn<'_>) {
        let me = &turn.context.settings.me;
        let is_known = |said: &StateReported| {
            let is_forgotten = self.base.includes(&said.entry)
                || self.peers.values().any(|peer| peer.pruned.includes(&said.entry));
            // The same trouble again, in whichever words, is no news.
            let is_same =
                said.report == *report || said.report.found.is_err() && report.found.is_err();
            is_same && !is_forgotten
        };
        if self.reads.reports.get(me).is_some_and(is_known) {
            return;
        }
        let Some(carrier) = self.carrier(me) else { return };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, ..carrier };
        self.write(EntryBody::Reply(reply), vec![Extension::state(report)], turn);
    }

    /// The reply to say again: the latest, but not for the price of a long answer.
    pub(super) fn lightest_own_reply(&self, me: &Author) -> Option<&Reply> {
        const LIGHT: usize = 1024;
        let size = |reply: &&Reply| reply.outcome.as_ref().map_or(0, Outcome::size);
        let own = || self.replies.values().filter_map(|replies| replies.by(me));
        let light = own().filter(|reply| size(reply) <= LIGHT).max_by_key(|reply| reply.stamp);
        light.or_else(|| own().min_by_key(size))
    }

    /// Tells whoever cares where this site could not read the state for as long as it takes to come round.
    fn say_unread(&mut self, turn: &mut Turn<'_>) {
        let settings = &turn.context.settings;
        let own = self.reads.reports.get(&settings.me);
        let unread = own.and_then(|said| Some((said.report.found.as_ref().err()?, said.since_ms)));
        let Some((why, since_ms)) = unread else {
            self.reads.said_unread = false;
            return;
        };
        let is_due = turn.now.wall_ms >= since_ms.saturating_add(settings.verify_every_ms);
        if is_due && !self.reads.said_unread {
            self.reads.said_unread = true;
            turn.notify(Notice::Warning(self.id.clone(), unread_text(why)));
        }
    }

    /// Takes in what a site said that it read.
    pub(super) fn see_state_report(&mut self, report: StateReport, entry: &EntryId, since_ms: u64) {
        let reported = StateReported { entry: entry.clone(), report, since_ms };
        self.reads.reports.insert(&entry.author, reported);
    }

    /// What a site read before it said something else of an operation tells nothing of its state now. That
    /// it cannot read it stays so until it does.
    pub(super) fn forget_state_report(&mut self, author: &Author) {
        if self.reads.reports.get(author).is_some_and(|said| said.report.found.is_ok()) {
            self.reads.reports.remove(author);
        }
    }

    /// Forgets what sites said, but for what was pruned: the rest is said again by what is kept.
    pub(super) fn start_over_reports(&mut self) {
        let base = &self.base;
        self.reads.reports.retain(|_, reported| base.includes(&reported.entry));
    }

    /// Tells whoever cares when the sites are found to differ.
    pub(super) fn say_differs(&mut self, turn: &mut Turn<'_>) {
        let agreement = self.agreement(&turn.context.settings.me);
        let me = &turn.context.settings.me;
        let differs = matches!(agreement, Agreement::Differs { .. })
            || self.disagreement_at(&me.site, me).is_some();
        let differed = std::mem::replace(&mut self.reads.said_differs, differs);
        if differs && !differed {
            turn.notify(Notice::Differs(self.id.clone()));
        }
    }

    /// What keeps the sites' states from being proven: none where they are known to be the same, or not.
    pub(super) fn unproven(&self, me: &Author) -> Option<Unproven> {
        if self.config().state.is_none() {
            return Some(Unproven::NoState);
        }
        if self.agreement(me) != Agreement::Unproven {
            return None;
        }
        let list = self.resolution.list_fingerprint();
        let sites = || self.declared.sites.iter();
        let unread = sites().filter_map(|site| {
            let said = self.state_report_of(site, me)?;
            let why = said.report.found.as_ref().err()?;
            let (site, why) = (site.clone(), why.clone());
            Some(Unproven::Unread { site, why, since_ms: said.since_ms })
        });
        let oldest = |unread: &Unproven| match unread {
            Unproven::Unread { since_ms, .. } => *since_ms,
            _ => u64::MAX,
        };
        let is_silent = |site: &&SiteId| {
            self.state_report_of(site, me).is_none_or(|said| said.report.list != list)
        };
        // Of those that are as old the first by name, so that all say the same one.
        unread.min_by_key(oldest).or_else(|| {
            Some(Unproven::NotYet { awaited: sites().filter(is_silent).cloned().collect() })
        })
    }

    /// Whether the sites agree: a function of what they said, so that all who know it say the same.
    pub(super) fn agreement(&self, me: &Author) -> Agreement {
        if self.reads.reports.is_empty() || self.config().state.is_none() {
            return Agreement::Unproven;
        }
        let list = self.resolution.list_fingerprint();
        let told = self.declared.sites.iter().filter_map(|site| {
            let reported = self.state_report_of(site, me)?;
            let state = *reported.report.found.as_ref().ok()?;
            (reported.report.list == list).then_some((site, state, reported.since_ms))
        });
        let told: Vec<_> = told.collect();
        let since_ms = told.iter().map(|(_, _, since_ms)| *since_ms).max().unwrap_or(0);
        let states: BTreeMap<_, _> =
            told.iter().map(|(site, state, _)| ((*site).clone(), *state)).collect();
        let mut different = states.values();
        let first = different.next();
        if different.any(|state| Some(state) != first) {
            Agreement::Differs { states, since_ms }
        } else if states.len() == self.declared.sites.len() {
            Agreement::Verified { since_ms }
        } else {
            Agreement::Unproven
        }
    }

    /// What that site last read, in the incarnation it is in now.
    fn state_report_of(&self, site: &SiteId, me: &Author) -> Option<&StateReported> {
        let incarnation = match *site == me.site {
            true => Some(me.incarnation),
            false => self.peers.get(site).and_then(|peer| peer.incarnation),
        };
        let is_it = |author: &Author| {
            author.site == *site && incarnation.is_none_or(|it| author.incarnation == it)
        };
        let of_site = self.reads.reports.iter().filter(|(author, _)| is_it(author));
        of_site.map(|(_, reported)| reported).max_by_key(|reported| reported.since_ms)
    }
}

/// That a state cannot be read, for people.
pub(super) fn unread_text(why: &str) -> String {
    format!("its state cannot be read: {why}")
}

fn found_by(outcome: &Outcome) -> Result<Fingerprint, String> {
    if outcome.succeeded() {
        // Its size comes after it, if it was kept.
        let found = outcome.text().split_whitespace().next().and_then(Fingerprint::parse);
        return found.ok_or_else(|| "what was read has no fingerprint".to_owned());
    }
    Err(match outcome {
        Outcome::Exited { code, .. } => {
            format!("the command to read it ended with {code}: {}", outcome.text().trim())
        }
        Outcome::TimedOut { limit_ms } => {
            format!("the command to read it did not end within {limit_ms} ms")
        }
        Outcome::NotStarted { reason }
        | Outcome::NotYet { reason, .. }
        | Outcome::BrokenOff { reason } => format!("it could not be read: {reason}"),
        Outcome::Answered { status, .. } => format!("the service answered {status}"),
    })
}
