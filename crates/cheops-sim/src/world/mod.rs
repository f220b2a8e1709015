//! The simulated world: sites, time, and what happens next. One thread, one source of chance.
//!
//! Here: the cluster and what can be done to it. `agenda` is what happens when, `decisions` what an
//! event leads to, `effects` what is done about it.

mod agenda;
mod border;
mod decisions;
mod effects;
mod requests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{
    Answer, Application as AfterLoss, Engine, Event, JobId, Message, Notice, Settings, Submission,
    Task, Ticket,
};
use cheops_core::model::{
    Author, EntryId, Incarnation, Operation, OperationId, Outcome, ResourceId, SiteId,
};

use agenda::{AgendaItem, Scheduled};

use crate::bugs::Bug;
use crate::checks::{Checks, Violation};
use crate::disk::Disk;
use crate::network::{Network, site_name};
use crate::rng::Rng;
use crate::site::SimSite;
use crate::sometimes::Sometimes;
use crate::trace::SimTrace;

/// How often states are read again: often enough for a run to see it.
const VERIFY_EVERY_MS: u64 = 5_000;

/// From so few operations on a state stands for them: few resources have many.
const SHORT_HISTORY_FROM: usize = 6;

/// So little may wait of what one site sent that now and then there is no room for it.
const WAITING_BYTES: usize = 64 * 1024;

/// How a world is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How many sites.
    pub sites: usize,
    /// Everything that chance decides follows from it.
    pub seed: u64,
    /// Whether lines to read are kept.
    pub keep_lines: bool,
    /// A bug put in on purpose.
    pub bug: Option<Bug>,
    /// How long commands take, at least and at most.
    pub command_ms: (u64, u64),
    /// How many of a hundred operations find nobody to carry them out, and are tried again.
    pub not_yet: u64,
    /// Whether every step is followed by checks. Off only where speed is measured.
    pub check: bool,
    /// Changes to every engine's settings.
    pub adjust: fn(&mut Settings),
}

impl Setup {
    /// A quiet world: no faults but those asked for.
    pub fn new(sites: usize, seed: u64) -> Self {
        Self {
            sites,
            seed,
            keep_lines: false,
            bug: None,
            command_ms: (1, 20),
            not_yet: 0,
            check: true,
            adjust: |_| {},
        }
    }
}

/// When a crash hits, as seen from one decision of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The decision is lost.
    BeforeCommit,
    /// It is durable, and nothing of it was done.
    AfterCommit,
    /// It is durable, and half of it was done.
    BetweenEffects,
}

/// Sites, links, time.
#[derive(Debug)]
pub struct World {
    /// Virtual time.
    pub now_ms: u64,
    /// The sites, in the order of [`site_name`].
    pub sites: Vec<SimSite>,
    /// What connects them.
    pub network: Network,
    /// Chance.
    pub rng: Rng,
    /// What was noted.
    pub trace: SimTrace,
    /// What happened at all.
    pub sometimes: Sometimes,
    /// What must hold.
    pub checks: Checks,
    /// Answers given to users, by ticket.
    pub answers: BTreeMap<Ticket, Vec<Answer>>,
    /// News of all sites, in order.
    pub notices: Vec<(SiteId, Notice)>,
    /// Operations by id, as their receiving site wrote them.
    pub operations: BTreeMap<OperationId, Arc<Operation>>,
    /// Crash chance per decision, in a hundred thousand.
    pub crash_chance: u64,
    /// Bytes sent, apart from signs of life; and how many such messages.
    pub traffic: Traffic,
    /// Entries that the others would not take, if stamps were taken as claimed.
    beyond_time: BTreeSet<EntryId>,
    configs: BTreeMap<ResourceId, Arc<Config>>,
    /// What each site's service first called each resource.
    first_ids: BTreeMap<(usize, ResourceId), String>,
    indexes: BTreeMap<SiteId, usize>,
    queue: BinaryHeap<Reverse<Scheduled>>,
    numbered: u64,
    tickets: u64,
    setup: Setup,
}

/// What went over the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages about resources.
    pub updates: u64,
    /// Their bytes.
    pub update_bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// Signs of life.
    pub heartbeats: u64,
}

