//! The disk of one simulated site. It keeps what was committed and nothing else.

use std::convert::Infallible;

use cheops_core::engine::{Log, Record};
use cheops_core::model::OperationId;
use cheops_core::model::{Body, ResourceId, Vector};

/// What survives a crash.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    records: Vec<Record>,
    prunable: usize,
}

impl Log for Disk {
    type Error = Infallible;

    fn append(&mut self, records: &[Record]) -> Result<(), Infallible> {
        for record in records {
            if matches!(record, Record::Pruned(..)) {
                self.prunable += 1;
            }
            self.records.push(record.clone());
        }
        // Forgetting costs a walk over everything: not for every single one.
        if self.prunable > 64 {
            self.compact();
        }
        Ok(())
    }
}

impl Disk {
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
                    && matches!(&entry.body, Body::Operation(held) if held.id == *operation)
            }
            Record::Pruned(of, base) => of == resource && base.upto.includes(&operation.0),
            _ => false,
        })
    }

    /// Drops what was pruned, as a real log may.
    fn compact(&mut self) {
        self.prunable = 0;
        let mut bases = std::collections::BTreeMap::<ResourceId, Vector>::new();
        let mut whole_logs = std::collections::BTreeMap::<ResourceId, usize>::new();
        for (at, record) in self.records.iter().enumerate() {
            match record {
                Record::Pruned(resource, base) => {
                    bases.entry(resource.clone()).or_default().join(&base.upto);
                }
                Record::Ran(resource, _) => {
                    whole_logs.insert(resource.clone(), at);
                }
                _ => {}
            }
        }
        let mut at = 0;
        self.records.retain(|record| {
            let here = at;
            at += 1;
            match record {
                Record::Entry(resource, entry) => {
                    bases.get(resource).is_none_or(|base| !base.includes(entry.id()))
                }
                Record::Begun(resource, _)
                | Record::Finished(resource, ..)
                | Record::Ran(resource, _) => {
                    whole_logs.get(resource).is_none_or(|last| here >= *last)
                }
                _ => true,
            }
        });
    }
}
