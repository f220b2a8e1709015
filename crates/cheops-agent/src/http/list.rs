//! Which resources there are: pages of them, by what is looked for.
//!
//! With many resources and a filter that few of them pass, a page takes long to fill. The driver is
//! asked in slices, so that nobody else waits for it, and after a while the page ends where it is:
//! its reader comes back for more. In another order than by name, a page is the best of all there are,
//! so all are looked at, in slices too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use cheops_api as wire;
use cheops_api::ResourceOrder;
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
    let limit = page_size(filter.limit);
    let mut wanted = ListQuery::of(filter)?;
    let order = wanted.filter.sort.unwrap_or(ResourceOrder::Name);
    let reverse = wanted.filter.reverse == Some(true);
    if order != ResourceOrder::Name || reverse {
        return sorted(&api, wanted, order, reverse, limit).await.map(Json);
    }
    let mut after = wanted.filter.after.as_deref().map(resource_id).transpose()?;
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

/// A page in another order than by name.
async fn sorted(
    api: &SharedApi,
    wanted: ListQuery,
    order: ResourceOrder,
    reverse: bool,
    limit: usize,
) -> Result<wire::Page<wire::ResourceSummary>, HttpRefusal> {
    let begin = wanted.filter.after.as_deref().map(sort_place).transpose()?;
    let found = BTreeMap::new();
    let mut best = BestOf { wanted, order, reverse, begin, limit, found, has_more: false };
    let mut after = None;
    loop {
        let look = move |engine: &Engine| {
            let last = best.look_at_slice(engine, after.as_ref());
            (best, last)
        };
        (best, after) = api.driver.ask(look).await?;
        if after.is_none() {
            return Ok(best.page());
        }
    }
}

/// Where a resource stands in an order: what it is sorted by, then its name.
type SortPlace = (u64, ResourceId);

/// `next` of a sorted page, which the reader hands back.
fn sort_place(text: &str) -> Result<SortPlace, HttpRefusal> {
    let place = text.split_once('/').and_then(|(rank, id)| Some((rank.parse().ok()?, id)));
    let bad = || HttpRefusal::bad("bad place", "`after` must be `next` of a page in this order");
    let (rank, id) = place.ok_or_else(bad)?;
    Ok((rank, resource_id(id)?))
}

/// The first so many after some place, of all that were looked at so far.
struct BestOf {
    wanted: ListQuery,
    order: ResourceOrder,
    reverse: bool,
    begin: Option<SortPlace>,
    limit: usize,
    found: BTreeMap<SortPlace, ResourceSummary>,
    has_more: bool,
}

impl BestOf {
    /// Looks at those after that one, by name; the last one it got to, if there may be more.
    fn look_at_slice(&mut self, engine: &Engine, after: Option<&ResourceId>) -> Option<ResourceId> {
        let (mut seen, mut last) = (0, None);
        for id in engine.ids_after(after).take(SLICE) {
            (seen, last) = (seen + 1, Some(id));
            if self.wanted.is_called(id)
                && let Some(summary) = engine.summary(id)
                && self.wanted.is(engine, &summary)
            {
                self.add(summary);
            }
        }
        last.filter(|_| seen == SLICE).cloned()
    }

    fn add(&mut self, summary: ResourceSummary) {
        let place = (rank(&summary, self.order), summary.id.clone());
        let is_before = |a: &SortPlace, b: &SortPlace| if self.reverse { a > b } else { a < b };
        if self.begin.as_ref().is_some_and(|begin| !is_before(begin, &place)) {
            return;
        }
        self.found.insert(place, summary);
        if self.found.len() > self.limit {
            self.has_more = true;
            if self.reverse {
                self.found.pop_first()
            } else {
                self.found.pop_last()
            };
        }
    }

    fn page(self) -> wire::Page<wire::ResourceSummary> {
        let last =
            if self.reverse { self.found.first_key_value() } else { self.found.last_key_value() };
        let next = last.filter(|_| self.has_more).map(|((rank, id), _)| format!("{rank}/{id}"));
        let mut items: Vec<_> = self.found.values().map(on_wire::summary).collect();
        if self.reverse {
            items.reverse();
        }
        wire::Page { items, next }
    }
}

/// What a resource is sorted by: the lowest comes first.
fn rank(of: &ResourceSummary, order: ResourceOrder) -> u64 {
    match order {
        ResourceOrder::Name => 0,
        ResourceOrder::State => match on_wire::state(of) {
            wire::ResourceState::Diverged => 0,
            wire::ResourceState::InDoubt => 1,
            wire::ResourceState::Error => 2,
            wire::ResourceState::Unknown => 3,
            wire::ResourceState::Waiting => 4,
            wire::ResourceState::Running => 5,
            wire::ResourceState::Converged => 6,
            wire::ResourceState::Deleted => 7,
        },
        ResourceOrder::Changed => u64::MAX - of.changed_ms,
        ResourceOrder::Operations => u64::MAX - of.operations as u64,
        ResourceOrder::Errors => u64::MAX - of.errors as u64,
        ResourceOrder::Verified => of.verified_ms.unwrap_or(0),
    }
}

/// Which resources are looked for.
pub(super) struct ListQuery {
    site: Option<SiteId>,
    filter: wire::ResourceFilter,
}

impl ListQuery {
    pub(super) fn of(filter: wire::ResourceFilter) -> Result<Self, HttpRefusal> {
        let site = filter.site.as_deref().map(SiteId::new).transpose();
        let site = site.map_err(|error| HttpRefusal::bad("bad filter", error.to_string()))?;
        Ok(Self { site, filter })
    }

    pub(super) fn is_called(&self, id: &ResourceId) -> bool {
        self.filter.q.as_ref().is_none_or(|text| id.as_str().contains(text.as_str()))
    }

    pub(super) fn is(&self, engine: &Engine, found: &ResourceSummary) -> bool {
        let filter = &self.filter;
        let there = self.site.as_ref().is_none_or(|site| found.sites.contains(site));
        let in_state = || filter.state.is_none_or(|state| state == on_wire::state(found));
        let not_gone = on_wire::state(found) != wire::ResourceState::Deleted
            || filter.deleted == Some(true)
            || filter.state == Some(wire::ResourceState::Deleted);
        let proven = || {
            filter.verified.is_none_or(|verified| match verified {
                true => found.verified_ms.is_some(),
                false => found.unproven.is_some() && !found.deleted,
            })
        };
        let warned =
            || filter.warning.is_none_or(|warning| warning == on_wire::warning(found).is_some());
        let of_type = || filter.kind.as_ref().is_none_or(|kind| engine.has_type(&found.id, kind));
        there && not_gone && in_state() && proven() && warned() && of_type()
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