impl World {
    /// A world in which all sites have just started with empty disks.
    pub fn new(setup: Setup) -> Self {
        let mut world = Self {
            now_ms: 0,
            sites: Vec::new(),
            network: Network::default(),
            rng: Rng::new(setup.seed),
            trace: SimTrace::new(setup.keep_lines),
            sometimes: Sometimes::default(),
            checks: Checks::default(),
            answers: BTreeMap::new(),
            notices: Vec::new(),
            operations: BTreeMap::new(),
            crash_chance: 0,
            traffic: Traffic::default(),
            beyond_time: BTreeSet::new(),
            configs: BTreeMap::new(),
            first_ids: BTreeMap::new(),
            indexes: BTreeMap::new(),
            queue: BinaryHeap::new(),
            numbered: 0,
            tickets: 0,
            setup,
        };
        let names: Vec<SiteId> = (0..world.setup.sites).map(site_name).collect();
        for (index, id) in names.iter().enumerate() {
            world.indexes.insert(id.clone(), index);
            let mut settings = Settings::new(world.new_author(id), names.iter().cloned());
            settings.verify_every_ms = VERIFY_EVERY_MS;
            settings.short_history_from = SHORT_HISTORY_FROM;
            settings.waiting_bytes = WAITING_BYTES;
            world.sites.push(SimSite {
                id: id.clone(),
                engine: None,
                disk: Disk::default(),
                application: crate::application::SimApplication::default(),
                service: crate::service::SimService::default(),
                directory: BTreeMap::new(),
                shed: BTreeSet::new(),
                skew_ms: 0,
                start: 0,
                settings,
                running: BTreeMap::new(),
                set_apart: BTreeSet::new(),
                lies: false,
                saw_end_of_time: false,
                states: BTreeMap::new(),
                read_before: (world.setup.bug == Some(Bug::StateOfAnotherList)).then(BTreeMap::new),
                tick_ms: None,
            });
        }
        for index in 0..world.sites.len() {
            (world.setup.adjust)(&mut world.sites[index].settings);
            world.start(index);
        }
        world
    }

    fn new_author(&mut self, site: &SiteId) -> Author {
        Author { site: site.clone(), incarnation: Incarnation::drawn(self.rng.draw()) }
    }

    /// Hands in an operation at a site, if its agent is up.
    pub fn submit(&mut self, site: usize, mut submission: Submission) -> Option<Ticket> {
        self.tickets += 1;
        submission.ticket = Ticket(self.tickets);
        let ticket = submission.ticket;
        self.sites[site].engine.as_ref()?;
        if self.setup.bug == Some(Bug::ChildrenDoNotWait) {
            submission.needs.clear();
        }
        self.handle(site, Event::Submitted(submission));
        Some(ticket)
    }

    /// The operation accepted under that ticket.
    pub fn accepted(&self, ticket: Ticket) -> Option<&OperationId> {
        self.answers.get(&ticket)?.iter().find_map(|answer| match answer {
            Answer::Accepted { operation: id, .. } => Some(id),
            _ => None,
        })
    }

    /// Cuts all links between two sites.
    pub fn cut_both_ways(&mut self, a: usize, b: usize) {
        self.network.cut(a, b);
        self.network.cut(b, a);
    }

    /// Cuts every link there is.
    pub fn cut_all(&mut self) {
        for a in 0..self.sites.len() {
            for b in 0..self.sites.len() {
                self.network.cut(a, b);
            }
        }
    }

    /// Lets so much time pass.
    pub fn run_for(&mut self, ms: u64) -> Result<(), Violation> {
        let until = self.now_ms + ms;
        while let Some(Reverse(next)) = self.queue.peek() {
            if next.at_ms > until {
                break;
            }
            self.step()?;
        }
        self.now_ms = until;
        self.checks.verdict()
    }

    /// The next thing that happens.
    pub fn step(&mut self) -> Result<(), Violation> {
        let Some(Reverse(next)) = self.queue.pop() else { return Ok(()) };
        self.now_ms = self.now_ms.max(next.at_ms);
        match next.what {
            AgendaItem::Deliver { to, from, message } => self.deliver(to, from, message),
            AgendaItem::CarryOut { site, start, job } => self.carry_out(site, start, job),
            AgendaItem::End { site, start, job } => self.end(site, start, job),
            AgendaItem::Tick { site, start } => {
                if self.sites[site].start == start {
                    self.sites[site].tick_ms = None;
                    self.handle(site, Event::Ticked);
                }
            }
            AgendaItem::Restart { site, start } => {
                if self.sites[site].start == start && self.sites[site].engine.is_none() {
                    self.sometimes.saw("crash: clean restart");
                    self.start(site);
                }
            }
        }
        self.checks.verdict()
    }

