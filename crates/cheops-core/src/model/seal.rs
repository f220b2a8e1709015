//! Whose word an entry is: what exactly is signed, the signature, and what proves a lie.
//!
//! A signature is over what an entry says, not over the bytes it is written or sent in: formats
//! may change, signatures stay good. Every entry names the hash of its author's entry before it on
//! the same resource, so the last hash of an author stands for all that it ever wrote there, and
//! two entries in one place show that their author told one thing here and another there.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::Config;

use super::{
    Asker, Author, Declaration, EntryBody, Extension, Header, Operation, OperationId, Outcome,
    Payload, Replaces, Reply, ResourceId, ServiceRef, SiteId, Stamp, Status,
};

/// The hash of what an entry says, and by its chain of all that its author said before.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryHash(pub [u8; 32]);

impl EntryHash {
    /// Where there is no entry before, or it was written before there were hashes.
    pub const UNSAID: Self = Self([0; 32]);

    /// Whether it says nothing of the entry before.
    pub fn is_unsaid(self) -> bool {
        self == Self::UNSAID
    }
}

impl fmt::Debug for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The name of a key that entries are signed with: the hash of its public half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 32]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What is signed of an entry: its name, its place, and the hash of the rest. It can be shown to
/// a site that does not hold the resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryHeader {
    /// Who wrote it.
    pub author: Author,
    /// The author's how-manieth entry.
    pub n: u64,
    /// The hash of the resource's name.
    pub resource: [u8; 32],
    /// The number of the author's entry before it on the resource; 0 if it is the first.
    pub after: u64,
    /// The hash of that entry.
    pub after_hash: EntryHash,
    /// The hash of what it says.
    pub said: [u8; 32],
}

impl EntryHeader {
    /// What the signature is over.
    pub fn hash(&self) -> EntryHash {
        let mut digest = FieldHasher::new("cheops entry 1");
        digest.author(&self.author).number(self.n).raw(&self.resource);
        digest.number(self.after).raw(&self.after_hash.0).raw(&self.said);
        EntryHash(digest.end())
    }
}

/// Who vouches for an entry by signing it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SignedBy {
    /// Its author.
    Author,
    /// A site that had it before there were signatures, and says so. Nothing that is new is ever
    /// taken so.
    Voucher(SiteId),
}

impl SignedBy {
    /// Whether it is the word of the author's own site: also for what it wrote before there were signatures.
    pub fn is_own_word_of(&self, author: &Author) -> bool {
        match self {
            Self::Author => true,
            Self::Voucher(site) => *site == author.site,
        }
    }
}

/// The signature of an entry. Many entries that are made durable at once have one signature: it is
/// over the root of a tree of hashes, and each entry has the way from itself to the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Who signed.
    pub by: SignedBy,
    /// With which key.
    pub key: KeyId,
    /// The entry's place among those signed at once.
    pub index: u32,
    /// The hashes beside the way to the root, from the leaf up.
    pub path: Vec<[u8; 32]>,
    /// The signature of the root.
    pub signature: Arc<[u8]>,
}

/// More entries are never signed at once.
pub const MOST_SIGNED_AT_ONCE: usize = 1 << 16;

/// The longest way from a leaf to the root.
const LONGEST_PATH: usize = 16;

impl Proof {
    /// The root that the signature must be over, for an entry of that hash; `None` if the way to it
    /// cannot be.
    pub fn root(&self, entry: EntryHash) -> Option<[u8; 32]> {
        if self.path.len() > LONGEST_PATH || u64::from(self.index) >> self.path.len() != 0 {
            return None;
        }
        let mut at = leaf(&self.by, entry);
        for (level, beside) in self.path.iter().enumerate() {
            let is_right = (self.index >> level) & 1 == 1;
            at = if is_right { branch(beside, &at) } else { branch(&at, beside) };
        }
        Some(at)
    }

    /// The same for everybody: what a key signs for a root.
    pub fn signed_text(root: &[u8; 32]) -> Vec<u8> {
        [b"cheops entries of one commit\n".as_slice(), root].concat()
    }
}

