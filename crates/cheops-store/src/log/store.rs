//! The one who writes.

use std::io;
use std::sync::Arc;

use cheops_core::engine::{self, Log, Notice, Record};
use cheops_core::model::BlobId;
use rusqlite::Connection;

use super::append::{Appended, Appending, is_needed};
use super::head::Head;
use super::journal::{Journal, JournalBatch, RoundKey};
use super::scan::scan;
use super::shared::{Durable, OpenLog};
use crate::blobs::DiskBlobs;
use crate::error::{AppendError, ReadError};
use crate::fault::StoreFault;
use crate::options::StoreOptions;
use crate::ports::{LogFence, SiteLog};
use crate::rules::sweep_limit;

/// A site's log on disk: the journal, then the tables.
#[derive(Debug)]
pub(crate) struct Store {
    shared: Arc<OpenLog>,
    blobs: DiskBlobs,
    fence: LogFence,
    options: StoreOptions,
    journal: Journal,
    /// What the tables have.
    head: Head,
    /// What the journal has beyond that, in order.
    unsettled: Vec<JournalBatch>,
    /// A step that failed may yet be found whole in the database's files: see [`Store::bury`].
    buried: Buried,
    /// When it was last looked for what nobody went on fetching.
    swept_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buried {
    Yes,
    NotYet,
}

/// So much may wait for the tables: it is in memory too.
const MOST_UNSETTLED: usize = 1 << 20;

const SWEEP_EVERY_MS: u64 = 60 * 60 * 1000;

impl Store {
    pub(crate) fn new(
        shared: Arc<OpenLog>,
        blobs: DiskBlobs,
        options: StoreOptions,
        Settled { journal, head }: Settled,
    ) -> Self {
        let (unsettled, swept_ms) = (Vec::new(), options.clock.now_ms());
        let (fence, buried) = (head.journal.key.fence(), Buried::Yes);
        let store =
            Self { shared, blobs, fence, options, journal, head, unsettled, buried, swept_ms };
        store.count_history(false);
        store
    }

    /// The way into the journal, for whoever has records and notices.
    fn add<'a>(
        &mut self,
        records: &[Record],
        notices: impl IntoIterator<Item = &'a Notice>,
    ) -> Result<(), AppendError> {
        let kept = JournalBatch::new(self.options.clock.now_ms(), records, notices)
            .and_then(|batch| self.write(batch));
        kept.map_err(|fault| fault.into_append(&self.shared.path))?;
        if self.unsettled.iter().map(JournalBatch::bytes).sum::<usize>() > MOST_UNSETTLED {
            // The batch is kept. What is wrong with the tables is told when the journal is full.
            let _later = self.settle();
        }
        Ok(())
    }

    fn write(&mut self, mut batch: JournalBatch) -> Result<(), StoreFault> {
        self.bury()?;
        if !self.journal.has_room_for(&batch) && !self.journal.is_empty() {
            self.start_over(None)?;
        }
        if !self.journal.has_room_for(&batch) {
            // More than there can ever be room for.
            return self.start_over(Some(&batch));
        }
        let unsettled: usize = self.unsettled.iter().map(JournalBatch::rows).sum();
        let first_seq = self.head.next_seq.saturating_add_unsigned(unsettled as u64);
        self.journal.append(first_seq, &mut batch)?;
        self.unsettled.push(batch);
        Ok(())
    }

    /// Makes the tables durable with all there is, and then the journal is free.
    fn start_over(&mut self, with: Option<&JournalBatch>) -> Result<(), StoreFault> {
        let key = RoundKey::draw().map_err(|error| no_key(&self.journal, error))?;
        self.take_over(with, Some(key))?;
        self.journal.start_over(key);
        Ok(())
    }

    fn take_over(
        &mut self,
        with: Option<&JournalBatch>,
        new_key: Option<RoundKey>,
    ) -> Result<(), StoreFault> {
        self.shared.still_ours()?;
        let mut head = self.head.clone();
        let durable = if new_key.is_some() { Durable::AtOnce } else { Durable::Later };
        head.journal.key = new_key.unwrap_or(head.journal.key);
        let batches = self.unsettled.iter().chain(with);
        let bounds = (&self.options, self.blobs.kept_bytes());
        match put(&self.shared, durable, head, batches, bounds) {
            Ok(Appended { head, unneeded, cut }) => {
                self.head = head;
                self.unsettled.clear();
                self.collect(unneeded);
                let cut = self.blobs.drop_kept() | cut;
                self.count_history(cut);
                Ok(())
            }
            Err(fault) => {
                if fault.may_come_back() {
                    self.buried = Buried::NotYet;
                    // If that fails too, whoever writes or reads next tries again.
                    let _later = self.bury();
                }
                Err(fault)
            }
        }
    }

    /// Makes sure that what failed stays away.
    ///
    /// If only the sync of its frames failed, a step may be whole in the database's write-ahead
    /// log, where the next start would find it and take it for committed: with a key that no frame
    /// of the journal was written with. Any later commit is written over it.
    fn bury(&mut self) -> Result<(), StoreFault> {
        self.shared.still_ours()?;
        self.journal.bury()?;
        if self.buried == Buried::Yes {
            return Ok(());
        }
        self.shared.write(Durable::AtOnce, |db| self.head.save(db))?;
        // A sync that failed may have lost what earlier steps wrote, and the next one would not
        // say so: before the journal may be used again, the database has to have all of it.
        self.shared.checkpoint()?;
        self.buried = Buried::Yes;
        Ok(())
    }

