//! Bodies on their way through: as they arrive, or so that they can be sent again.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body as Boxed;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::timer_pool::TimerPool;

/// What can be kept in memory to be sent a second time.
const KEPT: u64 = 64 * 1024;

/// Why a body did not come to its end.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body that comes in: from a client or from another site.
pub enum Arriving {
    /// From a client of this site.
    Here(Incoming),
    /// From another site, or one that was looked into on its way.
    FromPeer(Boxed),
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Here(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::FromPeer(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(body) => body.is_end_stream(),
            Self::FromPeer(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(body) => body.size_hint(),
            Self::FromPeer(body) => body.size_hint(),
        }
    }
}

/// A body that goes out.
pub struct OutgoingBody {
    from: BodySource,
    moves: Moves,
}

enum BodySource {
    Once(Arriving),
    Whole(Full<Bytes>),
    /// A file, with so many bytes that are still to come.
    Pieces(mpsc::Receiver<io::Result<Bytes>>, u64),
    /// It can be had back as long as nobody has read from it.
    Lent(Lent),
}

impl OutgoingBody {
    /// One that can be sent once.
    pub fn once(body: Arriving) -> Self {
        Self { from: BodySource::Once(body), moves: Moves::default() }
    }

    /// One that is there already.
    pub fn whole(bytes: Bytes) -> Self {
        Self { from: BodySource::Whole(Full::new(bytes)), moves: Moves::default() }
    }

    /// One of that many bytes, which comes from the disk a piece at a time.
    pub fn pieces(pieces: mpsc::Receiver<io::Result<Bytes>>, size: u64) -> Self {
        Self { from: BodySource::Pieces(pieces, size), moves: Moves::default() }
    }

    /// The same, with what came after it.
    pub fn of(whole: WholeBody) -> Self {
        match whole.trailers {
            None => Self::whole(whole.bytes),
            Some(_) => Self::once(Arriving::FromPeer(whole.into_body())),
        }
    }

    /// When it last moved, for whoever waits for the answer to it.
    pub fn moves(&self) -> Moves {
        self.moves.clone()
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let polled = match &mut this.from {
            BodySource::Once(body) => Pin::new(body).poll_frame(context),
            BodySource::Whole(body) => {
                Pin::new(body).poll_frame(context).map_err(|error| match error {})
            }
            BodySource::Pieces(pieces, left) => pieces.poll_recv(context).map(|piece| {
                let piece = piece?;
                if let Ok(piece) = &piece {
                    *left = left.saturating_sub(piece.len() as u64);
                }
                Some(piece.map(Frame::data).map_err(Into::into))
            }),
            BodySource::Lent(lent) => lent.poll_frame(context),
        };
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Err(error))) => this.moves.broke(error.to_string()),
            Poll::Ready(_) => this.moves.moved(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            BodySource::Once(body) => body.is_end_stream(),
            BodySource::Whole(body) => body.is_end_stream(),
            BodySource::Pieces(_, left) => *left == 0,
            // Only a body that is longer than can be kept is lent.
            BodySource::Lent(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            BodySource::Once(body) => body.size_hint(),
            BodySource::Whole(body) => body.size_hint(),
            BodySource::Pieces(_, left) => SizeHint::with_exact(*left),
            BodySource::Lent(lent) => lent.hint,
        }
    }
}

/// When a body last moved on: a service cannot answer before it has what it waits for.
#[derive(Clone)]
pub struct Moves {
    began: Instant,
    moved: Arc<Moved>,
}

#[derive(Default)]
struct Moved {
    /// Milliseconds since it began.
    last: AtomicU64,
    /// Why it did not come to its end.
    broken: OnceLock<String>,
}

impl Default for Moves {
    fn default() -> Self {
        Self { began: Instant::now(), moved: Arc::default() }
    }
}

impl Moves {
    fn moved(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.last.store(since, Ordering::Relaxed);
    }

    fn broke(&self, why: String) {
        let _once = self.moved.broken.set(why);
    }

    /// Why the body did not come to its end, if it broke off.
    pub fn broken(&self) -> Option<&str> {
        self.moved.broken.get().map(String::as_str)
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.moved.last.load(Ordering::Relaxed))
    }

    /// Waits for an answer, at most so long after the body moved on for the last time.
    pub async fn answered_within<T>(
        &self,
        limit: Duration,
        timers: &TimerPool,
        mut answer: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut end = self.last() + limit;
        let mut until = timers.until(end);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return Some(answer),
                () = &mut until => {}
            }
            let later = self.last() + limit;
            if later <= end {
                return None;
            }
            end = later;
            until.change(end);
        }
    }
}

