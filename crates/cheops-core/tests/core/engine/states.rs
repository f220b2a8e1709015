//! Reading the state: when, how often, what is made of it; and what can be done about a failure.

use cheops_core::engine::{
    Agreement, Effect, NotFailed, Record, StateProof, Submission, Task, Unproven,
};
use cheops_core::model::{Entry, Fingerprint, Outcome, Status};
use expect_test::expect;

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

fn unproven(site: &Site) -> Option<Unproven> {
    site.engine.summary(&resource("counter")).unwrap().unproven
}

#[test]
fn a_state_that_cannot_be_read_any_more_is_verified_no_more_and_that_is_told_once() {
    let mut paris = rested();
    paris.ticks_at(2_002);
    let not_yet = Unproven::NotYet { awaited: sites("paris") };
    assert_eq!(unproven(&paris), Some(not_yet));
    paris.ends(3, found("one"));
    assert_eq!((is_verified(&paris), unproven(&paris)), (true, None));
    let mut at_ms = 602_003;
    for (job, told) in [(4, true), (5, false), (6, false)] {
        assert_eq!(reads(&paris.ticks_at(at_ms)), Some(job));
        paris.so_far();
        paris.ends(job, ko(&format!("no such file, try {job}")));
        let story = paris.story();
        assert_eq!(story.contains("says"), told, "{story}");
        // It takes as long as it takes to come round until it is worth somebody's time.
        let is_due = job == 5;
        assert_eq!(story.contains("note Warning"), is_due, "{story}");
        let Some(Unproven::Unread { site, why, .. }) = unproven(&paris) else { panic!("{story}") };
        assert_eq!((site.as_str(), why.contains("try 4")), ("paris", true), "{why}");
        at_ms += 600_100;
    }
    let warning = paris.engine.summary(&resource("counter")).unwrap().warning.unwrap();
    assert_eq!(warning.matters_from_ms, warning.since_ms + 600_000);
    paris.restarts();
    assert!(!is_verified(&paris), "it is on the disk");
    assert!(matches!(unproven(&paris), Some(Unproven::Unread { .. })));
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
    paris.so_far();
    paris.is_to_retry("paris.1");
    paris.ends(2, ok());
    paris.told(expect![[r#"
        > retry paris.1
          + ran []
          + begin run paris.1
          job 2: run paris.1
        > job 2 ends: exit 0
          + end run paris.1: Ok
          + paris.3 says OK of paris.1
          note Applied(counter, paris.1)
          tell lyon: [paris.3 says OK of paris.1] knows lyon.1 paris.3
    "#]]);
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
    paris.so_far();
    paris.is_to_dismiss("paris.1");
    paris.told(expect![[r#"
        > let paris.1 be
          + paris.3 says KO of paris.1: no
          tell lyon: [paris.3 says KO of paris.1: no] knows lyon.1 paris.3
    "#]]);
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 0);
    assert!(paris.engine.can_dismiss(&on, &of).is_err());
    paris.restarts();
    assert_eq!(paris.engine.summary(&on).unwrap().errors, 0, "it is on the disk");
}

#[test]
fn asking_again_for_what_is_done_or_was_let_be_writes_nothing_and_runs_nothing() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.so_far();
    paris.is_to_retry("paris.1");
    paris.is_to_dismiss("paris.1");
    paris.is_to_retry("lyon.7");
    paris.told(expect![[r#"
        > retry paris.1
        > let paris.1 be
        > retry lyon.7
    "#]]);
}

/// What a site last said that it read.
fn said_to_be_read(site: &Site) -> Entry {
    let mut records = site.disk.0.iter().rev();
    let said = records.find_map(|record| match record {
        Record::Entry(_, entry) if !entry.extra.is_empty() => Some(Entry::clone(entry)),
        _ => None,
    });
    said.unwrap()
}

/// The same with another state in the place of that one.
fn with_state(mut said: Entry, read: &str, other: &str) -> Entry {
    let text = String::from_utf8(said.extra[0].value.clone()).unwrap();
    let of = |state: &str| Fingerprint::of(state.as_bytes()).to_string();
    said.extra[0].value = text.replace(&of(read), &of(other)).into_bytes();
    said
}

#[test]
fn sites_that_read_different_states_of_one_list_are_told_of_once_until_they_agree_again() {
    let mut paris = paris();
    let at_both = Submission { sites: Some(sites("lyon paris")), ..asks_with_state() };
    paris.at(1_000).submits(at_both);
    paris.ends(1, ok());
    paris.ends(2, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    let reading = reads(&paris.ticks_at(2_500)).unwrap();
    paris.ends(reading, found("one"));
    lyon.learns("paris.3");
    let (read, mut differed) = (said_to_be_read(&paris), false);
    for state in ["two", "three", "one", "two"] {
        paris.so_far();
        let as_read = with_state(read.clone(), "one", state);
        let said = lyon.tells_of(says("paris.1", Status::Ok).saying_as(&as_read));
        paris.hears("lyon", said);
        let story = paris.story();
        let is_told = story.lines().any(|line| line.trim() == "note Differs(counter)");
        let differs = matches!(proof(&paris).agreement, Agreement::Differs { .. });
        assert_eq!(differs, state != "one", "{state}: {story}");
        assert_eq!(is_told, differs && !differed, "{state}: {story}");
        differed = differs;
    }
    // It was said: an engine that begins anew finds the same, and does not say it again.
    paris.so_far();
    paris.restarts();
    assert!(matches!(proof(&paris).agreement, Agreement::Differs { .. }));
    assert!(!paris.story().contains("Differs"));
}

#[test]
fn what_another_site_cannot_read_is_known_here_and_stays_so_while_operations_come() {
    let mut paris = paris();
    let at_both = Submission { sites: Some(sites("lyon paris")), ..asks_with_state() };
    paris.at(1_000).submits(at_both);
    paris.ends(1, ok());
    paris.ends(2, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    let reading = reads(&paris.ticks_at(2_500)).unwrap();
    paris.ends(reading, found("one"));
    lyon.learns("paris.3");
    let (read, state) = (said_to_be_read(&paris), Fingerprint::of(b"one").to_string());
    let mut says_beside = |text: &str| {
        let mut beside = read.clone();
        let said = String::from_utf8(beside.extra[0].value.clone()).unwrap();
        beside.extra[0].value = said.replace(&state, text).into_bytes();
        lyon.tells_of(says("paris.1", Status::Ok).saying_as(&beside))
    };
    paris.hears("lyon", says_beside(&state));
    assert!(is_verified(&paris));
    paris.hears("lyon", says_beside("unread: no such file"));
    assert_eq!(proof(&paris).agreement, Agreement::Unproven);
    let unread = |site: &Site| match proof(site).unproven {
        Some(Unproven::Unread { site, why, .. }) => Some((site.to_string(), why)),
        _ => None,
    };
    let at_lyon = Some(("lyon".to_owned(), "no such file".to_owned()));
    assert_eq!(unread(&paris), at_lyon);
    // Another operation says nothing of it.
    paris.submits(more());
    lyon.learns("paris.4");
    paris.hears("lyon", lyon.tells_of(says("paris.4", Status::Ok)));
    assert_eq!(unread(&paris), at_lyon);
}

#[test]
fn what_is_written_over_since_a_replacing_operation_failed_here_is_told_with_its_failure() {
    let rules = r#"{"ResolutionMatrix": [{"Before": "set", "After": "set", "Result": "take-one"}],
                    "State": {"Read": "look", "Write": "put"}}"#;
    let set = || Submission { sites: None, ..asks_for("set") };
    let mut paris = paris();
    let job = |effects: &[Effect]| {
        let mut jobs = effects.iter().filter_map(|effect| match effect {
            Effect::Run(job) => Some((job.id.0, job.task.clone())),
            _ => None,
        });
        jobs.next_back()
    };
    let first = Submission {
        config: Some(config(rules)),
        sites: Some(sites("lyon paris")),
        ..asks_for("set")
    };
    paris.submits(first);
    paris.ends(1, ok());
    paris.ends(2, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    let (mut next, task) = job(&paris.submits(set())).unwrap();
    if matches!(task, Task::Snapshot { .. }) {
        next = job(&paris.ends(next, ok())).unwrap().0;
    }
    let listed = paris.engine.list(&resource("counter")).unwrap();
    let failed = listed.ids().next_back().unwrap().clone();
    let (restoring, task) = job(&paris.ends(next, ko("no room"))).unwrap();
    let failed = failed.to_string().replace("-1.", ".");
    paris.hears("lyon", lyon.tells_of(says(&failed, Status::Ok)));
    let Task::Restore { shown_by, .. } = task else { panic!("{task:?}") };
    assert_eq!(shown_by.as_deref(), Some("look"));
    paris.ends(restoring, Outcome::success("file\nhello\n"));
    let view = paris.engine.operation_view(&resource("counter"), &operation(&failed)).unwrap();
    let own = view.replies.iter().find(|reply| *reply.site() == site("paris")).unwrap();
    let text = own.outcome.as_ref().unwrap().text();
    assert_eq!(own.status, Status::Ko);
    let told = &paris.engine.summary(&resource("counter")).unwrap().troubled[0];
    assert_eq!(told.written_over_at, [site("paris")]);
    assert!(text.starts_with("no room\n") && text.ends_with("file\nhello\n"), "{text}");
}
