//! What is wrong with a tree whatever the names stand for: things said twice.

use std::collections::BTreeMap;

use crate::ast::{Location, LocationKind, Scope};
use crate::name::SiteId;
use crate::problem::{Code, Findings, ScopeProblem};
use crate::span::Span;

pub(crate) fn scope(scope: &Scope, findings: &mut Findings) {
    let mut first = BTreeMap::new();
    for binding in &scope.bindings {
        let service = &binding.service;
        if let Some(before) = first.get(&service.value) {
            let message = format!("service `{}` is placed a second time", service.value);
            let problem = ScopeProblem::new(Code::RepeatedService, service.span, message)
                .found(service.value.as_str())
                .hint("a service has one location; join several sites with `&`, `%` or `;`")
                .related(*before, "first placed here");
            findings.add(problem);
        } else {
            first.insert(&service.value, service.span);
        }
        location(&binding.location, findings);
    }
}

/// Looks for sites repeated in one `&` or `%` list. In a `;` chain a repeated site is merely
/// useless, and `around` may well bring one in: there it is dropped later, in silence.
pub(crate) fn location(location: &Location, findings: &mut Findings) {
    match &location.kind {
        LocationKind::Site(_) => {}
        LocationKind::Around { centre, .. } => self::location(centre, findings),
        LocationKind::Otherwise(parts) => {
            for part in parts {
                self::location(part, findings);
            }
        }
        LocationKind::Both(parts) => list(&ListKind::BOTH, parts, &mut BTreeMap::new(), findings),
        LocationKind::Spread(parts) => {
            list(&ListKind::SPREAD, parts, &mut BTreeMap::new(), findings);
        }
    }
}

/// A list in which a site may stand once.
struct ListKind {
    symbol: &'static str,
    why: &'static str,
    nested: fn(&LocationKind) -> Option<&[Location]>,
}

impl ListKind {
    const BOTH: Self = Self {
        symbol: "&",
        why: "`&` keeps one copy at each site, so a site can stand in it once",
        nested: |kind| match kind {
            LocationKind::Both(parts) => Some(parts),
            _ => None,
        },
    };
    const SPREAD: Self = Self {
        symbol: "%",
        why: "`%` puts one part at each site, so a site can stand in it once",
        nested: |kind| match kind {
            LocationKind::Spread(parts) => Some(parts),
            _ => None,
        },
    };
}

/// The same operator in parentheses within itself is the same list.
fn list<'a>(
    which: &ListKind,
    parts: &'a [Location],
    first: &mut BTreeMap<&'a SiteId, Span>,
    findings: &mut Findings,
) {
    for part in parts {
        match &part.kind {
            LocationKind::Site(site) => match first.get(site) {
                None => {
                    first.insert(site, part.span);
                }
                Some(before) => findings.add(repeated(which, site, part.span, *before)),
            },
            kind => match (which.nested)(kind) {
                Some(inner) => list(which, inner, first, findings),
                None => location(part, findings),
            },
        }
    }
}

fn repeated(which: &ListKind, site: &SiteId, span: Span, before: Span) -> ScopeProblem {
    let message = format!("site `{site}` stands twice in one `{}` list", which.symbol);
    ScopeProblem::new(Code::RepeatedSite, span, message)
        .found(site.as_str())
        .hint(which.why)
        .related(before, "first here")
}
