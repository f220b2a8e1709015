//! The content of files between sites.
//!
//! An operation is taken in only when its files are here: so whoever knows an operation can run
//! it, and pass it on. Until then the message that brings it waits; the engine's other messages
//! do not. What was fetched before a cut is not fetched again after it.
//!
//! A short body is in its entry, and nothing is fetched. A site of a version before that asks for it
//! as for any file, and is given it from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use cheops_core::causes;
use cheops_core::engine::{Event, Message};
use cheops_core::model::{
    BlobId, Entry, EntryBody, FileRef, MAX_STATE_BYTES, Operation, OperationId, SiteId,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::frame::{self, LinkError, StreamReply, StreamRequest};
use super::link::{LinkHandlers, PeerLink};
use super::{Peers, lock};
use crate::ports::{Brought, FileError, FilePin, FileStore, PartialFile, WholeFile};

/// How many bytes of messages may wait for files, per link, in rooms of so many each. What finds no
/// room is dropped: the engine asks again.
const ROOMS: usize = 64;
const ROOM_BYTES: usize = 512 * 1024;
/// What went wrong for a reason that stays is not tried again before that.
const BACK_OFF: Duration = Duration::from_secs(10);
const CHUNK: usize = 256 * 1024;
const SMALL: u64 = 1024 * 1024;
const LONGEST_ANSWER: usize = 1024;
/// How a stream ends whose file turned out to be damaged where it was.
const DAMAGED: quinn::VarInt = quinn::VarInt::from_u32(1);

/// Why a file did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The link broke; what has arrived is kept.
    #[error("{0}")]
    Link(String),
    /// It could not be stored, or is not what it should be.
    #[error("{}", causes(.0))]
    File(#[from] FileError),
    /// It could not be written.
    #[error("it could not be written: {0}")]
    Disk(std::io::Error),
    /// There is less room than it takes, and than has to stay free.
    #[error(
        "it takes {needed} bytes more, and {left} are free on the disk of the data directory, of \
         which {stay} have to stay so; make room, and it is fetched"
    )]
    NoRoom {
        /// For the rest of it.
        needed: u64,
        /// Whatever for.
        left: u64,
        /// For what is under way.
        stay: u64,
    },
    /// The other site does not have it.
    #[error("the other site does not have it")]
    Missing,
    /// The other site found out that it has something else under that name.
    #[error("it is damaged at the other site, which names it in its log")]
    Damaged,
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

impl FetchError {
    /// Whether it would be the same if it were tried again at once.
    fn stays(&self) -> bool {
        !matches!(self, Self::Link(_) | Self::Stopping)
    }
}

impl From<LinkError> for FetchError {
    fn from(error: LinkError) -> Self {
        Self::Link(error.to_string())
    }
}

/// Where files come in, from whichever site. Cheap to clone.
#[derive(Clone)]
pub struct IncomingFiles(Arc<IncomingFilesState>);

struct IncomingFilesState {
    files: Arc<dyn FileStore>,
    stay_free: u64,
    turns: Mutex<BTreeMap<BlobId, Weak<tokio::sync::Mutex<()>>>>,
}

impl IncomingFiles {
    /// Into that store, of whose room so much is never taken.
    pub fn new(files: Arc<dyn FileStore>, stay_free: u64) -> Self {
        Self(Arc::new(IncomingFilesState { files, stay_free, turns: Mutex::default() }))
    }

    /// One at a time fetches a file; whoever comes second most likely finds it here.
    fn turn(&self, id: BlobId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = lock(&self.0.turns);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&id).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(id, Arc::downgrade(&turn));
        turn
    }

    /// Whether there is room for so much more of a file. A small one is like an operation of
    /// another site without any: it is taken in as long as it can be written.
    fn has_room_for(&self, needed: u64, file: &FileRef) -> Result<(), FetchError> {
        let (left, stay) = (self.0.files.room_left(), self.0.stay_free);
        match file.size <= SMALL || left >= needed.saturating_add(stay) {
            true => Ok(()),
            false => Err(FetchError::NoRoom { needed, left, stay }),
        }
    }
}

impl Peers {
    /// Fetches files from a site. They stay here while the pins are held.
    pub async fn fetch(
        &self,
        from: &SiteId,
        files: Vec<FileRef>,
        incoming: &IncomingFiles,
    ) -> Result<Vec<FilePin>, FetchError> {
        let link = self.link(from).ok_or_else(|| FetchError::Link("no link".into()))?;
        let wanted = files.into_iter().map(|file| WantedFile { file, may_be_gone: false });
        fetch_all(&link, incoming, wanted.collect()).await
    }

