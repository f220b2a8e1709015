//! States that were read: kept in memory while trials go on, the one from before also on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cheops_agent::exec::{ContentStore, Saving};
use cheops_core::model::{BlobId, ResourceId};
use cheops_core::plan::SnapshotId;
use tempfile::NamedTempFile;

use super::runner::TrialsStopped;
use crate::failure::Failure;

/// How large one state may be, in bytes.
pub(super) const MAX_STATE_BYTES: u64 = 16 * 1024 * 1024;
/// How large all different ones may be together.
const MAX_ALL_BYTES: usize = 256 * 1024 * 1024;

/// A state, and the name by which the executor finds it.
#[derive(Debug, Clone)]
pub(super) struct KeptTrialState {
    pub(super) id: SnapshotId,
    pub(super) bytes: Arc<[u8]>,
}

/// Where commands that read and write states leave and find them. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct States {
    held: Arc<Mutex<HeldStates>>,
}

#[derive(Default)]
struct HeldStates {
    by_name: BTreeMap<u64, Arc<[u8]>>,
    different: BTreeSet<Arc<[u8]>>,
    bytes: usize,
}

impl States {
    /// The state that was left under that name; it is not kept there any longer, and every state
    /// takes its room once.
    pub(super) fn take(&self, id: SnapshotId) -> Result<Arc<[u8]>, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.by_name.remove(&id.0).ok_or_else(|| Failure::ours("a state is lost"))?;
        if let Some(known) = held.different.get(&bytes) {
            return Ok(Arc::clone(known));
        }
        held.bytes = held.bytes.saturating_add(bytes.len());
        if held.bytes > MAX_ALL_BYTES {
            let limit = MAX_ALL_BYTES / (1024 * 1024);
            return Err(Failure::caller(format!("the states take more than {limit} MiB together"))
                .hint("try it on a smaller resource, or with fewer samples"));
        }
        held.different.insert(Arc::clone(&bytes));
        Ok(bytes)
    }

    /// Leaves a state under that name, to be written.
    pub(super) fn leave(&self, state: &KeptTrialState) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.by_name.insert(state.id.0, Arc::clone(&state.bytes));
    }
}

impl ContentStore for States {
    fn copy_to(&self, _: &BlobId, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn open(&self, _: &BlobId) -> io::Result<Box<dyn Read + Send>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn save(&self, _: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>> {
        Ok(Box::new(StateBeingRead { states: self.clone(), id, bytes: Vec::new() }))
    }

    fn saved(&self, _: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Read + Send>> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.by_name.get(&id.0).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(Arc::clone(bytes))))
    }
}

/// What a command prints as a state.
struct StateBeingRead {
    states: States,
    id: SnapshotId,
    bytes: Vec<u8>,
}

impl Write for StateBeingRead {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.bytes.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Saving for StateBeingRead {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.states.leave(&KeptTrialState { id: self.id, bytes: self.bytes.into() });
        Ok(())
    }
}

/// The state before, on disk too, until it is put back: whoever ends this program by force finds it.
pub(super) struct Aside {
    file: NamedTempFile,
}

impl Aside {
    pub(super) fn keep(state: &KeptTrialState) -> Result<Self, Failure> {
        let kept = || -> io::Result<NamedTempFile> {
            let mut file = tempfile::Builder::new().prefix("cheops-state-before-").tempfile()?;
            file.write_all(&state.bytes)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        let file = kept().map_err(|error| {
            Failure::caller("the state before cannot be kept aside, so nothing is tried")
                .because(error)
                .hint("TMPDIR names a folder with room")
        })?;
        Ok(Self { file })
    }

    /// It could not be put back: says where it is.
    pub(super) fn lost(self, stopped: TrialsStopped) -> Failure {
        let told = match self.file.keep() {
            Ok((_, path)) => format!("give `{}` to the `Write` command yourself", path.display()),
            Err(error) => format!("nor could it be kept: {error}"),
        };
        let why = stopped.failure(None);
        Failure::caller("the state before could not be put back").because(why.told()).hint(told)
    }
}
