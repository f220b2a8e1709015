//! One connection at work: a writer and a reader for messages, and an ear for requests.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cheops_core::causes;
use cheops_core::engine::{Event, Malformed, Message, Notice};
use cheops_core::model::{KeyId, SiteId};
use cheops_record::FormError;
use cheops_record::wire::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::conduct::Conduct;
use super::content::{self, IncomingFiles};
use super::frame::{self, Hello, LinkError};
use super::supervise::Called;
use super::tunnel::PeerRouter;
use super::{Border, Peers, lock, tls, tunnel};
use crate::ports::Inbox;

/// How many messages may wait to be sent. More are dropped: the engine asks again.
const MESSAGES_WAITING: usize = 4_096;
/// How many go out in one write.
const MESSAGES_AT_ONCE: usize = 256;
/// Messages go before anything big on the same link.
const MESSAGES_FIRST: i32 = 10;
/// How many requests to the other site's services may be under way at once. Some are for hours
/// (watches, WebSockets), so there is room for thousands: one that waits takes some tens of KiB. They
/// take nothing of what is for calls and files, without which sites do not keep in step.
pub(super) const REQUESTS: u32 = 4_096;
/// How many calls of the other agent's API.
pub(super) const CALLS: u32 = 256;
/// How many files: one for each message that waits for some, and one for each call of the other
/// side that brings some.
pub(super) const FILES: u32 = 512;
/// How long to wait for room for one more of these.
const OPENING_LASTS: Duration = Duration::from_secs(5);
/// How long the other side may take to say what it opened a stream for.
const ASKING_LASTS: Duration = Duration::from_secs(10);
const GREETING_LASTS: Duration = Duration::from_secs(3);
/// Silence after which another connection is tried beside this one. Either side speaks more than
/// twice in that time.
const SILENT_AFTER: Duration = Duration::from_millis(1_200);

/// Why connections are closed, as the other side sees it.
pub(super) const CLOSED_BY_STOP: u32 = 0;
const CLOSED_AS_REFUSED: u32 = 1;
pub(super) const CLOSED_AS_SPARE: u32 = 2;
pub(super) const CLOSED_AS_SHARED: u32 = 3;

/// What a link hands things to.
#[derive(Clone)]
pub(super) struct LinkHandlers {
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) incoming: IncomingFiles,
    pub(super) router: PeerRouter,
    /// None only where there is no mesh, and so no link.
    pub(super) border: Option<Border>,
}

/// A connection whose other side has proven who it is, and speaks a language we know.
pub(super) struct Candidate {
    connection: quinn::Connection,
    send: quinn::SendStream,
    receive: quinn::RecvStream,
    hello: Hello,
    called: Called,
    key: Option<KeyId>,
}

impl Candidate {
    /// Both sides say who they are. Whoever does not fit is told why.
    pub(super) async fn greet(
        connection: quinn::Connection,
        ours: &Hello,
        peers: &Peers,
        called: Called,
    ) -> Result<Self, LinkError> {
        let greeted = async {
            let (certificate, shown) = tls::proven_site(&connection)?;
            if certificate == ours.site {
                return Err(LinkError::Ourselves(certificate));
            }
            let mut key = None;
            if let Some(border) = peers.0.border.clone() {
                let learnt = border.learn_soon(shown).await?;
                if border.is_set_apart(learnt) {
                    return Err(LinkError::SetApart(certificate));
                }
                key = Some(learnt);
            }
            if !peers.0.peers.contains_key(&certificate) {
                return Err(LinkError::NotAPeer(certificate));
            }
            let mut send = connection.open_uni().await?;
            let _closing = send.set_priority(MESSAGES_FIRST);
            send.write_all(&frame::greeting(ours)?).await?;
            let mut receive = connection.accept_uni().await?;
            let (hello, version) = frame::read_greeting(&mut receive, &certificate).await?;
            tracing::debug!(site = %certificate, version, "greeted");
            if hello.site != certificate {
                return Err(LinkError::Impostor { certificate, says: hello.site });
            }
            Ok((send, receive, hello, key))
        };
        let greeted = tokio::time::timeout(GREETING_LASTS, greeted).await;
        match greeted.unwrap_or(Err(LinkError::NoGreeting)) {
            Ok((send, receive, hello, key)) => {
                Ok(Self { connection, send, receive, hello, called, key })
            }
            Err(error) => {
                // If the other side closed it, its reason says more than ours.
                let told = connection.close_reason().filter(|_| !error.is_of_versions());
                let error = told.map_or(error, LinkError::from);
                connection.close(CLOSED_AS_REFUSED.into(), error.to_string().as_bytes());
                Err(error)
            }
        }
    }

