//! Taking operations out, and bringing them back; and what would come of something.

use cheops_core::engine::{Effect, NotUndoable, Now, Submission, Task, UndoBasis};
use cheops_core::model::{OperationId, Replaces, Undoing};
use cheops_core::resolve::{LeftOut, Why};
use expect_test::expect;

use super::fixture::*;

fn counts(site: &Site) -> Vec<OperationId> {
    site.engine.resource(&resource("counter")).unwrap().list
}

fn left_out(site: &Site, of: &str) -> Option<LeftOut> {
    site.engine.operation_view(&resource("counter"), &operation(of)).unwrap().left_out
}

/// Takes out what is named, or brings it back, and says which operations are run for that.
fn undoes(site: &mut Site, named: &str) -> Vec<OperationId> {
    let resource = resource("counter");
    let undoing = site.engine.can_undo(&resource, &operation(named)).unwrap();
    let (undoing, _) = undoing.checked().unwrap();
    let effects = site.undoes(undoing);
    let run = effects.iter().filter_map(|effect| match effect {
        Effect::Run(job) => match &job.task {
            Task::Run(operation) => Some(operation.id.clone()),
            _ => None,
        },
        _ => None,
    });
    run.collect()
}

fn refused(site: &Site, named: &str) -> NotUndoable {
    let possible = site.engine.can_undo(&resource("counter"), &operation(named));
    possible.and_then(UndoBasis::checked).unwrap_err()
}

fn here(kind: &str) -> Submission {
    Submission { sites: Some(sites("paris")), config: Some(set_and_inc()), ..asks_for(kind) }
}

#[test]
fn what_is_undone_is_taken_out_of_what_ran_and_comes_back_when_that_is_undone() {
    let mut paris = alone();
    paris.submits(here("set"));
    paris.ends(1, ok());
    paris.submits(here("inc"));
    paris.ends(2, ok());
    assert_eq!(undoes(&mut paris, "paris.3"), [operation("paris.1")], "all again from the set");
    assert_eq!(counts(&paris), [operation("paris.1")]);
    let by = operation("paris.5");
    let out = left_out(&paris, "paris.3").unwrap();
    assert_eq!(out, LeftOut { by: Some(by.clone()), why: Why::Undone });
    assert_eq!(out.to_string(), "it was undone, by paris-1.5");
    paris.ends(3, ok());
    let already = NotUndoable::Already { operation: operation("paris.3"), by };
    assert_eq!(refused(&paris, "paris.3"), already);
    assert_eq!(refused(&paris, "paris.99"), NotUndoable::Unknown(operation("paris.99")));

    assert_eq!(undoes(&mut paris, "paris.5"), [operation("paris.3")]);
    assert_eq!(counts(&paris), [operation("paris.1"), operation("paris.3")]);
    paris.ends(4, ok());
    assert_eq!(left_out(&paris, "paris.3"), None);
    paris.restarts();
    assert_eq!(counts(&paris), [operation("paris.1"), operation("paris.3")]);
}

#[test]
fn undoing_the_winner_of_a_conflict_lets_the_other_one_count() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
    paris.ends(1, ok());
    let theirs = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(9_000_000);
    paris.hears("lyon", other("lyon").tells_of(theirs));
    paris.ends(2, ok());
    assert_eq!(counts(&paris), [operation("lyon.1")]);
    assert_eq!(undoes(&mut paris, "lyon.1"), [operation("paris.1")]);
    assert_eq!(counts(&paris), [operation("paris.1")]);
    paris.ends(3, ok());
    assert_eq!(left_out(&paris, "paris.1"), None);
    assert_eq!(left_out(&paris, "lyon.1").unwrap().why, Why::Undone);
}

#[test]
fn what_cannot_be_taken_out_is_refused_with_the_reason() {
    let mut paris = alone();
    paris.submits(here("set"));
    assert_eq!(refused(&paris, "paris.1"), NotUndoable::NotRun(operation("paris.1")));
    paris.ends(1, ok());
    paris.submits(here("set"));
    paris.ends(2, ok());
    // What was before may be forgotten somewhere; here it is already.
    assert_eq!(refused(&paris, "paris.3"), NotUndoable::ReplacedAll(operation("paris.3")));
    assert_eq!(refused(&paris, "paris.1"), NotUndoable::Unknown(operation("paris.1")));
    paris.submits(here("inc"));
    paris.ends(3, ko("no"));
    let void = NotUndoable::FailedEverywhere(operation("paris.5"));
    assert_eq!(refused(&paris, "paris.5"), void);

    let mut paris = alone();
    let ordered = Submission { config: Some(matrix("ordered")), ..here("inc") };
    paris.submits(ordered);
    paris.ends(1, ok());
    assert!(matches!(refused(&paris, "paris.1"), NotUndoable::NoRepair { .. }));
}

