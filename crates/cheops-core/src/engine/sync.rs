//! Keeping the sites of a resource in step: what to send to whom, and what to make of what they
//! send.
//!
//! A site sends its own entries at once to every site of the resource it can reach. Every message
//! also says what its sender knows, so each site learns what the others lack. Where a site stays
//! behind (a message got lost, a link was down, its author cannot reach it) it is asked what it
//! knows, and is then sent what it lacks and nothing else. After a cut, only resources in which
//! somebody is behind are talked about, so the cost is that of what was missed.

use std::sync::Arc;

use super::context::Turn;
use super::durable::Record;
use super::ports::{Base, Declared, Effect, Malformed, Message, Notice, Update};
use super::replies::Replies;
use super::resource::{Most, Resource};
use super::timers::Timer;
use crate::model::{
    Author, Entry, EntryId, Incarnation, OperationId, ResourceId, SiteId, Stamp, StateFloor, Vector,
};

impl Resource {
    /// Takes in what another site of the resource says.
    pub(super) fn hear(&mut self, from: &SiteId, update: Update, turn: &mut Turn<'_>) {
        if update.entries.len() > 4 * turn.context.settings.entries_per_update {
            turn.notify(Notice::Malformed(from.clone(), Malformed::TooMany));
            return;
        }
        let mut update = update;
        // Who sends an entry knows it, whatever it says.
        let mut said = update.knows.clone();
        update.entries.iter().for_each(|entry| said.add(entry.id()));
        if self.authors_after(from, &said) > MOST_AUTHORS {
            turn.notify(Notice::Malformed(from.clone(), Malformed::TooMany));
            return;
        }
        let differ = self.authors_that_differ(&update.knows, &update.chain);
        let said = self.has_liars().then(|| update.knows.clone());
        self.limit_to_what_counts(&mut update.knows);
        if let Some(peer) = self.peers.get_mut(from) {
            peer.may_lack_evidence = said.is_some_and(|said| said != update.knows);
        }
        if let Some(base) = &mut update.base {
            self.limit_to_what_counts(&mut base.upto);
        }
        let before = self.knows.clone();
        let me = turn.context.settings.me.clone();
        self.hears_first = before.iter().all(|(known, _)| *known == me);
        let of_earlier_incarnation = |author: &Author| author.site == me.site && *author != me;
        let remembers_us = update.entries.iter().any(|entry| {
            of_earlier_incarnation(&entry.id().author) && !before.includes(entry.id())
        });
        if self.declared.sites.is_empty() {
            // What several sites say of a resource that was forgotten here is compared.
            self.peers.get_or_insert_with(from, super::peer::Peer::default);
        }
        if let Some(base) = &update.base {
            let possible =
                update.knows.covers(&base.upto) && base.upto.last_of(&me) <= turn.context.written;
            let declared = base.declared.as_ref();
            let may_be_said = |declared: &Declared| {
                let id_map = declared.id_map.as_ref();
                declared.check_limits().is_ok() && id_map.is_none_or(|it| it.is_of(&self.id))
            };
            let is_allowed =
                declared.is_none_or(may_be_said) && base.order.is_none_or(Stamp::is_place);
            if !possible || !is_allowed {
                // The rest of what it says may be as it says.
                turn.notify(Notice::Malformed(from.clone(), Malformed::BaseBeyondKnowledge));
            } else if self.believes_state(base, &update.entries, turn)
                || self.believes(base, from, turn) && !self.waits_for_others(base, from, turn)
            {
                self.offered_ms = None;
                self.adopt(base, turn);
            }
        }
        for entry in update.entries {
            self.accept(entry, from, turn);
        }
        self.accept_waiting(turn);
        self.bound_incarnations(turn);
        self.limit_to_what_counts(&mut update.knows);
        self.hears_first = false;
        if !self.declared.sites.is_empty() {
            let sites = &self.declared.sites;
            self.peers.retain(|site, _| sites.contains(site));
        }
        if remembers_us {
            // Our earlier incarnation held this resource: it may have run all there is.
            self.may_have_run(&self.knows.clone(), turn);
        } else {
            // A liar can make this site doubt so, and not make it run anything twice. Who writes in too
            // many incarnations never comes to be in step: it would say so for ever.
            let sender = Author { site: from.clone(), incarnation: update.incarnation };
            if !self.is_of_too_many(&sender) {
                self.may_have_run(&update.you_may_have_run, turn);
            }
        }
        if self.knows != before {
            self.confirm_soon(turn);
        }
        let Some(peer) = self.peers.get_mut(from) else { return };
        let is_another_incarnation = peer.incarnation != Some(update.incarnation);
        peer.says(update.incarnation, &update.knows);
        peer.was_in_step |= self.knows.covers(&update.knows);
        let pruned = update.base.map(|base| base.upto).unwrap_or_default();
        let has_pruned = !peer.pruned.covers(&pruned);
        peer.pruned.join(&pruned);
        if is_another_incarnation || has_pruned {
            self.see_what_is_answered(&me);
            self.publish_id_map(turn);
        }
        let Some(peer) = self.peers.get_mut(from) else { return };
        if peer.asked
            && let Some(link) = turn.context.links.get_mut(from)
        {
            // It answered: others may be asked about now, whether or not it has caught up.
            link.asking.remove(&self.id);
        }
        if update.asks || peer.asked {
            // It has just said what it knows: whatever else was on its way got lost.
            peer.sent = peer.knows.clone();
            peer.asked = false;
            peer.catching_up = true;
        }
        if update.asks {
            self.answer(from, turn);
        } else {
            self.send_more(from, turn);
        }
        for id in differ {
            self.show(&id, from, turn);
        }
    }