    fn count_history(&self, cut: bool) {
        let mut size = self.shared.history();
        size.bytes = self.head.history;
        size.bodies = self.blobs.kept_bytes();
        size.most = self.options.audit_bytes;
        if cut {
            size.cut_ms = Some(self.options.clock.now_ms());
        }
    }

    /// Removes files that nothing refers to. Only this thread adds references, so what has none
    /// now gets none before it is gone; a blob that is about to get one is pinned.
    fn collect(&mut self, unneeded: Vec<BlobId>) {
        for blob in unneeded {
            self.blobs.remove_unpinned(&blob);
        }
        let now_ms = self.options.clock.now_ms();
        if now_ms.abs_diff(self.swept_ms) > SWEEP_EVERY_MS {
            self.swept_ms = now_ms;
            // What cannot be removed is tried again.
            let _next_time = self.blobs.remove_abandoned();
        }
        let unpinned = self.blobs.take_unpinned();
        if unpinned.is_empty() {
            return;
        }
        let db = self.shared.writer();
        for blob in &unpinned {
            match is_surely_unneeded(&db, blob) {
                true => self.blobs.set_aside_unpinned(blob),
                false => self.blobs.found_needed(blob),
            }
        }
    }
}

/// A log of which the tables have everything, and an empty journal.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) journal: Journal,
    pub(crate) head: Head,
}

impl Settled {
    /// What the journal has and the tables do not is put there.
    pub(crate) fn after(
        shared: &OpenLog,
        mut journal: Journal,
        mut head: Head,
        unsettled: &[JournalBatch],
        options: &StoreOptions,
    ) -> Result<Self, StoreFault> {
        let key = RoundKey::draw().map_err(|error| no_key(&journal, error))?;
        head.journal.key = key;
        // Files that are no longer needed are swept when the blobs are opened.
        let appended = put(shared, Durable::AtOnce, head, unsettled.iter(), (options, 0))?;
        journal.start_over(key);
        Ok(Self { journal, head: appended.head })
    }
}

fn no_key(journal: &Journal, error: io::Error) -> StoreFault {
    StoreFault::Io("draw a key for", journal.path().to_path_buf(), error)
}

/// Puts batches into the tables, in one step. So many bytes of history are kept elsewhere.
fn put<'a>(
    shared: &OpenLog,
    durable: Durable,
    head: Head,
    batches: impl DoubleEndedIterator<Item = &'a JournalBatch> + Clone,
    (options, elsewhere): (&StoreOptions, u64),
) -> Result<Appended, StoreFault> {
    shared.write(durable, |db| {
        let now_ms = options.clock.now_ms();
        let bounds = (options.audit_retention, options.audit_bytes.saturating_sub(elsewhere));
        let mut appending = Appending::new(db, head, now_ms, bounds)?;
        if batches.clone().next().is_some() {
            appending.sweep(sweep_limit(batches.clone().map(JournalBatch::rows).sum()))?;
        }
        appending.batches(batches)?;
        appending.cut()?;
        appending.finish()
    })
}

/// If that cannot be told now, the file stays until the directory is opened the next time.
fn is_surely_unneeded(db: &Connection, blob: &BlobId) -> bool {
    matches!(is_needed(db, blob), Ok(false))
}

impl Log for Store {
    type Error = AppendError;

    fn append(&mut self, batch: engine::Batch<'_>) -> Result<(), AppendError> {
        self.add(batch.records(), batch.notices())
    }
}

impl SiteLog for Store {
    fn fence(&self) -> LogFence {
        self.fence
    }

    fn keep(&mut self, records: &[Record], notices: &[Notice]) -> Result<(), AppendError> {
        self.add(records, notices)
    }

    fn settle(&mut self) -> Result<(), AppendError> {
        if self.unsettled.is_empty() {
            return Ok(());
        }
        let settled = self.take_over(None, None);
        settled.map_err(|fault| fault.into_append(&self.shared.path))
    }

    fn records(&mut self) -> Result<Vec<Record>, ReadError> {
        let path = self.shared.path.clone();
        self.bury().map_err(|fault| fault.into_read(&path))?;
        let scanned = self.shared.read(|db| scan(db, &Head::load(db)?));
        let mut records = scanned.map_err(|fault| fault.into_read(&path))?.records;
        records.extend(self.unsettled.iter().flat_map(JournalBatch::records).cloned());
        Ok(records)
    }
}

/// So that whoever looks into the database of a stopped agent finds everything in it.
impl Drop for Store {
    fn drop(&mut self) {
        // If that fails, the next start does it.
        let _later = self.settle();
    }
}

#[cfg(test)]
mod tests {
    use cheops_core::engine::Record;
    use cheops_core::model::{Incarnation, SiteId};

    use super::Buried;
    use crate::open::Claim;
    use crate::options::StoreOptions;
    use crate::ports::SiteLog;

    #[test]
    fn a_batch_that_may_come_back_is_written_over_before_the_log_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let site = SiteId::new("paris").unwrap();
        let claim = Claim::on(dir.path()).unwrap();
        let mut store = claim.open_files(&site, || 1, StoreOptions::default()).unwrap().store;
        let incarnation = Record::Incarnation(site, Incarnation(1));
        store.keep(std::slice::from_ref(&incarnation), &[]).unwrap();
        store.buried = Buried::NotYet;
        assert_eq!(store.records().unwrap(), [incarnation]);
        assert_eq!(store.buried, Buried::Yes);
    }
}
