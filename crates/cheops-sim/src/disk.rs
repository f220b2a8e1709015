//! The disk of one simulated site. It keeps what was committed and nothing else.

use std::collections::BTreeMap;
use std::convert::Infallible;

use cheops_core::engine::{Batch, Log, Record};
use cheops_core::model::{EntryBody, OperationId, ResourceId, SiteId, Vector};

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

    /// Drops what later records made obsolete, as a real log may; see [`Record`].
    fn compact(&mut self) {
        self.prunable = 0;
        let mut bases = BTreeMap::<ResourceId, Vector>::new();
        let mut last = BTreeMap::<DiskSlot, usize>::new();
        for (at, record) in self.records.iter().enumerate() {
            if let Record::Pruned(resource, base) = record {
                bases.entry(resource.clone()).or_default().join(&base.upto);
            }
            if let Some(slot) = slot(record) {
                last.insert(slot, at);
            }
        }
        let is_last = |slot: DiskSlot, at| last.get(&slot).is_none_or(|last| at >= *last);
        let mut next = 0;
        self.records.retain(|record| {
            let at = next;
            next += 1;
            match record {
                Record::Entry(resource, entry) => {
                    bases.get(resource).is_none_or(|base| !base.includes(entry.id()))
                }
                Record::Begun(resource, _) | Record::Finished(resource, ..) => {
                    is_last(DiskSlot::Ran(resource.clone()), at)
                }
                Record::Knows(resource, site, ..) => {
                    is_last(DiskSlot::EarlierIncarnation(resource.clone(), site.clone()), at)
                        && is_last(DiskSlot::Knows(resource.clone(), site.clone()), at)
                }
                _ => slot(record).is_none_or(|slot| is_last(slot, at)),
            }
        });
    }
}

/// What only the last record of counts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DiskSlot {
    Ran(ResourceId),
    Pruned(ResourceId),
    Shed(ResourceId),
    Knows(ResourceId, SiteId),
    EarlierIncarnation(ResourceId, SiteId),
    Incarnation(SiteId),
    SetApart(SiteId, [u8; 32]),
}

fn slot(record: &Record) -> Option<DiskSlot> {
    match record {
        Record::Ran(resource, _) => Some(DiskSlot::Ran(resource.clone())),
        Record::Pruned(resource, _) => Some(DiskSlot::Pruned(resource.clone())),
        Record::Shed(resource, _) => Some(DiskSlot::Shed(resource.clone())),
        Record::Knows(resource, site, ..) => Some(DiskSlot::Knows(resource.clone(), site.clone())),
        Record::EarlierIncarnation(resource, site, _) => {
            Some(DiskSlot::EarlierIncarnation(resource.clone(), site.clone()))
        }
        Record::Incarnation(site, _) => Some(DiskSlot::Incarnation(site.clone())),
        Record::SetApart(evidence) => {
            Some(DiskSlot::SetApart(evidence.author().site.clone(), evidence.one.0.resource))
        }
        Record::Entry(..) | Record::Begun(..) | Record::Finished(..) => None,
    }
}
