//! From the format before to this one; and vouching for what nobody signed.
//!
//! The new database is written beside the old one, which stays as it is until the new one is whole
//! and on the medium. Then the old one gets another name, and the new one takes its place, in one
//! step. Wherever that is stopped, either the old one is there and is moved again from the start, or
//! the new one is.
//!
//! What the old journal holds is put into the old tables first. The new head has a new key for the
//! journal, so nothing that is in the file counts any more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cheops_core::engine::Record;
use cheops_core::model::{Entry, SiteId};
use cheops_record::disk;
use rusqlite::{Connection, TransactionBehavior, params};

use super::append::Appending;
use super::head::Head;
use super::journal::{Journal, RoundKey};
use super::row::{ChangeRow, Digest, StateRow};
use super::scan::{UnsignedEntry, check_structure, scan};
use super::schema::{ConnectionUse, OLD_FORMAT, connect, create, matches_schema};
use super::shared::{Durable, OpenLog};
use crate::error::LogPlace;
use crate::fault::StoreFault;
use crate::feed::ChangeKind;
use crate::files;
use crate::options::{ProgressReporter, StoreOptions};

/// So many rows are moved, or vouched for, in one step. One signature is for as many entries.
const AT_ONCE: usize = 256;

const MOVING: &str = "moving the log to format 5";

/// The files of a move.
#[derive(Debug)]
pub(crate) struct Moving<'a> {
    pub(crate) log: &'a Path,
    pub(crate) journal: &'a Path,
    /// Where the new one is written.
    pub(crate) new: PathBuf,
    /// What the old one is called when the new one has taken its place.
    pub(crate) kept: PathBuf,
    pub(crate) options: &'a StoreOptions,
}

impl<'a> Moving<'a> {
    pub(crate) fn new(log: &'a Path, journal: &'a Path, options: &'a StoreOptions) -> Self {
        let beside = |name: String| log.with_file_name(name);
        Self {
            log,
            journal,
            new: beside("log.db.new".to_string()),
            kept: beside(format!("log.db.format-{OLD_FORMAT}")),
            options,
        }
    }

    /// Says whose it is, before anything is done with it.
    pub(crate) fn site(old: &Connection) -> Result<SiteId, StoreFault> {
        matches_schema(old, OLD_FORMAT)?;
        Ok(Head::load(old)?.site)
    }

    /// Moves the log to this format. It is closed afterwards, and the new one is to be opened.
    pub(crate) fn all(&self, mut old: Connection) -> Result<(), StoreFault> {
        let moved = self.write_new(&mut old);
        if moved.is_err() {
            // What cannot be removed now is removed when this is tried again.
            let _later = self.remove_new();
        }
        moved?;
        self.switch(old)
    }

    fn write_new(&self, old: &mut Connection) -> Result<(), StoreFault> {
        let tell = |done| self.options.progress.tell(MOVING, done, 0);
        tell(0);
        let head = Head::load(old)?;
        scan(old, &head)?;
        check_structure(old)?;
        let head = self.settle(old, head)?;
        tell(0);
        self.remove_new().map_err(self.failed("remove", &self.new))?;
        drop(files::create_new(&self.new).map_err(self.failed("make", &self.new))?);
        let mut new = connect(&self.new, ConnectionUse::Write)?;
        // All of it is synced at the end, and nobody looks at it before.
        new.pragma_update(None, "synchronous", "OFF")?;
        create(&new)?;
        let mut copying = Copying { old, new: &mut new, digest: Digest::default(), done: 0, of: 0 };
        copying.all(&self.options.progress)?;
        let digest = copying.digest;
        let mut head = Head { digest, ..head };
        head.journal.key = self.draw()?;
        new.pragma_update(None, "synchronous", "FULL")?;
        head.save(&new)?;
        checkpoint(&new, &self.new)?;
        scan(&new, &Head::load(&new)?)?;
        check_structure(&new)?;
        new.close().map_err(|(_, error)| error)?;
        fs::File::open(&self.new)
            .and_then(|file| file.sync_all())
            .map_err(self.failed("sync", &self.new))
    }

