//! What goes over a link, and what somebody has at a glance.
//!
//! Two sites that meet compare some numbers; where those differ, what they have by name and age; and then
//! each sends what the other lacks. What is news afterwards is sent as it comes.

use std::collections::BTreeMap;

use cheops_core::model::{KeyId, SiteId};
use cheops_record::{ByteReader, FormError, Writer};

use crate::statement::{NotTakenIn, SignedStatement};

const PING: u64 = 0;
const SUMMARY: u64 = 1;
const DIGEST: u64 = 2;
const SAID: u64 = 3;

/// Statements are compared in so many parts, so that little is said of what is the same.
pub(crate) const PARTS: usize = 32;
/// SaidAbout how many bytes of statements go in one message.
const BYTES_AT_ONCE: usize = 32 * 1024;

/// One thing said on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GossipMessage {
    /// Nothing but a sign of life.
    Ping,
    /// One number for each part of all that its sender has.
    Summary(Vec<u64>),
    /// All that it has in the parts that `parts` has a bit for.
    Digest {
        /// Which parts.
        parts: u32,
        /// Whether to answer with the same, if that holds something newer.
        asks: bool,
        /// What it has there.
        held: Vec<Held>,
    },
    /// What somebody said.
    Said {
        /// That.
        statements: Vec<SignedStatement>,
        /// What of it cannot be understood here.
        left_out: Vec<NotTakenIn>,
    },
}

/// One statement that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// What it is about.
    pub id: u64,
    /// How new it is.
    pub order: u64,
    /// What it says.
    pub hash: u64,
}

impl GossipMessage {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Ping => out.number(PING),
            Self::Summary(parts) => {
                out.number(SUMMARY);
                out.number(parts.len() as u64);
                parts.iter().for_each(|part| out.raw(&part.to_le_bytes()));
            }
            Self::Digest { parts, asks, held } => {
                out.number(DIGEST);
                out.number(u64::from(*parts));
                out.flag(*asks);
                out.number(held.len() as u64);
                for held in held {
                    out.raw(&held.id.to_le_bytes());
                    out.number(held.order);
                    out.raw(&held.hash.to_le_bytes());
                }
            }
            Self::Said { statements, .. } => {
                out.number(SAID);
                out.number(statements.len() as u64);
                statements.iter().for_each(|signed| signed.put(&mut out));
            }
        }
        out
    }

    /// Reads one, whoever wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormError> {
        let mut from = ByteReader::new(bytes);
        let from = &mut from;
        Ok(match from.number()? {
            PING => Self::Ping,
            SUMMARY => {
                let count = from.count(8)?;
                let parts = (0..count).map(|_| Ok(u64::from_le_bytes(from.array()?)));
                Self::Summary(parts.collect::<Result<_, FormError>>()?)
            }
            DIGEST => {
                let parts = u32::try_from(from.number()?).map_err(|_large| FormError::TooLarge)?;
                let asks = from.flag()?;
                let count = from.count(17)?;
                let held = (0..count).map(|_| {
                    Ok(Held {
                        id: u64::from_le_bytes(from.array()?),
                        order: from.number()?,
                        hash: u64::from_le_bytes(from.array()?),
                    })
                });
                Self::Digest { parts, asks, held: held.collect::<Result<_, FormError>>()? }
            }
            SAID => {
                let (mut statements, mut left_out) = (Vec::new(), Vec::new());
                for _ in 0..from.count(3)? {
                    match SignedStatement::take(from)? {
                        Ok(signed) => statements.push(signed),
                        Err(why) => left_out.push(why),
                    }
                }
                Self::Said { statements, left_out }
            }
            kind => {
                return Err(FormError::UnknownKind { what: "a message of the directory", kind });
            }
        })
    }

    /// Statements in as many messages as they need.
    pub(crate) fn said(statements: impl IntoIterator<Item = SignedStatement>) -> Vec<Self> {
        let (mut messages, mut some, mut bytes) = (Vec::new(), Vec::new(), 0);
        for signed in statements {
            bytes += signed.size();
            some.push(signed);
            if bytes > BYTES_AT_ONCE {
                bytes = 0;
                messages.push(Self::Said {
                    statements: std::mem::take(&mut some),
                    left_out: Vec::new(),
                });
            }
        }
        if !some.is_empty() {
            messages.push(Self::Said { statements: some, left_out: Vec::new() });
        }
        messages
    }
}

