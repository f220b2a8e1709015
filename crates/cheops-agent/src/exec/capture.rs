//! What a run printed or answered, up to a limit.

use std::io;

use cheops_core::model::Output;
use tokio::net::unix::pipe;

const CHUNK_BYTES: usize = 8 * 1024;

/// Takes in bytes up to a limit, and remembers whether there were more.
#[derive(Debug)]
pub(super) struct Capture {
    bytes: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, truncated: false }
    }

    /// Takes in what there is room for; whether there was room for all.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let room = self.limit - self.bytes.len();
        let taken = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.truncated |= taken < bytes.len();
        taken == bytes.len()
    }

    /// Says that there was more, though nobody knows what.
    pub(super) fn cut_off(&mut self) {
        self.truncated = true;
    }

    /// Reads to the end. What is beyond the limit is read all the same: a writer that nobody
    /// reads would wait for ever.
    pub(super) async fn drain(&mut self, from: &pipe::Receiver) {
        // An error ends it as the end does: there is nothing more to be had.
        while from.readable().await.is_ok() {
            // Not kept while it waits: most commands print nothing, or little and once.
            let mut chunk = [0; CHUNK_BYTES];
            match from.try_read(&mut chunk) {
                Ok(read @ 1..) => _ = self.take(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// All of it, if there was no more than the limit.
    pub(super) fn into_whole(self) -> Option<Vec<u8>> {
        (!self.truncated).then_some(self.bytes)
    }

    /// The text: what is no UTF-8 is marked so, and a letter that the limit cut in two is dropped.
    pub(super) fn into_output(mut self) -> Output {
        if self.truncated {
            let whole = whole_letters(&self.bytes);
            self.bytes.truncate(whole);
        }
        let mut text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        // A mark takes more room than the byte it stands for.
        if text.len() > self.limit {
            text.truncate(text.floor_char_boundary(self.limit));
            self.truncated = true;
        }
        Output { text, truncated: self.truncated }
    }
}

/// The length without a letter at the end that is not all there.
fn whole_letters(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let start = (last..bytes.len()).rev().find(|at| bytes[*at] & 0b1100_0000 != 0b1000_0000);
    let Some(start) = start else { return bytes.len() };
    let length = match bytes[start] {
        0b1100_0000..=0b1101_1111 => 2,
        0b1110_0000..=0b1110_1111 => 3,
        0b1111_0000..=0b1111_0111 => 4,
        _ => 1,
    };
    if start + length > bytes.len() { start } else { bytes.len() }
}

/// Room for what is read at once.
pub(super) fn chunk() -> Vec<u8> {
    vec![0; CHUNK_BYTES]
}

/// Reads what there is, waiting for it; 0 at the end.
pub(super) async fn next(from: &pipe::Receiver, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> Output {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.take(piece);
        }
        capture.into_output()
    }

    #[test]
    fn output_is_cut_at_the_limit_between_two_letters() {
        let cases: &[(usize, &[&[u8]], &str, bool)] = &[
            (4, &[b"ab", b"cd"], "abcd", false),
            (4, &[b"ab", b"cde"], "abcd", true),
            (4, &[b"abc\xc3", b"\xa9"], "abc", true),
            (5, &[b"abc\xc3", b"\xa9"], "abcé", false),
            (6, &["ab🦀cd".as_bytes()], "ab🦀", true),
            (5, &["ab🦀".as_bytes()], "ab", true),
            (9, &[b"a\xffb"], "a\u{fffd}b", false),
            (4, &[b"\xff\xff"], "\u{fffd}", true),
            (0, &[b""], "", false),
            (0, &[b"x"], "", true),
        ];
        for (limit, pieces, text, truncated) in cases {
            let expected = Output { text: (*text).to_owned(), truncated: *truncated };
            assert_eq!(captured(*limit, pieces), expected, "{limit} {pieces:?}");
        }
    }
}
