//! Sites that come to hold a resource, and sites that leave it: real processes.

use crate::e2e::cluster::{Cluster, Setup, first, shell, until, waiting_for};
use cheops_api::Wait;

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

fn says(cluster: &Cluster, site: u8, arguments: &[&str]) -> (Option<i32>, String) {
    let out = cluster[site].cheops(arguments);
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8_lossy(&text).into_owned())
}

async fn lives_at(cluster: &Cluster, asked: u8, sites: &[&str]) {
    until(&format!("site{asked} says that it lives at {sites:?}"), async || {
        let resource = cluster[asked].resource("list").await;
        resource.is_some_and(|it| it.summary.sites == sites && it.leaving.is_empty())
    })
    .await;
}

async fn reads(cluster: &Cluster, sites: &[u8], text: &str) {
    for site in sites {
        until(&format!("the list is {text:?} at site{site}"), async || {
            cluster[*site].file("list") == text
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_site_comes_under_writes_is_killed_half_way_and_another_leaves() {
    let mut cluster = Setup::sites(4).start().await;
    let begin = first(shell("set", "echo begin > list"), "site1 & site2 & site3", MATRIX);
    cluster[1].does("list", &begin).await;
    let mut whole = "begin\n".to_owned();
    for n in 0..5 {
        cluster[2].does("list", &shell("add", format!("echo {n} >> list"))).await;
        whole.push_str(&format!("{n}\n"));
    }
    assert_eq!(cluster[4].file("list"), "");
    let (code, text) = says(&cluster, 1, &["extend", "list", "--to", "site4", "--dry-run"]);
    assert!(code == Some(0) && text.contains("would live"), "{text}");
    let (code, text) = says(&cluster, 1, &["extend", "list", "--to", "site2"]);
    assert!(code == Some(2) && text.contains("holds it already"), "{text}");

    // It comes while others write, and is killed before it can have run all.
    let (_, text) = says(&cluster, 1, &["extend", "list", "--to", "site4", "--timeout", "1ms"]);
    assert!(text.contains("lives at"), "{text}");
    cluster[4].kill();
    for n in 5..8 {
        let add = shell("add", format!("echo {n} >> list"));
        cluster[3].does("list", &waiting_for(Wait::Local, add)).await;
        whole.push_str(&format!("{n}\n"));
    }
    cluster.restart(4).await;
    cluster.all_hear().await;
    reads(&cluster, &[1, 2, 3, 4], &whole).await;
    lives_at(&cluster, 4, &["site1", "site2", "site3", "site4"]).await;
    cluster.converges("list").await;

    // One leaves, and passes on what it is asked for.
    let (code, text) = says(&cluster, 4, &["shrink", "list", "--from", "site2"]);
    assert!(code == Some(0) && text.contains("done"), "{text}");
    lives_at(&cluster, 1, &["site1", "site3", "site4"]).await;
    cluster[4].does("list", &shell("add", "echo last >> list")).await;
    let without = whole.clone();
    whole.push_str("last\n");
    reads(&cluster, &[1, 3, 4], &whole).await;
    assert_eq!(cluster[2].file("list"), without, "it keeps what it held");
    assert!(cluster[2].resources().await.is_empty(), "it does not list what it holds no more");
    lives_at(&cluster, 2, &["site1", "site3", "site4"]).await;
}
