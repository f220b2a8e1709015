//! Looking at sites and at one resource, from here or from where another site stands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::config::Config;
use cheops_core::engine::{
    DecidedByPrograms, Engine, OperationsAsked, PageOrder, SiteStatus, SiteView,
};
use cheops_core::model::{Operation, OperationId, ResourceId};
use cheops_core::resolve::{OperationSet, resolve};
use http::StatusCode;

use super::forward::{self, ResourceLocation, SeenBy};
use super::history;
use super::list::page_size;
use super::refusal::HttpRefusal;
use super::wire as on_wire;
use super::{Api, SharedApi, resource_id};

pub(super) type QueryResult<T> = Result<Query<T>, QueryRejection>;

pub(super) fn query<T>(asked: QueryResult<T>) -> Result<T, HttpRefusal> {
    let Query(query) = asked.map_err(|error| HttpRefusal::bad_query(&error))?;
    Ok(query)
}

pub(super) async fn sites(State(api): State<SharedApi>) -> Result<Json<wire::Sites>, HttpRefusal> {
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
    let services = Some(api.services.clone());
    Ok(Json(wire::Sites { me: api.site.to_string(), sites, version, demo, services }))
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
    State(api): State<SharedApi>,
    Path(site): Path<String>,
) -> Result<Response, HttpRefusal> {
    let mut question = Request::new(Body::empty());
    *question.uri_mut() = http::Uri::from_static(wire::paths::SITES);
    match forward::seen_at(&api, Some(&site), question).await? {
        SeenBy::By(response) => Ok(response),
        SeenBy::Here(_) => Ok(sites(State(api)).await?.into_response()),
    }
}

