//! Repairs: snapshots that are taken and brought back, and operations that are undone.

use cheops_core::engine::Submission;
use cheops_core::model::Status;
use cheops_core::plan::SnapshotId;
use expect_test::expect;

use super::fixture::*;

/// What must come earlier than what ran is brought in by a restore.
const SAVED: &str = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "ordered"}],
    "Snapshot": "save", "Restore": "bring back"}"#;

/// Paris saved the state and ran its own operation; lyon's should have come first.
fn restoring() -> Site {
    let mut paris = paris();
    paris.submits(Submission { config: Some(config(SAVED)), ..asks_for("inc") });
    paris.ends(1, ok());
    paris.ends(2, ok());
    let earlier = op("inc").declaring("lyon paris", None).at_ms(1);
    paris.hears("lyon", other("lyon").tells_of(earlier));
    paris
}

#[test]
fn a_snapshot_is_taken_first_and_brought_back_when_something_must_come_earlier() {
    let mut paris = restoring();
    paris.ends(3, ok());
    paris.ends(4, ok());
    paris.ends(5, ok());
    paris.shows("counter");
    let story = paris.story();
    let lines = story.lines().filter(|line| !line.contains("tell") && !line.contains("answer"));
    expect![[r#"
        > 1: counter inc
          + paris.1 inc at lyon paris with config
          + begin snapshot 0
          job 1: snapshot 0 by `save`
        > job 1 ends: exit 0
          + end snapshot 0: Ok
          + begin run paris.1
          job 2: run paris.1
        > job 2 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris
          + begin restore 0
          note SiteUp(lyon)
          job 3: restore 0 by `bring back`
        > job 3 ends: exit 0
          + end restore 0: Ok
          + begin run lyon.1
          job 4: run lyon.1
        > job 4 ends: exit 0
          + end run lyon.1: Ok
          + paris.3 says OK of lyon.1
          + begin run paris.1
          note Applied(counter, lyon.1)
          job 5: run paris.1
        > job 5 ends: exit 0
          + end run paris.1: Ok
          note Applied(counter, paris.1)
        = list [lyon.1 paris.1], InStep, Idle
            lyon.1 paris=OK
            paris.1 paris=OK
    "#]]
    .assert_eq(&flush_left(&(lines.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn a_snapshot_that_fails_is_no_reason_not_to_run() {
    let mut paris = alone();
    paris.submits(Submission {
        sites: Some(sites("paris")),
        config: Some(config(SAVED)),
        ..asks_for("inc")
    });
    paris.so_far();
    paris.ends(1, ko("no space"));
    paris.told(expect![[r#"
        > job 1 ends: exit 1 no space
          + end snapshot 0: Ko
          + begin run paris.1
          job 2: run paris.1
    "#]]);
}

#[test]
fn a_restore_that_fails_leaves_the_site_diverged_and_says_why() {
    let mut paris = restoring();
    paris.so_far();
    paris.ends(3, ko("cannot"));
    paris.shows("counter").told(expect![[r#"
        > job 3 ends: exit 1 cannot
          + end restore 0: Ko
          + begin run lyon.1
          note Diverged(counter, Order { ran: paris.1, before: lyon.1 })
          job 4: run lyon.1
        = list [lyon.1 paris.1], Diverged { why: Order { ran: paris.1, before: lyon.1 } }, Running
            lyon.1
            paris.1 paris=OK
    "#]]);
}

#[test]
fn a_restore_that_was_cut_short_is_made_again() {
    let mut paris = restoring();
    paris.so_far();
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          + begin restore 0
          job 1: restore 0 by `bring back`
    "#]]);
}

#[test]
fn a_restore_that_cannot_be_made_any_more_leaves_doubt_which_force_settles() {
    let mut paris = restoring();
    paris.submits(Submission { config: Some(matrix("ordered")), ..asks_for("inc") });
    paris.so_far();
    paris.restarts();
    paris.submits(Submission { force: true, ..asks_for("inc") });
    paris.told(expect![[r#"
        > restart
          + ran [paris.1?]
          + paris.4 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
        > 3: counter inc by force
          + paris.5 inc by force on paris.3
          + paris.6 says SUPERSEDED by paris.5 of lyon.1
          + paris.7 says SUPERSEDED by paris.5 of paris.3
          + begin run paris.5
          answer 3: accepted as paris.5 for lyon paris
          note Superseded(counter, lyon.1, paris.5)
          note LeftOut(counter, [PastDecision { operation: lyon.1, by: Some(paris.5), why: "paris.5 was forced and replaces all before it" }])
          note Superseded(counter, paris.3, paris.5)
          note LeftOut(counter, [PastDecision { operation: paris.3, by: Some(paris.5), why: "paris.5 was forced and replaces all before it" }])
          job 1: run paris.5
          tell lyon: alive at 8 not hearing lyon
          tell nantes: alive at 8 not hearing lyon
    "#]]);
}

/// Paris ran its own operation; lyon's, which it heard of later, should have come first.
pub(super) fn undoing() -> Site {
    let mut paris = paris();
    let text = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "ordered"}],
        "Types": {"inc": {"Undo": "dec"}}}"#;
    paris.submits(Submission { config: Some(config(text)), ..asks_for("inc") });
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    let earlier = lyon.writes(op("inc").declaring("lyon paris", None).at_ms(1));
    let reply = lyon.writes(says("lyon.1", Status::Ok));
    paris.hears("lyon", lyon.tells([earlier, reply]));
    paris
}

#[test]
fn what_ran_too_early_is_undone_and_run_again_in_its_place() {
    let mut paris = undoing();
    for job in 2..=4 {
        paris.ends(job, ok());
    }
    paris.shows("counter");
    let story = paris.story();
    let words = ["> job", "+ begin", "+ end", "  job", "= ", "    "];
    let lines = story.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    let lines = lines.filter(|line| !line.contains("tell") && !line.contains("says"));
    expect![[r#"
          + begin run paris.1
          job 1: run paris.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + begin undo paris.1
          job 2: undo paris.1 by `dec`
        > job 2 ends: exit 0
          + end undo paris.1: Ok
          + begin run lyon.1
          job 3: run lyon.1
        > job 3 ends: exit 0
          + end run lyon.1: Ok
          + begin run paris.1
          job 4: run paris.1
        > job 4 ends: exit 0
          + end run paris.1: Ok
        = list [lyon.1 paris.1], InStep, Idle
            lyon.1 lyon=OK paris=OK
            paris.1 paris=OK
    "#]]
    .assert_eq(&flush_left(&(lines.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn an_undo_that_fails_leaves_the_site_diverged_and_one_that_was_cut_short_is_in_doubt() {
    let mut story = String::new();
    let mut paris = undoing();
    paris.so_far();
    paris.ends(2, ko("cannot"));
    paris.shows("counter");
    story += &paris.story();
    let mut paris = undoing();
    paris.so_far();
    paris.restarts();
    paris.shows("counter");
    story += &paris.story();
    expect![[r#"
        > job 2 ends: exit 1 cannot
          + end undo paris.1: Ko
          + begin run lyon.1
          note Diverged(counter, Order { ran: paris.1, before: lyon.1 })
          job 3: run lyon.1
        = list [lyon.1 paris.1], Diverged { why: Order { ran: paris.1, before: lyon.1 } }, Running
            lyon.1 lyon=OK
            paris.1 paris=OK
        > restart
          + paris.3 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
        = list [lyon.1 paris.1], InStep, AwaitsOperator(paris.1)
            lyon.1 lyon=OK
            paris.1 paris=IN-DOUBT
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn a_snapshot_is_kept_from_before_it_is_made_until_nothing_can_bring_it_back() {
    let needed =
        |paris: &Site, name: &str, id| paris.engine.needs_snapshot(&resource(name))(SnapshotId(id));
    let mut paris = alone();
    let here = |force| Submission {
        sites: Some(sites("paris")),
        config: Some(config(SAVED)),
        force,
        ..asks_for("inc")
    };
    paris.submits(here(false));
    assert!(needed(&paris, "counter", 0), "it is being made");
    paris.ends(1, ko("no space"));
    assert!(!needed(&paris, "counter", 0), "there is none");
    assert!(needed(&paris, "counter", 1) && !needed(&paris, "unheard", 1));
}
