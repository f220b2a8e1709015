//! Authors that sign two things in one place: how it is found, told, and what still counts.

use std::sync::Arc;

use cheops_core::engine::{Declared, Event, Message, Submission};
use cheops_core::model::{Entry, Evidence, KeyId, Proof, Status, resource_hash};
use expect_test::expect;

use super::fixture::*;

/// Lyon wrote on `counter`, which three sites hold: one thing, and then another in its place.
fn two_faced() -> (Other, Arc<Entry>, Other, Arc<Entry>) {
    let mut one = other("lyon");
    one.writes(declared());
    let mut another = one.clone();
    let told_us = one.writes(op("inc").on("lyon.1"));
    let told_them = another.writes(op("inc").on("lyon.1").at_ms(1_000_007));
    (one, told_us, another, told_them)
}

fn first() -> Arc<Entry> {
    other("lyon").writes(declared())
}

fn declared() -> Unwritten {
    op("inc").declaring("lyon nantes paris", Some(matrix("take-both")))
}

fn signed(entry: &Entry) -> (cheops_core::model::EntryHeader, Proof) {
    (entry.header(&resource("counter")), entry.proof().unwrap().clone())
}

fn evidence(one: &Entry, other: &Entry) -> Message {
    Message::Evidence(Box::new(Evidence { one: signed(one), other: signed(other) }))
}

/// Paris took what lyon told it first.
fn believing() -> Site {
    let mut paris = paris();
    let (lyon, told_us, ..) = two_faced();
    paris.hears("nantes", beat());
    paris.hears("lyon", lyon.tells([first(), told_us]));
    paris.ends(1, ok());
    paris.ends(2, ok());
    paris.so_far();
    paris
}

