//! Replication: a request that changes something becomes an operation, which every site of the
//! resource runs at its own service; the user is answered as soon as the service of this site was.
//!
//! | file | what it does |
//! | --- | --- |
//! | `change` | what a request becomes |
//! | `spool` | bodies on their way into the operation, or to the disk |
//! | `rewrite_ids` | other ids in requests and answers that pass |
//! | `reply` | the answer, from what the service of this site said |
//! | `repeat_answer` | the answer, where it did what was asked without saying so |
//! | `unheard` | replicas that are named here before the news of them is |

mod change;
mod repeat_answer;
mod reply;
pub(super) mod rewrite_ids;
mod spool;
mod unheard;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use cheops_core::config;
use cheops_core::engine::{Submission, Ticket, WaitFor};
use cheops_core::model::{
    Asker, Header, OperationType, Payload, Reply, RequestKind, ResourceId, SiteId,
};
use cheops_services::Returned;
use cheops_services::body::{Arriving, Moves, OutgoingBody, limit_with, whole_if_short};
use futures_util::TryFutureExt;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VIA};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Either;
use serde_json::Value;

use self::change::{NameChooser, ReplicaChange};
use self::spool::{BodyPlace, KeptBody, NotKept};
pub(super) use self::unheard::Strangers;
use super::local_service::LocalService;
use super::refusal::ProxyRefusal;
use super::{ProxiedRequest, Proxies};
use crate::config::Pointer;
use crate::id_directory::{Below, Mentioned, Named, Names, Towards, id_text, is_json};
use crate::ports::{BodyPin, NoReply};

/// The longest body in which an id is looked for.
const LONGEST_READ: usize = 1024 * 1024;
/// So much longer than a service has to answer is waited for what came of it.
const A_WORD_MORE: Duration = Duration::from_secs(1);

impl Proxies {
    /// The replica that a request speaks of. Where the config says that there are resources of
    /// their own below it, it does not speak of those.
    pub(super) fn replica(
        &self,
        service: &LocalService,
        path: &str,
        by: Names,
    ) -> Option<Mentioned> {
        let found = self.0.replicas.find(service.name(), path, by)?;
        let mut own = service.collections.iter().filter_map(|own| own.length_in(path));
        own.all(|length| found.depth >= length).then_some(found)
    }

    /// Answers a request about a replica, whatever its scope says: who reads is answered by the
    /// one of this site, and what changes it changes all of them.
    pub(super) async fn on_replica(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: Arriving,
        Mentioned { known, below, .. }: Mentioned,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        if !asked.head.method.is_safe() {
            let (kind, act) = change::kind_of(&asked.head.method, below);
            let body = OutgoingBody::once(body);
            let (moves, reading) = (body.moves(), steps(kind, &asked.head.headers, body));
            let (kind, body) = self.while_it_moves(service, &moves, reading).await?;
            let replica = cheops_core::model::ServiceRef {
                meta_id: known.replicant.meta_id.clone(),
                collection: known.replicant.collection.clone(),
                act,
            };
            let change = ReplicaChange { resource: known.resource.clone(), kind, replica };
            let may_make = below == Below::Part && asked.head.method == Method::POST;
            let path = may_make.then(|| asked.head.uri.path().to_owned());
            let answer = self.hand_in(service, asked.head, body, change, None).await?;
            if let Some(path) = path.filter(|_| answer.status() == StatusCode::CREATED) {
                service.made_below(&path);
            }
            return Ok(answer);
        }
        if known.here.is_some() {
            let here = self.here(service, asked, OutgoingBody::once(body)).await;
            return here.map_err(|failed| failed.refused);
        }
        let elsewhere = known.replicant.named_by().map(|author| &author.site);
        let mut elsewhere = elsewhere.filter(|site| **site != self.0.me);
        let near = self.0.peers.nearest(&mut elsewhere);
        match near.is_empty() {
            true => {
                Err(ProxyRefusal::not_made_yet(service.name(), known.meta_id(), &known.resource))
            }
            false => self.in_turn(service, asked, body, &near).await,
        }
    }

