//! The twin in memory: the same pins, and no disk. Nothing in it is damaged or gets old.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cheops_core::model::BlobId;

use super::error::{BlobError, failed};
use super::kept::MOST_KEPT_BODY;
use super::pins::{ContentOrigin, Pin, Pins};
use super::port::{BlobWriter, Blobs, CheckedBlob, PartialBlob, Stored};
use crate::files;

/// Contents in memory. Cheap to clone; gone with the last clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryBlobs {
    contents: Arc<Mutex<MemoryContents>>,
    /// Locked before the contents, where both are.
    pins: Arc<Pins>,
}

#[derive(Debug, Default)]
struct MemoryContents {
    whole: BTreeMap<BlobId, Arc<Vec<u8>>>,
    partial: BTreeMap<BlobId, Vec<u8>>,
    /// For readers of the history only, and since when.
    kept: BTreeMap<BlobId, (u64, Arc<Vec<u8>>)>,
}

impl MemoryBlobs {
    /// Removes what is not needed and nobody holds: whatever a stop left behind.
    pub(crate) fn sweep(&self, needed: &BTreeSet<BlobId>, kept_since: Option<u64>) {
        let unneeded: Vec<_> =
            self.contents().whole.keys().filter(|id| !needed.contains(id)).copied().collect();
        unneeded.iter().for_each(|id| self.remove_unpinned(id, kept_since));
    }

    /// See `DiskBlobs::remove_unpinned`.
    pub(crate) fn remove_unpinned(&self, id: &BlobId, kept_since: Option<u64>) {
        self.pins.unless_pinned(id, |_| {
            let mut contents = self.contents();
            let removed = contents.whole.remove(id);
            let short = removed.filter(|content| content.len() as u64 <= MOST_KEPT_BODY);
            if let (Some(since_ms), Some(content)) = (kept_since, short) {
                contents.kept.insert(*id, (since_ms, content));
            }
        });
    }

    /// Drops what is kept since then or longer, and the oldest beyond so many bytes; whether there was
    /// some of that.
    pub(crate) fn drop_kept(&self, before: Option<u64>, most: u64) -> bool {
        let mut kept = self.contents();
        kept.kept.retain(|_, (since_ms, _)| before.is_none_or(|before| *since_ms > before));
        let bytes = |kept: &MemoryContents| -> u64 {
            kept.kept.values().map(|(_, content)| content.len() as u64).sum()
        };
        let mut cut = false;
        while bytes(&kept) > most {
            let oldest = kept.kept.iter().min_by_key(|(_, (since_ms, _))| *since_ms);
            let Some(id) = oldest.map(|(id, _)| *id) else { break };
            kept.kept.remove(&id);
            cut = true;
        }
        cut
    }

    /// How many bytes contents take that are kept for readers of the history only.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.contents().kept.values().map(|(_, content)| content.len() as u64).sum()
    }

    /// See `DiskBlobs::set_aside_unpinned`.
    pub(crate) fn set_aside_unpinned(&self, id: &BlobId) {
        self.pins.unless_pinned(id, |origin| {
            let mut contents = self.contents();
            let removed = contents.whole.remove(id);
            if let (ContentOrigin::AnotherSite, Some(content)) = (origin, removed) {
                contents.partial.insert(*id, content.to_vec());
            }
        });
    }

    pub(crate) fn found_needed(&self, id: &BlobId) {
        self.pins.found_needed(id);
    }

    pub(crate) fn take_unpinned(&self) -> BTreeSet<BlobId> {
        self.pins.take_unpinned()
    }

    fn place(&self, pin: Pin, content: Vec<u8>) -> Stored {
        let (id, size) = (pin.id(), content.len() as u64);
        self.contents().whole.insert(id, Arc::new(content));
        let removed =
            self.pins.unless_fetched(&id, || Ok(self.contents().partial.remove(&id).is_some()));
        debug_assert!(removed.is_ok(), "there is no disk to fail");
        Stored { id, size, pin }
    }

    fn content(&self, id: &BlobId) -> Option<Arc<Vec<u8>>> {
        self.contents().whole.get(id).cloned()
    }

    /// Every change of it is one step, so a panic elsewhere leaves nothing half done.
    fn contents(&self) -> MutexGuard<'_, MemoryContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(content: &[u8]) -> BlobId {
    BlobId(*blake3::hash(content).as_bytes())
}

impl Blobs for MemoryBlobs {
    fn create(&self) -> Result<Box<dyn BlobWriter>, BlobError> {
        Ok(Box::new(MemoryBlobWriter { blobs: self.clone(), content: Vec::new() }))
    }

