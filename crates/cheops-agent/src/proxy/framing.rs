//! Where the messages of an HTTP/1 connection begin and end, seen before anyone acts on it.
//!
//! A message that says in two ways how long it is may be read in two ways: by this proxy and by
//! the service behind it. What one takes for a body the other takes for a second request. So such
//! messages are refused, and not made unambiguous by choosing one of the ways.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::headers::NOT_GONE_OVER_TO;

const LONGEST_HEAD: usize = 512 * 1024;
const LONGEST_LINE: usize = 8 * 1024;
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Follows the bytes that a client sends.
#[derive(Debug)]
struct Framing(State);

#[derive(Debug)]
enum State {
    /// What there is of a head.
    Head(Vec<u8>),
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
    Nothing,
    Bytes(u64),
    Chunks,
    /// Whatever both sides agree on.
    AnotherProtocol,
}

impl Framing {
    const fn new() -> Self {
        Self(State::Head(Vec::new()))
    }

    /// Reads on; what is wrong, if something is.
    fn look(&mut self, mut bytes: &[u8]) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            bytes = match &mut self.0 {
                State::Opaque => return Ok(()),
                State::Head(head)
                    if head.is_empty()
                        && let Some(end) = whole_head(bytes) =>
                {
                    match &bytes[..end] {
                        HTTP2 => self.0 = State::Opaque,
                        head => self.0 = State::after(follows(head)?),
                    }
                    &bytes[end..]
                }
                State::Head(head) => {
                    let taken = take_head(head, bytes);
                    if head.starts_with(HTTP2) || head.len() > LONGEST_HEAD {
                        // Too long a head is refused by whoever reads it.
                        self.0 = State::Opaque;
                    } else if is_whole(head) {
                        self.0 = State::after(follows(head)?);
                    }
                    &bytes[taken..]
                }
                State::Body(left) => {
                    let taken = least(*left, bytes.len());
                    *left -= taken as u64;
                    if *left == 0 {
                        self.0 = State::Head(Vec::new());
                    }
                    &bytes[taken..]
                }
                State::Chunk(left) => {
                    let taken = least(*left, bytes.len());
                    *left -= taken as u64;
                    if *left == 0 {
                        self.0 = State::Line { line: Vec::new(), trailers: false };
                    }
                    &bytes[taken..]
                }
                State::Line { line, trailers } => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let taken = end.map_or(bytes.len(), |end| end + 1);
                    line.extend_from_slice(&bytes[..taken]);
                    if line.len() > LONGEST_LINE {
                        return Err("a line between chunks is too long");
                    }
                    if end.is_some() {
                        self.0 = next_line(line, *trailers)?;
                    }
                    &bytes[taken..]
                }
            };
        }
        Ok(())
    }
}

impl State {
    fn after(follows: Follows) -> Self {
        match follows {
            Follows::Nothing | Follows::Bytes(0) => Self::Head(Vec::new()),
            Follows::Bytes(length) => Self::Body(length),
            Follows::Chunks => Self::Line { line: Vec::new(), trailers: false },
            Follows::AnotherProtocol => Self::Opaque,
        }
    }
}

fn least(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

/// Adds to a head up to its end; how many bytes that took.
fn take_head(head: &mut Vec<u8>, bytes: &[u8]) -> usize {
    for (taken, byte) in bytes.iter().enumerate() {
        // Empty lines before a request are nothing.
        if head.is_empty() && matches!(byte, b'\r' | b'\n') {
            continue;
        }
        head.push(*byte);
        if *byte == b'\n' && is_whole(head) {
            return taken + 1;
        }
    }
    bytes.len()
}

/// Where a head ends that is there whole, as nearly all are.
fn whole_head(bytes: &[u8]) -> Option<usize> {
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return None;
    }
    let mut lines = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        lines += line.len();
        match line {
            b"\r\n" => return Some(lines),
            b"\n" => return None,
            _ => {}
        }
    }
    None
}

fn is_whole(head: &[u8]) -> bool {
    head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n")
}

