//! To whom a site wants a link so that all sites are connected.

use std::collections::{BTreeMap, BTreeSet};

use cheops_core::model::SiteId;

use crate::reach::Way;
use crate::ring::Ring;

/// Whom of those that nobody hears to try, one after the other: parts of a mesh that lost all links between
/// them find each other so.
#[derive(Debug, Default)]
pub(crate) struct Search {
    place: u64,
    tried: Option<SiteId>,
}

impl Search {
    /// Where to begin: nobody begins where another does.
    pub(crate) fn new(me: &SiteId) -> Self {
        let hash = blake3::hash(me.as_str().as_bytes());
        let place = hash.as_bytes().last_chunk().map_or(0, |last| u32::from_le_bytes(*last));
        Self { place: u64::from(place), tried: None }
    }

    /// Goes on to the next one, and says whether there is one.
    pub(crate) fn next(&mut self, ring: &Ring, is_heard: impl Fn(&SiteId) -> bool) -> bool {
        let places = (1..=ring.len() as u64).map(|step| self.place.wrapping_add(step));
        let silent = places.filter_map(|place| Some((place, ring.at(place)?)));
        let found = silent.into_iter().find(|(_, site)| !is_heard(site));
        self.tried = found.map(|(place, site)| {
            self.place = place;
            site.clone()
        });
        self.tried.is_some()
    }

    /// Nobody is to be found.
    pub(crate) fn rest(&mut self) {
        self.tried = None;
    }
}

/// The sites to which `me` wants a link.
pub(crate) fn wished(
    me: &SiteId,
    ring: &Ring,
    ways: &BTreeMap<SiteId, Way>,
    is_linked: impl Fn(&SiteId) -> bool,
    search: &Search,
) -> BTreeSet<SiteId> {
    let mut wished = BTreeSet::new();
    for mut places in ring.neighbours(me) {
        let Some(right) = places.next() else { continue };
        wished.insert(right.clone());
        if !is_linked(right) && !ways.contains_key(right) {
            // The right one is tried all the same; until it is there another one does.
            wished.extend(places.find(|site| ways.contains_key(site)).cloned());
        }
    }
    wished.extend(search.tried.iter().filter(|site| ring.contains(site)).cloned());
    wished.remove(me);
    wished
}
