//! Locations: sites, operators, parentheses and `around`.

use super::{ParseGoal, Parser};
use crate::ast::{Location, LocationKind};
use crate::lexer::TokenKind;
use crate::micros::{BadDuration, Micros};
use crate::name::SiteId;
use crate::problem::{Code, ScopeProblem, shown};
use crate::span::Span;
use crate::suggest::closest;

const AROUND: &str = "around";
const A_SITE: &str = "a site such as `paris`";
const A_TIME: &str = "a round-trip time such as `10ms`";

/// The operators, the loosest first.
#[derive(Clone, Copy)]
enum Operator {
    Otherwise,
    Spread,
    Both,
}

impl Operator {
    const fn token(self) -> TokenKind {
        match self {
            Self::Otherwise => TokenKind::Semicolon,
            Self::Spread => TokenKind::Percent,
            Self::Both => TokenKind::And,
        }
    }

    const fn kind(self, parts: Vec<Location>) -> LocationKind {
        match self {
            Self::Otherwise => LocationKind::Otherwise(parts),
            Self::Spread => LocationKind::Spread(parts),
            Self::Both => LocationKind::Both(parts),
        }
    }
}

impl Parser<'_> {
    /// `None` if no part of it could be made out; then a problem was noted.
    pub(super) fn location(&mut self) -> Option<Location> {
        self.chain(Operator::Otherwise)
    }

    /// `part (operator part)*`, each part binding tighter than the operator.
    fn chain(&mut self, operator: Operator) -> Option<Location> {
        let mut parts = Vec::new();
        loop {
            parts.extend(match operator {
                Operator::Otherwise => self.chain(Operator::Spread),
                Operator::Spread => self.chain(Operator::Both),
                Operator::Both => self.atom(),
            });
            if self.eat(operator.token()).is_none() && !self.foreign_operator() {
                return joined(operator, parts);
            }
        }
    }

    /// `|`, `||` and `+` are not ours; noted, then read on as if an operator stood there.
    fn foreign_operator(&mut self) -> bool {
        if self.kind() != TokenKind::Foreign {
            return false;
        }
        let hint = match self.slice(self.token().span).starts_with('|') {
            true => "the first that works is written `;`",
            false => "at each of several sites is written `&`",
        };
        let problem = self.unexpected(&["`&`", "`%`", "`;`"]).hint(hint);
        self.report(problem);
        self.advance();
        true
    }

    fn atom(&mut self) -> Option<Location> {
        match self.kind() {
            TokenKind::Word if self.next_kind() == TokenKind::OpenParen => self.function(),
            TokenKind::OpenParen => self.group(),
            TokenKind::Word | TokenKind::BadWord if !self.at_binding() => self.site(),
            _ => {
                self.no_site();
                None
            }
        }
    }

    fn site(&mut self) -> Option<Location> {
        let span = self.token().span;
        let site = match SiteId::new(self.slice(span)) {
            Ok(name) => {
                let kind = LocationKind::Site(name);
                Some(Location { kind, span })
            }
            Err(why) => {
                self.bad_name("site", why);
                None
            }
        };
        self.advance();
        site
    }

    fn no_site(&mut self) {
        let problem = self.unexpected(&[A_SITE, "`around(…)`", "`(`"]);
        let twice = self.previous_kind() == Some(self.kind());
        let problem = match self.kind() {
            TokenKind::And | TokenKind::Percent | TokenKind::Semicolon if twice => {
                problem.hint("an operator is written once")
            }
            _ if self.at_binding() => problem.hint(match self.whole {
                ParseGoal::Scope => "a comma stands between two services",
                ParseGoal::Location => "only sites stand here, without a service",
            }),
            _ => problem,
        };
        self.report(problem);
    }

    fn group(&mut self) -> Option<Location> {
        let opened = self.advance().span;
        let (inner, closed) = self.nested(opened, |parser| {
            let inner = parser.location();
            Some((inner, parser.close(opened, &["`&`", "`%`", "`;`", "`)`"])))
        })?;
        let mut inner = inner?;
        // A lone site stays where its name is: that is what a caret should point at.
        if !matches!(inner.kind, LocationKind::Site(_)) {
            inner.span = opened.to(closed.unwrap_or(inner.span));
        }
        Some(inner)
    }

    /// Moves past the `)` that belongs to `opened`; what stands before it is noted and skipped.
    fn close(&mut self, opened: Span, expected: &[&str]) -> Option<Span> {
        if let Some(closed) = self.eat(TokenKind::CloseParen) {
            return Some(closed);
        }
        let problem = match self.kind() {
            TokenKind::End | TokenKind::CloseBrace => self.never_closed(opened),
            _ if self.at_comma_and_binding() => self.never_closed(opened),
            _ => self.out_of_place_in_parentheses(opened, expected),
        };
        self.report(problem);
        // A comma may be a slip within the parentheses, or the `)` is what is missing.
        self.skip_to(|parser| {
            matches!(parser.kind(), TokenKind::CloseParen | TokenKind::CloseBrace)
                || parser.at_binding()
                || parser.at_comma_and_binding()
        });
        self.eat(TokenKind::CloseParen)
    }

    fn never_closed(&self, opened: Span) -> ScopeProblem {
        let here = self.token().span;
        ScopeProblem::new(Code::Unclosed, opened, "`(` is never closed")
            .found("(")
            .hint("add the missing `)`")
            .related(Span::new(here.start, here.start), "`)` is missing here")
    }

    fn out_of_place_in_parentheses(&self, opened: Span, expected: &[&str]) -> ScopeProblem {
        let problem = self.unexpected(expected).related(opened, "opened here");
        match self.joining_hint() {
            // Not after a time, where only the `)` can follow.
            Some(hint) if expected.len() > 1 => problem.hint(hint),
            _ => problem,
        }
    }

    /// `around(location, time)`. Any other name before a `(` is noted, and its sites looked at.
    fn function(&mut self) -> Option<Location> {
        let name = self.token().span;
        let is_around = self.slice(name) == AROUND;
        if !is_around {
            self.unknown_function();
        }
        self.advance();
        let opened = self.advance().span;
        self.nested(opened, |parser| {
            let centre = parser.location();
            let within = if is_around { parser.radius() } else { None };
            let closed = match is_around {
                true => parser.close(opened, &["`)`"]),
                false => parser.close_unknown(),
            };
            let centre = centre?;
            let (Some(within), Some(closed)) = (within, closed) else {
                return Some(centre);
            };
            let centre = Box::new(centre);
            Some(Location { kind: LocationKind::Around { centre, within }, span: name.to(closed) })
        })
    }

    fn unknown_function(&mut self) {
        let span = self.token().span;
        let found = self.slice(span);
        let message = format!("`{}` is not a function", shown(found));
        let problem = ScopeProblem::new(Code::UnknownFunction, span, message)
            .found(found)
            .did_you_mean(closest(found, [AROUND]))
            .hint("the only function is `around(site, 10ms)`; sites are joined by `&`, `%` or `;`");
        self.report(problem);
    }

    /// The function is unknown, so nothing can be said about what else is in its parentheses.
    fn close_unknown(&mut self) -> Option<Span> {
        self.skip_to(|parser| {
            matches!(parser.kind(), TokenKind::CloseParen | TokenKind::CloseBrace)
        });
        self.eat(TokenKind::CloseParen)
    }

    /// `, time`.
    fn radius(&mut self) -> Option<Micros> {
        if self.eat(TokenKind::Comma).is_some() {
            return self.duration();
        }
        let problem = match self.kind() {
            TokenKind::CloseParen => self
                .unexpected(&["`,` and a round-trip time"])
                .hint("say how far a site may be, such as `around(paris, 10ms)`"),
            _ => self.unexpected(&["`,` and a round-trip time", "`&`", "`%`", "`;`"]),
        };
        self.report(problem);
        None
    }

    fn duration(&mut self) -> Option<Micros> {
        if !matches!(self.kind(), TokenKind::Word | TokenKind::BadWord) {
            let problem = self.unexpected(&[A_TIME]);
            self.report(problem);
            return None;
        }
        let (text, span) = self.number_and_unit();
        let read = text.parse();
        if let Err(why) = read {
            self.bad_duration(&text, span, why);
        }
        self.advance();
        read.ok()
    }

    /// White space is free, so `10 ms` is a time as well; the token under consideration is then
    /// its last one.
    fn number_and_unit(&mut self) -> (String, Span) {
        let first = self.token().span;
        let number = self.slice(first);
        let bare = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !(bare && self.next_kind() == TokenKind::Word) {
            return (number.to_owned(), first);
        }
        self.advance();
        let unit = self.token().span;
        (format!("{number}{}", self.slice(unit)), first.to(unit))
    }

    fn bad_duration(&mut self, text: &str, span: Span, why: BadDuration) {
        let found = self.slice(span);
        let message = format!("`{}` is not a round-trip time", shown(found));
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let corrected = match (why, &text[digits.len()..]) {
            (BadDuration::UnknownUnit, "µs" | "μs") => Some(format!("{digits}us")),
            (BadDuration::UnknownUnit, "m" | "msec" | "MS" | "Ms") | (BadDuration::NoUnit, _) => {
                Some(format!("{digits}ms"))
            }
            _ => None,
        };
        let corrected = corrected.filter(|text| text.parse::<Micros>().is_ok());
        let problem = ScopeProblem::new(Code::BadDuration, span, message)
            .found(found)
            .expected(&[A_TIME])
            .did_you_mean(corrected.into_iter().collect())
            .hint(why.to_string());
        self.report(problem);
    }
}

/// A single part is itself.
fn joined(operator: Operator, mut parts: Vec<Location>) -> Option<Location> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let span = parts.iter().map(|part| part.span).reduce(Span::to).unwrap_or_default();
    let kind = operator.kind(parts);
    Some(Location { kind, span })
}
