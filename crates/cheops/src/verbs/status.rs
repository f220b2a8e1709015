//! `cheops status`: one screen for whoever was woken up.

use cheops_api::{
    Client, HistoryUse, ResourceFilter, ResourceState, ResourceSummary, Site, SiteState, Sites,
    Standing, Summary, TroubledOperation, UnverifiedReason, WarningAbout,
};
use clap::Args;
use serde_json::json;

use super::resources;
use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::one_line;
use crate::look::{BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{columns, cut, hanging, listed, pasted, printable, text_width};
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
/// Of so many operations of one resource, what can be done is told.
const OPERATIONS: usize = 3;

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
    let warned =
        ResourceFilter { warning: Some(true), limit: Some(SHOWN), ..ResourceFilter::default() };
    found.extend(client.resources(&warned).await?.items);
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
        Verdict::Fine if unverified(summary) == 0 => Some(styled(GOOD, "nothing needs you")),
        Verdict::Fine => Some("nothing needs you, as far as replies tell".to_owned()),
        _ if trouble.is_empty() => Some("of what is known, no resource needs you".to_owned()),
        _ => None,
    };
    lines.extend(nothing);
    for resource in trouble {
        lines.extend(trouble_of(resource, now_ms, width));
    }
    let all: u64 = TROUBLE.into_iter().map(|state| counted(summary, state)).sum();
    let more = (all + summary.warnings).saturating_sub(trouble.len() as u64);
    if more > 0 {
        lines.push(styled(BAD, format!("and {more} more: `cheops resources --state …`")));
    }
    lines.push(String::new());
    lines.extend(counts(sites, summary, now_ms, width));
    lines
}

/// How many there are of what.
fn counts(sites: &Sites, summary: &Summary, now_ms: u64, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let connected = sites.sites.iter().filter(|site| site.state == SiteState::Up).count();
    let others = sites.sites.iter().filter(|site| site.state != SiteState::Myself).count();
    let heard = format!("{connected} of {others} other sites connected");
    lines.push(hanging(&format!("{}: ", sites.me), &heard, width));
    let states: Vec<String> = summary
        .by_state
        .iter()
        .map(|(state, count)| format!("{count} {}", labelled(state)))
        .collect();
    let states = if states.is_empty() { "none yet".to_owned() } else { states.join(", ") };
    lines.push(hanging("resources: ", &states, width));
    lines.extend(proven(summary, width));
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
    lines.push(styled(DIM, hanging("", &said_by, width)));
    lines
}

/// How many are in sync and not verified.
fn unverified(summary: &Summary) -> u64 {
    summary.unverified.values().sum()
}

/// Of how many it is proven that they are in sync, and why not of the others.
fn proven(summary: &Summary, width: usize) -> Option<String> {
    if summary.verified == 0 && unverified(summary) == 0 {
        return None;
    }
    let reasons = [
        (UnverifiedReason::Unread, "with a state that cannot be read"),
        (UnverifiedReason::NotYet, "not read everywhere yet"),
        (UnverifiedReason::NoState, "with no way to read the state (`--target`, or `State`)"),
    ];
    let of = |reason: UnverifiedReason| summary.unverified.get(reason.word()).copied().unwrap_or(0);
    let told = reasons.map(|(reason, words)| (of(reason), words));
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
    let verified = format!("{} verified", summary.verified);
    let text = match told.as_slice() {
        [] => verified,
        reasons => format!(
            "{verified}; in sync by their replies alone: {}: `cheops resources --verified no`",
            reasons.join(", ")
        ),
    };
    Some(hanging("proven: ", &text, width))
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
            Some(format!("cheops mesh issue {name} --out NEW.pem")),
        ),
    };
    let since =
        site.since.as_deref().map(|time| format!(", last connected {} ago", ago(time, now_ms)));
    let why = site.problem.as_deref().map(|why| format!(": {}", printable(why)));
    let text = format!("{word}{}{}", since.unwrap_or_default(), why.unwrap_or_default());
    let mut lines = vec![styled(style, hanging(&format!("{name}: "), &text, width))];
    let way = way.map(|way| pasted(&way, "gives it a new identity", width)).unwrap_or_default();
    lines.extend(way.into_iter().map(|line| styled(DIM, line)));
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

