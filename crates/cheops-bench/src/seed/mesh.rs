//! Three sites in one thread: engines with their logs, and what they say to each other.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use cheops_agent::mesh::Identity;
use cheops_core::engine::{Effect, Engine, Event, Job, Message, Now, Reaction, Settings};
use cheops_core::model::{Author, Outcome, ResourceId, SiteId};
use cheops_record::SiteKey;
use cheops_store::{SiteLog, StoreOptions, open};

use crate::{SeedFailure, cannot};

/// How many sites there are.
pub(crate) const SITES: usize = 3;
/// Over how much time all of it happens.
pub(crate) const SPAN_MS: u64 = 7 * 24 * 3600 * 1000;
/// How long ago that was.
const AGO_MS: u64 = 3600 * 1000;

/// What the world outside of the engines does.
pub(crate) trait SeedWorld {
    /// Whether what is said of a resource reaches a site, and what that site says the others.
    fn reaches(&self, resource: &ResourceId, site: usize) -> bool;
    /// How a run ends at a site; `None` if the site stops before.
    fn ends(&self, job: &Job, site: usize) -> Option<Outcome>;
}

/// The three of them.
pub(crate) struct Mesh {
    sites: Vec<SeedSite>,
    now: Now,
    happened: VecDeque<(usize, Now, Event)>,
}

struct SeedSite {
    name: SiteId,
    engine: Engine,
    log: Box<dyn SiteLog>,
    key: SiteKey,
    /// Decided, and not yet durable.
    reaction: Reaction,
}

impl Mesh {
    /// New sites, with their logs in these folders.
    pub(crate) fn new(folders: &[(SiteId, PathBuf)]) -> Result<Self, SeedFailure> {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_err(cannot("tell the time"))?;
        let wall_ms = u64::try_from(wall.as_millis()).map_err(cannot("tell the time"))?;
        let now = Now { mono_ms: 0, wall_ms: wall_ms - SPAN_MS - AGO_MS };
        let mut sites = Vec::new();
        for (n, (name, folder)) in (1..).zip(folders) {
            let opened = open(&folder.join("data"), name, || n, StoreOptions::default());
            let opened = opened.map_err(cannot("open a store"))?;
            let me = Author { site: name.clone(), incarnation: opened.incarnation };
            let others = folders.iter().map(|(name, _)| name.clone());
            // What is in doubt holds its place for ever.
            let settings = Settings { jobs_at_once: usize::MAX, ..Settings::new(me, others) };
            let (engine, reaction) = Engine::recover(settings, Vec::new(), now);
            let identity = Identity::read(&folder.join("identity.pem"));
            let identity = identity.map_err(cannot("read an identity"))?;
            let key = identity.site_key().map_err(cannot("use an identity"))?;
            let log = opened.log;
            sites.push(SeedSite { name: name.clone(), engine, log, key, reaction });
        }
        Ok(Self { sites, now, happened: VecDeque::new() })
    }

    pub(crate) fn name(&self, site: usize) -> &SiteId {
        &self.sites[site].name
    }

    /// Lets time pass on the clocks that people read.
    pub(crate) fn later(&mut self, wall_ms: u64) {
        self.now.wall_ms += wall_ms;
    }

    /// Something happens at a site.
    pub(crate) fn happens(&mut self, site: usize, event: Event) {
        self.happened.push_back((site, self.now, event));
    }

    /// Lets the sites do all there is to do about it: at once, then when it is time to confirm.
    pub(crate) fn settle(&mut self, world: &impl SeedWorld) -> Result<(), SeedFailure> {
        self.work(world)?;
        for _ in 0..3 {
            self.now.mono_ms += 100;
            (0..SITES).for_each(|site| self.happens(site, Event::Ticked));
            self.work(world)?;
        }
        Ok(())
    }

    fn work(&mut self, world: &impl SeedWorld) -> Result<(), SeedFailure> {
        loop {
            while let Some((at, now, event)) = self.happened.pop_front() {
                let site = &mut self.sites[at];
                let reaction = site.engine.handle(now, event);
                site.reaction.join(reaction);
            }
            for at in 0..SITES {
                let site = &mut self.sites[at];
                let reaction = std::mem::take(&mut site.reaction);
                let effects = reaction.commit(&mut *site.log, &site.key);
                let effects = effects.map_err(|uncommitted| uncommitted.error);
                for effect in effects.map_err(cannot("write a log"))? {
                    self.follow(at, effect, world);
                }
            }
            if self.happened.is_empty() {
                return Ok(());
            }
        }
    }

    fn follow(&mut self, at: usize, effect: Effect, world: &impl SeedWorld) {
        match effect {
            Effect::Tell { to, message } => {
                let Some(to) = self.sites.iter().position(|site| site.name == to) else { return };
                let arrives = match &message {
                    Message::Heartbeat(_) | Message::Evidence(_) => true,
                    Message::Update(update) => {
                        [at, to].iter().all(|site| world.reaches(&update.resource, *site))
                    }
                };
                if arrives {
                    let from = self.sites[at].name.clone();
                    self.happens(to, Event::Heard { from, message });
                }
            }
            Effect::Run(job) => {
                if let Some(outcome) = world.ends(&job, at) {
                    self.happens(at, Event::Ended { job: job.id, outcome });
                }
            }
            Effect::Answer { .. }
            | Effect::Notify(_)
            | Effect::Publish(..)
            | Effect::SetApart(..) => {}
        }
    }
}
