//! Can concurrent operations rule each other out in a circle?
//!
//! Among concurrent operations, one of type X rules out one of type Y where it is the *later* of
//! the two (`take-one`, `take-both-reverse-order`), where it is the *earlier*
//! (`take-both-keep-order`), or in both cases. Take types as points and "can rule out" as arrows.
//! Walking only along *later* arrows goes back in the total order with every step and can never
//! come home; the same for *earlier*. A walk that comes home and has both kinds of arrows can be
//! played by real operations: so there is a circle exactly where types that reach each other have
//! an arrow of each kind among them.

use super::{Concurrent, Config, Rule};
use crate::ids::OperationType;

/// The sets of types among which preferences can run in a circle.
pub(super) fn circles(config: &Config) -> Vec<Vec<OperationType>> {
    let kinds: Vec<_> = config.kinds().into_iter().collect();
    let arrows = arrows(config, &kinds);
    let reach = reach(kinds.len(), &arrows);
    let mut done = vec![false; kinds.len()];
    let mut circles = Vec::new();
    for start in 0..kinds.len() {
        let group: Vec<_> =
            (0..kinds.len()).filter(|i| reach[start][*i] && reach[*i][start]).collect();
        if !done[start] && is_circle(&arrows, &group) {
            circles.push(group.iter().map(|i| kinds[*i].clone()).collect());
        }
        group.iter().for_each(|i| done[*i] = true);
    }
    circles
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Earlier,
    Later,
}

struct Arrow {
    from: usize,
    to: usize,
    when: When,
}

fn arrows(config: &Config, kinds: &[&OperationType]) -> Vec<Arrow> {
    let number = |kind: &OperationType| kinds.binary_search(&kind).ok();
    let arrow = |((first, second), entry): (&(OperationType, OperationType), _)| {
        let (first, second) = (number(first)?, number(second)?);
        let entry: &super::Resolution = entry;
        match (&entry.rule, entry.concurrent) {
            (Rule::TakeOne, _) | (Rule::ReverseOrder, Concurrent::ReplaceWins) => {
                Some(Arrow { from: second, to: first, when: When::Later })
            }
            (Rule::KeepOrder, Concurrent::ReplaceWins) => {
                Some(Arrow { from: first, to: second, when: When::Earlier })
            }
            _ => None,
        }
    };
    config.matrix.iter().filter_map(arrow).collect()
}

/// Which point can be reached from which, in one step or more.
fn reach(points: usize, arrows: &[Arrow]) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; points]; points];
    arrows.iter().for_each(|arrow| reach[arrow.from][arrow.to] = true);
    for via in 0..points {
        let onward = reach[via].clone();
        for row in reach.iter_mut().filter(|row| row[via]) {
            row.iter_mut().zip(&onward).for_each(|(to, also)| *to |= also);
        }
    }
    reach
}

fn is_circle(arrows: &[Arrow], group: &[usize]) -> bool {
    let inside = |arrow: &&Arrow| group.contains(&arrow.from) && group.contains(&arrow.to);
    let has = |when| arrows.iter().filter(inside).any(|arrow| arrow.when == when);
    has(When::Earlier) && has(When::Later)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::{collection, sample};

    use super::super::{Config, Meeting, Resolution};
    use super::*;

    /// Any matrix of three types, also with mirrors that are missing or make no sense.
    fn configs() -> impl Strategy<Value = Config> {
        let kind =
            || sample::select(vec!["a", "b", "c"]).prop_map(|k| OperationType::new(k).unwrap());
        let rules = sample::select(vec![Rule::TakeOne, Rule::KeepOrder, Rule::ReverseOrder]);
        let concurrents = sample::select(vec![Concurrent::ReplaceWins, Concurrent::KeepBoth]);
        let said =
            (rules, concurrents).prop_map(|(rule, concurrent)| Resolution { rule, concurrent });
        collection::btree_map((kind(), kind()), said, 0..7)
            .prop_map(|matrix| Config { matrix, ..Config::default() })
    }

    /// Whether operations of these types, all concurrent, in this total order, rule each other
    /// out in a circle: whether something is left once all that is ruled out by none is taken away.
    fn runs_in_a_circle(config: &Config, order: &[&OperationType]) -> bool {
        let rules_out = |a: usize, b: usize| {
            let meeting = config.resolution(order[a.min(b)], order[a.max(b)]).meeting();
            meeting == if a < b { Meeting::OnlyFirst } else { Meeting::OnlySecond }
        };
        let mut left: Vec<usize> = (0..order.len()).collect();
        while let Some(free) =
            left.iter().position(|b| left.iter().all(|a| a == b || !rules_out(*a, *b)))
        {
            left.swap_remove(free);
        }
        !left.is_empty()
    }

    /// Every total order of six operations of the config's types.
    fn some_order_runs_in_a_circle(config: &Config) -> bool {
        const OPERATIONS: u32 = 6;
        let kinds: Vec<_> = config.kinds().into_iter().collect();
        (0..kinds.len().pow(OPERATIONS)).any(|number| {
            let digit = |place| number / kinds.len().pow(place) % kinds.len();
            let order: Vec<_> = (0..OPERATIONS).map(|place| kinds[digit(place)]).collect();
            runs_in_a_circle(config, &order)
        })
    }

    proptest! {
        #[test]
        fn a_circle_is_announced_exactly_where_operations_can_run_in_one(config in configs()) {
            prop_assert_eq!(!circles(&config).is_empty(), some_order_runs_in_a_circle(&config));
        }
    }
}
