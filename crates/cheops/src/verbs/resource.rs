//! `cheops resource`: one resource, its operations, and each site's status of each.

use std::collections::BTreeMap;

use cheops_api::{
    Client, Cursor, Operation, PastOperations, Replicant, Reply, ReplyStatus, Resource,
    SiteStanding, Standing, Unverified, UnverifiedReason,
};
use clap::Args;
use serde::Serialize;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::following::{label, style_of};
use crate::grid::{Cell, Narrow, cell, grid, number, plain};
use crate::handing::check_resource;
use crate::look::{ACCENT, BAD, BOLD, DIM, PLAIN, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{columns, counted, cut, hanging, listed, pasted, printable};
use crate::time::{ago, moment, now_ms};
use crate::verbs::resources;

const AFTER_HELP: &str = "\
Operations are listed in their total order. Those with a number are applied, in that order;
a dimmed one is overridden, and says which one took its place.

Examples:
  cheops resource counter
  cheops resource counter --all --output json
  cheops explain counter";

const PAGE: u32 = 500;
/// Longer summaries leave no room for what the operation does.
const WIDEST_REPLIES: usize = 40;

/// Show one resource: its sites, its operations, and what became of each at each site
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// Only the last so many operations
    #[arg(long, value_name = "N", default_value_t = 30)]
    last: usize,
    /// All operations that are kept, also those that no site needs any more
    #[arg(long, conflicts_with = "last")]
    all: bool,
}

