//! The published experiments on three sites, as lists, for every order of the sites' clocks.

use super::world::{ORDERS, World, matrix};
use cheops_core::resolve::Why;

const TABLE_4: &str = "apply apply take-one";
const TABLE_5: &str = "
    set inc keep-order
    inc set reverse-order
    inc inc take-both";
const TABLE_6: &str = "
    set add keep-order
    add set reverse-order
    set set take-one";

type Experiment = (&'static str, [(&'static str, &'static str); 3]);

const REDIS: Experiment = (TABLE_5, [("set", "=29"), ("inc", "+13"), ("inc", "-12")]);
const FILE: Experiment = (TABLE_6, [("add", "left"), ("set", "middle"), ("add", "right")]);
const KUBERNETES: Experiment = (TABLE_4, [("apply", "2"), ("apply", "3"), ("apply", "4")]);

/// An initial operation that all know, then one per site, each known to all before the next.
fn sequential((table, operations): Experiment, initial: &str) -> String {
    let mut world = World::new(&matrix(table), &["1", "2", "3"]);
    world.does("1", 1, initial, "initial");
    for ((kind, label), site) in operations.into_iter().zip(["1", "2", "3"]) {
        world.heals();
        world.does(site, 1, kind, label);
    }
    world.heals();
    world.list()
}

/// The same, the network cut after the initial operation and healed at the end.
fn cut((table, operations): Experiment, initial: &str, clocks: [u64; 3]) -> World {
    let mut world = World::new(&matrix(table), &["1", "2", "3"]);
    world.does("1", 1, initial, "initial");
    world.heals();
    for (((kind, label), site), at) in operations.into_iter().zip(["1", "2", "3"]).zip(clocks) {
        world.does(site, 10 * at, kind, label);
    }
    world.heals();
    world
}

#[test]
fn one_after_the_other_redis_gives_30_the_file_middle_and_right_and_kubernetes_4() {
    // `set` on top of the initial `set` is not listed in table 5, so both stay; the last decides.
    assert_eq!(sequential(REDIS, "set"), "initial =29 +13 -12");
    assert_eq!(sequential(FILE, "set"), "middle right");
    assert_eq!(sequential(KUBERNETES, "apply"), "4");
}

#[test]
fn cut_and_healed_redis_gives_29_whatever_the_clocks_say() {
    for clocks in ORDERS {
        let world = cut(REDIS, "set", clocks);
        assert_eq!(world.list(), "initial =29", "{clocks:?}");
        let set = &world.made[1].id;
        for inc in &world.made[2..] {
            let reason = world.left_out(&inc.id);
            assert_eq!(reason.by.as_ref(), Some(set));
            assert!(matches!(reason.why, Why::ReplaceWins { .. }), "{reason:?}");
        }
    }
}

#[test]
fn cut_and_healed_the_file_holds_middle_whatever_the_clocks_say() {
    for clocks in ORDERS {
        assert_eq!(cut(FILE, "set", clocks).list(), "middle", "{clocks:?}");
    }
}

#[test]
fn cut_and_healed_kubernetes_keeps_the_last_writers() {
    for clocks in ORDERS {
        let world = cut(KUBERNETES, "apply", clocks);
        let last = clocks.iter().position(|at| *at == 3).unwrap();
        assert_eq!(world.list(), ["2", "3", "4"][last], "{clocks:?}");
    }
}

#[test]
fn a_failing_inc_or_append_changes_nothing_since_the_set_wins_anyway() {
    for clocks in ORDERS {
        for (experiment, expected) in [(REDIS, "initial =29"), (FILE, "middle")] {
            let mut world = cut(experiment, "set", clocks);
            let failing = world.made[3].id.clone();
            world.fails_everywhere(&failing);
            assert_eq!(world.list(), expected, "{clocks:?}");
            assert_eq!(world.left_out(&failing).why, Why::FailedEverywhere);
        }
    }
}

#[test]
fn where_an_apply_fails_everywhere_the_last_writer_among_the_others_counts() {
    for clocks in ORDERS {
        let mut world = cut(KUBERNETES, "apply", clocks);
        let failing = world.made[3].id.clone();
        world.fails_everywhere(&failing);
        let expected = if clocks[0] > clocks[1] { "2" } else { "3" };
        assert_eq!(world.list(), expected, "{clocks:?}");
    }
}
