//! One seed: a safety phase full of faults with checks after every step, then a liveness phase
//! without faults in which everything must come to rest and agree.

use cheops_core::engine::{Engine, Event, RunProgress, UndoBasis};
use cheops_core::model::{OperationId, ResourceId, Status};
use cheops_core::plan::Decision;
use cheops_core::resolve::{LeftOut, Why};

use crate::bugs::Bug;
use crate::checks::Violation;
use crate::liar::LiarMove;
use crate::network::Weather;
use crate::quiet::when_quiet;
use crate::rng::Rng;
use crate::service_load::{ServiceLoad, Usage};
use crate::sometimes::Sometimes;
use crate::workload::{FLAVOURS, Subject};
use crate::world::{Setup, World};

/// What came of one seed.
#[derive(Debug)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// A hash over everything that happened.
    pub hash: String,
    /// What happened at all.
    pub sometimes: Sometimes,
    /// Operations that users handed in.
    pub operations: usize,
    /// What went wrong, if anything did.
    pub violation: Option<Violation>,
    /// The lines of the run, if they were asked for.
    pub lines: Vec<String>,
}

/// How long faults are made for.
const SAFETY_MS: u64 = 40_000;
/// How long the sites get to agree once there are none. They know the same within seconds; a
/// list of commands that take seconds each, undone and run again, takes its time.
const LIVENESS_MS: u64 = 1_800_000;

/// Runs one seed.
pub fn torture(seed: u64, bug: Option<Bug>, keep_lines: bool) -> SeedReport {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let sites = usize::try_from(rng.between(2, 6)).unwrap_or(2);
    let mut setup = Setup::new(sites, seed);
    setup.bug = bug;
    setup.keep_lines = keep_lines;
    setup.command_ms = *rng.pick(&[(1, 20), (5, 300), (100, 3_000)]);
    setup.not_yet = *rng.pick(&[0, 0, 5, 30]);
    let services = services(sites, &mut rng);
    let subjects = subjects(sites, &mut rng, services.is_empty());
    let mut run = Torture { subjects, services, world: World::new(setup), rng };
    let result = run.all();
    if result.is_err() {
        run.note_final_views();
    }
    SeedReport {
        seed,
        hash: run.world.trace.hash(),
        sometimes: run.world.sometimes.clone(),
        operations: run.world.operations.len(),
        violation: result.err(),
        lines: run.world.trace.lines().to_vec(),
    }
}

/// Every third seed has users of a service.
fn services(sites: usize, rng: &mut Rng) -> Vec<ServiceLoad> {
    let usages = [Usage::Images, Usage::Albums, Usage::Keys];
    let count = if rng.chance(333) { 1 } else { 0 };
    (0..count)
        .map(|number| ServiceLoad::new(number, *rng.pick(&usages), home(sites, rng)))
        .collect()
}

fn subjects(sites: usize, rng: &mut Rng, alone: bool) -> Vec<Subject> {
    let most = if alone { 4 } else { 2 };
    let count = usize::try_from(rng.between(1, most)).unwrap_or(1);
    (0..count).map(|number| Subject::new(number, rng.pick(FLAVOURS), home(sites, rng))).collect()
}

fn home(sites: usize, rng: &mut Rng) -> Vec<usize> {
    let mut home: Vec<usize> = (0..sites).filter(|_| rng.chance(700)).collect();
    if home.is_empty() {
        home.push(0);
    }
    home
}

struct Torture {
    world: World,
    subjects: Vec<Subject>,
    services: Vec<ServiceLoad>,
    rng: Rng,
}

impl Torture {
    fn all(&mut self) -> Result<(), Violation> {
        for subject in &self.subjects {
            let (id, sites) = (subject.id.clone(), subject.sites().clone());
            self.world.checks.homes.insert(id, sites);
        }
        self.skew_clocks();
        self.choose_liars();
        self.safety()?;
        self.liveness()
    }

    fn skew_clocks(&mut self) {
        const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
        let most = *self.rng.pick(&[0, 50, 10_000, YEAR_MS]);
        for site in &mut self.world.sites {
            let skew = i64::try_from(self.rng.below(2 * most + 1)).unwrap_or(0);
            site.skew_ms = skew - i64::try_from(most).unwrap_or(0);
        }
    }

