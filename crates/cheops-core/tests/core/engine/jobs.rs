//! Jobs: how each ends, what follows, and those that nobody waits for any more.

use cheops_core::engine::Submission;
use cheops_core::model::{Act, Outcome, Status};
use cheops_core::plan::Decision;
use expect_test::expect;

use super::fixture::*;

#[test]
fn every_way_a_run_can_end_is_a_reply_or_another_try() {
    let mut story = String::new();
    for outcome in [
        ok(),
        ko("no such key"),
        answered(201, None),
        answered(409, None),
        Outcome::TimedOut { limit_ms: 60_000 },
        Outcome::NotStarted { reason: "no such program".into() },
        not_yet(false),
        not_yet(true),
    ] {
        let mut paris = alone();
        paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
        paris.so_far();
        paris.ends(1, outcome);
        story += &paris.story();
    }
    expect![[r#"
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says OK of paris.1
          answer 1: done
          note Converged(counter)
        > job 1 ends: exit 1 no such key
          + end run paris.1: Ko
          + paris.2 says KO of paris.1: no such key
          note Failed(counter, paris.1)
          note Settled(counter, paris.1, Failed)
          answer 1: paris says KO of paris.1: no such key
          answer 1: done
        > job 1 ends: answer 201
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says OK of paris.1
          answer 1: done
          note Converged(counter)
        > job 1 ends: answer 409
          + end run paris.1: Ko
          + paris.2 says KO of paris.1
          note Failed(counter, paris.1)
          note Settled(counter, paris.1, Failed)
          answer 1: paris says KO of paris.1
          answer 1: done
        > job 1 ends: timed out after 60000 ms
          + end run paris.1: Ko
          + paris.2 says KO of paris.1
          note Failed(counter, paris.1)
          note Settled(counter, paris.1, Failed)
          answer 1: paris says KO of paris.1
          answer 1: done
        > job 1 ends: not started: no such program
          + end run paris.1: Ko
          + paris.2 says KO of paris.1: no such program
          note Failed(counter, paris.1)
          note Settled(counter, paris.1, Failed)
          answer 1: paris says KO of paris.1: no such program
          answer 1: done
        > job 1 ends: not yet
          + ran []
        > job 1 ends: not yet, or maybe
          + ran [paris.1?], run paris.1 begun
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_job_that_ends_twice_ends_once_and_one_that_nobody_asked_for_changes_nothing() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.so_far();
    paris.ends(1, ko("again"));
    paris.ends(2, ok());
    paris.ends(u64::MAX, ok());
    paris.told(expect![[r#"
        > job 1 ends: exit 1 again
        > job 2 ends: exit 0
        > job 18446744073709551615 ends: exit 0
    "#]]);
}

#[test]
fn operations_of_a_resource_run_one_by_one_and_resources_side_by_side() {
    let mut paris = alone();
    let on = |name: &str| Submission {
        resource: resource(name),
        sites: Some(sites("paris")),
        ..asks_for("inc")
    };
    for name in ["counter", "counter", "other"] {
        paris.submits(on(name));
    }
    assert_eq!(paris.engine.running(), 2);
    paris.so_far();
    paris.ends(1, ok());
    paris.told(expect![[r#"
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.4 says OK of paris.1
          + begin run paris.2
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says OK of paris.1
          answer 1: done
          job 3: run paris.2
    "#]]);
}

#[test]
fn when_places_are_few_who_waits_longest_comes_first() {
    let mut settings = settings("");
    settings.jobs_at_once = 1;
    let mut paris = start(settings);
    let on = |name: &str| Submission {
        resource: resource(name),
        sites: Some(sites("paris")),
        ..asks_for("inc")
    };
    for name in ["busy", "busy", "patient", "last"] {
        paris.submits(on(name));
    }
    for job in 1..=4 {
        paris.ends(job, ok());
    }
    let story = paris.story();
    let jobs = story.lines().filter(|line| line.contains("  job"));
    expect![[r#"
          job 1: busy: run paris.1
          job 2: patient: run paris.3
          job 3: last: run paris.4
          job 4: busy: run paris.2"#]]
    .assert_eq(&flush_left(&jobs.collect::<Vec<_>>().join("\n")));
}

#[test]
fn an_engine_that_drains_ends_what_runs_and_begins_nothing_until_it_starts_again() {
    let mut paris = alone();
    let here = || Submission { sites: Some(sites("paris")), ..asks_for("inc") };
    paris.submits(here());
    paris.drains();
    paris.submits(here());
    paris.ends(1, ok());
    assert_eq!(paris.engine.running(), 0);
    paris.restarts();
    paris.told(expect![[r#"
        > 1: counter inc
          + paris.1 inc at paris
          + begin run paris.1
          answer 1: accepted as paris.1 for paris
          job 1: run paris.1
        > drain
        > 2: counter inc
          + paris.2 inc on paris.1
          answer 2: accepted as paris.2 for paris
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.3 says OK of paris.1
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says OK of paris.1
          answer 1: done
        > restart
          + begin run paris.2
          job 1: run paris.2
    "#]]);
}

#[test]
fn what_cannot_be_tried_is_tried_again_later_and_later() {
    let mut paris = alone();
    let patient =
        || Submission { sites: Some(sites("paris")), timeout_ms: u64::MAX, ..asks_for("inc") };
    paris.submits(patient());
    let mut waits = Vec::new();
    for job in 1..=9 {
        paris.ends(job, not_yet(false));
        let due = paris.engine.next_deadline().unwrap();
        waits.push(due - paris.now_ms);
        assert!(paris.ticks_at(due - 1).is_empty(), "not before");
        assert_eq!(paris.ticks_at(due).len(), 1, "and then");
    }
    assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    // What ends for good begins anew.
    paris.ends(10, ok());
    paris.submits(patient());
    paris.ends(11, not_yet(false));
    assert_eq!(paris.engine.next_deadline().unwrap() - paris.now_ms, 500);
}

#[test]
fn while_it_waits_to_be_tried_again_it_says_for_what() {
    let mut paris = alone();
    paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
    paris.ends(1, not_yet(true));
    paris.so_far();
    paris.shows("counter");
    paris.ticks_at(503);
    paris.shows("counter");
    paris.is_told("counter", "paris.1", Decision::Skip);
    paris.shows("counter");
    paris.told(expect![[r#"
        = list [paris.1], InStep, Running, waits: the service is away
            paris.1
        > 503 ms
          + paris.2 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
          note Settled(counter, paris.1, InDoubt)
          answer 1: paris says IN-DOUBT of paris.1
          answer 1: done
        = list [paris.1], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
        > operator: Skip paris.1
          + ran [paris.1]
          + paris.3 says OK of paris.1
          note Converged(counter)
        = list [paris.1], InStep, Idle, settled
            paris.1 paris=OK
    "#]]);
}

#[test]
fn a_request_that_came_to_nothing_for_certain_is_not_doubted_and_one_that_may_not_have_is_asked_about()
 {
    let mut story = String::new();
    for in_doubt in [false, true] {
        let mut paris = alone();
        paris.submits(http("counter", "post", Act::Creates));
        paris.ends(1, not_yet(in_doubt));
        paris.so_far();
        paris.ticks_at(600);
        paris.shows("counter");
        story += &paris.story();
    }
    expect![[r#"
        > 600 ms
          + begin run paris.1
          job 2: run paris.1
        = list [paris.1], InStep, Running, waits: the service is away
            paris.1
        > 600 ms
          + paris.2 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
          note Settled(counter, paris.1, InDoubt)
          answer 1: paris says IN-DOUBT of paris.1
          answer 1: done
        = list [paris.1], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn what_is_superseded_while_it_is_tried_in_vain_is_replied_to() {
    let mut story = String::new();
    for in_doubt in [false, true] {
        let mut paris = paris();
        paris.submits(asks_for("inc"));
        let later = op("inc").on("paris.1").replacing().at_ms(2_000_000);
        paris.hears("lyon", other("lyon").tells_of(later));
        paris.so_far();
        paris.ends(1, not_yet(in_doubt));
        story += &paris.story();
    }
    expect![[r#"
        > job 1 ends: not yet
          + ran []
          + paris.2 says SUPERSEDED by lyon.1 of paris.1
          note Superseded(counter, paris.1, lyon.1)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 was made after it and replaces all before it" }])
          answer 1: paris says SUPERSEDED by lyon.1 of paris.1
          tell lyon: [paris.2 says SUPERSEDED by lyon.1 of paris.1] knows lyon.1 paris.2
        > job 1 ends: not yet, or maybe
          + ran [paris.1?], run paris.1 begun
          + paris.2 says SUPERSEDED by lyon.1 of paris.1
          note Superseded(counter, paris.1, lyon.1)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 was made after it and replaces all before it" }])
          answer 1: paris says SUPERSEDED by lyon.1 of paris.1
          tell lyon: [paris.2 says SUPERSEDED by lyon.1 of paris.1] knows lyon.1 paris.2
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_job_of_an_engine_that_is_gone_does_not_end_one_of_this() {
    let mut paris = alone();
    paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
    paris.restarts();
    paris.so_far();
    // Nothing runs here: what was job 1 is in doubt.
    paris.ends(1, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        > job 1 ends: exit 0
        = list [paris.1], InStep, AwaitsOperator(paris.1)
            paris.1 paris=IN-DOUBT
    "#]]);
}

#[test]
fn an_operation_that_is_pruned_while_it_runs_is_replied_to_all_the_same() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    let later = lyon.writes(op("inc").on("paris.1").replacing().at_ms(2_000_000));
    let went_well = lyon.writes(says("lyon.1", Status::Ok));
    paris.hears("lyon", lyon.tells([later, went_well]));
    paris.so_far();
    paris.ends(1, ok());
    paris.told(expect![[r#"
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          + begin run lyon.1
          note Applied(counter, paris.1)
          answer 1: paris says OK of paris.1
          job 2: run lyon.1
          tell lyon: [paris.2 says OK of paris.1] knows lyon.2 paris.2, pruned paris.1
    "#]]);
}
