//! A content on its way out to another site.

use std::fs::File;
use std::io::{self, Read};

use cheops_core::model::BlobId;

use super::Blobs;
use super::error::{BlobError, failed};

/// Gives a content out piece by piece, and the last piece only if all of it is what its name says:
/// so a file that was damaged here is noticed here, and nobody else ever has it whole.
#[derive(Debug)]
pub struct CheckedBlob {
    blobs: Blobs,
    id: BlobId,
    file: File,
    hasher: blake3::Hasher,
    size: u64,
    left: u64,
}

impl CheckedBlob {
    pub(super) fn open(blobs: Blobs, id: BlobId, from: u64) -> Result<Option<Self>, BlobError> {
        let Some(file) = blobs.file(&id)? else { return Ok(None) };
        let path = blobs.places.of(&id);
        let size = file.metadata().map_err(failed("read", &path))?.len();
        let mut hasher = blake3::Hasher::new();
        let skipped = io::copy(&mut (&file).take(from), &mut hasher);
        let left = size - skipped.map_err(failed("read", &path))?.min(size);
        Ok(Some(Self { blobs, id, file, hasher, size, left }))
    }

    /// Of the whole content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next so many bytes, or what is left; none at the end.
    pub fn next(&mut self, most: usize) -> Result<Vec<u8>, BlobError> {
        let mut piece = Vec::with_capacity(most.min(usize::try_from(self.left).unwrap_or(most)));
        let read = (&self.file).take(most as u64).read_to_end(&mut piece);
        read.map_err(|error| failed("read", &self.blobs.places.of(&self.id))(error))?;
        self.hasher.update(&piece);
        let before = self.left;
        self.left = before.saturating_sub(piece.len() as u64);
        let is_short = piece.len() < most && self.left > 0;
        if (before > 0 && self.left == 0) || is_short {
            self.blobs.compare(&self.id, &self.file, &self.hasher)?;
        }
        Ok(piece)
    }
}
