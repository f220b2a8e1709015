//! Keeping sites in step, in sentences: what travels, when, how much of it, and what is left.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use cheops_core::engine::{Answer, Event, Notice, RunProgress, SiteStatus, Submission, WaitFor};
use cheops_core::model::{SiteId, Status};
use cheops_core::plan::{Decision, Health};
use cheops_sim::{Setup, Traffic, Weather, site_name};

const COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const SUM: &str =
    r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

/// What went over the network since then, signs of life apart.
fn since(cluster: &Cluster, before: Traffic) -> Traffic {
    let now = cluster.world.traffic;
    Traffic {
        updates: now.updates - before.updates,
        update_bytes: now.update_bytes - before.update_bytes,
        entries: now.entries - before.entries,
        heartbeats: 0,
    }
}

fn isolate(cluster: &mut Cluster, site: usize) {
    for other in (0..cluster.world.sites.len()).filter(|other| *other != site) {
        cluster.world.cut_both_ways(site, other);
    }
}

/// One site of three is cut off for so long; the others do things meanwhile. What it takes to
/// bring it up to date once the network heals.
fn catching_up(history: u64, missed: u64, cut_ms: u64) -> Traffic {
    // Checks look at the whole history after every step, which here is long.
    let mut cluster = Cluster::with(Setup { check: false, ..Setup::new(3, 1) }, SUM);
    for _ in 0..history {
        cluster.does(0, "inc", "inc 1");
        cluster.passes(100);
    }
    cluster.converges();
    isolate(&mut cluster, 2);
    cluster.passes(4_000);
    for _ in 0..missed {
        cluster.does(0, "inc", "inc 1");
        cluster.passes(100);
    }
    cluster.passes(cut_ms - 4_000 - 100 * missed);
    let before = cluster.world.traffic;
    cluster.world.network.heal_all();
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), (history + missed).to_string());
    since(&cluster, before)
}

/// Whether two numbers are within a fifth of each other: who passes on what to whom is a matter of
/// moments, so now and then an entry is sent twice.
fn about_the_same(a: u64, b: u64) -> bool {
    a.max(b) * 5 <= a.min(b) * 6
}

#[test]
fn catching_up_costs_the_same_after_ten_seconds_and_after_ten_thousand() {
    let short = catching_up(10, 5, 10_000);
    let long = catching_up(10, 5, 10_000_000);
    assert!(about_the_same(short.entries, long.entries), "{short:?} and {long:?}");
    assert!(about_the_same(short.update_bytes, long.update_bytes), "{short:?} and {long:?}");
}

#[test]
fn catching_up_costs_with_what_was_missed_and_not_with_the_history() {
    let young = catching_up(10, 5, 10_000);
    let old = catching_up(1_000, 5, 10_000);
    let more = catching_up(10, 50, 10_000);
    assert!(about_the_same(old.entries, young.entries), "{young:?} and {old:?}");
    assert!(about_the_same(old.update_bytes, young.update_bytes), "{young:?} and {old:?}");
    assert!(more.update_bytes > 3 * young.update_bytes, "{young:?} and {more:?}");
}

#[test]
fn sites_with_nothing_to_do_exchange_signs_of_life_and_nothing_else() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.passes(10_000);
    assert_eq!((cluster.world.traffic.updates, cluster.world.traffic.entries), (0, 0));
    cluster.does(0, "set", "set 1");
    cluster.converges();
    cluster.passes(1_000);
    let before = cluster.world.traffic;
    cluster.passes(600_000);
    assert_eq!(since(&cluster, before), Traffic::default());
    assert!(cluster.world.traffic.heartbeats > before.heartbeats);
}

#[test]
fn sites_that_share_no_resource_hear_nothing_of_it() {
    // Whoever is told of a resource it does not hold is a violation.
    let mut cluster = Cluster::at(Setup::new(5, 1), COUNTER, &[0, 1]);
    for number in 0..20 {
        cluster.does(number % 2, "inc", "inc 1");
        cluster.passes(50);
    }
    cluster.converges();
    cluster.passes(30_000);
    assert_eq!(cluster.value_everywhere(), "20");
    for stranger in 2..5 {
        assert_eq!(cluster.engine(stranger).resources().count(), 0);
        assert!(cluster.engine(stranger).sites().iter().all(|site| site.shared == 0));
    }
}

