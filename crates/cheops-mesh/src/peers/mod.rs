//! The other sites: one QUIC connection to each, with both sides' certificates checked.
//!
//! A link carries messages of the engine on one ordered stream each way, and everything big
//! (the content of files, requests passed on) on streams of its own, so that neither waits for
//! the other. What is told to a site that cannot be reached is dropped: the engine asks again.
//!
//! `supervise` keeps a link to one site, where `addresses` and `lookup` say that it is, by `calls` of which
//! there are not too many at once; `link` is
//! one connection at work, `frame` what goes over it, `content` fetches and serves files, `tunnel`
//! passes on requests, `border` lets in only what is its author's word, `tls` says who is who, `handshakes`
//! who may try to say so, `holders` whether two say the same, `refused` which calls came to nothing,
//! `conduct` what is remembered of who sends what cannot be read.

mod addresses;
mod body_codec;
mod border;
mod calls;
mod conduct;
mod content;
mod frame;
mod handshakes;
mod holders;
mod link;
mod lookup;
mod refused;
mod supervise;
mod tls;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cheops_core::engine::Message;
use cheops_core::model::{Author, KeyId, SiteId};
use tokio::sync::mpsc;

pub use self::border::Border;
use self::conduct::Conduct;
pub use self::content::{FetchError, IncomingFiles};
use self::frame::{Hello, LinkError};
use self::holders::AgentRuns;
use self::link::PeerLink;
pub use self::tunnel::{PassedOn, PeerRouter, SiteServices, ToService, TunnelError};
use crate::identity::Identity;
use crate::ports::Inbox;

/// Why there can be no links at all.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The mesh port is taken, or not this machine's.
    #[error("the mesh address `{address}` (UDP) cannot be used")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What came of it.
        source: std::io::Error,
    },
    /// The certificates do not fit together.
    #[error("the identity cannot be used: {0}")]
    Identity(String),
}

/// The other sites, as the rest of the agent uses them.
#[derive(Clone)]
pub struct Peers(Arc<PeersState>);

struct PeersState {
    hello: Hello,
    /// None for a site that has no mesh: it has no peers either.
    port: Option<Port>,
    peers: BTreeMap<SiteId, PeerSite>,
    calls: calls::Calls,
    refused: refused::RefusedCallers,
    border: Option<Border>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

/// Where sites call and are called.
struct Port {
    endpoint: quinn::Endpoint,
    client: quinn::ClientConfig,
}

/// One other site.
struct PeerSite {
    address: String,
    link: Mutex<Option<Arc<PeerLink>>>,
    problem: Mutex<Option<String>>,
    /// Keys of it that were shown to sign lies.
    set_apart: Mutex<BTreeSet<KeyId>>,
    /// The runs of its agent that were heard, the last one last.
    runs: Mutex<AgentRuns>,
    /// What it sends, on whichever link.
    conduct: Arc<Conduct>,
    /// Where it is known to be: where it is looked for, and where the link is.
    known_at: Mutex<BTreeSet<IpAddr>>,
    accepted: mpsc::Sender<link::Candidate>,
    accepted_in: Mutex<Option<mpsc::Receiver<link::Candidate>>>,
}

/// How the link to a site stands.
#[derive(Debug, Clone)]
pub struct PeerStatus {
    /// Where it is looked for.
    pub address: String,
    /// The round trip of the link, if there is one.
    pub round_trip: Option<Duration>,
    /// Why there is no link, if that is known, or what else is wrong.
    pub problem: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing here leaves a value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    /// Takes the mesh port, if there is to be one. Nobody is talked to before [`Peers::start`].
    pub fn bind(
        me: &Author,
        boot: u64,
        mesh: Option<(SocketAddr, &Identity)>,
        border: Option<Border>,
        peers: impl IntoIterator<Item = (SiteId, String)>,
    ) -> Result<Self, PeersError> {
        let port = mesh.map(|(listen, identity)| Port::bind(listen, identity)).transpose()?;
        let peers =
            peers.into_iter().map(|(site, address)| (site, PeerSite::new(address))).collect();
        let hello = Hello {
            oldest: frame::OLDEST,
            site: me.site.clone(),
            incarnation: me.incarnation,
            boot,
            software: env!("CARGO_PKG_VERSION").into(),
        };
        let (calls, refused) = (calls::Calls::default(), refused::RefusedCallers::default());
        let tasks = Mutex::default();
        Ok(Self(Arc::new(PeersState { hello, port, peers, calls, refused, border, tasks })))
    }

    /// The address that others reach this site at, as the system gave it.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.0.port.as_ref().and_then(|port| port.endpoint.local_addr().ok())
    }

