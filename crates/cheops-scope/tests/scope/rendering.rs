//! How problems look: with carets for terminals, as JSON for programs.

use crate::world::france;
use cheops_scope::{Look, Problems, parse, resolve};
use expect_test::{Expect, expect};

fn check(text: &str, want: &Expect) {
    let problems = resolve(text, &france()).expect_err("this should be wrong");
    want.assert_eq(&problems.render(Look::Plain));
}

#[test]
fn unknown_names_come_with_what_was_meant() {
    check(
        "{image: pariss & lyon}",
        &expect![[r#"
        error: unknown site `pariss`
         --> scope:1:9
          |
        1 | {image: pariss & lyon}
          |         ^^^^^^ did you mean `paris`?"#]],
    );
    check(
        "imag: paris",
        &expect![[r#"
        error: unknown service `imag`
         --> scope:1:1
          |
        1 | imag: paris
          | ^^^^ did you mean `image`?"#]],
    );
    check(
        "image: tokyo",
        &expect![[r#"
        error: unknown site `tokyo`
         --> scope:1:8
          |
        1 | image: tokyo
          |        ^^^^^ expected a known site
          |
          = help: the known sites are `brest`, `lyon`, `nantes`, `nice`, `paris` and 1 more"#]],
    );
    check(
        "paris: image",
        &expect![[r#"
        error: unknown service `paris`
         --> scope:1:1
          |
        1 | paris: image
          | ^^^^^ expected a known service
          |
          = help: `paris` is a site, not a service; the known services are `compute`, `image`, `network`

        error: unknown site `image`
         --> scope:1:8
          |
        1 | paris: image
          |        ^^^^^ expected a known site
          |
          = help: `image` is a service, not a site; the known sites are `brest`, `lyon`, `nantes`, `nice`, `paris` and 1 more"#]],
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_text() {
    check(
        "{imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon",
        &expect![[r#"
            error: `{` is never closed
             --> scope:1:1
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              | ^
              |
              = help: add `}` at the end, or drop the `{`

            error: unknown service `imag`
             --> scope:1:2
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |  ^^^^ did you mean `image`?

            error: unknown site `pariss`
             --> scope:1:8
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |        ^^^^^^ did you mean `paris`?

            error: unexpected `&`
             --> scope:1:17
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |                 ^ expected a site such as `paris`, `around(…)` or `(`
              |
              = help: an operator is written once

            error: unknown site `nante`
             --> scope:1:41
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |                                         ^^^^^ did you mean `nantes`?

            error: `10m` is not a round-trip time
             --> scope:1:48
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |                                                ^^^ did you mean `10ms`?
              |
              = help: the units of time are `us`, `ms` and `s`

            error: unexpected `compute`
             --> scope:1:67
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |                                                                   ^^^^^^^ expected a site such as `paris`, `around(…)` or `(`
              |
              = help: a comma stands between two services

            error: service `compute` is placed a second time
             --> scope:1:67
              |
            1 | {imag: pariss & & lyon, compute: around(nante, 10m), image: lyon; compute: lyon
              |                         ------- first placed here                 ^^^^^^^
              |
              = help: a service has one location; join several sites with `&`, `%` or `;`"#]],
    );
}

#[test]
fn nothing_is_not_a_scope() {
    check(
        "",
        &expect![[r#"
        error: the scope is empty
         |
         = help: say which service runs where, such as `image: paris & lyon`"#]],
    );
    check(
        "  ",
        &expect![[r#"
        error: the scope is empty
         --> scope:1:1
          |
        1 |   
          | ^ expected a service and where it runs
          |
          = help: say which service runs where, such as `image: paris & lyon`"#]],
    );
    check(
        "{ }",
        &expect![[r#"
        error: the scope is empty
         --> scope:1:1
          |
        1 | { }
          | ^^^ expected a service and where it runs
          |
          = help: say which service runs where, such as `image: paris & lyon`"#]],
    );
    check(
        "{",
        &expect![[r#"
        error: the scope is empty
         --> scope:1:1
          |
        1 | {
          | ^ expected a service and where it runs
          |
          = help: say which service runs where, such as `image: paris & lyon`"#]],
    );
}

#[test]
fn an_open_parenthesis_points_at_both_ends() {
    check(
        "{image: (paris & lyon}",
        &expect![[r#"
        error: `(` is never closed
         --> scope:1:9
          |
        1 | {image: (paris & lyon}
          |         ^            - `)` is missing here
          |
          = help: add the missing `)`"#]],
    );
}

#[test]
fn a_service_placed_twice_points_at_both_places() {
    check(
        "{image: paris, compute: lyon, image: lyon}",
        &expect![[r#"
        error: service `image` is placed a second time
         --> scope:1:31
          |
        1 | {image: paris, compute: lyon, image: lyon}
          |  ----- first placed here      ^^^^^
          |
          = help: a service has one location; join several sites with `&`, `%` or `;`"#]],
    );
}

#[test]
fn a_repeated_site_points_at_both_places() {
    check(
        "image: paris & (lyon & paris)",
        &expect![[r#"
        error: site `paris` stands twice in one `&` list
         --> scope:1:24
          |
        1 | image: paris & (lyon & paris)
          |        -----           ^^^^^
          |        |
          |        first here
          |
          = help: `&` keeps one copy at each site, so a site can stand in it once"#]],
    );
}

#[test]
fn carets_stand_under_the_right_characters() {
    check(
        "image: 😀😀 & lyoon",
        &expect![[r#"
        error: `😀😀` cannot be the name of a site
         --> scope:1:8
          |
        1 | image: 😀😀 & lyoon
          |        ^^^^
          |
          = help: `😀` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`

        error: unknown site `lyoon`
         --> scope:1:13
          |
        1 | image: 😀😀 & lyoon
          |               ^^^^^ did you mean `lyon`?"#]],
    );
    check(
        "image: 日本 & lyoon",
        &expect![[r#"
        error: `日本` cannot be the name of a site
         --> scope:1:8
          |
        1 | image: 日本 & lyoon
          |        ^^^^
          |
          = help: `日` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`

        error: unknown site `lyoon`
         --> scope:1:13
          |
        1 | image: 日本 & lyoon
          |               ^^^^^ did you mean `lyon`?"#]],
    );
    check(
        "image: paris,\n\tcompute: lyoon\n",
        &expect![[r#"
        error: unknown site `lyoon`
         --> scope:2:11
          |
        2 |     compute: lyoon
          |              ^^^^^ did you mean `lyon`?"#]],
    );
    check(
        "image: a\0b & \u{202e}x & lyoon",
        &expect![[r#"
        error: `a\0b` cannot be the name of a site
         --> scope:1:8
          |
        1 | image: a␀b & �x & lyoon
          |        ^^^
          |
          = help: `\0` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`

        error: `\u{202e}x` cannot be the name of a site
         --> scope:1:14
          |
        1 | image: a␀b & �x & lyoon
          |              ^^
          |
          = help: `\u{202e}` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`

        error: unknown site `lyoon`
         --> scope:1:19
          |
        1 | image: a␀b & �x & lyoon
          |                   ^^^^^ did you mean `lyon`?"#]],
    );
}

#[test]
fn long_lines_are_cut_around_the_carets() {
    let far = format!("image: {}pariss & lyon", "paris ; ".repeat(100));
    check(
        &far,
        &expect![[r#"
        error: unknown site `pariss`
         --> scope:1:808
          |
        1 | ...aris ; paris ; paris ; paris ; pariss & lyon
          |                                   ^^^^^^ did you mean `paris`?"#]],
    );
}

#[test]
fn programs_get_the_same_as_data() {
    let text = "{image: pariss & (lyon}";
    let problems = resolve(text, &france()).expect_err("this should be wrong");
    let json = serde_json::to_string_pretty(&problems).unwrap();
    expect![[r#"
        {
          "problems": [
            {
              "code": "unknown-site",
              "message": "unknown site `pariss`",
              "line": 1,
              "column": 9,
              "span": {
                "start": 8,
                "end": 14
              },
              "found": "pariss",
              "expected": [
                "a known site"
              ],
              "did_you_mean": [
                "paris"
              ]
            },
            {
              "code": "unclosed",
              "message": "`(` is never closed",
              "line": 1,
              "column": 18,
              "span": {
                "start": 17,
                "end": 18
              },
              "found": "(",
              "hint": "add the missing `)`",
              "related": [
                {
                  "message": "`)` is missing here",
                  "line": 1,
                  "column": 23,
                  "span": {
                    "start": 22,
                    "end": 22
                  }
                }
              ]
            }
          ],
          "omitted": 0
        }"#]]
    .assert_eq(&json);

    // And a client that kept its text can show what the terminal of the server would have.
    let received: Problems = serde_json::from_str(&json).unwrap();
    let rendered = received.with_text(text).render(Look::Plain);
    assert_eq!(rendered, problems.render(Look::Plain));
}

#[test]
fn problems_that_came_from_elsewhere_render_with_any_text() {
    let problems = parse("image: (é").expect_err("this should be wrong");
    for text in ["", "é", "ééééééééé", "\n\n"] {
        assert!(problems.clone().with_text(text).render(Look::Plain).contains("never closed"));
    }
}

#[test]
fn colours_are_there_only_when_asked_for() {
    let problems = parse("image").expect_err("this should be wrong");
    assert!(!problems.render(Look::Plain).contains('\u{1b}'));
    assert!(problems.render(Look::Coloured).contains("\u{1b}["));
}