/// One inc more than before is done at the first site. All run it, and all hear so from all.
fn is_heard_everywhere(cluster: &mut Cluster, value: &str) {
    let operation = cluster.does(0, "inc", "inc 1");
    cluster.until("it has run everywhere, and everyone knows", |cluster| {
        let told = |at| (0..3).all(|of| cluster.status(at, &operation, of) == Some(Status::Ok));
        (0..3).all(|site| cluster.value(site) == value && told(site))
    });
}

#[test]
fn an_operation_and_its_replies_travel_through_a_third_site_when_the_direct_link_is_cut() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.converges();
    cluster.world.cut_both_ways(0, 2);
    is_heard_everywhere(&mut cluster, "2");
    assert!(cluster.world.sometimes.count("sync: relayed by a third site") > 0);
    // Long after everyone has seen that the link is cut.
    cluster.passes(10_000);
    is_heard_everywhere(&mut cluster, "3");
    cluster.world.network.heal_all();
    cluster.converges();
}

#[test]
fn an_operation_and_its_replies_find_their_way_when_a_link_works_in_one_direction_only() {
    for (from, to) in [(0, 2), (2, 0)] {
        let mut cluster = Cluster::new(3, COUNTER);
        cluster.does(0, "set", "set 1");
        cluster.converges();
        cluster.world.network.cut(from, to);
        is_heard_everywhere(&mut cluster, "2");
        cluster.passes(10_000);
        is_heard_everywhere(&mut cluster, "3");
        cluster.world.network.heal_all();
        cluster.converges();
    }
}

#[test]
fn messages_that_arrive_twice_late_and_out_of_order_change_nothing() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.world.network.weather = Weather { loss: 0, duplication: 1_000, reordering: 500 };
    cluster.does(0, "set", "set 0");
    for number in 0..60 {
        cluster.passes(30);
        cluster.does(number % 3, "inc", "inc 1");
    }
    cluster.converges();
    assert!(cluster.value_everywhere().parse::<u64>().unwrap() <= 60);
    cluster.does(0, "set", "set 0");
    cluster.converges();
    for number in 0..60 {
        cluster.passes(30);
        cluster.does(number % 3, "inc", "inc 1");
    }
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "60", "every one of them, once");
}

#[test]
fn operations_get_through_when_every_third_message_is_lost() {
    let mut cluster = Cluster::new(3, SUM);
    cluster.world.network.weather = Weather { loss: 333, ..Weather::default() };
    for number in 0..60 {
        cluster.does(number % 3, "inc", "inc 1");
        cluster.passes(100);
    }
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "60");
}

#[test]
fn a_site_that_lost_its_disk_and_its_application_gets_everything_back() {
    let mut cluster = Cluster::new(3, SUM);
    for number in 0..9 {
        cluster.does(number % 3, "inc", "inc 1");
    }
    cluster.converges();
    let before = cluster.view(2);
    cluster.world.lose_disk(2, true);
    assert_eq!(cluster.value(2), "");
    cluster.until("it is up again", |cluster| cluster.world.sites[2].engine.is_some());
    assert_eq!(cluster.engine(2).resources().count(), 0, "it knows nothing");
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "9");
    assert_eq!(cluster.view(2).list, before.list);
    assert!(cluster.world.notices.contains(&(site_name(0), Notice::SiteLostItsDisk(site_name(2)))));
}

#[test]
fn a_site_that_lost_its_disk_and_kept_its_application_starts_again_from_a_set() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.does(0, "set", "set 100");
    cluster.converges();
    cluster.does(2, "inc", "inc 5");
    cluster.converges();
    cluster.world.lose_disk(2, false);
    cluster.until("it is up again", |cluster| cluster.world.sites[2].engine.is_some());
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "105");
    cluster.does(2, "inc", "inc 1");
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "106");
}

