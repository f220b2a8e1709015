//! All resources in a few numbers, counted in slices so that nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use cheops_api as wire;
use cheops_core::engine::{Engine, ResourceSummary, SiteStanding};
use cheops_core::model::{OperationType, ResourceId, SiteId};
use cheops_store::HistorySize;
use tokio::sync::Mutex;

use super::list::{ListQuery, SLICE};
use super::refusal::HttpRefusal;
use super::wire as on_wire;
use super::{Api, SharedApi};

/// How long numbers are kept that took more than one look.
const KEPT: Duration = Duration::from_secs(3);
/// How long the metrics show the same numbers at least.
const SHOWN: Duration = Duration::from_secs(15);
/// And how many times longer than it took to count them: so that a site with very many resources
/// spends no more than a hundredth of its time on it.
const SHARE: u32 = 100;
/// How long somebody who looks at the metrics waits for new numbers, and then gets the old ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// The numbers that were counted last. Whoever asks meanwhile waits for the one who counts.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    last: Mutex<Option<(Instant, wire::Summary)>>,
    /// When the metrics are due for new numbers.
    due: Mutex<Option<Instant>>,
}

pub(super) async fn summary(
    State(api): State<SharedApi>,
    filter: Result<Query<wire::SummaryFilter>, QueryRejection>,
) -> Result<Json<wire::Summary>, HttpRefusal> {
    let Query(filter) = filter.map_err(|error| HttpRefusal::bad_query(&error))?;
    let wanted = wanted(filter)?;
    // One count at a time, whoever asks.
    let mut counted = api.counted.last.lock().await;
    if wanted.is_some() {
        return Ok(Json(count(&api, wanted).await?.0));
    }
    if let Some((at, summary)) = counted.as_ref()
        && at.elapsed() < KEPT
    {
        return Ok(Json(summary.clone()));
    }
    let (summary, looks) = count(&api, None).await?;
    *counted = (looks > 1).then(|| (Instant::now(), summary.clone()));
    Ok(Json(summary))
}

/// What to count, if not all.
fn wanted(filter: wire::SummaryFilter) -> Result<Option<ListQuery>, HttpRefusal> {
    if filter == wire::SummaryFilter::default() {
        return Ok(None);
    }
    let wire::SummaryFilter { q, site, kind } = filter;
    let deleted = Some(true);
    let filter = wire::ResourceFilter { q, site, kind, deleted, ..wire::ResourceFilter::default() };
    ListQuery::of(filter).map(Some)
}

/// Sees to it that the metrics show how many resources are in which state, if that is due. It goes on
/// where whoever asked has left.
pub(super) async fn keep_states_shown(api: &SharedApi) {
    let counting = show_states(api.clone());
    let _later = tokio::time::timeout(PATIENCE, tokio::spawn(counting)).await;
}

async fn show_states(api: SharedApi) {
    // Somebody else counts already if it is taken.
    let Ok(mut due) = api.counted.due.try_lock() else { return };
    let began = Instant::now();
    if due.is_some_and(|at| at > began) {
        return;
    }
    if let Ok((summary, _)) = count(&api, None).await {
        for state in wire::ResourceState::ALL {
            let count = summary.by_state.get(state.word()).copied().unwrap_or(0);
            metrics::gauge!("cheops_resources_by_state", "state" => state.word()).set(count as f64);
        }
        metrics::gauge!("cheops_resources_warned").set(summary.warnings as f64);
        let took = began.elapsed();
        *due = Some(Instant::now() + SHOWN.max(took * SHARE));
    }
}

#[derive(Default)]
struct ResourceTally {
    wanted: Option<ListQuery>,
    resources: u64,
    troubled: BTreeMap<SiteId, u64>,
    verified: u64,
    unverified: BTreeMap<&'static str, u64>,
    warnings: u64,
    verified_since_ms: Option<u64>,
    by_state: BTreeMap<&'static str, u64>,
    by_site: BTreeMap<SiteId, u64>,
    types: BTreeSet<OperationType>,
}

