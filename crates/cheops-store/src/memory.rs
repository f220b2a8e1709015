//! The store's twin in memory, for tests and simulations: the same ports and rules, and no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cheops_core::engine::{Batch, Log, Notice, Record};
use cheops_core::model::{Author, BlobId, EntryId, KeyId, OperationId, ResourceId, Vector};
use cheops_record::disk;

use crate::blobs::{Blobs, MemoryBlobs};
use crate::error::{AppendError, ReadError};
use crate::feed::{
    ChangeKind, HistorySize, LoggedChange, LoggedChanges, PastChange, PastChanges, PastFrom, Seq,
};
use crate::options::StoreOptions;
use crate::ports::{Certificates, Feed, LogFence, SiteLog};
use crate::rules::{
    CUT_STEP, MOST_CUT, SlotName, WAITS_FOR, blobs_of, row_bytes, spent_before, sweep_limit,
    waited_before,
};

/// A log, and contents, that are gone when the last clone of this is. Clones are handles of the same
/// writer, so that one may write while others follow.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    options: StoreOptions,
    log: Arc<Mutex<MemoryState>>,
    blobs: MemoryBlobs,
    fence: LogFence,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// How many writers have opened it; the last of them may write.
    writers: u64,
    rows: BTreeMap<u64, MemoryRow>,
    slots: BTreeMap<SlotName, Vec<u64>>,
    /// Live entries by name. The same may be there twice, under different places.
    entries: BTreeMap<ResourceId, BTreeSet<(Author, u64, u64)>>,
    /// Which live entries need which contents.
    blob_refs: BTreeSet<(BlobId, u64)>,
    /// By the time since when they are kept for followers only.
    spent: BTreeSet<(u64, u64)>,
    cursors: BTreeMap<String, Seq>,
    identities: BTreeMap<KeyId, Vec<u8>>,
    last: u64,
    swept_to: u64,
    /// What the rows take that are kept for readers only, and when some were dropped for that.
    history: u64,
    cut_ms: Option<u64>,
}

#[derive(Debug)]
struct MemoryRow {
    at_ms: u64,
    spent: bool,
    what: WrittenItem,
}

#[derive(Debug)]
enum WrittenItem {
    Record(Record),
    Notice(Notice),
}

impl MemoryStore {
    /// An empty log, and its first writer.
    pub fn new(options: StoreOptions) -> Self {
        Self::open(options, Arc::default(), MemoryBlobs::default())
    }

    /// A new writer of the same log: what is started again after a stop, or takes the place of one
    /// that may still be there.
    pub fn next_writer(&self) -> Self {
        Self::open(self.options.clone(), Arc::clone(&self.log), self.blobs.clone())
    }

    /// The contents that go with it.
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.blobs.clone())
    }

    fn open(options: StoreOptions, log: Arc<Mutex<MemoryState>>, blobs: MemoryBlobs) -> Self {
        let mut state = lock(&log);
        state.writers += 1;
        let fence = LogFence(state.writers);
        let needed = state.blob_refs.iter().map(|(blob, _)| *blob).collect();
        blobs.sweep(&needed, kept_since(&options));
        drop(state);
        Self { options, log, blobs, fence }
    }

    fn add<'a>(
        &self,
        records: &[Record],
        notices: impl IntoIterator<Item = &'a Notice>,
    ) -> Result<(), AppendError> {
        let now_ms = self.options.clock.now_ms();
        let retention = self.options.audit_retention;
        let mut log = self.log();
        if log.writers != self.fence.0 {
            return Err(AppendError::Fenced);
        }
        if let Some(spent_before) = spent_before(now_ms, retention) {
            let waited_before = waited_before(now_ms, retention);
            log.sweep(spent_before, waited_before, sweep_limit(records.len()));
        }
        let mut loose = BTreeSet::new();
        for record in records {
            log.record(record, now_ms, &mut loose);
            if retention.is_zero() {
                log.drop_spent_entries();
            }
        }
        for notice in notices {
            log.write(now_ms, WrittenItem::Notice(notice.clone()));
        }
        self.collect(&log, &loose);
        let most = self.options.audit_bytes;
        let cut = self.blobs.drop_kept(spent_before(now_ms, retention), most / 2)
            | log.cut(waited_before(now_ms, retention), most - self.blobs.kept_bytes().min(most));
        if cut {
            log.cut_ms = Some(now_ms);
        }
        Ok(())
    }

    /// Removes contents that no entry needs and nobody holds.
    fn collect(&self, log: &MemoryState, loose: &BTreeSet<BlobId>) {
        for blob in loose.iter().filter(|blob| !log.needs(blob)) {
            self.blobs.remove_unpinned(blob, kept_since(&self.options));
        }
        for blob in &self.blobs.take_unpinned() {
            match log.needs(blob) {
                true => self.blobs.found_needed(blob),
                false => self.blobs.set_aside_unpinned(blob),
            }
        }
    }

    fn log(&self) -> MutexGuard<'_, MemoryState> {
        lock(&self.log)
    }
}