#[test]
fn where_nothing_tells_what_a_lost_disk_had_run_the_operator_is_asked_and_nothing_runs_twice() {
    let mut cluster = Cluster::new(3, SUM);
    cluster.does(0, "inc", "inc 7");
    cluster.converges();
    cluster.world.lose_disk(2, false);
    let awaits = |cluster: &Cluster| {
        let engine = cluster.world.sites[2].engine.as_ref()?;
        match engine.resource(&cluster.resource)?.progress {
            RunProgress::AwaitsOperator(operation) => Some(operation),
            _ => None,
        }
    };
    cluster.until("the operator is asked", |cluster| awaits(cluster).is_some());
    let operation = awaits(&cluster).unwrap();
    assert_eq!(cluster.status(2, &operation, 2), Some(Status::InDoubt));
    let resource = cluster.resource.clone();
    let event = Event::Decided { resource, operation, decision: Decision::Skip };
    cluster.world.handle(2, event);
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "7");
}

#[test]
fn an_operation_that_only_a_lost_disk_knew_is_gone_and_its_id_is_never_used_again() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.converges();
    isolate(&mut cluster, 2);
    let gone = cluster.does(2, "inc", "inc 10");
    cluster.world.lose_disk(2, true);
    cluster.world.network.heal_all();
    cluster.until("it is up again", |cluster| cluster.world.sites[2].engine.is_some());
    cluster.converges();
    let next = cluster.does(2, "inc", "inc 20");
    assert_ne!(next, gone);
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "21");
}

#[test]
fn a_site_that_is_cut_off_is_seen_down_within_three_seconds_and_up_soon_after() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.converges();
    cluster.world.notices.clear();
    isolate(&mut cluster, 2);
    let down = (site_name(0), Notice::SiteDown(site_name(2)));
    let took = cluster.until("it is seen down", |cluster| cluster.world.notices.contains(&down));
    assert!((2_000..=3_100).contains(&took), "{took} ms");
    let status = |cluster: &Cluster| {
        let sites = cluster.engine(0).sites();
        sites.into_iter().find(|site| site.site == site_name(2)).unwrap().status
    };
    assert!(matches!(status(&cluster), SiteStatus::Unknown { .. }), "{:?}", status(&cluster));
    cluster.passes(60_000);
    cluster.world.network.heal_all();
    let up = (site_name(0), Notice::SiteUp(site_name(2)));
    let took = cluster.until("it is seen up", |cluster| cluster.world.notices.contains(&up));
    assert!(took <= 600, "{took} ms");
    assert!(matches!(status(&cluster), SiteStatus::Up { .. }));
    let changes = cluster.world.notices.iter().filter(|(at, notice)| {
        *at == site_name(0) && matches!(notice, Notice::SiteDown(_) | Notice::SiteUp(_))
    });
    assert_eq!(changes.count(), 2, "once down, once up");
}

#[test]
fn the_first_operation_that_two_sites_share_is_sent_at_once() {
    let mut cluster = Cluster::new(2, COUNTER);
    // In between two signs of life, which are rare where nothing is shared.
    cluster.passes(4_000);
    cluster.does(0, "set", "set 1");
    let took = cluster.until("it has run at the other", |cluster| cluster.value(1) == "1");
    assert!(!cluster.world.notices.iter().any(|(_, notice)| matches!(notice, Notice::SiteDown(_))));
    assert!(took <= 100, "{took} ms");
}

#[test]
fn a_site_that_was_never_heard_is_not_said_to_be_down() {
    let mut cluster = Cluster::new(2, COUNTER);
    cluster.world.cut_all();
    cluster.does(0, "set", "set 1");
    cluster.passes(20_000);
    assert_eq!(cluster.engine(0).sites()[0].status, SiteStatus::NeverHeard);
    assert!(!cluster.world.notices.iter().any(|(_, notice)| matches!(notice, Notice::SiteDown(_))));
}

