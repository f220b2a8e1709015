//! Crashes between intent and outcome, what settles them, and what the operator says.

use cheops_core::engine::Submission;
use cheops_core::model::Outcome;
use cheops_core::plan::Decision;
use expect_test::expect;

use super::fixture::*;
use super::repairs::undoing;

/// Paris alone ran into a crash while it ran an `inc` under that config.
fn crashed(text: &str) -> Site {
    let mut paris = alone();
    paris.submits(Submission {
        sites: Some(sites("paris")),
        config: Some(config(text)),
        ..asks_for("inc")
    });
    paris.so_far();
    paris.restarts();
    paris
}

const PLAIN: &str = r#"{"ResolutionMatrix": []}"#;
const ORDERED: &str =
    r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "ordered"}]}"#;
const CHECKED: &str = r#"{"ResolutionMatrix": [], "Types": {"inc": {"Check": "did it"}}}"#;

#[test]
fn after_a_crash_the_config_says_whether_to_run_again_to_check_or_to_ask() {
    let mut story = String::new();
    for text in [
        PLAIN,
        CHECKED,
        r#"{"ResolutionMatrix": [], "Types": {"inc": {"Idempotent": true}}}"#,
        r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-one"}]}"#,
    ] {
        story += &crashed(text).story();
    }
    expect![[r#"
        > restart
          + paris.2 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
          note Settled(counter, paris.1, InDoubt)
        > restart
          + begin check paris.1
          job 1: check paris.1 by `did it`
        > restart
          + begin run paris.1
          job 1: run paris.1
        > restart
          + begin run paris.1
          job 1: run paris.1
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_check_settles_the_doubt_either_way() {
    let mut story = String::new();
    for outcome in [ok(), ko("not there"), answered(200, None), answered(404, None)] {
        let mut paris = crashed(CHECKED);
        paris.so_far();
        paris.ends(1, outcome);
        story += &paris.story();
    }
    expect![[r#"
        > job 1 ends: exit 0
          + end check paris.1: ItHappened
          + paris.2 says OK of paris.1
          note Settled(counter, paris.1, Applied)
          note Converged(counter)
        > job 1 ends: exit 1 not there
          + end check paris.1: ItDidNot
          + begin run paris.1
          job 2: run paris.1
        > job 1 ends: answer 200
          + end check paris.1: ItHappened
          + paris.2 says OK of paris.1
          note Settled(counter, paris.1, Applied)
          note Converged(counter)
        > job 1 ends: answer 404
          + end check paris.1: ItDidNot
          + begin run paris.1
          job 2: run paris.1
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_check_that_tells_nothing_is_made_again_and_nothing_is_run_for_it() {
    let mut story = String::new();
    let not_started = Outcome::NotStarted { reason: "no such program".into() };
    for outcome in [Outcome::TimedOut { limit_ms: 60_000 }, not_started, not_yet(true)] {
        let mut paris = crashed(CHECKED);
        paris.so_far();
        paris.ends(1, outcome);
        paris.shows("counter");
        paris.ticks_at(600);
        story += &paris.story();
    }
    expect![[r#"
        > job 1 ends: timed out after 60000 ms
        = list [paris.1], InStep, Running, waits: the check whether `paris.1` happened did not end within 60000 ms
            paris.1
        > 600 ms
          + begin check paris.1
          job 2: check paris.1 by `did it`
        > job 1 ends: not started: no such program
        = list [paris.1], InStep, Running, waits: the check whether `paris.1` happened could not be begun: no such program
            paris.1
        > 600 ms
          + begin check paris.1
          job 2: check paris.1 by `did it`
        > job 1 ends: not yet, or maybe
        = list [paris.1], InStep, Running, waits: the check whether `paris.1` happened could not be begun: the service is away
            paris.1
        > 600 ms
          + begin check paris.1
          job 2: check paris.1 by `did it`
    "#]].assert_eq(&flush_left(&story));
}

#[test]
fn the_operators_word_settles_the_doubt_either_way() {
    let mut story = String::new();
    for decision in [Decision::Skip, Decision::Rerun] {
        let mut paris = crashed(PLAIN);
        paris.so_far();
        paris.is_told("counter", "paris.1", decision);
        paris.shows("counter");
        story += &paris.story();
    }
    expect![[r#"
        > operator: Skip paris.1
          + ran [paris.1]
          + paris.3 says OK of paris.1
          note Converged(counter)
        = list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
        > operator: Rerun paris.1
          + ran []
          + begin run paris.1
          job 1: run paris.1
        = list [paris.1], InStep, Running
            paris.1 paris=IN-DOUBT
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn what_is_in_doubt_holds_up_only_what_does_not_commute_with_it() {
    let mut paris = crashed(SUMS_AND_DOUBLES);
    paris.so_far();
    for kind in ["inc", "double", "inc"] {
        paris.submits(Submission { sites: None, ..asks_for(kind) });
    }
    paris.ends(1, ok());
    paris.shows("counter");
    paris.is_told("counter", "paris.1", Decision::Rerun);
    paris.ends(2, ok());
    paris.ends(3, ok());
    paris.ends(4, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        > 2: counter inc
          + paris.3 inc on paris.1
          + begin run paris.3
          answer 2: accepted as paris.3 for paris
          job 1: run paris.3
        > 3: counter double
          + paris.4 double on paris.3
          answer 3: accepted as paris.4 for paris
        > 4: counter inc
          + paris.5 inc on paris.4
          answer 4: accepted as paris.5 for paris
        > job 1 ends: exit 0
          + end run paris.3: Ok
          + paris.6 says OK of paris.3
          note Applied(counter, paris.3)
          note Settled(counter, paris.3, Applied)
          answer 2: paris says OK of paris.3
          answer 2: done
        = list [paris.1 paris.3 paris.4 paris.5], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
            paris.3 paris=OK
            paris.4
            paris.5
        > operator: Rerun paris.1
          + ran [paris.3]
          + begin run paris.1
          job 2: run paris.1
        > job 2 ends: exit 0
          + end run paris.1: Ok
          + paris.7 says OK of paris.1
          + begin run paris.4
          note Applied(counter, paris.1)
          job 3: run paris.4
        > job 3 ends: exit 0
          + end run paris.4: Ok
          + paris.8 says OK of paris.4
          + begin run paris.5
          note Applied(counter, paris.4)
          note Settled(counter, paris.4, Applied)
          answer 3: paris says OK of paris.4
          answer 3: done
          job 4: run paris.5
        > job 4 ends: exit 0
          + end run paris.5: Ok
          + paris.9 says OK of paris.5
          note Applied(counter, paris.5)
          note Settled(counter, paris.5, Applied)
          answer 4: paris says OK of paris.5
          answer 4: done
          note Converged(counter)
        = list [paris.1 paris.3 paris.4 paris.5], InStep, Idle, settled
            paris.1 paris=OK
            paris.3 paris=OK
            paris.4 paris=OK
            paris.5 paris=OK
    "#]]);
}

/// Sums may be in any order; doubling is another thing before a sum than after it.
const SUMS_AND_DOUBLES: &str = r#"{"ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "inc", "After": "double", "Result": "ordered"},
    {"Before": "double", "After": "double", "Result": "ordered"}]}"#;

#[test]
fn a_decision_on_what_is_not_in_doubt_changes_nothing() {
    let mut paris = crashed(PLAIN);
    paris.is_told("counter", "paris.1", Decision::Skip);
    paris.so_far();
    for decision in [Decision::Skip, Decision::Rerun] {
        paris.is_told("counter", "paris.1", decision);
        paris.is_told("counter", "lyon.7", decision);
        paris.is_told("unheard", "paris.1", decision);
    }
    paris.told(expect![[r#"
        > operator: Skip paris.1
        > operator: Skip lyon.7
        > operator: Skip paris.1
        > operator: Rerun paris.1
        > operator: Rerun lyon.7
        > operator: Rerun paris.1
    "#]]);
}

#[test]
fn a_second_decision_does_not_overrule_the_first() {
    let mut paris = crashed(PLAIN);
    paris.is_told("counter", "paris.1", Decision::Rerun);
    paris.ends(1, ok());
    paris.so_far();
    paris.is_told("counter", "paris.1", Decision::Rerun);
    paris.shows("counter").told(expect![[r#"
        > operator: Rerun paris.1
        = list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
    "#]]);
}

#[test]
fn a_decision_on_what_is_under_way_changes_nothing_and_nothing_is_run_twice_for_it() {
    let mut story = String::new();
    for decision in [Decision::Skip, Decision::Rerun] {
        let mut paris = crashed(PLAIN);
        paris.is_told("counter", "paris.1", Decision::Rerun);
        paris.so_far();
        paris.is_told("counter", "paris.1", decision);
        paris.ends(1, ok());
        story += &paris.story();
    }
    let mut paris = undoing();
    paris.so_far();
    paris.is_told("counter", "paris.1", Decision::Skip);
    story += &paris.story();
    expect![[r#"
        > operator: Skip paris.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.3 says OK of paris.1
          note Applied(counter, paris.1)
          note Converged(counter)
        > operator: Rerun paris.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.3 says OK of paris.1
          note Applied(counter, paris.1)
          note Converged(counter)
        > operator: Skip paris.1
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn what_is_in_doubt_holds_up_what_comes_after_it_and_force_sets_it_right() {
    let mut paris = crashed(ORDERED);
    let here = || Submission { sites: Some(sites("paris")), ..asks_for("inc") };
    paris.so_far();
    paris.submits(here());
    paris.shows("counter");
    paris.submits(Submission { force: true, ..here() });
    paris.ends(1, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        > 2: counter inc
          + paris.3 inc on paris.1
          answer 2: accepted as paris.3 for paris
        = list [paris.1 paris.3], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
            paris.3
        > 3: counter inc by force
          + paris.4 inc by force on paris.3
          + paris.5 says SUPERSEDED by paris.4 of paris.3
          + begin run paris.4
          answer 3: accepted as paris.4 for paris
          note Superseded(counter, paris.3, paris.4)
          note LeftOut(counter, [PastDecision { operation: paris.3, by: Some(paris.4), why: "paris.4 was forced and replaces all before it" }])
          note Settled(counter, paris.3, Superseded)
          answer 2: paris says SUPERSEDED by paris.4 of paris.3
          answer 2: done
          job 1: run paris.4
        > job 1 ends: exit 0
          + end run paris.4: Ok
          + paris.6 says OK of paris.4
          + pruned paris.3 (at paris, config of paris.1)
          + ran [paris.4]
          note Applied(counter, paris.4)
          note Settled(counter, paris.4, Applied)
          answer 3: paris says OK of paris.4
          answer 3: done
          note Converged(counter)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(paris.4), why: "paris.4 was forced and replaces all before it" }])
          note Pruned(counter, 3)
        = list [paris.4], InStep, Idle, settled, pruned paris.3
            paris.4 paris=OK
    "#]]);
}

#[test]
fn a_doubt_is_replied_once_and_noted_at_every_start() {
    let mut paris = crashed(PLAIN);
    paris.so_far();
    paris.restarts();
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          note InDoubt(counter, paris.1)
        > restart
          note InDoubt(counter, paris.1)
    "#]]);
}

#[test]
fn a_decision_on_what_is_being_checked_is_left_to_the_check() {
    let mut story = String::new();
    for (decision, check) in [(Decision::Skip, ko("not there")), (Decision::Rerun, ok())] {
        let mut paris = crashed(CHECKED);
        paris.so_far();
        paris.is_told("counter", "paris.1", decision);
        paris.ends(1, check);
        paris.shows("counter");
        story += &paris.story();
    }
    expect![[r#"
        > operator: Skip paris.1
        > job 1 ends: exit 1 not there
          + end check paris.1: ItDidNot
          + begin run paris.1
          job 2: run paris.1
        = list [paris.1], InStep, Running
            paris.1
        > operator: Rerun paris.1
        > job 1 ends: exit 0
          + end check paris.1: ItHappened
          + paris.2 says OK of paris.1
          note Settled(counter, paris.1, Applied)
          note Converged(counter)
        = list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn what_was_cut_short_and_loses_to_another_is_in_doubt_no_more() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
    let later = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(1_050_000);
    paris.hears("lyon", other("lyon").tells_of(later));
    paris.so_far();
    paris.restarts();
    paris.ends(1, ok());
    paris.shows("counter").told(expect![[r#"
        > restart
          + paris.2 says SUPERSEDED by lyon.1 of paris.1
          + begin run lyon.1
          note Superseded(counter, paris.1, lyon.1)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 is concurrent and was written last; (inc, inc): take-one" }])
          job 1: run lyon.1
        > job 1 ends: exit 0
          + end run lyon.1: Ok
          + paris.3 says OK of lyon.1
          note Applied(counter, lyon.1)
          tell lyon: alive at 5 not hearing lyon
          tell nantes: alive at 5 not hearing lyon
        = list [lyon.1], InStep, Idle
            paris.1 paris=SUPERSEDED by lyon.1 out: LastWriter by lyon.1
            lyon.1 paris=OK
    "#]]);
}

#[test]
fn a_crash_while_one_of_several_ran_leaves_the_others_as_they_were() {
    let mut paris = alone();
    let on = |name: &str, text: &str| Submission {
        resource: resource(name),
        sites: Some(sites("paris")),
        config: Some(config(text)),
        ..asks_for("inc")
    };
    paris.submits(on("a", PLAIN));
    paris.ends(1, ok());
    paris.submits(on("b", PLAIN));
    paris.submits(on("c", CHECKED));
    paris.so_far();
    paris.restarts();
    for name in ["a", "b", "c"] {
        paris.shows(name);
    }
    paris.told(expect![[r#"
        > restart
          + b: paris.5 says IN-DOUBT of paris.3
          + c: begin check paris.4
          note InDoubt(b, paris.3)
          note Settled(b, paris.3, InDoubt)
          job 1: c: check paris.4 by `did it`
        = a: list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
        = b: list [paris.3], InStep, AwaitsOperator(paris.3)
            paris.3 paris=IN-DOUBT
        = c: list [paris.4], InStep, Running
            paris.4
    "#]]);
}
