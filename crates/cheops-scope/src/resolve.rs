//! A tree into a placement: names looked up, `around` expanded, nesting that says nothing removed.

use crate::around::{Budget, MAX_STEPS, sites_within};
use crate::ast::{Binding, Location, LocationKind, Scope};
use crate::known::Known;
use crate::micros::Micros;
use crate::name::{ServiceName, SiteId};
use crate::placement::{Nearby, Placement, ServicePlacement, Target};
use crate::problem::{Code, Findings, ScopeProblem, shown};
use crate::span::{Span, Spanned};
use crate::suggest::closest;

/// How many known names are listed where none is close to the one written.
const MAX_LISTED: usize = 5;

pub(crate) struct Resolver<'a> {
    known: &'a Known,
    findings: &'a mut Findings,
    budget: Budget,
    nearby: Vec<Nearby>,
}

impl<'a> Resolver<'a> {
    pub(crate) const fn new(known: &'a Known, findings: &'a mut Findings) -> Self {
        Self { known, findings, budget: Budget::new(), nearby: Vec::new() }
    }

    /// What runs where. Anything that could not be resolved is left out, and a problem noted.
    pub(crate) fn scope(mut self, scope: &Scope) -> Placement {
        let services = scope.bindings.iter().filter_map(|binding| self.binding(binding)).collect();
        Placement { services, nearby: self.nearby }
    }

    fn binding(&mut self, binding: &Binding) -> Option<ServicePlacement> {
        self.service(&binding.service);
        Some(ServicePlacement {
            service: binding.service.value.clone(),
            target: self.target(&binding.location)?,
            consistency: binding.options.consistency.as_ref().map(|given| given.value),
        })
    }

    pub(crate) fn target(&mut self, location: &Location) -> Option<Target> {
        match &location.kind {
            LocationKind::Site(site) => self.site(site, location.span),
            LocationKind::Both(parts) => self.all(parts).map(Target::all),
            LocationKind::Spread(parts) => self.all(parts).map(Target::cross),
            LocationKind::Otherwise(parts) => self.all(parts).map(Target::first_of),
            LocationKind::Around { centre, within } => {
                let centre = self.target(centre)?;
                self.around(&centre, *within, location)
            }
        }
    }

    /// Every part is looked at, also after one that is wrong.
    fn all(&mut self, parts: &[Location]) -> Option<Vec<Target>> {
        let targets: Vec<Option<Target>> = parts.iter().map(|part| self.target(part)).collect();
        targets.into_iter().collect()
    }

    fn site(&mut self, site: &SiteId, span: Span) -> Option<Target> {
        if self.known.sites().contains(site) {
            return Some(Target::Site(site.clone()));
        }
        self.unknown(&Unknown::Site, site.as_str(), span);
        None
    }

    fn service(&mut self, service: &Spanned<ServiceName>) {
        if !self.known.services().contains(&service.value) {
            self.unknown(&Unknown::Service, service.value.as_str(), service.span);
        }
    }

    fn unknown(&mut self, unknown: &Unknown, name: &str, span: Span) {
        let problem = match self.findings.has_room() {
            true => unknown.problem(name, span, self.known),
            // It will only be counted: no need to look for similar names.
            false => ScopeProblem::new(Code::UnknownSite, span, ""),
        };
        self.findings.add(problem);
    }

    fn around(&mut self, centre: &Target, within: Micros, location: &Location) -> Option<Target> {
        let centres = centre.sites();
        let Some(found) = sites_within(&centres, within, self.known, &mut self.budget) else {
            self.too_much(location.span);
            return None;
        };
        let sites = found.iter().map(|near| Target::Site(near.site.clone()));
        let target = Target::first_of(sites.collect());
        self.nearby.push(Nearby { around: location.to_string(), sites: found });
        Some(target)
    }

    fn too_much(&mut self, span: Span) {
        let message = format!("`around` would compare more than {MAX_STEPS} pairs of sites");
        let problem = ScopeProblem::new(Code::TooMuch, span, message)
            .hint("use fewer `around`, or fewer sites within each");
        self.findings.add(problem);
    }
}

/// A name nobody registered, by what it should name.
enum Unknown {
    Site,
    Service,
}

impl Unknown {
    const fn code(&self) -> Code {
        match self {
            Self::Site => Code::UnknownSite,
            Self::Service => Code::UnknownService,
        }
    }

    const fn what(&self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Service => "service",
        }
    }

    const fn other(&self) -> Self {
        match self {
            Self::Site => Self::Service,
            Self::Service => Self::Site,
        }
    }

    fn known<'k>(&self, known: &'k Known) -> Vec<&'k str> {
        match self {
            Self::Site => known.sites().iter().map(SiteId::as_str).collect(),
            Self::Service => known.services().iter().map(ServiceName::as_str).collect(),
        }
    }

    fn problem(&self, name: &str, span: Span, known: &Known) -> ScopeProblem {
        let what = self.what();
        let names = self.known(known);
        let similar = closest(name, names.iter().copied());
        let mut hints = Vec::new();
        if self.other().known(known).contains(&name) {
            hints.push(format!("`{name}` is a {}, not a {what}", self.other().what()));
        }
        if similar.is_empty() {
            hints.push(listed(what, &names));
        }
        let problem =
            ScopeProblem::new(self.code(), span, format!("unknown {what} `{}`", shown(name)))
                .found(name)
                .expected(&[&format!("a known {what}")])
                .did_you_mean(similar);
        match hints.is_empty() {
            true => problem,
            false => problem.hint(hints.join("; ")),
        }
    }
}

/// "the known sites are `lyon`, `paris` and 3 more".
fn listed(what: &str, known: &[&str]) -> String {
    let listed = known.iter().take(MAX_LISTED);
    let names: Vec<String> = listed.map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    match known.len() {
        0 => format!("no {what} is known here yet"),
        1 => format!("the only known {what} is {names}"),
        2..=MAX_LISTED => format!("the known {what}s are {names}"),
        count => format!("the known {what}s are {names} and {} more", count - MAX_LISTED),
    }
}
