//! Requests at the sites where they are to run: at one after the other, until one answers.

use std::collections::BTreeSet;
use std::pin::pin;

use axum::body::Body;
use cheops_core::model::SiteId;
use cheops_services::body::{Arriving, BodyError, Moves, OutgoingBody, Supply};
use cheops_services::{Fate, Returned};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::Either;

use super::headers::ERROR;
use super::local_service::LocalService;
use super::refusal::{NOT_OFFERED, ProxyRefusal, UNREACHABLE};
use super::replicate::rewrite_ids;
use super::{Failed, ProxiedRequest, Proxies};
use crate::ports::{AskedService, NotPassedOn, NotPassedOnReason};

impl Proxies {
    pub(super) fn is_reached(&self, site: &SiteId) -> bool {
        *site == self.0.me || self.0.peers.round_trip(site).is_some()
    }

    /// This site, if it is one of them, then the others that can be reached, by distance; and then
    /// those that cannot, of which it is said so.
    pub(super) fn nearest_first(&self, sites: &BTreeSet<SiteId>) -> Vec<SiteId> {
        let mut order: Vec<SiteId> = sites.get(&self.0.me).into_iter().cloned().collect();
        order.extend(self.0.peers.nearest(&mut sites.iter()));
        let unreached: Vec<_> =
            sites.iter().filter(|site| !order.contains(site)).cloned().collect();
        order.extend(unreached);
        order
    }

    /// Tries these sites until one answers.
    pub(super) async fn in_turn(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: Arriving,
        sites: &[SiteId],
    ) -> Result<Response<Returned>, ProxyRefusal> {
        if let [site] = sites {
            let attempt = self.attempt(service, site, asked, OutgoingBody::once(body)).await;
            return attempt.map_err(|failed| failed.refused);
        }
        let repeating = (&asked.head.method).into();
        let supply = tokio::time::timeout(self.0.answer_limit, Supply::of(body)).await;
        let supply =
            supply.map_err(|_late| ProxyRefusal::broken_request("it did not come in time"))?;
        let supply = supply.map_err(|error| ProxyRefusal::broken_request(&error.to_string()))?;
        // `around` may have come to nothing.
        let mut answer = Err(ProxyRefusal::nobody_near(service.name()));
        let mut is_seen = false;
        for site in sites {
            // The body may be gone.
            let Some(body) = supply.next() else { break };
            let attempt = self.attempt(service, site, again(&asked), body).await;
            let fate = attempt.as_ref().map_or_else(|failed| failed.fate, fate_of);
            let attempt = attempt.map_err(|failed| failed.refused);
            if !fate.allows_another(repeating) {
                return attempt;
            }
            // That nobody has seen it is not said once somebody may have.
            if fate != Fate::NeverArrived || !is_seen {
                answer = attempt;
            }
            is_seen |= fate != Fate::NeverArrived;
        }
        answer
    }

    pub(super) async fn attempt(
        &self,
        service: &LocalService,
        site: &SiteId,
        asked: ProxiedRequest,
        body: OutgoingBody,
    ) -> Result<Response<Returned>, Failed> {
        if *site == self.0.me {
            return self.here(service, asked, body).await;
        }
        let ProxiedRequest { mut head, upgrade, among } = asked;
        service.endpoint.via().sign(&mut head.headers);
        // What is said after a request with a body could not be told from the body there. Whoever
        // is asked to go over to another protocol may stay with this one.
        if let Some(upgrade) = upgrade.filter(|_| body.is_end_stream()) {
            return self.upgrade_at(service, site, head, upgrade).await;
        }
        let moves = body.moves();
        let request = Request::from_parts(head, Body::new(body));
        let to = AskedService { name: service.name(), upgrade: None, among: among.as_ref() };
        let passing = pin!(self.0.peers.ask_service(site, to, request));
        match moves.answered_within(self.0.answer_limit, &service.answers, passing).await {
            Some(Ok(response)) => Ok(response.map(Either::Right)),
            Some(Err(error)) => Err(or_broken(&moves, not_passed_on(service, site, &error))),
            None => Err(self.too_late(service, site)),
        }
    }

    /// Asks the service of this site, which may know resources by other ids than users do.
    pub(super) async fn here(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: OutgoingBody,
    ) -> Result<Response<Returned>, Failed> {
        if !self.0.replicas.renames(service.name()) {
            return self.ask(service, asked, body).await;
        }
        Box::pin(self.ask_by_its_ids(service, asked, body)).await
    }

