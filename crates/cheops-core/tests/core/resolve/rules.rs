//! Every row of the rules, one by one.

use super::world::{REDIS, REDIS_KEEP_BOTH, World, kind, matrix};
use cheops_core::model::Replaces;
use cheops_core::resolve::{ListChange, Resolution, Why, explain};
use expect_test::expect;

/// `a` then `b`, the second on top of the first.
fn in_sequence(entry: &str) -> String {
    let mut world = World::new(&matrix(entry), &["1"]);
    world.does("1", 1, "a", "a");
    world.does("1", 2, "b", "b");
    world.list()
}

/// `a` and `b` concurrent, `a` first in total order.
fn at_once(entry: &str) -> String {
    let mut world = World::new(&matrix(entry), &["1", "2"]);
    world.does("1", 1, "a", "a");
    world.does("2", 2, "b", "b");
    world.heals();
    world.list()
}

#[test]
fn an_operation_on_top_of_another_is_appended_or_replaces_by_the_entry() {
    let table = [
        ("", "a b"),
        ("a b take-both", "a b"),
        ("a b keep-order", "a b"),
        ("a b ordered", "a b"),
        ("a b logic:text", "a b"),
        ("a b take-one", "b"),
        ("a b reverse-order", "b"),
        ("a b reverse-order keep-both", "b"),
        ("b a take-one", "a b"),
    ];
    for (entry, expected) in table {
        assert_eq!(in_sequence(entry), expected, "{entry}");
    }
}

#[test]
fn of_two_concurrent_operations_those_count_that_the_entry_says() {
    let table = [
        ("", "a b"),
        ("a b take-both", "a b"),
        ("a b ordered", "a b"),
        ("a b logic:text", "a b"),
        ("a b take-one", "b"),
        ("a b keep-order", "a"),
        ("a b keep-order keep-both", "a b"),
        ("a b reverse-order", "b"),
        ("a b reverse-order keep-both", "b a"),
        ("b a take-one", "a b"),
    ];
    for (entry, expected) in table {
        assert_eq!(at_once(entry), expected, "{entry}");
    }
}

#[test]
fn the_reason_names_the_winner_and_the_entry() {
    let mut world = World::new(&matrix("a b take-one\n b c keep-order"), &["1", "2", "3"]);
    let a = world.does("1", 1, "a", "a");
    let b = world.does("2", 2, "b", "b");
    let c = world.does("3", 3, "c", "c");
    world.heals();
    assert_eq!(world.list(), "b");
    let (a, c) = (world.left_out(&a), world.left_out(&c));
    assert_eq!((a.by.as_ref(), c.by.as_ref()), (Some(&b), Some(&b)));
    let Why::LastWriter { entry } = a.why else { panic!("{a:?}") };
    assert_eq!(entry.to_string(), "(a, b): take-one");
    let Why::ReplaceWins { entry } = c.why else { panic!("{c:?}") };
    assert_eq!(entry.to_string(), "(b, c): take-both-keep-order, replace-wins");
}

#[test]
fn an_operation_is_never_ruled_out_by_its_own_past() {
    // given: concurrent, the set would win; on top of it, the inc counts
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("1", 1000, "set", "set");
    world.tells("1", "2");
    world.does("2", 1, "inc", "inc");
    world.heals();
    assert_eq!(world.list(), "set inc");
}

#[test]
fn an_operation_is_never_ruled_out_by_one_left_out() {
    // given: a set that would rule out a concurrent inc, but lost to a set which the inc knows
    let mut world = World::new(&matrix(REDIS), &["1", "2", "3"]);
    world.does("1", 5, "set", "loser");
    world.does("2", 9, "set", "winner");
    world.tells("2", "3");
    world.does("3", 10, "inc", "inc");
    world.heals();
    assert_eq!(world.list(), "winner inc");
}

#[test]
fn what_a_void_operation_had_superseded_counts_again() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("1", 1, "set", "old");
    let replacing = world.does("1", 2, "set", "failing");
    world.does("1", 3, "inc", "inc");
    world.does("2", 1, "inc", "concurrent");
    world.heals();
    assert_eq!(world.list(), "failing inc");
    world.fails_everywhere(&replacing);
    assert_eq!(world.list(), "old inc");
}

#[test]
fn a_forced_operation_replaces_its_whole_past_whatever_the_matrix_says() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    let set = world.does("1", 1, "set", "set");
    world.does("1", 2, "inc", "inc");
    let forced = world.forces("1", 3, "inc", "forced");
    world.does("2", 4, "inc", "elsewhere");
    world.heals();
    assert_eq!(world.made[2].replaces, Replaces::PastByForce);
    assert_eq!(world.list(), "forced elsewhere");
    let reason = world.left_out(&set);
    assert_eq!((reason.by, reason.why), (Some(forced), Why::Forced));
}

