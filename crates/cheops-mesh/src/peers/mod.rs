//! The other sites: one QUIC connection to each that there is need of, with both sides' certificates checked.
//!
//! A link carries messages of the engine on one ordered stream each way, and everything big
//! (the content of files, requests passed on) on streams of its own, so that neither waits for
//! the other. What is told to a site that cannot be reached is dropped: the engine asks again.
//!
//! `gossip` says who exists; `site` is one of those, and knows who needs a link to it; `supervise` keeps that
//! link, where `addresses` and `lookup` say that it is, by `calls` of which there are not too many at once; `link` is
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
mod gossip;
mod handshakes;
mod holders;
mod link;
mod lookup;
mod refused;
mod site;
mod supervise;
mod tls;
mod tunnel;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use cheops_core::engine::Message;
use cheops_core::model::{Author, KeyId, SiteId};
use cheops_directory::{Existence, Way};

pub use self::border::Border;
pub use self::content::{FetchError, IncomingFiles};
use self::frame::{Hello, LinkError};
use self::gossip::Gossip;
use self::link::PeerLink;
use self::site::{LinkPace, PeerSite};
pub use self::tunnel::{PassedOn, PeerRouter, SiteServices, ToService, TunnelError};
use crate::enrol::EnrolHost;
use crate::identity::Identity;
use crate::ports::Inbox;

/// How long a request waits for a link to a site that is alive, but has none.
const CALLED_WITHIN: Duration = Duration::from_secs(2);

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

/// The same for what they hold themselves: nobody holds who holds them.
pub struct WeakPeers(Weak<PeersState>);

impl WeakPeers {
    /// Them, as long as the agent runs.
    pub fn upgrade(&self) -> Option<Peers> {
        self.0.upgrade().map(Peers)
    }
}

struct PeersState {
    hello: Hello,
    /// None for a site that has no mesh: it has no peers either.
    port: Option<Port>,
    /// Those that exist.
    peers: RwLock<BTreeMap<SiteId, Arc<PeerSite>>>,
    gossip: Option<Gossip>,
    calls: calls::Calls,
    refused: refused::RefusedCallers,
    border: Option<Border>,
    /// What links hand things to, while this site looks for others.
    work: Mutex<Option<link::LinkHandlers>>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

/// Where sites call and are called.
struct Port {
    endpoint: quinn::Endpoint,
    client: Mutex<quinn::ClientConfig>,
    /// Who lets in sites that have no certificate yet, if anybody does.
    enrols: OnceLock<EnrolHost>,
}

/// How the link to a site stands.
#[derive(Debug, Clone)]
pub struct PeerStatus {
    /// Where it is looked for, if anybody said so.
    pub address: Option<String>,
    /// The round trip of the link, if there is one.
    pub round_trip: Option<Duration>,
    /// Why there is no link, if that is known, or what else is wrong.
    pub problem: Option<String>,
    /// How it is known to be alive, where that is known.
    pub way: Option<Way>,
    /// When it was lost, by the clock of the wall, if it was alive since the start.
    pub gone_ms: Option<u64>,
    /// Whether there should be a link to it, and is none.
    pub is_missed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing here leaves a value half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    /// Takes the mesh port, if there is to be one. Nobody is talked to before [`Peers::start`].
    ///
    /// `configured` are sites that the operator says exist, with their addresses; `kept` is the file of
    /// what is known of all others.
    pub fn bind(
        me: &Author,
        boot: u64,
        mesh: Option<(SocketAddr, &Identity)>,
        border: Option<Border>,
        configured: impl IntoIterator<Item = (SiteId, String)>,
        kept: Option<PathBuf>,
    ) -> Result<Self, PeersError> {
        let port = mesh.map(|(listen, identity)| Port::bind(listen, identity)).transpose()?;
        let configured: BTreeMap<_, _> = configured.into_iter().collect();
        let gossip = match (mesh, &border) {
            (Some((_, identity)), Some(border)) => Some(
                Gossip::new(&me.site, identity, border.keyring(), &configured, kept)
                    .map_err(|error| PeersError::Identity(error.to_string()))?,
            ),
            _ => None,
        };
        let named =
            configured.into_iter().map(|(site, address)| (site, PeerSite::new(Some(address))));
        let hello = Hello {
            oldest: frame::OLDEST,
            site: me.site.clone(),
            incarnation: me.incarnation,
            boot,
            software: env!("CARGO_PKG_VERSION").into(),
        };
        let peers = Self(Arc::new(PeersState {
            hello,
            port,
            peers: RwLock::new(named.map(|(site, peer)| (site, Arc::new(peer))).collect()),
            gossip,
            calls: calls::Calls::default(),
            refused: refused::RefusedCallers::default(),
            border,
            work: Mutex::default(),
            tasks: Mutex::default(),
        }));
        peers.follow_directory();
        Ok(peers)
    }