    /// Fetches files of an operation that were here and are not any more: a disk damaged them, or
    /// the directory was put back without them. With an error it is better to wait.
    pub async fn bring_back(
        &self,
        operation: &Operation,
        incoming: &IncomingFiles,
    ) -> Result<(), String> {
        // What every site has made use of is let go of, and no site will have it.
        let may_be_gone = operation.service_ref().is_some();
        self.bring_back_files(operation.files(), may_be_gone, incoming).await
    }

    /// The same of a state that stands for operations.
    pub async fn bring_back_state(
        &self,
        state: BlobId,
        size: u64,
        incoming: &IncomingFiles,
    ) -> Result<(), String> {
        self.bring_back_files(&[state_file(state, size)], false, incoming).await
    }

    async fn bring_back_files(
        &self,
        files: &[FileRef],
        may_be_gone: bool,
        incoming: &IncomingFiles,
    ) -> Result<(), String> {
        let gone = files.iter().filter(|file| !incoming.0.files.contains(&file.blob));
        for file in gone {
            let failed = |why: &str| format!("file `{}` is not here any more, {why}", file.name);
            let mut had = false;
            for site in self.nearest(self.sites()) {
                match self.fetch(&site, vec![file.clone()], incoming).await {
                    Ok(_needed_by_the_log) => had = true,
                    Err(FetchError::Missing | FetchError::Damaged | FetchError::Size { .. }) => {}
                    Err(error) => return Err(failed(&format!("and at {site}: {error}"))),
                }
                if had {
                    break;
                }
            }
            if !had && !may_be_gone && self.sites().any(|site| self.link(site).is_none()) {
                return Err(failed("nor at the sites that can be reached"));
            }
        }
        Ok(())
    }
}

/// What holds messages back until their files are here.
pub(super) struct FileGate {
    link: Arc<PeerLink>,
    work: LinkHandlers,
    room: WaitingRoom,
    waiting: Arc<Mutex<BTreeSet<OperationId>>>,
}

/// The memory for what waits.
struct WaitingRoom(Arc<Semaphore>);

impl Default for WaitingRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOMS)))
    }
}

impl WaitingRoom {
    /// As many rooms as a message of that length takes, if they are free.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let rooms = u32::try_from(bytes.div_ceil(ROOM_BYTES).max(1)).ok()?;
        self.0.clone().try_acquire_many_owned(rooms).ok()
    }
}

/// Operations that wait for their files, until it is dropped.
struct WaitingOperations {
    all: Arc<Mutex<BTreeSet<OperationId>>>,
    these: Vec<OperationId>,
}

impl Drop for WaitingOperations {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        for operation in &self.these {
            all.remove(operation);
        }
    }
}

impl FileGate {
    pub(super) fn new(link: Arc<PeerLink>, work: LinkHandlers) -> Self {
        Self { link, work, room: WaitingRoom::default(), waiting: Arc::default() }
    }

    /// The message, which came in so many bytes, if nothing it brings needs a file that is not here.
    pub(super) fn pass(&self, message: Message, bytes: usize) -> Option<Message> {
        if has_too_large_a_state(&message) {
            metrics::counter!("cheops_messages_dropped_total").increment(1);
            return None;
        }
        let needed = files_of(&message);
        if needed.is_empty() {
            return Some(message);
        }
        let waiting = self.wait(&needed)?;
        let Some(place) = self.room.take(bytes) else {
            metrics::counter!("cheops_messages_dropped_total").increment(1);
            return None;
        };
        let (link, work) = (self.link.clone(), self.work.clone());
        tokio::spawn(async move {
            let from = link.peer().clone();
            match fetch_for(&link, &work.incoming, needed).await {
                Ok(operations) => {
                    let files = brought(&message, operations);
                    let heard = Event::Heard { from, message };
                    let _stopping = work.inbox.take(heard, files).await;
                }
                Err(error) => {
                    if link.conduct.is_to_log(&from) {
                        tracing::warn!(site = %from, %error, "a file could not be fetched");
                    }
                    drop((message, link, place));
                    if error.stays() {
                        tokio::time::sleep(BACK_OFF).await;
                    }
                }
            }
            drop(waiting);
        });
        None
    }

    /// Has its operations wait. Nothing if all of them do: a site goes on asking for what it has
    /// not taken in yet.
    fn wait(&self, needed: &[FilesNeeded]) -> Option<WaitingOperations> {
        let mut all = lock(&self.waiting);
        let these = needed.iter().map(|needed| needed.by.clone());
        let these: Vec<_> = these.filter(|operation| all.insert(operation.clone())).collect();
        (!these.is_empty()).then(|| WaitingOperations { all: self.waiting.clone(), these })
    }
}

