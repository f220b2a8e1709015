//! Entries heard from other sites: in order, early, late, twice, and such as cannot be.

use cheops_core::engine::Malformed;
use cheops_core::model::{Stamp, Status};
use expect_test::expect;

use super::fixture::*;

fn declared(kind: &str) -> Said {
    op(kind).declaring("lyon paris", None)
}

#[test]
fn a_resource_that_another_site_made_is_kept_run_and_confirmed() {
    let mut paris = paris();
    paris.hears("lyon", other("lyon").tells_of(declared("inc")));
    paris.ends(1, ok());
    paris.lives_until(100);
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
          + lyon is in life 1
          + lyon.1 inc at lyon paris
          + begin run lyon.1
          + lyon knows lyon.1
          note SiteUp(lyon)
          job 1: run lyon.1
          tell lyon: alive at 2
        > job 1 ends: exit 0
          + end run lyon.1: Ok
          + paris.1 says OK of lyon.1
          note Applied(counter, lyon.1)
          tell lyon: [paris.1 says OK of lyon.1] knows lyon.1 paris.1
        > 52 ms
        > 100 ms
    "#]]);
}

#[test]
fn what_is_heard_twice_is_taken_once() {
    let mut paris = paris();
    let news = other("lyon").tells_of(declared("inc"));
    paris.hears("lyon", news.clone());
    paris.so_far();
    paris.hears("lyon", news);
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
    "#]]);
}

