//! `cheops explain`: why a resource's list is what it is.

mod graph;

use std::collections::BTreeMap;

use cheops_api::{DecidedPair, ExplainedOperation, Explanation, Replaces};
use clap::Args;

use self::graph::{GraphNode, GraphRow, Mark, drawn};
use crate::agent::{self, AgentTarget};
use crate::failure::{Failure, Verdict};
use crate::grid::one_line;
use crate::handing::check_resource;
use crate::look::{ACCENT, BAD, BOLD, DIM, GOOD, WARN, styled};
use crate::output::{Format, VerbOutput};
use crate::shell::joined;
use crate::text::{cut, hanging, printable};
use crate::time::{moment, now_ms};

const AFTER_HELP: &str = "\
The history is drawn oldest first: a line leads from each operation to those that were made on it,
so operations without a line between them are concurrent. ● is applied, ○ is overridden.

Examples:
  cheops explain counter
  cheops explain counter --output json";

/// Of what is needed no more, so many are shown.
const SHOWN_PAST: usize = 20;

/// Wider drawings leave no room for words.
const WIDEST_GRAPH: usize = 30;

/// Explain why a resource's list is what it is: who was made on whom, who won, and why
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The resource
    #[arg(value_name = "ID")]
    id: String,
}

pub(crate) fn run(
    arguments: &Arguments,
    agent: &AgentTarget,
    output: &mut VerbOutput,
) -> Result<Verdict, Failure> {
    check_resource(&arguments.id)?;
    let explanation = agent::with(agent, async |client| Ok(client.explain(&arguments.id).await?))?;
    match output.format {
        Format::Json => output.json(&explanation)?,
        Format::Table => {
            for line in told(&explanation, now_ms(), output.room) {
                output.line(line)?;
            }
        }
    }
    Ok(Verdict::Fine)
}

fn told(explanation: &Explanation, now_ms: u64, width: usize) -> Vec<String> {
    let mut lines = vec![styled(BOLD, "history")];
    lines.extend(history(explanation, now_ms, width));
    lines.push(String::new());
    lines.push(styled(BOLD, "applied, in this order"));
    lines.extend(list(explanation, width));
    lines.push(String::new());
    lines.push(styled(BOLD, "because"));
    if explanation.decisions.is_empty() {
        lines.push(styled(DIM, "  nothing had to be decided"));
    }
    lines.extend(explanation.decisions.iter().flat_map(|decision| decided(decision, width)));
    lines.extend(past(explanation, now_ms, width));
    lines
}

/// What no site needs any more, the latest last.
fn past(explanation: &Explanation, now_ms: u64, width: usize) -> Vec<String> {
    let all = &explanation.past;
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![String::new(), styled(BOLD, "before that, overridden and kept for reading")];
    let shown = all.len().saturating_sub(SHOWN_PAST);
    if shown > 0 || explanation.past_more {
        let id = joined(std::slice::from_ref(&explanation.resource));
        lines.push(styled(DIM, format!("  … more: cheops history {id} --all")));
    }
    for operation in all.iter().skip(shown) {
        lines.push(format!("  {}", line(operation, 0, now_ms, width.saturating_sub(2))));
        if let Some(left_out) = &operation.left_out {
            lines.push(styled(DIM, hanging("    ", &printable(&left_out.why), width)));
        }
    }
    lines
}

fn history(explanation: &Explanation, now_ms: u64, width: usize) -> Vec<String> {
    let operations = &explanation.operations;
    let nodes: Vec<GraphNode<'_>> = operations
        .iter()
        .map(|operation| GraphNode {
            id: &operation.id,
            parents: operation.parents.iter().map(String::as_str).collect(),
            mark: if operation.counts { Mark::Counts } else { Mark::LeftOut },
        })
        .collect();
    let rows = drawn(&nodes);
    let graph = rows.iter().map(|row| row.lines.chars().count()).max().unwrap_or_default();
    if graph > WIDEST_GRAPH {
        return undrawn(operations, now_ms, width);
    }
    let ids = operations.iter().map(|operation| operation.id.chars().count()).max();
    let ids = ids.unwrap_or_default();
    rows.iter()
        .map(|GraphRow { lines, operation }| {
            let Some(operation) = operation.and_then(|n| operations.get(n)) else {
                return format!("  {}", styled(DIM, lines));
            };
            let room = width.saturating_sub(graph + 4);
            let (mark, style) = if operation.counts { ('●', GOOD) } else { ('○', WARN) };
            let coloured = lines.replace(mark, &styled(style, mark));
            let space = " ".repeat(graph - lines.chars().count());
            format!("  {coloured}{space}  {}", line(operation, ids, now_ms, room))
        })
        .collect()
}

