//! Where people and programs come in: the API's address, by TLS or not, and its socket.
//!
//! | file | what it does |
//! | --- | --- |
//! | `token` | the file with what is asked for at the address |
//! | `socket` | the socket, and who may open it |
//! | `tls` | the certificate |
//! | `places` | how many connections each may have |

mod places;
mod socket;
mod tls;
mod token;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use cheops_services::under_way::RequestsUnderWay;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use self::places::{ConnectionOrigin, ConnectionSlot, ConnectionSlots};
pub(crate) use self::socket::Socket;
pub use self::socket::SocketError;
pub use self::tls::TlsError;
pub(crate) use self::tls::acceptor;
pub use self::token::{TokenError, api_token};
use crate::http::Came;

/// Who says less than the head of a request in so long holds a place for nothing. Also how long a
/// connection is kept on which nothing was asked for.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long one is kept, by HTTP/2, on which nothing is asked for any more.
const IDLE_LIMIT: Duration = Duration::from_secs(300);
/// How many requests one connection may have under way, by HTTP/2.
const MOST_STREAMS: u32 = 256;
/// After a connection that could not be accepted; for example too many files are open.
const BREATH: Duration = Duration::from_millis(50);

/// What is listened on for people and programs.
pub(crate) struct ApiServer {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    socket: Option<Socket>,
    /// How many connections each may have.
    most: usize,
}

/// One that came in.
enum Incomer {
    Network(TcpStream, SocketAddr),
    Socket(UnixStream, u32),
}

impl ApiServer {
    pub(crate) fn new(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        socket: Option<Socket>,
        most: usize,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address, tls, socket, most })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its socket is, if it has one.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        self.socket.as_ref().map(|socket| socket.path.clone())
    }

    /// Serves until the agent stops, or is dropped.
    pub(crate) async fn serve(self, router: Router, mut stopping: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        let places = ConnectionSlots::new(self.most);
        // Ends with this: who still follows the changes goes on at another time.
        let mut connections = JoinSet::new();
        loop {
            let incomer = tokio::select! {
                incomer = self.incomer() => incomer,
                Some(_ended) = connections.join_next() => continue,
                _ = stopping.wait_for(|stop| *stop) => break,
            };
            let incomer = match incomer {
                Ok(incomer) => incomer,
                Err(error) => {
                    tracing::warn!(%error, "somebody was not let in to the API");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            let origin = incomer.origin();
            let Some(place) = places.take(origin) else {
                metrics::counter!("cheops_api_connections_refused_total").increment(1);
                tracing::debug!(?origin, "has as many connections to the API as it may");
                continue;
            };
            let (router, stopping) = (router.clone(), stopping.clone());
            let serving = Serving { router, stopping, until_the_end: (graceful.watcher(), place) };
            connections.spawn(serving.serve(incomer, self.tls.clone()));
        }
        // Nobody new is let in, and nobody looks for the socket any more.
        drop(self);
        let ended = async { while connections.join_next().await.is_some() {} };
        tokio::join!(graceful.shutdown(), ended);
    }

    async fn incomer(&self) -> io::Result<Incomer> {
        let by_socket = async {
            match &self.socket {
                Some(socket) => {
                    let (stream, _) = socket.listener.accept().await?;
                    let uid = stream.peer_cred()?.uid();
                    Ok(Incomer::Socket(stream, uid))
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.listener.accept() => {
                accepted.map(|(stream, address)| Incomer::Network(stream, address))
            }
            accepted = by_socket => accepted,
        }
    }
}

impl Incomer {
    fn origin(&self) -> ConnectionOrigin {
        match self {
            Self::Network(_, address) => ConnectionOrigin::Address(address.ip().to_canonical()),
            Self::Socket(_, uid) => ConnectionOrigin::User(*uid),
        }
    }
}

/// What one connection is served with.
struct Serving {
    router: Router,
    stopping: watch::Receiver<bool>,
    until_the_end: (Watcher, ConnectionSlot),
}

impl Serving {
    async fn serve(self, incomer: Incomer, tls: Option<TlsAcceptor>) {
        match (incomer, tls) {
            (Incomer::Socket(stream, uid), _) => {
                self.requests(stream, Came::BySocket { uid }).await;
            }
            (Incomer::Network(stream, _), None) => {
                // Replies are small and must not wait for each other.
                let _best_effort = stream.set_nodelay(true);
                self.requests(stream, Came::ByNetwork).await;
            }
            (Incomer::Network(stream, address), Some(tls)) => {
                let _best_effort = stream.set_nodelay(true);
                match tokio::time::timeout(HEAD_LIMIT, tls.accept(stream)).await {
                    Ok(Ok(stream)) => self.requests(stream, Came::ByNetwork).await,
                    Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS with a client"),
                    Err(_late) => tracing::debug!(%address, "a client takes too long over TLS"),
                }
            }
        }
    }

    /// Serves the requests of one connection to its end.
    async fn requests(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        came: Came,
    ) {
        let Self { router, mut stopping, until_the_end: _held } = self;
        let requests = RequestsUnderWay::default();
        let counted = requests.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let under_way = counted.begin();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(came);
            let answered = router.clone().oneshot(request);
            async move { answered.await.map(|it| it.map(|body| under_way.until_read(body))) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .keep_alive_interval(HEAD_LIMIT);
        let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), answer));
        // Which version it speaks, and whether it speaks at all, nobody else waits for.
        let mut idle = pin!(requests.idle(HEAD_LIMIT, IDLE_LIMIT));
        let stops = async { stopping.wait_for(|stop| *stop).await.is_ok() };
        let over = tokio::select! {
            served = serving.as_mut() => Some(served),
            () = idle.as_mut() => None,
            _stops = stops => {
                serving.as_mut().graceful_shutdown();
                Some(serving.await)
            }
        };
        match over {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(%error, "a connection to the API ended early"),
            None => tracing::debug!("a connection to the API on which nothing was asked"),
        }
    }
}
