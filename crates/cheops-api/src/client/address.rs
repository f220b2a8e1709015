//! Where an agent is, as people write it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;

use super::error::BadAddress;

const A_SOCKET: &str = "unix:";

/// The address of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentAddress {
    /// `http://HOST:PORT/PREFIX` or the same with `https`, without the last `/`.
    Web(String),
    /// A socket of this machine.
    Socket(PathBuf),
}

impl AgentAddress {
    pub(super) fn parse(text: &str) -> Result<Self, BadAddress> {
        let bad = |rule: &str| BadAddress::new(text, rule);
        if let Some(path) = text.strip_prefix(A_SOCKET) {
            return match path {
                "" => Err(bad("it reads unix:/PATH/api.sock")),
                path => Ok(Self::Socket(path.into())),
            };
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            Some(_) => return Err(bad("it begins with `http://`, `https://` or `unix:`")),
            None => ("http", text),
        };
        let wrong = || bad(&format!("it reads {scheme}://HOST:PORT"));
        let whole = format!("{scheme}://{}", rest.trim_end_matches('/'));
        let uri: Uri = whole.parse().map_err(|_unsaid| wrong())?;
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        if !has_host || uri.query().is_some() || whole.contains('@') {
            return Err(wrong());
        }
        Ok(Self::Web(whole))
    }

    /// As people read it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Web(url) => url.clone(),
            Self::Socket(path) => format!("{A_SOCKET}{}", path.display()),
        }
    }

    /// What requests name: who answers on a socket has only one name.
    pub(super) fn base(&self) -> &str {
        match self {
            Self::Web(url) => url,
            Self::Socket(_) => "http://localhost",
        }
    }

    pub(super) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Web(_) => None,
            Self::Socket(path) => Some(path),
        }
    }

    pub(super) fn is_https(&self) -> bool {
        self.base().starts_with("https:")
    }

    /// Whether what is sent there may be read on the way.
    pub(super) fn is_open_to_readers(&self) -> bool {
        match self {
            Self::Socket(_) => false,
            Self::Web(url) => !self.is_https() && !is_loopback(url),
        }
    }
}

/// Whether a URL leads to this machine, and no further.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    host.is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_with_or_without_scheme_and_refused_with_a_reason() {
        for (address, want) in [
            ("http://127.0.0.1:8079", "http://127.0.0.1:8079"),
            ("http://paris:1/", "http://paris:1"),
            ("paris:8079", "http://paris:8079"),
            ("localhost", "http://localhost"),
            ("http://[::1]:8079", "http://[::1]:8079"),
            ("http://proxy/cheops/", "http://proxy/cheops"),
            ("https://paris:8079", "https://paris:8079"),
            ("unix:/run/cheops/api.sock", "unix:/run/cheops/api.sock"),
            ("unix:api.sock", "unix:api.sock"),
        ] {
            assert_eq!(AgentAddress::parse(address).unwrap().shown(), want);
        }
        for bad in
            ["", "http://", "https://", "unix:", "ftp://paris", "http://a b", "http://a/?q=1"]
        {
            assert!(AgentAddress::parse(bad).is_err(), "{bad}");
        }
        expect_test::expect![
            "`ftp://paris` is not the address of an agent: it begins with `http://`, `https://` or `unix:`"
        ]
        .assert_eq(&AgentAddress::parse("ftp://paris").unwrap_err().to_string());
    }

    #[test]
    fn only_plain_http_to_another_machine_can_be_read_on_the_way() {
        let open = |text: &str| AgentAddress::parse(text).unwrap().is_open_to_readers();
        for closed in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "unix:/x"] {
            assert!(!open(closed), "{closed}");
        }
        assert!(!open("https://paris:8079"));
        assert!(open("http://paris:8079") && open("http://10.0.0.1:8079"));
    }
}
