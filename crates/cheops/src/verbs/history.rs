//! `cheops history`: what happened to a resource, also what was overridden and is needed no more.

use cheops_api::{
    Change, Client, DecidedPair, History, HistoryAsked, HistoryItem, Reply, ReplyStatus, SaidBeside,
};
use clap::Args;

use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::following::style_of;
use crate::grid::one_line;
use crate::handing::check_resource;
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, PLAIN, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{cut, hanging, printable};
use crate::time::{moment, now_ms};

const AFTER_HELP: &str = "\
Oldest first, as one site noted it: operations, what became of them at each site, which were overridden,
by what and why. What no site needs any more stays readable for `retention` of `[audit]` in the agent's
config (7 days), unless its `size` is used up before.

Examples:
  cheops history counter
  cheops history counter --last 500 --site lyon
  cheops history counter --all --output json
  cheops operation paris-5f.7";

/// A page of the agent.
const PAGE: usize = 500;

/// Show what happened to a resource, also what was overridden
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
    /// Only the last so many events
    #[arg(long, value_name = "N", default_value_t = 100)]
    last: usize,
    /// All that is kept
    #[arg(long, conflicts_with = "last")]
    all: bool,
    /// As this site noted it; the agent's own if not given
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    check_resource(&arguments.id)?;
    let most = if arguments.all { usize::MAX } else { arguments.last };
    let site = arguments.site.as_deref();
    let history =
        agent::with(agent, async |client| kept(&client, &arguments.id, site, most).await)?;
    match output.format {
        Format::Json => output.json(&history)?,
        Format::Table => {
            for line in told(&history, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

/// The latest events, the last one first.
async fn kept(
    client: &Client,
    id: &str,
    site: Option<&str>,
    most: usize,
) -> Result<History, Failure> {
    let asked = |before, room: usize| HistoryAsked {
        limit: u32::try_from(room.clamp(1, PAGE)).ok(),
        before,
        at: site.map(str::to_owned),
    };
    let mut history = client.history(id, &asked(None, most)).await?;
    while history.items.len() < most
        && let Some(before) = history.next
    {
        let room = most - history.items.len();
        let page = client.history(id, &asked(Some(before), room)).await?;
        history.items.extend(page.items);
        (history.next, history.cut) = (page.next, page.cut);
    }
    Ok(history)
}

fn told(history: &History, now_ms: u64, width: usize) -> Vec<String> {
    let name = styled(BOLD, printable(&history.resource));
    let mut lines = vec![format!("{name}  as noted at {}, times in UTC", history.site)];
    if history.next.is_some() {
        lines.push(styled(DIM, "… more before this: --all"));
    } else if history.cut {
        let text = "what was before this is not kept any more: `retention` and `size` of `[audit]`";
        lines.push(styled(DIM, hanging("… ", text, width)));
    }
    if history.items.is_empty() {
        lines.push(styled(DIM, "nothing is kept"));
    }
    let times = history.items.iter().map(|item| moment(&item.at, now_ms).len()).max();
    let times = times.unwrap_or_default();
    for item in history.items.iter().rev() {
        let time = styled(DIM, format!("{:times$}", moment(&item.at, now_ms)));
        let room = width.saturating_sub(times + 2);
        for (at, line) in event(item, &history.resource, room).into_iter().enumerate() {
            let before = if at == 0 { time.clone() } else { " ".repeat(times) };
            lines.push(format!("{before}  {line}"));
        }
    }
    lines
}

/// What happened, in lines of at most so many characters.
fn event(item: &HistoryItem, resource: &str, width: usize) -> Vec<String> {
    let about = |operation: &str, style, text: String| {
        let room = width.saturating_sub(operation.chars().count() + 2);
        format!("{}  {}", styled(ACCENT, printable(operation)), styled(style, cut(&text, room)))
    };
    match &item.change {
        Change::Operation { operation, site, kind, summary, asked_by, .. } => {
            let by = asked_by.as_ref().map(|by| format!(" by {}", printable(&by.principal)));
            let text = format!("{kind} submitted at {site}{}", by.unwrap_or_default());
            let what = format!("  {}", cut(&one_line(summary), width.saturating_sub(2)));
            vec![about(operation, PLAIN, text), what]
        }
        Change::Reply { operation, site, beside: Some(beside), .. } => {
            vec![told_beside(operation, site, beside, width)]
        }
        Change::Reply { operation, site, reply, .. } => {
            let text = format!("{} at {site}{}", said(reply), printed(reply));
            vec![about(operation, style_of(reply.status), text)]
        }
        Change::LeftOut { decisions, .. } => {
            decisions.iter().flat_map(|decision| overridden(decision, width)).collect()
        }
        Change::PartialError { operation, .. } => {
            vec![about(operation, BAD, "failed at some sites and not at others".to_owned())]
        }
        Change::Settled { operation, .. } => {
            vec![about(operation, DIM, "every site replied".to_owned())]
        }
        Change::InDoubt { operation, .. } => {
            let id = joined(&[resource.to_owned()]);
            let way = format!("  cheops settle {id} {operation} skip    # or: rerun");
            vec![about(operation, WARN, "unknown result here".to_owned()), styled(DIM, way)]
        }
        Change::StrangeClock { operation, ahead_ms, .. } => {
            let ahead = format!("stamped {} s ahead of this site's clock", ahead_ms / 1000);
            vec![about(operation, WARN, ahead)]
        }
        Change::Diverged { why, .. } => vec![line(BAD, &format!("diverged here: {why}"), width)],
        Change::Warning { why, .. } => vec![line(WARN, why, width)],
        Change::Differs { .. } => vec![line(BAD, "the states of its sites differ", width)],
        Change::Converged { .. } => vec![line(GOOD, "in sync: all sites applied all", width)],
        Change::Pruned { entries, .. } => {
            let text = format!("{entries} entries are needed no more, and kept for reading");
            vec![line(DIM, &text, width)]
        }
        Change::Asked { principal, site, what, .. } => {
            vec![line(PLAIN, &format!("{principal} at {site} asked: {what}"), width)]
        }
        other => vec![line(DIM, other.name(), width)],
    }
}

/// What a site told beside a reply, which is no news by itself.
pub(super) fn told_beside(
    operation: &str,
    site: &str,
    beside: &SaidBeside,
    width: usize,
) -> String {
    let (style, text) = match beside {
        SaidBeside::ReadState => (DIM, format!("{site} has read its state")),
        SaidBeside::CannotRead(why) => {
            (WARN, format!("{site} cannot read its state: {}", printable(why)))
        }
        SaidBeside::InSync => (GOOD, format!("{site} follows the list again")),
        SaidBeside::Diverged(why) => (BAD, format!("{site} has diverged: {}", printable(why))),
        SaidBeside::Dismissed(failed) => (PLAIN, format!("{failed} was dismissed at {site}")),
        SaidBeside::Undone => (WARN, format!("{operation} was undone at {site}, for all sites")),
        SaidBeside::BroughtBack => (PLAIN, format!("{operation} was brought back at {site}")),
    };
    line(style, &text, width)
}

fn line(style: anstyle::Style, text: &str, width: usize) -> String {
    styled(style, cut(&one_line(text), width))
}

/// An operation that lost, with the reason below.
fn overridden(decision: &DecidedPair, width: usize) -> Vec<String> {
    let DecidedPair { operation, winner, sentence, .. } = decision;
    let by = winner.as_ref().map(|by| format!(" by {}", printable(by))).unwrap_or_default();
    let why = sentence.split_once(": ").map_or(sentence.as_str(), |(_, why)| why);
    let head = format!("{}  {}", styled(ACCENT, printable(operation)), styled(WARN, "overridden"));
    let why = hanging("  ", &printable(why), width);
    let mut lines = vec![format!("{head}{by}")];
    lines.extend(why.split('\n').map(|line| styled(DIM, line)));
    lines
}

fn said(reply: &Reply) -> String {
    match (reply.status, &reply.by, reply.done, reply.of) {
        (ReplyStatus::Ok, ..) => "applied".to_owned(),
        (ReplyStatus::Ko, ..) => "failed".to_owned(),
        (ReplyStatus::Superseded, Some(by), ..) => format!("overridden by {by}"),
        (ReplyStatus::Superseded, None, ..) => "overridden".to_owned(),
        (ReplyStatus::InDoubt, ..) => "unknown result".to_owned(),
        (ReplyStatus::Partial, _, Some(done), Some(of)) => format!("{done} of {of} steps applied"),
        (ReplyStatus::Partial, ..) => "applied in part".to_owned(),
    }
}

/// How it ended, and what it printed, as far as there is room.
fn printed(reply: &Reply) -> String {
    let detail = match reply.status {
        ReplyStatus::Superseded | ReplyStatus::InDoubt | ReplyStatus::Partial => String::new(),
        _ => crate::following::detail(reply),
    };
    let output = one_line(reply.output.trim_end());
    match (detail.is_empty(), output.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!(", {detail}"),
        (true, false) => format!(": {output}"),
        (false, false) => format!(", {detail}: {output}"),
    }
}

#[cfg(test)]
mod tests {
    use cheops_api::Asker;
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn item(second: u64, pruned: bool, change: Change) -> HistoryItem {
        HistoryItem { id: second, at: format!("1970-01-01T00:00:{second:02}Z"), pruned, change }
    }

    fn reply(status: ReplyStatus, by: Option<&str>, output: &str) -> Reply {
        Reply {
            status,
            by: by.map(str::to_owned),
            done: None,
            of: None,
            exit_code: Some(1),
            http_status: None,
            limit_ms: None,
            output: output.to_owned(),
            truncated: false,
            time: String::new(),
        }
    }

    #[test]
    fn what_happened_is_told_in_order_with_reasons_within_80_columns() {
        let resource = || "motd".to_owned();
        let operation = || "site1-1f00c0ffee5eed.12".to_owned();
        let replied = |status, by, output| Change::Reply {
            resource: resource(),
            operation: operation(),
            site: "site2".to_owned(),
            reply: reply(status, by, output),
            beside: None,
        };
        let why = "site2-2.9 is concurrent and of the replacing kind; (set, add): \
                   take-both-keep-order, replace-wins";
        let beside = |said| Change::Reply {
            resource: resource(),
            operation: operation(),
            site: "site2".to_owned(),
            reply: reply(ReplyStatus::Ok, None, ""),
            beside: Some(said),
        };
        let items = vec![
            item(7, false, beside(SaidBeside::Undone)),
            item(6, false, beside(SaidBeside::Diverged("its state is not that of `site1`".to_owned()))),
            item(6, false, beside(SaidBeside::ReadState)),
            item(5, false, Change::Pruned { resource: resource(), entries: 4 }),
            item(
                5,
                false,
                Change::LeftOut {
                    resource: resource(),
                    decisions: vec![DecidedPair {
                        operation: operation(),
                        winner: Some("site2-2.9".to_owned()),
                        counts: false,
                        entry: None,
                        sentence: format!("{} is overridden: {why}", operation()),
                    }],
                },
            ),
            item(4, true, replied(ReplyStatus::Superseded, Some("site2-2.9"), "")),
            item(3, true, replied(ReplyStatus::Ko, None, "no such file or directory: /srv/very/long/path/of/it")),
            item(
                2,
                true,
                Change::Operation {
                    resource: resource(),
                    operation: operation(),
                    site: "site1".to_owned(),
                    kind: "add".to_owned(),
                    summary: "echo a line that is much longer than what fits into the eighty columns >> f".to_owned(),
                    time: String::new(),
                    asked_by: Some(Asker { principal: "uid:1000".to_owned(), site: "site1".to_owned() }),
                },
            ),
        ];
        let history = History {
            resource: resource(),
            site: "site1".to_owned(),
            items,
            next: None,
            cut: true,
        };
        let lines = told(&history, 9_000, 80);
        expect![[r#"
            motd  as noted at site1, times in UTC
            … what was before this is not kept any more: `retention` and `size` of `[audit]`
            00:00:02  site1-1f00c0ffee5eed.12  add submitted at site1 by uid:1000
                        echo a line that is much longer than what fits into the eighty colu…
            00:00:03  site1-1f00c0ffee5eed.12  failed at site2, exit code 1: no such file o…
            00:00:04  site1-1f00c0ffee5eed.12  overridden by site2-2.9 at site2
            00:00:05  site1-1f00c0ffee5eed.12  overridden by site2-2.9
                        site2-2.9 is concurrent and of the replacing kind; (set, add):
                        take-both-keep-order, replace-wins
            00:00:05  4 entries are needed no more, and kept for reading
            00:00:06  site2 has read its state
            00:00:06  site2 has diverged: its state is not that of `site1`
            00:00:07  site1-1f00c0ffee5eed.12 was undone at site2, for all sites
        "#]]
        .assert_eq(&bare(&lines));
        assert!(bare(&lines).lines().all(|line| line.chars().count() <= 80));
    }
}
