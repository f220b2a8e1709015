//! The feed of changes, as server-sent events: ordered, and resumable from any place still kept.
//!
//! It is read from the log, so it shows exactly what is durable, and a reader that is slow costs
//! nobody else anything. Who asks for standings is told with each change how its resource is now, as
//! lists and pages show it, and need not ask for that again: the driver is asked once for what is read
//! at once, for nothing that grows with a history.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::config::Config;
use cheops_core::engine::{
    Engine, Notice, OperationView, OperationsAsked, Outline, PageOrder, ResourceSummary,
};
use cheops_core::model::{Entry, EntryBody, OperationId, ResourceId, StandingReport};
use cheops_store::{ChangeKind, LoggedChange, ReadError, Seq};
use futures_util::stream;
use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::forward::{self, ResourceLocation};
use super::read::behind;
use super::refusal::HttpRefusal;
use super::{SharedApi, resource_id, wire as on_wire};
use crate::driver::Stopped;

const READ_AT_ONCE: usize = 256;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How often it is looked whether something stands otherwise than was told last.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many resources on which something is under way are looked at again. Of the others only what
/// the log says is told.
const MOST_UNDER_WAY: usize = 256;
/// An operation whose JSON is longer than this is not told with a change.
const LONGEST_OPERATION: usize = 16 * 1024;
/// More operations than this are not named one by one.
const MOST_KEPT: usize = 64;

/// Where to begin, and what to tell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedStart {
    after: Option<u64>,
    standings: Option<bool>,
}

type FeedQuery = Result<Query<FeedStart>, axum::extract::rejection::QueryRejection>;

pub(super) async fn all(
    State(api): State<SharedApi>,
    asked: FeedQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    feed(api, None, asked, &headers).await
}

pub(super) async fn of_resource(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    asked: FeedQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    if forward::held(&api, &id).await? == ResourceLocation::Elsewhere {
        let detail =
            format!("resource `{id}` is not held at this site, so nothing is known of it here");
        return Err(HttpRefusal::not_found("not held here", detail)
            .hint("each site has a feed of its own: follow one that holds it"));
    }
    feed(api, Some(id), asked, &headers).await
}

/// How many of the latest changes are told, if nothing is said.
const LATEST: usize = 100;
const MOST_OF_LATEST: usize = 1_000;

