//! The answer where the service of this site did what was asked without saying so, and said when it
//! was asked again that it is so already. Its words are then about the second time, and the user
//! asked once.

use axum::body::Body;
use cheops_core::model::{Act, Outcome, Reply, Status};
use cheops_services::Returned;
use cheops_services::body::OutgoingBody;
use http::header::{LOCATION, RANGE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Either;

use super::super::local_service::LocalService;
use super::super::{ProxiedRequest, Proxies};
use super::change::ReplicaChange;
use super::reply::RESOURCE;
use crate::id_directory::encoded;

/// Whether what was asked for is so, whatever the service said.
pub(super) fn is_so(reply: &Reply) -> bool {
    reply.status == Status::Ok
        && matches!(reply.outcome, Some(Outcome::Answered { status: 400.., done: true, .. }))
}

impl Proxies {
    /// That it was done. What a service would have said of what it made, it says of what is there.
    pub(super) async fn already(
        &self,
        service: &LocalService,
        mut head: Parts,
        change: &ReplicaChange,
    ) -> Response<Returned> {
        let replica = &change.replica;
        let is_made = replica.act == Act::CreatesAs && head.method == Method::POST;
        let path = format!("{}/{}", replica.collection, encoded(replica.meta_id.as_str()));
        let mut response = None;
        if let Some(uri) = is_made.then(|| Uri::try_from(&path).ok()).flatten() {
            (head.method, head.uri) = (Method::GET, uri);
            only_what_reads(&mut head.headers);
            let asked = ProxiedRequest { head, upgrade: None, among: None };
            let shown = self.here(service, asked, OutgoingBody::whole(bytes::Bytes::new())).await;
            response = shown.ok().filter(|shown| shown.status() == StatusCode::OK);
        }
        let mut response = response.unwrap_or_else(|| {
            let mut bare = Response::new(Either::Right(Body::empty()));
            service.mark(bare.headers_mut());
            bare
        });
        *response.status_mut() = if is_made { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let headers = response.headers_mut();
        if let Some(path) = HeaderValue::try_from(path).ok().filter(|_| is_made) {
            headers.insert(LOCATION, path);
        }
        if let Ok(resource) = HeaderValue::try_from(change.resource.as_str()) {
            headers.insert(RESOURCE, resource);
        }
        response
    }
}

/// Leaves out what speaks of the body that was sent, and of what its sender saw before.
fn only_what_reads(headers: &mut HeaderMap) {
    let is_other = |name: &&HeaderName| {
        let text = name.as_str();
        text.starts_with("content-") || text.starts_with("if-") || *name == RANGE
    };
    let others: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    others.iter().for_each(|name| drop(headers.remove(name)));
}
