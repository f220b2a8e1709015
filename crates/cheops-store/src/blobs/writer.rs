//! A content on its way in, of which the hash is known at the end.

use std::io::{self, Write};

use cheops_core::model::BlobId;

use super::Blobs;
use super::error::{BlobError, failed};
use super::pins::Pin;
use crate::files::Draft;

/// Takes a content piece by piece. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub struct BlobWriter {
    blobs: Blobs,
    draft: Draft,
    hasher: blake3::Hasher,
    size: u64,
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

impl BlobWriter {
    pub(super) fn new(blobs: Blobs) -> Result<Self, BlobError> {
        let drafts = &blobs.places.drafts;
        let draft = Draft::create(drafts).map_err(failed("make a file in", drafts))?;
        Ok(Self { blobs, draft, hasher: blake3::Hasher::new(), size: 0 })
    }

    /// How much was written.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes the content durable and gives it its name.
    pub fn finish(self) -> Result<Stored, BlobError> {
        self.draft.sync().map_err(failed("sync", self.draft.path()))?;
        let id = BlobId(*self.hasher.finalize().as_bytes());
        let pin = self.blobs.pin(id);
        let Self { blobs, draft, size, .. } = self;
        blobs.place(&pin, |path| draft.rename_to(path))?;
        Ok(Stored { id, size, pin })
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.draft.file().write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.file().flush()
    }
}
