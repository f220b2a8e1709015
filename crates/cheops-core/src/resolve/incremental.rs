//! Resolution kept up to date, one operation at a time.
//!
//! [`ruling`](super::ruling) says what a new operation means; here it is carried out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Resolved;
use super::decide;
use super::list::{List, ListedOperations};
use super::matrix::Rules;
use super::operations::{OperationNode, OperationSet};
use super::order::{self, ListPlace};
use super::reason::{LeftOut, Reasons, by_replacer};
use super::ruling::Ruling;
use crate::config::{Config, Rule};
use crate::model::{
    Author, Fingerprint, Operation, OperationId, OperationType, Replaces, StateFloor, Vector,
};

/// What an insertion changed, so that the caller can do little when little changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChange {
    /// The list is as before.
    Nothing,
    /// The new operation stands at the end of the list, and nothing else changed.
    Appended,
    /// The new operation stands somewhere before the end, and nothing else changed.
    Inserted,
    /// Anything else.
    Rearranged,
}

/// What [`resolve`](super::resolve) says of a set of operations that grows.
#[derive(Debug, Clone)]
pub struct Resolution {
    pub(super) rules: Rules,
    pub(super) operations: OperationSet,
    pub(super) list: List,
    /// Operations that replace and to which none is concurrent, each in the past of the next.
    bases: Vec<OperationId>,
    /// Those, by arrival, that a concurrent operation rules out if it counts.
    pub(super) contested: BTreeSet<u64>,
    /// Those, by arrival, that were decided by breaking a circle.
    pub(super) stuck: BTreeSet<u64>,
    /// The state that stands for operations which were pruned and count, unless they are replaced.
    state: Option<Arc<StateFloor>>,
}

impl Resolution {
    /// For a resource without operations yet.
    pub fn new(rules: impl Into<Rules>) -> Self {
        Self {
            rules: rules.into(),
            operations: OperationSet::default(),
            list: List::default(),
            bases: Vec::new(),
            contested: BTreeSet::new(),
            stuck: BTreeSet::new(),
            state: None,
        }
    }

    /// Adds an operation whose parents are known or pruned; a known one changes nothing.
    pub fn insert(&mut self, operation: impl Into<Arc<Operation>>) -> ListChange {
        let operation = operation.into();
        let id = operation.id.clone();
        if !self.operations.add(operation) {
            return ListChange::Nothing;
        }
        let Some(node) = self.operations.node(&id) else { return ListChange::Nothing };
        let alone = self.operations.concurrents(node).next().is_none();
        while self.bases.pop_if(|base| !node.past.includes(&base.0)).is_some() {}
        if alone && node.replaces() {
            self.bases.push(id.clone());
        }
        let encounter = self.encounter(node);
        let ruling = self.rule_on(&encounter);
        let in_turn = encounter.in_turn;
        let contested = encounter.contested();
        self.contested.extend(contested);
        self.carry_out(&id, ruling, in_turn)
    }

    /// What is out whatever happens: the past of the last base.
    pub(super) fn below_base(&self) -> Vector {
        let base = self.bases.last().and_then(|base| self.operations.past(base));
        base.cloned().unwrap_or_default()
    }

    fn carry_out(&mut self, id: &OperationId, ruling: Ruling, in_turn: bool) -> ListChange {
        match ruling {
            Ruling::LeftOut => ListChange::Nothing,
            Ruling::DecideAbove(below) => self.decide_above(&below, Some(id)),
            Ruling::Counts(losing) if in_turn && (losing.is_empty() || !self.rules.reorders()) => {
                self.enlist(id, &losing)
            }
            Ruling::Counts(losing) => self.rearrange(Some(id), &losing),
        }
    }

    /// Puts a new operation at its own turn, in the place of others that ran at theirs.
    fn enlist(&mut self, id: &OperationId, losing: &[OperationId]) -> ListChange {
        for node in losing.iter().filter_map(|id| self.operations.node(id)) {
            self.list.remove(node);
        }
        if let Some(node) = self.operations.node(id) {
            self.list.insert(ListPlace::own(node), node);
        }
        let is_last = self.list.last().is_some_and(|last| last.id == *id);
        match losing.is_empty() {
            true if is_last => ListChange::Appended,
            true => ListChange::Inserted,
            false => ListChange::Rearranged,
        }
    }

