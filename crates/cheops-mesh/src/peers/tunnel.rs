//! Requests passed on to another site's agent, and taken from there: an HTTP request as head and
//! body on a stream of its own, streamed both ways.

use std::collections::BTreeSet;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use cheops_core::model::SiteId;
use futures_util::future::{BoxFuture, Either, select};
use http::header::{HOST, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body as _;
use tokio::io::{AsyncRead, ReadBuf};
use tower::ServiceExt;

use super::Peers;
use super::body_codec::{self, IncomingBody, NotSent};
use super::frame::{self, LinkError, StreamReply, StreamRequest};
use super::link::{PeerLink, Room, StreamPermit};

/// No answer has more headers.
const MOST_HEADERS: usize = 512;

/// Marks a request that another agent passed on: it is not passed on again.
#[derive(Debug, Clone)]
pub struct PassedOn {
    /// Who did.
    pub by: SiteId,
}

/// Why a request could not be passed on.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// There is no link.
    #[error("site `{0}` cannot be reached")]
    NoLink(SiteId),
    /// The request was not sent: others take all the room.
    #[error("too many requests to site `{0}` are under way")]
    NoRoom(SiteId),
    /// The request was not sent: its path and headers are too long.
    #[error(
        "its path and headers take {0} bytes on the way to another site, where {most} are taken",
        most = frame::LONGEST_HEAD
    )]
    HeadTooLong(usize),
    /// The link broke before the answer began: the other site may have taken the request in.
    #[error(
        "the link to site `{site}` broke after the request was sent; it may have been taken in"
    )]
    Broke {
        /// Which site.
        site: SiteId,
        /// How.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Who answers what other agents ask of this site's services.
pub trait SiteServices: Send + Sync {
    /// Answers a request of that site, whose agent decided that it is to run here.
    fn answer<'a>(
        &'a self,
        from: &'a SiteId,
        service: &'a str,
        request: Request<Body>,
        upgrade: Option<HeaderValue>,
        among: Option<BTreeSet<SiteId>>,
    ) -> BoxFuture<'a, Response<Body>>;

    /// What is answered in the place of an answer whose headers are longer than that.
    fn too_long_to_return(&self, service: &str, length: usize, most: usize) -> Response<Body>;
}

/// Where requests of other agents go: this agent's own API, and the services of its site.
#[derive(Clone)]
pub struct PeerRouter {
    api: Router,
    services: Arc<dyn SiteServices>,
}

impl PeerRouter {
    /// There is none before both are there, so that nobody is told of an agent that starts.
    pub fn new(api: Router, services: Arc<dyn SiteServices>) -> Self {
        Self { api, services }
    }

    async fn answer(&self, from: &SiteId, to: &To, request: Request<Body>) -> Response<Body> {
        match to {
            To::Service { service, upgrade, among, .. } => {
                let upgrade = upgrade.as_ref().and_then(|to| HeaderValue::from_bytes(to).ok());
                self.services.answer(from, service, request, upgrade, among.clone()).await
            }
            To::Api => {
                let Ok(response) = self.api.clone().oneshot(request).await;
                response
            }
        }
    }

    /// What is answered in the place of an answer whose headers are too long.
    fn instead(&self, to: &To, length: usize) -> Response<Body> {
        match to {
            To::Service { service, .. } => {
                self.services.too_long_to_return(service, length, frame::LONGEST_HEAD)
            }
            To::Api => status(502),
        }
    }
}

/// What a request to a service of another site comes with.
pub struct ToService<'a> {
    /// Which service.
    pub name: &'a str,
    /// What to go over to.
    pub upgrade: Option<&'a HeaderValue>,
    /// The sites that are to keep what it makes, if that was decided.
    pub among: Option<&'a BTreeSet<SiteId>>,
}

/// For whom a request of another agent is.
pub(super) enum To {
    /// This agent's own API.
    Api,
    /// A service of this site.
    Service {
        service: String,
        is_empty: bool,
        /// What to go over to.
        upgrade: Option<Vec<u8>>,
        /// The sites that are to keep what it makes.
        among: Option<BTreeSet<SiteId>>,
    },
}

