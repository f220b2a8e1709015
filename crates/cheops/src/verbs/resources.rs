//! `cheops resources`: what there is.

use anstyle::Style;
use cheops_api::{Page, ResourceFilter, ResourceState, ResourceSummary, Standing, WarningAbout};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::{Cell, Narrow, cell, grid, number, plain};
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, PLAIN, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::time::{ago, now_ms};

const AFTER_HELP: &str = "\
`in sync, verified`: all sites read the same state. `in sync` alone: all sites replied that they
applied everything, and nobody compared their states; `cheops resource ID` says why not.
`applied` counts the operations that are applied, of those that are kept; `failed` those that
failed at some site, or at all, and that nothing later has set right.

Examples:
  cheops resources
  cheops resources --state diverged
  cheops resources --verified no
  cheops resources --site lyon --type set --search image --all";

/// How many the agent is asked for at once, where all are wanted.
const PAGE: u32 = 500;

/// List the resources: where they live and how they are
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Those whose id contains this
    #[arg(long, short, value_name = "TEXT")]
    search: Option<String>,
    /// Those that live on this site
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Those in this state
    #[arg(long, value_name = "STATE", value_parser = states())]
    state: Option<ResourceState>,
    /// Those in sync of which it is, or is not, proven that all sites have the same state
    #[arg(long, value_name = "WHETHER")]
    verified: Option<Whether>,
    /// Those with an operation of this type
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// Deleted ones too
    #[arg(long)]
    deleted: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// All of them, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Those after this place, as the page before said
    #[arg(long, value_name = "PLACE", conflicts_with = "all")]
    after: Option<String>,
}

/// Which of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Whether {
    /// Those of which it is so
    Yes,
    /// Those of which it is not so
    No,
}

/// By the words that are printed, and by those of the API.
fn states() -> impl TypedValueParser<Value = ResourceState> {
    let values = ResourceState::ALL.map(|state| {
        let value = PossibleValue::new(typed(state));
        if state.word() == typed(state) { value } else { value.alias(state.word()) }
    });
    PossibleValuesParser::new(values).map(|word| {
        let is_it = |state: &ResourceState| [state.word(), typed(*state)].contains(&word.as_str());
        ResourceState::ALL.into_iter().find(is_it).unwrap_or(ResourceState::Converged)
    })
}

/// A state in the words for people.
pub(super) fn label(state: ResourceState) -> &'static str {
    match state {
        ResourceState::Converged => "in sync",
        ResourceState::InDoubt => "unknown result",
        ResourceState::Error => "failed",
        _ => state.word(),
    }
}

/// The same as one word of a command line.
fn typed(state: ResourceState) -> &'static str {
    match state {
        ResourceState::Converged => "in-sync",
        ResourceState::InDoubt => "unknown-result",
        _ => label(state),
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    let filter = ResourceFilter {
        limit: Some(if arguments.all { PAGE } else { arguments.limit }),
        after: arguments.after.clone(),
        q: arguments.search.clone(),
        site: arguments.site.clone(),
        state: arguments.state,
        kind: arguments.kind.clone(),
        verified: arguments.verified.map(|whether| whether == Whether::Yes),
        deleted: arguments.deleted.then_some(true),
        ..ResourceFilter::default()
    };
    let page = agent::with(agent, async |client| {
        let mut page = client.resources(&filter).await?;
        while let (true, Some(next)) = (arguments.all, page.next.take()) {
            let more = ResourceFilter { after: Some(next), ..filter.clone() };
            let more = client.resources(&more).await?;
            page.items.extend(more.items);
            page.next = more.next;
        }
        Ok(page)
    })?;
    match output.format {
        Format::Json => output.json(&page)?,
        Format::Table => tell(&page, output)?,
    }
    Ok(Verdict::Fine)
}

