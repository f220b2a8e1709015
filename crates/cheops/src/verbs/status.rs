//! `cheops status`: one screen for whoever was woken up.

use cheops_api::{
    Client, HistoryUse, ResourceFilter, ResourceState, ResourceSummary, SiteState, Sites, Standing,
    Summary,
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
What needs somebody comes first, the worst on top, each with the command that gets out of it; then the
sites that are not connected, and how many resources are in which state.

Examples:
  cheops status

Exit codes:
  0  nothing needs you
  1  something does
  3  the agent is out of reach";

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
    Ok(if trouble.is_empty() { Verdict::Fine } else { Verdict::Problems })
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
    let mut lines = Vec::new();
    if trouble.is_empty() {
        lines.push(styled(GOOD, "nothing needs you"));
    }
    for resource in trouble {
        lines.extend(trouble_of(resource, now_ms, width));
    }
    let count = |state: ResourceState| summary.by_state.get(state.word()).copied().unwrap_or(0);
    let all: u64 = TROUBLE.into_iter().map(count).sum();
    let more = all.saturating_sub(trouble.len() as u64);
    if more > 0 {
        lines.push(styled(BAD, format!("and {more} more: `cheops resources --state …`")));
    }
    lines.push(String::new());
    lines.extend(sites.sites.iter().filter_map(|site| {
        let (style, word) = match site.state {
            SiteState::Myself | SiteState::Up => return None,
            SiteState::Unknown => (WARN, "not connected"),
            SiteState::NeverHeard => (WARN, "never connected since this agent started"),
            SiteState::SetApart => (BAD, "set apart: it signed two things that cannot both be"),
        };
        let since =
            site.since.as_deref().map(|time| format!(", last connected {} ago", ago(time, now_ms)));
        let why = site.problem.as_deref().map(|why| format!(": {}", printable(why)));
        let text = format!("{word}{}{}", since.unwrap_or_default(), why.unwrap_or_default());
        Some(styled(style, hanging(&format!("{}: ", site.site), &text, width)))
    }));
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
            vec![format!("cheops settle {id} {operation} skip|rerun --site {}", at.site)],
        ),
        Standing::Failed => (
            "an operation failed",
            vec![
                format!("cheops retry {id} {operation} --site {}", at.site),
                format!("cheops dismiss {id} {operation}"),
            ],
        ),
        _ => {
            let retry = at
                .operation
                .as_deref()
                .map(|failed| format!("cheops retry {id} {failed} --site {}", at.site));
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

    use cheops_api::SiteStanding;
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
            }),
            errors: 1,
            last_change: None,
            verified: None,
            service: None,
        }
    }

    #[test]
    fn what_needs_somebody_comes_first_with_the_way_out() {
        let sites = Sites {
            me: "paris".to_owned(),
            version: "1".to_owned(),
            sites: Vec::new(),
            demo: false,
            services: None,
        };
        let summary = Summary {
            resources: 3,
            by_state: BTreeMap::from([("converged".to_owned(), 1), ("error".to_owned(), 3)]),
            by_site: BTreeMap::new(),
            troubled: BTreeMap::new(),
            verified: 0,
            verified_since: None,
            types: Vec::new(),
            as_of: "1970-01-01T00:00:59Z".to_owned(),
            history: HistoryUse {
                bytes: 3 << 20,
                bodies: 512,
                most: 1 << 30,
                cut: Some("1970-01-01T00:00:30Z".to_owned()),
            },
        };
        let trouble = [
            troubled("motd", Standing::Diverged, None),
            troubled("my counter", Standing::Failed, Some("paris-1.2")),
        ];
        expect![[r#"
            motd  has diverged at lyon for 60 s
              cheops diff motd    or: cheops explain motd
              cheops exec --id motd --force --type TYPE -- COMMAND    sets it anew
            my counter  an operation failed at lyon for 60 s
              cheops retry 'my counter' paris-1.2 --site lyon
              cheops dismiss 'my counter' paris-1.2
            and 1 more: `cheops resources --state …`

            paris: 0 of 0 other sites connected
            resources: 1 in sync, 3 failed
            history: 3 MiB of 1 GiB for reading
            history: some was dropped before its time for want of room, 30 s ago: raise
                     `size` of `[audit]`
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&sites, &summary, &trouble, 60_000, 80)));
    }
}