type RequestHead = (String, String, Vec<(String, Vec<u8>)>);

/// Answers one request of another agent.
pub(super) async fn serve(
    router: &PeerRouter,
    from: &SiteId,
    to: To,
    (method, path, headers): RequestHead,
    receive: quinn::RecvStream,
    mut send: quinn::SendStream,
) -> Result<(), LinkError> {
    let mut request = Request::builder().method(method.as_str()).uri(path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut stopped = std::pin::pin!(send.stopped());
    let body = match to {
        To::Service { is_empty: true, .. } => Body::empty(),
        _ => Body::new(IncomingBody::new(receive)),
    };
    let response = match request.body(body) {
        Ok(mut request) => {
            request.extensions_mut().insert(PassedOn { by: from.clone() });
            tokio::select! {
                response = router.answer(from, &to, request) => response,
                // Whoever asked is gone: so is the reason to go on.
                _ = &mut stopped => return Err(LinkError::Broken),
            }
        }
        Err(_) => status(400),
    };
    let mut bytes = Vec::new();
    let body = match begin(response, &mut bytes) {
        Err(LinkError::TooLong(length)) => begin(router.instead(&to, length), &mut bytes)?,
        begun => begun?,
    };
    send.write_all(&bytes).await?;
    let sent = tokio::select! {
        sent = body_codec::send(body, &mut send) => sent,
        _ = &mut stopped => return Err(LinkError::Broken),
    };
    if matches!(sent, Err(NotSent::Body)) {
        let _gone = send.reset(0u32.into());
    }
    Ok(sent?)
}

/// Writes the head of an answer down; its body is what comes after it.
fn begin(response: Response<Body>, into: &mut Vec<u8>) -> Result<Body, LinkError> {
    let (head, body) = response.into_parts();
    let told =
        StreamReply::Http { status: head.status.as_u16(), headers: listed(head.headers.iter()) };
    frame::encode_head(&told, into)?;
    Ok(body)
}

fn status(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response
}

fn listed<'a>(
    headers: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
) -> Vec<(String, Vec<u8>)> {
    let hop_by_hop = ["connection", "transfer-encoding", "keep-alive", "upgrade"];
    // Trailers travel with the body.
    let travelling = headers.filter(|(name, value)| {
        !hop_by_hop.contains(&name.as_str()) && (**name != TE || *value == "trailers")
    });
    travelling.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

impl Peers {
    /// Passes a request on to that site's agent; the answer is streamed back.
    pub async fn pass_on(
        &self,
        to: &SiteId,
        request: Request<Body>,
    ) -> Result<Response<Body>, TunnelError> {
        let ask = |method, path, headers: &HeaderMap| StreamRequest::Http {
            method,
            path,
            headers: listed(headers.iter().filter(|(name, _)| *name != HOST)),
        };
        self.ask(to, |link| &link.calls, request, ask).await
    }

    /// Passes a request on to a service of that site.
    pub async fn ask_service(
        &self,
        to: &SiteId,
        service: ToService<'_>,
        request: Request<Body>,
    ) -> Result<Response<Body>, TunnelError> {
        let is_empty = request.body().is_end_stream();
        let ask = |method, path, headers: &HeaderMap| StreamRequest::Service {
            service: service.name.to_owned(),
            is_empty,
            upgrade: service.upgrade.map(|to| to.as_bytes().to_vec()),
            among: service.among.cloned(),
            method,
            path,
            headers: listed(headers.iter()),
        };
        self.ask(to, |link| &link.requests, request, ask).await
    }

    async fn ask(
        &self,
        to: &SiteId,
        room: fn(&PeerLink) -> &Room,
        request: Request<Body>,
        ask: impl FnOnce(String, String, &HeaderMap) -> StreamRequest,
    ) -> Result<Response<Body>, TunnelError> {
        // What is said into a link on which nothing is heard may be taken in by nobody.
        let heard = || self.link(to).filter(|link| !link.is_silent());
        let link = heard().ok_or_else(|| TunnelError::NoLink(to.clone()))?;
        let broke =
            |source: LinkError| TunnelError::Broke { site: to.clone(), source: source.into() };
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let ask = ask(head.method.to_string(), path, &head.headers);
        let mut bytes = Vec::new();
        frame::encode_head(&ask, &mut bytes).map_err(|error| match error {
            LinkError::TooLong(length) => TunnelError::HeadTooLong(length),
            error => broke(error),
        })?;
        let repeats = head.method.is_safe() && body.is_end_stream();
        let mut said = say(&link, room(&link), &bytes, body).await;
        if let Err(unsaid) = said {
            // After a short cut that nobody noticed, a link gives way to a newer one, and what was
            // said by it is lost.
            said = match (unsaid, heard().filter(|newer| !Arc::ptr_eq(newer, &link))) {
                (Unsaid::Nothing(body, _), Some(newer)) => {
                    say(&newer, room(&newer), &bytes, body).await
                }
                (Unsaid::Unknown(_), Some(newer)) if repeats => {
                    say(&newer, room(&newer), &bytes, Body::empty()).await
                }
                (unsaid, _) => Err(unsaid),
            };
        }
        let (told, receive) = said.map_err(|unsaid| match unsaid {
            Unsaid::Nothing(_, LinkError::NoRoom) => TunnelError::NoRoom(to.clone()),
            Unsaid::Nothing(..) => TunnelError::NoLink(to.clone()),
            Unsaid::Unknown(source) => broke(source),
        })?;
        let StreamReply::Http { status, headers } = told else {
            return Err(broke(LinkError::Stranger));
        };
        let mut response = Response::new(Body::new(IncomingBody::new(receive)));
        let status = http::StatusCode::from_u16(status);
        *response.status_mut() = status.map_err(|_| broke(LinkError::Stranger))?;
        for (name, value) in headers.into_iter().take(MOST_HEADERS) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                response.headers_mut().append(name, value);
            }
        }
        Ok(response)
    }
}