    /// Whether others are to be heard first before a base is believed of which something is not known
    /// here: it is not signed, and who was asked first may lie. Its sites get some time to say
    /// what they know of the resource, unless all have; any other site less, since a liar would not name
    /// those that know better.
    fn waits_for_others(&mut self, base: &Base, from: &SiteId, turn: &Turn<'_>) -> bool {
        if self.knows.covers(&base.upto) {
            return false;
        }
        let now_ms = turn.now.mono_ms;
        let waited_ms = now_ms.saturating_sub(*self.offered_ms.get_or_insert(now_ms));
        let nobody = std::collections::BTreeSet::new();
        let named = base.declared.as_ref().map_or(&nobody, |declared| &declared.sites);
        let is_named = |site: &SiteId| named.contains(site) || self.declared.sites.contains(site);
        let has_said =
            |site: &SiteId| self.peers.get(site).is_some_and(|peer| peer.incarnation.is_some());
        // Who knows already where it lives need not ask anybody else.
        let strangers_ms = if self.declared.sites.is_empty() { STRANGERS_MS } else { 0 };
        let silent = |site: &&SiteId| *site != from && !has_said(site);
        turn.context.settings.peers.iter().filter(silent).any(|site| {
            let patience_ms = if is_named(site) { NAMED_MS } else { strangers_ms };
            waited_ms < patience_ms
        })
    }

    /// How many authors there are in what that site says it knows and said before, or in what is known
    /// here: each message may name a few more, and what all of them come to is kept.
    fn authors_after(&self, from: &SiteId, knows: &Vector) -> usize {
        let nothing = Vector::default();
        let said = self.peers.get(from).map_or(&nothing, |peer| &peer.knows);
        let after = |before: &Vector| {
            let new = knows.iter().filter(|(author, _)| before.last_of(author) == 0).count();
            before.authors() + new
        };
        after(said).max(after(&self.knows))
    }

    /// Shows that site what is known here under a name, where it knows something else: it finds the
    /// lie, and tells. Some times, since any one message may get lost.
    fn show(&mut self, id: &EntryId, to: &SiteId, turn: &mut Turn<'_>) {
        const TIMES: u8 = 16;
        if self.shown.len() >= MOST_AUTHORS {
            self.shown.clear();
        }
        let held = self.held_of(&id.author).and_then(|held| held.get(&id.n));
        let shown: Vec<_> = held.map(|held| held.entry.clone()).into_iter().collect();
        let times = self.shown.entry((to.clone(), id.clone())).or_default();
        *times = times.saturating_add(1);
        if *times <= TIMES && !shown.is_empty() {
            self.send(to, shown, Asks::No, turn);
        }
    }

