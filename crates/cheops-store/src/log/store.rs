//! The one who writes.

use std::sync::Arc;

use cheops_core::engine::{Batch, Log, Notice, Record};
use cheops_core::model::BlobId;
use rusqlite::Connection;

use super::append::{Appending, is_needed};
use super::head::Head;
use super::scan::scan;
use super::shared::Shared;
use crate::blobs::Blobs;
use crate::error::{AppendError, ReadError};
use crate::fault::Fault;
use crate::options::Options;
use crate::rules::sweep_limit;

/// A site's log on disk, for its one writer. An append returns when the batch is on the medium.
///
/// After an error the log is as it was before, can be read, and takes the next batch when it can.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    blobs: Blobs,
    options: Options,
    head: Head,
    /// A batch that failed may yet be found whole in the files after a crash: see [`Store::bury`].
    buried: Buried,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buried {
    Yes,
    NotYet,
}

impl Store {
    pub(crate) fn new(shared: Arc<Shared>, blobs: Blobs, options: Options, head: Head) -> Self {
        Self { shared, blobs, options, head, buried: Buried::Yes }
    }

    /// Writes these as one batch: all of them or none. This is what [`Log::append`] does, for
    /// those who have records and no engine that made them.
    pub fn keep<'a>(
        &mut self,
        records: &[Record],
        notices: impl IntoIterator<Item = &'a Notice>,
    ) -> Result<(), AppendError> {
        let head = self.head.clone();
        let (now_ms, retention) = (self.options.clock.now_ms(), self.options.audit_retention);
        let written = self.shared.write(|db| {
            let mut appending = Appending::new(db, head, now_ms, retention);
            appending.sweep(sweep_limit(records.len()))?;
            records.iter().try_for_each(|record| appending.record(record))?;
            notices.into_iter().try_for_each(|notice| appending.notice(notice))?;
            appending.finish()
        });
        match written {
            Ok((head, unneeded)) => {
                self.head = head;
                self.buried = Buried::Yes;
                self.collect(unneeded);
                Ok(())
            }
            Err(fault) => {
                if fault.may_come_back() {
                    self.buried = Buried::NotYet;
                    // If that fails too, reading the log for recovery tries again.
                    let _later = self.bury();
                }
                Err(fault.into_append(&self.shared.path))
            }
        }
    }

    /// Reads everything an engine is recovered from, in order, as it was given out when the log
    /// was opened. This is how to go on after an append failed.
    pub fn records(&mut self) -> Result<Vec<Record>, ReadError> {
        let path = self.shared.path.clone();
        self.bury().map_err(|fault| fault.into_read(&path))?;
        let scanned = self.shared.read(|db| scan(db, &Head::load(db)?));
        Ok(scanned.map_err(|fault| fault.into_read(&path))?.records)
    }

    /// Makes sure that a batch which failed stays away.
    ///
    /// If only the sync of its frames failed, they may be whole in the write-ahead log, where the
    /// next start would find them and take them for committed. Any later commit is written over
    /// them. This one merely skips a place in the log.
    fn bury(&mut self) -> Result<(), Fault> {
        if self.buried == Buried::Yes {
            return Ok(());
        }
        let mut head = self.head.clone();
        head.take_seq();
        self.shared.write(|db| head.save(db))?;
        self.head = head;
        self.buried = Buried::Yes;
        Ok(())
    }

    /// Removes files that nothing refers to. Only this thread adds references, so what has none
    /// now gets none before it is gone; a blob that is about to get one is pinned.
    fn collect(&self, unneeded: Vec<BlobId>) {
        for blob in unneeded {
            self.blobs.remove_unpinned(&blob);
        }
        let unpinned = self.blobs.take_unpinned();
        if unpinned.is_empty() {
            return;
        }
        let db = self.shared.writer();
        for blob in unpinned.iter().filter(|blob| is_surely_unneeded(&db, blob)) {
            self.blobs.remove_unpinned(blob);
        }
    }
}

/// If that cannot be told now, the file stays until the directory is opened the next time.
fn is_surely_unneeded(db: &Connection, blob: &BlobId) -> bool {
    matches!(is_needed(db, blob), Ok(false))
}

impl Log for Store {
    type Error = AppendError;

    fn append(&mut self, batch: Batch<'_>) -> Result<(), AppendError> {
        self.keep(batch.records(), batch.notices())
    }
}

#[cfg(test)]
mod tests {
    use cheops_core::engine::Record;
    use cheops_core::model::{Incarnation, SiteId};

    use super::Buried;
    use crate::options::Options;

    #[test]
    fn a_batch_that_may_come_back_is_written_over_before_the_log_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let site = SiteId::new("paris").unwrap();
        let mut opened = crate::open(dir.path(), &site, || 1, Options::default()).unwrap();
        let life = Record::Life(site, Incarnation(1));
        opened.store.keep(std::slice::from_ref(&life), []).unwrap();
        opened.store.buried = Buried::NotYet;
        assert_eq!(opened.store.records().unwrap(), [life]);
        assert_eq!(opened.store.buried, Buried::Yes);
        assert_eq!(opened.reader.last_seq().unwrap().0, 2, "something was committed");
    }
}
