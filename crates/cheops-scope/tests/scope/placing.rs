//! From names to sites: what runs where, and how that reads.

use crate::world::{france, service, site};
use cheops_scope::{
    Consistency, Known, MAX_STEPS, Micros, RoundTrips, SiteId, Target, parse, resolve,
    resolve_location,
};
use expect_test::{Expect, expect};

/// The target in a notation that shows its structure.
fn shape(target: &Target) -> String {
    let list = |name: &str, parts: &[Target]| {
        let parts: Vec<String> = parts.iter().map(shape).collect();
        format!("{name}[{}]", parts.join(" "))
    };
    match target {
        Target::Site(site) => site.to_string(),
        Target::All(parts) => list("all", parts),
        Target::Cross(parts) => list("cross", parts),
        Target::FirstOf(parts) => list("first", parts),
    }
}

fn placed(location: &str) -> String {
    let target = resolve_location(location, &france());
    shape(&target.unwrap_or_else(|problems| panic!("{location}: {problems}")))
}

#[test]
fn operators_become_what_an_agent_executes() {
    for (location, want) in [
        ("paris", "paris"),
        ("paris & lyon", "all[paris lyon]"),
        ("paris % lyon", "cross[paris lyon]"),
        ("paris ; lyon", "first[paris lyon]"),
        ("paris & lyon % nice ; brest", "first[cross[all[paris lyon] nice] brest]"),
        ("paris & (lyon & nice)", "all[paris lyon nice]"),
        ("(paris % lyon) % nice", "cross[paris lyon nice]"),
        ("paris ; (lyon ; nice)", "first[paris lyon nice]"),
        ("paris & (lyon ; nice)", "all[paris first[lyon nice]]"),
        ("paris ; lyon ; paris", "first[paris lyon]"),
        ("paris ; paris", "paris"),
        ("paris & lyon ; paris & lyon", "all[paris lyon]"),
    ] {
        assert_eq!(placed(location), want, "{location}");
    }
}

#[test]
fn around_is_a_chain_from_the_nearest_to_the_farthest() {
    for (location, want) in [
        // The centre first, then by time, then by name.
        ("around(paris, 10ms)", "first[paris nantes lyon rennes]"),
        ("around(paris, 6ms)", "first[paris nantes lyon rennes]"),
        ("around(paris, 5999us)", "first[paris nantes]"),
        ("around(paris, 0s)", "paris"),
        // Times count in both directions.
        ("around(nice, 5ms)", "first[nice lyon]"),
        // A site nobody reaches is its own surroundings, and in nobody else's.
        ("around(brest, 1h)".replace("1h", "3600s").as_str(), "brest"),
        // The nearest of several centres counts.
        ("around(lyon & nantes, 5500us)", "first[lyon nantes nice paris]"),
        ("around(around(nice, 4ms), 6ms)", "first[lyon nice paris]"),
        // It joins the chain it stands in, and what was tried is not tried again.
        ("lyon ; around(paris, 10ms) ; brest", "first[lyon paris nantes rennes brest]"),
        ("brest & around(nice, 5ms)", "all[brest first[nice lyon]]"),
    ] {
        assert_eq!(placed(location), want, "{location}");
    }
}

#[test]
fn a_round_trip_counts_as_its_own_end_measured_it() {
    let mut times = RoundTrips::default();
    times.set(site("a"), site("b"), Micros::new(10));
    times.set(site("b"), site("a"), Micros::new(20));
    times.set(site("b"), site("c"), Micros::new(30));
    let between = |from: &str, to: &str| times.between(&site(from), &site(to)).map(Micros::get);
    assert_eq!(between("a", "b"), Some(10));
    assert_eq!(between("b", "a"), Some(20));
    assert_eq!(between("c", "b"), Some(30));
    assert_eq!(between("a", "c"), None);
    assert_eq!(between("c", "c"), Some(0));
}

#[test]
fn around_leaves_out_sites_that_were_measured_but_are_no_longer_known() {
    let mut times = RoundTrips::default();
    times.set(site("a"), site("gone"), Micros::new(10));
    let known = Known::new([], [site("a"), site("b")]).with_round_trips(times);
    let target = resolve_location("around(a, 1s)", &known).unwrap();
    assert_eq!(shape(&target), "a");
}

