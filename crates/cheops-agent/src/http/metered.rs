//! The bodies of requests: in memory as far as they fit there, or read no faster than they are taken in.
//!
//! What reads forms takes all there is before it looks at it, and looks for the end of a part's head
//! however far away that is. So a body is handed over in stretches, with a pause after each in which
//! what came is taken in, and is broken off where too much comes without any of it being of use, or
//! where it trickles: it would hold room on the disk, or a place, for nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use super::LARGEST_BODY;
use super::refusal::HttpRefusal;

/// How much comes at once, about.
const STRETCH: usize = 64 * 1024;
/// How much may come before the first part, or for the head of one.
pub(super) const LONGEST_HEAD: usize = 1024 * 1024;

/// So many bytes have to come,
const LEAST: usize = 60 * 1024;
/// within so long, not counting what the disk takes.
const LEAST_WITHIN: Duration = Duration::from_secs(60);

/// What is known of a body on its way.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Arc<MeterState>);

#[derive(Debug, Default)]
struct MeterState {
    /// What came since something was taken in.
    of_no_use: AtomicUsize,
    trickles: AtomicBool,
}

impl Meter {
    /// Something was taken in: a part began, or some of its content came.
    pub(super) fn went_on(&self) {
        self.0.of_no_use.store(0, Ordering::Relaxed);
    }

    /// Whether the body was broken off, because nothing in it was of use.
    pub(super) fn is_over(&self) -> bool {
        self.0.of_no_use.load(Ordering::Relaxed) > LONGEST_HEAD
    }

    /// Whether the body was broken off, because it came too slowly; and how much should have come.
    pub(super) fn trickled(&self) -> Option<String> {
        let trickles = self.0.trickles.load(Ordering::Relaxed);
        let within = LEAST_WITHIN.as_secs();
        trickles.then(|| format!("less than {LEAST} bytes of it came within {within} s"))
    }
}

/// The request with its body metered.
pub(super) fn metered(request: Request) -> (Request, Meter) {
    let meter = Meter::default();
    let (head, body) = request.into_parts();
    let body = Metered {
        body: body.into_data_stream(),
        meter: meter.clone(),
        left: STRETCH,
        wait: ClientWait::default(),
    };
    (Request::from_parts(head, Body::from_stream(body)), meter)
}

/// The body of a request that is kept in memory. One that trickles is broken off.
pub(super) async fn whole(request: Request) -> Result<Bytes, HttpRefusal> {
    let (request, meter) = metered(request);
    let mut body = request.into_body().into_data_stream();
    let mut whole = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| match meter.trickled() {
            Some(how) => HttpRefusal::too_slow(how),
            None => HttpRefusal::bad("the body broke off", error.to_string()),
        })?;
        meter.went_on();
        if whole.len() + chunk.len() > LARGEST_BODY {
            let detail = format!("the body is longer than {LARGEST_BODY} bytes");
            return Err(HttpRefusal::too_large(detail));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}

struct Metered {
    body: BodyDataStream,
    meter: Meter,
    /// Of this stretch.
    left: usize,
    wait: ClientWait,
}

/// How long the client was waited for, and what came of it.
#[derive(Default)]
struct ClientWait {
    before: Duration,
    since: Option<Instant>,
    came: usize,
    end: Option<Pin<Box<Sleep>>>,
}

impl ClientWait {
    fn came(&mut self, bytes: usize) {
        self.before += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.came += bytes;
        if self.came >= LEAST {
            (self.before, self.came) = (Duration::ZERO, 0);
        }
    }

    /// Nothing came yet: whether that is for too long by now. If not, it is looked at again then.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let until = since + LEAST_WITHIN.saturating_sub(self.before);
        let end = self.end.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if end.deadline() != until {
            end.as_mut().reset(until);
        }
        end.as_mut().poll(cx).is_ready()
    }
}

