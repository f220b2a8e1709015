//! Reading everything, and believing nothing of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Entry, ResourceId};
use rusqlite::Connection;

use super::head::Head;
use super::row::{ChangeRow, Digest, ENTRY, StateRow};
use crate::error::LogPlace;
use crate::fault::StoreFault;
use crate::feed::ChangeKind;
use crate::rules::{blobs_of, row_bytes};

/// What a whole log says.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// What an engine is recovered from, in order.
    pub(crate) records: Vec<Record>,
    /// The blobs that entries in it refer to.
    pub(crate) blobs: BTreeSet<BlobId>,
    /// Entries among them that nobody signed, with their places.
    pub(crate) unsigned: Vec<UnsignedEntry>,
    /// How many bytes the rows take that are kept for readers only, about.
    pub(crate) history: u64,
}

/// An entry that nobody signed.
#[derive(Debug)]
pub(crate) struct UnsignedEntry {
    pub(crate) seq: i64,
    pub(crate) resource: ResourceId,
    pub(crate) entry: Arc<Entry>,
}

/// Reads every row and checks each alone and all together.
pub(crate) fn scan(db: &Connection, head: &Head) -> Result<Scanned, StoreFault> {
    let mut found = ScannedLog::default();
    found.changes(db)?;
    found.state(db)?;
    if found.digest != head.digest {
        let what = "taken together they are not what was written: some are missing or out of date";
        return Err(StoreFault::Damaged(LogPlace::Rows, what.to_string()));
    }
    if found.last >= head.next_seq {
        return Err(StoreFault::row("head", &1, None, "it says that the log ends before it does"));
    }
    found.let_go_of_what_was_shed();
    if references(db)? != found.references {
        return Err(StoreFault::table("blob_refs", "it is not what the entries refer to"));
    }
    let unsigned = found.unsigned();
    // Each table came in order: this merges the two.
    found.records.sort_by_key(|(seq, _)| *seq);
    Ok(Scanned {
        records: found.records.into_iter().map(|(_, record)| record).collect(),
        blobs: found.references.into_iter().map(|(blob, _)| blob).collect(),
        unsigned,
        history: found.history,
    })
}

#[derive(Default)]
struct ScannedLog {
    records: Vec<(i64, Record)>,
    references: BTreeSet<(BlobId, i64)>,
    digest: Digest,
    last: i64,
    history: u64,
}

impl ScannedLog {
    fn changes(&mut self, db: &Connection) -> Result<(), StoreFault> {
        let sql = format!("SELECT {} FROM changes ORDER BY seq", ChangeRow::COLUMNS);
        let mut statement = db.prepare(&sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let (change, sum) = ChangeRow::read(row)?;
            self.digest.add(sum);
            self.last = self.last.max(change.seq);
            if change.spent_ms.is_some() {
                self.history += row_bytes(change.body.len() as u64);
            }
            if change.kind != ENTRY || change.spent_ms.is_some() {
                continue;
            }
            if let ChangeKind::Entry(resource, entry) = change.decode()? {
                let blobs = blobs_of(&entry);
                self.references.extend(blobs.into_iter().map(|blob| (blob, change.seq)));
                self.records.push((change.seq, Record::Entry(resource, entry)));
            }
        }
        Ok(())
    }

    fn unsigned(&self) -> Vec<UnsignedEntry> {
        let unsigned = self.records.iter().filter_map(|(seq, record)| match record {
            Record::Entry(resource, entry) if entry.proof().is_none() => {
                let (resource, entry) = (resource.clone(), Arc::clone(entry));
                Some(UnsignedEntry { seq: *seq, resource, entry })
            }
            _ => None,
        });
        unsigned.collect()
    }

    fn let_go_of_what_was_shed(&mut self) {
        let mut shed = BTreeSet::new();
        for (_, record) in &self.records {
            if let Record::Shed(resource, operations) = record {
                shed.extend(operations.iter().map(|operation| (resource, &operation.0)));
            }
        }
        if shed.is_empty() {
            return;
        }
        let entries = self.records.iter().filter_map(|(seq, record)| match record {
            Record::Entry(resource, entry) if shed.contains(&(resource, entry.id())) => Some(*seq),
            _ => None,
        });
        let seqs: BTreeSet<i64> = entries.collect();
        self.references.retain(|(_, seq)| !seqs.contains(seq));
    }

    fn state(&mut self, db: &Connection) -> Result<(), StoreFault> {
        let sql = format!("SELECT {} FROM state ORDER BY seq", StateRow::COLUMNS);
        let mut statement = db.prepare(&sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let (state, sum) = StateRow::read(row)?;
            self.digest.add(sum);
            self.last = self.last.max(state.seq);
            self.records.push((state.seq, state.decode()?));
        }
        Ok(())
    }
}

fn references(db: &Connection) -> Result<BTreeSet<(BlobId, i64)>, StoreFault> {
    let mut statement = db.prepare("SELECT blob, seq FROM blob_refs")?;
    let rows = statement.query_map((), |row| Ok((BlobId(row.get(0)?), row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Lets the database look at its own structure: pages, order, and whether the indexes say what the
/// tables say. Rows that cannot be reached, or are found under a wrong key, have no checksum that
/// would tell.
pub(crate) fn check_structure(db: &Connection) -> Result<(), StoreFault> {
    let verdict: String = db.query_row("PRAGMA integrity_check(1)", (), |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreFault::Damaged(LogPlace::File, verdict)),
    }
}
