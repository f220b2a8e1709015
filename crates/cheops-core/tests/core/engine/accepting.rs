//! Operations handed in by users: accepted, refused, waited for.

use std::sync::Arc;

use cheops_core::engine::{Answer, Effect, Submission, WaitFor};
use cheops_core::model::{Asker, OperationType, Status};
use expect_test::expect;

use super::fixture::*;

#[test]
fn an_operation_is_durable_then_acknowledged_sent_and_run() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.submits(asks_for("inc"));
    paris.told(expect![[r#"
        > lyon: alive at 0
          + lyon is in incarnation 1
          note SiteUp(lyon)
          tell lyon: alive at 2, echo of 0 held for 0
        > 1: counter inc
          + paris.1 inc at lyon paris
          + begin run paris.1
          answer 1: accepted as paris.1 for lyon paris
          job 1: run paris.1
          tell lyon: [paris.1 inc at lyon paris] knows paris.1
          tell lyon: alive at 3, echo of 0 held for 1
    "#]]);
}

#[test]
fn an_operation_is_accepted_and_run_while_nobody_is_heard_and_sent_to_nobody() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.told(expect![[r#"
        > 1: counter inc
          + paris.1 inc at lyon paris
          + begin run paris.1
          answer 1: accepted as paris.1 for lyon paris
          job 1: run paris.1
          tell lyon: alive at 2 not hearing lyon
    "#]]);
}

#[test]
fn what_is_refused_names_the_reason_and_leaves_nothing_behind() {
    let mut paris = paris();
    let at = |names: &str| Submission { sites: Some(sites(names)), ..asks_for("inc") };
    paris.submits(Submission { sites: None, ..asks_for("inc") });
    paris.submits(at("lyon nantes"));
    paris.submits(at("paris atlantis"));
    paris.told(expect![[r#"
        > 1: counter inc
          answer 1: refused: resource `counter` is not known here; a new resource needs its sites
        > 2: counter inc
          answer 2: refused: resource `counter` lives on `lyon`, `nantes`, not on this site
        > 3: counter inc
          answer 3: refused: site `atlantis` is not a site of this mesh
    "#]]);
    assert!(paris.disk.0.is_empty() && paris.engine.resources().len() == 0);
}

#[test]
fn sites_need_not_be_said_again_and_are_refused_if_they_are_others() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.so_far();
    paris.submits(Submission { sites: None, ..asks_for("inc") });
    paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
    paris.submits(Submission { sites: Some(sites("paris lyon nantes")), ..asks_for("inc") });
    paris.told(expect![[r#"
        > 2: counter inc
          + paris.2 inc on paris.1
          answer 2: accepted as paris.2 for lyon paris
        > 3: counter inc
          answer 3: refused: resource `counter` lives on `lyon`, `paris`, not on `paris`
        > 4: counter inc
          answer 4: refused: resource `counter` lives on `lyon`, `paris`, not on `lyon`, `nantes`, `paris`
    "#]]);
}

#[test]
fn a_config_is_declared_where_it_is_new_and_not_said_twice() {
    let mut paris = alone();
    let with = |result: &str| Submission {
        sites: Some(sites("paris")),
        config: Some(matrix(result)),
        ..asks_for("inc")
    };
    paris.submits(with("ordered"));
    paris.submits(with("ordered"));
    paris.submits(with("take-both"));
    paris.told(expect![[r#"
        > 1: counter inc
          + paris.1 inc at paris with config
          + begin run paris.1
          answer 1: accepted as paris.1 for paris
          job 1: run paris.1
        > 2: counter inc
          + paris.2 inc on paris.1
          answer 2: accepted as paris.2 for paris
        > 3: counter inc
          + paris.3 inc on paris.2 at paris with config
          answer 3: accepted as paris.3 for paris, with another config than before
    "#]]);
}

#[test]
fn who_hands_in_hears_which_config_holds_from_then_on() {
    let mut paris = alone();
    let with = |config| Submission { sites: Some(sites("paris")), config, ..asks_for("inc") };
    let mut held = |config| {
        let effects = paris.submits(with(config));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { answer: Answer::Accepted { config, .. }, .. } => Some(config),
            _ => None,
        })
    };
    assert_eq!(held(None), Some(Arc::default()));
    assert_eq!(held(Some(matrix("ordered"))), Some(matrix("ordered")));
    assert_eq!(held(None), Some(matrix("ordered")));
    assert_eq!(held(Some(matrix("take-both"))), Some(matrix("take-both")));
}

#[test]
fn a_deleted_resource_takes_nothing_but_force() {
    let mut paris = alone();
    let here = |kind| Submission { sites: Some(sites("paris")), ..asks_for(kind) };
    paris.submits(here("inc"));
    paris.ends(1, ok());
    paris.submits(Submission { kind: OperationType::deletion(), ..here("inc") });
    paris.so_far();
    paris.submits(here("inc"));
    paris.shows("counter");
    paris.submits(Submission { force: true, ..here("inc") });
    paris.shows("counter");
    paris.told(expect![[r#"
        > 3: counter inc
          answer 3: refused: resource `counter` was deleted; only a forced operation brings it back
        = list [paris.3], InStep, Running, deleted
            paris.1 paris=OK out: Replaced by paris.3
            paris.3
        > 4: counter inc by force
          + paris.4 inc by force on paris.3
          answer 4: accepted as paris.4 for paris
        = list [paris.4], InStep, Running
            paris.1 paris=OK out: Forced by paris.4
            paris.3 out: Forced by paris.4
            paris.4
    "#]]);
}

#[test]
fn a_deletion_wins_over_what_is_concurrent_whatever_the_clocks_say() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.submits(Submission { kind: OperationType::deletion(), ..asks_for("inc") });
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(op("inc").declaring("lyon paris", None).at_ms(9_000_000)));
    paris.so_far();
    paris.shows("counter").told(expect![[r#"
        = list [paris.2], InStep, Running, deleted
            paris.1 out: Replaced by paris.2
            paris.2
            lyon.1 paris=SUPERSEDED by paris.2 out: ReplaceWins by paris.2
    "#]]);
}

#[test]
fn a_user_hears_what_each_waits_for_and_is_done_then() {
    let mut story = String::new();
    for wait in [WaitFor::Nothing, WaitFor::Local, WaitFor::All] {
        let mut paris = paris();
        paris.submits(Submission { wait, ..asks_for("inc") });
        paris.ends(1, ok());
        paris.hears("lyon", other("lyon").tells_of(says("paris.1", Status::Ok)));
        let answers = paris.story();
        let answers = answers.lines().filter(|line| line.contains("answer"));
        story += &format!("{wait:?}\n{}\n", answers.collect::<Vec<_>>().join("\n"));
    }
    expect![[r#"
        Nothing
          answer 1: accepted as paris.1 for lyon paris
          answer 1: done
        Local
          answer 1: accepted as paris.1 for lyon paris
          answer 1: paris says OK of paris.1
          answer 1: done
        All
          answer 1: accepted as paris.1 for lyon paris
          answer 1: paris says OK of paris.1
          ! answer 1: lyon says OK of paris.1
          ! answer 1: done
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_user_is_told_when_time_is_up_who_is_missing_and_nothing_after_that() {
    let mut paris = paris();
    paris.submits(Submission { timeout_ms: 100, ..asks_for("inc") });
    paris.ends(1, ok());
    paris.so_far();
    paris.ticks_at(101);
    paris.ticks_at(102);
    paris.hears("lyon", other("lyon").tells_of(says("paris.1", Status::Ok)));
    paris.ticks_at(300);
    paris.told(expect![[r#"
        > 101 ms
        > 102 ms
          answer 1: timed out without lyon
        > lyon: [lyon.1 says OK of paris.1] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 says OK of paris.1
          note SiteUp(lyon)
          note Settled(counter, paris.1, Applied)
          tell lyon: [paris.1 inc at lyon paris; paris.2 says OK of paris.1] knows lyon.1 paris.2
          tell lyon: alive at 103
          tell lyon: knows lyon.1 paris.2, and you?
        > 300 ms
    "#]]);
}

#[test]
fn a_time_limit_beyond_all_time_never_ends() {
    let mut paris = alone();
    let sites = Some(sites("paris"));
    paris.submits(Submission { timeout_ms: u64::MAX, sites, ..asks_for("inc") });
    assert_eq!(paris.engine.next_deadline(), Some(u64::MAX));
    paris.so_far();
    paris.ticks_at(u64::MAX - 1);
    paris.ends(1, ok());
    paris.told(expect![[r#"
        > 18446744073709551614 ms
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says OK of paris.1
          answer 1: done
          note Converged(counter)
    "#]]);
}

#[test]
fn a_limit_of_no_time_is_up_at_once_and_the_work_goes_on() {
    let mut paris = paris();
    paris.submits(Submission { timeout_ms: 0, ..asks_for("inc") });
    paris.ends(1, ok());
    paris.told(expect![[r#"
        > 1: counter inc
          + paris.1 inc at lyon paris
          + begin run paris.1
          answer 1: accepted as paris.1 for lyon paris
          job 1: run paris.1
          tell lyon: alive at 2 not hearing lyon
          answer 1: timed out without lyon paris
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
    "#]]);
}

#[test]
fn a_reply_that_somebody_gives_twice_is_told_to_the_user_once() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.so_far();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko).ended(ko("no"))));
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    paris.told(expect![[r#"
        > lyon: [lyon.1 says KO of paris.1: no] knows lyon.1
          ! answer 1: lyon says KO of paris.1: no
          + lyon is in incarnation 1
          + lyon.1 says KO of paris.1: no
          note SiteUp(lyon)
          tell lyon: [paris.1 inc at lyon paris] knows lyon.1 paris.1
          tell lyon: alive at 3
          tell lyon: knows lyon.1 paris.1, and you?
        > lyon: [lyon.2 says OK of paris.1] knows lyon.2
          + lyon.2 says OK of paris.1
          tell lyon: [paris.1 inc at lyon paris] knows lyon.2 paris.1
    "#]]);
}

#[test]
fn what_was_accepted_before_a_restart_answers_nobody_after_it() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(again_and_again()), ..asks_for("inc") });
    paris.so_far();
    paris.restarts();
    paris.ends(1, ok());
    paris.told(expect![[r#"
        > restart
          + begin run paris.1
          job 1: run paris.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
          tell lyon: alive at 4 not hearing lyon
          tell nantes: alive at 4 not hearing lyon
    "#]]);
}

/// Operations may be run any number of times.
fn again_and_again() -> Arc<cheops_core::config::Config> {
    config(r#"{"ResolutionMatrix": [], "Types": {"inc": {"Idempotent": true}}}"#)
}

#[test]
fn who_asked_travels_with_the_operation() {
    let mut paris = alone();
    let asker = Asker { principal: "marie".into(), site: site("paris") };
    let sites = Some(sites("paris"));
    paris.submits(Submission { asked_by: Some(asker.clone()), sites, ..asks_for("inc") });
    let written = paris.engine.operation(&resource("counter"), &operation("paris.1")).unwrap();
    assert_eq!(written.asked_by, Some(asker));
}

#[test]
fn an_operation_is_made_on_all_heads_and_stamped_after_them() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    let ahead = op("inc").declaring("lyon paris", None).at_ms(1_050_000);
    paris.hears("lyon", other("lyon").tells_of(ahead));
    paris.so_far();
    paris.submits(asks_for("inc"));
    paris.told(expect![[r#"
        > 2: counter inc
          + paris.2 inc on lyon.1 paris.1
          answer 2: accepted as paris.2 for lyon paris
          tell lyon: [paris.2 inc on lyon.1 paris.1] knows lyon.1 paris.2
    "#]]);
    let made = paris.engine.operation(&resource("counter"), &operation("paris.2")).unwrap();
    assert_eq!(made.claimed.to_string(), "1050000+1");
}

#[test]
fn what_replaces_is_decided_once_by_the_matrix_against_the_end_of_the_list() {
    let mut paris = alone();
    let asked = |kind| Submission {
        sites: Some(sites("paris")),
        config: Some(set_and_inc()),
        ..asks_for(kind)
    };
    for kind in ["inc", "set", "inc", "set"] {
        paris.submits(asked(kind));
    }
    paris.submits(Submission { force: true, ..asked("inc") });
    let story = paris.story();
    let written = story.lines().filter(|line| line.contains("+ paris"));
    expect![[r#"
          + paris.1 inc at paris with config
          + paris.2 set replacing on paris.1
          + paris.3 inc on paris.2
          + paris.4 set replacing on paris.3
          + paris.5 says SUPERSEDED by paris.4 of paris.2
          + paris.6 says SUPERSEDED by paris.4 of paris.3
          + paris.7 inc by force on paris.4
          + paris.8 says SUPERSEDED by paris.7 of paris.4"#]]
    .assert_eq(&flush_left(&written.collect::<Vec<_>>().join("\n")));
}
