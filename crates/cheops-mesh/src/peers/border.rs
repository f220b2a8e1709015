//! What is let in over a link: only entries that are their author's word, whoever passes them on,
//! and nothing from who was shown to lie.
//!
//! A site signs with the key of its identity. Its certificate is known from the link to it; those of
//! sites that cannot be reached are sent along before the first entry that needs them, and kept.

use std::collections::{BTreeSet, HashMap};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cheops_core::causes;
use cheops_core::engine::{Message, Update};
use cheops_core::model::{KeyId, SiteId};
use cheops_record::{CertificateError, Keyring, ProofError};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::frame::LinkError;
use super::lock;
use crate::ports::CertificateStore;

/// Who decides what is let in. Cheap to clone.
#[derive(Clone)]
pub struct Border(Arc<BorderState>);

struct BorderState {
    keyring: Keyring,
    kept: Arc<dyn CertificateStore>,
    /// Keys of sites that were shown to lie.
    set_apart: Mutex<BTreeSet<KeyId>>,
    /// Who was last warned of for what kind of thing, and when: who sends what cannot be sends it again
    /// and again, each time under another number.
    warned: Mutex<HashMap<(SiteId, Discriminant<ProofError>), Instant>>,
}

/// After so long the same is said again.
const STILL: Duration = Duration::from_secs(600);
/// So many warnings are remembered.
const MOST_WARNED: usize = 256;

/// What was let in of a message, and whether something was not.
pub(super) struct Admitted {
    pub(super) message: Option<Message>,
    /// Whether something was refused, and that was not so a while ago.
    pub(super) is_news: bool,
}

impl Border {
    /// Of a site whose mesh has these certificates. Those of other sites that it kept are known.
    pub fn new(keyring: Keyring, kept: Arc<dyn CertificateStore>) -> Self {
        match kept.kept() {
            Ok(known) => {
                for certificate in known {
                    if let Err(error) = keyring.add(&certificate.into(), UnixTime::now()) {
                        tracing::warn!(error = causes(&error), "a certificate that was kept");
                    }
                }
            }
            Err(error) => tracing::error!(error = causes(&*error), "certificates cannot be read"),
        }
        let (set_apart, warned) = (Mutex::default(), Mutex::default());
        Self(Arc::new(BorderState { keyring, kept, set_apart, warned }))
    }

    /// Takes in a certificate, if it is of this mesh, and keeps it: what is signed by it has to be
    /// passed on after a restart, too.
    pub fn learn(&self, certificate: &[u8]) -> Result<(SiteId, KeyId), CertificateError> {
        let certificate = CertificateDer::from(certificate);
        let (site, key, is_new) = self.0.keyring.add(&certificate, UnixTime::now())?;
        if is_new && let Err(error) = self.0.kept.keep(key, &certificate) {
            // It is known until the next start, and comes again with what it signed.
            tracing::error!(%site, error = causes(&*error), "a certificate cannot be kept");
        }
        Ok((site, key))
    }

    /// The same of what is shown on a link. It is written to the disk, once for each key that a site
    /// ever has.
    pub(super) async fn learn_soon(
        &self,
        certificate: CertificateDer<'static>,
    ) -> Result<KeyId, LinkError> {
        let border = self.clone();
        let learning = tokio::task::spawn_blocking(move || border.learn(&certificate));
        let learnt = learning.await.map_err(|_ended| LinkError::Broken)?;
        let (_, key) = learnt.map_err(|error| LinkError::Certificate(causes(&error)))?;
        Ok(key)
    }

    /// By which sites are known.
    pub fn keyring(&self) -> Keyring {
        self.0.keyring.clone()
    }

    /// From now on nothing is let in from who holds that key.
    pub(super) fn set_apart(&self, key: KeyId) {
        lock(&self.0.set_apart).insert(key);
    }

    pub(super) fn is_set_apart(&self, key: KeyId) -> bool {
        lock(&self.0.set_apart).contains(&key)
    }

