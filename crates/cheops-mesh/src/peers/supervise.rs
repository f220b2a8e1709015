//! Keeping a link to one site, however long it was cut off.
//!
//! The site with the smaller name calls; the other one joins in if nothing is heard for a while,
//! for perhaps it can only be reached that way round. A new attempt is made every half second or so,
//! whatever the earlier ones are waiting for, so a link is back within a second of the network; less
//! often where so many sites call that handshakes take long.
//!
//! Several calls may then get through at once. Who calls chooses one and greets on that alone: so
//! who is called never has to guess which is meant, and a link that works is not given up for
//! another one of the same kind.
//!
//! Of two agents that show the identity of one site, one is kept and the other turned away: were they
//! heard in turn, each turn would look like a site that lost its memory. Both are told why, once, and
//! whoever is turned away again and again.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cheops_core::causes;
use cheops_core::engine::{Event, Notice};
use cheops_core::model::SiteId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::addresses::Addresses;
use super::calls::CALL_LASTS;
use super::frame::LinkError;
use super::handshakes::{Caller, CallerVerdict, Handshakes};
use super::holders::Two;
use super::link::{self, Candidate, LinkHandlers, PeerLink};
use super::lookup::Lookup;
use super::{Peers, lock};
use crate::ports::Inbox;

/// Of the calls to one site, how many are waited for.
const CALLS_AT_ONCE: usize = 8;
/// How long whoever was turned away waits before it calls again.
const TURNED_AWAY: Duration = Duration::from_secs(5);
/// A link that lasts longer than this after that is one that stays.
const LET_IN_AFTER: Duration = Duration::from_secs(7);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same while there is a link: with hundreds of sites it is this that an idle agent does.
const LOOK_AT_LINK_EVERY: Duration = Duration::from_millis(250);
/// How many different problems are logged before one is logged again.
const PROBLEMS_KNOWN: usize = 16;

/// Takes the calls of other sites.
pub(super) async fn accept(peers: Peers, endpoint: quinn::Endpoint, inbox: Arc<dyn Inbox>) {
    let handshakes = Handshakes::default();
    while let Some(incoming) = endpoint.accept().await {
        let from = incoming.remote_address();
        let caller = Caller {
            from: from.ip(),
            is_proven: incoming.remote_address_validated(),
            is_peers: peers.is_peers(from.ip()),
        };
        let place = match handshakes.judge(caller) {
            CallerVerdict::Enter(place) => place,
            CallerVerdict::Prove => {
                // An address that is not proven can always be asked to be.
                let _asked = incoming.retry();
                continue;
            }
            CallerVerdict::Refuse => {
                tracing::debug!(%from, "too many calls are under way for one more");
                incoming.refuse();
                continue;
            }
        };
        let (peers, inbox) = (peers.clone(), inbox.clone());
        tokio::spawn(async move {
            let taken = async {
                let connection = incoming.await?;
                Candidate::greet(connection, &peers.0.hello, &peers, Called::ByThem).await
            };
            let began = Instant::now();
            let taken = tokio::time::timeout(CALL_LASTS, taken).await;
            drop(place);
            if let Ok(Ok(_)) = &taken {
                peers.0.calls.succeeded(began.elapsed());
            }
            match taken {
                Ok(Ok(candidate)) => {
                    if let Some(peer) = peers.0.peers.get(candidate.site()) {
                        let _stopping = peer.accepted.send(candidate).await;
                    }
                }
                Ok(Err(LinkError::Ourselves(site))) => {
                    peers.0.refused.note(from, &LinkError::Ourselves(site.clone()));
                    let seen = format!("an agent at {from} shows this site's own identity");
                    let notice = Notice::SharedIdentity(site, seen);
                    if peers.0.refused.is_first_of_ourselves() {
                        let _stopping = inbox.take(Event::Noticed(notice), None).await;
                    }
                }
                Ok(Err(error)) if error.is_spare() => tracing::debug!(%from, "another was chosen"),
                Ok(Err(error)) => peers.0.refused.note(from, &error),
                Err(_late) => tracing::debug!(%from, "a call came to nothing"),
            }
        });
    }
}