    /// Without holding them.
    pub fn weak(&self) -> WeakPeers {
        WeakPeers(Arc::downgrade(&self.0))
    }

    /// From now on sites that were invited may enrol at the mesh port. To be said before
    /// [`Peers::start`].
    pub fn enrol(&self, identity: &Identity, host: EnrolHost) -> Result<(), PeersError> {
        let Some(port) = &self.0.port else { return Ok(()) };
        let _once = port.enrols.set(host);
        self.show(identity)
    }

    /// From now on this site shows this to others. Links that there are go on.
    pub fn show(&self, identity: &Identity) -> Result<(), PeersError> {
        let Some(port) = &self.0.port else { return Ok(()) };
        let enrols = port.enrols.get().is_some();
        let server = tls::server(identity, enrols).map_err(PeersError::Identity)?;
        *lock(&port.client) = tls::client(identity).map_err(PeersError::Identity)?;
        port.endpoint.set_server_config(Some(server));
        Ok(())
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
        *lock(&self.0.work) = Some(work.clone());
        for (site, peer) in self.all() {
            self.look_for(&site, &peer);
        }
        let mut tasks = lock(&self.0.tasks);
        if self.0.gossip.is_some() {
            tasks.push(tokio::spawn(gossip::run(self.clone(), work.inbox.clone())));
        }
        if let Some(port) = &self.0.port {
            tasks.push(tokio::spawn(supervise::accept(
                self.clone(),
                port.endpoint.clone(),
                work.inbox,
            )));
        }
    }

    /// Keeps a link to that site where there is need of one, as soon as this one looks for others.
    fn look_for(&self, site: &SiteId, peer: &Arc<PeerSite>) {
        let Some(work) = lock(&self.0.work).clone() else { return };
        if let Some(accepted) = lock(&peer.accepted_in).take() {
            let supervisor =
                supervise::Supervisor::new(self.clone(), site.clone(), peer.clone(), work);
            let task = tokio::spawn(supervisor.run(accepted));
            let mut tasks = lock(&self.0.tasks);
            tasks.retain(|task| !task.is_finished());
            tasks.push(task);
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
        let Some(peer) = self.peer(site) else { return };
        lock(&peer.set_apart).insert(key);
        *lock(&peer.problem) = Some(LinkError::SetApart(site.clone()).to_string());
        if let Some(link) = lock(&peer.link).take() {
            link.replaced();
        }
    }

    /// Whether that site was shown to lie, and nobody with another key of it is heard.
    pub fn is_set_apart(&self, site: &SiteId) -> bool {
        let is_apart = |peer: Arc<PeerSite>| !lock(&peer.set_apart).is_empty();
        self.peer(site).is_some_and(is_apart) && self.link(site).is_none()
    }

    /// How the link to a site stands.
    pub fn status(&self, site: &SiteId) -> Option<PeerStatus> {
        let peer = self.peer(site)?;
        let link = self.link(site);
        let two = lock(&peer.runs).two(Instant::now());
        let two = two.map(|two| format!("two agents show its identity: {two}"));
        let wrong = two.or_else(|| peer.conduct.problem(Instant::now()));
        let (way, gone_ms) = self.0.gossip.as_ref().map_or((None, None), |it| it.way(site));
        let is_missed = link.is_none() && peer.pace() != LinkPace::Unneeded;
        let is_away = is_missed || link.is_none() && way.is_none();
        Some(PeerStatus {
            address: peer.names().into_iter().next(),
            round_trip: link.as_ref().map(|link| link.round_trip()),
            problem: wrong.or_else(|| lock(&peer.problem).clone().filter(|_| is_away)),
            way,
            gone_ms,
            is_missed,
        })
    }

    /// These sites, the nearest first; those that cannot be reached are left out.
    pub fn nearest<'a>(&self, sites: impl IntoIterator<Item = &'a SiteId>) -> Vec<SiteId> {
        let reachable = sites.into_iter();
        let reachable = reachable.filter_map(|site| Some((self.round_trip(site)?, site.clone())));
        let mut reachable: Vec<_> = reachable.collect();
        reachable.sort();
        reachable.into_iter().map(|(_, site)| site).collect()
    }

