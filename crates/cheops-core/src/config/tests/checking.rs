//! Contradictions are refused, all at once; what is doubtful is a warning.

use expect_test::expect;

use super::super::{
    Config, Handling, MAX_COMMAND_BYTES, MAX_ENTRIES, MAX_TYPES, Rule, StateCommands, profiles,
};
use super::{kind, parsed, problems, said, warnings};
use crate::config::Concurrent;

/// A document with these entries, one on each line from the second on.
fn matrix(entries: &[&str]) -> String {
    let entry = |entry: &&str| {
        let words: Vec<_> = entry.split(' ').collect();
        let concurrent = words.get(3).map(|c| format!(", Concurrent: {c}")).unwrap_or_default();
        let (before, after, result) = (words[0], words[1], words[2]);
        format!("\n- {{Before: {before}, After: {after}, Result: '{result}'{concurrent}}}")
    };
    format!("ResolutionMatrix:{}", entries.iter().map(entry).collect::<String>())
}

#[test]
fn what_is_said_of_cheops_own_types_is_refused_but_a_hook_may_wait_for_them() {
    expect![[r#"
        `ResolutionMatrix[0].Before` (line 2, column 12): `cheops.delete` is kept for Cheops' own operations; what they do is fixed; leave it out
    "#]]
    .assert_eq(&problems(&matrix(&["cheops.delete a take-both"])));
    expect![[r#"
        `Types.cheops.delete` (line 1, column 9): `cheops.delete` is kept for Cheops' own operations; what they do is fixed; leave it out
    "#]]
    .assert_eq(&problems("Types: {cheops.delete: {Undo: x}}"));
    let hook = "Hooks: [{On: applied, Command: tell, Types: [cheops.delete]}]";
    assert_eq!(parsed(hook).config.hooks[0].types, [kind("cheops.delete")].into());
}

/// What is sent along with operations must count where messages are kept small.
#[test]
fn the_size_of_a_config_is_never_much_less_than_it_takes_to_send() {
    let long = "x".repeat(10_000);
    for text in [
        format!("Hooks: [{{On: applied, Command: {long}}}]"),
        format!("Types: {{a: {{Undo: {long}}}}}"),
        format!("{{Snapshot: {long}, Restore: x}}"),
    ] {
        assert!(parsed(&text).config.size() > 10_000, "{}", &text[..20]);
    }
}

#[test]
fn contradictions_are_reported_all_at_once() {
    expect![[r#"
        `ResolutionMatrix[1]` (line 3, column 3): `inc`, `set` is `take-both-keep-order`, but `ResolutionMatrix[0]` (line 2, column 3) says that `set`, `inc` is `take-both-keep-order`; one of them must change: to agree with the other, this one is `take-both-reverse-order`
        `ResolutionMatrix[2]` (line 4, column 3): the pair `set`, `inc` is listed already at `ResolutionMatrix[0]` (line 2, column 3); list a pair once
        `ResolutionMatrix[2]` (line 4, column 3): `set`, `inc` is `take-one`, but `ResolutionMatrix[1]` (line 3, column 3) says that `inc`, `set` is `take-both-keep-order`; one of them must change: to agree with the other, this one is `take-both-reverse-order`
        `ResolutionMatrix[3]` (line 5, column 3): `take-both-reverse-order` orders `set` against itself; `take-one`, `take-both`, `ordered` or `logic:<name>` fit a type and itself
        `ResolutionMatrix[4]` (line 6, column 3): `Concurrent: keep-both` has no meaning with `take-both`; it goes with `take-both-keep-order` and `take-both-reverse-order`
        `ResolutionMatrix[6]` (line 8, column 3): `del`, `set` is `take-both`, but `ResolutionMatrix[5]` (line 7, column 3) says that `set`, `del` is `take-one`; one of them must change: to agree with the other, this one is `take-one`
        `ResolutionMatrix[8]` (line 10, column 3): `inc`, `del` is `take-both-reverse-order`, but `ResolutionMatrix[7]` (line 9, column 3) says that `del`, `inc` is `take-both-keep-order` with `Concurrent: keep-both`; one of them must change: to agree with the other, this one is `take-both-reverse-order` with `Concurrent: keep-both`
        `ResolutionMatrix[10]` (line 12, column 3): `add`, `put` is `logic:exec`, but `ResolutionMatrix[9]` (line 11, column 3) says that `put`, `add` is `logic:text`; one of them must change: to agree with the other, this one is `logic:text`
    "#]].assert_eq(&problems(&matrix(&[
        "set inc take-both-keep-order",
        "inc set take-both-keep-order",
        "set inc take-one",
        "set set take-both-reverse-order",
        "inc inc take-both keep-both",
        "set del take-one",
        "del set take-both",
        "del inc take-both-keep-order keep-both",
        "inc del take-both-reverse-order",
        "put add logic:text",
        "add put logic:exec",
    ])));
}

#[test]
fn every_rule_has_exactly_one_mirror() {
    let rules = [
        Rule::TakeOne,
        Rule::TakeBoth,
        Rule::KeepOrder,
        Rule::ReverseOrder,
        Rule::Ordered,
        Rule::Logic("text".to_owned()),
        Rule::Logic("exec".to_owned()),
    ];
    for rule in &rules {
        assert_eq!(&rule.mirror().mirror(), rule);
        for other in &rules {
            let text = matrix(&[&format!("a b {rule}"), &format!("b a {other}")]);
            assert_eq!(Config::parse(&text).is_ok(), *other == rule.mirror(), "{rule} {other}");
        }
    }
}

#[test]
fn a_snapshot_without_a_restore_is_of_no_use() {
    let texts = ["Snapshot: x", "Restore: x", "{Snapshot: x, Restore: null}"];
    expect![[r#"
        `Snapshot` (line 1, column 11): there is `Snapshot` but no `Restore`; add `Restore`
        `Restore` (line 1, column 10): there is `Restore` but no `Snapshot`; add `Snapshot`
        `Snapshot` (line 1, column 12): there is `Snapshot` but no `Restore`; add `Restore`
    "#]]
    .assert_eq(&texts.map(problems).concat());
}

#[test]
fn more_than_anyone_needs_is_refused() {
    let types: String = (0..=MAX_TYPES).map(|i| format!("\n  t{i}: {{}}")).collect();
    let entries = "{Before: a, After: a, Result: ordered},".repeat(MAX_ENTRIES + 1);
    let command = "x".repeat(MAX_COMMAND_BYTES + 1);
    let first =
        |text: &str| problems(text).lines().next_back().unwrap_or_default().to_owned() + "\n";
    let found = [
        first(&format!("Types:{types}")),
        problems(&format!("ResolutionMatrix: [{entries}]")).lines().next().unwrap().to_owned()
            + "\n",
        first(&format!("Types: {{inc: {{Undo: {command}}}}}")),
        first(r#"{"Types": {"inc": {"Undo": "a\u0000b"}}}"#),
        first(&" ".repeat(1024 * 1024 + 1)),
    ];
    expect![[r#"
        `Types`: there are 65 types; at most 64 types are allowed
        `ResolutionMatrix` (line 1, column 19): there are 4097 entries; at most 4096 entries are allowed
        `Types.inc.Undo` (line 1, column 21): the command has 65537 bytes; at most 65536 are allowed; put the rest into a script
        `Types.inc.Undo` (line 1, column 28): the command holds the control character U+0000; only tabs and line breaks can stand in a command
        the config: the document has 1048577 bytes; at most 1048576 are read
    "#]].assert_eq(&found.concat());
}

#[test]
fn a_config_made_by_a_program_is_checked_too() {
    let kept = super::super::Resolution { rule: Rule::TakeOne, concurrent: Concurrent::KeepBoth };
    let config = Config {
        matrix: [
            ((kind("a"), kind("b")), said(Rule::KeepOrder)),
            ((kind("b"), kind("a")), said(Rule::KeepOrder)),
            ((kind("b"), kind("b")), kept),
            ((kind("c"), kind("c")), said(Rule::Logic("no way".to_owned()))),
        ]
        .into(),
        types: [(kind("a"), Handling { undo: Some(" ".to_owned()), ..Handling::default() })].into(),
        state: Some(StateCommands { read: "x".to_owned(), write: "\u{1b}".to_owned() }),
        hooks: Vec::new(),
    };
    expect![[r#"
        the config cannot be used, for 5 reasons:
        - `ResolutionMatrix[1]`: `b`, `a` is `take-both-keep-order`, but `ResolutionMatrix[0]` says that `a`, `b` is `take-both-keep-order`; one of them must change: to agree with the other, this one is `take-both-reverse-order`
        - `ResolutionMatrix[2]`: `Concurrent: keep-both` has no meaning with `take-one`; it goes with `take-both-keep-order` and `take-both-reverse-order`
        - `ResolutionMatrix[3]`: unknown result `logic:no way`; expected one of `take-one`, `take-both`, `take-both-any-order`, `take-both-keep-order`, `take-both-reverse-order`, `ordered`, `logic:<name>`
        - `Types.a.Undo`: the command is empty; write the command or leave the key out
        - `State.Write`: the command holds the control character U+001B; only tabs and line breaks can stand in a command"#]].assert_eq(&config.validate().unwrap_err().to_string());
}

#[test]
fn what_is_doubtful_is_a_warning() {
    expect![[r#"
        `ResolutionMatrix[0]` (line 2, column 3): `set`, `inc` is `take-both-keep-order`, but `inc`, `set` is not listed and so `take-both`: `set` made on `inc` is added after it, and where they are concurrent and `inc` is the earlier, both run, in any order; list it as `take-both-reverse-order`
        `ResolutionMatrix[1]` (line 3, column 3): there is no logic `merge`, and it is taken as `ordered`: both stay, in total order; there are `logic:text`, `logic:json` and `logic:exec:NAME`
        `ResolutionMatrix[2]` (line 4, column 3): `Concurrent: replace-wins` changes nothing with `take-both`; leave it out
        `ResolutionMatrix`: `Set` replaces what was there, but nothing is said of `Set` and `add`, a pair that is so `take-both`: both are kept, in any order where they are concurrent; list it, for instance as `take-both-keep-order`
        `ResolutionMatrix`: `Set` replaces what was there, but nothing is said of `Set` and `inc`, a pair that is so `take-both`: both are kept, in any order where they are concurrent; list it, for instance as `take-both-keep-order`
        `ResolutionMatrix`: `Set` replaces what was there, but nothing is said of `Set` and `set`, a pair that is so `take-both`: both are kept, in any order where they are concurrent; list it, for instance as `take-one`
        `ResolutionMatrix`: `set` replaces what was there, but nothing is said of `set` and `set`, a pair that is so `take-both`: both are kept, in any order where they are concurrent; list it, for instance as `take-one`
        `Types`: `del` is in no entry of the matrix: it is `take-both` with every type, so its operations run in any order and none is ever replaced
        the config: `Set` and `set` differ only by case and are two types
    "#]].assert_eq(&warnings(
        &(matrix(&[
            "set inc take-both-keep-order",
            "add add logic:merge",
            "add set take-both replace-wins",
            "Set Set take-one",
        ]) + "\nTypes: {del: {Undo: x}}"),
    ));
}

#[test]
fn table_5_of_the_report_is_told_that_it_leaves_set_and_set_out() {
    let table_5 = matrix(&[
        "set inc take-both-keep-order",
        "inc set take-both-reverse-order",
        "inc inc take-both",
    ]);
    expect![[r#"
        `ResolutionMatrix`: `set` replaces what was there, but nothing is said of `set` and `set`, a pair that is so `take-both`: both are kept, in any order where they are concurrent; list it, for instance as `take-one`
    "#]].assert_eq(&warnings(&table_5));
}

#[test]
fn tables_4_and_6_of_the_report_give_no_warning() {
    assert_eq!(warnings(&matrix(&["apply apply take-one"])), "");
    let table_6 =
        ["set add take-both-keep-order", "add set take-both-reverse-order", "set set take-one"];
    assert_eq!(warnings(&matrix(&table_6)), "");
}

#[test]
fn types_that_can_rule_each_other_out_in_a_circle_are_named() {
    let beats = |a: &str, b: &str, choice: &str| {
        [
            format!("{a} {b} take-both-keep-order{choice}"),
            format!("{b} {a} take-both-reverse-order{choice}"),
        ]
    };
    let circle = |pairs: &[[String; 2]], more: &[&str]| {
        let entries: Vec<_> = pairs.iter().flatten().map(String::as_str).collect();
        let text = matrix(&[&entries, more].concat());
        let circles = parsed(&text).warnings.into_iter().map(|warning| warning.doubt.to_string());
        circles.filter(|doubt| doubt.contains("circle")).collect::<Vec<_>>().join("\n")
    };
    let beats_all = [beats("rock", "scissors", ""), beats("scissors", "paper", "")];
    assert_eq!(circle(&beats_all, &[]), "", "a chain is not a circle");
    assert_eq!(
        circle(&beats_all, &["rock paper take-one", "paper rock take-one"]),
        "concurrent operations of the types `paper`, `rock`, `scissors` can rule each other out in \
         a circle; the last of them in the total order then stays",
        "a later paper beats rock, which beats scissors, which beat paper"
    );
    let round = [beats_all.as_slice(), &[beats("paper", "rock", "")]].concat();
    assert!(circle(&round, &["well well take-one"]).contains("`paper`, `rock`, `scissors`"));
    let kept = [beats_all.as_slice(), &[beats("paper", "rock", " keep-both")]].concat();
    assert_eq!(circle(&kept, &[]), "", "keep-both rules nobody out");
    let last_writer = [
        "a b take-one",
        "b a take-one",
        "b c take-one",
        "c b take-one",
        "a c take-one",
        "c a take-one",
    ];
    assert_eq!(circle(&[], &last_writer), "", "later beats earlier: that always ends");
}

#[test]
fn profiles_are_flawless() {
    for profile in profiles() {
        // Documents that are merged are nothing without a target.
        let config = Config { state: profile.state.clone(), ..profile.config.clone() };
        assert_eq!(config.validate().unwrap(), [], "{}", profile.name);
        assert!(profile.why.ends_with('.') && profile.why.contains("so"), "{}", profile.why);
    }
    let names: Vec<_> = profiles().iter().map(|profile| profile.name).collect();
    assert_eq!(names, ["file", "http", "json", "kubernetes", "redis", "text"]);
}
