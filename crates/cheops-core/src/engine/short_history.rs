//! A history that need not be kept: a state which all sites verified stands for the operations before it.
//!
//! When all sites have read the same after the same list, and each knows all that any of them knows of its
//! operations, each site that keeps the state says so: that it has it, and what it can do without. From
//! then on it takes nothing of that out any more. When all have said so of the same state, nothing that
//! was made without knowing those operations can turn up, and each site by itself comes to the same: it
//! forgets them. Whoever knows what another one knows has forgotten what that one has.
//!
//! What they said is signed and stays after what was forgotten. So who comes later, for example since it
//! lost its disk, need not believe anybody: it sees that all sites said so.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::Turn;
use super::durable::Record;
use super::ports::{Base, Notice};
use super::resource::Resource;
use super::verify::Agreement;
use crate::model::{
    Author, Entry, EntryBody, Extension, Fingerprint, KeptState, OperationId, Reply, SiteId,
    StateFloor, Status, Vector,
};
use crate::plan::{self, Item, RunEffect};

/// A state with more heads or types of operations before it than this stands for nothing.
const MOST_NAMED: usize = 64;

impl Resource {
    /// Whether the state is to be kept when it is read: the history has grown long, or another site says
    /// that it keeps it.
    pub(super) fn is_state_to_be_kept(&self, turn: &Turn<'_>) -> bool {
        let me = &turn.context.settings.me;
        // What a service calls a thing nobody could read from its state; nor who wrote what of a document
        // that is merged.
        let can_be = self.config().state.is_some()
            && self.declared.id_map.is_none()
            && self.merged_as().is_none();
        let list = self.resolution.list_fingerprint();
        let is_asked_for =
            || self.kept.iter().any(|(author, kept)| author != me && kept.floor.list == list);
        let is_long = || {
            self.resolution.operations().len() >= turn.context.settings.short_history_from.max(1)
        };
        can_be && (is_long() || is_asked_for())
    }

    /// Says that this site keeps the state that all verified, if so.
    pub(super) fn say_state_is_kept(&mut self, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.clone();
        let Some(kept) = self.state_to_say(&me) else { return };
        if self.kept.get(&me).is_some_and(|said| said.floor == kept.floor) {
            return;
        }
        let (Some(beside), Some(carrier)) = (Extension::kept_state(&kept), self.carrier(&me))
        else {
            return;
        };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        self.write(EntryBody::Reply(Reply { id, stamp, ..carrier }), vec![beside], turn);
    }

    /// A reply of this site to say again, beside which something else is said. Who began with a state has
    /// none of its own: the operations before it succeeded, as far as it can tell.
    pub(super) fn carrier(&self, me: &Author) -> Option<Reply> {
        let own = self.lightest_own_reply(me).cloned();
        own.or_else(|| {
            let head = self.resolution.state()?.heads.first()?.clone();
            let id = head.0.clone();
            let (status, stamp) = (Status::Ok, crate::model::Stamp::default());
            Some(Reply { id, stamp, operation: head, status, outcome: None })
        })
    }

    /// The state that is verified and kept here, with what it stands for.
    fn state_to_say(&self, me: &Author) -> Option<KeptState> {
        let here = self.reads.kept.as_ref()?;
        let list = self.resolution.list_fingerprint();
        let is_verified = here.list == list
            && matches!(self.agreement(me), Agreement::Verified { .. })
            && self.reads.reported_state(me) == Some(here.state);
        let config = self.config();
        let write = &config.state.as_ref()?.write;
        if !is_verified || !self.is_at_rest() || self.is_deleted() || self.knows_of_trouble() {
            return None;
        }
        let heads = self.resolution.operations().heads();
        let mut stable = self.stable();
        if heads.is_empty() || !heads.iter().all(|head| stable.includes(&head.0)) {
            return None;
        }
        // What was read is said again by who forgets it: so it is kept, where nothing rests on it. Numbers go
        // on over all resources, so what comes before an entry is what it says that it comes after.
        for (author, entry) in self.reads.said_in() {
            let held = self.held_of(author).and_then(|held| held.get(&entry.n));
            if let Some(held) = held {
                let last = self.resolution.operations().last_of(author);
                stable.limit(author, last.max(held.entry.after));
            }
        }
        stable.join(&self.base);
        let floor = StateFloor {
            list,
            state: here.state,
            size: here.size,
            write: Fingerprint::of(write.as_bytes()),
            sites: self.declared.sites.clone(),
            heads,
            kinds: self.resolution.listed_kinds(),
        };
        let is_small = floor.heads.len() <= MOST_NAMED && floor.kinds.len() <= MOST_NAMED;
        is_small.then_some(KeptState { floor, upto: stable })
    }

    /// Whether something failed that nobody has looked at, or somebody has not said what became of
    /// something: that must not be forgotten.
    fn knows_of_trouble(&self) -> bool {
        self.in_trouble().next().is_some() || !self.is_all_answered()
    }

    /// Whether this site has said that it can do without that operation: then nothing about it can be
    /// changed any more.
    pub(super) fn is_about_to_be_forgotten(&self, id: &OperationId, me: &Author) -> bool {
        let mut own = self.kept.iter().filter(|(author, _)| author.site == me.site);
        own.any(|(_, kept)| kept.upto.includes(&id.0))
    }

