//! Signatures: made with the key of a site's identity, checked by its certificate.
//!
//! A site signs all entries of one commit at once, since a signature costs far more than a hash:
//! see [`Proof`]. Who checks remembers what was found good, so that the entries of one commit cost
//! one check.
//!
//! There are far more checks than signatures, since each other site makes one: checks of Ed25519 are
//! by the library that is quickest at them, with keys that are read once, and signatures by the one
//! that is in the tree for TLS.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cheops_core::engine::Sealer;
use cheops_core::model::{
    Author, Entry, EntryHash, Evidence, KeyId, MOST_SIGNED_AT_ONCE, Proof, SealTree, SignedBy,
    SiteId,
};
use ed25519_dalek::{Verifier, VerifyingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

/// Why a key cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is neither of the kinds that identities have.
    #[error("the key is neither an Ed25519 nor a P-256 key in PKCS #8")]
    Unknown,
    /// It belongs to another certificate.
    #[error("the key is not the one that the certificate speaks of")]
    OfAnother,
    /// The certificate cannot be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Why a certificate is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be read.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(webpki::Error),
    /// It does not name exactly one site.
    #[error("the certificate does not name one site")]
    Nameless,
    /// The mesh's authority did not issue it.
    #[error("the certificate is not of this mesh: {0}")]
    OfAnotherMesh(webpki::Error),
    /// Anybody could sign with its key.
    #[error("the certificate has a key that anybody could sign with")]
    Weak,
    /// There are more than there can be.
    #[error("there are more certificates of `{0}` than one site can have")]
    TooMany(SiteId),
}

/// Why an entry is not taken for its author's word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Nobody signed it.
    #[error("entry `{author}` {n} is not signed")]
    Unsigned {
        /// Whose it is said to be.
        author: Author,
        /// Its number.
        n: u64,
    },
    /// Its signer's certificate is not known.
    #[error("the certificate with key {0} is not known")]
    UnknownKey(KeyId),
    /// Somebody else signed it.
    #[error("entry of `{author}` is signed by `{signer}`")]
    OfAnother {
        /// Whose it is said to be.
        author: Author,
        /// Whose key it was.
        signer: SiteId,
    },
    /// The signature is not over this.
    #[error("the signature of an entry of `{0}` is not good")]
    Bad(Author),
}

/// What the signature of a text is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextChecked {
    /// The site signed it.
    Good,
    /// It did not, with any certificate that is known.
    Bad,
    /// No certificate of the site is known.
    NobodyKnown,
}

/// The site that a certificate speaks for.
pub fn site_of(certificate: &CertificateDer<'_>) -> Option<SiteId> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let mut names = parsed.valid_dns_names();
    let name = names.next()?;
    if names.next().is_some() {
        return None;
    }
    SiteId::new(name).ok()
}

const ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 2] =
    [webpki::ring::ED25519, webpki::ring::ECDSA_P256_SHA256];

fn key_of(certificate: &EndEntityCert<'_>) -> KeyId {
    KeyId(*blake3::hash(certificate.subject_public_key_info().as_ref()).as_bytes())
}

/// What a certificate's holder signs with, as far as others see it.
#[derive(Debug)]
enum PublicKey {
    Ed25519(VerifyingKey),
    /// Read anew each time: only identities from before format 4 have them.
    P256(CertificateDer<'static>),
}

/// How the public key of an Ed25519 certificate begins (RFC 8410): the key is all that follows.
const ED25519_BEGINS: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl PublicKey {
    fn of(certificate: &CertificateDer<'_>) -> Result<Self, CertificateError> {
        let parsed = EndEntityCert::try_from(certificate).map_err(CertificateError::Unreadable)?;
        let info = parsed.subject_public_key_info();
        let Some(key) = info.as_ref().strip_prefix(&ED25519_BEGINS) else {
            return Ok(Self::P256(certificate.clone().into_owned()));
        };
        let key =
            <&[u8; 32]>::try_from(key).ok().and_then(|key| VerifyingKey::from_bytes(key).ok());
        match key.filter(|key| !key.is_weak()) {
            Some(key) => Ok(Self::Ed25519(key)),
            None => Err(CertificateError::Weak),
        }
    }

    fn has_signed_root(&self, root: &[u8; 32], signature: &[u8]) -> bool {
        self.has_signed(&Proof::signed_text(root), signature)
    }

    fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(text, &signature).is_ok()),
            Self::P256(certificate) => EndEntityCert::try_from(certificate).is_ok_and(|it| {
                it.verify_signature(webpki::ring::ECDSA_P256_SHA256, text, signature).is_ok()
            }),
        }
    }
}