    /// Says what this site knows, with what the other lacks, at once.
    fn answer(&mut self, to: &SiteId, turn: &mut Turn<'_>) {
        let most = Most::by(&turn.context.settings);
        let entries = self.peers.get(to).map(|peer| self.lacking(&peer.sent, most));
        self.send(to, entries.unwrap_or_default(), Asks::No, turn);
    }

    /// The next part of what a site that is catching up lacks.
    fn send_more(&mut self, to: &SiteId, turn: &mut Turn<'_>) {
        let most = Most::by(&turn.context.settings);
        let Some(peer) = self.peers.get(to).filter(|peer| peer.catching_up) else { return };
        let entries = self.lacking(&peer.sent, most);
        if !entries.is_empty() {
            self.send(to, entries, Asks::No, turn);
        }
    }

    /// Sends this site's own new entries to every site of the resource that can be reached. What ids mean
    /// is told otherwise: see [`Resource::publish_id_map`].
    pub(super) fn publish(&mut self, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.clone();
        let most = Most::by(&turn.context.settings);
        let written = self.knows.last_of(&me);
        let behind = |peer: &super::peer::Peer| peer.sent.last_of(&me) < written;
        let to: Vec<SiteId> = self
            .peers
            .iter()
            .filter(|(site, peer)| behind(peer) && turn.context.links.usable(site, &me.site))
            .map(|(site, _)| site.clone())
            .collect();
        for site in to {
            let sent = self.peers.get(&site).map_or(0, |peer| peer.sent.last_of(&me));
            let entries = self.own_after(&me, sent, most);
            if !entries.is_empty() {
                self.send(&site, entries, Asks::No, turn);
            }
        }
    }

    fn send(&mut self, to: &SiteId, entries: Vec<Arc<Entry>>, asks: Asks, turn: &mut Turn<'_>) {
        let Some(peer) = self.peers.get(to) else { return };
        // Said every time, since any one message may get lost and all sites must agree on it.
        let base = (!self.base.is_empty()).then(|| {
            // Who knows what was pruned has seen what it declared.
            let seen = peer.knows.covers(&self.base);
            let declared = self.ground();
            if seen { Base { declared: None, state: None, ..declared } } else { declared }
        });
        let Some(peer) = self.peers.get_mut(to) else { return };
        peer.told = self.knows.clone();
        peer.asked |= asks == Asks::Yes;
        entries.iter().for_each(|entry| peer.sent.add(entry.id()));
        let update = Update {
            incarnation: turn.context.settings.me.incarnation,
            resource: self.id.clone(),
            base,
            entries,
            knows: self.knows.clone(),
            chain: self.chain.clone(),
            you_may_have_run: peer.earlier_incarnation.clone(),
            asks: asks == Asks::Yes,
        };
        turn.effect(Effect::Tell { to: to.clone(), message: Message::Update(Box::new(update)) });
    }

    fn confirm_soon(&mut self, turn: &mut Turn<'_>) {
        if self.confirm_ms.is_none() {
            let due = turn.now.mono_ms + turn.context.settings.confirm_after_ms;
            self.confirm_ms = Some(due);
            turn.context.timers.set(due, Timer::Confirm(self.id.clone()));
        }
    }

    /// Tells every site that does not know it yet what this site knows.
    pub(super) fn confirm(&mut self, due_ms: u64, turn: &mut Turn<'_>) {
        if self.confirm_ms != Some(due_ms) {
            return;
        }
        self.confirm_ms = None;
        let me = turn.context.settings.me.site.clone();
        let untold: Vec<SiteId> = self
            .peers
            .iter()
            .filter(|(site, peer)| peer.told != self.knows && turn.context.links.usable(site, &me))
            .map(|(site, _)| site.clone())
            .collect();
        for site in untold {
            self.send(&site, Vec::new(), Asks::No, turn);
        }
    }

