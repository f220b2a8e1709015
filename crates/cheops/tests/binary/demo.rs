//! `cheops demo`.

use serde_json::Value;

use crate::running::cheops;

#[test]
fn the_demo_ends_well_with_the_published_outcomes_within_eighty_columns() {
    let ran = cheops(&["demo", "--fast"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for outcome in ["`middle, right`", "`middle`", "`30`", "`29`"] {
        let sentence = format!("All three hold {outcome}, as the technical report found.");
        assert!(ran.out.contains(&sentence), "{sentence} in\n{}", ran.out);
    }
    for line in ran.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!ran.out.contains("\n\n\n"), "two empty lines in\n{}", ran.out);
}

#[test]
fn whatever_the_seed_the_story_ends_well_and_fits() {
    for seed in 0..20 {
        for scenario in ["file", "redis"] {
            let seed = seed.to_string();
            let ran = cheops(&["demo", "--fast", "--seed", &seed, "--scenario", scenario]);
            assert_eq!(ran.code, Some(0), "seed {seed}: {}", ran.out);
            let wide = ran.out.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_prints_the_same() {
    let run = |seed| cheops(&["demo", "--seed", seed]).out;
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}

#[test]
fn programs_get_one_json_object_per_line() {
    let ran = cheops(&["demo", "--output", "json", "--scenario", "redis"]);
    let beats: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| beats.iter().filter(|beat| beat["beat"] == kind).collect::<Vec<_>>();
    assert_eq!(of("scene").len(), 4);
    assert_eq!(of("outcome")[1]["held"], serde_json::json!(["29"]));
    assert_eq!(of("explained")[0]["sites"].as_array().unwrap().len(), 3);
    assert_eq!(beats.last().unwrap()["ok"], true);
}