    /// Hands in what changes something that is not known yet, for all of these sites.
    pub(super) async fn replicate(
        &self,
        service: &LocalService,
        mut asked: ProxiedRequest,
        body: Arriving,
        sites: BTreeSet<SiteId>,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        let path = asked.head.uri.path();
        let renamed = self.0.replicas.rename_path(service.name(), path, Towards::User);
        let path = renamed.unwrap_or_else(|| path.to_owned());
        let named = self.0.replicas.named_in_path(service.name(), &path);
        if !named.unheard.is_empty() {
            self.hear_of(service, named.unheard).await?;
            if let Some(known) = self.replica(service, &path, Names::Meta) {
                return Box::pin(self.on_replica(service, asked, body, known)).await;
            }
        }
        let body = OutgoingBody::once(body);
        let (change, body) = if asked.head.method == Method::POST {
            let pointer = service.client_chosen_id.as_ref();
            let (moves, reading) = (body.moves(), new_name(pointer, &mut asked.head, body));
            let (name, body) = self.while_it_moves(service, &moves, reading).await?;
            (change::creation(service.name(), &path, &name)?, body)
        } else if asked.head.method == Method::PUT {
            (change::of_unknown(service.name(), &path)?, body)
        } else {
            return Err(ProxyRefusal::unknown_replica(service.name(), &path));
        };
        self.hand_in(service, asked.head, body, change, Some(sites)).await
    }

    /// Reads a body, as long as it goes on moving: one that stands still is waited for no longer
    /// than an answer is.
    async fn while_it_moves<T>(
        &self,
        service: &LocalService,
        moves: &Moves,
        reading: impl Future<Output = Result<T, ProxyRefusal>>,
    ) -> Result<T, ProxyRefusal> {
        let reading = pin!(reading);
        let read = moves.answered_within(self.0.answer_limit, &service.answers, reading).await;
        read.unwrap_or_else(|| Err(ProxyRefusal::broken_request("it did not come in time")))
    }

    /// Makes it durable here, waits for the service of this site, and answers what that answered.
    async fn hand_in(
        &self,
        service: &LocalService,
        mut head: Parts,
        body: OutgoingBody,
        change: ReplicaChange,
        sites: Option<BTreeSet<SiteId>>,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        // What was taken in is carried out some day; a user who could have no answer now had better
        // hear so before.
        let reached = service.reached().await.map_err(|failed| failed.refused)?;
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let path = path.as_str();
        let renamed = self.0.replicas.rename_path(service.name(), path, Towards::User);
        let known = renamed.unwrap_or_else(|| path.to_owned());
        let (needs, body) = self.needs(service, &head, &known, body, &change).await?;
        let kept = self.kept(service, body).await?;
        let (submission, pins) =
            self.submission(service, &mut head, known, kept, &change, (sites, needs))?;
        // From here on it is there for the operation.
        drop(reached);
        let replied = self.0.operations.carry_out(submission, pins).await;
        let reply = replied.map_err(|none| unanswered(&none, service.name(), &change.resource))?;
        match repeat_answer::is_so(&reply) {
            true => Ok(self.already(service, head, &change).await),
            false => self.as_said(service, path, &change.resource, &reply).await,
        }
    }

    /// The body of a request, once all of it is here.
    async fn kept(
        &self,
        service: &LocalService,
        body: OutgoingBody,
    ) -> Result<Option<KeptBody>, ProxyRefusal> {
        let moves = body.moves();
        let keeping = spool::keep(&self.0.bodies, &self.0.reserve, spool::SLOWEST, body);
        let keeping = keeping.map_err(|error| match error {
            NotKept::BrokenOff(error) => ProxyRefusal::broken_request(&error.to_string()),
            NotKept::TooSlow(_) => ProxyRefusal::too_slow(&error.to_string()),
            NotKept::NoRoom(_) => ProxyRefusal::no_room(&error.to_string()),
            error => ProxyRefusal::not_durable(&error.to_string()),
        });
        self.while_it_moves(service, &moves, keeping).await
    }