    /// Looks over who is behind, and sees to it that each is asked in time.
    pub(super) fn review_peers(&mut self, turn: &mut Turn<'_>) {
        let sites: Vec<SiteId> = self.peers.keys().cloned().collect();
        for site in sites {
            let Some(peer) = self.peers.get_mut(&site) else { continue };
            if peer.is_in_step_with(&self.knows) {
                peer.catching_up = false;
                peer.ask_ms = None;
                self.is_in_step(&site, turn);
            } else {
                self.is_behind(&site, turn);
            }
        }
    }

    fn is_in_step(&mut self, site: &SiteId, turn: &mut Turn<'_>) {
        if let Some(link) = turn.context.links.get_mut(site)
            && link.behind.remove(&self.id)
        {
            link.asking.remove(&self.id);
            ask_next(site, Timer::AskIfForgotten, turn);
        }
        let Some(peer) = self.peers.get_mut(site) else { return };
        if !peer.earlier_incarnation.is_empty() {
            // It has been told what it may have run before, and has confirmed all of it.
            peer.earlier_incarnation = Vector::default();
            peer.recorded = Vector::default();
            turn.record(Record::EarlierIncarnation(
                self.id.clone(),
                site.clone(),
                Vector::default(),
            ));
        }
        if let Some(incarnation) = peer.incarnation
            && peer.recorded != peer.knows
        {
            peer.recorded = peer.knows.clone();
            let knows = peer.knows.clone();
            turn.record(Record::Knows(self.id.clone(), site.clone(), incarnation, knows));
        }
    }

    fn is_behind(&mut self, site: &SiteId, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.site.clone();
        let in_flight = turn.context.settings.resources_in_flight;
        let Some(link) = turn.context.links.get_mut(site) else { return };
        link.behind.insert(self.id.clone());
        let Some(peer) = self.peers.get_mut(site) else { return };
        if !link.usable(&me) {
            peer.ask_ms = None;
            return;
        }
        let has_place = link.asking.contains(&self.id) || link.asking.len() < in_flight;
        if peer.ask_ms.is_some() || !has_place {
            return;
        }
        link.asking.insert(self.id.clone());
        let due = self.ask_when(site, turn);
        if let Some(peer) = self.peers.get_mut(site) {
            peer.ask_ms = Some(due);
            turn.context.timers.set(due, Timer::Ask(self.id.clone(), site.clone()));
        }
    }

    /// When a site that is behind should be asked what it knows: soon if nobody else is going to
    /// give it what it lacks, later if it is likely to hear it from the author.
    fn ask_when(&self, site: &SiteId, turn: &Turn<'_>) -> u64 {
        let settings = &turn.context.settings;
        let round_trip =
            turn.context.links.get(site).and_then(|link| link.round_trip_ms).unwrap_or(0);
        let Some(peer) = self.peers.get(site) else { return u64::MAX };
        let lacks = |(author, n): &(&Author, u64)| peer.knows.last_of(author) < *n;
        let wait = self.knows.iter().filter(lacks).map(|(author, _)| {
            if *author == settings.me {
                settings.ask_again_after_ms + round_trip
            } else if self.author_reaches(author, site, turn) {
                settings.relay_after_ms * (1 + self.relay_rank(author, site, &settings.me.site))
                    + round_trip
            } else {
                settings.confirm_after_ms
            }
        });
        turn.now.mono_ms + wait.min().unwrap_or(settings.ask_again_after_ms)
    }

    /// Whether the author of an entry is there to deliver it to that site itself.
    fn author_reaches(&self, author: &Author, site: &SiteId, turn: &Turn<'_>) -> bool {
        let links = &turn.context.links;
        let alive = links.get(&author.site).is_some_and(|link| {
            link.up && link.incarnation.is_none_or(|current| current == author.incarnation)
        });
        let heard = links.get(site).is_some_and(|link| !link.does_not_hear.contains(&author.site));
        author.site != *site && alive && heard
    }

