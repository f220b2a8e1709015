//! Saved states of the application, one file each, named by resource and number.
//!
//! The hash of the content is part of the file's name, so that a damaged state is never given to
//! a command that would restore it. The name of the resource is in a file beside them, since it
//! may have signs that a file's name cannot have.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cheops_core::model::ResourceId;
use cheops_core::plan::SnapshotId;

use crate::error::StoragePlace;
use crate::files::{self, Draft};
use crate::log::OpenLog;

/// In the directory of a resource: its name.
const NAME: &str = "resource";

/// Why a saved state could not be kept or had.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file no longer holds what was saved.
    #[error("snapshot {} of resource `{resource}` is damaged: `{place}`", .id.0)]
    Corrupt {
        /// Of which resource.
        resource: ResourceId,
        /// Which.
        id: SnapshotId,
        /// Where it is.
        place: StoragePlace,
    },
    /// A file or directory could not be used.
    #[error("could not {doing} `{place}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        place: StoragePlace,
        /// Why not.
        source: io::Error,
    },
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    let place = path.into();
    move |source| SnapshotError::Io { doing, place, source }
}

/// The saved states kept at this site. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshots {
    dir: Arc<PathBuf>,
    /// Putting a file into a directory and removing an empty one must not meet.
    tidy: Arc<Mutex<()>>,
    /// Nobody else may open the directory while this is in use.
    _shared: Arc<OpenLog>,
}

impl Snapshots {
    pub(crate) fn open(dir: &Path, shared: Arc<OpenLog>) -> io::Result<Self> {
        files::make_dir(dir)?;
        let drafts = dir.join("tmp");
        files::make_dir(&drafts)?;
        files::remove_drafts(&drafts)?;
        Ok(Self { dir: Arc::new(dir.to_path_buf()), tidy: Arc::default(), _shared: shared })
    }

    /// Starts a new one.
    pub fn create(
        &self,
        resource: &ResourceId,
        id: SnapshotId,
    ) -> Result<SnapshotWriter, SnapshotError> {
        let drafts = self.drafts();
        let draft = Draft::create(&drafts).map_err(failed("make a file in", &drafts))?;
        let (snapshots, resource) = (self.clone(), resource.clone());
        Ok(SnapshotWriter {
            snapshots,
            resource,
            id,
            draft,
            hasher: blake3::Hasher::new(),
            size: 0,
        })
    }

    /// The saved state, read once to see that it is what was saved. `None` if there is none.
    pub fn open_verified(
        &self,
        resource: &ResourceId,
        id: SnapshotId,
    ) -> Result<Option<File>, SnapshotError> {
        Ok(self.verified(resource, id)?.map(|(_, file)| file))
    }

    /// The file of the saved state, once it is seen to be what was saved. `None` if there is none.
    pub fn path(
        &self,
        resource: &ResourceId,
        id: SnapshotId,
    ) -> Result<Option<PathBuf>, SnapshotError> {
        Ok(self.verified(resource, id)?.map(|(path, _)| path))
    }

    /// Removes all of the resource but those that `keep` says yes to.
    pub fn retain(
        &self,
        resource: &ResourceId,
        keep: impl Fn(SnapshotId) -> bool,
    ) -> Result<(), SnapshotError> {
        let _tidy = self.tidy();
        keep_in(&self.dir_of(resource), keep)
    }

    /// Removes all but those that `keep` says yes to.
    pub fn sweep(
        &self,
        keep: impl Fn(&ResourceId, SnapshotId) -> bool,
    ) -> Result<(), SnapshotError> {
        let _tidy = self.tidy();
        for dir in files::list(&self.dir).map_err(failed("read", &self.dir))? {
            let name = fs::read_to_string(dir.join(NAME)).ok();
            let resource = name.and_then(|name| ResourceId::new(&name).ok());
            // A name that does not lead here is damaged, and whose states these are is not known.
            match resource.filter(|resource| self.dir_of(resource) == dir) {
                Some(resource) => keep_in(&dir, |id| keep(&resource, id))?,
                None => continue,
            }
        }
        Ok(())
    }