/// Who made the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    ByUs,
    ByThem,
}

pub(super) struct Supervisor {
    peers: Peers,
    site: SiteId,
    work: LinkHandlers,
    addresses: Addresses,
    lookup: Lookup,
    /// What was logged since there was a link: addresses take turns, and so do their problems.
    logged: BTreeSet<String>,
    calls: JoinSet<Result<quinn::Connection, LinkError>>,
    /// Whether one of them waits until there is room for it.
    waits_for_room: Arc<AtomicBool>,
    /// How often it was called since there was a link.
    called: u64,
    call_at: Instant,
    /// When the other side last said that it hears another agent with the identity of this site.
    turned_away: Option<Instant>,
    /// The call that was chosen; never more than one.
    greeting: JoinSet<Result<Candidate, LinkError>>,
}

impl Supervisor {
    pub(super) fn new(peers: Peers, site: SiteId, work: LinkHandlers) -> Self {
        // Supervisors are made for the sites in this very map.
        let name = peers.0.peers[&site].address.clone();
        // Who has no port calls nobody.
        let from = peers.local_address().unwrap_or_else(|| (Ipv6Addr::UNSPECIFIED, 0).into());
        let addresses = Addresses::new(name, from);
        let mut supervisor = Self {
            peers,
            site,
            work,
            addresses,
            lookup: Lookup::default(),
            logged: BTreeSet::new(),
            calls: JoinSet::new(),
            waits_for_room: Arc::default(),
            called: 0,
            call_at: Instant::now(),
            turned_away: None,
            greeting: JoinSet::new(),
        };
        supervisor.let_them_call_first();
        supervisor.note_where();
        supervisor
    }

    fn we_call(&self) -> bool {
        self.peers.0.hello.site < self.site
    }

    fn let_them_call_first(&mut self) {
        let theirs = || self.peers.0.calls.wait_for_theirs();
        let wait = if self.we_call() { Duration::ZERO } else { theirs() };
        self.called = 0;
        self.call_at = Instant::now() + wait;
    }

    pub(super) async fn run(mut self, mut accepted: mpsc::Receiver<Candidate>) {
        let mut look_at = tokio::time::Instant::now();
        loop {
            tokio::select! {
                candidate = accepted.recv() => match candidate {
                    Some(candidate) => self.consider(candidate).await,
                    None => return,
                },
                Some(called) = self.calls.join_next() => match called {
                    Ok(Ok(connection)) => self.choose(connection),
                    Ok(Err(error)) => self.note_problem(Some(&error)),
                    Err(_ended) => {}
                },
                Some(greeted) = self.greeting.join_next() => match greeted {
                    Ok(Ok(candidate)) => self.consider(candidate).await,
                    Ok(Err(error)) if error.is_shared() => self.note_turned_away().await,
                    Ok(Err(error)) => self.note_problem(Some(&error)),
                    Err(_ended) => {}
                },
                found = self.lookup.ended() => self.found(found),
                () = tokio::time::sleep_until(look_at) => {
                    self.look().await;
                    let pause = if self.works() { LOOK_AT_LINK_EVERY } else { LOOK_EVERY };
                    look_at = tokio::time::Instant::now() + pause;
                }
            }
        }
    }

    async fn look(&mut self) {
        if self.works() {
            if self.turned_away.is_some_and(|at| at.elapsed() > LET_IN_AFTER) {
                self.turned_away = None;
                *lock(&self.slot().problem) = None;
                tracing::info!(site = %self.site, "the link is up");
            }
            self.calls.abort_all();
            self.let_them_call_first();
            return;
        }
        if let Some(link) = self.current().filter(|link| link.is_closed()) {
            *lock(&self.slot().link) = None;
            if link.is_turned_away() {
                self.note_turned_away().await;
            } else if self.is_to_log() {
                tracing::info!(site = %self.site, "the link is down");
            }
        }
        // A call that has no room yet is as good as one more.
        let is_queued = self.waits_for_room.load(Ordering::Relaxed);
        if Instant::now() >= self.call_at && !is_queued && self.calls.len() < CALLS_AT_ONCE {
            self.called += 1;
            self.call_at =
                Instant::now() + self.peers.0.calls.pause(self.site.as_str(), self.called);
            if let Some(name) = self.addresses.look_up() {
                let name = name.to_owned();
                self.lookup.begin(move || Ok(name.to_socket_addrs()?.collect()));
            }
            self.call();
        }
    }