    /// Sites take turns in passing on, so that they do not all send the same.
    fn relay_rank(&self, author: &Author, site: &SiteId, me: &SiteId) -> u64 {
        let others = self.declared.sites.iter();
        others.filter(|other| **other != author.site && *other != site && *other < me).count()
            as u64
    }

    /// A timer set for this went off; it may have been set anew since.
    pub(super) fn ask_if_due(&mut self, site: &SiteId, due_ms: u64, turn: &mut Turn<'_>) {
        if self.peers.get(site).is_some_and(|peer| peer.ask_ms == Some(due_ms)) {
            self.ask(site, turn);
        }
    }

    /// There is room to ask about this resource, if nobody has seen to it yet.
    pub(super) fn ask_if_forgotten(&mut self, site: &SiteId, turn: &mut Turn<'_>) {
        if self.peers.get(site).is_some_and(|peer| peer.ask_ms.is_none()) {
            self.ask(site, turn);
        } else if let Some(link) = turn.context.links.get_mut(site) {
            link.asking.remove(&self.id);
        }
    }

    /// Asks that site what it knows, if it is still behind and can be reached.
    pub(super) fn ask(&mut self, site: &SiteId, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.site.clone();
        let Some(peer) = self.peers.get_mut(site) else { return };
        peer.ask_ms = None;
        if !turn.context.links.usable(site, &me) || peer.is_in_step_with(&self.knows) {
            return;
        }
        let round_trip =
            turn.context.links.get(site).and_then(|link| link.round_trip_ms).unwrap_or(0);
        let again = turn.now.mono_ms + turn.context.settings.ask_again_after_ms + round_trip;
        peer.ask_ms = Some(again);
        if let Some(link) = turn.context.links.get_mut(site) {
            link.asking.insert(self.id.clone());
        }
        turn.context.timers.set(again, Timer::Ask(self.id.clone(), site.clone()));
        self.show_cuts(site, turn);
        self.send(site, Vec::new(), Asks::Yes, turn);
    }

    /// Another site came back without its memory.
    pub(super) fn peer_lost_memory(
        &mut self,
        site: &SiteId,
        incarnation: Incarnation,
        turn: &mut Turn<'_>,
    ) {
        let Some(peer) = self.peers.get_mut(site) else { return };
        peer.lost_its_memory(incarnation, &self.knows);
        let earlier = peer.earlier_incarnation.clone();
        self.see_what_is_answered(&turn.context.settings.me);
        self.publish_id_map(turn);
        turn.record(Record::EarlierIncarnation(self.id.clone(), site.clone(), earlier));
    }

    /// What every site of the resource knows, if that can be told: nothing concurrent to it can
    /// turn up any more.
    pub(super) fn stable(&self) -> Vector {
        let mut stable = self.knows.clone();
        for peer in self.peers.values() {
            // A site may know something we do not, made before it knew what we do.
            if !self.knows.covers(&peer.knows) {
                return Vector::default();
            }
            stable.meet(&peer.knows);
        }
        stable
    }

    /// Forgets what is below the floor once every site knows it, and the floor cannot give way.
    pub(super) fn prune_if_possible(&mut self, turn: &mut Turn<'_>) {
        let Some(floor) = self.resolution.floor().cloned() else { return };
        let Some(below) = self.resolution.operations().past(&floor).cloned() else { return };
        let holds = self.replies.get(&floor).is_some_and(Replies::succeeded_somewhere);
        let has_dead_state =
            self.resolution.pruned_state().is_some() && self.resolution.state().is_none();
        let is_forgotten = self.base.covers(&below) && !has_dead_state;
        if !holds || is_forgotten || !self.stable().includes(&floor.0) {
            return;
        }
        self.prune(&below, turn);
    }

