//! One site's state machine: `event → (new state, what to make durable, what to do)`.
//!
//! The engine never waits, reads a clock, or touches a disk or socket. It is told what happened
//! and when ([`Event`], [`Now`]), and answers with a [`Reaction`]: records that must be durable
//! before its effects may be had. So the whole of what sites do together can be run, with
//! thousands of engines, in one thread under a simulator.
//!
//! What is where: `ports` (what goes in and out), `durable` (records and the way to the effects),
//! `compaction` (which records make which obsolete), `context` (what all resources share while an
//! event is handled), `resource` (one resource as this site knows it), `rulebook` (equal configs,
//! kept once), `peer` (what another site knows of it), `replies` (what sites said of its
//! operations), `sync` (keeping sites in step), `early` (what came before it can be
//! taken in), `run` (the next step of the list), `jobs` (its end,
//! and the reply), `health` (whether it is followed), `standing` (how each site says it stands),
//! `verify` (reading and comparing states), `failures` (what can be done about one), `undo` (taking
//! one out), `forecast` (what would come of something), `files` (letting go of large ones), `edits`
//! (documents that are merged), `programs` (those that decide), `lies` (authors that sign two things
//! in one place), `incarnations` (how many of one site count), `id_map` (what sites call a service's
//! resource),
//! `needs` (what has to be there first), `past` (what is told of what is forgotten), `short_history`
//! (what a state stands for), `links` (who is heard), `submit` (taking in operations), `waiting`
//! (users who wait), `timers` (what is due when), `recover` (from the log back to an engine), `view`
//! (what readers see), `settings` (what the operator says).

mod compaction;
mod context;
mod durable;
mod early;
mod edits;
mod failures;
mod files;
mod forecast;
mod health;
mod id_map;
mod incarnations;
mod jobs;
mod lies;
mod links;
mod needs;
mod past;
mod peer;
mod ports;
mod programs;
mod recover;
mod replies;
mod resource;
mod rulebook;
mod run;
mod settings;
mod short_history;
mod standing;
mod submit;
mod sync;
mod timers;
mod undo;
mod verify;
mod view;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use compaction::{LaterRecords, RecordSlot};
pub use durable::{Batch, Log, Reaction, Record, Sealer, Uncommitted, Unsigned};
pub use failures::NotFailed;
pub use forecast::{Forecast, ForecastBasis};
pub use ports::{
    Answer, Base, Declared, Echo, Effect, Ending, Event, Given, Heartbeat, Job, JobId, Malformed,
    Message, Notice, Now, PastDecision, Refusal, Submission, Task, Ticket, Update, WaitFor,
};
pub use programs::{DecidedByPrograms, LeftOutByProgram};
pub use settings::{Application, Settings};
pub use standing::{SiteStanding, Standing};
pub use undo::{NotUndoable, UndoBasis};
pub use verify::{Agreement, ReadHere, Unproven};
pub use view::{
    Holding, OperationInTrouble, OperationView, OperationsAsked, Outline, PageOrder, RaisedWarning,
    ResourceSummary, ResourceView, RunProgress, SiteStatus, SiteView, StateProof, WarnedOf,
};

use context::{Context, Turn};
use links::Heard;
use resource::Resource;
use timers::Timer;

use crate::model::{Author, Incarnation, OperationId, Outcome, ResourceId, SiteId, Vector};
use crate::plan::Decision;

/// One site's engine.
#[derive(Debug)]
pub struct Engine {
    context: Context,
    resources: Resources,
}

impl Engine {
    /// Handles one event. The engine has moved on when this returns: the reaction must be
    /// committed, before any later one, or the engine be dropped and recovered from the log.
    pub fn handle(&mut self, now: Now, event: Event) -> Reaction {
        let mut out = Reaction::default();
        let (resources, mut turn) = self.turn(now, &mut out);
        match event {
            Event::Submitted(submission) => submit::submit(resources, submission, &mut turn),
            Event::Heard { from, message } => hear(resources, &from, message, &mut turn),
            Event::Reached(site) => {
                let now_ms = turn.now.mono_ms;
                turn.context.links.reached(&site, &mut turn.context.timers, now_ms);
            }
            Event::Ended { job, outcome } => ended(resources, job, outcome, None, &mut turn),
            Event::Edited { job, outcome, change } => {
                ended(resources, job, outcome, Some(change), &mut turn);
            }
            Event::Decided { resource, operation, decision } => {
                decided(resources, &resource, &operation, decision, &mut turn);
            }
            Event::Retried { resource, operation } => {
                if let Some(resource) = resources.get_mut(&resource) {
                    resource.retry(&operation, &mut turn);
                    follow_up(resource, &mut turn);
                }
            }
            Event::Dismissed { resource, operation } => {
                if let Some(resource) = resources.get_mut(&resource) {
                    resource.dismiss(&operation, &mut turn);
                    follow_up(resource, &mut turn);
                }
            }
            Event::Undone { resource, undoing } => {
                if let Some(resource) = resources.get_mut(&resource) {
                    resource.undo(&undoing, &mut turn);
                    follow_up(resource, &mut turn);
                }
            }
            Event::Noticed(notice) => turn.notify(notice),
            Event::Ticked => {}
        }
        lies::convict_found(resources, &mut turn);
        tick(resources, &mut turn);
        needs::look(resources, &mut turn);
        out
    }

