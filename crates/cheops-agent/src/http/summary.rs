//! All resources in a few numbers, counted in slices so that nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use cheops_api as wire;
use cheops_core::engine::Engine;
use cheops_core::model::{OperationType, ResourceId, SiteId};
use tokio::sync::Mutex;

use super::list::SLICE;
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
) -> Result<Json<wire::Summary>, HttpRefusal> {
    let mut counted = api.counted.last.lock().await;
    if let Some((at, summary)) = counted.as_ref()
        && at.elapsed() < KEPT
    {
        return Ok(Json(summary.clone()));
    }
    let (summary, looks) = count(&api).await?;
    *counted = (looks > 1).then(|| (Instant::now(), summary.clone()));
    Ok(Json(summary))
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
    if let Ok((summary, _)) = count(&api).await {
        for state in wire::ResourceState::ALL {
            let count = summary.by_state.get(state.word()).copied().unwrap_or(0);
            metrics::gauge!("cheops_resources_by_state", "state" => state.word()).set(count as f64);
        }
        let took = began.elapsed();
        *due = Some(Instant::now() + SHOWN.max(took * SHARE));
    }
}

#[derive(Default)]
struct ResourceTally {
    resources: u64,
    by_state: BTreeMap<&'static str, u64>,
    by_site: BTreeMap<SiteId, u64>,
    types: BTreeSet<OperationType>,
}

/// Counts all, and says in how many looks.
async fn count(api: &Api) -> Result<(wire::Summary, usize), HttpRefusal> {
    let (mut tally, mut after, mut looks) = (ResourceTally::default(), None, 0);
    loop {
        let look = move |engine: &Engine| {
            let last = tally.add_slice(engine, after.as_ref());
            (tally, last)
        };
        (tally, after) = api.driver.ask(look).await?;
        looks += 1;
        if after.is_none() {
            return Ok((tally.told(), looks));
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
        let Some(summary) = engine.summary(id) else { return };
        *self.by_state.entry(on_wire::state(&summary).word()).or_default() += 1;
        if summary.deleted {
            return;
        }
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

    fn told(self) -> wire::Summary {
        let by_state = self.by_state.into_iter().map(|(state, count)| (state.to_owned(), count));
        let by_site = self.by_site.into_iter().map(|(site, count)| (site.to_string(), count));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wire::Summary {
            resources: self.resources,
            by_state: by_state.collect(),
            by_site: by_site.collect(),
            types: self.types.iter().map(ToString::to_string).collect(),
            as_of: on_wire::time(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}
