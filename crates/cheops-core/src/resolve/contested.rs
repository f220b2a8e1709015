//! Stretches of the list about which a program is asked: operations that were made concurrently, where the
//! matrix leaves the pair to it, with all that stands between them.

use std::collections::BTreeMap;

use super::Resolution;
use crate::model::{Fingerprint, OperationId, OperationType};

/// A stretch of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Which program is asked.
    pub program: String,
    /// The place of its first operation in the list.
    pub from: usize,
    /// The place after its last one.
    pub to: usize,
    /// That of the list up to there.
    pub upto: Fingerprint,
}

impl Resolution {
    /// The stretches about which a program is asked, in the order of the list.
    pub fn contested(
        &self,
        asks: impl Fn(&OperationType, &OperationType) -> Option<String>,
    ) -> Vec<Stretch> {
        let ids: Vec<&OperationId> = self.list().collect();
        let places: BTreeMap<&OperationId, usize> =
            ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let mut stretches: Vec<(String, usize, usize)> = Vec::new();
        for (place, id) in ids.iter().enumerate() {
            let Some(first) = self.first_contested(id, place, &places, &asks) else { continue };
            let (mut program, mut from) = first;
            // What overlaps is one stretch, of the program that was named first.
            while let Some((earlier, begins, _)) = stretches.pop_if(|(_, _, to)| *to > from) {
                (program, from) = (earlier, from.min(begins));
            }
            stretches.push((program, from, place + 1));
        }
        let mut named = Vec::new();
        let mut hasher = blake3::Hasher::new();
        if let Some(state) = self.state() {
            hasher.update(&state.list.0);
        }
        let mut ends = stretches.into_iter().peekable();
        for (place, id) in ids.iter().enumerate() {
            hasher.update(id.to_string().as_bytes());
            hasher.update(b"\n");
            if let Some((program, from, to)) = ends.next_if(|(_, _, to)| *to == place + 1) {
                let upto = Fingerprint(*hasher.finalize().as_bytes());
                named.push(Stretch { program, from, to, upto });
            }
        }
        named
    }

    /// The first operation before that place with which this one is contested, and the program.
    fn first_contested(
        &self,
        id: &OperationId,
        place: usize,
        places: &BTreeMap<&OperationId, usize>,
        asks: &impl Fn(&OperationType, &OperationType) -> Option<String>,
    ) -> Option<(String, usize)> {
        let operations = self.operations();
        let operation = operations.operation(id)?;
        let earlier = operations.concurrent_to(id).filter_map(|other| {
            let at = *places.get(&other.id).filter(|at| **at < place)?;
            Some((at, asks(&other.kind, &operation.kind)?))
        });
        earlier.min_by_key(|(at, _)| *at).map(|(at, program)| (program, at))
    }
}
