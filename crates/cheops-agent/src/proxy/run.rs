//! Requests at the sites where they are to run: at one after the other, until one answers.

use std::collections::BTreeSet;
use std::pin::pin;

use axum::body::Body;
use cheops_core::model::SiteId;
use http::{Request, Response};
use http_body_util::Either;

use super::attempts::Fate;
use super::body::{Arriving, Returned, Sent, Supply};
use super::headers::ERROR;
use super::here::Service;
use super::refusal::{Refused, UNREACHABLE};
use super::replicate::passing;
use super::{Asked, Failed, Proxies};
use crate::peers::{ToService, TunnelError};

impl Proxies {
    pub(super) fn is_reached(&self, site: &SiteId) -> bool {
        *site == self.0.me || self.0.peers.round_trip(site).is_some()
    }

    /// This site, if it is one of them, then the others that can be reached, by distance; and then
    /// those that cannot, of which it is said so.
    pub(super) fn nearest_first(&self, sites: &BTreeSet<SiteId>) -> Vec<SiteId> {
        let mut order: Vec<SiteId> = sites.get(&self.0.me).into_iter().cloned().collect();
        order.extend(self.0.peers.nearest(sites));
        let unreached: Vec<_> =
            sites.iter().filter(|site| !order.contains(site)).cloned().collect();
        order.extend(unreached);
        order
    }

    /// Tries these sites until one answers.
    pub(super) async fn in_turn(
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

    pub(super) async fn attempt(
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
    pub(super) async fn here(
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

    pub(super) fn too_late(&self, service: &Service, site: &SiteId) -> Failed {
        let seconds = self.0.answer_limit.as_secs();
        Failed { fate: Fate::Unknown, refused: Refused::too_late(service.name(), site, seconds) }
    }
}

/// What became of a request that another site was to answer.
pub(super) fn not_passed_on(service: &Service, site: &SiteId, error: &TunnelError) -> Failed {
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
pub(super) fn again(asked: &Asked) -> Asked {
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