    /// When [`Event::Ticked`] is due at the latest.
    pub fn next_deadline(&self) -> Option<u64> {
        self.context.timers.next()
    }

    /// Starts nothing new from now on: the site is about to stop. What runs goes on to its end.
    pub fn drain(&mut self) {
        self.context.settings.jobs_at_once = 0;
    }

    /// How many jobs are under way.
    pub fn running(&self) -> usize {
        self.context.jobs.len()
    }

    /// Who this engine is, in this incarnation of its disk.
    pub fn me(&self) -> &Author {
        &self.context.settings.me
    }

    fn turn<'a>(&'a mut self, now: Now, out: &'a mut Reaction) -> (&'a mut Resources, Turn<'a>) {
        (&mut self.resources, Turn { now, context: &mut self.context, out })
    }
}

/// Each in a place of its own: a tree of large values is half empty.
type Resources = BTreeMap<ResourceId, Box<Resource>>;

/// What follows from any change to a resource: replies and the next run (`settle`, in `run`),
/// messages (`publish`, in `sync`), and less history.
fn follow_up(resource: &mut Resource, turn: &mut Turn<'_>) {
    resource.settle(turn);
    resource.publish(turn);
    resource.prune_if_possible(turn);
    resource.forget_for_state(turn);
    resource.shed_files(turn);
    resource.review_peers(turn);
    turn.context.needs.changed(&resource.id);
}

fn hear(resources: &mut Resources, from: &SiteId, message: Message, turn: &mut Turn<'_>) {
    if turn.context.links.get(from).is_none() {
        turn.notify(Notice::Malformed(from.clone(), Malformed::NotShared));
        return;
    }
    if let Some(effect) = turn.context.links.heard(from, turn.now) {
        turn.effect(effect);
        turn.context.timers.set(turn.now.mono_ms, Timer::Link(from.clone()));
        link_is_back(from, turn);
    }
    match message {
        Message::Heartbeat(beat) => {
            note_incarnation(resources, from, beat.incarnation, turn);
            let me = turn.context.settings.me.site.clone();
            let heard = turn.context.links.heartbeat(from, &me, &beat, turn.now.mono_ms);
            lies::tell_of_liars(from, &beat, turn);
            let beats = turn.context.links.get(from).map_or(0, |link| link.beats);
            turn.context.needs.heard_from(from, beats);
            if heard == Heard::Back {
                link_is_back(from, turn);
            }
        }
        Message::Update(update) => {
            note_incarnation(resources, from, update.incarnation, turn);
            hear_update(resources, from, *update, turn);
        }
        Message::Evidence(evidence) => lies::convict(resources, &evidence, turn),
    }
}

/// Whatever that site is behind on can be talked about again.
fn link_is_back(site: &SiteId, turn: &mut Turn<'_>) {
    if let Some(link) = turn.context.links.get_mut(site) {
        link.asking.clear();
    }
    sync::ask_next(site, Timer::AskNow, turn);
}

/// Sees whether a site came back without its memory: then nothing it ever confirmed holds.
fn note_incarnation(
    resources: &mut Resources,
    from: &SiteId,
    incarnation: Incarnation,
    turn: &mut Turn<'_>,
) {
    let Some(link) = turn.context.links.get_mut(from) else { return };
    let before = link.incarnation.replace(incarnation);
    if before == Some(incarnation) {
        return;
    }
    turn.record(Record::Incarnation(from.clone(), incarnation));
    if before.is_none() {
        return; // A site that was never heard before has no earlier incarnation.
    }
    turn.notify(Notice::SiteLostItsDisk(from.clone()));
    for resource in resources.values_mut().filter(|resource| resource.peers.contains_key(from)) {
        resource.peer_lost_memory(from, incarnation, turn);
        resource.review_peers(turn);
    }
}