fn leaf(by: &SignedBy, entry: EntryHash) -> [u8; 32] {
    let mut digest = FieldHasher::new("cheops leaf");
    match by {
        SignedBy::Author => digest.tag(0),
        SignedBy::Voucher(site) => digest.tag(1).text(site.as_str()),
    };
    digest.raw(&entry.0);
    digest.end()
}

fn branch(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut digest = FieldHasher::new("cheops branch");
    digest.raw(left).raw(right);
    digest.end()
}

/// A tree over entries that are signed at once.
#[derive(Debug)]
pub struct SealTree {
    by: SignedBy,
    /// From the leaves up to the root.
    levels: Vec<Vec<[u8; 32]>>,
}

impl SealTree {
    /// Over these entries, which are at most [`MOST_SIGNED_AT_ONCE`]; `None` for none.
    pub fn over(by: SignedBy, entries: impl IntoIterator<Item = EntryHash>) -> Option<Self> {
        let mut level: Vec<_> = entries.into_iter().map(|entry| leaf(&by, entry)).collect();
        if level.is_empty() || level.len() > MOST_SIGNED_AT_ONCE {
            return None;
        }
        let mut levels = Vec::new();
        while level.len() > 1 {
            // What has nobody beside it is its own neighbour: so every leaf has a way of one length.
            let pair = |pair: &[[u8; 32]]| branch(&pair[0], pair.last().unwrap_or(&pair[0]));
            let above = level.chunks(2).map(pair).collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Some(Self { by, levels })
    }

    /// What is to be signed.
    pub fn root(&self) -> [u8; 32] {
        self.levels.last().and_then(|top| top.first()).copied().unwrap_or_default()
    }

    /// The proof of the entry at that place, with the signature of the root.
    pub fn proof(&self, index: usize, key: KeyId, signature: &Arc<[u8]>) -> Proof {
        let mut path = Vec::with_capacity(self.levels.len().saturating_sub(1));
        let mut at = index;
        for level in self.levels.iter().take(self.levels.len().saturating_sub(1)) {
            let own = level.get(at).copied().unwrap_or_default();
            path.push(level.get(at ^ 1).copied().unwrap_or(own));
            at /= 2;
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Proof { by: self.by.clone(), key, index, path, signature: Arc::clone(signature) }
    }
}

/// Two entries that no honest author signs both. Whoever has them can show them to anybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The one.
    pub one: (EntryHeader, Proof),
    /// The other.
    pub other: (EntryHeader, Proof),
}

/// What two headers of one author prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// One number was used on two resources.
    NumberUsedTwice,
    /// What it wrote on one resource forks after that number: nothing later of it counts there.
    Fork {
        /// The last number that both branches have.
        after: u64,
    },
}

impl Evidence {
    /// Who is shown to lie.
    pub fn author(&self) -> &Author {
        &self.one.0.author
    }

    /// The keys that they were signed with: one, or two of the same site.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        let (one, other) = (self.one.1.key, self.other.1.key);
        std::iter::once(one).chain((other != one).then_some(other))
    }

    /// What it proves, if it proves anything, given that both signatures are good.
    pub fn lie(&self) -> Option<Lie> {
        let ((one, proof), (other, other_proof)) = (&self.one, &self.other);
        let by_author =
            proof.by.is_own_word_of(&one.author) && other_proof.by.is_own_word_of(&other.author);
        // Whose keys they are was checked: a site that was given a new one has still one history.
        if !by_author || one.author != other.author || one == other {
            return None;
        }
        if one.resource != other.resource {
            return (one.n == other.n).then_some(Lie::NumberUsedTwice);
        }
        let disowns = |later: &EntryHeader, earlier: &EntryHeader| {
            later.after == earlier.n
                && !later.after_hash.is_unsaid()
                && later.after_hash != earlier.hash()
        };
        // Who names the one before names the last before: what stands between is of another branch.
        let skips = |one: &EntryHeader, other: &EntryHeader| one.after < other.n && other.n < one.n;
        let in_one_place = one.n == other.n || one.after == other.after;
        if in_one_place || skips(one, other) || skips(other, one) {
            Some(Lie::Fork { after: one.after.min(other.after) })
        } else if disowns(one, other) {
            Some(Lie::Fork { after: other.after })
        } else if disowns(other, one) {
            Some(Lie::Fork { after: one.after })
        } else {
            None
        }
    }
}

