//! `cheops status`: one screen for whoever was woken up.

use cheops_api::{
    Client, HistoryUse, ResourceFilter, ResourceState, ResourceSummary, Site, SiteStanding,
    SiteState, Sites, Standing, Summary,
};
use clap::Args;
use serde_json::json;

use super::resources;
use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::look::{BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{hanging, printable};
use crate::time::{ago, now_ms};

const AFTER_HELP: &str = "\
Sites of which nothing is known now come first; then what needs somebody, the worst on top, each with the
command that gets out of it, and how many resources are in which state.

Examples:
  cheops status

Exit codes:
  0  every site is connected, and nothing needs you
  1  something needs you: a resource, or a site that is set apart
  3  the agent, or a site, is out of reach: what it would say is not known";

/// How many of each kind are shown; the rest is counted.
const SHOWN: u32 = 10;

/// What needs a person, the worst first.
const TROUBLE: [ResourceState; 3] =
    [ResourceState::Diverged, ResourceState::InDoubt, ResourceState::Error];

/// Show what needs you, at whichever site, and the way out of it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {}

pub(crate) fn run(
    _arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let (sites, summary, trouble) = agent::with(agent, async |client| {
        Ok((client.sites().await?, client.summary().await?, troubled(&client).await?))
    })?;
    match output.format {
        Format::Json => output.json(&json!({
            "sites": sites.sites,
            "summary": summary,
            "needs_you": trouble,
        }))?,
        Format::Table => {
            for line in told(&sites, &summary, &trouble, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(verdict(&sites, &summary, &trouble))
}

/// Never better than what is known.
fn verdict(sites: &Sites, summary: &Summary, trouble: &[ResourceSummary]) -> Verdict {
    let is_set_apart = |site: &Site| site.state == SiteState::SetApart;
    if !trouble.is_empty() || sites.sites.iter().any(is_set_apart) {
        return Verdict::Problems;
    }
    let knows_all =
        unheard(sites).next().is_none() && counted(summary, ResourceState::Unknown) == 0;
    if knows_all { Verdict::Fine } else { Verdict::Missing }
}

/// The sites that may be otherwise than is known here.
fn unheard(sites: &Sites) -> impl Iterator<Item = &Site> {
    sites.sites.iter().filter(|site| !matches!(site.state, SiteState::Myself | SiteState::Up))
}

fn counted(summary: &Summary, state: ResourceState) -> u64 {
    summary.by_state.get(state.word()).copied().unwrap_or(0)
}

async fn troubled(client: &Client) -> Result<Vec<ResourceSummary>, Failure> {
    let mut found = Vec::new();
    for state in TROUBLE {
        let filter =
            ResourceFilter { state: Some(state), limit: Some(SHOWN), ..ResourceFilter::default() };
        found.extend(client.resources(&filter).await?.items);
    }
    Ok(found)
}

fn told(
    sites: &Sites,
    summary: &Summary,
    trouble: &[ResourceSummary],
    now_ms: u64,
    width: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = unheard(sites)
        .take(SHOWN as usize)
        .flat_map(|site| unheard_told(site, now_ms, width))
        .collect();
    let more = unheard(sites).count().saturating_sub(SHOWN as usize);
    if more > 0 {
        lines.push(styled(WARN, format!("and {more} more: `cheops sites`")));
    }
    let unknown = counted(summary, ResourceState::Unknown);
    if unknown > 0 {
        let text = format!(
            "{unknown} unknown, since a site of theirs is not connected: `cheops resources --state \
             unknown`"
        );
        lines.push(styled(WARN, hanging("resources: ", &text, width)));
    }
    let nothing = match verdict(sites, summary, trouble) {
        Verdict::Fine => Some(styled(GOOD, "nothing needs you")),
        _ if trouble.is_empty() => Some("of what is known, no resource needs you".to_owned()),
        _ => None,
    };
    lines.extend(nothing);
    for resource in trouble {
        lines.extend(trouble_of(resource, now_ms, width));
    }
    let all: u64 = TROUBLE.into_iter().map(|state| counted(summary, state)).sum();
    let more = all.saturating_sub(trouble.len() as u64);
    if more > 0 {
        lines.push(styled(BAD, format!("and {more} more: `cheops resources --state …`")));
    }
    lines.push(String::new());
    let connected = sites.sites.iter().filter(|site| site.state == SiteState::Up).count();
    let others = sites.sites.iter().filter(|site| site.state != SiteState::Myself).count();
    lines.push(format!("{}: {connected} of {others} other sites connected", sites.me));
    let states: Vec<String> = summary
        .by_state
        .iter()
        .map(|(state, count)| format!("{count} {}", labelled(state)))
        .collect();
    let states = if states.is_empty() { "none yet".to_owned() } else { states.join(", ") };
    lines.push(hanging("resources: ", &states, width));
    let HistoryUse { bytes, bodies, most, cut } = &summary.history;
    if *most > 0 {
        let kept = format!("{} of {} for reading", size(bytes + bodies), size(*most));
        lines.push(hanging("history: ", &kept, width));
    }
    if let Some(cut) = cut {
        let text = format!(
            "some was dropped before its time for want of room, {} ago: raise `size` of `[audit]`",
            ago(cut, now_ms)
        );
        lines.push(styled(WARN, hanging("history: ", &text, width)));
    }
    let said_by = format!("as {} sees it, resources as of {}", sites.me, summary.as_of);
    lines.push(styled(DIM, said_by));
    lines
}

/// A site that is not connected or set apart, since when, and what to do about the latter.
fn unheard_told(site: &Site, now_ms: u64, width: usize) -> Vec<String> {
    let name = &site.site;
    let (style, word, way) = match site.state {
        SiteState::Myself | SiteState::Up => return Vec::new(),
        SiteState::Unknown => (WARN, "not connected", None),
        SiteState::NeverHeard => (WARN, "never connected since this agent started", None),
        SiteState::SetApart => (
            BAD,
            "set apart: it signed two things that cannot both be",
            Some(format!("cheops mesh issue {name} --out NEW.pem    gives it a new identity")),
        ),
    };
    let since =
        site.since.as_deref().map(|time| format!(", last connected {} ago", ago(time, now_ms)));
    let why = site.problem.as_deref().map(|why| format!(": {}", printable(why)));
    let text = format!("{word}{}{}", since.unwrap_or_default(), why.unwrap_or_default());
    let mut lines = vec![styled(style, hanging(&format!("{name}: "), &text, width))];
    lines.extend(way.map(|way| styled(DIM, format!("  {way}"))));
    lines
}

/// A state by the API's word, in the words for people.
fn labelled(word: &str) -> &str {
    let known = ResourceState::ALL.into_iter().find(|state| state.word() == word);
    known.map_or(word, |state| resources::label(state))
}

/// A number of bytes, for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    let mut rest = bytes;
    while rest >= 1024 && unit + 1 < UNITS.len() {
        (rest, unit) = (rest / 1024, unit + 1);
    }
    format!("{rest} {}", UNITS[unit])
}

/// How what failed can be done after all.
fn again(id: &str, operation: &str, at: &SiteStanding) -> String {
    match at.can_retry {
        true => format!("cheops retry {id} {operation} --site {}", at.site),
        false => format!("cheops operation {operation}    shows it: submit what sets it right"),
    }
}

/// What is wrong with a resource, whose word that is, and what to do.
fn trouble_of(resource: &ResourceSummary, now_ms: u64, width: usize) -> Vec<String> {
    let id = joined(std::slice::from_ref(&resource.id));
    let Some(at) = &resource.standing else {
        return vec![styled(
            BAD,
            format!("{}: {}", printable(&resource.id), resources::label(resource.state)),
        )];
    };
    let since = at.since.as_deref().map(|time| format!(" for {}", ago(time, now_ms)));
    let operation = at.operation.as_deref().unwrap_or("OPERATION");
    let (word, ways) = match at.standing {
        Standing::InDoubt => (
            "cannot tell whether an operation happened",
            vec![format!("cheops settle {id} {operation} skip --site {}    # or: rerun", at.site)],
        ),
        Standing::Failed => (
            "an operation failed",
            vec![again(&id, operation, at), format!("cheops dismiss {id} {operation}")],
        ),
        _ => {
            let retry = at.operation.as_deref().map(|failed| again(&id, failed, at));
            let look = format!("cheops diff {id}    or: cheops explain {id}");
            let anew = "--force --type TYPE -- COMMAND    sets it anew";
            let anew = format!("cheops exec --id {id} {anew}");
            let word = match &retry {
                Some(_) => "has diverged, and an operation failed",
                None => "has diverged",
            };
            (word, retry.into_iter().chain([look, anew]).collect())
        }
    };
    let why = at.why.as_deref().map(|why| format!(": {}", printable(why)));
    let what =
        format!("{} at {}{}{}", word, at.site, since.unwrap_or_default(), why.unwrap_or_default());
    let name = styled(BOLD, printable(&resource.id));
    let mut lines = vec![format!("{name}  {}", styled(BAD, hanging("", &what, width)))];
    lines.extend(ways.into_iter().map(|way| styled(DIM, format!("  {way}"))));
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn troubled(id: &str, standing: Standing, operation: Option<&str>) -> ResourceSummary {
        ResourceSummary {
            id: id.to_owned(),
            sites: vec!["lyon".to_owned(), "paris".to_owned()],
            operations: 2,
            listed: 2,
            state: ResourceState::Error,
            standing: Some(SiteStanding {
                site: "lyon".to_owned(),
                standing,
                since: Some("1970-01-01T00:00:00Z".to_owned()),
                why: None,
                operation: operation.map(str::to_owned),
                connected: true,
                can_retry: true,
            }),
            errors: 1,
            last_change: None,
            verified: None,
            service: None,
        }
    }

    fn site(name: &str, state: SiteState) -> Site {
        Site {
            site: name.to_owned(),
            state,
            since: Some("1970-01-01T00:00:00Z".to_owned()),
            round_trip_ms: None,
            shared: 1,
            behind_on: 0,
            entries_behind: None,
            address: None,
            heard_by: None,
            problem: None,
        }
    }

    fn sites(others: Vec<Site>) -> Sites {
        Sites {
            me: "paris".to_owned(),
            version: "1".to_owned(),
            sites: [vec![site("paris", SiteState::Myself)], others].concat(),
            demo: false,
            services: None,
        }
    }

    fn summary(by_state: &[(&str, u64)]) -> Summary {
        let by_state = by_state.iter().map(|(state, count)| ((*state).to_owned(), *count));
        Summary {
            resources: 3,
            by_state: by_state.collect(),
            by_site: BTreeMap::new(),
            troubled: BTreeMap::new(),
            verified: 0,
            verified_since: None,
            types: Vec::new(),
            as_of: "1970-01-01T00:00:59Z".to_owned(),
            history: HistoryUse { bytes: 0, bodies: 0, most: 0, cut: None },
        }
    }

    #[test]
    fn what_needs_somebody_comes_with_the_way_out_and_what_would_be_refused_is_not_offered() {
        let sites = sites(vec![site("lyon", SiteState::Up)]);
        let history = HistoryUse {
            bytes: 3 << 20,
            bodies: 512,
            most: 1 << 30,
            cut: Some("1970-01-01T00:00:30Z".to_owned()),
        };
        let summary = Summary { history, ..summary(&[("converged", 1), ("error", 4)]) };
        let mut everywhere = troubled("notes", Standing::Failed, Some("paris-1.3"));
        everywhere.standing.iter_mut().for_each(|at| at.can_retry = false);
        let trouble = [
            troubled("motd", Standing::Diverged, None),
            troubled("my counter", Standing::Failed, Some("paris-1.2")),
            everywhere,
        ];
        assert_eq!(verdict(&sites, &summary, &trouble), Verdict::Problems);
        expect![[r#"
            motd  has diverged at lyon for 60 s
              cheops diff motd    or: cheops explain motd
              cheops exec --id motd --force --type TYPE -- COMMAND    sets it anew
            my counter  an operation failed at lyon for 60 s
              cheops retry 'my counter' paris-1.2 --site lyon
              cheops dismiss 'my counter' paris-1.2
            notes  an operation failed at lyon for 60 s
              cheops operation paris-1.3    shows it: submit what sets it right
              cheops dismiss notes paris-1.3
            and 1 more: `cheops resources --state …`

            paris: 1 of 1 other sites connected
            resources: 1 in sync, 4 failed
            history: 3 MiB of 1 GiB for reading
            history: some was dropped before its time for want of room, 30 s ago: raise
                     `size` of `[audit]`
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&sites, &summary, &trouble, 60_000, 80)));
    }

    #[test]
    fn all_is_well_only_while_every_site_is_connected_and_every_resource_known() {
        let calm = summary(&[("converged", 3)]);
        let all = sites(vec![site("lyon", SiteState::Up)]);
        assert_eq!(verdict(&all, &calm, &[]), Verdict::Fine);
        assert!(bare(&told(&all, &calm, &[], 60_000, 80)).starts_with("nothing needs you\n"));
        let unknown = summary(&[("converged", 1), ("unknown", 2)]);
        assert_eq!(verdict(&all, &unknown, &[]), Verdict::Missing);
        let cut = sites(vec![site("lyon", SiteState::Unknown), site("nice", SiteState::Up)]);
        assert_eq!(verdict(&cut, &calm, &[]), Verdict::Missing);
        expect![[r#"
            lyon: not connected, last connected 60 s ago
            resources: 2 unknown, since a site of theirs is not connected: `cheops resources
                       --state unknown`
            of what is known, no resource needs you

            paris: 1 of 2 other sites connected
            resources: 1 in sync, 2 unknown
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&cut, &unknown, &[], 60_000, 80)));
        let never = sites(vec![Site { since: None, ..site("lyon", SiteState::NeverHeard) }]);
        assert_eq!(verdict(&never, &calm, &[]), Verdict::Missing);
    }

    #[test]
    fn a_site_that_is_set_apart_needs_somebody() {
        let calm = summary(&[("converged", 3)]);
        let apart = sites(vec![site("lyon", SiteState::SetApart)]);
        assert_eq!(verdict(&apart, &calm, &[]), Verdict::Problems);
        expect![[r#"
            lyon: set apart: it signed two things that cannot both be, last connected 60 s
                  ago
              cheops mesh issue lyon --out NEW.pem    gives it a new identity
            of what is known, no resource needs you

            paris: 0 of 1 other sites connected
            resources: 3 in sync
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&apart, &calm, &[], 60_000, 80)));
    }
}
