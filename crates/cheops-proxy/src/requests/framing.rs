//! Where the messages of an HTTP/1 connection begin and end, seen before anyone acts on it.
//!
//! A message that says in two ways how long it is may be read in two ways: by this proxy and by
//! the service behind it. What one takes for a body the other takes for a second request. So such
//! messages are refused, and not made unambiguous by choosing one of the ways.
//!
//! A head is handed on when it is whole. In the place of one that is refused comes a request that
//! stands for it, so that the refusal is an answer like others: after those to earlier requests.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http::{Method, Version};
use memchr::{memchr, memchr_iter, memchr2};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::headers::NOT_GONE_OVER_TO;

const LONGEST_HEAD: usize = 512 * 1024;
const LONGEST_LINE: usize = 8 * 1024;
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";
/// Read at once of what is not handed on yet.
const PIECE: usize = 8 * 1024;

/// Follows the bytes that a client sends.
#[derive(Debug)]
struct Framing {
    state: FramingState,
    then: Then,
}

#[derive(Debug)]
enum FramingState {
    /// A head, of which so many bytes were looked through without finding its end.
    Head(usize),
    /// So many bytes of a body are to come.
    Body(u64),
    /// A chunk's size, or a line of the trailers: what there is of it.
    Line { line: Vec<u8>, trailers: bool },
    /// So many bytes of a chunk, and the end of its line, are to come.
    Chunk(u64),
    /// Another protocol, or nothing that will be taken for a message.
    Opaque,
}

/// How the body after a head is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Bytes(u64),
    Chunks,
}

/// What comes after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Message,
    /// Whatever both sides agree on. If they do not, the connection is closed with the answer.
    AnotherProtocol,
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Head(&'static str),
    /// Somebody has the head already.
    Body(&'static str),
}

impl Framing {
    const fn new() -> Self {
        Self { state: FramingState::Head(0), then: Then::Message }
    }

    /// Reads on: how many of these bytes can be handed on, and what is wrong with those that
    /// follow, if something is. Else what follows is of a head that is not whole, and is to be
    /// shown again with more.
    fn look(&mut self, bytes: &[u8]) -> (usize, Option<Wrong>) {
        let mut fine = 0;
        while fine < bytes.len() {
            match self.step(&bytes[fine..]) {
                Ok(0) => break,
                Ok(taken) => fine += taken,
                Err(wrong) => return (fine, Some(wrong)),
            }
        }
        (fine, None)
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        match &mut self.state {
            FramingState::Opaque => Ok(bytes.len()),
            FramingState::Head(seen) => {
                // Empty lines before a request are nothing.
                if matches!(bytes[0], b'\r' | b'\n') {
                    return Ok(1);
                }
                if !is_of_a_method(bytes[0]) {
                    return Err(Wrong::Head("it does not begin with a method"));
                }
                let Some(end) = end_of_head(bytes, *seen) else {
                    *seen = bytes.len();
                    if bytes.len() <= LONGEST_HEAD {
                        return Ok(0);
                    }
                    // Too long a head is refused by whoever reads it.
                    self.state = FramingState::Opaque;
                    return Ok(bytes.len());
                };
                if bytes[..end] == *HTTP2 {
                    self.state = FramingState::Opaque;
                    return Ok(end);
                }
                let (follows, then) = follows(&bytes[..end]).map_err(Wrong::Head)?;
                self.then = then;
                self.state = match follows {
                    Follows::Bytes(0) => self.next_message(),
                    Follows::Bytes(length) => FramingState::Body(length),
                    Follows::Chunks => FramingState::Line { line: Vec::new(), trailers: false },
                };
                Ok(end)
            }
            FramingState::Body(left) => {
                let taken = least(*left, bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    self.state = self.next_message();
                }
                Ok(taken)
            }
            FramingState::Chunk(left) => {
                let taken = least(*left, bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    self.state = FramingState::Line { line: Vec::new(), trailers: false };
                }
                Ok(taken)
            }
            FramingState::Line { line, trailers } => {
                let end = memchr(b'\n', bytes);
                let taken = end.map_or(bytes.len(), |end| end + 1);
                line.extend_from_slice(&bytes[..taken]);
                if line.len() > LONGEST_LINE {
                    return Err(Wrong::Body("a line between chunks is too long"));
                }
                if end.is_some() {
                    let next = next_line(line, *trailers).map_err(Wrong::Body)?;
                    self.state = next.unwrap_or_else(|| self.next_message());
                }
                Ok(taken)
            }
        }
    }

    const fn next_message(&self) -> FramingState {
        match self.then {
            Then::Message => FramingState::Head(0),
            Then::AnotherProtocol => FramingState::Opaque,
        }
    }
}

fn least(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

/// As a method is spelt (RFC 9110, 5.6.2).
fn is_of_a_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Where a head ends, if it is not before what was looked through.
fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    let mut ends = memchr_iter(b'\n', &bytes[seen..]).map(|at| seen + at + 1);
    ends.find(|end| bytes[..*end].ends_with(b"\n\r\n") || bytes[..*end].ends_with(b"\n\n"))
}

/// The lines that are there whole, without their `\n`, and where each begins.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    memchr_iter(b'\n', bytes).map(move |end| {
        let start = std::mem::replace(&mut next, end + 1);
        (start, &bytes[start..end])
    })
}