#[test]
fn what_would_come_of_something_is_told_and_nothing_is_changed() {
    let mut paris = paris();
    let now = Now { mono_ms: 50, wall_ms: 2_000_000 };
    let first = Submission { config: Some(set_and_inc()), ..asks_for("set") };
    let told = paris.engine.forecast_basis(&first, now).unwrap().forecast();
    assert!(told.new_resource && told.left_out.is_empty());
    assert_eq!((told.list.len(), &told.sites), (1, &sites("lyon paris")));
    assert_eq!(told.not_heard, sites("lyon"));
    assert_eq!(paris.engine.resources().len(), 0);
    paris.submits(first);
    paris.ends(1, ok());
    paris.submits(asks_for("inc"));
    paris.ends(2, ok());
    let before = counts(&paris);
    let told = paris.engine.forecast_basis(&asks_for("inc"), now).unwrap().forecast();
    assert_eq!((told.list.len(), told.replaces), (3, Replaces::Nothing));
    assert_eq!(told.operation.as_ref(), Some(&told.list[2].id));
    let told = paris.engine.forecast_basis(&asks_for("set"), now).unwrap().forecast();
    assert_eq!((told.list.len(), told.replaces), (1, Replaces::Past));
    let out: Vec<_> = told.left_out.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(out, before);
    assert!(told.left_out[0].1.contains("replaces all before it"));
    let undo = paris.engine.can_undo(&resource("counter"), &operation("paris.3")).unwrap();
    let (undoing, told) = undo.checked().unwrap();
    assert_eq!(undoing, Undoing { operation: operation("paris.3"), back: false });
    assert_eq!((told.list.len(), told.cannot_repair), (1, None));
    assert_eq!(told.left_out, [(operation("paris.3"), "it is undone".to_owned())]);
    let elsewhere = Submission { sites: Some(sites("paris")), ..asks_for("inc") };
    assert!(paris.engine.forecast_basis(&elsewhere, now).is_err());
    assert_eq!(counts(&paris), before);
}

#[test]
fn an_undoing_is_durable_then_told_to_the_other_sites_and_run_here_and_so_is_its_undoing() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.submits(Submission { config: Some(set_and_inc()), ..asks_for("set") });
    paris.ends(1, ok());
    paris.submits(asks_for("inc"));
    paris.ends(2, ok());
    paris.so_far();
    undoes(&mut paris, "paris.3");
    paris.ends(3, ok());
    undoes(&mut paris, "paris.5");
    paris.told(expect![[r#"
        > undo paris.3
          + paris.5 says OK of paris.3
          + paris.6 says SUPERSEDED by paris.5 of paris.3
          + begin run paris.1
          note Superseded(counter, paris.3, paris.5)
          note LeftOut(counter, [PastDecision { operation: paris.3, by: Some(paris.5), why: "it was undone, by paris.5" }])
          job 3: run paris.1
          tell lyon: [paris.5 says OK of paris.3; paris.6 says SUPERSEDED by paris.5 of paris.3] knows paris.6
        > job 3 ends: exit 0
          + end run paris.1: Ok
          note Applied(counter, paris.1)
        > bring back paris.3
          + paris.7 says SUPERSEDED by paris.5 of paris.3
          + paris.8 says OK of paris.3
          + begin run paris.3
          job 4: run paris.3
          tell lyon: [paris.7 says SUPERSEDED by paris.5 of paris.3; paris.8 says OK of paris.3] knows paris.8
    "#]]);
}

#[test]
fn an_undoing_that_came_too_late_or_of_what_is_not_known_writes_nothing() {
    let mut paris = alone();
    paris.submits(here("set"));
    paris.so_far();
    paris.undoes(Undoing { operation: operation("paris.1"), back: false });
    paris.undoes(Undoing { operation: operation("lyon.7"), back: true });
    paris.told(expect![[r#"
        > undo paris.1
        > bring back lyon.7
    "#]]);
}
