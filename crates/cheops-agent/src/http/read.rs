//! Looking at sites and at one resource, from here or from where another site stands.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::engine::{Engine, SiteStatus, SiteView};
use cheops_core::model::{OperationId, ResourceId};

use super::elsewhere::{self, Held, Seen};
use super::list::page_size;
use super::refusal::Refused;
use super::wire as on_wire;
use super::{Api, Shared, resource_id};

type Asked<T> = Result<Query<T>, QueryRejection>;

fn query<T>(asked: Asked<T>) -> Result<T, Refused> {
    let Query(query) = asked.map_err(|error| Refused::bad_query(&error))?;
    Ok(query)
}

pub(super) async fn sites(State(api): State<Shared>) -> Result<Json<wire::Sites>, Refused> {
    let asked = std::time::Instant::now();
    let (views, held, now_ms) = api
        .driver
        .ask_at(|engine, now| (engine.sites(), engine.resources().len(), now.mono_ms))
        .await?;
    let myself = wire::Site {
        site: api.site.to_string(),
        state: wire::SiteState::Myself,
        since: None,
        round_trip_ms: None,
        shared: held as u64,
        behind_on: 0,
        entries_behind: None,
        address: api.advertise.clone(),
        problem: None,
    };
    let others = views.iter().map(|view| site(&api, view, now_ms, asked.elapsed()));
    let mut sites: Vec<_> = std::iter::once(myself).chain(others).collect();
    sites.sort_by(|a, b| a.site.cmp(&b.site));
    let version = env!("CARGO_PKG_VERSION").into();
    let demo = api.demo.is_some();
    Ok(Json(wire::Sites { me: api.site.to_string(), sites, version, demo }))
}

fn site(api: &Api, view: &SiteView, now_ms: u64, since_then: Duration) -> wire::Site {
    let status = api.peers.status(&view.site);
    let (state, since_ms) = match view.status {
        SiteStatus::NeverHeard => (wire::SiteState::NeverHeard, None),
        SiteStatus::Up { since_ms } => (wire::SiteState::Up, Some(since_ms)),
        SiteStatus::Unknown { since_ms } => (wire::SiteState::Unknown, Some(since_ms)),
    };
    let state = if api.peers.is_set_apart(&view.site) { wire::SiteState::SetApart } else { state };
    let ago = |at_ms: u64| Duration::from_millis(now_ms.saturating_sub(at_ms)) + since_then;
    wire::Site {
        site: view.site.to_string(),
        state,
        since: since_ms.map(|at_ms| on_wire::time_ago(ago(at_ms))),
        round_trip_ms: status
            .as_ref()
            .and_then(|status| status.round_trip)
            .filter(|_| state == wire::SiteState::Up)
            .map(|round_trip| round_trip.as_secs_f64() * 1000.0),
        shared: view.shared as u64,
        behind_on: view.behind_on as u64,
        entries_behind: None,
        address: status.as_ref().map(|status| status.address.clone()),
        problem: status.and_then(|status| status.problem),
    }
}

pub(super) async fn sites_seen_by(
    State(api): State<Shared>,
    Path(site): Path<String>,
) -> Result<Response, Refused> {
    let mut question = Request::new(Body::empty());
    *question.uri_mut() = http::Uri::from_static(wire::paths::SITES);
    match elsewhere::seen_at(&api, Some(&site), question).await? {
        Seen::By(response) => Ok(response),
        Seen::Here(_) => Ok(sites(State(api)).await?.into_response()),
    }
}

pub(super) async fn resource(
    State(api): State<Shared>,
    Path(id): Path<String>,
    seen: Asked<wire::Seen>,
    request: Request,
) -> Result<Response, Refused> {
    let id = resource_id(&id)?;
    let request = match elsewhere::seen_at(&api, query(seen)?.at.as_deref(), request).await? {
        Seen::By(response) => return Ok(response),
        Seen::Here(request) => request,
    };
    let wanted = id.clone();
    let found = api.driver.ask(move |engine| describe(engine, &wanted)).await?;
    match found {
        Some(resource) => Ok(Json(resource).into_response()),
        None => elsewhere::pass_on(&api, &id, request).await,
    }
}

fn describe(engine: &Engine, id: &ResourceId) -> Option<wire::Resource> {
    let (summary, view) = (engine.summary(id)?, engine.resource(id)?);
    let others = view.sites.iter().filter(|site| **site != engine.me().site);
    let behind = others.filter_map(|site| {
        let entries = engine.behind(id, site)?;
        (entries > 0).then(|| (site.to_string(), entries))
    });
    Some(on_wire::resource(engine, &summary, &view, behind.collect()))
}

pub(super) async fn operations(
    State(api): State<Shared>,
    Path(id): Path<String>,
    cursor: Asked<wire::Cursor>,
    request: Request,
) -> Result<Response, Refused> {
    let cursor = query(cursor)?;
    let id = resource_id(&id)?;
    let request = match elsewhere::seen_at(&api, cursor.at.as_deref(), request).await? {
        Seen::By(response) => return Ok(response),
        Seen::Here(request) => request,
    };
    if elsewhere::held(&api, &id).await? == Held::Elsewhere {
        return elsewhere::pass_on(&api, &id, request).await;
    }
    let (wanted, limit) = (id.clone(), page_size(cursor.limit));
    let view = api.driver.ask(move |engine| engine.resource(&wanted)).await?;
    let Some(view) = view else { return Err(Refused::no_such_resource(&id)) };
    let after = cursor.after.as_deref();
    let mut operations = view.operations.iter().peekable();
    if let Some(after) = after {
        // A cursor that is no longer known has been pruned: everything kept comes after it.
        let known = view.operations.iter().any(|view| view.id().to_string() == after);
        while known && operations.next().is_some_and(|view| view.id().to_string() != after) {}
    }
    let items: Vec<_> = operations.by_ref().take(limit).map(on_wire::operation).collect();
    let next = operations.peek().and(items.last()).map(|last| last.id.clone());
    Ok(Json(wire::Page { items, next }).into_response())
}

pub(super) async fn explain(
    State(api): State<Shared>,
    Path(id): Path<String>,
    seen: Asked<wire::Seen>,
    request: Request,
) -> Result<Response, Refused> {
    let id = resource_id(&id)?;
    let request = match elsewhere::seen_at(&api, query(seen)?.at.as_deref(), request).await? {
        Seen::By(response) => return Ok(response),
        Seen::Here(request) => request,
    };
    let wanted = id.clone();
    let found = api
        .driver
        .ask(move |engine| Some((engine.history(&wanted)?, engine.resource(&wanted)?)))
        .await?;
    let Some(((operations, config), view)) = found else {
        return elsewhere::pass_on(&api, &id, request).await;
    };
    // With many concurrent operations it takes long, and the engine's thread has other work.
    let explaining =
        tokio::task::spawn_blocking(move || cheops_core::resolve::explain(&operations, &config));
    let explanation = explaining.await.map_err(|_| crate::driver::Stopped)?;
    let decided = |decision: cheops_core::resolve::Decision| wire::DecidedPair {
        operation: decision.operation,
        winner: decision.winner,
        counts: decision.counts,
        entry: decision.entry,
        sentence: decision.sentence,
    };
    let explanation = wire::Explanation {
        resource: id.to_string(),
        operations: view.operations.iter().map(on_wire::explained).collect(),
        list: view.list.iter().map(OperationId::to_string).collect(),
        decisions: explanation.decisions.into_iter().map(decided).collect(),
    };
    Ok(Json(explanation).into_response())
}
