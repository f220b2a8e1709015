//! In which order the operations that count run: the total order, except that what must run before
//! something does.
//!
//! The walk goes through the operations in total order. Before one is emitted, what must run
//! before it and was not emitted yet is: its causal past, and those concurrent operations that the
//! matrix puts before it (`keep-both`). Where that runs in a circle, the one being worked on is
//! left where it is.

use std::collections::{BTreeMap, BTreeSet};

use super::matrix::{Precedence, Rules};
use super::operations::{OperationNode, OperationSet};
use crate::model::Position;

/// A place in the list: at whose turn in the walk, and the how-manieth emitted at that turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListPlace {
    pub(super) turn: Position,
    pub(super) nth: usize,
}

impl ListPlace {
    /// Where an operation stands that is emitted at its own turn, with nothing before it.
    pub(super) fn own(node: &OperationNode) -> Self {
        Self { turn: node.position(), nth: 0 }
    }
}

/// Puts operations, given in total order, in the order to run them.
pub(super) fn arrange<'a>(
    operations: &'a OperationSet,
    rules: &'a Rules,
    counting: &[&'a OperationNode],
) -> Vec<(ListPlace, &'a OperationNode)> {
    if !rules.reorders() {
        return counting.iter().map(|node| (ListPlace::own(node), *node)).collect();
    }
    let mut walk = Walk::new(operations, rules, counting);
    for turn in 0..counting.len() {
        walk.take_turn(turn);
    }
    walk.emitted
}

struct Walk<'a, 'c> {
    operations: &'a OperationSet,
    rules: &'a Rules,
    counting: &'c [&'a OperationNode],
    index: BTreeMap<u64, usize>,
    /// Emitted, or being worked on: in both cases not to be started again.
    started: Vec<bool>,
    emitted: Vec<(ListPlace, &'a OperationNode)>,
}

/// An operation being worked on, and what must run before it, last first.
struct WalkFrame {
    member: usize,
    before: Vec<usize>,
}

impl<'a, 'c> Walk<'a, 'c> {
    fn new(
        operations: &'a OperationSet,
        rules: &'a Rules,
        counting: &'c [&'a OperationNode],
    ) -> Self {
        Self {
            operations,
            rules,
            counting,
            index: counting.iter().enumerate().map(|(i, node)| (node.arrival, i)).collect(),
            started: vec![false; counting.len()],
            emitted: Vec::with_capacity(counting.len()),
        }
    }

    fn take_turn(&mut self, turn: usize) {
        let position = self.counting[turn].position();
        let mut nth = 0;
        let mut stack = Vec::new();
        stack.extend(self.start(turn, turn));
        while let Some(frame) = stack.last_mut() {
            if let Some(next) = frame.before.pop() {
                stack.extend(self.start(next, turn));
            } else {
                let place = ListPlace { turn: position.clone(), nth };
                self.emitted.push((place, self.counting[frame.member]));
                nth += 1;
                stack.pop();
            }
        }
    }

    fn start(&mut self, member: usize, turn: usize) -> Option<WalkFrame> {
        if std::mem::replace(&mut self.started[member], true) {
            return None;
        }
        Some(WalkFrame { member, before: self.before(member, turn) })
    }

    /// What must run before `member` and was not started, last first. Everything before `turn` in
    /// total order was.
    fn before(&self, member: usize, turn: usize) -> Vec<usize> {
        let node = self.counting[member];
        let open = |other: &usize| !self.started[*other];
        let past = (turn..member).filter(open).filter(|&other| node.follows(self.counting[other]));
        let leading = self.operations.concurrents(node).filter_map(|other| {
            let at = *self.index.get(&other.arrival)?;
            (self.rules.compare(node, other) == Precedence::Trails).then_some(at)
        });
        past.chain(leading.filter(open)).collect::<BTreeSet<_>>().into_iter().rev().collect()
    }
}
