//! How the agent is.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cheops_core::engine::SiteStatus;
use cheops_core::model::SiteId;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::SharedApi;
use super::refusal::HttpRefusal;
use super::summary::keep_states_shown;

/// The process runs.
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// It can take operations.
pub(super) async fn readyz(State(api): State<SharedApi>) -> Response {
    let trouble = api.driver.trouble.borrow().clone();
    if let Some(trouble) = trouble {
        return (StatusCode::SERVICE_UNAVAILABLE, trouble + "\n").into_response();
    }
    match api.driver.ask(|_| ()).await {
        Ok(()) => "ready\n".into_response(),
        Err(stopped) => (StatusCode::SERVICE_UNAVAILABLE, format!("{stopped}\n")).into_response(),
    }
}

pub(super) async fn metrics(State(api): State<SharedApi>) -> Result<Response, HttpRefusal> {
    keep_states_shown(&api).await;
    let waiting = api.driver.waiting();
    let (resources, running, known, up, malformed, reading) = api
        .driver
        .ask_at(|engine, now| {
            let sites = engine.sites();
            let up = sites.iter().filter(|site| matches!(site.status, SiteStatus::Up { .. }));
            let mut malformed = BTreeMap::<SiteId, u64>::new();
            for (site, _, times) in engine.malformed() {
                *malformed.entry(site.clone()).or_default() += times;
            }
            let reading = engine.spent_reading_again(now);
            let running = engine.running();
            (engine.resources().len(), running, sites.len(), up.count(), malformed, reading)
        })
        .await?;
    metrics::gauge!("cheops_resources").set(resources as f64);
    metrics::gauge!("cheops_jobs_running").set(running as f64);
    metrics::gauge!("cheops_sites").set(known as f64);
    metrics::gauge!("cheops_sites_up").set(up as f64);
    let (spent_ms, of_ms) = reading.unwrap_or((0, 1));
    metrics::gauge!("cheops_state_reading_share").set(spent_ms as f64 / of_ms as f64);
    metrics::gauge!("cheops_log_bytes").set(api.feed.size().unwrap_or(0) as f64);
    let history = api.feed.history_size();
    metrics::gauge!("cheops_history_bytes", "of" => "log").set(history.bytes as f64);
    metrics::gauge!("cheops_history_bytes", "of" => "files").set(history.bodies as f64);
    metrics::gauge!("cheops_history_most_bytes").set(history.most as f64);
    let cut_ms = history.cut_ms.unwrap_or_default();
    metrics::gauge!("cheops_history_cut_seconds").set(cut_ms as f64 / 1000.0);
    metrics::gauge!("cheops_queue_length", "queue" => "events").set(waiting.events as f64);
    metrics::gauge!("cheops_queue_length", "queue" => "requests").set(waiting.requests as f64);
    for (site, times) in malformed {
        let counted = metrics::counter!("cheops_malformed_total", "site" => site.to_string());
        counted.absolute(times);
    }
    let text = api.metrics.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

pub(super) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(cheops_api::openapi())
}