    /// How far a site is that can be reached: as it was measured, or, where there is no link, by the
    /// shortest way over others.
    pub fn round_trip(&self, site: &SiteId) -> Option<Duration> {
        match self.link(site) {
            Some(link) => {
                Some(link.round_trip()).filter(|_| !link.is_silent() && !link.is_closed())
            }
            // It is as far as it was, and perhaps gone: who asks remembers what was measured.
            None if self.peer(site)?.was_lost_of_late() => None,
            None => {
                let way = self.0.gossip.as_ref()?.way(site).0?;
                Some(Duration::from_micros(way.round_trip_us))
            }
        }
    }

    /// The names of all other sites.
    pub fn sites(&self) -> Vec<SiteId> {
        read(&self.0.peers).keys().cloned().collect()
    }

    /// Those to which there is a link.
    pub fn linked(&self) -> Vec<SiteId> {
        let linked = |(_, peer): &(&SiteId, &Arc<PeerSite>)| lock(&peer.link).is_some();
        read(&self.0.peers).iter().filter(linked).map(|(site, _)| site.clone()).collect()
    }

    /// From now on there is to be a link to that site whenever there can be.
    pub fn share(&self, site: &SiteId) {
        if let Some(peer) = self.peer(site) {
            peer.share();
        }
    }

