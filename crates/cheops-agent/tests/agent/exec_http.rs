//! Requests to services, with a real server.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::exec_support::{Folder, Site, request};
use bytes::Bytes;
use cheops_agent::Services;
use cheops_agent::exec::{ContentStore, Saving};
use cheops_core::engine::{Job, Task};
use cheops_core::model::{Act, BlobId, MetaId, Outcome, Output, Payload, ResourceId, ServiceRef};
use cheops_core::plan::SnapshotId;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A service that tells what it was asked, by path.
async fn answer(asked: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = asked.into_parts();
    let path = parts.uri.path().to_owned();
    let mut response = Response::new(Full::default());
    if path.ends_with("/slow") {
        std::future::pending::<()>().await;
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = match path.rsplit('/').next().unwrap_or_default() {
        "large" => "x".repeat(300_000),
        "size" => format!("{} {}", body.len(), blake3::hash(&body).to_hex()),
        "move" => {
            response.headers_mut().insert("location", "/size".parse().unwrap());
            "302".to_owned()
        }
        code if code.parse::<u16>().is_ok() => code.to_owned(),
        _ => {
            let mut headers: Vec<_> = parts
                .headers
                .iter()
                .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
                .filter(|header| !header.starts_with("host="))
                .collect();
            headers.sort();
            format!("{} {} {}", parts.method, parts.uri, headers.join(" "))
        }
    };
    if let Ok(status) = text.parse::<u16>() {
        *response.status_mut() = status.try_into().unwrap();
    }
    *response.body_mut() = Full::from(text);
    Ok(response)
}

struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

async fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(serving);
        }
    });
    Server { address, connections }
}

fn services(upstreams: &[(&str, &str)]) -> Services {
    let service = |(name, upstream): &(&str, &str)| {
        let upstream: http::Uri = upstream.parse().unwrap();
        ((*name).to_owned(), upstream)
    };
    Services::new("here", upstreams.iter().map(service)).unwrap()
}

fn site(upstream: &str) -> Site {
    Site::with(|settings| {
        settings.services = services(&[("app", upstream), ("other", "http://127.0.0.1:9")]);
        settings.time_limit = Duration::from_secs(30);
    })
}

fn answered(status: u16, text: &str) -> Outcome {
    Outcome::answered(status, Output::whole(text))
}

#[tokio::test]
async fn statuses_are_data_and_redirects_are_not_followed() {
    let server = server().await;
    let site = site(&format!("http://{}", server.address));
    for status in [200, 201, 302, 404, 500, 503] {
        let outcome = site.exec.run(&request("GET", &format!("/{status}"), &[], None)).await;
        assert_eq!(outcome, answered(status, &status.to_string()));
    }
    let outcome = site.exec.run(&request("GET", "/move", &[], None)).await;
    assert_eq!(outcome, answered(302, "302"));
    assert_eq!(server.connections.load(Ordering::SeqCst), 1, "the connection is kept");
}

#[tokio::test]
async fn a_service_hears_the_request_as_it_was_made() {
    let server = server().await;
    let site = site(&format!("http://{}/api/", server.address));
    let headers = [("X-Own", "1"), ("Connection", "x-hop"), ("X-Hop", "2"), ("Upgrade", "h2c")];
    let outcome = site.exec.run(&request("DELETE", "/v1/echo?a=b%20c", &headers, None)).await;
    let expected = "DELETE /api/v1/echo?a=b%20c via=1.1 cheops-here-app \
                    x-cheops-operation=there-1.7 x-own=1";
    assert_eq!(outcome, answered(200, expected));
}

#[tokio::test]
async fn large_bodies_are_streamed_and_large_answers_cut() {
    let server = server().await;
    let site = site(&format!("http://{}", server.address));
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let file = site.folder.put("body", &body);
    let outcome = site.exec.run(&request("PUT", "/size", &[], Some(file))).await;
    assert_eq!(outcome, answered(200, &format!("{} {}", body.len(), blake3::hash(&body).to_hex())));
    let empty = site.folder.put("body", b"");
    let outcome = site.exec.run(&request("PUT", "/size", &[], Some(empty))).await;
    assert!(outcome.text().starts_with("0 "), "{outcome:?}");
    let outcome = site.exec.run(&request("GET", "/large", &[], None)).await;
    let output = Output { text: "x".repeat(64 * 1024), truncated: true };
    assert_eq!(outcome, Outcome::answered(200, output));
}

/// A store that counts what is asked of it.
struct CountedReads {
    folder: Folder,
    opened: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

impl ContentStore for CountedReads {
    fn copy_to(&self, blob: &BlobId, path: &Path) -> io::Result<()> {
        self.folder.copy_to(blob, path)
    }

    fn open(&self, blob: &BlobId) -> io::Result<Box<dyn io::Read + Send>> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let (file, bytes) = (self.folder.open(blob)?, Arc::clone(&self.bytes));
        Ok(Box::new(CountedReader(file, bytes)))
    }

