//! Which few sites have a link to each other, so that all are connected: a pure function of who exists.
//!
//! Sites stand in a ring, in the order of a hash of their names. Each has a link to the two next to it
//! on either side, and to those 8, 32, 128, ... places away: few links, and few steps from any site to
//! any other. Who is whose neighbour is the same seen from both.

use std::collections::BTreeMap;

use cheops_core::model::SiteId;

/// How many places away neighbours stand, on either side.
const STEPS: [usize; 7] = [1, 2, 8, 32, 128, 512, 2048];
/// Where there are so few sites, everybody is everybody's neighbour.
const FEW: usize = 10;

/// The sites that exist, in their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ring {
    order: Vec<SiteId>,
    places: BTreeMap<SiteId, usize>,
}

impl Ring {
    /// Of these sites.
    pub fn new(sites: impl IntoIterator<Item = SiteId>) -> Self {
        let place = |site: &SiteId| *blake3::hash(site.as_str().as_bytes()).as_bytes();
        let mut order: Vec<_> = sites.into_iter().map(|site| (place(&site), site)).collect();
        order.sort();
        order.dedup();
        let order: Vec<_> = order.into_iter().map(|(_, site)| site).collect();
        let places = order.iter().cloned().enumerate().map(|(place, site)| (site, place)).collect();
        Self { order, places }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether that site is one of them.
    pub fn contains(&self, site: &SiteId) -> bool {
        self.places.contains_key(site)
    }

    /// All of them, in their places.
    pub fn sites(&self) -> impl Iterator<Item = &SiteId> {
        self.order.iter()
    }

    /// Its neighbours, each with those that stand behind it, seen from there: who is to be taken in its
    /// place while it cannot be reached.
    pub fn neighbours(&self, of: &SiteId) -> impl Iterator<Item = impl Iterator<Item = &SiteId>> {
        let len = self.order.len();
        let at = self.places.get(of).copied();
        let few = len <= FEW;
        let steps: Vec<usize> = if few {
            (1..len).collect()
        } else {
            let after = STEPS.into_iter().filter(move |step| *step <= len / 2);
            after.flat_map(move |step| [step, len - step]).collect()
        };
        at.into_iter().flat_map(move |at| {
            steps.clone().into_iter().map(move |step| {
                // On the one side forth, on the other back.
                let behind = move |n: usize| if step <= len / 2 { step + n } else { step - n };
                let most = if few { 1 } else { (len / 2).min(len - 1) };
                let most = if step <= len / 2 { most.min(len - step) } else { most.min(step) };
                (0..most.max(1)).map(move |n| &self.order[(at + behind(n)) % len])
            })
        })
    }

    /// The one at that place, counted round and round.
    pub(crate) fn at(&self, place: u64) -> Option<&SiteId> {
        let len = u64::try_from(self.order.len()).ok().filter(|len| *len > 0)?;
        self.order.get(usize::try_from(place % len).ok()?)
    }
}
