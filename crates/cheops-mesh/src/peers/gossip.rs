//! The directory on the links: hands what happens to the [`Member`], does what it says, and keeps what it
//! knows on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cheops_core::causes;
use cheops_core::engine::Event;
use cheops_core::model::{KeyId, SiteId};
use cheops_directory::{
    GossipEffect, GossipEvent, GossipMessage, Member, MemberStart, Moment, NotTakenIn, Notary,
    OwnSite, SignedStatement, SiteDirectory, Way,
};
use cheops_record::{Keyring, SiteKey};
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::{Notify, watch};

use super::{Peers, lock};
use crate::identity::{Identity, MeshError};
use crate::ports::Inbox;

/// How long after a change what is known is written to the disk.
const SAVED_AFTER: Duration = Duration::from_secs(1);
/// Nobody's directory is longer.
const LONGEST: u64 = 256 * 1024 * 1024;

/// The directory of this site.
pub(super) struct Gossip {
    member: Mutex<Member>,
    began: Instant,
    kept: Option<PathBuf>,
    /// The directory has changed since that was looked at.
    changed: AtomicBool,
    /// Something is due earlier than before, or has changed.
    woken: Notify,
    /// Counts what changed of who exists and who is alive.
    version: watch::Sender<u64>,
}

/// Signs with the key of an identity, and checks by the certificates that are known.
struct IdentityNotary {
    keyring: Keyring,
    key: SiteKey,
    certificate: Vec<u8>,
}

impl Notary for IdentityNotary {
    fn key_of(&self, site: &SiteId, certificate: &[u8]) -> Option<KeyId> {
        let certificate = CertificateDer::from(certificate);
        let (whose, key, _) = self.keyring.add(&certificate, UnixTime::now()).ok()?;
        (whose == *site).then_some(key)
    }

    fn has_signed(&self, key: KeyId, text: &[u8], signature: &[u8]) -> bool {
        self.keyring.has_signed(key, text, signature)
    }

    fn authority_has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        self.keyring.authority_has_signed(text, signature)
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.key.sign_text(text)
    }

    fn certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }
}

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Gossip {
    pub(super) fn new(
        me: &SiteId,
        identity: &Identity,
        keyring: Keyring,
        configured: &BTreeMap<SiteId, String>,
        kept: Option<PathBuf>,
    ) -> Result<Self, MeshError> {
        let certificate = identity.certificates().first().map(|it| it.to_vec()).unwrap_or_default();
        let notary = IdentityNotary { keyring, key: identity.site_key()?, certificate };
        let directory = kept.as_deref().map(|path| read(path, &notary)).unwrap_or_default();
        let notary = Arc::new(notary);
        let mut member =
            Member::new(MemberStart { me: me.clone(), notary, directory, number: wall_ms() });
        let now = Moment { mono_ms: 0, wall_ms: wall_ms() };
        let sites = configured.keys().cloned().collect();
        // Nobody can be told anything yet.
        let _nothing = member.handle(now, GossipEvent::Configured(sites));
        Ok(Self {
            member: Mutex::new(member),
            began: Instant::now(),
            kept,
            changed: AtomicBool::new(true),
            woken: Notify::new(),
            version: watch::Sender::new(0),
        })
    }

    pub(super) fn with<T>(&self, ask: impl FnOnce(&Member) -> T) -> T {
        ask(&lock(&self.member))
    }

    /// How that site is reached, and since when it is not.
    pub(super) fn way(&self, site: &SiteId) -> (Option<Way>, Option<u64>) {
        self.with(|member| (member.way(site).cloned(), member.gone_ms(site)))
    }

    pub(super) fn refuses(&self, site: &SiteId, key: KeyId) -> Option<NotTakenIn> {
        self.with(|member| member.directory().is_refused(site, key))
    }

    /// The sites that are part of the mesh, and where they say that they are.
    pub(super) fn known(&self) -> Vec<(SiteId, Vec<String>)> {
        self.with(|member| {
            let alive = member.directory().alive();
            alive.map(|(site, record)| (site.clone(), record.addresses.clone())).collect()
        })
    }

    fn now(&self) -> Moment {
        let mono_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment { mono_ms, wall_ms: wall_ms() }
    }
}

impl Peers {
    /// What this site is to say of itself to all others.
    pub fn announce(&self, own: OwnSite) {
        self.gossips(GossipEvent::Announced(own));
    }

    /// Takes in what the mesh's authority says, and passes it on.
    pub fn hand_in(&self, signed: &SignedStatement) -> Result<(), NotTakenIn> {
        let Some(gossip) = &self.0.gossip else { return Ok(()) };
        let effects = lock(&gossip.member).hand_in(gossip.now(), signed)?;
        self.act(gossip, effects);
        Ok(())
    }

    /// Who exists, as far as is known here; nothing at a site without a mesh.
    pub fn directory(&self) -> SiteDirectory {
        let directory = |gossip: &Gossip| gossip.with(|member| member.directory().clone());
        self.0.gossip.as_ref().map(directory).unwrap_or_default()
    }

