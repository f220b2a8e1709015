//! Batches: their rows in, and what they make obsolete out, within one transaction.
//!
//! Every statement names the index it goes by (`INDEXED BY`), and fails rather than scan a table.

use std::collections::BTreeSet;
use std::time::Duration;

use cheops_core::engine::{LaterRecords, Notice, Record};
use cheops_core::model::{Author, BlobId, Entry, OperationId, ResourceId, Vector};
use rusqlite::{Connection, params};

use super::head::Head;
use super::journal::{JournalBatch, JournalItem};
use super::row::{self, ChangeRow, Checksum, ENTRY, NOTICE, StateRow, name_of, numbers_upto, time};
use crate::fault::StoreFault;
use crate::feed::resource_of;
use crate::rules::{self, SlotName, blobs_of, row_bytes};

/// What became of batches that were written.
#[derive(Debug)]
pub(crate) struct Appended {
    /// How far the log goes now.
    pub(crate) head: Head,
    /// Blobs that no entry needs any more.
    pub(crate) unneeded: Vec<BlobId>,
    /// Whether history was dropped before its time, for want of room.
    pub(crate) cut: bool,
}

/// Batches being written.
pub(crate) struct Appending<'a> {
    db: &'a Connection,
    head: Head,
    now_ms: u64,
    retention: Duration,
    /// How many bytes rows may take that are kept for readers only.
    most: u64,
    /// Whether some of them were dropped before their time.
    cut: bool,
    /// Up to where all followers have come that are waited for.
    seen: i64,
    /// Blobs that lost a reference, and maybe their last one.
    loose: BTreeSet<BlobId>,
}

impl<'a> Appending<'a> {
    pub(crate) fn new(
        db: &'a Connection,
        head: Head,
        now_ms: u64,
        (retention, most): (Duration, u64),
    ) -> Result<Self, StoreFault> {
        let seen = seen_by_all(db)?;
        Ok(Self { db, head, now_ms, retention, most, cut: false, seen, loose: BTreeSet::new() })
    }

    /// Says in the log how far it goes now.
    pub(crate) fn finish(self) -> Result<Appended, StoreFault> {
        self.head.save(self.db)?;
        let mut unneeded = Vec::new();
        for blob in self.loose {
            if !is_needed(self.db, &blob)? {
                unneeded.push(blob);
            }
        }
        Ok(Appended { head: self.head, unneeded, cut: self.cut })
    }

