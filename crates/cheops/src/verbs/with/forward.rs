//! One request, on to the service it is for, and the answer back. Bodies are passed piece by piece.
//!
//! Of interim answers only `100 Continue` comes back: hyper cannot send others. There is no `Via`,
//! since some servers behave differently when they see one.

use std::time::Duration;

use axum::body::Body;
use cheops_api::{PROBLEM_JSON, Problem};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, Scheme};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::copy_bidirectional;

use super::headers;
use super::upload::held_back;
use crate::agent::innermost;

/// How long a service may take to accept a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(30);
/// Servers commonly close an idle connection after two seconds or more. Using one that is just
/// being closed would fail a request, so ours are closed earlier.
const IDLE: Duration = Duration::from_secs(1);
const IDLE_CONNECTIONS: usize = 64;

/// Tells answers of ours from those of services.
const ERROR: HeaderName = HeaderName::from_static("x-cheops-error");

/// The way to services.
#[derive(Clone)]
pub(super) struct Forward {
    client: Client<HttpConnector, Body>,
    scope: HeaderValue,
}

impl Forward {
    pub(super) fn with(scope: HeaderValue) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_preserve_header_case(true)
            .build(connector);
        Self { client, scope }
    }

    /// Sends a request that says where it goes.
    pub(super) async fn send(&self, mut request: Request<Incoming>) -> Response<Body> {
        let Some(place) = place(request.uri()) else { return not_for_us(request.uri()) };
        let wants = headers::for_the_next(request.headers_mut());
        let ours = wants.map(|_| hyper::upgrade::on(&mut request));
        headers::set_scope(request.headers_mut(), &self.scope);
        *request.version_mut() = Version::HTTP_11;
        match self.client.request(held_back(request)).await {
            Ok(answer) => answered(answer, ours),
            Err(error) => failed(&place, &error),
        }
    }

    /// Sends a request that came out of a tunnel to there.
    pub(super) async fn send_to(
        &self,
        place: Authority,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(place);
        match Uri::from_parts(parts) {
            Ok(uri) => {
                *request.uri_mut() = uri;
                self.send(request).await
            }
            Err(_) => not_for_us(request.uri()),
        }
    }
}

fn place(uri: &Uri) -> Option<Authority> {
    uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTP)).cloned()
}

/// The answer, and, if both sides change the protocol, what they say from then on.
fn answered(mut answer: Response<Incoming>, ours: Option<OnUpgrade>) -> Response<Body> {
    let is_change = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    headers::for_the_next(answer.headers_mut());
    *answer.version_mut() = Version::HTTP_11;
    if let (true, Some(ours)) = (is_change, ours) {
        let theirs = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            if let (Ok(ours), Ok(theirs)) = tokio::join!(ours, theirs) {
                // However it ends, both sides see it.
                let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
                let _ended = copy_bidirectional(&mut ours, &mut theirs).await;
            }
        });
    }
    answer.map(Body::new)
}

fn failed(place: &Authority, error: &Error) -> Response<Body> {
    let because = innermost(error);
    if error.is_connect() {
        return unreachable(place, &because.to_string());
    }
    let problem = Problem::new(
        502,
        "the service broke off",
        format!("`{place}` ended the connection before it answered: {because}"),
    );
    let hint = "whether the request was carried out is not known: look before you send it again";
    problem_of_ours("broken-off", &problem.hint(hint))
}

pub(super) fn unreachable(place: &Authority, because: &str) -> Response<Body> {
    let detail = format!("`{place}` cannot be reached: {because}");
    let problem = Problem::new(502, "the service is out of reach", detail);
    problem_of_ours("unreachable", &problem.hint("does it run, and is this where it listens?"))
}

pub(super) fn not_for_us(uri: &Uri) -> Response<Body> {
    let problem = Problem::new(
        400,
        "not a request for a proxy",
        format!("`{uri}` does not say to which service the request goes"),
    );
    let hint = "`cheops with` forwards requests for http:// addresses, and tunnels by CONNECT";
    problem_of_ours("not-for-a-proxy", &problem.hint(hint))
}

/// An answer that no service gave.
pub(super) fn problem_of_ours(code: &'static str, problem: &Problem) -> Response<Body> {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_GATEWAY);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    answer.headers_mut().insert(ERROR, HeaderValue::from_static(code));
    answer
}
