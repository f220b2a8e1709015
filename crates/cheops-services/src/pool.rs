//! Kept connections to one service, by HTTP/1.1. Who asks takes the one that was used last, and it
//! is there again for others when the answer was read to its end.
//!
//! A proxy's clients are many, and its service is one: there is nothing to look up, and no task is
//! needed to wait until a connection is free.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use tower::ServiceExt;

use super::body::{BodyError, OutgoingBody};
use super::coalesce::Coalesced;
use super::connector::{Connector, IDLE, IDLE_CONNECTIONS};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The request never left.
    #[error("no connection")]
    NoConnection(#[source] BodyError),
    /// Some of it may have arrived.
    #[error("the connection broke off")]
    BrokenOff(#[source] hyper::Error),
}

/// The connections. Clones share them.
#[derive(Clone)]
pub(super) struct Pool {
    connector: Connector,
    upstream: Uri,
    kept: Arc<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections(Mutex<IdleState>);

#[derive(Default)]
struct IdleState {
    /// Those that nobody uses, the last used last.
    idle: Vec<Idle>,
    is_swept: bool,
}

struct Idle {
    connection: SendRequest<OutgoingBody>,
    since: Instant,
}

impl Pool {
    /// Without any connection yet.
    pub(super) fn new(connector: Connector, upstream: Uri) -> Self {
        Self { connector, upstream, kept: Arc::default() }
    }

    /// Another one to the same service.
    pub(super) fn apart(&self) -> Self {
        Self::new(self.connector.clone(), self.upstream.clone())
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn ask(
        &self,
        mut request: Request<OutgoingBody>,
    ) -> Result<Response<AnswerBody>, Unanswered> {
        while let Some(Idle { mut connection, .. }) = self.kept.take() {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(self.lend(connection, response)),
                // The service closed it before any of the request was written.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Unanswered::BrokenOff(error.into_error())),
                },
            }
        }
        let mut connection = Box::pin(self.connect()).await?;
        let response = connection.send_request(request).await.map_err(Unanswered::BrokenOff)?;
        Ok(self.lend(connection, response))
    }

    /// A connection that is there already, or a new one. The next request takes it, so it costs
    /// nothing to have it before there is one.
    pub(super) async fn hold(&self) -> Result<HeldConnection, Unanswered> {
        let idle = match self.kept.take() {
            Some(idle) => idle,
            None => {
                let mut connection = Box::pin(self.connect()).await?;
                // One that is closed at once is not kept.
                let _open = connection.ready().await;
                Idle { connection, since: Instant::now() }
            }
        };
        Ok(HeldConnection(Some((idle, self.kept.clone()))))
    }

    async fn connect(&self) -> Result<SendRequest<OutgoingBody>, Unanswered> {
        let connecting = self.connector.clone().oneshot(self.upstream.clone());
        let stream = connecting.await.map_err(Unanswered::NoConnection)?;
        let shaken = handshake(Coalesced(stream)).await;
        let (sender, connection) =
            shaken.map_err(|error| Unanswered::NoConnection(error.into()))?;
        // How it ended is told to whoever waits for an answer.
        tokio::spawn(connection.with_upgrades());
        if !std::mem::replace(&mut self.kept.state().is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.kept)));
        }
        Ok(sender)
    }

    fn lend(
        &self,
        connection: SendRequest<OutgoingBody>,
        response: Response<Incoming>,
    ) -> Response<AnswerBody> {
        let lent = Some((connection, self.kept.clone()));
        response.map(|body| AnswerBody { body, lent })
    }
}

impl IdleConnections {
    fn state(&self) -> MutexGuard<'_, IdleState> {
        // Nothing here leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that can be used at once.
    fn take(&self) -> Option<Idle> {
        let idle = &mut self.state().idle;
        // Not those that the service closed, or that are still busy with what nobody waits for.
        let at = idle.iter().rposition(|one| one.connection.is_ready())?;
        (idle[at].since.elapsed() < IDLE).then(|| idle.remove(at))
    }

    fn give_back(&self, one: Idle) {
        let idle = &mut self.state().idle;
        if !one.connection.is_closed() && idle.len() < IDLE_CONNECTIONS {
            idle.push(one);
        }
    }
}

