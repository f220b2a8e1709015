//! Where to try a request, and in which order.

use std::collections::BTreeSet;

use cheops_core::model::SiteId;
use cheops_scope::Target;

/// What a target asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    /// The first of these that works.
    FirstOf(Vec<SiteId>),
    /// All of these (`&`).
    All(BTreeSet<SiteId>),
    /// One thing over all of these (`%`).
    Cross(Vec<SiteId>),
    /// Something that this proxy does not do.
    TooMuch,
}

/// What a target asks for, of the sites that can be reached. Of several that would do, the first
/// one that can be reached counts; if none can, the first.
pub(super) fn aim(target: &Target, is_reached: &dyn Fn(&SiteId) -> bool) -> Aim {
    match target {
        Target::Site(site) => Aim::FirstOf(vec![site.clone()]),
        Target::Cross(parts) => spanned(parts).map_or(Aim::TooMuch, Aim::Cross),
        Target::All(parts) => {
            let one = |part: &Target| match aim(part, is_reached) {
                Aim::FirstOf(sites) => {
                    sites.iter().find(|site| is_reached(site)).or(sites.first()).cloned()
                }
                _ => None,
            };
            let sites: Option<BTreeSet<SiteId>> = parts.iter().map(one).collect();
            sites.map_or(Aim::TooMuch, Aim::All)
        }
        Target::FirstOf(parts) => {
            let aims: Vec<Aim> = parts.iter().map(|part| aim(part, is_reached)).collect();
            let in_turn = |sites: Vec<SiteId>, aim: &Aim| match aim {
                Aim::FirstOf(more) => Some([sites, more.clone()].concat()),
                _ => None,
            };
            if let Some(sites) = aims.iter().try_fold(Vec::new(), in_turn) {
                return Aim::FirstOf(sites);
            }
            let works = |aim: &&Aim| match aim {
                Aim::FirstOf(sites) => sites.iter().any(is_reached),
                Aim::All(sites) => sites.iter().any(is_reached),
                Aim::Cross(sites) => sites.iter().any(is_reached),
                Aim::TooMuch => true,
            };
            let first = aims.iter().find(works).or(aims.first());
            first.cloned().unwrap_or(Aim::FirstOf(Vec::new()))
        }
    }
}

/// Whether a target names a site, anywhere.
pub(super) fn names(target: &Target, site: &SiteId) -> bool {
    match target {
        Target::Site(name) => name.as_str() == site.as_str(),
        Target::All(parts) | Target::Cross(parts) | Target::FirstOf(parts) => {
            parts.iter().any(|part| names(part, site))
        }
    }
}

/// The sites that something spans, in the order written; `None` if a part of it is more than a
/// site.
fn spanned(parts: &[Target]) -> Option<Vec<SiteId>> {
    let site = |part: &Target| match part {
        Target::Site(site) => Some(site.clone()),
        _ => None,
    };
    parts.iter().map(site).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cheops_scope::{Known, resolve_location};

    fn target(text: &str) -> Target {
        let sites = ["a", "b", "c"].map(|name| SiteId::new(name).unwrap());
        resolve_location(text, &Known::new([], sites)).unwrap()
    }

    #[test]
    fn a_target_comes_to_the_sites_that_can_be_reached() {
        let in_words = |text: &str, reached: &str| {
            let is_reached = |site: &SiteId| reached.contains(site.as_str());
            let names = |sites: Vec<&SiteId>, between: &str| {
                sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
            };
            match aim(&target(text), &is_reached) {
                Aim::FirstOf(sites) => names(sites.iter().collect(), " "),
                Aim::All(sites) => names(sites.iter().collect(), "&"),
                Aim::Cross(sites) => names(sites.iter().collect(), "%"),
                Aim::TooMuch => "too much".to_owned(),
            }
        };
        let cases = [
            ("b", "", "b"),
            ("c ; a ; c ; b", "a", "c a b"),
            ("a & b", "", "a&b"),
            ("(a ; b) & c", "b", "b&c"),
            ("(a ; b) & c", "", "a&c"),
            ("a & b ; c", "c", "c"),
            ("a & b ; c", "bc", "a&b"),
            ("a & b ; c", "", "a&b"),
            ("a % b", "", "a%b"),
            ("a ; b % c", "a", "a"),
            ("a ; b % c", "b", "b%c"),
            ("a & b % c", "", "too much"),
            ("(a % b) & c", "", "too much"),
        ];
        for (text, reached, expected) in cases {
            assert_eq!(in_words(text, reached), expected, "{text} with {reached} reached");
        }
    }

    #[test]
    fn what_spans_sites_has_a_part_at_each() {
        let names = |text| {
            let Target::Cross(parts) = target(text) else { panic!("{text}") };
            let sites = spanned(&parts)?;
            Some(sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("b % a % c"), Some("b a c".to_owned()));
        assert_eq!(names("a % (b ; c)"), None);
        assert_eq!(names("a % b & c"), None);
    }
}