/// Since when a content is kept for readers of the history that is needed no more from now on.
fn kept_since(options: &StoreOptions) -> Option<u64> {
    (!options.audit_retention.is_zero()).then(|| options.clock.now_ms())
}

fn lock(log: &Mutex<MemoryState>) -> MutexGuard<'_, MemoryState> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log for MemoryStore {
    type Error = AppendError;

    fn append(&mut self, batch: Batch<'_>) -> Result<(), AppendError> {
        self.add(batch.records(), batch.notices())
    }
}

impl SiteLog for MemoryStore {
    fn fence(&self) -> LogFence {
        self.fence
    }

    fn keep(&mut self, records: &[Record], notices: &[Notice]) -> Result<(), AppendError> {
        self.add(records, notices)
    }

    /// All of it can be seen at once.
    fn settle(&mut self) -> Result<(), AppendError> {
        Ok(())
    }

    fn records(&mut self) -> Result<Vec<Record>, ReadError> {
        let log = self.log();
        let live = log.rows.values().filter_map(|row| match &row.what {
            WrittenItem::Record(record) if !row.spent => Some(record.clone()),
            _ => None,
        });
        Ok(live.collect())
    }
}

impl Feed for MemoryStore {
    fn changes_since(
        &self,
        after: Seq,
        resource: Option<&ResourceId>,
        limit: usize,
    ) -> Result<LoggedChanges, ReadError> {
        let log = self.log();
        if after.0 < log.swept_to || after.0 > log.last {
            return Err(ReadError::Gone { oldest: Seq(log.swept_to) });
        }
        Ok(log.changes(after, resource, limit))
    }

    fn changes_left(&self, after: Seq, limit: usize) -> Result<LoggedChanges, ReadError> {
        let log = self.log();
        let after = if after.0 > log.last { Seq::default() } else { after };
        Ok(log.changes(after, None, limit))
    }

    fn past(
        &self,
        resource: &ResourceId,
        from: PastFrom,
        limit: usize,
    ) -> Result<PastChanges, ReadError> {
        let log = self.log();
        let is_asked = |past: &PastChange| past.change.what.resource() == Some(resource);
        let all = log.rows.iter().filter_map(|(seq, row)| row.past(*seq)).filter(is_asked);
        let most = limit.saturating_add(1);
        let items = match from {
            PastFrom::Latest => all.rev().take(most).collect(),
            PastFrom::Before(before) => {
                all.rev().filter(|past| past.change.seq < before).take(most).collect()
            }
            PastFrom::After(after) => {
                all.filter(|past| past.change.seq > after).take(most).collect()
            }
        };
        Ok(PastChanges::new(items, limit, log.swept_to > 0))
    }

    fn entry(&self, id: &EntryId) -> Result<Option<PastChange>, ReadError> {
        let log = self.log();
        let mut all = log.rows.iter().filter_map(|(seq, row)| row.past(*seq));
        Ok(all.find(
            |past| matches!(&past.change.what, ChangeKind::Entry(_, entry) if entry.id() == id),
        ))
    }

    fn history_size(&self) -> HistorySize {
        let (bodies, most) = (self.blobs.kept_bytes(), self.options.audit_bytes);
        let log = self.log();
        HistorySize { bytes: log.history, bodies, most, cut_ms: log.cut_ms }
    }

    fn last_seq(&self) -> Result<Seq, ReadError> {
        Ok(Seq(self.log().last))
    }

    fn cursor(&self, name: &str) -> Result<Option<Seq>, ReadError> {
        Ok(self.log().cursors.get(name).copied())
    }