impl Stream for Metered {
    type Item = Result<Bytes, axum::BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.meter.is_over() {
            return Poll::Ready(Some(Err("too much of it is of no use".into())));
        }
        if self.left == 0 {
            self.left = STRETCH;
            // It goes on at once, with what came by then.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.body).poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) => {
                self.left = self.left.saturating_sub(bytes.len());
                self.wait.came(bytes.len());
                self.meter.0.of_no_use.fetch_add(bytes.len(), Ordering::Relaxed);
            }
            Poll::Pending if self.wait.is_over(cx) => {
                self.meter.0.trickles.store(true, Ordering::Relaxed);
                return Poll::Ready(Some(Err("it comes too slowly".into())));
            }
            Poll::Ready(_) | Poll::Pending => {}
        }
        polled.map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::{FromRequest, Multipart};
    use axum::response::IntoResponse;
    use futures_util::stream;

    use super::*;

    const HEAD: &str = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";

    /// A form of these pieces, each as often as it says.
    fn form(pieces: Vec<(&'static str, usize)>) -> Request {
        let pieces =
            pieces.into_iter().flat_map(|(piece, times)| std::iter::repeat_n(piece, times));
        let body = stream::iter(pieces.map(Ok::<_, std::io::Error>));
        Request::post("/")
            .header("content-type", "multipart/form-data; boundary=b")
            .body(Body::from_stream(body))
            .unwrap()
    }

    /// How many bytes of files it has, and the longest piece in which they came.
    async fn taken(request: Request) -> (Result<usize, String>, usize, bool) {
        let (request, meter) = metered(request);
        let mut form = Multipart::from_request(request, &()).await.unwrap();
        let (mut all, mut longest) = (0, 0);
        let result = async {
            while let Some(mut field) = form.next_field().await.map_err(|e| e.body_text())? {
                meter.went_on();
                while let Some(chunk) = field.chunk().await.map_err(|e| e.body_text())? {
                    meter.went_on();
                    all += chunk.len();
                    longest = longest.max(chunk.len());
                }
            }
            Ok(())
        };
        let result = result.await;
        (result.map(|()| all), longest, meter.is_over())
    }

    fn piece() -> &'static str {
        String::leak("0123456789abcdef".repeat(256))
    }

    #[tokio::test]
    async fn a_file_longer_than_any_head_passes_in_small_pieces() {
        // More than a head may have, and no more than is taken where nothing else is said.
        let (piece, times) = (piece(), 384);
        let request = form(vec![(HEAD, 1), (piece, times), ("\r\n--b--\r\n", 1)]);
        let (result, longest, is_over) = taken(request).await;
        assert_eq!(result, Ok(times * piece.len()));
        assert!(longest <= 2 * STRETCH, "{longest} bytes were in memory at once");
        assert!(!is_over);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_broken_off_and_one_that_is_only_slow_is_not() {
        for (every_ms, is_slow) in [(1_000, false), (5_000, true)] {
            let began = Instant::now();
            let pieces = stream::unfold(0, move |n| async move {
                tokio::time::sleep(Duration::from_millis(every_ms)).await;
                let piece = match n {
                    0 => HEAD,
                    1..100 => piece(),
                    100 => "\r\n--b--\r\n",
                    _ => return None,
                };
                Some((Ok::<_, std::io::Error>(piece), n + 1))
            });
            let request = Request::post("/")
                .header("content-type", "multipart/form-data; boundary=b")
                .body(Body::from_stream(pieces))
                .unwrap();
            let (request, meter) = metered(request);
            let mut form = Multipart::from_request(request, &()).await.unwrap();
            let mut field = form.next_field().await.unwrap().unwrap();
            let ended = loop {
                match field.chunk().await {
                    Ok(Some(_)) => meter.went_on(),
                    ended => break ended,
                }
            };
            assert_eq!(ended.is_err(), is_slow);
            assert_eq!(meter.trickled().is_some(), is_slow);
            assert_eq!(began.elapsed() < Duration::from_secs(62), is_slow);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_in_json_that_trickles_is_ended_too_and_one_that_is_too_long() {
        let every = |pause_ms: u64, piece: &'static str| {
            let pieces = stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                Some((Ok::<_, std::io::Error>(piece), ()))
            });
            whole(Request::new(Body::from_stream(pieces)))
        };
        let status = |refused: Result<Bytes, HttpRefusal>| {
            refused.unwrap_err().into_response().status().as_u16()
        };
        let began = Instant::now();
        assert_eq!(status(every(1_000, " ").await), 408);
        assert!(began.elapsed() < Duration::from_secs(62));
        assert_eq!(status(every(1, piece()).await), 413);
        let short = Request::new(Body::from("{}"));
        assert_eq!(whole(short).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_broken_off() {
        let (piece, endless) = (piece(), 1 << 20);
        for pieces in [
            vec![(piece, endless)],
            vec![("--b\r\nContent-Disposition: form-data; name=\"", 1), (piece, endless)],
            vec![("--b\r\n", 1), ("X-Head: 1\r\n", endless)],
        ] {
            let (result, _, is_over) = taken(form(pieces)).await;
            assert!(result.is_err() && is_over, "{result:?}");
        }
    }
}