fn tell(page: &Page<ResourceSummary>, output: &mut VerbOutput) -> Result<(), Failure> {
    if page.items.is_empty() {
        output.aside(styled(DIM, "there is none"));
        return Ok(());
    }
    for line in told(&page.items, now_ms(), output.room) {
        output.line(line)?;
    }
    if page.next.is_some() {
        output.aside(styled(DIM, "there are more: --all lists them all"));
    }
    Ok(())
}

/// How good it is, as far as that is proven: what is in sync by its replies alone is no alarm, nor green.
pub(super) fn style_of_one(resource: &ResourceSummary) -> Style {
    match (&resource.warning, resource.unverified.is_some()) {
        (Some(_), _) => WARN,
        (None, true) => PLAIN,
        (None, false) => style_of(resource.state),
    }
}

/// How good a state is.
fn style_of(state: ResourceState) -> Style {
    match state {
        ResourceState::Converged => GOOD,
        ResourceState::Waiting | ResourceState::Running => ACCENT,
        ResourceState::InDoubt | ResourceState::Unknown => WARN,
        ResourceState::Diverged | ResourceState::Error => BAD,
        ResourceState::Deleted => DIM,
    }
}

fn told(resources: &[ResourceSummary], now_ms: u64, width: usize) -> Vec<String> {
    let header = ["ID", "STATE", "APPLIED", "FAILED", "CHANGED", "SITES"];
    let rows: Vec<Vec<Cell>> = resources.iter().map(|resource| row(resource, now_ms)).collect();
    grid(&header, &rows, width, Narrow::FirstApart)
}

/// How it is, and whether that is proven.
pub(super) fn label_of(resource: &ResourceSummary) -> String {
    let word = label(resource.state);
    match (&resource.warning, &resource.unverified) {
        (Some(warning), _) => match warning.about {
            WarningAbout::State => format!("{word}, unreadable at {}", warning.site),
            WarningAbout::Program => format!("{word}, program failed at {}", warning.site),
        },
        _ if resource.verified.is_some() => format!("{word}, verified"),
        _ => word.to_owned(),
    }
}

/// How it is, and at which site that is so, where it is not so at all of them.
fn state_at(resource: &ResourceSummary) -> String {
    let word = label_of(resource);
    let worst = resource.standing.as_ref().filter(|worst| {
        matches!(
            worst.standing,
            Standing::Unknown | Standing::Failed | Standing::InDoubt | Standing::Diverged
        )
    });
    worst.map_or(word.clone(), |worst| format!("{word} at {}", worst.site))
}

/// How many operations are applied: of the list, what no program left out.
pub(super) fn applied(resource: &ResourceSummary) -> u64 {
    resource.listed.saturating_sub(resource.left_out_by_programs)
}

fn row(resource: &ResourceSummary, now_ms: u64) -> Vec<Cell> {
    let changed = resource.last_change.as_deref();
    let changed = changed.map(|time| format!("{} ago", ago(time, now_ms))).unwrap_or_default();
    let errors = if resource.errors > 0 { BAD } else { PLAIN };
    vec![
        cell(BOLD, &resource.id),
        cell(style_of_one(resource), state_at(resource)),
        number(format!("{} of {}", applied(resource), resource.operations)),
        number(resource.errors).styled(errors),
        plain(changed),
        plain(resource.sites.join(", ")),
    ]
}