    /// The operation that a request becomes, and what keeps its body on the disk.
    fn submission(
        &self,
        service: &LocalService,
        head: &mut Parts,
        path: String,
        kept: Option<KeptBody>,
        change: &ReplicaChange,
        (sites, needs): (Option<BTreeSet<SiteId>>, BTreeSet<ResourceId>),
    ) -> Result<(Submission, Vec<BodyPin>), ProxyRefusal> {
        let (mut body, mut inline_body, mut pins) = (None, None, Vec::new());
        if let Some(KeptBody { file, place }) = kept {
            body = Some(file);
            match place {
                BodyPlace::Inline(content) => inline_body = Some(content),
                BodyPlace::File(pin) => pins.push(pin),
            }
        }
        let limit = limit_with(body.as_ref().map_or(0, |file| file.size), self.0.answer_limit)
            + A_WORD_MORE;
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        // What the service packs cannot be looked into.
        head.headers.remove(ACCEPT_ENCODING);
        head.headers.remove(CONTENT_LENGTH);
        let mut headers = written(&head.headers)?;
        // At whichever site it runs: who leads it back to this proxy from there is told so.
        headers.push(Header {
            name: VIA.to_string(),
            value: service.endpoint.via().text().to_owned(),
        });
        let payload = Payload::Http {
            service: service.name().to_owned(),
            method: head.method.to_string(),
            path,
            headers,
            body,
            service_ref: Some(Box::new(change.replica.clone())),
        };
        let kind = OperationType::new(change.kind.word());
        let kind = kind.map_err(|error| ProxyRefusal::bad_target(&error.to_string()))?;
        let is_new = sites.is_some();
        let profile = config::profile("http").filter(|_| is_new);
        let submission = Submission {
            ticket: Ticket(0),
            resource: change.resource.clone(),
            sites,
            config: profile.map(|profile| Arc::new(profile.config.clone())),
            kind,
            payload,
            inline_body,
            force: false,
            wait: WaitFor::Local,
            timeout_ms: limit,
            needs,
            // Whoever asks a service is known to that service only.
            asked_by: Some(Asker {
                principal: format!("client of {}", service.name()),
                site: self.0.me.clone(),
            }),
        };
        Ok((submission, pins))
    }

    /// The replicas that have to be there before a request is sent to a service. Those of which this
    /// site has not heard yet are waited for, if there are such.
    async fn needs(
        &self,
        service: &LocalService,
        head: &Parts,
        path: &str,
        body: OutgoingBody,
        change: &ReplicaChange,
    ) -> Result<(BTreeSet<ResourceId>, OutgoingBody), ProxyRefusal> {
        let (moves, looking) = (body.moves(), self.named(service, head, path, body));
        let (mut named, mut body) = self.while_it_moves(service, &moves, looking).await?;
        // What it makes is called so nowhere yet.
        named.unheard.retain(|id| id.as_str() != change.replica.meta_id.as_str());
        if !named.unheard.is_empty() {
            self.hear_of(service, named.unheard).await?;
            (named, body) = self.named(service, head, path, body).await?;
        }
        named.known.remove(&change.resource);
        Ok((named.known, body))
    }

    /// The replicas that a request names; none if it deletes.
    async fn named(
        &self,
        service: &LocalService,
        head: &Parts,
        path: &str,
        body: OutgoingBody,
    ) -> Result<(Named, OutgoingBody), ProxyRefusal> {
        if head.method == Method::DELETE {
            return Ok((Named::default(), body));
        }
        let replicas = &self.0.replicas;
        let mut named = replicas.named_in_path(service.name(), path);
        if !is_json(&head.headers) {
            return Ok((named, body));
        }
        let read = whole_if_short(body, LONGEST_READ).await;
        match read.map_err(|error| ProxyRefusal::broken_request(&error.to_string()))? {
            Ok(whole) => {
                named.extend(
                    rewrite_ids::named_in_body(replicas, service, path, &whole.bytes).await,
                );
                Ok((named, OutgoingBody::of(whole)))
            }
            Err(long) => Ok((named, OutgoingBody::once(Arriving::FromPeer(long)))),
        }
    }

    /// What the service of this site said, as users may hear it.
    async fn as_said(
        &self,
        service: &LocalService,
        path: &str,
        resource: &ResourceId,
        reply: &Reply,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        let (mut head, text) = reply::answer(service.name(), resource, &self.0.me, reply)?;
        service.endpoint.via().sign(&mut head.headers);
        head.headers.insert(super::headers::SITE, service.site_header());
        let (replicas, text, way) = (&self.0.replicas, Bytes::from(text), Towards::User);
        replicas.rename_headers(service.name(), &mut head.headers, way);
        let renamed = match is_json(&head.headers) {
            true => rewrite_ids::rename_body(replicas, service, path, &text, way).await,
            false => None,
        };
        let body = renamed.map_or_else(|| Body::from(text), Body::from);
        Ok(Response::from_parts(head, Either::Right(body)))
    }
}