/// How much of a request the other site may have heard that gave no answer.
enum Unsaid {
    /// Too much was under way, or the link was closed. The body is still there.
    Nothing(Body, LinkError),
    Unknown(LinkError),
}

/// Says a request by this link, and hears the head of its answer. Whoever no longer waits for it
/// lets go of all there is of it, also of a body that comes no further.
async fn say(
    link: &PeerLink,
    room: &Room,
    head: &[u8],
    body: Body,
) -> Result<(StreamReply, Receiving), Unsaid> {
    let opening = async {
        let place = room.place().await?;
        Ok((link.open().await?, place))
    };
    let ((mut send, stream), place) = match opening.await {
        Ok(opened) => opened,
        Err(why) => return Err(Unsaid::Nothing(body, why)),
    };
    send.write_all(head).await.map_err(|error| Unsaid::Unknown(error.into()))?;
    let mut receive = Receiving { stream, _place: place.clone() };
    let told = hear(&mut receive.stream, send_body(body, send, place)).await;
    Ok((told.map_err(Unsaid::Unknown)?, receive))
}

/// Hears the head of an answer while the request's body is sent. A service may answer before it has
/// read all of that, and go on reading.
async fn hear(
    from: &mut quinn::RecvStream,
    sending: impl Future<Output = ()> + Send + 'static,
) -> Result<StreamReply, LinkError> {
    let mut buffer = Vec::new();
    let reading = pin!(frame::read(from, &mut buffer, frame::LONGEST_HEAD));
    match select(reading, Box::pin(sending)).await {
        Either::Left((told, rest)) => {
            let told = told?;
            tokio::spawn(rest);
            Ok(told)
        }
        Either::Right(((), reading)) => reading.await,
    }
}

/// Sends a body as long as the other side listens: a client may stop in the middle of it, and stay.
async fn send_body(body: Body, mut send: quinn::SendStream, _place: StreamPermit) {
    let stopped = send.stopped();
    tokio::select! {
        sent = body_codec::send(body, &mut send) => {
            if let Err(NotSent::Body) = sent {
                let _gone = send.reset(0u32.into());
            }
        }
        _ = stopped => {}
    }
}

/// What comes back, which holds the place of its request until it is over.
struct Receiving {
    stream: quinn::RecvStream,
    _place: StreamPermit,
}

impl AsyncRead for Receiving {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.get_mut().stream), context, into)
    }
}
