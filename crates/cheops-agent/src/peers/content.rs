//! The content of files between sites.
//!
//! An operation is taken in only when its files are here: so whoever knows an operation can run
//! it, and pass it on. Until then the message that brings it waits; the engine's other messages
//! do not. What was fetched before a cut is not fetched again after it.

use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use cheops_core::engine::{Event, Message, Update};
use cheops_core::model::{BlobId, Body, FileRef, Operation, SiteId};
use cheops_store::{BlobError, Blobs, PartialBlob, Pin};
use tokio::sync::Semaphore;

use super::Peers;
use super::frame::{self, Ask, LinkError, Told};
use super::link::{Link, Work};
use crate::driver::Brought;

/// How many messages may wait for files, per link. More are dropped: the engine asks again.
const WAITING: usize = 64;
const CHUNK: usize = 256 * 1024;
const LONGEST_ANSWER: usize = 1024;

/// Why a file did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The link broke; what has arrived is kept.
    #[error("{0}")]
    Link(String),
    /// It could not be stored, or is not what it should be.
    #[error("{0}")]
    Blob(#[from] BlobError),
    /// It could not be written.
    #[error("{0}")]
    Disk(#[from] std::io::Error),
    /// The other site does not have it.
    #[error("the other site does not have it")]
    Missing,
    /// The other site has something else under that name.
    #[error("it is {found} bytes long there and should be {expected}")]
    Size {
        /// There.
        found: u64,
        /// As the operation says.
        expected: u64,
    },
    /// Nothing is fetched any more.
    #[error("the agent is stopping")]
    Stopping,
}

impl From<LinkError> for FetchError {
    fn from(error: LinkError) -> Self {
        Self::Link(error.to_string())
    }
}

impl Peers {
    /// Fetches files from a site. They stay here while the pins are held.
    pub(crate) async fn fetch(
        &self,
        from: &SiteId,
        files: Vec<FileRef>,
        blobs: &Blobs,
    ) -> Result<Vec<Pin>, FetchError> {
        let link = self.link(from).ok_or_else(|| FetchError::Link("no link".into()))?;
        let wanted = files.into_iter().map(|file| Wanted { file, may_be_gone: false });
        fetch_all(&link, blobs, wanted.collect()).await
    }
}

/// What holds messages back until their files are here.
pub(super) struct Gate {
    link: Arc<Link>,
    work: Work,
    places: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new(link: Arc<Link>, work: Work) -> Self {
        Self { link, work, places: Arc::new(Semaphore::new(WAITING)) }
    }

    /// The message, if nothing it brings needs a file that is not here.
    pub(super) fn pass(&self, message: Message) -> Option<Message> {
        let files = files_of(&message);
        if files.is_empty() {
            return Some(message);
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            metrics::counter!("cheops_messages_dropped_total").increment(1);
            return None;
        };
        let (link, work) = (self.link.clone(), self.work.clone());
        tokio::spawn(async move {
            let from = link.peer().clone();
            match fetch_all(&link, &work.blobs, files).await {
                Ok(pins) => {
                    let files = brought(&message, pins);
                    let heard = Event::Heard { from, message };
                    let _stopping = work.driver.happened_with(heard, files).await;
                }
                Err(error) => {
                    tracing::warn!(site = %from, %error, "a file could not be fetched");
                }
            }
            drop(place);
        });
        None
    }
}

/// The pins are of the files of its operations, in order.
fn brought(message: &Message, pins: Vec<Pin>) -> Option<Brought> {
    let Message::Update(update) = message else { return None };
    let mut pins = pins.into_iter();
    let of_operation = |operation: &Operation| {
        let its = pins.by_ref().take(operation.files().len());
        (operation.id.clone(), its.collect())
    };
    let operations = operations_in(update).map(of_operation).collect();
    Some(Brought { resource: update.resource.clone(), operations })
}

fn operations_in(update: &Update) -> impl Iterator<Item = &Operation> {
    update.entries.iter().filter_map(|entry| match &entry.body {
        Body::Operation(operation) => Some(operation),
        Body::Reply(_) => None,
    })
}

/// A file to be fetched.
struct Wanted {
    file: FileRef,
    /// Whether it may be let go of where it was, since every site has made use of it.
    may_be_gone: bool,
}

fn files_of(message: &Message) -> Vec<Wanted> {
    let Message::Update(update) = message else { return Vec::new() };
    let wanted = |operation: &'_ Operation| {
        let may_be_gone = operation.replica().is_some();
        let files = operation.files().iter().cloned();
        files.map(move |file| Wanted { file, may_be_gone }).collect::<Vec<_>>()
    };
    operations_in(update).flat_map(wanted).collect()
}

