//! Messages that pass between users and the service of this site, where these two call some
//! resources by different ids.

use std::time::Duration;

use bytes::Bytes;
use cheops_services::Returned;
use cheops_services::body::{Arriving, BodyError, OutgoingBody, whole_if_in_time, whole_if_short};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Response};
use http_body::Body as _;
use http_body_util::Either;
use tokio::sync::Semaphore;

use super::super::local_service::LocalService;
use crate::id_directory::{IdDirectory, LONG, Named, Towards, is_json};

/// The longest request that is looked into.
const LONGEST_REQUEST: usize = 1024 * 1024;
/// Headers that tell one body from another.
const DIGESTS: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];
/// The longest answer that is looked into. A longer one passes as it is, and is counted.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;
/// How long an answer that does not say how long it is has to come to its end. It may be one that
/// tells what happens, for ever: then it passes as it is, and is counted.
const HELD_BACK: Duration = Duration::from_secs(5);
/// How many long ones are looked into at the same time: they take several times their length.
static LONG_AT_ONCE: Semaphore = Semaphore::const_new(4);

/// Gives a request the ids of the service.
pub(in super::super) async fn towards_service(
    replicas: &IdDirectory,
    service: &LocalService,
    head: &mut Parts,
    body: OutgoingBody,
) -> Result<OutgoingBody, BodyError> {
    // What the service packs cannot be looked into.
    head.headers.remove(ACCEPT_ENCODING);
    let asked = rename_path(replicas, service, head);
    if head.method.is_safe() || body.is_end_stream() || !is_json(&head.headers) {
        return Ok(body);
    }
    let whole = match whole_if_short(body, LONGEST_REQUEST).await? {
        Ok(whole) => whole,
        Err(long) => return Ok(OutgoingBody::once(Arriving::FromPeer(long))),
    };
    let renamed = rename_body(replicas, service, &asked, &whole.bytes, Towards::Service).await;
    head.headers.remove(CONTENT_LENGTH);
    Ok(OutgoingBody::of(match renamed {
        Some(renamed) => whole.with(renamed.into()),
        None => whole,
    }))
}

/// Gives a request the path by which the service knows what it speaks of. Returns what it was.
pub(in super::super) fn rename_path(
    replicas: &IdDirectory,
    service: &LocalService,
    head: &mut Parts,
) -> String {
    let asked = head.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
    let renamed = replicas.rename_path(service.name(), &asked, Towards::Service);
    if let Some(path) = renamed.and_then(|path| PathAndQuery::try_from(path).ok()) {
        let mut parts = head.uri.clone().into_parts();
        parts.path_and_query = Some(path);
        if let Ok(uri) = http::Uri::from_parts(parts) {
            head.uri = uri;
        }
    }
    asked
}

/// Gives an answer the ids that users know.
pub(in super::super) async fn towards_user(
    replicas: &IdDirectory,
    service: &LocalService,
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
    let time = tokio::time::sleep(HELD_BACK);
    let mut whole = match whole_if_in_time(body, LONGEST_ANSWER, time).await? {
        Ok(whole) => whole,
        Err(rest) => {
            metrics::counter!("cheops_proxy_answers_not_renamed_total").increment(1);
            return Ok(Response::from_parts(head, Either::Right(rest)));
        }
    };
    let renamed = rename_body(replicas, service, path, &whole.bytes, Towards::User).await;
    if let Some(renamed) = renamed {
        // They were of other bytes.
        DIGESTS.iter().for_each(|name| drop(head.headers.remove(*name)));
        whole = whole.with(renamed.into());
    }
    Ok(Response::from_parts(head, Either::Right(whole.into_body())))
}

/// A body with the ids that the other side knows; `None` if it is the same. A long one is looked
/// through elsewhere than on this thread, which serves others too.
pub(super) async fn rename_body(
    replicas: &IdDirectory,
    service: &LocalService,
    path: &str,
    body: &Bytes,
    way: Towards,
) -> Option<Vec<u8>> {
    let (name, naming) = (service.name(), &service.naming);
    if body.len() <= LONG {
        return replicas.rename_body(name, naming, path, body, way);
    }
    let place = LONG_AT_ONCE.acquire().await;
    let (replicas, name, naming) = (replicas.clone(), name.to_owned(), naming.clone());
    let (path, body) = (path.to_owned(), body.clone());
    let renaming = move || {
        // Taken as long as this takes, also if nobody waits for it any more.
        let _place = place;
        replicas.rename_body(&name, &naming, &path, &body, way)
    };
    tokio::task::spawn_blocking(renaming).await.ok().flatten()
}

/// The replicas that a body names. A long one is looked through elsewhere, as above.
pub(super) async fn named_in_body(
    replicas: &IdDirectory,
    service: &LocalService,
    path: &str,
    body: &Bytes,
) -> Named {
    let (name, naming) = (service.name(), &service.naming);
    if body.len() <= LONG {
        return replicas.named_in_body(name, naming, path, body);
    }
    let place = LONG_AT_ONCE.acquire().await;
    let (replicas, name, naming) = (replicas.clone(), name.to_owned(), naming.clone());
    let (path, body) = (path.to_owned(), body.clone());
    let looking = move || {
        let _place = place;
        replicas.named_in_body(&name, &naming, &path, &body)
    };
    tokio::task::spawn_blocking(looking).await.unwrap_or_default()
}
