//! A counter that nobody ever sets: its history stays short, and a site that lost all comes back right.

use std::fs;

use cheops_api::{Submit, Wait};

use crate::e2e::cluster::{Cluster, Setup, first, shell, until, waiting_for};

const INCREMENT: &str = "n=$(cat __ID__ 2>/dev/null || echo 0); echo $((n + 1)) > __ID__";

const CONFIG: &str = r#"{"Profile": "file", "Target": "__ID__", "ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

/// Goes on with `[shell]`, where the config of a site in these tests ends.
const SHORT: &str = "verify_every = \"1s\"\nshort_history = 50\n\n[audit]\nretention = \"0s\"\n";

fn increment() -> Submit {
    waiting_for(Wait::Local, shell("inc", INCREMENT))
}

async fn increments(cluster: &Cluster, count: usize) {
    for (at, number) in cluster.numbers().cycle().take(count).enumerate() {
        let submit = match at {
            0 => first(increment(), &cluster.everywhere(), CONFIG),
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

#[tokio::test(flavor = "multi_thread")]
async fn increments_that_nothing_overwrites_keep_a_short_history_and_a_lost_disk_comes_back_right()
{
    let mut cluster = Setup::sites(3).config(SHORT).start().await;
    for _ in 0..4 {
        increments(&cluster, 150).await;
        until_short(&cluster).await;
    }

    cluster[2].kill();
    fs::remove_dir_all(&cluster[2].data).unwrap();
    fs::remove_dir_all(&cluster[2].files).unwrap();
    fs::create_dir_all(&cluster[2].files).unwrap();
    cluster.restart(2).await;
    cluster.all_hear().await;
    until("the state is written", async || {
        cluster[2].resource("counter").await.is_some() && cluster[2].file("counter") == "600\n"
    })
    .await;
    until_short(&cluster).await;
    // It takes part as before.
    cluster[2].does("counter", &increment()).await;
    cluster.converges("counter").await;
    for site in cluster.sites() {
        assert_eq!(site.file("counter"), "601\n", "{}", site.name);
    }
}
