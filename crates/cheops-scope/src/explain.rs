//! A scope in plain sentences, one line per service.

use std::fmt::Write as _;

use crate::ast::{Consistency, Location, LocationKind, Scope};
use crate::placement::{Nearby, Placement, Target};

impl Scope {
    /// What it says, in plain sentences; without a registry, so `around` stays as it is.
    #[must_use]
    pub fn explain(&self) -> String {
        let lines = self.bindings.iter().map(|binding| {
            let consistency = binding.options.consistency.as_ref().map(|given| given.value);
            let words = Words::of_location(&binding.location);
            line(binding.service.value.as_str(), &words, consistency)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Placement {
    /// What would run where, in plain sentences, and what each `around` came to.
    #[must_use]
    pub fn explain(&self) -> String {
        let services = self.services.iter().map(|placed| {
            let words = Words::of_target(&placed.target);
            line(placed.service.as_str(), &words, placed.consistency)
        });
        let notes = self.nearby.iter().map(note);
        services.chain(notes).collect::<Vec<_>>().join("\n")
    }
}

impl Target {
    /// The sites it means, in a few plain words.
    #[must_use]
    pub fn explain(&self) -> String {
        Words::of_target(self).sentence()
    }
}

fn line(service: &str, words: &Words, consistency: Option<Consistency>) -> String {
    let mut line = format!("{service}: {}", words.sentence());
    if let Some(consistency) = consistency {
        let meaning = match consistency {
            Consistency::Eventual => "the same everywhere in the end",
            Consistency::None | Consistency::Strong | Consistency::Transactional => {
                "not there yet, and refused by agents"
            }
        };
        // Writing to a string cannot fail.
        let _ = write!(line, "; consistency {consistency}: {meaning}");
    }
    line
}

fn note(nearby: &Nearby) -> String {
    let sites = nearby.sites.iter();
    let sites: Vec<String> =
        sites.map(|near| format!("{} ({})", near.site, near.round_trip)).collect();
    format!("{} is, nearest first: {}", nearby.around, sites.join(", "))
}

/// What trees and placements have in common for one who reads them.
enum Words {
    /// Words for one place.
    Place(String),
    All(Vec<Words>),
    Cross(Vec<Words>),
    FirstOf(Vec<Words>),
}

impl Words {
    fn of_location(location: &Location) -> Self {
        let all = |parts: &[Location]| parts.iter().map(Self::of_location).collect();
        match &location.kind {
            LocationKind::Site(site) => Self::Place(site.to_string()),
            LocationKind::Both(parts) => Self::All(all(parts)),
            LocationKind::Spread(parts) => Self::Cross(all(parts)),
            LocationKind::Otherwise(parts) => Self::FirstOf(all(parts)),
            LocationKind::Around { centre, within } => {
                let centre = Self::of_location(centre).places().join(" or ");
                Self::Place(format!("the nearest site within {within} of {centre} that works"))
            }
        }
    }

    fn of_target(target: &Target) -> Self {
        let all = |parts: &[Target]| parts.iter().map(Self::of_target).collect();
        match target {
            Target::Site(site) => Self::Place(site.to_string()),
            Target::All(parts) => Self::All(all(parts)),
            Target::Cross(parts) => Self::Cross(all(parts)),
            Target::FirstOf(parts) => Self::FirstOf(all(parts)),
        }
    }

    /// Every place in it.
    fn places(&self) -> Vec<&str> {
        match self {
            Self::Place(place) => vec![place],
            Self::All(parts) | Self::Cross(parts) | Self::FirstOf(parts) => {
                parts.iter().flat_map(Self::places).collect()
            }
        }
    }

    /// As the whole answer to "where".
    fn sentence(&self) -> String {
        match self {
            Self::Place(place) => format!("on {place}"),
            Self::All(parts) => format!("on {}, kept the same (replication)", listed(parts)),
            Self::Cross(parts) => format!("one resource spread over {} (cross)", listed(parts)),
            Self::FirstOf(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::nested).collect();
                format!("on {} (the first that works)", parts.join(", else on "))
            }
        }
    }

    /// As a part of something larger.
    fn nested(&self) -> String {
        match self {
            Self::Place(place) => place.clone(),
            Self::All(parts) => format!("({}, kept the same)", listed(parts)),
            Self::Cross(parts) => format!("(one spread over {})", listed(parts)),
            Self::FirstOf(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::nested).collect();
                format!("({})", parts.join(", else "))
            }
        }
    }
}

/// "a, b and c".
fn listed(parts: &[Words]) -> String {
    let mut parts: Vec<String> = parts.iter().map(Words::nested).collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() {
        return last;
    }
    format!("{} and {last}", parts.join(", "))
}
