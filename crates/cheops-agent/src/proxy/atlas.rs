//! What scopes can name and how far the sites are, with what the scopes of late came to: the same
//! few are sent again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cheops_core::model::SiteId;
use cheops_scope::{
    Known, Micros, Placement, Problems, RoundTrips, ServiceName, SiteName, resolve,
};

use crate::peers::Peers;

/// How long distances hold.
const FRESH: Duration = Duration::from_secs(1);
const MOST_SCOPES: usize = 1024;

pub(super) struct Atlas {
    me: SiteName,
    services: Vec<ServiceName>,
    sites: Vec<(SiteName, SiteId)>,
    peers: Peers,
    drawn: Mutex<Drawn>,
}

struct Drawn {
    at: Instant,
    known: Known,
    placements: HashMap<Box<str>, Arc<Placement>>,
}

impl Atlas {
    pub(super) fn new(me: &SiteId, services: Vec<ServiceName>, peers: Peers) -> Option<Self> {
        let name = |site: &SiteId| SiteName::new(site.as_str()).ok();
        let sites = peers.sites().filter_map(|site| Some((name(site)?, site.clone()))).collect();
        let drawn =
            Drawn { at: Instant::now(), known: Known::default(), placements: HashMap::new() };
        let mut atlas = Self { me: name(me)?, services, sites, peers, drawn: Mutex::new(drawn) };
        let known = atlas.draw();
        atlas.drawn.get_mut().unwrap_or_else(PoisonError::into_inner).known = known;
        Some(atlas)
    }

    fn draw(&self) -> Known {
        let mut round_trips = RoundTrips::default();
        for (name, site) in &self.sites {
            if let Some(time) = self.peers.round_trip(site) {
                let time = Micros::new(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
                round_trips.set(self.me.clone(), name.clone(), time);
            }
        }
        let sites = self.sites.iter().map(|(name, _)| name.clone()).chain([self.me.clone()]);
        Known::new(self.services.iter().cloned(), sites).with_round_trips(round_trips)
    }

    /// What runs where.
    pub(super) fn resolve(&self, scope: &str) -> Result<Arc<Placement>, Problems> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.at.elapsed() >= FRESH {
            *drawn = Drawn { at: Instant::now(), known: self.draw(), placements: HashMap::new() };
        }
        if let Some(placement) = drawn.placements.get(scope) {
            return Ok(placement.clone());
        }
        let placement = Arc::new(resolve(scope, &drawn.known)?);
        if drawn.placements.len() < MOST_SCOPES {
            drawn.placements.insert(scope.into(), placement.clone());
        }
        Ok(placement)
    }
}
