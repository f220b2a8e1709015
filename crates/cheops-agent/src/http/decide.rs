//! What a person decides about an operation: one whose result is unknown, one that failed, one to be
//! taken out.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::engine::{
    Engine, Event, Forecast, NotFailed, NotUndoable, RunProgress, UndoBasis,
};
use cheops_core::model::{OperationId, ResourceId};
use cheops_core::plan;
use http::StatusCode;

use super::forward::{self, SeenBy};
use super::metered::whole;
use super::principal;
use super::refusal::HttpRefusal;
use super::submit::{elsewhere, parse};
use super::wire as on_wire;
use super::{SharedApi, resource_id};
use crate::driver::NotDurable;

/// `POST .../decision`
pub(super) async fn decide(
    State(api): State<SharedApi>,
    Path((id, operation)): Path<(String, String)>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let resource = resource_id(&id)?;
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let settle: wire::Settle = parse(&body)?;
    let by = principal::asker(&api, &head.extensions);
    let request = Request::from_parts(head, Body::from(body));
    let what = match settle.decision {
        wire::Decision::Skip => format!("settle {operation} skip"),
        wire::Decision::Rerun => format!("settle {operation} rerun"),
        wire::Decision::Retry => format!("retry {operation}"),
        wire::Decision::Dismiss => format!("dismiss {operation}"),
        wire::Decision::Undo => format!("undo {operation}"),
    };
    if let SeenBy::By(response) = forward::seen_at(&api, settle.site.as_deref(), request).await? {
        let site = settle.site.as_deref().unwrap_or_default();
        let what = format!("{what}, passed on to {site}");
        principal::record(&api, &resource, &by, &what).await?;
        return Ok(response);
    }
    let (id, named) = (resource.clone(), operation.clone());
    let asked = move |engine: &Engine| possible(engine, &id, &named, settle.decision);
    let event = match api.driver.ask(asked).await?? {
        PossibleDecision::Here(event) => event,
        PossibleDecision::Undo(undo) => {
            let checked = elsewhere(move || undo.checked()).await?;
            let (undoing, _) = checked.map_err(|why| not_undoable(&resource, &why))?;
            Event::Undone { resource: resource.clone(), undoing }
        }
    };
    principal::record(&api, &resource, &by, &what).await?;
    let is_on_unknown = matches!(event, Event::Decided { .. });
    let is_unknown_still =
        move |engine: &Engine| is_on_unknown && awaited(engine, &resource, &operation).is_ok();
    match api.driver.decide(event, is_unknown_still).await {
        Ok(false) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(true) => {
            let detail = "the result of the operation is unknown again, or still".to_owned();
            Err(HttpRefusal::conflict("not settled", detail))
        }
        Err(stopped) => match api.driver.trouble.borrow().clone() {
            Some(trouble) => Err(NotDurable::Stuck(trouble).into()),
            None => Err(stopped.into()),
        },
    }
}

/// What would come of a decision at this site.
pub(super) async fn forecast(
    api: &SharedApi,
    resource: &ResourceId,
    decide: wire::TriedDecision,
) -> Result<Forecast, HttpRefusal> {
    let resource = resource.clone();
    let work = move |engine: &Engine| -> Result<Foretelling, HttpRefusal> {
        let wire::TriedDecision { operation, decision, .. } = decide;
        let basis = match possible(engine, &resource, &operation, decision)? {
            PossibleDecision::Undo(undo) => {
                let refused = move |why: NotUndoable| not_undoable(&resource, &why);
                return Ok(Box::new(move || Ok(undo.checked().map_err(refused)?.1)));
            }
            PossibleDecision::Here(Event::Decided { operation, decision, .. }) => {
                engine.forecast_decision(&resource, &operation, decision)
            }
            PossibleDecision::Here(Event::Retried { operation, .. }) => {
                engine.forecast_retry(&resource, &operation)
            }
            PossibleDecision::Here(_) => engine.forecast_dismissal(&resource),
        };
        let basis = basis.ok_or_else(|| HttpRefusal::no_such_resource(&resource))?;
        Ok(Box::new(move || Ok(basis.forecast())))
    };
    let foretell = api.driver.ask(work).await??;
    elsewhere(foretell).await?
}

/// What needs no engine any more.
type Foretelling = Box<dyn FnOnce() -> Result<Forecast, HttpRefusal> + Send>;