#[cfg(test)]
mod tests {
    use cheops_api::{ResourceWarning, SiteStanding, Unverified, UnverifiedReason};
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    #[test]
    fn each_resource_has_a_line() {
        let resource = |id: &str, state, errors| ResourceSummary {
            id: id.to_owned(),
            sites: ["lyon", "nice", "paris"].map(str::to_owned).into(),
            operations: 12,
            listed: 2,
            state,
            standing: None,
            errors,
            last_change: Some("1970-01-01T00:00:00Z".to_owned()),
            verified: None,
            unverified: None,
            left_out_by_programs: 0,
            warning: None,
            troubled: Vec::new(),
            merged: false,
            service: None,
        };
        let resources = [
            resource("counter", ResourceState::Converged, 0),
            resource("/v2/images/a name\u{7}", ResourceState::InDoubt, 3),
        ];
        expect![[r#"
            ID
              STATE           APPLIED  FAILED  CHANGED    SITES
            counter
              in sync         2 of 12       0  3 min ago  lyon, nice, paris
            /v2/images/a name\u{7}
              unknown result  2 of 12       3  3 min ago  lyon, nice, paris
        "#]]
        .assert_eq(&bare(&told(&resources, 200_000, 80)));
    }

    #[test]
    fn at_eighty_columns_long_ids_stay_whole_and_wide_characters_keep_the_columns() {
        let worst = SiteStanding {
            site: "nice".to_owned(),
            standing: Standing::Unknown,
            since: None,
            why: None,
            operation: None,
            connected: false,
            can_retry: false,
        };
        let resource = |id: &str, state| ResourceSummary {
            id: id.to_owned(),
            sites: ["lyon", "nice", "paris"].map(str::to_owned).into(),
            operations: 12,
            listed: 2,
            state,
            standing: (state == ResourceState::Unknown).then(|| worst.clone()),
            errors: 0,
            last_change: Some("1970-01-01T00:00:00Z".to_owned()),
            verified: None,
            unverified: None,
            left_out_by_programs: 0,
            warning: None,
            troubled: Vec::new(),
            merged: false,
            service: None,
        };
        let resources = [
            resource("550e8400-e29b-41d4-a716-446655440000", ResourceState::Unknown),
            resource("image/6ba7b810-9dad-11d1-80b4-00c04fd430c8", ResourceState::Converged),
            resource("設定/東京", ResourceState::Running),
        ];
        let text = bare(&told(&resources, 200_000, 80));
        assert!(text.lines().all(|line| crate::text::columns(line) <= 80), "{text}");
        expect![[r#"
            ID
              STATE            APPLIED  FAILED  CHANGED    SITES
            550e8400-e29b-41d4-a716-446655440000
              unknown at nice  2 of 12       0  3 min ago  lyon, nice, paris
            image/6ba7b810-9dad-11d1-80b4-00c04fd430c8
              in sync          2 of 12       0  3 min ago  lyon, nice, paris
            設定/東京
              running          2 of 12       0  3 min ago  lyon, nice, paris
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn in_sync_is_green_only_where_it_is_proven_and_says_so() {
        let resource =
            |verified: bool, reason: Option<UnverifiedReason>, warned: bool| ResourceSummary {
                id: "motd".to_owned(),
                sites: vec!["lyon".to_owned()],
                operations: 5,
                listed: 5,
                state: ResourceState::Converged,
                standing: None,
                errors: 0,
                last_change: None,
                verified: verified.then(|| "1970-01-01T00:00:00Z".to_owned()),
                unverified: reason.map(|reason| Unverified {
                    reason,
                    sites: Vec::new(),
                    since: None,
                    why: None,
                }),
                left_out_by_programs: 1,
                warning: warned.then(|| ResourceWarning {
                    about: WarningAbout::State,
                    site: "lyon".to_owned(),
                    since: "1970-01-01T00:00:00Z".to_owned(),
                    why: "no such file".to_owned(),
                }),
                troubled: Vec::new(),
                merged: false,
                service: None,
            };
        let verified = resource(true, None, false);
        assert_eq!(
            (label_of(&verified).as_str(), style_of_one(&verified)),
            ("in sync, verified", GOOD)
        );
        let unproven = resource(false, Some(UnverifiedReason::NoState), false);
        assert_eq!((label_of(&unproven).as_str(), style_of_one(&unproven)), ("in sync", PLAIN));
        let unread = resource(false, Some(UnverifiedReason::Unread), true);
        let told = (label_of(&unread), style_of_one(&unread));
        assert_eq!(told, ("in sync, unreadable at lyon".to_owned(), WARN));
        assert_eq!(applied(&unproven), 4, "what a program left out is not applied");
    }
}