/// What a statement is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SaidAbout<'a> {
    Record(&'a SiteId, KeyId),
    LinkState(&'a SiteId),
    Removal(&'a SiteId),
    Revocation(&'a SiteId, KeyId),
}

impl SaidAbout<'_> {
    pub(crate) fn id(self) -> u64 {
        let (kind, site, key) = match self {
            Self::Record(site, key) => (1, site, Some(key)),
            Self::LinkState(site) => (2, site, None),
            Self::Removal(site) => (3, site, None),
            Self::Revocation(site, key) => (4, site, Some(key)),
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[kind]).update(&key.map_or([0; 32], |key| key.0));
        first(hasher.update(site.as_str().as_bytes()).finalize().as_bytes())
    }
}

fn first(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// All that a site has, by what it is about.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    held: BTreeMap<u64, (Held, SignedStatement)>,
    parts: [u64; PARTS],
}

impl Holdings {
    /// Takes note of a statement in the place of what was there; and says by which number it goes.
    pub(crate) fn put(&mut self, subject: SaidAbout<'_>, signed: &SignedStatement) -> u64 {
        let id = subject.id();
        let held = Held { id, order: signed.statement().order(), hash: first(&signed.hash()) };
        let before = self.held.insert(id, (held, signed.clone()));
        if let Some((before, _)) = before {
            self.count(before, u64::wrapping_sub);
        }
        self.count(held, u64::wrapping_add);
        id
    }

    pub(crate) fn remove(&mut self, subject: SaidAbout<'_>) {
        if let Some((before, _)) = self.held.remove(&subject.id()) {
            self.count(before, u64::wrapping_sub);
        }
    }

    fn count(&mut self, held: Held, by: fn(u64, u64) -> u64) {
        let part = &mut self.parts[part_of(held.id)];
        let mixed = (held.hash ^ held.id.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *part = by(*part, mixed);
    }

    pub(crate) fn summary(&self) -> GossipMessage {
        GossipMessage::Summary(self.parts.to_vec())
    }

    /// In which parts the other side has something else.
    pub(crate) fn differing(&self, theirs: &[u64]) -> u32 {
        let differs = |part: &usize| theirs.get(*part) != self.parts.get(*part);
        (0..PARTS).filter(differs).fold(0, |bits, part| bits | 1 << part)
    }

    pub(crate) fn digest(&self, parts: u32, asks: bool) -> GossipMessage {
        let held = self.within(parts).map(|(held, _)| *held).collect();
        GossipMessage::Digest { parts, asks, held }
    }

    /// What the other side lacks of these parts, and whether it has something newer.
    pub(crate) fn compare(&self, parts: u32, theirs: &[Held]) -> (Vec<SignedStatement>, bool) {
        let theirs: BTreeMap<u64, &Held> = theirs.iter().map(|held| (held.id, held)).collect();
        let newer = |held: &Held, than: &Held| (held.order, held.hash) > (than.order, than.hash);
        let lacks = self.within(parts).filter(|(held, _)| {
            theirs
                .get(&held.id)
                .is_none_or(|theirs| held.hash != theirs.hash && !newer(theirs, held))
        });
        let lacks = lacks.map(|(_, signed)| signed.clone()).collect();
        let has_newer = theirs
            .values()
            .any(|theirs| self.held.get(&theirs.id).is_none_or(|(held, _)| newer(theirs, held)));
        (lacks, has_newer)
    }

    fn within(&self, parts: u32) -> impl Iterator<Item = &(Held, SignedStatement)> {
        self.held.values().filter(move |(held, _)| parts & (1 << part_of(held.id)) != 0)
    }

    pub(crate) fn named(&self, id: u64) -> Option<&SignedStatement> {
        self.held.get(&id).map(|(_, signed)| signed)
    }
}

fn part_of(id: u64) -> usize {
    usize::try_from(id >> 59).unwrap_or(0)
}
