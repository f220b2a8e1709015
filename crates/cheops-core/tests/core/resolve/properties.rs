//! What holds whatever the matrix, the history, the clocks and the order of arrival.

use std::collections::BTreeSet;
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::model::{Operation, OperationId, Vector};
use cheops_core::resolve::{ListChange, OperationSet, Resolution, Why, explain, resolve};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::oracle::Oracle;
use super::scripts::{arrival, config, script};

/// Many short histories shrink better and find more than few long ones.
const STEPS: usize = 24;
const CHOICES: usize = 12;

fn settings() -> ProptestConfig {
    let from_environment = ProptestConfig::default();
    let cases = from_environment.cases.max(2000);
    ProptestConfig { cases, max_shrink_iters: 20_000, ..from_environment }
}

/// What may happen to a resolution between two arrivals.
#[derive(Debug, Clone)]
enum Event {
    Void(Index),
    Prune(Index),
    Reconfigure(Config),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<Index>().prop_map(Event::Void),
        2 => any::<Index>().prop_map(Event::Prune),
        1 => config().prop_map(Event::Reconfigure),
    ]
}

fn list(resolution: &Resolution) -> Vec<OperationId> {
    resolution.list().cloned().collect()
}

/// A resolution under test beside all that is known about it.
struct Trial<'a> {
    made: &'a [Operation],
    config: Config,
    void: BTreeSet<OperationId>,
    resolution: Resolution,
}

impl Trial<'_> {
    fn arrives(&mut self, operation: &Operation) {
        let before = list(&self.resolution);
        let change = self.resolution.insert(operation.clone());
        self.check_change(change, &before, Some(&operation.id));
        self.check();
    }

    fn happens(&mut self, event: &Event) {
        let before = list(&self.resolution);
        let known: Vec<_> = self.resolution.operations().iter().map(|op| op.id.clone()).collect();
        match event {
            Event::Void(which) if !known.is_empty() => {
                let id = which.get(&known);
                self.void.insert(id.clone());
                let change = self.resolution.mark_void(id);
                self.check_change(change, &before, None);
            }
            Event::Prune(which) if !known.is_empty() => {
                let id = which.get(&known);
                let mut upto: Vector = self.resolution.operations().past(id).unwrap().clone();
                upto.add(&id.0);
                self.resolution.prune(&upto);
            }
            Event::Reconfigure(config) => {
                self.config = config.clone();
                let heads = self.resolution.operations().heads();
                self.resolution = self.resolution.anew(config.clone(), &self.void);
                assert_eq!(self.resolution.operations().heads(), heads);
            }
            Event::Void(_) | Event::Prune(_) => {}
        }
        self.check();
    }

    fn check_change(&self, change: ListChange, before: &[OperationId], new: Option<&OperationId>) {
        let after = list(&self.resolution);
        let appended: Vec<_> = before.iter().chain(new).cloned().collect();
        if change == ListChange::Inserted {
            // Allowed, not demanded: only the usual way in takes the trouble to say so.
            let others = after.iter().filter(|id| Some(*id) != new);
            assert!(others.eq(before) && new.is_some_and(|new| after.contains(new)));
            assert_ne!(after.last(), new);
            return;
        }
        let expected = match after {
            after if after == before => ListChange::Nothing,
            after if new.is_some() && after == appended => ListChange::Appended,
            _ => ListChange::Rearranged,
        };
        assert_eq!(change, expected);
    }

    /// Incremental, from scratch and the definition say the same.
    fn check(&self) {
        let operations = self.resolution.operations();
        let resolved = self.resolution.resolved();
        assert_eq!(resolved, resolve(operations, &self.config));
        let known = |id: &OperationId| operations.contains(id);
        let oracle = Oracle::new(self.made, known, &self.void, &self.config);
        assert_eq!(resolved.list, oracle.list());
        assert_eq!(resolved.list.len() + resolved.left_out.len(), operations.len());
        for (id, left_out) in &resolved.left_out {
            assert_eq!(self.resolution.left_out(id).as_ref(), Some(left_out));
            if self.void.contains(id) {
                assert_eq!((left_out.by.as_ref(), &left_out.why), (None, &Why::FailedEverywhere));
            } else {
                assert_eq!(left_out.by, oracle.winner(id));
                assert!(left_out.by.as_ref().is_some_and(|by| self.resolution.counts(by)));
            }
        }
        assert_eq!(self.resolution.floor(), self.expected_floor().as_ref());
    }

    fn expected_floor(&self) -> Option<OperationId> {
        let operations = self.resolution.operations();
        let is_floor = |op: &&Operation| {
            op.replaces.past()
                && self.resolution.counts(&op.id)
                && !operations.iter().any(|other| are_concurrent(operations, op, other))
        };
        let candidates = operations.iter().map(AsRef::as_ref).filter(is_floor);
        candidates.max_by_key(|op| op.position()).map(|op| op.id.clone())
    }
}

fn are_concurrent(operations: &OperationSet, one: &Operation, other: &Operation) -> bool {
    let follows = |a: &Operation, b: &Operation| operations.past(&a.id).unwrap().includes(&b.id.0);
    one.id != other.id && !follows(one, other) && !follows(other, one)
}