const CIRCLE: &str = "
    a b keep-order
    b c keep-order
    a c take-one";

#[test]
fn in_a_circle_the_last_in_total_order_counts_and_rules() {
    // a rules b out, b rules c out, c rules a out
    let mut world = World::new(&matrix(CIRCLE), &["1", "2", "3"]);
    let a = world.does("1", 1, "a", "a");
    let b = world.does("2", 2, "b", "b");
    let c = world.does("3", 3, "c", "c");
    world.heals();
    assert_eq!(world.list(), "c");
    let (a, b) = (world.left_out(&a), world.left_out(&b));
    assert_eq!((a.by, b.by), (Some(c.clone()), Some(c)));
    assert!(matches!(a.why, Why::LastWriter { .. }), "{:?}", a.why);
    assert!(matches!(b.why, Why::Circle { .. }), "{:?}", b.why);
}

#[test]
fn what_a_circle_keeps_undecided_may_be_decided_by_a_later_operation() {
    let mut world = World::new(&matrix(&format!("{CIRCLE}\n c d take-one")), &["1", "2", "3", "4"]);
    world.does("1", 1, "a", "a");
    world.does("2", 2, "b", "b");
    world.does("3", 3, "c", "c");
    world.does("4", 4, "d", "d");
    world.heals();
    // d rules c out, so a counts, so b is out
    assert_eq!(world.list(), "a d");
}

#[test]
fn what_hung_on_a_circle_and_counted_gives_way_when_it_turns_void() {
    // c rules d out too, but d is the last of those undecided
    let entries = format!("{CIRCLE}\n c d keep-order");
    let mut world = World::new(&matrix(&entries), &["1", "2", "3", "4"]);
    world.does("1", 1, "a", "a");
    world.does("2", 2, "b", "b");
    world.does("3", 3, "c", "c");
    let last = world.does("4", 4, "d", "d");
    world.heals();
    assert_eq!(world.list(), "a d");
    world.fails_everywhere(&last);
    assert_eq!(world.list(), "c");
}

#[test]
fn with_keep_both_a_set_runs_first_with_what_it_was_made_on_and_no_inc_is_lost() {
    let entries = format!("{REDIS_KEEP_BOTH}\n mark set take-both");
    let mut world = World::new(&matrix(&entries), &["1", "2"]);
    world.does("1", 1, "inc", "inc1");
    world.does("1", 2, "inc", "inc2");
    world.does("2", 3, "mark", "mark");
    world.does("2", 4, "set", "set");
    world.does("2", 5, "inc", "inc3");
    world.heals();
    assert_eq!(world.list(), "mark set inc1 inc2 inc3");
}

#[test]
fn contradicting_orders_give_the_same_list_everywhere_and_lose_nothing() {
    // each wants to run before the next, in a circle
    let circle = "
        a b reverse-order keep-both
        b c reverse-order keep-both
        a c keep-order keep-both";
    let mut world = World::new(&matrix(circle), &["1", "2", "3"]);
    world.does("1", 1, "a", "a");
    world.does("2", 2, "b", "b");
    world.does("3", 3, "c", "c");
    world.heals();
    assert_eq!(world.list(), "c b a");
}

#[test]
fn each_insertion_says_what_it_changed() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("1", 10, "inc", "a");
    world.does("1", 11, "inc", "b");
    world.does("2", 5, "inc", "early");
    world.does("2", 6, "set", "set");
    world.does("2", 7, "inc", "after");
    let mut resolution = Resolution::new(matrix(REDIS));
    let changes: Vec<_> = world.made.iter().map(|op| resolution.insert(op.clone())).collect();
    use ListChange::{Appended, Inserted, Nothing, Rearranged};
    assert_eq!(changes, [Appended, Appended, Inserted, Rearranged, Appended]);
    assert_eq!(resolution.insert(world.made[0].clone()), Nothing);
    assert_eq!(resolution.mark_void(&world.made[0].id), Nothing, "it was left out");
    assert_eq!(resolution.mark_void(&world.made[3].id), Rearranged);
}

#[test]
fn another_config_resolves_the_same_operations_anew() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("1", 1, "inc", "inc");
    world.does("2", 2, "set", "set");
    let mut resolution = Resolution::new(matrix(REDIS));
    for operation in &world.made {
        resolution.insert(operation.clone());
    }
    assert_eq!(resolution.list().count(), 1);
    let anew = resolution.anew(matrix(REDIS_KEEP_BOTH), []);
    let list: Vec<_> = anew.list().cloned().collect();
    assert_eq!(list, [world.made[1].id.clone(), world.made[0].id.clone()]);
}