/// What a site signs with.
#[derive(Debug)]
pub struct SiteKey {
    id: KeyId,
    pair: SigningPair,
    random: SystemRandom,
}

#[derive(Debug)]
enum SigningPair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl SiteKey {
    /// From the key of an identity, in PKCS #8, and its certificate.
    pub fn new(pkcs8: &[u8], certificate: &CertificateDer<'_>) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pair = if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8) {
            SigningPair::Ed25519(pair)
        } else {
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random);
            SigningPair::P256(pair.map_err(|_not_that_either| KeyError::Unknown)?)
        };
        let parsed = EndEntityCert::try_from(certificate)
            .map_err(|error| KeyError::Certificate(CertificateError::Unreadable(error)))?;
        let key = Self { id: key_of(&parsed), pair, random };
        let root = [7; 32];
        let public = PublicKey::of(certificate)?;
        if !public.has_signed_root(&root, &key.sign(&root)) {
            return Err(KeyError::OfAnother);
        }
        Ok(key)
    }

    /// Its name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    fn sign(&self, root: &[u8; 32]) -> Arc<[u8]> {
        // Where there is none, all others refuse the entry, and loudly.
        self.sign_text(&Proof::signed_text(root)).unwrap_or_default().into()
    }

    /// Signs a text that begins like nothing else this key signs. It fails only where the system
    /// has no random numbers.
    pub fn sign_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.pair {
            SigningPair::Ed25519(pair) => Some(pair.sign(text).as_ref().to_vec()),
            SigningPair::P256(pair) => Some(pair.sign(&self.random, text).ok()?.as_ref().to_vec()),
        }
    }

    fn seal_as(&self, by: &SignedBy, entries: &[&Entry]) {
        for chunk in entries.chunks(MOST_SIGNED_AT_ONCE) {
            let hashes = chunk.iter().map(|entry| entry.hash());
            let Some(tree) = SealTree::over(by.clone(), hashes) else { continue };
            let signature = self.sign(&tree.root());
            for (index, entry) in chunk.iter().enumerate() {
                entry.seal(tree.proof(index, self.id, &signature));
            }
        }
    }

    /// Answers, in the name of that site, for entries that nobody signed: it vouches for those from
    /// before there were signatures, and signs as their author what it wrote itself since, when it had
    /// no key yet.
    pub fn answer_for(&self, site: &SiteId, entries: &[&Entry]) {
        let is_own = |entry: &&&Entry| {
            let author = &entry.id().author;
            author.site == *site && !author.incarnation.is_from_before_signatures()
        };
        let (own, old): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_own);
        self.seal_as(&SignedBy::Author, &own);
        self.seal_as(&SignedBy::Voucher(site.clone()), &old);
    }
}

impl Sealer for SiteKey {
    fn seal(&self, entries: &[&Entry]) {
        self.seal_as(&SignedBy::Author, entries);
    }
}

/// So many certificates of one site are known at a time: each time it is issued a new one.
const MOST_KEYS_OF_A_SITE: usize = 64;
/// So many good signatures are remembered.
const MOST_REMEMBERED: usize = 8_192;

/// The certificates of a mesh's sites, and whose word an entry is by them.
#[derive(Debug, Clone)]
pub struct Keyring(Arc<KeyringState>);

/// Roots with the key and the signature that fit them.
type GoodRoots = HashMap<[u8; 32], (KeyId, Arc<[u8]>)>;

#[derive(Debug)]
struct KeyringState {
    anchors: Vec<TrustAnchor<'static>>,
    known: RwLock<BTreeMap<KeyId, Arc<KnownKey>>>,
    /// The roots that were found to be signed, by which key and with which signature.
    good: Mutex<GoodRoots>,
}

#[derive(Debug)]
struct KnownKey {
    site: SiteId,
    certificate: CertificateDer<'static>,
    public: PublicKey,
}

