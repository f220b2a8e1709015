//! The ways in: text to a tree, text to a placement.

use std::str::FromStr;

use crate::ast::{Location, Scope};
use crate::check;
use crate::known::Known;
use crate::parser;
use crate::placement::{Placement, Target};
use crate::problem::{Code, Findings, Problems, ScopeProblem};
use crate::resolve::Resolver;
use crate::span::Span;

/// The longest scope read, and the longest ever printed: what fits any server's header limits.
pub const MAX_SCOPE_BYTES: usize = 8 * 1024;

/// Reads a scope.
///
/// # Errors
///
/// All that is wrong with it. Names are not looked up: that is [`resolve`].
pub fn parse(text: &str) -> Result<Scope, Problems> {
    let (scope, findings) = read_scope(text)?;
    finish(text, findings, Some(scope))
}

/// Reads a location by itself, such as `paris & lyon`.
///
/// # Errors
///
/// All that is wrong with it. Names are not looked up: that is [`resolve_location`].
pub fn parse_location(text: &str) -> Result<Location, Problems> {
    let (location, findings) = read_location(text)?;
    finish(text, findings, location)
}

/// Reads a scope and says what runs where.
///
/// # Errors
///
/// All that is wrong with it, be it the grammar or the names.
pub fn resolve(text: &str, known: &Known) -> Result<Placement, Problems> {
    let (scope, mut findings) = read_scope(text)?;
    let placement = Resolver::new(known, &mut findings).scope(&scope);
    finish(text, findings, Some(placement))
}

/// Reads a location by itself and says which sites it means.
///
/// # Errors
///
/// All that is wrong with it, be it the grammar or the names.
pub fn resolve_location(text: &str, known: &Known) -> Result<Target, Problems> {
    let (location, mut findings) = read_location(text)?;
    let target =
        location.and_then(|location| Resolver::new(known, &mut findings).target(&location));
    finish(text, findings, target)
}

impl FromStr for Scope {
    type Err = Problems;

    fn from_str(text: &str) -> Result<Self, Problems> {
        parse(text)
    }
}

fn read_scope(text: &str) -> Result<(Scope, Findings), Problems> {
    limit(text.len(), "")?;
    let mut findings = Findings::default();
    let scope = parser::scope(text, &mut findings);
    check::scope(&scope, &mut findings);
    limit(scope.to_string().len(), CANONICAL)?;
    Ok((scope, findings))
}

fn read_location(text: &str) -> Result<(Option<Location>, Findings), Problems> {
    limit(text.len(), "")?;
    let mut findings = Findings::default();
    let location = parser::location(text, &mut findings);
    if let Some(location) = &location {
        check::location(location, &mut findings);
        limit(location.to_string().len(), CANONICAL)?;
    }
    Ok((location, findings))
}

/// The canonical text is the longer one where spaces were left out. It is held to the same limit,
/// so that what one site prints another site reads.
const CANONICAL: &str = ", printed with spaces,";

fn limit(bytes: usize, how: &str) -> Result<(), Problems> {
    if bytes <= MAX_SCOPE_BYTES {
        return Ok(());
    }
    let message = format!("the scope{how} has {bytes} bytes, and the limit is {MAX_SCOPE_BYTES}");
    let problem = ScopeProblem::new(Code::TooLong, Span::default(), message)
        .hint("name fewer sites, or use `around(site, 10ms)`");
    Err(Problems::of_too_long(problem))
}

fn finish<T>(text: &str, findings: Findings, value: Option<T>) -> Result<T, Problems> {
    match value {
        Some(value) if findings.is_empty() => Ok(value),
        // Without a value there is a problem: the parser notes one whenever it makes out nothing.
        _ => Err(findings.into_problems(text)),
    }
}
