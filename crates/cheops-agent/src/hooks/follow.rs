//! From the feed of changes to hooks: what happened is read from the log, so that nothing is missed
//! whatever happens to the agent, and how far the hooks have come is kept there as well.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cheops_core::config::{Config, HookAction, HookEvent};
use cheops_core::engine::{Ending, Engine, Notice};
use cheops_core::model::{
    Author, Entry, EntryBody, OperationId, OperationType, Outcome, Reply, ResourceId, SiteId,
    Status,
};
use cheops_store::{ChangeKind, Feed, LoggedChange, LoggedChanges, ReadError, Seq};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::target_queues::{HookPositions, QueuedItem, TargetQueues};
use super::{DueAction, Fact, Hooks, Reach};
use crate::driver::{Driver, Stopped};

/// What hooks were not told of yet is waited for.
const CURSOR: &str = cheops_store::WAITS_FOR;
const READ_AT_ONCE: usize = 256;
/// How often the places are kept where something was told, and other things still are.
const KEEP_TOLD_EVERY: Duration = Duration::from_secs(1);
/// How often where no hook had anything to do: reading again costs little.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// How long to wait for more when something has happened.
const TOGETHER: Duration = Duration::from_millis(50);
/// How long to wait when the log cannot be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Follows the changes and runs hooks, until the agent stops.
pub(crate) struct Follower {
    pub(crate) hooks: Hooks,
    pub(crate) feed: Arc<dyn Feed>,
    pub(crate) driver: Driver,
    pub(crate) me: Author,
}

/// One hook that is to be told of one fact.
struct Telling {
    fact: Arc<Fact>,
    action: DueAction,
}

/// What is known of the end of the log.
enum LogEnd {
    More,
    Quiet,
    /// There is more, and it is read then.
    Stirred(Instant),
}

/// Since the places were last kept.
struct Unkept {
    since: Instant,
    moved: bool,
    told: bool,
}

impl Unkept {
    fn nothing() -> Self {
        Self { since: Instant::now(), moved: false, told: false }
    }

    fn keep_at(&self) -> Instant {
        self.since + if self.told { KEEP_TOLD_EVERY } else { KEEP_EVERY }
    }
}

impl Follower {
    pub(crate) async fn run(self) {
        // Nobody is left to be told: the agent stops.
        let Err(Stopped) = self.follow().await;
    }

    async fn follow(self) -> Result<std::convert::Infallible, Stopped> {
        let mut commits = self.driver.committed.clone();
        let mut queues = self.queues_kept().await?;
        let mut telling = JoinSet::new();
        let mut log = LogEnd::More;
        let mut unkept = Unkept::nothing();
        loop {
            if matches!(log, LogEnd::More) && queues.has_room() {
                // Marked as seen before the log is read, so that nothing falls between.
                commits.borrow_and_update();
                let head = queues.head();
                let (items, next) = self.read(head).await?;
                queues.take(items, next);
                let moved = queues.head() != head;
                unkept.moved |= moved;
                log = if moved { LogEnd::More } else { LogEnd::Quiet };
            }
            if let Some((target, place)) = queues.behind() {
                let (items, next) = self.read(place).await?;
                queues.take_for(&target, items, next);
            }
            for QueuedItem { seq, target, what } in queues.begin() {
                let hooks = self.hooks.clone();
                telling.spawn(async move {
                    hooks.tell(&what.fact, &what.action).await;
                    (target, seq)
                });
            }
            queues.let_go();
            let is_due = unkept.told && queues.are_through() || Instant::now() >= unkept.keep_at();
            if (unkept.moved || unkept.told) && is_due {
                let places = queues.places();
                if self.keep(&places).await {
                    queues.kept(places);
                }
                unkept = Unkept::nothing();
            }
            let reads_on =
                matches!(log, LogEnd::More) && queues.has_room() || queues.behind().is_some();
            tokio::select! {
                biased;
                Some(ended) = telling.join_next() => {
                    // One that panicked stays under way, and is told again at the next start.
                    if let Ok((target, seq)) = ended {
                        queues.ended(&target, seq);
                    }
                    unkept.told = true;
                }
                () = std::future::ready(()), if reads_on => {}
                changed = commits.changed(), if matches!(log, LogEnd::Quiet) => {
                    changed.map_err(|_closed| Stopped)?;
                    // Hooks are in no hurry, and reading a little at a time is dear.
                    log = LogEnd::Stirred(Instant::now() + TOGETHER);
                }
                () = stirred(&log), if matches!(log, LogEnd::Stirred(_)) => log = LogEnd::More,
                () = sleep_until(unkept.keep_at()), if unkept.moved || unkept.told => {}
            }
        }
    }

