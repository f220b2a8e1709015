//! What is kept, deleted and inserted from one sequence to another: Myers' algorithm, with a limit to
//! how long it tries. It is a function of its input alone, since seeds and edits must be the same again.

use std::collections::BTreeMap;

/// The next part of the old sequence, or, where something is inserted, of the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffStep {
    Keep(usize),
    Delete(usize),
    Insert(usize),
}

/// With more differences than these, what is between the first and the last of them is replaced whole:
/// time and memory grow with the square.
const MOST_DIFFERENCES: usize = 2_000;

/// In how many parts one edit may change a text or a list: loro takes long for each, and for many at once
/// longer than for as many one after the other.
pub(crate) const MOST_RUNS: usize = 1 << 15;

/// Between two that are kept, first what goes, then what comes.
pub(crate) fn steps<T: Ord>(old: &[T], new: &[T]) -> Vec<DiffStep> {
    let (old, new) = numbered(old, new);
    let before = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after =
        old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);

    let mut steps = Steps::default();
    steps.keep(before);
    let kept = if old.is_empty() || new.is_empty() { Some(Vec::new()) } else { common(old, new) };
    let (mut x, mut y) = (0, 0);
    for (at_old, at_new) in kept.unwrap_or_default() {
        steps.replace(at_old - x, at_new - y);
        steps.keep(1);
        (x, y) = (at_old + 1, at_new + 1);
    }
    steps.replace(old.len() - x, new.len() - y);
    steps.keep(after);
    steps.0
}

/// Joins neighbours of one kind.
#[derive(Default)]
struct Steps(Vec<DiffStep>);

impl Steps {
    fn keep(&mut self, count: usize) {
        match self.0.last_mut() {
            _ if count == 0 => {}
            Some(DiffStep::Keep(before)) => *before += count,
            _ => self.0.push(DiffStep::Keep(count)),
        }
    }

    fn replace(&mut self, old: usize, new: usize) {
        self.0.extend((old > 0).then_some(DiffStep::Delete(old)));
        self.0.extend((new > 0).then_some(DiffStep::Insert(new)));
    }
}

/// Numbers for things, so that comparing two costs the same whatever they are.
fn numbered<T: Ord>(old: &[T], new: &[T]) -> (Vec<u32>, Vec<u32>) {
    let mut numbers = BTreeMap::new();
    let mut number = |thing| {
        let next = numbers.len() as u32;
        *numbers.entry(thing).or_insert(next)
    };
    (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect())
}

/// The pairs that are kept, in order; nothing if there are too many differences.
fn common(old: &[u32], new: &[u32]) -> Option<Vec<(usize, usize)>> {
    // `reach[d][i]` is how far in `old` one gets with `d` differences on the diagonal `2 * i - d`,
    // which is as far in `new` as that is beyond the diagonal.
    let mut reach: Vec<Vec<u32>> = Vec::new();
    let most = MOST_DIFFERENCES.min(old.len() + new.len());
    for d in 0..=most {
        let mut row = Vec::with_capacity(d + 1);
        for i in 0..=d {
            let mut x = start(reach.last(), i, d).0;
            let mut y = x + d - 2 * i;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            row.push(x as u32);
            if x >= old.len() && y >= new.len() {
                reach.push(row);
                return Some(walk_back(&reach, old.len(), i));
            }
        }
        reach.push(row);
    }
    None
}

/// Where the way on a diagonal begins, after the last difference, and whether that was an insertion.
fn start(before: Option<&Vec<u32>>, i: usize, d: usize) -> (usize, bool) {
    let Some(before) = before else { return (0, false) };
    // The diagonal below has the index `i - 1` in the row before, the one above has `i`.
    if i == 0 || (i < d && before[i - 1] < before[i]) {
        (before[i] as usize, true)
    } else {
        (before[i - 1] as usize + 1, false)
    }
}

fn walk_back(reach: &[Vec<u32>], end: usize, mut i: usize) -> Vec<(usize, usize)> {
    let mut kept = Vec::new();
    let mut x = end;
    for d in (0..reach.len()).rev() {
        let (begin, inserted) = start(d.checked_sub(1).map(|before| &reach[before]), i, d);
        while x > begin {
            x -= 1;
            kept.push((x, x + d - 2 * i));
        }
        if d > 0 {
            (x, i) = if inserted { (begin, i) } else { (begin - 1, i - 1) };
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many must at least stay, the slow way.
    fn longest_common(old: &[u8], new: &[u8]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for one in old {
            let mut diagonal = 0;
            for (y, other) in new.iter().enumerate() {
                let above = row[y + 1];
                row[y + 1] = if one == other { diagonal + 1 } else { above.max(row[y]) };
                diagonal = above;
            }
        }
        row[new.len()]
    }

    proptest! {
        #[test]
        fn steps_lead_from_the_old_to_the_new_and_are_as_few_as_can_be(
            old in prop::collection::vec(0..4u8, 0..40), new in prop::collection::vec(0..4u8, 0..40),
        ) {
            let (mut x, mut y, mut stay) = (0, 0, 0);
            for step in steps(&old, &new) {
                match step {
                    DiffStep::Keep(count) => {
                        prop_assert_eq!(&old[x..x + count], &new[y..y + count]);
                        (x, y, stay) = (x + count, y + count, stay + count);
                    }
                    DiffStep::Delete(count) => x += count,
                    DiffStep::Insert(count) => y += count,
                }
            }
            prop_assert_eq!((x, y), (old.len(), new.len()));
            prop_assert_eq!(stay, longest_common(&old, &new));
        }
    }

    #[test]
    fn with_too_many_differences_everything_between_is_replaced() {
        let old: Vec<u32> = (0..5_000).collect();
        let new: Vec<u32> =
            (0..5_000).map(|one| if one % 2 == 1 { one + 9_000 } else { one }).collect();
        let expected = [DiffStep::Keep(1), DiffStep::Delete(4_999), DiffStep::Insert(4_999)];
        assert_eq!(steps(&old, &new), expected);
    }
}
