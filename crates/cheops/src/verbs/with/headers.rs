//! Which headers pass: all but those that are between two neighbours only.

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");

const SCOPE: HeaderName = HeaderName::from_static("x-scope");
/// Another name of the same.
const CHEOPS_SCOPE: HeaderName = HeaderName::from_static("x-cheops-scope");

/// Takes out what was meant for us. Not the same list as an agent's proxy has: this one stands for
/// the program and its server, who settle `Expect` and `Trailer` between themselves, and clients
/// log in to it, which `Proxy-Authentication-Info` is about. What is left of `Connection` is the wish to change the
/// protocol, if there is one that may pass, and it is said to which.
pub(super) fn for_the_next(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let named: Vec<HeaderName> = words(headers, &CONNECTION)
        .filter_map(|word| HeaderName::from_bytes(word.as_bytes()).ok())
        .collect();
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| named.contains(&UPGRADE));
    let wants_trailers = words(headers, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    for name in named.iter().chain(&[
        CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        PROXY_INFO,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ]) {
        headers.remove(name);
    }
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    let upgrade = upgrade.filter(|upgrade| !hides_requests(upgrade))?;
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, upgrade.clone());
    Some(upgrade)
}

/// Puts the scope in, in place of any other.
pub(super) fn set_scope(headers: &mut HeaderMap, scope: &HeaderValue) {
    headers.remove(CHEOPS_SCOPE);
    headers.insert(SCOPE, scope.clone());
}

/// After a change to HTTP/2 or TLS, further requests would pass without a scope. Servers must do
/// without the change, so nothing is lost.
fn hides_requests(upgrade: &HeaderValue) -> bool {
    let Ok(upgrade) = upgrade.to_str() else { return true };
    let mut protocols = upgrade.split(',').map(|word| word.trim().to_ascii_lowercase());
    protocols.any(|protocol| protocol.starts_with("h2") || protocol.starts_with("tls"))
}

fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(&str, &str)], want: &[(&str, &str)]) {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        for_the_next(&mut headers);
        let mut left: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        left.sort_unstable();
        assert_eq!(left, want, "{given:?}");
    }

    #[test]
    fn what_is_between_neighbours_stays_between_them() {
        check(
            &[
                ("accept", "*/*"),
                ("connection", "keep-alive, X-One"),
                ("connection", "x-two"),
                ("keep-alive", "timeout=5"),
                ("proxy-authorization", "Basic x"),
                ("proxy-connection", "keep-alive"),
                ("transfer-encoding", "chunked"),
                ("trailer", "x-sum"),
                ("upgrade", "websocket"),
                ("x-one", "1"),
                ("x-two", "2"),
                ("x-three", "3"),
            ],
            &[("accept", "*/*"), ("trailer", "x-sum"), ("x-three", "3")],
        );
    }

    #[test]
    fn of_what_a_client_can_take_only_trailers_pass() {
        check(&[("te", "gzip, Trailers")], &[("te", "trailers")]);
        check(&[("te", "gzip")], &[]);
    }

    #[test]
    fn a_change_of_protocol_passes_unless_it_would_hide_further_requests() {
        let websocket = [("connection", "upgrade"), ("upgrade", "websocket")];
        check(&[("connection", "Upgrade, close"), ("upgrade", "websocket")], &websocket);
        for hiding in ["h2c", "TLS/1.2", "websocket, h2c"] {
            check(
                &[
                    ("connection", "Upgrade, HTTP2-Settings"),
                    ("upgrade", hiding),
                    ("http2-settings", "x"),
                ],
                &[],
            );
        }
    }

    #[test]
    fn one_scope_is_left_and_it_is_ours() {
        let mut headers = HeaderMap::new();
        for name in [SCOPE, SCOPE, CHEOPS_SCOPE] {
            headers.append(name, HeaderValue::from_static("{image: nice}"));
        }
        set_scope(&mut headers, &HeaderValue::from_static("{image: lyon}"));
        assert_eq!(headers.len(), 1);
        assert_eq!(headers[SCOPE], "{image: lyon}");
    }
}
