//! What a document says is what the config holds, in JSON and in YAML.

use expect_test::expect;

use super::super::{Config, Handling, Rule, StateCommands, profile};
use super::{kind, parsed, problems, said, warnings};
use crate::config::Concurrent;

const JSON: &str = r#"{"ResolutionMatrix": [
  {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
  {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
  {"Before": "inc", "After": "inc", "Result": "take-both-any-order"},
  {"Before": "set", "After": "set", "Result": "take-one"}],
 "Types": {"inc": {"Undo": "redis-cli decrby __ID__ 1", "Check": "true", "Decompose": "split"},
           "set": {"Idempotent": true}},
 "Snapshot": "redis-cli dump __ID__", "Restore": "redis-cli restore __ID__"}"#;

const YAML: &str = "
# The same, by hand.
resolution_matrix:
  - {before: set, after: inc, result: TAKE_BOTH_KEEP_ORDER, concurrent: replace-wins}
  - {before: inc, after: set, result: take-both-reverse-order}
  - before: inc
    after: inc
    result: take-both
  - before: set
    after: set
    result: take-one
types:
  inc:
    undo: redis-cli decrby __ID__ 1
    idempotent: false
    check: 'true'
    decompose: split
  set: {Idempotent: true}
snapshot: redis-cli dump __ID__
restore: redis-cli restore __ID__
";

#[test]
fn the_same_document_in_json_and_yaml_is_the_same_config() {
    let command = |text: &str| Some(text.to_owned());
    let expected = Config {
        matrix: [
            ((kind("set"), kind("inc")), said(Rule::KeepOrder)),
            ((kind("inc"), kind("set")), said(Rule::ReverseOrder)),
            ((kind("inc"), kind("inc")), said(Rule::TakeBoth)),
            ((kind("set"), kind("set")), said(Rule::TakeOne)),
        ]
        .into(),
        types: [
            (
                kind("inc"),
                Handling {
                    undo: command("redis-cli decrby __ID__ 1"),
                    idempotent: false,
                    assigns: false,
                    check: command("true"),
                    decompose: command("split"),
                },
            ),
            (kind("set"), Handling { idempotent: true, ..Handling::default() }),
        ]
        .into(),
        state: Some(StateCommands {
            read: "redis-cli dump __ID__".to_owned(),
            write: "redis-cli restore __ID__".to_owned(),
        }),
        hooks: Vec::new(),
    };
    for text in [JSON, YAML] {
        let parsed = parsed(text);
        assert_eq!(parsed.config, expected);
        assert_eq!(parsed.warnings, []);
    }
}

#[test]
fn every_result_has_its_rule() {
    let rules = [
        ("take-one", Rule::TakeOne),
        ("take-both", Rule::TakeBoth),
        ("ordered", Rule::Ordered),
        ("logic:text", Rule::Logic("text".to_owned())),
    ];
    for (result, rule) in rules {
        let text = format!("ResolutionMatrix: [{{Before: a, After: a, Result: '{result}'}}]");
        let config = parsed(&text).config;
        assert_eq!(config.resolution(&kind("a"), &kind("a")), &said(rule));
    }
}

#[test]
fn keep_both_is_kept() {
    let config = parsed(
        "ResolutionMatrix:
           - {Before: set, After: inc, Result: take-both-keep-order, Concurrent: Keep_Both}
           - {Before: inc, After: set, Result: take-both-reverse-order, Concurrent: keep-both}",
    )
    .config;
    for said in config.matrix.values() {
        assert_eq!(said.concurrent, Concurrent::KeepBoth);
    }
}

