//! Answers that no service gave: this proxy says so, why, and what can be done.

use axum::body::Body;
use bytes::Bytes;
use cheops_api::{PROBLEM_JSON, Problem};
use cheops_core::model::{ResourceId, SiteId};
use cheops_scope::{Consistency, Look, Problems};
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

use super::headers::ERROR;

/// Why a request has no answer of a service. The code is for programs, and stays as it is.
#[derive(Debug)]
pub(super) struct ProxyRefusal {
    code: &'static str,
    problem: Box<Problem>,
}

/// The code of an answer which says that no service has seen the request.
pub(super) const UNREACHABLE: &str = "unreachable";
/// The code of an answer of a site whose service is for its own users.
pub(super) const NOT_OFFERED: &str = "not-offered";
/// The code of a request that may or may not have been carried out.
pub(super) const BROKEN_OFF: &str = "broken-off";

/// The code of a request that was not answered in time.
pub(super) const TIME_LIMIT: &str = "time-limit";
/// The code of a request that is kept, and carried out later.
pub(super) const STILL_UNDER_WAY: &str = "still-under-way";

/// The code of an answer to what is no request to a service.
const BAD_REQUEST: &str = "bad-request";

/// The code of an answer in the place of a head that is too long to pass between sites.
const HEAD_TOO_LONG: &str = "head-too-long";