    /// Who calls from there need not prove it.
    fn note_where(&self) {
        let current = self.current().map(|link| link.address().ip());
        let known = self.addresses.known().map(SocketAddr::ip).chain(current);
        *lock(&self.slot().known_at) = known.map(|address| address.to_canonical()).collect();
    }

    /// What the lookup came to that a call began.
    fn found(&mut self, found: io::Result<Vec<SocketAddr>>) {
        let was_lost = self.addresses.is_lost();
        self.addresses.found(found.map_err(|error| causes(&error)));
        self.note_where();
        if was_lost && !self.works() {
            self.call();
        }
    }

    fn call(&mut self) {
        match self.addresses.call() {
            Some(address) => {
                self.waits_for_room.store(true, Ordering::Relaxed);
                let waits_for_room = WaitsForRoom(self.waits_for_room.clone());
                let (peers, site) = (self.peers.clone(), self.site.clone());
                self.calls.spawn(call(peers, site, address, waits_for_room));
            }
            None => self.note_problem(None),
        }
    }

    fn slot(&self) -> &super::PeerSite {
        &self.peers.0.peers[&self.site]
    }

    fn is_to_log(&self) -> bool {
        self.slot().conduct.is_to_log(&self.site)
    }

    fn current(&self) -> Option<Arc<PeerLink>> {
        self.peers.link(&self.site)
    }

    fn works(&self) -> bool {
        self.current().is_some_and(|link| !link.is_closed() && !link.is_silent())
    }

    /// Goes on with a call that got through, unless there is a link, or an earlier call is being
    /// gone on with. That one is left its time: over a slow network there would always be a newer
    /// one to give it up for.
    fn choose(&mut self, connection: quinn::Connection) {
        if self.works() || !self.greeting.is_empty() {
            link::spare(&connection);
            return;
        }
        self.greeting.spawn(greet(self.peers.clone(), self.site.clone(), connection));
    }

    /// What came of a call, if there was one, and what is known of the site's addresses.
    fn note_problem(&mut self, called: Option<&LinkError>) {
        let problems = called.into_iter().chain(self.addresses.problem());
        let text = problems.map(|problem| causes(problem)).collect::<Vec<_>>().join("; ");
        if text.is_empty() {
            return;
        }
        *lock(&self.slot().problem) = Some(text.clone());
        if !self.logged.contains(&text) {
            if self.is_to_log() {
                tracing::info!(site = %self.site, error = %text, "cannot be reached");
            }
            if self.logged.len() == PROBLEMS_KNOWN {
                self.logged.clear();
            }
            self.logged.insert(text);
        }
    }

    /// Whether a new connection takes the place of the one there is. Both sides must come to the
    /// same answer, or each would close the one that the other keeps.
    fn is_better(&self, candidate: &Candidate) -> bool {
        let Some(current) = self.current().filter(|link| !link.is_closed()) else { return true };
        let same_run = current.boot() == candidate.boot();
        let by_the_caller = |called: Called| (called == Called::ByUs) == self.we_call();
        !same_run
            || by_the_caller(candidate.called())
            || !by_the_caller(current.called())
            || current.is_silent()
    }

    /// Two agents have the identity of that site.
    async fn tell_of(&self, two: Two) {
        let notice = Notice::SharedIdentity(self.site.clone(), two.to_string());
        let _stopping = self.work.inbox.take(Event::Noticed(notice), None).await;
    }

