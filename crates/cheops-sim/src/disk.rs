//! The disk of one simulated site. It keeps what was committed and nothing else.

use std::convert::Infallible;

use cheops_core::engine::{Batch, LaterRecords, Log, Record};
use cheops_core::model::{Author, EntryBody, EntryId, OperationId, ResourceId};
use cheops_core::plan::Step;

/// What survives a crash.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    records: Vec<Record>,
    prunable: usize,
}

impl Log for Disk {
    type Error = Infallible;

    fn append(&mut self, batch: Batch<'_>) -> Result<(), Infallible> {
        self.keep(batch.records().iter().cloned());
        Ok(())
    }
}

impl Disk {
    /// Makes these durable.
    pub fn keep(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            self.prunable += usize::from(matches!(record, Record::Pruned(..)));
            self.records.push(record);
        }
        // Forgetting costs a walk over everything: not for every single one.
        if self.prunable > 64 {
            self.compact();
        }
    }

    /// All of it, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What is left of it when all is dropped that may be.
    pub fn compacted(&self) -> Vec<Record> {
        let mut kept = self.clone();
        kept.compact();
        kept.records
    }

    /// Everything is gone.
    pub fn lose(&mut self) {
        *self = Self::default();
    }

    /// The last so many records did not make it after all: only a lying disk does this.
    pub fn lose_last(&mut self, count: usize) {
        let kept = self.records.len().saturating_sub(count);
        self.records.truncate(kept);
    }

    /// Whether the operation is here, or was and has been pruned since.
    pub fn holds(&self, resource: &ResourceId, operation: &OperationId) -> bool {
        self.records.iter().rev().any(|record| match record {
            Record::Entry(of, entry) => {
                of == resource
                    && matches!(&entry.body, EntryBody::Operation(held) if held.id == *operation)
            }
            Record::Pruned(of, base) => of == resource && base.upto.includes(&operation.0),
            _ => false,
        })
    }

    /// Whether that entry is what some site read of its state, or keeps of it.
    pub fn tells_of_a_state(&self, resource: &ResourceId, id: &EntryId) -> bool {
        self.records.iter().rev().any(|record| match record {
            Record::Entry(of, entry) => {
                let is_told = entry.state_report().is_some() || entry.kept_state().is_some();
                of == resource && entry.id() == id && is_told
            }
            _ => false,
        })
    }

    /// How often it is on record that a run of the operation was begun.
    pub fn times_begun(&self, operation: &OperationId) -> usize {
        let is_begun = |record: &&Record| matches!(record, Record::Begun(_, Step::Run(item)) if item.id == *operation);
        self.records.iter().filter(is_begun).count()
    }

    /// Whether anything here shows that an earlier incarnation of that site held the resource.
    pub fn tells_of_an_earlier(&self, author: &Author, resource: &ResourceId) -> bool {
        let is_earlier = |other: &Author| other.site == author.site && other != author;
        self.records.iter().any(|record| match record {
            Record::Entry(of, entry) => of == resource && is_earlier(&entry.id().author),
            Record::Knows(of, site, incarnation, _) => {
                let known = Author { site: site.clone(), incarnation: *incarnation };
                of == resource && is_earlier(&known)
            }
            Record::EarlierIncarnation(of, site, knew) => {
                of == resource && *site == author.site && !knew.is_empty()
            }
            _ => false,
        })
    }

    /// Drops what later records made obsolete, as a real log may.
    fn compact(&mut self) {
        self.prunable = 0;
        let mut later = LaterRecords::default();
        let obsolete = self.records.iter().rev().map(|record| later.make_obsolete(record));
        let mut obsolete: Vec<bool> = obsolete.collect();
        self.records.retain(|_| !obsolete.pop().unwrap_or_default());
    }
}
