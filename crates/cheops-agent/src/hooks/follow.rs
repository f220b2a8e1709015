//! From the feed of changes to hooks: what happened is read from the log, so that nothing is missed
//! whatever happens to the agent, and how far the hooks have come is kept there as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_core::config::{Config, HookEvent};
use cheops_core::engine::{Ending, Engine, Notice};
use cheops_core::model::{
    Author, Body, Entry, OperationId, OperationType, Outcome, Reply, ResourceId, SiteId, Status,
};
use cheops_store::{Change, Changes, ReadError, Reader, Seq, What};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{Fact, Hooks, Reach};
use crate::driver::{Driver, Stopped};

const CURSOR: &str = "hooks";
const READ_AT_ONCE: usize = 256;
/// How many facts are handled at once.
const AT_ONCE: usize = 16;
/// How often the place is kept where no hook had anything to do: reading again costs little.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// How long to wait for more when something has happened.
const TOGETHER: Duration = Duration::from_millis(50);
/// How long to wait when the log cannot be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Follows the changes and runs hooks, until the agent stops.
pub(crate) struct Follower {
    pub(crate) hooks: Hooks,
    pub(crate) reader: Reader,
    pub(crate) driver: Driver,
    pub(crate) me: Author,
}

impl Follower {
    pub(crate) async fn run(self) {
        let mut commits = self.driver.committed.clone();
        let mut place = self.place_kept().await;
        let mut kept = Instant::now();
        loop {
            // Marked as seen before the log is read, so that nothing falls between.
            commits.borrow_and_update();
            let changes = match self.read(place).await {
                Ok(changes) => changes,
                Err(ReadError::Gone { oldest }) => {
                    tracing::warn!(%oldest, "changes are past their retention: no hooks for them");
                    place = oldest;
                    continue;
                }
                Err(error) => {
                    tracing::error!(%error, "hooks cannot read the log");
                    tokio::time::sleep(RETRY_AFTER).await;
                    continue;
                }
            };
            let idle = changes.items.is_empty();
            place = changes.next;
            let Ok(told) = self.handle(changes.items).await else { return };
            if told || (!idle && kept.elapsed() > KEEP_EVERY) {
                self.keep(place).await;
                kept = Instant::now();
            }
            if idle {
                if commits.changed().await.is_err() {
                    return;
                }
                // Hooks are in no hurry, and reading a little at a time is dear.
                tokio::time::sleep(TOGETHER).await;
            }
        }
    }

    async fn place_kept(&self) -> Seq {
        let reader = self.reader.clone();
        let kept = tokio::task::spawn_blocking(move || reader.cursor(CURSOR)).await;
        match kept {
            Ok(Ok(place)) => place.unwrap_or(Seq(0)),
            Ok(Err(error)) => {
                tracing::error!(%error, "how far hooks had come is lost: they begin anew");
                Seq(0)
            }
            Err(_stopping) => Seq(0),
        }
    }

    async fn keep(&self, place: Seq) {
        let reader = self.reader.clone();
        let kept = tokio::task::spawn_blocking(move || reader.set_cursor(CURSOR, place)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "hooks may run twice: how far they have come cannot be kept");
        }
    }

    async fn read(&self, after: Seq) -> Result<Changes, ReadError> {
        let reader = self.reader.clone();
        let read =
            tokio::task::spawn_blocking(move || reader.changes_since(after, None, READ_AT_ONCE));
        match read.await {
            Ok(changes) => changes,
            // Only while the runtime is shut down.
            Err(_stopping) => std::future::pending().await,
        }
    }

    /// Runs the hooks for these, and says whether there were any.
    async fn handle(&self, changes: Vec<Change>) -> Result<bool, Stopped> {
        if changes.is_empty() {
            return Ok(false);
        }
        let me = self.me.clone();
        let facts = self.driver.ask(move |engine| {
            let facts = changes.iter().flat_map(|change| facts(change, &me, engine));
            facts.collect::<Vec<_>>()
        });
        let facts = facts.await?;
        let wanted = facts.into_iter().filter(|fact| !self.hooks.matching(fact).is_empty());
        let handled =
            stream::iter(wanted.map(|fact| async move { self.hooks.handle(&fact).await }));
        Ok(handled.buffered(AT_ONCE).count().await > 0)
    }
}

/// What a change means to hooks.
fn facts(change: &Change, me: &Author, engine: &Engine) -> Vec<Fact> {
    let about = About { change, me, engine };
    match &change.what {
        What::Entry(resource, entry) => about.entry(resource, entry).into_iter().collect(),
        What::Notice(notice) => about.notice(notice),
    }
}

