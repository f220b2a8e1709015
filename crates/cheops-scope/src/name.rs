//! The names of services and sites.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name of a service, in bytes: what DNS takes.
pub const MAX_SERVICE_BYTES: usize = 253;
/// The longest name of a site, in bytes. It stands in every id, on disks and in messages.
pub const MAX_SITE_BYTES: usize = 128;

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// There is nothing.
    Empty,
    /// It is longer than such a name can be.
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it can be.
        most: usize,
    },
    /// It begins with something else than a letter or a digit.
    BadStart {
        /// What it begins with.
        found: char,
    },
    /// It holds a character that no name holds.
    BadCharacter {
        /// The first such character.
        found: char,
    },
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a name cannot be empty"),
            Self::TooLong { bytes, most } => {
                write!(f, "a name has at most {most} bytes, and this one {bytes}")
            }
            Self::BadStart { found } => write!(
                f,
                "a name begins with a letter or a digit, not with `{}`",
                found.escape_debug()
            ),
            Self::BadCharacter { found } => write!(
                f,
                "`{}` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, \
                 `0` to `9`, `.`, `_` and `-`",
                found.escape_debug()
            ),
        }
    }
}

impl std::error::Error for BadName {}

/// Whether `text` is of the lexical class of names, whatever its length.
pub(crate) fn is_name(text: &str) -> bool {
    first_bad(text).is_none()
}

fn first_bad(text: &str) -> Option<BadName> {
    // By bytes, which is fast: messages are full of names, and nearly all of them are right.
    let within = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    if bytes.first().is_some_and(u8::is_ascii_alphanumeric) && bytes.iter().all(within) {
        return None;
    }
    let Some(first) = text.chars().next() else {
        return Some(BadName::Empty);
    };
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !first.is_ascii_alphanumeric() && inner(first) {
        return Some(BadName::BadStart { found: first });
    }
    let found = text.chars().find(|c| !inner(*c))?;
    Some(BadName::BadCharacter { found })
}

fn check(text: &str, most: usize) -> Result<(), BadName> {
    // Length first: it is the cheap test, and a megabyte needs no closer look.
    if text.len() > most {
        return Err(BadName::TooLong { bytes: text.len(), most });
    }
    first_bad(text).map_or(Ok(()), Err)
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $most:ident) => {
        $(#[$doc])*
        ///
        #[doc = concat!("`[A-Za-z0-9][A-Za-z0-9._-]*`, at most [`", stringify!($most), "`] long.")]
        /// Cheap to clone.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes `text` if it is a name.
            ///
            /// # Errors
            ///
            /// Says why `text` is not a name.
            pub fn new(text: &str) -> Result<Self, BadName> {
                check(text, $most)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// The name of a service, such as `image`.
    ServiceName, MAX_SERVICE_BYTES
}
name! {
    /// The name of a site, such as `paris`: one place with one application instance and one agent.
    SiteId, MAX_SITE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in ["a", "0", "site1", "10ms", "a.", "a-", "A_b.c-d", "around"] {
            assert!(SiteId::new(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", BadName::Empty),
            ("-a", BadName::BadStart { found: '-' }),
            (".", BadName::BadStart { found: '.' }),
            ("é", BadName::BadCharacter { found: 'é' }),
            ("a b", BadName::BadCharacter { found: ' ' }),
            ("a\0", BadName::BadCharacter { found: '\0' }),
        ] {
            assert_eq!(SiteId::new(bad), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn a_name_can_be_as_long_as_its_limit_and_no_longer() {
        for (most, is_taken) in [
            (MAX_SITE_BYTES, (|text| SiteId::new(text).is_ok()) as fn(&str) -> bool),
            (MAX_SERVICE_BYTES, |text| ServiceName::new(text).is_ok()),
        ] {
            assert_eq!([most, most + 1].map(|bytes| is_taken(&"a".repeat(bytes))), [true, false]);
        }
    }

    #[test]
    fn a_name_read_from_json_is_checked_too() {
        assert!(serde_json::from_str::<SiteId>("\"paris\"").is_ok());
        assert!(serde_json::from_str::<SiteId>("\"pa ris\"").is_err());
    }
}
