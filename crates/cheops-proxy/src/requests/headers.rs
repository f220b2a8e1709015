//! Headers between a client and this proxy: who asks, who answers, and why nobody does.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{AUTHORIZATION, FORWARDED, HOST, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::correlation::Chooser;

/// Which site answered: on every response that came through here.
pub(super) const SITE: HeaderName = HeaderName::from_static("x-cheops-site");
/// What kept a request from being answered by a service: on every response made here.
pub(super) const ERROR: HeaderName = HeaderName::from_static("x-cheops-error");
/// Which sites' parts are not in an answer that was joined.
pub(super) const INCOMPLETE: HeaderName = HeaderName::from_static("x-cheops-incomplete");

/// Who would speak HTTP/2 as well is answered in what it speaks already.
pub(super) const NOT_GONE_OVER_TO: &str = "h2c";

/// Whether a request offers a protocol that may be gone over to.
pub(super) fn offers_upgrade(headers: &HeaderMap) -> bool {
    headers.get_all(UPGRADE).iter().any(|protocol| protocol != NOT_GONE_OVER_TO)
}

/// A client's connection. As `Forwarded` speaks of it, it is written once for all its requests.
#[derive(Debug, Clone)]
pub(super) struct ClientConnection {
    said: Arc<str>,
    pub(super) address: IpAddr,
    /// No two connections have the same number.
    connection: u64,
}

/// Where a client says who it is, if it does.
static TOKENS: [HeaderName; 2] = [AUTHORIZATION, HeaderName::from_static("x-auth-token")];

impl ClientConnection {
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
            headers.append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
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
    fn whom_a_request_is_for_is_said_after_what_was_said_before() {
        let mut sent = headers(&[("host", "[::1]:80"), ("forwarded", "for=10.0.0.1")]);
        ClientConnection::new("::1".parse().unwrap()).say_in(&mut sent);
        assert_eq!(
            listed(&sent)[..2],
            ["forwarded: for=\"[::1]\";host=\"[::1]:80\";proto=http", "forwarded: for=10.0.0.1"]
        );
    }
}