    /// How many bytes all of them take on disk.
    pub fn size(&self) -> Result<u64, SnapshotError> {
        files::bytes_below(&self.dir).map_err(failed("read", &self.dir))
    }

    fn verified(
        &self,
        resource: &ResourceId,
        id: SnapshotId,
    ) -> Result<Option<(PathBuf, File)>, SnapshotError> {
        let dir = self.dir_of(resource);
        let found = files::list(&dir).map_err(failed("read", &dir))?;
        let named = found.into_iter().find_map(|path| match parse(&path) {
            Some((of, hash)) if of == id => Some((path, hash)),
            _ => None,
        });
        let Some((path, hash)) = named else { return Ok(None) };
        let opened = files::open_if_there(&path).map_err(failed("open", &path))?;
        let Some(mut file) = opened else { return Ok(None) };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&mut file).map_err(failed("read", &path))?;
        if hasher.finalize() != hash {
            return Err(SnapshotError::Corrupt {
                resource: resource.clone(),
                id,
                place: (&path).into(),
            });
        }
        file.rewind().map_err(failed("read", &path))?;
        Ok(Some((path, file)))
    }

    fn dir_of(&self, resource: &ResourceId) -> PathBuf {
        self.dir.join(blake3::hash(resource.as_str().as_bytes()).to_hex().as_str())
    }

    fn drafts(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    fn tidy(&self) -> MutexGuard<'_, ()> {
        self.tidy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, writer: SnapshotWriter) -> Result<u64, SnapshotError> {
        let SnapshotWriter { resource, id, draft, hasher, size, .. } = writer;
        let dir = self.dir_of(&resource);
        let _tidy = self.tidy();
        files::make_dir(&dir).map_err(failed("make", &dir))?;
        let name = dir.join(NAME);
        files::write_whole(&name, &self.drafts(), resource.as_str().as_bytes())
            .map_err(failed("write", &name))?;
        let path = dir.join(format!("{}.{}", id.0, hasher.finalize().to_hex()));
        draft.rename_to(&path).map_err(failed("put in place", &path))?;
        for other in files::list(&dir).map_err(failed("read", &dir))? {
            if other != path && parse(&other).is_some_and(|(of, _)| of == id) {
                files::remove_if_there(&other).map_err(failed("remove", &other))?;
            }
        }
        files::sync_dir(&dir).map_err(failed("sync", &dir))?;
        Ok(size)
    }
}

/// Takes a state piece by piece. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotWriter {
    snapshots: Snapshots,
    resource: ResourceId,
    id: SnapshotId,
    draft: Draft,
    hasher: blake3::Hasher,
    size: u64,
}

impl SnapshotWriter {
    /// Makes it durable, in place of one of the same name. Returns its size.
    pub fn finish(self) -> Result<u64, SnapshotError> {
        self.draft.sync().map_err(failed("sync", self.draft.path()))?;
        let snapshots = self.snapshots.clone();
        snapshots.put(self)
    }
}

impl Write for SnapshotWriter {
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

/// `7.HASH`.
fn parse(path: &Path) -> Option<(SnapshotId, blake3::Hash)> {
    let (id, hash) = files::name(path)?.split_once('.')?;
    Some((SnapshotId(id.parse().ok()?), blake3::Hash::from_hex(hash).ok()?))
}

/// Removes the directory too, if nothing is kept in it.
fn keep_in(dir: &Path, keep: impl Fn(SnapshotId) -> bool) -> Result<(), SnapshotError> {
    let mut kept = false;
    for path in files::list(dir).map_err(failed("read", dir))? {
        match parse(&path) {
            Some((id, _)) if !keep(id) => {
                files::remove_if_there(&path).map_err(failed("remove", &path))?;
            }
            Some(_) => kept = true,
            None => {}
        }
    }
    if !kept {
        files::remove_if_there(&dir.join(NAME)).map_err(failed("remove", dir))?;
        // It may never have been there, or hold a file of someone else.
        let _kept = fs::remove_dir(dir);
    }
    Ok(())
}
