//! The feed of changes, followed across the agent's lives.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cheops_api::{Change, Client, NumberedChange, Wait};

use crate::e2e::cluster::{Setup, first, shell, until, waiting_for};

/// An agent is killed on the way, and nothing here cares what its commands did.
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "take-both"}],
    "Types": {"add": {"Idempotent": true}}}"#;

/// Follows until told to stop, going on where it was whenever the feed breaks off.
async fn follow(
    agent: Client,
    resource: Option<String>,
    seen: Arc<Mutex<Vec<NumberedChange>>>,
    enough: Arc<AtomicBool>,
) {
    while !enough.load(Ordering::SeqCst) {
        let last = seen.lock().unwrap().last().map_or(0, |change| change.id);
        let Ok(mut changes) = agent.changes(resource.as_deref(), Some(last)).await else {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            continue;
        };
        while let Ok(Some(change)) = changes.next().await {
            seen.lock().unwrap().push(change);
        }
    }
}

/// All there is, read at once.
async fn read(agent: &Client, resource: Option<&str>, last: u64) -> Vec<NumberedChange> {
    let mut changes = agent.changes(resource, Some(0)).await.unwrap();
    let mut read = Vec::new();
    while read.last().is_none_or(|change: &NumberedChange| change.id < last) {
        read.push(changes.next().await.unwrap().unwrap());
    }
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_changes_misses_and_doubles_nothing_across_restarts() {
    let mut cluster = Setup::sites(3).start().await;
    let begin = first(shell("add", "echo first >> __ID__"), &cluster.everywhere(), MATRIX);
    for id in ["followed", "other"] {
        cluster[1].does(id, &begin).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let follows = [None, Some("followed".to_owned())].map(|resource| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let agent = cluster[1].client().clone();
        tokio::spawn(follow(agent, resource, Arc::clone(&seen), Arc::clone(&enough)));
        seen
    });
    let mut made = Vec::new();
    for number in 0..60 {
        let site = if number % 20 == 10 { 2 } else { u8::try_from(number % 3).unwrap() + 1 };
        let id = if number % 2 == 0 { "followed" } else { "other" };
        let add = waiting_for(Wait::Local, shell("add", format!("echo {number} >> __ID__")));
        made.push(cluster[site].does(id, &add).await);
        match number {
            20 | 50 => {
                assert!(cluster[1].stop().await.success());
                cluster.restart(1).await;
            }
            35 => {
                cluster[1].kill();
                cluster.restart(1).await;
            }
            _ => {}
        }
    }
    for id in ["followed", "other"] {
        cluster.converges(id).await;
    }
    for (seen, resource) in follows.iter().zip([None, Some("followed")]) {
        // Whatever converged last was also the last thing to be told of it.
        let mut newest = 0;
        until("the followers have seen all", async || {
            let seen = seen.lock().unwrap().clone();
            newest = seen.last().map_or(0, |change| change.id);
            let last_of = |id: &str| {
                let of = seen.iter().rev().find(|change| change.change.resource() == Some(id));
                matches!(of.map(|change| &change.change), Some(Change::Converged { .. }))
            };
            last_of("followed") && (resource.is_some() || last_of("other"))
        })
        .await;
        let seen: Vec<_> = seen.lock().unwrap().clone();
        let seen: Vec<_> = seen.into_iter().filter(|change| change.id <= newest).collect();
        assert!(seen.windows(2).all(|two| two[0].id < two[1].id), "in order, none doubled");
        let whole = read(cluster[1].client(), resource, newest).await;
        assert_eq!(seen.len(), whole.len(), "what was followed is what there is");
        assert_eq!(seen, whole);
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        for change in &seen {
            if let Change::Operation { operation, .. } = &change.change {
                *told.entry(operation.as_str()).or_default() += 1;
            }
        }
        assert!(told.values().all(|times| *times == 1), "{told:?}");
        let wanted = made.iter().enumerate().filter(|(n, _)| resource.is_none() || n % 2 == 0);
        for (number, operation) in wanted {
            assert!(told.contains_key(operation.as_str()), "number {number} was not told");
        }
    }
    enough.store(true, Ordering::SeqCst);
}
