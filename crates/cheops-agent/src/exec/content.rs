//! What running commands needs of the store: files that came with operations, and saved states.

use std::io;
use std::path::Path;

use bytes::Bytes;
use cheops_core::model::{BlobId, ResourceId};
use cheops_core::plan::SnapshotId;
use tokio::sync::mpsc;

/// The store, as an executor sees it. Every method may block: they are called where that is
/// allowed.
pub trait ContentStore: Send + Sync + 'static {
    /// Writes the content to a new file at this path, and checks that it is the content of that
    /// name.
    ///
    /// # Errors
    ///
    /// When it is not here, is damaged, or the file cannot be written.
    fn copy_to(&self, blob: &BlobId, path: &Path) -> io::Result<()>;

    /// Opens content for reading; damage shows as an error while it is read.
    ///
    /// # Errors
    ///
    /// When it is not here.
    fn open(&self, blob: &BlobId) -> io::Result<Box<dyn io::Read + Send>>;

    /// Begins to keep a state of a resource under this name.
    ///
    /// # Errors
    ///
    /// When nothing can be written.
    fn save(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>>;

    /// Begins to keep a state of a resource as a content, by its hash, for as long as nothing else holds it.
    ///
    /// # Errors
    ///
    /// When nothing can be written.
    fn keep(&self, _resource: &ResourceId) -> io::Result<Box<dyn Saving>> {
        Err(io::Error::other("states are not kept here"))
    }

    /// Opens a state that was kept.
    ///
    /// # Errors
    ///
    /// When it is not here.
    fn saved(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn io::Read + Send>>;
}

/// A state on its way to the disk. Dropped before [`Saving::finish`], nothing of it stays.
pub trait Saving: io::Write + Send {
    /// Makes it durable under its name.
    ///
    /// # Errors
    ///
    /// When the disk does not take it; then nothing of it stays.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Pieces that may be on their way between a thread that blocks and a task that does not.
const PIECES: usize = 4;
const PIECE_BYTES: usize = 64 * 1024;

/// Reads on a thread that may block. The last piece may be an error.
pub(super) fn pieces(
    open: impl FnOnce() -> io::Result<Box<dyn io::Read + Send>> + Send + 'static,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let result = open().and_then(|mut reader| read_all(&mut *reader, &sender));
        if let Err(error) = result {
            // Nobody listens any more: then nobody needs to know.
            let _ = sender.blocking_send(Err(error));
        }
    });
    receiver
}

fn read_all(
    reader: &mut (dyn io::Read + Send),
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if sender.blocking_send(Ok(Bytes::copy_from_slice(&piece[..read]))).is_err() {
            return Ok(());
        }
    }
}

/// A state that is being kept, on a thread that may block.
pub(super) struct Keeping {
    pieces: mpsc::Sender<Bytes>,
    thread: tokio::task::JoinHandle<io::Result<Box<dyn Saving>>>,
    room: u64,
}

impl Keeping {
    pub(super) fn begin(
        open: impl FnOnce() -> io::Result<Box<dyn Saving>> + Send + 'static,
        limit: u64,
    ) -> Self {
        let (pieces, mut receiver) = mpsc::channel::<Bytes>(PIECES);
        let thread = tokio::task::spawn_blocking(move || {
            let mut saving = open()?;
            while let Some(piece) = receiver.blocking_recv() {
                saving.write_all(&piece)?;
            }
            Ok(saving)
        });
        Self { pieces, thread, room: limit }
    }

    /// Takes one more piece; an error if there is too much of it, or the disk takes no more.
    pub(super) async fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        let length = piece.len() as u64;
        self.room = self.room.checked_sub(length).ok_or("it is larger than the limit")?;
        let sent = self.pieces.send(Bytes::copy_from_slice(piece)).await;
        sent.map_err(|_| "the disk took no more of it".to_owned())
    }

    /// Makes it durable.
    pub(super) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        let saving = self.thread.await.map_err(io::Error::other)??;
        tokio::task::spawn_blocking(move || saving.finish()).await.map_err(io::Error::other)?
    }

    /// Drops it, and says why the disk took no more, if that was it.
    pub(super) async fn abandon(self) -> Option<io::Error> {
        drop(self.pieces);
        self.thread.await.ok()?.err()
    }
}