    pub(super) fn site(&self) -> &SiteId {
        &self.hello.site
    }

    pub(super) fn boot(&self) -> u64 {
        self.hello.boot
    }

    pub(super) fn called(&self) -> Called {
        self.called
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    /// Whether the other side closed it because another agent shows the identity of this site.
    pub(super) fn is_turned_away(&self) -> bool {
        is_closed_as_shared(&self.connection)
    }

    /// There is a better one.
    pub(super) fn decline(self) {
        spare(&self.connection);
    }

    /// Another agent shows the identity of the other side's site.
    pub(super) fn turn_away(self) {
        shared(&self.connection, &self.hello.site);
    }

    /// Puts it to work.
    pub(super) fn begin(self, work: &LinkHandlers, conduct: Arc<Conduct>) -> Arc<PeerLink> {
        let (outgoing, messages) = mpsc::channel(MESSAGES_WAITING);
        let from = self.hello.site.clone();
        let link = Arc::new(PeerLink {
            connection: self.connection,
            hello: self.hello,
            called: self.called,
            key: self.key,
            conduct,
            outgoing,
            heard: Mutex::new((0, Instant::now())),
            requests: Room::of(REQUESTS),
            calls: Room::of(CALLS),
        });
        tokio::spawn(write(self.send, messages, work.border.clone()));
        let reader = LinkReader { from, link: link.clone(), work: work.clone() };
        tokio::spawn(reader.run(self.receive));
        tracing::debug!(site = %link.hello.site, release = %link.hello.software, "greeted");
        tokio::spawn(serve(link.connection.clone(), link.hello.site.clone(), work.clone()));
        link
    }
}

/// A connection at work.
pub(super) struct PeerLink {
    connection: quinn::Connection,
    hello: Hello,
    called: Called,
    /// The key that the other side has shown.
    key: Option<KeyId>,
    /// How the other side behaves, here and on the links before.
    pub(super) conduct: Arc<Conduct>,
    outgoing: mpsc::Sender<Outgoing>,
    /// How many datagrams had arrived when this was last looked at, and when that number changed.
    heard: Mutex<(u64, Instant)>,
    /// For requests to the other site's services.
    pub(super) requests: Room,
    /// For calls of the other agent's API.
    pub(super) calls: Room,
}

/// How many streams may be open at once for one kind of use.
pub(super) struct Room(Arc<Semaphore>);

/// The place of one of them, which whoever uses it holds.
pub(super) type StreamPermit = Arc<OwnedSemaphorePermit>;

impl Room {
    fn of(streams: u32) -> Self {
        Self(Arc::new(Semaphore::new(streams as usize)))
    }

    /// A place, as soon as there is one.
    pub(super) async fn place(&self) -> Result<StreamPermit, LinkError> {
        match tokio::time::timeout(OPENING_LASTS, self.0.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(Arc::new(place)),
            _ => Err(LinkError::NoRoom),
        }
    }
}

enum Outgoing {
    Message(Message),
    /// Says when everything before it was handed to the network.
    Flushed(oneshot::Sender<()>),
}

impl PeerLink {
    /// Whether it was taken; it may get lost all the same.
    pub(super) fn tell(&self, message: Message) -> bool {
        self.outgoing.try_send(Outgoing::Message(message)).is_ok()
    }

    pub(super) async fn flush(&self, until: Instant) {
        let (done, hears) = oneshot::channel();
        if self.outgoing.try_send(Outgoing::Flushed(done)).is_ok() {
            let _late = tokio::time::timeout_at(until.into(), hears).await;
        }
    }

    /// Opens a stream of its own. Whoever has a place, or fetches a file, finds room for it.
    pub(super) async fn open(&self) -> Result<(quinn::SendStream, quinn::RecvStream), LinkError> {
        let opening = tokio::time::timeout(OPENING_LASTS, self.connection.open_bi());
        Ok(opening.await.map_err(|_late| LinkError::NoRoom)??)
    }