/// The hash of a resource's name.
pub fn resource_hash(resource: &ResourceId) -> [u8; 32] {
    let mut digest = FieldHasher::new("cheops resource");
    digest.text(resource.as_str());
    digest.end()
}

/// The hash of what an entry says, apart from its name and place.
pub(super) fn said_hash(body: &EntryBody, extra: &[Extension]) -> [u8; 32] {
    let mut digest = FieldHasher::new("cheops said");
    match body {
        EntryBody::Operation(operation) => digest.tag(0).operation(operation),
        EntryBody::Reply(reply) => digest.tag(1).reply(reply),
    };
    digest.number(extra.len() as u64);
    for Extension { name, must_understand, value } in extra {
        digest.text(name).flag(*must_understand).bytes(value);
    }
    digest.end()
}

/// Most of what is hashed is no longer.
const USUALLY: usize = 512;

/// Puts values into a hash so that no two different ones give the same bytes. Every type is taken
/// apart by name: a new part that is not hashed does not compile.
///
/// They are joined first: to hash many small pieces one by one costs far more.
struct FieldHasher(Vec<u8>);

impl FieldHasher {
    fn new(what: &str) -> Self {
        let mut digest = Self(Vec::with_capacity(USUALLY));
        digest.text(what);
        digest
    }

    fn end(&self) -> [u8; 32] {
        *blake3::hash(&self.0).as_bytes()
    }

    fn raw(&mut self, hash: &[u8; 32]) -> &mut Self {
        self.0.extend_from_slice(hash);
        self
    }

    fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn tag(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn flag(&mut self, value: bool) -> &mut Self {
        self.tag(u8::from(value))
    }

    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(value.len() as u64).0.extend_from_slice(value);
        self
    }

    fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    fn author(&mut self, author: &Author) -> &mut Self {
        let Author { site, incarnation } = author;
        self.text(site.as_str()).number(incarnation.0)
    }

    fn name(&mut self, id: &OperationId) -> &mut Self {
        self.author(&id.0.author).number(id.0.n)
    }

    fn stamp(&mut self, stamp: Stamp) -> &mut Self {
        let Stamp { wall_ms, counter } = stamp;
        self.number(wall_ms).number(counter)
    }

    fn optional<T>(&mut self, value: Option<&T>, with: impl FnOnce(&mut Self, &T)) -> &mut Self {
        self.flag(value.is_some());
        if let Some(value) = value {
            with(self, value);
        }
        self
    }

    fn headers(&mut self, headers: &[Header]) -> &mut Self {
        self.number(headers.len() as u64);
        for Header { name, value } in headers {
            self.text(name).text(value);
        }
        self
    }

    fn operation(&mut self, operation: &Operation) -> &mut Self {
        // The place in the order follows from what is claimed and from the past: it is nobody's word.
        let Operation {
            id,
            resource,
            stamp: _,
            claimed,
            parents,
            kind,
            payload,
            replaces,
            declares,
            needs,
            asked_by,
        } = operation;
        self.name(id).text(resource.as_str()).stamp(*claimed).number(parents.len() as u64);
        for parent in parents {
            self.name(parent);
        }
        self.text(kind.as_str()).payload(payload).tag(match replaces {
            Replaces::Nothing => 0,
            Replaces::Past => 1,
            Replaces::PastByForce => 2,
        });
        self.optional(declares.as_ref(), |digest, declares| {
            let Declaration { sites, config } = &**declares;
            digest.number(sites.len() as u64);
            for site in sites {
                digest.text(site.as_str());
            }
            digest.optional(config.as_ref(), |digest, config| {
                digest.config(config);
            });
        });
        self.number(needs.len() as u64);
        for resource in needs {
            self.text(resource.as_str());
        }
        self.optional(asked_by.as_ref(), |digest, asker| {
            let Asker { principal, site } = asker;
            digest.text(principal).text(site.as_str());
        })
    }