    /// The rows of these batches, in order. What a later one of them makes obsolete has its place,
    /// and no row.
    pub(crate) fn batches<'b, I>(&mut self, batches: I) -> Result<(), StoreFault>
    where
        I: DoubleEndedIterator<Item = &'b JournalBatch> + Clone,
    {
        let mut obsolete = obsolete(batches.clone()).into_iter().rev().peekable();
        let mut at = 0;
        for batch in batches {
            self.now_ms = batch.at_ms;
            for (item, body) in batch.items() {
                at += 1;
                if obsolete.next_if_eq(&at).is_some() {
                    self.head.take_seq();
                    continue;
                }
                match item {
                    JournalItem::Record(record) => self.record(record, body)?,
                    JournalItem::Notice(notice) => self.notice(notice, body)?,
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record, body: &[u8]) -> Result<(), StoreFault> {
        for slot in record.empties() {
            self.empty(&SlotName::of(slot))?;
        }
        if let Some((resource, upto)) = record.prunes() {
            self.prune(resource, upto)?;
        }
        if let Record::Shed(resource, operations) = record {
            self.shed(resource, operations)?;
        }
        match (record, record.slot()) {
            (Record::Entry(resource, entry), _) => self.entry(resource, entry, body),
            (_, Some(slot)) => self.state(&SlotName::of(slot), body),
            // Only entries have no slot.
            (_, None) => Ok(()),
        }
    }

    fn notice(&mut self, notice: &Notice, body: &[u8]) -> Result<(), StoreFault> {
        let seq = self.head.take_seq();
        let at_ms = time(self.now_ms);
        self.change(ChangeRow {
            seq,
            kind: NOTICE,
            at_ms,
            spent_ms: Some(at_ms),
            resource: resource_of(notice).map(ResourceId::as_str),
            site: None,
            incarnation: None,
            n: None,
            body,
        })
    }

    /// Deletes some of what is past its retention: oldest first, never many at once. What is waited
    /// for stays in front of the rest, so that no more is looked at than may be deleted.
    pub(crate) fn sweep(&mut self, limit: usize) -> Result<(), StoreFault> {
        if let Some(spent_before) = rules::spent_before(self.now_ms, self.retention) {
            self.delete_spent(time(spent_before), limit)?;
        }
        Ok(())
    }

    /// Deletes what there is no room for, whatever its age: oldest first, and all of it that can be
    /// deleted at once.
    pub(crate) fn cut(&mut self) -> Result<(), StoreFault> {
        for _ in 0..rules::MOST_CUT / rules::CUT_STEP {
            if self.head.history <= self.most || self.delete_spent(i64::MAX, rules::CUT_STEP)? == 0
            {
                break;
            }
            self.cut = true;
        }
        Ok(())
    }

    /// Deletes the oldest of what is kept since then or longer; how many of it.
    fn delete_spent(&mut self, spent_before: i64, limit: usize) -> Result<usize, StoreFault> {
        let sql = "DELETE FROM changes WHERE seq IN (\
                       SELECT seq FROM (\
                           SELECT seq, spent_ms FROM changes INDEXED BY spent WHERE spent_ms <= ? \
                           ORDER BY spent_ms, seq LIMIT ?\
                       ) WHERE seq <= ? OR spent_ms <= ?\
                   ) RETURNING seq, sum, length(body)";
        let waited_before = rules::waited_before(self.now_ms, self.retention);
        // Nothing was spent before the first moment there is.
        let waited_before = waited_before.map_or(i64::MIN, time);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = self.db.prepare_cached(sql)?;
        let bounds = params![spent_before, limit, self.seen, waited_before];
        let mut rows = statement.query(bounds)?;
        let mut deleted = 0;
        while let Some(row) = rows.next()? {
            self.head.digest.take(Checksum(row.get(1)?));
            self.head.swept_to = self.head.swept_to.max(row.get(0)?);
            self.head.history = self.head.history.saturating_sub(row_bytes(row.get::<_, u32>(2)?));
            deleted += 1;
        }
        Ok(deleted)
    }

    fn entry(
        &mut self,
        resource: &ResourceId,
        entry: &Entry,
        body: &[u8],
    ) -> Result<(), StoreFault> {
        let (site, incarnation, n) = name_of(entry.id());
        let seq = self.head.take_seq();
        self.change(ChangeRow {
            seq,
            kind: ENTRY,
            at_ms: time(self.now_ms),
            spent_ms: None,
            resource: Some(resource.as_str()),
            site: Some(site),
            incarnation: Some(incarnation),
            n: Some(n),
            body,
        })?;
        for blob in blobs_of(entry) {
            // One operation may use the same content twice.
            let sql = "INSERT OR IGNORE INTO blob_refs (blob, seq) VALUES (?, ?)";
            self.db.prepare_cached(sql)?.execute(params![blob.0, seq])?;
        }
        Ok(())
    }

    fn change(&mut self, row: ChangeRow<'_>) -> Result<(), StoreFault> {
        if row.spent_ms.is_some() {
            self.head.history += row_bytes(row.body.len() as u64);
        }
        self.head.digest.add(row.insert(self.db)?);
        Ok(())
    }

    fn state(&mut self, slot: &SlotName, body: &[u8]) -> Result<(), StoreFault> {
        let row = StateRow { seq: self.head.take_seq(), slot: slot.as_str(), body };
        self.head.digest.add(row.insert(self.db)?);
        Ok(())
    }

    fn empty(&mut self, slot: &SlotName) -> Result<(), StoreFault> {
        let sql = "DELETE FROM state INDEXED BY slots WHERE slot = ? RETURNING sum";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params![slot.as_str()])?;
        while let Some(row) = rows.next()? {
            self.head.digest.take(Checksum(row.get(0)?));
        }
        Ok(())
    }

    fn prune(&mut self, resource: &ResourceId, upto: &Vector) -> Result<(), StoreFault> {
        for (author, n) in upto.iter() {
            for range in numbers_upto(n) {
                for (seq, sum, body) in self.live(resource, author, range)? {
                    self.release_blobs(seq)?;
                    self.spend(seq, sum, body)?;
                }
            }
        }
        Ok(())
    }

    /// These keep their entries, and need their files no more.
    fn shed(
        &mut self,
        resource: &ResourceId,
        operations: &BTreeSet<OperationId>,
    ) -> Result<(), StoreFault> {
        for operation in operations {
            let (_, _, n) = name_of(&operation.0);
            for (seq, ..) in self.live(resource, &operation.0.author, (n, n))? {
                self.release_blobs(seq)?;
            }
        }
        Ok(())
    }

    /// The places of entries, their checksums, and how long their bodies are.
    fn live(
        &self,
        resource: &ResourceId,
        author: &Author,
        (from, upto): (i64, i64),
    ) -> Result<Vec<(i64, Checksum, u32)>, StoreFault> {
        let sql = "SELECT seq, sum, length(body) FROM changes INDEXED BY live_entries \
                   WHERE resource = ? AND site = ? AND incarnation = ? AND n BETWEEN ? AND ? \
                   AND kind = 1 AND spent_ms IS NULL";
        let incarnation = row::signed(author.incarnation.0);
        let key = params![resource.as_str(), author.site.as_str(), incarnation, from, upto];
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement
            .query_map(key, |row| Ok((row.get(0)?, Checksum(row.get(1)?), row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// From now on the entry is there for followers only, if at all.
    fn spend(&mut self, seq: i64, sum: Checksum, body: u32) -> Result<(), StoreFault> {
        self.head.digest.take(sum);
        if self.retention.is_zero() && seq <= self.seen {
            self.db.prepare_cached("DELETE FROM changes WHERE seq = ?")?.execute(params![seq])?;
            self.head.swept_to = self.head.swept_to.max(seq);
            return Ok(());
        }
        let spent_ms = time(self.now_ms);
        let sum = sum.spent(spent_ms);
        let sql = "UPDATE changes SET spent_ms = ?, sum = ? WHERE seq = ?";
        self.db.prepare_cached(sql)?.execute(params![spent_ms, sum.0, seq])?;
        self.head.digest.add(sum);
        self.head.history += row_bytes(body);
        Ok(())
    }

    fn release_blobs(&mut self, seq: i64) -> Result<(), StoreFault> {
        let sql = "DELETE FROM blob_refs INDEXED BY blobs_of WHERE seq = ? RETURNING blob";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params![seq])?;
        while let Some(row) = rows.next()? {
            self.loose.insert(BlobId(row.get(0)?));
        }
        Ok(())
    }
}

/// Up to where all followers have come that are waited for; everywhere, if there are none.
fn seen_by_all(db: &Connection) -> Result<i64, StoreFault> {
    let sql = "SELECT min(seq) FROM cursors WHERE name = ? OR substr(name, 1, ?) = ?";
    let below = format!("{}/", rules::WAITS_FOR);
    let length = i64::try_from(below.len()).unwrap_or(i64::MAX);
    let names = params![rules::WAITS_FOR, length, below];
    let seen: Option<i64> = db.prepare_cached(sql)?.query_row(names, |row| row.get(0))?;
    Ok(seen.unwrap_or(i64::MAX))
}

/// Which items, counted from 1 on, are made obsolete by later ones: from the last to the first.
fn obsolete<'a>(batches: impl DoubleEndedIterator<Item = &'a JournalBatch> + Clone) -> Vec<usize> {
    let mut at = batches.clone().map(JournalBatch::rows).sum::<usize>() + 1;
    let (mut later, mut obsolete) = (LaterRecords::default(), Vec::new());
    for (item, _) in batches.rev().flat_map(|batch| batch.items().rev()) {
        at -= 1;
        let JournalItem::Record(record) = item else { continue };
        // Followers see entries after they were pruned, and a pruning does more than to stand in its
        // slot.
        let has_a_row = matches!(record, Record::Entry(..) | Record::Pruned(..));
        if later.make_obsolete(record) && !has_a_row {
            obsolete.push(at);
        }
    }
    obsolete
}

/// Whether an entry that was not pruned refers to the blob.
pub(crate) fn is_needed(db: &Connection, blob: &BlobId) -> Result<bool, StoreFault> {
    let sql = "SELECT EXISTS (SELECT 1 FROM blob_refs WHERE blob = ?)";
    Ok(db.prepare_cached(sql)?.query_row(params![blob.0], |row| row.get(0))?)
}