    fn save(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>> {
        self.folder.save(resource, id)
    }

    fn saved(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn io::Read + Send>> {
        self.folder.saved(resource, id)
    }
}

struct CountedReader(Box<dyn io::Read + Send>, Arc<AtomicUsize>);

impl io::Read for CountedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.fetch_add(read, Ordering::SeqCst);
        Ok(read)
    }
}

#[tokio::test]
async fn a_body_that_is_a_file_is_opened_and_read_once_and_one_that_came_along_never() {
    let server = server().await;
    let (opened, bytes) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let site = Site::over(
        |settings| settings.services = services(&[("app", &format!("http://{}", server.address))]),
        |folder| CountedReads { folder, opened: opened.clone(), bytes: bytes.clone() },
    );
    let content = vec![7; 300_000];
    let expected = answered(200, &format!("300000 {}", blake3::hash(&content).to_hex()));
    let job = request("PUT", "/size", &[], Some(site.folder.put("body", &content)));
    assert_eq!(site.exec.run(&job).await, expected);
    let counted = || (opened.load(Ordering::SeqCst), bytes.load(Ordering::SeqCst));
    assert_eq!(counted(), (1, 300_000));

    let along = Job { inline_body: Some(content.into()), ..job };
    assert_eq!(site.exec.run(&along).await, expected);
    assert_eq!(counted(), (1, 300_000));
}

#[tokio::test]
async fn a_body_that_is_not_here_is_not_sent_as_an_empty_one() {
    let server = server().await;
    let site = site(&format!("http://{}", server.address));
    let file = site.folder.put("body", b"content");
    std::fs::remove_file(site.folder.0.join(file.blob.to_string())).unwrap();
    let mut job = request("PUT", "/size", &[], Some(file));
    let outcome = site.exec.run(&job).await;
    assert!(matches!(outcome, Outcome::NotStarted { .. }), "{outcome:?}");

    // A replica would stay behind: it waits for another site to have it.
    let Task::Run(operation) = &mut job.task else { panic!("another task") };
    let Payload::Http { service_ref, .. } = &mut Arc::make_mut(operation).payload else {
        panic!("another payload")
    };
    let (meta_id, collection) = (MetaId::new("m").unwrap(), "/things".to_owned());
    *service_ref = Some(Box::new(ServiceRef { meta_id, collection, act: Act::Changes }));
    let outcome = site.exec.run(&job).await;
    assert!(matches!(outcome, Outcome::NotYet { in_doubt: false, .. }), "{outcome:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0, "nobody was asked");
}

#[tokio::test]
async fn a_service_that_does_not_answer_runs_into_the_time_limit() {
    let server = server().await;
    let site = Site::with(|settings| {
        let upstream = format!("http://{}", server.address);
        settings.services = services(&[("app", &upstream)]);
        settings.time_limit = Duration::from_millis(300);
    });
    let outcome = site.exec.run(&request("GET", "/slow", &[], None)).await;
    assert_eq!(outcome, Outcome::TimedOut { limit_ms: 300 });
}

#[tokio::test]
async fn a_service_that_is_not_there_was_not_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let site = site(&format!("http://{address}"));
    let outcome = site.exec.run(&request("GET", "/", &[], None)).await;
    let Outcome::NotStarted { reason } = outcome else { panic!("{outcome:?}") };
    let told = format!("service `app` cannot be reached at `http://{address}/`");
    assert!(reason.starts_with(&told) && reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn an_unknown_service_or_an_odd_request_is_not_started() {
    let site = site("http://127.0.0.1:9");
    let mut job = request("GET", "/", &[], None);
    let cheops_core::engine::Task::Run(operation) = &mut job.task else { panic!("another task") };
    let operation = Arc::make_mut(operation);
    let cheops_core::model::Payload::Http { service, .. } = &mut operation.payload else {
        panic!("another payload")
    };
    *service = "image".to_owned();
    let outcome = site.exec.run(&job).await;
    assert_eq!(outcome.text(), "this site has no service `image`; it has `app`, `other`");
    for odd in [
        request("NO WAY", "/", &[], None),
        request("GET", "/a b", &[], None),
        request("GET", "/", &[("a b", "c")], None),
        request("GET", "/", &[("a", "b\nc")], None),
    ] {
        assert!(matches!(site.exec.run(&odd).await, Outcome::NotStarted { .. }));
    }
}

/// Takes one request and answers with these bytes, then closes.
async fn rude(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    address
}

#[tokio::test]
async fn a_service_that_breaks_off_may_have_done_it() {
    let site = site(&format!("http://{}", rude(b"").await));
    let outcome = site.exec.run(&request("POST", "/", &[], None)).await;
    assert!(
        matches!(&outcome, Outcome::BrokenOff { reason }
        if reason.contains("may or may not have been carried out")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_after_its_status_is_an_answer() {
    let bytes = b"HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nhalf";
    let site = site(&format!("http://{}", rude(bytes).await));
    let outcome = site.exec.run(&request("POST", "/", &[], None)).await;
    let output = Output { text: "half".to_owned(), truncated: true };
    assert_eq!(outcome, Outcome::answered(201, output));
}