fn follows(head: &[u8]) -> Result<(Follows, Then), &'static str> {
    let (mut lengths, mut encodings) = (Vec::new(), Vec::new());
    let (mut tunnels, mut upgrades, mut goes_over) = (false, false, false);
    for (start, line) in lines(head) {
        let Some((b'\r', line)) = line.split_last() else {
            match line {
                [] => continue,
                _ => return Err("a line of the head does not end as lines do"),
            }
        };
        if memchr2(b'\r', 0, line).is_some() {
            return Err("a line of the head holds what lines cannot hold");
        }
        if start == 0 {
            tunnels = line.starts_with(b"CONNECT ");
            continue;
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err("a header goes on in the next line");
        }
        let Some(colon) = memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.last().is_some_and(u8::is_ascii_whitespace) {
            return Err("there is a space before a header's colon");
        }
        match name {
            name if name.eq_ignore_ascii_case(b"content-length") => lengths.push(value),
            name if name.eq_ignore_ascii_case(b"transfer-encoding") => encodings.push(value),
            name if name.eq_ignore_ascii_case(b"upgrade") => {
                upgrades |= value != NOT_GONE_OVER_TO.as_bytes();
            }
            name if name.eq_ignore_ascii_case(b"connection") => {
                let mut options = value.split(|byte| *byte == b',');
                goes_over |= options.any(|one| one.trim_ascii().eq_ignore_ascii_case(b"upgrade"));
            }
            _ => {}
        }
    }
    let follows = match (&lengths[..], &encodings[..]) {
        ([], []) => Follows::Bytes(0),
        ([length], []) => {
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(length).ok().filter(|_| digits);
            let number = number.and_then(|digits| digits.parse().ok());
            Follows::Bytes(number.ok_or("its `Content-Length` is no number")?)
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Follows::Chunks,
        ([], [_]) => return Err("its `Transfer-Encoding` is not `chunked`"),
        ([_, _, ..], []) => return Err("it has more than one `Content-Length`"),
        ([], _) => return Err("it has more than one `Transfer-Encoding`"),
        _ => return Err("it has both `Content-Length` and `Transfer-Encoding`"),
    };
    let is_offered = tunnels || (goes_over && upgrades);
    Ok((follows, if is_offered { Then::AnotherProtocol } else { Then::Message }))
}

/// What comes after a line between chunks; `None` after the last of the message.
fn next_line(line: &[u8], trailers: bool) -> Result<Option<FramingState>, &'static str> {
    let text =
        line.strip_suffix(b"\r\n").ok_or("a line between chunks does not end as lines do")?;
    if trailers {
        let next = FramingState::Line { line: Vec::new(), trailers: true };
        return Ok((!text.is_empty()).then_some(next));
    }
    let size = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let hex = (1..=16).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(size).ok().filter(|_| hex);
    let size = size.and_then(|size| u64::from_str_radix(size, 16).ok());
    match size.ok_or("the size of a chunk is no number")? {
        0 => Ok(Some(FramingState::Line { line: Vec::new(), trailers: true })),
        size => Ok(Some(FramingState::Chunk(size.saturating_add(2)))),
    }
}

/// The method of a request that stands for one that is refused.
const UNREADABLE: &str = "UNREADABLE";

