//! Reverse proxies in front of the application's services: each request runs where its scope says.
//!
//! A request without a scope goes to the service of this site, as if nothing were there. One with
//! a scope goes to the site that the scope names for the service, over the mesh if that is another
//! one, and carries marks by which the calls that the service makes for it are known again: they
//! run under the same scope.
//!
//! | file | what it does |
//! | --- | --- |
//! | `listen`, `threads` | connections of clients, and where they are served |
//! | `framing` | where their messages begin and end |
//! | `scope`, `memory` | under which scope a request runs |
//! | `atlas`, `distances`, `attempts` | where that is, and when to try elsewhere |
//! | `here`, `pool` | the service of this site, and connections to it |
//! | `cross` | requests that run at several sites, and come to one answer |
//! | `headers`, `body`, `upgrade` | what passes through, and how |
//! | `patience`, `together` | limits of time and small writes, made cheap |
//! | `replicate` | requests for several sites, and what they changed there |
//! | `refusal` | answers of this proxy itself |

mod atlas;
mod attempts;
mod body;
mod cross;
mod distances;
mod framing;
mod headers;
mod here;
mod listen;
mod memory;
mod patience;
mod pool;
mod refusal;
mod replicate;
mod scope;
mod threads;
mod together;
mod upgrade;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use cheops_core::model::SiteId;
use cheops_scope::{Consistency, MAX_SCOPE_BYTES, Placement, Target};
use cheops_store::Blobs;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

use self::atlas::Atlas;
use self::attempts::{Aim, Fate};
use self::body::{Arriving, Returned, Sent, Supply};
use self::headers::{Client, ERROR, SITE};
use self::here::Service;
use self::memory::{Memory, Name, Recalled};
use self::refusal::{Refused, UNREACHABLE};
use self::replicate::passing;
use crate::config::{ProxyConfig, ServiceConfig};
use crate::driver::Driver;
use crate::peers::{Peers, ToService, TunnelError};
use crate::replicas::{Names, Replicas};

pub(crate) use self::cross::parts_of;
pub(crate) use self::headers::strip;
pub(crate) use self::listen::Listening;
pub(crate) use self::threads::Threads;

/// The proxies of a site.
#[derive(Clone)]
pub(crate) struct Proxies(Arc<Inner>);

struct Inner {
    me: SiteId,
    services: BTreeMap<String, Arc<Service>>,
    peers: Peers,
    driver: Driver,
    blobs: Blobs,
    replicas: Replicas,
    atlas: Atlas,
    memory: Remembered,
    answer_limit: Duration,
}

/// What proxies are made of, beside their config.
pub(crate) struct Means {
    pub(crate) peers: Peers,
    pub(crate) driver: Driver,
    pub(crate) blobs: Blobs,
    pub(crate) replicas: Replicas,
    pub(crate) memory: Remembered,
}

/// The scopes of requests that were seen at this site, for the calls that are made for them.
#[derive(Clone)]
pub(crate) struct Remembered(Arc<Memory>);

impl Remembered {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self(Arc::new(Memory::new(lasts)))
    }

    /// Remembers the scope that a request carries, which the agent itself sends to a service.
    pub(crate) fn see(&self, headers: &http::HeaderMap) {
        let scope = scope::carried(headers).ok().flatten();
        if let Some(scope) = scope.filter(|scope| scope.len() <= MAX_SCOPE_BYTES) {
            self.keep(&scope::correlations(headers), &scope.trim().into());
        }
    }

    fn keep(&self, names: &[Name], scope: &Arc<str>) {
        self.0.keep(names, scope, Instant::now());
    }
}

/// A request on its way, without its body.
struct Asked {
    head: Parts,
    /// What the client wants to go over to, and its end of that.
    upgrade: Option<(HeaderValue, OnUpgrade)>,
    /// The sites that are to keep what it makes, if another one than this is asked to see to it.
    among: Option<BTreeSet<SiteId>>,
}