    /// Puts what the journal has into the old tables, as the program before would have done.
    fn settle(&self, old: &mut Connection, mut head: Head) -> Result<Head, StoreFault> {
        let (_journal, unsettled) = Journal::open(self.journal, &head)?;
        if unsettled.is_empty() {
            return Ok(head);
        }
        head.journal.key = self.draw()?;
        let transaction = old.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now_ms = self.options.clock.now_ms();
        let bounds = (self.options.audit_retention, self.options.audit_bytes);
        let mut appending = Appending::new(&transaction, head, now_ms, bounds)?;
        appending.batches(unsettled.iter())?;
        // Files that nobody needs are swept when the blobs are opened.
        let appended = appending.finish()?;
        transaction.commit()?;
        Ok(appended.head)
    }

    /// The new one takes the old one's place.
    fn switch(&self, old: Connection) -> Result<(), StoreFault> {
        let tell = |done| self.options.progress.tell("putting the new log in its place", done, 3);
        tell(0);
        checkpoint(&old, self.log)?;
        old.close().map_err(|(_, error)| error)?;
        // The write-ahead log of the old one must not be found beside the new one.
        for name in ["log.db-wal", "log.db-shm"] {
            let path = self.log.with_file_name(name);
            files::remove_if_there(&path).map_err(self.failed("remove", &path))?;
        }
        tell(1);
        let keep = || {
            files::remove_if_there(&self.kept)?;
            // Not every file system has a second name for a file.
            if fs::hard_link(self.log, &self.kept).is_err() {
                fs::copy(self.log, &self.kept)?;
                fs::File::open(&self.kept)?.sync_all()?;
            }
            self.log.parent().map_or(Ok(()), files::sync_dir)
        };
        keep().map_err(self.failed("keep", &self.kept))?;
        tell(2);
        fs::rename(&self.new, self.log)
            .and_then(|()| self.log.parent().map_or(Ok(()), files::sync_dir))
            .map_err(self.failed("make", self.log))?;
        tell(3);
        Ok(())
    }

    fn remove_new(&self) -> io::Result<()> {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.new.clone().into_os_string();
            name.push(suffix);
            files::remove_if_there(Path::new(&name))?;
        }
        Ok(())
    }

    fn draw(&self) -> Result<RoundKey, StoreFault> {
        RoundKey::draw().map_err(self.failed("draw a key for", self.journal))
    }

    fn failed<'p>(
        &self,
        doing: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> StoreFault + use<'p> {
        move |error| StoreFault::Io(doing, path.to_path_buf(), error)
    }
}

/// Everything is in the file itself, on the medium.
fn checkpoint(db: &Connection, path: &Path) -> Result<(), StoreFault> {
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    if busy == 0 {
        return Ok(());
    }
    let error = io::Error::other("somebody else reads it; let them end, and start again");
    Err(StoreFault::Io("checkpoint", path.to_path_buf(), error))
}

struct Copying<'a> {
    old: &'a Connection,
    new: &'a mut Connection,
    digest: Digest,
    done: u64,
    of: u64,
}

