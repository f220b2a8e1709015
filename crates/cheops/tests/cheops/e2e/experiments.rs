//! The technical report's experiments, each in its three forms and twenty times in a row: one
//! operation after the other; one per site while all links are cut; the same with one that fails.

use std::time::Instant;

use cheops_api::{Operation, ReplyStatus, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};
use crate::e2e::report::{TABLE_4, TABLE_5, TABLE_6};

const TIMES: usize = 20;
/// In how many of them the cut lasts until every site has noticed it.
const NOTICED: usize = 3;

/// Stock that is taken from, and in ones where there is not enough of it.
const P_COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "dec", "Result": "take-both-keep-order"},
    {"Before": "dec", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "dec", "After": "dec", "Result": "take-both"}],
    "Hooks": [
    {"On": "failed", "Types": ["dec"], "Command": "sh counter.sh split", "Answer": "decompose"}]}"#;

/// A counter in a file that never goes below zero; and the hook that splits what it refuses.
const COUNTER: &str = r#"
case $1 in
set) echo "$3" >"$2" ;;
dec)
  count=$(cat "$2") && [ "$count" -ge "$3" ] || { echo "there are only $count"; exit 1; }
  echo $((count - $3)) >"$2" ;;
split)
  # The command that failed: sh counter.sh dec NAME COUNT
  set -- $CHEOPS_COMMAND
  [ "$3" = dec ] || exit 1
  i=0
  while [ $i -lt "$5" ]; do echo "sh counter.sh dec $4 1"; i=$((i + 1)); done ;;
*) echo "unknown: $1"; exit 1 ;;
esac
"#;

/// A type and a command.
type Does = (&'static str, &'static str);

/// An experiment: what is done at first, and what is then done at the three sites.
struct Experiment {
    name: &'static str,
    matrix: &'static str,
    initial: Does,
    operations: [Does; 3],
    /// The same as the third, but it fails wherever it runs.
    failing: Does,
    value: fn(&Site, &str) -> String,
}

const REDIS: Experiment = Experiment {
    name: "redis",
    matrix: TABLE_5,
    initial: ("set", "redis-cli -s redis.sock set __ID__ 10"),
    operations: [
        ("set", "redis-cli -s redis.sock set __ID__ 29"),
        ("inc", "redis-cli -s redis.sock incrby __ID__ 13"),
        ("inc", "redis-cli -s redis.sock incrby __ID__ -12"),
    ],
    // Not a set. Older clients say so, and end well all the same.
    failing: (
        "inc",
        "said=$(redis-cli -s redis.sock sadd __ID__ x); echo \"$said\"; [ \"$said\" = 1 ]",
    ),
    value: |site, id| site.redis(&["get", id]),
};

const FILE: Experiment = Experiment {
    name: "file",
    matrix: TABLE_6,
    initial: ("set", "echo initial > __ID__"),
    operations: [
        ("add", "echo left >> __ID__"),
        ("set", "echo middle > __ID__"),
        ("add", "echo right >> __ID__"),
    ],
    failing: ("add", "cat not-there >> __ID__"),
    value: in_file,
};

/// A file stands for the cluster: what counts is that each operation replaces the one before.
const KUBERNETES: Experiment = Experiment {
    name: "kubernetes",
    matrix: TABLE_4,
    initial: ("apply", "echo 1 > __ID__"),
    operations: [
        ("apply", "echo 2 > __ID__"),
        ("apply", "echo 3 > __ID__"),
        ("apply", "echo 4 > __ID__"),
    ],
    failing: ("apply", "cat not-there && echo 4 > __ID__"),
    value: in_file,
};

const STOCK: Experiment = Experiment {
    name: "stock",
    matrix: P_COUNTER,
    initial: ("set", "sh counter.sh set __ID__ 100"),
    operations: [
        ("dec", "sh counter.sh dec __ID__ 50"),
        ("dec", "sh counter.sh dec __ID__ 51"),
        ("dec", "sh counter.sh dec __ID__ 0"),
    ],
    failing: ("dec", "sh counter.sh steal __ID__ 1"),
    value: in_file,
};

fn in_file(site: &Site, id: &str) -> String {
    site.file(id).lines().collect::<Vec<_>>().join(", ")
}

/// What a form of an experiment left behind.
struct Done {
    id: String,
    /// The operations made at the three sites.
    made: Vec<String>,
}

impl Experiment {
    async fn begins(&self, cluster: &Cluster, form: &str, time: usize) -> String {
        let id = format!("{}-{form}-{time}", self.name);
        let (kind, command) = self.initial;
        let initial = first(shell(kind, command), &cluster.everywhere(), self.matrix);
        cluster[1].does(&id, &initial).await;
        cluster.converges(&id).await;
        id
    }

