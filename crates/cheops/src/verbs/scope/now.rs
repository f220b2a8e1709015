//! Which site would run a service now, and why: as an agent sees the sites.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cheops_api::{Client, SiteState, Sites};
use cheops_scope::{Known, Micros, Placement, RoundTrips, Scope, ServiceName, SiteId, Target};
use serde::Serialize;

use crate::agent::{self, AgentTarget};
use crate::failure::Failure;
use crate::text::listed;

/// How long an agent may take that nobody named.
const PATIENCE: Duration = Duration::from_secs(3);

/// The sites as an agent sees them.
#[derive(Debug, Default)]
pub(super) struct MeshView {
    /// The site whose agent was asked.
    pub(super) me: String,
    sites: BTreeMap<SiteId, SiteNow>,
    round_trips: RoundTrips,
}

/// One site.
#[derive(Debug, Clone)]
struct SiteNow {
    connected: bool,
    is_me: bool,
    round_trip_ms: Option<f64>,
    /// If it said so.
    services: Option<Vec<ServiceName>>,
}

/// Asks the agent. One that nobody named need not be there: then there is nothing to tell.
pub(super) fn asked(target: &AgentTarget) -> Result<Option<MeshView>, Failure> {
    let asked = agent::with(target, async |client| {
        let asked = tokio::time::timeout(PATIENCE, look(&client));
        asked.await.unwrap_or_else(|_late| Err(Failure::away("the agent did not answer in time")))
    });
    match asked {
        Ok(view) => Ok(Some(view)),
        Err(failure) if target.is_named() => Err(failure),
        Err(_nobody) => Ok(None),
    }
}

async fn look(client: &Client) -> Result<MeshView, Failure> {
    let mine = client.sites().await?;
    let mut view = MeshView::new(&mine);
    let connected: Vec<SiteId> = view
        .sites
        .iter()
        .filter(|(_, now)| now.connected && !now.is_me)
        .map(|(site, _)| site.clone())
        .collect();
    for site in connected {
        // What a site does not say in time is not known.
        if let Ok(seen) = client.sites_seen_by(site.as_str()).await {
            view.hear(&site, &seen);
        }
    }
    Ok(view)
}

fn site_id(name: &str) -> Option<SiteId> {
    SiteId::new(name).ok()
}

fn service_names(said: Option<&Vec<String>>) -> Option<Vec<ServiceName>> {
    Some(said?.iter().filter_map(|name| ServiceName::new(name).ok()).collect())
}

impl MeshView {
    fn new(mine: &Sites) -> Self {
        let mut view = Self { me: mine.me.clone(), ..Self::default() };
        for site in &mine.sites {
            let Some(id) = site_id(&site.site) else { continue };
            let is_me = site.state == SiteState::Myself;
            let services = if is_me { service_names(mine.services.as_ref()) } else { None };
            let connected = is_me || site.state == SiteState::Up;
            let now = SiteNow { connected, is_me, round_trip_ms: site.round_trip_ms, services };
            view.sites.insert(id, now);
        }
        view.measure(mine);
        view
    }

    /// What another site says of itself.
    fn hear(&mut self, site: &SiteId, seen: &Sites) {
        if let Some(now) = self.sites.get_mut(site) {
            now.services = service_names(seen.services.as_ref());
        }
        self.measure(seen);
    }