/// All there is to show, for programs.
#[derive(Serialize)]
struct ShownResource {
    #[serde(flatten)]
    resource: Resource,
    #[serde(rename = "history")]
    operations: Vec<Operation>,
    /// Those that no site needs any more, with `--all`.
    past: PastOperations,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    check_resource(&arguments.id)?;
    let most = if arguments.all { usize::MAX } else { arguments.last };
    let (resource, operations, past) = agent::with(agent, async |client| {
        let resource = client.resource(&arguments.id).await?;
        let operations = latest(&client, &arguments.id, most).await?;
        let past = match arguments.all {
            true => client.past(&arguments.id).await?,
            false => PastOperations::default(),
        };
        Ok((resource, operations, past))
    })?;
    let known = usize::try_from(resource.summary.operations).unwrap_or(usize::MAX);
    let hidden = known.saturating_sub(operations.len());
    match output.format {
        Format::Json => output.json(&ShownResource { resource, operations, past })?,
        Format::Table => {
            let now_ms = now_ms();
            for line in told(&resource, &operations, hidden, now_ms, output.room) {
                output.line(line)?;
            }
            for line in past_told(&resource, &past, now_ms, output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

/// The latest operations, in their order.
async fn latest(client: &Client, id: &str, most: usize) -> Result<Vec<Operation>, Failure> {
    let mut operations = Vec::new();
    let mut after = None;
    while operations.len() < most {
        let room = u32::try_from(most - operations.len()).unwrap_or(PAGE);
        let limit = Some(room.min(PAGE));
        let cursor = Cursor { limit, after, latest: Some(true), at: None };
        let page = client.operations(id, &cursor).await?;
        operations.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    operations.reverse();
    Ok(operations)
}

fn told(
    resource: &Resource,
    operations: &[Operation],
    hidden: usize,
    now_ms: u64,
    width: usize,
) -> Vec<String> {
    let mut lines = head(resource, now_ms, width);
    lines.push(String::new());
    if hidden > 0 {
        let earlier = format!("… {} before these: --all", counted(hidden, "operation"));
        lines.push(styled(DIM, earlier));
    }
    if operations.is_empty() {
        lines.push(styled(DIM, "no operation is kept"));
    } else {
        lines.extend(table(resource, operations, now_ms, width));
    }
    lines
}

/// Those that no site needs any more.
fn past_told(resource: &Resource, past: &PastOperations, now_ms: u64, width: usize) -> Vec<String> {
    if past.operations.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "before these, overridden and kept for reading".to_owned()];
    if past.more {
        let id = joined(std::slice::from_ref(&resource.summary.id));
        let more = hanging("… more: ", &format!("cheops history {id} --all"), width);
        lines.push(styled(DIM, more));
    }
    lines.extend(table(resource, &past.operations, now_ms, width));
    lines
}

/// What the sites' services call it.
fn called(replicant: &Replicant) -> String {
    let ids: Vec<String> = replicant
        .local_ids
        .iter()
        .filter(|(_, id)| **id != replicant.meta_id)
        .map(|(site, id)| format!("{} at {site}", printable(id)))
        .collect();
    let path = printable(&format!("{}/{}", replicant.collection, replicant.meta_id));
    if ids.is_empty() { path } else { format!("{path}: {}", ids.join(", ")) }
}

fn head(resource: &Resource, now_ms: u64, width: usize) -> Vec<String> {
    let summary = &resource.summary;
    let state = styled(resources::style_of_one(summary), resources::label_of(summary));
    let changed = summary.last_change.as_deref();
    let changed = changed.map(|time| format!(", changed {} ago", ago(time, now_ms)));
    let all = counted_u64(summary.operations, "operation");
    let mut counts = format!("{} of {all} applied", resources::applied(summary));
    if summary.left_out_by_programs > 0 {
        counts.push_str(&format!(", {} left out by the program", summary.left_out_by_programs));
    }
    let name = printable(&summary.id);
    let mut lines = if columns(&name) + 2 + columns(&resources::label_of(summary)) <= width {
        vec![format!("{}  {state}", styled(BOLD, name))]
    } else {
        vec![styled(BOLD, hanging("", &name, width)), format!("  {state}")]
    };
    lines.push(hanging("on ", &summary.sites.join(", "), width));
    lines.push(hanging("", &format!("{counts}{}", changed.unwrap_or_default()), width));
    if let Some(replicant) = &resource.replicant {
        lines.push(hanging(&format!("{} ", replicant.service), &called(replicant), width));
    }
    let behind = resource.behind.iter().filter(|(_, entries)| **entries > 0);
    let behind: Vec<String> = behind.map(|(site, n)| format!("{site} by {n}")).collect();
    if !behind.is_empty() {
        lines.push(styled(WARN, hanging("behind: ", &behind.join(", "), width)));
    }
    if let Some(reason) = &resource.waits_for {
        lines.push(styled(WARN, hanging("waits: ", &printable(reason), width)));
    }
    lines.extend(proof_told(resource, now_ms, width));
    lines.extend(resource.standings.iter().filter_map(|at| standing(at, now_ms, width)));
    for failed in summary.troubled.iter().filter(|failed| !failed.written_over_at.is_empty()) {
        lines.extend(super::status::went_back(&failed.written_over_at, width));
        let look = format!("cheops operation {}", failed.operation);
        lines.extend(
            pasted(&look, "what was there", width).into_iter().map(|line| styled(DIM, line)),
        );
    }
    if let Some(operation) = &resource.awaits {
        let id = joined(std::slice::from_ref(&summary.id));
        let what = format!("{operation} may or may not have happened");
        lines.push(styled(WARN, hanging("unknown result here: ", &what, width)));
        let settle = format!("cheops settle {id} {operation} skip");
        let lines_of = pasted(&settle, "or: rerun", width);
        lines.extend(lines_of.into_iter().map(|line| styled(DIM, line)));
    }
    lines
}

/// Whether it is proven that all sites have the same state, and why not.
fn proof_told(resource: &Resource, now_ms: u64, width: usize) -> Option<String> {
    let summary = &resource.summary;
    let Some(Unverified { reason, sites, since, why }) = &summary.unverified else {
        return resource.proof.as_ref().map(|proof| super::diff::told(proof, width));
    };
    let sites = listed(sites);
    let since = since.as_deref().map(|time| format!(" for {}", ago(time, now_ms)));
    let told = match reason {
        UnverifiedReason::NoState => {
            "not verified: nothing says how its state is read, so its sites are in sync by their \
             replies alone; the next operation with `--profile NAME --target PATH` says it"
                .to_owned()
        }
        UnverifiedReason::NotYet => {
            format!("not verified yet: {sites} did not say yet what state it has")
        }
        UnverifiedReason::Unread => format!(
            "not verified: the state proves nothing at {sites}{}: {}",
            since.unwrap_or_default(),
            printable(why.as_deref().unwrap_or_default())
        ),
    };
    let style = if summary.warning.is_some() { WARN } else { PLAIN };
    let told = styled(style, hanging("", &told, width));
    let logic = resource.proof.as_ref().and_then(|proof| proof.logic_failed.as_deref());
    let logic = logic.map(|why| super::diff::logic_told(why, width));
    Some([Some(told), logic].into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// Where it is not in sync: whose word that is, since when, and why.
fn standing(at: &SiteStanding, now_ms: u64, width: usize) -> Option<String> {
    let (style, word) = match at.standing {
        Standing::InSync => return None,
        Standing::Running => (ACCENT, "running"),
        Standing::Waiting => (ACCENT, "waiting"),
        Standing::Unknown => (WARN, "unknown, not connected"),
        Standing::Failed => (BAD, "failed"),
        Standing::InDoubt => (WARN, "unknown result"),
        Standing::Diverged => (BAD, "diverged"),
    };
    let since = at.since.as_deref().map(|time| format!(" for {}", ago(time, now_ms)));
    let about = at.operation.as_deref().map(|operation| format!(", {operation}"));
    let why = at.why.as_deref().map(|why| format!(": {}", printable(why)));
    let last = !at.connected && at.standing != Standing::Unknown;
    let text = [
        Some(word.to_owned()),
        since,
        about,
        last.then(|| ", by its last word: it is not connected".to_owned()),
        why,
    ];
    let text: String = text.into_iter().flatten().collect();
    Some(styled(style, hanging(&format!("{}: ", at.site), &text, width)))
}

fn counted_u64(count: u64, what: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), what)
}

/// Sites as columns if there is room for them, else their replies in one column.
fn table(resource: &Resource, operations: &[Operation], now_ms: u64, width: usize) -> Vec<String> {
    let sites = &resource.summary.sites;
    let for_sites: usize = sites.iter().map(|site| columns(site).max(10) + 2).sum();
    // Number, name, type and time, and a gap after each.
    let longest = |text: fn(&Operation) -> &str| operations.iter().map(move |it| columns(text(it)));
    let names = longest(|it| &it.id).max().unwrap_or_default() + 2;
    let types = longest(|it| &it.kind).max().unwrap_or_default().max(4) + 2;
    let before = 5 + names + types + 10;
    let apart = for_sites <= width / 2 && before + for_sites <= width;
    let place: BTreeMap<&str, usize> = resource.list.iter().map(String::as_str).zip(1..).collect();
    let mut header = vec!["#", "OPERATION", "TYPE", "AT (UTC)"];
    if apart {
        header.extend(sites.iter().map(String::as_str));
    } else {
        header.push("REPLIES");
    }
    header.push("WHAT");
    let rows: Vec<Vec<Cell>> = operations
        .iter()
        .map(|operation| {
            let mut row = vec![
                number(place.get(operation.id.as_str()).map_or("-".to_owned(), usize::to_string)),
                cell(ACCENT, &operation.id),
                plain(&operation.kind),
                plain(moment(&operation.time, now_ms)),
            ];
            if apart {
                row.extend(sites.iter().map(|site| status(operation.replies.get(site))));
            } else {
                row.push(replies(operation, sites));
            }
            row.push(plain(what(operation)));
            if operation.left_out.is_some() { row.into_iter().map(dimmed).collect() } else { row }
        })
        .collect();
    grid(&header, &rows, width, Narrow::LastApart)
}

fn dimmed(cell: Cell) -> Cell {
    cell.styled(DIM)
}

fn what(operation: &Operation) -> String {
    match &operation.left_out {
        None => operation.summary.clone(),
        Some(left_out) => match &left_out.by {
            Some(by) => format!("[{by} took its place] {}", operation.summary),
            None => format!("[{}] {}", left_out.why, operation.summary),
        },
    }
}

fn status(reply: Option<&Reply>) -> Cell {
    let Some(reply) = reply else { return cell(DIM, "…") };
    let text = match reply {
        Reply { status: ReplyStatus::Ko, exit_code: Some(code), .. } => format!("failed {code}"),
        Reply { status: ReplyStatus::Ko, http_status: Some(status), .. } => {
            format!("failed {status}")
        }
        Reply { status: ReplyStatus::Partial, done: Some(done), of: Some(of), .. } => {
            format!("{done} of {of}")
        }
        Reply { status, .. } => label(*status).to_owned(),
    };
    cell(style_of(reply.status), text)
}

/// `5 OK, failed at lyon, 2 awaited`.
fn replies(operation: &Operation, sites: &[String]) -> Cell {
    let heard = || operation.replies.values();
    let ok = heard().filter(|reply| reply.status == ReplyStatus::Ok).count();
    let mut said: Vec<String> = Vec::new();
    if ok > 0 {
        said.push(format!("{ok} OK"));
    }
    let others = operation.replies.iter().filter(|(_, reply)| reply.status != ReplyStatus::Ok);
    let mut grouped: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (site, reply) in others {
        grouped.entry(label(reply.status)).or_default().push(site);
    }
    for (word, at) in grouped {
        said.push(match at.as_slice() {
            [only] => format!("{word} at {only}"),
            many => format!("{} {word}", many.len()),
        });
    }
    let awaited = sites.iter().filter(|site| !operation.replies.contains_key(*site)).count();
    if awaited > 0 {
        said.push(format!("{awaited} awaited"));
    }
    let worst = heard().map(|reply| reply.status).find(|status| *status != ReplyStatus::Ok);
    cell(style_of(worst.unwrap_or(ReplyStatus::Ok)), cut(&said.join(", "), WIDEST_REPLIES))
}

#[cfg(test)]
mod tests {
    use cheops_api::{
        LeftOut, Payload, Progress, Replaces, ResourceState, ResourceSummary, ShellCommand,
    };
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn reply(status: ReplyStatus) -> Reply {
        let exit_code = match status {
            ReplyStatus::Ok => Some(0),
            ReplyStatus::Ko => Some(127),
            _ => None,
        };
        Reply {
            status,
            by: None,
            done: Some(2),
            of: Some(5),
            exit_code,
            http_status: None,
            limit_ms: None,
            output: String::new(),
            truncated: false,
            time: "1970-01-01T00:00:00Z".to_owned(),
        }
    }

    fn operation(
        id: &str,
        kind: &str,
        command: &str,
        replies: &[(&str, ReplyStatus)],
    ) -> Operation {
        Operation {
            id: id.to_owned(),
            site: "paris".to_owned(),
            kind: kind.to_owned(),
            time: "1970-01-01T00:00:01Z".to_owned(),
            stamp: "1000+0".to_owned(),
            parents: Vec::new(),
            replaces: Replaces::Nothing,
            summary: command.to_owned(),
            payload: Payload::Shell(ShellCommand {
                command: command.to_owned(),
                files: Vec::new(),
            }),
            counts: true,
            left_out: None,
            replies: replies
                .iter()
                .map(|(site, status)| ((*site).to_owned(), reply(*status)))
                .collect(),
            asked_by: None,
        }
    }

    fn stands(site: &str, standing: Standing) -> SiteStanding {
        SiteStanding {
            site: site.to_owned(),
            standing,
            since: Some("1970-01-01T00:00:01Z".to_owned()),
            why: None,
            operation: None,
            connected: true,
            can_retry: false,
        }
    }

    fn resource(sites: &[&str]) -> Resource {
        Resource {
            summary: ResourceSummary {
                id: "my counter".to_owned(),
                sites: sites.iter().map(|site| (*site).to_owned()).collect(),
                operations: 3,
                listed: 2,
                state: ResourceState::InDoubt,
                standing: None,
                errors: 1,
                last_change: Some("1970-01-01T00:00:01Z".to_owned()),
                verified: None,
                unverified: None,
                left_out_by_programs: 0,
                warning: None,
                troubled: Vec::new(),
                merged: false,
                service: None,
            },
            list: ["paris-5f.1", "lyon-2.2"].map(str::to_owned).into(),
            config: serde_json::json!({}),
            standings: vec![
                SiteStanding {
                    why: Some("`lyon-2.1` took effect here and was overridden since".to_owned()),
                    ..stands("lyon", Standing::Diverged)
                },
                SiteStanding { connected: false, ..stands("nice", Standing::Unknown) },
                stands("paris", Standing::InSync),
            ],
            health: Some("`lyon-2.1` took effect here and was overridden since".to_owned()),
            progress: Progress::AwaitsOperator,
            behind: BTreeMap::from([("lyon".to_owned(), 3), ("nice".to_owned(), 0)]),
            awaits: Some("lyon-2.2".to_owned()),
            waits_for: None,
            replicant: None,
            proof: None,
        }
    }

    fn operations() -> Vec<Operation> {
        use ReplyStatus::{InDoubt, Ko, Ok, Partial, Superseded};
        let left_out = LeftOut { why: "replaced".to_owned(), by: Some("paris-5f.1".to_owned()) };
        vec![
            operation("paris-5f.1", "set", "redis-cli set x 29", &[("paris", Ok), ("lyon", Ko)]),
            Operation {
                counts: false,
                left_out: Some(left_out),
                ..operation(
                    "lyon-2.1",
                    "inc",
                    "redis-cli incr x",
                    &[("paris", Superseded), ("lyon", Superseded), ("nice", Superseded)],
                )
            },
            operation(
                "lyon-2.2",
                "inc",
                "redis-cli incr x\nthen more of it",
                &[("paris", InDoubt), ("lyon", Ok), ("nice", Partial)],
            ),
        ]
    }

    #[test]
    fn sites_are_columns_and_operations_rows() {
        let resource = resource(&["lyon", "nice", "paris"]);
        expect![[r#"
            my counter  unknown result
            on lyon, nice, paris
            2 of 3 operations applied, changed 60 s ago
            behind: lyon by 3
            lyon: diverged for 60 s: `lyon-2.1` took effect here and was overridden since
            nice: unknown, not connected for 60 s
            unknown result here: lyon-2.2 may or may not have happened
              cheops settle 'my counter' lyon-2.2 skip    # or: rerun

            … 7 operations before these: --all
            #  OPERATION   TYPE  AT (UTC)  lyon        nice        paris           WHAT
            1  paris-5f.1  set   00:00:01  failed 127  …           OK              redis-cli set x 29
            -  lyon-2.1    inc   00:00:01  overridden  overridden  overridden      [paris-5f.1 took its place] …
            2  lyon-2.2    inc   00:00:01  OK          2 of 5      unknown result  redis-cli incr x ⏎ then more…
        "#]].assert_eq(&bare(&told(&resource, &operations(), 7, 61_000, 100)));
    }

    #[test]
    fn at_eighty_columns_what_an_operation_does_is_below_it_and_nothing_is_lost() {
        let named = |n: usize, mut operation: Operation| {
            operation.id = format!("lyon-15f3a2b1c.{n}");
            operation.summary = "curl -X PUT /v2/images/550e8400-e29b-41d4-a716-446655440000 \
                                 -d '設定を東京のサイトにコピーする'"
                .to_owned();
            operation
        };
        let operations: Vec<_> =
            operations().into_iter().enumerate().map(|(n, it)| named(n, it)).collect();
        let mut resource = resource(&["lyon", "nice", "paris"]);
        resource.summary.id = "550e8400-e29b-41d4-a716-446655440000".to_owned();
        resource.list = ["lyon-15f3a2b1c.0", "lyon-15f3a2b1c.2"].map(str::to_owned).into();
        resource.awaits = None;
        let text = bare(&told(&resource, &operations, 7, 61_000, 80));
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        expect![[r#"
            550e8400-e29b-41d4-a716-446655440000  unknown result
            on lyon, nice, paris
            2 of 3 operations applied, changed 60 s ago
            behind: lyon by 3
            lyon: diverged for 60 s: `lyon-2.1` took effect here and was overridden since
            nice: unknown, not connected for 60 s

            … 7 operations before these: --all
            #  OPERATION         TYPE  AT (UTC)  lyon        nice        paris
                WHAT
            1  lyon-15f3a2b1c.0  set   00:00:01  failed 127  …           OK
                curl -X PUT /v2/images/550e8400-e29b-41d4-a716-446655440000 -d '設定を東京…
            -  lyon-15f3a2b1c.1  inc   00:00:01  overridden  overridden  overridden
                [paris-5f.1 took its place] curl -X PUT /v2/images/550e8400-e29b-41d4-a716-…
            2  lyon-15f3a2b1c.2  inc   00:00:01  OK          2 of 5      unknown result
                curl -X PUT /v2/images/550e8400-e29b-41d4-a716-446655440000 -d '設定を東京…
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_what_is_not_proven_says_why() {
        let long = "edge-cluster-lyon-550e8400-e29b-41d4";
        let operations: Vec<_> = operations()
            .into_iter()
            .map(|it| Operation {
                id: format!("{long}-1f.7"),
                summary: "設\u{202e}定 ".repeat(40),
                ..it
            })
            .collect();
        for id in [
            "550e8400-e29b-41d4-a716-446655440000",
            "設定/東京/とても長い名前のリソース/とても長い名前のリソース",
            "x",
        ] {
            for reason in
                [UnverifiedReason::NoState, UnverifiedReason::NotYet, UnverifiedReason::Unread]
            {
                let mut resource = resource(&[long, "nice", "paris"]);
                resource.summary.id = id.to_owned();
                resource.summary.left_out_by_programs = 1;
                resource.summary.unverified = Some(Unverified {
                    reason,
                    sites: vec![long.to_owned()],
                    since: Some("1970-01-01T00:00:01Z".to_owned()),
                    why: Some(format!("no such file: {}", "x".repeat(200))),
                });
                for width in [60, 80, 120] {
                    let text = bare(&told(&resource, &operations, 7, 61_000, width));
                    // A command that is pasted has its words whole.
                    let is_wide =
                        |line: &&str| columns(line) > width && !line.starts_with("      ");
                    let wide: Vec<_> = text.lines().filter(is_wide).collect();
                    assert!(wide.is_empty(), "{width}: {wide:?}\n{text}");
                    assert!(
                        text.contains("1 of 3 operations applied, 1 left out by the program"),
                        "{text}"
                    );
                    assert!(text.contains("not verified") && !text.contains('\u{202e}'), "{text}");
                }
            }
        }
    }

    #[test]
    fn where_sites_are_too_many_their_replies_share_a_column() {
        let sites: Vec<String> = (1..=9).map(|n| format!("a-long-name-{n}")).collect();
        let mut sites: Vec<&str> = sites.iter().map(String::as_str).collect();
        sites.extend(["lyon", "nice", "paris"]);
        let lines = table(&resource(&sites), &operations(), 61_000, 100);
        expect![[r#"
            #  OPERATION   TYPE  AT (UTC)  REPLIES                                   WHAT
            1  paris-5f.1  set   00:00:01  1 OK, failed at lyon, 10 awaited          redis-cli set x 29
            -  lyon-2.1    inc   00:00:01  3 overridden, 9 awaited                   [paris-5f.1 took its place…
            2  lyon-2.2    inc   00:00:01  1 OK, in part at nice, unknown result a…  redis-cli incr x ⏎ then mo…
        "#]].assert_eq(&bare(&lines));
    }
}
