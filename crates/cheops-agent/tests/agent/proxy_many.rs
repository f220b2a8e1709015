//! Requests that stay at another site for long: what they leave for others on the same link, and
//! what is left of those that nobody waits for.

use crate::cluster;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cluster::{Cluster, PATIENCE, replies, shell, until};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use cheops_api::Upload;
use http::Request;
use http_body_util::BodyExt;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// As many requests as may be under way to one site.
const MOST: usize = 4_096;
/// As many as one client may have under way on a connection.
const ON_A_CONNECTION: usize = 256;

/// A service that answers only some requests, and counts those that it keeps.
async fn service(kept: &Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let kept = kept.clone();
    let keep = move || {
        kept.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<()>()
    };
    let service = Router::new().route("/keep", any(keep)).fallback(any(|| async { "answered" }));
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

/// Two sites in front of the same service.
async fn in_front_of(upstream: SocketAddr, answer_limit: &str) -> Cluster {
    let service = format!(
        "[proxy]\nanswer_limit = \"{answer_limit}\"\n\
         [[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
    );
    Cluster::with(2, &service).await
}

async fn client(cluster: &Cluster) -> SendRequest<Body> {
    let stream = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn get(path: &str, scope: &str) -> Request<Body> {
    let request = Request::builder().uri(format!("http://x{path}")).header("x-scope", scope);
    request.body(Body::empty()).unwrap()
}

/// The status of an answer, who gave it, and the code if it is a refusal.
async fn ask(cluster: &Cluster, scope: &str) -> (u16, String, String) {
    let asking = async { client(cluster).await.send_request(get("/", scope)).await.unwrap() };
    let answer = tokio::time::timeout(PATIENCE, asking).await.expect("an answer");
    let header = |name: &str| {
        answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    let found = (answer.status().as_u16(), header("x-cheops-site"), header("x-cheops-error"));
    drop(answer.into_body().collect().await.unwrap());
    found
}

fn answered_by(site: &str) -> (u16, String, String) {
    (200, site.to_owned(), String::new())
}

/// Each request that is kept has a connection with two ends in this process.
fn take_all_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    assert!(limit.current.is_none_or(|most| most > 3 * MOST as u64), "too few files may be open");
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_requests_that_stay_at_a_site_keep_nothing_else_from_it() {
    take_all_files();
    let kept = Arc::default();
    let cluster = in_front_of(service(&kept).await, "5m").await;
    let mut staying = JoinSet::new();
    for _ in 0..MOST / ON_A_CONNECTION {
        let client = client(&cluster).await;
        for _ in 0..ON_A_CONNECTION {
            let mut client = client.clone();
            staying.spawn(async move { client.send_request(get("/keep", "x: site2")).await });
        }
    }
    until("all of them are there", async || kept.load(Ordering::SeqCst) == MOST).await;

    // What one more comes to, and what has nothing to do with them.
    let (refused, elsewhere) =
        tokio::join!(ask(&cluster, "x: site2"), ask(&cluster, "x: site2 ; site1"));
    assert_eq!(refused, (503, "site1".to_owned(), "too-many-under-way".to_owned()));
    assert_eq!(elsewhere, answered_by("site1"), "nobody has seen it");
    let file = cluster.file("brought");
    std::fs::write(&file, "from site2").unwrap();
    let brings = shell("site1 & site2", "set", "cat {brought}");
    let upload = Upload { name: "brought".to_owned(), path: file.into() };
    let events = cluster.submit_with(1, "brought", &brings, &[upload]).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");

    staying.abort_all();
    until("there is room again", async || ask(&cluster, "x: site2").await == answered_by("site2"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stalls_is_let_go_of_as_soon_as_nobody_waits_for_its_body() {
    let silent = service(&Arc::default()).await;
    let early =
        |_: &str| b"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    let early = cluster::service(early).await;
    for (upstream, status) in [(silent, "HTTP/1.1 504"), (early, "HTTP/1.1 413")] {
        let cluster = in_front_of(upstream, "1s").await;
        for scope in ["x: site1", "x: site2"] {
            let mut client = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
            let half = format!(
                "POST /keep HTTP/1.1\r\nHost: x\r\nX-Scope: {scope}\r\nContent-Length: 8\r\n\r\nhalf"
            );
            client.write_all(half.as_bytes()).await.unwrap();
            let (mut heard, mut piece) = (Vec::new(), [0; 1024]);
            let hearing = async {
                while let Ok(read @ 1..) = client.read(&mut piece).await {
                    heard.extend_from_slice(&piece[..read]);
                }
            };
            let ends = tokio::time::timeout(PATIENCE, hearing).await;
            let heard = String::from_utf8_lossy(&heard);
            assert!(heard.starts_with(status), "{scope}: {heard}");
            assert!(ends.is_ok(), "{scope}: its connection stays after {status}");
        }
    }
}
