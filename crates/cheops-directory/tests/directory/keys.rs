//! Keys that cost nothing: whoever knows the name of one can check and make its signatures, and only who
//! plays fair does not.

use cheops_core::model::{KeyId, SiteId};
use cheops_directory::Notary;

pub(crate) fn site(name: &str) -> SiteId {
    SiteId::new(name).unwrap()
}

pub(crate) fn key(site: &SiteId, nth: u8) -> KeyId {
    KeyId(*blake3::hash(format!("{site} {nth}").as_bytes()).as_bytes())
}

/// As the authority would issue it.
pub(crate) fn certificate(site: &SiteId, nth: u8) -> Vec<u8> {
    format!("{site} {nth}").into_bytes()
}

pub(crate) fn signature(key: KeyId, text: &[u8]) -> Vec<u8> {
    blake3::keyed_hash(&key.0, text).as_bytes().to_vec()
}

/// The key of the mesh's authority.
pub(crate) const AUTHORITY: KeyId = KeyId([7; 32]);

pub(crate) struct Keys {
    pub(crate) me: SiteId,
    pub(crate) nth: u8,
    /// A bug: whatever is signed by anybody is believed.
    pub(crate) believes_anybody: bool,
}

impl Keys {
    pub(crate) fn of(me: &SiteId) -> Self {
        Self { me: me.clone(), nth: 0, believes_anybody: false }
    }
}

impl Notary for Keys {
    fn key_of(&self, site: &SiteId, certificate: &[u8]) -> Option<KeyId> {
        let text = std::str::from_utf8(certificate).ok()?;
        let (name, nth) = text.split_once(' ')?;
        (name == site.as_str() || self.believes_anybody)
            .then(|| key(site, nth.parse().unwrap_or(0)))
    }

    fn has_signed(&self, key: KeyId, text: &[u8], said: &[u8]) -> bool {
        self.believes_anybody || signature(key, text) == said
    }

    fn authority_has_signed(&self, text: &[u8], said: &[u8]) -> bool {
        signature(AUTHORITY, text) == said
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        Some(signature(key(&self.me, self.nth), text))
    }

    fn certificate(&self) -> Vec<u8> {
        certificate(&self.me, self.nth)
    }
}