/// Closes what nobody used for long, until the pool is gone.
async fn sweep(kept: Weak<IdleConnections>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(kept) = kept.upgrade() else { return };
        let idle = &mut kept.state().idle;
        idle.retain(|one| !one.connection.is_closed() && one.since.elapsed() < IDLE);
    }
}

/// The body of an answer, with the connection on which it comes.
pub struct AnswerBody {
    body: Incoming,
    lent: Option<(SendRequest<OutgoingBody>, Arc<IdleConnections>)>,
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some((connection, kept)) = self.lent.take() {
            kept.give_back(Idle { connection, since: Instant::now() });
        }
    }
}

/// A body that goes back to the client: as it comes from the service, or made anew.
pub type Returned = http_body_util::Either<AnswerBody, axum::body::Body>;

/// A connection that nobody uses yet. Let go, it is there for the next request.
pub struct HeldConnection(Option<(Idle, Arc<IdleConnections>)>);

impl Drop for HeldConnection {
    fn drop(&mut self) {
        // One that was held for long may just be being closed.
        if let Some((idle, kept)) = self.0.take().filter(|(idle, _)| idle.since.elapsed() < IDLE) {
            kept.give_back(idle);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::connector::{Roots, connector};
    use super::*;

    /// A service that says on which of its connections it is asked.
    async fn service() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            for n in 1.. {
                let (mut client, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{n}");
                    while client.read(&mut [0; 1024]).await.is_ok_and(|asked| asked > 0) {
                        client.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        address
    }

    fn pool(address: SocketAddr) -> Pool {
        let upstream = format!("http://{address}").parse().unwrap();
        Pool::new(connector(Roots::None).unwrap(), upstream)
    }

    fn request() -> Request<OutgoingBody> {
        let request = Request::get("/").header("host", "image");
        request.body(OutgoingBody::whole(Bytes::new())).unwrap()
    }

    async fn read(response: Response<AnswerBody>) -> Bytes {
        response.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_connection_is_used_again_as_soon_as_its_answer_was_read() {
        let pool = pool(service().await);
        for _ in 0..3 {
            assert_eq!(read(pool.ask(request()).await.unwrap()).await, "1");
        }
        let unread = pool.ask(request()).await.unwrap();
        assert_eq!(read(pool.ask(request()).await.unwrap()).await, "2", "the first is in use");
        assert_eq!(read(unread).await, "1");
        assert_eq!(read(pool.apart().ask(request()).await.unwrap()).await, "3");
    }

    #[tokio::test]
    async fn a_connection_that_was_held_is_the_next_requests() {
        let pool = pool(service().await);
        let held = pool.hold().await.unwrap();
        assert_eq!(read(pool.ask(request()).await.unwrap()).await, "2", "the first is held");
        drop(held);
        let (one, two) = tokio::join!(pool.ask(request()), pool.ask(request()));
        let heard = [read(one.unwrap()).await, read(two.unwrap()).await];
        assert!(heard.contains(&"1".into()) && heard.contains(&"2".into()), "{heard:?}");
        drop(pool.hold().await.unwrap());
        assert_ne!(read(pool.ask(request()).await.unwrap()).await, "3", "none was opened for it");
    }

    #[tokio::test]
    async fn one_that_the_service_closed_is_not_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = pool(listener.local_addr().unwrap());
        for _ in 0..3 {
            let answering = async {
                let (mut client, _) = listener.accept().await.unwrap();
                let _asked = client.read(&mut [0; 1024]).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1").await.unwrap();
            };
            let (answer, ()) = tokio::join!(pool.ask(request()), answering);
            assert_eq!(read(answer.unwrap()).await, "1");
            let heard_of_it = async {
                while pool.kept.state().idle.iter().any(|one| !one.connection.is_closed()) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(10), heard_of_it).await.unwrap();
        }
    }

    #[tokio::test]
    async fn it_is_told_apart_whether_a_request_never_left_or_was_not_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let pool = pool(listener.local_addr().unwrap());
        let closing = async {
            let (mut client, _) = listener.accept().await.unwrap();
            let _asked = client.read(&mut [0; 1024]).await.unwrap();
        };
        let (broken, ()) = tokio::join!(pool.ask(request()), closing);
        assert!(matches!(broken, Err(Unanswered::BrokenOff(_))));
        drop(listener);
        let unreached = pool.ask(request()).await;
        assert!(matches!(unreached, Err(Unanswered::NoConnection(_))));
    }
}