/// Shared between whoever sends it and whoever may want it back.
struct Lent {
    body: Arc<Mutex<Owned>>,
    hint: SizeHint,
    turn: u64,
}

struct Owned {
    body: Arriving,
    touched: bool,
    /// Who has it now: whoever had it before gets no more of it.
    turn: u64,
}

impl Lent {
    fn poll_frame(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut owned = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.turn != self.turn {
            return Poll::Ready(Some(Err("the body was taken back".into())));
        }
        owned.touched = true;
        Pin::new(&mut owned.body).poll_frame(context)
    }
}

/// A body of which all is here, with what came after it.
#[derive(Debug, Clone, Default)]
pub struct WholeBody {
    /// All of it, but for its trailers.
    pub bytes: Bytes,
    trailers: Option<HeaderMap>,
}

impl WholeBody {
    /// Other bytes in the place of these.
    pub fn with(self, bytes: Bytes) -> Self {
        Self { bytes, ..self }
    }

    /// As a body that goes on. One with trailers does not say how long it is: over HTTP/1.1, trailers
    /// can follow only what comes in chunks.
    pub fn into_body(self) -> Boxed {
        let Some(trailers) = self.trailers else { return Boxed::from(self.bytes) };
        let frames = [Frame::data(self.bytes), Frame::trailers(trailers)];
        Boxed::new(StreamBody::new(stream::iter(frames.map(Ok::<_, BodyError>))))
    }
}

/// A body for one attempt after the other.
pub struct Supply(SuppliedBody);

enum SuppliedBody {
    Whole(WholeBody),
    Streamed { body: Arc<Mutex<Owned>>, hint: SizeHint },
}

impl Supply {
    /// Reads it if it is short; else it can be sent again only if nobody began to read it.
    pub async fn of(body: Arriving) -> Result<Self, BodyError> {
        let hint = body.size_hint();
        if hint.upper().is_some_and(|upper| upper <= KEPT) {
            let read = body.collect().await?;
            let trailers = read.trailers().cloned();
            let whole = WholeBody { bytes: read.to_bytes(), trailers };
            return Ok(Self(SuppliedBody::Whole(whole)));
        }
        let owned = Owned { body, touched: false, turn: 0 };
        Ok(Self(SuppliedBody::Streamed { body: Arc::new(Mutex::new(owned)), hint }))
    }

    /// The body once more; `None` if it is gone.
    pub fn next(&self) -> Option<OutgoingBody> {
        match &self.0 {
            SuppliedBody::Whole(whole) => Some(OutgoingBody::of(whole.clone())),
            SuppliedBody::Streamed { body, hint } => {
                let mut owned = body.lock().unwrap_or_else(PoisonError::into_inner);
                owned.turn += 1;
                let touched = owned.touched;
                let lent = Lent { body: body.clone(), hint: *hint, turn: owned.turn };
                let sent = OutgoingBody { from: BodySource::Lent(lent), moves: Moves::default() };
                (!touched).then_some(sent)
            }
        }
    }
}

/// A body of up to so many bytes, whole; a longer one goes on as it came.
pub async fn whole_if_short<B>(body: B, most: usize) -> Result<Result<WholeBody, Boxed>, BodyError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    whole_if_in_time(body, most, std::future::pending()).await
}

/// The same, if it does not say how long it is, only while `time` lasts.
pub async fn whole_if_in_time<B>(
    mut body: B,
    most: usize,
    time: impl Future<Output = ()>,
) -> Result<Result<WholeBody, Boxed>, BodyError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let may_never_end = body.size_hint().exact().is_none();
    let mut time = std::pin::pin!(time);
    let mut bytes = BytesMut::new();
    let mut trailers = None;
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut time, if may_never_end => break,
        };
        let Some(frame) = frame else {
            return Ok(Ok(WholeBody { bytes: bytes.freeze(), trailers }));
        };
        match frame.map_err(Into::into)?.into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if bytes.len() > most {
            break;
        }
    }
    let begun = stream::once(async { Ok(Frame::data(bytes.freeze())) });
    let rest = TryStreamExt::map_err(BodyStream::new(body), Into::<BodyError>::into);
    Ok(Err(Boxed::new(StreamBody::new(begun.chain(rest)))))
}

