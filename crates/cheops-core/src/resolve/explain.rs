//! Why the list is what it is, for people and programs.
//!
//! Made from what [`resolve`] says and nothing else, so that it cannot tell another story.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::matrix::{Precedence, Rules};
use super::operations::{OperationNode, OperationSet};
use super::reason::{LeftOut, MatrixEntry};
use super::{Resolved, resolve};
use crate::config::Config;
use crate::model::{OperationId, OperationType, Replaces};

/// Why the list is what it is. Displays as text for terminals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResolutionExplanation {
    /// Every operation with what it was made on, in total order, one line each.
    pub operations: Vec<String>,
    /// The operations that count, in the order to run them.
    pub list: Vec<Listed>,
    /// Every decision that left an operation out, or put it after another: the last of those that the
    /// same entry puts before it.
    pub decisions: Vec<ResolutionDecision>,
}

/// One operation of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub operation: String,
    /// Its type.
    pub kind: String,
    /// What it does.
    pub summary: String,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResolutionDecision {
    /// The operation left out, or the one that runs after.
    pub operation: String,
    /// The one that won, or runs before; none if the operation failed everywhere.
    pub winner: Option<String>,
    /// Whether the operation counts all the same.
    pub counts: bool,
    /// The matrix entry that decided, where one did.
    pub entry: Option<String>,
    /// The decision in words.
    pub sentence: String,
}

/// Says why [`resolve`] gives the list it gives.
pub fn explain(operations: &OperationSet, config: &Config) -> ResolutionExplanation {
    let resolved = resolve(operations, config);
    let mut nodes: Vec<_> = operations.nodes().collect();
    nodes.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let left_out = nodes.iter().filter_map(|node| {
        let reason = resolved.left_out.get(node.id())?;
        Some(left_out_decision(node, reason))
    });
    let decisions = left_out.chain(order_decisions(operations, config, &resolved)).collect();
    ResolutionExplanation {
        operations: nodes.iter().map(|node| line(node, &resolved)).collect(),
        list: resolved.list.iter().filter_map(|id| operations.node(id)).map(listed).collect(),
        decisions,
    }
}

fn listed(node: &OperationNode) -> Listed {
    Listed {
        operation: node.id().to_string(),
        kind: node.operation.kind.to_string(),
        summary: node.operation.payload.summary(),
    }
}

/// `*` marks what counts.
fn line(node: &OperationNode, resolved: &Resolved) -> String {
    let operation = &node.operation;
    let mark = if resolved.left_out.contains_key(node.id()) { ' ' } else { '*' };
    let parents: Vec<_> = operation.parents.iter().map(OperationId::to_string).collect();
    let on = if parents.is_empty() { "nothing".into() } else { parents.join(", ") };
    let replaces = match operation.replaces {
        Replaces::Nothing => "",
        Replaces::Past => ", replaces its past",
        Replaces::PastByForce => ", replaces its past by force",
    };
    let (id, kind, stamp) = (node.id(), &operation.kind, operation.stamp);
    format!("{mark} {id} {kind} at {stamp} on {on}{replaces}: {}", operation.payload.summary())
}

fn left_out_decision(node: &OperationNode, reason: &LeftOut) -> ResolutionDecision {
    let id = node.id();
    ResolutionDecision {
        operation: id.to_string(),
        winner: reason.by.as_ref().map(OperationId::to_string),
        counts: false,
        entry: reason.why.entry().map(MatrixEntry::to_string),
        sentence: format!("{id} {}: {reason}", LeftOut::verdict(reason.by.as_ref())),
    }
}

/// The concurrent pairs that both count and that the matrix puts in order. Of all that one entry puts
/// before an operation, the last is named: pairs grow with the square of the operations.
fn order_decisions(
    operations: &OperationSet,
    config: &Config,
    resolved: &Resolved,
) -> Vec<ResolutionDecision> {
    let rules = Rules::from(config.clone());
    let mut decisions = Vec::new();
    for node in resolved.list.iter().filter_map(|id| operations.node(id)) {
        let leading = operations.concurrents(node).filter(|other| {
            rules.compare(node, other) == Precedence::Trails
                && !resolved.left_out.contains_key(other.id())
        });
        let mut leaders: BTreeMap<&OperationType, Vec<&OperationNode>> = BTreeMap::new();
        for leader in leading {
            leaders.entry(&leader.operation.kind).or_default().push(leader);
        }
        for leaders in leaders.values() {
            if let Some(last) = leaders.iter().max_by(|a, b| a.rank().cmp(&b.rank())) {
                decisions.push(order_decision(node, last, leaders.len() - 1, &rules));
            }
        }
    }
    decisions
}

fn order_decision(
    node: &OperationNode,
    leader: &OperationNode,
    others: usize,
    rules: &Rules,
) -> ResolutionDecision {
    let entry = MatrixEntry::between(node, leader, rules).to_string();
    let (id, leader) = (node.id(), leader.id());
    let as_well = match others {
        0 => String::new(),
        1 => ", as another before it".to_owned(),
        n => format!(", as {n} others before it"),
    };
    ResolutionDecision {
        operation: id.to_string(),
        winner: Some(leader.to_string()),
        counts: true,
        sentence: format!(
            "{leader} and {id} are concurrent and both count, {leader} first{as_well}; {entry}"
        ),
        entry: Some(entry),
    }
}

impl fmt::Display for ResolutionExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operations:")?;
        self.operations.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "list:")?;
        for (n, Listed { operation, kind, summary }) in self.list.iter().enumerate() {
            writeln!(f, "  {}. {operation} {kind}: {summary}", n + 1)?;
        }
        writeln!(f, "because:")?;
        self.decisions.iter().try_for_each(|decision| writeln!(f, "  {}", decision.sentence))
    }
}