/// What can be done about one operation that went wrong.
fn ways_out(resource: &ResourceSummary, failed: &TroubledOperation, width: usize) -> Vec<String> {
    let id = joined(std::slice::from_ref(&resource.id));
    let TroubledOperation { operation, summary, failed_at, in_doubt_at, retry_at, written_over_at } =
        failed;
    let mut lines = Vec::new();
    let at = |sites: &[String]| listed(sites);
    let word = match (failed_at.as_slice(), in_doubt_at.as_slice()) {
        ([], doubting) => format!("result unknown at {}", at(doubting)),
        (failed, []) => format!("failed at {}", at(failed)),
        (failed, doubting) => {
            format!("failed at {}, result unknown at {}", at(failed), at(doubting))
        }
    };
    let head = format!("  {operation} {word}: {}", one_line(summary));
    lines.push(cut(&head, width));
    lines.extend(went_back(written_over_at, width));
    let mut way = |command: String, does: &str| {
        let lines_of = pasted(&command, does, width);
        lines.extend(lines_of.into_iter().map(|line| styled(DIM, line)));
    };
    for site in in_doubt_at {
        way(
            format!("cheops settle {id} {operation} skip --site {site}"),
            "it happened; `rerun` if it did not",
        );
    }
    for site in retry_at {
        way(format!("cheops retry {id} {operation} --site {site}"), "run it again there");
    }
    if !written_over_at.is_empty() {
        way(format!("cheops operation {operation}"), "what was there");
    } else if retry_at.is_empty() && in_doubt_at.is_empty() {
        way(format!("cheops operation {operation}"), "what it printed; submit what sets it right");
    }
    if in_doubt_at.is_empty() {
        way(format!("cheops dismiss {id} {operation}"), "let it be");
    }
    lines
}

/// Where a person would look for what was there in vain.
pub(super) fn went_back(sites: &[String], width: usize) -> Option<String> {
    let told =
        format!("what was there before is gone from {}: nothing took its place", listed(sites));
    (!sites.is_empty()).then(|| styled(WARN, hanging("  ", &told, width)))
}

/// What is wrong with a resource, whose word that is, and what to do.
fn trouble_of(resource: &ResourceSummary, now_ms: u64, width: usize) -> Vec<String> {
    let since = |time: &str| format!(" for {}", ago(time, now_ms));
    let why_told = |why: &str| format!(": {}", printable(why));
    let (what, style) = match (&resource.standing, &resource.warning) {
        (_, Some(warning)) => (
            format!("at {}{}{}", warning.site, since(&warning.since), why_told(&warning.why)),
            WARN,
        ),
        (Some(at), None) => {
            let more = resource.errors > 1;
            let word = match at.standing {
                Standing::InDoubt => "the result of an operation is unknown".to_owned(),
                Standing::Failed if more => {
                    format!("{} operations failed, the first", resource.errors)
                }
                Standing::Failed => "an operation failed".to_owned(),
                _ if resource.errors > 0 => "has diverged, and an operation failed,".to_owned(),
                _ => "has diverged".to_owned(),
            };
            let why = at.why.as_deref().map(why_told).unwrap_or_default();
            (
                format!(
                    "{word} at {}{}{why}",
                    at.site,
                    at.since.as_deref().map(since).unwrap_or_default()
                ),
                BAD,
            )
        }
        (None, None) => (resources::label(resource.state).to_owned(), BAD),
    };
    let name = printable(&resource.id);
    let mut lines: Vec<String> = if columns(&name) > width / 2 {
        let told = hanging("  ", &what, width);
        vec![styled(BOLD, cut(&name, text_width(width))), styled(style, told)]
    } else {
        let told = hanging(&format!("{name}  "), &what, width);
        vec![styled(
            style,
            told.replacen(&name, &format!("{style:#}{}{style}", styled(BOLD, &name)), 1),
        )]
    };
    for failed in resource.troubled.iter().take(OPERATIONS) {
        lines.extend(ways_out(resource, failed, width));
    }
    let id = joined(std::slice::from_ref(&resource.id));
    let more = resource.errors.saturating_sub(resource.troubled.len().min(OPERATIONS) as u64);
    if more > 0 {
        lines.push(hanging("  ", &format!("and {more} more: `cheops resource {id}`"), width));
    }
    let ways = other_ways(resource, &id);
    lines.extend(ways.into_iter().flat_map(|(command, does)| {
        pasted(&command, does, width).into_iter().map(|line| styled(DIM, line))
    }));
    lines
}

