//! The simulation itself: it finds nothing wrong with the engine, it finds what is wrong with a
//! broken one, and the same seed is the same run.
use cheops_sim::{Bug, Sometimes, Violation, torture};

/// So few that they take seconds; `make simulate` runs a thousand. Some things are rare: these see all.
const SEEDS: std::ops::RangeInclusive<u64> = 301..=500;

#[test]
fn a_few_seeds_find_nothing_wrong_and_see_everything_that_must_happen() {
    let mut sometimes = Sometimes::default();
    for seed in SEEDS {
        let report = torture(seed, None, false);
        assert_eq!(report.violation, None, "seed {seed}");
        sometimes.join(&report.sometimes);
    }
    assert_eq!(sometimes.missing(), Vec::<&str>::new());
}

#[test]
fn the_same_seed_is_the_same_run_and_another_seed_is_another() {
    let hashes: Vec<String> = (1..=8).map(|seed| torture(seed, None, false).hash).collect();
    for (seed, hash) in (1..).zip(&hashes) {
        assert_eq!(torture(seed, None, true).hash, *hash, "with or without a trace to read");
    }
    let mut different = hashes.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), hashes.len());
}

/// The first seed that finds a bug, and what it found.
fn hunt(bug: Bug, seeds: u64) -> Option<(u64, Violation)> {
    (1..=seeds).find_map(|seed| Some((seed, torture(seed, Some(bug), false).violation?)))
}

/// The bug is found, by a check that is meant for such bugs. The seeds are many times those it
/// took when this was written: that changes with every change to the engine.
#[track_caller]
fn finds(bug: Bug, seeds: u64, by: &[&str]) {
    let (seed, violation) = hunt(bug, seeds).expect("the bug is not found");
    let known = by.iter().any(|what| violation.0.contains(what));
    assert!(known, "seed {seed} finds something else: {violation}");
}

#[test]
fn effects_before_the_commit_are_found_by_ids_used_twice_and_operations_that_are_gone() {
    // One seed in twenty.
    let by = ["go by", "know the same of", "was accepted, and", "apart"];
    finds(Bug::EffectsBeforeCommit, 250, &by);
}

#[test]
fn a_run_whose_intent_was_not_durable_is_found_by_its_running_twice() {
    // Every other seed.
    finds(Bug::NoIntent, 40, &["took effect twice"]);
}

#[test]
fn ordering_by_arrival_is_found_by_entries_and_lists_that_differ_from_site_to_site() {
    // Nearly every seed.
    finds(Bug::OrderByArrival, 20, &["know the same of", "different lists", "apart"]);
}

#[test]
fn taking_what_was_sent_as_known_is_found_by_sites_that_never_agree() {
    // Every other seed.
    finds(Bug::SentMeansKnown, 40, &["did not reach all of its sites", "do not know the same of"]);
}

#[test]
fn ids_of_a_lost_service_that_are_kept_are_found_by_the_strangers_they_lead_to() {
    // One seed in forty.
    finds(Bug::FirstIdStands, 400, &["leads to"]);
}

#[test]
fn children_that_do_not_wait_are_found_by_their_being_refused_for_parents_that_are_there() {
    // One seed in a hundred and fifty.
    finds(Bug::ChildrenDoNotWait, 1_000, &["for want of"]);
}

#[test]
fn taking_anybodys_word_is_found_by_entries_that_their_author_never_wrote() {
    // One seed in ten.
    let by = ["go by", "know the same of", "was accepted, and", "apart"];
    finds(Bug::TakesAnybodysWord, 200, &by);
}

#[test]
fn numbers_that_were_used_up_by_another_are_found_by_a_site_that_is_not_heard_any_more() {
    // One seed in twenty-five.
    finds(Bug::TakesLastNumbers, 300, &["know the same of", "was accepted, and", "go by", "apart"]);
}

#[test]
fn a_stamp_at_the_end_of_time_that_leaves_no_room_is_found_by_sites_that_stop_each_other() {
    // One seed in ten.
    finds(Bug::StampsAsClaimed, 200, &["know the same of", "was accepted, and", "did not reach"]);
}

#[test]
fn a_standing_that_is_not_sent_is_found_by_sites_that_know_the_same_and_say_otherwise() {
    // One seed in five; others find that the entry is not what its author signed.
    let by = "say otherwise how it stands";
    let found = |seed| torture(seed, Some(Bug::StandingNotSent), false).violation;
    assert!((1..=200).filter_map(found).any(|violation| violation.0.contains(by)));
}

#[test]
fn a_state_of_another_list_is_found_by_what_is_told_of_states_that_is_not_so() {
    let by = "says of the states of";
    let found = |seed| torture(seed, Some(Bug::StateOfAnotherList), false).violation;
    assert!((1..=100).filter_map(found).any(|violation| violation.0.contains(by)));
}

#[test]
fn an_undo_that_one_site_skips_is_found_by_lists_that_differ() {
    let by = ["different lists", "know the same of", "apart"];
    let found = |seed| torture(seed, Some(Bug::UndoSkipped), false).violation;
    let found = (1..=200).filter_map(found).find(|it| by.iter().any(|by| it.0.contains(by)));
    assert!(found.is_some());
}

#[test]
fn a_state_that_stands_as_soon_as_one_site_keeps_it_is_found_by_lists_that_differ() {
    let by = ["different lists", "know the same of", "apart"];
    let found = |seed| torture(seed, Some(Bug::StateOfOneSite), false).violation;
    let found = (1..=300).filter_map(found).find(|it| by.iter().any(|by| it.0.contains(by)));
    assert!(found.is_some());
}

#[test]
fn evidence_that_is_kept_to_oneself_is_found_by_sites_that_do_not_set_the_same_apart() {
    let by = "do not set the same apart";
    let found = |seed| torture(seed, Some(Bug::EvidenceNotSent), false).violation;
    assert!((1..=200).filter_map(found).any(|violation| violation.0.contains(by)));
}
