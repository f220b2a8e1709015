//! Bytes that arrive in pieces of any size, cut into lines of bounded length.

use bytes::{Buf, BytesMut};

/// A line is longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {limit} bytes")]
pub(super) struct LineTooLong {
    limit: usize,
}

/// Cuts at `\n`, `\r\n` and `\r`, wherever the pieces end.
#[derive(Debug)]
pub(super) struct LineCutter {
    kept: BytesMut,
    /// How much of it is known to hold no end of line.
    seen: usize,
    /// Whether the last line ended with `\r`, so that a `\n` that follows is no line of its own.
    after_return: bool,
    limit: usize,
}

impl LineCutter {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: BytesMut::new(), seen: 0, after_return: false, limit }
    }

    /// Takes in what arrived.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
    }

    /// The next whole line, without its end.
    pub(super) fn next_line(&mut self) -> Result<Option<BytesMut>, LineTooLong> {
        if let Some(first) = self.kept.first().copied()
            && std::mem::take(&mut self.after_return)
            && first == b'\n'
        {
            self.kept.advance(1);
        }
        let unseen = self.kept.get(self.seen..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.seen = self.kept.len();
            return if self.seen > self.limit { Err(self.too_long()) } else { Ok(None) };
        };
        let end = self.seen + end;
        self.seen = 0;
        if end > self.limit {
            return Err(self.too_long());
        }
        let line = self.kept.split_to(end);
        self.after_return = self.kept.first() == Some(&b'\r');
        self.kept.advance(1);
        Ok(Some(line))
    }

    /// What is left when nothing more comes: a last line without an end.
    pub(super) fn rest(&mut self) -> Option<BytesMut> {
        self.seen = 0;
        let rest = self.kept.split();
        (!rest.is_empty()).then_some(rest)
    }

    fn too_long(&self) -> LineTooLong {
        LineTooLong { limit: self.limit }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let mut cutter = LineCutter::new(1000);
        let mut lines = Vec::new();
        for piece in pieces {
            cutter.push(piece);
            while let Some(line) = cutter.next_line().unwrap() {
                lines.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        lines.extend(cutter.rest().map(|rest| String::from_utf8_lossy(&rest).into_owned()));
        lines
    }

    #[test]
    fn lines_end_at_line_feeds_and_returns() {
        for (text, want) in [
            ("", &[][..]),
            ("a\nb\n", &["a", "b"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("a\rb", &["a", "b"]),
            ("a\n\nb", &["a", "", "b"]),
            ("a\r\n\r\nb", &["a", "", "b"]),
            ("\n\r", &["", ""]),
        ] {
            assert_eq!(cut(&[text.as_bytes()]), want, "{text:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_once_it_is_too_long() {
        let mut cutter = LineCutter::new(4);
        cutter.push(b"abcd");
        assert_eq!(cutter.next_line(), Ok(None));
        cutter.push(b"e");
        assert!(cutter.next_line().is_err());
        let mut cutter = LineCutter::new(4);
        cutter.push(b"abcde\n");
        assert!(cutter.next_line().is_err());
    }

    proptest! {
        #[test]
        fn how_it_arrives_in_pieces_makes_no_difference(
            text in "[ab\n\r]{0,40}",
            cuts in prop::collection::vec(0_usize..40, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for at in cuts.into_iter().chain([text.len()]) {
                pieces.push(&text.as_bytes()[from..at]);
                from = at;
            }
            prop_assert_eq!(cut(&pieces), cut(&[text.as_bytes()]));
        }
    }
}
