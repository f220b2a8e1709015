//! Why an operation is left out, and which one took its place.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::matrix::{Precedence, Rules};
use super::operations::{OperationNode, OperationSet};
use crate::config::{Concurrent, Resolution, Rule};
use crate::model::{OperationId, OperationType, Replaces};

/// What left an operation out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The operation that counts in its stead: of those that rule it out, the last in total order.
    /// None if it failed everywhere.
    pub by: Option<OperationId>,
    /// The reason.
    pub why: Why,
}

/// Why an operation does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Why {
    /// A causally later operation replaced all that was before it.
    Replaced,
    /// The same, by the operator's word (`force`).
    Forced,
    /// Only one of two concurrent operations is taken, and the other was written last.
    LastWriter {
        /// The entry that says so.
        entry: MatrixEntry,
    },
    /// The concurrent operation is of the replacing kind and wins over this one.
    ReplaceWins {
        /// The entry that says so.
        entry: MatrixEntry,
    },
    /// Preferences ran in a circle. This one would have ruled out the one that counts, which is the
    /// last of the circle in total order.
    Circle {
        /// The entry by which it would have won.
        entry: MatrixEntry,
    },
    /// It failed at every site of the resource.
    FailedEverywhere,
    /// Somebody took it out.
    Undone,
}

impl Why {
    /// The matrix entry that decided, where one did.
    pub fn entry(&self) -> Option<&MatrixEntry> {
        match self {
            Self::LastWriter { entry } | Self::ReplaceWins { entry } | Self::Circle { entry } => {
                Some(entry)
            }
            Self::Replaced | Self::Forced | Self::FailedEverywhere | Self::Undone => None,
        }
    }
}

impl LeftOut {
    /// What became of an operation that is not in the list, where this one counts in its stead, as the
    /// first half of a sentence.
    pub fn verdict(by: Option<&OperationId>) -> &'static str {
        if by.is_some() { "is overridden" } else { "does not count" }
    }
}

/// The reason in words, as the second half of a sentence.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by.as_ref().map(OperationId::to_string);
        let winner = by.unwrap_or_default();
        match &self.why {
            Why::Replaced => write!(f, "{winner} was made after it and replaces all before it"),
            Why::Forced => write!(f, "{winner} was forced and replaces all before it"),
            Why::LastWriter { entry } => {
                write!(f, "{winner} is concurrent and was written last; {entry}")
            }
            Why::ReplaceWins { entry } => {
                write!(f, "{winner} is concurrent and of the replacing kind; {entry}")
            }
            Why::Circle { entry } => {
                write!(f, "preferences run in a circle and {winner} is the last of it; {entry}")
            }
            Why::FailedEverywhere => f.write_str("it failed at every site"),
            Why::Undone => write!(f, "it was undone, by {winner}"),
        }
    }
}

/// The matrix entry that decided between two concurrent operations, taken in total order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatrixEntry {
    /// The type of the first.
    pub first: OperationType,
    /// The type of the second.
    pub second: OperationType,
    /// What the matrix says of the two.
    pub resolution: Resolution,
}

impl fmt::Display for MatrixEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, resolution } = self;
        write!(f, "({first}, {second}): ")?;
        match &resolution.rule {
            Rule::TakeOne => f.write_str("take-one"),
            Rule::TakeBoth => f.write_str("take-both"),
            Rule::KeepOrder => f.write_str("take-both-keep-order"),
            Rule::ReverseOrder => f.write_str("take-both-reverse-order"),
            Rule::Ordered => f.write_str("ordered"),
            Rule::Logic(name) => write!(f, "logic:{name}"),
        }?;
        match (&resolution.rule, resolution.concurrent) {
            (Rule::KeepOrder | Rule::ReverseOrder, Concurrent::ReplaceWins) => {
                f.write_str(", replace-wins")
            }
            (Rule::KeepOrder | Rule::ReverseOrder, Concurrent::KeepBoth) => {
                f.write_str(", keep-both")
            }
            _ => Ok(()),
        }
    }
}

impl MatrixEntry {
    /// The entry for two concurrent operations.
    pub(super) fn between(a: &OperationNode, b: &OperationNode, rules: &Rules) -> Self {
        let (first, second) = if a.rank() < b.rank() { (a, b) } else { (b, a) };
        let (first, second) = (&first.operation.kind, &second.operation.kind);
        let resolution = rules.config().resolution(first, second).clone();
        Self { first: first.clone(), second: second.clone(), resolution }
    }
}

/// Finds reasons, given which operations count.
pub(super) struct Reasons<'a> {
    pub(super) operations: &'a OperationSet,
    pub(super) rules: &'a Rules,
    /// The operations that count and replace their past, in total order.
    pub(super) replacers: Vec<&'a OperationNode>,
    pub(super) counts: &'a dyn Fn(&OperationNode) -> bool,
}

impl<'a> Reasons<'a> {
    /// Every operation that does not count, with the reason.
    pub(super) fn all(&self) -> BTreeMap<OperationId, LeftOut> {
        let nodes = self.operations.nodes();
        nodes.filter_map(|node| Some((node.id().clone(), self.of(node)?))).collect()
    }

    /// The reason why an operation does not count; `None` if it does.
    pub(super) fn of(&self, node: &'a OperationNode) -> Option<LeftOut> {
        if let Some(by) = &node.undone_by {
            return Some(LeftOut { by: Some(by.clone()), why: Why::Undone });
        }
        if node.void {
            return Some(LeftOut { by: None, why: Why::FailedEverywhere });
        }
        if (self.counts)(node) {
            return None;
        }
        let replacer = self.replacers.iter().rev().copied().find(|other| other.follows(node));
        let winner = self.last_concurrent(node, Precedence::Loses);
        match (replacer, winner) {
            (Some(replacer), Some(winner)) if winner.rank() < replacer.rank() => {
                Some(by_replacer(replacer))
            }
            (Some(replacer), None) => Some(by_replacer(replacer)),
            (_, Some(winner)) => Some(self.by_matrix(node, winner)),
            (None, None) => self.by_circle(node),
        }
    }

    /// The last in total order of the concurrent operations that count and to which `node` stands
    /// like this.
    fn last_concurrent(
        &self,
        node: &'a OperationNode,
        standing: Precedence,
    ) -> Option<&'a OperationNode> {
        self.operations
            .concurrents(node)
            .filter(|other| self.rules.compare(node, other) == standing && (self.counts)(other))
            .max_by(|a, b| a.rank().cmp(&b.rank()))
    }

    fn by_matrix(&self, node: &OperationNode, winner: &OperationNode) -> LeftOut {
        let entry = MatrixEntry::between(node, winner, self.rules);
        let why = match entry.resolution.rule {
            Rule::TakeOne => Why::LastWriter { entry },
            _ => Why::ReplaceWins { entry },
        };
        LeftOut { by: Some(winner.id().clone()), why }
    }

    /// Nobody who counts rules it out: it stood against the last of a circle.
    fn by_circle(&self, node: &'a OperationNode) -> Option<LeftOut> {
        let last = self.last_concurrent(node, Precedence::Wins)?;
        let entry = MatrixEntry::between(node, last, self.rules);
        Some(LeftOut { by: Some(last.id().clone()), why: Why::Circle { entry } })
    }
}

/// What is said of the past of an operation that replaces it.
pub(super) fn by_replacer(replacer: &OperationNode) -> LeftOut {
    let why = match replacer.operation.replaces {
        Replaces::PastByForce => Why::Forced,
        Replaces::Past | Replaces::Nothing => Why::Replaced,
    };
    LeftOut { by: Some(replacer.id().clone()), why }
}
