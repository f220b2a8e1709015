//! A content on its way out, to another site or to a service of this one.

use std::fs::File;
use std::io::{self, Read};

use cheops_core::model::BlobId;

use super::DiskBlobs;
use super::error::{BlobError, failed};
use super::port::CheckedBlob;

/// A file that is hashed as it is read.
#[derive(Debug)]
pub(super) struct DiskCheckedBlob {
    blobs: DiskBlobs,
    id: BlobId,
    file: File,
    hasher: blake3::Hasher,
    size: u64,
    left: u64,
}

impl DiskCheckedBlob {
    pub(super) fn open(blobs: DiskBlobs, id: BlobId, from: u64) -> Result<Option<Self>, BlobError> {
        let Some(file) = blobs.file(&id)? else { return Ok(None) };
        let path = blobs.places.of(&id);
        let size = file.metadata().map_err(failed("read", &path))?.len();
        let mut hasher = blake3::Hasher::new();
        let skipped = io::copy(&mut (&file).take(from), &mut hasher);
        let left = size - skipped.map_err(failed("read", &path))?.min(size);
        if left == 0 {
            // There will be no last piece to keep back.
            blobs.compare(&id, &file, &hasher)?;
        }
        Ok(Some(Self { blobs, id, file, hasher, size, left }))
    }

    /// What was read, and whether the file ended before its time.
    fn check(&mut self, piece: &[u8], is_short: bool) -> Result<(), BlobError> {
        self.hasher.update(piece);
        let before = self.left;
        self.left = before.saturating_sub(piece.len() as u64);
        if (before > 0 && self.left == 0) || is_short {
            self.blobs.compare(&self.id, &self.file, &self.hasher)?;
        }
        Ok(())
    }
}

impl CheckedBlob for DiskCheckedBlob {
    fn size(&self) -> u64 {
        self.size
    }

    fn next(&mut self, most: usize) -> Result<Vec<u8>, BlobError> {
        let most = most.min(usize::try_from(self.left).unwrap_or(most));
        let mut piece = Vec::with_capacity(most);
        let read = (&self.file).take(most as u64).read_to_end(&mut piece);
        read.map_err(|error| failed("read", &self.blobs.places.of(&self.id))(error))?;
        let is_short = piece.len() < most;
        self.check(&piece, is_short)?;
        Ok(piece)
    }
}

impl Read for DiskCheckedBlob {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(usize::try_from(self.left).unwrap_or(into.len()));
        let into = &mut into[..most];
        let read = self.file.read(into)?;
        self.check(&into[..read], read == 0 && most > 0).map_err(io::Error::other)?;
        Ok(read)
    }
}
