//! What would come of something, told before anything is written.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use cheops_api as wire;
use cheops_api::paths;
use cheops_core::causes;
use cheops_core::engine::{Forecast, Submission};
use cheops_core::model::{Asker, ResourceId, SiteId};
use cheops_mesh::PassedOn;
use futures_util::future::join_all;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::forward::{self, ResourceLocation, SeenBy};
use super::metered::whole;
use super::read::{QueryResult, query};
use super::refusal::HttpRefusal;
use super::submit::{self, Handed, elsewhere, json, parse};
use super::wire as on_wire;
use super::{Api, SharedApi, decide, principal, resource_id};

/// How long another site may take to say what it would make of it.
const ASKING: Duration = Duration::from_secs(5);
/// The longest answer of another site that is read: most of it is the list, which may be long.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// `POST .../dry-run`: nothing is written or run.
pub(super) async fn dry_run(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    asked: QueryResult<wire::DryRunAsked>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let asked = query(asked)?;
    let by = principal::asker(&api, request.extensions());
    let is_passed_on = request.extensions().get::<PassedOn>().is_some();
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let dry_run: wire::DryRun = parse(&body)?;
    let request = Request::from_parts(head, Body::from(body.clone()));
    let at = match &dry_run {
        wire::DryRun::Decide(decide) => decide.site.as_deref(),
        _ => None,
    };
    let request = match forward::seen_at(&api, at, request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let is_new = matches!(&dry_run, wire::DryRun::Submit(submit) if submit.sites.is_some());
    if !is_new && !is_passed_on && forward::held(&api, &id).await? == ResourceLocation::Elsewhere {
        return forward::pass_on(&api, &id, request).await;
    }
    // What is decided at one site by name is that site's alone, and letting be makes no site run anything.
    let is_alone = asked.alone == Some(true)
        || matches!(&dry_run, wire::DryRun::Decide(decide) if decide.site.is_some()
            || decide.decision != wire::Decision::Undo);
    let asker = by.clone();
    let forecast = match dry_run {
        wire::DryRun::Undo(operation) => {
            let decision = wire::Decision::Undo;
            let undo = wire::TriedDecision { operation, decision, site: None };
            decide::forecast(&api, &id, undo).await?
        }
        wire::DryRun::Decide(asked) => decide::forecast(&api, &id, asked).await?,
        wire::DryRun::Delete(delete) => {
            let submission = submit::deletion(id.clone(), delete, by)?;
            forecast(&api, submission).await?
        }
        wire::DryRun::Submit(mut submit) => {
            if let wire::Action::Http(http) = &mut submit.action {
                // It is not sent, so it need not be here.
                http.body = None;
            }
            let handed = Handed::new(&api, *submit, Vec::new(), Vec::new(), by)?;
            let (submission, _) = submit::submission(&api, &id, &handed).await?;
            forecast(&api, submission).await?
        }
    };
    let others = match is_alone {
        true => Vec::new(),
        false => others(&api, &id, &body, &forecast, &asker).await,
    };
    Ok(json(wire::Forecast { others, ..on_wire::forecast(&api.site, &id, &forecast) }))
}

/// What the other sites would make of it, as far as they are connected.
async fn others(
    api: &Api,
    id: &ResourceId,
    body: &Bytes,
    forecast: &Forecast,
    by: &Asker,
) -> Vec<wire::SiteForecast> {
    let sites = forecast.sites.difference(&forecast.not_heard).filter(|site| **site != api.site);
    let asking = sites.map(async |site| {
        let asking = tokio::time::timeout(ASKING, ask(api, id, body, site, by)).await;
        let late = || (wire::WouldFollow::Unknown, Some("it did not answer in time".to_owned()));
        let (would, why) = asking.unwrap_or_else(|_late| late());
        wire::SiteForecast { site: site.to_string(), would, why }
    });
    join_all(asking).await
}

async fn ask(
    api: &Api,
    id: &ResourceId,
    body: &Bytes,
    site: &SiteId,
    by: &Asker,
) -> (wire::WouldFollow, Option<String>) {
    use wire::WouldFollow::{Diverge, Follow, Refuse, Unknown};
    let path = format!("{}?alone=true", paths::dry_run(id.as_str()));
    let request =
        Request::post(path).header(CONTENT_TYPE, "application/json").body(Body::from(body.clone()));
    let request = match request {
        Ok(request) => principal::named(request, api, by),
        Err(error) => return (Unknown, Some(causes(&error))),
    };
    let response = match api.peers.pass_on(site, request).await {
        Ok(response) => response,
        Err(error) => return (Unknown, Some(causes(&error))),
    };
    let status = response.status();
    let answer = match axum::body::to_bytes(response.into_body(), LARGEST_ANSWER).await {
        Ok(answer) => answer,
        Err(error) => return (Unknown, Some(causes(&error))),
    };
    if status == StatusCode::OK {
        return match serde_json::from_slice::<wire::Forecast>(&answer) {
            Ok(wire::Forecast { cannot_repair: None, .. }) => (Follow, None),
            Ok(wire::Forecast { cannot_repair, .. }) => (Diverge, cannot_repair),
            Err(error) => (Unknown, Some(error.to_string())),
        };
    }
    let why = serde_json::from_slice::<wire::Problem>(&answer).map(|problem| problem.detail);
    let why = why.unwrap_or_else(|_other| format!("it answered {status}"));
    // One that does not have it yet, or has other work, says nothing about what it would do.
    let is_refused = matches!(status, StatusCode::BAD_REQUEST | StatusCode::CONFLICT);
    (if is_refused { Refuse } else { Unknown }, Some(why))
}

async fn forecast(api: &Api, submission: Submission) -> Result<Forecast, HttpRefusal> {
    let basis = api.driver.ask_at(move |engine, now| engine.forecast_basis(&submission, now));
    let basis = basis.await??;
    elsewhere(move || basis.forecast()).await
}
