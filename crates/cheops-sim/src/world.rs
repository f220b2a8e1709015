//! The simulated world: sites, time, and what happens next. One thread, one source of chance.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{
    Answer, Application as AfterLoss, Effect, Engine, Event, Job, JobId, Message, Notice, Reaction,
    Record, Settings, Submission, Task, Ticket,
};
use cheops_core::model::{
    Author, Body, Entry, Incarnation, Operation, OperationId, ResourceId, SiteId,
};

use crate::bugs::Bug;
use crate::checks::{Checks, Violation};
use crate::disk::Disk;
use crate::network::{CITIES, Network};
use crate::rng::Rng;
use crate::site::{Running, Site};
use crate::sometimes::Sometimes;
use crate::trace::Trace;

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

#[derive(Debug)]
enum What {
    Deliver { to: usize, from: usize, message: Message },
    CarryOut { site: usize, life: u64, job: JobId },
    End { site: usize, life: u64, job: JobId },
    Tick { site: usize, life: u64 },
    Restart { site: usize, life: u64 },
}

#[derive(Debug)]
struct Scheduled {
    at_ms: u64,
    number: u64,
    what: What,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ms, self.number) == (other.at_ms, other.number)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

/// Sites, links, time.
#[derive(Debug)]
pub struct World {
    /// Virtual time.
    pub now_ms: u64,
    /// The sites, in the order of [`site_name`].
    pub sites: Vec<Site>,
    /// What connects them.
    pub network: Network,
    /// Chance.
    pub rng: Rng,
    /// What was noted.
    pub trace: Trace,
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
    configs: BTreeMap<ResourceId, Arc<Config>>,
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

/// The name of the how-manieth site.
pub fn site_name(index: usize) -> SiteId {
    let city = CITIES[index % CITIES.len()];
    let name = match index / CITIES.len() {
        0 => city.to_owned(),
        more => format!("{city}{more}"),
    };
    #[allow(clippy::expect_used, reason = "built from letters and digits")]
    SiteId::new(&name).expect("a city's name is a site's name")
}

impl World {
    /// A world in which all sites have just started with empty disks.
    pub fn new(setup: Setup) -> Self {
        let mut world = Self {
            now_ms: 0,
            sites: Vec::new(),
            network: Network::default(),
            rng: Rng::new(setup.seed),
            trace: Trace::new(setup.keep_lines),
            sometimes: Sometimes::default(),
            checks: Checks::default(),
            answers: BTreeMap::new(),
            notices: Vec::new(),
            operations: BTreeMap::new(),
            crash_chance: 0,
            traffic: Traffic::default(),
            configs: BTreeMap::new(),
            indexes: BTreeMap::new(),
            queue: BinaryHeap::new(),
            numbered: 0,
            tickets: 0,
            setup,
        };
        let names: Vec<SiteId> = (0..world.setup.sites).map(site_name).collect();
        for (index, id) in names.iter().enumerate() {
            world.indexes.insert(id.clone(), index);
            let settings = Settings::new(world.new_author(id), names.iter().cloned());
            world.sites.push(Site {
                id: id.clone(),
                engine: None,
                disk: Disk::default(),
                application: crate::application::Application::default(),
                skew_ms: 0,
                life: 0,
                settings,
                running: BTreeMap::new(),
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
        Author { site: site.clone(), incarnation: Incarnation(self.rng.draw() & 0xffff_ffff) }
    }

    /// Hands in an operation at a site, if its agent is up.
    pub fn submit(&mut self, site: usize, mut submission: Submission) -> Option<Ticket> {
        self.tickets += 1;
        submission.ticket = Ticket(self.tickets);
        let ticket = submission.ticket;
        self.sites[site].engine.as_ref()?;
        self.handle(site, Event::Submitted(submission));
        Some(ticket)
    }

    /// The operation accepted under that ticket.
    pub fn accepted(&self, ticket: Ticket) -> Option<&OperationId> {
        self.answers.get(&ticket)?.iter().find_map(|answer| match answer {
            Answer::Accepted(id) => Some(id),
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

    /// Lets time pass until that holds, or for so long at most; whether it holds.
    pub fn run_until(
        &mut self,
        most_ms: u64,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, Violation> {
        let until = self.now_ms + most_ms;
        while self.now_ms < until {
            if holds(self) {
                return Ok(true);
            }
            self.run_for(50)?;
        }
        Ok(holds(self))
    }

    /// The next thing that happens.
    pub fn step(&mut self) -> Result<(), Violation> {
        let Some(Reverse(next)) = self.queue.pop() else { return Ok(()) };
        self.now_ms = self.now_ms.max(next.at_ms);
        match next.what {
            What::Deliver { to, from, message } => self.deliver(to, from, message),
            What::CarryOut { site, life, job } => self.carry_out(site, life, job),
            What::End { site, life, job } => self.end(site, life, job),
            What::Tick { site, life } => {
                if self.sites[site].life == life {
                    self.sites[site].tick_ms = None;
                    self.handle(site, Event::Ticked);
                }
            }
            What::Restart { site, life } => {
                if self.sites[site].life == life && self.sites[site].engine.is_none() {
                    self.sometimes.saw("crash: clean restart");
                    self.start(site);
                }
            }
        }
        self.checks.verdict()
    }

    fn schedule(&mut self, after_ms: u64, what: What) {
        self.numbered += 1;
        let at_ms = self.now_ms + after_ms;
        self.queue.push(Reverse(Scheduled { at_ms, number: self.numbered, what }));
    }

    fn deliver(&mut self, to: usize, from: usize, mut message: Message) {
        // A link that was cut while the message was under way loses it, too.
        if self.network.is_cut(from, to) || self.sites[to].engine.is_none() {
            return;
        }
        if self.setup.bug == Some(Bug::OrderByArrival)
            && let Message::Update(update) = &mut message
        {
            let wall_ms = self.sites[to].now(self.now_ms).wall_ms;
            for entry in &mut update.entries {
                let mut arrived = Entry::clone(entry);
                Bug::arrives(self.setup.bug, &mut arrived, wall_ms);
                *entry = Arc::new(arrived);
            }
        }
        let from = self.sites[from].id.clone();
        self.handle(to, Event::Heard { from, message });
    }

    fn carry_out(&mut self, site: usize, life: u64, job: JobId) {
        if self.sites[site].life != life || self.sites[site].engine.is_none() {
            return;
        }
        let configs = &self.configs;
        let config = |resource: &ResourceId| configs.get(resource).cloned().unwrap_or_default();
        if let Err(twice) = self.sites[site].carry_out(job, &self.operations, config) {
            self.checks.ran_twice(&self.sites[site].id, &twice.0);
        }
    }

    fn end(&mut self, site: usize, life: u64, job: JobId) {
        if self.sites[site].life != life || self.sites[site].engine.is_none() {
            return;
        }
        let Some(running) = self.sites[site].running.remove(&job) else { return };
        let Some(outcome) = running.outcome else { return };
        if !outcome.succeeded() && matches!(running.job.task, Task::Run(_)) {
            self.sometimes.saw("run: failed");
        }
        self.handle_about(site, Event::Ended { job, outcome }, Some(running.job.resource));
    }

    /// Lets a site's engine handle an event, makes the outcome durable, and does what it says.
    pub fn handle(&mut self, site: usize, event: Event) {
        let resource = resource_of(&event);
        self.handle_about(site, event, resource);
    }

    fn handle_about(&mut self, site: usize, event: Event, resource: Option<ResourceId>) {
        let now = self.sites[site].now(self.now_ms);
        self.trace.note(self.now_ms, &self.sites[site].id, &event);
        self.trace.line(|| describe(self.now_ms, &self.sites[site].id, &event));
        let Some(engine) = self.sites[site].engine.as_mut() else { return };
        let reaction = engine.handle(now, event);
        self.carry_on(site, reaction);
        if self.setup.check
            && let Some(resource) = resource
        {
            self.checks.after_step(self.now_ms, &self.sites[site], &resource);
            self.note_conflicts(site, &resource);
        }
        self.schedule_tick(site);
    }

    fn carry_on(&mut self, site: usize, reaction: Reaction) {
        // A crash that takes nothing with it is of little interest.
        let weight = if reaction.records() > 0 { 10 } else { 1 };
        let crash = self.rng.below(100_000) < self.crash_chance * weight;
        let point = crash.then(|| {
            *self.rng.pick(&[
                CrashPoint::BeforeCommit,
                CrashPoint::AfterCommit,
                CrashPoint::BetweenEffects,
            ])
        });
        let lying = self.setup.bug == Some(Bug::EffectsBeforeCommit);
        if point == Some(CrashPoint::BeforeCommit) && !lying {
            self.sometimes.saw("crash: before the commit");
            return self.crash(site);
        }
        let records_before = self.sites[site].disk.records().len();
        let mut log = Filtered { disk: &mut self.sites[site].disk, bug: self.setup.bug };
        let Ok(effects) = reaction.commit(&mut log);
        self.note_written(site, records_before);
        if point == Some(CrashPoint::AfterCommit) {
            self.sometimes.saw("crash: after the commit");
            return self.crash(site);
        }
        let half = effects.len() / 2;
        for (at, effect) in effects.into_iter().enumerate() {
            if point == Some(CrashPoint::BetweenEffects) && at >= half {
                break;
            }
            self.carry_out_effect(site, effect);
        }
        if point == Some(CrashPoint::BetweenEffects) {
            self.sometimes.saw("crash: between effects");
            self.crash(site);
        }
        if lying && point == Some(CrashPoint::BeforeCommit) {
            let written = self.sites[site].disk.records().len() - records_before;
            self.sites[site].disk.lose_last(written);
            self.crash(site);
        }
    }

    fn note_written(&mut self, site: usize, from: usize) {
        let me = &self.sites[site].settings.me;
        for record in
            &self.sites[site].disk.records()[from.min(self.sites[site].disk.records().len())..]
        {
            let Record::Entry(resource, entry) = record else { continue };
            let Body::Operation(operation) = &entry.body else { continue };
            if operation.id.0.author != *me {
                continue;
            }
            self.operations.insert(operation.id.clone(), Arc::new(operation.clone()));
            if let Some(config) = operation.declares.as_ref().and_then(|said| said.config.clone()) {
                self.configs.insert(resource.clone(), config);
            }
        }
    }

    fn carry_out_effect(&mut self, site: usize, effect: Effect) {
        self.trace.note(self.now_ms, &self.sites[site].id, &effect);
        if !Bug::lets_out(self.setup.bug, &effect) {
            return;
        }
        match effect {
            Effect::Tell { to, message } => self.tell(site, &to, &message),
            Effect::Run(job) => self.run(site, job),
            Effect::Answer { ticket, answer } => self.answer(site, ticket, answer),
            Effect::Notify(notice) => self.note(site, notice),
        }
    }

    fn tell(&mut self, from: usize, to: &SiteId, message: &Message) {
        let Some(to) = self.indexes.get(to).copied() else { return };
        self.count(from, to, message);
        let delays = self.network.delays_ms(from, to, &mut self.rng);
        match delays.as_slice() {
            [] => self.sometimes.saw("network: lost"),
            [_] => {}
            _ => self.sometimes.saw("network: duplicated"),
        }
        if delays.iter().any(|delay| *delay > 300) {
            self.sometimes.saw("network: reordered");
        }
        for delay in delays {
            self.schedule(delay, What::Deliver { to, from, message: message.clone() });
        }
    }

    fn count(&mut self, from: usize, to: usize, message: &Message) {
        let Message::Update(update) = message else {
            self.traffic.heartbeats += 1;
            return;
        };
        self.traffic.updates += 1;
        self.traffic.entries += update.entries.len() as u64;
        self.traffic.update_bytes +=
            postcard::to_stdvec(message).map_or(0, |bytes| bytes.len() as u64);
        if !self.setup.check {
            return;
        }
        let (from, to) = (self.sites[from].id.clone(), self.sites[to].id.clone());
        self.checks.told(&to, update);
        if update.asks {
            self.sometimes.saw("sync: asked");
        }
        if update.entries.len() > 4 {
            self.sometimes.saw("sync: caught up in one message");
        }
        if update.entries.iter().any(|entry| entry.id().author.site != from) {
            self.sometimes.saw("sync: relayed by a third site");
        }
    }

    fn run(&mut self, site: usize, job: Job) {
        match &job.task {
            Task::Run(operation) => {
                let site = &self.sites[site];
                if site.application.holds(&job.resource, &operation.id) {
                    self.sometimes.saw("run: again, from a replacing operation");
                }
            }
            Task::Undo { .. } => self.sometimes.saw("run: undone"),
            Task::Check { .. } => self.sometimes.saw("run: checked"),
            Task::Snapshot { .. } => self.sometimes.saw("run: snapshot"),
            Task::Restore { .. } => self.sometimes.saw("run: restored"),
            Task::RunPart { .. } | Task::Decompose { .. } => {}
        }
        let (least, most) = self.setup.command_ms;
        let takes = self.rng.between(least, most);
        let acts = self.rng.below(takes + 1);
        let (id, life) = (job.id, self.sites[site].life);
        self.sites[site].running.insert(id, Running { job, outcome: None });
        self.schedule(acts, What::CarryOut { site, life, job: id });
        self.schedule(takes, What::End { site, life, job: id });
    }

    fn answer(&mut self, site: usize, ticket: Ticket, answer: Answer) {
        match &answer {
            Answer::Accepted(id) => {
                if let Some(operation) = self.operations.get(id) {
                    let holds = self.sites[site].disk.holds(&operation.resource, id);
                    self.checks.accepted(&operation.resource, id, holds);
                }
            }
            Answer::Done => self.sometimes.saw("user: answered by all"),
            Answer::TimedOut { .. } => self.sometimes.saw("user: timed out"),
            Answer::Refused(_) => self.sometimes.saw("user: refused"),
            Answer::Replied(_) => {}
        }
        self.answers.entry(ticket).or_default().push(answer);
    }

    fn note(&mut self, site: usize, notice: Notice) {
        self.trace.line(|| format!("{:>9} {:<9}   {notice:?}", self.now_ms, self.sites[site].id));
        match &notice {
            Notice::SiteDown(_) => self.sometimes.saw("site: seen down"),
            Notice::SiteUp(_) => self.sometimes.saw("site: seen up again"),
            Notice::SiteLostItsDisk(_) => self.sometimes.saw("site: rejoined without its memory"),
            Notice::StrangeClock(..) => self.sometimes.saw("clock: strange stamp flagged"),
            Notice::Pruned(..) => self.sometimes.saw("sync: pruned"),
            Notice::PartialError(..) => self.sometimes.saw("run: partial error"),
            Notice::Diverged(..) => self.sometimes.saw("run: diverged"),
            Notice::InDoubt(..) => self.sometimes.saw("run: in doubt, operator asked"),
            Notice::Converged(_) => self.sometimes.saw("resource: converged"),
            Notice::Malformed(from, what) => {
                let allowed = self.setup.bug.is_some();
                self.checks.malformed(from, *what, allowed);
            }
            Notice::Applied(..) | Notice::Failed(..) | Notice::Superseded(..) => {}
        }
        self.notices.push((self.sites[site].id.clone(), notice));
    }

    fn schedule_tick(&mut self, site: usize) {
        let Some(due) = self.sites[site].engine.as_ref().and_then(Engine::next_deadline) else {
            return;
        };
        let due = due.max(self.now_ms);
        if self.sites[site].tick_ms.is_none_or(|scheduled| due < scheduled) {
            self.sites[site].tick_ms = Some(due);
            let life = self.sites[site].life;
            self.schedule(due - self.now_ms, What::Tick { site, life });
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
        site.life += 1;
        let life = site.life;
        self.schedule(after, What::Restart { site: site_index, life });
    }

    /// The disk is gone, and perhaps the application's with it.
    pub fn lose_disk(&mut self, site: usize, application_too: bool) {
        self.crash(site);
        let held = self.sites[site].disk.clone();
        self.sites[site].disk.lose();
        self.sites[site].settings.me = self.new_author(&self.sites[site].id.clone());
        if application_too {
            self.sites[site].application = crate::application::Application::default();
            self.sites[site].settings.application = AfterLoss::Empty;
            self.sometimes.saw("disk: lost with the application");
        } else {
            self.sites[site].settings.application = AfterLoss::MayHoldState;
            self.sometimes.saw("disk: lost, application kept");
        }
        let others = self.sites.iter().filter(|other| other.id != self.sites[site].id);
        self.checks.disk_lost(&held, others.map(|other| &other.disk));
    }

    /// Starts a site's agent from what its disk holds.
    pub fn start(&mut self, site: usize) {
        let now = self.sites[site].now(self.now_ms);
        let settings = self.sites[site].settings.clone();
        let records = self.sites[site].disk.records().to_vec();
        let (engine, reaction) = Engine::recover(settings, records, now);
        self.trace.line(|| format!("{:>9} {:<9} START", self.now_ms, self.sites[site].id));
        self.sites[site].engine = Some(engine);
        self.carry_on(site, reaction);
        self.schedule_tick(site);
    }

    fn note_conflicts(&mut self, site: usize, resource: &ResourceId) {
        let Some(view) = self.sites[site].engine.as_ref().and_then(|e| e.resource(resource)) else {
            return;
        };
        crate::checks::note_conflicts(&view, &mut self.sometimes);
    }
}

/// The disk with a bug in front of it, perhaps.
struct Filtered<'a> {
    disk: &'a mut Disk,
    bug: Option<Bug>,
}

impl cheops_core::engine::Log for Filtered<'_> {
    type Error = std::convert::Infallible;
    fn append(&mut self, records: &[Record]) -> Result<(), Self::Error> {
        if self.bug.is_none() {
            return self.disk.append(records);
        }
        let kept: Vec<Record> =
            records.iter().filter(|record| Bug::keeps(self.bug, record)).cloned().collect();
        self.disk.append(&kept)
    }
}

fn resource_of(event: &Event) -> Option<ResourceId> {
    match event {
        Event::Submitted(submission) => Some(submission.resource.clone()),
        Event::Heard { message: Message::Update(update), .. } => Some(update.resource.clone()),
        Event::Decided { resource, .. } => Some(resource.clone()),
        Event::Ended { .. } | Event::Heard { .. } | Event::Ticked => None,
    }
}

fn describe(at_ms: u64, site: &SiteId, event: &Event) -> String {
    let what = match event {
        Event::Submitted(submission) => format!(
            "submitted {} {} `{}`",
            submission.resource,
            submission.kind,
            submission.payload.summary()
        ),
        Event::Heard { from, message } => format!("heard from {from}: {message}"),
        Event::Ended { job, outcome } => format!("ended {job:?} {outcome:?}"),
        Event::Decided { resource, operation, decision } => {
            format!("operator says {decision:?} to {operation} of {resource}")
        }
        Event::Ticked => "ticked".to_owned(),
    };
    format!("{at_ms:>9} {site:<9} {what}")
}