fn brought(message: &Message, operations: Vec<(OperationId, Vec<FilePin>)>) -> Option<Brought> {
    let Message::Update(update) = message else { return None };
    Some(Brought { resource: update.resource.clone(), operations })
}

/// A file to be fetched.
struct WantedFile {
    file: FileRef,
    /// Whether it may be let go of where it was, since every site has made use of it.
    may_be_gone: bool,
}

/// Files without which an operation is not taken in.
struct FilesNeeded {
    by: OperationId,
    files: Vec<WantedFile>,
}

/// What the operations need that a message brings: nothing for one whose body came along with it.
fn files_of(message: &Message) -> Vec<FilesNeeded> {
    let Message::Update(update) = message else { return Vec::new() };
    let needed = |entry: &Arc<Entry>| {
        let EntryBody::Operation(operation) = &entry.body else { return None };
        if operation.files().is_empty() || entry.inline_body().is_some() {
            return None;
        }
        let may_be_gone = operation.service_ref().is_some();
        let files = operation.files().iter().cloned();
        let files = files.map(|file| WantedFile { file, may_be_gone }).collect();
        Some(FilesNeeded { by: operation.id.clone(), files })
    };
    let states = update.base.iter().filter_map(|base| {
        let floor = base.state.as_ref()?;
        let file = state_file(BlobId(floor.state.0), floor.size);
        let files = vec![WantedFile { file, may_be_gone: false }];
        Some(FilesNeeded { by: floor.stand_in()?, files })
    });
    states.chain(update.entries.iter().filter_map(needed)).collect()
}

fn state_file(blob: BlobId, size: u64) -> FileRef {
    FileRef { name: "state".to_owned(), blob, size }
}

/// Whether it rests on a state that is larger than any may be.
fn has_too_large_a_state(message: &Message) -> bool {
    let Message::Update(update) = message else { return false };
    let floor = update.base.as_ref().and_then(|base| base.state.as_ref());
    floor.is_some_and(|floor| floor.size > MAX_STATE_BYTES)
}

/// Fetches what these operations need, each in its turn.
async fn fetch_for(
    link: &PeerLink,
    incoming: &IncomingFiles,
    needed: Vec<FilesNeeded>,
) -> Result<Vec<(OperationId, Vec<FilePin>)>, FetchError> {
    let mut operations = Vec::with_capacity(needed.len());
    for FilesNeeded { by, files } in needed {
        operations.push((by, fetch_all(link, incoming, files).await?));
    }
    Ok(operations)
}

