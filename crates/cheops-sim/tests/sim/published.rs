//! The published outcomes, end to end: the report's experiments on three sites, with the report's
//! matrices, for every order of the sites' clocks.

use crate::cluster::Cluster;
use crate::report::{TABLE_4, TABLE_5, TABLE_6};
use cheops_core::model::{OperationId, Status};
use cheops_core::resolve::Why;
use cheops_sim::site_name;

const TABLE_5_KEPT: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

const TABLE_6_KEPT: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// The same with the truth about two appends: their order matters.
const TABLE_6_KEPT_ORDERED: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// Stock that is taken from, and in ones where there is not enough of it.
const P_COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "take", "Result": "take-both-keep-order"},
    {"Before": "take", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "take", "After": "take", "Result": "take-both"}],
    "Types": {"take": {"Decompose": "into ones"}}}"#;

/// A type and a command.
type Does = (&'static str, &'static str);

/// An experiment: what is done at first, and what is done at the three sites.
struct Experiment {
    initial: Does,
    operations: [Does; 3],
}

const REDIS: Experiment = Experiment {
    initial: ("set", "set 10"),
    operations: [("set", "set 29"), ("inc", "inc 13"), ("inc", "inc -12")],
};
const FILE: Experiment = Experiment {
    initial: ("set", "set initial\n"),
    operations: [("add", "append left\n"), ("set", "set middle\n"), ("add", "append right\n")],
};
const KUBERNETES: Experiment = Experiment {
    initial: ("apply", "set 1"),
    operations: [("apply", "set 2"), ("apply", "set 3"), ("apply", "set 4")],
};

impl Experiment {
    /// The same with an operation that fails wherever it runs, its type being what it was.
    fn failing_at(&self, site: usize) -> Self {
        let mut operations = self.operations;
        operations[site].1 = "fail";
        Self { initial: self.initial, operations }
    }

    /// One after the other, each known and run everywhere before the next.
    fn in_sequence(&self, config: &str) -> Cluster {
        let mut cluster = Cluster::new(3, config);
        let (kind, command) = self.initial;
        cluster.does(0, kind, command);
        cluster.converges();
        for (site, (kind, command)) in self.operations.into_iter().enumerate() {
            cluster.does(site, kind, command);
            cluster.converges();
        }
        cluster
    }

    /// The network is cut between all sites, each gets its operation, and the network heals.
    fn cut(&self, config: &str, clocks: [u64; 3], cut_ms: u64) -> Cut {
        let mut cluster = Cluster::new(3, config);
        let (kind, command) = self.initial;
        cluster.does(0, kind, command);
        cluster.converges();
        // Far enough from what was observed so far: the hybrid clocks are at zero again.
        cluster.passes(1_000);
        for (site, clock) in clocks.into_iter().enumerate() {
            cluster.world.sites[site].skew_ms = i64::try_from(clock * 10_000).unwrap();
        }
        cluster.world.cut_all();
        let made = [0, 1, 2].map(|site| {
            let (kind, command) = self.operations[site];
            cluster.does(site, kind, command)
        });
        let stamps = made.each_ref().map(|id| cluster.world.operations[id].stamp);
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            assert_eq!(stamps[a].cmp(&stamps[b]), clocks[a].cmp(&clocks[b]), "{stamps:?}");
        }
        cluster.passes(cut_ms);
        cluster.world.network.heal_all();
        Cut { cluster, clocks, made }
    }

    /// All of these for every order of the clocks, and for short cuts, which nobody notices, and
    /// long ones.
    fn every_cut<'a>(&'a self, config: &'a str) -> impl Iterator<Item = Cut> + 'a {
        let all = CLOCKS.into_iter().flat_map(|clocks| [(clocks, 600), (clocks, 8_000)]);
        all.map(|(clocks, cut_ms)| self.cut(config, clocks, cut_ms))
    }
}

/// Three clocks in every order, equal ones included. Between equal stamps the names decide.
const CLOCKS: [[u64; 3]; 13] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 0],
    [1, 0, 0],
    [0, 1, 1],
    [1, 0, 1],
    [1, 1, 0],
];

/// What was done while the network was cut, and the network heals.
struct Cut {
    cluster: Cluster,
    clocks: [u64; 3],
    made: [OperationId; 3],
}

impl Cut {
    /// Of these sites, the one whose operation is last in the total order.
    fn last_writer(&self, among: &[usize]) -> usize {
        let last = among.iter().max_by_key(|site| (self.clocks[**site], site_name(**site)));
        *last.unwrap()
    }

