//! Connections of clients, each with its requests one after the other or, by HTTP/2, at once.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_services::coalesce::Coalesced;
use cheops_services::under_way::{BodyUnderWay, RequestsUnderWay};
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::Proxies;
use super::framing::{FramingVerdict, Guarded};
use super::headers::ClientConnection;
use super::local_service::LocalService;
use super::request_metrics::RequestMetrics;
use super::threads::Threads;

/// Who sends the head of a request more slowly than that holds a place for nothing.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection is kept, by HTTP/2, on which nothing is asked for any more.
const IDLE_LIMIT: Duration = Duration::from_secs(300);
/// So many clients of one service at once; others wait.
const MOST_CONNECTIONS: usize = 8_192;
const MOST_STREAMS: u32 = 256;
/// What may be under way when the agent stops has so long to come to its end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// A port that a service's proxy has taken.
pub struct Listening {
    service: String,
    listener: TcpListener,
}

impl Listening {
    /// Takes the port.
    pub async fn bind(service: &str, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { service: service.to_owned(), listener })
    }

    /// Where it is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the agent stops, each client on the next of these threads.
    pub async fn serve(
        self,
        proxies: Proxies,
        threads: Arc<Threads>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Some(service) = proxies.0.services.get(&self.service) else { return };
        let sites = || proxies.0.peers.sites().chain([&proxies.0.me]).cloned();
        let seats = threads.each().map(|thread| {
            let numbers = RequestMetrics::new(service.name(), sites());
            (thread, Arc::new(service.apart()), Arc::new(numbers))
        });
        let seats: Vec<_> = seats.collect();
        let mut seats = seats.iter().cycle();
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                next = next => next,
                _ = stopping.wait_for(|stop| *stop) => break,
            };
            // On the way to another thread it belongs to none.
            let accepted = accepted.and_then(|(stream, client)| Ok((stream.into_std()?, client)));
            match accepted {
                Ok((stream, client)) => {
                    let Some((thread, service, numbers)) = seats.next() else { return };
                    let (proxies, service) = (proxies.clone(), service.clone());
                    let numbers = numbers.clone();
                    let watcher = graceful.watcher();
                    thread.spawn(async move {
                        if let Ok(stream) = TcpStream::from_std(stream) {
                            serve(stream, client, proxies, service, numbers, watcher).await;
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    // For example too many open files: that passes, and must not spin.
                    tracing::warn!(%error, service = %self.service, "a client was not let in");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        let _left = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
    }
}

/// Serves one client to its end.
async fn serve(
    stream: TcpStream,
    client: SocketAddr,
    proxies: Proxies,
    service: Arc<LocalService>,
    numbers: Arc<RequestMetrics>,
    watcher: Watcher,
) {
    let _best_effort = stream.set_nodelay(true);
    let verdict = FramingVerdict::default();
    let mut stream = Guarded::new(stream, verdict.clone());
    // Who connects and says nothing, or not enough, holds a place for nothing, too.
    let first_head = tokio::time::timeout(HEAD_LIMIT, stream.version());
    let Ok(Ok(version)) = first_head.await else { return };
    // Only by HTTP/2 can a client say enough and still ask for nothing.
    let requests = (version == Version::HTTP_2).then(RequestsUnderWay::default);
    let counted = requests.clone();
    let seen = ClientConnection::new(client.ip());
    let heads = service.heads.clone();
    let answer = service_fn(move |request: Request<Incoming>| {
        let began = Instant::now();
        let (proxies, service, client) = (proxies.clone(), service.clone(), seen.clone());
        let numbers = numbers.clone();
        let refused = verdict.on(request.method());
        let under_way = counted.as_ref().map(RequestsUnderWay::begin);
        async move {
            let response = match refused {
                None => proxies.answer(&service, request, &client).await,
                Some(why) => proxies.cannot_be_read(why),
            };
            numbers.answered(&response, began.elapsed());
            let until_read = |body| match under_way {
                Some(under_way) => under_way.until_read(body),
                None => BodyUnderWay::from(body),
            };
            Ok::<_, Infallible>(response.map(until_read))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(heads).header_read_timeout(HEAD_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(HEAD_LIMIT);
    let io = Coalesced(TokioIo::new(stream));
    let serving = builder.serve_connection_with_upgrades(io, answer).into_owned();
    let serving = watcher.watch(serving);
    let served = match requests {
        None => serving.await,
        Some(requests) => tokio::select! {
            served = serving => served,
            () = requests.idle(HEAD_LIMIT, IDLE_LIMIT) => Ok(()),
        },
    };
    if let Err(error) = served {
        tracing::debug!(%client, %error, "a client's connection ended early");
    }
}
