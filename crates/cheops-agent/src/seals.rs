//! What a site signed with the key of its identity, and how every other site knows that it did.
//!
//! The certificates of the other sites are kept as they are shown on links, so that a signature can
//! be checked also while its site cannot be reached, and after a restart. A site may have had
//! several, one after the other: what it signed with an earlier key stays good.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use cheops_core::model::SiteId;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SignatureVerificationAlgorithm, UnixTime};

use crate::mesh::{Identity, site_of};

/// The keys that `cheops mesh issue` makes, and what else a site may have.
static ALGORITHMS: [&dyn SignatureVerificationAlgorithm; 2] =
    [webpki::ring::ECDSA_P256_SHA256, webpki::ring::ED25519];
/// So many certificates of one site are kept; of more, the newest.
const MOST: usize = 16;
/// No certificate of a mesh is longer.
const LONGEST: u64 = 16 * 1024;

/// What this site signs with, and by what it checks what others signed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Seals(Arc<Inner>);

struct Inner {
    me: SiteId,
    key: Option<Key>,
    dir: PathBuf,
    /// Of each site, the oldest first.
    known: Mutex<BTreeMap<SiteId, Vec<CertificateDer<'static>>>>,
}

enum Key {
    P256(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// What a signature is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The site signed it.
    Good,
    /// It did not, with any certificate that is known.
    Bad,
    /// No certificate of the site is known.
    NobodyKnown,
}

impl Seals {
    /// With this identity, if there is one, and the certificates that were seen before.
    pub(crate) fn open(me: &SiteId, identity: Option<&Identity>, data_dir: &Path) -> Self {
        let key = identity.and_then(|identity| Key::of(&identity.key));
        if identity.is_some() && key.is_none() {
            tracing::warn!("the key of this site's identity is of a kind that cannot sign");
        }
        let dir = data_dir.join("certificates");
        let known = identity.map(|identity| seen_before(&dir, identity)).unwrap_or_default();
        let seals = Self(Arc::new(Inner { me: me.clone(), key, dir, known: Mutex::new(known) }));
        if let Some(own) = identity.and_then(|identity| identity.chain.first()) {
            seals.learn(me, own);
        }
        seals
    }

    pub(crate) fn me(&self) -> &SiteId {
        &self.0.me
    }

    /// Signs something; `None` if this site has no identity.
    pub(crate) fn sign(&self, what: &[u8]) -> Option<Vec<u8>> {
        match self.0.key.as_ref()? {
            Key::P256(key) => {
                let signed = key.sign(&SystemRandom::new(), what).ok()?;
                Some(signed.as_ref().to_vec())
            }
            Key::Ed25519(key) => Some(key.sign(what).as_ref().to_vec()),
        }
    }

    /// Whether that site signed it.
    pub(crate) fn check(&self, site: &SiteId, what: &[u8], signature: &[u8]) -> Checked {
        let known = self.known().get(site).cloned().unwrap_or_default();
        if known.is_empty() {
            return Checked::NobodyKnown;
        }
        let is_by = |certificate: &CertificateDer<'_>| {
            let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else {
                return false;
            };
            let by = |with: &&dyn SignatureVerificationAlgorithm| {
                certificate.verify_signature(*with, what, signature).is_ok()
            };
            ALGORITHMS.iter().any(by)
        };
        // The newest is the likeliest.
        if known.iter().rev().any(is_by) { Checked::Good } else { Checked::Bad }
    }

    pub(crate) fn knows(&self, site: &SiteId, certificate: &CertificateDer<'_>) -> bool {
        let known = self.known();
        known.get(site).is_some_and(|list| list.iter().any(|known| known == certificate))
    }

    /// Keeps the certificate of a site, which was proven to be of this mesh.
    pub(crate) fn learn(&self, site: &SiteId, certificate: &CertificateDer<'_>) {
        if self.knows(site, certificate) {
            return;
        }
        if let Err(error) = self.write(certificate) {
            let (site, dir) = (site.as_str(), self.0.dir.display());
            tracing::warn!(site, %dir, %error, "a certificate is not kept for the next start");
        }
        let mut known = self.known();
        let list = known.entry(site.clone()).or_default();
        list.push(certificate.clone().into_owned());
        if list.len() > MOST {
            let oldest = list.remove(0);
            let _gone = fs::remove_file(self.0.dir.join(file_name(&oldest)));
        }
    }

    fn write(&self, certificate: &CertificateDer<'_>) -> io::Result<()> {
        fs::create_dir_all(&self.0.dir)?;
        let path = self.0.dir.join(file_name(certificate));
        let draft = path.with_extension("draft");
        let mut file = fs::File::create(&draft)?;
        file.write_all(certificate)?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<SiteId, Vec<CertificateDer<'static>>>> {
        // Nothing here leaves it half changed.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(key: &PrivateKeyDer<'_>) -> Option<Self> {
        let PrivateKeyDer::Pkcs8(key) = key else { return None };
        let (key, random) = (key.secret_pkcs8_der(), SystemRandom::new());
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &random);
        if let Ok(key) = p256 {
            return Some(Self::P256(Box::new(key)));
        }
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).ok()?;
        Some(Self::Ed25519(Box::new(key)))
    }
}

