//! What would come of something, told before anything is written.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use cheops_api as wire;
use cheops_core::engine::{Forecast, Submission};
use cheops_mesh::PassedOn;

use super::forward::{self, ResourceLocation, SeenBy};
use super::metered::whole;
use super::refusal::HttpRefusal;
use super::submit::{self, Handed, elsewhere, json, parse};
use super::wire as on_wire;
use super::{Api, SharedApi, decide, principal, resource_id};

/// `POST .../dry-run`: nothing is written, run or sent.
pub(super) async fn dry_run(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let by = principal::asker(&api, request.extensions());
    let is_passed_on = request.extensions().get::<PassedOn>().is_some();
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let dry_run: wire::DryRun = parse(&body)?;
    let request = Request::from_parts(head, Body::from(body));
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
    Ok(json(on_wire::forecast(&api.site, &id, &forecast)))
}

async fn forecast(api: &Api, submission: Submission) -> Result<Forecast, HttpRefusal> {
    let basis = api.driver.ask_at(move |engine, now| engine.forecast_basis(&submission, now));
    let basis = basis.await??;
    elsewhere(move || basis.forecast()).await
}
