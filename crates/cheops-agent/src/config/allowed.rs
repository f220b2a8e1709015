//! Where web hooks that come with a resource may go.

use std::fmt;

use http::Uri;

/// One place: `https://ops.example`, with a port and a path if need be, or `*` for anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed(AllowedPlace);

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedPlace {
    Anywhere,
    Under(UrlParts),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UrlParts {
    is_secure: bool,
    host: String,
    port: u16,
    /// Without the slash at its end: empty for everything there.
    path: String,
}

impl Allowed {
    /// Takes an address, or `*`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self(AllowedPlace::Anywhere));
        }
        if let Some(fault) = cheops_core::config::url_fault(text) {
            return Err(format!("cannot be used: {fault}"));
        }
        if text.contains(['?', '#']) {
            return Err("cannot be used: it holds more than a path".to_owned());
        }
        let address = UrlParts::of(text).ok_or("cannot be used: it is no address")?;
        if strays(&address.path) {
            return Err("cannot be used: its path leads out of itself".to_owned());
        }
        Ok(Self(AllowedPlace::Under(address)))
    }

    /// Whether it is there, or below it.
    pub fn covers(&self, url: &str) -> bool {
        let under = match &self.0 {
            AllowedPlace::Anywhere => return true,
            AllowedPlace::Under(under) => under,
        };
        let Some(there) = UrlParts::of(url) else { return false };
        let same_server = (there.is_secure, &there.host, there.port)
            == (under.is_secure, &under.host, under.port);
        let below = there.path.strip_prefix(&under.path);
        let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        same_server && is_below && (under.path.is_empty() || !strays(&there.path))
    }
}

impl UrlParts {
    fn of(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        // Who is asked must not depend on who reads it.
        if uri.authority()?.as_str().contains('@') {
            return None;
        }
        let is_secure = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = uri.host()?.to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let path = uri.path().trim_end_matches('/').to_owned();
        Some(Self { is_secure, host, port, path })
    }
}

/// Whether some server could take a path for one that is elsewhere.
fn strays(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%2e", ".");
    plain.contains("%2f")
        || plain.contains("%5c")
        || plain.contains('\\')
        || plain.split('/').any(|part| matches!(part, "." | ".."))
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllowedPlace::Under(UrlParts { is_secure, host, port, path }) = &self.0 else {
            return f.write_str("*");
        };
        write!(f, "http{}://{host}:{port}{path}", if *is_secure { "s" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_covered_by_its_server_and_what_its_path_is_below() {
        let cases = [
            ("*", "http://127.0.0.1:1/", true),
            ("https://ops.example", "https://ops.example", true),
            ("https://ops.example", "https://OPS.example:443/any/../where?x=1", true),
            ("https://ops.example/", "https://ops.example/cheops", true),
            ("https://ops.example", "http://ops.example/", false),
            ("https://ops.example", "https://ops.example:8443/", false),
            ("https://ops.example", "https://ops.example.evil/", false),
            ("https://ops.example", "https://evil/ops.example", false),
            ("https://ops.example", "https://ops.example@evil/", false),
            ("https://ops.example:8443/a", "https://ops.example:8443/a", true),
            ("https://ops.example:8443/a", "https://ops.example:8443/a/b?c", true),
            ("https://ops.example:8443/a", "https://ops.example:8443/ab", false),
            ("https://ops.example:8443/a", "https://ops.example:8443/", false),
            ("https://ops.example/a", "https://ops.example/a/../b", false),
            ("https://ops.example/a", "https://ops.example/a/%2E%2e/b", false),
            ("https://ops.example/a", "https://ops.example/a/..%2Fb", false),
            ("http://[::1]:80/", "http://[::1]/x", true),
            ("http://10.0.0.1", "no address", false),
        ];
        for (allowed, url, covered) in cases {
            assert_eq!(Allowed::new(allowed).unwrap().covers(url), covered, "{allowed} {url}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            "ops.example",
            "ftp://x",
            "https://",
            "https://a/../b",
            "https://a/?x",
            "https://a@b",
        ] {
            assert!(Allowed::new(text).is_err(), "{text}");
        }
    }
}
