//! Whatever the matrix says and however repairs end, there is an end to them.

use cheops_core::config::{Concurrent, Config, Handling, Resolution, Rule, StateCommands};
use cheops_core::model::Replaces;
use cheops_core::plan::{Ended, Item, Next, RunLog, Step, plan};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::properties::cases;
use super::setup::{id, kind};

const KINDS: [&str; 4] = ["a", "b", "c", "d"];

/// A matrix that nobody thought about.
fn any_config() -> impl Strategy<Value = Config> {
    let rules = vec![
        None,
        Some(Rule::TakeOne),
        Some(Rule::TakeBoth),
        Some(Rule::KeepOrder),
        Some(Rule::ReverseOrder),
        Some(Rule::Ordered),
    ];
    let entries = proptest::collection::vec(select(rules), KINDS.len() * KINDS.len());
    let handling = any::<(bool, bool, bool, bool)>();
    let handling = handling.prop_map(|(undo, idempotent, assigns, check)| Handling {
        undo: undo.then(String::new),
        idempotent,
        assigns,
        check: check.then(String::new),
        decompose: None,
    });
    let types = proptest::collection::vec(handling, KINDS.len());
    (entries, types, any::<bool>()).prop_map(|(entries, types, snapshots)| {
        let pairs = KINDS.iter().flat_map(|a| KINDS.iter().map(move |b| (kind(a), kind(b))));
        let entry = |rule| Resolution { rule, concurrent: Concurrent::KeepBoth };
        let listed = pairs.zip(entries).filter_map(|(pair, rule)| Some((pair, entry(rule?))));
        let commands = || StateCommands { read: String::new(), write: String::new() };
        Config {
            matrix: listed.collect(),
            types: KINDS.iter().map(|name| kind(name)).zip(types).collect(),
            state: snapshots.then(commands),
            ..Config::default()
        }
    })
}

fn any_items() -> impl Strategy<Value = Vec<Item>> {
    let replaces = prop_oneof![
        8 => Just(Replaces::Nothing),
        2 => Just(Replaces::Past),
        1 => Just(Replaces::PastByForce),
    ];
    proptest::collection::vec((select(&KINDS[..]), replaces), 1..8).prop_map(|items| {
        let item = |(n, (name, replaces)): (usize, (&str, Replaces))| Item {
            id: id(n),
            kind: kind(name),
            replaces,
        };
        items.into_iter().enumerate().map(item).collect()
    })
}

/// Does one step; says whether there was one. Each operation always succeeds or always fails,
/// and everything else ends as it pleases.
fn step(list: &[Item], log: &mut RunLog, config: &Config, bad: &[Item], succeeds: bool) -> bool {
    let (Next::Do(step) | Next::Meanwhile(_, step)) = plan(list, log, config).next else {
        return false;
    };
    log.begin(&step);
    let ended = match (&step, succeeds) {
        (Step::Run(item), _) if bad.contains(item) => Ended::Ko,
        (Step::Run(_), _) => Ended::Ok,
        (Step::Check(_), true) => Ended::ItHappened,
        (Step::Check(_), false) => Ended::ItDidNot,
        (_, true) => Ended::Ok,
        (_, false) => Ended::Ko,
    };
    log.finish(&step, ended);
    true
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn whatever_the_matrix_says_and_however_repairs_end_there_is_an_end(
        config in any_config(),
        items in any_items(),
        lists in proptest::collection::vec(
            proptest::collection::vec(any::<Index>(), 0..8), 1..5),
        bad in proptest::collection::vec(any::<Index>(), 0..3),
        endings in proptest::collection::vec(prop::bool::weighted(0.7), 1..64),
    ) {
        let mut log = RunLog::default();
        let bad: Vec<_> = bad.iter().map(|index| index.get(&items).clone()).collect();
        let mut endings = endings.into_iter().cycle();
        for indices in lists {
            let mut list: Vec<Item> = Vec::new();
            for item in indices.iter().map(|index| index.get(&items)) {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
            let bound = 20 * (items.len() + 2).pow(2);
            let mut steps = 0;
            while step(&list, &mut log, &config, &bad, endings.next().unwrap()) {
                steps += 1;
                prop_assert!(steps < bound, "no end: {list:?}\n{log:?}\n{config:?}");
            }
        }
    }
}
