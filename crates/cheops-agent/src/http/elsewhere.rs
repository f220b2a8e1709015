//! Requests about resources that this site does not hold: the nearest site that does answers them.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use cheops_api::paths;
use cheops_core::model::{ResourceId, SiteId};
use futures_util::future::join_all;
use http::StatusCode;

use super::Api;
use super::refusal::Refused;
use crate::peers::PassedOn;

/// How long a site may take to say whether it holds a resource.
const ASKING: std::time::Duration = std::time::Duration::from_secs(3);

/// Where a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Here,
    Elsewhere,
}

pub(super) async fn held(api: &Api, id: &ResourceId) -> Result<Held, Refused> {
    let id = id.clone();
    let here = api.driver.ask(move |engine| engine.config(&id).is_some()).await?;
    Ok(if here { Held::Here } else { Held::Elsewhere })
}

/// Hands the request to the nearest site that holds the resource. A request that was passed on
/// already is not passed on again: it would go round in circles.
pub(super) async fn pass_on(
    api: &Api,
    id: &ResourceId,
    request: Request,
) -> Result<Response, Refused> {
    if request.extensions().get::<PassedOn>().is_some() {
        return Err(Refused::no_such_resource(id));
    }
    let holder = nearest_holder(api, id).await.ok_or_else(|| Refused::no_such_resource(id))?;
    Ok(api.peers.pass_on(&holder, request).await?)
}

/// The nearest site that says it holds the resource.
pub(super) async fn nearest_holder(api: &Api, id: &ResourceId) -> Option<SiteId> {
    let near = api.peers.nearest(api.peers.sites());
    let asked = join_all(near.iter().map(|site| holds(api, site, id))).await;
    near.into_iter().zip(asked).find(|(_, holds)| *holds).map(|(site, _)| site)
}

async fn holds(api: &Api, site: &SiteId, id: &ResourceId) -> bool {
    let mut question = Request::new(Body::empty());
    let Ok(uri) = paths::resource(id.as_str()).parse() else { return false };
    *question.uri_mut() = uri;
    let answer = tokio::time::timeout(ASKING, api.peers.pass_on(site, question)).await;
    matches!(answer, Ok(Ok(response)) if response.status() == StatusCode::OK)
}
