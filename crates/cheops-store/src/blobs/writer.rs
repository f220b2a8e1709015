//! A content on its way in, of which the hash is known at the end.

use std::io::{self, Write};

use cheops_core::model::BlobId;

use super::DiskBlobs;
use super::error::{BlobError, failed};
use super::port::{BlobWriter, Blobs, Stored};
use crate::files::Draft;

/// A draft beside the contents, until it is finished.
#[derive(Debug)]
pub(super) struct DiskBlobWriter {
    blobs: DiskBlobs,
    draft: Draft,
    hasher: blake3::Hasher,
    size: u64,
}

impl DiskBlobWriter {
    pub(super) fn new(blobs: DiskBlobs) -> Result<Self, BlobError> {
        let drafts = &blobs.places.drafts;
        let draft = Draft::create(drafts).map_err(failed("make a file in", drafts))?;
        Ok(Self { blobs, draft, hasher: blake3::Hasher::new(), size: 0 })
    }
}

impl BlobWriter for DiskBlobWriter {
    fn size(&self) -> u64 {
        self.size
    }

    fn finish(self: Box<Self>) -> Result<Stored, BlobError> {
        self.draft.sync().map_err(failed("sync", self.draft.path()))?;
        let id = BlobId(*self.hasher.finalize().as_bytes());
        let pin = self.blobs.pin(id);
        let Self { blobs, draft, size, .. } = *self;
        blobs.place(&pin, |path| draft.rename_to(path))?;
        Ok(Stored { id, size, pin })
    }
}

impl Write for DiskBlobWriter {
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
