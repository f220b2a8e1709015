//! What the pages of a demo's agents may see and order: the demo's part of the API, which each of
//! them passes on to here.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use cheops_api::{Demo, DemoLink, PROBLEM_JSON, Problem, RunSite, paths};
use cheops_core::model::SiteId;

use super::cluster::SharedCluster;

pub(super) fn router() -> Router<SharedCluster> {
    Router::new()
        .route(paths::DEMO, get(look))
        .route(paths::DEMO_LINKS, post(set_link))
        .route(paths::DEMO_SITES, post(set_site))
}

/// Why an order was not carried out.
struct OrderRefused(String);

impl From<String> for OrderRefused {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl IntoResponse for OrderRefused {
    fn into_response(self) -> Response {
        let status = StatusCode::BAD_REQUEST;
        let problem = Problem::new(status.as_u16(), "the demo cannot do this", self.0);
        (status, [(CONTENT_TYPE, PROBLEM_JSON)], Json(problem)).into_response()
    }
}

fn named(site: &str) -> Result<SiteId, OrderRefused> {
    SiteId::new(site).map_err(|error| OrderRefused(error.to_string()))
}

async fn look(State(cluster): State<SharedCluster>) -> Json<Demo> {
    Json(cluster.lock().await.told())
}

async fn set_link(
    State(cluster): State<SharedCluster>,
    Json(link): Json<DemoLink>,
) -> Result<Json<Demo>, OrderRefused> {
    let between = [named(&link.a)?, named(&link.b)?];
    if link.a == link.b {
        return Err(OrderRefused(format!("a link has two ends, and both are `{}`", link.a)));
    }
    let mut cluster = cluster.lock().await;
    cluster.set_cut(&between, link.cut)?;
    Ok(Json(cluster.told()))
}

async fn set_site(
    State(cluster): State<SharedCluster>,
    Json(order): Json<RunSite>,
) -> Result<Json<Demo>, OrderRefused> {
    let site = named(&order.site)?;
    let mut cluster = cluster.lock().await;
    match (order.running, cluster.is_up(&site)?) {
        (true, false) => cluster.revive(&site, None).await?,
        (false, true) => cluster.kill_soon(&site)?,
        _ => {}
    }
    Ok(Json(cluster.told()))
}
