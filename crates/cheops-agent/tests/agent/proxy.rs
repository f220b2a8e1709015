//! Proxies in front of an application that knows nothing of them: where requests run, and what is
//! left of them on the way.

use crate::cluster;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cluster::{Cluster, until};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use axum::routing::{any, post};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

const COMPUTE: usize = 0;
const IMAGE: usize = 1;

/// One whole instance of the application: a compute service that asks an image service.
struct Site {
    name: String,
    /// Where compute finds image: the proxy, once it is there.
    image: OnceLock<SocketAddr>,
    /// Which headers of the request it works on compute passes on.
    passes_on: Vec<&'static str>,
    asked: AtomicUsize,
    down: AtomicUsize,
    left: Notify,
}

struct Application {
    cluster: Cluster,
    sites: Vec<Arc<Site>>,
}

impl Application {
    async fn of(count: usize, passes_on: &[&'static str]) -> Self {
        let mut sites = Vec::new();
        let mut upstreams = Vec::new();
        for n in 1..=count {
            let site = Arc::new(Site {
                name: format!("site{n}"),
                image: OnceLock::new(),
                passes_on: passes_on.to_vec(),
                asked: AtomicUsize::new(0),
                down: AtomicUsize::new(0),
                left: Notify::new(),
            });
            let compute = Router::new().route("/v1/servers", post(boot)).with_state(site.clone());
            upstreams.push((listen(compute).await, listen(image_service(&site)).await));
            sites.push(site);
        }
        let services = |site: usize| {
            let (compute, image) = upstreams[site];
            format!(
                "[proxy]\nanswer_limit = \"20s\"\n\
                 [[services]]\nname = \"compute\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{compute}\"\n\
                 [[services]]\nname = \"image\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{image}\"\n"
            )
        };
        let cluster = Cluster::each(count, services).await;
        for (n, site) in sites.iter().enumerate() {
            site.image.set(cluster.proxy_address(n, IMAGE)).unwrap();
        }
        Self { cluster, sites }
    }

    async fn ask(&self, site: usize, service: usize, request: http::request::Builder) -> Answer {
        self.send(site, service, request, Body::empty()).await
    }

    async fn send(
        &self,
        site: usize,
        service: usize,
        request: http::request::Builder,
        body: impl Into<Body>,
    ) -> Answer {
        let address = self.cluster.proxy_address(site, service);
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        head.uri = format!("http://{address}{}", head.uri).parse().unwrap();
        answer(head, body.into()).await
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn said(&self) -> (u16, String, &str) {
        (self.status.as_u16(), self.text(), self.header("x-cheops-site"))
    }
}

async fn answer(head: http::request::Parts, body: Body) -> Answer {
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(Request::from_parts(head, body)).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status, headers: head.headers, body }
}

async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn get(path: &str, scope: &str) -> http::request::Builder {
    let request = Request::builder().uri(path);
    if scope.is_empty() { request } else { request.header("x-scope", scope) }
}

fn boot_server(scope: &str) -> http::request::Builder {
    get("/v1/servers", scope).method(Method::POST)
}

/// Compute: asks image for what it needs, as any traced service does.
async fn boot(State(site): State<Arc<Site>>, request: Request) -> Response<Body> {
    let mut call = Request::builder().uri(format!("http://{}/v1/name", site.image.get().unwrap()));
    for (name, value) in request.headers() {
        if site.passes_on.contains(&name.as_str()) {
            call = call.header(name, value);
        }
    }
    let (head, body) = call.body(Body::empty()).unwrap().into_parts();
    let image = answer(head, body).await;
    let text = format!("compute of {}, image of {}", site.name, image.text());
    (image.status, text).into_response()
}

fn image_service(site: &Arc<Site>) -> Router {
    Router::new()
        .route("/v1/name", any(name))
        .route("/v1/headers", any(headers_seen))
        .route("/v1/echo", any(echo))
        .route("/v1/hang", any(hang))
        .route("/v1/endless", any(endless))
        .route("/v1/upload", any(upload))
        .route("/v1/lie", any(lie))
        .route("/v1/boast", any(|| async { [("x-long", "x".repeat(300 * 1024))] }))
        .with_state(site.clone())
}

async fn name(State(site): State<Arc<Site>>, _body: Bytes) -> Response<Body> {
    site.asked.fetch_add(1, Ordering::SeqCst);
    match site.down.load(Ordering::SeqCst) {
        0 => site.name.clone().into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "closed").into_response(),
    }
}

