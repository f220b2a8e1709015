//! From a set of operations to one list, the same at every site.
//!
//! One sentence decides: *an operation counts unless one that counts rules it out*. [`resolve`] is
//! that sentence as a function of an [`OperationSet`] and a [`Config`]; it also says of every
//! operation left out which one superseded it and [`Why`]. [`Resolution`] is the same function kept
//! up to date one operation at a time, at a cost that grows with the operations concurrent to the
//! new one and not with the history. [`explain`] puts the same facts into sentences.

mod contested;
mod decide;
mod explain;
mod incremental;
mod list;
mod matrix;
mod operations;
mod order;
mod reason;
mod ruling;

use std::collections::{BTreeMap, BTreeSet};

pub use contested::Stretch;
pub use explain::{Listed, ResolutionDecision, ResolutionExplanation, explain};
pub use incremental::{ListChange, Resolution};
pub use list::ListedOperations;
pub use matrix::Rules;
pub use operations::OperationSet;
pub use reason::{LeftOut, MatrixEntry, Why};

use crate::config::Config;
use crate::model::{OperationId, Vector};
use operations::OperationNode;
use reason::Reasons;

/// What a set of operations comes down to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The operations that count, in the order to run them.
    pub list: Vec<OperationId>,
    /// All the others, each with what left it out.
    pub left_out: BTreeMap<OperationId, LeftOut>,
}

/// Resolves a set of operations from scratch: the definition that [`Resolution`] must equal.
pub fn resolve(operations: &OperationSet, config: &Config) -> Resolved {
    let rules = Rules::from(config.clone());
    let counting = decide::decide(operations, &rules, &Vector::default()).counting;
    let list = order::arrange(operations, &rules, &counting);
    let arrivals: BTreeSet<_> = counting.iter().map(|node| node.arrival).collect();
    let reasons = Reasons {
        operations,
        rules: &rules,
        replacers: counting.iter().copied().filter(|node| node.replaces()).collect(),
        counts: &|node: &OperationNode| arrivals.contains(&node.arrival),
    };
    Resolved {
        list: list.into_iter().map(|(_, node)| node.id().clone()).collect(),
        left_out: reasons.all(),
    }
}