/// A body of so many bytes may take a second more.
const A_SECONDS: u64 = 1024 * 1024;

/// How long a request with a body of so many bytes may take that has so long without one.
pub fn limit_with(body: u64, limit: Duration) -> Duration {
    limit + Duration::from_secs(body / A_SECONDS)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    /// Longer than can be kept, and of a length that nobody knows.
    fn long() -> Arriving {
        let pieces = ["one", "two"].map(|piece| Ok::<_, io::Error>(Bytes::from(piece)));
        Arriving::FromPeer(Boxed::from_stream(futures_util::stream::iter(pieces)))
    }

    async fn read(body: OutgoingBody) -> Result<Bytes, BodyError> {
        Ok(body.collect().await?.to_bytes())
    }

    #[tokio::test]
    async fn a_long_body_is_lent_again_until_somebody_reads_it() {
        let supply = Supply::of(long()).await.unwrap();
        drop(supply.next().unwrap());
        let second = supply.next().unwrap();
        assert_eq!(read(second).await.unwrap(), "onetwo");
        assert!(supply.next().is_none());
    }

    #[tokio::test]
    async fn whoever_had_a_body_before_gets_nothing_more_of_it() {
        let supply = Supply::of(long()).await.unwrap();
        let (first, second) = (supply.next().unwrap(), supply.next().unwrap());
        assert!(read(first).await.is_err());
        assert_eq!(read(second).await.unwrap(), "onetwo", "all of it is there");
    }

    #[tokio::test]
    async fn a_body_that_may_never_end_is_not_waited_for_longer_than_said() {
        let pieces =
            || stream::iter(["one", "two"].map(|piece| Ok::<_, io::Error>(Bytes::from(piece))));
        let endless = pieces().chain(stream::pending());
        let (most, no_time) = (100, std::future::ready(()));
        let read = whole_if_in_time(Boxed::from_stream(endless), most, no_time).await;
        let mut rest = read.unwrap().expect_err("it has no end").into_data_stream();
        assert_eq!(rest.next().await.unwrap().unwrap(), "onetwo");

        let ends = Boxed::from_stream(pieces());
        let read = whole_if_in_time(ends, most, std::future::pending()).await;
        assert_eq!(read.unwrap().expect("it has an end").bytes, "onetwo");
        let says_how_long = whole_if_in_time(Boxed::from("six..."), most, std::future::ready(()));
        assert_eq!(says_how_long.await.unwrap().expect("it says so").bytes, "six...");
    }

    #[tokio::test]
    async fn what_comes_after_a_body_stays_with_it_whoever_looks_into_it() {
        let sum =
            || HeaderMap::from_iter([(HeaderName::from_static("x-sum"), "7".parse().unwrap())]);
        let summed = || {
            let frames = [Frame::data(Bytes::from("some")), Frame::trailers(sum())];
            Boxed::new(StreamBody::new(stream::iter(frames.map(Ok::<_, io::Error>))))
        };
        let trailers = async |body: Boxed| body.collect().await.unwrap().trailers().cloned();

        let short = whole_if_short(summed(), 100).await.unwrap().expect("it is short");
        let other = short.clone().with(Bytes::from("other"));
        assert_eq!(trailers(short.into_body()).await, Some(sum()));
        let sent = OutgoingBody::of(other).collect().await.unwrap();
        assert_eq!(sent.trailers(), Some(&sum()));
        assert_eq!(sent.to_bytes(), "other");
        let long = whole_if_short(summed(), 2).await.unwrap().expect_err("it is long");
        assert_eq!(trailers(long).await, Some(sum()));
        let says_how_long =
            Full::new(Bytes::from("some")).with_trailers(async move { Some(Ok(sum())) });
        let supply = Supply::of(Arriving::FromPeer(Boxed::new(says_how_long))).await.unwrap();
        for _ in 0..2 {
            let sent = supply.next().unwrap().collect().await.unwrap();
            assert_eq!(sent.trailers(), Some(&sum()));
        }
    }

    #[tokio::test]
    async fn a_short_body_can_be_sent_as_often_as_needed() {
        let supply = Supply::of(Arriving::FromPeer(Boxed::from("short"))).await.unwrap();
        for _ in 0..3 {
            assert_eq!(read(supply.next().unwrap()).await.unwrap(), "short");
        }
    }
}