    fn prune(&mut self, below: &Vector, turn: &mut Turn<'_>) {
        self.tell_what_is_left_out(below, turn);
        let forgotten = self.forget(below, None);
        if self.resolution.state().is_none() {
            // What it stood for was replaced for good.
            self.resolution.stand_on(below, None);
        }
        self.runs.log.prune(below, &self.items(), &self.config());
        turn.record(Record::Pruned(self.id.clone(), Box::new(self.ground())));
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        turn.notify(Notice::Pruned(self.id.clone(), forgotten));
    }

    /// Another site pruned up to there: what is below cannot matter here either.
    fn adopt(&mut self, base: &Base, turn: &mut Turn<'_>) {
        // Who knows all that was forgotten knows what it declared.
        if !self.knows.covers(&base.upto)
            && let Some(declared) = &base.declared
        {
            let mut declared = declared.clone();
            declared.config.take_if(|(place, _)| !base.upto.includes(&place.id.0));
            if let Some(ids) = declared.id_map.as_mut().and_then(|map| map.local_ids.as_mut()) {
                // What this site's service made since it has this disk, this site knows best.
                ids.remove(&turn.context.settings.me);
            }
            self.join_declared(&declared, turn);
            self.publish_id_map(turn);
        }
        if !self.base.covers(&base.upto) {
            self.tell_what_is_left_out(&base.upto, turn);
            self.take_base(&self.news_of(base));
            self.runs.log.prune(&base.upto, &self.items(), &self.config());
            turn.record(Record::Pruned(self.id.clone(), Box::new(self.ground())));
            turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
            turn.notify(Notice::Pruned(self.id.clone(), 0));
            self.runs.list_rearranged();
            self.accept_waiting(turn);
        }
    }

    /// Whether a base with a state is believed, of which something is not known here: all sites said
    /// themselves that they keep it. Where all of it is known, this site forgets by itself.
    fn believes_state(&self, base: &Base, arriving: &[Arc<Entry>], turn: &Turn<'_>) -> bool {
        let me = &turn.context.settings.me;
        !self.knows.covers(&base.upto)
            && base.upto.last_of(me) <= self.base.last_of(me).max(self.knows.last_of(me))
            && self.is_shown_to_be_kept(base, arriving, turn)
    }

    /// Whether a base is believed on another site's word.
    ///
    /// Where all of it is known here, only if it is what this site would forget itself, but for
    /// sites that it cannot hear. Where something of it is not, only until this site was once in
    /// step with who says so: an honest site forgets nothing that this incarnation of ours has not
    /// confirmed, so after that there is nothing to learn from a base. Nor while another site was
    /// heard of late that has some of it still: entries show whose they are, and a base does not.
    /// What is held here of it is given up only if this site would forget it itself, or another says
    /// that it has forgotten it too; or if there is no other that could say so, and it is no word of this
    /// incarnation: a site that goes on from a copy would wait for ever.
    fn believes(&self, base: &Base, from: &SiteId, turn: &Turn<'_>) -> bool {
        let me = &turn.context.settings.me;
        if self.knows.covers(&base.upto) {
            return self.has_floor_over(&base.upto, turn);
        }
        // A state is taken for what all sites say that it is, if this one is among them.
        let is_mine = |floor: &StateFloor| floor.sites.contains(&me.site);
        if base.state.as_deref().is_some_and(is_mine) {
            return false;
        }
        let was_in_step = self.peers.get(from).is_some_and(|peer| peer.was_in_step);
        // Nobody has written more than it says itself. Who has not said it yet says it soon, and a
        // base is said again and again.
        let is_beyond = |(author, n): (&Author, u64)| {
            let own = self.peers.get(&author.site).filter(|_| author.site != *from);
            own.is_some_and(|peer| {
                peer.incarnation == Some(author.incarnation) && peer.knows.last_of(author) < n
            })
        };
        let has_it_still = |peer: &super::peer::Peer| {
            let has = |(author, n): (&Author, u64)| {
                n > self.knows.last_of(author)
                    && peer.pruned.last_of(author) < n.min(peer.knows.last_of(author))
            };
            base.upto.iter().any(has)
        };
        // What was forgotten all knew, but for those that lost their memory: who knows a part of it and
        // not the rest says that the rest never was; and so does who is not named and should be.
        let declared = base.declared.as_ref();
        let is_contradicted = |site: &SiteId, peer: &super::peer::Peer| {
            let mut common = base.upto.clone();
            common.meet(&peer.knows);
            !common.is_empty() && !peer.knows.covers(&base.upto)
                || peer.incarnation.is_some()
                    && !peer.knows.is_empty()
                    && declared.is_some_and(|declared| !declared.sites.contains(site))
        };
        let others = self.peers.iter().filter(|(site, _)| *site != from);
        let is_heard = |site: &SiteId| {
            let heard_ms = turn.context.links.get(site).and_then(|link| link.heard_ms);
            heard_ms.is_some_and(|ms| ms.saturating_add(OF_LATE_MS) > turn.now.mono_ms)
        };
        let heard: Vec<_> = others.filter(|(site, _)| is_heard(site)).collect();
        let mut held = base.upto.clone();
        held.meet(&self.knows);
        let may_go = || {
            self.base.covers(&held)
                || self.peers.keys().all(|site| site == from)
                || heard.iter().any(|(_, peer)| peer.pruned.covers(&held))
                || self.has_floor_over(&held, turn)
        };
        !was_in_step
            && may_go()
            && !heard.iter().any(|(site, peer)| has_it_still(peer) || is_contradicted(site, peer))
            && !base.upto.iter().any(is_beyond)
            && base.upto.last_of(me) <= self.base.last_of(me)
    }

