//! What came before it can be taken in: entries whose past is missing, and what sites say of
//! resources that were forgotten here.
//!
//! All of it takes memory for nothing but a site's word, so each site has so much room for what it
//! sent, over all resources together. What finds none is dropped, and is not lost: whoever sent it is
//! told what is known here, and sends what is missing again, in an order in which nothing has to wait.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use super::Resources;
use super::context::{Context, Turn};
use super::peer::Peer;
use super::ports::Malformed;
use super::resource::{EntryAcceptance, Resource};
use super::settings::Settings;
use super::timers::Timer;
use crate::model::{Entry, EntryId, ResourceId, SiteId};

/// How much each site takes of the room that there is for what it sent.
#[derive(Debug, Default)]
pub(super) struct SenderRoom(BTreeMap<SiteId, usize>);

impl SenderRoom {
    /// Takes room for that, if the site has so much left.
    fn take(&mut self, site: &SiteId, bytes: usize, settings: &Settings) -> bool {
        let taken = self.0.get(site).copied().unwrap_or(0).saturating_add(bytes);
        let has_room = taken <= settings.waiting_bytes;
        if has_room {
            self.0.insert(site.clone(), taken);
        }
        has_room
    }

    fn give_back(&mut self, site: &SiteId, bytes: usize) {
        if let btree_map::Entry::Occupied(mut taken) = self.0.entry(site.clone()) {
            *taken.get_mut() = taken.get().saturating_sub(bytes);
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }

    /// How much each takes, by what was counted as it came and went.
    pub(super) fn taken(&self) -> &BTreeMap<SiteId, usize> {
        &self.0
    }
}

/// The entries of one resource that wait for their past, each with who sent it.
#[derive(Debug, Default)]
pub(super) struct EarlyEntries(BTreeMap<EntryId, (Arc<Entry>, SiteId)>);

impl EarlyEntries {
    fn take_room(
        &self,
        from: &SiteId,
        bytes: usize,
        room: &mut SenderRoom,
        settings: &Settings,
    ) -> bool {
        self.0.len() < settings.waiting_entries && room.take(from, bytes, settings)
    }

    /// Drops what that site sent and will send again, but for what is needed first.
    fn make_room(&mut self, from: &SiteId, room: &mut SenderRoom) {
        self.0.retain(|_, (entry, sender)| {
            let stays = sender != from || entry.kept_state().is_some();
            if !stays {
                room.give_back(from, entry.size());
            }
            stays
        });
    }
}

impl Resource {
    pub(super) fn let_wait(&mut self, entry: Arc<Entry>, from: &SiteId, context: &mut Context) {
        if self.early.0.contains_key(entry.id()) {
            return;
        }
        let Context { room, settings, .. } = context;
        let bytes = entry.size();
        let mut fits = self.early.take_room(from, bytes, room, settings);
        // What a site says that it keeps is needed before anything else can be taken in, is short, and
        // comes last.
        if !fits && entry.kept_state().is_some() {
            self.early.make_room(from, room);
            fits = self.early.take_room(from, bytes, room, settings);
        }
        if fits {
            self.early.0.insert(entry.id().clone(), (entry, from.clone()));
        }
    }

    /// Forgets waiting entries that are known by now, and takes in those that became possible.
    pub(super) fn accept_waiting(&mut self, turn: &mut Turn<'_>) {
        loop {
            let before = self.early.0.len();
            for (_, (entry, from)) in std::mem::take(&mut self.early.0) {
                turn.context.room.give_back(&from, entry.size());
                match self.judge(&entry, turn.context) {
                    EntryAcceptance::New => self.insert_heard(entry, turn),
                    EntryAcceptance::NotYet | EntryAcceptance::Malformed(Malformed::NotShared) => {
                        self.let_wait(entry, &from, turn.context);
                    }
                    EntryAcceptance::Lie(evidence) => self.found_lie(*evidence, turn),
                    EntryAcceptance::Known
                    | EntryAcceptance::Disowned
                    | EntryAcceptance::Malformed(_) => {}
                }
            }
            if self.early.0.len() == before {
                return;
            }
        }
    }

    /// What waits for its past.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.early.0.values().map(|(entry, _)| entry)
    }

    pub(super) fn awaits_past(&self, id: &EntryId) -> bool {
        self.early.0.contains_key(id)
    }

    /// It is not kept in mind any more, and what waits of it neither.
    fn forget_waiting(&mut self, room: &mut SenderRoom) {
        for (entry, from) in std::mem::take(&mut self.early.0).into_values() {
            room.give_back(&from, entry.size());
        }
    }
}

