//! What is said: by a site of itself, and by the mesh's authority of sites.
//!
//! A statement is signed over its bytes, and those are kept and passed on as they came: so what a later
//! version adds at the end of one reaches whoever understands it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::model::{KeyId, SiteId};
use cheops_record::{ByteReader, FormError, Writer};

/// So many sites can be in a mesh.
pub const MOST_SITES: usize = 4_096;
const MOST_ADDRESSES: usize = 16;
const MOST_LABELS: usize = 64;
const MOST_SERVICES: usize = 256;
const LONGEST_TEXT: usize = 256;
const LONGEST_CERTIFICATE: usize = 8 * 1024;
const LONGEST_SIGNATURE: usize = 512;
/// So many sites can be heard by one, as far as it tells others.
pub(crate) const MOST_HEARD: usize = 64;
/// No clock shows this, and no site counts so far: room is left after it for what follows.
pub(crate) const LAST_EPOCH: u64 = 1 << 53;

/// What signatures begin with, so that they are good for nothing else.
const SIGNED: &[u8] = b"cheops directory 1\0";
const VERSION: u8 = 1;
const RECORD: u64 = 1;
const LINK_STATE: u64 = 2;
const REMOVAL: u64 = 3;
const REVOCATION: u64 = 4;

/// Why a statement is not taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTakenIn {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Form(#[from] FormError),
    /// There is more of something than there can be.
    #[error("it has {found} {what}, and there are at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many it has.
        found: usize,
        /// How many there can be.
        most: usize,
    },
    /// It counts beyond what can be counted.
    #[error("`{0}` counts beyond what any site gets to")]
    TooFar(SiteId),
    /// Its certificate is not that site's.
    #[error("what is said of `{0}` comes with a certificate that is not its own")]
    Certificate(SiteId),
    /// Somebody else signed it.
    #[error("what is said of `{0}` is not signed by who may say so")]
    Signature(SiteId),
    /// Its key is not to be believed any more.
    #[error("the key that `{0}` signed with was revoked")]
    Revoked(SiteId),
    /// It is out for good.
    #[error("`{0}` was removed from the mesh")]
    Removed(SiteId),
    /// Nobody has said yet that it exists.
    #[error("`{0}` is not known")]
    Unknown(SiteId),
    /// There is no room for one more.
    #[error("there are {MOST_SITES} sites already, and no more can be")]
    Full,
}

/// Who checks signatures, and signs for this site.
pub trait Notary: Send + Sync {
    /// The key of a certificate, if the mesh's authority issued it to that site.
    fn key_of(&self, site: &SiteId, certificate: &[u8]) -> Option<KeyId>;

    /// Whether the holder of that key signed this.
    fn has_signed(&self, key: KeyId, text: &[u8], signature: &[u8]) -> bool;

    /// Whether the mesh's authority did.
    fn authority_has_signed(&self, text: &[u8], signature: &[u8]) -> bool;

    /// Signs something as this site; `None` if it cannot.
    fn sign(&self, text: &[u8]) -> Option<Vec<u8>>;

    /// The certificate of this site.
    fn certificate(&self) -> Vec<u8>;
}

/// Whether a site is part of the mesh, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Membership {
    /// It is.
    Alive,
    /// It took its leave, in order.
    Left,
}

/// What a site says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteRecord {
    /// Which.
    pub site: SiteId,
    /// Greater than that of all that it said of itself before.
    pub epoch: u64,
    /// Whether it is part of the mesh.
    pub state: Membership,
    /// Where it can be called: `HOST:PORT` each.
    pub addresses: Vec<String>,
    /// What operators say of it, such as `region=eu`.
    pub labels: BTreeMap<String, String>,
    /// The services that it has.
    pub services: BTreeSet<String>,
    /// Which release of Cheops it runs.
    pub software: String,
}

/// One that a site hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hears {
    /// Whom.
    pub site: SiteId,
    /// The round trip, in microseconds.
    pub round_trip_us: u64,
}

/// Whom a site hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Who hears.
    pub site: SiteId,
    /// Greater than that of all that it said of this before.
    pub number: u64,
    /// Whom, in the order of their names.
    pub hears: Vec<Hears>,
}

/// A site is out of the mesh for good, and its name with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Which.
    pub site: SiteId,
    /// Whether it is lost: nothing more is to be expected of it.
    pub dead: bool,
    /// When that was said.
    pub when_ms: u64,
    /// By whom.
    pub asked_by: String,
}