#[test]
fn round_trips_are_measured_as_they_are() {
    let mut cluster = Cluster::new(8, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.passes(10_000);
    let seen_from_paris =
        [("lyon", 7), ("nantes", 9), ("newyork", 77), ("tokyo", 218), ("sydney", 277)];
    for (city, round_trip_ms) in seen_from_paris {
        let sites = cluster.engine(0).sites();
        let seen = sites.iter().find(|site| site.site.as_str() == city).unwrap();
        let measured = seen.round_trip_ms.unwrap();
        // The network adds up to a fifth, and a tick is a millisecond.
        let most = round_trip_ms + round_trip_ms / 4 + 4;
        assert!((round_trip_ms..=most).contains(&measured), "{city}: {measured} ms");
    }
}

#[test]
fn who_waits_for_nobody_is_answered_as_soon_as_the_operation_is_durable() {
    let mut cluster = Cluster::new(3, COUNTER);
    let ticket = cluster.asks(0, "set", "set 1", WaitFor::Nothing, 1_000);
    let answers = &cluster.world.answers[&ticket];
    assert!(matches!(answers[..], [Answer::Accepted { .. }, Answer::Done]), "{answers:?}");
}

#[test]
fn who_waits_for_the_receiving_site_is_answered_without_the_others() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.world.cut_all();
    let ticket = cluster.asks(0, "set", "set 1", WaitFor::Local, 1_000);
    cluster.passes(1_000);
    let answers = &cluster.world.answers[&ticket];
    let [Answer::Accepted { .. }, Answer::Replied(reply), Answer::Done] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!((reply.site(), &reply.status), (&site_name(0), &Status::Ok));
}

#[test]
fn who_waits_for_all_hears_of_every_site_and_then_that_it_is_done() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.passes(1_000);
    let ticket = cluster.asks(0, "set", "set 1", WaitFor::All, 5_000);
    cluster.converges();
    let answers = &cluster.world.answers[&ticket];
    let replies = answers.iter().filter(|answer| matches!(answer, Answer::Replied(_))).count();
    assert_eq!(replies, 3);
    assert_eq!(answers.last(), Some(&Answer::Done));
}

#[test]
fn who_waited_long_enough_hears_who_is_missing_and_the_work_goes_on() {
    let mut cluster = Cluster::new(3, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.converges();
    isolate(&mut cluster, 2);
    let ticket = cluster.asks(0, "inc", "inc 1", WaitFor::All, 2_000);
    cluster.passes(1_999);
    let timed_out = Answer::TimedOut { missing: vec![site_name(2)] };
    assert!(!cluster.world.answers[&ticket].contains(&timed_out), "not before its time");
    cluster.passes(1);
    assert_eq!(cluster.world.answers[&ticket].last(), Some(&timed_out));
    assert_eq!((cluster.value(0), cluster.value(1)), ("2".to_owned(), "2".to_owned()));
    cluster.world.network.heal_all();
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "2");
    assert_eq!(cluster.world.answers[&ticket].last(), Some(&timed_out), "said once, and no more");
}

#[test]
fn who_asks_at_a_site_that_does_not_hold_the_resource_is_refused() {
    let mut cluster = Cluster::at(Setup::new(3, 1), COUNTER, &[0, 1]);
    let ticket = cluster.asks(2, "set", "set 1", WaitFor::All, 1_000);
    assert!(matches!(cluster.world.answers[&ticket][..], [Answer::Refused(_)]));
    let unsaid = Submission { sites: None, ..cluster.submission("set", "set 1") };
    let ticket = cluster.world.submit(2, unsaid).unwrap();
    assert!(matches!(cluster.world.answers[&ticket][..], [Answer::Refused(_)]));
}

/// How much history the sites keep at most: operations, and records on the disk.
fn most_kept(cluster: &Cluster) -> (usize, usize) {
    let operations = cluster.home().map(|site| cluster.view(site).operations.len()).max();
    let records = cluster.world.sites.iter().map(|site| site.disk.records().len()).max();
    (operations.unwrap(), records.unwrap())
}

