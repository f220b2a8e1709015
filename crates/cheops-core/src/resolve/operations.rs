//! The operations of one resource and their causal order.

use std::cmp::Ordering;
use std::sync::Arc;

#[cfg(test)]
use crate::model::looks;
use crate::model::{
    Author, Operation, OperationId, OperationType, Position, SharedMap, SmallMap, Stamp, Vector,
};

/// The operations of one resource with their causal order, and which of them are void.
///
/// Operations are kept per author. An author's operations on a resource form a chain, so those
/// concurrent to a given one are a stretch of each chain and are found without a walk over the
/// rest. To copy a set costs with its authors and not with its operations.
#[derive(Debug, Clone, Default)]
pub struct OperationSet {
    chains: SmallMap<Author, SharedMap<u64, OperationNode>>,
    heads: SmallMap<OperationId, ()>,
    /// How many there are of each type.
    kinds: SmallMap<OperationType, usize>,
    pruned: Vector,
    len: usize,
    arrivals: u64,
}

/// One operation with what is known of its place in the order.
#[derive(Debug, Clone)]
pub(super) struct OperationNode {
    pub(super) operation: Arc<Operation>,
    pub(super) past: Vector,
    /// Its number in the order of arrival here: a short name, meaningless elsewhere.
    pub(super) arrival: u64,
    pub(super) void: bool,
    /// What took it out, if somebody did: then it is void as well.
    pub(super) undone_by: Option<OperationId>,
}

impl OperationNode {
    pub(super) fn id(&self) -> &OperationId {
        &self.operation.id
    }

    pub(super) fn position(&self) -> Position {
        self.operation.position()
    }

    /// Its position, borrowed: what the total order compares.
    pub(super) fn rank(&self) -> (Stamp, &OperationId) {
        #[cfg(test)]
        looks::one_more();
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
        *self.kinds.get_or_insert_with(&operation.kind, || 0) += 1;
        self.arrivals += 1;
        let n = id.0.n;
        let chain = self.chains.get_or_insert_with(&id.0.author, SharedMap::default);
        chain.insert(
            n,
            OperationNode { operation, past, arrival: self.arrivals, void: false, undone_by: None },
        );
        true
    }

    fn node_before(&self, id: &OperationId) -> Option<&OperationNode> {
        let chain = self.chains.get(&id.0.author)?;
        chain.range(..id.0.n).next_back().map(|(_, node)| node)
    }

