//! Headers between a client, this proxy and a service: what belongs to one connection stays there,
//! and everyone on the way says that they were on it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{
    AUTHORIZATION, CONNECTION, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::memory::Chooser;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Which site answered: on every response that came through here.
pub(super) const SITE: HeaderName = HeaderName::from_static("x-cheops-site");
/// What kept a request from being answered by a service: on every response made here.
pub(crate) const ERROR: HeaderName = HeaderName::from_static("x-cheops-error");
/// Which sites' parts are not in an answer that was joined.
pub(super) const INCOMPLETE: HeaderName = HeaderName::from_static("x-cheops-incomplete");

/// What speaks of one connection only.
static OF_A_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    UPGRADE,
    TRANSFER_ENCODING,
    TE,
    // Answered by whoever reads the body, when it does.
    EXPECT,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
];

/// Who would speak HTTP/2 as well is answered in what it speaks already.
pub(super) const NOT_GONE_OVER_TO: &str = "h2c";

/// Whether a request offers a protocol that may be gone over to.
pub(super) fn offers_upgrade(headers: &HeaderMap) -> bool {
    headers.get_all(UPGRADE).iter().any(|protocol| protocol != NOT_GONE_OVER_TO)
}

/// Takes away what speaks of one connection only, and what a `Connection` header names. Trailers go
/// on, and so does that they are wanted. What the sender wants to go over to is given back: both
/// sides have to agree on that.
pub(crate) fn strip(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let is_of_it = |name: &&HeaderName| OF_A_CONNECTION.contains(name);
    let found: Vec<HeaderName> = headers.keys().filter(is_of_it).cloned().collect();
    if found.is_empty() {
        return None;
    }
    let takes_trailers = takes_trailers(headers);
    let named = named_by_connection(headers);
    let upgrade = headers.remove(UPGRADE).filter(|_| named.contains(&UPGRADE));
    // Not what says where a message goes: nobody may hide that from the next one.
    for name in named.iter().filter(|name| **name != HOST) {
        headers.remove(name);
    }
    for name in &found {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    upgrade
}

/// Other headers that a `Connection` header speaks of.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let says_only_how_it_ends = |option: &&str| {
        option.eq_ignore_ascii_case("keep-alive") || option.eq_ignore_ascii_case("close")
    };
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let options = values.flat_map(|value| value.split(',')).map(str::trim);
    let others = options.filter(|option| !says_only_how_it_ends(option));
    others.filter_map(|name| name.parse().ok()).collect()
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    let te = headers.get_all(TE).iter().filter_map(|value| value.to_str().ok());
    te.flat_map(|value| value.split(','))
        .any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Asks for an upgrade of the next connection, too.
pub(super) fn upgrade_to(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// How this proxy is named in `Via`.
#[derive(Debug, Clone)]
pub(crate) struct Pseudonym {
    via: HeaderValue,
    token: String,
}

impl Pseudonym {
    pub(crate) fn new(site: &str, service: &str) -> Self {
        let token = format!("cheops-{site}-{service}");
        // Names of sites and services hold nothing that a header could not.
        let via = HeaderValue::try_from(format!("1.1 {token}"));
        Self { via: via.unwrap_or(HeaderValue::from_static("1.1 cheops")), token }
    }

    /// Whether the message was here before.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let via = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
        via.flat_map(|value| value.split(','))
            .any(|hop| hop.split_whitespace().nth(1) == Some(self.token.as_str()))
    }

    pub(crate) fn sign(&self, headers: &mut HeaderMap) {
        headers.append(VIA, self.via.clone());
    }

    /// What it says of itself in `Via`.
    pub(crate) fn text(&self) -> &str {
        self.via.to_str().unwrap_or_default()
    }
}

/// A client's connection. As `Forwarded` speaks of it, it is written once for all its requests.
#[derive(Debug, Clone)]
pub(super) struct Client {
    said: Arc<str>,
    pub(super) address: IpAddr,
    /// No two connections have the same number.
    connection: u64,
}

/// Where a client says who it is, if it does.
static TOKENS: [HeaderName; 2] = [AUTHORIZATION, HeaderName::from_static("x-auth-token")];

impl Client {
    pub(super) fn new(address: IpAddr) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let said = match address {
            IpAddr::V4(ip) => format!("for={ip}").into(),
            IpAddr::V6(ip) => format!("for=\"[{ip}]\"").into(),
        };
        Self { said, address, connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Whose the ids are that a request brings: the token's, or if it has none the connection's.
    pub(super) fn chooser(&self, headers: &HeaderMap) -> Chooser {
        let token = TOKENS.iter().find_map(|name| Some((name, headers.get(name)?)));
        let Some((name, token)) = token else { return Chooser::Connection(self.connection) };
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_str().as_bytes()).update(b":").update(token.as_bytes());
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        Chooser::Token(hash)
    }

    /// Says for whom a request is passed on, after whoever said so before.
    pub(super) fn say_in(&self, headers: &mut HeaderMap) {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let text = match host.filter(|host| !host.contains(['"', '\\'])) {
            Some(host) => [&self.said, ";host=\"", host, "\";proto=http"].concat(),
            None => [&self.said, ";proto=http"].concat(),
        };
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.append(FORWARDED, value);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn listed(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_belongs_to_one_connection_stays_there() {
        let mut sent = headers(&[
            ("host", "image:9292"),
            ("connection", "close, X-Own, host"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip, trailers"),
            ("expect", "100-continue"),
            ("accept", "a"),
        ]);
        assert_eq!(strip(&mut sent), None);
        assert_eq!(listed(&sent), ["accept: a", "host: image:9292", "te: trailers"]);
    }

    #[test]
    fn trailers_are_spoken_of_further_on_and_wanted_only_by_who_said_so() {
        let mut asked = headers(&[("connection", "TE"), ("te", "trailers")]);
        strip(&mut asked);
        assert_eq!(listed(&asked), ["te: trailers"]);
        let mut answer = headers(&[("trailer", "x-sum"), ("transfer-encoding", "chunked")]);
        strip(&mut answer);
        assert_eq!(listed(&answer), ["trailer: x-sum"]);
    }

    #[test]
    fn an_upgrade_is_one_only_if_the_connection_says_so() {
        let mut asked = headers(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(strip(&mut asked).unwrap(), "websocket");
        let mut not_asked = headers(&[("upgrade", "h2c")]);
        assert_eq!(strip(&mut not_asked), None);
        assert!(not_asked.is_empty());
    }

    #[test]
    fn everyone_on_the_way_says_so_and_knows_itself_again() {
        let image = Pseudonym::new("paris", "image");
        let mut sent = headers(&[("via", "1.0 fred, 1.1 p.example.com (squid)")]);
        assert!(!image.is_in(&sent));
        image.sign(&mut sent);
        assert!(image.is_in(&sent));
        assert!(!Pseudonym::new("paris", "compute").is_in(&sent));
    }

    #[test]
    fn whom_a_request_is_for_is_said_after_what_was_said_before() {
        let mut sent = headers(&[("host", "[::1]:80"), ("forwarded", "for=10.0.0.1")]);
        Client::new("::1".parse().unwrap()).say_in(&mut sent);
        assert_eq!(
            listed(&sent)[..2],
            ["forwarded: for=\"[::1]\";host=\"[::1]:80\";proto=http", "forwarded: for=10.0.0.1"]
        );
    }
}