/// Fetches what is not here. There is a pin for each file, in order; while it is held, nothing is
/// thrown away.
async fn fetch_all(link: &Link, blobs: &Blobs, files: Vec<Wanted>) -> Result<Vec<Pin>, FetchError> {
    let mut pins = Vec::with_capacity(files.len());
    for Wanted { file, may_be_gone } in files {
        let pin = blobs.pin(file.blob);
        if !blobs.contains(&file.blob) {
            match fetch(link, blobs, &file).await {
                // The operation says more without it than not at all.
                Err(FetchError::Missing) if may_be_gone => {
                    tracing::warn!(blob = %file.blob, "a file is no longer kept where it was");
                }
                fetched => fetched?,
            }
        }
        pins.push(pin);
    }
    Ok(pins)
}

async fn fetch(link: &Link, blobs: &Blobs, file: &FileRef) -> Result<(), FetchError> {
    let (id, size) = (file.blob, file.size);
    let mut partial = blocking({
        let blobs = blobs.clone();
        move || blobs.partial(id, size)
    })
    .await??;
    let ask = Ask::Blob { blob: id, offset: partial.offset() };
    let mut bytes = Vec::new();
    frame::encode(&ask, &mut bytes)?;
    let (mut send, mut receive) = link.connection().open_bi().await.map_err(LinkError::from)?;
    send.write_all(&bytes).await.map_err(LinkError::from)?;
    let _gone = send.finish();
    match frame::read(&mut receive, &mut bytes, LONGEST_ANSWER).await? {
        Told::Blob { size: found } if found == size => {}
        Told::Blob { size: found } => return Err(FetchError::Size { found, expected: size }),
        Told::NoSuchBlob | Told::Http { .. } => return Err(FetchError::Missing),
    }
    loop {
        let chunk = receive.read_chunk(CHUNK, true).await;
        let Some(chunk) = chunk.map_err(|_broken| LinkError::Broken)? else { break };
        partial = blocking(move || write(partial, &chunk.bytes)).await??;
    }
    blocking(move || partial.finish()).await??;
    Ok(())
}

fn write(mut partial: PartialBlob, bytes: &[u8]) -> std::io::Result<PartialBlob> {
    partial.write_all(bytes)?;
    Ok(partial)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.map_err(|_stopping| FetchError::Stopping)
}

/// Sends the content of a file from there on. Who receives it checks it against its name.
pub(super) async fn serve(
    blobs: &Blobs,
    id: &BlobId,
    offset: u64,
    mut send: quinn::SendStream,
) -> Result<(), LinkError> {
    let (blobs, id) = (blobs.clone(), *id);
    let opened = tokio::task::spawn_blocking(move || {
        let mut file = blobs.open_unverified(&id).ok().flatten()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(offset)).ok()?;
        Some((file, size))
    });
    let opened = opened.await.map_err(|_stopping| LinkError::Broken)?;
    let mut head = Vec::new();
    let Some((mut file, size)) = opened else {
        frame::encode(&Told::NoSuchBlob, &mut head)?;
        send.write_all(&head).await?;
        let _gone = send.finish();
        return Ok(());
    };
    frame::encode(&Told::Blob { size }, &mut head)?;
    send.write_all(&head).await?;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK];
            let read = file.read(&mut chunk)?;
            chunk.truncate(read);
            Ok::<_, std::io::Error>((file, chunk))
        });
        let read = read.await.map_err(|_stopping| LinkError::Broken)?;
        let (back, chunk) = read.map_err(|_unreadable| LinkError::Broken)?;
        file = back;
        if chunk.is_empty() {
            break;
        }
        send.write_all(&chunk).await?;
    }
    let _gone = send.finish();
    Ok(())
}
