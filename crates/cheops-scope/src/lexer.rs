//! Text into tokens. Never fails: what is not a name becomes a token that says so.

use crate::name::is_name;
use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name, or a number with its unit: they look alike, the parser knows which it wants.
    Word,
    /// Where a name could stand, but with characters no name has.
    BadWord,
    /// `|` or `+`, once or more: what people write who expect another language's operators.
    Foreign,
    Colon,
    Comma,
    And,
    Percent,
    Semicolon,
    Equals,
    OpenParen,
    CloseParen,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    /// After the last character.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LexToken {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// All tokens of `text`; the last one is [`TokenKind::End`], and there is no other.
pub(crate) fn tokens(text: &str) -> Vec<LexToken> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = token_at(&text[at..], first);
        let span = Span::new(at, at + length);
        tokens.push(LexToken { kind, span });
        at = span.end;
    }
    // Not after trailing blanks: a caret at the end belongs next to the last word.
    let end = text.trim_end().len();
    tokens.push(LexToken { kind: TokenKind::End, span: Span::new(end, end) });
    tokens
}

/// The kind and the length of the token `rest` begins with.
fn token_at(rest: &str, first: char) -> (TokenKind, usize) {
    if let Some(kind) = symbol(first) {
        return (kind, first.len_utf8());
    }
    if is_foreign(first) {
        let length = run(rest, |c| c == first);
        return (TokenKind::Foreign, length);
    }
    let length = run(rest, |c| !c.is_whitespace() && symbol(c).is_none() && !is_foreign(c));
    if is_name(&rest[..length]) { (TokenKind::Word, length) } else { (TokenKind::BadWord, length) }
}

/// How many bytes at the start of `text` are of that class.
fn run(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|c| !class(c)).unwrap_or(text.len())
}

const fn is_foreign(c: char) -> bool {
    matches!(c, '|' | '+')
}

const fn symbol(c: char) -> Option<TokenKind> {
    Some(match c {
        ':' => TokenKind::Colon,
        ',' => TokenKind::Comma,
        '&' => TokenKind::And,
        '%' => TokenKind::Percent,
        ';' => TokenKind::Semicolon,
        '=' => TokenKind::Equals,
        '(' => TokenKind::OpenParen,
        ')' => TokenKind::CloseParen,
        '{' => TokenKind::OpenBrace,
        '}' => TokenKind::CloseBrace,
        '[' => TokenKind::OpenBracket,
        ']' => TokenKind::CloseBracket,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, want: &Expect) {
        let listed: Vec<String> = tokens(text)
            .iter()
            .map(|token| {
                let Span { start, end } = token.span;
                format!("{:?} {start}..{end} {:?}", token.kind, &text[start..end])
            })
            .collect();
        want.assert_eq(&listed.join("\n"));
    }

    #[test]
    fn words_symbols_and_strangers() {
        check(
            " a.b-:(10ms)&-x || p\u{e9} ",
            &expect![[r#"
                Word 1..5 "a.b-"
                Colon 5..6 ":"
                OpenParen 6..7 "("
                Word 7..11 "10ms"
                CloseParen 11..12 ")"
                And 12..13 "&"
                BadWord 13..15 "-x"
                Foreign 16..18 "||"
                BadWord 19..22 "pé"
                End 22..22 """#]],
        );
    }

    #[test]
    fn nothing_is_just_the_end() {
        check("", &expect![[r#"End 0..0 """#]]);
        check(" \t\r\n", &expect![[r#"End 0..0 """#]]);
    }
}