/// Fetches what is not here. There is a pin for each file, in order; while it is held, nothing is
/// thrown away.
async fn fetch_all(
    link: &PeerLink,
    incoming: &IncomingFiles,
    files: Vec<WantedFile>,
) -> Result<Vec<FilePin>, FetchError> {
    let mut pins = Vec::with_capacity(files.len());
    for WantedFile { file, may_be_gone } in files {
        let kept = &incoming.0.files;
        let pin = kept.pin(file.blob);
        let turn = incoming.turn(file.blob);
        let _mine = turn.lock().await;
        if !kept.contains(&file.blob) {
            match fetch(link, incoming, &file).await {
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

/// Goes on with the file where it was left. What does not fit is not kept either, so that it does
/// not take the room of what does.
async fn fetch(
    link: &PeerLink,
    incoming: &IncomingFiles,
    file: &FileRef,
) -> Result<(), FetchError> {
    let (id, size) = (file.blob, file.size);
    let mut partial = blocking({
        let kept = incoming.0.files.clone();
        move || kept.partial(id, size)
    })
    .await??;
    if !partial.is_whole() {
        if let Err(error) = incoming.has_room_for(size - partial.offset(), file) {
            blocking(move || partial.discard()).await??;
            return Err(error);
        }
        let mut receive = ask(link, file, partial.offset()).await?;
        loop {
            let chunk = match receive.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => chunk.bytes,
                Ok(None) => break,
                Err(quinn::ReadError::Reset(DAMAGED)) => {
                    blocking(move || partial.discard()).await??;
                    return Err(FetchError::Damaged);
                }
                Err(_) => return Err(LinkError::Broken.into()),
            };
            let (incoming, file) = (incoming.clone(), file.clone());
            partial = blocking(move || take(partial, &chunk, &file, &incoming)).await??;
        }
    }
    blocking(move || partial.finish()).await??;
    Ok(())
}

/// What the other site sends of the file, from there on.
async fn ask(
    link: &PeerLink,
    file: &FileRef,
    offset: u64,
) -> Result<quinn::RecvStream, FetchError> {
    let mut bytes = Vec::new();
    frame::encode(&StreamRequest::Blob { blob: file.blob, offset }, &mut bytes)?;
    let (mut send, mut receive) = link.open().await?;
    send.write_all(&bytes).await.map_err(LinkError::from)?;
    let _gone = send.finish();
    match frame::read(&mut receive, &mut bytes, LONGEST_ANSWER).await? {
        StreamReply::Blob { size } if size == file.size => Ok(receive),
        StreamReply::Blob { size } => Err(FetchError::Size { found: size, expected: file.size }),
        StreamReply::NoSuchBlob | StreamReply::Http { .. } => Err(FetchError::Missing),
    }
}

fn take(
    mut partial: Box<dyn PartialFile>,
    bytes: &[u8],
    file: &FileRef,
    incoming: &IncomingFiles,
) -> Result<Box<dyn PartialFile>, FetchError> {
    let written = match partial.write_all(bytes).map_err(FetchError::Disk) {
        // Others write too.
        Ok(()) => incoming.has_room_for(0, file),
        error => error,
    };
    match written {
        Ok(()) => Ok(partial),
        Err(error) => {
            partial.discard()?;
            Err(error)
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(work).await.map_err(|_stopping| FetchError::Stopping)
}

/// Sends a content from there on.
pub(super) async fn serve(
    work: &LinkHandlers,
    id: BlobId,
    offset: u64,
    mut send: quinn::SendStream,
) -> Result<(), LinkError> {
    let kept = work.incoming.0.files.clone();
    let opened = tokio::task::spawn_blocking(move || kept.open(id, offset)).await;
    let opened = opened.map_err(|_stopping| LinkError::Broken)?;
    let mut bytes = Vec::new();
    if let Some(file) = opened.inspect_err(unsendable).ok().flatten() {
        frame::encode(&StreamReply::Blob { size: file.size() }, &mut bytes)?;
        send.write_all(&bytes).await?;
        return send_file(file, send).await;
    }
    let inline = inline_body(work, id).await?;
    let size = inline.as_ref().map(|content| content.len() as u64);
    frame::encode(
        &size.map_or(StreamReply::NoSuchBlob, |size| StreamReply::Blob { size }),
        &mut bytes,
    )?;
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    bytes.extend(inline.iter().flatten().skip(from));
    send.write_all(&bytes).await?;
    let _gone = send.finish();
    Ok(())
}

async fn send_file(
    mut file: Box<dyn WholeFile>,
    mut send: quinn::SendStream,
) -> Result<(), LinkError> {
    loop {
        let read = tokio::task::spawn_blocking(move || (file.next(CHUNK), file)).await;
        let (read, back) = read.map_err(|_stopping| LinkError::Broken)?;
        file = back;
        let Ok(chunk) = read.inspect_err(unsendable) else {
            let _gone = send.reset(DAMAGED);
            return Ok(());
        };
        if chunk.is_empty() {
            break;
        }
        send.write_all(&chunk).await?;
    }
    let _gone = send.finish();
    Ok(())
}

/// A content that is in an operation's entry. Whoever asks for it may have heard of the operation
/// before those who read the log do; so they are brought up to date before it is said that there is
/// none. If that is not possible, nothing is said, and it is asked for again.
async fn inline_body(work: &LinkHandlers, id: BlobId) -> Result<Option<Vec<u8>>, LinkError> {
    let look = || {
        let kept = work.incoming.0.files.clone();
        tokio::task::spawn_blocking(move || kept.inline_body(&id))
    };
    let unread = |error: FileError| {
        tracing::warn!(error = causes(&error), "the log cannot be searched for a body");
        LinkError::Broken
    };
    let found = look().await.map_err(|_stopping| LinkError::Broken)?.map_err(unread)?;
    if found.is_some() {
        return Ok(found);
    }
    let is_settled = work.inbox.settle().await.map_err(|_stopping| LinkError::Broken)?;
    let found = look().await.map_err(|_stopping| LinkError::Broken)?.map_err(unread)?;
    match found {
        None if !is_settled => Err(LinkError::Broken),
        found => Ok(found),
    }
}

/// Another site cannot do anything about it; whoever reads this log can.
fn unsendable(error: &FileError) {
    let hint = error.hint;
    tracing::error!(error = causes(error), hint, "a file cannot be sent to another site");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_files_takes_no_more_memory_for_being_sent_in_long_messages() {
        let room = WaitingRoom::default();
        let long: Vec<_> = std::iter::from_fn(|| room.take(frame::LONGEST)).collect();
        assert_eq!(long.len() * frame::LONGEST, ROOMS * ROOM_BYTES);
        assert!(room.take(1).is_none());
        drop(long);
        let short: Vec<_> = std::iter::from_fn(|| room.take(1)).collect();
        assert_eq!(short.len(), ROOMS, "as many as ever of those that an honest site sends");
    }
}