    /// Changes whenever who exists or who is alive does; `None` at a site without a mesh.
    pub fn directory_changes(&self) -> Option<watch::Receiver<u64>> {
        self.0.gossip.as_ref().map(|gossip| gossip.version.subscribe())
    }

    pub(super) fn gossips(&self, event: GossipEvent) {
        let Some(gossip) = &self.0.gossip else { return };
        let effects = lock(&gossip.member).handle(gossip.now(), event);
        self.act(gossip, effects);
    }

    /// Takes in what a site said of the directory.
    pub(super) fn hear_gossip(&self, from: &SiteId, said: &[u8]) {
        if let Some(peer) = self.peer(from) {
            peer.note_needed_there();
        }
        match GossipMessage::from_bytes(said) {
            Ok(GossipMessage::Ping) => {}
            Ok(message) => self.gossips(GossipEvent::Heard(from.clone(), message)),
            Err(error) => tracing::debug!(site = %from, %error, "what it says of the directory"),
        }
    }

    fn act(&self, gossip: &Gossip, effects: Vec<GossipEffect>) {
        for effect in effects {
            match effect {
                GossipEffect::Send(to, message) => {
                    if let Some(link) = self.link(&to) {
                        link.gossip(message.to_bytes());
                    }
                }
                GossipEffect::Want(wanted) => self.want(&wanted),
                GossipEffect::DirectoryChanged => {
                    gossip.changed.store(true, Ordering::Relaxed);
                    gossip.version.send_modify(|version| *version += 1);
                }
                GossipEffect::ReachChanged => {
                    gossip.version.send_modify(|version| *version += 1);
                }
                GossipEffect::Refused(from, why) => {
                    metrics::counter!("cheops_statements_refused_total").increment(1);
                    tracing::debug!(site = %from, %why, "what it passes on is not taken in");
                }
            }
        }
        gossip.woken.notify_one();
    }

    fn want(&self, wanted: &BTreeSet<SiteId>) {
        for (site, peer) in self.all() {
            peer.be_neighbour(wanted.contains(&site));
        }
    }
}

/// Does what is due, follows the directory, and keeps it.
pub(super) async fn run(peers: Peers, inbox: Arc<dyn Inbox>) {
    let Some(gossip) = &peers.0.gossip else { return };
    let mut told = None;
    let mut save_at: Option<tokio::time::Instant> = None;
    loop {
        if gossip.changed.swap(false, Ordering::Relaxed) {
            let sites = peers.follow_directory();
            // Those that came to be known after it was wished for them.
            let wanted = gossip.with(|member| member.wanted().clone());
            peers.want(&wanted);
            if told.as_ref() != Some(&sites) {
                if inbox.take(Event::Sites(sites.clone()), None).await.is_err() {
                    return;
                }
                told = Some(sites);
            }
            save_at.get_or_insert_with(|| tokio::time::Instant::now() + SAVED_AFTER);
        }
        if save_at.is_some_and(|at| at <= tokio::time::Instant::now()) {
            save_at = None;
            save(gossip).await;
        }
        let due = gossip.with(Member::next_deadline).map(Duration::from_millis);
        let due = due.map(|due| tokio::time::Instant::from_std(gossip.began) + due);
        let next = [due, save_at].into_iter().flatten().min();
        let sleeping = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleeping => {}
            () = gossip.woken.notified() => {}
        }
        if due.is_some_and(|due| due <= tokio::time::Instant::now()) {
            peers.gossips(GossipEvent::Ticked);
        }
    }
}

/// What is known when an agent starts. A site that cannot read it learns it again from the others.
fn read(path: &Path, notary: &dyn Notary) -> SiteDirectory {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return SiteDirectory::default(),
        Ok(found) if found.len() > LONGEST => Err(io::Error::other("it is too long")),
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    let path = path.display();
    match found.map(|bytes| SiteDirectory::from_bytes(&bytes, notary)) {
        Ok(Ok((directory, left_out))) => {
            for why in left_out {
                tracing::warn!(%path, %why, "something in the directory is left aside");
            }
            directory
        }
        Ok(Err(error)) => {
            tracing::warn!(%path, error = causes(&error), "the directory cannot be read");
            SiteDirectory::default()
        }
        Err(error) => {
            tracing::warn!(%path, error = causes(&error), "the directory cannot be read");
            SiteDirectory::default()
        }
    }
}

async fn save(gossip: &Gossip) {
    let Some(path) = gossip.kept.clone() else { return };
    let bytes = gossip.with(|member| member.directory().to_bytes());
    let written = tokio::task::spawn_blocking(move || {
        write(&path, &bytes).map_err(|error| (path.display().to_string(), error))
    });
    if let Ok(Err((path, error))) = written.await {
        tracing::warn!(path, error = causes(&error), "the directory cannot be kept");
    }
}

/// Whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}
