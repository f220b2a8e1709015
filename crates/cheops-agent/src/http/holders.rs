//! Which sites are to hold a resource.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::engine::{Engine, Event, NotMovable};
use cheops_core::model::{HoldersAsked, ResourceId, SiteId};
use cheops_mesh::PassedOn;

use super::forward::{self, ResourceLocation};
use super::metered::whole;
use super::principal;
use super::refusal::HttpRefusal;
use super::submit::parse;
use super::wire as on_wire;
use super::{SharedApi, resource_id};
use crate::driver::NotDurable;

/// `POST .../sites`
pub(super) async fn change(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let by = principal::asker(&api, request.extensions());
    let is_passed_on = request.extensions().get::<PassedOn>().is_some();
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let change: wire::ChangeHolders = parse(&body)?;
    if !is_passed_on && forward::held(&api, &id).await? == ResourceLocation::Elsewhere {
        let request = Request::from_parts(head, Body::from(body));
        return forward::pass_on(&api, &id, request).await;
    }
    let asked = HoldersAsked { add: sites(&change.add)?, remove: sites(&change.remove)? };
    let (of, wanted) = (id.clone(), asked.clone());
    let possible =
        api.driver.ask(move |engine: &Engine| engine.can_change_holders(&of, &wanted)).await?;
    let then = possible.map_err(|why| not_movable(&id, &why))?;
    if change.dry_run {
        let leaving = on_wire::names(&asked.remove);
        return Ok(
            Json(wire::ResourceHolders { sites: on_wire::names(&then), leaving }).into_response()
        );
    }
    let what = format!("wants it at {:?} and not at {:?}", change.add, change.remove);
    principal::record(&api, &id, &by, &what).await?;
    let of = id.clone();
    let now = move |engine: &Engine| {
        let sites = engine.lives_at(&of).cloned().unwrap_or_default();
        (sites, engine.leaving(&of))
    };
    let event = Event::HoldersAsked { resource: id, asked };
    match api.driver.decide(event, now).await {
        Ok((sites, leaving)) => {
            let (sites, leaving) = (on_wire::names(&sites), on_wire::names(&leaving));
            Ok(Json(wire::ResourceHolders { sites, leaving }).into_response())
        }
        Err(stopped) => match api.driver.trouble.borrow().clone() {
            Some(trouble) => Err(NotDurable::Stuck(trouble).into()),
            None => Err(stopped.into()),
        },
    }
}

fn sites(named: &[String]) -> Result<std::collections::BTreeSet<SiteId>, HttpRefusal> {
    let site = |name: &String| {
        SiteId::new(name).map_err(|error| HttpRefusal::bad("not a site", error.to_string()))
    };
    named.iter().map(site).collect()
}

fn not_movable(resource: &ResourceId, why: &NotMovable) -> HttpRefusal {
    let refused = HttpRefusal::conflict("cannot live there", why.to_string());
    match why {
        NotMovable::Unknown(_) => HttpRefusal::no_such_resource(resource),
        NotMovable::UnknownSite(_) => refused.hint("`cheops sites` lists those there are"),
        _ => refused,
    }
}
