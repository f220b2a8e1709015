//! Copies of a site's data directory: made under load, and started from in the original's place.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::cluster::{Cluster, replies, shell, until};
use cheops_api::{BackupEvent, Client, Submit, SubmitEvent};

async fn backup(client: &Client, dir: &str) -> BackupEvent {
    let mut lines = client.backup(dir).await.unwrap();
    let mut last = None;
    while let Some(event) = lines.next().await.unwrap() {
        last = Some(event);
    }
    last.unwrap()
}

fn set(command: &str) -> Submit {
    Submit { profile: Some("redis".into()), ..shell("site1 & site2", "set", command) }
}

async fn list(client: &Client) -> Vec<String> {
    client.resource("counter").await.unwrap().list
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_made_under_load_takes_the_originals_place_and_no_number_is_given_out_twice() {
    let mut cluster = Cluster::of(2).await;
    let copy = cluster.dir().join("copy");
    cluster.submit(0, "counter", &set("true")).await;
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load = {
        let (client, stop, done) = (cluster.client(0), Arc::clone(&stop), Arc::clone(&done));
        tokio::spawn(async move {
            let mut accepted = BTreeSet::new();
            while !stop.load(Ordering::Relaxed) {
                let mut lines = client.submit("counter", &set("true"), &[]).await.unwrap();
                while let Some(event) = lines.next().await.unwrap() {
                    if let SubmitEvent::Accepted { operation, .. } = event {
                        assert!(accepted.insert(operation), "an id was given out twice");
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            accepted
        })
    };
    let made = backup(&cluster.client(0), copy.to_str().unwrap()).await;
    assert!(matches!(made, BackupEvent::Done { .. }), "{made:?}");
    let again = backup(&cluster.client(0), copy.to_str().unwrap()).await;
    assert!(matches!(again, BackupEvent::Failed { hint: Some(_), .. }), "{again:?}");
    // The original goes on for a while, with numbers that the copy knows nothing of.
    let before = done.load(Ordering::Relaxed);
    until("more was done", async || done.load(Ordering::Relaxed) > before + 20).await;
    stop.store(true, Ordering::Relaxed);
    let accepted = load.await.unwrap();

    cluster.stop(0).await;
    fs::rename(cluster.dir().join("site1"), cluster.dir().join("lost")).unwrap();
    fs::rename(&copy, cluster.dir().join("site1")).unwrap();
    cluster.start(0).await;
    let events = cluster.submit(0, "counter", &set("true")).await;
    let new = events.iter().find_map(|event| match event {
        SubmitEvent::Accepted { operation, .. } => Some(operation.clone()),
        _ => None,
    });
    assert!(!accepted.contains(&new.unwrap()), "an id was given out twice");
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    until("both sites have the same, and have run it", async || {
        let state = cluster.client(0).resource("counter").await.unwrap().summary.state;
        let (here, there) = (list(&cluster.client(0)).await, list(&cluster.client(1)).await);
        here == there && state.word() == "converged"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_goes_on_from_a_copy_stands_where_it_stood() {
    let mut cluster = Cluster::of(2).await;
    let (copy, runs) = (cluster.dir().join("copy"), cluster.dir().join("runs"));
    let add = |kind: &str| {
        let command = format!("echo {kind} >> {}", runs.display());
        Submit { kind: kind.into(), ..set(&command) }
    };
    for kind in ["set", "inc", "inc"] {
        let events = cluster.submit(0, "counter", &add(kind)).await;
        assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    }
    let converged = async |cluster: &Cluster, site| {
        let resource = cluster.client(site).resource("counter").await.unwrap();
        resource.summary.state.word() == "converged"
    };
    for site in [0, 1] {
        until("all is well", async || converged(&cluster, site).await).await;
    }
    let made = backup(&cluster.client(0), copy.to_str().unwrap()).await;
    assert!(matches!(made, BackupEvent::Done { .. }), "{made:?}");

    cluster.stop(0).await;
    fs::rename(cluster.dir().join("site1"), cluster.dir().join("lost")).unwrap();
    fs::rename(&copy, cluster.dir().join("site1")).unwrap();
    cluster.start(0).await;
    for site in [0, 1] {
        until("all is well again", async || converged(&cluster, site).await).await;
    }
    assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), 6, "each once at each site");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_no_whole_path_is_refused() {
    let cluster = Cluster::of(1).await;
    assert!(cluster.client(0).backup("copy").await.is_err());
}
