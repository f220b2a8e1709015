//! Input made to hurt: it gets an error, in bounded time and stack, never a panic.

use crate::world::france;
use cheops_scope::{
    Code, Look, MAX_DEPTH, MAX_PROBLEMS, MAX_SCOPE_BYTES, Problems, parse, parse_location, resolve,
    resolve_location,
};

const MEGABYTE: usize = 1 << 20;

/// Through every way in; the problems of `resolve`, which has the most to say.
fn refused(text: &str) -> Problems {
    let known = france();
    assert!(parse(text).is_err());
    let _ = parse_location(text);
    let _ = resolve_location(text, &known);
    let problems = resolve(text, &known).expect_err("this should be wrong");
    assert!(!problems.as_slice().is_empty());
    assert!(problems.as_slice().len() <= MAX_PROBLEMS);
    assert!(problems.to_string().len() < 20_000);
    assert!(problems.render(Look::Plain).len() < 100_000);
    problems
}

#[test]
fn a_megabyte_of_anything_is_too_long() {
    for piece in ["(", "&", ",", "a", "a&", "image: paris, ", "😀", "\0", " ", "\n", "{", "["] {
        let problems = refused(&piece.repeat(MEGABYTE / piece.len()));
        assert_eq!(problems.as_slice()[0].code, Code::TooLong, "{piece:?}");
        assert!(problems.to_string().contains(&MAX_SCOPE_BYTES.to_string()));
    }
}

#[test]
fn as_much_as_fits_of_anything_is_read_without_harm() {
    for piece in [
        "(",
        ")",
        "&",
        "%",
        ";",
        ",",
        ":",
        "=",
        "[",
        "]",
        "{",
        "}",
        "|",
        "+",
        "\"",
        "a",
        "a&",
        "(a&",
        "a:",
        "a:b,",
        "a:(",
        "😀",
        "é ",
        "\0",
        "\n",
        "\u{202e}",
        "\r",
        "[a=",
        "around(",
        "image:around(",
        "image: paris, ",
        "paris(",
        "image: x ; ",
        "a:b[",
        "a:b[c=d,",
    ] {
        refused(&piece.repeat(MAX_SCOPE_BYTES / piece.len()));
        refused(&format!("image: {}", piece.repeat(MAX_SCOPE_BYTES / piece.len() - 7)));
    }
}

#[test]
fn ten_thousand_nested_parentheses_are_too_long_and_a_thousand_too_deep() {
    let nested = |depth: usize| format!("image: {}paris{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(refused(&nested(10_000)).as_slice()[0].code, Code::TooLong);

    let problems = refused(&nested(1_000));
    assert_eq!(problems.as_slice().len(), 1, "{problems}");
    assert_eq!(problems.as_slice()[0].code, Code::TooDeep);

    assert_eq!(refused(&nested(MAX_DEPTH + 1)).as_slice()[0].code, Code::TooDeep);
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
}

#[test]
fn nested_arounds_count_as_depth() {
    let nested =
        |depth: usize| format!("image: {}paris{}", "around(".repeat(depth), ", 1ms)".repeat(depth));
    assert!(resolve(&nested(MAX_DEPTH), &france()).is_ok());
    assert_eq!(refused(&nested(MAX_DEPTH + 1)).as_slice()[0].code, Code::TooDeep);
}

#[test]
fn what_prints_too_long_to_be_read_back_is_refused() {
    let sites: Vec<String> = (0..1000).map(|index| format!("s{index}")).collect();
    let text = format!("s:{}", sites.join("&"));
    assert!(text.len() < MAX_SCOPE_BYTES);
    assert!(parse(&text).is_ok());

    let sites: Vec<String> = (0..1500).map(|index| format!("s{index}")).collect();
    let text = format!("s:{}", sites.join("&"));
    assert!(text.len() < MAX_SCOPE_BYTES);
    assert_eq!(parse(&text).expect_err("long").as_slice()[0].code, Code::TooLong);
}

#[test]
fn a_word_as_long_as_the_limit_is_shown_cut() {
    let word = "x".repeat(MAX_SCOPE_BYTES - 10);
    let problems = refused(&format!("image: {word}"));
    assert_eq!(problems.as_slice()[0].code, Code::BadName);
    assert!(problems.as_slice()[0].message.len() < 200);
    assert!(problems.as_slice()[0].found.as_ref().is_some_and(|found| found.len() < 200));
}
