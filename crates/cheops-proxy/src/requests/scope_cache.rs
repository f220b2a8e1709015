//! What scopes can name and how far the sites are, with what the scopes of late came to: the same
//! few are sent again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cheops_core::model::SiteId;
use cheops_scope::{Known, Micros, Placement, Problems, RoundTrips, ServiceName, parse, resolve};

use super::correlation::{Correlation, Holder, KnownScope};
use super::distances::Distances;
use super::scope::WrittenScope;
use crate::ports::OtherSites;

/// How long distances hold.
const FRESH: Duration = Duration::from_secs(1);
const MOST_SCOPES: usize = 1024;

pub(super) struct ScopeCache {
    me: SiteId,
    services: Vec<ServiceName>,
    sites: Vec<SiteId>,
    peers: Arc<dyn OtherSites>,
    distances: Distances,
    drawn: Mutex<Drawn>,
}

/// A scope and what it comes to.
pub(super) struct ResolvedScope {
    /// In its canonical form: however it was written, it is one.
    scope: Arc<str>,
    /// The same in the memory of ids, as soon as a request runs under it.
    known: OnceLock<Arc<KnownScope>>,
    pub(super) written: WrittenScope,
    pub(super) placement: Placement,
}

impl ResolvedScope {
    /// The same in the memory of ids, where it may have made room for others.
    pub(super) fn known(&self, memory: &Correlation, by: &Holder, now: Instant) -> Arc<KnownScope> {
        let known = self.known.get_or_init(|| memory.scope(&self.scope, by, now));
        match known.is_forgotten() {
            false => known.clone(),
            true => memory.scope(&self.scope, by, now),
        }
    }
}

struct Drawn {
    at: Instant,
    known: Known,
    /// By how they were written.
    resolved: HashMap<Arc<str>, Arc<ResolvedScope>>,
}

impl ScopeCache {
    pub(super) fn new(me: &SiteId, services: Vec<ServiceName>, peers: Arc<dyn OtherSites>) -> Self {
        let sites = peers.sites().cloned().collect();
        let drawn = Drawn { at: Instant::now(), known: Known::default(), resolved: HashMap::new() };
        let (distances, drawn) = (Distances::default(), Mutex::new(drawn));
        let mut scope_cache = Self { me: me.clone(), services, sites, peers, distances, drawn };
        let known = scope_cache.draw();
        scope_cache.drawn.get_mut().unwrap_or_else(PoisonError::into_inner).known = known;
        scope_cache
    }

    fn draw(&self) -> Known {
        let mut round_trips = RoundTrips::default();
        for site in &self.sites {
            let time = self
                .peers
                .round_trip(site)
                .map(|time| Micros::new(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)));
            if let Some(time) = self.distances.measured(site, time) {
                round_trips.set(self.me.clone(), site.clone(), time);
            }
        }
        self.distances.each(|from, to, time| {
            // What this site measured itself counts more.
            if self.sites.contains(from) && *to != self.me {
                round_trips.set(from.clone(), to.clone(), time);
            }
        });
        let sites = self.sites.iter().cloned().chain([self.me.clone()]);
        Known::new(self.services.iter().cloned(), sites).with_round_trips(round_trips)
    }

    /// What runs where.
    pub(super) async fn resolve(&self, scope: &str) -> Result<Arc<ResolvedScope>, Problems> {
        let is_new = self.distances.hear(scope, &*self.peers).await;
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if is_new || drawn.at.elapsed() >= FRESH {
            *drawn = Drawn { at: Instant::now(), known: self.draw(), resolved: HashMap::new() };
        }
        if let Some(resolved) = drawn.resolved.get(scope) {
            return Ok(resolved.clone());
        }
        let placement = resolve(scope, &drawn.known)?;
        let canonical: Arc<str> = parse(scope)?.canonical().into();
        let resolved = match drawn.resolved.get(&canonical) {
            Some(resolved) => resolved.clone(),
            None => {
                let (written, known) = (WrittenScope::new(&canonical), OnceLock::new());
                Arc::new(ResolvedScope { scope: canonical.clone(), known, written, placement })
            }
        };
        for written in [canonical, scope.into()] {
            if drawn.resolved.len() < MOST_SCOPES {
                drawn.resolved.insert(written, resolved.clone());
            }
        }
        Ok(resolved)
    }
}
