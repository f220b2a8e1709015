//! A content on its way in from another site, of which hash and size are known from the start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use cheops_core::model::BlobId;

use super::DiskBlobs;
use super::error::{BlobError, failed};
use super::pins::Pin;
use super::port::{Blobs, PartialBlob, Stored};
use crate::files;

/// What is here of a content, in a file apart from those that are whole.
#[derive(Debug)]
pub(super) struct DiskPartialBlob {
    fetching: Fetching,
    file: File,
    hasher: blake3::Hasher,
    offset: u64,
    size: u64,
}

/// The right to fetch the content, for one at a time.
#[derive(Debug)]
struct Fetching {
    blobs: DiskBlobs,
    pin: Pin,
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.blobs.pins.stop_fetching(&self.pin.id());
    }
}

impl DiskPartialBlob {
    pub(super) fn open(blobs: DiskBlobs, id: BlobId, size: u64) -> Result<Self, BlobError> {
        let path = blobs.places.partial(&id);
        let pin = blobs.pin(id);
        // Before the file is looked at, so that nobody removes it in between.
        if !blobs.pins.start_fetching(id) {
            return Err(BlobError::BeingFetched { id });
        }
        let fetching = Fetching { blobs, pin };
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        let found = file.metadata().map_err(failed("read", &path))?.len();
        let offset = if found > size { 0 } else { found };
        if offset < found {
            // Otherwise it keeps its age, however often somebody comes to see how much is here.
            file.set_len(offset).map_err(failed("cut", &path))?;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&mut file).map_err(failed("read", &path))?;
        Ok(Self { fetching, file, hasher, offset, size })
    }
}

impl PartialBlob for DiskPartialBlob {
    fn offset(&self) -> u64 {
        self.offset
    }

    fn is_whole(&self) -> bool {
        self.offset == self.size
    }

    fn discard(self: Box<Self>) -> Result<(), BlobError> {
        let path = self.fetching.blobs.places.partial(&self.fetching.pin.id());
        files::remove_if_there(&path).map(|_| ()).map_err(failed("remove", &path))
    }

    fn finish(self: Box<Self>) -> Result<Stored, BlobError> {
        let Self { fetching, file, hasher, offset, size } = *self;
        let Fetching { blobs, pin } = &fetching;
        let (id, from) = (pin.id(), blobs.places.partial(&pin.id()));
        if offset < size {
            return Err(BlobError::Incomplete { id, have: offset, size });
        }
        let got = BlobId(*hasher.finalize().as_bytes());
        if got != id {
            files::remove_if_there(&from).map_err(failed("remove", &from))?;
            return Err(BlobError::WrongContent { id, got });
        }
        file.sync_all().map_err(failed("sync", &from))?;
        blobs.place(pin, |path| fs::rename(&from, path))?;
        blobs.pins.arrived(id);
        Ok(Stored { id, size, pin: pin.clone() })
    }
}

impl Write for DiskPartialBlob {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.size - self.offset {
            let what = format!("more than the {} bytes it should have", self.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let written = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        self.offset += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
