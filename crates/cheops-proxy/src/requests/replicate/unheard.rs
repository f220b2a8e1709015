//! IdDirectory that a request names and that this site has not heard of yet.
//!
//! Whoever makes something at one site may go on at another at once, before the news is there. An id
//! that looks as if an agent drew it may also be one of the service's own, of which no site will ever
//! hear: so the others are asked. What one of them holds for this site as well comes here sooner or
//! later, and is waited for; what nobody knows is left to the service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use cheops_api::{ResourceHolding, ResourceState, paths};
use cheops_core::model::{ResourceId, SiteId};
use futures_util::StreamExt;
use futures_util::stream::{self, FuturesUnordered};
use http::{Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::Proxies;
use super::super::local_service::LocalService;
use super::super::refusal::ProxyRefusal;

/// How long a site may take to say whether it holds something.
const ASKING: Duration = Duration::from_secs(3);
/// How long something that another site holds may take to come here.
const COMES_WITHIN: Duration = Duration::from_secs(10);
/// How many ids are asked about at once.
const ASKED_AT_ONCE: usize = 16;
/// The longest answer that is read: it names some sites.
const LONGEST_ANSWER: usize = 256 * 1024;
/// The same of an agent that can only tell all of it.
const LONGEST_RESOURCE: usize = 4 * 1024 * 1024;
/// An id is drawn before anybody can name it: one that all sites said they do not know stays one.
const STRANGE_FOR: Duration = Duration::from_secs(600);
/// After so long those that did not answer are asked again.
const UNSURE_FOR: Duration = Duration::from_secs(2);
/// How many such ids are remembered.
const MOST: usize = 16 * 1024;

/// Ids that no site knew, and until when nobody is asked again.
#[derive(Debug, Default)]
pub(in super::super) struct Strangers(Mutex<BTreeMap<ResourceId, Instant>>);

impl Strangers {
    fn is_one(&self, id: &ResourceId, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).is_some_and(|until| *until > now)
    }

    fn note(&self, id: &ResourceId, now: Instant, lasts: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, until| *until > now);
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(id.clone(), now + lasts);
    }
}

/// What a site says of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// It holds a replica of that name, and so will this site.
    ComesHere,
    /// It does not.
    No,
    Nothing,
}

/// What is read of a resource, told by an agent of the version before, which knows no other question.
#[derive(Debug, Deserialize)]
struct ResourceAnswer {
    sites: Vec<String>,
    state: ResourceState,
    replicant: Option<serde::de::IgnoredAny>,
}

impl From<ResourceAnswer> for ResourceHolding {
    fn from(told: ResourceAnswer) -> Self {
        Self {
            held: true,
            sites: told.sites,
            deleted: told.state == ResourceState::Deleted,
            is_of_service: told.replicant.is_some(),
        }
    }
}

impl Proxies {
    /// Waits for those of these that some site holds for this one too.
    pub(super) async fn hear_of(
        &self,
        service: &LocalService,
        unheard: BTreeSet<ResourceId>,
    ) -> Result<(), ProxyRefusal> {
        let (strangers, now) = (&self.0.strangers, Instant::now());
        let mut unheard = unheard;
        unheard.retain(|id| !strangers.is_one(id, now));
        if unheard.is_empty() || self.0.peers.sites().next().is_none() {
            return Ok(());
        }
        // What was deleted is known here, though nobody speaks of it any more.
        let unknown = self.0.operations.unknown(unheard).await;
        let unheard = unknown.ok_or_else(|| ProxyRefusal::not_durable("the agent is stopping"))?;
        let asking = stream::iter(unheard)
            .map(|id| async move { self.holder_of(&id).await.map(|site| (id, site)) });
        let mut asking = std::pin::pin!(asking.buffer_unordered(ASKED_AT_ONCE));
        let until = Instant::now() + ASKING + COMES_WITHIN;
        while let Some(found) = asking.next().await {
            let Some((id, site)) = found else { continue };
            let coming = self.0.replicas.heard_of(id.as_str());
            if tokio::time::timeout_at(until.into(), coming).await.is_err() {
                return Err(ProxyRefusal::not_heard_of_yet(service.name(), &id, &site));
            }
        }
        Ok(())
    }

