//! What a site lets in: only what is its author's word, and nothing from who was shown to lie. This
//! is what an agent does before its engine sees anything.

use cheops_core::engine::{Event, Malformed, Message, Notice};
use cheops_core::model::{EntryBody, KeyId, SiteId};

use super::World;
use super::agenda::AgendaItem;
use crate::bugs::Bug;
use crate::keys::SimKey;
use crate::liar::{LiarMove, Stolen};

impl World {
    /// The part of a message that is let in.
    pub(super) fn admit(&mut self, to: usize, from: usize, message: Message) -> Option<Message> {
        let sender = self.sites[from].id.clone();
        if self.sites[to].set_apart.contains(&SimKey::of(&sender).id()) {
            return None;
        }
        match message {
            Message::Evidence(evidence) => {
                SimKey::convicts(&evidence).then_some(Message::Evidence(evidence))
            }
            Message::Heartbeat(beat) => Some(Message::Heartbeat(beat)),
            Message::Update(mut update) => {
                let before = update.entries.len();
                let bug = self.setup.bug;
                let beyond = &self.beyond_time;
                update
                    .entries
                    .retain(|entry| Bug::believes(bug, entry) && !beyond.contains(entry.id()));
                if update.entries.len() < before && self.sites[from].lies {
                    self.sometimes.saw("liar: refused at the border");
                    let notice = Notice::Malformed(sender, Malformed::NotItsAuthors);
                    self.handle(to, Event::Noticed(notice));
                }
                let claims_the_end = update.entries.iter().any(|entry| {
                    matches!(&entry.body, EntryBody::Operation(_))
                        && entry.claimed().wall_ms >= (1 << 48) - 1
                });
                self.sites[to].saw_end_of_time |= claims_the_end;
                Some(Message::Update(update))
            }
        }
    }

    /// Whoever holds that key is neither heard nor told anything by this site any more.
    pub(super) fn set_apart(&mut self, site: usize, liar: &SiteId, key: KeyId) {
        self.sites[site].set_apart.insert(key);
        let Some(liar) = self.indexes.get(liar) else { return };
        let is_liar = self.sites[*liar].lies;
        if is_liar {
            self.sometimes.saw("liar: set apart");
        } else {
            self.checks.accused(&self.sites[site].id, &self.sites[*liar].id);
        }
    }

    /// A site makes something up about one of its resources, and sends it to others of it.
    pub fn lie(&mut self, site: usize, lie: LiarMove) {
        let Some(engine) = &self.sites[site].engine else { return };
        let ids: Vec<_> = engine.resources().cloned().collect();
        if ids.is_empty() {
            return;
        }
        let id = self.rng.pick(&ids).clone();
        let Some(view) = engine.resource(&id) else { return };
        let me = engine.me().clone();
        let records = self.sites[site].disk.records();
        let on_it = records.iter().filter_map(|record| match record {
            cheops_core::engine::Record::Entry(of, entry) if *of == id => Some(entry.clone()),
            _ => None,
        });
        let heard: Vec<_> = on_it.collect();
        let elsewhere = records.iter().filter_map(|record| match record {
            cheops_core::engine::Record::Entry(of, entry) if *of != id => Some(entry.id()),
            _ => None,
        });
        let used_elsewhere = elsewhere.filter(|it| it.author == me).map(|it| it.n).max();
        let own = heard.iter().filter(|entry| entry.id().author == me);
        let last_hash = own.max_by_key(|entry| entry.id().n).map(|entry| entry.hash());
        let stolen = Stolen {
            liar: &me,
            resource: &id,
            sites: view.sites.iter().cloned().collect(),
            knows: view.knows.clone(),
            last_hash: last_hash.unwrap_or_default(),
            used_elsewhere: used_elsewhere.unwrap_or_default(),
            operations: view.operations.iter().map(|it| it.operation.clone()).collect(),
            heard,
        };
        let lies = stolen.lie(lie, &mut self.rng);
        if lies.is_empty() {
            return;
        }
        self.sometimes.saw(lie.saw());
        self.trace.line(|| format!("{:>9} {:<9} LIES {lie:?} on {id}", self.now_ms, me.site));
        self.checks.lied_about(&id, lie);
        for (to, message) in lies {
            let Some(to) = self.indexes.get(&to).copied() else { continue };
            for delay in self.network.delays_ms(site, to, &mut self.rng) {
                self.schedule(
                    delay,
                    AgendaItem::Deliver { to, from: site, message: message.clone() },
                );
            }
        }
    }
}
