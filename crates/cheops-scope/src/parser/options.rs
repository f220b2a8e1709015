//! Options: `[key=value, …]`.

use super::Parser;
use crate::ast::{Consistency, LocationOptions};
use crate::lexer::TokenKind;
use crate::problem::{Code, ScopeProblem, shown};
use crate::span::{Span, Spanned};
use crate::suggest::closest;

const CONSISTENCY: &str = "consistency";

impl Parser<'_> {
    pub(super) fn options(&mut self) -> LocationOptions {
        let opened = self.advance().span;
        let mut options = LocationOptions::default();
        loop {
            if self.option(&mut options).is_none() {
                self.skip_to(|parser| {
                    matches!(
                        parser.kind(),
                        TokenKind::Comma | TokenKind::CloseBracket | TokenKind::CloseBrace
                    ) || parser.at_binding()
                });
            }
            if self.at_comma_and_binding() || self.eat(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.closing_bracket(opened);
        options
    }

    fn closing_bracket(&mut self, opened: Span) {
        if self.eat(TokenKind::CloseBracket).is_some() {
            return;
        }
        let here = self.token().span;
        let problem = ScopeProblem::new(Code::Unclosed, opened, "`[` is never closed")
            .found("[")
            .hint("add the missing `]`")
            .related(Span::new(here.start, here.start), "`]` is missing here");
        self.report(problem);
    }

    /// One `key=value`; `None` if it could not be read to its end.
    fn option(&mut self, options: &mut LocationOptions) -> Option<()> {
        if self.kind() != TokenKind::Word {
            let problem = self.unexpected(&["an option such as `consistency=eventual`"]);
            self.report(problem);
            return None;
        }
        let key = self.token().span;
        let known = self.slice(key) == CONSISTENCY;
        if !known {
            self.unknown_option();
        }
        self.advance();
        self.expect_in_option(TokenKind::Equals, &["`=`"])?;
        let value = self.token().span;
        if self.kind() != TokenKind::Word {
            let problem = self.unexpected(&["a value such as `strong`"]);
            self.report(problem);
            return None;
        }
        if known {
            self.consistency(key, value, options);
        }
        self.advance();
        match self.kind() {
            TokenKind::Comma | TokenKind::CloseBracket => Some(()),
            TokenKind::End | TokenKind::CloseBrace => None,
            _ => {
                let problem = self.unexpected(&["`,`", "`]`"]);
                self.report(problem);
                None
            }
        }
    }

    fn expect_in_option(&mut self, kind: TokenKind, expected: &[&str]) -> Option<()> {
        if self.eat(kind).is_some() {
            return Some(());
        }
        let problem = self.unexpected(expected).hint("an option is written `key=value`");
        self.report(problem);
        None
    }

    fn unknown_option(&mut self) {
        let span = self.token().span;
        let found = self.slice(span);
        let message = format!("unknown option `{}`", shown(found));
        let problem = ScopeProblem::new(Code::UnknownOption, span, message)
            .found(found)
            .expected(&["`consistency`"])
            .did_you_mean(closest(found, [CONSISTENCY]));
        self.report(problem);
    }

    fn consistency(&mut self, key: Span, value: Span, options: &mut LocationOptions) {
        if let Some(first) = &options.consistency {
            let problem = ScopeProblem::new(
                Code::RepeatedOption,
                key,
                "`consistency` is given a second time",
            )
            .found(CONSISTENCY)
            .hint("keep one of the two")
            .related(first.span, "first given here");
            self.report(problem);
            return;
        }
        let found = self.slice(value);
        match Consistency::ALL.iter().find(|one| one.as_str() == found) {
            Some(consistency) => options.consistency = Some(Spanned::new(*consistency, value)),
            None => self.unknown_consistency(value),
        }
    }

    fn unknown_consistency(&mut self, span: Span) {
        let found = self.slice(span);
        let message = format!("`consistency` cannot be `{}`", shown(found));
        let names = Consistency::ALL.map(Consistency::as_str);
        let problem = ScopeProblem::new(Code::BadOptionValue, span, message)
            .found(found)
            .expected(&["`none`", "`eventual`", "`strong`", "`transactional`"])
            .did_you_mean(closest(found, names));
        self.report(problem);
    }
}
