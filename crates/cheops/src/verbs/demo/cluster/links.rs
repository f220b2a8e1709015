//! The ways between sites, and which of them are cut.

use std::net::{Ipv4Addr, SocketAddr};

use cheops_core::model::SiteId;

use crate::relay::Relay;

/// All of them.
pub(super) struct RelayedLinks(Vec<RelayedLink>);

/// The way between two sites: one relay for each direction of calls.
struct RelayedLink {
    between: [SiteId; 2],
    relays: [Relay; 2],
}

impl RelayedLink {
    fn joins(&self, site: &SiteId) -> bool {
        self.between.contains(site)
    }
}

impl RelayedLinks {
    /// Between all of these, each of which hears the others at the address beside its name.
    pub(super) async fn between(sites: &[(SiteId, SocketAddr)]) -> std::io::Result<Self> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut links = Vec::new();
        for (n, (name, address)) in sites.iter().enumerate() {
            for (other, other_address) in sites.iter().skip(n + 1) {
                let forth = Relay::start(loopback, *other_address).await?;
                let back = Relay::start(loopback, *address).await?;
                let between = [name.clone(), other.clone()];
                links.push(RelayedLink { between, relays: [forth, back] });
            }
        }
        Ok(Self(links))
    }

    /// Whom a site reaches, and at which address.
    pub(super) fn from(&self, site: &SiteId) -> impl Iterator<Item = (&SiteId, SocketAddr)> {
        let ways = [(0, 1), (1, 0)];
        self.0.iter().flat_map(move |link| {
            let leaves = move |(from, _): &(usize, usize)| link.between[*from] == *site;
            let ways = ways.into_iter().filter(leaves);
            ways.map(|(from, to)| (&link.between[to], link.relays[from].address()))
        })
    }

    /// All of them: both ends, and whether it is cut.
    pub(super) fn all(&self) -> impl Iterator<Item = (&SiteId, &SiteId, bool)> {
        self.0.iter().map(|RelayedLink { between: [one, other], relays }| {
            (one, other, relays.iter().any(Relay::is_cut))
        })
    }

    /// Whether what one of them sends arrives at the other.
    pub(super) fn are_whole(&self, one: &SiteId, other: &SiteId) -> bool {
        let links = self.0.iter();
        let mut between = links.filter(|link| [one, other].iter().all(|site| link.joins(site)));
        between.all(|link| link.relays.iter().all(|relay| !relay.is_cut()))
    }

    /// Cuts, or heals, the link between these two, all links of one, or all if nobody is named.
    /// How many that changed.
    pub(super) fn set_cut(&self, sites: &[SiteId], cut: bool) -> usize {
        let concerns = |link: &&RelayedLink| sites.iter().all(|site| link.joins(site));
        let relays = self.0.iter().filter(concerns).flat_map(|link| &link.relays);
        let changed = relays.filter(|relay| relay.is_cut() != cut).map(|relay| relay.set_cut(cut));
        changed.count() / 2
    }
}
