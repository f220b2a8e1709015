//! Opening a data directory: whose is it, is anyone else in it, and is all of it as it was left?

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cheops_core::engine::Record;
use cheops_core::model::{Incarnation, SiteId};
use rusqlite::{Connection, TransactionBehavior};
use rustix::fs::{FlockOperation, flock};

use crate::backup::{BackupMaker, COPIED};
use crate::blobs::{BlobError, Blobs, DiskBlobs};
use crate::error::{LogPlace, OpenError};
use crate::fault::StoreFault;
use crate::files;
use crate::log::{
    self, ConnectionUse, FORMAT, Head, Journal, Moving, OLD_FORMAT, OpenLog, Reader, Round,
    RoundKey, Scanned, Settled, Store, WITHOUT_NAMES,
};
use crate::options::StoreOptions;
use crate::ports::{Certificates, Feed, SiteLog};
use crate::snapshots::Snapshots;

/// Everything a site keeps.
#[derive(Debug)]
pub struct Opened {
    /// Takes batches. Whoever opened the log before takes none any more.
    pub log: Box<dyn SiteLog>,
    /// Follows what was written.
    pub feed: Arc<dyn Feed>,
    /// The files that travel with operations.
    pub blobs: Arc<dyn Blobs>,
    /// Of other sites and this one.
    pub certificates: Arc<dyn Certificates>,
    /// Saved states of the application.
    pub snapshots: Snapshots,
    /// Which incarnation of the site's log this is: another only if the one before was lost, all of
    /// it or its end.
    pub incarnation: Incarnation,
    /// Whether nothing was ever written in this incarnation: the directory is new.
    pub first_incarnation: bool,
    /// What the site's engine is recovered from, in order.
    pub records: Vec<Record>,
    /// Makes copies while the site goes on.
    pub backup: BackupMaker,
}

/// The same, before it is seen by its ports only.
pub(crate) struct OpenedFiles {
    pub(crate) store: Store,
    reader: Reader,
    blobs: DiskBlobs,
    snapshots: Snapshots,
    incarnation: Incarnation,
    first_incarnation: bool,
    records: Vec<Record>,
    backup: BackupMaker,
}

/// A data directory that nobody else works on, for as long as this is held.
#[derive(Debug)]
pub struct Claim {
    places: DataPaths,
    lock: File,
}

/// Opens the data directory of that site, and makes it if there is none. `draw` gives the number
/// of a new incarnation: it must be random, so that a site which lost its disk never takes an old
/// one.
///
/// Reads and checks everything in the log. Files that nobody needs any more are removed. A
/// directory of the format before is moved to this one.
pub fn open(
    dir: &Path,
    site: &SiteId,
    draw: impl FnOnce() -> u64,
    options: StoreOptions,
) -> Result<Opened, OpenError> {
    Claim::on(dir)?.open(site, draw, options)
}

impl Claim {
    /// Claims a directory, and makes it if there is none.
    ///
    /// Who holds it also lends the claim to each child that it starts, from the fork until the
    /// child is its own program: so a claim on the directory of an agent that was killed can be had
    /// only when none of its children is about to begin.
    pub fn on(dir: &Path) -> Result<Self, OpenError> {
        let places = DataPaths::new(dir);
        files::make_dir(dir).map_err(|source| io_error("make", dir, source))?;
        let lock = lock(&places)?;
        Ok(Self { places, lock })
    }

    /// Opens what is in it: see [`open`].
    pub fn open(
        self,
        site: &SiteId,
        draw: impl FnOnce() -> u64,
        options: StoreOptions,
    ) -> Result<Opened, OpenError> {
        let opened = self.open_files(site, draw, options)?;
        let reader = Arc::new(opened.reader);
        Ok(Opened {
            log: Box::new(opened.store),
            feed: Arc::clone(&reader) as Arc<dyn Feed>,
            blobs: Arc::new(opened.blobs),
            certificates: reader,
            snapshots: opened.snapshots,
            incarnation: opened.incarnation,
            first_incarnation: opened.first_incarnation,
            records: opened.records,
            backup: opened.backup,
        })
    }

