//! `cheops scope`: what a scope says, and what would run where.

mod now;

use std::collections::BTreeSet;

use cheops_scope::{
    Known, Location, LocationKind, Look, Micros, Placement, Problems, RoundTrips, Scope,
    ServiceName, SiteId,
};
use clap::Args;
use serde::Serialize;

use self::now::{MeshView, ServiceNow};
use crate::agent::AgentTarget;
use crate::failure::{Failure, Verdict};
use crate::look::{ACCENT, BOLD, DIM, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, wrapped};

const AFTER_HELP: &str = "\
A scope says, per service, where a request runs:
  image: paris                  at paris
  image: paris & lyon           at both, kept the same
  image: paris % lyon           one resource spread over both
  image: paris ; lyon           at paris, or at lyon if paris does not work
  image: around(paris, 10ms)    the nearest that works, within 10 ms
  image: paris, compute: lyon   each at its own

Where an agent can be asked, its sites and services count, and each service is told with the
site that would run it now. `--sites`, `--services` or `--rtt` count in its place.

Examples:
  cheops scope 'image: paris & lyon, compute: around(nantes, 10ms)'
  cheops scope 'image: pariss' --sites paris,lyon
  cheops scope 'image: around(paris, 10ms)' --rtt paris:lyon=7ms

Exit code 1 if the scope has problems; they go to standard error, or, with
`--output json`, to standard output as data.";

/// Explain what a scope says: what would run where
///
/// Asks the agent, where there is one, which sites and services there are: finds misspelled names, and
/// says which site would run each service now and why. Without one, says what the scope means; names
/// and round-trip times can be given.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The scope; quote it, since `&` and `;` mean something to shells
    #[arg(value_name = "EXPR")]
    scope: String,
    /// The services there are; if not given, those in the scope
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    services: Vec<ServiceName>,
    /// The sites there are; if not given, those that `--rtt` names, else those in the scope
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    sites: Vec<SiteId>,
    /// The round-trip time between two sites, such as `paris:lyon=7ms`
    #[arg(long, value_delimiter = ',', value_name = "A:B=TIME,…", value_parser = round_trip)]
    rtt: Vec<RoundTrip>,
}

/// What `--rtt` says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RoundTrip {
    from: SiteId,
    to: SiteId,
    time: Micros,
}

fn round_trip(text: &str) -> Result<RoundTrip, String> {
    let shape = || "expected `SITE:SITE=TIME`, such as `paris:lyon=7ms`".to_owned();
    let (sites, time) = text.split_once('=').ok_or_else(shape)?;
    let (from, to) = sites.split_once(':').ok_or_else(shape)?;
    let site = |name: &str| SiteId::new(name).map_err(|why| format!("`{name}`: {why}"));
    let time = time.parse().map_err(|why| format!("`{time}`: {why}"))?;
    Ok(RoundTrip { from: site(from)?, to: site(to)?, time })
}

/// What there is to say of a scope without problems.
#[derive(Debug, Serialize)]
struct ScopeReport {
    ok: bool,
    /// The scope, in its canonical text.
    scope: String,
    /// The same in plain sentences, one per service, then what each `around` came to.
    explanation: Vec<String>,
    /// As written; there if the sites are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Scope>,
    /// As an agent would execute it; there if the sites are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    /// Which site's agent was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    /// Where each service would run now, as that agent sees it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    now: Vec<ServiceNow>,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    check_distances(arguments)?;
    let mesh = if arguments.names_are_given() { None } else { now::asked(agent)? };
    match (answer(arguments, mesh.as_ref()), output.format) {
        (Ok(answer), Format::Table) => {
            output.line(told(&answer, output.width))?;
            if let Some(remark) = remark(arguments).filter(|_| mesh.is_none()) {
                output.aside(hanging("note: ", &remark, output.width));
            }
            Ok(Verdict::Fine)
        }
        (Ok(answer), Format::Json) => {
            output.json(&answer)?;
            Ok(Verdict::Fine)
        }
        (Err(problems), _) => {
            tell(&problems, output)?;
            Ok(Verdict::Problems)
        }
    }
}

/// All that is wrong with a scope, for whoever reads the output.
pub(crate) fn tell(problems: &Problems, output: &mut VerbOutput) -> Result<(), Failure> {
    match output.format {
        Format::Table => output.aside(problems.render(Look::Coloured)),
        Format::Json => output.json(&ScopeRefused { ok: false, problems })?,
    }
    Ok(())
}

/// All that is wrong with a scope, for programs.
#[derive(Serialize)]
struct ScopeRefused<'p> {
    ok: bool,
    #[serde(flatten)]
    problems: &'p Problems,
}

/// A site that only `--rtt` names is probably misspelled there, if `--sites` lists them all.
fn check_distances(arguments: &Arguments) -> Result<(), Failure> {
    let named = arguments.rtt.iter().flat_map(|said| [&said.from, &said.to]);
    let stranger = named.into_iter().find(|site| !arguments.sites.contains(site));
    match stranger {
        Some(site) if !arguments.sites.is_empty() => {
            let message = format!("`--rtt` names `{site}`, which is not among `--sites`");
            Err(Failure::caller(message).hint("correct the name, or add it to `--sites`"))
        }
        _ => Ok(()),
    }
}

