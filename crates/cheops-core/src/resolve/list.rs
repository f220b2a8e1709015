//! The list as it is kept: by place, and with what is asked about it often.

use std::sync::Arc;

use super::incremental::ListChange;
use super::operations::OperationNode;
use super::order::ListPlace;
use crate::model::{Fingerprint, Operation, OperationId, Position, SharedMap, Vector};

/// The operations that count, in the order to run them. To copy it costs the same for any number.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    places: SharedMap<Arc<ListPlace>, Arc<Operation>>,
    by_arrival: SharedMap<u64, Arc<ListPlace>>,
    replacers: SharedMap<Position, ()>,
    /// The fingerprints of all that count, joined: in which order they run follows from which they are.
    fingerprint: [u8; 32],
}

/// The operations that count, in the order to run them, as they were at one time.
#[derive(Debug, Clone)]
pub struct ListedOperations(SharedMap<Arc<ListPlace>, Arc<Operation>>);

impl ListedOperations {
    /// Their names, in that order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &OperationId> + ExactSizeIterator {
        self.0.values().map(|operation| &operation.id)
    }
}

impl List {
    pub(super) fn listed(&self) -> ListedOperations {
        ListedOperations(self.places.clone())
    }

    pub(super) fn insert(&mut self, place: ListPlace, node: &OperationNode) {
        if node.replaces() {
            self.replacers.insert(node.position(), ());
        }
        let place = Arc::new(place);
        self.by_arrival.insert(node.arrival, Arc::clone(&place));
        if self.places.insert(place, node.operation.clone()).is_none() {
            self.join_fingerprint(node.id());
        }
    }

    pub(super) fn remove(&mut self, node: &OperationNode) {
        if let Some(place) = self.by_arrival.remove(&node.arrival) {
            self.places.remove(&place);
            self.replacers.remove(&node.position());
            self.join_fingerprint(node.id());
        }
    }

    /// Adds one, or takes it away again: that is the same.
    fn join_fingerprint(&mut self, id: &OperationId) {
        let one = Fingerprint::of(id.to_string().as_bytes());
        self.fingerprint.iter_mut().zip(one.0).for_each(|(all, one)| *all ^= one);
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.fingerprint)
    }

    /// That of those which the vector includes. Costs with the list.
    pub(super) fn fingerprint_upto(&self, upto: &Vector) -> Fingerprint {
        let mut all = [0; 32];
        for id in self.ids().filter(|id| upto.includes(&id.0)) {
            let one = Fingerprint::of(id.to_string().as_bytes());
            all.iter_mut().zip(one.0).for_each(|(all, one)| *all ^= one);
        }
        Fingerprint(all)
    }

    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = &OperationId> + ExactSizeIterator {
        self.places.values().map(|operation| &operation.id)
    }

    pub(super) fn last(&self) -> Option<&Arc<Operation>> {
        self.places.last_key_value().map(|(_, operation)| operation)
    }

    pub(super) fn backwards(&self) -> impl Iterator<Item = &Operation> {
        self.places.values().rev().map(Arc::as_ref)
    }

    pub(super) fn counts(&self, node: &OperationNode) -> bool {
        self.by_arrival.contains_key(&node.arrival)
    }

    pub(super) fn place(&self, node: &OperationNode) -> Option<&ListPlace> {
        self.by_arrival.get(&node.arrival).map(Arc::as_ref)
    }

    /// The operations that count and replace their past, in total order.
    pub(super) fn replacers(&self) -> impl Iterator<Item = &OperationId> {
        self.replacers.keys().map(|position| &position.id)
    }

    /// Whether an operation of that past counts. Costs with the others that count.
    pub(super) fn has_any_of(&self, past: &Vector) -> bool {
        self.ids().any(|id| past.includes(&id.0))
    }

    /// What happened to get here from `before`, by the arrival of `new` if there was one.
    pub(super) fn change_since(&self, before: &Self, new: Option<&OperationId>) -> ListChange {
        let longer_by = self.places.len().checked_sub(before.places.len());
        let same_start = || self.ids().zip(before.ids()).all(|(now, then)| now == then);
        let ends_with_new = || self.last().map(|last| &last.id) == new;
        match longer_by {
            Some(0) if same_start() => ListChange::Nothing,
            Some(1) if ends_with_new() && same_start() => ListChange::Appended,
            _ => ListChange::Rearranged,
        }
    }
}

impl<'a> FromIterator<(ListPlace, &'a OperationNode)> for List {
    fn from_iter<T: IntoIterator<Item = (ListPlace, &'a OperationNode)>>(places: T) -> Self {
        let mut list = Self::default();
        places.into_iter().for_each(|(place, node)| list.insert(place, node));
        list
    }
}
