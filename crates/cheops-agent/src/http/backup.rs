//! Copies of this site's data directory, made while it goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::causes;
use cheops_store::{BackupError, Far, ProgressReporter};
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use super::SharedApi;
use super::principal::{self, AskedBy};
use super::refusal::HttpRefusal;
use super::submit::line;

/// How often it is told how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

pub(super) async fn backup(
    State(api): State<SharedApi>,
    AskedBy(by): AskedBy,
    Json(asked): Json<wire::Backup>,
) -> Result<Response, HttpRefusal> {
    let dir = PathBuf::from(&asked.dir);
    if !dir.is_absolute() {
        let detail = format!("`{}` is not a whole path on the agent's machine", asked.dir);
        return Err(HttpRefusal::bad("no such place", detail));
    }
    principal::record_of_site(&api, &by, &format!("backup to {}", asked.dir)).await?;
    // What was acknowledged until now belongs into the copy.
    api.driver.settle().await?;
    let (told, mut events) = mpsc::unbounded_channel();
    let backup = api.backup.clone();
    // It goes on if nobody listens any more: a copy is whole or not there.
    tokio::task::spawn_blocking(move || {
        let copied = backup.to(&dir, &progress(told.clone()));
        let _gone = told.send(match copied {
            Ok(copied) => wire::BackupEvent::Done {
                files: copied.files,
                missing: copied.missing,
                snapshots: copied.snapshots,
                bytes: copied.bytes,
            },
            Err(error) => {
                tracing::warn!(error = causes(&error), "no copy was made");
                wire::BackupEvent::Failed { why: causes(&error), hint: hint(&error) }
            }
        });
    });
    let lines = futures_util::stream::poll_fn(move |context| {
        events.poll_recv(context).map(|event| event.map(|event| line(&event)))
    });
    Ok(([(CONTENT_TYPE, wire::NDJSON)], Body::from_stream(lines)).into_response())
}

fn progress(told: mpsc::UnboundedSender<wire::BackupEvent>) -> ProgressReporter {
    let last = std::sync::Mutex::new(None::<(&'static str, Instant)>);
    ProgressReporter::new(move |far: Far| {
        let Far { doing, done, of } = far;
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.is_none_or(|(what, at)| what != doing || at.elapsed() > TOLD_EVERY) {
            *last = Some((doing, Instant::now()));
            let _gone = told.send(wire::BackupEvent::Far { doing: doing.to_owned(), done, of });
        }
    })
}

fn hint(error: &BackupError) -> Option<String> {
    match error {
        BackupError::NotEmpty(_) => Some("name a folder that is new or empty".to_owned()),
        BackupError::Log(error) => error.hint().map(str::to_owned),
        BackupError::Blob(_) => None,
        BackupError::Io { .. } => {
            Some("the agent writes it: its user must be allowed to, and there must be room".into())
        }
    }
}
