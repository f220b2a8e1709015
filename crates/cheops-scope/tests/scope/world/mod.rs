//! A small country for the tests.

use cheops_scope::{Known, Micros, RoundTrips, ServiceName, SiteId};

pub(crate) fn site(name: &str) -> SiteId {
    SiteId::new(name).unwrap()
}

pub(crate) fn service(name: &str) -> ServiceName {
    ServiceName::new(name).unwrap()
}

/// Six sites; brest is cut off, and nobody but paris ever measured rennes.
pub(crate) fn france() -> Known {
    let mut times = RoundTrips::default();
    for (from, to, micros) in [
        ("paris", "lyon", 6_000),
        ("paris", "nantes", 5_500),
        ("paris", "rennes", 6_000),
        ("paris", "nice", 12_000),
        ("lyon", "nice", 4_000),
        ("lyon", "nantes", 9_000),
    ] {
        times.set(site(from), site(to), Micros::new(micros));
    }
    let sites = ["paris", "lyon", "nantes", "rennes", "nice", "brest"];
    Known::new(["image", "compute", "network"].map(service), sites.map(site))
        .with_round_trips(times)
}
