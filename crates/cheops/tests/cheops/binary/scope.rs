//! `cheops scope`.

use expect_test::expect;
use serde_json::json;

use crate::binary::running::cheops;

#[test]
fn a_scope_is_explained_without_knowing_any_names() {
    cheops(&["scope", "{image:paris&lyon,compute:around(nantes,10ms) [consistency=strong]}"])
        .check(
            0,
            &expect![[r#"
                {image: paris & lyon, compute: around(nantes, 10ms) [consistency=strong]}
                  image: on paris and lyon, kept the same (replication)
                  compute: on the nearest site within 10ms of nantes that works; consistency
                    strong: not there yet, and refused by agents
                  every other service: at the site that gets the request
                --- aside
                note: no agent was found to ask, so names are taken as they are; give `--sites`
                      and `--services`, and `--rtt` for `around`
            "#]],
        );
}

#[test]
fn with_sites_and_round_trips_around_is_expanded() {
    let rtt = "paris:lyon=7ms,paris:nantes=9ms,paris:tokyo=218ms";
    cheops(&["scope", "image: around(paris, 10ms)", "--rtt", rtt]).check(
        0,
        &expect![[r#"
        {image: around(paris, 10ms)}
          image: on paris, else on lyon, else on nantes (the first that works)
          around(paris, 10ms) is, nearest first: paris (0ms), lyon (7ms), nantes (9ms)
          every other service: at the site that gets the request
    "#]],
    );
}

#[test]
fn without_round_trips_a_note_says_that_around_knows_none() {
    cheops(&["scope", "image: around(paris, 10ms)", "--sites", "paris,lyon"]).check(
        0,
        &expect![[r#"
            {image: around(paris, 10ms)}
              image: on paris
              around(paris, 10ms) is, nearest first: paris (0ms)
              every other service: at the site that gets the request
            --- aside
            note: no round-trip time is known; give `--rtt paris:lyon=7ms`
        "#]],
    );
}

#[test]
fn all_problems_are_told_with_carets_and_the_exit_code_is_one() {
    cheops(&["scope", "imag: pariss & & lyon", "--sites", "paris,lyon", "--services", "image"])
        .check(
            1,
            &expect![[r#"
            --- aside
            error: unknown service `imag`
             --> scope:1:1
              |
            1 | imag: pariss & & lyon
              | ^^^^ did you mean `image`?

            error: unknown site `pariss`
             --> scope:1:7
              |
            1 | imag: pariss & & lyon
              |       ^^^^^^ did you mean `paris`?

            error: unexpected `&`
             --> scope:1:16
              |
            1 | imag: pariss & & lyon
              |                ^ expected a site such as `paris`, `around(…)` or `(`
              |
              = help: an operator is written once
        "#]],
        );
}

#[test]
fn services_alone_are_checked_and_sites_are_then_taken_as_they_are() {
    cheops(&["scope", "imag: anywhere", "--services", "image"]).check(
        1,
        &expect![[r#"
        --- aside
        error: unknown service `imag`
         --> scope:1:1
          |
        1 | imag: anywhere
          | ^^^^ did you mean `image`?
    "#]],
    );
    cheops(&["scope", "image: around(anywhere, 1s)", "--services", "image"]).check(
        0,
        &expect![[r#"
            {image: around(anywhere, 1s)}
              image: on the nearest site within 1s of anywhere that works
              every other service: at the site that gets the request
            --- aside
            note: no round-trip time is known; give `--rtt paris:lyon=7ms`
        "#]],
    );
}

#[test]
fn programs_get_the_placement_or_the_problems_as_data() {
    let arguments = ["-o", "json", "scope", "image: paris & lyon"];
    let answer = cheops(&arguments).json();
    assert_eq!(answer["ok"], json!(true));
    assert_eq!(answer["scope"], json!("{image: paris & lyon}"));
    assert!(answer["tree"]["bindings"].is_array());

    let answer = cheops(&[&arguments[..], &["--sites", "paris,lyon"]].concat()).json();
    let target = &answer["placement"]["services"][0]["target"];
    assert_eq!(*target, json!({"all": [{"site": "paris"}, {"site": "lyon"}]}));

    let ran = cheops(&[&arguments[..], &["--sites", "pari,lyon"]].concat());
    let answer = ran.json();
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    assert_eq!(answer["ok"], json!(false));
    assert_eq!(answer["problems"][0]["code"], json!("unknown-site"));
    assert_eq!(answer["problems"][0]["did_you_mean"], json!(["pari"]));
}

#[test]
fn names_and_times_on_the_command_line_are_checked() {
    for (option, value) in [("--sites", "pa ris"), ("--services", "-"), ("--rtt", "paris=7ms")] {
        let ran = cheops(&["scope", "image: paris", &format!("{option}={value}")]);
        assert_eq!(ran.code, Some(2), "{option}");
        assert!(ran.err.contains(option), "{}", ran.err);
    }
    cheops(&["scope", "a: paris", "--sites", "paris,lyon", "--rtt", "paris:lion=7ms"]).check(
        2,
        &expect![[r#"
            --- aside
            error: `--rtt` names `lion`, which is not among `--sites`
            hint: correct the name, or add it to `--sites`
        "#]],
    );
}
