//! Which resources there are: pages of them, by what is looked for.
//!
//! With many resources and a filter that few of them pass, a page takes long to fill. The driver is
//! asked in slices, so that nobody else waits for it, and after a while the page ends where it is:
//! its reader comes back for more.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use cheops_api as wire;
use cheops_core::engine::{Engine, ResourceSummary};
use cheops_core::model::{ResourceId, SiteId};

use super::refusal::HttpRefusal;
use super::wire as on_wire;
use super::{SharedApi, resource_id};

const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1_000;
/// How many resources are looked at before others have their turn.
pub(super) const SLICE: usize = 2_000;
/// How long a page may take to fill.
const FILLING: Duration = Duration::from_millis(60);

pub(super) fn page_size(limit: Option<u32>) -> usize {
    limit.map_or(PAGE, |limit| limit as usize).clamp(1, LARGEST_PAGE)
}

pub(super) async fn resources(
    State(api): State<SharedApi>,
    filter: Result<Query<wire::ResourceFilter>, QueryRejection>,
) -> Result<Json<wire::Page<wire::ResourceSummary>>, HttpRefusal> {
    let Query(filter) = filter.map_err(|error| HttpRefusal::bad_query(&error))?;
    let mut after = filter.after.as_deref().map(resource_id).transpose()?;
    let site = filter.site.as_deref().map(SiteId::new).transpose();
    let site = site.map_err(|error| HttpRefusal::bad("bad filter", error.to_string()))?;
    let limit = page_size(filter.limit);
    let mut wanted = ListQuery { site, filter };
    let began = Instant::now();
    let mut items = Vec::new();
    loop {
        let room = limit - items.len();
        let looking = move |engine: &Engine| (look(engine, after.as_ref(), &wanted, room), wanted);
        let (found, given_back) = api.driver.ask(looking).await?;
        items.extend(found.items);
        let is_enough = items.len() == limit || began.elapsed() > FILLING;
        match found.last {
            None => return Ok(Json(wire::Page { items, next: None })),
            Some(last) if is_enough => {
                return Ok(Json(wire::Page { items, next: Some(last.to_string()) }));
            }
            last => (after, wanted) = (last, given_back),
        }
    }
}

struct ListQuery {
    site: Option<SiteId>,
    filter: wire::ResourceFilter,
}

impl ListQuery {
    fn is_called(&self, id: &ResourceId) -> bool {
        self.filter.q.as_ref().is_none_or(|text| id.as_str().contains(text.as_str()))
    }

    fn is(&self, engine: &Engine, found: &ResourceSummary) -> bool {
        let filter = &self.filter;
        let there = self.site.as_ref().is_none_or(|site| found.sites.contains(site));
        let in_state = || filter.state.is_none_or(|state| state == on_wire::state(found));
        let not_gone = on_wire::state(found) != wire::ResourceState::Deleted
            || filter.deleted == Some(true)
            || filter.state == Some(wire::ResourceState::Deleted);
        let of_type = || filter.kind.as_ref().is_none_or(|kind| engine.has_type(&found.id, kind));
        there && not_gone && in_state() && of_type()
    }
}

/// What one look found, and the last resource it got to; none if there are no more.
struct FoundResources {
    items: Vec<wire::ResourceSummary>,
    last: Option<ResourceId>,
}

fn look(
    engine: &Engine,
    after: Option<&ResourceId>,
    wanted: &ListQuery,
    room: usize,
) -> FoundResources {
    let mut items = Vec::new();
    let mut ids = engine.ids_after(after).take(SLICE);
    let mut last = None;
    while items.len() < room {
        let Some(id) = ids.next() else { break };
        last = Some(id);
        if !wanted.is_called(id) {
            continue;
        }
        let Some(summary) = engine.summary(id) else { continue };
        if wanted.is(engine, &summary) {
            items.push(on_wire::summary(&summary));
        }
    }
    let has_more = last.is_some_and(|last| engine.ids_after(Some(last)).next().is_some());
    FoundResources { items, last: last.filter(|_| has_more).cloned() }
}
