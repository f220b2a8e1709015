//! Clients that speak HTTP/2 to a proxy, in front of a service that speaks HTTP/1.1.

use crate::cluster;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, PATIENCE, until};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use axum::routing::any;
use futures_util::future::join_all;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A request runs at the client's site, or at another one.
const SCOPES: [&str; 2] = ["x: site1", "x: site2"];

/// Two sites in front of the same service.
async fn in_front_of(upstream: SocketAddr) -> Cluster {
    let service = format!(
        "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
    );
    Cluster::with(2, &service).await
}

async fn listen(service: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

async fn client(cluster: &Cluster) -> SendRequest<Body> {
    let stream = TcpStream::connect(cluster.proxy_address(0, 0)).await.unwrap();
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

fn to(path: &str, scope: &str) -> http::request::Builder {
    Request::builder().uri(format!("http://image.example{path}")).header("x-scope", scope)
}

async fn send(
    client: &mut SendRequest<Body>,
    request: http::request::Builder,
    body: impl Into<Body>,
) -> hyper::Result<Response<Incoming>> {
    let request = request.body(body.into()).unwrap();
    tokio::time::timeout(PATIENCE, client.send_request(request)).await.expect("an answer")
}

/// A service that keeps the heads it hears, line by line.
async fn listening() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = heard.clone();
    let answer = move |head: &str| {
        *kept.lock().unwrap() = head.lines().map(str::to_lowercase).collect();
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
    };
    (cluster::service(answer).await, heard)
}

/// The lines of one header, as the service heard them last.
fn lines_of(heard: &Mutex<Vec<String>>, name: &str) -> Vec<String> {
    let lines = heard.lock().unwrap();
    let its = lines.iter().filter(|line| line.starts_with(&format!("{name}:")));
    its.cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_http_2_says_otherwise_reaches_a_service_as_http_1_1_says_it() {
    let (service, heard) = listening().await;
    let cluster = in_front_of(service).await;
    let mut client = client(&cluster).await;
    for scope in SCOPES {
        let asked = to("/a?b=c", scope).header("cookie", "a=1").header("cookie", "b=2");
        let answer = send(&mut client, asked.header("host", "other.example"), "").await.unwrap();
        assert_eq!(answer.status(), 200, "{scope}");
        assert_eq!(heard.lock().unwrap()[0], "get /a?b=c http/1.1", "{scope}");
        assert_eq!(lines_of(&heard, "host"), ["host: image.example"], "{scope}");
        assert_eq!(lines_of(&heard, "cookie"), ["cookie: a=1; b=2"], "{scope}");
        assert!(!heard.lock().unwrap().iter().any(|line| line.starts_with(':')), "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_never_hears_two_lengths_of_a_body() {
    let (service, heard) = listening().await;
    let cluster = in_front_of(service).await;
    let mut client = client(&cluster).await;
    for scope in SCOPES {
        for lengths in [["4", "4"], ["5", "4"], ["4", "5"]] {
            let asked = to("/", scope).method("POST");
            let asked = asked.header("content-length", lengths[0]);
            let asked = asked.header("content-length", lengths[1]);
            // If the body is not as long as it says, that may be noticed first.
            if let Ok(answer) = send(&mut client, asked, "four").await {
                assert_eq!(answer.status(), 400, "{scope}, {lengths:?}");
            }
            assert_eq!(*heard.lock().unwrap(), [""; 0], "{scope}, {lengths:?}");
        }
        let answer = send(&mut client, to("/", scope).method("POST"), "four").await.unwrap();
        assert_eq!(answer.status(), 200, "{scope}");
        assert_eq!(lines_of(&heard, "content-length"), ["content-length: 4"], "{scope}");
        heard.lock().unwrap().clear();
    }
}

/// Answers with the trailer it was sent as a trailer of its own.
async fn with_trailers(request: Request) -> Response<Body> {
    let body = request.into_body().collect().await.unwrap();
    let sent = body.trailers().and_then(|trailers| trailers.get("x-sum").cloned());
    let sum_seen = sent.unwrap_or(HeaderValue::from_static("none"));
    let trailers = HeaderMap::from_iter([("x-sum-seen".parse().unwrap(), sum_seen)]);
    let frames = [Frame::data(body.to_bytes()), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, std::io::Error>));
    let body = Body::new(StreamBody::new(frames));
    Response::builder().header("trailer", "x-sum-seen").body(body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_pass_both_ways() {
    let cluster = in_front_of(listen(Router::new().fallback(any(with_trailers))).await).await;
    let mut client = client(&cluster).await;
    for scope in SCOPES {
        let sum = HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("7"))]);
        let frames = [Frame::data("body".into()), Frame::trailers(sum)];
        let frames = stream::iter(frames.map(Ok::<_, std::io::Error>));
        let asked =
            to("/", scope).method("POST").header("te", "trailers").header("trailer", "x-sum");
        let answer = send(&mut client, asked, Body::new(StreamBody::new(frames))).await.unwrap();
        let heard = answer.into_body().collect().await.unwrap();
        assert_eq!(heard.trailers().expect(scope)["x-sum-seen"], "7", "{scope}");
        assert_eq!(heard.to_bytes(), "body", "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_at_once_on_one_connection_get_their_own_answers() {
    let echo = |request: Request| async {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        format!("{path} {}", String::from_utf8_lossy(&body)).into_response()
    };
    let cluster = in_front_of(listen(Router::new().fallback(any(echo))).await).await;
    let client = client(&cluster).await;
    let asking = (0..400).map(|n| {
        let mut client = client.clone();
        let scope = SCOPES[n % 2];
        async move {
            let body = format!("body {n}").repeat(1 + n * 10);
            let asked = to(&format!("/{n}"), scope).method("POST");
            let answer = send(&mut client, asked, body.clone()).await.unwrap();
            assert_eq!(answer.headers()["x-cheops-site"], scope[3..], "{n}");
            let heard = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(heard == format!("/{n} {body}"), "{n}: {heard:?}");
        }
    });
    join_all(asking).await;
}

#[derive(Default)]
struct Hung {
    asked: AtomicUsize,
    left: Notify,
}

/// Never answers; notes when whoever asked is gone.
async fn hang(State(hung): State<Arc<Hung>>) {
    struct Gone(Arc<Hung>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.left.notify_one();
        }
    }
    let _gone = Gone(hung.clone());
    hung.asked.fetch_add(1, Ordering::SeqCst);
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_its_client_takes_back_ends_at_the_service_and_no_other_does() {
    let hung = Arc::new(Hung::default());
    let service = Router::new()
        .route("/hang", any(hang))
        .fallback(any(|| async { "answered" }))
        .with_state(hung.clone());
    let cluster = in_front_of(listen(service).await).await;
    let mut client = client(&cluster).await;
    for (n, scope) in SCOPES.into_iter().enumerate() {
        let mut its = client.clone();
        let asking = tokio::spawn(async move { send(&mut its, to("/hang", scope), "").await });
        until("it is asked", async || hung.asked.load(Ordering::SeqCst) == n + 1).await;
        asking.abort();
        let left = tokio::time::timeout(PATIENCE, hung.left.notified()).await;
        assert!(left.is_ok(), "{scope}: the service works for nobody");
        let answer = send(&mut client, to("/", scope), "").await.unwrap();
        assert_eq!(answer.status(), 200, "{scope}: on the same connection");
    }
}