impl ProxyRefusal {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        title: &str,
        detail: impl Into<String>,
    ) -> Self {
        Self { code, problem: Box::new(Problem::new(status.as_u16(), title, detail)) }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
        self
    }

    /// More about it, for programs.
    pub(super) fn with(mut self, name: &str, value: serde_json::Value) -> Self {
        self.problem.extensions.insert(name.to_owned(), value);
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::BAD_GATEWAY)
    }

    pub(super) fn detail(&self) -> &str {
        &self.problem.detail
    }

    pub(super) fn bad_scope(problems: &Problems) -> Self {
        let detail = problems.render(Look::Plain);
        let refused = Self::new(
            StatusCode::BAD_REQUEST,
            "bad-scope",
            "the scope cannot be followed",
            detail.trim_end(),
        )
        .hint("nothing was run; `cheops scope 'EXPR'` explains a scope");
        match serde_json::to_value(problems) {
            Ok(listed) => refused.with("problems", listed),
            Err(_) => refused,
        }
    }

    pub(super) fn two_scopes(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-scope", "the scope cannot be followed", detail)
            .hint("nothing was run; send one `X-Scope` header")
    }

    pub(super) fn several_scopes() -> Self {
        let detail = "its request id was used under different scopes at the same time, so it \
                      cannot be told under which of them this request is to run";
        Self::new(StatusCode::CONFLICT, "ambiguous-scope", "the scope is not clear", detail)
            .hint("give each request an id of its own, or none, or pass `X-Scope` on")
    }

    pub(super) fn forgotten_scope() -> Self {
        let detail = "its request id was given by this agent, under a scope that is not remembered \
                      any more, so it cannot be told where this request is to run";
        Self::new(StatusCode::CONFLICT, "forgotten-scope", "the scope is forgotten", detail).hint(
            "nothing was run; send the request with `X-Scope`, or without the id; `remember` in \
             `[proxy]` of the agent's config is how long ids are known at least while it runs",
        )
    }

    pub(super) fn wrong_host(service: &str, host: &str) -> Self {
        let detail = format!("the proxy of `{service}` does not serve the host `{host}`");
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong-host", "nothing was run", detail)
            .hint("`hosts` of the service in the agent's config lists those that it serves")
    }

    pub(super) fn wrong_origin(service: &str, origin: &str) -> Self {
        let detail = format!("the proxy of `{service}` does not serve pages of `{origin}`");
        Self::new(StatusCode::FORBIDDEN, "wrong-origin", "nothing was run", detail)
            .hint("`origins` of the service in the agent's config lists those that it serves")
    }

    pub(super) fn not_offered(service: &str, site: &SiteId) -> Self {
        let detail = format!("site `{site}` does not offer service `{service}` to other sites");
        Self::new(StatusCode::FORBIDDEN, NOT_OFFERED, "nothing was run", detail).hint(
            "`offer = true` of the service in the config of that site's agent does; one with \
             `listen` is offered by itself",
        )
    }

    pub(super) fn no_room(why: &str) -> Self {
        let detail = format!("the request's body cannot be kept: {why}");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "not-durable", "nothing was run", detail)
            .hint("make room on the disk of the agent's data directory")
    }

    pub(super) fn too_slow(why: &str) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "nothing was run", why)
    }

    pub(super) fn only_sites() -> Self {
        let detail = "`%` of requests to services takes sites, and `&` takes sites or the first \
                      of some that works; they cannot be mixed";
        Self::new(StatusCode::NOT_IMPLEMENTED, "not-supported", "nothing was run", detail)
            .hint("name the sites, as in `paris % lyon` or `paris & lyon`")
    }

    pub(super) fn only_eventual(asked: Consistency) -> Self {
        let detail = format!(
            "the scope asks for `consistency={asked}`, and requests to services only have \
             `eventual`"
        );
        Self::new(StatusCode::NOT_IMPLEMENTED, "not-supported", "nothing was run", detail)
            .hint("leave it out, or write `consistency=eventual`")
    }

    pub(super) fn unknown_replica(service: &str, path: &str) -> Self {
        let detail = format!("nothing that is kept at several sites is at `{path}` of `{service}`");
        Self::new(StatusCode::NOT_FOUND, "unknown-replica", "nothing was run", detail)
            .hint("name one site to change what it alone has; `&` makes something with POST or PUT")
    }

    pub(super) fn not_made_yet(service: &str, meta_id: &str, resource: &ResourceId) -> Self {
        let detail = format!(
            "`{meta_id}` of service `{service}` is to be made here and at other sites, and none \
             that can be reached has made it"
        );
        Self::new(StatusCode::NOT_FOUND, "not-made-yet", "nothing is there yet", detail)
            .hint(format!("`cheops resource {resource}` shows how far it is"))
    }

    pub(super) fn not_heard_of_yet(service: &str, id: &ResourceId, site: &SiteId) -> Self {
        let detail = format!(
            "the request to service `{service}` names `{id}`, which site `{site}` knows; it is to \
             be here as well, and the news of it has not come"
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-heard-of-yet", "nothing was run", detail)
            .hint(format!("try again; `cheops resource {id}` shows how far it is"))
    }

    pub(super) fn not_durable(why: &str) -> Self {
        let detail = format!("the request cannot be kept: {why}");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "not-durable", "nothing was run", detail)
    }

    pub(super) fn not_accepted(why: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "not-accepted", "nothing was run", why)
    }

    pub(super) fn still_under_way(service: &str, resource: &ResourceId) -> Self {
        let detail = format!(
            "the request is kept and will be carried out at every site; service `{service}` of \
             this one has not answered yet"
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, STILL_UNDER_WAY, "no answer in time", detail)
            .hint(format!("`cheops resource {resource}` shows how far it is"))
    }

    /// It was on its way into the log when that could not be written.
    pub(super) fn undecided(resource: &ResourceId, why: &str) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, STILL_UNDER_WAY, "not carried out yet", why).hint(
            format!(
                "make room on the agent's disk; `cheops resource {resource}` shows how far it is"
            ),
        )
    }

    pub(super) fn superseded(resource: &ResourceId, by: &str) -> Self {
        let detail = format!("operation `{by}`, made at the same time, took its place");
        Self::new(StatusCode::CONFLICT, "superseded", "another change won", detail)
            .hint(format!("`cheops explain {resource}` says why"))
    }

    pub(super) fn failed_here(resource: &ResourceId, why: &str) -> Self {
        let detail = format!("it could not be carried out at this site: {why}");
        Self::new(StatusCode::BAD_GATEWAY, "failed-here", "it failed at this site", detail).hint(
            format!("the other sites go on; `cheops resource {resource}` shows what they did"),
        )
    }

    pub(super) fn nobody_near(service: &str) -> Self {
        let detail = format!("the scope names no site that could be asked for `{service}`");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, UNREACHABLE, "no site is near enough", detail)
            .hint("`cheops sites` shows the distances that `around` goes by")
    }

    pub(super) fn unreachable_site(site: &SiteId, why: &str) -> Self {
        let detail = format!("site `{site}` cannot be reached: {why}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, UNREACHABLE, "a site cannot be reached", detail)
            .hint("`cheops sites` shows which sites are connected; `a ; b` in a scope falls back to b")
    }

    pub(super) fn too_many_under_way(why: &str) -> Self {
        let (status, code) = (StatusCode::SERVICE_UNAVAILABLE, "too-many-under-way");
        Self::new(status, code, "nothing was run", why)
            .hint("wait until some are over; `a ; b` in a scope falls back to b")
    }

    pub(super) fn unreachable_service(service: &str, site: &SiteId, why: &str) -> Self {
        let detail = format!("service `{service}` of site `{site}` cannot be reached: {why}");
        Self::new(StatusCode::BAD_GATEWAY, UNREACHABLE, "a service cannot be reached", detail)
            .hint("is it running? `upstream` in the agent's config names its address")
    }

    pub(super) fn broken_off(service: &str, site: &SiteId, why: &str) -> Self {
        let detail = format!(
            "service `{service}` of site `{site}` broke off before it answered: {why}; the \
             request may or may not have been carried out"
        );
        Self::new(StatusCode::BAD_GATEWAY, BROKEN_OFF, "no answer", detail)
    }

    pub(super) fn too_late(service: &str, site: &SiteId, seconds: u64) -> Self {
        let detail = format!(
            "service `{service}` of site `{site}` did not begin to answer within {seconds} s; the \
             request may or may not have been carried out"
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, TIME_LIMIT, "no answer in time", detail)
            .hint("`answer_limit` in `[proxy]` of the agent's config is the limit")
    }

    pub(super) fn head_too_long(why: &str) -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::new(status, HEAD_TOO_LONG, "nothing was run", why)
            .hint("send fewer or shorter headers, or name this site in the scope")
    }

    pub(super) fn answer_too_long(service: &str, length: usize, most: usize) -> Self {
        let detail = format!(
            "the request was carried out, and the headers of the answer of service `{service}` \
             take {length} bytes, where {most} can go to another site"
        );
        Self::new(StatusCode::BAD_GATEWAY, HEAD_TOO_LONG, "the answer cannot be returned", detail)
            .hint("ask at the site itself")
    }

    pub(super) fn no_such_service(service: &str, site: &SiteId) -> Self {
        let detail = format!("site `{site}` has no service `{service}`");
        Self::new(StatusCode::BAD_GATEWAY, UNREACHABLE, "no such service", detail)
            .hint("`[[services]]` in the config of that site's agent lists them")
    }

    pub(super) fn broken_request(why: &str) -> Self {
        let detail = format!("the request's body broke off: {why}");
        Self::new(StatusCode::BAD_REQUEST, "broken-request", "half a request", detail)
    }

    pub(super) fn bad_target(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, BAD_REQUEST, "not a request to a service", detail)
    }

    pub(super) fn in_a_circle(service: &str) -> Self {
        let detail = format!("the request came back to the proxy of `{service}` it had left from");
        Self::new(StatusCode::LOOP_DETECTED, "loop", "the request goes round in circles", detail)
            .hint("does `upstream` name the service itself, and not a proxy?")
    }

    pub(super) fn no_upgrade(protocol: &str) -> Self {
        let detail = format!("an upgrade to `{protocol}` cannot run at several sites at once");
        Self::new(StatusCode::NOT_IMPLEMENTED, "not-supported", "nothing was run", detail)
            .hint("name one site for it, as in `image: paris`")
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let text = serde_json::to_string(&self.problem).unwrap_or_default() + "\n";
        let mut response = Response::new(Body::new(Full::new(Bytes::from(text))));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(ERROR, HeaderValue::from_static(self.code));
        if self.code == BAD_REQUEST {
            // Whoever sends such a request may mean something else by what follows it.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