    /// The number of the last operation of an author that is here; 0 if there is none.
    pub fn last_of(&self, author: &Author) -> u64 {
        let chain = self.chains.get(author);
        chain.and_then(|chain| chain.last_key_value()).map_or(0, |(n, _)| *n)
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
                for node in std::mem::replace(chain, kept).values() {
                    let count = self.kinds.get_or_insert_with(&node.operation.kind, || 0);
                    *count = count.saturating_sub(1);
                }
            }
        }
        self.kinds.retain(|_, count| *count > 0);
        self.chains.retain(|_, chain| !chain.is_empty());
        self.pruned.join(upto);
    }

    /// The heads of what was pruned up to there are these, whatever was known of it: what comes next is made
    /// on them, unless something known here already is.
    pub(super) fn set_pruned_heads(&mut self, upto: &Vector, heads: &[OperationId]) {
        self.heads.retain(|head, _| !upto.includes(&head.0));
        for head in heads {
            if !self.nodes().any(|node| node.past.includes(&head.0)) {
                self.heads.get_or_insert_with(head, || ());
            }
        }
    }

    pub(super) fn node(&self, id: &OperationId) -> Option<&OperationNode> {
        #[cfg(test)]
        looks::one_more();
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

    /// The types that there are operations of.
    pub fn kinds(&self) -> impl Iterator<Item = &OperationType> {
        self.kinds.keys()
    }

    /// The operations after that one in the total order, or all of them. Costs with how many are
    /// taken, and not with how many there are.
    pub fn in_order(&self, after: Option<&OperationId>) -> impl Iterator<Item = &Arc<Operation>> {
        let after = after.and_then(|id| self.node(id));
        let chains = self.chains.values().map(move |chain| {
            let from = after.map_or(0, |node| first_after(chain, node));
            chain.range(from..)
        });
        merged(chains, Ordering::Less)
    }

    /// The operations before that one in the total order, or all of them, the last one first. Costs
    /// as [`in_order`](Self::in_order) does.
    pub fn latest_first(
        &self,
        before: Option<&OperationId>,
    ) -> impl Iterator<Item = &Arc<Operation>> {
        let before = before.and_then(|id| self.node(id));
        let chains = self.chains.values().map(move |chain| {
            let upto = before.map_or(u64::MAX, |node| first_after(chain, node));
            chain.range(..upto).rev()
        });
        let is_before = move |it: &&Arc<Operation>| before.is_none_or(|node| *node.id() != it.id);
        merged(chains, Ordering::Greater).filter(is_before)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &OperationNode> {
        self.chains.values().flat_map(SharedMap::values)
    }

    /// The operations included in `upto`. Costs with how many there are.
    pub(super) fn within<'a>(&'a self, upto: &Vector) -> impl Iterator<Item = &'a OperationNode> {
        let chains =
            upto.iter().filter_map(|(author, last)| Some((self.chains.get(author)?, last)));
        chains.flat_map(|(chain, last)| chain.range(..=last)).map(|(_, node)| node)
    }

    /// The operations not included in `below`, by name.
    pub(super) fn above<'a>(&'a self, below: &Vector) -> impl Iterator<Item = &'a OperationNode> {
        self.chains
            .iter()
            .flat_map(|(author, chain)| chain.range(beyond(below.last_of(author))))
            .map(|(_, node)| node)
    }

    pub(super) fn concurrents<'a>(
        &'a self,
        node: &'a OperationNode,
    ) -> impl Iterator<Item = &'a OperationNode> {
        self.chains
            .iter()
            .flat_map(|(author, chain)| stretch(node, chain, node.past.last_of(author)))
    }

    /// The operations concurrent to that one.
    pub fn concurrent_to(&self, id: &OperationId) -> impl Iterator<Item = &Arc<Operation>> {
        let node = self.node(id).into_iter();
        node.flat_map(|node| self.concurrents(node)).map(|node| &node.operation)
    }

    /// The operations concurrent to that one and not included in `below`.
    pub(super) fn concurrents_above<'a>(
        &'a self,
        node: &'a OperationNode,
        below: &Vector,
    ) -> impl Iterator<Item = &'a OperationNode> {
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

    /// Notes that somebody took the operation out: it counts as little as one that failed everywhere.
    /// Says whether that changes what is void.
    pub fn set_undone(&mut self, id: &OperationId, by: &OperationId) -> bool {
        let chain = self.chains.get_mut(&id.0.author);
        if let Some(node) = chain.and_then(|chain| chain.get_mut(&id.0.n)) {
            node.undone_by = Some(by.clone());
        }
        self.set_void(id)
    }

    /// What took the operation out, if somebody did.
    pub fn undone_by(&self, id: &OperationId) -> Option<&OperationId> {
        self.node(id)?.undone_by.as_ref()
    }

    /// Whether the operation failed at every one of its sites, or was taken out, and so rules nothing out.
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

/// The number from which on one author's chain comes after `node` in the total order: an author's
/// operations have rising places.
fn first_after(chain: &SharedMap<u64, OperationNode>, node: &OperationNode) -> u64 {
    let (mut low, mut high) = match (chain.first_key_value(), chain.last_key_value()) {
        (Some((first, _)), Some((last, _))) => (*first, last.saturating_add(1)),
        _ => return 0,
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match chain.range(middle..high).next() {
            Some((n, other)) if other.rank() <= node.rank() => low = n + 1,
            _ => high = middle,
        }
    }
    low
}

/// Several chains as one: what comes first in the total order, or last for `Greater`, comes first.
fn merged<'a>(
    chains: impl Iterator<Item = impl Iterator<Item = (&'a u64, &'a OperationNode)>>,
    first: Ordering,
) -> impl Iterator<Item = &'a Arc<Operation>> {
    let mut chains: Vec<_> = chains.map(Iterator::peekable).collect();
    std::iter::from_fn(move || {
        let mut next: Option<(usize, &'a OperationNode)> = None;
        for (at, chain) in chains.iter_mut().enumerate() {
            let Some((_, node)) = chain.peek() else { continue };
            if next.is_none_or(|(_, best)| node.rank().cmp(&best.rank()) == first) {
                next = Some((at, node));
            }
        }
        let (at, node) = next?;
        chains[at].next();
        Some(&node.operation)
    })
}

fn beyond(last: u64) -> std::ops::RangeFrom<u64> {
    last.saturating_add(1)..
}

/// Of one author's chain, what comes after number `last` and does not follow `node`. Those that
/// follow it are the end of the chain.
fn stretch<'a>(
    node: &'a OperationNode,
    chain: &'a SharedMap<u64, OperationNode>,
    last: u64,
) -> impl Iterator<Item = &'a OperationNode> {
    chain
        .range(beyond(last))
        .map(|(_, other)| other)
        .filter(|other| other.arrival != node.arrival)
        .take_while(|other| !other.follows(node))
}