fn trial<'a>(made: &'a [Operation], config: &Config) -> Trial<'a> {
    let resolution = Resolution::new(config.clone());
    Trial { made, config: config.clone(), void: BTreeSet::new(), resolution }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn pages_from_any_place_are_what_comes_there_in_the_order(script in script(STEPS)) {
        let mut all = script.play();
        let mut set = OperationSet::default();
        all.iter().for_each(|operation| set.insert(operation.clone()));
        all.sort_by_key(Operation::position);
        let ids: Vec<OperationId> = all.iter().map(|it| it.id.clone()).collect();
        let named = |it: &Arc<Operation>| it.id.clone();
        for (at, id) in ids.iter().enumerate() {
            prop_assert_eq!(set.in_order(Some(id)).map(named).collect::<Vec<_>>(), &ids[at + 1..]);
            let mut before: Vec<_> = set.latest_first(Some(id)).map(named).collect();
            before.reverse();
            prop_assert_eq!(before, &ids[..at]);
        }
        prop_assert_eq!(set.in_order(None).map(named).collect::<Vec<_>>(), ids);
        let kinds: BTreeSet<_> = all.iter().map(|it| it.kind.clone()).collect();
        prop_assert!(set.kinds().eq(&kinds));
    }

    #[test]
    fn one_at_a_time_equals_from_scratch_equals_the_definition(
        script in script(STEPS), choices in vec(any::<Index>(), CHOICES)
    ) {
        let made = script.play();
        let mut trial = trial(&made, &script.config);
        for operation in arrival(&made, &choices) {
            trial.arrives(&operation);
        }
    }

    #[test]
    fn also_when_operations_turn_void_are_pruned_or_the_config_changes_on_the_way(
        script in script(STEPS),
        choices in vec(any::<Index>(), CHOICES),
        events in vec((any::<Index>(), event()), 1..5),
    ) {
        let made = script.play();
        let mut trial = trial(&made, &script.config);
        for (n, operation) in arrival(&made, &choices).iter().enumerate() {
            trial.arrives(operation);
            for (_, event) in events.iter().filter(|(when, _)| when.index(made.len()) == n) {
                trial.happens(event);
            }
        }
    }

    #[test]
    fn what_is_only_supposed_to_be_void_gives_the_list_that_comes_about_if_it_is(
        script in script(STEPS), void in vec(any::<Index>(), 0..4), supposed in 0..4usize
    ) {
        let made = script.play();
        let mut resolution = Resolution::new(script.config.clone());
        for operation in &made {
            resolution.insert(operation.clone());
        }
        let void: Vec<_> = void.iter().filter(|_| !made.is_empty())
            .map(|which| which.get(&made).id.clone())
            .collect();
        let (supposed, known) = void.split_at(supposed.min(void.len()));
        for id in known {
            resolution.mark_void(id);
        }
        let would_be = resolution.list_without(supposed);
        for id in supposed {
            resolution.mark_void(id);
        }
        let would_be: Vec<_> = would_be.iter().map(|operation| operation.id.clone()).collect();
        prop_assert_eq!(would_be, list(&resolution));
    }

    #[test]
    fn every_order_of_arrival_gives_the_same(
        script in script(STEPS),
        orders in vec(vec(any::<Index>(), CHOICES), 2..5),
        void in any::<Index>(),
    ) {
        let made = script.play();
        let void = made.get(void.index(made.len().max(1)));
        let results: Vec<_> = orders.iter().map(|choices| {
            let mut resolution = Resolution::new(script.config.clone());
            for operation in arrival(&made, choices) {
                resolution.insert(operation);
            }
            void.map(|operation| resolution.mark_void(&operation.id));
            resolution.resolved()
        }).collect();
        prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn no_operation_that_counts_is_ruled_out_by_another_that_counts(script in script(40)) {
        let made = script.play();
        let oracle = Oracle::new(&made, |_| true, &BTreeSet::new(), &script.config);
        let list = from_scratch(&made, &script.config);
        let counting: Vec<_> = made.iter().filter(|op| list.contains(&op.id)).collect();
        for a in &counting {
            for b in &counting {
                prop_assert!(!oracle.rules_out(a, b), "{} rules out {}", a.id, b.id);
            }
        }
    }

    #[test]
    fn what_must_run_before_something_does_unless_that_runs_in_a_circle(script in script(40)) {
        let made = script.play();
        let oracle = Oracle::new(&made, |_| true, &BTreeSet::new(), &script.config);
        let list = from_scratch(&made, &script.config);
        let place = |op: &Operation| list.iter().position(|id| *id == op.id);
        let counting: Vec<_> = made.iter().filter(|op| list.contains(&op.id)).collect();
        for b in counting.iter().filter(|b| !oracle.is_in_a_circle(b, &counting)) {
            for a in counting.iter().filter(|a| oracle.must_run_before(a, b)) {
                prop_assert!(place(a) < place(b), "{} must run before {}", a.id, b.id);
            }
        }
    }

    #[test]
    fn the_explanation_has_a_line_for_every_operation_and_a_sentence_for_each_left_out(
        script in script(STEPS)
    ) {
        let made = script.play();
        let operations = set_of(&made);
        let resolved = resolve(&operations, &script.config);
        let explanation = explain(&operations, &script.config);
        prop_assert_eq!(explanation.operations.len(), made.len());
        let listed: Vec<_> = explanation.list.iter().map(|op| op.operation.clone()).collect();
        let list: Vec<_> = resolved.list.iter().map(ToString::to_string).collect();
        prop_assert_eq!(listed, list);
        let out: BTreeSet<_> =
            explanation.decisions.iter().filter(|d| !d.counts).map(|d| d.operation.clone()).collect();
        let left_out: BTreeSet<_> = resolved.left_out.keys().map(ToString::to_string).collect();
        prop_assert_eq!(out, left_out);
    }
}

fn set_of(made: &[Operation]) -> OperationSet {
    let mut operations = OperationSet::default();
    made.iter().for_each(|op| operations.insert(op.clone()));
    operations
}

fn from_scratch(made: &[Operation], config: &Config) -> Vec<OperationId> {
    resolve(&set_of(made), config).list
}
