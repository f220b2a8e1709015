//! Entries heard from other sites: in order, early, late, twice, and such as cannot be.

use cheops_core::model::{Stamp, Status};
use expect_test::expect;

use super::fixture::*;

fn declared(kind: &str) -> Unwritten {
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
          + lyon is in incarnation 1
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
          + nantes is in incarnation 1
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
          + lyon is in incarnation 1
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
          + lyon is in incarnation 1
          note SiteUp(lyon)
          tell lyon: knows nothing
          tell lyon: alive at 2
        > lyon: knows lyon.3
    "#]]);
    assert_eq!(paris.engine.resources().len(), 0);
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
    // Exactly as far as may be by the clock of paris, and a millisecond more.
    paris.at(10).hears("lyon", lyon.tells_of(declared("inc").at_ms(1_000_010 + 60_000)));
    paris.at(20).hears("lyon", lyon.tells_of(op("inc").on("lyon.1").at_ms(1_000_020 + 60_001)));
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris
          + begin run lyon.1
          + lyon knows lyon.1
          note SiteUp(lyon)
          job 1: run lyon.1
          tell lyon: alive at 10
        > lyon: [lyon.2 inc on lyon.1] knows lyon.2
          + lyon.2 inc on lyon.1
          + lyon knows lyon.2
          note StrangeClock(counter, lyon.2, 60001)
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
