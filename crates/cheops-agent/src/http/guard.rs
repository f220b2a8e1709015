//! Who may ask. The API runs commands, so a page in a browser on the same machine must not be able
//! to use it: neither by a form that posts here from elsewhere, nor by an address that it shows as a
//! picture, nor by a name that suddenly means this machine. Programs send neither `Origin` nor
//! `Sec-Fetch-Site` nor a strange `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue};

use super::refusal::Refused;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What is known of the address served.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    loopback: bool,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr) -> Self {
        Self { loopback: listen.ip().is_loopback() }
    }

    fn admits(&self, headers: &HeaderMap) -> Result<(), Refused> {
        // What cannot be read is nobody's.
        let readable = |value: &HeaderValue| value.to_str().unwrap_or("?").to_owned();
        let text = |name| headers.get(name).map(readable);
        let host = text(HOST).unwrap_or_default();
        let host = host.as_str();
        // On loopback only its own names can be meant; elsewhere any name may be this machine's.
        if self.loopback && !host.is_empty() && !is_local(host) {
            return Err(Refused::forbidden(format!(
                "this API listens on loopback only, and `{host}` is not a name of it"
            )));
        }
        // A picture or a script of another page says no origin, but browsers say whose it is.
        // To follow a link to the agent's own page is another matter.
        let from_elsewhere =
            matches!(text(SEC_FETCH_SITE).as_deref(), Some("cross-site" | "same-site"));
        if from_elsewhere && text(SEC_FETCH_MODE).as_deref() != Some("navigate") {
            return Err(Refused::forbidden("a page of another origin may not use this API"));
        }
        let Some(origin) = text(ORIGIN) else { return Ok(()) };
        let same = origin.split_once("://").is_some_and(|(_, rest)| rest == host);
        // A name may suddenly mean this machine; an address cannot.
        if same && is_local(host) {
            return Ok(());
        }
        Err(Refused::forbidden(format!("a page of `{origin}` may not use this API")).hint(
            "open the agent's page by its IP address, or by a proxy that says the same to the agent",
        ))
    }
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.admits(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        Guard::new("127.0.0.1:8079".parse().unwrap()).admits(&headers).is_ok()
    }

    #[test]
    fn a_page_under_a_name_may_not_ask_wherever_the_api_listens() {
        let guard = Guard::new("0.0.0.0:8079".parse().unwrap());
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "agent.example:8079".parse().unwrap());
        assert!(guard.admits(&headers).is_ok(), "a program may");
        headers.insert(ORIGIN, "http://agent.example:8079".parse().unwrap());
        assert!(guard.admits(&headers).is_err());
    }

    #[test]
    fn other_pages_may_show_a_link_to_the_page_and_no_more() {
        let guard = Guard::new("127.0.0.1:8079".parse().unwrap());
        let admits = |site: &'static str, mode: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8079"));
            headers.insert(SEC_FETCH_SITE, HeaderValue::from_static(site));
            headers.insert(SEC_FETCH_MODE, HeaderValue::from_static(mode));
            guard.admits(&headers).is_ok()
        };
        assert!(admits("none", "navigate"), "typed");
        assert!(admits("same-origin", "cors"), "the agent's own page");
        assert!(admits("cross-site", "navigate"), "a link");
        assert!(!admits("cross-site", "no-cors"), "a picture");
        assert!(!admits("same-site", "no-cors"), "a page of another port");
    }

    #[test]
    fn programs_and_the_agents_own_pages_may_ask_other_pages_may_not() {
        assert!(admits("127.0.0.1:8079", None));
        assert!(admits("localhost:8079", None));
        assert!(admits("[::1]:8079", None));
        assert!(admits("localhost:8079", Some("http://localhost:8079")));
        assert!(!admits("localhost:8079", Some("http://evil.example")));
        assert!(!admits("localhost:8079", Some("null")));
        assert!(!admits("rebound.example:8079", None));
        assert!(!admits("rebound.example:8079", Some("http://rebound.example:8079")));
    }
}