fn follows(head: &[u8]) -> Result<Follows, &'static str> {
    let (mut lengths, mut encodings) = (Vec::new(), Vec::new());
    let (mut tunnels, mut upgrades, mut goes_over) = (false, false, false);
    for (n, line) in head.split(|byte| *byte == b'\n').enumerate() {
        let Some((b'\r', line)) = line.split_last() else {
            match line {
                [] => continue,
                _ => return Err("a line of the head does not end as lines do"),
            }
        };
        if line.contains(&b'\r') || line.contains(&0) {
            return Err("a line of the head holds what lines cannot hold");
        }
        if n == 0 {
            tunnels = line.starts_with(b"CONNECT ");
            continue;
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err("a header goes on in the next line");
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
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
    match (&lengths[..], &encodings[..]) {
        // If it does not come to that, the connection is closed with the answer.
        ([] | [b"0"], []) if tunnels || (goes_over && upgrades) => Ok(Follows::AnotherProtocol),
        ([], []) => Ok(Follows::Nothing),
        ([length], []) => {
            let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(length).ok().filter(|_| digits);
            let number = number.and_then(|digits| digits.parse().ok());
            number.map(Follows::Bytes).ok_or("its `Content-Length` is no number")
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Follows::Chunks),
        ([], [_]) => Err("its `Transfer-Encoding` is not `chunked`"),
        ([_, _, ..], []) => Err("it has more than one `Content-Length`"),
        ([], _) => Err("it has more than one `Transfer-Encoding`"),
        _ => Err("it has both `Content-Length` and `Transfer-Encoding`"),
    }
}

/// What comes after a line between chunks.
fn next_line(line: &[u8], trailers: bool) -> Result<State, &'static str> {
    let text =
        line.strip_suffix(b"\r\n").ok_or("a line between chunks does not end as lines do")?;
    if trailers {
        let next = State::Line { line: Vec::new(), trailers: true };
        return Ok(if text.is_empty() { State::Head(Vec::new()) } else { next });
    }
    let size = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let hex = (1..=16).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(size).ok().filter(|_| hex);
    let size = size.and_then(|size| u64::from_str_radix(size, 16).ok());
    match size.ok_or("the size of a chunk is no number")? {
        0 => Ok(State::Line { line: Vec::new(), trailers: true }),
        size => Ok(State::Chunk(size.saturating_add(2))),
    }
}

/// A client's connection that is cut when it can be read in two ways.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    framing: Framing,
    /// What is still to be said before it is closed.
    last_words: Option<Vec<u8>>,
}

impl<S> Guarded<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, framing: Framing::new(), last_words: None }
    }
}

fn last_words(why: &str) -> Vec<u8> {
    let body = format!(
        "{{\"type\":\"about:blank\",\"title\":\"not a request to a service\",\"status\":400,\
         \"detail\":\"the request can be read in two ways: {why}\"}}\n"
    );
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n\
         X-Cheops-Error: bad-request\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.last_words.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
            match this.framing.look(&buffer.filled()[before..]) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(why) => {
                    buffer.set_filled(before);
                    this.last_words = Some(last_words(why));
                }
            }
        }
        while let Some(words) = this.last_words.as_mut().filter(|words| !words.is_empty()) {
            match ready!(Pin::new(&mut this.stream).poll_write(context, words)) {
                Ok(0) | Err(_) => words.clear(),
                Ok(written) => drop(words.drain(..written)),
            }
        }
        // As if the client had left.
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.last_words.is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
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
        if self.last_words.is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn look(bytes: &[u8], step: usize) -> Result<Framing, &'static str> {
        let mut framing = Framing::new();
        bytes.chunks(step).try_for_each(|piece| framing.look(piece))?;
        Ok(framing)
    }

    #[test]
    fn ordinary_messages_pass_one_after_the_other_however_they_are_cut() {
        let all = FINE.concat();
        for step in [1, 2, 3, 7, 1000] {
            for message in FINE {
                let framing = look(message.as_bytes(), step).unwrap();
                assert!(matches!(framing.0, State::Head(head) if head.is_empty()), "{message:?}");
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
            "POST / HTTP/1.1\nContent-Length: 5\n\n",
            "POST / HTTP/1.1\r\nX: a\rContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n12345678901234567\r\n",
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
        let with_a_length = upgraded.replacen("Upgrade: x", "Upgrade: x\r\nContent-Length: 0", 1);
        let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\n";
        for bytes in [HTTP2, http2, upgraded.as_bytes(), with_a_length.as_bytes()] {
            assert!(matches!(look(bytes, 3).unwrap().0, State::Opaque));
        }
    }

    #[test]
    fn an_offer_that_nobody_takes_up_changes_nothing() {
        let offer = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n";
        assert!(matches!(look(offer.as_bytes(), 3).unwrap().0, State::Head(_)));
        assert!(look(format!("{offer}\n\nx\n\n").as_bytes(), 3).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 1..50usize) {
            let _either = look(&bytes, step);
        }
    }
}