    fn set_cursor(&self, name: &str, seq: Seq) -> Result<(), ReadError> {
        self.log().cursors.insert(name.to_string(), seq);
        Ok(())
    }

    fn remove_cursor(&self, name: &str) -> Result<(), ReadError> {
        self.log().cursors.remove(name);
        Ok(())
    }

    fn retain_cursors(&self, prefix: &str, keep: &dyn Fn(&str) -> bool) -> Result<(), ReadError> {
        self.log().cursors.retain(|name, _| !name.starts_with(prefix) || keep(name));
        Ok(())
    }

    fn inline_body(&self, id: &BlobId) -> Result<Option<Vec<u8>>, ReadError> {
        let log = self.log();
        let mut rows = log
            .blob_refs
            .range((*id, 0)..=(*id, u64::MAX))
            .filter_map(|(_, seq)| log.rows.get(seq));
        Ok(rows.find_map(|row| match &row.what {
            WrittenItem::Record(Record::Entry(_, entry)) => entry.inline_body().map(<[u8]>::to_vec),
            _ => None,
        }))
    }

    /// It takes nothing where anything is kept.
    fn size(&self) -> Result<u64, ReadError> {
        Ok(0)
    }
}

impl Certificates for MemoryStore {
    fn identities(&self) -> Result<Vec<(KeyId, Vec<u8>)>, ReadError> {
        let log = self.log();
        Ok(log.identities.iter().map(|(key, certificate)| (*key, certificate.clone())).collect())
    }

    fn keep_identity(&self, key: KeyId, certificate: &[u8]) -> Result<(), AppendError> {
        self.log().identities.insert(key, certificate.to_vec());
        Ok(())
    }
}

impl MemoryRow {
    /// What its written form takes.
    fn bytes(&self) -> u64 {
        row_bytes(match &self.what {
            WrittenItem::Record(record) => disk::encode_record(record).len() as u64,
            WrittenItem::Notice(notice) => disk::encode_notice(notice).len() as u64,
        })
    }

    fn past(&self, seq: u64) -> Option<PastChange> {
        let pruned = self.spent && matches!(self.what, WrittenItem::Record(_));
        Some(PastChange { change: self.change(seq)?, pruned })
    }

    fn change(&self, seq: u64) -> Option<LoggedChange> {
        let what = match &self.what {
            WrittenItem::Record(Record::Entry(resource, entry)) => {
                ChangeKind::Entry(resource.clone(), Arc::clone(entry))
            }
            WrittenItem::Record(_) => return None,
            WrittenItem::Notice(notice) => ChangeKind::Notice(notice.clone()),
        };
        Some(LoggedChange { seq: Seq(seq), at_ms: self.at_ms, what })
    }
}

impl MemoryState {
    /// Contents that lose a reference, and maybe their last one, become loose.
    fn record(&mut self, record: &Record, now_ms: u64, loose: &mut BTreeSet<BlobId>) {
        for slot in record.empties() {
            for seq in self.slots.remove(&SlotName::of(slot)).unwrap_or_default() {
                self.rows.remove(&seq);
            }
        }
        if let Some((resource, upto)) = record.prunes() {
            for seq in self.prune(resource, upto, now_ms) {
                self.release_blobs(seq, loose);
            }
        }
        if let Record::Shed(resource, operations) = record {
            for operation in operations {
                let live = self.live(resource, operation);
                live.into_iter().for_each(|seq| self.release_blobs(seq, loose));
            }
        }
        let seq = self.write(now_ms, WrittenItem::Record(record.clone()));
        if let Some(slot) = record.slot() {
            self.slots.entry(SlotName::of(slot)).or_default().push(seq);
        }
        if let Record::Entry(resource, entry) = record {
            let id = entry.id().clone();
            self.entries.entry(resource.clone()).or_default().insert((id.author, id.n, seq));
            self.blob_refs.extend(blobs_of(entry).into_iter().map(|blob| (blob, seq)));
        }
    }

    fn write(&mut self, at_ms: u64, what: WrittenItem) -> u64 {
        self.last += 1;
        let spent = matches!(what, WrittenItem::Notice(_));
        let row = MemoryRow { at_ms, spent, what };
        if spent {
            self.spent.insert((at_ms, self.last));
            self.history += row.bytes();
        }
        self.rows.insert(self.last, row);
        self.last
    }

