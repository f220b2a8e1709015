//! Figures 9 to 12 of the technical report, through real engines at real sites.

use crate::cluster::Cluster;
use expect_test::{Expect, expect};

const REPLACE_WINS: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const KEEP_BOTH: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// What every site makes of the resource once all agree.
fn check(cluster: &mut Cluster, expected: &Expect) {
    cluster.converges();
    let mut lines = vec![format!("list:  {}", cluster.list_everywhere().join(" | "))];
    lines.push(format!("value: {}", cluster.value_everywhere()));
    for operation in cluster.view(0).operations {
        let Some(left_out) = operation.left_out else { continue };
        let winner = left_out.by.map_or_else(|| "nobody".to_owned(), |by| cluster.command(&by));
        lines.push(format!("out:   {} by {winner}", operation.operation.payload.summary()));
    }
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

/// Two sites that do not hear each other, each with a list of its own. The clock of the second is
/// so much ahead.
fn two_lists(config: &str, lists: [&[(&str, &str)]; 2], ahead_ms: i64) -> Cluster {
    let mut cluster = Cluster::new(2, config);
    cluster.world.sites[1].skew_ms = ahead_ms;
    cluster.world.cut_all();
    for (site, list) in lists.into_iter().enumerate() {
        for (kind, command) in list {
            cluster.does(site, kind, command);
            cluster.passes(100);
        }
    }
    cluster.passes(5_000);
    cluster.world.network.heal_all();
    cluster
}

#[test]
fn figure_9_an_inc_on_top_of_an_inc_is_appended() {
    let mut cluster = Cluster::new(2, REPLACE_WINS);
    cluster.does(0, "inc", "inc 1");
    cluster.does(0, "inc", "inc 2");
    check(
        &mut cluster,
        &expect![[r#"
            list:  inc 1 | inc 2
            value: 3
        "#]],
    );
    cluster.does(1, "inc", "inc 4");
    check(
        &mut cluster,
        &expect![[r#"
            list:  inc 1 | inc 2 | inc 4
            value: 7
        "#]],
    );
}

#[test]
fn figure_10_a_set_on_top_of_an_inc_replaces_the_entire_list() {
    for config in [REPLACE_WINS, KEEP_BOTH] {
        let mut cluster = Cluster::new(2, config);
        cluster.does(0, "set", "set 10");
        cluster.does(0, "inc", "inc 1");
        check(
            &mut cluster,
            &expect![[r#"
                list:  set 10 | inc 1
                value: 11
            "#]],
        );
        cluster.does(1, "set", "set 20");
        assert_eq!(cluster.view(1).list.len(), 1, "at once, at the site that was asked");
        // What was replaced is known to every site, and so it is forgotten.
        check(
            &mut cluster,
            &expect![[r#"
                list:  set 20
                value: 20
            "#]],
        );
    }
}

const SET_INC: [&[(&str, &str)]; 2] =
    [&[("set", "set 10"), ("inc", "inc 1")], &[("set", "set 20"), ("inc", "inc 2")]];

#[test]
fn figure_11_of_two_lists_that_start_with_set_the_winners_set_stays_and_what_follows_of_both() {
    check(
        &mut two_lists(KEEP_BOTH, SET_INC, 10_000),
        &expect![[r#"
            list:  set 20 | inc 1 | inc 2
            value: 23
            out:   set 10 by set 20
        "#]],
    );
    check(
        &mut two_lists(KEEP_BOTH, SET_INC, -10_000),
        &expect![[r#"
            list:  set 10 | inc 2 | inc 1
            value: 13
            out:   set 20 by set 10
        "#]],
    );
}

#[test]
fn figure_11_where_the_replacing_one_wins_the_losers_inc_goes_with_its_set() {
    check(
        &mut two_lists(REPLACE_WINS, SET_INC, 10_000),
        &expect![[r#"
            list:  set 20 | inc 2
            value: 22
            out:   set 10 by set 20
            out:   inc 1 by set 20
        "#]],
    );
}

const INC_AND_SET: [&[(&str, &str)]; 2] =
    [&[("inc", "inc 1"), ("inc", "inc 2")], &[("set", "set 20"), ("inc", "inc 4")]];

#[test]
fn figure_12_a_list_that_starts_with_inc_and_one_with_set_are_both_kept_the_set_first() {
    check(
        &mut two_lists(KEEP_BOTH, INC_AND_SET, 10_000),
        &expect![[r#"
            list:  set 20 | inc 1 | inc 2 | inc 4
            value: 27
        "#]],
    );
    check(
        &mut two_lists(KEEP_BOTH, INC_AND_SET, -10_000),
        &expect![[r#"
            list:  set 20 | inc 4 | inc 1 | inc 2
            value: 27
        "#]],
    );
}

#[test]
fn figure_12_where_the_replacing_one_wins_only_its_own_list_stays() {
    for ahead_ms in [10_000, -10_000] {
        check(
            &mut two_lists(REPLACE_WINS, INC_AND_SET, ahead_ms),
            &expect![[r#"
                list:  set 20 | inc 4
                value: 24
                out:   inc 1 by set 20
                out:   inc 2 by set 20
            "#]],
        );
    }
}
