//! Signs of life: who is heard, who is not, how far away, and what strangers say.

use cheops_core::engine::{Notice, SiteStatus};
use cheops_core::model::{Asker, KeyId, Status};
use expect_test::expect;

use super::fixture::*;

/// How paris sees the other sites.
fn seen(paris: &Site) -> String {
    let line = |it: cheops_core::engine::SiteView| {
        let status = match it.status {
            SiteStatus::NeverHeard => "never heard".to_owned(),
            SiteStatus::Up { since_ms } => format!("up since {since_ms}"),
            SiteStatus::Unknown { since_ms } => format!("unknown since {since_ms}"),
        };
        let round_trip = it.round_trip_ms.map_or(String::new(), |ms| format!(", {ms} ms away"));
        let (shared, behind) = (it.shared, it.behind_on);
        format!("{}: {status}{round_trip}, shares {shared}, behind on {behind}\n", it.site)
    };
    paris.engine.sites().into_iter().map(line).collect()
}

#[test]
fn sites_that_share_nothing_are_told_of_life_rarely() {
    let mut paris = paris();
    paris.lives_until(10_000);
    paris.told(expect![[r#"
        > 5001 ms
          tell lyon: alive at 5001
          tell nantes: alive at 5001
        > 10000 ms
    "#]]);
}

#[test]
fn sites_that_share_a_resource_are_told_of_life_often() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.so_far();
    paris.lives_until(1_100);
    paris.told(expect![[r#"
        > 502 ms
          tell lyon: alive at 502 not hearing lyon
        > 1002 ms
          tell lyon: alive at 1002 not hearing lyon
        > 1100 ms
    "#]]);
}

#[test]
fn a_heartbeat_from_a_stranger_is_not_answered() {
    let mut paris = paris();
    paris.hears("atlantis", beat());
    paris.reaches("atlantis");
    paris.told(expect![[r#"
        > atlantis: alive at 0
          note Malformed(atlantis, NotShared)
        > atlantis can be reached
    "#]]);
    assert!(paris.disk.0.is_empty());
}

#[test]
fn who_can_be_reached_hears_at_once_and_need_not_be_heard_yet() {
    let mut paris = paris();
    paris.reaches("lyon");
    paris.reaches("lyon");
    paris.told(expect![[r#"
        > lyon can be reached
          tell lyon: alive at 2
        > lyon can be reached
          tell lyon: alive at 3
    "#]]);
    assert_eq!(seen(&paris).lines().next(), Some("lyon: never heard, shares 0, behind on 0"));
}

#[test]
fn a_site_is_up_when_it_is_heard_and_unknown_since_then_when_it_is_silent_for_too_long() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.at(100).hears("lyon", lyon.tells_of(op("inc").declaring("lyon paris", None)));
    paris.ends(1, ok());
    lyon.learns("paris.1");
    paris.at(200).hears("lyon", lyon.tells([]));
    expect![[r#"
        lyon: up since 100, shares 1, behind on 0
        nantes: never heard, shares 0, behind on 0
    "#]]
    .assert_eq(&flush_left(&seen(&paris)));
    // It may be silent for two and a half seconds.
    paris.lives_until(2_701);
    assert!(!paris.story().contains("SiteDown"));
    paris.lives_until(3_200);
    let story = paris.story();
    let news = story.lines().filter(|line| line.contains("note") || line.contains("hearing"));
    expect![[r#"
          note SiteDown(lyon)
          tell lyon: alive at 3100 not hearing lyon"#]]
    .assert_eq(&flush_left(&news.collect::<Vec<_>>().join("\n")));
    expect![[r#"
        lyon: unknown since 200, shares 1, behind on 0
        nantes: never heard, shares 0, behind on 0
    "#]]
    .assert_eq(&flush_left(&seen(&paris)));
    // Whatever it says, it is there again.
    paris.so_far();
    paris.at(9_000).hears("lyon", beat());
    paris.told(expect![[r#"
        > lyon: alive at 0
          note SiteUp(lyon)
          tell lyon: alive at 9000, echo of 0 held for 0
          tell nantes: alive at 9000
    "#]]);
}

#[test]
fn a_site_that_may_not_know_yet_that_it_shares_something_gets_more_time() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.submits(asks_for("inc"));
    // It hears nothing of it, and goes on speaking rarely, as it may.
    paris.lives_until(7_400);
    assert!(!paris.story().contains("SiteDown"));
    paris.lives_until(8_100);
    assert!(paris.story().contains("note SiteDown(lyon)"));
}

#[test]
fn a_round_trip_is_what_the_echo_says_without_the_time_it_was_held_and_smoothed() {
    let mut paris = paris();
    let mut seen_ms = Vec::new();
    // Sent at 1 ms, held for 9 ms, back at 110 ms: it was under way for 100 ms.
    for (at, sent, held) in [(110, 1, 9), (1_000, 820, 0), (1_100, 2_000, 0), (1_200, 0, u64::MAX)]
    {
        paris.at(at).hears("lyon", beat().echoing(sent, held));
        seen_ms.push(paris.engine.sites()[0].round_trip_ms.unwrap());
    }
    // An echo of what was never sent, or held for longer than it took, counts as no time.
    assert_eq!(seen_ms, [100, 110, 96, 84]);
}

#[test]
fn a_sign_of_life_says_when_the_last_one_of_the_other_side_came_and_how_long_ago() {
    let mut paris = paris();
    paris.at(100).hears("lyon", beat().sent_ms(7_777));
    paris.so_far();
    paris.at(350).reaches("lyon");
    paris.told(expect![[r#"
        > lyon can be reached
          tell lyon: alive at 350, echo of 7777 held for 250
    "#]]);
}

#[test]
fn nothing_is_sent_to_a_site_that_does_not_hear_this_one_until_it_does() {
    let mut paris = paris();
    paris.hears("lyon", beat().not_hearing("paris"));
    paris.so_far();
    paris.submits(asks_for("inc"));
    paris.hears("lyon", beat().not_hearing("nantes"));
    paris.told(expect![[r#"
        > 1: counter inc
          + paris.1 inc at lyon paris
          + begin run paris.1
          answer 1: accepted as paris.1 for lyon paris
          job 1: run paris.1
          tell lyon: alive at 3, echo of 0 held for 1
        > lyon: alive at 0 not hearing nantes
          tell lyon: knows paris.1, and you?
    "#]]);
}

#[test]
fn a_site_that_came_back_without_its_disk_is_said_once() {
    let mut paris = paris();
    paris.hears("lyon", beat());
    paris.hears("lyon", beat().in_incarnation(2));
    paris.hears("lyon", beat().in_incarnation(2));
    paris.restarts();
    paris.hears("lyon", beat().in_incarnation(2));
    paris.told(expect![[r#"
        > lyon: alive at 0
          + lyon is in incarnation 1
          note SiteUp(lyon)
          tell lyon: alive at 2, echo of 0 held for 0
        > lyon: alive at 0 in incarnation 2
          + lyon is in incarnation 2
          note SiteLostItsDisk(lyon)
        > lyon: alive at 0 in incarnation 2
        > restart
        > lyon: alive at 0 in incarnation 2
          note SiteUp(lyon)
          tell lyon: alive at 6, echo of 0 held for 0
          tell nantes: alive at 6
    "#]]);
}

#[test]
fn what_the_agent_saw_is_handed_on_as_it_is_and_kept() {
    let mut paris = alone();
    let asker = Asker { principal: "marie".into(), site: site("paris") };
    paris.notices(Notice::Asked(Some(resource("counter")), asker, "show".into()));
    paris.notices(Notice::SharedIdentity(site("lyon"), "two addresses".into()));
    paris.notices(Notice::SetApart(site("lyon"), KeyId([1; 32])));
    paris.told(expect![[r#"
        > seen: Asked(Some(counter), Asker { principal: "marie", site: paris }, "show")
          note Asked(Some(counter), Asker { principal: "marie", site: paris }, "show")
        > seen: SharedIdentity(lyon, "two addresses")
          note SharedIdentity(lyon, "two addresses")
        > seen: SetApart(lyon, 0101010101010101)
          note SetApart(lyon, 0101010101010101)
    "#]]);
}

#[test]
fn time_that_passes_early_late_or_not_at_all_does_no_harm() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.so_far();
    paris.ticks_at(3);
    // A clock that stood still for an hour: each thing that was due is done once.
    paris.ticks_at(3_600_000);
    paris.ticks_at(3_600_000);
    paris.told(expect![[r#"
        > 3 ms
        > 3600000 ms
          tell lyon: alive at 3600000 not hearing lyon
          tell nantes: alive at 3600000 not hearing lyon
          answer 1: timed out without lyon paris
        > 3600000 ms
    "#]]);
}

#[test]
fn a_site_that_is_heard_again_is_asked_what_it_knows_and_sent_what_it_lacks() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(op("inc").declaring("lyon paris", None)));
    paris.ends(1, ok());
    lyon.learns("paris.1");
    paris.hears("lyon", lyon.tells([]));
    paris.lives_until(9_000);
    paris.submits(asks_for("inc"));
    paris.so_far();
    paris.hears("lyon", beat());
    paris.hears("lyon", lyon.asks());
    lyon.learns("paris.2");
    let reply = lyon.writes(says("lyon.1", Status::Ok));
    paris.hears("lyon", lyon.tells([reply]));
    paris.told(expect![[r#"
        > lyon: alive at 0
          note SiteUp(lyon)
          tell lyon: alive at 9002, echo of 0 held for 0
          tell lyon: knows lyon.1 paris.2, and you?
        > lyon: knows lyon.1 paris.1, and you?
          tell lyon: [paris.2 inc on lyon.1] knows lyon.1 paris.2
        > lyon: [lyon.2 says OK of lyon.1] knows lyon.2 paris.2
          + lyon.2 says OK of lyon.1
          + lyon knows lyon.2 paris.2
    "#]]);
}
