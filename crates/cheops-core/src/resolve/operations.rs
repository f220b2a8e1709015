//! The operations of one resource and their causal order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Author, Few, Operation, OperationId, Position, Stamp, Vector};

/// The operations of one resource with their causal order, and which of them are void.
///
/// Operations are kept per author. An author's operations on a resource form a chain, so those
/// concurrent to a given one are a stretch of each chain and are found without a walk over the
/// rest.
#[derive(Debug, Clone, Default)]
pub struct OperationSet {
    chains: Few<Author, BTreeMap<u64, Node>>,
    heads: Few<OperationId, ()>,
    pruned: Vector,
    len: usize,
    arrivals: u64,
}

/// One operation with what is known of its place in the order.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) operation: Arc<Operation>,
    pub(super) past: Vector,
    /// Its number in the order of arrival here: a short name, meaningless elsewhere.
    pub(super) arrival: u64,
    pub(super) void: bool,
}

impl Node {
    pub(super) fn id(&self) -> &OperationId {
        &self.operation.id
    }

    pub(super) fn position(&self) -> Position {
        self.operation.position()
    }

    /// Its position, borrowed: what the total order compares.
    pub(super) fn rank(&self) -> (Stamp, &OperationId) {
        (self.operation.stamp, &self.operation.id)
    }

    /// Whether `other` is in its causal past.
    pub(super) fn follows(&self, other: &Self) -> bool {
        self.past.includes(&other.id().0)
    }

    /// Whether it rules out its causal past.
    pub(super) fn replaces(&self) -> bool {
        self.operation.replaces.past()
    }
}

impl OperationSet {
    /// Adds an operation. Its parents must be here, or pruned. One that is here already, or was
    /// pruned, changes nothing.
    pub fn insert(&mut self, operation: impl Into<Arc<Operation>>) {
        self.add(operation.into());
    }

    /// As [`insert`](Self::insert); says whether the operation was new.
    pub(super) fn add(&mut self, operation: Arc<Operation>) -> bool {
        let id = &operation.id;
        if self.contains(id) || self.pruned.includes(&id.0) {
            return false;
        }
        let mut past = self.past_over(&operation.parents);
        // Whatever an author says it was made on, it knew what it had done before: so an author's
        // operations are a chain, also those of one who lies.
        if let Some(before) = self.node_before(id) {
            past.join(&before.past);
            past.add(&before.id().0);
        }
        for parent in &operation.parents {
            self.heads.remove(parent);
        }
        self.heads.get_or_insert_with(id, || ());
        self.len += 1;
        self.arrivals += 1;
        let n = id.0.n;
        let chain = self.chains.get_or_insert_with(&id.0.author, BTreeMap::new);
        chain.insert(n, Node { operation, past, arrival: self.arrivals, void: false });
        true
    }

    fn node_before(&self, id: &OperationId) -> Option<&Node> {
        let chain = self.chains.get(&id.0.author)?;
        chain.range(..id.0.n).next_back().map(|(_, node)| node)
    }

    /// The last operation of the same author before that one.
    pub fn before(&self, id: &OperationId) -> Option<&Arc<Operation>> {
        self.node_before(id).map(|node| &node.operation)
    }

    /// The causal past of an operation made on these heads. Of a parent that was pruned only its
    /// name is known, which is enough: what was before it was pruned too.
    fn past_over(&self, parents: &[OperationId]) -> Vector {
        let mut past = Vector::default();
        for parent in parents {
            if let Some(node) = self.node(parent) {
                past.join(&node.past);
            }
            past.add(&parent.0);
        }
        past
    }

    /// A set to put the same operations into again: what was pruned is pruned, and the heads among
    /// it are heads.
    pub(super) fn without_any(&self) -> Self {
        let mut heads = self.heads.clone();
        heads.retain(|head, _| !self.contains(head));
        Self { heads, pruned: self.pruned.clone(), ..Self::default() }
    }