#[test]
fn what_comes_early_waits_for_what_it_rests_on() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let first = lyon.writes(declared("inc"));
    let second = lyon.writes(op("inc").on("lyon.1").numbered(4, 1));
    let third = lyon.writes(op("inc").on("lyon.4").numbered(7, 4));
    paris.hears("lyon", lyon.tells([first]));
    paris.so_far();
    let waits = |paris: &Site| paris.engine.awaits_past(&resource("counter"), &operation("lyon.7"));
    paris.hears("lyon", lyon.tells([third]));
    assert!(waits(&paris));
    paris.hears("lyon", lyon.tells([second]));
    assert!(!waits(&paris));
    paris.told(expect![[r#"
        > lyon: [lyon.7 inc on lyon.4] knows lyon.7
        > lyon: [lyon.4 inc on lyon.1] knows lyon.7
          + lyon.4 inc on lyon.1
          + lyon.7 inc on lyon.4
    "#]]);
}

#[test]
fn a_reply_waits_for_the_operation_it_is_about() {
    let mut paris = paris();
    let (mut lyon, mut nantes) = (other("lyon"), other("nantes"));
    paris.hears("lyon", lyon.tells_of(op("inc").declaring("lyon nantes paris", None)));
    paris.so_far();
    let later = lyon.writes(op("inc").on("lyon.1"));
    nantes.learns("lyon.2");
    paris.hears("nantes", nantes.tells_of(says("lyon.2", Status::Ok)));
    paris.hears("lyon", lyon.tells([later]));
    paris.told(expect![[r#"
        > nantes: [nantes.1 says OK of lyon.2] knows lyon.2 nantes.1
          + nantes is in life 1
          + nantes knows lyon.2 nantes.1
          note SiteUp(nantes)
          tell nantes: alive at 3
        > lyon: [lyon.2 inc on lyon.1] knows lyon.2
          + lyon.2 inc on lyon.1
          + nantes.1 says OK of lyon.2
    "#]]);
}

#[test]
fn no_more_waits_than_there_is_room_for_and_the_rest_is_sent_again_by_who_asks() {
    let mut settings = settings("lyon");
    settings.waiting_entries = 1;
    let mut paris = start(settings);
    let mut lyon = other("lyon");
    let entries: Vec<_> = [declared("inc"), op("inc"), op("inc"), op("inc")]
        .into_iter()
        .map(|said| lyon.writes(said))
        .collect();
    paris.hears("lyon", lyon.tells(entries[..1].to_vec()).knowing("lyon.1"));
    paris.hears("lyon", lyon.tells(entries[2..].to_vec()));
    let waits = |n: &str| paris.engine.awaits_past(&resource("counter"), &operation(n));
    assert!(waits("lyon.3") && !waits("lyon.4"));
    paris.so_far();
    paris.hears("lyon", lyon.tells(entries[1..2].to_vec()));
    paris.told(expect![[r#"
        > lyon: [lyon.2 inc] knows lyon.4
          + lyon.2 inc
          + lyon.3 inc
    "#]]);
}

#[test]
fn a_resource_whose_declaration_cannot_be_taken_yet_is_still_unknown() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let first = lyon.writes(declared("inc"));
    let second = lyon.writes(declared("inc").on("lyon.1"));
    // The first operation got lost.
    paris.hears("lyon", lyon.tells([second.clone()]));
    paris.shows("counter");
    paris.hears("lyon", lyon.asks());
    paris.hears("lyon", lyon.tells([first, second]));
    paris.told(expect![[r#"
        > lyon: [lyon.2 inc on lyon.1 at lyon paris] knows lyon.2
          + lyon is in life 1
          note SiteUp(lyon)
          tell lyon: alive at 2
        = counter: not known
        > lyon: knows lyon.2, and you?
          tell lyon: knows nothing
        > lyon: [lyon.1 inc at lyon paris; lyon.2 inc on lyon.1 at lyon paris] knows lyon.2
          + lyon.1 inc at lyon paris
          + lyon.2 inc on lyon.1 at lyon paris
          + begin run lyon.1
          + lyon knows lyon.2
          job 1: run lyon.1
          tell lyon: alive at 4
    "#]]);
}

#[test]
fn who_asks_about_a_resource_that_is_not_known_here_is_told_so_and_who_does_not_is_not() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    lyon.learns("lyon.3");
    paris.hears("lyon", lyon.asks());
    paris.hears("lyon", lyon.tells([]));
    paris.told(expect![[r#"
        > lyon: knows lyon.3, and you?
          + lyon is in life 1
          note SiteUp(lyon)
          tell lyon: knows nothing
          tell lyon: alive at 2
        > lyon: knows lyon.3
    "#]]);
    assert_eq!(paris.engine.resources().len(), 0);
}

/// Paris holds `counter` together with lyon; nantes does not. What it makes of this from there?
fn left_aside(from: &str, change: impl FnOnce(&mut Other) -> News) -> String {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.so_far();
    let before = paris.disk.0.len();
    let mut author = if from == "lyon" { lyon } else { other(from) };
    let news = change(&mut author);
    paris.hears(from, news);
    let kept = paris.disk.0[before..].iter();
    let entries = kept.filter(|it| matches!(it, cheops_core::engine::Record::Entry(..)));
    assert_eq!(entries.count(), 0, "nothing of it is kept");
    let story = paris.story();
    let notes = story.lines().filter(|line| line.contains("note Malformed"));
    notes.map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_cannot_be_is_left_aside_and_said_once_with_the_reason() {
    use Malformed::*;
    let last = Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) };
    let too_late = Stamp { wall_ms: 1 << 48, counter: 0 };
    let too_many = Stamp { wall_ms: 1, counter: u64::from(u32::MAX) + 1 };
    type Says = fn(Said) -> Said;
    let of_lyon: [(Malformed, Says); 10] = [
        (NumberNotAfter, |said| said.numbered(2, 2)),
        (NumberNotAfter, |said| said.numbered(u64::MAX, 1)),
        (NumberNotAfter, |said| said.numbered(u64::MAX / 2 + 1, 1)),
        (WrongResource, |said| said.with(|it| it.resource = resource("other"))),
        (BeyondLimits, |said| said.running(shell(&"x".repeat(2 * 1024 * 1024 + 1)))),
        (BeyondLimits, |said| said.declaring("", None)),
        // Where a resource lives is not for one site to change, ...
        (BeyondLimits, |said| said.declaring("lyon nantes paris", None)),
        // ... nor for somebody that does not hold it to say.
        (BeyondLimits, |said| said.declaring("nantes paris", None)),
        (BeyondLimits, |said| {
            said.with(|it| it.kind = "cheops.mine".parse().unwrap())
        }),
        (NoSuchTime, |said| said.at_ms(u64::MAX)),
    ];
    for (expected, says) in of_lyon {
        let found = left_aside("lyon", |lyon| lyon.tells_of(says(op("inc").on("lyon.1"))));
        assert_eq!(found, malformed("lyon", expected));
    }
    for (stamp, expected) in [(too_late, Some(NoSuchTime)), (too_many, Some(NoSuchTime))] {
        let said = op("inc").on("lyon.1").stamped(stamp);
        let found = left_aside("lyon", |lyon| lyon.tells_of(said));
        assert_eq!(found, expected.map_or(String::new(), |what| malformed("lyon", what)));
    }
    assert!(last.is_claimable());
}

#[test]
fn partial_replies_with_more_done_than_there_was_are_left_aside() {
    for (done, of) in [(2, 1), (1, 10_001)] {
        let said = says("lyon.1", Status::Partial { done, of });
        let found = left_aside("lyon", |lyon| lyon.tells_of(said));
        assert_eq!(found, malformed("lyon", Malformed::BeyondLimits), "{done} of {of}");
    }
}

#[test]
fn sites_that_do_not_hold_a_resource_are_not_listened_to_about_it() {
    let not_shared = |from| malformed(from, Malformed::NotShared);
    for from in ["nantes", "atlantis"] {
        assert_eq!(left_aside(from, |it| it.tells_of(op("inc"))), not_shared(from), "it writes");
        assert_eq!(left_aside(from, |it| it.asks()), not_shared(from), "it asks");
    }
    // It says itself that it holds what it does not: the declaration is what is wrong then.
    let intrudes = |it: &mut Other| {
        it.tells_of(op("inc").on("lyon.1").declaring("lyon nantes paris", None))
    };
    assert_eq!(left_aside("nantes", intrudes), malformed("nantes", Malformed::BeyondLimits));
}

#[test]
fn an_entry_of_a_site_that_does_not_hold_the_resource_is_left_aside_also_from_one_that_does() {
    let relays = |lyon: &mut Other| {
        let stray = other("nantes").writes(op("inc").on("lyon.1"));
        lyon.tells([stray])
    };
    assert_eq!(left_aside("lyon", relays), malformed("lyon", Malformed::NotShared));
}

#[test]
fn more_entries_at_once_than_four_messages_may_hold_are_not_looked_at() {
    let mut settings = settings("lyon");
    settings.entries_per_update = 1;
    let mut paris = start(settings);
    let mut lyon = other("lyon");
    let first = lyon.writes(declared("inc"));
    let more: Vec<_> = (0..4).map(|_| lyon.writes(op("inc"))).collect();
    let all = [vec![first], more].concat();
    paris.hears("lyon", lyon.tells(all.clone()));
    assert_eq!(paris.engine.resources().len(), 0);
    paris.so_far();
    paris.hears("lyon", lyon.tells(all[..4].to_vec()).knowing("lyon.4"));
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris; lyon.2 inc; lyon.3 inc; lyon.4 inc] knows lyon.4
          + lyon.1 inc at lyon paris
          + lyon.2 inc
          + lyon.3 inc
          + lyon.4 inc
          + begin run lyon.1
          + lyon knows lyon.4
          job 1: run lyon.1
          tell lyon: alive at 3
        = list [lyon.1 lyon.2 lyon.3 lyon.4], InStep, Running
            lyon.1
            lyon.2
            lyon.3
            lyon.4
    "#]]);
}

#[test]
fn more_authors_than_a_resource_can_have_are_not_looked_at() {
    let many = |lyon: &mut Other| {
        let authors = (0..4_097).map(|life| format!("lyon-{:x}.1 ", life + 2));
        lyon.tells([]).knowing(&authors.collect::<String>())
    };
    assert_eq!(left_aside("lyon", many), malformed("lyon", Malformed::TooMany));
}

#[test]
fn what_a_site_keeps_sending_wrong_is_said_once_a_minute_and_of_each_kind() {
    let mut paris = paris();
    for ms in [10, 20, 59_000, 60_011, 60_012] {
        paris.at(ms).hears("atlantis", beat());
    }
    paris.at(60_013).hears("ys", beat());
    let story = paris.story();
    let notes = story.lines().filter(|line| !line.contains("tell "));
    expect![[r#"
        > atlantis: alive at 0
          note Malformed(atlantis, NotShared)
        > atlantis: alive at 0
        > atlantis: alive at 0
        > atlantis: alive at 0
          note Malformed(atlantis, NotShared)
        > atlantis: alive at 0
        > ys: alive at 0
          note Malformed(ys, NotShared)"#]].assert_eq(&notes.collect::<Vec<_>>().join("\n"));
}

#[test]
fn numbers_that_a_site_says_it_knows_can_be_as_large_as_they_like() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.so_far();
    let huge = format!("lyon.{max} paris.{max} ys-ffffffffffffffff.{max}", max = u64::MAX);
    paris.hears("lyon", lyon.tells([]).knowing(&huge));
    paris.submits(asks_for("inc"));
    paris.told(expect![[r#"
        > lyon: knows lyon.18446744073709551615 paris.18446744073709551615 ys-ffffffffffffffff.18446744073709551615
          + lyon knows lyon.18446744073709551615 paris.18446744073709551615 ys-ffffffffffffffff.18446744073709551615
        > 1: counter inc
          + paris.1 inc on lyon.1
          answer 1: accepted as paris.1 for lyon paris
    "#]]);
}

#[test]
fn an_operation_that_claims_to_be_before_its_own_past_is_placed_after_it() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let first = lyon.writes(declared("inc").at_ms(5));
    let second = lyon.writes(op("inc").on("lyon.1").at_ms(4));
    paris.hears("lyon", lyon.tells([first, second]));
    let view = paris.engine.resource(&resource("counter")).unwrap();
    let places: Vec<_> = view.operations.iter().map(|it| it.operation.stamp.to_string()).collect();
    assert_eq!(places, ["5+0", "5+1"]);
}

#[test]
fn a_time_far_ahead_is_taken_and_called_strange_by_how_much() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    // Exactly as far as may be, by the clock of paris at 1 ms.
    paris.hears("lyon", lyon.tells_of(declared("inc").at_ms(1_000_001 + 60_000)));
    paris.hears("lyon", lyon.tells_of(op("inc").on("lyon.1").at_ms(1_000_002 + 60_001)));
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
          + lyon is in life 1
          + lyon.1 inc at lyon paris
          + begin run lyon.1
          + lyon knows lyon.1
          note SiteUp(lyon)
          job 1: run lyon.1
          tell lyon: alive at 2
        > lyon: [lyon.2 inc on lyon.1] knows lyon.2
          + lyon.2 inc on lyon.1
          + lyon knows lyon.2
    "#]]);
}

#[test]
fn the_last_stamp_that_may_be_claimed_leaves_room_for_everybody_elses_next() {
    let mut paris = paris();
    let last = Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) };
    paris.hears("lyon", other("lyon").tells_of(declared("inc").stamped(last)));
    paris.submits(asks_for("inc"));
    let own = paris.engine.operation(&resource("counter"), &operation("paris.1")).unwrap();
    assert!(own.claimed.is_claimable() && own.claimed < last, "no clock is carried away");
    assert!(own.stamp > last && own.parents == [operation("lyon.1")]);
}

#[test]
fn what_was_written_before_signatures_is_taken_on_anothers_word_only_where_nothing_is_known() {
    // A site that remembers nothing takes what another says was written in an old life.
    let mut paris = paris();
    let mut nantes = other("nantes");
    let old = nantes.writes(op("inc").declaring("lyon nantes paris", None).vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([old]).knowing("nantes.1"));
    // A life it remembers may go on so, up to what it signed itself.
    let next = nantes.writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([next]).knowing("nantes.2"));
    let signed = nantes.writes(op("inc").on("nantes.2"));
    paris.hears("nantes", nantes.tells([signed]));
    paris.so_far();
    let forged = nantes.writes(op("inc").on("nantes.3").vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([forged]).knowing("nantes.4"));
    // Nor is a life believed in that nobody here has heard of, ...
    let unheard = other("nantes-9").writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.at(70_000).hears("lyon", other("lyon").tells([unheard]).knowing("nantes-9.1"));
    // ... nor one in the name of this site, which knows what it wrote.
    let ours = other("paris").writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.at(140_000).hears("lyon", other("lyon").tells([ours]).knowing("paris.1"));
    let story = paris.story();
    let notes = story.lines().filter(|line| line.contains("Malformed") || line.contains("+ "));
    expect![[r#"
          + lyon knows nantes.4
          note Malformed(lyon, NotItsAuthors)
          + lyon knows nantes.4 nantes-9.1
          note Malformed(lyon, NotItsAuthors)
          + lyon knows nantes.4 nantes-9.1 paris.1
          note Malformed(lyon, NotItsAuthors)"#]].assert_eq(&notes.collect::<Vec<_>>().join("\n"));
}