#[test]
fn another_entry_in_the_place_of_one_that_is_held_shows_the_lie() {
    let mut paris = believing();
    let (.., another, told_them) = two_faced();
    paris.hears(
        "nantes",
        other("nantes").tells([told_them]).changed(|it| {
            it.knows = another.knows.clone();
        }),
    );
    paris.shows("counter");
    paris.told(expect![[r#"
        > nantes: [lyon.2 inc on lyon.1] knows lyon.2
          + evidence against lyon
          + paris.3 says OK of lyon.1
          note SetApart(lyon, 6c6c6c6c6c6c6c6c)
          hear nothing more from lyon (key l)
          tell nantes: evidence against lyon
          note Diverged(counter, LeftOut { ran: lyon.2 })
          tell lyon: [paris.3 says OK of lyon.1] knows lyon.1 paris.3
          tell nantes: [paris.3 says OK of lyon.1] knows lyon.1 paris.3
        = list [lyon.1], Diverged { why: LeftOut { ran: lyon.2 } }, Idle
            lyon.1 paris=OK
    "#]]);
}

#[test]
fn a_lie_is_found_by_each_way_in_which_two_entries_contradict_each_other() {
    let mut rows = String::new();
    let (mut lyon, told_us, mut another, told_them) = two_faced();
    // The next one names another past than the one that is held.
    let disowns = another.writes(op("inc").on("lyon.2"));
    // A later number, with the same entry before it.
    let mut third = other("lyon");
    third.writes(declared());
    let jumps = third.writes(op("inc").on("lyon.1").numbered(5, 1));
    // One that says nothing was before it where one is held, and one in between of the other branch.
    let mut fourth = third.clone();
    let skips = fourth.writes(op("inc").numbered(9, 0));
    let honest = lyon.writes(op("inc").on("lyon.2"));
    for (what, entry) in [
        ("the same number", told_them),
        ("the same one before", jumps),
        ("another hash of the one before", disowns),
        ("a number left out that is held", skips),
        ("nothing wrong", honest),
        ("the same again", told_us),
    ] {
        let mut paris = believing();
        paris.hears("nantes", other("nantes").tells([entry]));
        let found = paris.story().contains("note SetApart(lyon");
        rows += &format!("{what}: {}\n", if found { "a lie" } else { "no lie" });
    }
    expect![[r#"
        the same number: a lie
        the same one before: a lie
        another hash of the one before: a lie
        a number left out that is held: a lie
        nothing wrong: no lie
        the same again: no lie
    "#]]
    .assert_eq(&flush_left(&rows));
}

#[test]
fn evidence_is_believed_once_passed_on_once_and_outlives_a_restart() {
    let (_, told_us, _, told_them) = two_faced();
    let mut paris = believing();
    paris.hears("nantes", evidence(&told_us, &told_them));
    paris.hears("nantes", evidence(&told_them, &told_us));
    paris.restarts();
    paris.shows("counter");
    paris.hears("nantes", beat());
    paris.hears("nantes", beat().knowing_of_liar("lyon"));
    paris.told(expect![[r#"
        > nantes: evidence against lyon
          + evidence against lyon
          + paris.3 says OK of lyon.1
          note SetApart(lyon, 6c6c6c6c6c6c6c6c)
          hear nothing more from lyon (key l)
          tell nantes: evidence against lyon
          note Diverged(counter, LeftOut { ran: lyon.2 })
          tell lyon: [paris.3 says OK of lyon.1] knows lyon.1 paris.3
          tell nantes: [paris.3 says OK of lyon.1] knows lyon.1 paris.3
        > nantes: evidence against lyon
        > restart
          hear nothing more from lyon (key l)
          note Diverged(counter, LeftOut { ran: lyon.2 })
        = list [lyon.1], Diverged { why: LeftOut { ran: lyon.2 } }, Idle
            lyon.1 paris=OK
        > nantes: alive at 0
          note SiteUp(nantes)
          tell nantes: evidence against lyon
          tell lyon: alive at 9 not hearing lyon set apart: l
          tell nantes: alive at 9, echo of 0 held for 0 not hearing lyon set apart: l
          tell nantes: evidence against lyon
          tell nantes: knows lyon.1 paris.3, and you?
        > nantes: alive at 0 set apart: l
    "#]]);
    let view = paris.engine.sites();
    assert_eq!(view[0].set_apart, [KeyId([b'l'; 32])]);
}

#[test]
fn evidence_that_shows_nothing_changes_nothing() {
    let mut lyon = other("lyon");
    let one = lyon.writes(op("inc").declaring("lyon paris", None));
    let next = lyon.writes(op("inc").on("lyon.1"));
    let of_nantes = other("nantes").writes(op("inc").declaring("nantes paris", None));
    let vouched = other("lyon").writes(op("set").vouched_by("nantes"));
    let signed_with = |key: u8| {
        let it = Arc::clone(&next);
        let (header, proof) = signed(&it);
        (header, Proof { key: KeyId([key; 32]), ..proof })
    };
    let mut paris = paris();
    paris.hears("nantes", beat());
    paris.so_far();
    for (what, message) in [
        ("one after the other", evidence(&one, &next)),
        ("the same twice", evidence(&one, &one)),
        ("of two authors", evidence(&one, &of_nantes)),
        ("of which one is another's word", evidence(&one, &vouched)),
    ] {
        paris.hears("nantes", message);
        assert!(!paris.story().contains('+'), "{what}");
    }
    let two_keys = Evidence { one: signed(&one), other: signed_with(9) };
    let message = Message::Evidence(Box::new(two_keys));
    let reaction = paris.reacts(Event::Heard { from: site("nantes"), message });
    assert_eq!(reaction.records(), 0, "with two keys");
}

#[test]
fn a_fork_over_an_old_and_a_new_key_of_one_site_is_a_lie_and_both_are_set_apart() {
    let (_, told_us, _, told_them) = two_faced();
    let renewed = KeyId([b'n'; 32]);
    let (header, proof) = signed(&told_them);
    let with_new_key = (header, Proof { key: renewed, ..proof });
    let shown = Evidence { one: signed(&told_us), other: with_new_key };
    let mut paris = believing();
    paris.hears("nantes", Message::Evidence(Box::new(shown)));
    assert_eq!(paris.engine.sites()[0].set_apart, [KeyId([b'l'; 32]), renewed]);
    paris.restarts();
    assert_eq!(paris.engine.sites()[0].set_apart, [KeyId([b'l'; 32]), renewed]);
    let view = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(view.list, [operation("lyon.1")]);
}

#[test]
fn who_holds_a_key_that_is_set_apart_cannot_have_the_new_one_set_apart_with_it() {
    let (_, told_us, _, told_them) = two_faced();
    let mut paris = believing();
    paris.hears("nantes", evidence(&told_us, &told_them));
    let mut thief = other("lyon");
    let stolen = thief.writes(op("set"));
    let (header, proof) = signed(&first());
    let renewed = (header, Proof { key: KeyId([b'n'; 32]), ..proof });
    let shown = Evidence { one: signed(&stolen), other: renewed };
    paris.hears("nantes", Message::Evidence(Box::new(shown)));
    assert_eq!(paris.engine.sites()[0].set_apart, [KeyId([b'l'; 32])]);
    // What is told in two ways counts nowhere all the same.
    assert!(paris.engine.resource(&resource("counter")).unwrap().list.is_empty());
}

#[test]
fn who_was_found_out_after_its_word_of_what_was_forgotten_counts_no_more_in_what_comes_next() {
    let (_, told_us, _, told_them) = two_faced();
    let mut settings = settings("lyon nantes");
    settings.me = author("paris-2");
    let mut paris = start(settings);
    let mut lyon = other("lyon");
    lyon.learns("lyon.9");
    let declared = Declared { sites: sites("lyon nantes paris"), config: None, id_map: None };
    let claim = lyon.tells([]).pruned("lyon.9");
    paris.hears("lyon", claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared)));
    paris.hears("nantes", evidence(&told_us, &told_them));
    let mut nantes = other("nantes");
    let on_a_lie = nantes.writes(op("inc").on("lyon.2"));
    paris.hears("nantes", nantes.tells([first(), on_a_lie]));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.list, [operation("lyon.1"), operation("nantes.1")]);
}

#[test]
fn one_number_on_two_resources_sets_its_author_apart_and_disowns_nothing() {
    let mut paris = believing();
    let here = first();
    let there = other("lyon").on("other").writes(op("inc").declaring("lyon nantes", None));
    let there_signed = (there.header(&resource("other")), there.proof().unwrap().clone());
    assert_ne!(there_signed.0.resource, resource_hash(&resource("counter")));
    let shown = Evidence { one: signed(&here), other: there_signed };
    paris.hears("nantes", Message::Evidence(Box::new(shown)));
    paris.shows("counter").told(expect![[r#"
        > nantes: evidence against lyon
          + evidence against lyon
          note SetApart(lyon, 6c6c6c6c6c6c6c6c)
          hear nothing more from lyon (key l)
          tell nantes: evidence against lyon
        = list [lyon.1 lyon.2], InStep, Idle
            lyon.1 paris=OK
            lyon.2 paris=OK
    "#]]);
}

#[test]
fn evidence_from_a_stranger_is_not_listened_to() {
    let (_, told_us, _, told_them) = two_faced();
    let mut paris = believing();
    paris.hears("atlantis", evidence(&told_us, &told_them));
    paris.told(expect![[r#"
        > atlantis: evidence against lyon
          note Malformed(atlantis, NotShared)
    "#]]);
}

#[test]
fn what_a_liar_wrote_after_the_fork_is_not_taken_and_who_sends_it_is_shown_why() {
    let (mut lyon, told_us, _, told_them) = two_faced();
    let mut paris = believing();
    paris.hears("nantes", evidence(&told_us, &told_them));
    paris.so_far();
    let later = lyon.writes(op("inc").on("lyon.2"));
    paris.hears("nantes", other("nantes").tells([told_them, later]));
    paris.told(expect![[r#"
        > nantes: [lyon.2 inc on lyon.1; lyon.3 inc on lyon.2] knows nothing
          tell nantes: evidence against lyon
          tell nantes: evidence against lyon
    "#]]);
}

#[test]
fn what_others_did_on_top_of_a_lie_counts_without_it() {
    let (_, told_us, _, told_them) = two_faced();
    let mut paris = believing();
    let mut nantes = other("nantes");
    nantes.learns("lyon.2");
    paris.hears("nantes", nantes.tells_of(op("inc").on("lyon.2")));
    paris.submits(Submission { sites: None, ..asks_for("inc") });
    paris.hears("nantes", evidence(&told_us, &told_them));
    paris.so_far();
    paris.shows("counter");
    // Also what comes only now.
    paris.hears("nantes", nantes.tells_of(op("inc").on("lyon.2 nantes.1")));
    paris.hears("nantes", nantes.tells_of(says("lyon.2", Status::Ok)));
    let story = paris.story();
    let kept = story.lines().filter(|line| !line.contains("tell"));
    expect![[r#"
        = list [lyon.1 nantes.1 paris.3], InStep, Running
            lyon.1 paris=OK
            nantes.1
            paris.3
        > nantes: [nantes.2 inc on lyon.2 nantes.1] knows lyon.2 nantes.2
          + nantes.2 inc on lyon.2 nantes.1
        > nantes: [nantes.3 says OK of lyon.2] knows lyon.2 nantes.3
          + nantes.3 says OK of lyon.2
    "#]]
    .assert_eq(&flush_left(&(kept.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn a_lie_that_reaches_further_back_leaves_less_and_a_later_one_changes_nothing() {
    let (mut lyon, ..) = two_faced();
    let mut another = lyon.clone();
    let third =
        evidence(&lyon.writes(op("inc").on("lyon.2")), &another.writes(op("set").on("lyon.2")));
    let from_the_first = evidence(&first(), &other("lyon").writes(op("set")));
    let mut paris = believing();
    paris.hears("nantes", third.clone());
    paris.shows("counter");
    paris.hears("nantes", from_the_first);
    paris.shows("counter");
    paris.hears("nantes", third);
    let story = paris.story();
    let kept = story.lines().filter(|line| !line.contains("tell"));
    expect![[r#"
        > nantes: evidence against lyon
          + evidence against lyon
          note SetApart(lyon, 6c6c6c6c6c6c6c6c)
          hear nothing more from lyon (key l)
        = list [lyon.1 lyon.2], InStep, Idle
            lyon.1 paris=OK
            lyon.2 paris=OK
        > nantes: evidence against lyon
          + evidence against lyon
          note Diverged(counter, LeftOut { ran: lyon.1 })
        = list [], Diverged { why: LeftOut { ran: lyon.1 } }, Idle
        > nantes: evidence against lyon
    "#]]
    .assert_eq(&flush_left(&(kept.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn sites_that_know_different_entries_under_one_name_show_each_other_theirs() {
    let mut paris = believing();
    let (.., told_them) = two_faced();
    let mut nantes = other("nantes");
    nantes.learns("lyon.2");
    // As many as there are here, and not the same: nantes is shown ours, and finds the lie.
    let news = nantes.tells([]).chained(&[&told_them]);
    paris.hears("nantes", news.clone());
    paris.told(expect![[r#"
        > nantes: knows lyon.2
          tell nantes: [lyon.2 inc on lyon.1] knows lyon.2 paris.2
    "#]]);
    // Not for ever, should it never answer.
    for _ in 0..20 {
        paris.hears("nantes", news.clone());
    }
    assert_eq!(paris.story().matches("tell nantes: [lyon.2").count(), 15);
}

/// Lyon's branch for nantes: what it wrote after `lyon.1` is `lyon.4`, and after that `lyon.7`.
fn for_nantes() -> [Arc<Entry>; 2] {
    let mut lyon = other("lyon");
    lyon.writes(declared());
    let four = lyon.writes(op("inc").on("lyon.1").numbered(4, 1));
    let seven = lyon.writes(op("inc").on("lyon.4").numbered(7, 4));
    [four, seven]
}

/// For paris it wrote `lyon.6` after `lyon.1`.
fn told_six() -> Site {
    let mut lyon = other("lyon");
    let first = lyon.writes(declared());
    let six = lyon.writes(op("inc").on("lyon.1").numbered(6, 1));
    let mut paris = paris();
    paris.hears("nantes", beat());
    paris.hears("lyon", lyon.tells([first, six]));
    paris.so_far();
    paris
}

#[test]
fn a_branch_under_other_numbers_is_not_taken_for_what_was_written_in_between() {
    let mut paris = told_six();
    let [_, seven] = for_nantes();
    let mut nantes = other("nantes");
    nantes.learns("lyon.7");
    paris.hears("nantes", nantes.tells([seven]));
    paris.shows("counter").told(expect![[r#"
        > nantes: [lyon.7 inc on lyon.4] knows lyon.7
          + nantes knows lyon.7
          + evidence against lyon
          note SetApart(lyon, 6c6c6c6c6c6c6c6c)
          hear nothing more from lyon (key l)
          tell nantes: evidence against lyon
        = list [lyon.1], InStep, Running
            lyon.1
    "#]]);
}

#[test]
fn who_knows_a_number_that_was_left_out_here_is_shown_what_stands_over_it() {
    let mut paris = told_six();
    let [four, _] = for_nantes();
    let mut nantes = other("nantes");
    nantes.learns("lyon.4");
    paris.hears("nantes", nantes.tells([]).chained(&[&four]));
    paris.told(expect![[r#"
        > nantes: knows lyon.4
          tell nantes: [lyon.6 inc on lyon.1] knows lyon.6
    "#]]);
}

#[test]
fn who_stays_behind_is_shown_what_does_not_count_with_what_it_is_asked() {
    let mut paris = believing();
    let (.., told_them) = two_faced();
    paris.hears("lyon", other("lyon").tells([told_them]));
    paris.so_far();
    let due = paris.now_ms + 20_000;
    paris.hears("nantes", beat());
    paris.lives_until(due);
    let story = paris.story();
    let told = story.lines().filter(|line| line.contains("tell nantes"));
    let told = told.filter(|line| line.contains("evidence") || line.contains("and you?"));
    let told: Vec<_> = told.take(4).collect();
    expect![[r#"
        tell nantes: evidence against lyon
        tell nantes: evidence against lyon
        tell nantes: knows lyon.1 paris.3, and you?
        tell nantes: evidence against lyon
    "#]]
    .assert_eq(&flush_left(&(told.join("\n") + "\n")));
}

#[test]
fn who_may_not_have_been_shown_what_does_not_count_is_shown_it_until_it_says_no_more_that_it_knows_it()
 {
    let mut paris = believing();
    let (.., told_them) = two_faced();
    paris.hears("lyon", other("lyon").tells([told_them]));
    let mut shown_to_who_says = |knows: &str| {
        paris.hears("nantes", other("nantes").tells([]).knowing(knows));
        paris.so_far();
        let due = paris.now_ms + 20_000;
        // It has set lyon apart itself, for something else.
        paris.hears("nantes", beat().knowing_of_liar("lyon"));
        paris.lives_until(due);
        paris.story().matches("tell nantes: evidence").count()
    };
    // It knows all that paris does, and what fell besides.
    assert!(shown_to_who_says("lyon.2 paris.3") > 0);
    assert!(shown_to_who_says("lyon.2 paris.3") > 0, "the first may have got lost");
    assert_eq!(shown_to_who_says("lyon.1 paris.3"), 0);
}

#[test]
fn two_of_this_sites_own_entries_are_said_and_nothing_of_its_own_is_dropped() {
    let mut paris = paris();
    paris.hears("nantes", beat());
    paris.submits(Submission { sites: Some(sites("nantes paris")), ..asks_for("inc") });
    let twin = other("paris").writes(op("set").declaring("nantes paris", None));
    paris.so_far();
    paris.hears("nantes", other("nantes").tells([twin]));
    paris.shows("counter").told(expect![[r#"
        > nantes: [paris.1 set at nantes paris] knows nothing
          + evidence against paris
          note SetApart(paris, 7070707070707070)
          hear nothing more from paris (key p)
          tell nantes: evidence against paris
        = list [paris.1], InStep, Running
            paris.1
    "#]]);
}

/// Lyon made `counter` for all three sites by a lie; paris makes it anew for itself alone.
fn made_anew_by_paris() -> Site {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let (one, another) = (lyon.writes(declared()), other("lyon").writes(op("set")));
    paris.hears("nantes", beat());
    paris.hears("lyon", lyon.tells([one.clone()]));
    paris.ends(1, ok());
    paris.hears("nantes", evidence(&one, &another));
    paris.so_far();
    paris.shows("counter");
    paris.submits(Submission { sites: None, ..asks_for("inc") });
    paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
    paris
}

#[test]
fn a_resource_that_only_a_liar_declared_is_anybodys_to_make_anew() {
    let story = made_anew_by_paris().story();
    let kept = story.lines().filter(|line| !line.contains("tell"));
    expect![[r#"
        = list [], Diverged { why: LeftOut { ran: lyon.1 } }, Idle
        > 1: counter inc
          answer 1: refused: resource `counter` is not known here; a new resource needs its sites
        > 2: counter inc
          + paris.2 inc at paris
          + begin run paris.2
          answer 2: accepted as paris.2 for paris
          job 2: run paris.2
    "#]]
    .assert_eq(&flush_left(&(kept.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn a_number_that_is_used_on_two_resources_shows_the_lie_and_takes_nothing_away() {
    let mut paris = paris();
    paris.hears("lyon", other("lyon").tells_of(declared()));
    paris.so_far();
    // Its first entry was another one.
    paris.hears("lyon", other("lyon").on("album").tells_of(declared()));
    let story = paris.story();
    assert!(story.contains("+ evidence against lyon"), "{story}");
    assert!(story.contains("hear nothing more from lyon"), "{story}");
    for id in ["counter", "album"] {
        let view = paris.engine.resource(&resource(id)).unwrap();
        assert_eq!(view.list, [operation("lyon.1")], "all sites of {id} have it, or will");
    }
    // The next one of it comes by way of somebody who has not heard of that.
    let mut lyon = other("lyon").on("album");
    lyon.writes(declared());
    let next = lyon.writes(op("inc").on("lyon.1"));
    paris.hears("nantes", other("nantes").on("album").tells([next]).knowing("lyon.2"));
    assert!(paris.engine.knows(&resource("album"), &operation("lyon.2")));
}

#[test]
fn numbers_of_one_author_on_many_resources_are_no_lie_and_nor_is_what_is_told_again() {
    let mut paris = paris();
    for round in 0..2 {
        for n in 1..=1_100 {
            let mut lyon = other("lyon").on(&format!("r{n}"));
            let news = lyon.tells_of(declared().numbered(n, 0));
            if n % 100 == round {
                paris.hears("lyon", news);
            }
        }
    }
    assert!(!paris.story().contains("evidence"));
}

#[test]
fn who_vouches_for_two_entries_of_its_own_in_one_place_is_shown_to_lie() {
    let mut paris = paris();
    let mut one = other("lyon");
    one.writes(declared());
    let mut another = one.clone();
    let told_us = one.writes(op("inc").on("lyon.1").vouched_by("lyon"));
    let told_them = another.writes(op("inc").on("lyon.1").at_ms(1_000_007).vouched_by("lyon"));
    let made = other("lyon").writes(declared().vouched_by("lyon"));
    paris.hears("lyon", one.tells([made, told_us]));
    assert!(paris.engine.knows(&resource("counter"), &operation("lyon.2")));
    paris.so_far();
    paris.hears("nantes", other("nantes").tells([told_them]).knowing("lyon.2"));
    let story = paris.story();
    assert!(story.contains("SetApart(lyon"), "{story}");
}
