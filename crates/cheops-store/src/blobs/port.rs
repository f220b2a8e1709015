//! The port: contents by their hash, wherever they are kept.

use std::fmt;
use std::io::{Read, Write};
use std::path::Path;

use cheops_core::model::BlobId;

use super::error::BlobError;
use super::pins::Pin;

/// The contents kept at a site, by hash. What no entry needs and no [`Pin`] holds is removed by and by.
///
/// All of it may wait for the medium, but for [`Blobs::pin`].
pub trait Blobs: fmt::Debug + Send + Sync {
    /// Starts a new content.
    fn create(&self) -> Result<Box<dyn BlobWriter>, BlobError>;

    /// Starts, or goes on with, fetching a content that is known by its hash and size. One at a
    /// time for each content. It may be fetched even if it is here, to take the place of one that
    /// is damaged.
    fn partial(&self, id: BlobId, size: u64) -> Result<Box<dyn PartialBlob>, BlobError>;

    /// Keeps the content from being removed, whether it is here already or not.
    fn pin(&self, id: BlobId) -> Pin;

    /// Whether the content is here. Pin it first if it has to stay.
    fn contains(&self, id: &BlobId) -> bool;

    /// The content from there on, to be sent piece by piece. `None` if it is not here.
    fn open_checked(
        &self,
        id: BlobId,
        from: u64,
    ) -> Result<Option<Box<dyn CheckedBlob>>, BlobError>;

    /// Copies the content to a new file of the caller's, and checks what was copied: with an error
    /// there is no copy. Returns its size.
    fn copy_to(&self, id: &BlobId, path: &Path) -> Result<u64, BlobError>;

    /// The content, if it is no longer than [`MOST_KEPT_BODY`](crate::MOST_KEPT_BODY) and is here, be it
    /// that operations need it still or that it is kept for readers of the history.
    fn short(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError>;

    /// How many bytes all contents take where they are kept, but for those that are kept for readers of
    /// the history only.
    fn size(&self) -> Result<u64, BlobError>;
}

/// Takes a content piece by piece, of which the hash is known at the end. Dropped before it is
/// finished, it leaves nothing behind.
pub trait BlobWriter: Write + fmt::Debug + Send {
    /// How much was written.
    fn size(&self) -> u64;

    /// Makes the content durable and gives it its name.
    fn finish(self: Box<Self>) -> Result<Stored, BlobError>;
}

/// Takes a content from another site piece by piece, from where it was left. Dropped before it is
/// finished, what is here stays, also over a restart, until nobody went on with it for long.
pub trait PartialBlob: Write + fmt::Debug + Send {
    /// How much is here: where the other site has to go on from.
    fn offset(&self) -> u64;

    /// Whether nothing is missing, as far as its size tells.
    fn is_whole(&self) -> bool;

    /// Throws away what is here, because the rest will not come, or has no room.
    fn discard(self: Box<Self>) -> Result<(), BlobError>;

    /// Makes the content durable, if it is what was asked for. Otherwise it is thrown away, except
    /// where something is merely missing.
    fn finish(self: Box<Self>) -> Result<Stored, BlobError>;
}

/// Gives a content out piece by piece, and the last piece only if all of it is what its name says:
/// so what was damaged here is noticed here, and nobody else ever has it whole.
pub trait CheckedBlob: Read + fmt::Debug + Send {
    /// Of the whole content.
    fn size(&self) -> u64;

    /// The next so many bytes, or what is left; none at the end.
    fn next(&mut self, most: usize) -> Result<Vec<u8>, BlobError>;
}

/// A content that is durable.
#[derive(Debug)]
pub struct Stored {
    /// Its name.
    pub id: BlobId,
    /// Its size in bytes.
    pub size: u64,
    /// Keeps it here until an operation that refers to it is committed.
    pub pin: Pin,
}
