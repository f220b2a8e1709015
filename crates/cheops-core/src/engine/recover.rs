//! From the log back to an engine, after a stop of any kind.

use super::context::{Context, Turn};
use super::durable::{Reaction, Record};
use super::links::Links;
use super::peer::Peer;
use super::ports::Now;
use super::resource::Resource;
use super::settings::Settings;
use super::timers::Timer;
use super::{Engine, Resources, follow_up, lies, needs};
use crate::model::Evidence;

impl Engine {
    /// An engine that knows what the log says, ready to go on. The reaction holds what follows
    /// from that: steps that are to be run, and the first signs of life.
    pub fn recover(
        settings: Settings,
        records: impl IntoIterator<Item = Record>,
        now: Now,
    ) -> (Self, Reaction) {
        let mut engine = Self { context: Context::new(settings), resources: Resources::new() };
        let mut said_before = Reaction::default();
        let (resources, mut turn) = engine.turn(now, &mut said_before);
        let mut shown = Vec::new();
        for record in records {
            match (record.resource().cloned(), &record) {
                (Some(id), _) => resources
                    .entry(id.clone())
                    .or_insert_with(|| turn.context.new_resource(id))
                    .replay(record, &mut turn),
                (None, Record::Incarnation(site, incarnation)) => {
                    turn.context.links.lived(site, *incarnation);
                }
                (None, Record::SetApart(evidence)) => shown.push(Evidence::clone(evidence)),
                (None, _) => {}
            }
        }
        let mut out = Reaction::default();
        let (resources, mut turn) = engine.turn(now, &mut out);
        lies::recall(resources, &shown, &mut turn);
        for resource in resources.values_mut() {
            resource.bound_incarnations(&mut turn);
        }
        for resource in resources.values_mut() {
            resource.recall_incarnations(&turn.context.links);
        }
        for site in turn.context.settings.peers.clone() {
            turn.context.timers.set(now.mono_ms, Timer::Link(site));
        }
        // All of them before anything runs: a request may speak of several.
        for resource in resources.values_mut() {
            resource.publish_anew(&mut turn);
        }
        let me = turn.context.settings.me.clone();
        for resource in resources.values_mut() {
            // In which incarnation the others are is known only now.
            resource.see_what_is_answered(&me);
            resource.recovered_edits(turn.context);
            resource.runs.recovered(resource.is_in_sync_everywhere(&me));
            resource.recovered_reads(&me);
            follow_up(resource, &mut turn);
        }
        needs::look(resources, &mut turn);
        (engine, out)
    }
}

impl Resource {
    /// Who came back without its memory, and has not said anything of this resource since, is in
    /// the incarnation that was last heard of it: what its earlier incarnations said must not count
    /// again.
    fn recall_incarnations(&mut self, links: &Links) {
        let sites: Vec<_> = self.peers.keys().cloned().collect();
        for site in sites {
            if let Some(peer) = self.peers.get_mut(&site)
                && peer.incarnation.is_none()
                && !peer.earlier_incarnation.is_empty()
            {
                peer.incarnation = links.get(&site).and_then(|link| link.incarnation);
            }
        }
    }

    fn replay(&mut self, record: Record, turn: &mut Turn<'_>) {
        match record {
            Record::Entry(_, entry) => {
                if !self.base.includes(entry.id()) {
                    let entry = turn.context.rulebook.share(entry);
                    self.restore(&entry, turn);
                }
            }
            Record::Begun(_, step) => self.runs.log.begin(&step),
            Record::Finished(_, step, ended) => self.runs.log.finish(&step, ended),
            Record::Ran(_, log) => self.runs.log = *log,
            Record::Knows(_, site, incarnation, knows) => {
                let peer = self.peers.get_or_insert_with(&site, Peer::default);
                peer.says(incarnation, &knows);
                peer.recorded = peer.knows.clone();
            }
            Record::EarlierIncarnation(_, site, earlier) => {
                let peer = self.peers.get_or_insert_with(&site, Peer::default);
                *peer = Peer { earlier_incarnation: earlier, ..Default::default() };
            }
            Record::Incarnation(..) | Record::SetApart(_) => {}
            Record::Shed(_, operations) => self.files.shed(operations),
            Record::Pruned(_, base) => {
                turn.context.written =
                    turn.context.written.max(base.upto.last_of(&turn.context.settings.me));
                if let Some(declared) = &base.declared {
                    self.join_declared(declared, turn);
                }
                self.take_base(&base);
                if base.upto == self.base {
                    // The own log's last word holds, also where no more was forgotten than before.
                    self.resolution.stand_on(&base.upto, base.state.as_deref().cloned());
                }
            }
        }
    }
}
