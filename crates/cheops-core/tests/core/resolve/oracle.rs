//! The definition once more, word by word and without any thought of speed, to check against.

use std::collections::{BTreeMap, BTreeSet};

use cheops_core::config::{Concurrent, Config, Rule};
use cheops_core::model::{Operation, OperationId};

pub(crate) struct Oracle<'a> {
    config: &'a Config,
    /// In total order, without void ones.
    operations: Vec<&'a Operation>,
    pasts: BTreeMap<&'a OperationId, BTreeSet<&'a OperationId>>,
}

impl<'a> Oracle<'a> {
    /// `made` is every operation ever made, parents first; `known` those to resolve.
    pub(crate) fn new(
        made: &'a [Operation],
        known: impl Fn(&OperationId) -> bool,
        void: &BTreeSet<OperationId>,
        config: &'a Config,
    ) -> Self {
        let mut pasts: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for operation in made {
            let mut past: BTreeSet<_> = operation.parents.iter().collect();
            for parent in &operation.parents {
                past.extend(pasts[parent].iter().copied());
            }
            pasts.insert(&operation.id, past);
        }
        let counted = |op: &&Operation| known(&op.id) && !void.contains(&op.id);
        let mut operations: Vec<_> = made.iter().filter(counted).collect();
        operations.sort_by_key(|operation| operation.position());
        Self { config, operations, pasts }
    }

    fn follows(&self, a: &Operation, b: &Operation) -> bool {
        self.pasts[&a.id].contains(&b.id)
    }

    /// The entry for two concurrent operations, and whether `a` is the first of the two.
    fn entry(&self, a: &Operation, b: &Operation) -> Option<(Rule, Concurrent, bool)> {
        if a.id == b.id || self.follows(a, b) || self.follows(b, a) {
            return None;
        }
        let a_first = a.position() < b.position();
        let (first, second) = if a_first { (a, b) } else { (b, a) };
        if deletes(a) || deletes(b) {
            return None;
        }
        let entry = self.config.matrix.get(&(first.kind.clone(), second.kind.clone()))?;
        Some((entry.rule.clone(), entry.concurrent, a_first))
    }

    pub(crate) fn rules_out(&self, a: &Operation, b: &Operation) -> bool {
        if self.follows(a, b) {
            return a.replaces.past();
        }
        let concurrent = a.id != b.id && !self.follows(b, a);
        if concurrent && deletes(a) {
            return !deletes(b) || b.position() < a.position();
        }
        match self.entry(a, b) {
            Some((Rule::TakeOne, _, a_first)) => !a_first,
            Some((Rule::KeepOrder, Concurrent::ReplaceWins, a_first)) => a_first,
            Some((Rule::ReverseOrder, Concurrent::ReplaceWins, a_first)) => !a_first,
            _ => false,
        }
    }

    pub(crate) fn must_run_before(&self, a: &Operation, b: &Operation) -> bool {
        if self.follows(b, a) {
            return true;
        }
        match self.entry(a, b) {
            Some((Rule::KeepOrder, Concurrent::KeepBoth, a_first)) => a_first,
            Some((Rule::ReverseOrder, Concurrent::KeepBoth, a_first)) => !a_first,
            _ => false,
        }
    }

    /// The operations that count, in total order.
    pub(crate) fn counting(&self) -> Vec<&'a Operation> {
        let mut counts: BTreeMap<&OperationId, bool> = BTreeMap::new();
        loop {
            let undecided: Vec<_> =
                self.operations.iter().filter(|op| !counts.contains_key(&op.id)).collect();
            let Some(last) = undecided.last() else { break };
            let before = counts.len();
            for op in &undecided {
                let rulers: Vec<_> =
                    self.operations.iter().filter(|other| self.rules_out(other, op)).collect();
                if rulers.iter().any(|ruler| counts.get(&ruler.id) == Some(&true)) {
                    counts.insert(&op.id, false);
                } else if rulers.iter().all(|ruler| counts.get(&ruler.id) == Some(&false)) {
                    counts.insert(&op.id, true);
                }
            }
            if counts.len() == before {
                counts.insert(&last.id, true);
                for op in undecided.iter().filter(|op| self.rules_out(op, last)) {
                    counts.insert(&op.id, false);
                }
            }
        }
        self.operations.iter().copied().filter(|op| counts[&op.id]).collect()
    }

    pub(crate) fn list(&self) -> Vec<OperationId> {
        let counting = self.counting();
        let (mut started, mut list) = (BTreeSet::new(), Vec::new());
        for operation in &counting {
            self.emit(operation, &counting, &mut started, &mut list);
        }
        list
    }

    fn emit(
        &self,
        operation: &Operation,
        counting: &[&Operation],
        started: &mut BTreeSet<OperationId>,
        list: &mut Vec<OperationId>,
    ) {
        if !started.insert(operation.id.clone()) {
            return;
        }
        for other in counting.iter().filter(|other| self.must_run_before(other, operation)) {
            self.emit(other, counting, started, list);
        }
        list.push(operation.id.clone());
    }

    /// Of those that count and rule this one out, the last; failing that, of those that count and
    /// that it rules out itself, the last.
    pub(crate) fn winner(&self, loser: &OperationId) -> Option<OperationId> {
        let counting = self.counting();
        let loser = self.operations.iter().find(|op| op.id == *loser)?;
        let rulers = counting.iter().rev().find(|op| self.rules_out(op, loser));
        let ruled = || counting.iter().rev().find(|op| self.rules_out(loser, op));
        rulers.or_else(ruled).map(|op| op.id.clone())
    }

    /// Whether what must run before `operation`, taken on and on, leads back to it.
    pub(crate) fn is_in_a_circle(&self, operation: &Operation, counting: &[&Operation]) -> bool {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![operation]);
        while let Some(next) = todo.pop() {
            for other in counting.iter().filter(|other| self.must_run_before(other, next)) {
                if other.id == operation.id {
                    return true;
                }
                if seen.insert(&other.id) {
                    todo.push(other);
                }
            }
        }
        false
    }
}

fn deletes(operation: &Operation) -> bool {
    operation.kind.as_str() == "cheops.delete"
}