    /// One or two sites that lie, in every fourth run with enough others.
    fn choose_liars(&mut self) {
        let sites = self.world.sites.len();
        if sites < 3 || !self.rng.chance(300) {
            return;
        }
        let most = if sites < 5 { 1 } else { 2 };
        for _ in 0..self.rng.between(1, most) {
            let at = usize::try_from(self.rng.below(sites as u64)).unwrap_or(0);
            self.world.sites[at].lies = true;
            self.world.checks.liars.insert(self.world.sites[at].id.clone());
        }
    }

    fn somebody_lies(&mut self) {
        let liars: Vec<usize> =
            (0..self.world.sites.len()).filter(|at| self.world.sites[*at].lies).collect();
        if !liars.is_empty() {
            let (liar, lie) = (*self.rng.pick(&liars), *self.rng.pick(&LiarMove::ALL));
            self.world.lie(liar, lie);
        }
    }

    fn safety(&mut self) -> Result<(), Violation> {
        self.world.crash_chance = *self.rng.pick(&[0, 20, 100]);
        let until = self.world.now_ms + SAFETY_MS;
        let pause = self.rng.between(50, 1_500);
        while self.world.now_ms < until {
            self.world.run_for(1 + self.rng.below(2 * pause))?;
            if self.rng.chance(200) {
                self.somebody_lies();
            }
            match self.rng.below(10) {
                0..7 => self.somebody_does_something(),
                7 | 8 => self.something_breaks(),
                _ if self.rng.chance(400) => self.somebody_looks_at_failures(),
                _ if self.rng.chance(400) => self.somebody_undoes(),
                _ => self.operator_decides(),
            }
        }
        Ok(())
    }

    /// A request to a service, by somebody who knows what the agent of that site knows.
    fn somebody_asks_a_service(&mut self) -> bool {
        if self.services.is_empty() || self.rng.chance(400) {
            return false;
        }
        let of = usize::try_from(self.rng.below(self.services.len() as u64)).unwrap_or(0);
        let site = *self.rng.pick(&self.services[of].home);
        let known = &self.world.sites[site].directory;
        let submission = self.services[of].operation(known, &mut self.rng);
        let (resource, sites) = (&submission.resource, self.services[of].sites());
        self.world.checks.homes.insert(resource.clone(), sites.clone());
        if let Some(needed) = submission.needs.first() {
            self.world.checks.needs.insert(resource.clone(), needed.clone());
        }
        self.world.submit(site, submission);
        true
    }

    fn somebody_does_something(&mut self) {
        if self.somebody_asks_a_service() {
            return;
        }
        let at = usize::try_from(self.rng.below(self.subjects.len() as u64)).unwrap_or(0);
        // Now and then at a site that does not hold the resource, and has to say so.
        let site = if self.rng.chance(30) {
            usize::try_from(self.rng.below(self.world.sites.len() as u64)).unwrap_or(0)
        } else {
            *self.rng.pick(&self.subjects[at].home)
        };
        let submission = self.subjects[at].operation(&mut self.rng);
        self.world.submit(site, submission);
    }

    fn something_breaks(&mut self) {
        let sites = self.world.sites.len();
        let any = |rng: &mut Rng| usize::try_from(rng.below(sites as u64)).unwrap_or(0);
        let (a, b) = (any(&mut self.rng), any(&mut self.rng));
        match self.rng.below(14) {
            0 => {
                self.world.network.cut(a, b);
                self.world.sometimes.saw("network: one-way cut");
            }
            1 => self.world.cut_both_ways(a, b),
            2 => self.halves(),
            3 => self.ring(),
            4 => self.isolate(a),
            5 => {
                self.world.cut_all();
                self.world.sometimes.saw("network: all cut");
            }
            6 => self.world.network.heal_all(),
            7 => {
                // A transport that notices says so; whether it is right or not does no harm.
                self.world.network.heal_all();
                let reached = self.world.sites[b].id.clone();
                if self.world.sites[a].engine.is_some() {
                    self.world.handle(a, Event::Reached(reached));
                }
            }
            8 => self.weather(),
            9 => self.world.crash(a),
            10 => self.flap(a, b),
            11 => self.jump_clock(a),
            12 => self.change_behind_our_back(),
            _ => self.lose_a_disk(a),
        }
    }

    fn halves(&mut self) {
        let sites = self.world.sites.len();
        let split = 1 + usize::try_from(self.rng.below(sites as u64 - 1)).unwrap_or(0);
        for a in 0..split {
            for b in split..sites {
                self.world.cut_both_ways(a, b);
            }
        }
        self.world.sometimes.saw("network: halves");
    }

