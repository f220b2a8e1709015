//! Names of things, one type each, so that one cannot stand in for another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use cheops_scope::{BadName, SiteId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a name of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// It does not follow the rule.
    #[error("`{found}` is not a valid {what}: {rule}")]
    Invalid {
        /// What it should be.
        what: &'static str,
        /// How it begins.
        found: String,
        /// What would be right.
        rule: &'static str,
    },
    /// It cannot be the name of a site.
    #[error("a site cannot be called so: {0}")]
    Site(#[from] BadName),
}

impl IdError {
    fn new(what: &'static str, found: &str, rule: &'static str) -> Self {
        // A hostile name may be a megabyte long; the message must not be.
        let found = found.chars().take(80).collect();
        Self::Invalid { what, found, rule }
    }
}

/// What stands for the resource's id in commands.
pub const ID_PLACEHOLDER: &str = "__ID__";

const LABEL_RULE: &str =
    "a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters";
const RESOURCE_RULE: &str = "1 to 256 bytes without control characters";

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 128
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_resource(text: &str) -> bool {
    !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control)
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $valid:ident, $rule:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Accepts a text that follows the rule for this kind of name.
            pub fn new(text: &str) -> Result<Self, IdError> {
                if $valid(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(IdError::new($what, text, $rule))
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// The name of a resource: what operations change.
    ResourceId, "resource id", is_resource, RESOURCE_RULE
);
name!(
    /// What stands for a replicated resource of a service in requests and answers, at every site.
    MetaId, "meta-id", is_resource, RESOURCE_RULE
);
name!(
    /// What one site's own instance of a service calls a resource.
    LocalId, "local id", is_resource, RESOURCE_RULE
);
name!(
    /// The tag an operator gives to operations that behave alike, such as `set` or `inc`.
    OperationType, "operation type", is_label, LABEL_RULE
);

/// Types that begin like this are ours.
const RESERVED: &str = "cheops.";

impl OperationType {
    /// The type of the operation that ends a resource.
    pub fn deletion() -> Self {
        Self("cheops.delete".into())
    }

    /// Whether it ends its resource.
    pub fn is_deletion(&self) -> bool {
        &*self.0 == "cheops.delete"
    }

    /// The type of what stands for the operations that a state stands for.
    pub(crate) fn state() -> Self {
        Self("cheops.state".into())
    }

    /// Whether it is no operation but a state that stands for operations.
    pub fn is_state(&self) -> bool {
        &*self.0 == "cheops.state"
    }

    /// Whether the name is kept for Cheops' own use: users' types may not have it.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED)
    }
}

/// One incarnation of a site's disk. Drawn anew when a site starts with an empty disk, so that a
/// site which lost everything and returns under its old name never uses an old id again. An agent
/// that is started again, or takes another's place, on what the disk holds is in the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub u64);

/// Incarnations that began when there were signatures have this bit, and those from before have
/// not: so any site can tell, by the number alone, whether there can be entries that nobody signed.
const SIGNS: u64 = 1 << 32;

impl Incarnation {
    /// A new incarnation, by a number that was drawn.
    pub fn drawn(number: u64) -> Self {
        // Half of it is enough to tell the incarnations of one site apart, and people read these
        // numbers.
        Self(number & (SIGNS - 1) | SIGNS)
    }

    /// Whether it began before entries were signed.
    pub fn is_from_before_signatures(self) -> bool {
        self.0 < SIGNS
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Who writes entries: a site in one incarnation. Everything an author writes is numbered in one
/// sequence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Author {
    /// The site.
    pub site: SiteId,
    /// Which incarnation of its disk.
    pub incarnation: Incarnation,
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.site, self.incarnation)
    }
}

impl fmt::Debug for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The name of one entry, unique for ever: its author and its number in the author's sequence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryId {
    /// Who wrote it.
    pub author: Author,
    /// The author's how-manieth entry, from 1.
    pub n: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.author, self.n)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for EntryId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (author, n) = text.rsplit_once('.')?;
            let (site, incarnation) = author.rsplit_once('-')?;
            Some(Self {
                author: Author {
                    site: SiteId::new(site).ok()?,
                    incarnation: Incarnation(u64::from_str_radix(incarnation, 16).ok()?),
                },
                n: n.parse().ok()?,
            })
        };
        parse().ok_or_else(|| {
            IdError::new("entry id", text, "it reads SITE-INCARNATION.NUMBER, such as `paris-5f.7`")
        })
    }
}

/// The name of an operation: the id of the entry that holds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId(pub EntryId);

impl OperationId {
    /// The site that received the operation from its user.
    pub fn site(&self) -> &SiteId {
        &self.0.author.site
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for OperationId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse().map(Self)
    }
}

/// The name of a file's content: its hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobId(pub [u8; 32]);

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule_and_say_so_when_they_do_not() {
        assert!(OperationType::new("set-1.eu").is_ok());
        for bad in ["", "-x", ".x", "a b", "é", &"x".repeat(129)] {
            let error = OperationType::new(bad).unwrap_err().to_string();
            assert!(error.contains("operation type"), "{error}");
        }
        assert!(ResourceId::new("/v2/images/é").is_ok());
        assert!(ResourceId::new("a\nb").is_err());
    }

    #[test]
    fn an_entry_id_reads_back_from_its_text_even_with_odd_site_names() {
        let id = EntryId {
            author: Author {
                site: SiteId::new("a-b.c-1").unwrap(),
                incarnation: Incarnation(0x5fe1),
            },
            n: 42,
        };
        assert_eq!(id.to_string(), "a-b.c-1-5fe1.42");
        assert_eq!(id.to_string().parse::<EntryId>().unwrap(), id);
        assert!("paris".parse::<EntryId>().is_err());
    }

    #[test]
    fn a_name_from_a_peer_is_checked_when_it_is_read() {
        assert!(serde_json::from_str::<SiteId>("\"no way\"").is_err());
        assert_eq!(
            serde_json::from_str::<SiteId>("\"lyon\"").unwrap(),
            SiteId::new("lyon").unwrap()
        );
    }
}