#[test]
fn a_placement_answers_for_each_service_it_names() {
    let text = "image: paris & lyon [consistency=strong], compute: nice";
    let placement = resolve(text, &france()).unwrap();
    let image = placement.of(&service("image")).unwrap();
    assert_eq!(shape(&image.target), "all[paris lyon]");
    assert_eq!(image.consistency, Some(Consistency::Strong));
    let compute = placement.of(&service("compute")).unwrap();
    assert_eq!(compute.consistency, None);
    assert_eq!(placement.of(&service("network")), None);
    let sites: Vec<&str> = image.target.sites().into_iter().map(SiteId::as_str).collect();
    assert_eq!(sites, ["lyon", "paris"]);
}

#[test]
fn too_many_surroundings_are_refused_not_computed() {
    let sites: Vec<SiteId> = (0..1000).map(|index| site(&format!("s{index}"))).collect();
    let mut times = RoundTrips::default();
    for to in &sites {
        times.set(site("s0"), to.clone(), Micros::new(1));
    }
    let known = Known::new([], sites).with_round_trips(times);
    // One is fine; a thousand centres with a thousand sites each are not.
    assert!(resolve_location("around(s0, 1s)", &known).is_ok());
    let problems = resolve_location("around(around(s0, 1s), 1s)", &known).expect_err("too much");
    assert!(problems.to_string().contains(&MAX_STEPS.to_string()));
}

fn explained(text: &str, offline: &Expect, here: &Expect) {
    offline.assert_eq(&parse(text).unwrap().explain());
    here.assert_eq(&resolve(text, &france()).unwrap().explain());
}

#[test]
fn a_scope_reads_as_plain_sentences() {
    explained("image: paris", &expect!["image: on paris"], &expect!["image: on paris"]);
    explained(
        "image: paris & lyon, compute: nice % brest % lyon, network: paris ; lyon ; nice",
        &expect![[r#"
            image: on paris and lyon, kept the same (replication)
            compute: one resource spread over nice, brest and lyon (cross)
            network: on paris, else on lyon, else on nice (the first that works)"#]],
        &expect![[r#"
            image: on paris and lyon, kept the same (replication)
            compute: one resource spread over nice, brest and lyon (cross)
            network: on paris, else on lyon, else on nice (the first that works)"#]],
    );
    explained(
        "image: around(paris, 10ms) [consistency=eventual], compute: around(brest & nice, 4ms)",
        &expect![[r#"
            image: on the nearest site within 10ms of paris that works; consistency eventual: the same everywhere in the end
            compute: on the nearest site within 4ms of brest or nice that works"#]],
        &expect![[r#"
            image: on paris, else on nantes, else on lyon, else on rennes (the first that works); consistency eventual: the same everywhere in the end
            compute: on brest, else on nice, else on lyon (the first that works)
            around(paris, 10ms) is, nearest first: paris (0ms), nantes (5500us), lyon (6ms), rennes (6ms)
            around(brest & nice, 4ms) is, nearest first: brest (0ms), nice (0ms), lyon (4ms)"#]],
    );
    explained(
        "image: (paris ; lyon) & nice % brest & (rennes % nantes) [consistency=transactional]",
        &expect![
            "image: one resource spread over ((paris, else lyon) and nice, kept the same) and (brest and (one spread over rennes and nantes), kept the same) (cross); consistency transactional: not there yet, and refused by agents"
        ],
        &expect![
            "image: one resource spread over ((paris, else lyon) and nice, kept the same) and (brest and (one spread over rennes and nantes), kept the same) (cross); consistency transactional: not there yet, and refused by agents"
        ],
    );
    explained(
        "image: around(brest, 1s), compute: paris & lyon ; nice [consistency=none]",
        &expect![[r#"
            image: on the nearest site within 1s of brest that works
            compute: on (paris and lyon, kept the same), else on nice (the first that works); consistency none: not there yet, and refused by agents"#]],
        &expect![[r#"
            image: on brest
            compute: on (paris and lyon, kept the same), else on nice (the first that works); consistency none: not there yet, and refused by agents
            around(brest, 1s) is, nearest first: brest (0ms)"#]],
    );
}

#[test]
fn a_placement_goes_out_as_json() {
    let text = "image: around(nice, 5ms) & brest [consistency=strong]";
    let json = serde_json::to_string(&resolve(text, &france()).unwrap()).unwrap();
    expect![[r#"{"services":[{"service":"image","target":{"all":[{"first_of":[{"site":"nice"},{"site":"lyon"}]},{"site":"brest"}]},"consistency":"strong"}],"nearby":[{"around":"around(nice, 5ms)","sites":[{"site":"nice","round_trip_us":0},{"site":"lyon","round_trip_us":4000}]}]}"#]].assert_eq(&json);
}
