//! What a request is about, under which scope it runs, and so where.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Instant;

use axum::body::Body;
use cheops_core::model::SiteId;
use cheops_scope::{Consistency, Placement, Target};
use cheops_services::Returned;
use cheops_services::body::{Arriving, OutgoingBody};
use cheops_services::headers::strip;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

use super::attempts::{self, Aim};
use super::correlation::{Holder, Recalled};
use super::headers::{self, ClientConnection};
use super::local_service::{self, LocalService, Sender};
use super::refusal::ProxyRefusal;
use super::scope::{Others, Replaced};
use super::scope_cache::ResolvedScope;
use super::{ProxiedRequest, Proxies, Remembered, admission, cross, scope};
use crate::id_directory::Names;

impl Proxies {
    /// Answers a client.
    pub(super) async fn answer(
        &self,
        service: &LocalService,
        mut request: Request<Incoming>,
        client: &ClientConnection,
    ) -> Response<Returned> {
        let on_upgrade = hyper::upgrade::on(&mut request);
        let (head, body) = request.into_parts();
        let is_offered = headers::offers_upgrade(&head.headers);
        let mut replaced = Vec::new();
        let routed =
            self.route(service, head, Arriving::Here(body), on_upgrade, client, &mut replaced);
        let mut response =
            routed.await.unwrap_or_else(|refused| self.refuse(refused).map(Either::Right));
        replaced.into_iter().for_each(|one| one.give_back(response.headers_mut()));
        if is_offered && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            // What the client has sent since may be of the other protocol, and was let through.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Answers a client whose request can be read in two ways.
    pub(super) fn cannot_be_read(&self, why: &str) -> Response<Returned> {
        let detail = format!("the request can be read in two ways: {why}");
        self.refuse(ProxyRefusal::bad_target(&detail)).map(Either::Right)
    }

    async fn route(
        &self,
        service: &LocalService,
        mut head: Parts,
        body: Arriving,
        on_upgrade: OnUpgrade,
        client: &ClientConnection,
        replaced: &mut Vec<Replaced>,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        local_service::normalise(&mut head, Sender::Client)?;
        admission::take_off_ours(&mut head.headers);
        service.admission.check(service.name(), &head.headers)?;
        if service.endpoint.via().is_in(&head.headers) {
            return Err(ProxyRefusal::in_a_circle(service.name()));
        }
        let resolved = match self.scope_of(service, &head.headers, client)? {
            None => None,
            Some(scope) => {
                let resolved = self.0.scope_cache.resolve(scope.trim()).await;
                let resolved = resolved.map_err(|bad| ProxyRefusal::bad_scope(&bad))?;
                can_be_kept(&resolved.placement)?;
                Some(resolved)
            }
        };
        let upgrade = strip(&mut head.headers);
        let upgrade = upgrade.filter(|protocol| protocol != headers::NOT_GONE_OVER_TO);
        let upgrade = upgrade.map(|protocol| (protocol, on_upgrade));
        client.say_in(&mut head.headers);
        if let Some(resolved) = &resolved {
            *replaced = self.mark(service, &mut head.headers, resolved, client);
        }
        let mut asked = ProxiedRequest { head, upgrade, among: None };
        // An id of a whole says itself where its parts are, whatever the scope.
        if let Some(whole) = self.whole(service, &asked.head.uri)? {
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
                let here = self.here(service, asked, OutgoingBody::once(body)).await;
                here.map_err(|failed| failed.refused)
            }
        }
    }

    /// Whether a target is this site and nothing else.
    fn is_here(&self, target: &Target) -> bool {
        matches!(target, Target::Site(site) if site.as_str() == self.0.me.as_str())
    }

    /// Gives a request that runs under a scope the marks by which calls that are made for it are
    /// known again. What was replaced by it.
    fn mark(
        &self,
        service: &LocalService,
        headers: &mut http::HeaderMap,
        resolved: &ResolvedScope,
        client: &ClientConnection,
    ) -> Vec<Replaced> {
        let (Remembered { scopes, marks }, now) = (&self.0.memory, Instant::now());
        let by = Holder::at(client.address);
        let known = resolved.known(scopes, &by, now);
        let (name, chosen) = scopes.name(&marks.names(headers), &known, now);
        if !chosen.is_empty() {
            let chooser = (!service.trusts).then(|| client.chooser(headers));
            scopes.keep(&chosen, &known, chooser, &by, now);
        }
        marks.set(headers, Some(&resolved.written), name, Others::of(service.trusts))
    }

