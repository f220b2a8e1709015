//! Many sites that say what they are to each other: everybody comes to know everybody, views of who is
//! alive agree at rest, nobody is believed in another's name, and rest costs the same among ten times as many.

use cheops_directory::{
    Existence, GossipEvent, Hears, LinkState, Membership, Removal, Revocation, SignedStatement,
    SiteRecord, Statement,
};

use crate::keys::{AUTHORITY, certificate, key, signature};
use crate::world::{Planted, World, name};

const MINUTE: u64 = 60_000;

#[test]
fn sites_that_know_the_address_of_one_come_to_know_all() {
    for (count, seed) in [(1, 1), (2, 2), (11, 3), (60, 4), (200, 5)] {
        let mut world = World::from_one_seed(count, seed, None);
        let known = world.until(MINUTE, "all know all", |it| it.all_know(count));
        world.until(MINUTE, "views agree", World::views_agree);
        assert!(world.all_is_true());
        assert_eq!(world.refused, 0);
        println!(
            "{count} sites: all know all after {known} ms, agree after {} ms, {} links made, {:.1} links each",
            world.now_ms,
            world.links_made,
            world.links_per_site()
        );
    }
}

/// Sites crash and start, are cut off one way and both, and come back.
fn troubled(count: usize, seed: u64, planted: Option<Planted>) -> World {
    let mut world = World::from_one_seed(count, seed, planted);
    world.until(2 * MINUTE, "all know all", |it| it.all_know(count));
    for _ in 0..30 {
        let (one, other) = (world.below(count as u64) as usize, world.below(count as u64) as usize);
        match world.below(5) {
            0 => world.crash(one),
            1 => world.cut(one, other),
            2 => world.cut_off(&[one], &[other]),
            3 => {
                let (low, high): (Vec<_>, Vec<_>) = (0..count).partition(|n| *n < one.max(1));
                world.cut_off(&low, &high);
            }
            _ => world.heal_all(),
        }
        let pause = world.below(4_000);
        world.run(pause);
        for n in 0..count {
            if world.members[n].is_none() && world.below(3) == 0 {
                world.start(n);
            }
        }
    }
    world
}

fn end_well(world: &mut World, count: usize) {
    world.until(3 * MINUTE, "parts agree at rest", World::views_agree);
    world.heal_all();
    for n in 0..count {
        if world.members[n].is_none() {
            world.start(n);
        }
    }
    world.until(3 * MINUTE, "all are back", World::views_agree);
    assert!(world.all_know(count) && world.all_is_true());
}

#[test]
fn after_crashes_and_cuts_views_of_who_is_alive_agree_in_each_part() {
    for seed in 0..12 {
        let count = [5, 12, 30][seed as usize % 3];
        let mut world = troubled(count, seed, None);
        end_well(&mut world, count);
    }
}

#[test]
fn halves_that_were_cut_off_for_long_find_each_other() {
    let mut world = World::from_one_seed(60, 9, None);
    world.until(MINUTE, "views agree", |it| it.all_know(60) && it.views_agree());
    let (low, high): (Vec<_>, Vec<_>) = (0..60).partition(|n| n % 2 == 0);
    world.cut_off(&low, &high);
    world.until(MINUTE, "each half agrees", World::views_agree);
    world.run(30 * MINUTE);
    assert!(world.views_agree());
    world.heal_all();
    world.until(MINUTE, "they are one again", World::views_agree);
}

#[test]
fn a_site_that_is_removed_is_gone_everywhere_and_for_good() {
    let mut world = World::from_one_seed(30, 3, None);
    world.until(MINUTE, "views agree", |it| it.all_know(30) && it.views_agree());
    world.crash(7);
    let removal = Removal { site: name(7), dead: true, when_ms: 5, asked_by: "admin".into() };
    let sign = |text: &[u8]| Some(signature(AUTHORITY, text));
    let removal = SignedStatement::new(&Statement::Removal(removal), b"", sign).unwrap();
    world.hand_in(3, &removal);
    world.until(MINUTE, "all know", |it| it.all_know(29));
    world.start(7);
    world.run(2 * MINUTE);
    for (at, member) in world.up().filter(|(at, _)| *at != 7) {
        let is_out = matches!(member.directory().existence(&name(7)), Existence::Removed(_));
        assert!(is_out && !member.wanted().contains(&name(7)), "at {at}");
        assert!(member.directory().is_refused(&name(7), key(&name(7), 0)).is_some());
    }
}

#[test]
fn a_revoked_key_is_refused_everywhere() {
    let mut world = World::from_one_seed(30, 4, None);
    world.until(MINUTE, "all know all", |it| it.all_know(30));
    let stolen = key(&name(5), 0);
    let revocation = Revocation { site: name(5), key: stolen, when_ms: 1 };
    let sign = |text: &[u8]| Some(signature(AUTHORITY, text));
    let revocation = SignedStatement::new(&Statement::Revocation(revocation), b"", sign).unwrap();
    world.hand_in(0, &revocation);
    let refused = |it: &World| {
        it.up().all(|(_, member)| member.directory().is_refused(&name(5), stolen).is_some())
    };
    world.until(10_000, "all refuse it", refused);
}

