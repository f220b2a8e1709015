//! Bodies on their way to the disk: they go to every site, so they are kept, never whole in memory.

use std::io::{self, Write};

use cheops_core::model::FileRef;
use cheops_store::{BlobError, BlobWriter, Blobs, Pin};
use http_body::Body;
use http_body_util::BodyExt;

use super::super::body::{BodyError, Sent};

/// Why a body was not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKept {
    #[error("it broke off: {0}")]
    BrokenOff(BodyError),
    #[error("the disk does not take it: {0}")]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Keeps a body; `None` if it is empty.
pub(super) async fn keep(blobs: &Blobs, mut body: Sent) -> Result<Option<(FileRef, Pin)>, NotKept> {
    if body.is_end_stream() {
        return Ok(None);
    }
    let mut writer = blobs.create()?;
    let mut is_empty = true;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(NotKept::BrokenOff)?.into_data() else { continue };
        is_empty &= data.is_empty();
        writer = blocking(move || write(writer, &data)).await?;
    }
    if is_empty {
        return Ok(None);
    }
    let stored = blocking(move || Ok(writer.finish()?)).await?;
    let file = FileRef { name: "body".into(), blob: stored.id, size: stored.size };
    Ok(Some((file, stored.pin)))
}

fn write(mut writer: BlobWriter, data: &[u8]) -> Result<BlobWriter, NotKept> {
    writer.write_all(data)?;
    Ok(writer)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotKept> + Send + 'static,
) -> Result<T, NotKept> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_ended| io::Error::other("the agent is stopping"))?
}