    /// Each site reaches the next one and the one before only.
    fn ring(&mut self) {
        let sites = self.world.sites.len();
        self.world.network.heal_all();
        for a in 0..sites {
            for b in 0..sites {
                let apart = (a + sites - b) % sites;
                if apart > 1 && apart < sites - 1 {
                    self.world.network.cut(a, b);
                }
            }
        }
        self.world.sometimes.saw("network: ring");
    }

    fn isolate(&mut self, site: usize) {
        for other in 0..self.world.sites.len() {
            self.world.cut_both_ways(site, other);
        }
    }

    /// Up and down, so quickly that nobody gets used to either.
    fn flap(&mut self, a: usize, b: usize) {
        for _ in 0..4 {
            self.world.cut_both_ways(a, b);
            if self.world.run_for(self.rng.between(10, 600)).is_err() {
                return; // The violation stays on the books.
            }
            self.world.network.heal(a, b);
            self.world.network.heal(b, a);
        }
        self.world.sometimes.saw("network: flapping");
    }

    fn weather(&mut self) {
        let (loss, duplication, reordering) =
            *self.rng.pick(&[(0, 0, 0), (50, 0, 0), (300, 50, 50), (0, 300, 300), (100, 100, 500)]);
        self.world.network.weather = Weather { loss, duplication, reordering };
    }

    fn jump_clock(&mut self, site: usize) {
        let jump = i64::try_from(self.rng.below(7_200_000)).unwrap_or(0) - 3_600_000;
        self.world.sites[site].skew_ms += jump;
    }

    /// Somebody changes what a site holds, where that can be read.
    fn change_behind_our_back(&mut self) {
        let read: Vec<usize> =
            (0..self.subjects.len()).filter(|at| self.subjects[*at].is_read()).collect();
        if read.is_empty() {
            return;
        }
        let subject = &self.subjects[*self.rng.pick(&read)];
        let site = *self.rng.pick(&subject.home);
        self.world.sites[site].application.tamper(&subject.id);
        self.world.checks.tampered.insert(subject.id.clone());
        self.world.sometimes.saw("state: changed behind our back");
    }

    fn lose_a_disk(&mut self, site: usize) {
        if self.rng.chance(400) {
            let application_too = self.rng.chance(500);
            self.world.lose_disk(site, application_too);
        }
    }

    /// Settles operations that are in doubt, as an operator who looked at the application would.
    fn operator_decides(&mut self) {
        for (site, resource, operation) in self.in_doubt() {
            let holds = self.world.sites[site].application.holds(&resource, &operation);
            let looked = self.world.look_at_service(site, &resource, &operation);
            let decision = match looked {
                Some(decision) => decision,
                None if holds => Decision::Skip,
                None => Decision::Rerun,
            };
            self.world.handle(site, Event::Decided { resource, operation, decision });
        }
    }

    /// Does something about an operation that failed: has it run again where it did, or lets it be.
    fn somebody_looks_at_failures(&mut self) {
        let site = usize::try_from(self.rng.below(self.world.sites.len() as u64)).unwrap_or(0);
        let Some(engine) = &self.world.sites[site].engine else { return };
        let views = engine.resources().filter_map(|id| engine.resource(id));
        let failed: Vec<(ResourceId, OperationId)> = views
            .flat_map(|view| {
                let wrong = view
                    .operations
                    .iter()
                    .filter(|it| it.replies.iter().any(|reply| reply.status == Status::Ko));
                wrong.map(|it| (view.id.clone(), it.id().clone())).collect::<Vec<_>>()
            })
            .collect();
        if failed.is_empty() {
            return;
        }
        let (resource, operation) = self.rng.pick(&failed).clone();
        if self.rng.chance(700) && engine.can_retry(&resource, &operation).is_ok() {
            self.world.sometimes.saw("failure: run again");
            self.world.handle(site, Event::Retried { resource, operation });
        } else if engine.can_dismiss(&resource, &operation).is_ok() {
            self.world.sometimes.saw("failure: let be");
            self.world.checks.dismissed.insert(operation.clone());
            self.world.handle(site, Event::Dismissed { resource, operation });
        }
    }

