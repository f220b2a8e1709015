//! What is carried to the new site, as text that survives a chat or a mail:
//! `cheops1.AUTHORITY.ID.SECRET@HOST:PORT`.

use std::fmt;
use std::io;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// How a token of this kind begins.
const KIND: &str = "cheops1";
/// How much random there is in a secret: nobody guesses it.
pub(super) const SECRET_BYTES: usize = 20;

/// Which invitation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct InvitationId(pub(super) [u8; 8]);

impl fmt::Display for InvitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for InvitationId {
    type Err = BadJoinToken;

    fn from_str(text: &str) -> Result<Self, BadJoinToken> {
        let bad = || BadJoinToken::Part { what: "the invitation's id", text: text.to_owned() };
        let is_whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_whole).ok_or_else(bad)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// What lets one site in, once.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinSecret(pub(super) [u8; SECRET_BYTES]);

impl fmt::Debug for JoinSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinSecret")
    }
}

/// As many random bytes.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let no_reason = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(no_reason)?;
    Ok(bytes)
}

/// Why a text is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJoinToken {
    /// It begins like something else.
    #[error("`{}` is no token: one looks like `cheops1.AUTHORITY.ID.SECRET@HOST:PORT`", .0)]
    Form(String),
    /// A later version made it.
    #[error("the token is of a kind that this version does not know, `{0}`; upgrade `cheops` here")]
    Kind(String),
    /// A part of it is not what it should be.
    #[error("{what} in the token cannot be read (`{text}`): was it copied whole?")]
    Part {
        /// Which.
        what: &'static str,
        /// As it was found; never the secret.
        text: String,
    },
}

/// All that a site needs to join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// The hash of the certificate of the mesh's authority.
    pub authority: [u8; 32],
    /// Which invitation.
    pub id: InvitationId,
    /// What lets the site in.
    pub secret: JoinSecret,
    /// Where the site is that has the authority.
    pub address: String,
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (authority, secret) =
            (URL_SAFE_NO_PAD.encode(self.authority), URL_SAFE_NO_PAD.encode(self.secret.0));
        write!(f, "{KIND}.{authority}.{}.{secret}@{}", self.id, self.address)
    }
}

impl FromStr for JoinToken {
    type Err = BadJoinToken;

    fn from_str(text: &str) -> Result<Self, BadJoinToken> {
        let text = text.trim();
        // What is shown of a text that is no token may be half a secret.
        let form = || BadJoinToken::Form(text.chars().take(12).collect::<String>() + "…");
        let (kind, rest) = text.split_once('.').ok_or_else(form)?;
        if kind != KIND {
            let is_later = kind.strip_prefix("cheops").is_some_and(|n| n.parse::<u32>().is_ok());
            return Err(if is_later { BadJoinToken::Kind(kind.to_owned()) } else { form() });
        }
        let (said, address) = rest.split_once('@').ok_or_else(form)?;
        let parts: Vec<&str> = said.split('.').collect();
        let [authority, id, secret] = <[&str; 3]>::try_from(parts).map_err(|_| form())?;
        let what = "the hash of the authority's certificate";
        let authority = bytes(authority)
            .ok_or_else(|| BadJoinToken::Part { what, text: authority.to_owned() })?;
        let (what, hidden) = ("the secret", "…".to_owned());
        let secret = bytes(secret).ok_or(BadJoinToken::Part { what, text: hidden })?;
        check_address(address)?;
        let (id, secret, address) = (id.parse()?, JoinSecret(secret), address.to_owned());
        Ok(Self { authority, id, secret, address })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

fn check_address(address: &str) -> Result<(), BadJoinToken> {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    match address.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) => Ok(()),
        _ => Err(BadJoinToken::Part { what: "the address", text: address.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken {
            authority: [0xa5; 32],
            id: InvitationId([0, 1, 2, 3, 0xfc, 0xfd, 0xfe, 0xff]),
            secret: JoinSecret([7; SECRET_BYTES]),
            address: "[::1]:8078".to_owned(),
        }
    }

    #[test]
    fn a_token_is_this_text_and_says_the_same_when_it_is_read() {
        let text = token().to_string();
        assert_eq!(
            text,
            "cheops1.paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaU.00010203fcfdfeff.\
             BwcHBwcHBwcHBwcHBwcHBwcHBwc@[::1]:8078"
        );
        assert_eq!(text.parse(), Ok(token()));
        assert_eq!(format!(" {text}\n").parse(), Ok(token()));
    }

    #[test]
    fn what_is_no_token_is_refused_with_what_is_wrong_and_without_the_secret() {
        let good = token().to_string();
        for (text, want) in [
            (String::new(), "is no token"),
            ("paris".to_owned(), "is no token"),
            (good.replace("cheops1", "cheops2"), "upgrade `cheops` here"),
            (good.replace("cheops1", "other1"), "is no token"),
            (good.replace("paWl", "paW"), "the hash of the authority's certificate"),
            (good.replace("00010203", "0001020"), "the invitation's id"),
            (good.replace("00010203", "+0010203"), "the invitation's id"),
            (good.replace("Bwc@", "Bw@"), "the secret"),
            (good.replace("@[::1]:8078", ""), "is no token"),
            (good.replace(":8078", ""), "the address"),
            (good.replace(":8078", ":0"), "the address"),
            (good.replace("[::1]", ""), "the address"),
        ] {
            let read = text.parse::<JoinToken>();
            let Err(error) = read else { panic!("{text}") };
            assert!(error.to_string().contains(want), "{text}: {error}");
            assert!(!error.to_string().contains("BwcHBwc"), "{text}: {error}");
        }
    }
}