    async fn in_sequence(&self, cluster: &Cluster, time: usize) -> Done {
        let id = self.begins(cluster, "sequence", time).await;
        let mut made = Vec::new();
        for (site, (kind, command)) in cluster.sites().zip(self.operations) {
            made.push(site.does(&id, &shell(kind, command)).await);
            // Those before it may be forgotten by now, if it replaced them.
            self.known_everywhere(cluster, &id, &made[made.len() - 1..]).await;
        }
        Done { id, made }
    }

    /// The next operation is to be made on this one, at another site.
    async fn known_everywhere(&self, cluster: &Cluster, id: &str, made: &[String]) {
        for site in cluster.sites() {
            until("all replies are known", async || {
                all_replied(&site.operations(id).await, made, cluster)
            })
            .await;
            // The last of them may have made one count again that had lost.
            use cheops_api::ResourceState::{Running, Waiting};
            until("nothing is left to run", async || {
                !matches!(site.state(id).await, None | Some(Running | Waiting))
            })
            .await;
        }
    }

    /// One operation at each site, each alone.
    async fn one_per_site(&self, cluster: &Cluster, id: &str, operations: [Does; 3]) -> Done {
        let mut made = Vec::new();
        for (site, (kind, command)) in cluster.sites().zip(operations) {
            let submit = waiting_for(Wait::Local, shell(kind, command));
            made.push(site.does(id, &submit).await);
        }
        Done { id: id.to_owned(), made }
    }

    fn values(&self, cluster: &Cluster, id: &str) -> Vec<String> {
        cluster.sites().map(|site| (self.value)(site, id)).collect()
    }

    /// Both forms with a cut, in the same one.
    async fn while_cut(&self, cluster: &Cluster, time: usize, apart: [&str; 3]) -> [Done; 2] {
        let ids =
            [self.begins(cluster, "cut", time).await, self.begins(cluster, "failing", time).await];
        let failing = [self.operations[0], self.operations[1], self.failing];
        cluster.cut();
        let whole = self.one_per_site(cluster, &ids[0], self.operations).await;
        let failed = self.one_per_site(cluster, &ids[1], failing).await;
        assert_eq!(self.values(cluster, &whole.id), apart, "each site has its own only");
        if time < NOTICED {
            cluster.nobody_hears().await;
        }
        cluster.heal();
        for done in [&whole, &failed] {
            self.known_everywhere(cluster, &done.id, &done.made).await;
        }
        [whole, failed]
    }

    fn assert_everywhere(&self, cluster: &Cluster, done: &Done, value: &str) {
        assert_eq!(self.values(cluster, &done.id), [value; 3], "{}", done.id);
    }
}

fn all_replied(operations: &[Operation], made: &[String], cluster: &Cluster) -> bool {
    made.iter().all(|name| {
        let operation = operations.iter().find(|operation| operation.id == *name);
        operation.is_some_and(|operation| operation.replies.len() == usize::from(cluster.count()))
    })
}

async fn operation(site: &Site, id: &str, name: &str) -> Operation {
    let operations = site.operations(id).await;
    let found = operations.into_iter().find(|operation| operation.id == name);
    found.unwrap_or_else(|| panic!("{} does not know {name} of {id}", site.name))
}

impl Done {
    /// Every site knows that this operation does not count, and which one does instead; and every
    /// site has replied so, also where it ran before the winner was known.
    async fn assert_superseded(&self, cluster: &Cluster, loser: usize, winner: usize) {
        let (loser, winner) = (&self.made[loser], &self.made[winner]);
        for site in cluster.sites() {
            until("every site says that it is superseded", async || {
                let seen = operation(site, &self.id, loser).await;
                seen.replies.values().all(|reply| reply.status == ReplyStatus::Superseded)
            })
            .await;
            let seen = operation(site, &self.id, loser).await;
            assert!(!seen.counts, "{seen:?}");
            assert_eq!(seen.left_out.as_ref().unwrap().by.as_ref(), Some(winner), "{seen:?}");
            assert_eq!(seen.replies.len(), 3, "{seen:?}");
            for reply in seen.replies.values() {
                // As that site saw it then: the winner, or one that lost to it later.
                let by = reply.by.as_ref().unwrap();
                assert!(by != loser && self.made.contains(by), "{seen:?}");
            }
        }
    }

    async fn statuses(&self, site: &Site, name: usize) -> Vec<(ReplyStatus, Option<u32>)> {
        let seen = operation(site, &self.id, &self.made[name]).await;
        seen.replies.values().map(|reply| (reply.status, reply.done)).collect()
    }
}