    /// A config is signed as the document that gives it, byte by byte as [`Config::to_json`] writes it,
    /// and what was signed must be written so for ever. So a member that is new is left out of that
    /// document where it says nothing; it is not put between those there are in any other case; and an
    /// older one is written as it always was. (Who does not know the new one cannot read the entry, and
    /// never hashes it.) A member that is not named here does not compile: it would be nobody's word.
    fn config(&mut self, config: &Config) -> &mut Self {
        let Config { matrix: _, types: _, state: _, hooks: _ } = config;
        self.text(&config.to_json())
    }

    fn payload(&mut self, payload: &Payload) -> &mut Self {
        let file = |digest: &mut Self, file: &super::FileRef| {
            let super::FileRef { name, blob, size } = file;
            digest.text(name).raw(&blob.0).number(*size);
        };
        match payload {
            Payload::Shell { command, files } => {
                self.tag(0).text(command).number(files.len() as u64);
                files.iter().for_each(|it| file(self, it));
                self
            }
            Payload::Http { service, method, path, headers, body, service_ref } => {
                self.tag(1).text(service).text(method).text(path).headers(headers);
                self.optional(body.as_ref(), file);
                self.optional(service_ref.as_ref(), |digest, service_ref| {
                    let ServiceRef { meta_id, collection, act } = &**service_ref;
                    digest.text(meta_id.as_str()).text(collection).tag(match act {
                        super::Act::Creates => 0,
                        super::Act::CreatesAs => 1,
                        super::Act::Changes => 2,
                        super::Act::Deletes => 3,
                    });
                })
            }
        }
    }

    fn reply(&mut self, reply: &Reply) -> &mut Self {
        let Reply { id, stamp, operation, status, outcome } = reply;
        self.author(&id.author).number(id.n).stamp(*stamp).name(operation);
        match status {
            Status::Ok => self.tag(0),
            Status::Ko => self.tag(1),
            Status::Superseded { by } => self.tag(2).name(by),
            Status::InDoubt => self.tag(3),
            Status::Partial { done, of } => {
                self.tag(4).number(u64::from(*done)).number(u64::from(*of))
            }
        };
        self.optional(outcome.as_ref(), |digest, outcome| {
            digest.outcome(outcome);
        })
    }