#[test]
fn a_long_stream_of_sets_over_three_sites_keeps_little_history() {
    let mut cluster = Cluster::new(3, COUNTER);
    let (mut operations, mut records) = (0, 0);
    for number in 0..2_000 {
        cluster.does(number % 3, "set", &format!("set {number}"));
        cluster.passes(100);
        if number % 10 == 9 {
            let kept = most_kept(&cluster);
            operations = operations.max(kept.0);
            records = records.max(kept.1);
        }
    }
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "1999");
    assert!(operations <= 20, "{operations} operations were kept");
    assert!(records <= 1_000, "{records} records were kept");
    assert_eq!(most_kept(&cluster).0, 1, "in the end there is one operation left");
}

#[test]
fn history_grows_while_a_site_is_away_and_is_forgotten_when_it_returns() {
    let mut cluster = Cluster::with(Setup { check: false, ..Setup::new(3, 1) }, COUNTER);
    cluster.does(2, "set", "set 0");
    cluster.converges();
    isolate(&mut cluster, 2);
    for number in 1..=300 {
        cluster.does(number % 2, "set", &format!("set {number}"));
        cluster.passes(100);
    }
    let (kept, _) = most_kept(&cluster);
    assert!(kept > 290, "nothing may be forgotten that the third has not seen: {kept}");
    cluster.world.network.heal_all();
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "300");
    assert_eq!(most_kept(&cluster).0, 1);
    assert!(cluster.home().all(|site| cluster.view(site).health == Health::InStep));
}

#[test]
fn history_is_forgotten_also_where_two_of_the_sites_never_hear_each_other() {
    let mut cluster = Cluster::with(Setup { check: false, ..Setup::new(3, 1) }, COUNTER);
    cluster.does(0, "set", "set 0");
    cluster.converges();
    cluster.world.cut_both_ways(0, 2);
    for number in 1..=300 {
        cluster.does(number % 3, "set", &format!("set {number}"));
        cluster.passes(1_000);
    }
    cluster.passes(30_000);
    assert_eq!(cluster.value_everywhere(), "300");
    let (kept, _) = most_kept(&cluster);
    assert!(kept <= 20, "{kept} operations were kept");
}

/// Two halves of a mesh make a resource of one name, at one site for these, at another for those.
fn made_twice(first: &[usize], second: &[usize], seed: u64) {
    let mut cluster = Cluster::with(Setup::new(4, seed), SUM);
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        cluster.world.cut_both_ways(a, b);
    }
    for (maker, named) in [(0, first), (3, second)] {
        let sites = named.iter().map(|site| site_name(*site)).collect();
        let asked = Submission { sites: Some(sites), ..cluster.submission("inc", "inc 1") };
        cluster.world.submit(maker, asked).unwrap();
        cluster.passes(seed * 100);
    }
    cluster.passes(3_000);
    cluster.world.network.heal_all();
    cluster.passes(60_000);
    let named: BTreeSet<SiteId> = first.iter().chain(second).map(|site| site_name(*site)).collect();
    for site in first.iter().chain(second) {
        let engine = cluster.world.sites[*site].engine.as_ref().unwrap();
        let view = engine.resource(&cluster.resource).unwrap();
        assert_eq!(view.sites, named, "{first:?} {second:?} {seed}: at site {site}");
        assert_eq!(view.list.len(), 2, "{first:?} {second:?} {seed}: at site {site}");
    }
}

#[test]
fn a_resource_made_twice_lives_where_any_of_its_makers_said_and_nothing_of_it_is_lost() {
    for seed in 1..8 {
        made_twice(&[0, 1, 2], &[1, 2, 3], seed);
        made_twice(&[0, 1, 2, 3], &[1, 2, 3], seed);
        made_twice(&[0, 1, 2], &[0, 1, 2, 3], seed);
        made_twice(&[0, 1], &[3, 1], seed);
    }
}