/// A key speaks for its site no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// Whose it was.
    pub site: SiteId,
    /// Which.
    pub key: KeyId,
    /// When that was said.
    pub when_ms: u64,
}

/// Something that is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// By a site, of itself.
    Record(SiteRecord),
    /// By a site, of those that it hears.
    LinkState(LinkState),
    /// By the authority.
    Removal(Removal),
    /// By the authority.
    Revocation(Revocation),
}

impl Statement {
    /// Of which site.
    pub fn site(&self) -> &SiteId {
        match self {
            Self::Record(record) => &record.site,
            Self::LinkState(state) => &state.site,
            Self::Removal(removal) => &removal.site,
            Self::Revocation(revocation) => &revocation.site,
        }
    }

    /// Of two about the same, the one with the greater counts.
    pub(crate) fn order(&self) -> u64 {
        match self {
            Self::Record(record) => record.epoch,
            Self::LinkState(state) => state.number,
            Self::Removal(removal) => removal.when_ms,
            Self::Revocation(revocation) => revocation.when_ms,
        }
    }

    fn said(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Self::Record(record) => put_record(record, &mut out),
            Self::LinkState(state) => {
                out.number(LINK_STATE);
                out.text(state.site.as_str());
                out.number(state.number);
                out.number(state.hears.len() as u64);
                for hears in &state.hears {
                    out.text(hears.site.as_str());
                    out.number(hears.round_trip_us);
                }
            }
            Self::Removal(removal) => {
                out.number(REMOVAL);
                out.text(removal.site.as_str());
                out.flag(removal.dead);
                out.number(removal.when_ms);
                out.text(&removal.asked_by);
            }
            Self::Revocation(revocation) => {
                out.number(REVOCATION);
                out.text(revocation.site.as_str());
                out.raw(&revocation.key.0);
                out.number(revocation.when_ms);
            }
        }
        out
    }

    fn read(said: &[u8]) -> Result<Self, NotTakenIn> {
        let mut from = ByteReader::new(said);
        match from.byte()? {
            VERSION => {}
            other => return Err(FormError::Version(other).into()),
        }
        let statement = match from.number()? {
            RECORD => Self::Record(take_record(&mut from)?),
            LINK_STATE => {
                let (site, number) = (take_site(&mut from)?, from.number()?);
                let take = |from: &mut ByteReader<'_>| {
                    Ok(Hears { site: take_site(from)?, round_trip_us: from.number()? })
                };
                let mut hears = list(&mut from, "sites that it hears", MOST_HEARD, take)?;
                hears.sort_by(|one, other| one.site.cmp(&other.site));
                hears.dedup_by(|one, other| one.site == other.site);
                Self::LinkState(LinkState { site, number, hears })
            }
            REMOVAL => Self::Removal(Removal {
                site: take_site(&mut from)?,
                dead: from.flag()?,
                when_ms: from.number()?,
                asked_by: take_text(&mut from, "bytes in who asked for it")?,
            }),
            REVOCATION => Self::Revocation(Revocation {
                site: take_site(&mut from)?,
                key: KeyId(from.array()?),
                when_ms: from.number()?,
            }),
            kind => return Err(FormError::UnknownKind { what: "a statement", kind }.into()),
        };
        if statement.order() > LAST_EPOCH {
            return Err(NotTakenIn::TooFar(statement.site().clone()));
        }
        Ok(statement)
    }
}

fn put_record(record: &SiteRecord, out: &mut Vec<u8>) {
    out.number(RECORD);
    out.text(record.site.as_str());
    out.number(record.epoch);
    out.number(match record.state {
        Membership::Alive => 0,
        Membership::Left => 1,
    });
    out.number(record.addresses.len() as u64);
    record.addresses.iter().for_each(|address| out.text(address));
    out.number(record.labels.len() as u64);
    for (key, value) in &record.labels {
        out.text(key);
        out.text(value);
    }
    out.number(record.services.len() as u64);
    record.services.iter().for_each(|service| out.text(service));
    out.text(&record.software);
}

