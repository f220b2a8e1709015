//! Many sites with many resources of three sites each: what one operation costs, and whether that
//! depends on how many sites there are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_core::config::Config;
use cheops_core::engine::{Submission, Ticket, WaitFor};
use cheops_core::model::{OperationType, Payload, ResourceId, SiteId};
use cheops_sim::{Rng, Setup, Traffic, World, site_name};

const COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// Every resource gets one operation at each of its sites.
const HOME: usize = 3;
/// How long the users take for one round of operations, one on each resource.
const ROUND_MS: u64 = 300;

/// How big.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) sites: usize,
    pub(crate) resources: usize,
}

/// What it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) scale: Scale,
    pub(crate) operations: u64,
    pub(crate) traffic: Traffic,
    /// Things that happened: arrivals, ends of commands, ticks.
    pub(crate) events: u64,
    /// How long that took here.
    pub(crate) took: Duration,
    pub(crate) virtual_ms: u64,
}

impl Measured {
    pub(crate) fn messages_per_operation(&self) -> f64 {
        ratio(self.traffic.updates, self.operations)
    }

    pub(crate) fn bytes_per_operation(&self) -> f64 {
        ratio(self.traffic.update_bytes, self.operations)
    }

    pub(crate) fn entries_per_operation(&self) -> f64 {
        ratio(self.traffic.entries, self.operations)
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }

    pub(crate) fn heartbeats_per_site_and_second(&self) -> f64 {
        ratio(self.traffic.heartbeats, self.scale.sites as u64 * self.virtual_ms) * 1_000.0
    }
}

fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}

/// A resource and where it lives.
struct Held {
    id: ResourceId,
    home: [usize; HOME],
    sites: BTreeSet<SiteId>,
}

/// Plays it: on every resource a set, then an inc at each of the other sites, every time until all
/// sites of all resources are done.
pub(crate) fn measure(scale: Scale) -> Measured {
    let mut rng = Rng::new(7);
    let held: Vec<Held> = (0..scale.resources).map(|n| place(n, scale.sites, &mut rng)).collect();
    let config = Arc::new(Config::parse(COUNTER).unwrap().config);
    let mut play =
        Play { world: World::new(Setup { check: false, ..Setup::new(scale.sites, 1) }), events: 0 };
    // Until all have heard each other.
    play.world.run_for(500).unwrap();
    let start = Instant::now();
    for round in 0..HOME {
        let begin = play.world.now_ms;
        for (number, resource) in held.iter().enumerate() {
            play.until(begin + number as u64 * ROUND_MS / scale.resources as u64);
            let submission = submission(resource, round, &config);
            play.world.submit(resource.home[round], submission).unwrap();
        }
        play.until_quiet(&held, 100 + round);
    }
    Measured {
        scale,
        operations: (HOME * scale.resources) as u64,
        traffic: play.world.traffic,
        events: play.events,
        took: start.elapsed(),
        virtual_ms: play.world.now_ms,
    }
}

fn place(number: usize, sites: usize, rng: &mut Rng) -> Held {
    let mut home = BTreeSet::new();
    while home.len() < HOME {
        home.insert(usize::try_from(rng.below(sites as u64)).unwrap());
    }
    let sites = home.iter().map(|site| site_name(*site)).collect();
    let home: Vec<usize> = home.into_iter().collect();
    let id = ResourceId::new(&format!("resource-{number}")).unwrap();
    Held { id, home: [home[0], home[1], home[2]], sites }
}

fn submission(resource: &Held, round: usize, config: &Arc<Config>) -> Submission {
    let (kind, command) = if round == 0 { ("set", "set 100") } else { ("inc", "inc 1") };
    Submission {
        ticket: Ticket(0),
        resource: resource.id.clone(),
        sites: Some(resource.sites.clone()),
        config: Some(config.clone()),
        kind: OperationType::new(kind).unwrap(),
        payload: Payload::shell(command),
        inline_body: None,
        force: false,
        wait: WaitFor::All,
        timeout_ms: 30_000,
        needs: Default::default(),
        asked_by: None,
    }
}

struct Play {
    world: World,
    events: u64,
}

impl Play {
    fn until(&mut self, at_ms: u64) {
        while self.world.now_ms < at_ms {
            self.world.step().unwrap();
            self.events += 1;
        }
    }

    fn until_quiet(&mut self, held: &[Held], value: usize) {
        let value = value.to_string();
        let patience_ms = self.world.now_ms + 60_000;
        while !held.iter().all(|resource| self.is_quiet(resource, &value)) {
            assert!(self.world.now_ms < patience_ms, "the sites never came to rest");
            self.until(self.world.now_ms + 100);
        }
    }

    fn is_quiet(&self, resource: &Held, value: &str) -> bool {
        resource.home.iter().all(|site| {
            let site = &self.world.sites[*site];
            let view = site.engine.as_ref().and_then(|engine| engine.resource(&resource.id));
            view.is_some_and(|view| view.settled)
                && site.application.value(&resource.id).text == value
        })
    }
}
