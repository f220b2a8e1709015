//! Values of settings: what texts mean.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use cheops_core::model::ResourceId;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::{HeaderName, Uri};
use ring::hmac;

/// A host, by name or number, and a port. Names are looked up when they are needed, since their
/// answer may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    host: String,
    port: u16,
}

impl HostPort {
    /// The name or number; that of an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl FromStr for HostPort {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err("has port 0".to_owned()),
                _ => Ok(address.into()),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or("has no port")?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or("has no valid port")?;
        let label = |label: &str| {
            let within = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            (1..=63).contains(&label.len()) && label.chars().all(within)
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        if name.len() > 253 || !name.split('.').all(label) {
            return Err("has no valid host".to_owned());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(host)) => write!(f, "[{host}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Where pages come from, as browsers say it.
pub(super) fn origin(text: &str) -> Result<String, String> {
    if text == "null" {
        return Ok(text.to_owned());
    }
    let uri: Uri = text.parse().map_err(|_| "is no origin".to_owned())?;
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.authority()) else {
        return Err("is no origin".to_owned());
    };
    // Browsers leave out what goes without saying.
    let usual = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let said = format!("{scheme}://{host}");
    match host.port_u16() {
        _ if !text.trim_end_matches('/').eq_ignore_ascii_case(&said) || said.contains('@') => {
            Err("says more than an origin does".to_owned())
        }
        Some(port) if Some(port) == usual => Ok(format!("{scheme}://{}", host.host())),
        _ => Ok(said),
    }
}

/// A key to sign with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Anyone could guess a shorter one.
    const SHORTEST: usize = 16;

    /// Accepts a text that is long enough.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without the secret itself.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < Self::SHORTEST {
            return Err(format!(
                "the secret has {} bytes; expected at least {}",
                text.len(),
                Self::SHORTEST
            ));
        }
        Ok(Self(text.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key for one resource: who is given it can make none of another resource out of it, nor
    /// the secret itself. As hexadecimal digits, which every tool takes for a key.
    pub(crate) fn of_resource(&self, resource: &ResourceId) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, format!("resource:{resource}").as_bytes());
        let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(digits.into_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

pub(super) const A_TIME: &str = "a time such as `500ms`, `60s`, `5m`, `2h` or `7d`";

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let number: u64 = number.parse().map_err(|_| "is no time".to_owned())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        "" => return Err("has no unit".to_owned()),
        _ => return Err(format!("has the unknown unit `{unit}`")),
    };
    const LONGEST_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1000;
    match number.checked_mul(unit_ms) {
        Some(0) => Err("is no time at all".to_owned()),
        Some(ms) if ms <= LONGEST_MS => Ok(Duration::from_millis(ms)),
        _ => Err("is too long".to_owned()),
    }
}

pub(super) const A_TIME_OR_NONE: &str = "a time such as `12h` or `7d`, or `0`";

/// How long something is kept, which may be no time at all.
pub(super) fn retention(text: &str) -> Result<Duration, String> {
    match split(text) {
        (number, "" | "ms" | "s" | "m" | "min" | "h" | "d") if number.parse() == Ok(0) => {
            Ok(Duration::ZERO)
        }
        _ => duration(text),
    }
}

pub(super) const A_SIZE: &str = "a size such as `64KiB` or `1MiB`";

pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = split(text);
    let number: usize = number.parse().map_err(|_| "is no size".to_owned())?;
    let unit: usize = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return Err(format!("has the unknown unit `{unit}`")),
    };
    match number.checked_mul(unit) {
        Some(0) => Err("is nothing".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err("is too large".to_owned()),
    }
}

/// A number and what comes after it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

pub(super) fn count(most: usize) -> impl Fn(&str) -> Result<usize, String> {
    move |text| match text.parse::<usize>() {
        Ok(0) => Err("is nothing".to_owned()),
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(format!("is more than {most}")),
        Err(_) => Err("is no number".to_owned()),
    }
}

pub(super) const AN_UPSTREAM: &str = "an address such as `http://127.0.0.1:9292`";

/// Where a service listens.
pub(super) fn upstream(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("is no address: {error}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("does not begin with `http://` or `https://`".to_owned());
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("names no host".to_owned());
    }
    if uri.query().is_some() {
        return Err("has a query, which is the request's to have".to_owned());
    }
    Ok(uri)
}

pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| format!("cannot be used: {error}"))
}

/// A header whose value names a request, and nothing else: where there is none, one is drawn.
pub(super) fn correlation(text: &str) -> Result<HeaderName, String> {
    let of_others = [AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING];
    let name: HeaderName = text.parse().map_err(|_| "is no name of a header".to_owned())?;
    let is_ours =
        ["x-scope", "baggage"].contains(&name.as_str()) || name.as_str().starts_with("x-cheops-");
    match is_ours || of_others.contains(&name) {
        true => Err("says something else".to_owned()),
        false => Ok(name),
    }
}

/// Whether both cannot be listened on by one machine.
pub(super) fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (everywhere || a.ip() == b.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_unit() {
        let ms = |text| duration(text).map(|time| time.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("60s"), Ok(60_000));
        assert_eq!(ms("5 m"), Ok(300_000));
        assert_eq!(ms("7d"), Ok(604_800_000));
        for bad in ["", "7", "s", "-1s", "0s", "1y", "99999999999999999999s", "9999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("10"), Ok(10));
        assert_eq!(size("2 mb"), Ok(2_000_000));
        for bad in ["", "KiB", "0", "-1", "1TiB", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_request_is_named_by_a_header_that_says_nothing_else() {
        assert_eq!(correlation("X-Correlation-ID").unwrap(), "x-correlation-id");
        for bad in ["", "a b", "Host", "content-length", "X-Scope", "X-Cheops-Site", "Cookie"] {
            assert!(correlation(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_are_names_or_numbers_with_a_port() {
        for good in ["10.0.0.1:80", "[::1]:80", "paris.example:80", "a_b:1"] {
            assert_eq!(good.parse::<HostPort>().unwrap().to_string(), good);
        }
        for bad in
            ["", "host", "host:", "host:0", "1.2.3.4:0", ":80", "a b:80", "host:99999", "a..b:1"]
        {
            assert!(bad.parse::<HostPort>().is_err(), "{bad}");
        }
    }

    #[test]
    fn origins_are_written_as_browsers_do() {
        assert_eq!(origin("https://ui.example:443").as_deref(), Ok("https://ui.example"));
        assert_eq!(origin("http://ui.example:8080/").as_deref(), Ok("http://ui.example:8080"));
        assert_eq!(origin("null").as_deref(), Ok("null"));
        for bad in ["", "ui.example", "https://ui.example/page", "https://a@ui.example", "https://"]
        {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_long_and_does_not_show() {
        assert!(Secret::new("short").unwrap_err().contains("5 bytes"));
        let secret = Secret::new("0123456789abcdef\n").unwrap();
        assert_eq!(secret.bytes(), b"0123456789abcdef");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
