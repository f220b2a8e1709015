//! Resources over several sites: what their ids say, which this site has seen, and what they are now.

use axum::Json;
use axum::extract::{Path, State};
use cheops_api as wire;
use cheops_core::model::SiteId;
use cheops_proxy::{PartRead, SeenWhole, WholePlace, WholeRead, WholeUnread, parts_of};

use super::SharedApi;
use super::read::{QueryResult, query};
use super::refusal::HttpRefusal;

pub(super) async fn parts(Path(id): Path<String>) -> Result<Json<wire::Cross>, HttpRefusal> {
    let cross = said(&id).ok_or_else(|| no_such_id(&WholeUnread::NoSuchId(id)))?;
    Ok(Json(cross))
}

/// What an id says by itself.
fn said(id: &str) -> Option<wire::Cross> {
    let part = |(site, id): (SiteId, String)| wire::CrossPart { site: site.to_string(), id };
    let parts = parts_of(id)?.into_iter().map(part).collect();
    Some(wire::Cross { id: id.to_owned(), parts })
}

pub(super) async fn seen(State(api): State<SharedApi>) -> Json<Vec<wire::CrossSeen>> {
    let told = |SeenWhole { id, service, collection }| {
        Some(wire::CrossSeen { cross: said(&id)?, service, collection })
    };
    Json(api.proxies.seen_wholes().into_iter().filter_map(told).collect())
}

pub(super) async fn value(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    place: QueryResult<wire::CrossPlace>,
) -> Result<Json<wire::CrossValue>, HttpRefusal> {
    let place = match query(place)? {
        wire::CrossPlace { service: None, collection: None } => None,
        wire::CrossPlace { service: Some(service), collection: Some(collection) } => {
            Some(WholePlace { service, collection })
        }
        _ => {
            let detail = "`service` and `collection` come together, or neither";
            return Err(HttpRefusal::bad("bad query", detail));
        }
    };
    let read = api.proxies.read_whole(&id, place).await.map_err(|why| unread(&why))?;
    let WholeRead { place: WholePlace { service, collection }, whole, parts } = read;
    let parts = parts.into_iter().map(part).collect();
    Ok(Json(wire::CrossValue { id, service, collection, whole, parts }))
}

fn part(PartRead { site, id, value }: PartRead) -> wire::CrossPartValue {
    let (value, why_not) = match value {
        Ok(value) => (Some(value), None),
        Err(why) => (None, Some(why)),
    };
    wire::CrossPartValue { site: site.to_string(), id, value, why_not }
}

fn no_such_id(why: &WholeUnread) -> HttpRefusal {
    HttpRefusal::not_found("no such id", why.to_string())
        .hint("such ids begin with `cross-`, and services answer with them")
}

fn unread(why: &WholeUnread) -> HttpRefusal {
    match why {
        WholeUnread::NoSuchId(_) => no_such_id(why),
        WholeUnread::PlaceUnknown(_) => HttpRefusal::not_found("not seen here", why.to_string())
            .hint("say `service` and `collection`, or ask the service for it by this site's proxy"),
        WholeUnread::NoSuchService(_) | WholeUnread::NoSuchPath(_) => {
            HttpRefusal::bad("no such place", why.to_string())
        }
        WholeUnread::NotTaken(_) => HttpRefusal::forbidden(why.to_string()),
    }
}