    fn outcome(&mut self, outcome: &Outcome) -> &mut Self {
        let output = |digest: &mut Self, output: &super::Output| {
            let super::Output { text, truncated } = output;
            digest.text(text).flag(*truncated);
        };
        match outcome {
            Outcome::Exited { code, output: printed } => {
                self.tag(0).0.extend_from_slice(&code.to_le_bytes());
                output(self, printed);
                self
            }
            Outcome::Answered { status, headers, output: answered, done, local_id } => {
                self.tag(1).number(u64::from(*status)).headers(headers);
                output(self, answered);
                self.flag(*done).optional(local_id.as_ref(), |digest, id| {
                    digest.text(id.as_str());
                })
            }
            // As the answer that it was before it was an outcome of its own.
            Outcome::BrokenOff { reason } => {
                self.tag(1).number(u64::from(super::BROKEN_OFF_STATUS));
                self.headers(&[super::broken_off_header()]).text(reason).flag(false);
                self.flag(false).optional(None::<&super::LocalId>, |_, _| {})
            }
            Outcome::TimedOut { limit_ms } => self.tag(2).number(*limit_ms),
            Outcome::NotYet { reason, in_doubt } => self.tag(3).text(reason).flag(*in_doubt),
            Outcome::NotStarted { reason } => self.tag(4).text(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Incarnation;

    fn header(n: u64, after: u64, after_hash: EntryHash, said: u8) -> EntryHeader {
        let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        EntryHeader { author, n, resource: [7; 32], after, after_hash, said: [said; 32] }
    }

    fn evidence(one: EntryHeader, other: EntryHeader) -> Option<Lie> {
        let proof = Proof {
            by: SignedBy::Author,
            key: KeyId([1; 32]),
            index: 0,
            path: Vec::new(),
            signature: Arc::from([].as_slice()),
        };
        Evidence { one: (one, proof.clone()), other: (other, proof) }.lie()
    }

    #[test]
    fn two_entries_in_one_place_are_a_lie_and_a_chain_is_none() {
        let first = header(3, 0, EntryHash::UNSAID, 1);
        let second = header(5, 3, first.hash(), 1);
        assert_eq!(evidence(first.clone(), second.clone()), None, "an honest chain");
        assert_eq!(evidence(first.clone(), first.clone()), None, "the same twice");
        for (other, lie) in [
            (header(3, 0, EntryHash::UNSAID, 2), Lie::Fork { after: 0 }),
            (header(5, 3, first.hash(), 2), Lie::Fork { after: 0 }),
            (header(9, 3, first.hash(), 2), Lie::Fork { after: 0 }),
        ] {
            let against = if other.n == 3 { &first } else { &second };
            let found = evidence(against.clone(), other.clone());
            let expected = if other.n == 3 { lie } else { Lie::Fork { after: 3 } };
            assert_eq!(found, Some(expected), "{other:?}");
        }
        let disowning = header(5, 3, EntryHash([9; 32]), 1);
        assert_eq!(evidence(first.clone(), disowning), Some(Lie::Fork { after: 0 }));
        let elsewhere = EntryHeader { resource: [8; 32], ..second.clone() };
        assert_eq!(evidence(second, elsewhere), Some(Lie::NumberUsedTwice));
    }

    /// As they are on disks, whatever a config may say since.
    #[test]
    fn a_config_is_signed_as_it_always_was() {
        let hash = |document: &str| {
            let config = Config::parse(document).unwrap().config;
            blake3::Hash::from_bytes(FieldHasher::new("test").config(&config).end()).to_hex()
        };
        let bare = r#"{"ResolutionMatrix":[{"Before":"a","After":"b","Result":"take-both"}]}"#;
        let whole = r#"{"ResolutionMatrix":[
            {"Before":"a","After":"b","Result":"take-both-keep-order","Concurrent":"keep-both"}],
            "Types":{"a":{"Idempotent":true},"b":{"Undo":"u","Assigns":true,"Check":"c","Decompose":"d"}},
            "State":{"Read":"r","Write":"w"},
            "Hooks":[{"On":"applied","Command":"echo","Types":["a"]},
                     {"On":"failed","Url":"http://127.0.0.1:1/","Run":"once"}]}"#;
        expect_test::expect!["4b5d20e06705bd7b722cb6ed146f837ee4bee644e647fa198d75b8c03b7421a3"]
            .assert_eq(&hash(bare));
        expect_test::expect!["dbc09209341a6aa693ca6266b8bb90b53e7ada3726382f5e5e7139d125ffc397"]
            .assert_eq(&hash(whole));
    }

    proptest! {
        #[test]
        fn every_entry_of_a_tree_leads_to_its_root_and_no_other_entry_does(
            count in 1usize..40, other in any::<[u8; 32]>(),
        ) {
            let entries: Vec<_> =
                (0..count).map(|i| EntryHash([u8::try_from(i).unwrap(); 32])).collect();
            let tree = SealTree::over(SignedBy::Author, entries.iter().copied()).unwrap();
            let signature: Arc<[u8]> = Arc::from([1u8].as_slice());
            for (index, entry) in entries.iter().enumerate() {
                let proof = tree.proof(index, KeyId([0; 32]), &signature);
                prop_assert_eq!(proof.root(*entry), Some(tree.root()));
                let vouched = Proof { by: SignedBy::Voucher(SiteId::new("x").unwrap()), ..proof.clone() };
                prop_assert_ne!(vouched.root(*entry), Some(tree.root()));
                if EntryHash(other) != *entry {
                    prop_assert_ne!(proof.root(EntryHash(other)), Some(tree.root()));
                }
            }
        }
    }
}