/// Too many lanes to draw: what each was made on, in words.
fn undrawn(operations: &[ExplainedOperation], now_ms: u64, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for operation in operations {
        let mark = if operation.counts { styled(GOOD, '●') } else { styled(WARN, '○') };
        lines.push(format!("  {mark} {}", line(operation, 0, now_ms, width.saturating_sub(4))));
        if !operation.parents.is_empty() {
            let on = hanging("    on ", &operation.parents.join(", "), width);
            lines.push(styled(DIM, on));
        }
    }
    lines
}

/// An operation in so many characters.
fn line(operation: &ExplainedOperation, ids: usize, now_ms: u64, width: usize) -> String {
    let ExplainedOperation { id, kind, summary, .. } = operation;
    let time = moment(&operation.time, now_ms);
    let replaces = match operation.replaces {
        Replaces::Nothing => "",
        Replaces::Past => ", replaces all before it",
        Replaces::Force => ", forced: replaces all before it",
    };
    let rest = format!("{time}  {kind}{replaces}: {}", one_line(summary));
    let rest = cut(&rest, width.saturating_sub(ids.max(id.chars().count()) + 2));
    if operation.counts {
        format!("{ACCENT}{id:ids$}{ACCENT:#}  {rest}")
    } else {
        styled(DIM, format!("{id:ids$}  {rest}"))
    }
}

fn list(explanation: &Explanation, width: usize) -> Vec<String> {
    let known: BTreeMap<&str, &ExplainedOperation> =
        explanation.operations.iter().map(|operation| (operation.id.as_str(), operation)).collect();
    if explanation.list.is_empty() {
        return vec![styled(DIM, "  nothing")];
    }
    let digits = explanation.list.len().to_string().len();
    let place = |(n, id): (usize, &String)| {
        let what = known.get(id.as_str()).map(|operation| {
            let room = width.saturating_sub(digits + id.chars().count() + 6);
            cut(&format!("{}: {}", operation.kind, one_line(&operation.summary)), room)
        });
        format!("  {n:digits$}. {} {}", styled(ACCENT, id), what.unwrap_or_default())
    };
    (1..).zip(&explanation.list).map(place).collect()
}

/// A decision in words, the names in colour, and the entry that decided below.
fn decided(decision: &DecidedPair, width: usize) -> Vec<String> {
    let (mark, style) = if decision.counts { ("↕", ACCENT) } else { ("✗", BAD) };
    let entry = decision.entry.as_deref();
    let sentence = entry
        .and_then(|entry| decision.sentence.strip_suffix(entry)?.strip_suffix("; "))
        .unwrap_or(&decision.sentence);
    let mut text = hanging("    ", &printable(sentence), width);
    let names = [Some(&decision.operation), decision.winner.as_ref()];
    for name in names.into_iter().flatten() {
        text = text.replace(name.as_str(), &styled(ACCENT, name));
    }
    let text = text.replacen("    ", &format!("  {} ", styled(style, mark)), 1);
    let entry = entry.map(|entry| format!("    by {}", styled(BOLD, printable(entry))));
    [text].into_iter().chain(entry).collect()
}

#[cfg(test)]
mod tests {
    use cheops_api::LeftOut;
    use expect_test::expect;

    use super::*;
    use crate::grid::bare;