    /// Lets what was said arrive, and says goodbye.
    pub async fn close(&self) {
        let until = Instant::now() + Duration::from_secs(1);
        for site in self.linked() {
            if let Some(link) = self.link(&site) {
                link.flush(until).await;
            }
        }
        // Who takes in what is heard has these links in its hands: neither would ever let go of the other.
        *lock(&self.0.work) = None;
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

    /// Somebody calls who has no certificate yet.
    async fn enrol_caller(&self, connection: quinn::Connection) {
        let host = self.0.port.as_ref().and_then(|port| port.enrols.get());
        match host {
            Some(host) => host.serve(connection).await,
            // Nobody is offered that protocol then.
            None => link::spare(&connection),
        }
    }

    /// Whether some site is known to be there.
    fn is_peers(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        read(&self.0.peers).values().any(|peer| lock(&peer.known_at).contains(&address))
    }

    fn all(&self) -> Vec<(SiteId, Arc<PeerSite>)> {
        let peers = read(&self.0.peers);
        peers.iter().map(|(site, peer)| (site.clone(), peer.clone())).collect()
    }

    fn peer(&self, site: &SiteId) -> Option<Arc<PeerSite>> {
        read(&self.0.peers).get(site).cloned()
    }

    fn link(&self, site: &SiteId) -> Option<Arc<PeerLink>> {
        lock(&self.peer(site)?.link).clone()
    }

    /// A link to that site on which something is heard. Where there is none and the site is alive, it is
    /// called, and waited for a while.
    async fn reach(&self, site: &SiteId) -> Option<Arc<PeerLink>> {
        let heard = || self.link(site).filter(|link| !link.is_silent());
        let peer = self.peer(site)?;
        peer.need();
        if let Some(link) = heard() {
            return Some(link);
        }
        let is_alive = self.0.gossip.as_ref().is_some_and(|it| it.way(site).0.is_some());
        peer.changed.notify_one();
        if !is_alive || peer.was_lost_of_late() {
            return None;
        }
        let until = tokio::time::Instant::now() + CALLED_WITHIN;
        loop {
            let linked = peer.linked.notified();
            if let Some(link) = heard() {
                return Some(link);
            }
            tokio::time::timeout_at(until, linked).await.ok()?;
        }
    }

    /// Whether that key may speak for that site; and if the mesh has it and this one did not know of it,
    /// it does now.
    fn admit(&self, site: &SiteId, key: Option<KeyId>) -> Result<(), LinkError> {
        let Some(gossip) = &self.0.gossip else {
            return self.peer(site).map(|_| ()).ok_or_else(|| LinkError::NotAPeer(site.clone()));
        };
        if let Some(refused) = key.and_then(|key| gossip.refuses(site, key)) {
            return Err(LinkError::Refused(refused));
        }
        if self.peer(site).is_none() {
            self.come_to_know(site, PeerSite::new(None))?;
        }
        Ok(())
    }

    fn come_to_know(&self, site: &SiteId, peer: PeerSite) -> Result<Arc<PeerSite>, LinkError> {
        let peer = {
            let mut peers = self.0.peers.write().unwrap_or_else(PoisonError::into_inner);
            if !peers.contains_key(site) && peers.len() >= cheops_directory::MOST_SITES {
                return Err(LinkError::NotAPeer(site.clone()));
            }
            peers.entry(site.clone()).or_insert_with(|| Arc::new(peer)).clone()
        };
        self.look_for(site, &peer);
        Ok(peer)
    }

    /// Sees to it that there is a [`PeerSite`] for each site that exists, and none for those that do not.
    fn follow_directory(&self) -> BTreeSet<SiteId> {
        let Some(gossip) = &self.0.gossip else { return self.sites().into_iter().collect() };
        let known = gossip.known();
        for (site, addresses) in known {
            if site != self.0.hello.site
                && let Ok(peer) = self.come_to_know(&site, PeerSite::new(None))
            {
                peer.is_at(addresses);
            }
        }
        for (site, peer) in self.all() {
            let refused = match lock(&peer.link).as_ref().and_then(|link| link.key()) {
                Some(key) => gossip.refuses(&site, key),
                None => None,
            };
            if let Some(refused) = refused {
                peer.refuse(&LinkError::Refused(refused));
            }
            if gossip.with(|it| matches!(it.directory().existence(&site), Existence::Removed(_))) {
                peer.end();
                self.0.peers.write().unwrap_or_else(PoisonError::into_inner).remove(&site);
            }
        }
        self.sites().into_iter().collect()
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    fn bind(listen: SocketAddr, identity: &Identity) -> Result<Self, PeersError> {
        let server = tls::server(identity, false).map_err(PeersError::Identity)?;
        let client = tls::client(identity).map_err(PeersError::Identity)?;
        let failed = |source| PeersError::Listen { address: listen, source };
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        let runtime = Arc::new(quinn::TokioRuntime);
        let config = quinn::EndpointConfig::default();
        let endpoint =
            quinn::Endpoint::new(config, Some(server), socket, runtime).map_err(failed)?;
        Ok(Self { endpoint, client: Mutex::new(client), enrols: OnceLock::new() })
    }
}