struct About<'a> {
    change: &'a Change,
    me: &'a Author,
    engine: &'a Engine,
}

impl About<'_> {
    /// Only what this site itself says, in this life: what others say is theirs to tell.
    fn entry(&self, resource: &ResourceId, entry: &Entry) -> Option<Fact> {
        let Body::Reply(reply) = &entry.body else { return None };
        if reply.id.author != *self.me {
            return None;
        }
        let event = match reply.status {
            Status::Ok | Status::Partial { .. } => HookEvent::Applied,
            Status::Ko => HookEvent::Failed,
            Status::Superseded { .. } => HookEvent::Superseded,
            // Told by a notice, also where there is nothing to reply to.
            Status::InDoubt => return None,
        };
        let detail = reply_detail(reply);
        Some(self.fact(event, Reach::Here, resource, Some(&reply.operation), detail))
    }

    fn notice(&self, notice: &Notice) -> Vec<Fact> {
        let here = |event, resource, operation, detail| {
            vec![self.fact(event, Reach::Here, resource, operation, detail)]
        };
        match notice {
            Notice::PartialError(resource, operation) => {
                here(HookEvent::PartialError, resource, Some(operation), Value::Null)
            }
            Notice::InDoubt(resource, operation) => {
                here(HookEvent::InDoubt, resource, Some(operation), Value::Null)
            }
            Notice::Diverged(resource, why) => {
                here(HookEvent::Diverged, resource, None, json!({ "why": why.to_string() }))
            }
            Notice::Converged(resource) => {
                let last = self.engine.last_of_list(resource);
                here(HookEvent::Converged, resource, last.as_ref(), Value::Null)
            }
            Notice::Settled(resource, operation, ending) => {
                let event = ended(*ending);
                vec![self.fact(event, Reach::All, resource, Some(operation), Value::Null)]
            }
            Notice::SiteDown(site) => self.of_site(HookEvent::SiteDown, site),
            Notice::SiteUp(site) => self.of_site(HookEvent::SiteUp, site),
            Notice::Applied(..)
            | Notice::Failed(..)
            | Notice::Superseded(..)
            | Notice::SiteLostItsDisk(_)
            | Notice::StrangeClock(..)
            | Notice::Pruned(..)
            | Notice::Malformed(..) => Vec::new(),
        }
    }

    /// Once for the site's own hooks, and once for each resource that lives there and has some.
    fn of_site(&self, event: HookEvent, site: &SiteId) -> Vec<Fact> {
        let plain = self.bare(event, site.clone());
        let concerned = self.engine.resources_at(site).filter_map(|(resource, config)| {
            let has_one = config.hooks.iter().any(|hook| hook.on == event);
            has_one.then(|| Fact {
                resource: Some(resource.clone()),
                config: Some(config),
                ..self.bare(event, site.clone())
            })
        });
        std::iter::once(plain).chain(concerned).collect()
    }

    fn bare(&self, event: HookEvent, site: SiteId) -> Fact {
        Fact {
            seq: self.change.seq.0,
            at_ms: self.change.at_ms,
            event,
            reach: Reach::Here,
            resource: None,
            operation: None,
            kind: None,
            site,
            detail: Value::Null,
            config: None,
        }
    }

    fn fact(
        &self,
        event: HookEvent,
        reach: Reach,
        resource: &ResourceId,
        operation: Option<&OperationId>,
        detail: Value,
    ) -> Fact {
        let config: Option<Arc<Config>> = self.engine.config(resource);
        let known = operation.and_then(|operation| self.engine.operation(resource, operation));
        let kind: Option<OperationType> = known.map(|operation| operation.kind.clone());
        Fact {
            reach,
            resource: Some(resource.clone()),
            operation: operation.cloned(),
            kind,
            detail,
            config,
            ..self.bare(event, self.me.site.clone())
        }
    }
}

fn ended(ending: Ending) -> HookEvent {
    match ending {
        Ending::Applied => HookEvent::Applied,
        Ending::Failed => HookEvent::Failed,
        Ending::PartialError => HookEvent::PartialError,
        Ending::Superseded => HookEvent::Superseded,
        Ending::InDoubt => HookEvent::InDoubt,
    }
}

/// What there is to say of a reply beyond its status.
fn reply_detail(reply: &Reply) -> Value {
    let by = match &reply.status {
        Status::Superseded { by } => Some(by.to_string()),
        _ => None,
    };
    let output = reply.outcome.as_ref().map(Outcome::text);
    json!({ "status": reply.status.word(), "by": by, "output": output })
}