    pub(crate) fn open_files(
        self,
        site: &SiteId,
        draw: impl FnOnce() -> u64,
        options: StoreOptions,
    ) -> Result<OpenedFiles, OpenError> {
        let Self { places, lock } = self;
        let mut draw = Some(draw);
        places.keep_private()?;
        let is_new = !places.was_created()?;
        let failed = |fault: StoreFault| fault.into_open(&places.log);
        let mut db = log::connect(&places.log, ConnectionUse::Write)
            .map_err(|error| failed(error.into()))?;
        if is_new {
            let drawn = RoundKey::draw();
            let key = drawn.map_err(|source| io_error("draw a key for", &places.dir, source))?;
            let round = Round { size: options.journal_bytes, key };
            let incarnation = draw.take().map_or(1, |draw| draw().max(1));
            let head = Head::new(site.clone(), Incarnation(incarnation), round);
            create(&mut db, &head).map_err(failed)?;
        }
        let moving = Moving::new(&places.log, &places.journal, &options);
        let is_moved = log::format(&db).map_err(|error| failed(error.into()))? == Some(OLD_FORMAT);
        if is_moved {
            places.of_site(site, Moving::site(&db).map_err(failed)?)?;
            moving.all(db).map_err(failed)?;
            db = log::connect(&places.log, ConnectionUse::Write)
                .map_err(|error| failed(error.into()))?;
        }
        if log::format(&db).map_err(|error| failed(error.into()))? == Some(WITHOUT_NAMES) {
            log::matches_schema(&db, WITHOUT_NAMES).map_err(failed)?;
            places.of_site(site, Head::load(&db).map_err(failed)?.site)?;
            log::add_names(&mut db).map_err(failed)?;
        }
        let mut head = admit(&db, &places, site)?;
        let scanned = check(&db, &head).map_err(failed)?;
        if head.incarnation == COPIED {
            // What it was copied from may have given out more numbers since.
            head.incarnation = Incarnation(draw.take().map_or(1, |draw| draw().max(1)));
            head.save(&db).map_err(failed)?;
        }
        places.mark_created(&head)?;
        head.history = scanned.history;
        let shared = Arc::new(OpenLog::new(places.log.clone(), db, lock));
        let (journal, unsettled) = Journal::open(&places.journal, &head).map_err(failed)?;
        let first_incarnation = head.next_seq == 1 && unsettled.is_empty();
        let settled =
            Settled::after(&shared, journal, head, &unsettled, &options).map_err(failed)?;
        let mut settled = settled;
        let scanned = match unsettled.is_empty() {
            true => scanned,
            false => shared.read(|db| log::scan(db, &settled.head)).map_err(failed)?,
        };
        if let Some(vouch) = options.vouch.get() {
            let (head, progress) = (settled.head.clone(), &options.progress);
            settled.head =
                log::vouch(&shared, head, &scanned.unsigned, vouch, progress).map_err(failed)?;
        }
        if !is_moved {
            // It was whole once more: what it was moved from is of no use any longer.
            files::remove_if_there(&moving.kept)
                .map_err(|source| io_error("remove", &moving.kept, source))?;
        }
        let blobs = DiskBlobs::open(&places.blobs, &scanned.blobs, shared.clone(), &options)
            .map_err(|error| blob_error(&places.blobs, error))?;
        let snapshots = Snapshots::open(&places.snapshots, Arc::clone(&shared))
            .map_err(|source| io_error("clean up", &places.snapshots, source))?;
        Ok(OpenedFiles {
            incarnation: settled.head.incarnation,
            first_incarnation,
            records: scanned.records,
            reader: Reader::new(Arc::clone(&shared)),
            backup: BackupMaker::new(Arc::clone(&shared), blobs.clone(), places.snapshots.clone()),
            store: Store::new(shared, blobs.clone(), options, settled),
            blobs,
            snapshots,
        })
    }
}

/// What is where in a data directory.
#[derive(Debug)]
struct DataPaths {
    dir: PathBuf,
    lock: PathBuf,
    mark: PathBuf,
    drafts: PathBuf,
    log: PathBuf,
    journal: PathBuf,
    blobs: PathBuf,
    snapshots: PathBuf,
}