    /// Takes an operation out, or brings one back.
    fn somebody_undoes(&mut self) {
        let site = usize::try_from(self.rng.below(self.world.sites.len() as u64)).unwrap_or(0);
        let Some(engine) = &self.world.sites[site].engine else { return };
        let (mut undone, mut winners, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for view in engine.resources().filter_map(|id| engine.resource(id)) {
            for it in &view.operations {
                let of = |operation: &OperationId| (view.id.clone(), operation.clone());
                match &it.left_out {
                    Some(LeftOut { by: Some(by), why: Why::Undone }) => undone.push(of(by)),
                    Some(LeftOut { by: Some(by), why }) if why.entry().is_some() => {
                        winners.push(of(by));
                    }
                    _ => all.push(of(it.id())),
                }
            }
        }
        // What is rare is tried more often.
        let named = match self.rng.below(3) {
            0 if !undone.is_empty() => undone,
            1 if !winners.is_empty() => winners,
            _ => all,
        };
        if named.is_empty() {
            return;
        }
        let (resource, operation) = self.rng.pick(&named).clone();
        let undoing = engine.can_undo(&resource, &operation).and_then(UndoBasis::checked);
        if let Ok((undoing, _)) = undoing {
            let listed = |engine: &Engine| engine.resource(&resource).map_or(0, |it| it.list.len());
            let before = listed(engine);
            if undoing.back {
                self.world.sometimes.saw("undo: brought back");
            }
            let back = undoing.back;
            self.world.handle(site, Event::Undone { resource: resource.clone(), undoing });
            let after = self.world.sites[site].engine.as_ref().map_or(0, listed);
            if !back && after >= before {
                self.world.sometimes.saw("undo: a concurrent one counts again");
            }
        }
    }

    fn in_doubt(&self) -> Vec<(usize, ResourceId, OperationId)> {
        let mut found = Vec::new();
        for (index, site) in self.world.sites.iter().enumerate() {
            let Some(engine) = &site.engine else { continue };
            for id in engine.resources() {
                if let Some(RunProgress::AwaitsOperator(operation)) =
                    engine.resource(id).map(|view| view.progress)
                {
                    found.push((index, id.clone(), operation));
                }
            }
        }
        found
    }

    fn liveness(&mut self) -> Result<(), Violation> {
        self.world.crash_chance = 0;
        self.world.everyone_is_there();
        self.world.network.heal_all();
        self.world.network.weather = Weather::default();
        let until = self.world.now_ms + LIVENESS_MS;
        // Sites that are down come back within eight seconds.
        self.world.run_for(8_000)?;
        loop {
            self.operator_decides();
            self.world.run_for(2_000)?;
            match when_quiet(&self.world) {
                Ok(()) => return self.note_rejoined(),
                Err(violation) if self.world.now_ms >= until => return Err(violation),
                Err(_) => {}
            }
        }
    }

    /// What every site makes of every resource in the end, for whoever reads the trace.
    fn note_final_views(&mut self) {
        if !self.world.trace.keeps_lines() {
            return;
        }
        let mut lines = Vec::new();
        for site in &self.world.sites {
            let Some(engine) = &site.engine else { continue };
            for view in engine.resources().filter_map(|id| engine.resource(id)) {
                let value = site.application.value(&view.id).text;
                let (id, health, progress) = (&view.id, &view.health, &view.progress);
                lines.push(format!("{} {id} holds `{value}` {health:?} {progress:?}", site.id));
                lines.push(format!("  knows {:?} pruned {:?}", view.knows, view.pruned));
                for operation in &view.operations {
                    let place = view.list.iter().position(|listed| listed == operation.id());
                    let replies: Vec<_> = operation
                        .replies
                        .iter()
                        .map(|reply| (reply.site(), &reply.status))
                        .collect();
                    lines.push(format!(
                        "  {} {} `{}` list: {place:?} out: {:?} replies: {replies:?}",
                        operation.id(),
                        operation.operation.kind,
                        operation.operation.payload.summary(),
                        operation.left_out
                    ));
                }
            }
        }
        lines.into_iter().for_each(|line| self.world.trace.line(|| line));
    }

    fn note_rejoined(&mut self) -> Result<(), Violation> {
        for site in &self.world.sites {
            let Some(engine) = &site.engine else { continue };
            let started = |id: &ResourceId| {
                engine.resource(id).is_some_and(|view| {
                    !view.pruned.is_empty() && view.pruned.last_of(engine.me()) == 0
                })
            };
            if engine.resources().any(started) {
                self.world.sometimes.saw("sync: base adopted by a site that lost its disk");
            }
        }
        if self.world.checks.saw_as_many_as_may_be {
            self.world.sometimes.saw("liar: counted in no more incarnations than it may");
        }
        if crate::quiet::some_state_is_verified(&self.world) {
            self.world.sometimes.saw("state: verified");
        }
        for end in crate::service_checks::ends(&self.world) {
            self.world.sometimes.saw(end);
        }
        self.world.checks.verdict()
    }
}
