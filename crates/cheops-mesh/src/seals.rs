//! What a site signed with the key of its identity apart from entries, and how every other site
//! knows that it did: by the same certificates. A site may have had several, one after the other:
//! what it signed with an earlier key stays good.

use std::sync::Arc;

use cheops_core::model::SiteId;
use cheops_record::{Keyring, SiteKey};

pub use cheops_record::TextChecked as Checked;

/// What this site signs with, and by what it checks what others signed. Cheap to clone.
#[derive(Clone)]
pub struct Seals {
    me: SiteId,
    key: Option<Arc<SiteKey>>,
    keyring: Option<Keyring>,
}

impl Seals {
    /// With the key of its identity, if it has one, and the certificates that are known.
    pub fn new(me: &SiteId, key: Option<Arc<SiteKey>>, keyring: Option<Keyring>) -> Self {
        Self { me: me.clone(), key, keyring }
    }

    /// This site.
    pub fn me(&self) -> &SiteId {
        &self.me
    }

    /// Signs something; `None` if this site has no identity.
    pub fn sign(&self, what: &[u8]) -> Option<Vec<u8>> {
        self.key.as_ref()?.sign_text(what)
    }

    /// Whether that site signed it.
    pub fn check(&self, site: &SiteId, what: &[u8], signature: &[u8]) -> Checked {
        let unknown = Checked::NobodyKnown;
        self.keyring.as_ref().map_or(unknown, |keyring| keyring.check_text(site, what, signature))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustls::pki_types::UnixTime;

    use super::*;
    use crate::identity::{Identity, create, issue};

    fn name(site: &str) -> SiteId {
        SiteId::new(site).unwrap()
    }

    fn identity(dir: &Path, site: &str) -> Identity {
        let authority = dir.join("mesh");
        if !authority.exists() {
            create(&authority).unwrap();
        }
        let identity = dir.join(format!("{site}.pem"));
        if !identity.exists() {
            issue(&authority, &name(site), &identity).unwrap();
        }
        Identity::read(&identity).unwrap()
    }

    fn learns(seals: &Seals, identity: &Identity) {
        let keyring = seals.keyring.as_ref().unwrap();
        keyring.add(&identity.chain[0], UnixTime::now()).unwrap();
    }

    /// The seals of a site in the mesh of that folder, which is made if it is not there.
    fn seals(dir: &Path, site: &str) -> Seals {
        let identity = identity(dir, site);
        let key = Arc::new(identity.site_key().unwrap());
        let seals = Seals::new(&name(site), Some(key), Some(identity.keyring().unwrap()));
        learns(&seals, &identity);
        seals
    }

    /// As a link shows one site of the folder to another.
    fn introduce(dir: &Path, from: &Seals, to: &Seals) {
        learns(to, &identity(dir, from.me().as_str()));
    }

    #[test]
    fn what_a_site_signed_is_known_wherever_its_certificate_was_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (paris, lyon) = (seals(dir.path(), "paris"), seals(dir.path(), "lyon"));
        let signature = paris.sign(b"this").unwrap();
        assert_eq!(paris.check(paris.me(), b"this", &signature), Checked::Good);
        assert_eq!(lyon.check(paris.me(), b"this", &signature), Checked::NobodyKnown);
        introduce(dir.path(), &paris, &lyon);
        assert_eq!(lyon.check(paris.me(), b"this", &signature), Checked::Good);
        assert_eq!(lyon.check(paris.me(), b"that", &signature), Checked::Bad);
        assert_eq!(lyon.check(lyon.me(), b"this", &signature), Checked::Bad);
    }

    #[test]
    fn what_a_site_signed_with_an_earlier_key_stays_good() {
        let dir = tempfile::tempdir().unwrap();
        let (before, lyon) = (seals(dir.path(), "paris"), seals(dir.path(), "lyon"));
        let signature = before.sign(b"this").unwrap();
        introduce(dir.path(), &before, &lyon);
        std::fs::remove_file(dir.path().join("paris.pem")).unwrap();
        let after = seals(dir.path(), "paris");
        introduce(dir.path(), &after, &lyon);
        assert_eq!(lyon.check(after.me(), b"this", &signature), Checked::Good);
        let signature = after.sign(b"this").unwrap();
        assert_eq!(lyon.check(after.me(), b"this", &signature), Checked::Good);
    }

    #[test]
    fn a_certificate_of_another_mesh_is_not_believed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stranger = identity(other.path(), "paris");
        let lyon = seals(dir.path(), "lyon");
        let keyring = lyon.keyring.as_ref().unwrap();
        assert!(keyring.add(&stranger.chain[0], UnixTime::now()).is_err());
    }
}
