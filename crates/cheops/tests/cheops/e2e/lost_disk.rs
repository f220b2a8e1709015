//! A site that lost its disk.

use std::fs;

use cheops_api::Change;

use crate::e2e::cluster::{Setup, first, shell, until};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_lost_its_disk_gets_its_resources_back_and_reuses_no_name() {
    let mut cluster = Setup::sites(3).start().await;
    let mut names = Vec::new();
    for id in ["a", "b", "c"] {
        let begin = first(shell("set", "echo begin > __ID__"), &cluster.everywhere(), MATRIX);
        names.push(cluster[2].does(id, &begin).await);
        for site in [1, 2, 3, 2] {
            let add = shell("add", format!("echo {site} >> __ID__"));
            names.push(cluster[site].does(id, &add).await);
            cluster.converges(id).await;
        }
    }
    let whole = "begin\n1\n2\n3\n2\n";
    let mut changes = cluster[1].client().changes(None, None).await.unwrap();

    // Everything is gone: what the agent knew, and the application's state.
    cluster[2].kill();
    fs::remove_dir_all(&cluster[2].data).unwrap();
    fs::remove_dir_all(&cluster[2].files).unwrap();
    fs::create_dir_all(&cluster[2].files).unwrap();
    cluster[1]
        .does(
            "a",
            &crate::e2e::cluster::waiting_for(
                cheops_api::Wait::Local,
                shell("add", "echo away >> __ID__"),
            ),
        )
        .await;
    cluster.restart(2).await;
    cluster.all_hear().await;
    for (id, want) in [("a", format!("{whole}away\n")), ("b", whole.into()), ("c", whole.into())] {
        cluster.converges(id).await;
        for site in cluster.sites() {
            assert_eq!(site.file(id), want, "{id} at {}", site.name);
        }
    }
    until("the others say that it lost its disk", async || {
        let change = changes.next().await.unwrap().unwrap();
        matches!(change.change, Change::SiteLostDisk { site } if site == "site2")
    })
    .await;

    // It takes part as before, under names that were never used.
    let name = cluster[2].does("a", &shell("add", "echo again >> __ID__")).await;
    assert!(!names.contains(&name), "{name} was used before");
    cluster.converges("a").await;
    for site in cluster.sites() {
        assert!(site.file("a").ends_with("away\nagain\n"), "{}", site.name);
    }
}
