//! `cheops matrix`.

use expect_test::expect;
use serde_json::json;

use crate::binary::running::{cheops, cheops_reading, file};

/// The matrix of the technical report's Redis experiment, with its one gap filled.
const REDIS: &str = r#"{"ResolutionMatrix": [
  {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
  {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
  {"Before": "inc", "After": "inc", "Result": "take-both"},
  {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const WRONG: &str = r#"{"ResolutionMatrix": [
  {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
  {"Before": "inc", "After": "set", "Result": "take-both"},
  {"Before": "inc", "After": "inc", "Result": "take-won"}],
  "Typs": {}}"#;

fn check(input: &str, format: &str) -> crate::binary::running::Ran {
    cheops_reading(&["-o", format, "matrix", "check", "-"], input)
}

#[test]
fn a_good_matrix_is_spelled_out_pair_by_pair() {
    check(REDIS, "table").check(
        0,
        &expect![[r#"
            first  second  rule                     in sequence  if concurrent
            ────────────────────────────────────────────────────────────────────────
            inc    inc     take-both                added        both, in any order
            inc    set     take-both-reverse-order  replaces     only set
            set    inc     take-both-keep-order     added        only set
            set    set     take-one                 replaces     only the later

            In sequence: the second was made where the first was known; it is added after
            it, or replaces all before it. If concurrent: neither knew of the other, and the
            first is the earlier; who stays, and in which order.

            standard input: ok, 2 types, 4 pairs
        "#]],
    );
}

#[test]
fn a_matrix_can_be_yaml_in_a_file_and_build_on_a_profile() {
    let yaml = "Profile: file\nResolutionMatrix:\n- {Before: add, After: add, Result: take-both}\n";
    let path = file("on-top.yaml", yaml.as_bytes());
    let ran = cheops(&["matrix", "check", path.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("add    add     take-both "), "{}", ran.out);
    assert!(ran.out.ends_with("on-top.yaml: ok, 2 types, 4 pairs\n"), "{}", ran.out);
}

#[test]
fn all_that_is_wrong_is_told_with_its_place() {
    check(WRONG, "table").check(
        1,
        &expect![[r#"
        --- aside
        error: `inc`, `set` is `take-both`, but `ResolutionMatrix[0]` (line 2,
               column 3) says that `set`, `inc` is `take-both-keep-order`
         --> standard input:3:3
          |
        3 |   {"Before": "inc", "After": "set", "Result": "take-both"},
          |   ^ ResolutionMatrix[1]
          |
          = help: one of them must change: to agree with the other, this one is
                  `take-both-reverse-order`

        error: unknown result `take-won`
         --> standard input:4:47
          |
        4 |   {"Before": "inc", "After": "inc", "Result": "take-won"}],
          |                                               ^^^^^^^^^^ ResolutionMatrix[2].Result
          |
          = help: did you mean `take-one`?

        error: unknown key `Typs`
         --> standard input:5:3
          |
        5 |   "Typs": {}}
          |   ^^^^^^ Typs
          |
          = help: did you mean `Types`?

        standard input: 3 problems, so it cannot be used
    "#]],
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let gap = "ResolutionMatrix:\n- {Before: set, After: inc, Result: take-both-keep-order}\n\
               - {Before: set, After: set, Result: take-one}\n";
    check(gap, "table").check(
        0,
        &expect![[r#"
            first  second  rule                  in sequence  if concurrent
            ─────────────────────────────────────────────────────────────────────
            inc    inc     (take-both)           added        both, in any order
            inc    set     (take-both)           added        both, in any order
            set    inc     take-both-keep-order  added        only set
            set    set     take-one              replaces     only the later

            In sequence: the second was made where the first was known; it is added after
            it, or replaces all before it. If concurrent: neither knew of the other, and the
            first is the earlier; who stays, and in which order.
            A pair in parentheses is not listed, and so `take-both`.

            standard input: ok, 2 types, 4 pairs, 1 warning
            --- aside
            warning: `set`, `inc` is `take-both-keep-order`, but `inc`, `set` is not
                     listed and so `take-both`: `set` made on `inc` is added after it,
                     and where they are concurrent and `inc` is the earlier, both run, in
                     any order
             --> standard input:2:3
              |
            2 | - {Before: set, After: inc, Result: take-both-keep-order}
              |   ^ ResolutionMatrix[0]
              |
              = help: list it as `take-both-reverse-order`

        "#]],
    );
}

#[test]
fn what_is_neither_json_nor_yaml_is_refused() {
    check("{\"ResolutionMatrix\": [", "table").check(
        1,
        &expect![[r#"
        --- aside
        error: the document cannot be read: unclosed bracket '['
         --> standard input:1:22
          |
        1 | {"ResolutionMatrix": [
          |                      ^
          |
          = help: expected JSON or YAML

        standard input: 1 problem, so it cannot be used
    "#]],
    );
    assert_eq!(check("", "table").code, Some(1));
    assert_eq!(check("[1, 2", "table").code, Some(1));
}

#[test]
fn programs_get_pairs_problems_and_warnings_as_data() {
    let answer = check(REDIS, "json").json();
    assert_eq!(answer["ok"], json!(true));
    assert_eq!(answer["pairs"].as_array().unwrap().len(), 4);
    expect![[r#"
        {
          "concurrent": "replace-wins",
          "first": "inc",
          "if_concurrent": "only-second",
          "in_sequence": "replaces",
          "listed": true,
          "rule": "take-both-reverse-order",
          "second": "set",
          "sentence": "`set` made on `inc` replaces all before it; concurrent, `inc` earlier: only `set` stays"
        }"#]].assert_eq(&serde_json::to_string_pretty(&answer["pairs"][1]).unwrap());

    let ran = check(WRONG, "json");
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    expect![[r#"
        [
          {
            "column": 3,
            "line": 3,
            "message": "`inc`, `set` is `take-both`, but `ResolutionMatrix[0]` (line 2, column 3) says that `set`, `inc` is `take-both-keep-order`",
            "path": "ResolutionMatrix[1]",
            "remedy": "one of them must change: to agree with the other, this one is `take-both-reverse-order`"
          },
          {
            "column": 47,
            "line": 4,
            "message": "unknown result `take-won`",
            "path": "ResolutionMatrix[2].Result",
            "remedy": "did you mean `take-one`?"
          },
          {
            "column": 3,
            "line": 5,
            "message": "unknown key `Typs`",
            "path": "Typs",
            "remedy": "did you mean `Types`?"
          }
        ]"#]].assert_eq(&serde_json::to_string_pretty(&ran.json()["problems"]).unwrap());
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    cheops(&["matrix", "check", "/no/such/file"]).check(
        2,
        &expect![[r#"
        --- aside
        error: cannot read `/no/such/file`
        because: No such file or directory (os error 2)
        hint: `-` reads from standard input
    "#]],
    );
    cheops(&["matrix", "check", "/"]).check(
        2,
        &expect![[r#"
        --- aside
        error: cannot read `/`
        because: Is a directory (os error 21)
        hint: give a file, in JSON or YAML
    "#]],
    );
    let answer = cheops(&["-o", "json", "matrix", "check", "/no/such/file"]).json();
    assert_eq!(answer["error"]["message"], json!("cannot read `/no/such/file`"));
}

#[test]
fn a_file_that_is_too_long_or_no_text_is_refused() {
    let long = file("long.json", &vec![b' '; 1024 * 1024 + 1]);
    let ran = cheops(&["matrix", "check", long.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("longer than 1048576 bytes"), "{}", ran.err);

    let bytes = file("bytes.json", &[b'{', 0xff, 0xfe]);
    let ran = cheops(&["matrix", "check", bytes.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is not text"), "{}", ran.err);
}

#[test]
fn what_a_file_says_cannot_steer_the_terminal() {
    let hostile = "{\"ResolutionMatrix\": [{\"Before\": \"a\", \"After\": \"a\", \
                   \"Result\": \"\\u001b[2Jx\\u0007\"}], \"\\u001b[31m\": 1}";
    let mut command = crate::binary::running::command(&["matrix", "check", "-"]);
    let path = file("hostile.json", hostile.as_bytes());
    command.env("CLICOLOR_FORCE", "1").stdin(std::fs::File::open(path).unwrap());
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(!err.contains("\u{1b}[2J") && !err.contains('\u{7}'), "{err:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_profile_is_shown_as_the_document_that_gives_it() {
    let shown = cheops(&["matrix", "show", "redis"]);
    assert_eq!(shown.code, Some(0));
    let checked = check(&shown.out, "table");
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    let table = |out: &str| out.rsplit_once("\n\n").unwrap().0.to_owned();
    let built_in = cheops(&["matrix", "check", "--profile", "redis"]);
    assert_eq!(table(&checked.out), table(&built_in.out));
}

#[test]
fn profiles_are_listed_with_their_why() {
    let ran = cheops(&["matrix", "profiles"]);
    assert_eq!(ran.code, Some(0));
    for profile in ["file", "http", "json", "kubernetes", "redis", "text"] {
        assert!(ran.out.contains(&format!("{profile}  ")), "{}", ran.out);
    }
    assert!(ran.out.contains("two appends do not commute"), "{}", ran.out);
    let listed = cheops(&["matrix", "profiles", "-o", "json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 6);
}

#[test]
fn either_a_file_or_a_profile_is_checked_and_its_name_must_exist() {
    assert_eq!(cheops(&["matrix", "check"]).code, Some(2));
    assert_eq!(cheops(&["matrix", "check", "x", "--profile", "redis"]).code, Some(2));
    let ran = cheops(&["matrix", "show", "reddis"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("'redis'"), "{}", ran.err);
}
