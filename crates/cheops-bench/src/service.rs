//! A service that does nothing: every request is answered by 204, but for those that make something: they
//! hear what it is called.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::LOCATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::failure::{BenchFailure, cannot};

/// One service for all sites.
pub(crate) struct BenchService {
    pub(crate) address: SocketAddr,
    answered: Arc<AtomicU64>,
}

impl BenchService {
    pub(crate) async fn start() -> Result<Self, BenchFailure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(cannot("listen as a service"))?;
        let address = listener.local_addr().map_err(cannot("listen as a service"))?;
        let answered = Arc::new(AtomicU64::new(0));
        tokio::spawn(serve(listener, Arc::clone(&answered)));
        Ok(Self { address, answered })
    }

    /// How many requests were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

async fn serve(listener: TcpListener, answered: Arc<AtomicU64>) {
    // An error concerns one caller only, who notices.
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _delayed = stream.set_nodelay(true);
        let answered = Arc::clone(&answered);
        let answer = service_fn(move |request: Request<Incoming>| {
            let n = answered.fetch_add(1, Ordering::Relaxed);
            async move {
                let makes = request.method() == Method::POST;
                let _unread = request.into_body().collect().await;
                Ok::<_, Infallible>(if makes { made(n) } else { no_content() })
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

fn no_content() -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn made(n: u64) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = format!("/things/thing-{n}").parse() {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