    fn measure(&mut self, seen: &Sites) {
        let Some(from) = site_id(&seen.me) else { return };
        for site in &seen.sites {
            if let (Some(to), Some(ms)) = (site_id(&site.site), site.round_trip_ms) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a time of the network, in microseconds"
                )]
                let time = Micros::new((ms * 1000.0).max(0.0) as u64);
                self.round_trips.set(from.clone(), to, time);
            }
        }
    }

    /// The names there are. A site that did not say which services it has may have any.
    pub(super) fn known(&self, scope: Option<&Scope>) -> Known {
        let said = self.sites.values().filter_map(|now| now.services.as_ref()).flatten();
        let mut services: BTreeSet<ServiceName> = said.cloned().collect();
        if self.sites.values().any(|now| now.services.is_none()) {
            let named = scope.into_iter().flat_map(|scope| &scope.bindings);
            services.extend(named.map(|binding| binding.service.value.clone()));
        }
        let sites = self.sites.keys().cloned();
        Known::new(services, sites).with_round_trips(self.round_trips.clone())
    }

    /// Which site would run each service now.
    pub(super) fn now(&self, placement: &Placement) -> Vec<ServiceNow> {
        let services = placement.services.iter();
        services.map(|placed| self.service(&placed.service, &placed.target)).collect()
    }

    fn service(&self, service: &ServiceName, target: &Target) -> ServiceNow {
        let found = self.found(service, target);
        let at: Vec<String> = found.at.iter().map(|site| self.told(site)).collect();
        let since = found.because.join(", and ");
        let sentence = match (at.as_slice(), since.is_empty()) {
            ([], true) => "nowhere now".to_owned(),
            ([], false) => format!("nowhere now: {since}"),
            (at, true) => format!("now at {}", listed(at)),
            (at, false) => format!("now at {}; {since}", listed(at)),
        };
        ServiceNow {
            service: service.to_string(),
            at: found.at.iter().map(ToString::to_string).collect(),
            sentence,
        }
    }

    /// A site, and how far it is.
    fn told(&self, site: &SiteId) -> String {
        match self.sites.get(site) {
            Some(SiteNow { is_me: true, .. }) => format!("{site} (the site asked)"),
            Some(SiteNow { round_trip_ms: Some(ms), .. }) => format!("{site} ({ms:.1} ms away)"),
            _ => site.to_string(),
        }
    }

    fn found(&self, service: &ServiceName, target: &Target) -> RunPlaces {
        match target {
            Target::Site(site) => match self.trouble(service, site) {
                None => RunPlaces { at: vec![site.clone()], because: Vec::new() },
                Some(trouble) => RunPlaces { at: Vec::new(), because: vec![trouble] },
            },
            Target::All(parts) => self.all(service, parts, "gets it once it is"),
            Target::Cross(parts) => {
                self.all(service, parts, "has its part, which is missing until then")
            }
            Target::FirstOf(parts) => {
                let mut because = Vec::new();
                for part in parts {
                    let found = self.found(service, part);
                    because.extend(found.because);
                    if !found.at.is_empty() {
                        return RunPlaces { at: found.at, because };
                    }
                }
                RunPlaces { at: Vec::new(), because }
            }
        }
    }

    fn all(&self, service: &ServiceName, parts: &[Target], later: &str) -> RunPlaces {
        let mut all = RunPlaces::default();
        for part in parts {
            let found = self.found(service, part);
            let is_away = found.at.is_empty() && matches!(part, Target::Site(_));
            let told = |why: String| match why.ends_with("connected") && is_away {
                true => format!("{why}, and {later}"),
                false => why,
            };
            all.because.extend(found.because.into_iter().map(told));
            all.at.extend(found.at);
        }
        all
    }

    /// Why a site would not run it.
    fn trouble(&self, service: &ServiceName, site: &SiteId) -> Option<String> {
        let now = self.sites.get(site)?;
        if !now.connected {
            return Some(format!("{site} is not connected"));
        }
        let has = now.services.as_ref().is_none_or(|services| services.contains(service));
        (!has).then(|| format!("{site} has no service `{service}`"))
    }
}

#[derive(Default)]
struct RunPlaces {
    at: Vec<SiteId>,
    because: Vec<String>,
}

/// Where a service would run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ServiceNow {
    pub(super) service: String,
    /// The sites, in the order in which they are asked.
    at: Vec<String>,
    /// The same in words, and why.
    pub(super) sentence: String,
}

#[cfg(test)]
mod tests {
    use cheops_api::Site;
    use expect_test::expect;

    use super::*;