    /// Forgets every operation included in `upto`, which must be causally closed. Heads stay heads,
    /// so that the next operation is still made on them.
    pub fn remove_pruned(&mut self, upto: &Vector) {
        for (author, last) in upto.iter() {
            if let Some(chain) = self.chains.get_mut(author) {
                let kept = chain.split_off(&last.saturating_add(1));
                self.len -= chain.len();
                *chain = kept;
            }
        }
        self.chains.retain(|_, chain| !chain.is_empty());
        self.pruned.join(upto);
    }

    pub(super) fn node(&self, id: &OperationId) -> Option<&Node> {
        self.chains.get(&id.0.author)?.get(&id.0.n)
    }

    /// The operation of that name.
    pub fn operation(&self, id: &OperationId) -> Option<&Arc<Operation>> {
        self.node(id).map(|node| &node.operation)
    }

    /// The causal past of an operation, itself not included.
    pub fn past(&self, id: &OperationId) -> Option<&Vector> {
        self.node(id).map(|node| &node.past)
    }

    /// The operations that are nobody's parent, by name: what a new operation is made on.
    pub fn heads(&self) -> Vec<OperationId> {
        self.heads.keys().cloned().collect()
    }

    /// All operations, by name (author, then number).
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.nodes().map(|node| &node.operation)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.chains.values().flat_map(BTreeMap::values)
    }

    /// The operations included in `upto`. Costs with how many there are.
    pub(super) fn within<'a>(&'a self, upto: &Vector) -> impl Iterator<Item = &'a Node> {
        let chains =
            upto.iter().filter_map(|(author, last)| Some((self.chains.get(author)?, last)));
        chains.flat_map(|(chain, last)| chain.range(..=last)).map(|(_, node)| node)
    }

    /// The operations not included in `below`, by name.
    pub(super) fn above<'a>(&'a self, below: &Vector) -> impl Iterator<Item = &'a Node> {
        self.chains
            .iter()
            .flat_map(|(author, chain)| chain.range(beyond(below.last_of(author))))
            .map(|(_, node)| node)
    }

    pub(super) fn concurrents<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Node> {
        self.chains
            .iter()
            .flat_map(|(author, chain)| stretch(node, chain, node.past.last_of(author)))
    }

    /// The operations concurrent to that one and not included in `below`.
    pub(super) fn concurrents_above<'a>(
        &'a self,
        node: &'a Node,
        below: &Vector,
    ) -> impl Iterator<Item = &'a Node> {
        self.chains.iter().flat_map(|(author, chain)| {
            stretch(node, chain, node.past.last_of(author).max(below.last_of(author)))
        })
    }

    /// Notes that the operation failed at every one of its sites. Says whether that is news.
    pub fn set_void(&mut self, id: &OperationId) -> bool {
        let chain = self.chains.get_mut(&id.0.author);
        let Some(node) = chain.and_then(|chain| chain.get_mut(&id.0.n)) else { return false };
        !std::mem::replace(&mut node.void, true)
    }

    /// Whether the operation failed at every one of its sites, and so rules nothing out.
    pub fn is_void(&self, id: &OperationId) -> bool {
        self.node(id).is_some_and(|node| node.void)
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether that operation is here.
    pub fn contains(&self, id: &OperationId) -> bool {
        self.node(id).is_some()
    }
}

fn beyond(last: u64) -> std::ops::RangeFrom<u64> {
    last.saturating_add(1)..
}

/// Of one author's chain, what comes after number `last` and does not follow `node`. Those that
/// follow it are the end of the chain.
fn stretch<'a>(
    node: &'a Node,
    chain: &'a BTreeMap<u64, Node>,
    last: u64,
) -> impl Iterator<Item = &'a Node> {
    chain
        .range(beyond(last))
        .map(|(_, other)| other)
        .filter(|other| other.arrival != node.arrival)
        .take_while(|other| !other.follows(node))
}
