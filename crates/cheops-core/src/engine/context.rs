//! What all resources of a site share while an event is handled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::durable::{Reaction, Record};
use super::early::{Offers, SenderRoom};
use super::lies::{Liars, OldIncarnations, UsedNumbers};
use super::links::Links;
use super::needs::Needs;
use super::ports::{Effect, JobId, Malformed, Notice, Now};
use super::resource::Resource;
use super::rulebook::Rulebook;
use super::settings::Settings;
use super::timers::Timers;
use super::verify::ReadQueue;
use super::waiting::Waiting;
use crate::model::{EntryId, HybridClock, ResourceId, SiteId};

#[derive(Debug)]
pub(super) struct Context {
    pub(super) settings: Settings,
    pub(super) clock: HybridClock,
    pub(super) links: Links,
    pub(super) liars: Liars,
    pub(super) old_incarnations: OldIncarnations,
    pub(super) used_numbers: UsedNumbers,
    pub(super) timers: Timers,
    pub(super) waiting: Waiting,
    pub(super) rulebook: Rulebook,
    /// Of each site each kind once.
    pub(super) malformed: Vec<MalformedHeard>,
    pub(super) needs: Needs,
    pub(super) offers: Offers,
    pub(super) room: SenderRoom,
    pub(super) reads: ReadQueue,
    /// Which resource each running job belongs to.
    pub(super) jobs: BTreeMap<JobId, ResourceId>,
    /// Resources with something to run, in the order they asked, while all places are taken.
    queue: VecDeque<ResourceId>,
    queued: BTreeSet<ResourceId>,
    pub(super) written: u64,
    jobs_started: u64,
}

/// What a site said that cannot be.
#[derive(Debug)]
pub(super) struct MalformedHeard {
    pub(super) site: SiteId,
    pub(super) what: Malformed,
    pub(super) times: u64,
    /// When it was last told of.
    told_ms: u64,
}

impl Context {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            links: Links::new(&settings),
            settings,
            liars: Liars::default(),
            old_incarnations: OldIncarnations::default(),
            used_numbers: UsedNumbers::default(),
            clock: HybridClock::default(),
            timers: Timers::default(),
            waiting: Waiting::default(),
            rulebook: Rulebook::default(),
            malformed: Vec::new(),
            needs: Needs::default(),
            offers: Offers::default(),
            room: SenderRoom::default(),
            reads: ReadQueue::default(),
            jobs: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            written: 0,
            jobs_started: 0,
        }
    }

    /// A resource of which nothing is known yet.
    pub(super) fn new_resource(&mut self, id: ResourceId) -> Box<Resource> {
        let mut resource = Box::new(Resource::new(id, self.rulebook.rules(&Arc::default())));
        // Who lied about it may have been found out before this site heard of it, or again of it.
        resource.cuts = self.liars.cuts_of(&resource.id);
        resource
    }

    /// The id of the next entry this site writes.
    pub(super) fn next_entry(&mut self) -> EntryId {
        self.written += 1;
        EntryId { author: self.settings.me.clone(), n: self.written }
    }

    /// A place to run a job in, if one is free; else the resource is called when one is.
    pub(super) fn start_job(&mut self, resource: &ResourceId) -> Option<JobId> {
        if self.jobs.len() >= self.settings.jobs_at_once {
            if self.queued.insert(resource.clone()) {
                self.queue.push_back(resource.clone());
            }
            return None;
        }
        Some(self.next_job(resource))
    }

    /// The next job of a resource that has its place already.
    pub(super) fn next_job(&mut self, resource: &ResourceId) -> JobId {
        self.jobs_started += 1;
        let id = JobId(self.jobs_started);
        self.jobs.insert(id, resource.clone());
        id
    }

    /// The next resource that waits for a place, if one is free.
    pub(super) fn next_in_queue(&mut self) -> Option<ResourceId> {
        if self.jobs.len() >= self.settings.jobs_at_once {
            return None;
        }
        let next = self.queue.pop_front()?;
        self.queued.remove(&next);
        Some(next)
    }
}

/// The handling of one event: when, with what at hand, and what came of it so far. Not a turn of the
/// driver, which is of many events.
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    pub(super) context: &'a mut Context,
    pub(super) out: &'a mut Reaction,
}

impl Turn<'_> {
    pub(super) fn record(&mut self, record: Record) {
        self.out.record(record);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.out.effect(effect);
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        if let Notice::Malformed(site, what) = &notice
            && !self.is_news_of(site, *what)
        {
            return;
        }
        self.out.effect(Effect::Notify(notice));
    }

    /// Who sends what cannot be sends it again and again, and whatever is told of is kept: so all of
    /// it is counted, and told of once in a while.
    fn is_news_of(&mut self, site: &SiteId, what: Malformed) -> bool {
        const STILL_MS: u64 = 60_000;
        let (now_ms, all) = (self.now.mono_ms, &mut self.context.malformed);
        let Some(heard) = all.iter_mut().find(|heard| heard.site == *site && heard.what == what)
        else {
            all.push(MalformedHeard { site: site.clone(), what, times: 1, told_ms: now_ms });
            return true;
        };
        heard.times = heard.times.saturating_add(1);
        let is_news = now_ms.saturating_sub(heard.told_ms) >= STILL_MS;
        if is_news {
            heard.told_ms = now_ms;
        }
        is_news
    }
}
