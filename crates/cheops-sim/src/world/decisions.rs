//! From an event to what it leads to: the engine decides, the disk keeps it, the effects follow,
//! and a crash may come between any two of these.

use std::sync::Arc;

use cheops_core::engine::{Batch, Event, Log, Message, Reaction, Record};
use cheops_core::model::{EntryBody, Fingerprint, ResourceId, SiteId};
use cheops_core::plan::Decision;

use super::{CrashPoint, World};
use crate::bugs::Bug;
use crate::disk::Disk;

impl World {
    /// Lets a site's engine handle an event, makes the outcome durable, and does what it says.
    pub fn handle(&mut self, site: usize, event: Event) {
        // One that is run again may be in doubt again, and overridden before anybody asks.
        if let Event::Decided { resource, operation, decision: Decision::Skip } = &event {
            let at = self.sites[site].id.clone();
            self.checks.doubted.remove(&(at, resource.clone(), operation.clone()));
        }
        let resource = resource_of(&event);
        self.handle_about(site, event, resource);
    }

    pub(super) fn handle_about(&mut self, site: usize, event: Event, resource: Option<ResourceId>) {
        let now = self.sites[site].now(self.now_ms);
        self.trace.note(self.now_ms, &self.sites[site].id, &event);
        self.trace.line(|| describe(self.now_ms, &self.sites[site].id, &event));
        let Some(engine) = self.sites[site].engine.as_mut() else { return };
        let reaction = engine.handle(now, event);
        self.carry_on(site, reaction);
        if self.setup.check && !self.sites[site].lies {
            self.checks.waits_within_room(&self.sites[site], &mut self.sometimes);
        }
        if self.setup.check
            && !self.sites[site].lies
            && let Some(resource) = resource
            && let Some(engine) = &self.sites[site].engine
            && let Some(view) = engine.resource(&resource)
        {
            self.checks.after_step(self.now_ms, &self.sites[site], &self.sites, &view);
            crate::conflicts::note_conflicts(&view, &mut self.sometimes);
        }
        self.schedule_tick(site);
    }

    pub(super) fn carry_on(&mut self, site: usize, mut reaction: Reaction) {
        for effect in reaction.take_free() {
            self.carry_out_effect(site, effect);
        }
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
        let sealer = crate::keys::SimKey::of(&self.sites[site].id);
        let mut log = Filtered { disk: &mut self.sites[site].disk, bug: self.setup.bug };
        let Ok(effects) = reaction.commit(&mut log, &sealer);
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
        let mut shed = Vec::new();
        for record in
            &self.sites[site].disk.records()[from.min(self.sites[site].disk.records().len())..]
        {
            if let Record::Shed(_, operations) = record {
                shed.extend(operations.iter().cloned());
            }
            let Record::Entry(resource, entry) = record else { continue };
            if let Some(report) = entry.state_report()
                && let Ok(told) = report.found
                && entry.id().author == *me
                && !self.sites[site].lies
            {
                let state = self.sites[site].application.value(resource).text;
                let is_so = told == Fingerprint::of(state.as_bytes());
                self.checks.told_state(&self.sites[site].id, resource, is_so);
            }
            let EntryBody::Operation(operation) = &entry.body else { continue };
            if operation.id.0.author != *me {
                continue;
            }
            if self.setup.bug == Some(Bug::StampsAsClaimed) && self.sites[site].saw_end_of_time {
                self.beyond_time.insert(operation.id.0.clone());
            }
            self.operations.insert(operation.id.clone(), Arc::new(operation.clone()));
            let config = operation.declares.as_ref().and_then(|said| said.config.clone());
            if let Some(config) = config
                && self.configs.insert(resource.clone(), config).is_some()
            {
                self.sometimes.saw("resource: config changed");
            }
        }
        self.sites[site].shed.extend(shed);
    }
}

/// The disk with a bug in front of it, perhaps.
struct Filtered<'a> {
    disk: &'a mut Disk,
    bug: Option<Bug>,
}

impl Log for Filtered<'_> {
    type Error = std::convert::Infallible;
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Self::Error> {
        let records = batch.records().iter();
        self.disk.keep(records.filter(|record| Bug::keeps(self.bug, record)).cloned());
        Ok(())
    }
}

fn resource_of(event: &Event) -> Option<ResourceId> {
    match event {
        Event::Submitted(submission) => Some(submission.resource.clone()),
        Event::Heard { message: Message::Update(update), .. } => Some(update.resource.clone()),
        Event::Decided { resource, .. }
        | Event::Retried { resource, .. }
        | Event::Dismissed { resource, .. }
        | Event::Undone { resource, .. } => Some(resource.clone()),
        Event::Ended { .. }
        | Event::Edited { .. }
        | Event::Heard { .. }
        | Event::Reached(_)
        | Event::Noticed(_)
        | Event::Ticked => None,
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
        Event::Reached(site) => format!("there is a way to {site}"),
        Event::Ended { job, outcome } => format!("ended {job:?} {outcome:?}"),
        Event::Edited { job, change, .. } => {
            format!("edited {job:?} `{}`", String::from_utf8_lossy(change))
        }
        Event::Decided { resource, operation, decision } => {
            format!("operator says {decision:?} to {operation} of {resource}")
        }
        Event::Retried { resource, operation } => format!("retries {operation} of {resource}"),
        Event::Dismissed { resource, operation } => format!("lets {operation} of {resource} be"),
        Event::Undone { resource, undoing } => format!(
            "{} {} of {resource}",
            if undoing.back { "brings back" } else { "takes out" },
            undoing.operation
        ),
        Event::Noticed(notice) => format!("noticed {notice:?}"),
        Event::Ticked => "ticked".to_owned(),
    };
    format!("{at_ms:>9} {site:<9} {what}")
}
