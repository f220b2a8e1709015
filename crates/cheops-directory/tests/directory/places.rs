//! Who is whose neighbour, and who is alive.

use std::collections::{BTreeMap, BTreeSet};

use cheops_core::model::SiteId;
use cheops_directory::{Hears, LinkState, Ring, reachable};

use crate::keys::site;

fn sites(count: usize) -> Vec<SiteId> {
    (0..count).map(|n| site(&format!("s{n}"))).collect()
}

fn neighbours(ring: &Ring, of: &SiteId) -> BTreeSet<SiteId> {
    ring.neighbours(of).filter_map(|mut places| places.next().cloned()).collect()
}

#[test]
fn neighbours_are_few_the_same_seen_from_both_and_few_steps_lead_everywhere() {
    for (count, most, steps) in [
        (2, 1, 1),
        (5, 4, 1),
        (10, 9, 1),
        (11, 4, 3),
        (200, 8, 10),
        (1_000, 10, 14),
        (4_096, 14, 14),
    ] {
        let sites = sites(count);
        let ring = Ring::new(sites.iter().cloned());
        let all: BTreeMap<_, _> =
            sites.iter().map(|it| (it.clone(), neighbours(&ring, it))).collect();
        for (one, theirs) in &all {
            assert!(theirs.len() <= most, "{count}: {} neighbours", theirs.len());
            assert!(!theirs.contains(one));
            assert!(theirs.iter().all(|other| all[other].contains(one)), "{count}");
        }
        let mut reached = BTreeSet::from([sites[0].clone()]);
        let mut taken = 0;
        while reached.len() < count {
            let next = reached.iter().flat_map(|it| all[it].clone()).collect::<Vec<_>>();
            reached.extend(next);
            taken += 1;
            assert!(taken <= steps, "{count} sites: more than {steps} steps");
        }
    }
}

#[test]
fn behind_each_neighbour_stand_others_to_take_in_its_place() {
    let ring = Ring::new(sites(100));
    let me = site("s7");
    for places in ring.neighbours(&me) {
        let places: Vec<_> = places.cloned().collect();
        assert!(places.len() > 20, "{places:?}");
        assert!(!places.contains(&me));
        assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len());
    }
    assert_eq!(ring.neighbours(&site("nobody")).count(), 0);
}

fn states(says: &[(&str, &[&str])]) -> BTreeMap<SiteId, LinkState> {
    let state = |(name, hears): &(&str, &[&str])| {
        let mut hears: Vec<_> =
            hears.iter().map(|it| Hears { site: site(it), round_trip_us: 10 }).collect();
        hears.sort_by(|one, other| one.site.cmp(&other.site));
        (site(name), LinkState { site: site(name), number: 1, hears })
    };
    says.iter().map(state).collect()
}

fn alive(links: &[&str], says: &[(&str, &[&str])]) -> String {
    let (links, states) = (links.iter().map(|it| site(it)).collect::<Vec<_>>(), states(says));
    let links = links.iter().map(|it| (it, 5));
    let ways = reachable(&site("me"), links, |it| states.get(it));
    let told =
        ways.iter().map(|(it, way)| format!("{it} by {} {}", way.heard_by, way.round_trip_us));
    told.collect::<Vec<_>>().join(", ")
}

#[test]
fn alive_is_who_can_be_reached_over_pairs_that_hear_each_other() {
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a [&'a str])], &'a str);
    let cases: [Case<'_>; 6] = [
        (&[], &[("a", &["b"]), ("b", &["a"])], ""),
        (&["a"], &[("a", &["me", "b"]), ("b", &["a"])], "a by me 5, b by a 15"),
        // The dead one said so while it lived; nobody says it any more.
        (&["a"], &[("a", &["me"]), ("b", &["a"])], "a by me 5"),
        // One way only.
        (&["a"], &[("a", &["me", "b"]), ("b", &[])], "a by me 5"),
        // Of an earlier version, which says nothing.
        (&["a"], &[("a", &["me", "b"])], "a by me 5, b by a 15"),
        // The shorter way.
        (
            &["a", "c"],
            &[("a", &["me", "b"]), ("b", &["a", "d"]), ("c", &["me", "d"]), ("d", &["b", "c"])],
            "a by me 5, b by a 15, c by me 5, d by c 15",
        ),
    ];
    for (links, says, expected) in cases {
        assert_eq!(alive(links, says), expected, "{says:?}");
    }
}
