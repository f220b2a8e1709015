//! What a new operation means for the list.
//!
//! A new operation `n` is nobody's past, so it can only touch what is concurrent to it and, if it
//! replaces, its past. Four facts keep the cost with the operations concurrent to `n`:
//!
//! 1. If a ruler of `n` has no ruler itself, that ruler counts whatever else happens, `n` is out,
//!    and one that is out changes nothing for the others.
//! 2. If `n` rules out only what is out anyway or what cannot rule out anything itself, its rulers
//!    stand as they did: `n` counts unless one of them does, and what it rules out just goes.
//! 3. If `n` replaces and nothing rules it out, it counts and its whole past is out: the rest is
//!    decided among those concurrent to `n` as if the past had never been.
//! 4. A *base* is an operation that replaces and to which none is concurrent. Whether it counts or
//!    is replaced by a later one, its past is out; what is not in its past comes after it. So even
//!    in the remaining cases everything is decided again only from the last base on.
//!
//! Operations decided by breaking a circle (*stuck* ones) depend on each other in roundabout ways:
//! facts 1 and 3 hold for them too, fact 2 is used only away from them.

use super::incremental::Resolution;
use super::matrix::Precedence;
use super::operations::OperationNode;
use crate::model::{OperationId, Vector};

/// What a new operation means for the list.
pub(super) enum Ruling {
    /// It is left out, and nothing else changes.
    LeftOut,
    /// It counts. Those given, by name, no longer do; nothing else changes.
    Counts(Vec<OperationId>),
    /// What is not included in the vector is to be decided again; what is included is out.
    DecideAbove(Vector),
}

/// A new operation and those concurrent to it that matter.
pub(super) struct Encounter<'a> {
    node: &'a OperationNode,
    /// Every operation concurrent to it, but for void ones.
    concurrent: Vec<&'a OperationNode>,
    /// Those that rule it out.
    rulers: Vec<&'a OperationNode>,
    /// Those it rules out.
    victims: Vec<&'a OperationNode>,
    /// Whether it can stand at its own turn: nothing makes it run earlier, or anything after it.
    pub(super) in_turn: bool,
}

impl Encounter<'_> {
    /// Who has a concurrent ruler by it, or against it.
    pub(super) fn contested(&self) -> Vec<u64> {
        let itself = (!self.rulers.is_empty()).then_some(self.node);
        self.victims.iter().copied().chain(itself).map(|node| node.arrival).collect()
    }
}

impl Resolution {
    pub(super) fn encounter<'a>(&'a self, node: &'a OperationNode) -> Encounter<'a> {
        let concurrent = self.operations.concurrents(node).filter(|other| !other.void).collect();
        let mut encounter =
            Encounter { node, concurrent, rulers: Vec::new(), victims: Vec::new(), in_turn: true };
        let row = self.rules.row(node);
        for &other in &encounter.concurrent {
            match self.rules.compare_at((node, row), (other, self.rules.row(other))) {
                Precedence::Beside => {}
                Precedence::Wins => encounter.victims.push(other),
                Precedence::Loses => encounter.rulers.push(other),
                Precedence::Leads => encounter.in_turn &= self.is_emitted_after(other, node),
                Precedence::Trails => encounter.in_turn &= self.is_emitted_before(other, node),
            }
        }
        encounter
    }

    fn is_emitted_after(&self, other: &OperationNode, node: &OperationNode) -> bool {
        self.list.place(other).is_none_or(|place| place.turn > node.position())
    }

    fn is_emitted_before(&self, other: &OperationNode, node: &OperationNode) -> bool {
        self.list.place(other).is_none_or(|place| place.turn < node.position())
    }

    /// The facts that the module opens with, in their order.
    pub(super) fn rule_on(&self, encounter: &Encounter<'_>) -> Ruling {
        let Encounter { node, rulers, victims, .. } = encounter;
        if rulers.iter().any(|ruler| self.counts_for_sure(ruler, encounter)) {
            return Ruling::LeftOut;
        }
        let losing: Vec<_> = victims.iter().filter(|victim| self.list.counts(victim)).collect();
        let spreads = self.touches_the_stuck(encounter)
            || losing.iter().any(|victim| self.rules.may_rule_out(victim))
            || node.replaces() && self.list.has_any_of(&node.past);
        if !spreads && rulers.iter().any(|ruler| self.list.counts(ruler)) {
            return Ruling::LeftOut;
        }
        if !spreads {
            return Ruling::Counts(losing.iter().map(|victim| victim.id().clone()).collect());
        }
        if rulers.is_empty() && node.replaces() {
            return Ruling::DecideAbove(node.past.clone());
        }
        Ruling::DecideAbove(self.below_base())
    }

    /// Whether nothing at all rules out a ruler of the new operation. What replaces it would be
    /// concurrent to the new operation too.
    fn counts_for_sure(&self, ruler: &OperationNode, encounter: &Encounter<'_>) -> bool {
        let replaces_it = |other: &&OperationNode| other.replaces() && other.follows(ruler);
        !self.contested.contains(&ruler.arrival) && !encounter.concurrent.iter().any(replaces_it)
    }

    fn touches_the_stuck(&self, encounter: &Encounter<'_>) -> bool {
        let Encounter { node, rulers, victims, .. } = encounter;
        let is_stuck = |other: &&OperationNode| self.stuck.contains(&other.arrival);
        !self.stuck.is_empty()
            && (node.replaces() || rulers.iter().any(is_stuck) || victims.iter().any(is_stuck))
    }
}
