//! What the client gets: the answers that came, made into one, and who is missing from it.

use axum::body::Body;
use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::{Fate, Returned};

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::Value;

use super::super::headers::{INCOMPLETE, SITE};
use super::super::local_service::LocalService;
use super::super::refusal::ProxyRefusal;
use super::ask::{AnswerContent, AskOutcome, OF_ONE_BODY, SiteAnswer, SiteResult};
use super::create::is_gone;
use super::join::{AnswerPiece, Joiner, Missing};
use super::{Over, refused};

/// One answer of those that came.
pub(super) fn put_together(
    service: &LocalService,
    method: &Method,
    heard: &[SiteResult],
    over: &Over,
) -> Result<Response<Returned>, ProxyRefusal> {
    // What is to be gone, and is, needs no more done to it.
    let is_fine = |heard: &&SiteResult| {
        heard.done().is_some() || (*method == Method::DELETE && is_gone(heard))
    };
    let missing: Vec<Missing> =
        heard.iter().filter(|heard| !is_fine(heard)).map(SiteResult::missing).collect();
    let done: Vec<(&SiteId, &SiteAnswer)> =
        heard.iter().filter_map(|heard| Some((&heard.site, heard.done()?))).collect();
    let Some(first) = done.first() else { return none_done(service, heard, &missing, over) };
    let mut pieces = Vec::new();
    for (site, answer) in &done {
        match &answer.content {
            AnswerContent::Nothing => {}
            AnswerContent::Json(body) => {
                pieces.push(AnswerPiece { site: (*site).clone(), body: body.clone() });
            }
            // The id is in a header: nothing is lost.
            AnswerContent::Other(..) if answer.head.headers.contains_key(LOCATION) => {}
            AnswerContent::Other(_, what) => {
                let why = format!("site `{site}` answered with {what}");
                return Err(refused::not_joinable(&why, !method.is_safe()));
            }
        }
    }
    let joiner = Joiner { naming: &service.naming, cross: &service.cross, over };
    let joined = match *method == Method::HEAD {
        true => None,
        false => joiner
            .join(&pieces, &missing)
            .map_err(|why| refused::not_joinable(&why.to_string(), !method.is_safe()))?,
    };
    let (site, lead) =
        done.iter().find(|(_, answer)| answer.content.json().is_some()).unwrap_or(first);
    let mut response = answer(lead, joined.as_ref());
    let headers = response.headers_mut();
    if let Some(renaming) = over.renaming_back(site) {
        renaming.in_headers(headers);
    }
    let fine = heard.iter().filter(|heard| is_fine(heard)).map(|heard| &heard.site);
    name(headers, SITE, fine);
    name(headers, INCOMPLETE, missing.iter().map(|missing| &missing.site));
    Ok(response)
}

/// Nobody did it. What the services say of that is the answer, if they all say something.
fn none_done(
    service: &LocalService,
    heard: &[SiteResult],
    missing: &[Missing],
    over: &Over,
) -> Result<Response<Returned>, ProxyRefusal> {
    let never =
        |heard: &SiteResult| matches!(heard.outcome, AskOutcome::Not(_, Fate::NeverArrived));
    let nobody = || refused::nobody(missing, heard.iter().all(never));
    let said: Option<Vec<(&SiteId, &SiteAnswer)>> =
        heard.iter().map(|heard| Some((&heard.site, heard.answer()?))).collect();
    let said = said.ok_or_else(nobody)?;
    // That something is not there says less than why it could not be done.
    let other = said.iter().find(|(_, answer)| answer.head.status != StatusCode::NOT_FOUND);
    let (site, said) = other.or(said.first()).ok_or_else(nobody)?;
    let renaming = over.renaming_back(site);
    let mut response = match &said.content {
        AnswerContent::Nothing => answer(said, None),
        AnswerContent::Json(body) => {
            let mut body = body.clone();
            if let Some(renaming) = renaming {
                service.naming.rename(&mut body, renaming);
            }
            answer(said, Some(&body))
        }
        AnswerContent::Other(bytes, _) => {
            let mut response = answer(said, None);
            *response.body_mut() = Either::Right(Body::new(Full::new(bytes.clone())));
            response
        }
    };
    let headers = response.headers_mut();
    if let Some(renaming) = renaming {
        renaming.in_headers(headers);
    }
    if let Some(kind) = said.head.headers.get(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, kind.clone());
    }
    name(headers, SITE, [*site].into_iter());
    Ok(response)
}

/// An answer like that one, with another body.
fn answer(like: &SiteAnswer, body: Option<&Value>) -> Response<Returned> {
    let bytes = body.map(|body| Bytes::from(format!("{body}\n")));
    let mut response = Response::new(Either::Right(Body::empty()));
    *response.status_mut() = like.head.status;
    *response.headers_mut() = like.head.headers.clone();
    for name in OF_ONE_BODY {
        response.headers_mut().remove(name);
    }
    if let Some(bytes) = bytes {
        if response.status() == StatusCode::NO_CONTENT {
            *response.status_mut() = StatusCode::OK;
        }
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        *response.body_mut() = Either::Right(Body::new(Full::new(bytes)));
    }
    response
}

/// Names sites in a header, and nobody else.
fn name<'s>(headers: &mut HeaderMap, header: HeaderName, sites: impl Iterator<Item = &'s SiteId>) {
    headers.remove(&header);
    let names: Vec<_> = sites.map(SiteId::as_str).collect();
    if let (false, Ok(names)) = (names.is_empty(), HeaderValue::try_from(names.join(", "))) {
        headers.insert(header, names);
    }
}
