//! Copies of a data directory that can be started from, made while the site goes on.
//!
//! The log is copied as it is at one moment, then the files that it refers to, and its name comes
//! last: what was stopped half-way is not taken for a log. A copy does not know what the original
//! writes later, so it must not go on counting where that was: it has no incarnation, and its first
//! start draws a new one. The site is then to the others as one that lost part of its memory.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Incarnation};
use rusqlite::Connection;

use crate::blobs::{BlobError, Blobs, DiskBlobs};
use crate::error::{ReadError, StoragePlace};
use crate::fault::StoreFault;
use crate::files;
use crate::log::{self, ConnectionUse, Head, OpenLog, RoundKey};
use crate::options::ProgressReporter;
use crate::rules::blobs_of;

/// The incarnation of a copy that was never started. None that is drawn is this one.
pub(crate) const COPIED: Incarnation = Incarnation(0);

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is something in its place.
    #[error("`{}` is there already, and not an empty folder", .0.display())]
    NotEmpty(PathBuf),
    /// The log cannot be read.
    #[error("the log cannot be copied")]
    Log(#[from] ReadError),
    /// A file that operations refer to cannot be copied.
    #[error("a file cannot be copied")]
    Blob(#[from] BlobError),
    /// A file or folder could not be used.
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

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files of operations.
    pub files: u64,
    /// Files that the log refers to and that were not here: they are still on their way here from
    /// other sites, and the copy gets them from there.
    pub missing: u64,
    /// Saved states of the application.
    pub snapshots: u64,
    /// How many bytes all of it takes.
    pub bytes: u64,
}

/// Makes copies. Cheap to clone; never waits for the writer.
#[derive(Debug, Clone)]
pub struct BackupMaker {
    shared: Arc<OpenLog>,
    blobs: DiskBlobs,
    snapshots: PathBuf,
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let place = path.into();
    move |source| BackupError::Io { doing, place, source }
}

impl BackupMaker {
    pub(crate) fn new(shared: Arc<OpenLog>, blobs: DiskBlobs, snapshots: PathBuf) -> Self {
        Self { shared, blobs, snapshots }
    }

    /// Makes a copy of all that is in the tables into that folder, which is new or empty.
    pub fn to(&self, dir: &Path, progress: &ProgressReporter) -> Result<Copied, BackupError> {
        let is_free = match fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(BackupError::NotEmpty(dir.to_path_buf()));
        }
        files::make_dir(dir).map_err(failed("make", dir))?;
        let owner_only = fs::Permissions::from_mode(0o700);
        fs::set_permissions(dir, owner_only).map_err(failed("close to others", dir))?;
        progress.tell("copying the log", 0, 1);
        // What is needed now stays until it is copied.
        let needed = self.shared.read(blobs_in).map_err(|fault| self.unread(fault))?;
        let _pins: Vec<_> = needed.iter().map(|blob| self.blobs.pin(*blob)).collect();
        let draft = dir.join("log.db.part");
        let needed = self.copy_log(&draft)?;
        let mut copied = Copied::default();
        self.copy_blobs(dir, &needed, progress, &mut copied)?;
        self.copy_snapshots(dir, progress, &mut copied)?;
        copied.bytes += fs::metadata(&draft).map_err(failed("look at", &draft))?.len();
        let log = dir.join("log.db");
        fs::rename(&draft, &log)
            .and_then(|()| files::sync_dir(dir))
            .map_err(failed("make", &log))?;
        Ok(copied)
    }

    fn unread(&self, fault: StoreFault) -> BackupError {
        fault.into_read(&self.shared.path).into()
    }

    /// Returns the blobs that the copy refers to.
    fn copy_log(&self, draft: &Path) -> Result<BTreeSet<BlobId>, BackupError> {
        drop(files::create_new(draft).map_err(failed("make", draft))?);
        let copy = || -> Result<_, StoreFault> {
            // One state of the log, whatever is written meanwhile.
            let reader = log::connect(&self.shared.path, ConnectionUse::Read)?;
            let name = draft.to_str().ok_or_else(|| {
                let error = io::Error::other("its name is not text");
                StoreFault::Io("write", draft.to_path_buf(), error)
            })?;
            reader.execute("VACUUM INTO ?", [name])?;
            let db = log::connect(draft, ConnectionUse::Write)?;
            let mut head = Head::load(&db)?;
            head.incarnation = COPIED;
            head.journal.key = RoundKey::draw()
                .map_err(|error| StoreFault::Io("draw a key for", draft.to_path_buf(), error))?;
            head.save(&db)?;
            let scanned = log::scan(&db, &head)?;
            log::check_structure(&db)?;
            let mut needed = scanned.blobs;
            // Of what is in the log itself there need be no file.
            let inline = scanned.records.iter().filter_map(inline_in);
            for blob in inline.filter(|blob| !self.blobs.contains(blob)) {
                needed.remove(&blob);
            }
            // All of it into the one file.
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
            db.close().map_err(|(_, error)| error)?;
            Ok(needed)
        };
        let needed = copy().map_err(|fault| self.unread(fault))?;
        fs::File::open(draft).and_then(|file| file.sync_all()).map_err(failed("sync", draft))?;
        Ok(needed)
    }

    fn copy_blobs(
        &self,
        dir: &Path,
        needed: &BTreeSet<BlobId>,
        progress: &ProgressReporter,
        copied: &mut Copied,
    ) -> Result<(), BackupError> {
        for (done, blob) in needed.iter().enumerate() {
            progress.tell("copying files", done as u64, needed.len() as u64);
            if !self.blobs.contains(blob) {
                copied.missing += 1;
                continue;
            }
            let name = blob.to_string();
            let (first, rest) = name.split_at(2);
            let folder = dir.join("blobs").join(first);
            files::make_dir(&folder).map_err(failed("make", &folder))?;
            let path = folder.join(rest);
            match self.blobs.copy_to(blob, &path) {
                Ok(bytes) => copied.bytes += bytes,
                Err(BlobError::Missing { .. }) => {
                    copied.missing += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            settle_file(&path)?;
            copied.files += 1;
        }
        Ok(())
    }

    fn copy_snapshots(
        &self,
        dir: &Path,
        progress: &ProgressReporter,
        copied: &mut Copied,
    ) -> Result<(), BackupError> {
        let list = |dir: &Path| files::list(dir).map_err(failed("list", dir));
        let folders = list(&self.snapshots)?;
        for (done, folder) in folders.iter().enumerate() {
            progress.tell("copying saved states", done as u64, folders.len() as u64);
            let Some(name) = files::name(folder).filter(|name| *name != "tmp") else { continue };
            let to = dir.join("snapshots").join(name);
            for file in list(folder)? {
                let Some(name) = files::name(&file) else { continue };
                files::make_dir(&to).map_err(failed("make", &to))?;
                let path = to.join(name);
                match fs::copy(&file, &path) {
                    Ok(bytes) => copied.bytes += bytes,
                    // It was not needed any more.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(failed("copy", &file)(error)),
                }
                settle_file(&path)?;
                copied.snapshots += u64::from(name.contains('.'));
            }
        }
        Ok(())
    }
}

/// For its owner alone, and on the medium.
fn settle_file(path: &Path) -> Result<(), BackupError> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::File::open(path)?.sync_all())
        .and_then(|()| path.parent().map_or(Ok(()), files::sync_dir))
        .map_err(failed("sync", path))
}

/// The content that an entry brings along.
fn inline_in(record: &Record) -> Option<BlobId> {
    let Record::Entry(_, entry) = record else { return None };
    entry.inline_body().and_then(|_| blobs_of(entry).into_iter().next())
}

fn blobs_in(db: &Connection) -> Result<BTreeSet<BlobId>, StoreFault> {
    let mut statement = db.prepare("SELECT DISTINCT blob FROM blob_refs")?;
    let rows = statement.query_map((), |row| Ok(BlobId(row.get(0)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