    /// Under which scope a request runs, if under one.
    fn scope_of<'a>(
        &self,
        service: &LocalService,
        headers: &'a http::HeaderMap,
        client: &ClientConnection,
    ) -> Result<Option<Cow<'a, str>>, ProxyRefusal> {
        let carried = scope::carried(headers);
        if let Some(scope) = carried.map_err(|two| ProxyRefusal::two_scopes(two.to_string()))? {
            return Ok(Some(scope));
        }
        let Remembered { scopes, marks } = &self.0.memory;
        if scopes.is_unused() {
            return Ok(None);
        }
        let (names, chooser) = (marks.names(headers), || client.chooser(headers));
        match scopes.recall(&names, chooser, service.trusts, Instant::now()) {
            None => Ok(None),
            Some(Recalled::Scope(scope)) => Ok(Some(Cow::Owned(scope.text().to_owned()))),
            Some(Recalled::Several) => Err(ProxyRefusal::several_scopes()),
            Some(Recalled::Forgotten) => Err(ProxyRefusal::forgotten_scope()),
        }
    }

    /// Does what a target asks for.
    async fn follow(
        &self,
        service: &LocalService,
        mut asked: ProxiedRequest,
        body: Arriving,
        target: &Target,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        let sites = match attempts::aim(target, &|site| self.is_reached(site)) {
            Aim::FirstOf(sites) => sites,
            Aim::All(sites) if asked.head.method.is_safe() => self.nearest_first(&sites),
            Aim::All(sites) if !sites.contains(&self.0.me) => {
                let order = self.nearest_first(&sites);
                asked.among = Some(sites);
                asked.upgrade = None;
                order
            }
            Aim::All(sites) => return self.replicate(service, asked, body, sites).await,
            Aim::Cross(sites) => {
                return self.cross(service, asked, body, cross::Over::Sites(sites)).await;
            }
            Aim::TooMuch => return Err(ProxyRefusal::only_sites()),
        };
        self.in_turn(service, asked, body, &sites).await
    }

    /// Answers another site's agent, which decided that the request is to run here.
    pub async fn answer_peer(
        &self,
        from: &SiteId,
        service: &str,
        request: Request<Body>,
        upgrade: Option<HeaderValue>,
        among: Option<BTreeSet<SiteId>>,
    ) -> Response<Body> {
        let Some(service) = self.0.services.get(service) else {
            return self.refuse(ProxyRefusal::no_such_service(service, &self.0.me));
        };
        if !service.is_offered {
            return self.refuse(ProxyRefusal::not_offered(service.name(), &self.0.me));
        }
        let (mut head, mut body) = request.into_parts();
        if let Err(refused) = local_service::normalise(&mut head, Sender::Agent) {
            return self.refuse(refused);
        }
        if service.endpoint.via().is_in(&head.headers) {
            return self.refuse(ProxyRefusal::in_a_circle(service.name()));
        }
        admission::take_off_ours(&mut head.headers);
        strip(&mut head.headers);
        let replaced = self.0.memory.mark_for(
            &Holder::Site(from.clone()),
            &mut head.headers,
            Others::of(service.trusts),
        );
        let given_back = |mut response: Response<Body>| {
            replaced.into_iter().for_each(|one| one.give_back(response.headers_mut()));
            response
        };
        if let Some(protocol) = upgrade {
            if !self.changes_replicas(service, &head, among.as_ref()) {
                return match self.go_over(service, head, protocol, body).await {
                    Ok(response) => given_back(response.map(Body::new)),
                    Err(failed) => self.refuse(failed.refused),
                };
            }
            // What would be said in the other protocol is no body.
            body = Body::empty();
        }
        let asked = ProxiedRequest { head, upgrade: None, among };
        match self.for_peer(service, asked, Arriving::FromPeer(body)).await {
            Ok(response) => given_back(response.map(Body::new)),
            Err(refused) => self.refuse(refused),
        }
    }

    /// What another site's agent is answered in the place of an answer whose headers are longer than
    /// can go there.
    pub fn too_long_to_return(&self, service: &str, length: usize, most: usize) -> Response<Body> {
        self.refuse(ProxyRefusal::answer_too_long(service, length, most))
    }

    /// Whether a request changes what several sites keep: that is for them all, and so in no
    /// protocol that one of them would go over to.
    fn changes_replicas(
        &self,
        service: &LocalService,
        head: &Parts,
        among: Option<&BTreeSet<SiteId>>,
    ) -> bool {
        let is_kept = || self.replica(service, head.uri.path(), Names::All).is_some();
        !head.method.is_safe() && (among.is_some() || is_kept())
    }

    /// Lets a request run here, as another site's agent decided: its scope was followed there, and is not
    /// looked at again.
    async fn for_peer(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: Arriving,
    ) -> Result<Response<Returned>, ProxyRefusal> {
        if let Some(known) = self.replica(service, asked.head.uri.path(), Names::All) {
            return self.on_replica(service, asked, body, known).await;
        }
        if let Some(sites) = asked.among.clone().filter(|sites| sites.contains(&self.0.me)) {
            return self.replicate(service, asked, body, sites).await;
        }
        let here = self.here(service, asked, OutgoingBody::once(body)).await;
        here.map_err(|failed| failed.refused)
    }
}

/// Refuses a scope that asks for more than there is: to follow it in part would break its promise.
fn can_be_kept(placement: &Placement) -> Result<(), ProxyRefusal> {
    let asked = placement.services.iter().filter_map(|placed| placed.consistency);
    match asked.into_iter().find(|asked| *asked != Consistency::Eventual) {
        Some(other) => Err(ProxyRefusal::only_eventual(other)),
        None => Ok(()),
    }
}
