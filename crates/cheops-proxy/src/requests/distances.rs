//! How far the sites are from each other: this one measures its own round trips, and asks others
//! for theirs when a scope goes by them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use cheops_core::model::SiteId;
use cheops_scope::{Location, LocationKind, Micros, parse};
use futures_util::future::join_all;
use http::Request;

use crate::ports::OtherSites;

/// How long what a site said of its distances is taken for true without asking again.
const FRESH: Duration = Duration::from_secs(5);
/// How long a request waits for a site to say it.
const ASKING: Duration = Duration::from_secs(1);
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

/// What other sites said of their distances.
#[derive(Debug, Default)]
pub(super) struct Distances {
    /// What this site measured last.
    own: Mutex<HashMap<SiteId, Micros>>,
    said: Mutex<HashMap<SiteId, SaidDistances>>,
}

#[derive(Debug, Default)]
struct SaidDistances {
    /// When it was last asked.
    asked: Option<Instant>,
    round_trips: Vec<(SiteId, Micros)>,
}

impl Distances {
    /// Asks the sites around which a scope looks, if that was not done of late. Whether it was, so
    /// that distances are to be looked at anew.
    pub(super) async fn hear(&self, scope: &str, peers: &dyn OtherSites) -> bool {
        if !scope.contains("around") {
            return false;
        }
        let centres = centres(scope);
        let peers_asked =
            peers.sites().filter(|site| centres.iter().any(|name| name == site.as_str()));
        let stale: Vec<SiteId> = peers_asked.filter(|site| self.is_due(site)).cloned().collect();
        let heard = join_all(stale.iter().map(|site| ask(peers, site))).await;
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let was_asked = !stale.is_empty();
        for (site, round_trips) in stale.into_iter().zip(heard) {
            // A site that says nothing is as far from the others as it was.
            if let Some(round_trips) = round_trips {
                said.entry(site).or_default().round_trips = round_trips;
            }
        }
        was_asked
    }

    /// How far a site is: as it was measured now, or last. A site that is not heard has not moved,
    /// and whoever looks around it has to be told who is near.
    pub(super) fn measured(&self, site: &SiteId, now: Option<Micros>) -> Option<Micros> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        match now {
            Some(time) => {
                own.insert(site.clone(), time);
                Some(time)
            }
            None => own.get(site).copied(),
        }
    }

    /// What was said, from whom to whom.
    pub(super) fn each(&self, mut tell: impl FnMut(&SiteId, &SiteId, Micros)) {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for (from, said) in said.iter() {
            said.round_trips.iter().for_each(|(to, time)| tell(from, to, *time));
        }
    }

    /// Whether a site is to be asked now; then nobody else asks it for a while.
    fn is_due(&self, site: &SiteId) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said.entry(site.clone()).or_default();
        let due = said.asked.is_none_or(|asked| asked.elapsed() >= FRESH);
        if due {
            said.asked = Some(Instant::now());
        }
        due
    }
}

async fn ask(peers: &dyn OtherSites, site: &SiteId) -> Option<Vec<(SiteId, Micros)>> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = cheops_api::paths::SITES.parse().ok()?;
    let answer = async {
        let response = peers.ask_agent(site, request).await.ok()?;
        let bytes = to_bytes(response.into_body(), LONGEST_ANSWER).await.ok()?;
        serde_json::from_slice::<cheops_api::Sites>(&bytes).ok()
    };
    let sites = tokio::time::timeout(ASKING, answer).await.ok()??.sites;
    let round_trip = |site: cheops_api::Site| {
        let time = site.round_trip_ms.filter(|_| site.state == cheops_api::SiteState::Up)?;
        let time = Duration::try_from_secs_f64(time / 1000.0).ok()?;
        let time = Micros::new(u64::try_from(time.as_micros()).ok()?);
        Some((SiteId::new(&site.site).ok()?, time))
    };
    Some(sites.into_iter().filter_map(round_trip).collect())
}

/// The sites around which a scope looks. A bad scope has none: what is wrong with it is said later.
fn centres(scope: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(scope) = parse(scope) {
        scope.bindings.iter().for_each(|binding| look(&binding.location, false, &mut found));
    }
    found
}

fn look(location: &Location, is_centre: bool, found: &mut Vec<String>) {
    match &location.kind {
        LocationKind::Site(site) if is_centre => found.push(site.to_string()),
        LocationKind::Site(_) => {}
        LocationKind::Both(parts)
        | LocationKind::Spread(parts)
        | LocationKind::Otherwise(parts) => {
            parts.iter().for_each(|part| look(part, is_centre, found));
        }
        LocationKind::Around { centre, .. } => look(centre, true, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_looks_around_the_sites_it_says() {
        let cases = [
            ("image: paris", ""),
            ("image: around(paris, 10ms)", "paris"),
            ("{compute: lyon, image: around(paris ; nice, 10ms) & nantes}", "paris nice"),
            ("image: around(around(paris, 1ms), 10ms)", "paris"),
            ("image: around(", ""),
        ];
        for (scope, expected) in cases {
            assert_eq!(centres(scope).join(" "), expected, "{scope}");
        }
    }
}