    /// Orders the list anew, with `new` and without those given.
    fn rearrange(&mut self, new: Option<&OperationId>, losing: &[OperationId]) -> ListChange {
        let ids = self.list.ids().filter(|id| !losing.contains(id)).chain(new);
        let mut counting: Vec<_> = ids.filter_map(|id| self.operations.node(id)).collect();
        counting.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let list: List =
            order::arrange(&self.operations, &self.rules, &counting).into_iter().collect();
        let change = list.change_since(&self.list, new);
        self.list = list;
        change
    }

    /// Decides anew about everything not included in `below`; the rest is out.
    fn decide_above(&mut self, below: &Vector, new: Option<&OperationId>) -> ListChange {
        let decided = decide::decide(&self.operations, &self.rules, below);
        let arranged = order::arrange(&self.operations, &self.rules, &decided.counting);
        let list: List = arranged.into_iter().collect();
        self.stuck = decided.stuck.iter().map(|node| node.arrival).collect();
        let change = list.change_since(&self.list, new);
        self.list = list;
        change
    }

    /// Notes that an operation failed at every one of its sites: it rules nothing out any more.
    pub fn mark_void(&mut self, id: &OperationId) -> ListChange {
        if !self.operations.set_void(id) {
            return ListChange::Nothing;
        }
        self.bases.retain(|base| base != id);
        let Some(node) = self.operations.node(id) else { return ListChange::Nothing };
        let stuck = self.stuck.contains(&node.arrival);
        if !stuck && !self.list.counts(node) {
            // It was out, so it ruled nothing out before either.
            return ListChange::Nothing;
        }
        if stuck || self.rules.may_rule_out(node) {
            return self.decide_above(&self.below_base(), None);
        }
        if self.rules.reorders() {
            return self.rearrange(None, std::slice::from_ref(id));
        }
        self.list.remove(node);
        ListChange::Rearranged
    }

    /// Notes that somebody took an operation out, by that entry.
    pub fn mark_undone(&mut self, id: &OperationId, by: &OperationId) -> ListChange {
        if self.operations.is_void(id) {
            self.operations.set_undone(id, by);
            return ListChange::Nothing;
        }
        let change = self.mark_void(id);
        self.operations.set_undone(id, by);
        change
    }

    /// Whether an operation may be taken out: what it replaced has to be there, at every site. Below one
    /// that replaces all before it, and to which none is concurrent, sites may have forgotten it.
    pub fn may_be_undone(&self, id: &OperationId) -> bool {
        let Some(node) = self.operations.node(id) else { return false };
        !node.replaces()
            || node.past.is_empty()
            || self.operations.concurrents(node).next().is_some()
    }

