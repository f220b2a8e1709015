//! The names of services and sites.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name taken, in bytes: what DNS takes.
pub const MAX_NAME_BYTES: usize = 253;

/// Why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// There is nothing.
    Empty,
    /// It is longer than [`MAX_NAME_BYTES`].
    TooLong {
        /// How long it is.
        bytes: usize,
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
            Self::TooLong { bytes } => {
                write!(f, "a name has at most {MAX_NAME_BYTES} bytes, and this one {bytes}")
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

fn check(text: &str) -> Result<(), BadName> {
    // Length first: it is the cheap test, and a megabyte needs no closer look.
    if text.len() > MAX_NAME_BYTES {
        return Err(BadName::TooLong { bytes: text.len() });
    }
    first_bad(text).map_or(Ok(()), Err)
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// `[A-Za-z0-9][A-Za-z0-9._-]*`, at most [`MAX_NAME_BYTES`] long. Cheap to clone.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes `text` if it is a name.
            ///
            /// # Errors
            ///
            /// Says why `text` is not a name.
            pub fn new(text: &str) -> Result<Self, BadName> {
                check(text)?;
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
                f.write_str(&self.0)
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

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }
    };
}

name! {
    /// The name of a service, such as `image`.
    ServiceName
}
name! {
    /// The name of a site, such as `paris`.
    SiteName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in ["a", "0", "site1", "10ms", "a.", "a-", "A_b.c-d", "around"] {
            assert!(SiteName::new(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", BadName::Empty),
            ("-a", BadName::BadStart { found: '-' }),
            (".", BadName::BadStart { found: '.' }),
            ("é", BadName::BadCharacter { found: 'é' }),
            ("a b", BadName::BadCharacter { found: ' ' }),
            ("a\0", BadName::BadCharacter { found: '\0' }),
        ] {
            assert_eq!(SiteName::new(bad), Err(why), "{bad:?}");
        }
        assert!(SiteName::new(&"a".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(SiteName::new(&"a".repeat(MAX_NAME_BYTES + 1)).is_err());
    }

    #[test]
    fn a_name_read_from_json_is_checked_too() {
        assert!(serde_json::from_str::<SiteName>("\"paris\"").is_ok());
        assert!(serde_json::from_str::<SiteName>("\"pa ris\"").is_err());
    }
}