/// Why an attempt came to nothing.
struct Failed {
    fate: Fate,
    refused: Refused,
}

impl Proxies {
    /// For these services. Nobody is listened to yet.
    pub(crate) fn new(
        me: &SiteId,
        services: &[ServiceConfig],
        config: &ProxyConfig,
        means: Means,
    ) -> Result<Self, String> {
        let Means { peers, driver, blobs, replicas, memory } = means;
        let names = services.iter().map(|service| service.name.clone()).collect();
        let atlas = Atlas::new(me, names, peers.clone())
            .ok_or_else(|| format!("`{me}` cannot be named in a scope"))?;
        let connector = here::connector(services)?;
        let service = |service: &ServiceConfig| {
            let name = service.name.to_string();
            (name, Arc::new(Service::new(me, service, connector.clone())))
        };
        Ok(Self(Arc::new(Inner {
            me: me.clone(),
            services: services.iter().map(service).collect(),
            peers,
            driver,
            blobs,
            replicas,
            atlas,
            memory,
            answer_limit: config.answer_limit,
        })))
    }

    /// Answers a client.
    async fn answer(
        &self,
        service: &Service,
        mut request: Request<Incoming>,
        client: &Client,
    ) -> Response<Returned> {
        let on_upgrade = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let is_offered = headers::offers_upgrade(&head.headers);
        let answered = self.route(service, head, Arriving::Here(body), on_upgrade, client).await;
        let mut response =
            answered.unwrap_or_else(|refused| self.refuse(refused).map(Either::Right));
        if is_offered && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            // What the client has sent since may be of the other protocol, and was let through.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn refuse(&self, refused: Refused) -> Response<Body> {
        let mut response = refused.into_response();
        if let Ok(site) = HeaderValue::try_from(self.0.me.as_str()) {
            response.headers_mut().insert(SITE, site);
        }
        response
    }

    async fn route(
        &self,
        service: &Service,
        mut head: Parts,
        body: Arriving,
        on_upgrade: OnUpgrade,
        client: &Client,
    ) -> Result<Response<Returned>, Refused> {
        here::normalise(&mut head)?;
        if service.pseudonym.is_in(&head.headers) {
            return Err(Refused::in_a_circle(service.name()));
        }
        let resolved = match self.scope_of(&head.headers)? {
            None => None,
            Some(scope) => {
                let resolved = self.0.atlas.resolve(scope.trim()).await;
                let resolved = resolved.map_err(|bad| Refused::bad_scope(&bad))?;
                can_be_kept(&resolved.placement)?;
                Some(resolved)
            }
        };
        let upgrade = headers::strip(&mut head.headers);
        let upgrade = upgrade.filter(|protocol| protocol != headers::NOT_GONE_OVER_TO);
        let upgrade = upgrade.map(|protocol| (protocol, on_upgrade));
        client.say_in(&mut head.headers);
        if let Some(resolved) = &resolved {
            let names = scope::mark(&mut head.headers, &resolved.written);
            self.0.memory.keep(&names, &resolved.scope);
        }
        let mut asked = Asked { head, upgrade, among: None };
        // An id of a whole says itself where its parts are, whatever the scope.
        if let Some(whole) = cross::Over::whole(&asked.head.uri) {
            return Box::pin(self.cross(service, asked, body, whole)).await;
        }
        let target = resolved
            .as_ref()
            .and_then(|resolved| resolved.placement.of(&service.config_name))
            .map(|placed| &placed.target);
        // What another site's service calls something may be something else here.
        let by = match target {
            Some(target) if !attempts::names(target, &self.0.me) => Names::Meta,
            _ => Names::All,
        };
        if let Some(known) = self.replica(service, asked.head.uri.path(), by) {
            if !asked.head.method.is_safe() {
                // Whoever is asked to go over to another protocol may stay with this one.
                asked.upgrade = None;
            }
            return Box::pin(self.on_replica(service, asked, body, known)).await;
        }
        match target {
            Some(target) if !self.is_here(target) => {
                // What is rare is apart, so that what is not has less to carry.
                Box::pin(self.follow(service, asked, body, target)).await
            }
            _ => {
                let here = self.here(service, asked, Sent::once(body)).await;
                here.map_err(|failed| failed.refused)
            }
        }
    }