    /// Keeps the run that is heard, and not an earlier one that is back beside it. Both are told when
    /// it is news.
    async fn turn_away(&self, candidate: Candidate) {
        let two = lock(&self.slot().runs).turned_away(candidate.address());
        candidate.turn_away();
        if let Some(two) = two {
            if let Some(link) = self.current() {
                link.turn_away();
            }
            self.tell_of(two).await;
        }
    }

    /// The other side keeps another agent with the identity of this site.
    async fn note_turned_away(&mut self) {
        let me = self.peers.0.hello.site.clone();
        let error = LinkError::Ourselves(me.clone());
        *lock(&self.slot().problem) = Some(error.to_string());
        if self.turned_away.replace(Instant::now()).is_none() {
            tracing::error!(site = %self.site, %error, "the other side does not let this agent in");
        } else {
            tracing::debug!(site = %self.site, "the other side turned this agent away again");
        }
        self.call_at = Instant::now() + TURNED_AWAY;
        if self.peers.0.refused.is_first_of_ourselves() {
            let seen = format!("`{}` hears another agent with this site's identity", self.site);
            let notice = Notice::SharedIdentity(me, seen);
            let _stopping = self.work.inbox.take(Event::Noticed(notice), None).await;
        }
    }

    async fn consider(&mut self, candidate: Candidate) {
        if candidate.is_turned_away() {
            self.note_turned_away().await;
            return;
        }
        // One that its caller gave up meanwhile is nobody's.
        if candidate.is_closed() || !self.is_better(&candidate) {
            candidate.decline();
            return;
        }
        let is_back = lock(&self.slot().runs).is_earlier(candidate.boot());
        if is_back && self.works() {
            self.turn_away(candidate).await;
            return;
        }
        let two = lock(&self.slot().runs).heard(candidate.boot(), candidate.address());
        if let Some(two) = two {
            self.tell_of(two).await;
        }
        if self.turned_away.is_none() && self.is_to_log() {
            tracing::info!(site = %self.site, address = %candidate.address(), "the link is up");
        }
        if candidate.called() == Called::ByUs {
            self.addresses.answered(candidate.address());
        }
        let link = candidate.begin(&self.work, self.slot().conduct.clone());
        let before = lock(&self.slot().link).replace(link);
        if let Some(before) = before {
            before.replaced();
        }
        if self.turned_away.is_none() {
            *lock(&self.slot().problem) = None;
        }
        self.logged.clear();
        self.calls.abort_all();
        self.note_where();
        let _stopping = self.work.inbox.take(Event::Reached(self.site.clone()), None).await;
    }
}

/// No longer once it is dropped, also where the call is given up.
struct WaitsForRoom(Arc<AtomicBool>);

impl Drop for WaitsForRoom {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

async fn call(
    peers: Peers,
    site: SiteId,
    address: SocketAddr,
    waits_for_room: WaitsForRoom,
) -> Result<quinn::Connection, LinkError> {
    let Some(port) = &peers.0.port else { return Err(LinkError::NotAPeer(site)) };
    let calls = &peers.0.calls;
    let room = calls.room().await;
    drop(waits_for_room);
    let began = Instant::now();
    let calling = async {
        let connecting = port.endpoint.connect_with(port.client.clone(), address, site.as_str())?;
        Ok::<_, LinkError>(connecting.await?)
    };
    let give_room = async {
        tokio::time::sleep(calls.room_for()).await;
        drop(room);
        std::future::pending().await
    };
    let called = tokio::select! {
        called = tokio::time::timeout(CALL_LASTS, calling) => called,
        never = give_room => never,
    };
    let connection = called.map_err(|_late| LinkError::NoAnswer)??;
    calls.succeeded(began.elapsed());
    Ok(connection)
}

async fn greet(
    peers: Peers,
    site: SiteId,
    connection: quinn::Connection,
) -> Result<Candidate, LinkError> {
    let candidate = Candidate::greet(connection, &peers.0.hello, &peers, Called::ByUs).await?;
    if *candidate.site() != site {
        let certificate = candidate.site().clone();
        candidate.decline();
        return Err(LinkError::Impostor { certificate, says: site });
    }
    Ok(candidate)
}
