//! Operations that failed whole and are run in smaller steps.

use cheops_core::engine::Submission;
use cheops_core::model::{Outcome, Output};
use expect_test::expect;

use super::fixture::*;

/// Paris alone, and what it is asked for.
fn deciding() -> (Site, impl Fn(&str) -> Submission) {
    let config = config(DECOMPOSED);
    let asks = move |kind: &str| Submission {
        sites: Some(sites("paris")),
        config: Some(config.clone()),
        ..asks_for(kind)
    };
    (alone(), asks)
}

const DECOMPOSED: &str = r#"{"ResolutionMatrix": [], "Types": {"dec": {"Decompose": "split"}}}"#;

#[test]
fn what_failed_whole_is_run_in_the_steps_that_the_program_names_until_one_fails() {
    let (mut paris, asks) = deciding();
    paris.submits(asks("dec"));
    paris.ends(1, ko("too much"));
    paris.ends(2, Outcome::success("dec 1\n\n  dec 2\ndec 3\n"));
    paris.ends(3, ok());
    paris.ends(4, ok());
    paris.ends(5, ko("enough"));
    paris.told(expect![[r#"
        > 1: counter dec
          + paris.1 dec at paris with config
          + begin run paris.1
          answer 1: accepted as paris.1 for paris
          job 1: run paris.1
        > job 1 ends: exit 1 too much
          job 2: decompose paris.1 by `split`
        > job 2 ends: exit 0 dec 1; ;  dec 2; dec 3; 
          job 3: `dec 1` of paris.1
        > job 3 ends: exit 0
          job 4: `dec 2` of paris.1
        > job 4 ends: exit 0
          job 5: `dec 3` of paris.1
        > job 5 ends: exit 1 enough
          + end run paris.1: Ok
          + paris.2 says PARTIAL 2/3 of paris.1: enough
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          answer 1: paris says PARTIAL 2/3 of paris.1: enough
          answer 1: done
    "#]]);
}

#[test]
fn steps_that_all_succeed_are_partial_still_and_none_is_a_plain_failure() {
    let mut story = String::new();
    let cut_off =
        Outcome::Exited { code: 0, output: Output { text: "dec 1".into(), truncated: true } };
    let endless = Outcome::success("dec 1\n".repeat(10_001));
    for (steps, results) in [
        (Outcome::success("dec 1"), vec![ok()]),
        (Outcome::success("dec 1\ndec 2"), vec![ko("not even one")]),
        (Outcome::success(""), vec![]),
        (ko("the program failed"), vec![]),
        (cut_off, vec![]),
        (endless, vec![]),
    ] {
        let (mut paris, asks) = deciding();
        paris.submits(asks("dec"));
        paris.ends(1, ko("too much"));
        paris.ends(2, steps);
        for (at, result) in results.into_iter().enumerate() {
            paris.ends(3 + at as u64, result);
        }
        let told = paris.story();
        story += told.lines().find(|line| line.contains("says")).unwrap_or("nothing");
        story += "\n";
    }
    expect![[r#"
          + paris.2 says PARTIAL 1/1 of paris.1
          + paris.2 says KO of paris.1: too much
          + paris.2 says KO of paris.1: too much
          + paris.2 says KO of paris.1: too much
          + paris.2 says KO of paris.1: too much
          + paris.2 says KO of paris.1: too much
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn steps_keep_their_place_when_others_wait_for_one() {
    let mut settings = settings("");
    settings.jobs_at_once = 1;
    let mut paris = start(settings);
    let on = |name: &str| Submission {
        resource: resource(name),
        sites: Some(sites("paris")),
        config: Some(config(DECOMPOSED)),
        ..asks_for("dec")
    };
    paris.submits(on("counter"));
    paris.submits(on("other"));
    paris.so_far();
    paris.ends(1, ko("too much"));
    paris.told(expect![[r#"
        > job 1 ends: exit 1 too much
          job 2: decompose paris.1 by `split`
    "#]]);
}

#[test]
fn a_crash_among_the_steps_leaves_the_whole_in_doubt() {
    let (mut paris, asks) = deciding();
    paris.submits(asks("dec"));
    paris.ends(1, ko("too much"));
    paris.ends(2, Outcome::success("dec 1\ndec 2"));
    paris.ends(3, ok());
    paris.so_far();
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          + paris.2 says IN-DOUBT of paris.1
          note InDoubt(counter, paris.1)
          note Settled(counter, paris.1, InDoubt)
    "#]]);
}
