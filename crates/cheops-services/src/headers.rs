//! Headers on the way to a service and back: what belongs to one connection stays there, and
//! everyone on the way says that they were on it.

use http::header::{
    CONNECTION, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
    UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

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

/// Takes away what speaks of one connection only, and what a `Connection` header names. Trailers go
/// on, and so does that they are wanted. What the sender wants to go over to is given back: both
/// sides have to agree on that.
pub fn strip(headers: &mut HeaderMap) -> Option<HeaderValue> {
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
pub fn upgrade_to(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// How the way to a service of this site is named in `Via`. Whatever this site sends to the service
/// carries it, so that a request that comes back to the service's proxy is known again.
#[derive(Debug, Clone)]
pub struct Pseudonym {
    via: HeaderValue,
    token: String,
}

impl Pseudonym {
    /// Of that service at that site.
    pub fn new(site: &str, service: &str) -> Self {
        let token = format!("cheops-{site}-{service}");
        // Names of sites and services hold nothing that a header could not.
        let via = HeaderValue::try_from(format!("1.1 {token}"));
        Self { via: via.unwrap_or(HeaderValue::from_static("1.1 cheops")), token }
    }

    /// Whether the message was here before.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let via = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
        via.flat_map(|value| value.split(','))
            .any(|hop| hop.split_whitespace().nth(1) == Some(self.token.as_str()))
    }

    /// Says that the message was here.
    pub fn sign(&self, headers: &mut HeaderMap) {
        headers.append(VIA, self.via.clone());
    }

    /// What it says of itself in `Via`.
    pub fn text(&self) -> &str {
        self.via.to_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
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
}