    /// How far everyone had come. Only those that a config names now can have anything to hear.
    async fn queues_kept(&self) -> Result<TargetQueues<Telling>, Stopped> {
        let me = self.me.site.clone();
        let of_resources = self.driver.ask(move |engine| {
            let configs = engine.resources_at(&me).map(|(_, config)| config);
            let hooks = configs.flat_map(|config| config.hooks.clone());
            hooks.map(|hook| hook.action).collect::<BTreeSet<HookAction>>()
        });
        let mut targets = of_resources.await?;
        targets.extend(self.hooks.site_hooks().map(|hook| hook.action.clone()));
        let feed = self.feed.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let head = place_kept(&*feed, CURSOR).unwrap_or_else(|| begin(&*feed));
            TargetQueues::new(head, places_kept(&*feed, targets))
        });
        kept.await.map_err(|_stopping| Stopped)
    }

    /// Whether it could be kept.
    async fn keep(&self, places: &HookPositions) -> bool {
        let (feed, places) = (self.feed.clone(), places.clone());
        let kept = tokio::task::spawn_blocking(move || {
            for target in &places.through {
                feed.remove_cursor(&cursor_of(target))?;
            }
            for (target, place) in &places.behind {
                feed.set_cursor(&cursor_of(target), *place)?;
            }
            feed.set_cursor(CURSOR, places.head)
        });
        match kept.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "hooks may run twice: how far they have come cannot be kept");
                false
            }
            Err(_stopping) => false,
        }
    }

    /// What is to be told of the changes after this place, and where to go on from.
    async fn read(&self, after: Seq) -> Result<(Vec<QueuedItem<Telling>>, Seq), Stopped> {
        if let Some(end) = self.end_if_nobody_is_told().await? {
            return Ok((Vec::new(), end.max(after)));
        }
        loop {
            let feed = self.feed.clone();
            let read = tokio::task::spawn_blocking(move || changes_after(&*feed, after));
            match read.await.map_err(|_stopping| Stopped)? {
                Ok(changes) => return Ok((self.tellings(changes.items).await?, changes.next)),
                Err(error) => {
                    tracing::error!(%error, "hooks cannot read the log");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// The end of the log where neither this site nor any resource has hooks: to read all that happens
    /// would be for nothing, and costs nearly as much as to make it durable.
    async fn end_if_nobody_is_told(&self) -> Result<Option<Seq>, Stopped> {
        if self.hooks.site_hooks().next().is_some() {
            return Ok(None);
        }
        // Looked up first: whatever config is before it, the engine knows.
        let feed = self.feed.clone();
        let end = tokio::task::spawn_blocking(move || feed.last_seq());
        let end = end.await.map_err(|_stopping| Stopped)?;
        let has_hooks = self.driver.ask(Engine::has_hooks).await?;
        // What cannot be read now is told of where changes are read.
        Ok(end.ok().filter(|_| !has_hooks))
    }

    async fn tellings(
        &self,
        changes: Vec<LoggedChange>,
    ) -> Result<Vec<QueuedItem<Telling>>, Stopped> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let me = self.me.clone();
        let facts = self.driver.ask(move |engine| {
            let facts = changes.iter().flat_map(|change| facts(change, &me, engine));
            facts.collect::<Vec<_>>()
        });
        let tellings = facts.await?.into_iter().flat_map(|fact| {
            let (seq, actions) = (Seq(fact.seq), self.hooks.matching(&fact));
            let fact = Arc::new(fact);
            actions.into_iter().map(move |action| {
                let target = action.does.clone();
                QueuedItem { seq, target, what: Telling { fact: Arc::clone(&fact), action } }
            })
        });
        Ok(tellings.collect())
    }
}

async fn stirred(log: &LogEnd) {
    if let LogEnd::Stirred(until) = log {
        sleep_until(*until).await;
    }
}

/// Who is behind what was deleted misses that, and nothing else.
fn changes_after(feed: &dyn Feed, after: Seq) -> Result<LoggedChanges, ReadError> {
    match feed.changes_since(after, None, READ_AT_ONCE) {
        Err(ReadError::Gone { .. }) => {
            tracing::warn!(%after, "some changes are past their retention: no hooks for them");
            feed.changes_left(after, READ_AT_ONCE)
        }
        read => read,
    }
}

/// Where those of these targets are that are behind. The places of others are forgotten: who was
/// taken out of the config and comes back later is not told what happened in between.
fn places_kept(feed: &dyn Feed, targets: BTreeSet<HookAction>) -> Vec<(HookAction, Seq)> {
    let named: BTreeSet<_> = targets.iter().map(cursor_of).collect();
    if let Err(error) = feed.retain_cursors(&format!("{CURSOR}/"), &|name| named.contains(name)) {
        tracing::warn!(%error, "places of hooks that are no more cannot be forgotten");
    }
    let place = |target| Some((place_kept(feed, &cursor_of(&target))?, target));
    let behind = targets.into_iter().filter_map(place);
    behind.map(|(place, target)| (target, place)).collect()
}

/// The first time of all: from now on nothing is deleted that hooks were not told of.
fn begin(feed: &dyn Feed) -> Seq {
    let start = Seq::default();
    if let Err(error) = feed.set_cursor(CURSOR, start) {
        tracing::warn!(%error, "hooks may miss something: where they begin cannot be kept");
    }
    start
}

fn place_kept(feed: &dyn Feed, cursor: &str) -> Option<Seq> {
    feed.cursor(cursor).unwrap_or_else(|error| {
        tracing::error!(%error, "how far hooks had come is lost: they begin anew");
        Some(Seq(0))
    })
}

/// The name under which the place of a target is kept while it is behind. Its text may be long.
fn cursor_of(target: &HookAction) -> String {
    let (kind, text) = match target {
        HookAction::Command(command) => ("command", command),
        HookAction::Url(url) => ("url", url),
    };
    format!("{CURSOR}/{kind}/{}", blake3::hash(text.as_bytes()))
}

/// What a change means to hooks.
fn facts(change: &LoggedChange, me: &Author, engine: &Engine) -> Vec<Fact> {
    let about = About { change, me, engine };
    match &change.what {
        ChangeKind::Entry(resource, entry) => about.entry(resource, entry).into_iter().collect(),
        ChangeKind::Notice(notice) => about.notice(notice),
    }
}

struct About<'a> {
    change: &'a LoggedChange,
    me: &'a Author,
    engine: &'a Engine,
}

impl About<'_> {
    /// Only what this site itself says, in this incarnation: what others say is theirs to tell.
    fn entry(&self, resource: &ResourceId, entry: &Entry) -> Option<Fact> {
        let EntryBody::Reply(reply) = &entry.body else { return None };
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
            Notice::Differs(resource) => here(HookEvent::Differs, resource, None, Value::Null),
            Notice::Diverged(resource, why) => {
                here(HookEvent::Diverged, resource, None, json!({ "why": why.to_string() }))
            }
            Notice::Warning(resource, why) => {
                here(HookEvent::Warning, resource, None, json!({ "why": why }))
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
            | Notice::SetApart(..)
            | Notice::SharedIdentity(..)
            | Notice::Asked(..)
            | Notice::StrangeClock(..)
            | Notice::Pruned(..)
            | Notice::LeftOut(..)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(dir: &std::path::Path, retention: Duration) -> cheops_store::Opened {
        let options =
            cheops_store::StoreOptions { audit_retention: retention, ..Default::default() };
        cheops_store::open(dir, &SiteId::new("paris").unwrap(), || 1, options).unwrap()
    }

    #[test]
    fn a_hook_that_was_taken_out_of_the_config_while_behind_does_not_go_on_there_when_it_returns() {
        let dir = tempfile::tempdir().unwrap();
        let feed = opened(dir.path(), Duration::from_secs(60)).feed;
        let [stays, leaves] = ["stays", "leaves"].map(|text| HookAction::Command(text.to_owned()));
        feed.set_cursor(CURSOR, Seq(9)).unwrap();
        for target in [&stays, &leaves] {
            feed.set_cursor(&cursor_of(target), Seq(3)).unwrap();
        }

        let without = places_kept(&*feed, [stays.clone()].into());
        let with_both = places_kept(&*feed, [stays.clone(), leaves].into());

        assert_eq!(without, [(stays.clone(), Seq(3))]);
        assert_eq!(with_both, [(stays, Seq(3))]);
        assert_eq!(place_kept(&*feed, CURSOR), Some(Seq(9)), "of all others");
    }

    #[test]
    fn hooks_hear_what_is_still_in_the_log_after_something_later_was_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let mut opened = opened(dir.path(), Duration::ZERO);
        let notice = Notice::SiteUp(SiteId::new("lyon").unwrap());
        let entry = |resource: &str, n| {
            let id = |n| cheops_core::model::EntryId {
                author: Author {
                    site: SiteId::new("paris").unwrap(),
                    incarnation: cheops_core::model::Incarnation(1),
                },
                n,
            };
            let reply = Reply {
                id: id(n),
                stamp: cheops_core::model::Stamp::default(),
                operation: OperationId(id(n)),
                status: Status::Ok,
                outcome: None,
            };
            let after = (n - 1, Default::default());
            let resource = ResourceId::new(resource).unwrap();
            let entry = Entry::new(&resource, after, EntryBody::Reply(reply), Vec::new());
            cheops_core::engine::Record::Entry(resource, Arc::new(entry))
        };

        // Given a reply that nobody was told of, and a notice after it that was deleted at once.
        opened.log.keep(&[entry("a", 1)], &[notice]).unwrap();
        opened.log.settle().unwrap();
        opened.log.keep(&[entry("a", 2)], &[]).unwrap();
        opened.log.settle().unwrap();
        let gone = opened.feed.changes_since(Seq(0), None, 9);
        assert!(matches!(gone, Err(ReadError::Gone { .. })), "{gone:?}");

        let changes = changes_after(&*opened.feed, Seq(0)).unwrap();

        assert_eq!(changes.items.len(), 2);
        assert_eq!(changes.next, opened.feed.last_seq().unwrap());
    }
}
