//! What the mesh asks of the rest of an agent. It knows neither the engine nor the store: whoever has
//! them hands them in as these.

use std::any::Any;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use cheops_core::engine::Event;
use cheops_core::model::{BlobId, KeyId, OperationId, ResourceId};
use futures_util::future::BoxFuture;

/// Keeps a file where it is for as long as it is held.
pub type FilePin = Arc<dyn Any + Send + Sync>;

/// The files that a message brought, by the operations that need them.
pub struct Brought {
    /// Whose operations they are.
    pub resource: ResourceId,
    /// What must not be thrown away until these are known to the log.
    pub operations: Vec<(OperationId, Vec<FilePin>)>,
}

/// The agent is stopping: nothing is taken in any more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent is stopping")]
pub struct InboxClosed;

/// Who takes in what is heard of the other sites.
pub trait Inbox: Send + Sync {
    /// Takes in what happened, with files that it brings; waits while too much else does.
    fn take(&self, event: Event, files: Option<Brought>) -> BoxFuture<'_, Result<(), InboxClosed>>;

    /// Waits until all that was made durable can be found in the [`FileStore`]. Whether that was
    /// possible.
    fn settle(&self) -> BoxFuture<'_, Result<bool, InboxClosed>>;
}

/// Why a file could not be kept, or read.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct FileError {
    /// What the store says.
    pub source: Box<dyn Error + Send + Sync>,
    /// Whether there is no room for it.
    pub is_full: bool,
    /// What to do about it, where that can be told.
    pub hint: Option<&'static str>,
}

/// The files of operations that are kept at this site. All of it may wait for the disk, but for
/// [`FileStore::pin`] and [`FileStore::contains`].
pub trait FileStore: Send + Sync {
    /// Keeps a file from being thrown away, once it is here.
    fn pin(&self, blob: BlobId) -> FilePin;

    /// Whether it is here.
    fn contains(&self, blob: &BlobId) -> bool;

    /// What is here of a file that is being fetched.
    fn partial(&self, blob: BlobId, size: u64) -> Result<Box<dyn PartialFile>, FileError>;

    /// A file, from there on; `None` if it is not here.
    fn open(&self, blob: BlobId, offset: u64) -> Result<Option<Box<dyn WholeFile>>, FileError>;

    /// The same of one that is so short that it is in an operation's entry.
    fn inline_body(&self, blob: &BlobId) -> Result<Option<Vec<u8>>, FileError>;

    /// How many bytes are free where files are kept.
    fn room_left(&self) -> u64;
}

/// A file of which some is here.
pub trait PartialFile: Write + Send {
    /// How much is.
    fn offset(&self) -> u64;

    /// Whether all of it is.
    fn is_whole(&self) -> bool;

    /// Throws it away.
    fn discard(self: Box<Self>) -> Result<(), FileError>;

    /// Puts it where it belongs, if it is what it should be.
    fn finish(self: Box<Self>) -> Result<(), FileError>;
}

/// A file that is checked as it is read.
pub trait WholeFile: Send {
    /// Of all of it.
    fn size(&self) -> u64;

    /// At most so many bytes of what comes next; none at its end.
    fn next(&mut self, most: usize) -> Result<Vec<u8>, FileError>;
}

/// The certificates of other sites that are kept at this one.
pub trait CertificateStore: Send + Sync {
    /// All of them.
    fn kept(&self) -> Result<Vec<Vec<u8>>, Box<dyn Error + Send + Sync>>;

    /// Keeps one.
    fn keep(&self, key: KeyId, certificate: &[u8]) -> Result<(), Box<dyn Error + Send + Sync>>;
}