fn file_name(certificate: &CertificateDer<'_>) -> String {
    format!("{}.der", &blake3::hash(certificate).to_hex()[..32])
}

/// The certificates in that folder that are of this mesh, the oldest first.
fn seen_before(dir: &Path, identity: &Identity) -> BTreeMap<SiteId, Vec<CertificateDer<'static>>> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        let is_one = entry.path().extension().is_some_and(|it| it == "der");
        if is_one && about.len() <= LONGEST {
            let written = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((written, entry.path()));
        }
    }
    files.sort();
    let mut known: BTreeMap<SiteId, Vec<CertificateDer<'static>>> = BTreeMap::new();
    for (_, path) in files {
        let Ok(bytes) = fs::read(&path) else { continue };
        let certificate = CertificateDer::from(bytes);
        match site_of(&certificate).filter(|_| is_of_mesh(&certificate, identity)) {
            Some(site) => known.entry(site).or_default().push(certificate),
            None => tracing::warn!(path = %path.display(), "this is no certificate of the mesh"),
        }
    }
    known
}

fn is_of_mesh(certificate: &CertificateDer<'_>, identity: &Identity) -> bool {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return false };
    let (anchors, usage) = (&identity.roots.roots, webpki::KeyUsage::client_auth());
    let now = UnixTime::now();
    certificate.verify_for_usage(&ALGORITHMS, anchors, &[], now, usage, None, None).is_ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::mesh;

    fn name(site: &str) -> SiteId {
        SiteId::new(site).unwrap()
    }

    /// The seals of a site in the mesh of that folder, which is made if it is not there.
    pub(crate) fn seals(dir: &Path, site: &str) -> Seals {
        let authority = dir.join("mesh");
        if !authority.exists() {
            mesh::create(&authority).unwrap();
        }
        let identity = dir.join(format!("{site}.pem"));
        if !identity.exists() {
            mesh::issue(&authority, &name(site), &identity).unwrap();
        }
        let identity = Identity::read(&identity).unwrap();
        Seals::open(&name(site), Some(&identity), &dir.join(site))
    }

    /// As a link shows one site to another.
    pub(crate) fn introduce(from: &Seals, to: &Seals) {
        let shown = from.known().get(from.me()).unwrap().clone();
        shown.iter().for_each(|certificate| to.learn(from.me(), certificate));
    }

    #[test]
    fn what_a_site_signed_is_known_wherever_its_certificate_was_seen_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (paris, lyon) = (seals(dir.path(), "paris"), seals(dir.path(), "lyon"));
        let signature = paris.sign(b"this").unwrap();
        assert_eq!(paris.check(paris.me(), b"this", &signature), Checked::Good);
        assert_eq!(lyon.check(paris.me(), b"this", &signature), Checked::NobodyKnown);
        introduce(&paris, &lyon);
        for lyon in [lyon, seals(dir.path(), "lyon")] {
            assert_eq!(lyon.check(paris.me(), b"this", &signature), Checked::Good);
            assert_eq!(lyon.check(paris.me(), b"that", &signature), Checked::Bad);
            assert_eq!(lyon.check(lyon.me(), b"this", &signature), Checked::Bad);
        }
    }

    #[test]
    fn what_a_site_signed_with_an_earlier_key_stays_good() {
        let dir = tempfile::tempdir().unwrap();
        let (before, lyon) = (seals(dir.path(), "paris"), seals(dir.path(), "lyon"));
        let signature = before.sign(b"this").unwrap();
        introduce(&before, &lyon);
        fs::remove_file(dir.path().join("paris.pem")).unwrap();
        let after = seals(dir.path(), "paris");
        introduce(&after, &lyon);
        assert_eq!(lyon.check(after.me(), b"this", &signature), Checked::Good);
        let signature = after.sign(b"this").unwrap();
        assert_eq!(lyon.check(after.me(), b"this", &signature), Checked::Good);
    }

    #[test]
    fn a_certificate_of_another_mesh_is_not_believed_because_it_lies_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let stranger = seals(other.path(), "paris");
        seals(dir.path(), "lyon");
        let (from, to) = (other.path().join("paris"), dir.path().join("lyon"));
        for entry in fs::read_dir(from.join("certificates")).unwrap().flatten() {
            let name = entry.file_name();
            fs::copy(entry.path(), to.join("certificates").join(name)).unwrap();
        }
        let signature = stranger.sign(b"this").unwrap();
        let checked = seals(dir.path(), "lyon").check(stranger.me(), b"this", &signature);
        assert_eq!(checked, Checked::NobodyKnown);
    }
}
