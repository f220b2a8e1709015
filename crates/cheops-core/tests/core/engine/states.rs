//! Reading the state: when, how often, what is made of it; and what can be done about a failure.

use cheops_core::engine::{Agreement, Effect, Event, NotFailed, StateProof, Submission, Task};
use cheops_core::model::{Fingerprint, Outcome, Status};

use super::fixture::*;

fn asks_with_state() -> Submission {
    let rules = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}],
                    "State": {"Read": "look", "Write": "put"}}"#;
    Submission { config: Some(config(rules)), sites: Some(sites("paris")), ..asks_for("inc") }
}

/// One more operation on it.
fn more() -> Submission {
    Submission { sites: None, ..asks_for("inc") }
}

fn reads(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Run(job) if matches!(job.task, Task::Read { .. }) => Some(job.id.0),
        _ => None,
    })
}

fn found(state: &str) -> Outcome {
    Outcome::success(Fingerprint::of(state.as_bytes()).to_string())
}

fn proof(site: &Site) -> StateProof {
    site.engine.outline(&resource("counter")).and_then(|it| it.proof).unwrap()
}

fn is_verified(site: &Site) -> bool {
    matches!(proof(site).agreement, Agreement::Verified { .. })
}

/// A site alone that has run one operation, a second after it began.
fn rested() -> Site {
    let mut paris = alone();
    paris.at(1_000).submits(asks_with_state());
    // The state before the first operation is kept, in case something comes to stand before it.
    paris.ends(1, ok());
    paris.ends(2, ok());
    paris
}

#[test]
fn a_state_is_read_once_nothing_has_moved_for_a_second_and_again_much_later() {
    let mut paris = rested();
    assert_eq!(reads(&paris.ticks_at(2_001)), None, "something may come yet");
    assert_eq!(reads(&paris.ticks_at(2_002)), Some(3));
    assert!(!is_verified(&paris));
    paris.ends(3, found("one"));
    assert!(is_verified(&paris));
    assert_eq!(reads(&paris.ticks_at(500_000)), None);
    assert_eq!(reads(&paris.ticks_at(602_003)), Some(4));
    paris.so_far();
    paris.ends(4, found("one"));
    assert!(!paris.story().contains("says"), "what is the same is not told again");
    assert!(is_verified(&paris));
}

#[test]
fn what_is_read_while_something_moves_counts_for_nothing_and_is_read_again() {
    let mut paris = rested();
    paris.ticks_at(2_002);
    paris.submits(more());
    paris.ends(3, found("one"));
    assert!(!is_verified(&paris), "it may be the state of before, of after, or of neither");
    paris.ends(4, ok());
    assert_eq!(reads(&paris.ticks_at(3_010)), Some(5));
    paris.ends(5, found("two"));
    assert!(is_verified(&paris));
}

#[test]
fn a_state_that_cannot_be_read_proves_nothing_and_says_why() {
    let mut paris = rested();
    paris.ticks_at(2_002);
    paris.ends(3, ko("no such file"));
    assert_eq!(proof(&paris).agreement, Agreement::Unproven);
    let why = proof(&paris).read_here.unwrap().found.unwrap_err();
    assert!(why.contains("no such file"), "{why}");
}

#[test]
fn a_state_that_never_changes_is_not_believed_until_it_does() {
    let mut paris = rested();
    let (mut at_ms, mut job) = (2_002, 3);
    let mut verified = Vec::new();
    for state in ["same", "same", "same", "same", "same", "other"] {
        assert_eq!(reads(&paris.ticks_at(at_ms)), Some(job));
        paris.ends(job, found(state));
        verified.push(is_verified(&paris));
        paris.submits(more());
        paris.ends(job + 1, ok());
        (at_ms, job) = (at_ms + 1_010, job + 2);
    }
    assert_eq!(verified, [true, true, true, false, false, true]);
}

#[test]
fn after_a_restart_a_state_that_was_told_counts_and_is_read_again_in_its_turn() {
    let mut paris = rested();
    paris.ticks_at(2_002);
    paris.ends(3, found("one"));
    paris.restarts();
    assert!(is_verified(&paris));
    assert_eq!(reads(&paris.ticks_at(4_000)), None, "all at once would be a storm");
}

#[test]
fn what_failed_here_and_not_there_is_run_again_and_its_success_sets_it_right() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ko("no"));
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    let (on, of) = (resource("counter"), operation("paris.1"));
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 1);
    assert_eq!(paris.engine.can_retry(&on, &of), Ok(()));
    assert_eq!(can_retry_at(&paris), ["paris"]);
    let event = Event::Retried { resource: on.clone(), operation: of.clone() };
    let reaction = paris.reacts(event);
    let effects = paris.commit(reaction);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Run(_))), "{effects:?}");
    paris.ends(2, ok());
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 0);
    assert!(matches!(paris.engine.can_retry(&on, &of), Err(NotFailed::NotHere { .. })));
}

#[test]
fn what_failed_elsewhere_is_told_to_be_possible_there_unless_some_of_its_steps_went_well() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko)));
    assert_eq!(can_retry_at(&paris), ["lyon"]);
    let in_part = Status::Partial { done: 1, of: 2 };
    paris.hears("lyon", lyon.tells_of(says("paris.1", in_part)));
    assert!(can_retry_at(&paris).is_empty());
}

/// Where what failed can be run again, as the resource's standing says.
fn can_retry_at(at: &Site) -> Vec<String> {
    let standings = at.engine.standings(&resource("counter")).unwrap();
    standings.iter().filter(|it| it.can_retry).map(|it| it.site.to_string()).collect()
}

#[test]
fn what_failed_everywhere_is_not_run_again_and_can_be_let_be() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ko("no"));
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko)));
    let (on, of) = (resource("counter"), operation("paris.1"));
    let void = NotFailed::FailedEverywhere(of.clone());
    assert_eq!(paris.engine.can_retry(&on, &of), Err(void));
    assert!(can_retry_at(&paris).is_empty(), "what would be refused is not said to be possible");
    assert_eq!(paris.engine.can_dismiss(&on, &of), Ok(()));
    let event = Event::Dismissed { resource: on.clone(), operation: of.clone() };
    let reaction = paris.reacts(event);
    paris.commit(reaction);
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 0);
    assert!(paris.engine.can_dismiss(&on, &of).is_err());
    paris.restarts();
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 0, "it is on the disk");
}