    /// The certificates that the other side needs for this message and was not sent on this link.
    pub(super) fn to_send(&self, message: &Message, sent: &mut BTreeSet<KeyId>) -> Vec<Vec<u8>> {
        let mut unsent = Vec::new();
        let mut needs = |key: KeyId| {
            if sent.insert(key) {
                unsent.extend(self.0.keyring.certificate(key).map(|known| known.to_vec()));
            }
        };
        match message {
            Message::Heartbeat(_) => {}
            Message::Update(update) => {
                let proofs = update.entries.iter().filter_map(|entry| entry.proof());
                proofs.for_each(|proof| needs(proof.key));
            }
            Message::Evidence(evidence) => evidence.keys().for_each(needs),
        }
        unsent
    }

    /// What of a message is let in: entries that their author signed, in their order.
    pub(super) fn admit(&self, from: &SiteId, message: Message) -> Admitted {
        let (message, refused) = match message {
            Message::Heartbeat(_) => (Some(message), None),
            Message::Evidence(ref evidence) => match self.0.keyring.convicts(evidence) {
                Ok(true) => (Some(message), None),
                Ok(false) => (None, None),
                Err(refused) => (None, Some(refused)),
            },
            Message::Update(update) => self.admit_update(update),
        };
        let is_news = refused.is_some_and(|refused| {
            metrics::counter!("cheops_entries_refused_total").increment(1);
            self.warn(from, &refused)
        });
        Admitted { message, is_news }
    }

    fn admit_update(&self, mut update: Box<Update>) -> (Option<Message>, Option<ProofError>) {
        let mut refused = None;
        update.entries.retain(|entry| match self.0.keyring.check(entry) {
            Ok(()) => true,
            Err(error) => {
                refused.get_or_insert(error);
                false
            }
        });
        (Some(Message::Update(update)), refused)
    }

    /// Warns, unless the same was said a while ago; and whether it was.
    fn warn(&self, from: &SiteId, refused: &ProofError) -> bool {
        let mut warned = lock(&self.0.warned);
        let key = (from.clone(), discriminant(refused));
        if warned.get(&key).is_some_and(|at| at.elapsed() < STILL) {
            return false;
        }
        if warned.len() >= MOST_WARNED {
            warned.clear();
        }
        warned.insert(key, Instant::now());
        tracing::warn!(site = %from, what = %refused, "it sent an entry that is not its author's word");
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cheops_core::model::{
        Author, Chain, Entry, EntryBody, EntryHash, EntryId, Incarnation, OperationId, Reply,
        ResourceId, Stamp, Status, Vector,
    };

    use super::*;

    /// A site that has met nobody yet.
    struct NoneKept;

    impl CertificateStore for NoneKept {
        fn kept(&self) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
            Ok(Vec::new())
        }

        fn keep(&self, _: KeyId, _: &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            Ok(())
        }
    }

    /// Says that something was done, without a signature.
    fn unsigned(n: u64) -> Message {
        let site = SiteId::new("lyon").unwrap();
        let (author, incarnation) = (Author { site, incarnation: Incarnation(1) }, Incarnation(1));
        let resource = ResourceId::new("counter").unwrap();
        let id = EntryId { author, n };
        let operation = OperationId(id.clone());
        let stamp = Stamp { wall_ms: n, counter: 0 };
        let reply = Reply { id, stamp, operation, status: Status::Ok, outcome: None };
        let after = (n - 1, EntryHash::UNSAID);
        let entry = Entry::new(&resource, after, EntryBody::Reply(reply), Vec::new());
        Message::Update(Box::new(Update {
            incarnation,
            resource,
            base: None,
            entries: vec![Arc::new(entry)],
            knows: Vector::default(),
            chain: Chain::default(),
            you_may_have_run: Vector::default(),
            asks: false,
        }))
    }

    #[test]
    fn a_thousand_entries_that_nobody_signed_are_news_once() {
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let keyring = Keyring::new([authority.der().clone()]).unwrap();
        let border = Border::new(keyring, Arc::new(NoneKept));
        let from = SiteId::new("lyon").unwrap();
        let admitted = (1..=1_000).map(|n| border.admit(&from, unsigned(n)));
        let news = admitted.filter(|admitted| admitted.is_news);
        assert_eq!(news.count(), 1);
    }
}
