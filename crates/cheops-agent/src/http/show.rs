//! Reading commands: run at every site of a resource, not recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use cheops_api as wire;
use cheops_api::paths;
use cheops_core::causes;
use cheops_core::model::{Asker, Outcome, ResourceId, SiteId};
use cheops_mesh::PassedOn;
use futures_util::future::join_all;
use http::header::CONTENT_TYPE;

use super::forward;
use super::metered::whole;
use super::principal;
use super::refusal::{HttpRefusal, TOO_MUCH};
use super::submit::{can_name, json, parse, sites};
use super::wire::exit_code;
use super::{Api, LONGEST_WAIT, SharedApi, resource_id};

/// How much another site may show: far more than any output limit allows.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;
/// How much longer than the command another site may take to answer.
const ON_THE_WAY: Duration = Duration::from_secs(2);

pub(super) async fn show(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let passed_on = request.extensions().get::<PassedOn>().is_some();
    let by = principal::asker(&api, request.extensions());
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let show: wire::Show = parse(&body)?;
    let asked = show.sites.as_deref().map(|text| sites(&api, text)).transpose()?;
    let wanted = id.clone();
    let held = api.driver.ask(move |engine| engine.summary(&wanted)).await?;
    let sites = match (asked, held) {
        (Some(asked), _) if passed_on && asked.iter().any(|site| *site != api.site) => {
            let detail = "a command that was passed on to a site by name runs there only";
            return Err(HttpRefusal::bad("goes in circles", detail));
        }
        (Some(asked), _) => asked,
        (None, Some(summary)) => summary.sites,
        (None, None) => {
            let request = Request::from_parts(head, Body::from(body));
            return forward::pass_on(&api, &id, request).await;
        }
    };
    Ok(json(wire::ShowAnswer { sites: at_all(&api, &id, &show, sites, &by).await? }))
}

/// Why a site showed nothing.
enum Unshown {
    /// It runs as many reading commands as it may.
    Crowded(String),
    Away(String),
    Late,
}

/// Runs the command at each of these sites. Refused only where no site had room for it: what some
/// of them show is worth having.
pub(super) async fn at_all(
    api: &Api,
    id: &ResourceId,
    show: &wire::Show,
    sites: BTreeSet<SiteId>,
    by: &Asker,
) -> Result<BTreeMap<String, wire::Shown>, HttpRefusal> {
    can_name(id, &show.command)?;
    if sites.contains(&api.site) {
        // Before it runs: a record that is missing could not be noticed.
        principal::record(api, id, by, &format!("show: {}", show.command)).await?;
    }
    let asking =
        sites.iter().map(async |site| (site.to_string(), at(api, id, show, site, by).await));
    let answers = join_all(asking).await;
    let crowded = answers.iter().map(|(_, answer)| match answer {
        Err(Unshown::Crowded(why)) => Some(why.as_str()),
        _ => None,
    });
    match crowded.collect::<Option<Vec<_>>>() {
        Some(whys) if !whys.is_empty() => Err(HttpRefusal::crowded(whys.join("; "))),
        _ => Ok(answers.into_iter().map(|(site, answer)| (site, told(answer))).collect()),
    }
}

async fn at(
    api: &Api,
    id: &ResourceId,
    show: &wire::Show,
    site: &SiteId,
    by: &Asker,
) -> Result<wire::Shown, Unshown> {
    let limit = Duration::from_millis(show.timeout_ms).min(LONGEST_WAIT);
    if *site == api.site {
        let ran = api.executor.show(id, &show.command, limit).await;
        let crowded = |why| Unshown::Crowded(format!("at site `{site}`, {why}"));
        return ran.map(|outcome| shown(&outcome)).map_err(crowded);
    }
    let asking = tokio::time::timeout(limit + ON_THE_WAY, ask(api, id, show, site, by)).await;
    asking.unwrap_or(Err(Unshown::Late))
}

async fn ask(
    api: &Api,
    id: &ResourceId,
    show: &wire::Show,
    site: &SiteId,
    by: &Asker,
) -> Result<wire::Shown, Unshown> {
    let there = wire::Show { sites: Some(site.to_string()), ..show.clone() };
    let body = serde_json::to_vec(&there).map_err(|error| away(&error))?;
    let request = Request::post(paths::show(id.as_str()))
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .map_err(|error| away(&error))?;
    let request = principal::named(request, api, by);
    let response = api.peers.pass_on(site, request).await.map_err(|error| away(&error))?;
    let body = axum::body::to_bytes(response.into_body(), LARGEST_ANSWER)
        .await
        .map_err(|error| away(&error))?;
    let Ok(mut answer) = serde_json::from_slice::<wire::ShowAnswer>(&body) else {
        return Err(refused_there(&body));
    };
    let nothing = || Unshown::Away("it showed nothing".to_owned());
    answer.sites.remove(site.as_str()).ok_or_else(nothing)
}

fn away(error: &dyn std::error::Error) -> Unshown {
    Unshown::Away(causes(error))
}

/// What another site said instead of an answer.
fn refused_there(body: &[u8]) -> Unshown {
    match serde_json::from_slice::<wire::Problem>(body) {
        Ok(problem) if problem.title == TOO_MUCH => Unshown::Crowded(problem.detail),
        Ok(problem) => Unshown::Away(problem.detail),
        Err(_) => Unshown::Away(String::from_utf8_lossy(body).into_owned()),
    }
}

fn told(answer: Result<wire::Shown, Unshown>) -> wire::Shown {
    let (status, output) = match answer {
        Ok(shown) => return shown,
        Err(Unshown::Crowded(why)) => (wire::ShowStatus::Timeout, why),
        Err(Unshown::Late) => (wire::ShowStatus::Timeout, "no answer in time".to_owned()),
        Err(Unshown::Away(why)) => (wire::ShowStatus::Unreachable, why),
    };
    wire::Shown { status, exit_code: None, output, truncated: false }
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