/// Counts all, or those wanted, and says in how many looks.
async fn count(
    api: &Api,
    wanted: Option<ListQuery>,
) -> Result<(wire::Summary, usize), HttpRefusal> {
    let tally = ResourceTally { wanted, ..ResourceTally::default() };
    let (mut tally, mut after, mut looks) = (tally, None, 0);
    loop {
        let look = move |engine: &Engine| {
            let last = tally.add_slice(engine, after.as_ref());
            (tally, last)
        };
        (tally, after) = api.driver.ask(look).await?;
        looks += 1;
        if after.is_none() {
            return Ok((tally.told(api.feed.history_size()), looks));
        }
    }
}

impl ResourceTally {
    /// Adds what comes after that resource; the last one, if there may be more.
    fn add_slice(&mut self, engine: &Engine, after: Option<&ResourceId>) -> Option<ResourceId> {
        let (mut seen, mut last) = (0, None);
        for id in engine.ids_after(after).take(SLICE) {
            self.add(engine, id);
            (seen, last) = (seen + 1, Some(id));
        }
        last.filter(|_| seen == SLICE).cloned()
    }

    fn add(&mut self, engine: &Engine, id: &ResourceId) {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.is_called(id)) {
            return;
        }
        let Some(summary) = engine.summary(id) else { return };
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.is(engine, &summary)) {
            return;
        }
        self.add_trouble(engine, &summary);
        if let Some(since_ms) = summary.verified_ms {
            self.verified += 1;
            self.verified_since_ms =
                Some(self.verified_since_ms.map_or(since_ms, |oldest| oldest.min(since_ms)));
        }
        *self.by_state.entry(on_wire::state(&summary).word()).or_default() += 1;
        if summary.deleted {
            return;
        }
        if let Some(unproven) = &summary.unproven {
            *self.unverified.entry(on_wire::unverified(unproven).reason.word()).or_default() += 1;
        }
        self.warnings += u64::from(on_wire::warning(&summary).is_some());
        self.resources += 1;
        for site in &summary.sites {
            match self.by_site.get_mut(site) {
                Some(count) => *count += 1,
                None => drop(self.by_site.insert(site.clone(), 1)),
            }
        }
        for kind in engine.types(id) {
            if !kind.is_reserved() && !self.types.contains(kind) {
                self.types.insert(kind.clone());
            }
        }
    }

    /// What is in trouble anywhere is looked at site by site: there should not be many.
    fn add_trouble(&mut self, engine: &Engine, summary: &ResourceSummary) {
        let is_troubled = |at: &SiteStanding| at.standing.needs_a_person();
        if !summary.standing.as_ref().is_some_and(is_troubled) {
            return;
        }
        let standings = engine.standings(&summary.id).unwrap_or_default();
        for at in standings.into_iter().filter(is_troubled) {
            *self.troubled.entry(at.site).or_default() += 1;
        }
    }

    fn told(self, history: HistorySize) -> wire::Summary {
        let by_state = self.by_state.into_iter().map(|(state, count)| (state.to_owned(), count));
        let by_site = self.by_site.into_iter().map(|(site, count)| (site.to_string(), count));
        let troubled = self.troubled.into_iter().map(|(site, count)| (site.to_string(), count));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wire::Summary {
            resources: self.resources,
            by_state: by_state.collect(),
            by_site: by_site.collect(),
            troubled: troubled.collect(),
            verified: self.verified,
            unverified: self
                .unverified
                .into_iter()
                .map(|(why, count)| (why.to_owned(), count))
                .collect(),
            warnings: self.warnings,
            verified_since: self.verified_since_ms.map(on_wire::time),
            types: self.types.iter().map(ToString::to_string).collect(),
            as_of: on_wire::time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
            history: on_wire::history_use(&history),
        }
    }
}
