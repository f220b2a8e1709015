//! Thousands of operations: no deep recursion, no explosion.

use super::world::{REDIS, World, matrix};
use cheops_core::resolve::{OperationSet, resolve};

#[test]
fn a_long_history_that_one_cut_off_operation_keeps_open() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("2", 1, "inc", "cut off");
    for n in 1..=5_000 {
        world.does("1", n, "set", "set");
    }
    world.heals();
    assert_eq!(world.list(), "set");
}

#[test]
fn a_circle_of_two_thousand() {
    let circle = "
        a b keep-order
        b c keep-order
        a c take-one";
    let mut world = World::new(&matrix(circle), &["1", "2", "3"]);
    for n in 1..=700 {
        world.does("1", n, "a", "a");
        world.does("2", 1_000 + n, "b", "b");
        world.does("3", 2_000 + n, "c", "c");
    }
    let mut operations = OperationSet::default();
    world.made.iter().for_each(|operation| operations.insert(operation.clone()));
    let list = resolve(&operations, &matrix(circle)).list;
    assert!(list.len() == 700 && list.iter().all(|id| id.site().as_str() == "3"));
}

#[test]
fn a_long_past_that_must_run_early() {
    let entries = "
        inc set reverse-order keep-both
        set inc keep-order keep-both";
    let mut world = World::new(&matrix(entries), &["1", "2"]);
    world.does("1", 1, "inc", "last");
    for n in 0..3_000 {
        world.does("2", 10 + n, "mark", "mark");
    }
    world.does("2", 10_000, "set", "set");
    world.tells("2", "1");
    let list = world.list_at("1");
    assert!(list.starts_with("mark mark") && list.ends_with("set last"), "{list}");
}