/// What can be done where it is not about one operation.
fn other_ways(resource: &ResourceSummary, id: &str) -> Vec<(String, &'static str)> {
    let look = (format!("cheops diff {id}"), "read the state at every site now");
    // What is merged knows no operation that takes the place of all others.
    let anew = match resource.merged {
        true => (
            format!("cheops exec --id {id} --type TYPE -- COMMAND"),
            "an edit at the site that differs takes what is there along",
        ),
        false => (
            format!("cheops exec --id {id} --force --type TYPE -- COMMAND"),
            "sets it anew everywhere",
        ),
    };
    match (&resource.warning, &resource.standing) {
        (Some(warning), _) => match warning.about {
            WarningAbout::State => vec![look],
            WarningAbout::Program => {
                vec![("cheops logic check PROGRAM CASES".to_owned(), "mend it, then:"), anew]
            }
        },
        (None, Some(at)) if at.standing == Standing::Diverged => {
            vec![look, (format!("cheops explain {id}"), "how it came about"), anew]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cheops_api::{ResourceWarning, SiteStanding};
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
            unverified: None,
            left_out_by_programs: 0,
            warning: None,
            troubled: Vec::new(),
            merged: false,
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
            unverified: BTreeMap::new(),
            warnings: 0,
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
        let unverified = [("no-state", 2), ("unread", 1)];
        let summary = Summary {
            history,
            warnings: 2,
            verified: 1,
            unverified: unverified.map(|(why, count)| (why.to_owned(), count)).into(),
            ..summary(&[("converged", 4), ("error", 3), ("diverged", 2)])
        };
        let failed = |n: usize, retry_at: &[&str]| TroubledOperation {
            operation: format!("paris-1.{n}"),
            summary: "redis-cli incr x".to_owned(),
            failed_at: vec!["lyon".to_owned()],
            in_doubt_at: Vec::new(),
            retry_at: retry_at.iter().map(|site| (*site).to_owned()).collect(),
            written_over_at: if n == 4 { vec!["lyon".to_owned()] } else { Vec::new() },
        };
        let counter = ResourceSummary {
            errors: 5,
            troubled: (2..7).map(|n| failed(n, &["lyon"])).collect(),
            ..troubled("my counter", Standing::Failed, Some("paris-1.2"))
        };
        let everywhere = ResourceSummary {
            troubled: vec![failed(3, &[])],
            ..troubled("notes", Standing::Failed, Some("paris-1.3"))
        };
        let merged = ResourceSummary {
            merged: true,
            errors: 0,
            ..troubled("page", Standing::Diverged, None)
        };
        let warned = |about, why: &str| ResourceSummary {
            state: ResourceState::Converged,
            errors: 0,
            warning: Some(ResourceWarning {
                about,
                site: "lyon".to_owned(),
                since: "1970-01-01T00:00:00Z".to_owned(),
                why: why.to_owned(),
            }),
            ..troubled("cart", Standing::InSync, None)
        };
        let unread = "its state cannot be read: the command to read it ended with 1: no such file";
        let no_use = "the program `shopping` is of no use: it named `x`";
        let trouble = [
            ResourceSummary { errors: 0, ..troubled("motd", Standing::Diverged, None) },
            merged,
            counter,
            everywhere,
            warned(WarningAbout::State, unread),
            warned(WarningAbout::Program, no_use),
        ];
        assert_eq!(verdict(&sites, &summary, &trouble), Verdict::Problems);
        expect![[r#"
            motd  has diverged at lyon for 60 s
              cheops diff motd    # read the state at every site now
              cheops explain motd    # how it came about
              cheops exec --id motd --force --type TYPE -- COMMAND
                # sets it anew everywhere
            page  has diverged at lyon for 60 s
              cheops diff page    # read the state at every site now
              cheops explain page    # how it came about
              cheops exec --id page --type TYPE -- COMMAND
                # an edit at the site that differs takes what is there along
            my counter  5 operations failed, the first at lyon for 60 s
              paris-1.2 failed at lyon: redis-cli incr x
              cheops retry 'my counter' paris-1.2 --site lyon    # run it again there
              cheops dismiss 'my counter' paris-1.2    # let it be
              paris-1.3 failed at lyon: redis-cli incr x
              cheops retry 'my counter' paris-1.3 --site lyon    # run it again there
              cheops dismiss 'my counter' paris-1.3    # let it be
              paris-1.4 failed at lyon: redis-cli incr x
              what was there before is gone from lyon: nothing took its place
              cheops retry 'my counter' paris-1.4 --site lyon    # run it again there
              cheops operation paris-1.4    # what was there
              cheops dismiss 'my counter' paris-1.4    # let it be
              and 2 more: `cheops resource 'my counter'`
            notes  an operation failed at lyon for 60 s
              paris-1.3 failed at lyon: redis-cli incr x
              cheops operation paris-1.3    # what it printed; submit what sets it right
              cheops dismiss notes paris-1.3    # let it be
            cart  at lyon for 60 s: its state cannot be read: the command to read it ended
                  with 1: no such file
              cheops diff cart    # read the state at every site now
            cart  at lyon for 60 s: the program `shopping` is of no use: it named `x`
              cheops logic check PROGRAM CASES    # mend it, then:
              cheops exec --id cart --force --type TYPE -- COMMAND
                # sets it anew everywhere
            and 1 more: `cheops resources --state …`

            paris: 1 of 1 other sites connected
            resources: 4 in sync, 2 diverged, 3 failed
            proven: 1 verified; in sync by their replies alone: 1 with a state that cannot
                    be read, 2 with no way to read the state (`--target`, or `State`):
                    `cheops resources --verified no`
            history: 3 MiB of 1 GiB for reading
            history: some was dropped before its time for want of room, 30 s ago: raise
                     `size` of `[audit]`
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&sites, &summary, &trouble, 60_000, 80)));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_things_are_called() {
        let long = "edge-cluster-lyon-550e8400-e29b-41d4";
        for id in [
            "550e8400-e29b-41d4-a716-446655440000",
            "設定/東京/とても長い名前のリソース",
            "e\u{301}\u{302}a b",
            "x",
        ] {
            let failed = TroubledOperation {
                operation: format!("{long}-15f3a2b1c.1042"),
                summary:
                    "echo \u{202e}設定を東京のサイトにコピーする > /srv/a/very/long/path/motd.txt"
                        .to_owned(),
                failed_at: vec![long.to_owned(), "nice".to_owned()],
                in_doubt_at: vec!["paris".to_owned()],
                retry_at: vec![long.to_owned()],
                written_over_at: vec![long.to_owned()],
            };
            for standing in [Standing::Diverged, Standing::InDoubt, Standing::Failed] {
                let mut resource = ResourceSummary {
                    errors: 9,
                    troubled: vec![failed.clone(), failed.clone()],
                    ..troubled(id, standing, Some("paris-1.2"))
                };
                if let Some(at) = &mut resource.standing {
                    at.site = long.to_owned();
                    at.why = Some(format!("`{long}` and \u{1b}[31m{}", "wörter ".repeat(20)));
                }
                let calm =
                    summary(&[("converged", 3), ("unknown", 2), ("error", 1), ("diverged", 9)]);
                let sites =
                    sites(vec![Site { site: long.to_owned(), ..site("", SiteState::SetApart) }]);
                for width in [60, 80, 120] {
                    let text = bare(&told(&sites, &calm, &[resource.clone()], 60_000, width));
                    let shown: Vec<_> = text.lines().filter(|line| columns(line) > width).collect();
                    assert!(shown.is_empty(), "{width}: {shown:?}\n{text}");
                    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
                }
            }
        }
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
              cheops mesh issue lyon --out NEW.pem    # gives it a new identity
            of what is known, no resource needs you

            paris: 0 of 1 other sites connected
            resources: 3 in sync
            as paris sees it, resources as of 1970-01-01T00:00:59Z
        "#]]
        .assert_eq(&bare(&told(&apart, &calm, &[], 60_000, 80)));
    }
}