/// The end of what the feed has told so far: for who comes to it now.
pub(super) async fn latest(
    State(api): State<SharedApi>,
    asked: Result<Query<wire::LatestAsked>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<wire::NumberedChange>>, HttpRefusal> {
    let Query(asked) = asked.map_err(|error| HttpRefusal::bad_query(&error))?;
    let limit = asked.limit.map_or(LATEST, |limit| limit as usize).clamp(1, MOST_OF_LATEST);
    // Who has just changed something looks for that.
    api.driver.settle_if_possible().await;
    let feed = api.feed.clone();
    let read = tokio::task::spawn_blocking(move || {
        let newest = feed.last_seq()?;
        let after = newest.0.saturating_sub(limit as u64);
        feed.changes_left(Seq(after), limit)
    });
    let changes = read.await.map_err(|_| Stopped)??;
    let told = changes.items.iter().map(|change| wire::NumberedChange {
        id: change.seq.0,
        at: on_wire::time(change.at_ms),
        change: change_on_wire(change),
    });
    Ok(Json(told.collect()))
}

async fn feed(
    api: SharedApi,
    resource: Option<ResourceId>,
    asked: FeedQuery,
    headers: &HeaderMap,
) -> Result<Response, HttpRefusal> {
    let Query(from) = asked.map_err(|error| HttpRefusal::bad_query(&error))?;
    let last_seen = match headers.get("last-event-id") {
        None => from.after,
        Some(value) => {
            let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
            let bad =
                || HttpRefusal::bad("bad place", "`Last-Event-ID` must be a number of the feed");
            Some(number.ok_or_else(bad)?)
        }
    };
    let commits = api.driver.committed.clone();
    let standings = (from.standings == Some(true)).then(|| match &resource {
        None => ToldStandings::OfAll(BTreeMap::new()),
        Some(id) => ToldStandings::OfOne(id.clone(), None),
    });
    let mut follower = FeedFollower {
        api,
        resource,
        after: Seq(0),
        commits,
        ready: VecDeque::new(),
        standings,
        look_at: Instant::now() + LOOK_AGAIN,
    };
    let newest = follower.newest().await?;
    let place = last_seen.map_or(newest, Seq);
    follower.after = place;
    // What is loaded from now on is no older than what is compared with later.
    follower.look_again().await?;
    follower.ready.clear();
    // So that a place that is gone is an answer, not a feed that ends.
    follower.read().await.map_err(|error| match error {
        FeedEnd::Unread(ReadError::Gone { oldest }) if place > newest => {
            HttpRefusal::not_yet(place, newest, oldest)
        }
        FeedEnd::Unread(error) => error.into(),
        FeedEnd::Stopped(stopped) => stopped.into(),
    })?;
    let events = stream::unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Why a feed does not go on.
#[derive(Debug, thiserror::Error)]
enum FeedEnd {
    #[error(transparent)]
    Unread(#[from] ReadError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

struct FeedFollower {
    api: SharedApi,
    resource: Option<ResourceId>,
    after: Seq,
    commits: watch::Receiver<u64>,
    ready: VecDeque<Event>,
    standings: Option<ToldStandings>,
    /// When to look again how things stand.
    look_at: Instant,
}

impl FeedFollower {
    async fn newest(&self) -> Result<Seq, HttpRefusal> {
        let feed = self.api.feed.clone();
        let newest = tokio::task::spawn_blocking(move || feed.last_seq()).await;
        Ok(newest.map_err(|_| Stopped)??)
    }

    /// The next event, whenever it comes. None at the end: the place is gone, or the agent stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            // Marked as seen before the log is read, so that nothing falls between.
            self.commits.borrow_and_update();
            match self.read().await {
                Ok(()) if self.ready.is_empty() => self.wait().await?,
                Ok(()) => {}
                Err(FeedEnd::Stopped(_)) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a follower of changes was cut off");
                    return None;
                }
            }
        }
    }

    /// Waits until there may be something to tell. None if there never will be.
    async fn wait(&mut self) -> Option<()> {
        if !self.standings.as_ref().is_some_and(ToldStandings::may_change) {
            return self.commits.changed().await.ok();
        }
        tokio::select! {
            changed = self.commits.changed() => changed.ok(),
            () = tokio::time::sleep_until(self.look_at) => self.look_again().await.ok(),
        }
    }

    async fn read(&mut self) -> Result<(), FeedEnd> {
        let (feed, after) = (self.api.feed.clone(), self.after);
        let resource = self.resource.clone();
        let read = tokio::task::spawn_blocking(move || {
            feed.changes_since(after, resource.as_ref(), READ_AT_ONCE)
        });
        let Ok(changes) = read.await else { return Ok(()) };
        let changes = changes?;
        self.after = changes.next;
        if !changes.items.is_empty() {
            self.tell(&changes.items).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, changes: &[LoggedChange]) -> Result<(), Stopped> {
        let Some(told) = &mut self.standings else {
            self.ready.extend(changes.iter().map(|change| event(change, None, None)));
            return Ok(());
        };
        match told {
            ToldStandings::OfAll(under_way) => {
                let ids = changes.iter().filter_map(|change| change.what.resource().cloned());
                let ids: BTreeSet<_> = ids.collect();
                let found = summaries(&self.api, ids).await?;
                for change in changes {
                    let now = change.what.resource().and_then(|id| found.get(id));
                    self.ready.push_back(event(change, now.cloned(), None));
                }
                for (id, summary) in found {
                    note(under_way, id, summary);
                }
            }
            ToldStandings::OfOne(id, last) => {
                let operations = changes.iter().filter_map(|change| operation_of(change).cloned());
                let pruned = |change: &LoggedChange| {
                    matches!(change.what, ChangeKind::Notice(Notice::Pruned(..)))
                };
                let asked = DetailAsked {
                    operations: operations.collect(),
                    kept: changes.iter().any(pruned),
                };
                let found = details(&self.api, id.clone(), asked).await?;
                for change in changes {
                    let told = found.as_ref().map(|found| {
                        let view = operation_of(change).and_then(|id| found.operations.get(id));
                        let mut detail = found.standing.detail(last.as_deref());
                        detail.operation = view.and_then(short_operation);
                        detail.replaced = view.and_then(on_wire::replaced);
                        detail.kept = found.kept.clone().filter(|_| pruned(change));
                        (found.standing.now.clone(), detail)
                    });
                    let (now, detail) = told.unzip();
                    self.ready.push_back(event(change, now, detail));
                }
                *last = found.map(|found| Box::new(found.standing));
            }
        }
        Ok(())
    }

    /// Looks whether something stands otherwise than was told last, and tells it.
    async fn look_again(&mut self) -> Result<(), Stopped> {
        self.look_at = Instant::now() + LOOK_AGAIN;
        match &mut self.standings {
            None => {}
            Some(ToldStandings::OfAll(under_way)) => {
                let found = summaries(&self.api, under_way.keys().cloned().collect()).await?;
                for (id, now) in found {
                    if under_way.get(&id) != Some(&now) {
                        self.ready.push_back(standing(self.after, &id, now.clone(), None));
                    }
                    note(under_way, id, now);
                }
            }
            Some(ToldStandings::OfOne(id, last)) => {
                let found = details(&self.api, id.clone(), DetailAsked::default()).await?;
                let found = found.map(|found| found.standing);
                if let Some(found) = found.as_ref().filter(|found| last.as_deref() != Some(*found))
                {
                    let detail = found.detail(last.as_deref());
                    self.ready.push_back(standing(self.after, id, found.now.clone(), Some(detail)));
                }
                *last = found.map(Box::new);
            }
        }
        Ok(())
    }
}

/// How things stood when that was told last, where it may change without a word in the log.
enum ToldStandings {
    /// The resources on which something is under way.
    OfAll(BTreeMap<ResourceId, wire::ResourceSummary>),
    /// The one that the feed is about.
    OfOne(ResourceId, Option<Box<OneStanding>>),
}

/// How one resource stands.
#[derive(Debug, PartialEq, Eq)]
struct OneStanding {
    now: wire::ResourceSummary,
    resource: wire::ResourceDetail,
    config: Arc<Config>,
}

impl OneStanding {
    fn detail(&self, last: Option<&Self>) -> wire::ChangeDetail {
        let is_other = last.is_none_or(|last| last.config != self.config);
        wire::ChangeDetail {
            resource: self.resource.clone(),
            operation: None,
            kept: None,
            replaced: None,
            config: is_other.then(|| on_wire::config(&self.config)),
        }
    }
}

impl ToldStandings {
    fn may_change(&self) -> bool {
        match self {
            Self::OfAll(under_way) => !under_way.is_empty(),
            Self::OfOne(..) => true,
        }
    }
}

fn note(
    under_way: &mut BTreeMap<ResourceId, wire::ResourceSummary>,
    id: ResourceId,
    now: wire::ResourceSummary,
) {
    use wire::ResourceState::{Running, Waiting};
    under_way.remove(&id);
    if matches!(now.state, Running | Waiting) && under_way.len() < MOST_UNDER_WAY {
        under_way.insert(id, now);
    }
}

async fn summaries(
    api: &SharedApi,
    ids: BTreeSet<ResourceId>,
) -> Result<BTreeMap<ResourceId, wire::ResourceSummary>, Stopped> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let look = move |engine: &Engine| -> Vec<ResourceSummary> {
        ids.iter().filter_map(|id| engine.summary(id)).collect()
    };
    let found = api.driver.ask(look).await?;
    Ok(found.into_iter().map(|found| (found.id.clone(), on_wire::summary(&found))).collect())
}

/// What is looked at of one resource, beside how it stands.
#[derive(Default)]
struct DetailAsked {
    operations: BTreeSet<OperationId>,
    kept: bool,
}

struct FoundDetails {
    standing: OneStanding,
    operations: BTreeMap<OperationId, OperationView>,
    kept: Option<Vec<String>>,
}

fn short_operation(view: &OperationView) -> Option<wire::Operation> {
    let told = on_wire::operation(view);
    let length = serde_json::to_string(&told).map_or(usize::MAX, |json| json.len());
    (length <= LONGEST_OPERATION).then_some(told)
}

async fn details(
    api: &SharedApi,
    id: ResourceId,
    asked: DetailAsked,
) -> Result<Option<FoundDetails>, Stopped> {
    let look = move |engine: &Engine| -> Option<_> {
        let standing: (ResourceSummary, Outline) = (engine.summary(&id)?, engine.outline(&id)?);
        let views = asked.operations.iter().filter_map(|it| engine.operation_view(&id, it));
        let views: Vec<OperationView> = views.collect();
        let order = PageOrder::OldestFirst;
        let all = OperationsAsked { order, after: None, most: MOST_KEPT + 1 };
        let kept = asked.kept.then(|| engine.operations(&id, &all)).flatten();
        Some((standing, behind(engine, &id), views, kept))
    };
    let Some(((summary, outline), behind, views, kept)) = api.driver.ask(look).await? else {
        return Ok(None);
    };
    let ids = |views: &[OperationView]| views.iter().map(|view| view.id().to_string()).collect();
    Ok(Some(FoundDetails {
        standing: OneStanding {
            now: on_wire::summary(&summary),
            resource: on_wire::resource(&api.site, &summary, &outline, Vec::new(), behind).into(),
            config: outline.config,
        },
        operations: views.into_iter().map(|view| (view.id().clone(), view)).collect(),
        kept: kept.filter(|kept| kept.len() <= MOST_KEPT).map(|kept| ids(&kept)),
    }))
}

/// The operation that a change is about, if it is about one.
fn operation_of(change: &LoggedChange) -> Option<&OperationId> {
    match &change.what {
        ChangeKind::Entry(_, entry) => Some(match &entry.body {
            EntryBody::Operation(operation) => &operation.id,
            EntryBody::Reply(reply) => &reply.operation,
        }),
        ChangeKind::Notice(
            Notice::PartialError(_, operation)
            | Notice::Settled(_, operation, _)
            | Notice::InDoubt(_, operation)
            | Notice::StrangeClock(_, operation, _),
        ) => Some(operation),
        ChangeKind::Notice(_) => None,
    }
}

fn event(
    change: &LoggedChange,
    now: Option<wire::ResourceSummary>,
    detail: Option<wire::ChangeDetail>,
) -> Event {
    let (at, change_told) = (on_wire::time(change.at_ms), change_on_wire(change));
    said(change.seq, &wire::TimedChange { at, change: change_told, now, detail })
}

/// The event of a resource that stands otherwise without a word in the log.
fn standing(
    place: Seq,
    id: &ResourceId,
    now: wire::ResourceSummary,
    detail: Option<wire::ChangeDetail>,
) -> Event {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = on_wire::time(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    let change = wire::Change::Standing { resource: id.to_string() };
    said(place, &wire::TimedChange { at, change, now: Some(now), detail })
}

fn said(place: Seq, told: &wire::TimedChange) -> Event {
    let data = serde_json::to_string(told).unwrap_or_default();
    Event::default().id(place.0.to_string()).event(told.change.name()).data(data)
}

/// A change, as the feed says it.
pub(super) fn change_on_wire(change: &LoggedChange) -> wire::Change {
    match &change.what {
        ChangeKind::Entry(resource, entry) => entry_on_wire(resource, entry),
        ChangeKind::Notice(notice) => notice_on_wire(notice),
    }
}

fn entry_on_wire(resource: &ResourceId, entry: &Entry) -> wire::Change {
    let resource = resource.to_string();
    match &entry.body {
        EntryBody::Operation(operation) => wire::Change::Operation {
            resource,
            operation: operation.id.to_string(),
            site: operation.id.0.author.site.to_string(),
            kind: operation.kind.to_string(),
            summary: on_wire::summary_of(operation),
            time: on_wire::time(operation.stamp.wall_ms),
            asked_by: operation.asked_by.as_ref().map(on_wire::asker),
        },
        EntryBody::Reply(reply) => wire::Change::Reply {
            resource,
            operation: reply.operation.to_string(),
            site: reply.site().to_string(),
            reply: on_wire::reply(reply),
            beside: said_beside(entry),
        },
    }
}

fn said_beside(entry: &Entry) -> Option<wire::SaidBeside> {
    if let Some(undoing) = entry.undoes() {
        let said =
            if undoing.back { wire::SaidBeside::BroughtBack } else { wire::SaidBeside::Undone };
        return Some(said);
    }
    if let Some(operation) = entry.dismisses() {
        return Some(wire::SaidBeside::Dismissed(operation.to_string()));
    }
    match entry.standing_report() {
        Some(StandingReport::InStep) => Some(wire::SaidBeside::InSync),
        Some(StandingReport::Diverged { why }) => Some(wire::SaidBeside::Diverged(why)),
        None => entry.state_report().map(|report| match report.found {
            Ok(_) => wire::SaidBeside::ReadState,
            Err(why) => wire::SaidBeside::CannotRead(why),
        }),
    }
}

fn notice_on_wire(notice: &Notice) -> wire::Change {
    use wire::Change as WireChange;
    let of = |resource: &ResourceId| resource.to_string();
    match notice {
        Notice::PartialError(resource, operation) => {
            WireChange::PartialError { resource: of(resource), operation: operation.to_string() }
        }
        Notice::Settled(resource, operation, _)
        // These three are told by this site's replies, and are never in the log.
        | Notice::Applied(resource, operation)
        | Notice::Failed(resource, operation)
        | Notice::Superseded(resource, operation, _) => {
            WireChange::Settled { resource: of(resource), operation: operation.to_string() }
        }
        Notice::InDoubt(resource, operation) => {
            WireChange::InDoubt { resource: of(resource), operation: operation.to_string() }
        }
        Notice::Diverged(resource, why) => {
            WireChange::Diverged { resource: of(resource), why: why.to_string() }
        }
        Notice::Differs(resource) => WireChange::Differs { resource: of(resource) },
        Notice::Warning(resource, why) => {
            WireChange::Warning { resource: of(resource), why: why.clone() }
        }
        Notice::Converged(resource) => WireChange::Converged { resource: of(resource) },
        Notice::SiteDown(site) => WireChange::SiteDown { site: site.to_string() },
        Notice::SiteUp(site) => WireChange::SiteUp { site: site.to_string() },
        Notice::SiteLostItsDisk(site) => WireChange::SiteLostDisk { site: site.to_string() },
        Notice::StrangeClock(resource, operation, ahead_ms) => WireChange::StrangeClock {
            resource: of(resource),
            operation: operation.to_string(),
            ahead_ms: *ahead_ms,
        },
        Notice::Pruned(resource, entries) => {
            WireChange::Pruned { resource: of(resource), entries: *entries }
        }
        Notice::LeftOut(resource, decisions) => WireChange::LeftOut {
            resource: of(resource),
            decisions: decisions.iter().map(on_wire::past_decision).collect(),
        },
        Notice::Malformed(site, what) => {
            WireChange::Malformed { site: site.to_string(), why: what.to_string() }
        }
        Notice::SetApart(site, key) => {
            WireChange::SetApart { site: site.to_string(), key: key.to_string() }
        }
        Notice::SharedIdentity(site, seen) => {
            WireChange::SharedIdentity { site: site.to_string(), seen: seen.clone() }
        }
        Notice::Asked(resource, by, what) => WireChange::Asked {
            resource: resource.as_ref().map(of),
            principal: by.principal.clone(),
            site: by.site.to_string(),
            what: what.clone(),
        },
    }
}