/// What a user hears if this site says nothing to an operation. Whoever is told that nothing was run
/// may try again, so only what never will be is said to be that.
fn unanswered(none: &NoReply, service: &str, resource: &ResourceId) -> ProxyRefusal {
    match none {
        NoReply::Refused(why) => ProxyRefusal::not_accepted(why),
        NoReply::NotDurable(why) => ProxyRefusal::not_durable(why),
        NoReply::Undecided(why) => ProxyRefusal::undecided(resource, why),
        NoReply::UnderWay => ProxyRefusal::still_under_way(service, resource),
    }
}

/// A patch in steps (RFC 6902) may say more than what to set: then it cannot be repeated.
async fn steps(
    kind: RequestKind,
    headers: &HeaderMap,
    body: OutgoingBody,
) -> Result<(RequestKind, OutgoingBody), ProxyRefusal> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != RequestKind::Patch || !content_type.is_some_and(|kind| kind.contains("json-patch")) {
        return Ok((kind, body));
    }
    let read = whole_if_short(body, LONGEST_READ).await;
    Ok(match read.map_err(|error| ProxyRefusal::broken_request(&error.to_string()))? {
        Ok(whole) => {
            let kind = if change::only_sets(&whole.bytes) { kind } else { RequestKind::Post };
            (kind, OutgoingBody::of(whole))
        }
        Err(long) => (RequestKind::Post, OutgoingBody::once(Arriving::FromPeer(long))),
    })
}

/// Who names what a request makes. Where the service takes an id with it, it gets one.
async fn new_name(
    pointer: Option<&Pointer>,
    head: &mut Parts,
    body: OutgoingBody,
) -> Result<(NameChooser, OutgoingBody), ProxyRefusal> {
    let drawn = uuid::Uuid::new_v4().to_string();
    let Some(pointer) = pointer.filter(|_| is_json(&head.headers)) else {
        return Ok((NameChooser::Services(drawn), body));
    };
    let read = whole_if_short(body, LONGEST_READ).await;
    let bytes = match read.map_err(|error| ProxyRefusal::broken_request(&error.to_string()))? {
        // As an operation it goes without what came after it.
        Ok(whole) => whole.bytes,
        Err(long) => {
            return Ok((
                NameChooser::Services(drawn),
                OutgoingBody::once(Arriving::FromPeer(long)),
            ));
        }
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else {
        // The service will say what is wrong with it.
        return Ok((NameChooser::Services(drawn), OutgoingBody::whole(bytes)));
    };
    let given = pointer.find(&value).and_then(id_text).filter(|id| !id.is_empty());
    if let Some(id) = given {
        return Ok((NameChooser::Client(id.into_owned()), OutgoingBody::whole(bytes)));
    }
    if !pointer.insert(&mut value, drawn.clone().into()) {
        return Ok((NameChooser::Services(drawn), OutgoingBody::whole(bytes)));
    }
    let bytes = serde_json::to_vec(&value).unwrap_or_default();
    Ok((NameChooser::Agent(drawn), OutgoingBody::whole(bytes.into())))
}

fn written(headers: &HeaderMap) -> Result<Vec<Header>, ProxyRefusal> {
    let line = |(name, value): (&http::HeaderName, &HeaderValue)| match value.to_str() {
        Ok(value) => Ok(Header { name: name.to_string(), value: value.to_owned() }),
        Err(_) => Err(ProxyRefusal::bad_target(&format!("header `{name}` is no text"))),
    };
    headers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_was_run_is_said_only_where_nothing_will_be() {
        let cases = [
            (NoReply::NotDurable("the disk is full".into()), 507),
            (NoReply::Undecided("it broke".into()), 504),
            (NoReply::UnderWay, 504),
        ];
        let resource = ResourceId::new("kv/keys/a").unwrap();
        for (none, status) in cases {
            let refused = unanswered(&none, "kv", &resource);
            assert_eq!(refused.status(), status, "{none:?}: {refused:?}");
            let says_nothing = format!("{refused:?}").contains("nothing was run");
            assert_eq!(says_nothing, status == 507, "{none:?}: {refused:?}");
        }
    }
}