fn say(what: &str, began: Instant) {
    eprintln!("{what}, {TIMES} times: {:.1} s", began.elapsed().as_secs_f64());
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_ends_in_the_published_outcomes_twenty_times_in_a_row() {
    let cluster = Setup::sites(3).with_redis().start().await;
    let began = Instant::now();
    for time in 0..TIMES {
        let done = REDIS.in_sequence(&cluster, time).await;
        REDIS.assert_everywhere(&cluster, &done, "30");
    }
    say("redis, one after the other", began);
    let began = Instant::now();
    for time in 0..TIMES {
        let [whole, failed] = REDIS.while_cut(&cluster, time, ["29", "23", "-2"]).await;
        whole.assert_superseded(&cluster, 1, 0).await;
        whole.assert_superseded(&cluster, 2, 0).await;
        failed.assert_superseded(&cluster, 1, 0).await;
        REDIS.assert_everywhere(&cluster, &whole, "29");
        REDIS.assert_everywhere(&cluster, &failed, "29");
    }
    say("redis, cut and healed, also with a failing SADD", began);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_ends_in_the_published_outcomes_twenty_times_in_a_row() {
    let cluster = Setup::sites(3).start().await;
    let began = Instant::now();
    for time in 0..TIMES {
        let done = FILE.in_sequence(&cluster, time).await;
        FILE.assert_everywhere(&cluster, &done, "middle, right");
    }
    say("file, one after the other", began);
    let began = Instant::now();
    let apart = ["initial, left", "middle", "initial, right"];
    for time in 0..TIMES {
        let [whole, failed] = FILE.while_cut(&cluster, time, apart).await;
        whole.assert_superseded(&cluster, 0, 1).await;
        whole.assert_superseded(&cluster, 2, 1).await;
        failed.assert_superseded(&cluster, 0, 1).await;
        FILE.assert_everywhere(&cluster, &whole, "middle");
        FILE.assert_everywhere(&cluster, &failed, "middle");
    }
    say("file, cut and healed, also with a failing append", began);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_for_kubernetes_ends_with_the_last_writer_twenty_times_in_a_row() {
    let cluster = Setup::sites(3).start().await;
    let began = Instant::now();
    for time in 0..TIMES {
        let done = KUBERNETES.in_sequence(&cluster, time).await;
        KUBERNETES.assert_everywhere(&cluster, &done, "4");
        let [whole, failed] = KUBERNETES.while_cut(&cluster, time, ["2", "3", "4"]).await;
        // They were made one after the other by one clock: the third is the last writer.
        whole.assert_superseded(&cluster, 0, 2).await;
        whole.assert_superseded(&cluster, 1, 2).await;
        failed.assert_superseded(&cluster, 0, 1).await;
        KUBERNETES.assert_everywhere(&cluster, &whole, "4");
        KUBERNETES.assert_everywhere(&cluster, &failed, "3");
    }
    say("what stands for kubernetes, in three forms", began);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_take_more_than_there_is_leave_nothing_twenty_times_in_a_row() {
    use ReplyStatus::{Ko, Ok, Partial};
    let cluster = Setup::sites(3).start().await;
    for site in cluster.sites() {
        std::fs::write(site.files.join("counter.sh"), COUNTER).unwrap();
    }
    let began = Instant::now();
    for time in 0..TIMES {
        let done = STOCK.in_sequence(&cluster, time).await;
        STOCK.assert_everywhere(&cluster, &done, "0");
        assert_eq!(done.statuses(&cluster[3], 0).await, [(Ok, None); 3]);
        assert_eq!(done.statuses(&cluster[3], 1).await, [(Partial, Some(50)); 3]);
        let [whole, failed] = STOCK.while_cut(&cluster, time, ["50", "49", "100"]).await;
        for done in [&whole, &failed] {
            STOCK.assert_everywhere(&cluster, done, "0");
            for site in cluster.sites() {
                let fifty = done.statuses(site, 0).await;
                let more = done.statuses(site, 1).await;
                assert_eq!((fifty[0], more[0]), ((Ok, None), (Partial, Some(50))));
                assert_eq!((fifty[1], more[1]), ((Partial, Some(49)), (Ok, None)));
                // The third heard of the two in either order.
                let either = [(fifty[0], more[0]), (fifty[1], more[1])];
                assert!(either.contains(&(fifty[2], more[2])), "{fifty:?} {more:?}");
            }
        }
        // What cannot be split fails whole, and is void.
        assert_eq!(failed.statuses(&cluster[1], 2).await, [(Ko, None); 3]);
    }
    say("the P-counter, in three forms", began);
}
