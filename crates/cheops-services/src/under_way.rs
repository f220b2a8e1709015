//! What is under way on one connection of a client, so that one on which nothing is can be let go.
//!
//! Who speaks HTTP/2 can keep a connection for ever by answering to signs of life alone, and asks for
//! nothing. A request is under way until its answer was read, or nobody reads it any more.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

/// How many requests of one connection are under way. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct RequestsUnderWay(watch::Sender<usize>);

impl RequestsUnderWay {
    /// One more, for as long as this is held.
    pub fn begin(&self) -> RequestUnderWay {
        self.0.send_modify(|under_way| *under_way += 1);
        RequestUnderWay(self.0.clone())
    }

    /// Waits until nothing was under way for so long, or nothing has come at all for the shorter time
    /// that the first request has.
    pub async fn idle(&self, first: Duration, then: Duration) {
        let mut limit = first;
        let mut seen = self.0.subscribe();
        // The sender is held here, so that the channel is open.
        while seen.wait_for(|under_way| *under_way == 0).await.is_ok() {
            if timeout(limit, seen.changed()).await.is_err() {
                return;
            }
            limit = then;
        }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub struct RequestUnderWay(watch::Sender<usize>);

impl RequestUnderWay {
    /// It goes on until this body of its answer was read.
    pub fn until_read<B>(self, body: B) -> BodyUnderWay<B> {
        BodyUnderWay { body, _until_read: Some(self) }
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|under_way| *under_way = under_way.saturating_sub(1));
    }
}

/// The body of an answer, which may keep its request under way.
#[derive(Debug)]
pub struct BodyUnderWay<B> {
    body: B,
    _until_read: Option<RequestUnderWay>,
}

impl<B> From<B> for BodyUnderWay<B> {
    /// One of a request that nobody counts.
    fn from(body: B) -> Self {
        Self { body, _until_read: None }
    }
}

impl<B: Body + Unpin> Body for BodyUnderWay<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
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
    use http_body_util::Empty;
    use tokio::time::Instant;

    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const THEN: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_nothing_was_asked_and_nothing_read_for_long_enough() {
        let began = Instant::now();
        let requests = RequestsUnderWay::default();
        requests.idle(FIRST, THEN).await;
        assert_eq!(began.elapsed(), FIRST, "it never asked for anything");

        let hour = Duration::from_secs(3_600);
        let idle = tokio::spawn({
            let requests = requests.clone();
            async move { requests.idle(FIRST, THEN).await }
        });
        tokio::time::sleep(FIRST / 2).await;
        let body = requests.begin().until_read(Empty::<&[u8]>::new());
        tokio::time::sleep(hour).await;
        assert!(!idle.is_finished(), "somebody reads still");
        drop(body);
        let read = Instant::now();
        tokio::time::sleep(THEN / 2).await;
        drop(requests.begin());
        idle.await.unwrap();
        assert_eq!(read.elapsed(), THEN / 2 + THEN, "from the last request on");
    }
}