    /// Takes in what a site says that it keeps.
    pub(super) fn see_kept_state(&mut self, author: &Author, kept: KeptState) {
        self.kept.insert(author, Arc::new(kept));
        self.kept_is_news = true;
    }

    /// Forgets what a state stands for that all sites keep.
    pub(super) fn forget_for_state(&mut self, turn: &mut Turn<'_>) {
        if !std::mem::take(&mut self.kept_is_news) {
            return;
        }
        let set_apart = |site: &SiteId| !turn.context.liars.keys_of(site).is_empty();
        let candidates: Vec<_> = self.kept.iter().map(|(_, kept)| Arc::clone(kept)).collect();
        let agreed = candidates.iter().find_map(|kept| self.all_keep(&kept.floor, &set_apart));
        // What it is about may arrive after what is said of it.
        self.kept_is_news = candidates.iter().any(|kept| !self.knows.covers(&kept.upto));
        if let Some((floor, upto)) = agreed {
            self.stand_on_state(floor, &upto, turn);
        }
    }

    /// What that state stands for, if all its sites said that they keep it, and of the same operations.
    fn all_keep(
        &self,
        floor: &StateFloor,
        set_apart: &dyn Fn(&SiteId) -> bool,
    ) -> Option<(StateFloor, Vector)> {
        let said = || self.kept.iter().filter(|(_, kept)| kept.floor == *floor);
        let has_said = |site: &SiteId| said().any(|(author, _)| author.site == *site);
        if !floor.sites.iter().all(|site| has_said(site) || set_apart(site))
            // What was forgotten since does not come back.
            || !floor.heads.iter().all(|head| self.operation(head).is_some() || self.is_disowned(&head.0))
        {
            return None;
        }
        let mut all: Vec<Vector> = said().map(|(_, kept)| kept.upto.clone()).collect();
        all.iter_mut().for_each(|upto| self.limit_to_what_counts(upto));
        let is_known = all.iter().all(|upto| self.knows.covers(upto));
        let mut common = all.first()?.clone();
        all.iter().for_each(|upto| common.meet(upto));
        let is_of_all = |id: &OperationId| {
            common.includes(&id.0) || !all.iter().any(|upto| upto.includes(&id.0))
        };
        let is_same = self.resolution.operations().iter().all(|known| is_of_all(&known.id));
        common.join(&self.base);
        (is_known && is_same).then(|| (floor.clone(), common))
    }

    fn stand_on_state(&mut self, floor: StateFloor, upto: &Vector, turn: &mut Turn<'_>) {
        let config = self.config();
        let is_here = self.resolution.list_fingerprint_upto(upto) == floor.list
            && plan::has_run_all(&self.items(), &self.runs.log, &config, |id| {
                upto.includes(&id.0) || id.0.n > u64::MAX / 2
            });
        self.tell_what_is_left_out(upto, turn);
        let forgotten = self.forget(upto, None);
        let stands_in = floor.stand_in();
        self.resolution.stand_on(upto, Some(floor));
        match stands_in.filter(|_| is_here) {
            Some(id) => self.runs.log.stand_on(upto, Item::state(id)),
            None => {
                // It is written anew, and what came after it runs again.
                self.runs.log.prune(upto, &self.items(), &self.config());
                self.runs.list_rearranged();
            }
        }
        turn.record(Record::Pruned(self.id.clone(), Box::new(self.ground())));
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        turn.notify(Notice::Pruned(self.id.clone(), forgotten));
        if !is_here {
            self.settle(turn);
        }
    }

    /// Whether all sites said themselves that they keep the state of a base, and can do without what it
    /// forgot: what they said is signed, and may be on its way with it.
    pub(super) fn is_shown_to_be_kept(
        &self,
        base: &Base,
        arriving: &[Arc<Entry>],
        turn: &Turn<'_>,
    ) -> bool {
        let (Some(floor), Some(declared)) = (&base.state, &base.declared) else { return false };
        let config = declared.config.as_ref().and_then(|(_, config)| config.state.as_ref());
        let writes = config.map(|state| Fingerprint::of(state.write.as_bytes()));
        if writes != Some(floor.write) || !floor.sites.contains(&turn.context.settings.me.site) {
            return false;
        }
        let on_the_way = self.waiting().chain(arriving);
        let on_the_way: Vec<_> = on_the_way
            .filter_map(|entry| Some((entry.id().author.site.clone(), entry.kept_state()?)))
            .collect();
        let known = self.kept.iter().map(|(author, kept)| (&author.site, &**kept));
        let said: BTreeSet<&SiteId> = known
            .chain(on_the_way.iter().map(|(site, kept)| (site, kept)))
            .filter(|(_, kept)| kept.floor == **floor && kept.upto.covers(&base.upto))
            .map(|(site, _)| site)
            .collect();
        let set_apart = |site: &SiteId| !turn.context.liars.keys_of(site).is_empty();
        floor.sites.iter().all(|site| said.contains(site) || set_apart(site))
    }

    /// A state that stands for what was forgotten, and is not what the application holds yet.
    pub(super) fn state_to_write(&self) -> Option<&StateFloor> {
        let state = self.resolution.state()?;
        let is_there =
            state.stand_in().is_some_and(|id| self.runs.log.outcome(&id) == Some(RunEffect::Took));
        (!is_there).then_some(state)
    }
}