fn hear_update(resources: &mut Resources, from: &SiteId, update: Update, turn: &mut Turn<'_>) {
    let id = update.resource.clone();
    if !names_us(&update, from, turn) {
        match resources.get(&id) {
            None => return hear_of_unknown(from, &update, turn),
            // It may have made a resource of that name too, of which nothing has arrived yet; it tells
            // all of it to who knows nothing of it.
            Some(resource) if !resource.declared.sites.contains(from) => {
                return hear_of_unknown(from, &update, turn);
            }
            Some(_) => {}
        }
    }
    let resource = resources
        .entry(id.clone())
        .or_insert_with(|| turn.context.offered_or_new_resource(id.clone()));
    turn.context.links.knows_it_shares(from);
    resource.hear(from, update, turn);
    if resource.declared.sites.is_empty() && resource.knows.is_empty() {
        // The entry that declares it waits for others that have not arrived: until they do, the
        // resource is unknown here, and whoever asks must be told so.
        early::keep_in_mind(resources, &id, turn);
    } else {
        follow_up(resource, turn);
    }
}

/// Whether an update says by itself that both sides hold the resource.
fn names_us(update: &Update, from: &SiteId, turn: &Turn<'_>) -> bool {
    let declared_by_base = update.base.iter().filter_map(|base| base.declared.as_ref());
    let declared = update.entries.iter().filter_map(|entry| match &entry.body {
        crate::model::EntryBody::Operation(operation) => operation.declares.as_ref(),
        crate::model::EntryBody::Reply(_) => None,
    });
    let me = &turn.context.settings.me.site;
    declared_by_base
        .map(|declared| &declared.sites)
        .chain(declared.map(|declaration| &declaration.sites))
        .any(|sites| sites.contains(me) && sites.contains(from))
}

/// Asked about a resource that is not known here, or not as that site's: says so. This is how a site that lost its disk
/// gets its resources back.
fn hear_of_unknown(from: &SiteId, update: &Update, turn: &mut Turn<'_>) {
    if !update.asks {
        return;
    }
    let nothing = Update {
        incarnation: turn.context.settings.me.incarnation,
        resource: update.resource.clone(),
        base: None,
        entries: Vec::new(),
        knows: Vector::default(),
        chain: crate::model::Chain::default(),
        you_may_have_run: Vector::default(),
        asks: false,
    };
    turn.effect(Effect::Tell { to: from.clone(), message: Message::Update(Box::new(nothing)) });
}

fn ended(
    resources: &mut Resources,
    job: JobId,
    outcome: Outcome,
    change: Option<Arc<[u8]>>,
    turn: &mut Turn<'_>,
) {
    let Some(id) = turn.context.jobs.remove(&job) else { return };
    if let Some(resource) = resources.get_mut(&id) {
        resource.ended(job, outcome, change, turn);
    }
    // Those that wait for the place come first, or busy resources would never give it up.
    while let Some(next) = turn.context.next_in_queue() {
        if let Some(resource) = resources.get_mut(&next) {
            follow_up(resource, turn);
        }
    }
    if let Some(resource) = resources.get_mut(&id) {
        follow_up(resource, turn);
    }
}

fn decided(
    resources: &mut Resources,
    id: &ResourceId,
    operation: &OperationId,
    decision: Decision,
    turn: &mut Turn<'_>,
) {
    if let Some(resource) = resources.get_mut(id) {
        resource.decide(operation, decision, turn);
        follow_up(resource, turn);
    }
}

fn tick(resources: &mut Resources, turn: &mut Turn<'_>) {
    let now_ms = turn.now.mono_ms;
    while let Some((due_ms, timer)) = turn.context.timers.pop_due(now_ms) {
        match timer {
            Timer::Link(site) => {
                let context = &mut *turn.context;
                let liars = context.liars.keys();
                let (settings, timers) = (&context.settings, &mut context.timers);
                let beat = context.links.beat(&site, settings, liars, timers, now_ms);
                beat.into_iter().for_each(|effect| turn.effect(effect));
            }
            Timer::Confirm(id) => {
                if let Some(resource) = resources.get_mut(&id) {
                    resource.confirm(due_ms, turn);
                }
            }
            Timer::Ask(id, site) => {
                if let Some(resource) = resources.get_mut(&id) {
                    resource.ask_if_due(&site, due_ms, turn);
                }
            }
            Timer::AskNow(id, site) => {
                if let Some(resource) = resources.get_mut(&id) {
                    resource.ask(&site, turn);
                }
            }
            Timer::AskIfForgotten(id, site) => {
                if let Some(resource) = resources.get_mut(&id) {
                    resource.ask_if_forgotten(&site, turn);
                }
            }
            Timer::Retry(id) => {
                if let Some(resource) = resources.get_mut(&id)
                    && resource.runs.retry_is_due(now_ms)
                {
                    follow_up(resource, turn);
                }
            }
            Timer::Edits(id) => {
                if let Some(resource) = resources.get_mut(&id) {
                    follow_up(resource, turn);
                }
            }
            Timer::ForgetOffers => early::forget_old_offers(turn),
            Timer::ReadStates => verify::read_states(resources, turn),
            Timer::GiveUp(ticket) => {
                if let Some(effect) = turn.context.waiting.give_up(ticket) {
                    turn.effect(effect);
                }
            }
        }
    }
}
