//! Connections that go over to another protocol, at this site and at others, and requests that
//! only offer it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, PATIENCE, until};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An address at which nobody is.
const NOBODY: &str = "127.0.0.1:9";

/// A service that speaks another protocol after the upgrade: when the other side has said all,
/// everything back in capitals, many times.
async fn shouting() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(shout(stream));
        }
    });
    address
}

const TIMES: usize = 20_000;

async fn shout(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    assert!(head.contains("upgrade: shout") && head.contains("connection: upgrade"), "{head}");
    let answer = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    stream.write_all(&said.to_ascii_uppercase().repeat(TIMES)).await.unwrap();
}

/// Sites with a service `x` each, at these addresses.
async fn sites(upstreams: &[String]) -> Cluster {
    let service = |site: usize| {
        let upstream = &upstreams[site];
        format!(
            "[proxy]\nanswer_limit = \"10s\"\n\
             [[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    Cluster::each(upstreams.len(), service).await
}

/// What is heard by who asks for an upgrade, says something in the other protocol, and then only
/// listens.
async fn upgraded(cluster: &Cluster, more: &str, body: &str) -> String {
    let mut client = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
    let ask = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\n{more}\r\n{body}he\n\no"
    );
    client.write_all(ask.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        heard.push(client.read_u8().await.unwrap());
    }
    client.shutdown().await.unwrap();
    let listening = tokio::time::timeout(PATIENCE, client.read_to_end(&mut heard));
    listening.await.expect("an end").unwrap();
    String::from_utf8(heard).unwrap()
}

fn is_shouted(answer: &str, body: &str) {
    let (head, heard) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(head.to_lowercase().contains("upgrade: shout"), "{answer}");
    let expected = format!("{body}{}", "HE\n\nO".repeat(TIMES));
    assert!(heard == expected, "{} bytes of {}", heard.len(), expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn client_and_service_may_go_over_to_another_protocol() {
    let upstream = shouting().await.to_string();
    let cluster = sites(&[upstream.clone(), upstream]).await;
    for (more, body) in [
        ("", ""),
        // One that says that its request has no body is like any other.
        ("Content-Length: 0\r\n", ""),
        ("Content-Length: 4\r\n", "a\n\nb"),
        ("X-Scope: x: site2\r\n", ""),
        ("Content-Length: 0\r\nX-Scope: x: site2\r\n", ""),
    ] {
        is_shouted(&upgraded(&cluster, more, body).await, body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_site_goes_over_where_the_first_has_nobody_who_could() {
    let upstream = shouting().await.to_string();
    let cluster = sites(&[NOBODY.to_owned(), NOBODY.to_owned(), upstream]).await;
    is_shouted(&upgraded(&cluster, "X-Scope: x: site2 ; site3\r\n", "").await, "");
    is_shouted(&upgraded(&cluster, "X-Scope: x: site1 ; site3\r\n", "").await, "");
}

/// Things, each with an id of its own.
#[derive(Default)]
struct Things {
    made: AtomicUsize,
    kept: Mutex<Vec<String>>,
}

async fn make(State(things): State<Arc<Things>>) -> Response {
    let id = things.made.fetch_add(1, Ordering::SeqCst).to_string();
    things.kept.lock().unwrap().push(id.clone());
    (StatusCode::CREATED, Json(json!({ "id": id }))).into_response()
}

async fn remove(State(things): State<Arc<Things>>, Path(id): Path<String>) -> StatusCode {
    let mut kept = things.kept.lock().unwrap();
    let there = kept.len();
    kept.retain(|one| *one != id);
    if kept.len() < there { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

async fn service(things: &Arc<Things>) -> String {
    let router = Router::new()
        .route("/v1/things", get(|| async { "" }).post(make))
        .route("/v1/things/{id}", delete(remove))
        .with_state(things.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address.to_string()
}

/// The answer to a request that offers another protocol, which nobody takes up.
async fn offered(to: SocketAddr, line: &str, scope: &str) -> String {
    let mut client = TcpStream::connect(to).await.unwrap();
    let ask = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: y\r\nX-Scope: x: {scope}\r\n\r\n"
    );
    client.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let listening = tokio::time::timeout(PATIENCE, client.read_to_string(&mut answer));
    listening.await.expect("an end").unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_replicas_changes_all_of_them_whatever_else_it_offers() {
    let things: Vec<Arc<Things>> = (0..3).map(|_| Arc::default()).collect();
    // No two sites call a thing the same.
    for (first, things) in things.iter().enumerate() {
        things.made.store(first * 100, Ordering::SeqCst);
    }
    let mut upstreams = Vec::new();
    for things in &things {
        upstreams.push(service(things).await);
    }
    let cluster = sites(&upstreams).await;
    let everywhere = async |what: &str, count: usize| {
        let kept = |site: usize| things[site].kept.lock().unwrap().len();
        until(what, async || kept(0) == count && kept(1) == count).await;
    };

    let answer = offered(cluster.proxy_address(2, 0), "POST /v1/things", "site1 & site2").await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let (_, resource) = answer.split_once("x-cheops-resource: ").expect(&answer);
    let id = resource.lines().next().unwrap();
    everywhere("it is made at both", 1).await;

    let line = format!("DELETE /v1/things/{id}");
    let answer = offered(cluster.proxy_address(2, 0), &line, "site2").await;
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    everywhere("it is gone from both", 0).await;
}