impl DataPaths {
    fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            lock: dir.join("lock"),
            mark: dir.join("site"),
            drafts: dir.join("tmp"),
            log: dir.join("log.db"),
            journal: dir.join("journal"),
            blobs: dir.join("blobs"),
            snapshots: dir.join("snapshots"),
        }
    }

    /// What is in the log is nobody else's to read, whoever may look into the folder. The database
    /// gives the files beside it the mode of its own.
    fn keep_private(&self) -> Result<(), OpenError> {
        let failed = |path: &Path| {
            let place = path.into();
            move |source| OpenError::Io { doing: "close to others", place, source }
        };
        for name in ["log.db-wal", "log.db-shm"] {
            let path = self.dir.join(name);
            files::keep_private(&path).map_err(failed(&path))?;
        }
        for path in [&self.lock, &self.mark, &self.journal] {
            files::keep_private(path).map_err(failed(path))?;
        }
        files::make_private(&self.log).map_err(failed(&self.log))
    }

    /// Whether there was a log once. A log without a single byte looks new to the database, and
    /// must not be taken for new if it is not.
    fn was_created(&self) -> Result<bool, OpenError> {
        let is_there =
            |path: &Path| path.try_exists().map_err(|source| io_error("look for", path, source));
        if is_there(&self.mark)? {
            return Ok(true);
        }
        if !is_there(&self.log)? {
            return Ok(false);
        }
        // The machine stopped between the making of the log and the making of its mark, or even
        // earlier.
        let empty = log::connect(&self.log, ConnectionUse::Write).and_then(|db| log::is_empty(&db));
        Ok(!empty.map_err(|error| StoreFault::from(error).into_open(&self.log))?)
    }

    fn of_site(&self, asked: &SiteId, found: SiteId) -> Result<(), OpenError> {
        if found == *asked {
            return Ok(());
        }
        Err(OpenError::WrongSite { dir: self.dir.clone(), found, asked: asked.clone() })
    }

    /// From now on an empty log is a lost one, and so is a missing journal. Until now there can be
    /// nothing in it, but for a log that was copied here alone: which is whole without it.
    fn mark_created(&self, head: &Head) -> Result<(), OpenError> {
        let text = format!(
            "cheops data directory, format {FORMAT}\nsite {}\nincarnation {}\n",
            head.site, head.incarnation
        );
        let is_marked = self.mark.exists();
        if is_marked && fs::read(&self.mark).is_ok_and(|mark| mark == text.as_bytes()) {
            return Ok(());
        }
        if !is_marked && !self.journal.exists() {
            files::remove_drafts(&self.drafts)
                .and_then(|()| Journal::create(&self.journal, &self.drafts, head.journal.size))
                .map_err(|source| io_error("write", &self.journal, source))?;
        }
        files::remove_drafts(&self.drafts)
            .and_then(|()| files::write_whole(&self.mark, &self.drafts, text.as_bytes()))
            .map_err(|source| io_error("write", &self.mark, source))
    }
}

fn lock(places: &DataPaths) -> Result<File, OpenError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&places.lock)
        .map_err(|source| io_error("open", &places.lock, source))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse { dir: places.dir.clone() }),
        Err(errno) => Err(io_error("lock", &places.lock, errno.into())),
    }
}

fn create(db: &mut Connection, head: &Head) -> Result<(), StoreFault> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    log::create(&transaction)?;
    head.save(&transaction)?;
    transaction.commit()?;
    Ok(())
}

/// Refuses what is not this site's or not of this version, before looking any closer.
fn admit(db: &Connection, places: &DataPaths, site: &SiteId) -> Result<Head, OpenError> {
    let failed = |fault: StoreFault| fault.into_open(&places.log);
    let damaged = |what: &str| failed(StoreFault::Damaged(LogPlace::File, what.to_string()));
    if log::is_empty(db).map_err(|error| failed(error.into()))? {
        return Err(damaged("it was lost: there is nothing in it any more"));
    }
    match log::format(db).map_err(|error| failed(error.into()))? {
        Some(FORMAT) => {}
        Some(found) => {
            let dir = places.dir.clone();
            return Err(OpenError::FormatVersion { dir, found, understood: FORMAT });
        }
        None => return Err(damaged("it is not the log of a site")),
    }
    log::matches_schema(db, FORMAT).map_err(failed)?;
    let head = Head::load(db).map_err(failed)?;
    places.of_site(site, head.site.clone())?;
    Ok(head)
}

fn check(db: &Connection, head: &Head) -> Result<Scanned, StoreFault> {
    let scanned = log::scan(db, head)?;
    log::check_structure(db)?;
    Ok(scanned)
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { doing, place: path.into(), source }
}

fn blob_error(path: &Path, error: BlobError) -> OpenError {
    match error {
        BlobError::Io { doing, place, source } => OpenError::Io { doing, place, source },
        other => io_error("clean up", path, io::Error::other(other)),
    }
}