    async fn ask_by_its_ids(
        &self,
        service: &LocalService,
        mut asked: ProxiedRequest,
        body: OutgoingBody,
    ) -> Result<Response<Returned>, Failed> {
        let replicas = &self.0.replicas;
        let (method, path) = (asked.head.method.clone(), asked.head.uri.path().to_owned());
        let moves = body.moves();
        let reading = rewrite_ids::towards_service(replicas, service, &mut asked.head, body);
        let (limit, timers) = (self.0.answer_limit, &service.answers);
        let body = moves.answered_within(limit, timers, pin!(reading)).await;
        let body = body.unwrap_or_else(|| Err("it did not come in time".into()));
        let body = body.map_err(|error| Failed {
            fate: Fate::NeverArrived,
            refused: ProxyRefusal::broken_request(&error.to_string()),
        })?;
        let response = self.ask(service, asked, body).await?;
        let response =
            rewrite_ids::towards_user(replicas, service, (&method, &path), response).await;
        response.map_err(|error| self.broken_off(service, &error))
    }

    /// The service of this site did not come to the end of its answer.
    pub(super) fn broken_off(&self, service: &LocalService, error: &BodyError) -> Failed {
        let refused = ProxyRefusal::broken_off(service.name(), &self.0.me, &error.to_string());
        Failed { fate: Fate::Unknown, refused }
    }

    async fn ask(
        &self,
        service: &LocalService,
        asked: ProxiedRequest,
        body: OutgoingBody,
    ) -> Result<Response<Returned>, Failed> {
        let moves = body.moves();
        let (request, client_side) = service.request(asked, body)?;
        let asking = pin!(service.endpoint.ask(request));
        match moves.answered_within(self.0.answer_limit, &service.answers, asking).await {
            Some(answered) => {
                let answered = service.answer(answered, client_side);
                let answered = answered.map_err(|failed| or_broken(&moves, failed));
                answered.map(|response| response.map(Either::Left))
            }
            None => Err(self.too_late(service, &self.0.me)),
        }
    }

    pub(super) fn too_late(&self, service: &LocalService, site: &SiteId) -> Failed {
        let seconds = self.0.answer_limit.as_secs();
        Failed {
            fate: Fate::Unknown,
            refused: ProxyRefusal::too_late(service.name(), site, seconds),
        }
    }
}

/// What became of a request that another site was to answer.
pub(super) fn not_passed_on(service: &LocalService, site: &SiteId, error: &NotPassedOn) -> Failed {
    let why = &error.why;
    let (fate, refused) = match error.reason {
        NotPassedOnReason::Unreachable => {
            (Fate::NeverArrived, ProxyRefusal::unreachable_site(site, why))
        }
        NotPassedOnReason::NoRoom => (Fate::NeverArrived, ProxyRefusal::too_many_under_way(why)),
        NotPassedOnReason::HeadTooLong => (Fate::NeverArrived, ProxyRefusal::head_too_long(why)),
        NotPassedOnReason::Broke => {
            (Fate::Unknown, ProxyRefusal::broken_off(service.name(), site, why))
        }
    };
    Failed { fate, refused }
}

/// What came of an attempt, if it did not fail for want of the rest of the request.
fn or_broken(moves: &Moves, failed: Failed) -> Failed {
    match moves.broken() {
        Some(why) => Failed { refused: ProxyRefusal::broken_request(why), ..failed },
        None => failed,
    }
}

/// The same request for another attempt.
pub(super) fn again(asked: &ProxiedRequest) -> ProxiedRequest {
    let mut head = Request::new(()).into_parts().0;
    head.method = asked.head.method.clone();
    head.uri = asked.head.uri.clone();
    head.headers = asked.head.headers.clone();
    ProxiedRequest { head, upgrade: asked.upgrade.clone(), among: asked.among.clone() }
}

/// What became of a request, as the agent that ran it says.
fn fate_of(response: &Response<Returned>) -> Fate {
    match response.headers().get(ERROR) {
        None => Fate::Answered(response.status()),
        Some(code) if code == UNREACHABLE || code == NOT_OFFERED => Fate::NeverArrived,
        Some(_) => Fate::Unknown,
    }
}
