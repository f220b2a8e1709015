//! Who may use the proxy: whoever knows the password that is in the program's environment.

use std::net::SocketAddr;

use hyper::HeaderMap;
use hyper::header::PROXY_AUTHORIZATION;
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};

const USER: &str = "cheops";
const SECRET_BYTES: usize = 16;

/// A password of its own for every run.
pub(super) struct RunPassword {
    secret: String,
    /// What clients make of it.
    credentials: String,
}

impl RunPassword {
    pub(super) fn random() -> Result<Self, Unspecified> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes)?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let credentials = base64(format!("{USER}:{secret}").as_bytes());
        Self { secret, credentials }
    }

    /// The proxy at that address, as clients want it.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        format!("http://{USER}:{}@{address}", self.secret)
    }

    /// Whether a request comes from somebody who knows it.
    pub(super) fn fits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(PROXY_AUTHORIZATION).and_then(|value| value.to_str().ok());
        given.and_then(|given| given.split_once(' ')).is_some_and(|(scheme, credentials)| {
            scheme.eq_ignore_ascii_case("basic") && same(credentials.trim(), &self.credentials)
        })
    }
}

/// Takes as long whether the first or the last character differs.
fn same(given: &str, right: &str) -> bool {
    let differing = given.bytes().zip(right.bytes()).fold(0, |all, (one, two)| all | (one ^ two));
    given.len() == right.len() && differing == 0
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let group = (0..3)
            .fold(0, |all: usize, at| (all << 8) | three.get(at).copied().map_or(0, usize::from));
        for at in 0..4 {
            let digit = char::from(DIGITS[(group >> (18 - 6 * at)) & 63]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_the_standard_has_it() {
        for (plain, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("cheops:\u{3ff}", "Y2hlb3BzOs+/"),
        ] {
            assert_eq!(base64(plain.as_bytes()), want);
        }
    }

    #[test]
    fn only_its_own_credentials_fit_a_key() {
        let key = RunPassword::of(&[7; SECRET_BYTES]);
        let fits = |given: &str| {
            let given = given.parse().unwrap();
            key.fits(&HeaderMap::from_iter([(PROXY_AUTHORIZATION, given)]))
        };
        let right = base64(format!("cheops:{}", "07".repeat(SECRET_BYTES)).as_bytes());
        assert!(fits(&format!("Basic {right}")) && fits(&format!("basic  {right}")));
        let other = base64(format!("cheops:{}", "08".repeat(SECRET_BYTES)).as_bytes());
        for wrong in [&right, &format!("Bearer {right}"), &format!("Basic {other}"), "Basic "] {
            assert!(!fits(wrong), "{wrong}");
        }
        assert!(!key.fits(&HeaderMap::new()));
        assert_ne!(RunPassword::random().unwrap().secret, RunPassword::random().unwrap().secret);
    }
}
