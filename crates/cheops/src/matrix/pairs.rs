//! The table of every pair, for people and for programs.

use cheops_core::config::{Meeting, PairRow, Rule, Sequence};
use serde::Serialize;

use crate::look::{DIM, styled};
use crate::text::{table, table_lines, wrapped};

const HEADER: [&str; 5] = ["first", "second", "rule", "in sequence", "if concurrent"];

const LEGEND: &str = "In sequence: the second was made where the first was known; it is added \
    after it, or replaces all before it. If concurrent: neither knew of the other, and the first \
    is the earlier; who stays, and in which order.";

/// One pair, for programs.
#[derive(Debug, Serialize)]
pub(super) struct ShownPair {
    first: String,
    second: String,
    /// As the matrix spells it.
    rule: String,
    /// What it says of concurrent operations, where that means something.
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrent: Option<String>,
    /// Whether the matrix lists the pair; if not, it is `take-both`.
    listed: bool,
    in_sequence: &'static str,
    if_concurrent: String,
    sentence: String,
}

impl From<&PairRow> for ShownPair {
    fn from(row: &PairRow) -> Self {
        let ordered = matches!(row.resolution.rule, Rule::KeepOrder | Rule::ReverseOrder);
        Self {
            first: row.first.to_string(),
            second: row.second.to_string(),
            rule: row.resolution.rule.to_string(),
            concurrent: ordered.then(|| row.resolution.concurrent.to_string()),
            listed: row.listed,
            in_sequence: sequence(row),
            if_concurrent: match &row.concurrent {
                Meeting::OnlyFirst => "only-first".to_owned(),
                Meeting::OnlySecond => "only-second".to_owned(),
                Meeting::AnyOrder => "both-in-any-order".to_owned(),
                Meeting::FirstThenSecond => "both-first-then-second".to_owned(),
                Meeting::SecondThenFirst => "both-second-then-first".to_owned(),
                Meeting::Merged => "merged".to_owned(),
                Meeting::ByProgram(name) => format!("by-program {name}"),
            },
            sentence: row.sentence(),
        }
    }
}

/// The table of these pairs with a legend, at most so wide.
pub(super) fn told(rows: &[PairRow], width: usize) -> String {
    let mut table = table(&HEADER, width);
    for row in rows {
        table.add_row(cells(row));
    }
    let mut lines = table_lines(&table);
    lines.push(String::new());
    lines.extend(wrapped(LEGEND, width).iter().map(|line| styled(DIM, line)));
    if rows.iter().any(|row| !row.listed) {
        lines.push(styled(DIM, "A pair in parentheses is not listed, and so `take-both`."));
    }
    lines.join("\n")
}

fn cells(row: &PairRow) -> [String; 5] {
    [
        row.first.to_string(),
        row.second.to_string(),
        rule(row),
        sequence(row).to_owned(),
        meeting(row),
    ]
}

fn rule(row: &PairRow) -> String {
    let rule = row.resolution.rule.to_string();
    if row.listed { rule } else { format!("({rule})") }
}

fn sequence(row: &PairRow) -> &'static str {
    match row.sequence {
        Sequence::Appended => "added",
        Sequence::Replaces => "replaces",
    }
}

fn meeting(row: &PairRow) -> String {
    let (first, second) = (&row.first, &row.second);
    let same = first == second;
    match &row.concurrent {
        Meeting::OnlyFirst => format!("only {first}"),
        Meeting::OnlySecond if same => "only the later".to_owned(),
        Meeting::OnlySecond if row.resolution.rule == Rule::TakeOne => {
            format!("only {second}, the later")
        }
        Meeting::OnlySecond => format!("only {second}"),
        Meeting::AnyOrder => "both, in any order".to_owned(),
        Meeting::FirstThenSecond if row.resolution.rule.is_ordered() => {
            "both, the earlier first".to_owned()
        }
        Meeting::FirstThenSecond => format!("both, {first} first"),
        Meeting::SecondThenFirst => format!("both, {second} first"),
        Meeting::Merged => "merged".to_owned(),
        Meeting::ByProgram(name) => format!("as the program {name} says"),
    }
}

#[cfg(test)]
mod tests {
    use cheops_core::config::{Config, profile};
    use expect_test::expect;

    use super::*;

    fn plain(config: &Config, width: usize) -> String {
        anstream::adapter::strip_str(&told(&config.table(), width)).to_string()
    }

    #[test]
    fn every_pair_is_spelled_out() {
        let file = &profile("file").unwrap().config;
        expect![[r#"
            first  second  rule                     in sequence  if concurrent
            ─────────────────────────────────────────────────────────────────────────────
            add    add     ordered                  added        both, the earlier first
            add    set     take-both-reverse-order  replaces     only set
            set    add     take-both-keep-order     added        only set
            set    set     take-one                 replaces     only the later

            In sequence: the second was made where the first was known; it is added after
            it, or replaces all before it. If concurrent: neither knew of the other, and the
            first is the earlier; who stays, and in which order."#]]
        .assert_eq(&plain(file, 80));
    }

    #[test]
    fn both_kept_own_logic_and_unlisted_pairs_are_told_apart() {
        let config = Config::parse(
            r#"{"ResolutionMatrix": [
                {"Before": "set", "After": "inc", "Result": "take-both-keep-order",
                 "Concurrent": "keep-both"},
                {"Before": "inc", "After": "set", "Result": "take-both-reverse-order",
                 "Concurrent": "keep-both"},
                {"Before": "inc", "After": "inc", "Result": "logic:exec"}]}"#,
        );
        expect![[r#"
            first  second  rule                     in sequence  if concurrent
            ─────────────────────────────────────────────────────────────────────────────
            inc    inc     logic:exec               added        both, the earlier first
            inc    set     take-both-reverse-order  replaces     both, set first
            set    inc     take-both-keep-order     added        both, set first
            set    set     (take-both)              added        both, in any order

            In sequence: the second was made where the first was known; it is added after
            it, or replaces all before it. If concurrent: neither knew of the other, and the
            first is the earlier; who stays, and in which order.
            A pair in parentheses is not listed, and so `take-both`."#]]
        .assert_eq(&plain(&config.unwrap().config, 80));
    }

    #[test]
    fn no_profile_needs_more_than_eighty_columns() {
        for profile in cheops_core::config::profiles() {
            let table = plain(&profile.config, 80);
            let rows = profile.config.table().len();
            assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
            let body = table.lines().skip(2).take_while(|line| !line.is_empty());
            assert_eq!(body.count(), rows, "a row wraps in {table}");
        }
    }
}
