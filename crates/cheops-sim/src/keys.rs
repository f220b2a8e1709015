//! Keys of simulated sites: as hard to forge as real ones, and a thousand times cheaper. Whoever
//! runs a site has its key; the checks know all of them.

use std::sync::Arc;

use cheops_core::engine::Sealer;
use cheops_core::model::{
    Author, Entry, EntryHash, Evidence, KeyId, Proof, SealTree, SignedBy, SiteId,
};

/// The key of one site.
#[derive(Debug, Clone)]
pub struct SimKey {
    secret: [u8; 32],
}

impl SimKey {
    /// That site's.
    pub fn of(site: &SiteId) -> Self {
        let secret = *blake3::hash(site.as_str().as_bytes()).as_bytes();
        Self { secret }
    }

    /// Its name.
    pub fn id(&self) -> KeyId {
        KeyId(*blake3::hash(&self.secret).as_bytes())
    }

    fn sign(&self, root: &[u8; 32]) -> [u8; 32] {
        *blake3::keyed_hash(&self.secret, &Proof::signed_text(root)).as_bytes()
    }

    /// Whether the entry is the word of who it says.
    pub fn is_authors(entry: &Entry) -> bool {
        entry.proof().is_some_and(|proof| proves(&entry.id().author, entry.hash(), proof))
    }

    /// Whether evidence convicts whom it accuses.
    pub fn convicts(evidence: &Evidence) -> bool {
        let signed = [&evidence.one, &evidence.other]
            .iter()
            .all(|(header, proof)| proves(&header.author, header.hash(), proof));
        signed && evidence.lie().is_some()
    }
}

fn proves(author: &Author, hash: EntryHash, proof: &Proof) -> bool {
    let signer = match &proof.by {
        SignedBy::Author => &author.site,
        SignedBy::Voucher(site) => site,
    };
    let key = SimKey::of(signer);
    let Some(root) = proof.root(hash) else { return false };
    proof.key == key.id() && *proof.signature == key.sign(&root)
}

impl Sealer for SimKey {
    fn seal(&self, entries: &[&Entry]) {
        // In one go as a real site does, or one by one where it wrote in the name of another: then
        // nobody believes it.
        let Some(tree) = SealTree::over(SignedBy::Author, entries.iter().map(|it| it.hash()))
        else {
            return;
        };
        let signature: Arc<[u8]> = Arc::from(self.sign(&tree.root()).as_slice());
        for (index, entry) in entries.iter().enumerate() {
            entry.seal(tree.proof(index, self.id(), &signature));
        }
    }
}
