//! `cheops sites`: who is heard, since when, and how far behind.

use anstyle::Style;
use cheops_api::{Site, SiteState, Sites};
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::{Cell, Narrow, cell, grid, number, plain};
use crate::look::{BAD, BOLD, DIM, GOOD, PLAIN, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::text::{hanging, printable};
use crate::time::{ago, now_ms};

const AFTER_HELP: &str = "\
`since` is for how long a site is connected, or when it last was. `rtt` is the round-trip
time. `behind on` counts the resources of which a site is not known to know everything. A site that is
`set apart` signed two things in one place; nothing is taken from it until it has a new identity.

Examples:
  cheops sites
  cheops sites --agent https://lyon.example:8079 --token-file lyon.token
  cheops sites --output json";

/// List the sites: connected or not, since when, round-trip time, how far behind
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {}

pub(crate) fn run(
    _arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let sites = agent::with(agent, async |client| Ok(client.sites().await?))?;
    match output.format {
        Format::Json => output.json(&sites)?,
        Format::Table => {
            for line in told(&sites, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

fn told(sites: &Sites, now_ms: u64, width: usize) -> Vec<String> {
    let header = ["SITE", "STATE", "SINCE", "RTT", "SHARED", "BEHIND ON", "ADDRESS"];
    let rows: Vec<Vec<Cell>> = sites.sites.iter().map(|site| row(site, now_ms)).collect();
    let mut lines = grid(&header, &rows, width, Narrow::FirstApart);
    for site in &sites.sites {
        if let Some(problem) = &site.problem {
            let problem = hanging(&format!("{}: ", site.site), &printable(problem), width);
            lines.push(styled(WARN, problem));
        }
    }
    let said_by = format!("as {} sees it, Cheops {}", sites.me, sites.version);
    lines.push(styled(DIM, said_by));
    lines
}

fn row(site: &Site, now_ms: u64) -> Vec<Cell> {
    let since = site.since.as_deref().map(|since| ago(since, now_ms));
    let (state, style, since) = match (site.state, since) {
        (SiteState::Myself, _) => ("this site", BOLD, String::new()),
        (SiteState::Up, Some(since)) => ("connected", GOOD, format!("{since} ago")),
        (SiteState::Up, None) => ("connected", GOOD, String::new()),
        (SiteState::Unknown, Some(since)) => ("not connected", WARN, format!("{since} ago")),
        (SiteState::Unknown, None) => ("not connected", WARN, String::new()),
        (SiteState::NeverHeard, _) => ("never connected", WARN, String::new()),
        (SiteState::SetApart, Some(since)) => ("set apart", BAD, format!("{since} ago")),
        (SiteState::SetApart, None) => ("set apart", BAD, String::new()),
    };
    let round_trip = site.round_trip_ms.map(|ms| format!("{ms:.1} ms")).unwrap_or_default();
    let behind = match site.entries_behind {
        Some(entries) if entries > 0 => format!("{} ({entries} entries)", site.behind_on),
        _ => site.behind_on.to_string(),
    };
    let behind_style: Style = if site.behind_on > 0 { WARN } else { PLAIN };
    vec![
        cell(BOLD, &site.site),
        cell(style, state),
        plain(since),
        number(round_trip),
        number(site.shared),
        number(behind).styled(behind_style),
        cell(DIM, site.address.as_deref().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    #[test]
    fn each_site_has_a_line_and_what_keeps_it_away_is_told() {
        let site = |name: &str, state| Site {
            site: name.to_owned(),
            state,
            since: None,
            round_trip_ms: None,
            shared: 3,
            behind_on: 0,
            entries_behind: None,
            address: None,
            problem: None,
        };
        let sites = Sites {
            me: "paris".to_owned(),
            version: "0.1.0".to_owned(),
            demo: false,
            services: None,
            sites: vec![
                Site {
                    since: Some("1970-01-01T00:00:00Z".to_owned()),
                    round_trip_ms: Some(7.25),
                    address: Some("10.0.0.2:8078".to_owned()),
                    ..site("lyon", SiteState::Up)
                },
                Site {
                    since: Some("1970-01-01T00:05:00Z".to_owned()),
                    behind_on: 2,
                    entries_behind: Some(12),
                    ..site("nice", SiteState::Unknown)
                },
                Site {
                    problem: Some("it speaks version 9, this agent speaks 1".to_owned()),
                    ..site("oslo", SiteState::NeverHeard)
                },
                site("paris", SiteState::Myself),
            ],
        };
        expect![[r#"
            SITE   STATE            SINCE       RTT     SHARED  BEHIND ON       ADDRESS
            lyon   connected        10 min ago  7.2 ms       3               0  10.0.0.2:8078
            nice   not connected    5 min ago                3  2 (12 entries)
            oslo   never connected                           3               0
            paris  this site                                 3               0
            oslo: it speaks version 9, this agent speaks 1
            as paris sees it, Cheops 0.1.0
        "#]]
        .assert_eq(&bare(&told(&sites, 600_000, 100)));
        let text = bare(&told(&sites, 600_000, 80));
        assert!(text.lines().all(|line| crate::text::columns(line) <= 80), "{text}");
        expect![[r#"
            SITE
              STATE            SINCE       RTT     SHARED  BEHIND ON       ADDRESS
            lyon
              connected        10 min ago  7.2 ms       3               0  10.0.0.2:8078
            nice
              not connected    5 min ago                3  2 (12 entries)
            oslo
              never connected                           3               0
            paris
              this site                                 3               0
            oslo: it speaks version 9, this agent speaks 1
            as paris sees it, Cheops 0.1.0
        "#]]
        .assert_eq(&text);
        let text = bare(&told(&long_names(sites), 600_000, 80));
        assert!(text.lines().all(|line| crate::text::columns(line) <= 80), "{text}");
        expect![[r#"
            SITE
              STATE            SINCE       RTT     SHARED  BEHIND ON
              ADDRESS
            edge-cluster-lyon-550e8400
              connected        10 min ago  7.2 ms       3               0
              edge-cluster-lyon-550e8400.mesh.example.org:8078
            edge-cluster-nice-550e8400
              not connected    5 min ago                3  2 (12 entries)
              edge-cluster-nice-550e8400.mesh.example.org:8078
            edge-cluster-oslo-550e8400
              never connected                           3               0
              edge-cluster-oslo-550e8400.mesh.example.org:8078
            edge-cluster-paris-550e8400
              this site                                 3               0
              edge-cluster-paris-550e8400.mesh.example.org:8078
            edge-cluster-oslo-550e8400: it speaks version 9, this agent speaks 1
            as paris sees it, Cheops 0.1.0
        "#]]
        .assert_eq(&text);
    }

    /// Sites as machines name them, with addresses as long.
    fn long_names(mut sites: Sites) -> Sites {
        for site in &mut sites.sites {
            site.site = format!("edge-cluster-{}-550e8400", site.site);
            site.address = Some(format!("{}.mesh.example.org:8078", site.site));
        }
        sites
    }
}
