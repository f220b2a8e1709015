//! A body on a stream between agents: pieces, each after its length, then an end that says so and
//! brings the trailers. A stream that ends without it broke off, and is never taken for a short
//! body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, ReadBuf};

use super::frame::{self, LinkError};

const CHUNK: usize = 64 * 1024;
const LENGTH: usize = 4;
/// The longest trailers taken in.
const LONGEST_TRAILERS: usize = 64 * 1024;

type HeaderLines = Vec<(String, Vec<u8>)>;

/// Why a body did not get to the other side.
pub(super) enum NotSent {
    /// Whoever gives it broke off: the other side has to hear that it is not whole.
    Body,
    Link,
}

/// Sends a whole body.
pub(super) async fn send<B>(body: B, to: &mut quinn::SendStream) -> Result<(), NotSent>
where
    B: Body<Data = Bytes>,
{
    let mut body = std::pin::pin!(body);
    let mut trailers = HeaderLines::new();
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_broken| NotSent::Body)?.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => piece(data, to).await?,
            Err(frame) => {
                let lines = frame.into_trailers().unwrap_or_default();
                let lines =
                    lines.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
                trailers.extend(lines);
            }
        }
    }
    let mut end = vec![0; LENGTH];
    frame::encode(&trailers, &mut end).map_err(|_too_long| NotSent::Body)?;
    to.write_all(&end).await.map_err(|_gone| NotSent::Link)?;
    let _gone = to.finish();
    Ok(())
}

async fn piece(mut data: Bytes, to: &mut quinn::SendStream) -> Result<(), NotSent> {
    while !data.is_empty() {
        let next = data.split_to(data.len().min(frame::LONGEST));
        let length = u32::try_from(next.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut both = [Bytes::copy_from_slice(&length), next];
        to.write_all_chunks(&mut both).await.map_err(|_gone| NotSent::Link)?;
    }
    Ok(())
}

/// A body as it arrives.
pub(super) struct IncomingBody<R> {
    stream: R,
    buffer: BytesMut,
    next: NextPiece,
    /// Why it breaks off, said a turn later: HTTP servers send a head that waits once a body has
    /// nothing to say, and drop it when the body fails at once. A client that hears nothing at all
    /// may take its request for one that never arrived, and repeat it.
    broke: Option<io::Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPiece {
    Length,
    /// So much is left of a piece.
    Data(usize),
    Trailers,
    Nothing,
}

impl<R> IncomingBody<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new(), next: NextPiece::Length, broke: None }
    }

    /// What can be said without hearing more.
    fn heard(&mut self) -> io::Result<Option<Frame<Bytes>>> {
        loop {
            match self.next {
                NextPiece::Length if self.buffer.len() >= LENGTH => {
                    self.next = match self.buffer.get_u32_le() as usize {
                        0 => NextPiece::Trailers,
                        length if length > frame::LONGEST => {
                            return Err(broken("a piece too long"));
                        }
                        length => NextPiece::Data(length),
                    };
                }
                NextPiece::Data(left) if !self.buffer.is_empty() => {
                    let data = self.buffer.split_to(self.buffer.len().min(left)).freeze();
                    let left = left - data.len();
                    self.next = if left == 0 { NextPiece::Length } else { NextPiece::Data(left) };
                    return Ok(Some(Frame::data(data)));
                }
                NextPiece::Trailers => {
                    let Some(lines) = self.trailers()? else { return Ok(None) };
                    self.next = NextPiece::Nothing;
                    return Ok((!lines.is_empty()).then(|| Frame::trailers(lines)));
                }
                _ => return Ok(None),
            }
        }
    }

    fn trailers(&mut self) -> io::Result<Option<HeaderMap>> {
        let Some(length) = self.buffer.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST_TRAILERS {
            return Err(broken("trailers too long"));
        }
        let Some(bytes) = self.buffer.get(LENGTH..LENGTH + length) else { return Ok(None) };
        let lines: HeaderLines =
            postcard::from_bytes(bytes).map_err(|_odd| broken("odd trailers"))?;
        let mut trailers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                trailers.append(name, value);
            }
        }
        Ok(Some(trailers))
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the other agent sent {why}"))
}

impl<R: AsyncRead + Unpin> IncomingBody<R> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Frame<Bytes>>>> {
        loop {
            if let Some(frame) = self.heard()? {
                return Poll::Ready(Ok(Some(frame)));
            }
            if self.next == NextPiece::Nothing {
                return Poll::Ready(Ok(None));
            }
            let mut chunk = vec![0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the body broke off");
                return Poll::Ready(Err(error));
            }
            self.buffer.extend_from_slice(read.filled());
        }
    }
}

impl<R: AsyncRead + Unpin> Body for IncomingBody<R> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if let Some(error) = this.broke.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(this.poll_next(context)) {
            Ok(frame) => Poll::Ready(frame.map(Ok)),
            Err(error) => {
                this.next = NextPiece::Nothing;
                this.broke = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.next == NextPiece::Nothing && self.broke.is_none()
    }
}

impl From<NotSent> for LinkError {
    fn from(_: NotSent) -> Self {
        Self::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is written to a stream.
    fn written(pieces: &[&[u8]], trailers: Option<&[(&str, &str)]>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(&u32::try_from(piece.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(piece);
        }
        if let Some(trailers) = trailers {
            bytes.extend_from_slice(&[0; LENGTH]);
            let line =
                |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
            let lines: HeaderLines = trailers.iter().map(line).collect();
            frame::encode(&lines, &mut bytes).unwrap();
        }
        bytes
    }

    async fn read(bytes: &[u8]) -> Result<(Bytes, Option<HeaderMap>), io::Error> {
        let collected = IncomingBody::new(bytes).collect().await?;
        let trailers = collected.trailers().cloned();
        Ok((collected.to_bytes(), trailers))
    }

    #[tokio::test]
    async fn a_body_arrives_with_its_trailers() {
        let (data, trailers) =
            read(&written(&[b"one", b"two"], Some(&[("x-sum", "7")]))).await.unwrap();
        assert_eq!(data, "onetwo");
        assert_eq!(trailers.unwrap()["x-sum"], "7");
        let (data, trailers) = read(&written(&[], Some(&[]))).await.unwrap();
        assert!(data.is_empty() && trailers.is_none());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_anywhere_is_no_body() {
        let whole = written(&[b"one", b"two"], Some(&[("x-sum", "7")]));
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).await.is_err(), "cut after {end} bytes");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_other_side_sends_there_is_an_end(bytes in proptest::collection::vec(0u8..3, 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _any = runtime.block_on(read(&bytes));
        }
    }
}