    /// Whether these are all below an operation that replaced them, and went well somewhere. It may
    /// have been replaced since.
    ///
    /// A site that lost its disk knows nothing, and what it does then is concurrent to everything:
    /// also to what the others have long forgotten with its consent. So that does not count here.
    fn has_floor_over(&self, upto: &Vector, turn: &Turn<'_>) -> bool {
        let is_liar = |site: &SiteId| turn.context.liars.has(site);
        let has_liars = self.has_liars() || self.declared.sites.iter().any(is_liar);
        let is_over = |floor: &OperationId| {
            // Who forgot it may have had the word of a liar that it went well, which does not count since.
            let went_well =
                has_liars || self.replies.get(floor).is_some_and(Replies::succeeded_somewhere);
            let below = self.resolution.operations().past(floor).filter(|_| went_well).cloned();
            below.is_some_and(|mut below| {
                below.join(&self.base);
                below.covers(upto)
            })
        };
        // Nor does what a liar wrote, which may have told others before that it knows what it forgot there.
        let may_be_concurrent = |author: &Author| {
            is_liar(&author.site)
                || self.knows.iter().any(|(known, _)| known.site == author.site && known != author)
        };
        self.resolution.floors().any(is_over)
            || !self.base.covers(upto)
                && self.resolution.floors_but_for(&may_be_concurrent).any(is_over)
    }
}

/// A site that was heard within this time is likely to be heard again.
const OF_LATE_MS: u64 = 60_000;

/// So long a site that is named as one of a resource's has to say what it knows of it. Who is not there
/// keeps a site that lost its disk from its history for that long, and no longer.
const NAMED_MS: u64 = 15_000;

/// So long a site that is not named as one of a resource's has to say that it is.
const STRANGERS_MS: u64 = 3_000;

/// More authors than a resource can have, each a site in one incarnation of its disk.
const MOST_AUTHORS: usize = 4_096;

/// Whether a message wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Yes,
    No,
}

/// A site caught up with one resource: there is room to ask it about another.
pub(super) fn ask_next(site: &SiteId, how: fn(ResourceId, SiteId) -> Timer, turn: &mut Turn<'_>) {
    let in_flight = turn.context.settings.resources_in_flight;
    let Some(link) = turn.context.links.get_mut(site) else { return };
    while link.asking.len() < in_flight {
        let Some(next) = link.next_to_ask() else { return };
        turn.context.timers.set(turn.now.mono_ms, how(next, site.clone()));
    }
}
