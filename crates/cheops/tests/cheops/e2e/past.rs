//! What was overridden and is needed no more can still be read: at every site, by every way, after a kill
//! and a restart.

use std::process::Output;

use cheops_api::{Submit, Upload, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-one"},
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"}
]}"#;

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Waits until a site has forgotten an operation in what it needs.
async fn until_pruned(cluster: &Cluster, id: &str, operation: &str) {
    for site in cluster.sites() {
        until(&format!("{operation} is pruned at {}", site.name), async || {
            let kept = site.operations(id).await;
            !kept.iter().any(|kept| kept.id == operation)
        })
        .await;
    }
}

/// Waits until a command of a site prints all of these.
async fn prints(site: &Site, arguments: &[&str], wanted: &[&str]) -> String {
    let mut printed = String::new();
    until(&format!("{arguments:?} at {} says {wanted:?}", site.name), async || {
        printed = text(&site.cheops(arguments));
        wanted.iter().all(|wanted| printed.contains(wanted))
    })
    .await;
    printed
}

async fn tells_all(site: &Site, lost: &str, won: &str, first: &str) {
    prints(
        site,
        &["history", "motd"],
        &[lost, "add submitted at site2", "echo right >> motd", "overridden", won, first],
    )
    .await;
    let replacing = format!("{won} is concurrent and of the replacing kind");
    prints(site, &["explain", "motd"], &[lost, "overridden and kept for reading", &replacing])
        .await;
    prints(site, &["resource", "motd", "--all"], &[lost, first, won]).await;
    let one = prints(site, &["operation", lost], &["add of motd", "echo right >> motd"]).await;
    assert!(one.contains("overridden: ") && one.contains("no site needs it any more"), "{one}");
    let file = prints(site, &["operation", first], &["cat {", "what the file held"]).await;
    assert!(file.contains("site3"), "what each site said: {file}");
    let api = site.client().operation("motd", lost).await.unwrap();
    assert_eq!(api.left_out.unwrap().by.as_deref(), Some(won));
    assert!(!api.replies.is_empty());
    let past = site.client().past("motd").await.unwrap().operations;
    for operation in [lost, first] {
        assert!(past.iter().any(|past| past.id == operation), "{operation} at {}", site.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_overridden_and_pruned_is_read_everywhere_also_after_a_kill() {
    let mut cluster = Setup::sites(3).start().await;
    let file = cluster.folder().join("begin");
    std::fs::write(&file, "what the file held\n").unwrap();
    let begin = first(shell("set", "cat {begin} > motd"), &cluster.everywhere(), MATRIX);
    let upload = Upload { name: "begin".to_owned(), path: file };
    let (made, _) = cluster[1].hand_in("motd", &begin, &[upload]).await.unwrap();
    cluster.converges("motd").await;
    cluster.cut();
    cluster.nobody_hears().await;
    let local = |submit: Submit| waiting_for(Wait::Local, submit);
    let won = cluster[1].does("motd", &local(shell("set", "echo left > motd"))).await;
    let lost = cluster[2].does("motd", &local(shell("add", "echo right >> motd"))).await;
    cluster.heal();
    cluster.converges("motd").await;
    let last = cluster[3].does("motd", &shell("set", "echo last > motd")).await;
    cluster.converges("motd").await;
    for operation in [&made, &won, &lost] {
        until_pruned(&cluster, "motd", operation).await;
    }
    for site in cluster.sites() {
        tells_all(site, &lost, &won, &made).await;
    }
    cluster[2].kill();
    cluster.restart(2).await;
    tells_all(&cluster[2], &lost, &won, &made).await;
    // By a site that is asked for another's.
    prints(&cluster[1], &["history", "motd", "--site", "site2"], &["as noted at site2"]).await;
    let told =
        prints(&cluster[1], &["operation", &last, "--output", "json"], &["\"pruned\""]).await;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["pruned"], &told["resource"]), (&false.into(), &"motd".into()));
    let status = text(&cluster[1].cheops(&["status"]));
    assert!(status.contains("history: "), "{status}");
    let out = cluster[1].cheops(&["operation", "site1-1.999999"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_beyond_its_size_is_dropped_and_that_is_said() {
    let cluster = Setup::sites(1).config("[audit]\nsize = \"64KiB\"\n").start().await;
    let begin = first(shell("set", "echo 0 > motd"), "site1", MATRIX);
    let made = cluster[1].does("motd", &begin).await;
    let long = "x".repeat(2000);
    for n in 0..80 {
        cluster[1].does("motd", &shell("set", format!("echo {n} {long} > motd"))).await;
    }
    // What hooks have not seen yet stays for some seconds; all of it goes with later batches.
    let mut told = String::new();
    until("the oldest is dropped, and what is left is within its bound", async || {
        cluster[1].does("motd", &shell("set", format!("echo more {long} > motd"))).await;
        told = text(&cluster[1].cheops(&["history", "motd", "--all"]));
        let metrics = cluster[1].client().metrics().await.unwrap();
        let mut lines = metrics.lines();
        let line = lines.find(|line| line.starts_with("cheops_history_bytes{of=\"log\"}"));
        let bytes: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        told.contains("what was before this is not kept any more") && bytes <= 65_536.0
    })
    .await;
    assert!(!told.contains(&made), "{told}");
    prints(&cluster[1], &["status"], &["dropped before its time"]).await;
}