    fn schedule(&mut self, after_ms: u64, what: AgendaItem) {
        self.numbered += 1;
        let at_ms = self.now_ms + after_ms;
        self.queue.push(Reverse(Scheduled { at_ms, number: self.numbered, what }));
    }

    fn deliver(&mut self, to: usize, from: usize, message: Message) {
        // A link that was cut while the message was under way loses it, too.
        if self.network.is_cut(from, to) || self.sites[to].engine.is_none() {
            return;
        }
        let Some(mut message) = self.admit(to, from, message) else { return };
        if !self.brings_its_state(to, from, &message) {
            return;
        }
        if let (Some(bug), Message::Update(update)) = (self.setup.bug, &mut message) {
            let wall_ms = self.sites[to].now(self.now_ms).wall_ms;
            update.entries.iter_mut().for_each(|entry| bug.arrives(entry, to, wall_ms));
        }
        let from = self.sites[from].id.clone();
        self.handle(to, Event::Heard { from, message });
    }

    /// What rests on a state is taken in only with its content, which the sender may have.
    fn brings_its_state(&mut self, to: usize, from: usize, message: &Message) -> bool {
        let Message::Update(update) = message else { return true };
        let Some(floor) = update.base.as_ref().and_then(|base| base.state.as_ref()) else {
            return true;
        };
        if let Some(saved) = self.sites[from].states.get(&floor.state).cloned() {
            self.sites[to].states.entry(floor.state).or_insert(saved);
        }
        self.sites[to].states.contains_key(&floor.state)
    }

    fn carry_out(&mut self, site: usize, start: u64, job: JobId) {
        if self.sites[site].start != start || self.sites[site].engine.is_none() {
            return;
        }
        if self.send_request(site, job) {
            return;
        }
        let Some(running) = self.sites[site].running.get_mut(&job) else { return };
        let (is_run, is_check) = (
            matches!(running.job.task, Task::Run(_)),
            matches!(running.job.task, Task::Check { .. }),
        );
        let chance = self.setup.not_yet;
        if (is_run || is_check) && chance > 0 && self.rng.below(100) < chance {
            if is_check {
                self.sometimes.saw("run: checked in vain");
                running.outcome = Some(Outcome::TimedOut { limit_ms: 1 });
                return;
            }
            self.sometimes.saw("run: not yet");
            // Nobody saw it; or nobody knows whether it was done, and it was not, or it was. The
            // latter only where twice is as good as once: else whoever runs it says that it failed.
            let fate = if self.may_be_repeated(site, job) { self.rng.below(3) } else { 0 };
            if fate == 2 {
                self.take_effect(site, job);
            }
            if let Some(running) = self.sites[site].running.get_mut(&job) {
                let reason = "nobody is there".to_owned();
                running.outcome = Some(Outcome::NotYet { reason, in_doubt: fate > 0 });
            }
            return;
        }
        self.take_effect(site, job);
    }

    /// From now on there is always somebody to carry out an operation.
    pub(crate) fn everyone_is_there(&mut self) {
        self.setup.not_yet = 0;
    }

    fn may_be_repeated(&self, site: usize, job: JobId) -> bool {
        let Some(running) = self.sites[site].running.get(&job) else { return false };
        let Task::Run(operation) = &running.job.task else { return false };
        let config = self.configs.get(&running.job.resource);
        config.is_some_and(|config| config.handling(&operation.kind).idempotent)
    }

    fn take_effect(&mut self, site: usize, job: JobId) {
        let configs = &self.configs;
        let config = |resource: &ResourceId| configs.get(resource).cloned().unwrap_or_default();
        if let Err(twice) = self.sites[site].carry_out(job, config)
            && !self.nobody_could_tell(site, job, &twice.0)
        {
            self.checks.ran_twice(&self.sites[site].id, &twice.0);
        }
    }

