//! Connections that go over to another protocol (WebSocket): what is spoken then is nobody's
//! business on the way, be it within a site or between two.

use std::io;

use axum::body::Body;
use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::Returned;
use cheops_services::body::{BodyError, OutgoingBody};
use cheops_services::headers;
use futures_util::stream;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::local_service::LocalService;
use super::replicate::rewrite_ids;
use super::run::not_passed_on;
use super::{Failed, Proxies};
use crate::ports::AskedService;

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
        service: &LocalService,
        site: &SiteId,
        head: Parts,
        (protocol, client): (HeaderValue, OnUpgrade),
    ) -> Result<Response<Returned>, Failed> {
        let (says, said) = mpsc::channel(CHUNKS);
        let request = Request::from_parts(head, spoken(said));
        let to = AskedService { name: service.name(), upgrade: Some(&protocol), among: None };
        let asking = self.0.peers.ask_service(site, to, request);
        let response = match tokio::time::timeout(self.0.answer_limit, asking).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(not_passed_on(service, site, &error)),
            Err(_late) => return Err(self.too_late(service, site)),
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response.map(Either::Right));
        }
        let (mut head, heard) = response.into_parts();
        headers::upgrade_to(&mut head.headers, protocol);
        tokio::spawn(async move {
            if let Ok(client) = client.await {
                let _left = pump(client, says, heard).await;
            }
        });
        Ok(Response::from_parts(head, Either::Right(Body::empty())))
    }

    /// Goes over to another protocol on behalf of another site, which calls some resources by
    /// other ids than the service does.
    pub(super) async fn go_over(
        &self,
        service: &LocalService,
        mut head: Parts,
        protocol: HeaderValue,
        heard: Body,
    ) -> Result<Response<Returned>, Failed> {
        let replicas = &self.0.replicas;
        let method = head.method.clone();
        let path = rewrite_ids::rename_path(replicas, service, &mut head);
        let response = service.go_over(head, protocol, heard).await?.map(Either::Right);
        let is_over = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if is_over || !replicas.renames(service.name()) {
            return Ok(response);
        }
        let renamed =
            rewrite_ids::towards_user(replicas, service, (&method, &path), response).await;
        renamed.map_err(|error| self.broken_off(service, &error))
    }
}

impl LocalService {
    /// Goes over to another protocol on behalf of another site. What it says is the body of the
    /// answer, what it is told that of the request: so the request itself has none.
    async fn go_over(
        &self,
        mut head: Parts,
        protocol: HeaderValue,
        heard: Body,
    ) -> Result<Response<Body>, Failed> {
        self.lead_to(&mut head)?;
        if let Some(length) = head.headers.get_mut(CONTENT_LENGTH) {
            *length = HeaderValue::from_static("0");
        }
        headers::upgrade_to(&mut head.headers, protocol);
        let request = Request::from_parts(head, OutgoingBody::whole(Bytes::new()));
        let sent = self.endpoint.ask(request).await;
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
                let _left = pump(service, says, heard).await;
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

/// Carries over what is said and heard. Who has said all may go on to listen; it ends when both
/// have, or when either is gone.
async fn pump(upgraded: Upgraded, says: mpsc::Sender<Bytes>, heard: Body) -> Result<(), BodyError> {
    let (reading, writing) = tokio::io::split(TokioIo::new(upgraded));
    tokio::try_join!(listen(reading, says), tell(writing, heard)).map(|_both| ())
}

async fn listen(
    mut from: ReadHalf<TokioIo<Upgraded>>,
    says: mpsc::Sender<Bytes>,
) -> Result<(), BodyError> {
    let mut chunk = vec![0; CHUNK];
    while let read @ 1.. = from.read(&mut chunk).await? {
        says.send(Bytes::copy_from_slice(&chunk[..read])).await?;
    }
    Ok(())
}

async fn tell(mut to: WriteHalf<TokioIo<Upgraded>>, mut heard: Body) -> Result<(), BodyError> {
    while let Some(frame) = heard.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        to.write_all(&data).await?;
        to.flush().await?;
    }
    Ok(to.shutdown().await?)
}