    /// Begins to look for the other sites, and to be found.
    pub fn start(&self, inbox: Arc<dyn Inbox>, incoming: &IncomingFiles, router: &PeerRouter) {
        let (incoming, router) = (incoming.clone(), router.clone());
        let border = self.0.border.clone();
        let work = link::LinkHandlers { inbox, incoming, router, border };
        let mut tasks = lock(&self.0.tasks);
        for (site, peer) in &self.0.peers {
            if let Some(accepted) = lock(&peer.accepted_in).take() {
                let supervisor =
                    supervise::Supervisor::new(self.clone(), site.clone(), work.clone());
                tasks.push(tokio::spawn(supervisor.run(accepted)));
            }
        }
        if let Some(port) = &self.0.port {
            tasks.push(tokio::spawn(supervise::accept(
                self.clone(),
                port.endpoint.clone(),
                work.inbox.clone(),
            )));
        }
    }

    /// Says something to a site, if there is a way.
    pub fn tell(&self, to: &SiteId, message: Message) {
        let told = self.link(to).is_some_and(|link| link.tell(message));
        if !told {
            metrics::counter!("cheops_messages_dropped_total").increment(1);
        }
    }

    /// Nothing is heard from, or said to, who holds that key from now on.
    pub fn set_apart(&self, site: &SiteId, key: KeyId) {
        if let Some(border) = &self.0.border {
            border.set_apart(key);
        }
        let Some(peer) = self.0.peers.get(site) else { return };
        lock(&peer.set_apart).insert(key);
        *lock(&peer.problem) = Some(LinkError::SetApart(site.clone()).to_string());
        if let Some(link) = lock(&peer.link).take() {
            link.replaced();
        }
    }

    /// Whether that site was shown to lie, and nobody with another key of it is heard.
    pub fn is_set_apart(&self, site: &SiteId) -> bool {
        let is_apart = |peer: &PeerSite| !lock(&peer.set_apart).is_empty();
        self.0.peers.get(site).is_some_and(is_apart) && self.link(site).is_none()
    }

    /// How the link to a site stands.
    pub fn status(&self, site: &SiteId) -> Option<PeerStatus> {
        let peer = self.0.peers.get(site)?;
        let link = self.link(site);
        let two = lock(&peer.runs).two(Instant::now());
        let two = two.map(|two| format!("two agents show its identity: {two}"));
        let wrong = two.or_else(|| peer.conduct.problem(Instant::now()));
        Some(PeerStatus {
            address: peer.address.clone(),
            round_trip: link.as_ref().map(|link| link.round_trip()),
            problem: wrong.or_else(|| lock(&peer.problem).clone().filter(|_| link.is_none())),
        })
    }

    /// These sites, the nearest first; those that cannot be reached are left out.
    pub fn nearest<'a>(&self, sites: impl IntoIterator<Item = &'a SiteId>) -> Vec<SiteId> {
        let reachable = sites.into_iter().filter_map(|site| {
            let link = self.link(site).filter(|link| !link.is_silent())?;
            Some((link.round_trip(), site.clone()))
        });
        let mut reachable: Vec<_> = reachable.collect();
        reachable.sort();
        reachable.into_iter().map(|(_, site)| site).collect()
    }

    /// How far a site is that can be reached.
    pub fn round_trip(&self, site: &SiteId) -> Option<Duration> {
        let link = self.link(site).filter(|link| !link.is_silent())?;
        Some(link.round_trip())
    }

    /// The names of all other sites.
    pub fn sites(&self) -> impl Iterator<Item = &SiteId> {
        self.0.peers.keys()
    }

    /// Lets what was said arrive, and says goodbye.
    pub async fn close(&self) {
        let until = Instant::now() + Duration::from_secs(1);
        for site in self.0.peers.keys() {
            if let Some(link) = self.link(site) {
                link.flush(until).await;
            }
        }
        let tasks = std::mem::take(&mut *lock(&self.0.tasks));
        for task in tasks {
            task.abort();
            let _aborted = task.await;
        }
        if let Some(Port { endpoint, .. }) = &self.0.port {
            endpoint.close(link::CLOSED_BY_STOP.into(), b"the agent stops");
            let _late = tokio::time::timeout_at(until.into(), endpoint.wait_idle()).await;
        }
    }

    /// Whether some site is known to be there.
    fn is_peers(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.peers.values().any(|peer| lock(&peer.known_at).contains(&address))
    }

    fn link(&self, site: &SiteId) -> Option<Arc<PeerLink>> {
        lock(&self.0.peers.get(site)?.link).clone()
    }
}

impl Port {
    fn bind(listen: SocketAddr, identity: &Identity) -> Result<Self, PeersError> {
        let (server, client) = tls::configs(identity).map_err(PeersError::Identity)?;
        let failed = |source| PeersError::Listen { address: listen, source };
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        let runtime = Arc::new(quinn::TokioRuntime);
        let config = quinn::EndpointConfig::default();
        let endpoint =
            quinn::Endpoint::new(config, Some(server), socket, runtime).map_err(failed)?;
        Ok(Self { endpoint, client })
    }
}

impl PeerSite {
    fn new(address: String) -> Self {
        let (accepted, accepted_in) = mpsc::channel(4);
        Self {
            address,
            link: Mutex::default(),
            problem: Mutex::default(),
            set_apart: Mutex::default(),
            runs: Mutex::default(),
            conduct: Arc::default(),
            known_at: Mutex::default(),
            accepted,
            accepted_in: Mutex::new(Some(accepted_in)),
        }
    }
}
