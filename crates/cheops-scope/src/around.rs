//! `around(location, time)`: every known site within that round-trip time, nearest first.

use std::collections::BTreeSet;

use crate::known::Known;
use crate::micros::Micros;
use crate::name::SiteId;
use crate::placement::NearSite;

/// How many pairs of sites are compared for one scope. A hostile one could ask for millions.
pub const MAX_STEPS: usize = 1 << 18;

/// What is left of [`MAX_STEPS`].
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { left: MAX_STEPS }
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps);
        // Nothing is left after the first refusal, so that the next one is refused at once.
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// The sites within reach of any of `centres`, each with its distance to the nearest of them:
/// nearest first, of equal distance by name. `None` if that is more work than the budget allows.
///
/// The centres are their own nearest sites, also when they are unreachable right now: that is for
/// the one who tries them to find out.
pub(crate) fn sites_within(
    centres: &BTreeSet<&SiteId>,
    within: Micros,
    known: &Known,
    budget: &mut Budget,
) -> Option<Vec<NearSite>> {
    budget.spend(centres.len().saturating_mul(known.sites().len()))?;
    let mut near: Vec<(Micros, &SiteId)> = known
        .sites()
        .iter()
        .filter_map(|site| Some((distance(centres, site, known)?, site)))
        .filter(|(time, _)| *time <= within)
        .collect();
    near.sort_unstable();
    let near =
        near.into_iter().map(|(round_trip, site)| NearSite { site: site.clone(), round_trip });
    Some(near.collect())
}

fn distance(centres: &BTreeSet<&SiteId>, site: &SiteId, known: &Known) -> Option<Micros> {
    centres.iter().filter_map(|centre| known.round_trips().between(centre, site)).min()
}