/// Why a client is refused, for whoever answers it.
#[derive(Debug, Clone, Default)]
pub(super) struct FramingVerdict(Arc<OnceLock<&'static str>>);

impl FramingVerdict {
    /// Why a request is refused, if it stands for one that is.
    pub(super) fn on(&self, method: &Method) -> Option<&'static str> {
        self.0.get().copied().filter(|_| method.as_str() == UNREADABLE)
    }
}

/// A client's connection, of which nothing is handed on that can be read in two ways.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    framing: Framing,
    /// What was read and is not handed on: so many bytes that can be, and what there is of a head.
    held: BytesMut,
    fine: usize,
    wrong: Option<Wrong>,
    verdict: FramingVerdict,
}

impl<S: AsyncRead + Unpin> Guarded<S> {
    pub(super) fn new(stream: S, verdict: FramingVerdict) -> Self {
        let held = BytesMut::new();
        Self { stream, framing: Framing::new(), held, fine: 0, wrong: None, verdict }
    }

    /// Which version of HTTP the client speaks, as soon as its first head is there.
    pub(super) async fn version(&mut self) -> io::Result<Version> {
        while self.fine == 0 {
            if poll_fn(|context| self.poll_more(context)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(if self.held.starts_with(HTTP2) { Version::HTTP_2 } else { Version::HTTP_11 })
    }

    /// Reads more of a head that is not whole.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [0; PIECE];
        let mut piece = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        self.held.extend_from_slice(piece.filled());
        let (fine, wrong) = self.framing.look(&self.held);
        self.fine = fine;
        self.stop_at(wrong);
        Poll::Ready(Ok(piece.filled().len()))
    }

    /// Nothing after what is fine is handed on, if something is wrong.
    fn stop_at(&mut self, wrong: Option<Wrong>) {
        if wrong.is_some() {
            self.held.truncate(self.fine);
        }
        if let Some(Wrong::Head(why)) = wrong {
            let _once = self.verdict.0.set(why);
            let in_its_place = format!("{UNREADABLE} / HTTP/1.1\r\n\r\n");
            self.held.extend_from_slice(in_its_place.as_bytes());
            self.fine = self.held.len();
        }
        self.wrong = wrong;
    }

    fn hand_on(&mut self, buffer: &mut ReadBuf<'_>) {
        let most = self.fine.min(buffer.remaining());
        buffer.put_slice(&self.held.split_to(most));
        self.fine -= most;
        if self.held.is_empty() {
            // Most connections never need it again.
            self.held = BytesMut::new();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.fine > 0 {
                this.hand_on(buffer);
                return Poll::Ready(Ok(()));
            }
            match this.wrong {
                // The connection is closed with the answer.
                Some(Wrong::Head(_)) => return Poll::Pending,
                Some(Wrong::Body(why)) => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                None if this.held.is_empty() => {}
                None => match ready!(this.poll_more(context))? {
                    // Half a head is nothing.
                    0 => return Poll::Ready(Ok(())),
                    _ => continue,
                },
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            let read = &buffer.filled()[before..];
            let (fine, wrong) = this.framing.look(read);
            if fine == read.len() {
                return Poll::Ready(Ok(()));
            }
            this.held.extend_from_slice(&read[fine..]);
            this.stop_at(wrong);
            buffer.set_filled(before + fine);
            if fine > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const FINE: [&str; 8] = [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        // A body may say what it likes.
        "POST / HTTP/1.1\r\nContent-Length: 59\r\n\r\nA: b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n\n\n\n\n",
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\na\r\n\r\n0\r\n\r\n\n\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nA:\r\n\r\n",
    ];

    fn look(bytes: &[u8], step: usize) -> Result<Framing, Wrong> {
        let (mut framing, mut held) = (Framing::new(), Vec::new());
        for piece in bytes.chunks(step) {
            held.extend_from_slice(piece);
            let (fine, wrong) = framing.look(&held);
            held.drain(..fine);
            wrong.map_or(Ok(()), Err)?;
        }
        Ok(framing)
    }

    #[test]
    fn ordinary_messages_pass_one_after_the_other_however_they_are_cut() {
        let all = FINE.concat();
        for step in [1, 2, 3, 7, 1000] {
            for message in FINE {
                let framing = look(message.as_bytes(), step).unwrap();
                assert!(matches!(framing.state, FramingState::Head(0)), "{message:?}");
            }
            look(all.as_bytes(), step).unwrap();
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused_wherever_it_comes() {
        let bad = [
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: \r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\nContent-Length: 5\n\n",
            "POST / HTTP/1.1\r\nX: y\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nX: a\0Content-Length: 5\r\n\r\n",
            "POST /\rContent-Length: 5 HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nX: a\rContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n12345678901234567\r\n",
            "\x16\x03\x01",
        ];
        for message in bad {
            for before in ["", FINE[1], FINE[2]] {
                for step in [1, 5, 1000] {
                    let found = look(format!("{before}{message}").as_bytes(), step);
                    assert!(found.is_err(), "{message:?} after {before:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_longer_http_1_is_left_alone() {
        let upgraded = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\n\n\r\n\r\n";
        let with =
            |more: &str| upgraded.replacen("Upgrade: x", &format!("Upgrade: x\r\n{more}"), 1);
        let with_no_body = with("Content-Length: 0");
        let with_a_body = with("Content-Length: 2");
        let with_chunks = with("Transfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\n");
        let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\n";
        let texts = [upgraded, &with_no_body, &with_a_body, &with_chunks].map(str::as_bytes);
        for bytes in texts.into_iter().chain([HTTP2, http2]) {
            let shown = String::from_utf8_lossy(bytes);
            assert!(matches!(look(bytes, 3).unwrap().state, FramingState::Opaque), "{shown:?}");
        }
    }

    #[test]
    fn an_offer_that_nobody_takes_up_changes_nothing() {
        let offer = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n";
        assert!(matches!(look(offer.as_bytes(), 3).unwrap().state, FramingState::Head(_)));
        assert!(look(format!("{offer}\n\nx\n\n").as_bytes(), 3).is_err());
    }

    #[tokio::test]
    async fn in_the_place_of_what_is_refused_comes_what_stands_for_it() {
        let instead = Method::from_bytes(UNREADABLE.as_bytes()).unwrap();
        for before in ["", FINE[0], FINE[1], FINE[2]] {
            let bad = "POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n";
            let said = format!("{before}{bad}{}", FINE[0]);
            let expected = format!("{before}{UNREADABLE} / HTTP/1.1\r\n\r\n");
            let (mut client, near) = tokio::io::duplex(7);
            let verdict = FramingVerdict::default();
            let mut guarded = Guarded::new(near, verdict.clone());
            let mut handed_on = vec![0; expected.len()];
            tokio::select! {
                read = guarded.read_exact(&mut handed_on) => drop(read.unwrap()),
                _ = client.write_all(said.as_bytes()) => panic!("{before:?}: all of it was read"),
            }
            assert_eq!(String::from_utf8_lossy(&handed_on), expected);
            assert!(verdict.on(&instead).is_some() && verdict.on(&Method::POST).is_none());
            assert!(guarded.read_u8().now_or_never().is_none(), "nothing more, and no end");
        }
    }

    #[tokio::test]
    async fn a_head_is_handed_on_when_it_is_whole() {
        let (mut client, near) = tokio::io::duplex(1000);
        let mut guarded = Guarded::new(near, FramingVerdict::default());
        let (begun, rest) = FINE[0].split_at(20);
        client.write_all(begun.as_bytes()).await.unwrap();
        assert!(guarded.read_u8().now_or_never().is_none());
        client.write_all(rest.as_bytes()).await.unwrap();
        let mut head = vec![0; FINE[0].len()];
        guarded.read_exact(&mut head).await.unwrap();
        assert_eq!(head, FINE[0].as_bytes());
    }

    #[tokio::test]
    async fn who_does_not_say_what_it_speaks_is_told_apart_from_who_does() {
        let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for (said, version) in [
            (FINE[0], Some(Version::HTTP_11)),
            (FINE[1], Some(Version::HTTP_11)),
            (http2, Some(Version::HTTP_2)),
            ("P", None),
            ("PRI * HTTP/2.0\r\n", None),
            ("GET / HTTP/1.1\r\n", None),
            ("", None),
        ] {
            let (mut client, near) = tokio::io::duplex(1000);
            client.write_all(said.as_bytes()).await.unwrap();
            let mut guarded = Guarded::new(near, FramingVerdict::default());
            let found = guarded.version().now_or_never().map(Result::unwrap);
            assert_eq!(found, version, "{said:?}");
            if version.is_some() {
                let mut handed_on = vec![0; said.len()];
                guarded.read_exact(&mut handed_on).await.unwrap();
                assert_eq!(handed_on, said.as_bytes());
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 1..50usize) {
            let _either = look(&bytes, step);
        }
    }
}
