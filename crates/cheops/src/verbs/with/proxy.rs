//! The proxy: an address on loopback, and who is let in there.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use cheops_api::Problem;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, PROXY_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

use super::forward::{Forward, problem_of_ours};
use super::key::RunPassword;
use super::tunnel;

/// Connections at the same time; more wait.
const MOST_CONNECTIONS: usize = 512;
/// How long to wait when the system has no room for another connection.
const OUT_OF_ROOM: Duration = Duration::from_millis(50);

/// A proxy, not yet at work. Connections are accepted by the system from the start.
pub(super) struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<ProxyContext>,
}

struct ProxyContext {
    key: RunPassword,
    forward: Forward,
    unreadable: mpsc::Sender<String>,
}

impl Proxy {
    /// Opens one that puts this scope into requests. Also gives what cannot be read on the way, and
    /// so has no scope: the first place it goes to, and then some of the others.
    pub(super) async fn open(scope: HeaderValue) -> io::Result<(Self, mpsc::Receiver<String>)> {
        let key =
            RunPassword::random().map_err(|_| io::Error::other("there are no random numbers"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (unreadable, tells) = mpsc::channel(1);
        let shared = Arc::new(ProxyContext { key, forward: Forward::with(scope), unreadable });
        Ok((Self { listener, address, shared }, tells))
    }

    /// Where clients find it, with what lets them in.
    pub(super) fn url(&self) -> String {
        self.shared.key.url(self.address)
    }

    /// Works until it is dropped.
    pub(super) async fn serve(self) {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        while let Ok(place) = room.clone().acquire_owned().await {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(OUT_OF_ROOM).await;
                continue;
            };
            let shared = self.shared.clone();
            tokio::spawn(async move {
                serve(stream, shared).await;
                drop(place);
            });
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<ProxyContext>) {
    let _slower = stream.set_nodelay(true);
    let answer = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    let connection = connections().serve_connection(TokioIo::new(stream), answer).with_upgrades();
    // A connection that breaks is the program's affair: it sees it as well.
    let _ended = connection.await;
}

/// How connections of the program are read, those within tunnels included.
pub(super) fn connections() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).preserve_header_case(true);
    builder
}

impl ProxyContext {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.key.fits(request.headers()) {
            return stranger();
        }
        if request.method() == Method::CONNECT {
            return tunnel::open(request, self.forward.clone(), self.unreadable.clone()).await;
        }
        self.forward.send(request).await
    }
}

fn stranger() -> Response<Body> {
    let problem = Problem::new(
        407,
        "not your proxy",
        "this proxy serves one program only, which knows the password",
    )
    .hint("the program must take the proxy's address from `http_proxy` as it stands there");
    let mut answer = problem_of_ours("wrong-credentials", &problem);
    let how = HeaderValue::from_static("Basic realm=\"cheops with\"");
    answer.headers_mut().insert(PROXY_AUTHENTICATE, how);
    answer
}
