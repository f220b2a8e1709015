//! Resources whose operations are edits of one document: who runs what, and who merges.

use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{Effect, NotUndoable, Submission, Task, UndoBasis};
use cheops_core::model::Status;
use expect_test::expect;

use super::fixture::*;

fn document() -> Arc<Config> {
    config(
        r#"{"ResolutionMatrix": [{"Before": "edit", "After": "edit", "Result": "logic:text"}],
            "State": {"Read": "look", "Write": "put"}}"#,
    )
}

fn first() -> Submission {
    Submission { config: Some(document()), ..asks_for("edit") }
}

/// An edit of lyon's that rests on nothing, as paris may hear of it.
fn theirs() -> Unwritten {
    op("edit").declaring("lyon paris", Some(document()))
}

/// The same at three sites.
fn of_three() -> Unwritten {
    op("edit").declaring("lyon nice paris", Some(document()))
}

fn is_merging(effects: &[Effect], of: &str) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Run(job) => {
            matches!(&job.task, Task::Merge { operation: it, .. } if *it == operation(of))
        }
        _ => false,
    })
}

#[test]
fn an_edit_is_run_where_it_was_submitted_and_merged_elsewhere_once_its_site_says_what_it_made() {
    let mut paris = paris();
    paris.submits(first());
    paris.edits(1, "a");
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(theirs()));
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok).making("b")));
    paris.ends(2, ok());
    paris.told(expect![[r#"
        > 1: counter edit
          + paris.1 edit at lyon paris with config
          + begin run paris.1
          answer 1: accepted as paris.1 for lyon paris
          job 1: edit paris.1 as Text on [] by `look` and `put`
          tell lyon: alive at 2 not hearing lyon
        > job 1 ends: edited, `a`
          + end run paris.1: Ok
          + paris.2 says OK of paris.1, which made `a`
          note Applied(counter, paris.1)
          answer 1: paris says OK of paris.1
        > lyon: [lyon.1 edit at lyon paris with config] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 edit at lyon paris with config
          note SiteUp(lyon)
          tell lyon: [paris.1 edit at lyon paris with config; paris.2 says OK of paris.1, which made `a`] knows lyon.1 paris.2
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.2, and you?
        > lyon: [lyon.2 says OK of lyon.1, which made `b`] knows lyon.2
          + lyon.2 says OK of lyon.1, which made `b`
          + begin run lyon.1
          tell lyon: [paris.1 edit at lyon paris with config; paris.2 says OK of paris.1, which made `a`] knows lyon.2 paris.2
          job 2: merge lyon.1 as Text: [a] with [b]
        > job 2 ends: exit 0
          + end run lyon.1: Ok
          + paris.3 says OK of lyon.1
          note Applied(counter, lyon.1)
          tell lyon: [paris.3 says OK of lyon.1] knows lyon.2 paris.3
    "#]]);
}

#[test]
fn an_edit_of_which_its_site_has_said_nothing_holds_up_no_other() {
    let mut paris = start(settings("lyon nice"));
    let (mut lyon, mut nice) = (other("lyon"), other("nice"));
    paris.hears("lyon", lyon.tells_of(of_three()));
    paris.hears("nice", nice.tells_of(of_three()));
    let effects = paris.hears("nice", nice.tells_of(says("nice.1", Status::Ok).making("n")));
    assert!(is_merging(&effects, "nice.1"));
    paris.ends(1, ok());
    paris.submits(asks_for("edit"));
    paris.edits(2, "p");
    let effects = paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok).making("l")));
    assert!(is_merging(&effects, "lyon.1"));
}

#[test]
fn an_edit_that_failed_where_it_was_submitted_fails_everywhere_and_nothing_runs() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(theirs()));
    paris.so_far();
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ko)));
    paris.told(expect![[r#"
        > lyon: [lyon.2 says KO of lyon.1] knows lyon.2
          + lyon.2 says KO of lyon.1
          + begin run lyon.1
          + end run lyon.1: Ko
          + paris.1 says KO of lyon.1: it failed at `lyon`, where it was submitted: nothing to merge
          note Failed(counter, lyon.1)
          tell lyon: [paris.1 says KO of lyon.1: it failed at `lyon`, where it was submitted: nothing to merge] knows lyon.2 paris.1
    "#]]);
}

#[test]
fn what_a_site_made_of_an_edit_after_all_is_merged_by_who_took_it_for_failed_or_done() {
    let mut paris = start(settings("lyon nice"));
    let mut lyon = other("lyon");
    // Nice has not said anything, so it did not fail everywhere.
    paris.hears("lyon", lyon.tells_of(of_three()));
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ko)));
    let effects = paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok).making("b")));
    assert!(is_merging(&effects, "lyon.1"), "it was run again there");
    paris.ends(1, ok());
    // It lost its disk, heard of its own operation from somebody, and ran it once more.
    let mut later = other("lyon-2");
    let again = later.tells_of(says("lyon.1", Status::Ok).making("b2"));
    paris.hears("lyon", beat().in_incarnation(2));
    assert!(is_merging(&paris.hears("lyon", again), "lyon.1"));
    paris.so_far();
    paris.ends(2, ok());
    paris.submits(Submission { sites: None, ..asks_for("edit") });
    paris.told(expect![[r#"
        > job 2 ends: exit 0
          + end run lyon.1: Ok
          note Applied(counter, lyon.1)
        > 1: counter edit
          + paris.3 edit on lyon.1
          + begin run paris.3
          answer 1: accepted as paris.3 for lyon nice paris
          job 3: edit paris.3 as Text on [b, b2] by `look` and `put`
          tell lyon: [paris.3 edit on lyon.1] knows lyon.3 lyon-2.1 paris.3, you may have run lyon.3 paris.2
    "#]]);
}

#[test]
fn a_site_that_starts_again_has_merged_what_it_had_and_makes_an_edit_again_that_was_cut_short() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(theirs()));
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok).making("b")));
    paris.ends(1, ok());
    paris.submits(asks_for("edit"));
    paris.edits(2, "a");
    paris.submits(asks_for("edit"));
    paris.so_far();
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          + begin run paris.4
          job 1: edit paris.4 as Text on [a, b] by `look` and `put`, again
    "#]]);
}

#[test]
fn only_the_site_where_an_edit_was_submitted_says_what_it_made() {
    let mut paris = paris();
    paris.submits(first());
    paris.edits(1, "a");
    let mut lyon = other("lyon");
    lyon.learns("paris.2");
    let lie = lyon.tells_of(says("paris.1", Status::Ok).making("mine"));
    let effects = paris.hears("lyon", lie);
    assert!(!is_merging(&effects, "paris.1"));
}

#[test]
fn nothing_takes_the_place_of_what_others_wrote() {
    let mut paris = paris();
    paris.submits(first());
    paris.edits(1, "a");
    paris.so_far();
    paris.submits(Submission { force: true, ..asks_for("edit") });
    paris.told(expect![[r#"
        > 2: counter edit by force
          answer 2: refused: the operations of resource `counter` are edits that are merged, and none takes the place of all others; submit an edit that makes the document what it should be
    "#]]);
    let undo = paris.engine.can_undo(&resource("counter"), &operation("paris.1"));
    let refused = undo.and_then(UndoBasis::checked).unwrap_err();
    assert_eq!(refused, NotUndoable::Merged(operation("paris.1")));
}