    /// These sites in the total order of their operations.
    fn in_total_order(&self, mut sites: Vec<usize>) -> Vec<usize> {
        sites.sort_by_key(|site| (self.clocks[*site], site_name(*site)));
        sites
    }

    /// Every site knows that this operation does not count, and which one does instead; and every
    /// site has replied so, also where it ran before the winner was known.
    fn assert_superseded(&self, loser: usize, winner: usize) {
        let loser = &self.made[loser];
        let winner = &self.made[winner];
        for site in 0..3 {
            let view = self.cluster.view(site);
            let seen = view.operations.iter().find(|operation| operation.id() == loser).unwrap();
            let left_out = seen.left_out.as_ref().unwrap();
            assert_eq!(left_out.by.as_ref(), Some(winner), "{:?}", self.clocks);
            assert_eq!(seen.replies.len(), 3, "every site has replied: {:?}", seen.replies);
            for reply in &seen.replies {
                let (of, status) = (reply.site(), &reply.status);
                // As that site saw it then: the winner, or one that lost to it later.
                let Status::Superseded { by } = status else { panic!("{of} says {status:?}") };
                assert!(by != loser && self.made.contains(by), "{of} says {status:?}");
            }
        }
    }

    fn assert_failed_everywhere(&self, failed: usize) {
        for site in 0..3 {
            let view = self.cluster.view(site);
            let operation =
                view.operations.iter().find(|op| *op.id() == self.made[failed]).unwrap();
            assert_eq!(operation.left_out.as_ref().unwrap().why, Why::FailedEverywhere);
            assert!(operation.replies.iter().all(|reply| reply.status == Status::Ko));
        }
    }
}

#[test]
fn one_after_the_other_redis_gives_30() {
    for config in [TABLE_5, TABLE_5_KEPT] {
        assert_eq!(REDIS.in_sequence(config).value_everywhere(), "30");
    }
}

#[test]
fn one_after_the_other_the_file_holds_middle_then_right() {
    for config in [TABLE_6, TABLE_6_KEPT, TABLE_6_KEPT_ORDERED] {
        assert_eq!(FILE.in_sequence(config).value_everywhere(), "middle\nright\n");
    }
}

#[test]
fn one_after_the_other_kubernetes_gives_4() {
    assert_eq!(KUBERNETES.in_sequence(TABLE_4).value_everywhere(), "4");
}

#[test]
fn cut_and_healed_redis_gives_29_everywhere_whatever_the_clocks_say() {
    for mut cut in REDIS.every_cut(TABLE_5) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "29", "{:?}", cut.clocks);
        cut.assert_superseded(1, 0);
        cut.assert_superseded(2, 0);
    }
}

#[test]
fn cut_and_healed_the_file_holds_middle_everywhere_whatever_the_clocks_say() {
    for mut cut in FILE.every_cut(TABLE_6) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "middle\n", "{:?}", cut.clocks);
        cut.assert_superseded(0, 1);
        cut.assert_superseded(2, 1);
    }
}

#[test]
fn cut_and_healed_kubernetes_has_the_last_writers_replicas_everywhere() {
    for mut cut in KUBERNETES.every_cut(TABLE_4) {
        cut.cluster.converges();
        let winner = cut.last_writer(&[0, 1, 2]);
        assert_eq!(cut.cluster.value_everywhere(), ["2", "3", "4"][winner], "{:?}", cut.clocks);
        for loser in (0..3).filter(|site| *site != winner) {
            cut.assert_superseded(loser, winner);
        }
    }
}

#[test]
fn with_a_failing_sadd_redis_gives_29_everywhere() {
    for mut cut in REDIS.failing_at(2).every_cut(TABLE_5) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "29", "{:?}", cut.clocks);
        cut.assert_superseded(1, 0);
    }
}

#[test]
fn with_a_failing_append_the_file_holds_middle_everywhere() {
    for mut cut in FILE.failing_at(2).every_cut(TABLE_6) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "middle\n", "{:?}", cut.clocks);
        cut.assert_superseded(0, 1);
    }
}

#[test]
fn with_a_failing_apply_kubernetes_has_the_last_writers_among_the_others() {
    for failing in 0..3 {
        for mut cut in KUBERNETES.failing_at(failing).every_cut(TABLE_4) {
            cut.cluster.converges();
            let working: Vec<usize> = (0..3).filter(|site| *site != failing).collect();
            let winner = cut.last_writer(&working);
            assert_eq!(
                cut.cluster.value_everywhere(),
                ["2", "3", "4"][winner],
                "{failing} fails, {:?}",
                cut.clocks
            );
            // Where it was the last writer every site had to try it, and found it void.
            if cut.last_writer(&[0, 1, 2]) == failing {
                cut.assert_failed_everywhere(failing);
            }
        }
    }
}

