//! Who may ask. The API runs commands, so a page in a browser on the same machine must not be able
//! to use it: neither by a form that posts here from elsewhere, nor by an address that it shows as a
//! picture, nor by a name that suddenly means this machine. Programs send neither `Origin` nor
//! `Sec-Fetch-Site` nor a strange `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};

use super::access::Came;
use super::refusal::HttpRefusal;
use crate::config::is_loopback;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What is known of the address served.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    loopback: bool,
    is_tls: bool,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr, is_tls: bool) -> Self {
        Self { loopback: is_loopback(listen), is_tls }
    }

    /// By HTTP/2 a request says as `:authority` whom it means, and the library keeps that with the
    /// path. It may say `Host` as well: neither may be somebody else's.
    fn admits(&self, came: Came, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        // What cannot be read is nobody's.
        let readable = |value: &HeaderValue| value.to_str().unwrap_or("?").to_owned();
        let text = |name| headers.get(name).map(readable);
        let authority = uri.authority().map(ToString::to_string);
        let hosts: Vec<String> = authority.into_iter().chain(text(HOST)).collect();
        let host = hosts.first().map_or("", String::as_str);
        // On loopback only its own names can be meant; elsewhere any name may be this machine's. Who
        // comes by the socket means whoever is there.
        let only_local = self.loopback && came == Came::ByNetwork;
        let strange = hosts.iter().find(|host| !host.is_empty() && !is_local(host));
        if let Some(host) = strange.filter(|_| only_local) {
            return Err(HttpRefusal::forbidden(format!(
                "this API listens on loopback only, and `{host}` is not a name of it"
            )));
        }
        // A picture or a script of another page says no origin, but browsers say whose it is.
        // To follow a link to the agent's own page is another matter.
        let from_elsewhere =
            matches!(text(SEC_FETCH_SITE).as_deref(), Some("cross-site" | "same-site"));
        if from_elsewhere && text(SEC_FETCH_MODE).as_deref() != Some("navigate") {
            return Err(HttpRefusal::forbidden("a page of another origin may not use this API"));
        }
        let Some(origin) = text(ORIGIN) else { return Ok(()) };
        let Some((scheme, rest)) = origin.split_once("://") else {
            return Err(HttpRefusal::forbidden(format!(
                "a page of `{origin}` may not use this API"
            )));
        };
        let same = !hosts.is_empty() && hosts.iter().all(|host| host == rest);
        // A name may suddenly mean this machine; an address cannot, nor a name that a certificate
        // proves.
        let is_proven = self.is_tls && scheme == "https" && came == Came::ByNetwork;
        if same && (is_local(host) || is_proven) {
            return Ok(());
        }
        Err(HttpRefusal::forbidden(format!("a page of `{origin}` may not use this API")).hint(
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
    let came = request.extensions().get::<Came>().copied().unwrap_or(Came::ByNetwork);
    match guard.admits(came, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:8079";
    const EVERYWHERE: &str = "0.0.0.0:8079";

    fn guard(listen: &str, is_tls: bool) -> Guard {
        Guard::new(listen.parse().unwrap(), is_tls)
    }

    fn asking(headers: &[(HeaderName, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn admits(guard: &Guard, headers: &[(HeaderName, &str)]) -> bool {
        let path = Uri::from_static("/api/v1/sites");
        guard.admits(Came::ByNetwork, &path, &asking(headers)).is_ok()
    }

    #[test]
    fn a_page_under_a_name_may_not_ask_wherever_the_api_listens() {
        let guard = guard(EVERYWHERE, false);
        let host = (HOST, "agent.example:8079");
        assert!(admits(&guard, std::slice::from_ref(&host)), "a program may");
        assert!(!admits(&guard, &[host, (ORIGIN, "http://agent.example:8079")]));
    }

    #[test]
    fn a_page_under_a_name_that_a_certificate_proves_may_ask() {
        let guard = guard(EVERYWHERE, true);
        let host = (HOST, "agent.example:8079");
        assert!(admits(&guard, &[host.clone(), (ORIGIN, "https://agent.example:8079")]));
        assert!(!admits(&guard, &[host.clone(), (ORIGIN, "http://agent.example:8079")]));
        assert!(!admits(&guard, &[host, (ORIGIN, "https://evil.example")]));
    }

    #[test]
    fn other_pages_may_show_a_link_to_the_page_and_no_more() {
        let guard = guard(LOOPBACK, false);
        let admits = |site, mode| {
            let host = (HOST, LOOPBACK);
            admits(&guard, &[host, (SEC_FETCH_SITE, site), (SEC_FETCH_MODE, mode)])
        };
        assert!(admits("none", "navigate"), "typed");
        assert!(admits("same-origin", "cors"), "the agent's own page");
        assert!(admits("cross-site", "navigate"), "a link");
        assert!(!admits("cross-site", "no-cors"), "a picture");
        assert!(!admits("same-site", "no-cors"), "a page of another port");
    }

    #[test]
    fn programs_and_the_agents_own_pages_may_ask_other_pages_may_not() {
        let guard = guard(LOOPBACK, false);
        let admits = |host, origin: Option<&str>| {
            let origin = origin.map(|origin| (ORIGIN, origin));
            let headers: Vec<_> = std::iter::once((HOST, host)).chain(origin).collect();
            admits(&guard, &headers)
        };
        assert!(admits("127.0.0.1:8079", None));
        assert!(admits("localhost:8079", None));
        assert!(admits("[::1]:8079", None));
        assert!(admits("localhost:8079", Some("http://localhost:8079")));
        assert!(!admits("localhost:8079", Some("http://evil.example")));
        assert!(!admits("localhost:8079", Some("null")));
        assert!(!admits("rebound.example:8079", None));
        assert!(!admits("rebound.example:8079", Some("http://rebound.example:8079")));
    }

    #[test]
    fn what_http2_says_of_whom_it_means_is_looked_at_as_well() {
        let guard = guard(LOOPBACK, false);
        let admits = |authority: &str, headers: &[(HeaderName, &str)]| {
            let uri = format!("http://{authority}/api/v1/sites").parse().unwrap();
            guard.admits(Came::ByNetwork, &uri, &asking(headers)).is_ok()
        };
        assert!(admits("127.0.0.1:8079", &[]));
        assert!(admits("127.0.0.1:8079", &[(ORIGIN, "http://127.0.0.1:8079")]));
        assert!(!admits("rebound.example:8079", &[]));
        assert!(!admits("rebound.example:8079", &[(HOST, "127.0.0.1:8079")]));
        assert!(!admits("127.0.0.1:8079", &[(HOST, "rebound.example:8079")]));
        assert!(!admits("127.0.0.1:8079", &[(ORIGIN, "http://evil.example")]));
    }

    #[test]
    fn who_comes_by_the_socket_may_call_it_anything_but_be_no_page() {
        let guard = guard(LOOPBACK, false);
        let admits = |headers: &[(HeaderName, &str)]| {
            let came = Came::BySocket { uid: 0 };
            guard.admits(came, &Uri::from_static("/"), &asking(headers)).is_ok()
        };
        assert!(admits(&[(HOST, "cheops")]));
        assert!(!admits(&[(HOST, "cheops"), (ORIGIN, "http://evil.example")]));
    }
}