/// What a site with a key of its own can say in the name of others.
fn lies(world: &World, liar: usize, about: usize) -> Vec<SignedStatement> {
    let statements = [
        Statement::Record(SiteRecord {
            site: name(about),
            epoch: 1 << 50,
            state: Membership::Left,
            addresses: vec!["liar.example:1".into()],
            labels: [].into(),
            services: [].into(),
            software: "lie".into(),
        }),
        Statement::LinkState(LinkState { site: name(about), number: 1 << 50, hears: Vec::new() }),
        Statement::Removal(Removal {
            site: name(about),
            dead: true,
            when_ms: 1,
            asked_by: "liar".into(),
        }),
        Statement::Revocation(Revocation {
            site: name(about),
            key: key(&name(about), 0),
            when_ms: 1,
        }),
    ];
    let by = key(&name(liar), 0);
    let shown = [certificate(&name(liar), 0), certificate(&name(about), 0)];
    let made = statements.iter().flat_map(|statement| {
        shown.iter().map(move |shown| {
            SignedStatement::new(statement, shown, |text| Some(signature(by, text))).unwrap()
        })
    });
    // And what that site said itself once.
    let old = world.members[about].as_ref().unwrap().directory().statements();
    let old = old.filter(|signed| *signed.statement().site() == name(about));
    made.chain(old.cloned()).collect()
}

fn lied_to(planted: Option<Planted>) -> World {
    let mut world = World::from_one_seed(20, 6, planted);
    world.until(MINUTE, "views agree", |it| it.all_know(20) && it.views_agree());
    for about in [3, 8, 15] {
        let lies = lies(&world, 11, about);
        for to in 0..20 {
            if to != 11 {
                world.say(11, to, lies.clone());
            }
        }
        // Later is too late: who is lied about says again what it is.
        assert!(world.no_lie_is_believed(), "about {about}");
    }
    world.run(MINUTE);
    world
}

#[test]
fn nobody_is_believed_in_anothers_name() {
    let world = lied_to(None);
    assert!(world.refused > 0);
    assert!(world.all_know(20) && world.views_agree() && world.all_is_true());
}

fn is_found(planted: Planted) -> bool {
    let run = move || match planted {
        Planted::BelievesAnybody => {
            let world = lied_to(Some(planted));
            assert!(world.all_know(20) && world.views_agree() && world.all_is_true());
        }
        _ => {
            let mut world = troubled(12, 1, Some(planted));
            end_well(&mut world, 12);
        }
    };
    std::panic::catch_unwind(run).is_err()
}

#[test]
fn the_checks_find_bugs_that_are_planted() {
    let bugs = [
        Planted::BelievesAnybody,
        Planted::PassesNothingOn,
        Planted::LinkDownUntold,
        Planted::OneSideUp,
    ];
    for planted in bugs {
        assert!(is_found(planted), "{planted:?} was not found");
    }
}

#[test]
fn what_a_site_says_of_itself_anew_reaches_all_also_after_its_clock_went_back() {
    let mut world = World::from_one_seed(25, 8, None);
    world.until(MINUTE, "all know all", |it| it.all_know(25));
    let ahead = Statement::Record(SiteRecord {
        site: name(4),
        epoch: 1 << 45,
        state: Membership::Alive,
        addresses: vec!["old.example:1".into()],
        labels: [].into(),
        services: [].into(),
        software: "0.0.9".into(),
    });
    let sign = |text: &[u8]| Some(signature(key(&name(4), 0), text));
    let ahead = SignedStatement::new(&ahead, &certificate(&name(4), 0), sign).unwrap();
    world.say(3, 9, vec![ahead]);
    // That one has lost its disk since, and says what holds now.
    world.until(MINUTE, "what it says now counts", |it| {
        it.all_is_true()
            && it.members[9].as_ref().unwrap().directory().record(&name(4)).unwrap().epoch > 1 << 45
    });
    let hears = vec![Hears { site: name(0), round_trip_us: 1 }];
    let state = Statement::LinkState(LinkState { site: name(4), number: 1 << 45, hears });
    let sign = |text: &[u8]| Some(signature(key(&name(4), 0), text));
    let state = SignedStatement::new(&state, b"", sign).unwrap();
    world.say(3, 9, vec![state]);
    world.until(MINUTE, "whom it hears now counts", World::views_agree);
}

/// Messages and bytes per site and second while nothing happens.
fn at_rest(count: usize) -> (f64, f64, f64) {
    let mut world = World::that_starts_again(count, 7);
    world.until(2 * MINUTE, "views agree", World::views_agree);
    world.run(2 * MINUTE);
    let (messages, bytes, made) = (world.messages, world.bytes, world.links_made);
    world.run(MINUTE);
    assert!(world.views_agree());
    assert_eq!(world.links_made, made, "links come and go at rest");
    let per = |count: u64| count as f64 / 60.0 / world.up().count() as f64;
    let (messages, bytes) = (per(world.messages - messages), per(world.bytes - bytes));
    (messages, bytes, world.links_per_site())
}

#[test]
fn rest_costs_a_site_the_same_among_a_hundred_and_among_a_thousand() {
    let (few, many) = (at_rest(100), at_rest(1_000));
    assert!(many.0 <= few.0 * 1.1 && many.1 <= few.1 * 1.1, "{few:?} {many:?}");
    assert!(many.2 <= few.2 * 1.5, "{few:?} {many:?}");
}

#[test]
fn a_site_that_takes_its_leave_is_nobodys_neighbour_any_more() {
    let mut world = World::from_one_seed(15, 2, None);
    world.until(MINUTE, "views agree", |it| it.all_know(15) && it.views_agree());
    let record = world.members[6].as_ref().unwrap().directory().record(&name(6)).unwrap().clone();
    let own = cheops_directory::OwnSite {
        state: Membership::Left,
        addresses: record.addresses,
        labels: record.labels,
        services: record.services,
        software: record.software,
    };
    world.handle(6, GossipEvent::Announced(own));
    world.until(MINUTE, "all know", |it| {
        it.up().all(|(_, member)| {
            matches!(member.directory().existence(&name(6)), Existence::Left(_))
                && !member.wanted().contains(&name(6))
        })
    });
}
