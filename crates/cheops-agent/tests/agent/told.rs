//! Who is told by a whole agent, whatever becomes of the others that are to be told.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, replies, shell, until};
use axum::Router;
use cheops_api::Submit;
use http::HeaderMap;
use tokio::net::TcpListener;

/// More than one target is let wait for, or read for, at once.
const MANY: usize = 80;

const ANYWHERE: &str = "[webhooks]\nallow = [\"*\"]";

/// Takes connections, and never says anything.
async fn silent_receiver() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// The names of the deliveries that arrived.
async fn receiver(address: SocketAddr) -> Arc<Mutex<BTreeSet<String>>> {
    let heard = Arc::<Mutex<BTreeSet<String>>>::default();
    let hears = Arc::clone(&heard);
    let taken = async move |headers: HeaderMap| {
        let name = headers["x-cheops-delivery"].to_str().unwrap().to_owned();
        hears.lock().unwrap().insert(name);
    };
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(axum::serve(listener, Router::new().fallback(taken)).into_future());
    heard
}

/// An operation after which an address and a file are told.
fn hooked(address: SocketAddr, file: &str) -> Submit {
    let config = serde_json::json!({ "Hooks": [
        { "On": "applied", "Url": format!("http://{address}/") },
        { "On": "applied", "Command": format!("echo $CHEOPS_DELIVERY >> {file}") },
    ] });
    Submit { config: Some(config), ..shell("site1", "add", "true") }
}

fn lines(file: &str) -> BTreeSet<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_holds_nobody_up_and_hears_all_of_it_after_a_restart() {
    let mut cluster = Cluster::with(1, ANYWHERE).await;
    let silent = silent_receiver().await;
    let address = silent.local_addr().unwrap();
    let file = cluster.file("told");
    let submit = hooked(address, &file);

    for _ in 0..MANY {
        let events = cluster.submit(0, "busy", &submit).await;
        assert_eq!(replies(&events), [("site1", "OK")]);
    }

    until("the command was run for all", async || lines(&file).len() == MANY).await;

    cluster.stop(0).await;
    drop(silent);
    let heard = receiver(address).await;
    cluster.start(0).await;

    until("the receiver has heard all", async || heard.lock().unwrap().len() >= MANY).await;
    assert_eq!(heard.lock().unwrap().len(), MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_hang_leave_room_for_others() {
    let cluster = Cluster::with(1, ANYWHERE).await;
    let file = cluster.file("told");
    let mut silent = Vec::new();
    // More than commands may run at once.
    for n in 0..20 {
        let receiver = silent_receiver().await;
        let address = receiver.local_addr().unwrap();
        cluster.submit(0, &format!("r{n}"), &hooked(address, &file)).await;
        silent.push(receiver);
    }

    until("the command was run for all", async || lines(&file).len() == 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_retention_hooks_hear_of_everything_all_the_same() {
    const OPERATIONS: usize = 60;
    let cluster = Cluster::with(1, "[audit]\nretention = 0").await;
    let file = cluster.file("told");
    // Each operation takes the place of the one before it, of which nothing is kept then.
    let config = serde_json::json!({
        "ResolutionMatrix": [{ "Before": "set", "After": "set", "Result": "take-one" }],
        "Hooks": [{ "On": "applied", "Command": format!("echo $CHEOPS_OPERATION >> {file}") }],
    });
    let first = Submit { config: Some(config), ..shell("site1", "set", "true") };
    for n in 0..OPERATIONS {
        let submit = if n == 0 { &first } else { &shell("", "set", "true") };
        assert_eq!(replies(&cluster.submit(0, "short", submit).await), [("site1", "OK")]);
    }

    until("all of them were told", async || lines(&file).len() == OPERATIONS).await;
}
