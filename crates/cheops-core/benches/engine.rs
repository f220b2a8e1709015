//! How many events an engine handles per second, on one core: three engines that exchange
//! everything they say, with a log that keeps nothing and commands that take no time.
//!
//! Elements are events handled, by all three together: operations handed in, messages heard,
//! commands that ended, ticks.
#![allow(missing_docs, reason = "macros make the functions")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cheops_core::config::Config;
use cheops_core::engine::{
    Batch, Effect, Engine, Event, Log, Now, Reaction, Settings, Submission, Ticket, Unsigned,
    WaitFor,
};
use cheops_core::model::{
    Author, Incarnation, OperationType, Outcome, Payload, ResourceId, SiteId,
};
use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

const REDIS: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// Forgets everything at once: the disk is not what is measured here.
struct Nowhere;

impl Log for Nowhere {
    type Error = Infallible;
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Infallible> {
        black_box(batch.records());
        Ok(())
    }
}

/// Three engines and what is under way between them.
struct Three {
    engines: Vec<Engine>,
    names: Vec<SiteId>,
    config: Arc<Config>,
    under_way: VecDeque<(usize, Event)>,
    /// Whether the third site is cut off.
    cut: bool,
    now_ms: u64,
    handled: u64,
}

impl Three {
    fn new() -> Self {
        let names = ["paris", "lyon", "nantes"].map(|name| SiteId::new(name).unwrap()).to_vec();
        let config = Arc::new(Config::parse(REDIS).unwrap().config);
        let mut three = Self {
            engines: Vec::new(),
            names,
            config,
            under_way: VecDeque::new(),
            cut: false,
            now_ms: 0,
            handled: 0,
        };
        let mut first = Vec::new();
        for site in 0..3 {
            let author =
                Author { site: three.names[site].clone(), incarnation: Incarnation(site as u64) };
            let settings = Settings::new(author, three.names.iter().cloned());
            let (engine, reaction) = Engine::recover(settings, [], three.now());
            three.engines.push(engine);
            first.push(reaction);
        }
        for (site, reaction) in first.into_iter().enumerate() {
            three.carry_out(site, reaction);
        }
        three.pass(1_000);
        three
    }

    fn now(&self) -> Now {
        Now { mono_ms: self.now_ms, wall_ms: 1_760_000_000_000 + self.now_ms }
    }

    /// Lets time pass; the engines tick when they want to and talk until there is nothing left to
    /// say.
    fn pass(&mut self, ms: u64) {
        let until = self.now_ms + ms;
        self.drain();
        while let Some((due, site)) = self.next_tick().filter(|(due, _)| *due <= until) {
            self.now_ms = due.max(self.now_ms);
            self.handle(site, Event::Ticked);
            self.drain();
        }
        self.now_ms = until;
    }

    fn next_tick(&self) -> Option<(u64, usize)> {
        let due = |(site, engine): (usize, &Engine)| Some((engine.next_deadline()?, site));
        self.engines.iter().enumerate().filter_map(due).min()
    }

    fn drain(&mut self) {
        while let Some((site, event)) = self.under_way.pop_front() {
            self.handle(site, event);
        }
    }

    fn handle(&mut self, site: usize, event: Event) {
        self.handled += 1;
        let now = self.now();
        let reaction = self.engines[site].handle(now, event);
        self.carry_out(site, reaction);
    }

    fn carry_out(&mut self, from: usize, reaction: Reaction) {
        let Ok(effects) = reaction.commit(&mut Nowhere, &Unsigned);
        for effect in effects {
            match effect {
                Effect::Tell { to, message } => {
                    let to = self.names.iter().position(|name| *name == to).unwrap();
                    if !(self.cut && (from == 2 || to == 2)) {
                        let from = self.names[from].clone();
                        self.under_way.push_back((to, Event::Heard { from, message }));
                    }
                }
                Effect::Run(job) => {
                    let event = Event::Ended { job: job.id, outcome: Outcome::success("") };
                    self.under_way.push_back((from, event));
                }
                Effect::Answer { .. }
                | Effect::Notify(_)
                | Effect::Publish(..)
                | Effect::SetApart(..) => {}
            }
        }
    }

    fn submit(&mut self, site: usize, kind: &str) {
        let submission = Submission {
            ticket: Ticket(self.handled),
            resource: ResourceId::new("counter").unwrap(),
            sites: Some(self.names.iter().cloned().collect::<BTreeSet<_>>()),
            config: Some(self.config.clone()),
            kind: OperationType::new(kind).unwrap(),
            payload: Payload::shell(format!("redis-cli {kind} x 1")),
            inline_body: None,
            force: false,
            wait: WaitFor::All,
            timeout_ms: 1_000,
            needs: Default::default(),
            asked_by: None,
        };
        self.handle(site, Event::Submitted(submission));
    }

    /// So many operations of that type, at one site after the other, each known to all before the
    /// next.
    fn in_turn(&mut self, count: usize, kind: &str) {
        for number in 0..count {
            self.submit(number % 3, kind);
            self.pass(60);
        }
    }

    /// So many that the third site misses.
    fn missed(&mut self, count: usize) {
        self.cut = true;
        self.pass(5_000);
        for number in 0..count {
            self.submit(number % 2, "inc");
            self.pass(60);
        }
    }

    fn heal(&mut self) {
        self.cut = false;
        self.pass(5_000);
        let resource = ResourceId::new("counter").unwrap();
        let converged = |engine: &Engine| engine.resource(&resource).unwrap().settled;
        assert!(self.engines.iter().all(converged), "they must agree by now");
    }
}

/// Measures what is done to three engines that were made ready, in events per second.
fn measure(
    criterion: &mut Criterion,
    name: &str,
    ready: impl Fn() -> Three,
    work: impl Fn(&mut Three),
) {
    // The same every time, so that it can be counted beforehand.
    let mut three = ready();
    let before = three.handled;
    work(&mut three);
    let mut group = criterion.benchmark_group("engine");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    // Making ready takes longer than the work itself: no more rounds than samples.
    group.measurement_time(Duration::from_secs(3)).sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(three.handled - before));
    group.bench_function(name, |bencher| {
        bencher.iter_batched(
            &ready,
            |mut three| {
                work(&mut three);
                three
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn after(history: usize) -> Three {
    let mut three = Three::new();
    three.in_turn(history, "inc");
    three
}

fn events(criterion: &mut Criterion) {
    measure(criterion, "100 sets, history pruned", Three::new, |three| three.in_turn(100, "set"));
    measure(criterion, "100 incs on 100", || after(100), |three| three.in_turn(100, "inc"));
    measure(criterion, "100 incs on 1000", || after(1_000), |three| three.in_turn(100, "inc"));
    let behind = || {
        let mut three = after(10);
        three.missed(300);
        three
    };
    measure(criterion, "a site catches up with 300 incs", behind, Three::heal);
    measure(criterion, "ten seconds of signs of life", || after(1), |three| three.pass(10_000));
}

criterion_group!(benches, events);
criterion_main!(benches);
