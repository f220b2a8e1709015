//! What a matrix means, pair by pair: data for `cheops matrix check`.

use super::{Concurrent, Config, Resolution, Rule};
use crate::ids::OperationType;

/// What happens to two operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRow {
    /// The type of the first: the one that was there, or the earlier in the total order.
    pub first: OperationType,
    /// The type of the second.
    pub second: OperationType,
    /// The entry that decides.
    pub resolution: Resolution,
    /// Whether the matrix lists it. If not, it is `take-both`.
    pub listed: bool,
    /// What happens if the second was made on the first.
    pub sequence: Sequence,
    /// What happens if neither knew of the other.
    pub concurrent: Meeting,
    /// Types that keep it from taking the place of a list they are in: the matrix wants both.
    pub kept: Vec<OperationType>,
}

/// What an operation does to the list it was made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// It is added at the end.
    Appended,
    /// It takes the place of the whole list.
    Replaces,
}

/// Who stays of two concurrent operations, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// Only the earlier.
    OnlyFirst,
    /// Only the later.
    OnlySecond,
    /// Both; the order makes no difference.
    AnyOrder,
    /// Both, the earlier first.
    FirstThenSecond,
    /// Both, the later first.
    SecondThenFirst,
    /// Both: they are edits of one document, which is merged.
    Merged,
    /// What the site's program of that name says.
    ByProgram(String),
}

impl Config {
    /// Every ordered pair of the types that the config speaks of, by name.
    pub fn table(&self) -> Vec<PairRow> {
        let kinds = self.kinds();
        let pairs =
            kinds.iter().flat_map(|first| kinds.iter().map(move |second| (*first, *second)));
        pairs.map(|(first, second)| self.row(first, second)).collect()
    }

    fn row(&self, first: &OperationType, second: &OperationType) -> PairRow {
        let resolution = self.resolution(first, second).clone();
        PairRow {
            first: first.clone(),
            second: second.clone(),
            listed: self.listed(first, second).is_some(),
            sequence: resolution.sequence(),
            concurrent: self.meeting(first, second, &resolution),
            kept: match resolution.sequence() {
                Sequence::Appended => Vec::new(),
                Sequence::Replaces => self.ordered_before(second),
            },
            resolution,
        }
    }

    fn meeting(
        &self,
        first: &OperationType,
        second: &OperationType,
        entry: &Resolution,
    ) -> Meeting {
        let ended = first.is_deletion() || second.is_deletion();
        match self.program(first, second) {
            Some(name) => Meeting::ByProgram(name.to_owned()),
            None if self.merged_as().is_some() && !ended => Meeting::Merged,
            None => entry.meeting(),
        }
    }

    fn ordered_before(&self, kind: &OperationType) -> Vec<OperationType> {
        let is_kept = |before: &&&OperationType| {
            self.listed(before, kind).is_some_and(|entry| entry.rule.is_ordered())
        };
        self.kinds().iter().filter(is_kept).map(|before| (*before).clone()).collect()
    }
}

impl Resolution {
    /// What the second does to a list that ends with the first.
    pub fn sequence(&self) -> Sequence {
        match self.rule {
            Rule::TakeBoth | Rule::KeepOrder | Rule::Ordered | Rule::Logic(_) => Sequence::Appended,
            Rule::TakeOne | Rule::ReverseOrder => Sequence::Replaces,
        }
    }

    /// What becomes of the two if they are concurrent, first and second in the total order.
    pub fn meeting(&self) -> Meeting {
        match (&self.rule, self.concurrent) {
            (Rule::TakeOne, _) => Meeting::OnlySecond,
            (Rule::TakeBoth, _) => Meeting::AnyOrder,
            (Rule::Ordered | Rule::Logic(_), _) => Meeting::FirstThenSecond,
            (Rule::KeepOrder, Concurrent::ReplaceWins) => Meeting::OnlyFirst,
            (Rule::KeepOrder, Concurrent::KeepBoth) => Meeting::FirstThenSecond,
            (Rule::ReverseOrder, Concurrent::ReplaceWins) => Meeting::OnlySecond,
            (Rule::ReverseOrder, Concurrent::KeepBoth) => Meeting::SecondThenFirst,
        }
    }
}

impl PairRow {
    /// The row in plain words.
    pub fn sentence(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        let sequence = match self.sequence {
            Sequence::Appended => "is added after it".to_owned(),
            Sequence::Replaces if self.kept.is_empty() => "replaces all before it".to_owned(),
            Sequence::Replaces => {
                let kept: Vec<_> = self.kept.iter().map(|kind| format!("`{kind}`")).collect();
                format!("replaces all before it, if none is {}", kept.join(" or "))
            }
        };
        let concurrent = match &self.concurrent {
            Meeting::OnlyFirst => format!("only `{first}` stays"),
            Meeting::OnlySecond if first == second => "only the later stays".to_owned(),
            Meeting::OnlySecond => format!("only `{second}` stays"),
            Meeting::AnyOrder => "both stay, in any order".to_owned(),
            Meeting::FirstThenSecond if first == second => {
                "both stay, the earlier first".to_owned()
            }
            Meeting::FirstThenSecond => format!("both stay, `{first}` first"),
            Meeting::SecondThenFirst => format!("both stay, `{second}` first"),
            Meeting::Merged => "both stay, merged".to_owned(),
            Meeting::ByProgram(name) => format!("the program `{name}` decides"),
        };
        let which = match first == second {
            true => "concurrent".to_owned(),
            false => format!("concurrent, `{first}` earlier"),
        };
        let unlisted = if self.listed { "" } else { " (not listed)" };
        format!("`{second}` made on `{first}` {sequence}; {which}: {concurrent}{unlisted}")
    }
}
