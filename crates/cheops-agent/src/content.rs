//! The store, as the executor needs it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cheops_core::model::{BlobId, ResourceId};
use cheops_core::plan::SnapshotId;
use cheops_store::{BlobWriter, Blobs, Pin, SnapshotWriter, Snapshots};

use crate::exec::{ContentStore, Saving};

/// Files and saved states of this site.
pub(crate) struct SiteContent {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) snapshots: Snapshots,
    pub(crate) kept: KeptStates,
}

/// The states that were kept last, resource by resource, until the log itself knows that they are needed.
#[derive(Clone, Default)]
pub(crate) struct KeptStates(Arc<Mutex<BTreeMap<ResourceId, Pin>>>);

impl KeptStates {
    fn hold(&self, resource: &ResourceId, pin: Pin) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(resource.clone(), pin);
    }

    /// What is needed of a resource the log knows.
    pub(crate) fn release(&self, resource: &ResourceId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(resource);
    }
}

fn missing(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{what} is not here"))
}

impl ContentStore for SiteContent {
    fn copy_to(&self, blob: &BlobId, path: &Path) -> io::Result<()> {
        self.blobs.copy_to(blob, path).map(|_size| ()).map_err(io::Error::other)
    }

    fn open(&self, blob: &BlobId) -> io::Result<Box<dyn Read + Send>> {
        let file = self.blobs.open_checked(*blob, 0).map_err(io::Error::other)?;
        file.map(|file| file as Box<dyn Read + Send>).ok_or_else(|| missing("the file"))
    }

    fn save(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>> {
        let writer = self.snapshots.create(resource, id).map_err(io::Error::other)?;
        Ok(Box::new(SavedState(writer)))
    }

    fn keep(&self, resource: &ResourceId) -> io::Result<Box<dyn Saving>> {
        let writer = self.blobs.create().map_err(io::Error::other)?;
        Ok(Box::new(StateKeeper { writer, resource: resource.clone(), kept: self.kept.clone() }))
    }

    fn saved(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Read + Send>> {
        let file = self.snapshots.open_verified(resource, id).map_err(io::Error::other)?;
        file.map(|file| Box::new(file) as Box<dyn Read + Send>)
            .ok_or_else(|| missing("the saved state"))
    }
}

struct SavedState(SnapshotWriter);

impl io::Write for SavedState {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Saving for SavedState {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish().map(|_size| ()).map_err(io::Error::other)
    }
}

struct StateKeeper {
    writer: Box<dyn BlobWriter>,
    resource: ResourceId,
    kept: KeptStates,
}

impl io::Write for StateKeeper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Saving for StateKeeper {
    fn finish(self: Box<Self>) -> io::Result<()> {
        let stored = self.writer.finish().map_err(io::Error::other)?;
        self.kept.hold(&self.resource, stored.pin);
        Ok(())
    }
}
