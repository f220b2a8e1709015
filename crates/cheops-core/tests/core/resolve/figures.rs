//! Figures 9 to 12 of the technical report, section 3.2.3.

use super::world::{REDIS, REDIS_KEEP_BOTH, World, matrix};
use cheops_core::model::Replaces;
use cheops_core::resolve::Why;

#[test]
fn figure_9_an_inc_on_top_of_an_inc_is_appended() {
    let mut world = World::new(&matrix(REDIS), &["1"]);
    world.does("1", 1, "inc", "INC1");
    world.does("1", 2, "inc", "INC2");
    world.does("1", 3, "inc", "INC3");
    assert_eq!(world.list(), "INC1 INC2 INC3");
}

#[test]
fn figure_10_a_set_on_top_of_an_inc_replaces_the_whole_list() {
    let mut world = World::new(&matrix(REDIS), &["1"]);
    let old = world.does("1", 1, "set", "SET1");
    world.does("1", 2, "inc", "INC1");
    let new = world.does("1", 3, "set", "SET2");
    assert_eq!(world.list(), "SET2");
    assert_eq!(world.made[2].replaces, Replaces::Past);
    let reason = world.left_out(&old);
    assert_eq!((reason.by, reason.why), (Some(new), Why::Replaced));
}

/// Two sites, each with a set and an inc on top of it; `winner` is the one whose set is later.
fn figure_11(first: u64, second: u64) -> String {
    let mut world = World::new(&matrix(REDIS_KEEP_BOTH), &["1", "2"]);
    world.does("1", first, "set", "SET1");
    world.does("1", first + 1, "inc", "INC1");
    world.does("2", second, "set", "SET2");
    world.does("2", second + 1, "inc", "INC2");
    world.heals();
    world.list()
}

#[test]
fn figure_11_of_two_lists_that_start_with_set_the_winners_set_stays_and_all_that_follows_of_both() {
    assert_eq!(figure_11(1, 10), "SET2 INC1 INC2");
    assert_eq!(figure_11(10, 1), "SET1 INC2 INC1");
    assert_eq!(figure_11(5, 5), "SET2 INC1 INC2", "equal stamps: the site's name decides");
}

/// One site with an inc and another on top, one with a set and an inc on top.
fn figure_12(first: u64, second: u64) -> String {
    let mut world = World::new(&matrix(REDIS_KEEP_BOTH), &["1", "2"]);
    world.does("1", first, "inc", "INC1");
    world.does("1", first + 1, "inc", "INC2");
    world.does("2", second, "set", "SET");
    world.does("2", second + 1, "inc", "INC3");
    world.heals();
    world.list()
}

#[test]
fn figure_12_a_list_that_starts_with_inc_and_one_that_starts_with_set_are_both_kept_the_set_first()
{
    assert_eq!(figure_12(1, 10), "SET INC1 INC2 INC3");
    assert_eq!(figure_12(10, 1), "SET INC3 INC1 INC2");
}
