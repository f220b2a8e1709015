//! Reading commands: run at every site of a resource, not recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use cheops_api as wire;
use cheops_api::paths;
use cheops_core::model::{Outcome, ResourceId, SiteId};
use futures_util::future::join_all;
use http::header::CONTENT_TYPE;

use super::elsewhere;
use super::refusal::Refused;
use super::submit::{json, sites};
use super::wire::exit_code;
use super::{Api, LARGEST_BODY, LONGEST_WAIT, Shared, resource_id};
use crate::peers::PassedOn;

/// How much another site may show: far more than any output limit allows.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// How much longer than the command another site may take to answer.
const ON_THE_WAY: Duration = Duration::from_secs(2);

pub(super) async fn show(
    State(api): State<Shared>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let id = resource_id(&id)?;
    let passed_on = request.extensions().get::<PassedOn>().is_some();
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST_BODY)
        .await
        .map_err(|error| Refused::too_large(error.to_string()))?;
    let show: wire::Show = serde_json::from_slice(&body)
        .map_err(|error| Refused::bad("bad JSON", error.to_string()))?;
    let asked = show.sites.as_deref().map(|text| sites(&api, text)).transpose()?;
    let wanted = id.clone();
    let held = api.driver.ask(move |engine| engine.summary(&wanted)).await?;
    let sites = match (asked, held) {
        (Some(asked), _) if passed_on && asked.iter().any(|site| *site != api.site) => {
            let detail = "a command that was passed on to a site by name runs there only";
            return Err(Refused::bad("goes in circles", detail));
        }
        (Some(asked), _) => asked,
        (None, Some(summary)) => summary.sites,
        (None, None) => {
            let request = Request::from_parts(head, Body::from(body));
            return elsewhere::pass_on(&api, &id, request).await;
        }
    };
    Ok(json(wire::ShowAnswer { sites: at_all(&api, &id, &show, sites).await }))
}

/// Runs the command at each of these sites.
pub(super) async fn at_all(
    api: &Api,
    id: &ResourceId,
    show: &wire::Show,
    sites: BTreeSet<SiteId>,
) -> BTreeMap<String, wire::Shown> {
    let shown = sites.iter().map(async |site| (site.to_string(), at(api, id, show, site).await));
    join_all(shown).await.into_iter().collect()
}

async fn at(api: &Api, id: &ResourceId, show: &wire::Show, site: &SiteId) -> wire::Shown {
    let limit = Duration::from_millis(show.timeout_ms).min(LONGEST_WAIT);
    if *site == api.site {
        return shown(&api.executor.show(id, &show.command, limit).await);
    }
    let asking = tokio::time::timeout(limit + ON_THE_WAY, ask(api, id, show, site)).await;
    match asking {
        Ok(Ok(shown)) => shown,
        Ok(Err(why)) => not_shown(wire::ShowStatus::Unreachable, why),
        Err(_late) => not_shown(wire::ShowStatus::Timeout, "no answer in time".into()),
    }
}

async fn ask(
    api: &Api,
    id: &ResourceId,
    show: &wire::Show,
    site: &SiteId,
) -> Result<wire::Shown, String> {
    let there = wire::Show { sites: Some(site.to_string()), ..show.clone() };
    let body = serde_json::to_vec(&there).map_err(|error| error.to_string())?;
    let request = Request::post(paths::show(id.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .map_err(|error| error.to_string())?;
    let response = api.peers.pass_on(site, request).await.map_err(|error| error.to_string())?;
    let body = axum::body::to_bytes(response.into_body(), LARGEST_ANSWER)
        .await
        .map_err(|error| error.to_string())?;
    let mut answer: wire::ShowAnswer =
        serde_json::from_slice(&body).map_err(|_| String::from_utf8_lossy(&body).into_owned())?;
    answer.sites.remove(site.as_str()).ok_or_else(|| "it showed nothing".to_owned())
}

fn shown(outcome: &Outcome) -> wire::Shown {
    let status = match outcome {
        Outcome::TimedOut { .. } => wire::ShowStatus::Timeout,
        _ if outcome.succeeded() => wire::ShowStatus::Ok,
        _ => wire::ShowStatus::Ko,
    };
    wire::Shown {
        status,
        exit_code: exit_code(outcome),
        output: outcome.text().to_owned(),
        truncated: outcome.is_truncated(),
    }
}

fn not_shown(status: wire::ShowStatus, why: String) -> wire::Shown {
    wire::Shown { status, exit_code: None, output: why, truncated: false }
}