    pub(super) fn peer(&self) -> &SiteId {
        &self.hello.site
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.connection.remote_address()
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.connection.rtt()
    }

    pub(super) fn boot(&self) -> u64 {
        self.hello.boot
    }

    pub(super) fn called(&self) -> Called {
        self.called
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    /// Whether nothing at all has arrived for a while.
    pub(super) fn is_silent(&self) -> bool {
        let arrived = self.connection.stats().udp_rx.datagrams;
        let mut heard = lock(&self.heard);
        if heard.0 != arrived {
            *heard = (arrived, Instant::now());
        }
        heard.1.elapsed() > SILENT_AFTER + self.round_trip()
    }

    /// A newer connection took its place.
    pub(super) fn replaced(&self) {
        spare(&self.connection);
    }

    /// Another agent shows the identity of the other side's site.
    pub(super) fn turn_away(&self) {
        shared(&self.connection, &self.hello.site);
    }

    /// Whether the other side closed it because another agent shows the identity of this site.
    pub(super) fn is_turned_away(&self) -> bool {
        is_closed_as_shared(&self.connection)
    }
}

fn is_closed_as_shared(connection: &quinn::Connection) -> bool {
    connection.close_reason().is_some_and(|why| LinkError::from(why).is_shared())
}

/// Closes a connection to one of two agents with the identity of that site, and says so.
fn shared(connection: &quinn::Connection, site: &SiteId) {
    let why = LinkError::Ourselves(site.clone()).to_string();
    connection.close(CLOSED_AS_SHARED.into(), why.as_bytes());
}

/// Closes a connection that there is no need for.
pub(super) fn spare(connection: &quinn::Connection) {
    connection.close(CLOSED_AS_SPARE.into(), b"there is another connection");
}

async fn write(
    mut send: quinn::SendStream,
    mut messages: mpsc::Receiver<Outgoing>,
    border: Option<Border>,
) {
    let mut sent = BTreeSet::new();
    let mut waiting = Vec::with_capacity(MESSAGES_AT_ONCE);
    let mut bytes = Vec::new();
    while messages.recv_many(&mut waiting, MESSAGES_AT_ONCE).await > 0 {
        bytes.clear();
        let mut flushed = Vec::new();
        for outgoing in waiting.drain(..) {
            match outgoing {
                Outgoing::Flushed(done) => flushed.push(done),
                Outgoing::Message(message) => {
                    let unknown = border.iter().flat_map(|it| it.to_send(&message, &mut sent));
                    for certificate in unknown {
                        if let Err(error) = frame::encode_certificate(&certificate, &mut bytes) {
                            tracing::error!(error = causes(&error), "a certificate is not sent");
                        }
                    }
                    if let Err(error) = frame::encode_message(&message, &mut bytes) {
                        tracing::error!(error = causes(&error), "a message could not be sent");
                    }
                }
            }
        }
        metrics::counter!("cheops_bytes_sent_total").increment(bytes.len() as u64);
        if send.write_all(&bytes).await.is_err() {
            return;
        }
        for done in flushed {
            let _gone = done.send(());
        }
        // One large message must not keep its memory for ever.
        bytes.shrink_to(256 * 1024);
    }
}

struct LinkReader {
    from: SiteId,
    link: Arc<PeerLink>,
    work: LinkHandlers,
}

impl LinkReader {
    async fn run(self, mut receive: quinn::RecvStream) {
        let mut buffer = Vec::new();
        let gate = content::FileGate::new(self.link.clone(), self.work.clone());
        let mut left_out = NotUnderstood::default();
        loop {
            let received = match frame::read_message(&mut receive, &mut buffer).await {
                Ok(received) => received,
                // It may have ended this stream alone: nothing is heard by this link any more.
                Err(LinkError::Broken) => return self.link.replaced(),
                Err(error) => return self.close_as_unreadable(&error).await,
            };
            metrics::counter!("cheops_bytes_received_total").increment(buffer.len() as u64);
            let bytes = buffer.len();
            buffer.shrink_to(256 * 1024);
            for error in &received.left_out {
                left_out.note(&self.from, error, &self.link.conduct);
            }
            let message = match received.frame {
                Some(Frame::Message(message)) => message,
                Some(Frame::Certificate(certificate)) => {
                    self.learn(&certificate);
                    continue;
                }
                None => continue,
            };
            let Some(message) = self.admit(message).await else { continue };
            let Some(message) = gate.pass(message, bytes) else { continue };
            let heard = Event::Heard { from: self.from.clone(), message };
            if self.work.inbox.take(heard, None).await.is_err() {
                return;
            }
        }
    }
}

impl LinkReader {
    /// Where a frame cannot be read, nobody knows where the next one begins. It is told who sent it.
    async fn close_as_unreadable(&self, error: &LinkError) {
        let reason = causes(error);
        if self.link.conduct.is_to_log(&self.from) {
            tracing::warn!(site = %self.from, error = reason, "the link is closed");
        }
        self.link.connection.close(CLOSED_AS_REFUSED.into(), reason.as_bytes());
        self.link.conduct.note_unreadable(reason);
        let notice = Notice::Malformed(self.from.clone(), Malformed::Unreadable);
        let _stopping = self.work.inbox.take(Event::Noticed(notice), None).await;
    }