    fn partial(&self, id: BlobId, size: u64) -> Result<Box<dyn PartialBlob>, BlobError> {
        let pin = self.pin(id);
        if !self.pins.start_fetching(id) {
            return Err(BlobError::BeingFetched { id });
        }
        let mut contents = self.contents();
        if contents.partial.get(&id).is_some_and(|here| here.len() as u64 > size) {
            contents.partial.remove(&id);
        }
        drop(contents);
        Ok(Box::new(MemoryPartialBlob { blobs: self.clone(), pin, size }))
    }

    fn pin(&self, id: BlobId) -> Pin {
        Pins::pin(&self.pins, id)
    }

    fn contains(&self, id: &BlobId) -> bool {
        self.contents().whole.contains_key(id)
    }

    fn open_checked(
        &self,
        id: BlobId,
        from: u64,
    ) -> Result<Option<Box<dyn CheckedBlob>>, BlobError> {
        let opened = self.content(&id).map(|content| {
            let at = usize::try_from(from).unwrap_or(usize::MAX).min(content.len());
            Box::new(MemoryCheckedBlob { content, at }) as Box<dyn CheckedBlob>
        });
        Ok(opened)
    }

    fn copy_to(&self, id: &BlobId, path: &Path) -> Result<u64, BlobError> {
        let content = self.content(id).ok_or(BlobError::Missing { id: *id })?;
        let mut to = files::create_new(path).map_err(failed("make", path))?;
        let copied = to.write_all(&content).map_err(failed("copy to", path));
        if copied.is_err() {
            // The error says more than that this failed, too.
            let _left = fs::remove_file(path);
        }
        copied.map(|()| content.len() as u64)
    }

    fn short(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError> {
        let kept = self.contents().kept.get(id).map(|(_, content)| Arc::clone(content));
        let short = kept.or_else(|| self.content(id));
        let short = short.filter(|content| content.len() as u64 <= MOST_KEPT_BODY);
        Ok(short.map(|content| content.to_vec()))
    }

    fn size(&self) -> Result<u64, BlobError> {
        let contents = self.contents();
        let whole = contents.whole.values().map(|content| content.len());
        Ok(whole.chain(contents.partial.values().map(Vec::len)).map(|size| size as u64).sum())
    }
}

#[derive(Debug)]
struct MemoryBlobWriter {
    blobs: MemoryBlobs,
    content: Vec<u8>,
}

impl Write for MemoryBlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlobWriter for MemoryBlobWriter {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn finish(self: Box<Self>) -> Result<Stored, BlobError> {
        let pin = self.blobs.pin(hash(&self.content));
        Ok(self.blobs.place(pin, self.content))
    }
}

#[derive(Debug)]
struct MemoryPartialBlob {
    blobs: MemoryBlobs,
    pin: Pin,
    size: u64,
}

impl Drop for MemoryPartialBlob {
    fn drop(&mut self) {
        self.blobs.pins.stop_fetching(&self.pin.id());
    }
}

impl Write for MemoryPartialBlob {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.size - self.offset() {
            let what = format!("more than the {} bytes it should have", self.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.blobs.contents().partial.entry(self.pin.id()).or_default().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartialBlob for MemoryPartialBlob {
    fn offset(&self) -> u64 {
        self.blobs.contents().partial.get(&self.pin.id()).map_or(0, |here| here.len() as u64)
    }

    fn is_whole(&self) -> bool {
        self.offset() == self.size
    }

    fn discard(self: Box<Self>) -> Result<(), BlobError> {
        self.blobs.contents().partial.remove(&self.pin.id());
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Stored, BlobError> {
        let (id, size) = (self.pin.id(), self.size);
        if !self.is_whole() {
            return Err(BlobError::Incomplete { id, have: self.offset(), size });
        }
        let content = self.blobs.contents().partial.remove(&id).unwrap_or_default();
        let got = hash(&content);
        if got != id {
            return Err(BlobError::WrongContent { id, got });
        }
        let stored = self.blobs.place(self.pin.clone(), content);
        self.blobs.pins.arrived(id);
        Ok(stored)
    }
}

#[derive(Debug)]
struct MemoryCheckedBlob {
    content: Arc<Vec<u8>>,
    at: usize,
}

impl Read for MemoryCheckedBlob {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut left = self.content.get(self.at..).unwrap_or_default();
        let read = left.read(into)?;
        self.at += read;
        Ok(read)
    }
}

impl CheckedBlob for MemoryCheckedBlob {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn next(&mut self, most: usize) -> Result<Vec<u8>, BlobError> {
        let left = self.content.get(self.at..).unwrap_or_default();
        let piece = left.get(..most).unwrap_or(left).to_vec();
        self.at += piece.len();
        Ok(piece)
    }
}
