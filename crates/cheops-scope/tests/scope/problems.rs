//! What is told about a scope that is wrong: where, what was found, what would be right.

use crate::world::france;
use cheops_scope::{Code, MAX_PROBLEMS, parse, parse_location, resolve};
use expect_test::{Expect, expect};

/// Each text, and below it a line for each of its problems.
fn check(texts: &[&str], want: &Expect) {
    let told = texts.iter().map(|text| {
        let problems = resolve(text, &france()).expect_err(text);
        let lines = problems.to_string().replace('\n', "\n    ");
        format!("{}\n    {lines}\n", text.escape_debug())
    });
    want.assert_eq(&told.collect::<String>());
}

#[test]
fn braces_come_in_pairs() {
    check(
        &["{image: paris", "image: paris}", "{image: paris} compute: lyon", "{{image: paris}}"],
        &expect![[r#"
            {image: paris
                line 1, column 1: `{` is never closed (add `}` at the end, or drop the `{`)
            image: paris}
                line 1, column 13: `}` without a `{` (add `{` at the start, or drop the `}`)
            {image: paris} compute: lyon
                line 1, column 16: unexpected `compute`, expected the end (`}` ends the scope, and one request has one scope)
            {{image: paris}}
                line 1, column 2: unexpected `{`, expected a service such as `image` (one pair of braces is enough)
        "#]],
    );
}

#[test]
fn parentheses_come_in_pairs() {
    check(
        &[
            "image: (paris, lyon & nantes), compute: nantse",
            "image: (paris & lyon, compute: nantes",
            "image: paris) & lyon, compute: nantse",
            "image: ()",
            "image: ((paris)",
        ],
        &expect![[r#"
            image: (paris, lyon & nantes), compute: nantse
                line 1, column 14: unexpected `,`, expected `&`, `%`, `;` or `)` (sites are joined by `&`, `%` or `;`, not by a comma)
                line 1, column 41: unknown site `nantse`, did you mean `nantes`?
            image: (paris & lyon, compute: nantes
                line 1, column 8: `(` is never closed (add the missing `)`)
            image: paris) & lyon, compute: nantse
                line 1, column 13: `)` without a `(` before it (drop it, or open it with `(`)
                line 1, column 32: unknown site `nantse`, did you mean `nantes`?
            image: ()
                line 1, column 9: unexpected `)`, expected a site such as `paris`, `around(…)` or `(`
            image: ((paris)
                line 1, column 8: `(` is never closed (add the missing `)`)
        "#]],
    );
}

#[test]
fn bindings_are_separated_by_one_comma() {
    check(
        &[
            "image: paris,",
            "{image: paris,}",
            "image: paris,, compute: lyon",
            ", image: paris",
            "image: paris compute: lyon",
            "image: paris; compute: lyon",
        ],
        &expect![[r#"
            image: paris,
                line 1, column 13: `,` with nothing after it (drop the `,`, or add a service and where it runs)
            {image: paris,}
                line 1, column 14: `,` with nothing after it (drop the `,`, or add a service and where it runs)
            image: paris,, compute: lyon
                line 1, column 14: unexpected `,`, expected a service such as `image`
            , image: paris
                line 1, column 1: unexpected `,`, expected a service such as `image`
            image: paris compute: lyon
                line 1, column 14: unexpected `compute`, expected `,` (a comma stands between two services)
            image: paris; compute: lyon
                line 1, column 15: unexpected `compute`, expected a site such as `paris`, `around(…)` or `(` (a comma stands between two services)
        "#]],
    );
}

#[test]
fn a_service_and_its_location_are_joined_by_a_colon() {
    check(
        &[
            "paris & lyon",
            "image",
            "image paris",
            "image=paris",
            "image:",
            "image: , compute: lyon",
            ": paris",
            "image:: paris",
            "image: compute: lyon",
        ],
        &expect![[r#"
            paris & lyon
                line 1, column 7: unexpected `&`, expected `:` (say which service runs where, such as `image: paris & lyon`)
            image
                line 1, column 6: the scope ends too early, expected `:` (say which service runs where, such as `image: paris & lyon`)
            image paris
                line 1, column 7: unexpected `paris`, expected `:` (say which service runs where, such as `image: paris & lyon`)
            image=paris
                line 1, column 6: unexpected `=`, expected `:` (a service and where it runs are joined by `:`)
            image:
                line 1, column 7: the scope ends too early, expected a site such as `paris`, `around(…)` or `(`
            image: , compute: lyon
                line 1, column 8: unexpected `,`, expected a site such as `paris`, `around(…)` or `(`
            : paris
                line 1, column 1: unexpected `:`, expected a service such as `image`
            image:: paris
                line 1, column 7: unexpected `:`, expected a site such as `paris`, `around(…)` or `(`
            image: compute: lyon
                line 1, column 8: unexpected `compute`, expected a site such as `paris`, `around(…)` or `(` (a comma stands between two services)
        "#]],
    );
}

#[test]
fn sites_are_joined_by_one_operator() {
    check(
        &[
            "image: paris && lyon",
            "image: paris || lyon",
            "image: paris + lyon",
            "image: paris lyon",
            "image: paris and lyon or nantes",
            "image: & paris",
            "image: paris &",
            "image: (paris, lyon), compute: lyon",
        ],
        &expect![[r#"
            image: paris && lyon
                line 1, column 15: unexpected `&`, expected a site such as `paris`, `around(…)` or `(` (an operator is written once)
            image: paris || lyon
                line 1, column 14: unexpected `||`, expected `&`, `%` or `;` (the first that works is written `;`)
            image: paris + lyon
                line 1, column 14: unexpected `+`, expected `&`, `%` or `;` (at each of several sites is written `&`)
            image: paris lyon
                line 1, column 14: unexpected `lyon`, expected `&`, `%`, `;`, `,` or the end (join sites with `&` for each of them, `%` to spread over them, `;` for the first that works)
            image: paris and lyon or nantes
                line 1, column 14: unexpected `and`, expected `&`, `%`, `;`, `,` or the end (`and` is written `&`)
            image: & paris
                line 1, column 8: unexpected `&`, expected a site such as `paris`, `around(…)` or `(`
            image: paris &
                line 1, column 15: the scope ends too early, expected a site such as `paris`, `around(…)` or `(`
            image: (paris, lyon), compute: lyon
                line 1, column 14: unexpected `,`, expected `&`, `%`, `;` or `)` (sites are joined by `&`, `%` or `;`, not by a comma)
        "#]],
    );
}

#[test]
fn names_have_their_characters() {
    check(
        &[
            "image: \"paris\"",
            "image: -paris & lyôn",
            "im/age: paris, compute: lyonn",
            "image: pa\0ris",
        ],
        &expect![[r#"
            image: \"paris\"
                line 1, column 8: `"paris"` cannot be the name of a site (names are written without quotes)
            image: -paris & lyôn
                line 1, column 8: `-paris` cannot be the name of a site (a name begins with a letter or a digit, not with `-`)
                line 1, column 17: `lyôn` cannot be the name of a site (`ô` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`)
            im/age: paris, compute: lyonn
                line 1, column 1: `im/age` cannot be the name of a service (`/` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`)
                line 1, column 25: unknown site `lyonn`, did you mean `lyon`?
            image: pa\0ris
                line 1, column 8: `pa\0ris` cannot be the name of a site (`\0` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`)
        "#]],
    );
}

#[test]
fn around_needs_a_location_and_a_time() {
    check(
        &[
            "image: around(paris)",
            "image: around()",
            "image: around(paris, )",
            "image: around(paris, 10)",
            "image: around(paris, 10 min)",
            "image: around(paris, 10µs)",
            "image: around(paris, fast)",
            "image: around(paris, 0.5us)",
            "image: around(paris, 2000000s)",
            "image: around(paris 10ms)",
            "image: around(paris, 10ms, 3)",
            "image: around(paris, 10ms",
            "image: arround(pariss, 10ms) & lyon",
            "image: paris(lyon)",
        ],
        &expect![[r#"
            image: around(paris)
                line 1, column 20: unexpected `)`, expected `,` and a round-trip time (say how far a site may be, such as `around(paris, 10ms)`)
            image: around()
                line 1, column 15: unexpected `)`, expected a site such as `paris`, `around(…)` or `(`
            image: around(paris, )
                line 1, column 22: unexpected `)`, expected a round-trip time such as `10ms`
            image: around(paris, 10)
                line 1, column 22: `10` is not a round-trip time, did you mean `10ms`? (a round-trip time ends with `us`, `ms` or `s`)
            image: around(paris, 10 min)
                line 1, column 22: `10 min` is not a round-trip time, expected a round-trip time such as `10ms` (the units of time are `us`, `ms` and `s`)
            image: around(paris, 10µs)
                line 1, column 22: `10µs` is not a round-trip time, did you mean `10us`? (the units of time are `us`, `ms` and `s`)
            image: around(paris, fast)
                line 1, column 22: `fast` is not a round-trip time, expected a round-trip time such as `10ms` (a round-trip time begins with a number)
            image: around(paris, 0.5us)
                line 1, column 22: `0.5us` is not a round-trip time, expected a round-trip time such as `10ms` (a round-trip time is a whole number of microseconds)
            image: around(paris, 2000000s)
                line 1, column 22: `2000000s` is not a round-trip time, expected a round-trip time such as `10ms` (a round-trip time is at most `3600s`)
            image: around(paris 10ms)
                line 1, column 21: unexpected `10ms`, expected `,` and a round-trip time, `&`, `%` or `;`
            image: around(paris, 10ms, 3)
                line 1, column 26: unexpected `,`, expected `)`
            image: around(paris, 10ms
                line 1, column 14: `(` is never closed (add the missing `)`)
            image: arround(pariss, 10ms) & lyon
                line 1, column 8: `arround` is not a function, did you mean `around`? (the only function is `around(site, 10ms)`; sites are joined by `&`, `%` or `;`)
                line 1, column 16: unknown site `pariss`, did you mean `paris`?
            image: paris(lyon)
                line 1, column 8: `paris` is not a function (the only function is `around(site, 10ms)`; sites are joined by `&`, `%` or `;`)
        "#]],
    );
}

#[test]
fn options_are_known_ones_given_once() {
    check(
        &[
            "image: paris [consistancy=strong]",
            "image: paris [consistency=stong]",
            "image: paris [consistency=best]",
            "image: paris [consistency=strong, consistency=none]",
            "image: paris []",
            "image: paris [consistency]",
            "image: paris [consistency=]",
            "image: paris [consistency=strong",
            "image: paris [consistency=strong, compute: lyonn",
            "image: paris [consistency=strong] & lyon",
            "image: paris [consistency=strong] [consistency=none]",
            "image: [consistency=strong]",
        ],
        &expect![[r#"
            image: paris [consistancy=strong]
                line 1, column 15: unknown option `consistancy`, did you mean `consistency`?
            image: paris [consistency=stong]
                line 1, column 27: `consistency` cannot be `stong`, did you mean `strong`?
            image: paris [consistency=best]
                line 1, column 27: `consistency` cannot be `best`, expected `none`, `eventual`, `strong` or `transactional`
            image: paris [consistency=strong, consistency=none]
                line 1, column 35: `consistency` is given a second time (keep one of the two)
            image: paris []
                line 1, column 15: unexpected `]`, expected an option such as `consistency=eventual`
            image: paris [consistency]
                line 1, column 26: unexpected `]`, expected `=` (an option is written `key=value`)
            image: paris [consistency=]
                line 1, column 27: unexpected `]`, expected a value such as `strong`
            image: paris [consistency=strong
                line 1, column 14: `[` is never closed (add the missing `]`)
            image: paris [consistency=strong, compute: lyonn
                line 1, column 14: `[` is never closed (add the missing `]`)
                line 1, column 44: unknown site `lyonn`, did you mean `lyon`?
            image: paris [consistency=strong] & lyon
                line 1, column 35: unexpected `&`, expected `,` or the end (options stand after the whole location)
            image: paris [consistency=strong] [consistency=none]
                line 1, column 35: unexpected `[`, expected `,` or the end (options stand in one pair of brackets, separated by `,`)
            image: [consistency=strong]
                line 1, column 8: unexpected `[`, expected a site such as `paris`, `around(…)` or `(`
        "#]],
    );
}

#[test]
fn a_site_stands_once_in_a_list() {
    check(
        &["image: paris % lyon % paris", "image: around(lyon & lyon, 10ms)"],
        &expect![[r#"
        image: paris % lyon % paris
            line 1, column 23: site `paris` stands twice in one `%` list (`%` puts one part at each site, so a site can stand in it once)
        image: around(lyon & lyon, 10ms)
            line 1, column 22: site `lyon` stands twice in one `&` list (`&` keeps one copy at each site, so a site can stand in it once)
    "#]],
    );
}

#[test]
fn a_flood_of_problems_is_counted_not_told() {
    let text = format!("image: {}paris", "x ; ".repeat(50));
    let problems = resolve(&text, &france()).expect_err("this should be wrong");
    assert_eq!(problems.as_slice().len(), MAX_PROBLEMS);
    assert_eq!(problems.omitted(), 30);
    assert!(problems.to_string().ends_with("\nand 30 more problems"));
}

#[test]
fn a_location_by_itself_takes_no_service() {
    let texts = ["", "image: paris", "paris, lyon", "paris lyon", "paris & (image: lyon)"];
    let told = texts.map(|text| parse_location(text).expect_err(text).to_string());
    expect![[r#"
        line 1, column 1: there is no site here, expected a site such as `paris`
        line 1, column 1: unexpected `image`, expected a site such as `paris`, `around(…)` or `(` (only sites stand here, without a service)
        line 1, column 6: unexpected `,`, expected `&`, `%`, `;` or the end (sites are joined by `&`, `%` or `;`, not by a comma)
        line 1, column 7: unexpected `lyon`, expected `&`, `%`, `;` or the end (join sites with `&` for each of them, `%` to spread over them, `;` for the first that works)
        line 1, column 10: unexpected `image`, expected a site such as `paris`, `around(…)` or `(` (only sites stand here, without a service)"#]].assert_eq(&told.join("\n"));
}

#[test]
fn whoever_names_a_set_of_sites_hears_of_no_other_way_to_join_them() {
    let texts = ["", "paris, lyon", "paris lyon", "paris &", "near(paris, 1s)"];
    let told = texts.map(|text| parse_location(text).expect_err(text).of_a_set().to_string());
    expect![[r#"
        line 1, column 1: there is no site here, expected a site such as `paris`
        line 1, column 6: unexpected `,`, expected `&` or the end
        line 1, column 7: unexpected `lyon`, expected `&` or the end
        line 1, column 8: the scope ends too early, expected a site such as `paris` or `(`
        line 1, column 1: `near` is not a function"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn every_problem_has_a_code_for_programs() {
    for (text, code) in [
        ("", Code::Empty),
        ("image: ,", Code::Unexpected),
        ("image: é", Code::BadName),
        ("image: (a", Code::Unclosed),
        ("image: a)", Code::Unopened),
        ("image: around(a, b)", Code::BadDuration),
        ("image: near(a, 1s)", Code::UnknownFunction),
        ("image: a [b=c]", Code::UnknownOption),
        ("image: a [consistency=c]", Code::BadOptionValue),
        ("image: a, image: b", Code::RepeatedService),
        ("image: a & a", Code::RepeatedSite),
    ] {
        let problems = parse(text).expect_err(text);
        assert_eq!(problems.as_slice()[0].code, code, "{text}");
    }
}