    /// By which certificate entries that follow are to be checked.
    fn learn(&self, certificate: &[u8]) {
        let learnt = self.work.border.as_ref().map(|border| border.learn(certificate));
        if let Some(Err(error)) = learnt
            && self.link.conduct.is_to_log(&self.from)
        {
            let error = causes(&error);
            tracing::warn!(site = %self.from, error, "a certificate it sent is left aside");
        }
    }

    /// What is its author's word. That something is not is news, and nothing more.
    async fn admit(&self, message: Message) -> Option<Message> {
        let Some(border) = &self.work.border else { return Some(message) };
        // It may have been set apart since it was let in.
        if self.link.key.is_some_and(|key| border.is_set_apart(key)) {
            self.link.replaced();
            return None;
        }
        // A site is in one incarnation for as long as a link lasts.
        let life = match &message {
            Message::Heartbeat(beat) => Some(beat.incarnation),
            Message::Update(update) => Some(update.incarnation),
            Message::Evidence(_) => None,
        };
        if life.is_some_and(|life| life != self.link.hello.incarnation) {
            return None;
        }
        let admitted = border.admit(&self.from, message);
        if admitted.is_news {
            let notice = Notice::Malformed(self.from.clone(), Malformed::NotItsAuthors);
            let _stopping = self.work.inbox.take(Event::Noticed(notice), None).await;
        }
        admitted.message
    }
}

/// What a later version said and this one does not understand: each is told once, since it may be
/// said again and again.
#[derive(Default)]
struct NotUnderstood(BTreeSet<String>);

impl NotUnderstood {
    const MOST: usize = 256;

    fn note(&mut self, from: &SiteId, error: &FormError, conduct: &Conduct) {
        metrics::counter!("cheops_messages_left_out_total").increment(1);
        let is_news = self.0.len() < Self::MOST && self.0.insert(error.to_string());
        if is_news && conduct.is_to_log(from) {
            tracing::warn!(site = %from, %error, "what it says is left aside");
        }
    }
}

/// Takes what the other side opens streams for.
async fn serve(connection: quinn::Connection, from: SiteId, work: LinkHandlers) {
    while let Ok((send, mut receive)) = connection.accept_bi().await {
        let (from, work) = (from.clone(), work.clone());
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            let reading = frame::read(&mut receive, &mut buffer, frame::LONGEST_HEAD);
            let asked = tokio::time::timeout(ASKING_LASTS, reading).await;
            let served = match asked.unwrap_or(Err(LinkError::NoAnswer)) {
                Ok(frame::StreamRequest::Blob { blob, offset }) => {
                    content::serve(&work, blob, offset, send).await
                }
                Ok(frame::StreamRequest::Http { method, path, headers }) => {
                    let head = (method, path, headers);
                    let to = tunnel::To::Api;
                    tunnel::serve(&work.router, &from, to, head, receive, send).await
                }
                Ok(frame::StreamRequest::Service {
                    service,
                    is_empty,
                    upgrade,
                    among,
                    method,
                    path,
                    headers,
                }) => {
                    let head = (method, path, headers);
                    let to = tunnel::To::Service { service, is_empty, upgrade, among };
                    tunnel::serve(&work.router, &from, to, head, receive, send).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                let error = causes(&error);
                tracing::debug!(site = %from, error, "a request of another site was cut short");
            }
        });
    }
}