    fn site(name: &str, state: SiteState, round_trip_ms: Option<f64>) -> Site {
        Site {
            site: name.to_owned(),
            state,
            since: None,
            round_trip_ms,
            shared: 0,
            behind_on: 0,
            entries_behind: None,
            address: None,
            problem: None,
        }
    }

    fn seen(me: &str, sites: Vec<Site>, services: &[&str]) -> Sites {
        let services = Some(services.iter().map(|name| (*name).to_owned()).collect());
        Sites { me: me.to_owned(), version: "1".to_owned(), demo: false, sites, services }
    }

    /// Paris is asked, lyon and lille are connected, nice is not.
    fn view() -> MeshView {
        let sites = vec![
            site("lille", SiteState::Up, Some(9.0)),
            site("lyon", SiteState::Up, Some(7.25)),
            site("nice", SiteState::Unknown, None),
            site("paris", SiteState::Myself, None),
        ];
        let mut view = MeshView::new(&seen("paris", sites, &["image"]));
        let lyon = site_id("lyon").unwrap();
        view.hear(&lyon, &seen("lyon", Vec::new(), &["image", "compute"]));
        let near = vec![site("lyon", SiteState::Up, Some(2.0))];
        view.hear(&site_id("lille").unwrap(), &seen("lille", near, &["image"]));
        view
    }

    #[test]
    fn each_service_says_where_it_would_run_now_and_why_not_elsewhere() {
        let view = view();
        let mut told = String::new();
        for scope in [
            "image: paris",
            "image: lyon",
            "image: nice",
            "image: nice ; lyon",
            "compute: paris ; lyon",
            "image: paris & nice & lyon",
            "image: paris % nice",
            "image: around(lille, 5ms)",
            "compute: paris",
            "image: paris, compute: (nice & paris) ; lyon",
        ] {
            let parsed = cheops_scope::parse(scope).unwrap();
            let placement = cheops_scope::resolve(scope, &view.known(Some(&parsed))).unwrap();
            for now in view.now(&placement) {
                told.push_str(&format!("{scope}\n  {}: {}\n", now.service, now.sentence));
            }
        }
        expect![[r#"
            image: paris
              image: now at paris (the site asked)
            image: lyon
              image: now at lyon (7.2 ms away)
            image: nice
              image: nowhere now: nice is not connected
            image: nice ; lyon
              image: now at lyon (7.2 ms away); nice is not connected
            compute: paris ; lyon
              compute: now at lyon (7.2 ms away); paris has no service `compute`
            image: paris & nice & lyon
              image: now at paris (the site asked) and lyon (7.2 ms away); nice is not connected, and gets it once it is
            image: paris % nice
              image: now at paris (the site asked); nice is not connected, and has its part, which is missing until then
            image: around(lille, 5ms)
              image: now at lille (9.0 ms away)
            compute: paris
              compute: nowhere now: paris has no service `compute`
            image: paris, compute: (nice & paris) ; lyon
              image: now at paris (the site asked)
            image: paris, compute: (nice & paris) ; lyon
              compute: now at lyon (7.2 ms away); nice is not connected, and gets it once it is, and paris has no service `compute`
        "#]].assert_eq(&told);
    }

    #[test]
    fn a_name_that_no_site_has_is_a_mistake_unless_a_site_may_have_it() {
        let mut view = view();
        let scope = "imgae: lyon";
        let parsed = cheops_scope::parse(scope).unwrap();
        // Nice did not say what it has.
        assert!(cheops_scope::resolve(scope, &view.known(Some(&parsed))).is_ok());
        view.hear(&site_id("nice").unwrap(), &seen("nice", Vec::new(), &[]));
        let problems = cheops_scope::resolve(scope, &view.known(Some(&parsed))).unwrap_err();
        assert!(problems.to_string().contains("`image`"), "{problems}");
        assert!(cheops_scope::resolve("image: lyonn", &view.known(None)).is_err());
    }
}
