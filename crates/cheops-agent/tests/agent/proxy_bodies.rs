//! Bodies of changes that are kept for several sites: those that stop half-way, and large ones on
//! their way from site to site.

use crate::sample_service;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cluster::{Cluster, Network, PATIENCE, Way, until};
use crate::sample_service::{Application, SCOPE, largest_file, listen, service, three};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: &str = "\n[proxy]\nanswer_limit = \"2s\"";
const JSON: &str = "application/json";

/// Begins a request whose body has so many bytes.
async fn begin(
    application: &Application,
    (method, path, scope, kind): (&str, &str, &str, &str),
    length: usize,
) -> TcpStream {
    let mut client = TcpStream::connect(application.cluster.proxy_address(0, 0)).await.unwrap();
    let scope = if scope.is_empty() { String::new() } else { format!("X-Scope: {scope}\r\n") };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{scope}\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client
}

async fn heard(mut client: TcpStream) -> String {
    let mut heard = String::new();
    let reading = client.read_to_string(&mut heard);
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer").unwrap();
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stands_still_is_not_waited_for() {
    let by_services = Application::start(SOON).await;
    let by_clients = Application::start(&format!("client_chosen_id = \"/id\"{SOON}")).await;
    let id = by_services.create(0, "web").await;
    let (thing, file) = (format!("/v1/things/{id}"), format!("/v1/things/{id}/file"));
    let cases = [
        (&by_services, ("POST", "/v1/things", SCOPE, JSON)),
        (&by_services, ("PUT", file.as_str(), "", "application/octet-stream")),
        (&by_services, ("PATCH", thing.as_str(), "", "application/json-patch+json")),
        // It is looked into for ids.
        (&by_services, ("POST", "/v1/things", "", JSON)),
        (&by_clients, ("POST", "/v1/things", SCOPE, JSON)),
    ];
    let mut clients = Vec::new();
    for (application, request) in cases {
        let mut client = begin(application, request, 100).await;
        client.write_all(b"{\"name\": ").await.unwrap();
        clients.push((request, client));
    }
    for (request, client) in clients {
        let heard = heard(client).await;
        assert!(heard.starts_with("HTTP/1.1 400 "), "{request:?}: {heard}");
        assert!(heard.contains("x-cheops-error: broken-request"), "{request:?}: {heard}");
        assert!(heard.contains("it did not come in time"), "{request:?}: {heard}");
    }
    for application in [&by_services, &by_clients] {
        let drafts = application.cluster.dir().join("site1/blobs/tmp");
        let left = || std::fs::read_dir(&drafts).unwrap().count();
        until("what was begun is removed", async || left() == 0).await;
    }
    assert_eq!([by_services.count(0), by_clients.count(0)], [1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_goes_on_moving_has_all_the_time_it_takes() {
    let application = Application::start(SOON).await;
    let id = application.create(0, "web").await;
    let (pieces, piece) = (12, [b'x'; 100]);
    let file = format!("/v1/things/{id}/file");
    let put = ("PUT", file.as_str(), "", "application/octet-stream");
    let mut client = begin(&application, put, pieces * piece.len()).await;
    // Longer than any answer may take, in all.
    for _ in 0..pieces {
        tokio::time::sleep(Duration::from_millis(250)).await;
        client.write_all(&piece).await.unwrap();
    }
    let heard = heard(client).await;
    assert!(heard.starts_with("HTTP/1.1 204 "), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_may_take_as_long_for_what_is_kept_as_for_what_passes() {
    let application = Application::start("\n[shell]\ntime_limit = \"100ms\"").await;
    for site in [0, 1] {
        *application.services[site].takes.lock().unwrap() = Duration::from_millis(500);
    }
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;

    let impatient = Application::start("\n[proxy]\nanswer_limit = \"100ms\"").await;
    *impatient.services[0].takes.lock().unwrap() = PATIENCE * 2;
    let body = serde_json::json!({ "name": "web" });
    let late = impatient.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    assert_eq!((late.status, late.header("x-cheops-error")), (504, "time-limit"));
    assert!(late.json()["hint"].as_str().unwrap().contains("answer_limit"));
}

/// What lies between two sites, and may be cut as soon as so much went to the second.
#[derive(Clone)]
struct Line(Arc<Crossing>);

struct Crossing {
    crossed: AtomicU64,
    most: AtomicU64,
}

impl Line {
    fn new() -> Self {
        Self(Arc::new(Crossing { crossed: AtomicU64::new(0), most: AtomicU64::new(u64::MAX) }))
    }

    fn crossed(&self) -> u64 {
        self.0.crossed.load(Ordering::SeqCst)
    }

    /// Nothing passes any more, either way, once so many more bytes did.
    fn cut_after(&self, bytes: u64) {
        self.0.most.store(self.crossed() + bytes, Ordering::SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.crossed() >= self.0.most.load(Ordering::SeqCst)
    }

    fn heal(&self) {
        self.0.most.store(u64::MAX, Ordering::SeqCst);
    }
}

impl Network for Line {
    fn crossing(&mut self, way: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        if self.is_cut() {
            return Vec::new();
        }
        if way == Way::There {
            self.0.crossed.fetch_add(datagram.len() as u64, Ordering::SeqCst);
        }
        vec![datagram.to_vec()]
    }
}

async fn over(line: &Line) -> Application {
    let services = three();
    let upstreams = [listen(service(&services[0])).await, listen(service(&services[1])).await];
    let cluster =
        Cluster::over(line.clone(), |site| sample_service::config(upstreams[site], "")).await;
    Application { cluster, services }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_goes_to_a_site_once_also_when_it_is_cut_on_its_way() {
    const LENGTH: u64 = 32 << 20;
    let line = Line::new();
    let application = over(&line).await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;

    let before = line.crossed();
    line.cut_after(LENGTH / 4 * 3);
    // No two blocks of it are the same, and none can be packed.
    let content: Vec<u8> =
        (0..LENGTH / 32).flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes()).collect();
    let file = format!("/v1/things/{id}/file");
    let binary = ("application/octet-stream", content.clone());
    let sent = application.send(0, Method::PUT, &file, "", binary).await;
    assert_eq!(sent.status, 204, "whoever sent it need not wait for the other site");

    until("it is cut on its way", async || line.is_cut()).await;
    until("the link is given up, not only silent", async || {
        let asked = application.ask(1, Method::GET, "/v1/things", "thing: site1").await;
        asked.header("x-cheops-error") == "unreachable"
    })
    .await;
    // What arrived is not thrown away when the site goes on with something else.
    let meanwhile = application.create(1, "meanwhile").await;
    let mut feed = application.cluster.client(1).changes(Some(&meanwhile), Some(0)).await.unwrap();
    tokio::time::timeout(PATIENCE, feed.next()).await.expect("it is in the log").unwrap();
    let has_it = || application.services[1].files.lock().unwrap().values().any(|it| *it == content);
    assert!(!has_it());
    line.heal();
    until("the other site has it", async || has_it()).await;
    let crossed = line.crossed() - before;
    assert!(crossed < LENGTH / 4 * 5, "{crossed} bytes for a body of {LENGTH}");
    for site in ["site1", "site2"] {
        let blobs = application.cluster.dir().join(site).join("blobs");
        until("what both have made use of is let go", async || largest_file(&blobs) < 64 * 1024)
            .await;
    }
}