    /// Returns the places of the entries that are kept for followers only from now on.
    fn prune(&mut self, resource: &ResourceId, upto: &Vector, now_ms: u64) -> Vec<u64> {
        let Some(entries) = self.entries.get_mut(resource) else { return Vec::new() };
        let mut places = Vec::new();
        for (author, n) in upto.iter() {
            let upto = (author.clone(), 0, 0)..=(author.clone(), n, u64::MAX);
            let pruned: Vec<_> = entries.range(upto).cloned().collect();
            for name in pruned {
                if let Some(row) = self.rows.get_mut(&name.2) {
                    row.spent = true;
                    self.history += row.bytes();
                }
                self.spent.insert((now_ms, name.2));
                entries.remove(&name);
                places.push(name.2);
            }
        }
        places
    }

    /// The places of an operation's entry.
    fn live(&self, resource: &ResourceId, operation: &OperationId) -> Vec<u64> {
        let EntryId { author, n } = operation.0.clone();
        let named = (author.clone(), n, 0)..=(author, n, u64::MAX);
        let entries = self.entries.get(resource).into_iter();
        entries.flat_map(|entries| entries.range(named.clone())).map(|(.., seq)| *seq).collect()
    }

    fn release_blobs(&mut self, seq: u64, loose: &mut BTreeSet<BlobId>) {
        let released = self.blob_refs.extract_if(.., |(_, of)| *of == seq);
        loose.extend(released.map(|(blob, _)| blob));
    }

    fn needs(&self, blob: &BlobId) -> bool {
        self.blob_refs.range((*blob, 0)..=(*blob, u64::MAX)).next().is_some()
    }

    /// What can be followed after that place.
    fn changes(&self, after: Seq, resource: Option<&ResourceId>, limit: usize) -> LoggedChanges {
        let later = self.rows.range(after.0.saturating_add(1)..);
        let changes = later.filter_map(|(seq, row)| row.change(*seq));
        let asked = changes
            .filter(|change| resource.is_none_or(|asked| change.what.resource() == Some(asked)));
        let items = asked.take(limit.saturating_add(1)).collect();
        LoggedChanges::new(items, after, limit, Seq(self.last))
    }

    fn sweep(&mut self, spent_before: u64, waited_before: Option<u64>, limit: usize) {
        let seen = self.seen_by_all();
        let past = self.spent.iter().take_while(|(spent_ms, _)| *spent_ms <= spent_before);
        let waited = |spent_ms| waited_before.is_some_and(|before| spent_ms <= before);
        let due = past.take(limit).filter(|(spent_ms, seq)| *seq <= seen || waited(*spent_ms));
        for (spent_ms, seq) in due.copied().collect::<Vec<_>>() {
            self.delete(spent_ms, seq);
        }
    }

    /// Up to where all followers have come that are waited for.
    fn seen_by_all(&self) -> u64 {
        let is_waited_for = |name: &str| {
            name.strip_prefix(WAITS_FOR)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let places = self.cursors.iter().filter(|(name, _)| is_waited_for(name));
        places.map(|(_, seq)| seq.0).min().unwrap_or(u64::MAX)
    }

    fn drop_spent_entries(&mut self) {
        let is_entry =
            |seq| self.rows.get(seq).is_some_and(|row| matches!(row.what, WrittenItem::Record(_)));
        let seen = self.seen_by_all();
        let due = self.spent.iter().filter(|(_, seq)| *seq <= seen && is_entry(seq));
        let entries: Vec<_> = due.copied().collect();
        for (spent_ms, seq) in entries {
            self.delete(spent_ms, seq);
        }
    }

    /// Drops the oldest of what there is no room for; whether there was some.
    fn cut(&mut self, waited_before: Option<u64>, most: u64) -> bool {
        let mut cut = false;
        for _ in 0..MOST_CUT / CUT_STEP {
            let before = self.rows.len();
            if self.history > most {
                self.sweep(u64::MAX, waited_before, CUT_STEP);
            }
            if self.rows.len() == before {
                break;
            }
            cut = true;
        }
        cut
    }

    fn delete(&mut self, spent_ms: u64, seq: u64) {
        self.spent.remove(&(spent_ms, seq));
        if let Some(row) = self.rows.remove(&seq) {
            self.history = self.history.saturating_sub(row.bytes());
        }
        self.swept_to = self.swept_to.max(seq);
    }
}
