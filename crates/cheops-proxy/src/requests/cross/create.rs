//! A resource made over several sites: at all of them, or at none.

use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::Fate;
use futures_util::future::join_all;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::super::local_service::LocalService;
use super::super::refusal::ProxyRefusal;
use super::super::run::again;
use super::super::{ProxiedRequest, Proxies};
use super::ask::{AskOutcome, SiteQuestion, SiteResult};
use super::id::{SitePart, WholeOrigin, WholeResource};
use super::join::Missing;
use super::refused;
use crate::id_directory::encoded;

/// What a `POST` came to.
pub(super) enum Made {
    /// A resource, which has an id now.
    Whole(WholeResource),
    /// Nothing that has an id: it was no create.
    Nothing,
}

/// What became of one site's part.
#[derive(Debug)]
enum PartState {
    Made(String),
    /// It was made, but nobody knows its name.
    Nameless,
    NotMade,
    /// No answer came.
    Unknown,
}

impl Proxies {
    /// Looks at what the sites made. If one of them made nothing, what the others made is deleted
    /// again.
    pub(super) async fn made(
        &self,
        service: &LocalService,
        asked: &ProxiedRequest,
        heard: &[SiteResult],
    ) -> Result<Made, ProxyRefusal> {
        let states: Vec<PartState> = heard.iter().map(|heard| state(service, heard)).collect();
        if states.iter().all(|state| matches!(state, PartState::Nameless)) {
            return Ok(Made::Nothing);
        }
        let named = heard.iter().zip(&states).map(|(heard, state)| match state {
            PartState::Made(id) => Some(SitePart { site: heard.site.clone(), id: id.clone() }),
            _ => None,
        });
        let place = WholeOrigin::new(service.name(), asked.head.uri.path());
        if let Some(whole) =
            named.collect::<Option<Vec<_>>>().and_then(|parts| self.0.whole_ids.make(&place, parts))
        {
            return Ok(Made::Whole(whole));
        }
        let undone = join_all(heard.iter().zip(&states).map(async |(heard, state)| {
            let said = match state {
                PartState::Made(id) => match self.undo(service, asked, &heard.site, id).await {
                    Ok(()) => json!({"state": "undone", "id": id}),
                    Err(why) => json!({"state": "left", "id": id, "detail": why}),
                },
                PartState::Nameless => json!({"state": "left", "detail": NAMELESS}),
                PartState::NotMade => {
                    json!({"state": "not made", "detail": heard.missing().detail})
                }
                PartState::Unknown => json!({"state": "unknown", "detail": heard.missing().detail}),
            };
            (heard.site.to_string(), said)
        }));
        let sites: Map<String, Value> = undone.await.into_iter().collect();
        let Some((why, status)) = why(heard, &states) else { return Ok(Made::Nothing) };
        let listed = serde_json::to_string(&sites).unwrap_or_default();
        tracing::warn!(
            service = service.name(), site = %why.site, sites = listed,
            "a resource over several sites was not made at all of them"
        );
        Err(refused::not_created(&why, status, sites))
    }

    /// Deletes a part; one that is not there is as good as deleted.
    async fn undo(
        &self,
        service: &LocalService,
        asked: &ProxiedRequest,
        site: &SiteId,
        id: &str,
    ) -> Result<(), String> {
        let path = format!("{}/{}", asked.head.uri.path().trim_end_matches('/'), encoded(id));
        let path = PathAndQuery::try_from(path).map_err(|error| error.to_string())?;
        let mut delete = again(asked);
        delete.head.method = Method::DELETE;
        delete.head.headers.remove(CONTENT_TYPE);
        let question = SiteQuestion { site: site.clone(), path, body: Bytes::new() };
        let heard = self.ask_all(service, &delete, vec![question]).await;
        match heard.first() {
            Some(heard) if heard.done().is_some() || is_gone(heard) => Ok(()),
            Some(heard) => Err(heard.missing().detail),
            None => Err("nobody was asked".to_owned()),
        }
    }
}

const NAMELESS: &str = "the answer does not say which id the part has";

/// Whether the service says that there is no such thing.
pub(super) fn is_gone(heard: &SiteResult) -> bool {
    heard.answer().is_some_and(|answer| {
        matches!(answer.head.status, StatusCode::NOT_FOUND | StatusCode::GONE)
    })
}

fn state(service: &LocalService, heard: &SiteResult) -> PartState {
    let Some(answer) = heard.done() else {
        return match &heard.outcome {
            AskOutcome::Not(_, Fate::Unknown) => PartState::Unknown,
            _ => PartState::NotMade,
        };
    };
    let status = answer.head.status;
    match service.naming.local_id(status, &answer.head.headers, answer.content.json()) {
        Some(id) => PartState::Made(id),
        None => PartState::Nameless,
    }
}

/// The first that went wrong, and the status that says so best.
fn why(heard: &[SiteResult], states: &[PartState]) -> Option<(Missing, StatusCode)> {
    let mut all = heard.iter().zip(states);
    let wrong = all.clone().find(|(_, state)| !matches!(state, PartState::Made(_)));
    let (heard, state) = wrong.or_else(|| all.next())?;
    let detail = match state {
        PartState::NotMade | PartState::Unknown => return Some((heard.missing(), heard.status())),
        PartState::Nameless => NAMELESS,
        PartState::Made(_) => "the ids of the parts cannot be put together",
    };
    let missing = Missing { detail: detail.to_owned(), ..heard.missing() };
    Some((missing, StatusCode::BAD_GATEWAY))
}
