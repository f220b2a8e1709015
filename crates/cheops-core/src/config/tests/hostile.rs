//! Texts made to hurt: they end in a problem, soon, and without a deep stack.

use expect_test::expect;

use super::problems;
use crate::config::Config;

/// Ten levels of nine references each: 9^10 values when written out.
fn billion_laughs() -> String {
    let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in ('a'..='i').zip('b'..='j') {
        let nine = vec![format!("*{from}"); 9].join(", ");
        text.push_str(&format!("{to}: &{to} [{nine}]\n"));
    }
    text
}

#[test]
fn aliases_cannot_blow_a_text_up() {
    expect![[r#"
        line 4, column 36: there are too many values, levels or aliases; write it out plainly
    "#]]
    .assert_eq(&problems(&billion_laughs()));
    expect![[r#"
        line 1, column 15: the document cannot be read: Recursive reference not allowed here; expected JSON or YAML
    "#]].assert_eq(&problems("Types: &a {x: *a}"));
}

#[test]
fn deep_nesting_is_cut_off() {
    let deep = 200_000;
    let texts = [
        "[".repeat(deep),
        "{\"a\":".repeat(deep),
        "- ".repeat(deep),
        "? ".repeat(deep),
        "a: {".repeat(deep),
        "Types: ".to_owned() + &"[".repeat(17) + &"]".repeat(17),
    ];
    expect![[r#"
        line 1, column 17: the document cannot be read: recursion limit exceeded; expected JSON or YAML
        line 1, column 81: the document cannot be read: recursion limit exceeded; expected JSON or YAML
        line 1, column 33: there are too many values, levels or aliases; write it out plainly
        line 1, column 33: there are too many values, levels or aliases; write it out plainly
        line 1, column 64: there are too many values, levels or aliases; write it out plainly
        line 1, column 24: the document cannot be read: recursion limit exceeded; expected JSON or YAML
    "#]].assert_eq(&texts.each_ref().map(|text| problems(text)).concat());
}

#[test]
fn a_flood_of_values_is_cut_off() {
    let texts = ["- a\n".repeat(200_000), "[".to_owned() + &"1,".repeat(400_000) + "]"];
    expect![[r#"
        line 65536, column 3: there are too many values, levels or aliases; write it out plainly
        line 1, column 131072: there are too many values, levels or aliases; write it out plainly
    "#]]
    .assert_eq(&texts.each_ref().map(|text| problems(text)).concat());
}

#[test]
fn ordinary_aliases_work() {
    let text = "ResolutionMatrix:
  - &same {Before: a, After: a, Result: ordered}
  - {<<: *same, Before: b, After: b}";
    assert_eq!(Config::parse(text).unwrap().config.matrix.len(), 2);
}

#[test]
fn long_names_do_not_make_long_messages() {
    let long = "x".repeat(100_000);
    let texts = [
        format!("{{\"{}\": 1}}", "x".repeat(1000)),
        format!("Profile: {long}"),
        format!("ResolutionMatrix: [{{Before: {long}, After: {long}, Result: {long}}}]"),
    ];
    for text in texts {
        let message = problems(&text);
        assert!(message.len() < 1500, "{} bytes: {message}", message.len());
    }
}

#[test]
fn many_comments_are_no_problem() {
    let text = format!("Types:\n{}  set: {{}}", "  # why\n".repeat(500));
    assert!(Config::parse(&text).is_ok(), "{:?}", Config::parse(&text));
}