    /// Whether a target is this site and nothing else.
    fn is_here(&self, target: &Target) -> bool {
        matches!(target, Target::Site(site) if site.as_str() == self.0.me.as_str())
    }

    /// Under which scope a request runs, if under one.
    fn scope_of<'a>(&self, headers: &'a http::HeaderMap) -> Result<Option<Cow<'a, str>>, Refused> {
        let carried = scope::carried(headers);
        if let Some(scope) = carried.map_err(|two| Refused::two_scopes(two.to_string()))? {
            return Ok(Some(scope));
        }
        if self.0.memory.0.is_empty() {
            return Ok(None);
        }
        match self.0.memory.0.recall(&scope::correlations(headers), Instant::now()) {
            None => Ok(None),
            Some(Recalled::Scope(scope)) => Ok(Some(Cow::Owned(scope.to_string()))),
            Some(Recalled::Several) => Err(Refused::several_scopes()),
        }
    }

    /// Does what a target asks for.
    async fn follow(
        &self,
        service: &Service,
        mut asked: Asked,
        body: Arriving,
        target: &Target,
    ) -> Result<Response<Returned>, Refused> {
        let sites = match attempts::aim(target, &|site| self.is_reached(site)) {
            Aim::FirstOf(sites) => sites,
            Aim::All(sites) if asked.head.method.is_safe() => self.nearest_first(&sites),
            Aim::All(sites) if !sites.contains(&self.0.me) => {
                let order = self.nearest_first(&sites);
                asked.among = Some(sites);
                order
            }
            Aim::All(sites) => return self.replicate(service, asked, body, sites).await,
            Aim::Cross(sites) => {
                return self.cross(service, asked, body, cross::Over::Sites(sites)).await;
            }
            Aim::TooMuch => return Err(Refused::only_sites()),
        };
        self.in_turn(service, asked, body, &sites).await
    }

    fn is_reached(&self, site: &SiteId) -> bool {
        *site == self.0.me || self.0.peers.round_trip(site).is_some()
    }

    /// This site, if it is one of them, then the others that can be reached, by distance; and then
    /// those that cannot, of which it is said so.
    fn nearest_first(&self, sites: &BTreeSet<SiteId>) -> Vec<SiteId> {
        let mut order: Vec<SiteId> = sites.get(&self.0.me).into_iter().cloned().collect();
        order.extend(self.0.peers.nearest(sites));
        let unreached: Vec<_> =
            sites.iter().filter(|site| !order.contains(site)).cloned().collect();
        order.extend(unreached);
        order
    }

    /// Tries these sites until one answers.
    async fn in_turn(
        &self,
        service: &Service,
        asked: Asked,
        body: Arriving,
        sites: &[SiteId],
    ) -> Result<Response<Returned>, Refused> {
        if asked.upgrade.is_some() {
            return match sites.iter().find(|site| self.is_reached(site)).or(sites.first()) {
                Some(site) if *site != self.0.me => self.upgrade_at(service, site, asked).await,
                Some(_) => {
                    let here = self.here(service, asked, Sent::once(body)).await;
                    here.map_err(|failed| failed.refused)
                }
                None => Err(Refused::nobody_near(service.name())),
            };
        }
        let (last, earlier) = match sites.split_last() {
            Some((last, [])) => {
                let attempt = self.attempt(service, last, asked, Sent::once(body)).await;
                return attempt.map_err(|failed| failed.refused);
            }
            Some(split) => split,
            // `around` came to nothing.
            None => return Err(Refused::nobody_near(service.name())),
        };
        let method = asked.head.method.clone();
        let supply = tokio::time::timeout(self.0.answer_limit, Supply::of(body)).await;
        let supply = supply.map_err(|_late| Refused::broken_request("it did not come in time"))?;
        let supply = supply.map_err(|error| Refused::broken_request(&error.to_string()))?;
        let mut untried = None;
        for site in earlier {
            let Some(body) = supply.next() else { break };
            let attempt = self.attempt(service, site, again(&asked), body).await;
            match attempt {
                Ok(response) if !fate_of(&response).allows_another(&method) => return Ok(response),
                Err(failed) if !failed.fate.allows_another(&method) => return Err(failed.refused),
                failed => untried = Some(failed),
            }
        }
        match (supply.next(), untried) {
            (Some(body), _) => {
                let attempt = self.attempt(service, last, asked, body).await;
                attempt.map_err(|failed| failed.refused)
            }
            // The body is gone: what the last attempt came to is the answer.
            (None, Some(attempt)) => attempt.map_err(|failed| failed.refused),
            (None, None) => Err(Refused::nobody_near(service.name())),
        }
    }

    async fn attempt(
        &self,
        service: &Service,
        site: &SiteId,
        asked: Asked,
        body: Sent,
    ) -> Result<Response<Returned>, Failed> {
        if *site == self.0.me {
            return self.here(service, asked, body).await;
        }
        let mut head = asked.head;
        service.pseudonym.sign(&mut head.headers);
        let moves = body.moves();
        let request = Request::from_parts(head, Body::new(body));
        let to = ToService { name: service.name(), upgrade: None, among: asked.among.as_ref() };
        let passing = pin!(self.0.peers.ask_service(site, to, request));
        match moves.answered_within(self.0.answer_limit, &service.patience, passing).await {
            Some(Ok(response)) => Ok(response.map(Either::Right)),
            Some(Err(error)) => Err(not_passed_on(service, site, &error)),
            None => Err(self.too_late(service, site)),
        }
    }

    /// Asks the service of this site, which may know resources by other ids than users do.
    async fn here(
        &self,
        service: &Service,
        asked: Asked,
        body: Sent,
    ) -> Result<Response<Returned>, Failed> {
        if !self.0.replicas.renames(service.name()) {
            return self.ask(service, asked, body).await;
        }
        Box::pin(self.ask_by_its_ids(service, asked, body)).await
    }

    async fn ask_by_its_ids(
        &self,
        service: &Service,
        mut asked: Asked,
        body: Sent,
    ) -> Result<Response<Returned>, Failed> {
        let replicas = &self.0.replicas;
        if asked.upgrade.is_some() {
            passing::rename_path(replicas, service, &mut asked.head);
            return self.ask(service, asked, body).await;
        }
        let (method, path) = (asked.head.method.clone(), asked.head.uri.path().to_owned());
        let body = passing::towards_service(replicas, service, &mut asked.head, body).await;
        let body = body.map_err(|error| Failed {
            fate: Fate::NeverArrived,
            refused: Refused::broken_request(&error.to_string()),
        })?;
        let response = self.ask(service, asked, body).await?;
        let response = passing::towards_user(replicas, service, (&method, &path), response).await;
        response.map_err(|error| Failed {
            fate: Fate::Unknown,
            refused: Refused::broken_off(service.name(), &self.0.me, &error.to_string()),
        })
    }

    async fn ask(
        &self,
        service: &Service,
        asked: Asked,
        body: Sent,
    ) -> Result<Response<Returned>, Failed> {
        let moves = body.moves();
        let (request, client_side) = service.request(asked, body)?;
        let asking = pin!(service.pool.ask(request));
        match moves.answered_within(self.0.answer_limit, &service.patience, asking).await {
            Some(answered) => {
                service.answer(answered, client_side).map(|response| response.map(Either::Left))
            }
            None => Err(self.too_late(service, &self.0.me)),
        }
    }

    fn too_late(&self, service: &Service, site: &SiteId) -> Failed {
        let seconds = self.0.answer_limit.as_secs();
        Failed { fate: Fate::Unknown, refused: Refused::too_late(service.name(), site, seconds) }
    }

    /// Answers another site's agent, which decided that the request is to run here.
    pub(crate) async fn answer_peer(
        &self,
        service: &str,
        request: Request<Body>,
        upgrade: Option<HeaderValue>,
        among: Option<BTreeSet<SiteId>>,
    ) -> Response<Body> {
        let Some(service) = self.0.services.get(service) else {
            return self.refuse(Refused::no_such_service(service, &self.0.me));
        };
        let (mut head, body) = request.into_parts();
        if let Err(refused) = here::normalise(&mut head) {
            return self.refuse(refused);
        }
        if service.pseudonym.is_in(&head.headers) {
            return self.refuse(Refused::in_a_circle(service.name()));
        }
        headers::strip(&mut head.headers);
        self.0.memory.see(&head.headers);
        if let Some(protocol) = upgrade {
            passing::rename_path(&self.0.replicas, service, &mut head);
            return match service.go_over(head, protocol, body).await {
                Ok(response) => response,
                Err(failed) => self.refuse(failed.refused),
            };
        }
        let asked = Asked { head, upgrade: None, among };
        match self.for_peer(service, asked, Arriving::FromPeer(body)).await {
            Ok(response) => response.map(Body::new),
            Err(refused) => self.refuse(refused),
        }
    }

    /// In the place of an answer to another site whose headers are too long to go there.
    pub(crate) fn too_long_to_return(
        &self,
        service: &str,
        length: usize,
        most: usize,
    ) -> Response<Body> {
        self.refuse(Refused::answer_too_long(service, length, most))
    }

    async fn for_peer(
        &self,
        service: &Service,
        asked: Asked,
        body: Arriving,
    ) -> Result<Response<Returned>, Refused> {
        if let Some(known) = self.replica(service, asked.head.uri.path(), Names::All) {
            return self.on_replica(service, asked, body, known).await;
        }
        if let Some(sites) = asked.among.clone().filter(|sites| sites.contains(&self.0.me)) {
            return self.replicate(service, asked, body, sites).await;
        }
        let here = self.here(service, asked, Sent::once(body)).await;
        here.map_err(|failed| failed.refused)
    }
}

