//! `cheops sample`: a small key-value service for the demo. It knows nothing of Cheops.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use clap::Args;

use crate::failure::{Failure, Verdict};
use crate::output::VerbOutput;
use crate::parent;

/// Serve a small key-value store over HTTP: GET, PUT and DELETE of /kv/KEY
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Stop when standard input is closed: when whoever started it is gone
    #[arg(long)]
    with_parent: bool,
}

type Values = Arc<Mutex<BTreeMap<String, String>>>;

pub(crate) fn run(arguments: &Arguments, output: &mut VerbOutput) -> Result<Verdict, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::ours("the runtime could not be started").because(error))?;
    runtime.block_on(async {
        let cannot = |error| {
            Failure::caller(format!("`{}` cannot be used", arguments.listen)).because(error)
        };
        let listener = tokio::net::TcpListener::bind(arguments.listen).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        output.line(format!("http://{address}"))?;
        let served = axum::serve(listener, router());
        tokio::select! {
            ended = async { served.await } => ended.map_err(cannot)?,
            () = parent::gone(arguments.with_parent) => {}
        }
        Ok(Verdict::Fine)
    })
}

fn router() -> Router {
    Router::new()
        .route("/kv", get(all))
        .route("/kv/{key}", get(one).put(put).delete(delete))
        .with_state(Values::default())
}

fn values(values: &Values) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn all(State(held): State<Values>) -> Json<BTreeMap<String, String>> {
    Json(values(&held).clone())
}

async fn one(State(held): State<Values>, Path(key): Path<String>) -> Result<String, StatusCode> {
    values(&held).get(&key).cloned().ok_or(StatusCode::NOT_FOUND)
}

async fn put(State(held): State<Values>, Path(key): Path<String>, value: String) -> StatusCode {
    match values(&held).insert(key, value) {
        None => StatusCode::CREATED,
        Some(_) => StatusCode::NO_CONTENT,
    }
}

async fn delete(State(held): State<Values>, Path(key): Path<String>) -> StatusCode {
    match values(&held).remove(&key) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
