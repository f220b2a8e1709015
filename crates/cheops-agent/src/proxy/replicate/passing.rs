//! Messages that pass between users and the service of this site, where these two call some
//! resources by different ids.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Response};
use http_body::Body as _;
use http_body_util::{BodyDataStream, BodyExt, Either};

use super::super::body::{BodyError, Returned, Sent};
use super::super::here::Service;
use crate::replicas::{Replicas, Towards, is_json};

/// The longest request that is looked into.
const LONGEST_REQUEST: u64 = 1024 * 1024;
/// The longest answer that is looked into. A longer one passes as it is, and is counted.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// Gives a request the ids of the service.
pub(in super::super) async fn towards_service(
    replicas: &Replicas,
    service: &Service,
    head: &mut Parts,
    body: Sent,
) -> Result<Sent, BodyError> {
    // What the service packs cannot be looked into.
    head.headers.remove(ACCEPT_ENCODING);
    let asked = head.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
    let renamed = replicas.rename_path(service.name(), &asked, Towards::Service);
    if let Some(path) = renamed.and_then(|path| PathAndQuery::try_from(path).ok()) {
        let mut parts = std::mem::take(&mut head.uri).into_parts();
        parts.path_and_query = Some(path);
        head.uri = http::Uri::from_parts(parts)?;
    }
    let is_short = body.size_hint().upper().is_some_and(|upper| upper <= LONGEST_REQUEST);
    if head.method.is_safe() || !is_short || body.is_end_stream() || !is_json(&head.headers) {
        return Ok(body);
    }
    let bytes = body.collect().await?.to_bytes();
    let way = Towards::Service;
    let renamed = replicas.rename_body(service.name(), &service.naming, &asked, &bytes, way);
    head.headers.remove(CONTENT_LENGTH);
    Ok(Sent::whole(renamed.map_or(bytes, Bytes::from)))
}

/// Gives an answer the ids that users know.
pub(in super::super) async fn towards_user(
    replicas: &Replicas,
    service: &Service,
    (method, path): (&Method, &str),
    response: Response<Returned>,
) -> Result<Response<Returned>, BodyError> {
    let (mut head, body) = response.into_parts();
    replicas.rename_headers(service.name(), &mut head.headers, Towards::User);
    if !is_json(&head.headers) {
        return Ok(Response::from_parts(head, body));
    }
    // Ids differ in length.
    head.headers.remove(CONTENT_LENGTH);
    if method == Method::HEAD {
        return Ok(Response::from_parts(head, body));
    }
    let (bytes, rest) = up_to(LONGEST_ANSWER, body).await?;
    if let Some(rest) = rest {
        metrics::counter!("cheops_proxy_answers_not_renamed_total").increment(1);
        let all = stream::once(async { Ok(bytes) }).chain(BodyDataStream::new(rest));
        return Ok(Response::from_parts(head, Either::Right(Body::from_stream(all))));
    }
    let way = Towards::User;
    let renamed = replicas.rename_body(service.name(), &service.naming, path, &bytes, way);
    let body = renamed.map_or_else(|| Body::from(bytes), Body::from);
    Ok(Response::from_parts(head, Either::Right(body)))
}

/// The beginning of a body, and what is left of it if there is more.
async fn up_to(most: usize, mut body: Returned) -> Result<(Bytes, Option<Returned>), BodyError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > most {
            return Ok((bytes.freeze(), Some(body)));
        }
    }
    Ok((bytes.freeze(), None))
}
