//! Where in the text something stands.

use serde::{Deserialize, Serialize};

/// A range of bytes of the text, `start` included, `end` not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// The same span, moved onto character boundaries within `text`.
    ///
    /// Spans made here always are; one that came back through JSON need not be.
    pub(crate) fn clamped(self, text: &str) -> Self {
        let start = floor_boundary(text, self.start);
        let end = floor_boundary(text, self.end).max(start);
        Self { start, end }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A line and a column, both counted from one; the column in characters, not bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourcePosition {
    /// The line, from one.
    pub line: usize,
    /// The character in that line, from one.
    pub column: usize,
}

impl SourcePosition {
    /// The position of the byte `offset` of `text`.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = &text[..floor_boundary(text, offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `value`, written at `span`.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_newlines() {
        let text = "é: a,\n😀b";
        let b = text.find('b').unwrap();
        assert_eq!(SourcePosition::of(text, 0), SourcePosition { line: 1, column: 1 });
        assert_eq!(SourcePosition::of(text, 2), SourcePosition { line: 1, column: 2 });
        assert_eq!(SourcePosition::of(text, b), SourcePosition { line: 2, column: 2 });
    }

    #[test]
    fn a_span_from_elsewhere_is_moved_into_the_text() {
        assert_eq!(Span::new(1, 900).clamped("éa"), Span::new(0, 3));
        assert_eq!(Span::new(900, 1).clamped("éa"), Span::new(3, 3));
    }
}
