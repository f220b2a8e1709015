//! The feed of changes, as server-sent events: ordered, and resumable from any place still kept.
//!
//! It is read from the log, so it shows exactly what is durable, and a reader that is slow costs
//! nobody else anything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::engine::Notice;
use cheops_core::model::{Entry, EntryBody, ResourceId};
use cheops_store::{ChangeKind, Feed, LoggedChange, ReadError, Seq};
use futures_util::stream;
use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::watch;

use super::forward::{self, ResourceLocation};
use super::refusal::HttpRefusal;
use super::{Api, SharedApi, resource_id, wire as on_wire};

const READ_AT_ONCE: usize = 256;
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Where to begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedStart {
    after: Option<u64>,
}

type FeedQuery = Result<Query<FeedStart>, axum::extract::rejection::QueryRejection>;

pub(super) async fn all(
    State(api): State<SharedApi>,
    asked: FeedQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    feed(&api, None, asked, &headers).await
}

pub(super) async fn of_resource(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    asked: FeedQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    if forward::held(&api, &id).await? == ResourceLocation::Elsewhere {
        let detail = format!("resource `{id}` is not held at this site, so nothing is heard of it");
        return Err(HttpRefusal::not_found("not held here", detail)
            .hint("each site has a feed of its own: follow one that holds it"));
    }
    feed(&api, Some(id), asked, &headers).await
}

async fn feed(
    api: &Api,
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
    let mut follower = FeedFollower {
        feed: api.feed.clone(),
        resource,
        after: Seq(0),
        commits,
        ready: VecDeque::new(),
    };
    let newest = follower.newest().await?;
    let place = last_seen.map_or(newest, Seq);
    follower.after = place;
    // So that a place that is gone is an answer, not a feed that ends.
    follower.read().await.map_err(|error| match error {
        ReadError::Gone { oldest } if place > newest => HttpRefusal::not_yet(place, newest, oldest),
        error => error.into(),
    })?;
    let events = stream::unfold(follower, |mut follower| async {
        let change = follower.next().await?;
        Some((Ok::<_, Infallible>(event(&change)), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

struct FeedFollower {
    feed: Arc<dyn Feed>,
    resource: Option<ResourceId>,
    after: Seq,
    commits: watch::Receiver<u64>,
    ready: VecDeque<LoggedChange>,
}

impl FeedFollower {
    async fn newest(&self) -> Result<Seq, HttpRefusal> {
        let feed = self.feed.clone();
        let newest = tokio::task::spawn_blocking(move || feed.last_seq()).await;
        Ok(newest.map_err(|_| crate::driver::Stopped)??)
    }

    /// The next change, whenever it comes. None at the end: the place is gone, or the agent stops.
    async fn next(&mut self) -> Option<LoggedChange> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Some(change);
            }
            // Marked as seen before the log is read, so that nothing falls between.
            self.commits.borrow_and_update();
            match self.read().await {
                Ok(()) if self.ready.is_empty() => self.commits.changed().await.ok()?,
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "a follower of changes was cut off");
                    return None;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<(), ReadError> {
        let (feed, resource, after) = (self.feed.clone(), self.resource.clone(), self.after);
        let read = tokio::task::spawn_blocking(move || {
            feed.changes_since(after, resource.as_ref(), READ_AT_ONCE)
        });
        let Ok(changes) = read.await else { return Ok(()) };
        let changes = changes?;
        self.after = changes.next;
        self.ready.extend(changes.items);
        Ok(())
    }
}

fn event(change: &LoggedChange) -> Event {
    let said =
        wire::TimedChange { at: on_wire::time(change.at_ms), change: change_on_wire(change) };
    let data = serde_json::to_string(&said).unwrap_or_default();
    Event::default().id(change.seq.0.to_string()).event(said.change.name()).data(data)
}

/// A change, as the feed says it.
fn change_on_wire(change: &LoggedChange) -> wire::Change {
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
        },
        EntryBody::Reply(reply) => wire::Change::Reply {
            resource,
            operation: reply.operation.to_string(),
            site: reply.site().to_string(),
            reply: on_wire::reply(reply),
        },
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
