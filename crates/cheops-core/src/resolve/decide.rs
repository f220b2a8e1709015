//! Which operations count: *an operation counts unless one that counts rules it out*.
//!
//! An operation whose rulers are all out counts; one with a ruler that counts is out. That decides
//! everything unless preferences run in a cycle; then the last in total order among those still
//! undecided counts, what it rules out is out, and so is what would have ruled it out.

use std::collections::BTreeMap;

use super::matrix::{Precedence, RowNumber, Rules, is_deletion};
use super::operations::{OperationNode, OperationSet};
use crate::model::Vector;

/// Who counts, and who was decided only by breaking a cycle.
pub(super) struct Decided<'a> {
    /// The operations that count, in total order.
    pub(super) counting: Vec<&'a OperationNode>,
    /// The operations that the plain sentence leaves undecided, whether they count or not.
    pub(super) stuck: Vec<&'a OperationNode>,
}

/// Decides about every operation not included in `below`. Those in `below` must be out whatever
/// happens above, and none of them may be concurrent to one that decides so.
pub(super) fn decide<'a>(
    operations: &'a OperationSet,
    rules: &'a Rules,
    below: &Vector,
) -> Decided<'a> {
    let mut deciding = Deciding::new(operations, rules, below);
    deciding.decide_all();
    let stuck = deciding.break_cycles();
    Decided { counting: deciding.those(Inclusion::Counts), stuck }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inclusion {
    Undecided,
    Counts,
    Out,
}

/// An index into the members, which stand in total order.
type MemberIndex = usize;

struct Deciding<'a, 'b> {
    operations: &'a OperationSet,
    rules: &'a Rules,
    below: &'b Vector,
    members: Vec<(&'a OperationNode, RowNumber)>,
    index: BTreeMap<u64, MemberIndex>,
    /// The members that replace their past, last first.
    replacers: Vec<MemberIndex>,
    /// Then everything may lose, whatever the matrix says.
    has_deletion: bool,
    findings: Vec<Inclusion>,
    /// Of an undecided member, the rulers that were undecided when it was looked at and are not
    /// known to be out since.
    rulers: Vec<Vec<MemberIndex>>,
    /// Who is to be looked at again when a member is decided.
    waiting: Vec<Vec<MemberIndex>>,
}

impl<'a, 'b> Deciding<'a, 'b> {
    fn new(operations: &'a OperationSet, rules: &'a Rules, below: &'b Vector) -> Self {
        let mut members: Vec<_> = operations
            .above(below)
            .filter(|node| !node.void)
            .map(|node| (node, rules.row(node)))
            .collect();
        members.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
        let index = members.iter().enumerate().map(|(i, (node, _))| (node.arrival, i)).collect();
        let replacers = (0..members.len()).rev().filter(|&i| members[i].0.replaces()).collect();
        Self {
            operations,
            rules,
            below,
            index,
            replacers,
            has_deletion: members.iter().any(|(node, _)| is_deletion(node)),
            findings: vec![Inclusion::Undecided; members.len()],
            rulers: vec![Vec::new(); members.len()],
            waiting: vec![Vec::new(); members.len()],
            members,
        }
    }

    fn those(&self, finding: Inclusion) -> Vec<&'a OperationNode> {
        let found = self.members.iter().zip(&self.findings).filter(|(_, f)| **f == finding);
        found.map(|((node, _), _)| *node).collect()
    }

    /// Decides the last first: most rulers come later in total order, so most are decided when they
    /// are asked about.
    fn decide_all(&mut self) {
        for member in (0..self.members.len()).rev() {
            let finding = self.decide_member(member);
            self.settle(member, finding);
        }
    }

    /// Goes through everything that may rule a member out, and keeps what is undecided.
    fn decide_member(&mut self, member: MemberIndex) -> Inclusion {
        let (node, row) = self.members[member];
        let mut undecided = Vec::new();
        // Replacers are sorted last first, and nothing follows what comes later than it.
        let later = self.replacers.iter().copied().take_while(|&ruler| ruler > member);
        let by_causality = later.filter(|&ruler| self.members[ruler].0.follows(node));
        let may_lose = self.has_deletion || self.rules.may_lose(row);
        let concurrents = may_lose.then(|| self.concurrents(node));
        let by_matrix = concurrents.into_iter().flatten().filter(|&ruler| {
            self.rules.compare_at((node, row), self.members[ruler]) == Precedence::Loses
        });
        for ruler in by_causality.chain(by_matrix) {
            match self.findings[ruler] {
                Inclusion::Counts => return Inclusion::Out,
                Inclusion::Undecided => undecided.push(ruler),
                Inclusion::Out => {}
            }
        }
        self.rulers[member] = undecided;
        self.consider(member)
    }

