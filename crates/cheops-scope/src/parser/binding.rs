//! Scopes and bindings: everything outside of locations.

use super::Parser;
use crate::ast::{Binding, Location, LocationOptions, Scope};
use crate::lexer::TokenKind;
use crate::name::ServiceName;
use crate::problem::{Code, ScopeProblem, shown};
use crate::span::{Span, Spanned};

const EXAMPLE: &str = "say which service runs where, such as `image: paris & lyon`";
const A_SERVICE: &str = "a service such as `image`";

impl Parser<'_> {
    pub(super) fn scope(&mut self) -> Scope {
        let opened = self.eat(TokenKind::OpenBrace);
        let surplus = self.surplus_braces();
        let mut bindings = Vec::new();
        if matches!(self.kind(), TokenKind::End | TokenKind::CloseBrace) {
            self.nothing(opened);
        } else {
            self.bindings(&mut bindings);
        }
        self.closing_brace(opened, surplus);
        Scope { bindings }
    }

    pub(super) fn location_alone(&mut self) -> Option<Location> {
        if self.kind() == TokenKind::End {
            let problem =
                ScopeProblem::new(Code::Empty, self.token().span, "there is no site here")
                    .expected(&["a site such as `paris`"]);
            self.report(problem);
            return None;
        }
        let location = self.location();
        if self.kind() != TokenKind::End {
            let mut problem = self.unexpected(&["`&`", "`%`", "`;`", "the end"]);
            if let Some(hint) = self.joining_hint() {
                problem = problem.hint(hint);
            }
            self.report(problem);
        }
        location
    }

    /// Moves past braces within braces, and says how many there were.
    fn surplus_braces(&mut self) -> usize {
        let before = self.at;
        while self.kind() == TokenKind::OpenBrace {
            if self.at == before {
                let problem = self.unexpected(&[A_SERVICE]).hint("one pair of braces is enough");
                self.report(problem);
            }
            self.advance();
        }
        self.at - before
    }

    fn nothing(&mut self, opened: Option<Span>) {
        let here = self.token().span;
        let span = opened.map_or(here, |opened| opened.to(here));
        let problem = ScopeProblem::new(Code::Empty, span, "the scope is empty")
            .expected(&["a service and where it runs"])
            .hint(EXAMPLE);
        self.report(problem);
    }

    fn bindings(&mut self, bindings: &mut Vec<Binding>) {
        loop {
            bindings.extend(self.binding());
            if !self.another_binding() {
                return;
            }
        }
    }

    /// Moves past what separates two bindings; false at the end of the list.
    fn another_binding(&mut self) -> bool {
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::CloseBrace => return false,
                TokenKind::Comma => return self.comma(),
                _ if self.at_binding() => {
                    let problem =
                        self.unexpected(&["`,`"]).hint("a comma stands between two services");
                    self.report(problem);
                    return true;
                }
                _ => self.out_of_place(),
            }
        }
    }

    fn comma(&mut self) -> bool {
        let comma = self.advance().span;
        if !matches!(self.kind(), TokenKind::End | TokenKind::CloseBrace) {
            return true;
        }
        let problem = ScopeProblem::new(Code::Unexpected, comma, "`,` with nothing after it")
            .found(",")
            .hint("drop the `,`, or add a service and where it runs");
        self.report(problem);
        false
    }

    /// Something that cannot follow a binding: noted, and skipped.
    fn out_of_place(&mut self) {
        let problem = if self.kind() == TokenKind::CloseParen {
            let span = self.token().span;
            ScopeProblem::new(Code::Unopened, span, "`)` without a `(` before it")
                .found(")")
                .hint("drop it, or open it with `(`")
        } else {
            let problem = match self.previous_kind() {
                Some(TokenKind::CloseBracket) => self.unexpected(&["`,`", "the end"]),
                _ => self.unexpected(&["`&`", "`%`", "`;`", "`,`", "the end"]),
            };
            match self.joining_hint() {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        };
        self.report(problem);
        self.skip_to(|parser| {
            matches!(parser.kind(), TokenKind::Comma | TokenKind::CloseBrace) || parser.at_binding()
        });
    }

    /// What to write where two locations meet without an operator.
    pub(super) fn joining_hint(&self) -> Option<String> {
        let found = self.slice(self.token().span);
        match (self.kind(), found.to_ascii_lowercase().as_str()) {
            (TokenKind::Word, "and") => Some("`and` is written `&`".to_owned()),
            (TokenKind::Word, "or") => Some("`or` is written `;`".to_owned()),
            (TokenKind::Word | TokenKind::OpenParen, _) => Some(
                "join sites with `&` for each of them, `%` to spread over them, `;` for the first \
                 that works"
                    .to_owned(),
            ),
            (TokenKind::And | TokenKind::Percent | TokenKind::Semicolon, _) => {
                Some("options stand after the whole location".to_owned())
            }
            (TokenKind::Comma, _) => {
                Some("sites are joined by `&`, `%` or `;`, not by a comma".to_owned())
            }
            (TokenKind::OpenBracket, _) => {
                Some("options stand in one pair of brackets, separated by `,`".to_owned())
            }
            _ => None,
        }
    }

    fn binding(&mut self) -> Option<Binding> {
        if !matches!(self.kind(), TokenKind::Word | TokenKind::BadWord) {
            let problem = self.unexpected(&[A_SERVICE]);
            self.report(problem);
            return None;
        }
        let service = self.service();
        self.colon()?;
        let location = self.location();
        let options = match self.kind() {
            TokenKind::OpenBracket => self.options(),
            _ => LocationOptions::default(),
        };
        // Only now: a bad name is no reason not to look at what follows it.
        Some(Binding { service: service?, location: location?, options })
    }

    fn service(&mut self) -> Option<Spanned<ServiceName>> {
        let span = self.token().span;
        let service = match ServiceName::new(self.slice(span)) {
            Ok(name) => Some(Spanned::new(name, span)),
            Err(why) => {
                self.bad_name("service", why);
                None
            }
        };
        self.advance();
        service
    }

    pub(super) fn bad_name(&mut self, what: &str, why: crate::name::BadName) {
        let span = self.token().span;
        let found = self.slice(span);
        let message = format!("`{}` cannot be the name of a {what}", shown(found));
        let quoted = found.starts_with(['"', '\'', '`', '“', '‘', '«']);
        let hint = match quoted {
            true => "names are written without quotes".to_owned(),
            false => why.to_string(),
        };
        self.report(ScopeProblem::new(Code::BadName, span, message).found(found).hint(hint));
    }

    /// Moves past the `:`. If it is missing but a location seems to follow, goes on as if it stood
    /// there; else `None`.
    fn colon(&mut self) -> Option<()> {
        if self.eat(TokenKind::Colon).is_some() {
            return Some(());
        }
        let problem = self.unexpected(&["`:`"]);
        let problem = match self.kind() {
            TokenKind::Equals => problem.hint("a service and where it runs are joined by `:`"),
            _ => problem.hint(EXAMPLE),
        };
        self.report(problem);
        match self.kind() {
            TokenKind::Equals => {
                self.advance();
                Some(())
            }
            TokenKind::Word | TokenKind::OpenParen => Some(()),
            _ => None,
        }
    }

    /// Both braces or none.
    fn closing_brace(&mut self, opened: Option<Span>, surplus: usize) {
        let closed = self.eat(TokenKind::CloseBrace);
        match (opened, closed) {
            (Some(open), None) => {
                let problem = ScopeProblem::new(Code::Unclosed, open, "`{` is never closed")
                    .found("{")
                    .hint("add `}` at the end, or drop the `{`");
                self.report(problem);
            }
            (None, Some(close)) => {
                let problem = ScopeProblem::new(Code::Unopened, close, "`}` without a `{`")
                    .found("}")
                    .hint("add `{` at the start, or drop the `}`");
                self.report(problem);
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        // Those that were too many were noted where they were opened.
        for _ in 0..surplus {
            self.eat(TokenKind::CloseBrace);
        }
        if closed.is_some() && self.kind() != TokenKind::End {
            let problem = self
                .unexpected(&["the end"])
                .hint("`}` ends the scope, and one request has one scope");
            self.report(problem);
        }
    }
}
