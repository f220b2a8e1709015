//! Who is alive: who can be reached from here over pairs of sites that hear each other.
//!
//! Nobody counts somebody else's silence: a site that is alive says whom it hears, and one that nobody
//! hears is not. What a dead site said last holds nobody alive, since the others no longer hear it; and
//! one site cannot hold a dead one alive by saying that it hears it, unless that one said so too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cheops_core::model::SiteId;

use crate::statement::LinkState;

/// How a site is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The round trip: the sum of those on the shortest way, in microseconds.
    pub round_trip_us: u64,
    /// Who hears it: the last one on that way; this site itself, if there is a link.
    pub heard_by: SiteId,
}

/// The sites that can be reached from `me`, which has these links with these round trips.
pub fn reachable<'a>(
    me: &SiteId,
    links: impl IntoIterator<Item = (&'a SiteId, u64)>,
    said_by: impl Fn(&SiteId) -> Option<&'a LinkState>,
) -> BTreeMap<SiteId, Way> {
    let mut ways: BTreeMap<SiteId, Way> = BTreeMap::new();
    let mut next = BinaryHeap::new();
    for (site, round_trip_us) in links {
        next.push(Reverse((round_trip_us, site.clone(), me.clone())));
    }
    while let Some(Reverse((round_trip_us, site, heard_by))) = next.pop() {
        if site == *me || ways.contains_key(&site) {
            continue;
        }
        for hears in said_by(&site).into_iter().flat_map(|state| &state.hears) {
            let is_mutual = said_by(&hears.site).is_none_or(|state| does_hear(state, &site));
            if is_mutual && !ways.contains_key(&hears.site) {
                let sum = round_trip_us.saturating_add(hears.round_trip_us);
                next.push(Reverse((sum, hears.site.clone(), site.clone())));
            }
        }
        ways.insert(site, Way { round_trip_us, heard_by });
    }
    ways
}

fn does_hear(state: &LinkState, site: &SiteId) -> bool {
    state.hears.binary_search_by(|hears| hears.site.cmp(site)).is_ok()
}
