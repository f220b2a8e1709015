//! The tree of a scope, as written.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::micros::Micros;
use crate::name::{ServiceName, SiteId};
use crate::span::{Span, Spanned};

/// A whole scope: where each service named in it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// One per service, in the order written.
    pub bindings: Vec<Binding>,
}

/// One service, where it runs, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Binding {
    /// The service.
    pub service: Spanned<ServiceName>,
    /// Where it runs.
    pub location: Location,
    /// What stands in square brackets after it.
    pub options: LocationOptions,
}

/// An expression over sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// What it says.
    pub kind: LocationKind,
    /// Where it stands.
    pub span: Span,
}

/// What a [`Location`] says.
///
/// The lists have two parts or more. Parentheses are kept as nesting: `(a & b) & c` is a list of
/// two, of which the first is a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LocationKind {
    /// One site.
    Site(SiteId),
    /// `a & b`: at each, kept the same.
    Both(Vec<Location>),
    /// `a % b`: one resource spanning them.
    Spread(Vec<Location>),
    /// `a ; b`: the first that works.
    Otherwise(Vec<Location>),
    /// `around(a, 10ms)`: the first that works of all sites within that round-trip time.
    Around {
        /// From where the time is measured.
        centre: Box<Location>,
        /// How far a site may be.
        #[serde(rename = "within_us")]
        within: Micros,
    },
}

/// What stands in square brackets after a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocationOptions {
    /// `consistency=…`, if it was given.
    pub consistency: Option<Spanned<Consistency>>,
}

/// How closely the sites of a resource follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Sent once to each site, no retry. Agents refuse it: not there yet.
    None,
    /// Every site gets everything, in the end the same everywhere.
    Eventual,
    /// One order agreed on by a majority. Agents refuse it: not there yet.
    Strong,
    /// At all sites or at none. Agents refuse it: not there yet.
    Transactional,
}

impl Consistency {
    /// All of them, in the order people list them.
    pub const ALL: [Self; 4] = [Self::None, Self::Eventual, Self::Strong, Self::Transactional];

    /// As written in a scope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Eventual => "eventual",
            Self::Strong => "strong",
            Self::Transactional => "transactional",
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Scope {
    /// The same tree with all spans at zero, to compare what two texts say and not where.
    #[must_use]
    pub fn without_spans(&self) -> Self {
        let bindings = self.bindings.iter().map(Binding::without_spans).collect();
        Self { bindings }
    }
}

impl Binding {
    fn without_spans(&self) -> Self {
        Self {
            service: Spanned::new(self.service.value.clone(), Span::default()),
            location: self.location.without_spans(),
            options: LocationOptions {
                consistency: self
                    .options
                    .consistency
                    .as_ref()
                    .map(|given| Spanned::new(given.value, Span::default())),
            },
        }
    }
}

impl Location {
    /// The same tree with all spans at zero, to compare what two texts say and not where.
    #[must_use]
    pub fn without_spans(&self) -> Self {
        let all = |parts: &[Self]| parts.iter().map(Self::without_spans).collect();
        let kind = match &self.kind {
            LocationKind::Site(site) => LocationKind::Site(site.clone()),
            LocationKind::Both(parts) => LocationKind::Both(all(parts)),
            LocationKind::Spread(parts) => LocationKind::Spread(all(parts)),
            LocationKind::Otherwise(parts) => LocationKind::Otherwise(all(parts)),
            LocationKind::Around { centre, within } => {
                LocationKind::Around { centre: Box::new(centre.without_spans()), within: *within }
            }
        };
        Self { kind, span: Span::default() }
    }
}