impl Keyring {
    /// Of a mesh whose authority has these certificates.
    pub fn new(
        authorities: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, CertificateError> {
        let anchor = |certificate: CertificateDer<'static>| {
            let anchor = webpki::anchor_from_trusted_cert(&certificate);
            anchor.map(|anchor| anchor.to_owned()).map_err(CertificateError::Unreadable)
        };
        let anchors = authorities.into_iter().map(anchor).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(KeyringState {
            anchors,
            known: RwLock::default(),
            good: Mutex::default(),
        })))
    }

    /// Takes in a certificate, if the mesh's authority issued it; and says whose it is, and whether
    /// it is new.
    pub fn add(
        &self,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<(SiteId, KeyId, bool), CertificateError> {
        let parsed = EndEntityCert::try_from(certificate).map_err(CertificateError::Unreadable)?;
        let key = key_of(&parsed);
        if let Some(known) = self.known(key) {
            return Ok((known.site.clone(), key, false));
        }
        let site = site_of(certificate).ok_or(CertificateError::Nameless)?;
        parsed
            .verify_for_usage(
                &ALGORITHMS,
                &self.0.anchors,
                &[],
                now,
                KeyUsage::client_auth(),
                None,
                None,
            )
            .map_err(CertificateError::OfAnotherMesh)?;
        let public = PublicKey::of(certificate)?;
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.values().filter(|other| other.site == site).count() >= MOST_KEYS_OF_A_SITE {
            return Err(CertificateError::TooMany(site));
        }
        let certificate = certificate.clone().into_owned();
        let is_new = known
            .insert(key, Arc::new(KnownKey { site: site.clone(), certificate, public }))
            .is_none();
        Ok((site, key, is_new))
    }

    /// The certificate with that key, for a site that may not know it.
    pub fn certificate(&self, key: KeyId) -> Option<CertificateDer<'static>> {
        self.known(key).map(|known| known.certificate.clone())
    }

    /// Whether that site signed a text, with whichever of its keys.
    pub fn check_text(&self, site: &SiteId, text: &[u8], signature: &[u8]) -> TextChecked {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut of_site = known.values().filter(|other| other.site == *site).peekable();
        if of_site.peek().is_none() {
            return TextChecked::NobodyKnown;
        }
        let is_signed = of_site.any(|known| known.public.has_signed(text, signature));
        if is_signed { TextChecked::Good } else { TextChecked::Bad }
    }

    /// Whether the entry is the word of who it says.
    pub fn check(&self, entry: &Entry) -> Result<(), ProofError> {
        let id = entry.id();
        let unsigned = || ProofError::Unsigned { author: id.author.clone(), n: id.n };
        self.check_proof(&id.author, entry.hash(), entry.proof().ok_or_else(unsigned)?)
    }

    /// Whether both sides of evidence are the word of who it accuses, and prove a lie.
    pub fn convicts(&self, evidence: &Evidence) -> Result<bool, ProofError> {
        for (header, proof) in [&evidence.one, &evidence.other] {
            self.check_proof(&header.author, header.hash(), proof)?;
        }
        Ok(evidence.lie().is_some())
    }

    fn check_proof(
        &self,
        author: &Author,
        hash: EntryHash,
        proof: &Proof,
    ) -> Result<(), ProofError> {
        let known = self.known(proof.key).ok_or(ProofError::UnknownKey(proof.key))?;
        let says = match &proof.by {
            SignedBy::Author => &author.site,
            SignedBy::Voucher(site) => site,
        };
        if *says != known.site {
            let signer = known.site.clone();
            return Err(ProofError::OfAnother { author: author.clone(), signer });
        }
        let bad = || ProofError::Bad(author.clone());
        let root = proof.root(hash).ok_or_else(bad)?;
        let is_it = |(key, signature): &(KeyId, Arc<[u8]>)| {
            *key == proof.key && *signature == proof.signature
        };
        if self.good().get(&root).is_some_and(is_it) {
            return Ok(());
        }
        if !known.public.has_signed_root(&root, &proof.signature) {
            return Err(bad());
        }
        let mut good = self.good();
        if good.len() >= MOST_REMEMBERED {
            good.clear();
        }
        good.insert(root, (proof.key, Arc::clone(&proof.signature)));
        Ok(())
    }

    fn known(&self, key: KeyId) -> Option<Arc<KnownKey>> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn good(&self) -> std::sync::MutexGuard<'_, GoodRoots> {
        self.0.good.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