#[test]
fn the_floor_is_the_last_replacing_operation_that_everyone_built_on() {
    let mut world = World::new(&matrix(REDIS), &["1", "2"]);
    world.does("1", 1, "inc", "inc");
    assert_eq!(world.at("1").floor(), None, "nothing replaces");
    let set = world.does("1", 2, "set", "set");
    world.does("1", 3, "inc", "more");
    assert_eq!(world.at("1").floor(), Some(&set));
    world.does("2", 1, "inc", "concurrent");
    world.heals();
    assert_eq!(world.at("1").floor(), None, "one concurrent to it arrived");
    let next = world.does("2", 9, "set", "next");
    world.heals();
    assert_eq!(world.at("1").floor(), Some(&next));
}

#[test]
fn pruning_what_lies_below_the_floor_changes_nothing_and_heads_stay() {
    let mut world = World::new(&matrix(REDIS), &["1"]);
    world.does("1", 1, "inc", "inc");
    let set = world.does("1", 2, "set", "set");
    let mut resolution = world.at("1").clone();
    let below = resolution.operations().past(&set).unwrap().clone();
    resolution.prune(&below);
    assert_eq!(resolution.operations().len(), 1);
    assert_eq!(resolution.list().collect::<Vec<_>>(), [&set]);
    assert_eq!(resolution.insert(world.made[0].clone()), ListChange::Nothing, "it was pruned");
    assert_eq!(resolution.operations().heads(), [set]);
}

#[test]
fn a_new_operation_is_stamped_by_the_entry_against_the_last_of_the_list() {
    let mut world = World::new(&matrix(REDIS), &["1"]);
    let stamp = |world: &World, name| world.at("1").replaces(&kind(name), false);
    assert_eq!(stamp(&world, "set"), Replaces::Nothing, "nothing to replace");
    world.does("1", 1, "inc", "inc");
    assert_eq!(stamp(&world, "set"), Replaces::Past);
    assert_eq!(stamp(&world, "inc"), Replaces::Nothing);
    assert_eq!(world.at("1").replaces(&kind("inc"), true), Replaces::PastByForce);
}

#[test]
fn the_explanation_tells_what_each_operation_was_made_on_and_why_it_is_in_or_out() {
    let mut world = World::new(&matrix(REDIS_KEEP_BOTH), &["1", "2", "3"]);
    world.does("1", 1, "set", "set x 1");
    world.does("1", 2, "inc", "incrby x 5");
    world.does("2", 3, "set", "set x 2");
    world.does("2", 4, "set", "set x 3");
    let failing = world.does("3", 5, "inc", "sadd x 1");
    world.heals();
    world.fails_everywhere(&failing);
    let explanation = explain(world.at("1").operations(), &matrix(REDIS_KEEP_BOTH));
    expect![[r#"
        operations:
            1-1.1 set at 1+0 on nothing: set x 1
          * 1-1.2 inc at 2+0 on 1-1.1: incrby x 5
            2-1.1 set at 3+0 on nothing: set x 2
          * 2-1.2 set at 4+0 on 2-1.1, replaces its past: set x 3
            3-1.1 inc at 5+0 on nothing: sadd x 1
        list:
          1. 2-1.2 set: set x 3
          2. 1-1.2 inc: incrby x 5
        because:
          1-1.1 is overridden: 2-1.2 is concurrent and was written last; (set, set): take-one
          2-1.1 is overridden: 2-1.2 was made after it and replaces all before it
          3-1.1 does not count: it failed at every site
          2-1.2 and 1-1.2 are concurrent and both count, 2-1.2 first; (inc, set): take-both-reverse-order, keep-both
    "#]].assert_eq(&explanation.to_string());
}

#[test]
fn of_many_that_one_entry_puts_before_an_operation_the_explanation_names_the_last() {
    let config = matrix(
        "b a keep-order keep-both
         a b reverse-order keep-both
         a a take-both
         b b take-both",
    );
    let mut world = World::new(&config, &["1", "2"]);
    world.does("1", 1, "a", "a");
    for n in 2..5 {
        world.does("2", n, "b", "b");
    }
    world.heals();
    let decisions = explain(world.at("1").operations(), &config).decisions;
    let sentences: Vec<_> = decisions.iter().map(|decision| decision.sentence.as_str()).collect();
    let expected = "2-1.3 and 1-1.1 are concurrent and both count, 2-1.3 first, as 2 others before it; \
                    (a, b): take-both-reverse-order, keep-both";
    assert_eq!(sentences, [expected]);
}