impl Copying<'_> {
    fn all(&mut self, progress: &ProgressReporter) -> Result<(), StoreFault> {
        for table in ["changes", "state"] {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = self.old.query_row(&sql, (), |row| row.get(0))?;
            self.of += rows.unsigned_abs();
        }
        progress.tell(MOVING, 0, self.of);
        for table in [Self::changes, Self::state] {
            let mut last = Some(0);
            while let Some(after) = last {
                last = table(self, after)?;
                progress.tell(MOVING, self.done, self.of);
            }
        }
        self.others()
    }

    /// Some rows; the place of the last, if there were any.
    fn changes(&mut self, after: i64) -> Result<Option<i64>, StoreFault> {
        let columns = ChangeRow::COLUMNS;
        let sql = format!("SELECT {columns} FROM changes WHERE seq > ? ORDER BY seq LIMIT ?");
        let mut statement = self.old.prepare_cached(&sql)?;
        let mut rows = statement.query(params![after, at_once()])?;
        let transaction = self.new.transaction()?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            let (row, _) = ChangeRow::read(row)?;
            let body = match row.decode()? {
                ChangeKind::Entry(resource, entry) => {
                    disk::encode_record(&Record::Entry(resource, entry))
                }
                ChangeKind::Notice(notice) => disk::encode_notice(&notice),
            };
            self.digest.add(ChangeRow { body: &body, ..row }.insert(&transaction)?);
            self.done += 1;
            last = Some(row.seq);
        }
        transaction.commit()?;
        Ok(last)
    }

    fn state(&mut self, after: i64) -> Result<Option<i64>, StoreFault> {
        let columns = StateRow::COLUMNS;
        let sql = format!("SELECT {columns} FROM state WHERE seq > ? ORDER BY seq LIMIT ?");
        let mut statement = self.old.prepare_cached(&sql)?;
        let mut rows = statement.query(params![after, at_once()])?;
        let transaction = self.new.transaction()?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            let (row, _) = StateRow::read(row)?;
            let body = disk::encode_record(&row.decode()?);
            self.digest.add(StateRow { body: &body, ..row }.insert(&transaction)?);
            self.done += 1;
            last = Some(row.seq);
        }
        transaction.commit()?;
        Ok(last)
    }

    /// What has no body: it is the same in both formats.
    fn others(&mut self) -> Result<(), StoreFault> {
        let transaction = self.new.transaction()?;
        {
            let mut statement = self.old.prepare("SELECT blob, seq FROM blob_refs")?;
            let mut rows = statement.query(())?;
            let sql = "INSERT INTO blob_refs (blob, seq) VALUES (?, ?)";
            while let Some(row) = rows.next()? {
                let (blob, seq): ([u8; 32], i64) = (row.get(0)?, row.get(1)?);
                transaction.prepare_cached(sql)?.execute(params![blob, seq])?;
            }
            let mut statement = self.old.prepare("SELECT name, seq, sum FROM cursors")?;
            let mut rows = statement.query(())?;
            let sql = "INSERT INTO cursors (name, seq, sum) VALUES (?, ?, ?)";
            while let Some(row) = rows.next()? {
                let (name, seq, sum): (String, i64, [u8; 16]) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                transaction.prepare_cached(sql)?.execute(params![name, seq, sum])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

fn at_once() -> i64 {
    i64::try_from(AT_ONCE).unwrap_or(i64::MAX)
}

/// Lets somebody vouch for entries that nobody signed, and keeps that. Returns the new head.
pub(crate) fn vouch(
    shared: &OpenLog,
    mut head: Head,
    unsigned: &[UnsignedEntry],
    vouch: &dyn Fn(&[&Entry]),
    progress: &ProgressReporter,
) -> Result<Head, StoreFault> {
    let mut done = 0;
    for some in unsigned.chunks(AT_ONCE) {
        progress.tell("vouching for entries from before signatures", done, unsigned.len() as u64);
        vouch(&some.iter().map(|unsigned| &*unsigned.entry).collect::<Vec<_>>());
        head = shared.write(Durable::Later, |db| {
            let mut head = head.clone();
            for unsigned in some {
                rewrite(db, unsigned, &mut head)?;
            }
            head.save(db)?;
            Ok(head)
        })?;
        done += some.len() as u64;
    }
    if done > 0 {
        shared.write(Durable::AtOnce, |db| head.save(db))?;
        progress.tell("vouching for entries from before signatures", done, done);
    }
    Ok(head)
}

fn rewrite(db: &Connection, unsigned: &UnsignedEntry, head: &mut Head) -> Result<(), StoreFault> {
    let UnsignedEntry { seq, resource, entry } = unsigned;
    let body = disk::encode_record(&Record::Entry(resource.clone(), entry.clone()));
    let sql = format!("SELECT {} FROM changes WHERE seq = ?", ChangeRow::COLUMNS);
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query(params![seq])?;
    let row =
        rows.next()?.ok_or_else(|| StoreFault::Damaged(LogPlace::Rows, "one is gone".into()))?;
    let (row, before) = ChangeRow::read(row)?;
    let sum = ChangeRow { body: &body, ..row }.sum();
    let sql = "UPDATE changes SET body = ?, sum = ? WHERE seq = ?";
    db.prepare_cached(sql)?.execute(params![body, sum.0, seq])?;
    head.digest.take(before);
    head.digest.add(sum);
    Ok(())
}