    /// The list there would be if these had failed at every one of their sites, too.
    pub fn list_without<'a>(
        &self,
        void: impl IntoIterator<Item = &'a OperationId>,
    ) -> Vec<Arc<Operation>> {
        let mut operations = self.operations.clone();
        for id in void {
            operations.set_void(id);
        }
        let base = self.bases.iter().rev().find(|base| !operations.is_void(base));
        let below = base.and_then(|base| operations.past(base)).cloned().unwrap_or_default();
        let counting = decide::decide(&operations, &self.rules, &below).counting;
        let list = order::arrange(&operations, &self.rules, &counting);
        list.into_iter().map(|(_, node)| Arc::clone(&node.operation)).collect()
    }

    /// The same operations resolved from scratch by other rules, where these are void.
    pub fn anew<'a>(
        &self,
        rules: impl Into<Rules>,
        void: impl IntoIterator<Item = &'a OperationId>,
    ) -> Self {
        let (operations, state) = (self.operations.without_any(), self.state.clone());
        let mut anew = Self { operations, state, ..Self::new(rules) };
        let mut operations: Vec<_> = self.operations.iter().collect();
        operations.sort_by_key(|operation| operation.position());
        for operation in operations {
            anew.insert(Arc::clone(operation));
        }
        for id in void {
            anew.mark_void(id);
        }
        anew
    }

    /// What there is before any of its operations is known: what was pruned is pruned.
    #[must_use]
    pub fn without_operations(&self) -> Self {
        let (operations, state) = (self.operations.without_any(), self.state.clone());
        Self { operations, state, ..Self::new(self.rules.clone()) }
    }

    /// Forgets every operation included in `upto`, which must be causally closed. The list changes
    /// only if one of them counts or bears on one that stays.
    pub fn prune(&mut self, upto: &Vector) {
        let base = self.bases.last().and_then(|base| self.operations.node(base));
        let below_base = |node: &OperationNode| base.is_some_and(|base| base.follows(node));
        let buried = self.operations.within(upto).all(below_base);
        for node in self.operations.within(upto) {
            self.contested.remove(&node.arrival);
        }
        self.operations.remove_pruned(upto);
        self.bases = self.find_bases();
        if !buried {
            self.decide_above(&self.below_base(), None);
        }
    }

    /// With what was concurrent to it gone, an operation may have become a base.
    fn find_bases(&self) -> Vec<OperationId> {
        let mut bases: Vec<_> = self.replacing_but_for(&|_| false).collect();
        bases.sort_by(|a, b| a.rank().cmp(&b.rank()));
        bases.into_iter().map(|base| base.id().clone()).collect()
    }

    /// Those that replace their past, and to which nothing is concurrent but what these wrote.
    fn replacing_but_for<'a>(
        &'a self,
        leave_aside: &'a dyn Fn(&Author) -> bool,
    ) -> impl Iterator<Item = &'a OperationNode> {
        let is_alone = move |node: &&OperationNode| {
            self.operations.concurrents(node).all(|other| leave_aside(&other.id().0.author))
        };
        let replacing = self.operations.nodes().filter(|node| node.replaces() && !node.void);
        replacing.filter(is_alone)
    }

    /// The operations known, with their causal order.
    pub fn operations(&self) -> &OperationSet {
        &self.operations
    }

    /// What conflicts are settled by.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How conflicts are settled.
    pub fn config(&self) -> &Arc<Config> {
        self.rules.config()
    }

    /// The operations that count, in the order to run them.
    pub fn list(&self) -> impl DoubleEndedIterator<Item = &OperationId> + ExactSizeIterator {
        self.list.ids()
    }

    /// The same to be read elsewhere, as it is now.
    pub fn listed(&self) -> ListedOperations {
        self.list.listed()
    }

    /// What stands for the list. Pruning takes nothing out of it: what is pruned was left out before, or
    /// there is a state that stands for it.
    pub fn list_fingerprint(&self) -> Fingerprint {
        self.with_state(self.list.fingerprint())
    }

    /// The same of what is up to there.
    pub fn list_fingerprint_upto(&self, upto: &Vector) -> Fingerprint {
        self.with_state(self.list.fingerprint_upto(upto))
    }

    fn with_state(&self, mut list: Fingerprint) -> Fingerprint {
        if let Some(state) = self.state() {
            list.0.iter_mut().zip(state.list.0).for_each(|(all, one)| *all ^= one);
        }
        list
    }

    /// From now on this state stands for what was pruned up to there; or none does.
    pub fn stand_on(&mut self, upto: &Vector, state: Option<StateFloor>) {
        if let Some(state) = &state {
            self.operations.set_pruned_heads(upto, &state.heads);
        }
        self.state = state.map(Arc::new);
    }

    /// The state that stands for what was pruned, whether that counts or not.
    pub fn pruned_state(&self) -> Option<&Arc<StateFloor>> {
        self.state.as_ref()
    }

    /// The state before all of the list, if there is one that was not replaced.
    pub fn state(&self) -> Option<&StateFloor> {
        self.state_before(self.list.replacers())
    }

    /// The same of a list that has these.
    pub fn state_before<'a>(
        &self,
        mut listed: impl Iterator<Item = &'a OperationId>,
    ) -> Option<&StateFloor> {
        let state = self.state.as_deref()?;
        let replaces = |node: &OperationNode| {
            node.replaces() && state.heads.iter().all(|head| node.past.includes(&head.0))
        };
        let is_replaced = listed.any(|id| self.operations.node(id).is_some_and(replaces));
        (!is_replaced).then_some(state)
    }

    /// The types of what is in the list, that of the last operation first.
    pub fn listed_kinds(&self) -> Vec<OperationType> {
        let mut kinds: Vec<OperationType> = Vec::new();
        let listed = self.list.backwards().map(|operation| &operation.kind);
        for kind in listed.chain(self.state().into_iter().flat_map(|state| &state.kinds)) {
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
        }
        kinds
    }

    /// The last of the list: what a new operation is compared with.
    pub fn last(&self) -> Option<&Operation> {
        self.list.last().map(Arc::as_ref)
    }

    /// The operations after that one in the list, the last first. Costs with their number.
    pub fn after(&self, id: &OperationId) -> impl Iterator<Item = &Operation> {
        self.list.backwards().take_while(move |operation| operation.id != *id)
    }

    /// Whether an operation is in the list.
    pub fn counts(&self, id: &OperationId) -> bool {
        self.operations.node(id).is_some_and(|node| self.list.counts(node))
    }

    /// Why an operation is not in the list; `None` if it is, or is not known.
    pub fn left_out(&self, id: &OperationId) -> Option<LeftOut> {
        self.reasons(&|node| self.list.counts(node)).of(self.operations.node(id)?)
    }

    /// Why operations up to there are not in the list. Of very many, those that were looked for are
    /// the last ones; of the others it is said that the floor replaced them, if it did.
    pub fn left_out_upto(&self, upto: &Vector) -> Vec<(OperationId, LeftOut)> {
        // Looking for a reason costs with what is concurrent.
        const LOOKED_FOR: usize = 512;
        let mut nodes: Vec<_> = self.operations.within(upto).collect();
        nodes.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let counts = |node: &OperationNode| self.list.counts(node);
        let reasons = self.reasons(&counts);
        let floor = self.floor().and_then(|floor| self.operations.node(floor));
        let many = nodes.len().saturating_sub(LOOKED_FOR);
        let mut found = Vec::new();
        for (at, node) in nodes.into_iter().enumerate() {
            let reason = match at < many && !node.void {
                true => floor.filter(|floor| floor.follows(node)).map(by_replacer),
                false => reasons.of(node),
            };
            found.extend(reason.map(|reason| (node.id().clone(), reason)));
        }
        found
    }

    fn reasons<'a>(&'a self, counts: &'a dyn Fn(&OperationNode) -> bool) -> Reasons<'a> {
        let replacers = self.list.replacers().filter_map(|id| self.operations.node(id)).collect();
        Reasons { operations: &self.operations, rules: &self.rules, replacers, counts }
    }

    /// What the receiving site stamps on a new operation, by the entry against the last of the
    /// list. Where the matrix says `ordered` of it and any other of the list, both are to be kept,
    /// so it does not replace: a `put` after a `put` leaves the `post` that created the thing.
    pub fn replaces(&self, kind: &OperationType, force: bool) -> Replaces {
        if force {
            return Replaces::PastByForce;
        }
        let entry = |before: &OperationType| &self.config().resolution(before, kind).rule;
        // What a state stands for comes before all of the list.
        let before = || self.state().into_iter().flat_map(|state| &state.kinds);
        match self.last().map(|last| &last.kind).or_else(|| before().next()).map(entry) {
            Some(Rule::TakeOne | Rule::ReverseOrder) => {}
            _ => return Replaces::Nothing,
        }
        let is_kept = |listed: &OperationType| entry(listed).is_ordered();
        let may_keep = self
            .config()
            .matrix
            .iter()
            .any(|((_, after), resolution)| after == kind && resolution.rule.is_ordered());
        let listed = || self.list.backwards().map(|listed| &listed.kind).chain(before());
        if may_keep && listed().any(is_kept) { Replaces::Nothing } else { Replaces::Past }
    }

    /// The last operation that replaces its past, counts, and to which no known operation is
    /// concurrent. Everything in its past is out, for good unless it turns void or one concurrent
    /// to it arrives.
    pub fn floor(&self) -> Option<&OperationId> {
        self.bases.last().filter(|base| self.counts(base))
    }

    /// All that ever were the [floor](Self::floor), the last one first.
    pub fn floors(&self) -> impl Iterator<Item = &OperationId> {
        self.bases.iter().rev()
    }

    /// Those that would be, if these authors had written nothing. Costs with their number.
    pub fn floors_but_for<'a>(
        &'a self,
        leave_aside: &'a dyn Fn(&Author) -> bool,
    ) -> impl Iterator<Item = &'a OperationId> {
        self.replacing_but_for(leave_aside).map(OperationNode::id)
    }

    /// All of it at once, as [`resolve`](super::resolve) would give it.
    pub fn resolved(&self) -> Resolved {
        let left_out = self.reasons(&|node| self.list.counts(node)).all();
        Resolved { list: self.list().cloned().collect(), left_out }
    }
}