    /// Whether the application outlived the disk that said what it had run, and every other disk on which
    /// that incarnation had left a trace on the resource is lost as well: no engine can know of it then.
    fn nobody_could_tell(&self, site: usize, job: JobId, operation: &OperationId) -> bool {
        let SimSite { settings, disk, running, .. } = &self.sites[site];
        let Some(resource) = running.get(&job).map(|running| &running.job.resource) else {
            return false;
        };
        settings.application == AfterLoss::MayHoldState
            && disk.times_begun(operation) < 2
            && !self.sites.iter().any(|it| it.disk.tells_of_an_earlier(&settings.me, resource))
    }

    fn end(&mut self, site: usize, start: u64, job: JobId) {
        if self.sites[site].start != start || self.sites[site].engine.is_none() {
            return;
        }
        let Some(running) = self.sites[site].running.remove(&job) else { return };
        let Some(outcome) = running.outcome else { return };
        if matches!(running.job.task, Task::Ask { .. }) && !outcome.succeeded() {
            self.sometimes.saw("program: of no use");
        }
        let is_over = !matches!(outcome, Outcome::NotYet { .. });
        if is_over && !outcome.succeeded() && matches!(running.job.task, Task::Run(_)) {
            self.sometimes.saw("run: failed");
        }
        let ended = match running.change {
            Some(change) => Event::Edited { job, outcome, change },
            None => Event::Ended { job, outcome },
        };
        self.handle_about(site, ended, Some(running.job.resource));
    }

    fn schedule_tick(&mut self, site: usize) {
        let Some(due) = self.sites[site].engine.as_ref().and_then(Engine::next_deadline) else {
            return;
        };
        let due = due.max(self.now_ms);
        if self.sites[site].tick_ms.is_none_or(|scheduled| due < scheduled) {
            self.sites[site].tick_ms = Some(due);
            let start = self.sites[site].start;
            self.schedule(due - self.now_ms, AgendaItem::Tick { site, start });
        }
    }

    /// Stops a site's agent at once. Its commands die with it; its application lives on.
    pub fn crash(&mut self, site: usize) {
        self.trace.line(|| format!("{:>9} {:<9} CRASH", self.now_ms, self.sites[site].id));
        if !self.sites[site].running.is_empty() {
            self.sometimes.saw("crash: while a command ran");
        }
        let after = self.rng.between(10, 8_000);
        let site_index = site;
        let site = &mut self.sites[site];
        site.engine = None;
        site.running.clear();
        site.tick_ms = None;
        site.start += 1;
        let start = site.start;
        self.schedule(after, AgendaItem::Restart { site: site_index, start });
    }

    /// The disk is gone, and perhaps the application's with it.
    pub fn lose_disk(&mut self, site: usize, application_too: bool) {
        self.crash(site);
        let held = self.sites[site].disk.clone();
        self.sites[site].disk.lose();
        self.sites[site].states.clear();
        // Files are gone with it, whoever still has them.
        let with_body = self.operations.values().filter(|held| !held.files().is_empty());
        self.sites[site].shed = with_body.map(|held| held.id.clone()).collect();
        self.sites[site].settings.me = self.new_author(&self.sites[site].id.clone());
        if application_too {
            self.sites[site].application = crate::application::SimApplication::default();
            self.sites[site].service = crate::service::SimService::default();
            self.sites[site].settings.application = AfterLoss::Empty;
            self.sometimes.saw("disk: lost with the application");
        } else {
            self.sites[site].settings.application = AfterLoss::MayHoldState;
            self.sometimes.saw("disk: lost, application kept");
        }
        // What only a liar has besides is as good as lost.
        let is_other = |other: &&SimSite| other.id != self.sites[site].id && !other.lies;
        let others = self.sites.iter().filter(is_other);
        self.checks.disk_lost(&held, others.map(|other| &other.disk));
    }

    /// Starts a site's agent from what its disk holds.
    pub fn start(&mut self, site: usize) {
        let now = self.sites[site].now(self.now_ms);
        let settings = self.sites[site].settings.clone();
        self.sites[site].set_apart.clear();
        let records = self.sites[site].disk.records().to_vec();
        let (engine, reaction) = Engine::recover(settings, records, now);
        self.trace.line(|| format!("{:>9} {:<9} START", self.now_ms, self.sites[site].id));
        self.sites[site].engine = Some(engine);
        self.sites[site].directory.clear();
        self.carry_on(site, reaction);
        self.schedule_tick(site);
    }
}