    fn concurrents(&self, node: &'a OperationNode) -> impl Iterator<Item = MemberIndex> {
        let concurrents = self.operations.concurrents_above(node, self.below);
        concurrents.filter_map(|other| self.index.get(&other.arrival).copied())
    }

    /// Looks at a member again: it waits for its last undecided ruler, and counts if there is none.
    fn consider(&mut self, member: MemberIndex) -> Inclusion {
        while let Some(&ruler) = self.rulers[member].last() {
            match self.findings[ruler] {
                Inclusion::Counts => return Inclusion::Out,
                Inclusion::Out => drop(self.rulers[member].pop()),
                Inclusion::Undecided => {
                    self.waiting[ruler].push(member);
                    return Inclusion::Undecided;
                }
            }
        }
        Inclusion::Counts
    }

    /// Writes down a finding, and all that follows from it.
    fn settle(&mut self, member: MemberIndex, finding: Inclusion) {
        let mut agenda = vec![(member, finding)];
        while let Some((member, finding)) = agenda.pop() {
            if finding == Inclusion::Undecided || self.findings[member] != Inclusion::Undecided {
                continue;
            }
            self.findings[member] = finding;
            for waiting in std::mem::take(&mut self.waiting[member]) {
                let finding = self.consider(waiting);
                agenda.push((waiting, finding));
            }
        }
    }

    fn undecided(&self) -> Vec<MemberIndex> {
        let all = 0..self.members.len();
        all.filter(|&member| self.findings[member] == Inclusion::Undecided).collect()
    }

    /// Decides about those left undecided, and says who they were.
    fn break_cycles(&mut self) -> Vec<&'a OperationNode> {
        let victims = self.victims_of_undecided();
        let ruled_out = self.undecided().into_iter().filter(|&member| {
            self.rulers[member].iter().any(|&ruler| self.findings[ruler] == Inclusion::Counts)
        });
        let ruled_out = ruled_out.map(|member| (member, Inclusion::Out)).collect();
        self.propagate(ruled_out, &victims);
        let stuck = self.undecided();
        for &last in stuck.iter().rev() {
            if self.findings[last] == Inclusion::Undecided {
                self.propagate(self.break_cycle(last), &victims);
            }
        }
        stuck.into_iter().map(|member| self.members[member].0).collect()
    }

    /// The last one counts, and whoever would have ruled it out does not.
    fn break_cycle(&self, last: MemberIndex) -> Vec<(MemberIndex, Inclusion)> {
        let open = |ruler: &MemberIndex| self.findings[*ruler] == Inclusion::Undecided;
        let against = self.rulers[last].iter().copied().filter(open);
        against.map(|ruler| (ruler, Inclusion::Out)).chain([(last, Inclusion::Counts)]).collect()
    }

    /// The other direction of `rulers`, among the undecided.
    fn victims_of_undecided(&self) -> BTreeMap<MemberIndex, Vec<MemberIndex>> {
        let mut victims: BTreeMap<MemberIndex, Vec<MemberIndex>> = BTreeMap::new();
        for member in self.undecided() {
            for &ruler in &self.rulers[member] {
                victims.entry(ruler).or_default().push(member);
            }
        }
        victims
    }

    /// Writes down findings, all at once, and then what follows from them: unlike in
    /// [`settle`](Self::settle), what a member rules out is out at once.
    fn propagate(
        &mut self,
        findings: Vec<(MemberIndex, Inclusion)>,
        victims: &BTreeMap<MemberIndex, Vec<MemberIndex>>,
    ) {
        let mut agenda = Vec::new();
        for (member, finding) in findings {
            self.findings[member] = finding;
            agenda.push(member);
        }
        while let Some(member) = agenda.pop() {
            for &victim in victims.get(&member).into_iter().flatten() {
                if self.findings[victim] != Inclusion::Undecided {
                    continue;
                }
                if self.findings[member] == Inclusion::Counts {
                    self.findings[victim] = Inclusion::Out;
                } else if self.all_rulers_are_out(victim) {
                    self.findings[victim] = Inclusion::Counts;
                } else {
                    continue;
                }
                agenda.push(victim);
            }
        }
    }

    /// Forgets rulers known to be out on the way, so that asking again costs little.
    fn all_rulers_are_out(&mut self, member: MemberIndex) -> bool {
        let rulers = &mut self.rulers[member];
        while rulers.pop_if(|ruler| self.findings[*ruler] == Inclusion::Out).is_some() {}
        rulers.is_empty()
    }
}
