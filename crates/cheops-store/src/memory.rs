//! The log's twin in memory, for tests and simulations: the same rules, and no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cheops_core::engine::{Base, Batch, Log, Notice, Record};
use cheops_core::model::{Author, ResourceId};

use crate::error::ReadError;
use crate::feed::{ChangeKind, LoggedChange, LoggedChanges, Seq};
use crate::options::StoreOptions;
use crate::rules::{Slot, WAITS_FOR, spent_before, sweep_limit, waited_before};

/// A log that is gone when the last clone of it is. Clones are handles of the same log, so that
/// one may write while others follow.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    options: StoreOptions,
    log: Arc<Mutex<MemoryState>>,
}

#[derive(Debug, Default)]
struct MemoryState {
    rows: BTreeMap<u64, MemoryRow>,
    slots: BTreeMap<Slot, Vec<u64>>,
    /// Live entries by name. The same may be there twice, under different places.
    entries: BTreeMap<ResourceId, BTreeSet<(Author, u64, u64)>>,
    /// By the time since when they are kept for followers only.
    spent: BTreeSet<(u64, u64)>,
    cursors: BTreeMap<String, Seq>,
    last: u64,
    swept_to: u64,
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
    /// An empty log.
    pub fn new(options: StoreOptions) -> Self {
        Self { options, log: Arc::default() }
    }

    /// Writes these as one batch; see [`Store::keep`](crate::Store::keep).
    pub fn keep<'a>(&self, records: &[Record], notices: impl IntoIterator<Item = &'a Notice>) {
        let now_ms = self.options.clock.now_ms();
        let retention = self.options.audit_retention;
        let mut log = self.log();
        if let Some(spent_before) = spent_before(now_ms, retention) {
            let waited_before = waited_before(now_ms, retention);
            log.sweep(spent_before, waited_before, sweep_limit(records.len()));
        }
        for record in records {
            log.record(record, now_ms);
            if retention.is_zero() {
                log.drop_spent_entries();
            }
        }
        for notice in notices {
            log.write(now_ms, WrittenItem::Notice(notice.clone()));
        }
    }

    /// Everything an engine is recovered from, in order.
    pub fn records(&self) -> Vec<Record> {
        let log = self.log();
        let live = log.rows.values().filter_map(|row| match &row.what {
            WrittenItem::Record(record) if !row.spent => Some(record.clone()),
            _ => None,
        });
        live.collect()
    }

    /// See [`Reader::changes_since`](crate::Reader::changes_since).
    pub fn changes_since(
        &self,
        after: Seq,
        resource: Option<&ResourceId>,
        limit: usize,
    ) -> Result<LoggedChanges, ReadError> {
        let log = self.log();
        if after.0 < log.swept_to || after.0 > log.last {
            return Err(ReadError::Gone { oldest: Seq(log.swept_to) });
        }
        let later = log.rows.range(after.0.saturating_add(1)..);
        let changes = later.filter_map(|(seq, row)| row.change(*seq));
        let asked = changes
            .filter(|change| resource.is_none_or(|asked| change.what.resource() == Some(asked)));
        let items = asked.take(limit.saturating_add(1)).collect();
        Ok(LoggedChanges::new(items, after, limit, Seq(log.last)))
    }

    /// The last place given out.
    pub fn last_seq(&self) -> Seq {
        Seq(self.log().last)
    }

    /// How far the follower of that name has come, if it ever said so.
    pub fn cursor(&self, name: &str) -> Option<Seq> {
        self.log().cursors.get(name).copied()
    }

    /// Keeps how far the follower of that name has come.
    pub fn set_cursor(&self, name: &str, seq: Seq) {
        self.log().cursors.insert(name.to_string(), seq);
    }

    fn log(&self) -> MutexGuard<'_, MemoryState> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for MemoryStore {
    type Error = Infallible;

    fn append(&mut self, batch: Batch<'_>) -> Result<(), Infallible> {
        self.keep(batch.records(), batch.notices());
        Ok(())
    }
}

impl MemoryRow {
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
    fn record(&mut self, record: &Record, now_ms: u64) {
        for slot in Slot::emptied_by(record) {
            for seq in self.slots.remove(&slot).unwrap_or_default() {
                self.rows.remove(&seq);
            }
        }
        if let Record::Pruned(resource, base) = record {
            self.prune(resource, base, now_ms);
        }
        let seq = self.write(now_ms, WrittenItem::Record(record.clone()));
        if let Some(slot) = Slot::of(record) {
            self.slots.entry(slot).or_default().push(seq);
        }
        if let Record::Entry(resource, entry) = record {
            let id = entry.id().clone();
            self.entries.entry(resource.clone()).or_default().insert((id.author, id.n, seq));
        }
    }

    fn write(&mut self, at_ms: u64, what: WrittenItem) -> u64 {
        self.last += 1;
        let spent = matches!(what, WrittenItem::Notice(_));
        if spent {
            self.spent.insert((at_ms, self.last));
        }
        self.rows.insert(self.last, MemoryRow { at_ms, spent, what });
        self.last
    }

    fn prune(&mut self, resource: &ResourceId, base: &Base, now_ms: u64) {
        let Some(entries) = self.entries.get_mut(resource) else { return };
        for (author, n) in base.upto.iter() {
            let upto = (author.clone(), 0, 0)..=(author.clone(), n, u64::MAX);
            let pruned: Vec<_> = entries.range(upto).cloned().collect();
            for name in pruned {
                if let Some(row) = self.rows.get_mut(&name.2) {
                    row.spent = true;
                }
                self.spent.insert((now_ms, name.2));
                entries.remove(&name);
            }
        }
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

    fn delete(&mut self, spent_ms: u64, seq: u64) {
        self.spent.remove(&(spent_ms, seq));
        self.rows.remove(&seq);
        self.swept_to = self.swept_to.max(seq);
    }
}