    /// A site that holds a replica which this one is to hold as well.
    async fn holder_of(&self, id: &ResourceId) -> Option<SiteId> {
        let near = self.0.peers.nearest(&mut *self.0.peers.sites());
        let mut all_answered = near.len() == self.0.peers.sites().count();
        let ask = |site: SiteId| async move { (self.ask_of(&site, id).await, site) };
        let mut asked: FuturesUnordered<_> = near.into_iter().map(ask).collect();
        while let Some((says, site)) = asked.next().await {
            match says {
                Says::ComesHere => return Some(site),
                Says::No => {}
                Says::Nothing => all_answered = false,
            }
        }
        let lasts = if all_answered { STRANGE_FOR } else { UNSURE_FOR };
        self.0.strangers.note(id, Instant::now(), lasts);
        None
    }

    async fn ask_of(&self, site: &SiteId, id: &ResourceId) -> Says {
        let answered = async {
            let path = paths::holding(id.as_str());
            if let Some(held) = self.told_by(site, &path, LONGEST_ANSWER).await? {
                return Some(says(&held, &self.0.me));
            }
            let path = paths::resource(id.as_str());
            let whole = self.told_by::<ResourceAnswer>(site, &path, LONGEST_RESOURCE).await?;
            Some(whole.map_or(Says::No, |whole| says(&whole.into(), &self.0.me)))
        };
        let answered = tokio::time::timeout(ASKING, answered).await;
        answered.ok().flatten().unwrap_or(Says::Nothing)
    }

    /// What another agent has there, or that it has nothing; none if it does not say.
    async fn told_by<T: DeserializeOwned>(
        &self,
        site: &SiteId,
        path: &str,
        longest: usize,
    ) -> Option<Option<T>> {
        let mut question = Request::new(Body::empty());
        *question.uri_mut() = path.parse().ok()?;
        let answer = self.0.peers.ask_agent(site, question).await.ok()?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Some(None),
            _ => return None,
        }
        let body = axum::body::to_bytes(answer.into_body(), longest).await.ok()?;
        serde_json::from_slice(&body).ok().map(Some)
    }
}

fn says(told: &ResourceHolding, me: &SiteId) -> Says {
    let is_for_me = told.sites.iter().any(|site| site == me.as_str());
    match told.held && told.is_of_service && !told.deleted && is_for_me {
        true => Says::ComesHere,
        false => Says::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replica_that_this_site_is_to_hold_is_waited_for() {
        let me = SiteId::new("lyon").unwrap();
        let replicant = r#","replicant":{"service":"image","meta_id":"5a"}"#;
        for (sites, state, replicant, expected) in [
            (r#"["lyon","paris"]"#, "converged", replicant, Says::ComesHere),
            (r#"["lyon","paris"]"#, "waiting", replicant, Says::ComesHere),
            (r#"["paris"]"#, "converged", replicant, Says::No),
            (r#"["lyon","paris"]"#, "deleted", replicant, Says::No),
            (r#"["lyon","paris"]"#, "converged", "", Says::No),
        ] {
            let text = format!(r#"{{"id":"5a","sites":{sites},"state":"{state}"{replicant}}}"#);
            let whole: ResourceAnswer = serde_json::from_str(&text).unwrap();
            assert_eq!(says(&whole.into(), &me), expected, "{text}");
        }
        for (told, expected) in [
            (r#"{"held":true,"sites":["lyon","paris"],"is_of_service":true}"#, Says::ComesHere),
            (r#"{"held":true,"sites":["paris"],"is_of_service":true}"#, Says::No),
            (r#"{"held":true,"sites":["lyon"],"deleted":true,"is_of_service":true}"#, Says::No),
            (r#"{"held":true,"sites":["lyon"],"is_of_service":false}"#, Says::No),
            (r#"{"held":false}"#, Says::No),
        ] {
            let held: ResourceHolding = serde_json::from_str(told).unwrap();
            assert_eq!(says(&held, &me), expected, "{told}");
        }
    }

    #[test]
    fn a_stranger_is_asked_about_again_after_a_while_and_few_are_remembered() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let id = |n: usize| ResourceId::new(&format!("r{n}")).unwrap();
        strangers.note(&id(0), now, UNSURE_FOR);
        assert!(strangers.is_one(&id(0), now));
        assert!(!strangers.is_one(&id(0), now + UNSURE_FOR));
        assert!(!strangers.is_one(&id(1), now));
        for n in 0..2 * MOST {
            strangers.note(&id(n), now, STRANGE_FOR);
        }
        assert!(strangers.0.lock().unwrap().len() <= MOST);
        assert!(strangers.is_one(&id(2 * MOST - 1), now));
    }
}
