//! The resolution matrix, made ready for many questions about concurrent pairs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::operations::OperationNode;
use crate::config::{Concurrent, Config, Resolution, Rule};
use crate::model::OperationType;

/// How one of two concurrent operations stands to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precedence {
    /// Both count, in total order.
    Beside,
    /// It rules the other out.
    Wins,
    /// The other rules it out.
    Loses,
    /// Both count; it must run before the other.
    Leads,
    /// Both count; the other must run before it.
    Trails,
}

impl Precedence {
    /// How the first of two in total order stands to the second.
    fn of_first(entry: &Resolution) -> Self {
        match (&entry.rule, entry.concurrent) {
            (Rule::TakeBoth | Rule::Ordered | Rule::Logic(_), _) => Self::Beside,
            (Rule::TakeOne, _) => Self::Loses,
            (Rule::KeepOrder, Concurrent::ReplaceWins) => Self::Wins,
            (Rule::KeepOrder, Concurrent::KeepBoth) => Self::Leads,
            (Rule::ReverseOrder, Concurrent::ReplaceWins) => Self::Loses,
            (Rule::ReverseOrder, Concurrent::KeepBoth) => Self::Trails,
        }
    }

    fn mirrored(self) -> Self {
        match self {
            Self::Beside => Self::Beside,
            Self::Wins => Self::Loses,
            Self::Loses => Self::Wins,
            Self::Leads => Self::Trails,
            Self::Trails => Self::Leads,
        }
    }
}

/// A type's row in the table; `None` for a type the matrix does not name.
pub(super) type RowNumber = Option<usize>;

/// A config, ready to resolve by. Clones share everything.
#[derive(Debug, Clone)]
pub struct Rules(Arc<RuleTable>);

/// A config with its matrix as a table by row numbers.
#[derive(Debug)]
struct RuleTable {
    config: Arc<Config>,
    rows: BTreeMap<OperationType, usize>,
    /// How the first stands to the second, row by row.
    standings: Vec<Precedence>,
    may_win: Vec<bool>,
    may_lose: Vec<bool>,
    reorders: bool,
}

impl From<Config> for Rules {
    fn from(config: Config) -> Self {
        Arc::new(config).into()
    }
}

impl From<Arc<Config>> for Rules {
    fn from(config: Arc<Config>) -> Self {
        Self(Arc::new(RuleTable::new(config)))
    }
}

impl RuleTable {
    fn new(config: Arc<Config>) -> Self {
        let mut rows = BTreeMap::new();
        for kind in config.matrix.keys().flat_map(|(before, after)| [before, after]) {
            let row = rows.len();
            rows.entry(kind.clone()).or_insert(row);
        }
        let mut table = Self {
            standings: vec![Precedence::Beside; rows.len() * rows.len()],
            may_win: vec![false; rows.len()],
            may_lose: vec![false; rows.len()],
            reorders: false,
            rows,
            config,
        };
        for ((first, second), entry) in &table.config.clone().matrix {
            table.enter(first, second, Precedence::of_first(entry));
        }
        table
    }

    fn enter(&mut self, first: &OperationType, second: &OperationType, standing: Precedence) {
        let (Some(&first), Some(&second)) = (self.rows.get(first), self.rows.get(second)) else {
            return;
        };
        self.standings[first * self.may_win.len() + second] = standing;
        let (winner, loser) = match standing {
            Precedence::Wins => (first, second),
            Precedence::Loses => (second, first),
            Precedence::Trails | Precedence::Leads | Precedence::Beside => {
                self.reorders |= standing == Precedence::Trails;
                return;
            }
        };
        self.may_win[winner] = true;
        self.may_lose[loser] = true;
    }
}

impl Rules {
    /// How conflicts are settled.
    pub(crate) fn config(&self) -> &Arc<Config> {
        &self.0.config
    }

    /// Whether anyone else resolves by these.
    pub(crate) fn are_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether some pair of concurrent operations runs against the total order.
    pub(super) fn reorders(&self) -> bool {
        self.0.reorders
    }

    pub(super) fn row(&self, node: &OperationNode) -> RowNumber {
        self.0.rows.get(&node.operation.kind).copied()
    }

    /// Whether the operation can rule out another at all.
    pub(super) fn may_rule_out(&self, node: &OperationNode) -> bool {
        node.replaces()
            || is_deletion(node)
            || self.row(node).is_some_and(|row| self.0.may_win[row])
    }

    /// Whether an operation of that row can be ruled out by one that is concurrent to it.
    pub(super) fn may_lose(&self, row: RowNumber) -> bool {
        row.is_some_and(|row| self.0.may_lose[row])
    }

    /// How `a` stands to `b`, which is concurrent to it.
    pub(super) fn compare(&self, a: &OperationNode, b: &OperationNode) -> Precedence {
        self.compare_at((a, self.row(a)), (b, self.row(b)))
    }

    /// The same, where the rows are at hand.
    pub(super) fn compare_at(
        &self,
        (a, a_row): (&OperationNode, RowNumber),
        (b, b_row): (&OperationNode, RowNumber),
    ) -> Precedence {
        // A deletion wins over everything but a later one, whatever the matrix says.
        match (is_deletion(a), is_deletion(b)) {
            (false, false) => {}
            (true, false) => return Precedence::Wins,
            (false, true) => return Precedence::Loses,
            (true, true) if a.rank() < b.rank() => return Precedence::Loses,
            (true, true) => return Precedence::Wins,
        }
        let (Some(a_row), Some(b_row)) = (a_row, b_row) else { return Precedence::Beside };
        let width = self.0.may_win.len();
        if a.rank() < b.rank() {
            self.0.standings[a_row * width + b_row]
        } else {
            self.0.standings[b_row * width + a_row].mirrored()
        }
    }
}

pub(super) fn is_deletion(node: &OperationNode) -> bool {
    node.operation.kind.is_deletion()
}