#[test]
fn the_smallest_document_is_an_empty_object() {
    assert_eq!(parsed("{}").config, Config::default());
    expect![[r#"
        line 1, column 1: found nothing; expected an object
    "#]]
    .assert_eq(&problems(""));
}

#[test]
fn a_document_starts_from_a_profile_and_overrides_it_key_by_key() {
    let redis = &profile("redis").unwrap().config;
    assert_eq!(&parsed("Profile: redis").config, redis);

    let config = parsed(
        "Profile: redis
Types: {set: {Undo: back}, inc: {Idempotent: true}, push: {}}
ResolutionMatrix:
  - {Before: push, After: push, Result: ordered}
  - {Before: inc, After: inc, Result: take-one}",
    )
    .config;
    let set = Handling { undo: Some("back".to_owned()), idempotent: true, ..Handling::default() };
    assert_eq!(config.handling(&kind("set")), &set);
    assert!(config.handling(&kind("inc")).idempotent);
    assert!(config.handling(&kind("sadd")).idempotent, "as the profile says");
    assert_eq!(config.resolution(&kind("inc"), &kind("inc")), &said(Rule::TakeOne));
    assert_eq!(config.matrix.len(), redis.matrix.len() + 1);
}

#[test]
fn null_takes_back_what_the_profile_says() {
    let config = parsed("{Profile: redis, Types: {set: {Idempotent: null, Undo: ~}}}").config;
    assert_eq!(config.handling(&kind("set")), &Handling::default());
}

#[test]
fn who_restates_one_direction_of_a_pair_restates_the_pair() {
    let text = "Profile: redis
ResolutionMatrix:
  - {Before: set, After: inc, Result: take-both-keep-order, Concurrent: keep-both}";
    let parsed = parsed(text);
    let mirror = parsed.config.resolution(&kind("inc"), &kind("set"));
    assert_eq!(mirror.rule, Rule::ReverseOrder);
    assert_eq!(mirror.concurrent, Concurrent::KeepBoth);
    assert_eq!(parsed.warnings, []);
}

#[test]
fn a_pair_restated_on_top_of_a_profile_is_warned_of_once() {
    let text = "Profile: redis
ResolutionMatrix:
  - {Before: set, After: inc, Result: 'logic:mine'}";
    expect![[r#"
        `ResolutionMatrix[0]` (line 3, column 5): there is no logic `mine`, and it is taken as `ordered`: both stay, in total order; there are `logic:text`, `logic:json` and `logic:exec:NAME`
    "#]].assert_eq(&warnings(text));
}

#[test]
fn every_problem_of_a_document_is_reported_with_its_place() {
    expect![[r#"
        `ResolutionMatrix[0].After` (line 2, column 30): `a b` is not a valid operation type: a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters; such as `set` or `apply`
        `ResolutionMatrix[0].Result` (line 2, column 47): unknown result `take-won`; did you mean `take-one`?
        `ResolutionMatrix[1]` (line 3, column 3): there is no `Before`; add `Before`
        `ResolutionMatrix[1].Befor` (line 3, column 4): unknown key `Befor`; did you mean `Before`?
        `ResolutionMatrix[1].After` (line 3, column 29): found the number `7`; expected text; put it in quotes
        `ResolutionMatrix[1].Result` (line 3, column 42): found the boolean `true`; expected text; put it in quotes
        `ResolutionMatrix[2].before` (line 4, column 21): `before` is given already, as `Before`; keep one of them
        `ResolutionMatrix[2].Result` (line 4, column 64): unknown result `last-writer`; expected one of `take-one`, `take-both`, `take-both-any-order`, `take-both-keep-order`, `take-both-reverse-order`, `ordered`, `logic:<name>`
        `ResolutionMatrix[2].Concurrent` (line 4, column 93): unknown choice `both`; expected one of `replace-wins`, `keep-both`
        `ResolutionMatrix[3]` (line 5, column 3): found the text `set`; expected an object
        `ResolutionMatrix[4]` (line 5, column 10): found nothing; expected an object
        `Types.inc.Undo` (line 6, column 28): the command is empty; write the command or leave the key out
        `Types.inc.Idempotent` (line 6, column 46): found the text `yes`; expected `true` or `false`
        `Types.inc.Chekc` (line 6, column 53): unknown key `Chekc`; did you mean `Check`?
        `Types.` (line 6, column 68): `` is not a valid operation type: a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters; such as `set` or `apply`
        `Types.del` (line 6, column 76): found a list; expected an object
        `Snapshot` (line 7, column 14): found a list; expected text
        `Snapshots` (line 7, column 37): unknown key `Snapshots`; did you mean `Snapshot`?
        `Profile` (line 8, column 13): unknown profile `kubernets`; did you mean `kubernetes`?
    "#]].assert_eq(&problems(
        r#"{"ResolutionMatrix": [
  {"Before": "set", "After": "a b", "Result": "take-won"},
  {"Befor": "set", "After": 7, "Result": true},
  {"Before": "set", "before": "inc", "After": "inc", "Result": "last-writer", "Concurrent": "both"},
  "set", null],
 "Types": {"inc": {"Undo": "", "Idempotent": "yes", "Chekc": "x"}, "": {}, "del": []},
 "Snapshot": ["x"], "Restore": "y", "Snapshots": 1,
 "Profile": "kubernets"}"#,
    ));
}

#[test]
fn yaml_problems_have_their_place_too() {
    expect![[r#"
        `ResolutionMatrix[0].Result` (line 4, column 13): unknown result `take-both-keep-ordre`; did you mean `take-both-keep-order`?
        `ResolutionMatrix[1]` (line 5, column 5): there is no `Result`; add `Result`
        `Types.inc.Undo` (line 9, column 11): found the boolean `true`; expected text; put it in quotes
        `Types.inc.Idempotent` (line 10, column 17): found the text `no`; expected `true` or `false`
    "#]].assert_eq(&problems(
        "ResolutionMatrix:
  - Before: set
    After: inc
    Result: take-both-keep-ordre
  - Before: set
    After: set
Types:
  inc:
    Undo: true
    Idempotent: no
",
    ));
}

#[test]
fn a_text_that_is_neither_json_nor_yaml_says_where() {
    let texts = [
        "{\"a\": 1,\n \"b\" 2}",
        "{\"Types\": {},\n \"Types\": {}}",
        "Types: {}\n---\nTypes: {}",
        "Types: [",
        "a: b: c",
        "Types: !exec {}",
        "Types: *nowhere",
        "Snapshot: 'x",
        "{\"Snapshot\": \"\u{7f}\"}",
    ];
    expect![[r#"
        line 2, column 6: the document cannot be read: invalid trailing content after double-quoted scalar; expected JSON or YAML
        line 2, column 2: `Types` is given already, as `Types`; keep one of them
        line 3, column 1: a second document begins here; expected one
        line 1, column 8: the document cannot be read: unclosed bracket '['; expected JSON or YAML
        line 1, column 5: the document cannot be read: mapping values are not allowed in this context; expected JSON or YAML
        line 1, column 14: the document cannot be read: unsupported tag `!exec`; expected JSON or YAML
        line 1, column 8: the document cannot be read: reference to unknown value; expected JSON or YAML
        line 1, column 11: the document cannot be read: unclosed quote; expected JSON or YAML
        line 1, column 15: the document cannot be read: unexpected character: `\u{7f}'; expected JSON or YAML
    "#]].assert_eq(&texts.map(problems).concat());
}