/// Resources that are not known here, of which a base was offered that is not believed yet.
#[derive(Debug, Default)]
pub(super) struct Offers {
    resources: BTreeMap<ResourceId, Offer>,
    /// When it is next looked at who was offered for too long.
    look_ms: Option<u64>,
}

#[derive(Debug)]
struct Offer {
    resource: Box<Resource>,
    /// The room that each takes who said something of it.
    taken: Vec<(SiteId, usize)>,
}

/// What is not believed for so long is forgotten: whoever offers it still does so anew.
const OFFERED_MS: u64 = 600_000;
/// About what a resource takes of which nothing is known.
const OFFER_BYTES: usize = 4 * 1024;
/// About what is kept for an author that a site speaks of.
const AUTHOR_BYTES: usize = 256;

impl Peer {
    fn size(&self) -> usize {
        let vectors = [&self.knows, &self.pruned, &self.sent];
        OFFER_BYTES + vectors.into_iter().map(|it| it.authors() * AUTHOR_BYTES).sum::<usize>()
    }
}

impl Context {
    /// A resource that was not known here, with what sites said before of what was forgotten of it.
    pub(super) fn offered_or_new_resource(&mut self, id: ResourceId) -> Box<Resource> {
        let mut resource = match self.offers.resources.remove(&id) {
            Some(Offer { resource, taken }) => {
                taken.iter().for_each(|(site, bytes)| self.room.give_back(site, *bytes));
                resource
            }
            None => self.new_resource(id),
        };
        // Somebody may have been found out since.
        resource.cuts = self.liars.cuts_of(&resource.id);
        resource
    }
}

/// A resource turned out to be unknown still. What several sites say of one that was forgotten is kept
/// in mind as long as it takes to compare; of any other, nothing is.
pub(super) fn keep_in_mind(resources: &mut Resources, id: &ResourceId, turn: &mut Turn<'_>) {
    let Some(mut resource) = resources.remove(id) else { return };
    let Context { room, settings, offers, timers, .. } = &mut *turn.context;
    let mut taken = Vec::new();
    if resource.offered_ms.is_some() {
        let Resource { peers, early, .. } = &mut *resource;
        peers.retain(|site, peer| {
            let bytes = peer.size();
            let mut has_room = room.take(site, bytes, settings);
            if !has_room {
                // That somebody offers it, and since when, counts for more than what comes after.
                early.make_room(site, room);
                has_room = room.take(site, bytes, settings);
            }
            if has_room {
                taken.push((site.clone(), bytes));
            }
            has_room
        });
    }
    if taken.is_empty() {
        resource.forget_waiting(room);
        return;
    }
    if offers.look_ms.is_none() {
        let look_ms = turn.now.mono_ms.saturating_add(OFFERED_MS);
        offers.look_ms = Some(look_ms);
        timers.set(look_ms, Timer::ForgetOffers);
    }
    offers.resources.insert(id.clone(), Offer { resource, taken });
}

/// Forgets what was offered long ago.
pub(super) fn forget_old_offers(turn: &mut Turn<'_>) {
    let now_ms = turn.now.mono_ms;
    let Context { room, offers, timers, .. } = &mut *turn.context;
    offers.resources.retain(|_, Offer { resource, taken }| {
        let since_ms = resource.offered_ms.unwrap_or(0);
        let is_old = now_ms.saturating_sub(since_ms) >= OFFERED_MS;
        if is_old {
            taken.iter().for_each(|(site, bytes)| room.give_back(site, *bytes));
            resource.forget_waiting(room);
        }
        !is_old
    });
    let first_ms = offers.resources.values().filter_map(|offer| offer.resource.offered_ms).min();
    offers.look_ms = first_ms.map(|first_ms| first_ms.saturating_add(OFFERED_MS));
    if let Some(look_ms) = offers.look_ms {
        timers.set(look_ms, Timer::ForgetOffers);
    }
}

impl Context {
    /// What each site makes this one keep for its word alone, in bytes, counted anew.
    pub(super) fn count_waiting(&self, resources: &Resources) -> BTreeMap<SiteId, usize> {
        let mut counted = BTreeMap::new();
        let mut add = |site: &SiteId, bytes: usize| {
            *counted.entry(site.clone()).or_default() += bytes;
        };
        let offered = self.offers.resources.values();
        for (site, bytes) in offered.clone().flat_map(|offer| &offer.taken) {
            add(site, *bytes);
        }
        for resource in resources.values().chain(offered.map(|offer| &offer.resource)) {
            for (entry, from) in resource.early.0.values() {
                add(from, entry.size());
            }
        }
        counted
    }
}
