//! Whose word an entry is, by the kinds of keys that identities have had.

use std::sync::Arc;

use cheops_core::engine::Sealer;
use cheops_core::model::{Entry, EntryBody, Proof};
use cheops_record::{CertificateError, KeyError, Keyring, ProofError, SiteKey};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SignatureAlgorithm,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::samples;

/// Identities had keys of P-256 up to format 3, and have keys of Ed25519 since.
const KINDS: [&SignatureAlgorithm; 2] = [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256];

struct Mesh {
    issuer: Issuer<'static, KeyPair>,
    keyring: Keyring,
}

impl Mesh {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let keyring = Keyring::new([authority.der().clone()]).unwrap();
        Self { issuer: Issuer::new(params, key), keyring }
    }

    fn certificate(&self, site: &str, key: &impl rcgen::PublicKeyData) -> CertificateDer<'static> {
        let mut params = CertificateParams::new([site.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.signed_by(key, &self.issuer).unwrap().der().clone()
    }

    /// A site of that name, whose certificate is known.
    fn site(&self, name: &str, kind: &'static SignatureAlgorithm) -> SiteKey {
        let key = KeyPair::generate_for(kind).unwrap();
        let certificate = self.certificate(name, &key);
        self.keyring.add(&certificate, UnixTime::now()).unwrap();
        SiteKey::new(&key.serialize_der(), &certificate).unwrap()
    }
}

/// One of site `paris`, as nobody has signed it yet.
fn entry() -> Arc<Entry> {
    let operation = samples::operation(samples::shell());
    samples::entry(EntryBody::Operation(operation), Vec::new(), None)
}

#[test]
fn an_entry_is_its_authors_word_whatever_the_kind_of_its_key() {
    for kind in KINDS {
        let mesh = Mesh::new();
        let paris = mesh.site("paris", kind);
        let entries = [entry(), entry(), entry()];
        assert!(matches!(mesh.keyring.check(&entries[0]), Err(ProofError::Unsigned { .. })));
        paris.seal(&entries.each_ref().map(|entry| &**entry));
        for entry in &entries {
            assert_eq!(mesh.keyring.check(entry), Ok(()), "{kind:?}");
            assert_eq!(mesh.keyring.check(entry), Ok(()), "and again, {kind:?}");
        }
    }
}

#[test]
fn no_bit_of_a_signature_can_be_another() {
    for kind in KINDS {
        let mesh = Mesh::new();
        let signed = entry();
        mesh.site("paris", kind).seal(&[&signed]);
        let good = signed.proof().unwrap();
        let mut tampered: Vec<Vec<u8>> = (0..good.signature.len() * 8)
            .map(|bit| {
                let mut signature = good.signature.to_vec();
                signature[bit / 8] ^= 1 << (bit % 8);
                signature
            })
            .collect();
        tampered.extend([Vec::new(), good.signature[1..].to_vec(), vec![0; 64], vec![0xff; 64]]);
        for signature in tampered {
            let other = entry();
            other.seal(Proof { signature: signature.clone().into(), ..good.clone() });
            let checked = mesh.keyring.check(&other);
            assert!(matches!(checked, Err(ProofError::Bad(_))), "{kind:?} {signature:?}");
        }
        assert_eq!(mesh.keyring.check(&signed), Ok(()), "{kind:?}");
    }
}

#[test]
fn nobody_signs_for_another() {
    for kind in KINDS {
        let mesh = Mesh::new();
        let signed = entry();
        mesh.site("lyon", kind).seal(&[&signed]);
        let checked = mesh.keyring.check(&signed);
        assert!(matches!(checked, Err(ProofError::OfAnother { .. })), "{kind:?} {checked:?}");
    }
}

#[test]
fn a_key_is_of_no_use_with_the_certificate_of_another() {
    for kind in KINDS {
        let mesh = Mesh::new();
        let (one, other) =
            (KeyPair::generate_for(kind).unwrap(), KeyPair::generate_for(kind).unwrap());
        let certificate = mesh.certificate("paris", &other);
        let made = SiteKey::new(&one.serialize_der(), &certificate);
        assert!(matches!(made, Err(KeyError::OfAnother)), "{kind:?}");
    }
}

/// The neutral point of the curve: with it as its key, a signature fits every text.
struct NoKey;

impl rcgen::PublicKeyData for NoKey {
    fn der_bytes(&self) -> &[u8] {
        const NEUTRAL: [u8; 32] = {
            let mut point = [0; 32];
            point[0] = 1;
            point
        };
        &NEUTRAL
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

#[test]
fn a_certificate_whose_key_fits_every_text_is_not_believed() {
    let mesh = Mesh::new();
    let certificate = mesh.certificate("paris", &NoKey);
    let added = mesh.keyring.add(&certificate, UnixTime::now());
    assert_eq!(added, Err(CertificateError::Weak));
}
