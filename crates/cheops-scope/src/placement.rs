//! What an agent executes: for each service a small tree over sites it knows.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::ast::Consistency;
use crate::micros::Micros;
use crate::name::{ServiceName, SiteId};

/// Where each service of a scope runs. A service that is not in it runs locally.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// One per service, in the order written.
    pub services: Vec<ServicePlacement>,
    /// What each `around` came to, for people who wonder.
    pub nearby: Vec<Nearby>,
}

/// Where one service runs, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServicePlacement {
    /// The service.
    pub service: ServiceName,
    /// Where it runs.
    pub target: Target,
    /// As the scope says; if it says nothing, the resource's config decides.
    pub consistency: Option<Consistency>,
}

/// Where to run something.
///
/// The lists have two parts or more, and no list holds one of its own kind: `(a & b) & c` means
/// `a & b & c`. A [`Target::FirstOf`] holds no part twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// At this site.
    Site(SiteId),
    /// At each of these, kept the same (replication).
    All(Vec<Target>),
    /// One resource spanning these.
    Cross(Vec<Target>),
    /// At the first of these that works.
    FirstOf(Vec<Target>),
}

/// What an `around` came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nearby {
    /// The expression, in its canonical text.
    pub around: String,
    /// The sites, nearest first.
    pub sites: Vec<NearSite>,
}

/// A site and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NearSite {
    /// The site.
    pub site: SiteId,
    /// Its round-trip time from the nearest centre.
    #[serde(rename = "round_trip_us")]
    pub round_trip: Micros,
}

impl Placement {
    /// Where `service` runs; `None` if the scope does not name it.
    #[must_use]
    pub fn of(&self, service: &ServiceName) -> Option<&ServicePlacement> {
        self.services.iter().find(|one| one.service == *service)
    }
}

impl Target {
    /// Every site in it, by name.
    #[must_use]
    pub fn sites(&self) -> BTreeSet<&SiteId> {
        let mut sites = BTreeSet::new();
        self.collect_sites(&mut sites);
        sites
    }

    fn collect_sites<'a>(&'a self, sites: &mut BTreeSet<&'a SiteId>) {
        match self {
            Self::Site(site) => {
                sites.insert(site);
            }
            Self::All(parts) | Self::Cross(parts) | Self::FirstOf(parts) => {
                for part in parts {
                    part.collect_sites(sites);
                }
            }
        }
    }

    pub(crate) fn all(parts: Vec<Self>) -> Self {
        Self::list(parts, Self::All, |part| match part {
            Self::All(inner) => Ok(inner),
            other => Err(other),
        })
    }

    pub(crate) fn cross(parts: Vec<Self>) -> Self {
        Self::list(parts, Self::Cross, |part| match part {
            Self::Cross(inner) => Ok(inner),
            other => Err(other),
        })
    }

    /// A part that failed is not tried again: repeats are dropped. `around` brings them in easily.
    pub(crate) fn first_of(parts: Vec<Self>) -> Self {
        let mut seen = BTreeSet::new();
        let unique = |parts: Vec<Self>| {
            let parts = parts.into_iter();
            Self::FirstOf(parts.filter(|part| seen.insert(part.clone())).collect())
        };
        let chain = Self::list(parts, unique, |part| match part {
            Self::FirstOf(inner) => Ok(inner),
            other => Err(other),
        });
        match chain {
            Self::FirstOf(mut parts) if parts.len() == 1 => parts.remove(0),
            chain => chain,
        }
    }

    /// A list without lists of its own kind in it; a single part is itself.
    fn list(
        mut parts: Vec<Self>,
        list: impl FnOnce(Vec<Self>) -> Self,
        open: impl Fn(Self) -> Result<Vec<Self>, Self>,
    ) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let flat = parts.into_iter().flat_map(|part| match open(part) {
            Ok(inner) => inner,
            Err(part) => vec![part],
        });
        list(flat.collect())
    }
}