#[test]
fn with_every_apply_failing_kubernetes_stays_as_it_was() {
    let broken = KUBERNETES.failing_at(0).failing_at(1).failing_at(2);
    for mut cut in broken.every_cut(TABLE_4) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "1", "{:?}", cut.clocks);
    }
}

#[test]
fn a_set_that_fails_everywhere_gives_back_what_it_had_superseded() {
    for mut cut in REDIS.failing_at(0).every_cut(TABLE_5) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "11", "{:?}", cut.clocks);
        cut.assert_failed_everywhere(0);
    }
    for mut cut in FILE.failing_at(1).every_cut(TABLE_6) {
        cut.cluster.agrees();
        let list = cut.in_total_order(vec![0, 2]).into_iter().map(|site| FILE.operations[site].1);
        let expected: Vec<&str> = std::iter::once("set initial\n").chain(list).collect();
        assert_eq!(cut.cluster.list_everywhere(), expected, "{:?}", cut.clocks);
    }
}

#[test]
fn two_who_take_more_than_there_is_leave_nothing_and_are_told_how_much_they_got() {
    let stock = Experiment {
        initial: ("set", "set 100"),
        operations: [("take", "take 50"), ("take", "take 51"), ("take", "take 0")],
    };
    for mut cut in stock.every_cut(P_COUNTER) {
        cut.cluster.agrees();
        assert_eq!(cut.cluster.value_everywhere(), "0", "{:?}", cut.clocks);
        let (fifty, more) = (&cut.made[0], &cut.made[1]);
        for seen_at in 0..3 {
            let status = |id, of| cut.cluster.status(seen_at, id, of).unwrap();
            assert_eq!(status(fifty, 0), Status::Ok);
            assert_eq!(status(more, 0), Status::Partial { done: 50, of: 51 });
            assert_eq!(status(fifty, 1), Status::Partial { done: 49, of: 50 });
            assert_eq!(status(more, 1), Status::Ok);
            let at_the_third = (status(fifty, 2), status(more, 2));
            let either = [
                (Status::Ok, Status::Partial { done: 50, of: 51 }),
                (Status::Partial { done: 49, of: 50 }, Status::Ok),
            ];
            assert!(either.contains(&at_the_third), "{at_the_third:?}");
        }
    }
}

#[test]
fn where_both_are_kept_redis_gives_30_everywhere_whatever_the_clocks_say() {
    for mut cut in REDIS.every_cut(TABLE_5_KEPT) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "30", "{:?}", cut.clocks);
        let incs = cut.in_total_order(vec![1, 2]).into_iter().map(|site| REDIS.operations[site].1);
        let expected: Vec<&str> = ["set 10", "set 29"].into_iter().chain(incs).collect();
        assert_eq!(cut.cluster.list_everywhere(), expected, "{:?}", cut.clocks);
    }
    for mut cut in REDIS.failing_at(2).every_cut(TABLE_5_KEPT) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "42", "{:?}", cut.clocks);
    }
}

#[test]
fn where_both_are_kept_the_file_holds_middle_then_the_others_in_total_order() {
    for mut cut in FILE.every_cut(TABLE_6_KEPT_ORDERED) {
        cut.cluster.converges();
        let appended = match cut.in_total_order(vec![0, 2])[0] {
            0 => "left\nright\n",
            _ => "right\nleft\n",
        };
        let expected = format!("middle\n{appended}");
        assert_eq!(cut.cluster.value_everywhere(), expected, "{:?}", cut.clocks);
    }
    for mut cut in FILE.failing_at(2).every_cut(TABLE_6_KEPT_ORDERED) {
        cut.cluster.converges();
        assert_eq!(cut.cluster.value_everywhere(), "middle\nleft\n", "{:?}", cut.clocks);
    }
}

#[test]
fn where_table_6_calls_two_appends_commutative_the_lists_agree_all_the_same() {
    for mut cut in FILE.every_cut(TABLE_6_KEPT) {
        cut.cluster.agrees();
        let appends = cut.in_total_order(vec![0, 2]).into_iter();
        let appends = appends.map(|site| FILE.operations[site].1);
        let expected: Vec<&str> = std::iter::once("set middle\n").chain(appends).collect();
        assert_eq!(cut.cluster.list_everywhere(), expected, "{:?}", cut.clocks);
    }
}
