//! A counter that nobody ever sets: its history stays short, and a site that lost all comes back right.

use std::fs;
use std::path::Path;

use cheops_api::{Submit, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};

const INCREMENT: &str = "n=$(cat __ID__ 2>/dev/null || echo 0); echo $((n + 1)) > __ID__";

const CONFIG: &str = r#"{"Profile": "file", "Target": "__ID__", "ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

/// Goes on with `[shell]`, where the config of a site in these tests ends.
const SHORT: &str = "verify_every = \"1s\"\nshort_history = 50\n\n[audit]\nretention = \"0s\"\n";

/// A log whose content is all beside it yet.
const EMPTY_LOG: u64 = 4096;

/// So many are made, then all sites come to rest.
const ROUND: usize = 150;

fn increment() -> Submit {
    waiting_for(Wait::Local, shell("inc", INCREMENT))
}

async fn increments(cluster: &Cluster, is_new: bool) {
    for (at, number) in cluster.numbers().cycle().take(ROUND).enumerate() {
        let submit = match at {
            0 if is_new => first(increment(), &cluster.everywhere(), CONFIG),
            _ => increment(),
        };
        cluster[number].does("counter", &submit).await;
    }
}

/// All sites have verified the state that stands for what is forgotten.
async fn until_short(cluster: &Cluster) {
    for site in cluster.sites() {
        until(&format!("{} forgot what the state stands for", site.name), async || {
            let told = site.resource("counter").await;
            told.is_some_and(|it| it.summary.operations == 0 && it.summary.verified.is_some())
        })
        .await;
    }
}

/// What a site keeps on its disk: its log, and what stands beside it.
async fn kept(site: &Site) -> u64 {
    let metrics = site.client().metrics().await.unwrap();
    let log = metrics.lines().find_map(|line| line.strip_prefix("cheops_log_bytes "));
    let beside: u64 = ["blobs", "snapshots"].map(|name| within(&site.data.join(name))).iter().sum();
    log.unwrap().parse::<f64>().unwrap() as u64 + beside
}

/// Whether what was written beside its log is moved into it, as it is whenever there is enough of that.
fn is_full_size(site: &Site) -> bool {
    fs::metadata(site.data.join("log.db")).is_ok_and(|log| log.len() > EMPTY_LOG)
}

/// How long all files in a folder are; those that go meanwhile are none.
fn within(folder: &Path) -> u64 {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: &Path| fs::metadata(path).map_or(0, |it| it.len());
    found.map(|it| it.path()).map(|it| if it.is_dir() { within(&it) } else { size(&it) }).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_that_nothing_overwrites_keep_a_short_history_and_a_lost_disk_comes_back_right()
{
    let mut cluster = Setup::sites(3).config(SHORT).start().await;
    let mut count = 0;
    let mut round = async || {
        increments(&cluster, count == 0).await;
        until_short(&cluster).await;
        count += ROUND;
        assert!(count <= 30 * ROUND, "the log never comes to its size");
    };
    // Until the log has been written from the beginning again: before, it is only growing to its size.
    while cluster.sites().any(|site| !is_full_size(site)) {
        round().await;
    }
    let mut early = Vec::new();
    for site in cluster.sites() {
        early.push(kept(site).await);
    }
    for _ in 0..4 {
        round().await;
    }
    for (site, early) in cluster.sites().zip(early) {
        let what = format!("{} keeps hardly more than {early} bytes after more of it", site.name);
        until(&what, async || kept(site).await <= early + early / 4).await;
    }

    cluster[2].kill();
    fs::remove_dir_all(&cluster[2].data).unwrap();
    fs::remove_dir_all(&cluster[2].files).unwrap();
    fs::create_dir_all(&cluster[2].files).unwrap();
    cluster.restart(2).await;
    cluster.all_hear().await;
    until("the state is written", async || {
        cluster[2].resource("counter").await.is_some()
            && cluster[2].file("counter") == format!("{count}\n")
    })
    .await;
    until_short(&cluster).await;
    // It takes part as before.
    cluster[2].does("counter", &increment()).await;
    cluster.converges("counter").await;
    for site in cluster.sites() {
        assert_eq!(site.file("counter"), format!("{}\n", count + 1), "{}", site.name);
    }
}