fn take_record(from: &mut ByteReader<'_>) -> Result<SiteRecord, NotTakenIn> {
    let (site, epoch) = (take_site(from)?, from.number()?);
    let state = match from.number()? {
        0 => Membership::Alive,
        1 => Membership::Left,
        kind => return Err(FormError::UnknownKind { what: "a membership", kind }.into()),
    };
    let address = |from: &mut ByteReader<'_>| take_text(from, "bytes in an address");
    let label = |from: &mut ByteReader<'_>| {
        Ok((take_text(from, "bytes in a label")?, take_text(from, "bytes in a label")?))
    };
    let service = |from: &mut ByteReader<'_>| take_text(from, "bytes in a service's name");
    Ok(SiteRecord {
        site,
        epoch,
        state,
        addresses: list(from, "addresses", MOST_ADDRESSES, address)?,
        labels: list(from, "labels", MOST_LABELS, label)?.into_iter().collect(),
        services: list(from, "services", MOST_SERVICES, service)?.into_iter().collect(),
        software: take_text(from, "bytes in the name of its release")?,
    })
}

fn take_site(from: &mut ByteReader<'_>) -> Result<SiteId, NotTakenIn> {
    Ok(SiteId::new(from.text()?).map_err(FormError::from)?)
}

fn take_text(from: &mut ByteReader<'_>, what: &'static str) -> Result<String, NotTakenIn> {
    let text = from.text()?;
    at_most(what, text.len(), LONGEST_TEXT)?;
    Ok(text.to_owned())
}

fn list<T>(
    from: &mut ByteReader<'_>,
    what: &'static str,
    most: usize,
    take: impl Fn(&mut ByteReader<'_>) -> Result<T, NotTakenIn>,
) -> Result<Vec<T>, NotTakenIn> {
    let count = from.count(1)?;
    at_most(what, count, most)?;
    (0..count).map(|_| take(from)).collect()
}

fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), NotTakenIn> {
    if found > most { Err(NotTakenIn::TooMany { what, found, most }) } else { Ok(()) }
}

/// A statement with what shows whose it is. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedStatement(Arc<SignedParts>);

#[derive(Debug, PartialEq, Eq)]
struct SignedParts {
    statement: Statement,
    said: Box<[u8]>,
    signature: Box<[u8]>,
    /// Of the site, where it says what it is; of others it is known from that.
    certificate: Box<[u8]>,
    hash: [u8; 32],
}

impl SignedStatement {
    /// Signs something; `None` if that key cannot, or nobody would take it in.
    pub fn new(
        statement: &Statement,
        certificate: &[u8],
        sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let said = statement.said();
        let signature = sign(&signed_text(&said))?;
        Self::of(&said, &signature, certificate).ok()
    }

    fn of(said: &[u8], signature: &[u8], certificate: &[u8]) -> Result<Self, NotTakenIn> {
        at_most("bytes in its signature", signature.len(), LONGEST_SIGNATURE)?;
        at_most("bytes in its certificate", certificate.len(), LONGEST_CERTIFICATE)?;
        Ok(Self(Arc::new(SignedParts {
            statement: Statement::read(said)?,
            said: said.into(),
            signature: signature.into(),
            certificate: certificate.into(),
            hash: *blake3::hash(said).as_bytes(),
        })))
    }

    /// What it says.
    pub fn statement(&self) -> &Statement {
        &self.0.statement
    }

    /// The certificate that came with it; empty if none does.
    pub fn certificate(&self) -> &[u8] {
        &self.0.certificate
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        self.0.hash
    }

    /// Whether of the two this counts.
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        (self.0.statement.order(), self.0.hash) > (other.0.statement.order(), other.0.hash)
    }

    pub(crate) fn is_signed_by(&self, notary: &dyn Notary, key: KeyId) -> bool {
        notary.has_signed(key, &signed_text(&self.0.said), &self.0.signature)
    }

    pub(crate) fn is_of_authority(&self, notary: &dyn Notary) -> bool {
        notary.authority_has_signed(&signed_text(&self.0.said), &self.0.signature)
    }

    /// Appends its bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.bytes(&self.0.said);
        out.bytes(&self.0.signature);
        out.bytes(&self.0.certificate);
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.0.said.len() + self.0.signature.len() + self.0.certificate.len()
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Reads one, whoever wrote it. That it cannot be understood says nothing of what follows; that its end
    /// is not found does.
    pub fn take(from: &mut ByteReader<'_>) -> Result<Result<Self, NotTakenIn>, FormError> {
        let (said, signature, certificate) = (from.bytes()?, from.bytes()?, from.bytes()?);
        Ok(Self::of(said, signature, certificate))
    }
}

/// What would be signed, whether or not anybody would take it in: for tests of those limits.
#[doc(hidden)]
pub fn said_for_tests(statement: &Statement) -> Vec<u8> {
    statement.said()
}

fn signed_text(said: &[u8]) -> Vec<u8> {
    [SIGNED, said].concat()
}