async fn headers_seen(headers: HeaderMap) -> String {
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.concat()
}

async fn echo(request: Request) -> Response<Body> {
    Response::new(request.into_body())
}

/// Says what only Cheops may say: that nobody has seen the request.
async fn lie(State(site): State<Arc<Site>>) -> Response<Body> {
    site.asked.fetch_add(1, Ordering::SeqCst);
    (StatusCode::BAD_GATEWAY, [("x-cheops-error", "unreachable")], "lies").into_response()
}

/// Notes when whoever asked is gone.
struct Gone(Arc<Site>);

impl Gone {
    fn watch(site: Arc<Site>) -> Self {
        site.asked.fetch_add(1, Ordering::SeqCst);
        Self(site)
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.left.notify_one();
    }
}

/// Never answers.
async fn hang(State(site): State<Arc<Site>>) -> String {
    let _gone = Gone::watch(site);
    std::future::pending().await
}

/// Begins to answer, and never comes to an end.
async fn endless(State(site): State<Arc<Site>>) -> Body {
    let gone = Gone::watch(site);
    let begun = stream::once(async { Ok::<_, std::io::Error>("begun") });
    let rest = stream::once(async move {
        let _gone = gone;
        std::future::pending().await
    });
    Body::from_stream(begun.chain(rest))
}