    fn operation(id: &str, kind: &str, parents: &[&str], counts: bool) -> ExplainedOperation {
        ExplainedOperation {
            id: id.to_owned(),
            site: id.split('-').next().unwrap().to_owned(),
            kind: kind.to_owned(),
            time: "1970-01-01T00:00:01Z".to_owned(),
            stamp: "1000+0".to_owned(),
            parents: parents.iter().map(|parent| (*parent).to_owned()).collect(),
            replaces: if kind == "set" { Replaces::Past } else { Replaces::Nothing },
            summary: format!("redis-cli {kind} x 29"),
            counts,
            left_out: (!counts).then(|| LeftOut { why: "w".to_owned(), by: None }),
        }
    }

    #[test]
    fn the_history_is_drawn_and_every_decision_told() {
        let sentence = "lyon-2.1 is overridden: paris-5f.2 is concurrent and of the replacing kind; \
                        (set, incrby): take-both-keep-order, replace-wins";
        let explanation = Explanation {
            resource: "counter".to_owned(),
            operations: vec![
                operation("paris-5f.1", "set", &[], false),
                operation("paris-5f.2", "set", &["paris-5f.1"], true),
                operation("lyon-2.1", "incrby", &["paris-5f.1"], false),
                operation("nice-77.1", "incrby", &["paris-5f.2", "lyon-2.1"], true),
            ],
            list: ["paris-5f.2", "nice-77.1"].map(str::to_owned).into(),
            decisions: vec![
                DecidedPair {
                    operation: "paris-5f.1".to_owned(),
                    winner: Some("paris-5f.2".to_owned()),
                    counts: false,
                    entry: None,
                    sentence:
                        "paris-5f.1 is overridden: paris-5f.2 was made after it and replaces \
                               all before it"
                            .to_owned(),
                },
                DecidedPair {
                    operation: "lyon-2.1".to_owned(),
                    winner: Some("paris-5f.2".to_owned()),
                    counts: false,
                    entry: Some("(set, incrby): take-both-keep-order, replace-wins".to_owned()),
                    sentence: sentence.to_owned(),
                },
            ],
            past: vec![operation("paris-5f.0", "set", &[], false)],
            past_more: true,
        };
        expect![[r#"
            history
              ○    paris-5f.1  00:00:01  set, replaces all before it: redis-cli set x 29
              ├─╮
              ● │  paris-5f.2  00:00:01  set, replaces all before it: redis-cli set x 29
              │ ○  lyon-2.1    00:00:01  incrby: redis-cli incrby x 29
              ├─╯
              ●    nice-77.1   00:00:01  incrby: redis-cli incrby x 29

            applied, in this order
              1. paris-5f.2 set: redis-cli set x 29
              2. nice-77.1 incrby: redis-cli incrby x 29

            because
              ✗ paris-5f.1 is overridden: paris-5f.2 was made after it and replaces all before it
              ✗ lyon-2.1 is overridden: paris-5f.2 is concurrent and of the replacing kind
                by (set, incrby): take-both-keep-order, replace-wins

            before that, overridden and kept for reading
              … more: cheops history counter --all
              paris-5f.0  00:00:01  set, replaces all before it: redis-cli set x 29
                w
        "#]]
        .assert_eq(&bare(&told(&explanation, 2_000, 90)));
    }

    #[test]
    fn a_history_of_many_lanes_is_told_in_words() {
        let mut operations = vec![operation("paris-1.1", "set", &[], true)];
        for n in 1..=20 {
            operations.push(operation(&format!("lyon-2.{n}"), "incrby", &["paris-1.1"], true));
        }
        let lines = told(
            &Explanation {
                resource: "counter".to_owned(),
                operations,
                list: Vec::new(),
                decisions: Vec::new(),
                past: Vec::new(),
                past_more: false,
            },
            2_000,
            80,
        );
        expect![[r#"
            history
              ● paris-1.1  00:00:01  set, replaces all before it: redis-cli set x 29
              ● lyon-2.1  00:00:01  incrby: redis-cli incrby x 29
                on paris-1.1
        "#]]
        .assert_eq(&bare(&lines[..4]));
    }
}
