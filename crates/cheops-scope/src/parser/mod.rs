//! Tokens into a tree, by recursive descent.
//!
//! A mistake does not end the parse: it is noted, and reading goes on at the next place that makes
//! sense, so that one look shows all mistakes. Two rules keep that honest: at most one problem per
//! place (the second would be an echo of the first), and every loop moves forward.

mod binding;
mod location;
mod options;

use std::collections::BTreeSet;

use crate::ast::{Location, Scope};
use crate::lexer::{LexToken, TokenKind, tokens};
use crate::problem::{Code, Findings, ScopeProblem, shown};
use crate::span::Span;

/// How deep parentheses and `around(…)` may be nested.
pub const MAX_DEPTH: usize = 64;

/// Reads a whole scope. With problems noted, the tree is what could be made out.
pub(crate) fn scope(text: &str, findings: &mut Findings) -> Scope {
    Parser::new(text, ParseGoal::Scope, findings).scope()
}

/// Reads a location by itself. With problems noted, the tree is what could be made out.
pub(crate) fn location(text: &str, findings: &mut Findings) -> Option<Location> {
    Parser::new(text, ParseGoal::Location, findings).location_alone()
}

/// What the whole text is read as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParseGoal {
    Scope,
    Location,
}

struct Parser<'a> {
    text: &'a str,
    whole: ParseGoal,
    tokens: Vec<LexToken>,
    /// The index of the token under consideration.
    at: usize,
    depth: usize,
    /// Where problems were noted.
    reported: BTreeSet<usize>,
    gave_up: bool,
    findings: &'a mut Findings,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, whole: ParseGoal, findings: &'a mut Findings) -> Self {
        Self {
            text,
            whole,
            tokens: tokens(text),
            at: 0,
            depth: 0,
            reported: BTreeSet::new(),
            gave_up: false,
            findings,
        }
    }

    fn token(&self) -> LexToken {
        self.tokens[self.at]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    fn next_kind(&self) -> TokenKind {
        self.tokens.get(self.at + 1).map_or(TokenKind::End, |token| token.kind)
    }

    fn previous_kind(&self) -> Option<TokenKind> {
        let index = self.at.checked_sub(1)?;
        Some(self.tokens[index].kind)
    }

    /// `, name:`, where a new binding begins.
    fn at_comma_and_binding(&self) -> bool {
        let after_next = self.tokens.get(self.at + 2).map(|token| token.kind);
        self.kind() == TokenKind::Comma && after_next == Some(TokenKind::Colon)
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start..span.end]
    }

    /// Moves to the next token, never past the end, and returns the one left behind.
    fn advance(&mut self) -> LexToken {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Span> {
        (self.kind() == kind).then(|| self.advance().span)
    }

    /// `name:`, which can only be the start of a binding.
    fn at_binding(&self) -> bool {
        matches!(self.kind(), TokenKind::Word | TokenKind::BadWord)
            && self.next_kind() == TokenKind::Colon
    }

    fn report(&mut self, problem: ScopeProblem) {
        if !self.gave_up && self.reported.insert(problem.span.start) {
            self.findings.add(problem);
        }
    }

    /// Something else should stand here.
    fn unexpected(&self, expected: &[&str]) -> ScopeProblem {
        let token = self.token();
        let problem = if token.kind == TokenKind::End {
            ScopeProblem::new(Code::Unexpected, token.span, "the scope ends too early")
        } else {
            let found = self.slice(token.span);
            let message = format!("unexpected `{}`", shown(found));
            ScopeProblem::new(Code::Unexpected, token.span, message).found(found)
        };
        problem.expected(expected)
    }

    /// Runs `inside` one level deeper, unless that is too deep: then the rest is not read.
    fn nested<T>(
        &mut self,
        opened: Span,
        inside: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("parentheses nested more than {MAX_DEPTH} deep");
            let problem = ScopeProblem::new(Code::TooDeep, opened, message)
                .hint("parentheses around a single site or around the same operator can go");
            self.report(problem);
            self.gave_up = true;
            self.at = self.tokens.len() - 1;
            return None;
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Skips to a token for which `stop` holds, outside of any bracket opened on the way, or to
    /// the end.
    fn skip_to(&mut self, stop: impl Fn(&Self) -> bool) {
        let mut open = 0_usize;
        while self.kind() != TokenKind::End && (open > 0 || !stop(self)) {
            match self.advance().kind {
                TokenKind::OpenParen | TokenKind::OpenBracket => open += 1,
                TokenKind::CloseParen | TokenKind::CloseBracket => open = open.saturating_sub(1),
                _ => {}
            }
        }
    }
}
