//! What the profiles mean, spelled out.

use std::fmt::Write;

use expect_test::expect;

use super::super::{Config, profile};
use super::parsed;

fn sentences(config: &Config) -> String {
    config.table().iter().fold(String::new(), |mut all, row| {
        writeln!(all, "{}", row.sentence()).unwrap();
        all
    })
}

fn of_profile(name: &str) -> String {
    sentences(&profile(name).unwrap().config)
}

#[test]
fn file_in_plain_words() {
    expect![[r#"
        `add` made on `add` is added after it; concurrent: both stay, the earlier first
        `set` made on `add` replaces all before it; concurrent, `add` earlier: only `set` stays
        `add` made on `set` is added after it; concurrent, `set` earlier: only `set` stays
        `set` made on `set` replaces all before it; concurrent: only the later stays
    "#]]
    .assert_eq(&of_profile("file"));
}

#[test]
fn http_in_plain_words() {
    expect![[r#"
        `create` made on `create` is added after it; concurrent: both stay, the earlier first
        `delete` made on `create` replaces all before it; concurrent, `create` earlier: only `delete` stays
        `part` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `patch` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `post` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `put` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `create` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `delete` made on `delete` replaces all before it; concurrent: only the later stays
        `part` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `patch` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `post` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `put` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `create` made on `part` is added after it; concurrent, `part` earlier: both stay, `part` first
        `delete` made on `part` replaces all before it; concurrent, `part` earlier: only `delete` stays
        `part` made on `part` is added after it; concurrent: both stay, the earlier first
        `patch` made on `part` is added after it; concurrent, `part` earlier: both stay, `part` first
        `post` made on `part` is added after it; concurrent, `part` earlier: both stay, `part` first
        `put` made on `part` is added after it; concurrent, `part` earlier: both stay, `part` first
        `create` made on `patch` is added after it; concurrent, `patch` earlier: both stay, `patch` first
        `delete` made on `patch` replaces all before it; concurrent, `patch` earlier: only `delete` stays
        `part` made on `patch` is added after it; concurrent, `patch` earlier: both stay, `patch` first
        `patch` made on `patch` is added after it; concurrent: both stay, the earlier first
        `post` made on `patch` is added after it; concurrent, `patch` earlier: both stay, `patch` first
        `put` made on `patch` replaces all before it, if none is `create` or `part` or `post`; concurrent, `patch` earlier: only `put` stays
        `create` made on `post` is added after it; concurrent, `post` earlier: both stay, `post` first
        `delete` made on `post` replaces all before it; concurrent, `post` earlier: only `delete` stays
        `part` made on `post` is added after it; concurrent, `post` earlier: both stay, `post` first
        `patch` made on `post` is added after it; concurrent, `post` earlier: both stay, `post` first
        `post` made on `post` is added after it; concurrent: both stay, the earlier first
        `put` made on `post` is added after it; concurrent, `post` earlier: both stay, `post` first
        `create` made on `put` is added after it; concurrent, `put` earlier: both stay, `put` first
        `delete` made on `put` replaces all before it; concurrent, `put` earlier: only `delete` stays
        `part` made on `put` is added after it; concurrent, `put` earlier: both stay, `put` first
        `patch` made on `put` is added after it; concurrent, `put` earlier: only `put` stays
        `post` made on `put` is added after it; concurrent, `put` earlier: both stay, `put` first
        `put` made on `put` replaces all before it, if none is `create` or `part` or `post`; concurrent: only the later stays
    "#]].assert_eq(&of_profile("http"));
}

#[test]
fn kubernetes_in_plain_words() {
    expect![[r#"
        `apply` made on `apply` is added after it; concurrent: both stay, the earlier first
        `create` made on `apply` is added after it; concurrent, `apply` earlier: both stay, `apply` first
        `delete` made on `apply` replaces all before it; concurrent, `apply` earlier: only `delete` stays
        `patch` made on `apply` is added after it; concurrent, `apply` earlier: both stay, `apply` first
        `replace` made on `apply` is added after it; concurrent, `apply` earlier: both stay, `apply` first
        `apply` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `create` made on `create` is added after it; concurrent: both stay, the earlier first
        `delete` made on `create` replaces all before it; concurrent, `create` earlier: only `delete` stays
        `patch` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `replace` made on `create` is added after it; concurrent, `create` earlier: both stay, `create` first
        `apply` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `create` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `delete` made on `delete` replaces all before it; concurrent: only the later stays
        `patch` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `replace` made on `delete` is added after it; concurrent, `delete` earlier: only `delete` stays
        `apply` made on `patch` is added after it; concurrent, `patch` earlier: both stay, `patch` first
        `create` made on `patch` is added after it; concurrent, `patch` earlier: both stay, `patch` first
        `delete` made on `patch` replaces all before it; concurrent, `patch` earlier: only `delete` stays
        `patch` made on `patch` is added after it; concurrent: both stay, the earlier first
        `replace` made on `patch` replaces all before it, if none is `apply` or `create`; concurrent, `patch` earlier: only `replace` stays
        `apply` made on `replace` is added after it; concurrent, `replace` earlier: both stay, `replace` first
        `create` made on `replace` is added after it; concurrent, `replace` earlier: both stay, `replace` first
        `delete` made on `replace` replaces all before it; concurrent, `replace` earlier: only `delete` stays
        `patch` made on `replace` is added after it; concurrent, `replace` earlier: only `replace` stays
        `replace` made on `replace` replaces all before it, if none is `apply` or `create`; concurrent: only the later stays
    "#]].assert_eq(&of_profile("kubernetes"));
}

#[test]
fn redis_in_plain_words() {
    expect![[r#"
        `del` made on `del` replaces all before it; concurrent: only the later stays
        `inc` made on `del` is added after it; concurrent, `del` earlier: only `del` stays
        `sadd` made on `del` is added after it; concurrent, `del` earlier: only `del` stays
        `set` made on `del` replaces all before it; concurrent, `del` earlier: only `set` stays
        `srem` made on `del` is added after it; concurrent, `del` earlier: only `del` stays
        `del` made on `inc` replaces all before it; concurrent, `inc` earlier: only `del` stays
        `inc` made on `inc` is added after it; concurrent: both stay, in any order
        `sadd` made on `inc` is added after it; concurrent, `inc` earlier: both stay, `inc` first
        `set` made on `inc` replaces all before it; concurrent, `inc` earlier: only `set` stays
        `srem` made on `inc` is added after it; concurrent, `inc` earlier: both stay, `inc` first
        `del` made on `sadd` replaces all before it; concurrent, `sadd` earlier: only `del` stays
        `inc` made on `sadd` is added after it; concurrent, `sadd` earlier: both stay, `sadd` first
        `sadd` made on `sadd` is added after it; concurrent: both stay, in any order
        `set` made on `sadd` replaces all before it; concurrent, `sadd` earlier: only `set` stays
        `srem` made on `sadd` is added after it; concurrent, `sadd` earlier: both stay, `sadd` first
        `del` made on `set` replaces all before it; concurrent, `set` earlier: only `del` stays
        `inc` made on `set` is added after it; concurrent, `set` earlier: only `set` stays
        `sadd` made on `set` is added after it; concurrent, `set` earlier: only `set` stays
        `set` made on `set` replaces all before it; concurrent: only the later stays
        `srem` made on `set` is added after it; concurrent, `set` earlier: only `set` stays
        `del` made on `srem` replaces all before it; concurrent, `srem` earlier: only `del` stays
        `inc` made on `srem` is added after it; concurrent, `srem` earlier: both stay, `srem` first
        `sadd` made on `srem` is added after it; concurrent, `srem` earlier: both stay, `srem` first
        `set` made on `srem` replaces all before it; concurrent, `srem` earlier: only `set` stays
        `srem` made on `srem` is added after it; concurrent: both stay, in any order
    "#]]
    .assert_eq(&of_profile("redis"));
}

#[test]
fn keep_both_logic_and_silence_in_plain_words() {
    expect![[r#"
        `inc` made on `inc` is added after it; concurrent: both stay, the earlier first
        `set` made on `inc` replaces all before it; concurrent, `inc` earlier: both stay, `set` first
        `inc` made on `set` is added after it; concurrent, `set` earlier: both stay, `set` first
        `set` made on `set` is added after it; concurrent: both stay, in any order (not listed)
    "#]].assert_eq(&sentences(
        &parsed(
            "ResolutionMatrix:
               - {Before: set, After: inc, Result: take-both-keep-order, Concurrent: keep-both}
               - {Before: inc, After: set, Result: take-both-reverse-order, Concurrent: keep-both}
               - {Before: inc, After: inc, Result: 'logic:exec'}",
        )
        .config,
    ));
}

#[test]
fn a_profile_is_written_as_a_document_in_the_report_s_spelling() {
    expect![[r#"
        {
          "ResolutionMatrix": [
            {
              "Before": "add",
              "After": "add",
              "Result": "ordered"
            },
            {
              "Before": "add",
              "After": "set",
              "Result": "take-both-reverse-order"
            },
            {
              "Before": "set",
              "After": "add",
              "Result": "take-both-keep-order"
            },
            {
              "Before": "set",
              "After": "set",
              "Result": "take-one"
            }
          ],
          "Types": {
            "add": {
              "Idempotent": false
            },
            "set": {
              "Idempotent": true
            }
          }
        }"#]]
    .assert_eq(&profile("file").unwrap().config.to_json());
}