/// Waits for all of a body.
async fn upload(State(site): State<Arc<Site>>, request: Request) -> StatusCode {
    let mut body = request.into_body();
    let _begun = body.frame().await;
    let _gone = Gone::watch(site);
    match body.collect().await {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_scope_goes_to_the_service_of_its_site_as_it_is() {
    let application = Application::of(2, &[]).await;
    let asked = get("/v1/headers", "").header("host", "image.example").header("x-own", "kept");
    let asked = asked.header("connection", "x-hop").header("x-hop", "1");

    let seen = application.ask(0, IMAGE, asked).await;

    assert_eq!(seen.header("x-cheops-site"), "site1");
    assert_eq!(
        seen.text(),
        "forwarded: for=127.0.0.1;host=\"image.example\";proto=http\n\
         host: image.example\nvia: 1.1 cheops-site1-image\nx-own: kept\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_says_at_which_site_a_request_runs() {
    let application = Application::of(3, &[]).await;
    for (scope, site) in [
        ("image: site1", "site1"),
        ("{compute: site2, image: site3}", "site3"),
        ("{compute: site2}", "site1"),
        ("image: site2 ; site1", "site2"),
        ("image: around(site1, 5s)", "site1"),
    ] {
        let answer = application.ask(0, IMAGE, get("/v1/name", scope)).await;
        assert_eq!(answer.said(), (200, site.to_owned(), site), "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_a_service_makes_for_a_request_run_under_its_scope() {
    let scope = "{compute: site1, image: site2}";
    for passes_on in ["x-openstack-request-id", "x-request-id", "traceparent", "baggage"] {
        let application = Application::of(3, &[passes_on]).await;
        let expected = "compute of site1, image of site2".to_owned();

        let near = application.ask(0, COMPUTE, boot_server(scope)).await;
        assert_eq!(near.said(), (200, expected.clone(), "site1"), "by {passes_on}");
        // From a site that runs none of it.
        let far = application.ask(2, COMPUTE, boot_server(scope)).await;
        assert_eq!(far.said(), (200, expected, "site1"), "by {passes_on}");
        let plain = application.ask(0, COMPUTE, boot_server("")).await;
        assert_eq!(plain.text(), "compute of site1, image of site1", "by {passes_on}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_different_scopes_at_the_same_time_do_not_cross() {
    let application = Application::of(2, &["x-openstack-request-id", "x-auth-token"]).await;
    let asking = (0..40).map(|n| {
        let image = n % 2 + 1;
        let asked = boot_server(&format!("{{compute: site1, image: site{image}}}"));
        let application = &application;
        async move {
            let answer = application.ask(0, COMPUTE, asked.header("x-auth-token", "same")).await;
            assert_eq!(answer.text(), format!("compute of site1, image of site{image}"));
        }
    });
    join_all(asking).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_used_under_two_scopes_says_nothing() {
    let application = Application::of(2, &["x-request-id"]).await;
    for image in ["site1", "site2"] {
        let scope = format!("image: {image}");
        let asked = get("/v1/name", &scope).header("x-request-id", "always-the-same");
        application.ask(0, IMAGE, asked.header("x-auth-token", "mine")).await;
    }
    let asked = get("/v1/name", "").header("x-request-id", "always-the-same");
    let asked = asked.header("x-auth-token", "mine");
    let answer = application.ask(0, IMAGE, asked).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-cheops-error")), (409, "ambiguous-scope"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_cannot_be_followed_runs_nothing_and_says_why() {
    let application = Application::of(2, &[]).await;
    for (scope, status, code, said) in [
        ("{image: site3}", 400, "bad-scope", "unknown site `site3`"),
        ("{image: ", 400, "bad-scope", "expected"),
        ("{imag: site1}", 400, "bad-scope", "did you mean `image`"),
    ] {
        let answer = application.ask(0, IMAGE, get("/v1/name", scope)).await;
        assert_eq!(answer.status, status, "{scope}: {answer:?}");
        assert_eq!(answer.header("x-cheops-error"), code);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(problem.to_string().contains(said), "{problem}");
    }
    for (scope, said) in [
        ("image: site1 [consistency=strong]", "strong"),
        ("{compute: site2 [consistency=transactional], image: site1}", "transactional"),
        ("image: site1 & site2 [consistency=none]", "none"),
    ] {
        let answer = application.ask(0, IMAGE, get("/v1/name", scope)).await;
        let found = (answer.status.as_u16(), answer.header("x-cheops-error"));
        assert_eq!(found, (501, "not-supported"), "{scope}");
        assert!(answer.text().contains(&format!("`consistency={said}`")), "{}", answer.text());
    }
    let two = get("/v1/name", "image: site1").header("x-cheops-scope", "image: site2");
    assert_eq!(application.ask(0, IMAGE, two).await.status, 400);
    assert_eq!(application.sites[0].asked.load(Ordering::SeqCst), 0);
    let eventual = get("/v1/name", "image: site1 & site2 [consistency=eventual]");
    assert_eq!(application.ask(0, IMAGE, eventual).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_too_long_to_pass_between_sites_are_refused_and_say_so() {
    let application = Application::of(2, &[]).await;
    let long = "x".repeat(300 * 1024);
    let asked = |path, scope| get(path, scope).header("x-long", &long);

    let answer = application.ask(0, IMAGE, asked("/v1/name", "image: site2")).await;
    let found = (answer.status.as_u16(), answer.header("x-cheops-error"));
    assert_eq!(found, (431, "head-too-long"));
    assert_eq!(application.sites[1].asked.load(Ordering::SeqCst), 0);
    let near = application.ask(0, IMAGE, asked("/v1/name", "image: site2 ; site1")).await;
    assert_eq!(near.said(), (200, "site1".to_owned(), "site1"), "nobody has seen it");

    let answer = application.ask(0, IMAGE, get("/v1/boast", "image: site2")).await;
    let found = (answer.status.as_u16(), answer.header("x-cheops-error"));
    assert_eq!((found, answer.header("x-cheops-site")), ((502, "head-too-long"), "site2"));
    assert!(answer.text().contains("was carried out"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_site_is_asked_when_one_cannot_be_reached_or_gives_up() {
    let mut application = Application::of(3, &[]).await;
    let chain = "image: site2 ; site3";
    application.sites[1].down.store(1, Ordering::SeqCst);

    let answer = application.ask(0, IMAGE, get("/v1/name", chain)).await;
    assert_eq!(answer.said(), (200, "site3".to_owned(), "site3"), "what can be repeated is");
    let post = get("/v1/name", chain).method(Method::POST);
    let answer = application.send(0, IMAGE, post, "once").await;
    assert_eq!(answer.said(), (503, "closed".to_owned(), "site2"), "a service has seen it");

    application.cluster.stop(1).await;
    for body in [Body::from("short"), Body::from(vec![0; 1_000_000])] {
        let post = get("/v1/name", chain).method(Method::POST);
        let answer = application.send(0, IMAGE, post, body).await;
        assert_eq!(answer.said(), (200, "site3".to_owned(), "site3"), "nobody has seen it");
    }
    let answer = application.ask(0, IMAGE, get("/v1/name", "image: site2")).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-cheops-error")), (503, "unreachable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cannot_say_that_nobody_has_seen_a_request() {
    let application = Application::of(3, &[]).await;
    let post = get("/v1/lie", "image: site2 ; site3").method(Method::POST);
    let answer = application.send(0, IMAGE, post, "once").await;
    assert_eq!(answer.said(), (502, "lies".to_owned(), "site2"));
    assert_eq!(answer.header("x-cheops-error"), "");
    assert_eq!(application.sites[2].asked.load(Ordering::SeqCst), 0, "it was sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_both_ways_whole() {
    let application = Application::of(2, &[]).await;
    let sent: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
    for scope in ["", "image: site1", "image: site2", "image: site2 ; site1"] {
        let post = get("/v1/echo", scope).method(Method::POST);
        let answer = application.send(0, IMAGE, post, sent.clone()).await;
        assert!(answer.body == sent, "{scope}: {} bytes", answer.body.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_takes_its_request_along() {
    let application = Application::of(2, &[]).await;
    let before_the_answer = ("GET /v1/hang", "\r\n", "");
    let during_the_answer = ("GET /v1/endless", "\r\n", "begun");
    let during_its_body = ("POST /v1/upload", "Content-Length: 100\r\n\r\nhalf", "");
    for (line, rest, answer) in [before_the_answer, during_the_answer, during_its_body] {
        for (scope, site) in [("", 0), ("X-Scope: image: site2\r\n", 1)] {
            let address = application.cluster.proxy_address(0, IMAGE);
            let mut client = TcpStream::connect(address).await.unwrap();
            let request = format!("{line} HTTP/1.1\r\nHost: x\r\n{scope}{rest}");
            client.write_all(request.as_bytes()).await.unwrap();
            let site = &application.sites[site];
            until("the service is asked", async || site.asked.load(Ordering::SeqCst) > 0).await;
            let mut heard = Vec::new();
            while !String::from_utf8_lossy(&heard).contains(answer) {
                heard.push(client.read_u8().await.unwrap());
            }
            drop(client);
            let left = tokio::time::timeout(cluster::PATIENCE, site.left.notified()).await;
            assert!(left.is_ok(), "{line} {scope}");
            site.asked.store(0, Ordering::SeqCst);
        }
    }
}

/// Three sites with a service `x` each, at these addresses.
async fn three(upstreams: [SocketAddr; 3], more: &str) -> Cluster {
    let service = |site: usize| {
        let upstream = upstreams[site];
        format!(
            "{more}[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    Cluster::each(3, service).await
}

/// One that answers, and counts how often it is asked.
async fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let answer = move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async { "answered" }
    };
    (listen(Router::new().fallback(any(answer))).await, asked)
}

async fn ask_x(cluster: &Cluster, method: Method, scope: &str) -> Answer {
    let uri = format!("http://{}/", cluster.proxy_address(0, 0));
    let request = Request::builder().method(method).uri(uri).header("x-scope", scope);
    let (head, ()) = request.body(()).unwrap().into_parts();
    answer(head, Body::empty()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_site_is_asked_when_one_lets_its_time_pass() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (answering, asked) = counting().await;
    let upstreams = [answering, silent.local_addr().unwrap(), answering];
    let cluster = three(upstreams, "[proxy]\nanswer_limit = \"1s\"\n").await;

    let found = ask_x(&cluster, Method::GET, "x: site2 ; site3").await;
    assert_eq!(found.said(), (200, "answered".to_owned(), "site3"));
    let found = ask_x(&cluster, Method::POST, "x: site2 ; site3").await;
    let told = (found.status.as_u16(), found.header("x-cheops-error"));
    assert_eq!(told, (504, "time-limit"), "somebody may have seen it");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "it was not sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn that_nobody_has_seen_a_request_is_not_said_once_somebody_may_have() {
    let breaks_off = cluster::service(|_| Vec::new()).await;
    let gives_up = listen(
        Router::new().fallback(any(|| async { (StatusCode::SERVICE_UNAVAILABLE, "closed") })),
    )
    .await;
    let mut cluster = three([gives_up, breaks_off, gives_up], "").await;
    cluster.stop(2).await;

    let found = ask_x(&cluster, Method::PUT, "x: site2 ; site3").await;
    let told = (found.status.as_u16(), found.header("x-cheops-error"));
    assert_eq!((told, found.header("x-cheops-site")), ((502, "broken-off"), "site2"));
    let found = ask_x(&cluster, Method::PUT, "x: site1 ; site3").await;
    assert_eq!(found.said(), (503, "closed".to_owned(), "site1"));
    let found = ask_x(&cluster, Method::PUT, "x: site3 ; site2").await;
    assert_eq!(found.header("x-cheops-error"), "broken-off", "the last counts otherwise");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_by_http_2_with_a_method_that_has_none_mostly_arrives() {
    let application = Application::of(2, &[]).await;
    for scope in ["image: site1", "image: site2"] {
        let address = application.cluster.proxy_address(0, IMAGE);
        let mut client = Client::builder(TokioExecutor::new());
        let client: Client<HttpConnector, Body> = client.http2_only(true).build_http();
        let pieces = ["some ", "body"].map(Ok::<_, std::io::Error>);
        let request = get("/v1/echo", scope).uri(format!("http://{address}/v1/echo"));
        let request = request.body(Body::from_stream(stream::iter(pieces))).unwrap();
        let response = client.request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "some body", "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_its_time_from_the_end_of_the_request_on() {
    let site = listen(Router::new().fallback(any(|body: Bytes| async move { body }))).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_at = silent.local_addr().unwrap();
    let service = |name: &str, upstream| {
        format!(
            "[[services]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    let more = format!(
        "[proxy]\nanswer_limit = \"2s\"\n{}{}",
        service("slow", site),
        service("silent", silent_at)
    );
    let cluster = Cluster::with(1, &more).await;

    // A body that takes longer than that, but moves on.
    let mut client = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    for byte in *b"tick-ing" {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        client.write_all(&[byte]).await.unwrap();
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("tick-ing"), "{answer}");

    let mut client = TcpStream::connect(cluster.proxy_address(0, 1)).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("time-limit"), "{answer}");
}

/// A service that answers with the trailer it was sent as a trailer of its own.
async fn with_trailers(request: Request) -> Response<Body> {
    let body = request.into_body().collect().await.unwrap();
    let sent = body.trailers().and_then(|trailers| trailers.get("x-sum").cloned());
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum-seen", sent.unwrap_or(http::HeaderValue::from_static("none")));
    let frames = [
        Ok::<_, std::io::Error>(http_body::Frame::data(body.to_bytes())),
        Ok(http_body::Frame::trailers(trailers)),
    ];
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    Response::builder().header("trailer", "x-sum-seen").body(Body::new(body)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_travel_within_a_site_and_between_sites() {
    let upstream = listen(Router::new().fallback(any(with_trailers))).await;
    let service = |_| {
        format!(
            "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    let cluster = Cluster::each(2, service).await;
    for scope in ["", "X-Scope: x: site2\r\n"] {
        let mut client = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
        let ask = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTE: trailers\r\n{scope}\
             Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n"
        );
        client.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("body"), "{answer}");
        assert!(answer.contains("x-sum-seen: 7"), "{scope}{answer}");
        assert!(!answer.contains("te: trailers"), "that is for requests: {answer}");
    }
}