fn answer(arguments: &Arguments, mesh: Option<&MeshView>) -> Result<ScopeReport, Problems> {
    let scope = cheops_scope::parse(&arguments.scope);
    let known = match mesh {
        Some(mesh) => mesh.known(scope.as_ref().ok()),
        None => known(arguments, scope.as_ref().ok()),
    };
    // With names given, problems of names and grammar are told at once.
    let given = mesh.is_some() || arguments.names_are_given();
    let all_given = mesh.is_some() || arguments.all_names_are_given();
    let checked = given && (scope.is_ok() || all_given);
    let placement = checked.then(|| cheops_scope::resolve(&arguments.scope, &known)).transpose()?;
    let scope = scope?;
    let placement = placement.filter(|_| mesh.is_some() || arguments.sites_are_given());
    let now = mesh.zip(placement.as_ref()).map(|(mesh, placement)| mesh.now(placement));
    let explanation = placement.as_ref().map_or_else(|| scope.explain(), Placement::explain);
    Ok(ScopeReport {
        ok: true,
        scope: scope.to_string(),
        explanation: explanation.lines().map(str::to_owned).collect(),
        tree: placement.is_none().then_some(scope),
        placement,
        asked: mesh.map(|mesh| mesh.me.clone()),
        now: now.unwrap_or_default(),
    })
}

impl Arguments {
    fn names_are_given(&self) -> bool {
        self.sites_are_given() || !self.services.is_empty()
    }

    fn all_names_are_given(&self) -> bool {
        self.sites_are_given() && !self.services.is_empty()
    }

    fn sites_are_given(&self) -> bool {
        !self.sites.is_empty() || !self.rtt.is_empty()
    }
}

/// What is known: what was given, else what the scope itself names.
fn known(arguments: &Arguments, scope: Option<&Scope>) -> Known {
    let bindings = || scope.into_iter().flat_map(|scope| &scope.bindings);
    let mut services: BTreeSet<_> = arguments.services.iter().cloned().collect();
    if services.is_empty() {
        services.extend(bindings().map(|binding| binding.service.value.clone()));
    }
    let mut sites: BTreeSet<_> = arguments.sites.iter().cloned().collect();
    sites.extend(arguments.rtt.iter().flat_map(|said| [said.from.clone(), said.to.clone()]));
    if sites.is_empty() {
        bindings().for_each(|binding| collect_sites(&binding.location, &mut sites));
    }
    let mut round_trips = RoundTrips::default();
    for said in &arguments.rtt {
        round_trips.set(said.from.clone(), said.to.clone(), said.time);
    }
    Known::new(services, sites).with_round_trips(round_trips)
}

fn collect_sites(location: &Location, sites: &mut BTreeSet<SiteId>) {
    match &location.kind {
        LocationKind::Site(site) => {
            sites.insert(site.clone());
        }
        LocationKind::Both(parts)
        | LocationKind::Spread(parts)
        | LocationKind::Otherwise(parts) => {
            parts.iter().for_each(|part| collect_sites(part, sites));
        }
        LocationKind::Around { centre, .. } => collect_sites(centre, sites),
    }
}

fn told(answer: &ScopeReport, width: usize) -> String {
    let mut lines = vec![styled(BOLD, &answer.scope)];
    lines.extend(answer.explanation.iter().map(|sentence| sentence_told(sentence, width)));
    lines.push(styled(DIM, "  every other service: at the site that gets the request"));
    if let Some(me) = &answer.asked {
        lines.push(format!("As {me} sees it:"));
        let told = answer.now.iter().map(|now| format!("{}: {}", now.service, now.sentence));
        lines.extend(told.map(|sentence| sentence_told(&sentence, width)));
    }
    lines.join("\n")
}

fn sentence_told(sentence: &str, width: usize) -> String {
    let text = format!("  {}", wrapped(sentence, width.saturating_sub(4)).join("\n    "));
    match text.split_once(": ") {
        Some((service, rest)) => format!("{}: {rest}", styled(ACCENT, service)),
        None => text,
    }
}

/// What was not looked at, and how to have it looked at.
fn remark(arguments: &Arguments) -> Option<String> {
    let around = arguments.scope.contains("around");
    if !arguments.names_are_given() {
        let times = if around { ", and `--rtt` for `around`" } else { "" };
        return Some(format!(
            "no agent was found to ask, so names are taken as they are; give `--sites` and \
             `--services`{times}"
        ));
    }
    (around && arguments.rtt.is_empty())
        .then(|| "no round-trip time is known; give `--rtt paris:lyon=7ms`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_two_sites_and_a_time() {
        let said = round_trip("paris:lyon=7ms").unwrap();
        assert_eq!((said.from.as_str(), said.to.as_str()), ("paris", "lyon"));
        assert_eq!(said.time, Micros::new(7_000));
        for bad in ["", "paris", "paris:lyon", "paris=7ms", "paris:lyon=7", "-:lyon=7ms"] {
            assert!(round_trip(bad).is_err(), "{bad}");
        }
    }
}
