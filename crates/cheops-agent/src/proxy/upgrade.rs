//! Connections that go over to another protocol (WebSocket): what is spoken then is nobody's
//! business on the way, be it within a site or between two.

use std::io;

use axum::body::Body;
use bytes::Bytes;
use cheops_core::model::SiteId;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Either};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::body::{Returned, Sent};
use super::headers;
use super::here::Service;
use super::refusal::Refused;
use super::run::not_passed_on;
use super::{Asked, Failed, Proxies};
use crate::peers::ToService;

const CHUNK: usize = 16 * 1024;
/// How much may be under way in one direction.
const CHUNKS: usize = 16;

/// What both speak after an upgrade is theirs alone.
pub(super) async fn join(client: OnUpgrade, service: OnUpgrade) {
    let (Ok(client), Ok(service)) = tokio::join!(client, service) else { return };
    let (mut client, mut service) = (TokioIo::new(client), TokioIo::new(service));
    // Either may leave at any time.
    let _left = tokio::io::copy_bidirectional(&mut client, &mut service).await;
}

impl Proxies {
    /// Goes over to another protocol with a service of another site.
    pub(super) async fn upgrade_at(
        &self,
        service: &Service,
        site: &SiteId,
        asked: Asked,
    ) -> Result<Response<Returned>, Refused> {
        let Asked { mut head, upgrade: Some((protocol, client)), .. } = asked else {
            return Err(Refused::bad_target("it asks for no other protocol"));
        };
        service.pseudonym.sign(&mut head.headers);
        let (says, said) = mpsc::channel(CHUNKS);
        let request = Request::from_parts(head, spoken(said));
        let to = ToService { name: service.name(), upgrade: Some(&protocol), among: None };
        let asking = self.0.peers.ask_service(site, to, request);
        let response = match tokio::time::timeout(self.0.answer_limit, asking).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(not_passed_on(service, site, &error).refused),
            Err(_late) => return Err(self.too_late(service, site).refused),
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response.map(Either::Right));
        }
        let (mut head, heard) = response.into_parts();
        headers::upgrade_to(&mut head.headers, protocol);
        tokio::spawn(async move {
            if let Ok(client) = client.await {
                pump(client, says, heard).await;
            }
        });
        Ok(Response::from_parts(head, Either::Right(Body::empty())))
    }
}

impl Service {
    /// Goes over to another protocol on behalf of another site. What it says is the body of the
    /// answer, what it is told that of the request.
    pub(super) async fn go_over(
        &self,
        mut head: Parts,
        protocol: HeaderValue,
        heard: Body,
    ) -> Result<Response<Body>, Failed> {
        self.address(&mut head.uri)?;
        head.version = Version::HTTP_11;
        self.pseudonym.sign(&mut head.headers);
        headers::upgrade_to(&mut head.headers, protocol);
        let request = Request::from_parts(head, Sent::whole(Bytes::new()));
        let sent = self.pool.ask(request).await;
        let mut response = sent.map_err(|error| self.failed(&error))?;
        let service = hyper::upgrade::on(&mut response);
        headers::strip(response.headers_mut());
        self.mark(response.headers_mut());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response.map(Body::new));
        }
        let (says, said) = mpsc::channel(CHUNKS);
        tokio::spawn(async move {
            if let Ok(service) = service.await {
                pump(service, says, heard).await;
            }
        });
        Ok(response.map(|_none| spoken(said)))
    }
}

/// What one side says, as a body.
fn spoken(said: mpsc::Receiver<Bytes>) -> Body {
    let next = |mut said: mpsc::Receiver<Bytes>| async move {
        said.recv().await.map(|bytes| (Ok::<_, io::Error>(bytes), said))
    };
    Body::from_stream(stream::unfold(said, next))
}

/// Carries over what is said and heard, until either side leaves.
async fn pump(upgraded: Upgraded, says: mpsc::Sender<Bytes>, heard: Body) {
    let (reading, writing) = tokio::io::split(TokioIo::new(upgraded));
    tokio::select! {
        () = listen(reading, says) => {}
        () = tell(writing, heard) => {}
    }
}

async fn listen(mut from: ReadHalf<TokioIo<Upgraded>>, says: mpsc::Sender<Bytes>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        if says.send(Bytes::copy_from_slice(&chunk[..read])).await.is_err() {
            return;
        }
    }
}

async fn tell(mut to: WriteHalf<TokioIo<Upgraded>>, mut heard: Body) {
    while let Some(Ok(frame)) = heard.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        if to.write_all(&data).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _gone = to.shutdown().await;
}