pub(super) async fn resource(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    seen: QueryResult<wire::Seen>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let request = match forward::seen_at(&api, query(seen)?.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let wanted = id.clone();
    let look = move |engine: &Engine| {
        let (outline, list) = (engine.outline(&wanted)?, engine.list(&wanted)?);
        Some((engine.summary(&wanted)?, outline, list, behind(engine, &wanted)))
    };
    match api.driver.ask(look).await? {
        Some((summary, outline, list, behind)) => {
            let list = list.ids().map(OperationId::to_string).collect();
            let resource = on_wire::resource(&api.site, &summary, &outline, list, behind);
            Ok(Json(resource).into_response())
        }
        None => forward::pass_on(&api, &id, request).await,
    }
}

/// How many entries of a resource each other site is not known to know, where there are some.
pub(super) fn behind(engine: &Engine, id: &ResourceId) -> BTreeMap<String, u64> {
    let sites = engine.holding(id).map(|held| held.sites).unwrap_or_default();
    let others = sites.iter().filter(|site| **site != engine.me().site);
    let behind = others.filter_map(|site| {
        let entries = engine.behind(id, site)?;
        (entries > 0).then(|| (site.to_string(), entries))
    });
    behind.collect()
}

/// Says whether the resource is held here and for whom, to an agent that needs no more of it. One
/// that is not held is no error: an agent that does not know the question has no such page.
pub(super) async fn holding(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
) -> Result<Json<wire::ResourceHolding>, HttpRefusal> {
    let id = resource_id(&id)?;
    let held = api.driver.ask(move |engine| engine.holding(&id)).await?;
    Ok(Json(on_wire::holding(held.as_ref())))
}

/// Says whether the resource is held here, and nothing of it.
pub(super) async fn is_held(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpRefusal> {
    let id = resource_id(&id)?;
    match forward::held(&api, &id).await? {
        ResourceLocation::Here => Ok(StatusCode::OK),
        ResourceLocation::Elsewhere => Ok(StatusCode::NOT_FOUND),
    }
}

pub(super) async fn operations(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    cursor: QueryResult<wire::Cursor>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let cursor = query(cursor)?;
    let id = resource_id(&id)?;
    let request = match forward::seen_at(&api, cursor.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let (wanted, limit) = (id.clone(), page_size(cursor.limit));
    let order = match cursor.latest {
        Some(true) => PageOrder::LatestFirst,
        _ => PageOrder::OldestFirst,
    };
    let after = cursor.after.as_deref().map(operation_id).transpose()?;
    let page = move |engine: &Engine| {
        let asked = OperationsAsked { order, after: after.as_ref(), most: limit + 1 };
        engine.operations(&wanted, &asked)
    };
    let Some(mut views) = api.driver.ask(page).await? else {
        return forward::pass_on(&api, &id, request).await;
    };
    let has_more = views.len() > limit;
    views.truncate(limit);
    let items: Vec<_> = views.iter().map(on_wire::operation).collect();
    let next = items.last().filter(|_| has_more).map(|last| last.id.clone());
    Ok(Json(wire::Page { items, next }).into_response())
}

pub(super) async fn operation(
    State(api): State<SharedApi>,
    Path((id, operation)): Path<(String, String)>,
    seen: QueryResult<wire::Seen>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (id, named) = (resource_id(&id)?, operation_id(&operation)?);
    let request = match forward::seen_at(&api, query(seen)?.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let wanted = id.clone();
    let look = move |engine: &Engine| {
        engine.config(&wanted).map(|_held| engine.operation_view(&wanted, &named))
    };
    let past = operation_id(&operation)?;
    match api.driver.ask(look).await? {
        Some(Some(view)) => Ok(Json(on_wire::operation(&view)).into_response()),
        Some(None) => match history::pruned_operation(&api, &id, &past).await? {
            Some(past) => Ok(Json(past).into_response()),
            None => Err(HttpRefusal::not_found(
                "no such operation",
                format!(
                    "resource `{id}` has no operation `{operation}`, or it is not kept any more"
                ),
            )
            .hint(format!("`cheops history {id}` tells of those that are kept"))),
        },
        None => forward::pass_on(&api, &id, request).await,
    }
}

pub(super) fn operation_id(text: &str) -> Result<OperationId, HttpRefusal> {
    text.parse().map_err(|_| {
        HttpRefusal::bad("bad operation", format!("`{text}` is not the name of an operation"))
            .hint("it looks like `paris-1f00c0ffee.7`")
    })
}

pub(super) async fn explain(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    seen: QueryResult<wire::Seen>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let request = match forward::seen_at(&api, query(seen)?.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let wanted = id.clone();
    let found = api
        .driver
        .ask(move |engine| Some((engine.history(&wanted)?, engine.decided_by_programs(&wanted))))
        .await?;
    let Some(((operations, config), programs)) = found else {
        return forward::pass_on(&api, &id, request).await;
    };
    // With many operations it takes long, and the engine's thread has other work.
    let past = history::past_operations(&api, &id).await?;
    let explaining = tokio::task::spawn_blocking(move || explained(&id, &operations, &config));
    let mut explanation = explaining.await.map_err(|_| crate::driver::Stopped)?;
    if let Some(decided) = programs {
        tell_what_programs_decided(&mut explanation, &decided);
    }
    Ok(Json(wire::Explanation {
        past: past.operations.iter().map(history::PastOperation::explained).collect(),
        past_more: past.more,
        ..explanation
    })
    .into_response())
}

/// What is run in the place of the list, and what is left out of it.
fn tell_what_programs_decided(told: &mut wire::Explanation, decided: &DecidedByPrograms) {
    told.list = decided.steps().map(|step| step.operation.to_string()).collect();
    for (operation, out) in decided.left_out() {
        let operation = operation.to_string();
        told.decisions.push(wire::DecidedPair {
            sentence: format!("{operation}: {out}"),
            operation,
            winner: Some(out.by.to_string()),
            counts: false,
            entry: None,
        });
    }
    for step in decided.steps() {
        let (operation, Some(command)) = (step.operation.to_string(), step.command) else {
            continue;
        };
        told.decisions.push(wire::DecidedPair {
            sentence: format!("{operation}: a program has `{command}` run in its place"),
            winner: Some(operation.clone()),
            operation,
            counts: true,
            entry: None,
        });
    }
}

fn explained(id: &ResourceId, operations: &OperationSet, config: &Config) -> wire::Explanation {
    let resolved = resolve(operations, config);
    let explanation = cheops_core::resolve::explain(operations, config);
    let decided = |decision: cheops_core::resolve::ResolutionDecision| wire::DecidedPair {
        operation: decision.operation,
        winner: decision.winner,
        counts: decision.counts,
        entry: decision.entry,
        sentence: decision.sentence,
    };
    let told = |operation: &Arc<Operation>| {
        on_wire::explained(operation, resolved.left_out.get(&operation.id))
    };
    wire::Explanation {
        resource: id.to_string(),
        operations: operations.in_order(None).map(told).collect(),
        list: resolved.list.iter().map(OperationId::to_string).collect(),
        decisions: explanation.decisions.into_iter().map(decided).collect(),
        past: Vec::new(),
        past_more: false,
    }
}
