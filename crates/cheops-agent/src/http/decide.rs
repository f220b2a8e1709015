//! The operator's word on an operation: settled, run again, let be, taken out.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::engine::{self, Event, UndoBasis};
use cheops_core::model::{Asker, OperationId, ResourceId};
use cheops_core::plan;
use http::StatusCode;

use super::forward::{self, SeenBy};
use super::principal;
use super::refusal::HttpRefusal;
use super::submit::{elsewhere, parse, whole};
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
    let decision = match settle.decision {
        wire::Decision::Skip => plan::Decision::Skip,
        wire::Decision::Rerun => plan::Decision::Rerun,
        failed @ (wire::Decision::Retry | wire::Decision::Dismiss) => {
            return about_failure(&api, resource, &operation, failed, &what, &by).await;
        }
        wire::Decision::Undo => return undo(&api, resource, &operation, &what, &by).await,
    };
    let (wanted, named) = (resource.clone(), operation.clone());
    let awaits = api.driver.ask(move |engine| awaited(engine, &wanted, &named)).await?;
    let operation = awaits?;
    let (id, named) = (resource.clone(), operation.to_string());
    principal::record(&api, &resource, &by, &what).await?;
    let decided = Event::Decided { resource, operation, decision };
    let still = api.driver.decide(decided, move |engine| awaited(engine, &id, &named).is_ok());
    decided_as(&api, still.await)
}

/// An operation that failed is run again here, or let be everywhere.
async fn about_failure(
    api: &SharedApi,
    resource: ResourceId,
    operation: &str,
    decision: wire::Decision,
    what: &str,
    by: &Asker,
) -> Result<Response, HttpRefusal> {
    let operation: OperationId = operation
        .parse()
        .map_err(|error| HttpRefusal::bad("no such operation", format!("{error}")))?;
    let is_retry = decision == wire::Decision::Retry;
    let (id, named) = (resource.clone(), operation.clone());
    let possible = api.driver.ask(move |engine| match is_retry {
        true => engine.can_retry(&id, &named),
        false => engine.can_dismiss(&id, &named),
    });
    if let Err(why) = possible.await? {
        let refused = HttpRefusal::conflict("nothing to do about it", why.to_string());
        return Err(match why {
            engine::NotFailed::NotHere { failed_at, .. } if !failed_at.is_empty() => {
                let at: Vec<_> = failed_at.iter().map(ToString::to_string).collect();
                refused.hint(format!("it failed at {0}: `--site {0}`", at.join(", ")))
            }
            _ => refused,
        });
    }
    principal::record(api, &resource, by, what).await?;
    let event = match is_retry {
        true => Event::Retried { resource, operation },
        false => Event::Dismissed { resource, operation },
    };
    decided_as(api, api.driver.decide(event, |_| false).await)
}

pub(super) fn not_undoable(resource: &ResourceId, why: &engine::NotUndoable) -> HttpRefusal {
    let refused = HttpRefusal::conflict("cannot be undone", why.to_string());
    match why {
        engine::NotUndoable::ReplacedAll(_)
        | engine::NotUndoable::InState(_)
        | engine::NotUndoable::Unknown(_) => refused.hint(
            format!("`cheops history {resource}` tells what was before: submit that again"),
        ),
        engine::NotUndoable::NoRepair { .. } => refused.hint(
            "an `Undo` command for its type, or `State`, in the resource's config makes it possible",
        ),
        _ => refused,
    }
}

/// An operation is taken out everywhere, or brought back.
async fn undo(
    api: &SharedApi,
    resource: ResourceId,
    operation: &str,
    what: &str,
    by: &Asker,
) -> Result<Response, HttpRefusal> {
    let named: OperationId = operation
        .parse()
        .map_err(|error| HttpRefusal::bad("no such operation", format!("{error}")))?;
    let (id, asked) = (resource.clone(), named.clone());
    let possible = api.driver.ask(move |engine| engine.can_undo(&id, &asked)).await?;
    let checked = elsewhere(move || possible.and_then(UndoBasis::checked)).await?;
    let (undoing, _) = checked.map_err(|why| not_undoable(&resource, &why))?;
    principal::record(api, &resource, by, what).await?;
    let event = Event::Undone { resource, undoing };
    decided_as(api, api.driver.decide(event, |_| false).await)
}

/// The answer to a decision, given whether it came to nothing.
fn decided_as(
    api: &SharedApi,
    still: Result<bool, crate::driver::Stopped>,
) -> Result<Response, HttpRefusal> {
    match still {
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

/// The operation of that name, if this site waits for the operator's word on it.
fn awaited(
    engine: &engine::Engine,
    resource: &ResourceId,
    operation: &str,
) -> Result<OperationId, HttpRefusal> {
    let nothing = |why: String| HttpRefusal::conflict("nothing to settle", why);
    let progress = engine
        .progress(resource)
        .ok_or_else(|| nothing(format!("resource `{resource}` is not held at this site")))?;
    let refused = match progress {
        engine::RunProgress::AwaitsOperator(awaited) if awaited.to_string() == operation => {
            return Ok(awaited);
        }
        engine::RunProgress::AwaitsOperator(awaited) => nothing(format!(
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
