//! Short contents that no site needs any more, kept for whoever reads the history.
//!
//! A content comes here when it would be removed, and stays until it is past its retention or there is
//! no room for it: the oldest goes first. Its age is the time of its file, so that a restart changes
//! nothing. Nothing is synced: what a stop takes back is moved here again, or was not needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use cheops_core::model::BlobId;

use super::named;
use crate::files;
use crate::options::StoreOptions;
use crate::rules::spent_before;

/// Contents longer than this are not kept when no site needs them any more.
pub const MOST_KEPT_BODY: u64 = 64 * 1024;

/// So many are kept at most, however short they are: each is known in memory.
const MOST_KEPT: usize = 1 << 16;

/// What is here, and since when.
#[derive(Debug)]
pub(super) struct KeptBodies {
    dir: PathBuf,
    options: StoreOptions,
    tally: Mutex<KeptTally>,
}

#[derive(Debug, Default)]
struct KeptTally {
    /// By age, with their sizes.
    by_age: BTreeSet<(u64, BlobId, u64)>,
    since: BTreeMap<BlobId, (u64, u64)>,
    bytes: u64,
}

impl KeptTally {
    fn add(&mut self, id: BlobId, since_ms: u64, size: u64) {
        self.remove(&id);
        self.by_age.insert((since_ms, id, size));
        self.since.insert(id, (since_ms, size));
        self.bytes += on_disk(size);
    }

    fn remove(&mut self, id: &BlobId) {
        if let Some((since_ms, size)) = self.since.remove(id) {
            self.by_age.remove(&(since_ms, *id, size));
            self.bytes -= on_disk(size);
        }
    }
}

/// A file takes whole blocks.
fn on_disk(size: u64) -> u64 {
    size.next_multiple_of(4096).max(4096)
}

impl KeptBodies {
    pub(super) fn open(dir: PathBuf, options: &StoreOptions) -> io::Result<Self> {
        let mut tally = KeptTally::default();
        for path in files::list(&dir)? {
            let Some(id) = files::name(&path).and_then(named) else { continue };
            let file = fs::metadata(&path)?;
            let since = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            tally.add(id, u64::try_from(since.as_millis()).unwrap_or(u64::MAX), file.len());
        }
        Ok(Self { dir, options: options.clone(), tally: Mutex::new(tally) })
    }

    /// Takes the file of a content that is needed no more, or removes it.
    pub(super) fn take(&self, id: &BlobId, path: &Path) -> io::Result<()> {
        let size = match fs::metadata(path) {
            Ok(file) => file.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if size > MOST_KEPT_BODY || self.options.audit_retention.is_zero() || self.most() == 0 {
            return files::remove_if_there(path).map(drop);
        }
        files::make_dir(&self.dir)?;
        let now_ms = self.options.clock.now_ms();
        // Before it is moved: once it is here, it has its age.
        File::options()
            .write(true)
            .open(path)?
            .set_modified(UNIX_EPOCH + Duration::from_millis(now_ms))?;
        fs::rename(path, self.place(id))?;
        self.tally().add(*id, now_ms, size);
        Ok(())
    }

    /// The content, if it is here and what its name says.
    pub(super) fn read(&self, id: &BlobId) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = files::open_if_there(&self.place(id))? else { return Ok(None) };
        let mut content = Vec::new();
        file.take(MOST_KEPT_BODY).read_to_end(&mut content)?;
        Ok(Some(content).filter(|content| blake3::hash(content).as_bytes() == &id.0))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tally().bytes
    }

    /// Half of what the history may take.
    fn most(&self) -> u64 {
        self.options.audit_bytes / 2
    }

    /// Drops what is past its retention, and the oldest of what there is no room for; whether there
    /// was some of that.
    pub(super) fn drop_old(&self) -> bool {
        let now_ms = self.options.clock.now_ms();
        let past = spent_before(now_ms, self.options.audit_retention);
        let mut tally = self.tally();
        let mut cut = false;
        while let Some((since_ms, id, _)) = tally.by_age.first().copied() {
            let is_past = past.is_some_and(|before| since_ms <= before);
            let is_too_much = tally.bytes > self.most() || tally.by_age.len() > MOST_KEPT;
            if !is_past && !is_too_much {
                break;
            }
            cut |= !is_past;
            tally.remove(&id);
            // What cannot be removed is found, and dropped, after the next start.
            let _later = files::remove_if_there(&self.place(&id));
        }
        cut
    }

    fn place(&self, id: &BlobId) -> PathBuf {
        self.dir.join(id.to_string())
    }

    /// Every change of it is one step, so a panic elsewhere leaves nothing half done.
    fn tally(&self) -> MutexGuard<'_, KeptTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
