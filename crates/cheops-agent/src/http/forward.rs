//! Requests that another site answers: the nearest one that holds a resource if this one does not,
//! or the one that is asked for by name.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use cheops_api::paths;
use cheops_core::model::{ResourceId, SiteId};
use cheops_mesh::{PassedOn, TunnelError};
use futures_util::future::join_all;
use http::{Method, StatusCode};

use super::Api;
use super::principal::{self, record};
use super::refusal::HttpRefusal;

/// How long a site may take to say whether it holds a resource.
const ASKING: Duration = Duration::from_secs(3);
/// How long a site that is asked for by name may take to begin its answer.
const ANSWERING: Duration = Duration::from_secs(5);

/// Marks a request that is about this site's own view: it is not passed on.
#[derive(Debug, Clone)]
struct OnlyHere;

/// Who answers a request for some site's view.
pub(super) enum SeenBy {
    /// This site, with the request as it was.
    Here(Request),
    /// The site that was named, with this.
    By(Response),
}

/// Asks the site of that name, if it is another one.
pub(super) async fn seen_at(
    api: &Api,
    at: Option<&str>,
    mut request: Request,
) -> Result<SeenBy, HttpRefusal> {
    let Some(at) = at else { return Ok(SeenBy::Here(request)) };
    if at == api.site.as_str() {
        request.extensions_mut().insert(OnlyHere);
        return Ok(SeenBy::Here(request));
    }
    if request.extensions().get::<PassedOn>().is_some() {
        let detail = format!("a request that was passed on to {} is not for {at}", api.site);
        return Err(HttpRefusal::bad("goes in circles", detail));
    }
    let known = api.peers.sites().find(|site| site.as_str() == at);
    let site = known.ok_or_else(|| {
        HttpRefusal::not_found("no such site", format!("this agent knows no site `{at}`"))
            .hint("/api/v1/sites lists those it knows")
    })?;
    let by = principal::asker(api, request.extensions());
    let request = principal::named(request, api, &by);
    match tokio::time::timeout(ANSWERING, api.peers.pass_on(site, request)).await {
        Ok(Ok(response)) => Ok(SeenBy::By(response)),
        Ok(Err(error @ TunnelError::NoRoom(_))) => Err(error.into()),
        Ok(Err(error)) => Err(HttpRefusal::out_of_reach(&error)),
        Err(_late) => Err(HttpRefusal::too_late(site)),
    }
}

/// Where a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceLocation {
    Here,
    Elsewhere,
}

pub(super) async fn held(api: &Api, id: &ResourceId) -> Result<ResourceLocation, HttpRefusal> {
    let id = id.clone();
    let here = api.driver.ask(move |engine| engine.config(&id).is_some()).await?;
    Ok(if here { ResourceLocation::Here } else { ResourceLocation::Elsewhere })
}

/// Hands the request to the nearest site that holds the resource. A request that was passed on
/// already is not passed on again: it would go round in circles.
pub(super) async fn pass_on(
    api: &Api,
    id: &ResourceId,
    request: Request,
) -> Result<Response, HttpRefusal> {
    if request.extensions().get::<OnlyHere>().is_some() {
        let detail = format!("resource `{id}` is not held at {}", api.site);
        return Err(HttpRefusal::not_found("not held there", detail));
    }
    if request.extensions().get::<PassedOn>().is_some() {
        return Err(HttpRefusal::no_such_resource(id));
    }
    let holder = nearest_holder(api, id).await.ok_or_else(|| HttpRefusal::no_such_resource(id))?;
    let by = principal::asker(api, request.extensions());
    if !request.method().is_safe() {
        let what = if request.method() == Method::DELETE { "a deletion" } else { "a look" };
        record(api, id, &by, &format!("{what}, passed on to {holder}")).await?;
    }
    Ok(api.peers.pass_on(&holder, principal::named(request, api, &by)).await?)
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
    *question.method_mut() = Method::HEAD;
    let answer = tokio::time::timeout(ASKING, api.peers.pass_on(site, question)).await;
    matches!(answer, Ok(Ok(response)) if response.status() == StatusCode::OK)
}