/// Refuses a scope that asks for more than there is: to follow it in part would break its promise.
fn can_be_kept(placement: &Placement) -> Result<(), Refused> {
    let asked = placement.services.iter().filter_map(|placed| placed.consistency);
    match asked.into_iter().find(|asked| *asked != Consistency::Eventual) {
        Some(other) => Err(Refused::only_eventual(other)),
        None => Ok(()),
    }
}

/// What became of a request that another site was to answer.
fn not_passed_on(service: &Service, site: &SiteId, error: &TunnelError) -> Failed {
    let why = error.to_string();
    let (fate, refused) = match error {
        TunnelError::NoLink(_) => (Fate::NeverArrived, Refused::unreachable_site(site, &why)),
        TunnelError::HeadTooLong(_) => (Fate::NeverArrived, Refused::head_too_long(&why)),
        TunnelError::Broke { .. } => {
            (Fate::Unknown, Refused::broken_off(service.name(), site, &why))
        }
    };
    Failed { fate, refused }
}

/// The same request for another attempt.
fn again(asked: &Asked) -> Asked {
    let mut head = Request::new(()).into_parts().0;
    head.method = asked.head.method.clone();
    head.uri = asked.head.uri.clone();
    head.headers = asked.head.headers.clone();
    Asked { head, upgrade: None, among: asked.among.clone() }
}

/// What became of a request, as the agent that ran it says.
fn fate_of(response: &Response<Returned>) -> Fate {
    match response.headers().get(ERROR) {
        None => Fate::Answered(response.status()),
        Some(code) if code == UNREACHABLE => Fate::NeverArrived,
        Some(_) => Fate::Unknown,
    }
}
