//! What texts mean: the tree, the canonical text, and both ways in.

use cheops_scope::{Location, LocationKind, Scope, parse, parse_location};
use expect_test::{Expect, expect};

/// The tree as an indented outline, with the text each node stands for.
fn outline(text: &str, scope: &Scope) -> String {
    let mut lines = Vec::new();
    for binding in &scope.bindings {
        lines.push(format!("{}:", binding.service.value));
        node(text, &binding.location, 1, &mut lines);
        if let Some(given) = &binding.options.consistency {
            lines.push(format!("  consistency {:?}", given.value));
        }
    }
    lines.join("\n")
}

fn node(text: &str, location: &Location, depth: usize, lines: &mut Vec<String>) {
    let (name, parts): (&str, Vec<&Location>) = match &location.kind {
        LocationKind::Site(_) => ("site", Vec::new()),
        LocationKind::Both(parts) => ("both", parts.iter().collect()),
        LocationKind::Spread(parts) => ("spread", parts.iter().collect()),
        LocationKind::Otherwise(parts) => ("otherwise", parts.iter().collect()),
        LocationKind::Around { centre, .. } => ("around", vec![centre]),
    };
    let written = &text[location.span.start..location.span.end];
    lines.push(format!("{}{name} `{written}`", "  ".repeat(depth)));
    for part in parts {
        node(text, part, depth + 1, lines);
    }
}

fn check(text: &str, want: &Expect) {
    let scope = parse(text).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    want.assert_eq(&outline(text, &scope));
}

#[test]
fn one_service_at_one_site() {
    check(
        "image: paris",
        &expect![[r#"
        image:
          site `paris`"#]],
    );
}

#[test]
fn several_services_with_braces_and_free_white_space() {
    check(
        "\t{ image :paris,\n  compute:lyon }\r\n",
        &expect![[r#"
        image:
          site `paris`
        compute:
          site `lyon`"#]],
    );
}

#[test]
fn and_binds_tighter_than_percent_which_binds_tighter_than_semicolon() {
    check(
        "s: a ; b % c & d",
        &expect![[r#"
        s:
          otherwise `a ; b % c & d`
            site `a`
            spread `b % c & d`
              site `b`
              both `c & d`
                site `c`
                site `d`"#]],
    );
    check(
        "s: a & b % c ; d",
        &expect![[r#"
        s:
          otherwise `a & b % c ; d`
            spread `a & b % c`
              both `a & b`
                site `a`
                site `b`
              site `c`
            site `d`"#]],
    );
}

#[test]
fn parentheses_group_and_are_kept_as_nesting() {
    check(
        "s: (a ; b) & c & (d & e)",
        &expect![[r#"
        s:
          both `(a ; b) & c & (d & e)`
            otherwise `(a ; b)`
              site `a`
              site `b`
            site `c`
            both `(d & e)`
              site `d`
              site `e`"#]],
    );
}

#[test]
fn parentheses_around_one_site_say_nothing() {
    check(
        "s: ((a))",
        &expect![[r#"
        s:
          site `a`"#]],
    );
}

#[test]
fn around_takes_any_location_and_a_time() {
    check(
        "s: around((a & b) ; c, 1.5 ms) % around(around(d, 1s), 20us)",
        &expect![[r#"
        s:
          spread `around((a & b) ; c, 1.5 ms) % around(around(d, 1s), 20us)`
            around `around((a & b) ; c, 1.5 ms)`
              otherwise `(a & b) ; c`
                both `(a & b)`
                  site `a`
                  site `b`
                site `c`
            around `around(around(d, 1s), 20us)`
              around `around(d, 1s)`
                site `d`"#]],
    );
}

#[test]
fn around_is_a_site_like_any_other_without_its_parenthesis() {
    check(
        "around: around & 10ms",
        &expect![[r#"
        around:
          both `around & 10ms`
            site `around`
            site `10ms`"#]],
    );
}

#[test]
fn options_follow_the_location() {
    check(
        "s: a & b [consistency=strong], t: c[ consistency = none ]",
        &expect![[r#"
        s:
          both `a & b`
            site `a`
            site `b`
          consistency Strong
        t:
          site `c`
          consistency None"#]],
    );
}

#[test]
fn the_canonical_text_has_braces_single_spaces_and_no_idle_parentheses() {
    for (text, want) in [
        ("image:paris", "{image: paris}"),
        ("{ image:a&b,compute:c;d }", "{image: a & b, compute: c ; d}"),
        ("s: ((a & b)) % c", "{s: a & b % c}"),
        ("s: a & (b % c)", "{s: a & (b % c)}"),
        ("s: a & (b & c)", "{s: a & (b & c)}"),
        ("s: (a ; b) ; c", "{s: (a ; b) ; c}"),
        ("s: (a & b) ; (c % d)", "{s: a & b ; c % d}"),
        ("s: around((a ; b), 1500us)", "{s: around(a ; b, 1500us)}"),
        ("s: around(a, 1.5s)", "{s: around(a, 1500ms)}"),
        ("s: a[consistency=none]", "{s: a [consistency=none]}"),
    ] {
        let scope = parse(text).unwrap();
        assert_eq!(scope.to_string(), want, "{text}");
        let again = parse(want).unwrap();
        assert_eq!(again.without_spans(), scope.without_spans(), "{text}");
    }
}

#[test]
fn a_location_can_stand_by_itself() {
    let location = parse_location("site1&site2 & site3").unwrap();
    assert_eq!(location.to_string(), "site1 & site2 & site3");
}

#[test]
fn the_tree_goes_out_as_json() {
    let scope = parse("s: a & around(b, 10ms) [consistency=strong]").unwrap();
    let json = serde_json::to_string(&scope.without_spans()).unwrap();
    expect![[r#"{"bindings":[{"service":{"value":"s"},"location":{"kind":{"both":[{"kind":{"site":"a"}},{"kind":{"around":{"centre":{"kind":{"site":"b"}},"within_us":10000}}}]}},"options":{"consistency":{"value":"strong"}}}]}"#]].assert_eq(&json.replace(r#","span":{"start":0,"end":0}"#, ""));
}

#[test]
fn scopes_that_say_the_same_have_one_canonical_text() {
    let canonical = |text: &str| cheops_scope::parse(text).unwrap().canonical();
    let same =
        ["{a: x & (y & z), b: y ; x}", "{ b:y;x , a:(z&y)&x }", "{b: y ; x, a: (y & z) & x}"];
    assert_eq!(canonical(same[0]), canonical(same[1]));
    assert_eq!(canonical(same[1]), canonical(same[2]));
    for (one, other) in [("a: x ; y", "a: y ; x"), ("a: x % y", "a: y % x"), ("a: x", "b: x")] {
        assert_ne!(canonical(one), canonical(other), "the order says something there");
    }
    assert_eq!(canonical(&canonical(same[0])), canonical(same[0]));
}