/// A decision that would not come to nothing here, at first sight.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum PossibleDecision {
    Here(Event),
    Undo(UndoBasis),
}

fn possible(
    engine: &Engine,
    resource: &ResourceId,
    operation: &str,
    decision: wire::Decision,
) -> Result<PossibleDecision, HttpRefusal> {
    let resource = resource.clone();
    let named = || {
        operation
            .parse::<OperationId>()
            .map_err(|error| HttpRefusal::bad("no such operation", format!("{error}")))
    };
    let on_unknown = |decision| -> Result<Event, HttpRefusal> {
        let operation = awaited(engine, &resource, operation)?;
        Ok(Event::Decided { resource: resource.clone(), operation, decision })
    };
    let event = match decision {
        wire::Decision::Skip => on_unknown(plan::Decision::Skip)?,
        wire::Decision::Rerun => on_unknown(plan::Decision::Rerun)?,
        wire::Decision::Retry => {
            let operation = named()?;
            engine.can_retry(&resource, &operation).map_err(|why| no_failure(&resource, &why))?;
            Event::Retried { resource, operation }
        }
        wire::Decision::Dismiss => {
            let operation = named()?;
            engine.can_dismiss(&resource, &operation).map_err(|why| no_failure(&resource, &why))?;
            Event::Dismissed { resource, operation }
        }
        wire::Decision::Undo => {
            let undo = engine.can_undo(&resource, &named()?);
            let undo = undo.map_err(|why| not_undoable(&resource, &why))?;
            return Ok(PossibleDecision::Undo(undo));
        }
    };
    Ok(PossibleDecision::Here(event))
}

fn no_failure(resource: &ResourceId, why: &NotFailed) -> HttpRefusal {
    let refused = HttpRefusal::conflict("nothing to do about it", why.to_string());
    match why {
        NotFailed::NotHere { failed_at, .. } if !failed_at.is_empty() => {
            let at: Vec<_> = failed_at.iter().map(ToString::to_string).collect();
            refused.hint(format!("it failed at {0}: `--site {0}`", at.join(", ")))
        }
        NotFailed::FailedEverywhere(operation) => refused.hint(format!(
            "`cheops operation {operation}` shows what it was; `cheops dismiss {resource} \
             {operation}` lets it be"
        )),
        NotFailed::InDoubt(operation) => {
            refused.hint(format!("`cheops settle {resource} {operation} skip`, or `rerun`"))
        }
        _ => refused,
    }
}

fn not_undoable(resource: &ResourceId, why: &NotUndoable) -> HttpRefusal {
    let refused = HttpRefusal::conflict("cannot be undone", why.to_string());
    match why {
        NotUndoable::ReplacedAll(_) | NotUndoable::InState(_) | NotUndoable::Unknown(_) => refused
            .hint(format!(
                "`cheops history {resource}` tells what was before: submit that again"
            )),
        NotUndoable::NoRepair { .. } => refused.hint(
            "an `Undo` command for its type, or `State`, in the resource's config makes it possible",
        ),
        _ => refused,
    }
}

/// The operation of that name, if this site waits for the operator's word on it.
fn awaited(
    engine: &Engine,
    resource: &ResourceId,
    operation: &str,
) -> Result<OperationId, HttpRefusal> {
    let nothing = |why: String| HttpRefusal::conflict("nothing to settle", why);
    let progress = engine
        .progress(resource)
        .ok_or_else(|| nothing(format!("resource `{resource}` is not held at this site")))?;
    let refused = match progress {
        RunProgress::AwaitsOperator(awaited) if awaited.to_string() == operation => {
            return Ok(awaited);
        }
        RunProgress::AwaitsOperator(awaited) => nothing(format!(
            "it is `{awaited}` whose result is unknown at this site, not `{operation}`"
        )),
        _ => nothing(format!("no operation of `{resource}` has an unknown result at this site")),
    };
    let meant = operation.parse().ok().and_then(|id| engine.operation_view(resource, &id));
    let doubting = meant.iter().flat_map(on_wire::doubting);
    match doubting.into_iter().find(|site| **site != engine.me().site) {
        Some(site) => {
            Err(refused.hint(format!("its result is unknown at {site}: `--site {site}`")))
        }
        None => Err(refused),
    }
}
