//! A content on its way in from another site, of which hash and size are known from the start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use cheops_core::model::BlobId;

use super::error::{BlobError, failed};
use super::pins::Pin;
use super::{Blobs, Stored};
use crate::files;

/// Takes a content piece by piece, from where it was left. Dropped before it is finished, what is
/// here stays, also over a restart, until nobody went on with it for long.
#[derive(Debug)]
pub struct PartialBlob {
    fetching: Fetching,
    file: File,
    hasher: blake3::Hasher,
    offset: u64,
    size: u64,
}

/// The right to fetch the content, for one at a time.
#[derive(Debug)]
struct Fetching {
    blobs: Blobs,
    pin: Pin,
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.blobs.pins.stop_fetching(&self.pin.id());
    }
}

impl PartialBlob {
    pub(super) fn open(blobs: Blobs, id: BlobId, size: u64) -> Result<Self, BlobError> {
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

    /// How much is here: where the other site has to go on from.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether nothing is missing, as far as its size tells.
    pub fn is_whole(&self) -> bool {
        self.offset == self.size
    }

    /// Throws away what is here, because the rest will not come, or has no room.
    pub fn discard(self) -> Result<(), BlobError> {
        let path = self.fetching.blobs.places.partial(&self.fetching.pin.id());
        files::remove_if_there(&path).map(|_| ()).map_err(failed("remove", &path))
    }

    /// Makes the content durable, if it is what was asked for. Otherwise it is thrown away, except
    /// where something is merely missing.
    pub fn finish(self) -> Result<Stored, BlobError> {
        let Self { fetching, file, hasher, offset, size } = self;
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

impl Write for PartialBlob {
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
