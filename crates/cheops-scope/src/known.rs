//! What a site knows of the others: names and round-trip times.

use std::collections::{BTreeMap, BTreeSet};

use crate::micros::Micros;
use crate::name::{ServiceName, SiteId};

/// The services and sites a scope can name, and how far the sites are from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    services: BTreeSet<ServiceName>,
    sites: BTreeSet<SiteId>,
    round_trips: RoundTrips,
}

impl Known {
    /// These services and sites, no distances yet.
    pub fn new(
        services: impl IntoIterator<Item = ServiceName>,
        sites: impl IntoIterator<Item = SiteId>,
    ) -> Self {
        Self {
            services: services.into_iter().collect(),
            sites: sites.into_iter().collect(),
            round_trips: RoundTrips::default(),
        }
    }

    /// The same with these distances.
    #[must_use]
    pub fn with_round_trips(mut self, round_trips: RoundTrips) -> Self {
        self.round_trips = round_trips;
        self
    }

    /// The services, by name.
    #[must_use]
    pub const fn services(&self) -> &BTreeSet<ServiceName> {
        &self.services
    }

    /// The sites, by name.
    #[must_use]
    pub const fn sites(&self) -> &BTreeSet<SiteId> {
        &self.sites
    }

    /// The distances.
    #[must_use]
    pub const fn round_trips(&self) -> &RoundTrips {
        &self.round_trips
    }
}

/// Measured round-trip times between sites. A pair that is not in it is unreachable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    from: BTreeMap<SiteId, BTreeMap<SiteId, Micros>>,
}

impl RoundTrips {
    /// Notes what `from` measured towards `to`, in place of what it measured before.
    pub fn set(&mut self, from: SiteId, to: SiteId, time: Micros) {
        self.from.entry(from).or_default().insert(to, time);
    }

    /// The time from `from` to `to` and back: as `from` measured it, else as `to` did. Zero from a
    /// site to itself, `None` if neither reached the other.
    #[must_use]
    pub fn between(&self, from: &SiteId, to: &SiteId) -> Option<Micros> {
        if from == to {
            return Some(Micros::ZERO);
        }
        self.measured(from, to).or_else(|| self.measured(to, from))
    }

    fn measured(&self, from: &SiteId, to: &SiteId) -> Option<Micros> {
        self.from.get(from)?.get(to).copied()
    }
}
