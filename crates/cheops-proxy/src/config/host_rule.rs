//! Hosts that are served.

use std::str::FromStr;

use http::uri::Authority;

/// A host that is served: by this name, and at any port if none is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// In small letters; an IPv6 address in brackets.
    host: String,
    port: Option<u16>,
}

impl HostRule {
    /// Whether a `Host` header names it.
    pub fn is_met_by(&self, header: &str) -> bool {
        let Ok(authority) = header.parse::<Authority>() else { return false };
        let is_bare = !header.contains('@');
        is_bare
            && authority.host().eq_ignore_ascii_case(&self.host)
            && self.port.is_none_or(|port| authority.port_u16() == Some(port))
    }
}

impl FromStr for HostRule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let authority: Authority = text.parse().map_err(|_| "is no host".to_owned())?;
        if text.contains('@') || authority.host().is_empty() {
            return Err("is no host".to_owned());
        }
        let port = match authority.port() {
            Some(port) => Some(port.as_u16()),
            None if text.ends_with(':') => return Err("has no port after its colon".to_owned()),
            None => None,
        };
        Ok(Self { host: authority.host().to_ascii_lowercase(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_served_at_any_port_unless_one_is_said() {
        for (rule, host, is_met) in [
            ("image.example", "Image.Example:19292", true),
            ("Image.example:19292", "image.example:19292", true),
            ("image.example:19292", "image.example", false),
            ("127.0.0.1", "127.0.0.1:80", true),
            ("[::1]", "[::1]:80", true),
            ("image.example", "image.example@evil", false),
            ("image.example", "", false),
        ] {
            let met = rule.parse::<HostRule>().unwrap().is_met_by(host);
            assert_eq!(met, is_met, "{rule} {host}");
        }
        for bad in ["", "a b", "http://x", "x/y", "a@b"] {
            assert!(bad.parse::<HostRule>().is_err(), "{bad}");
        }
    }
}
