//! What `docs/operating.md` lists is what there is, and so is what the examples ask for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DOCS: &str = include_str!("../../../../docs/operating.md");
const DASHBOARD: &str = include_str!("../../../../examples/observability/dashboard.json");
const ALERTS: &str = include_str!("../../../../examples/observability/alerts.yml");

/// What Prometheus makes of a histogram.
const OF_A_HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The names of metrics that stand in a text behind this sign.
fn metrics<'a>(text: &'a str, sign: &str) -> impl Iterator<Item = String> + 'a {
    let is_of_a_name = |c: char| c == '_' || c.is_ascii_lowercase();
    let after = text.split(&format!("{sign}cheops_")).skip(1).collect::<Vec<_>>();
    after.into_iter().map(move |rest| {
        let end = rest.find(|c| !is_of_a_name(c)).unwrap_or(rest.len());
        format!("cheops_{}", &rest[..end])
    })
}

fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, text),
            false => text.push_str(&fs::read_to_string(&path).unwrap()),
        }
    }
}

/// All source of what counts in an agent, on one line for each call: names may stand on a line of their
/// own.
fn source() -> String {
    let mut source = String::new();
    for part in ["agent", "mesh", "proxy", "services"] {
        let part = format!("../cheops-{part}/src");
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &mut source);
    }
    source.split_whitespace().collect::<Vec<_>>().join(" ").replace("( \"", "(\"")
}

#[test]
fn every_metric_is_described_and_every_described_metric_is_one() {
    let source = source();
    let mut counted = BTreeSet::new();
    for kind in ["counter", "gauge", "histogram"] {
        let of_kind: BTreeSet<_> = metrics(&source, &format!("::{kind}!(\"")).collect();
        // What `/metrics` says of it.
        let helped: BTreeSet<_> = metrics(&source, &format!("describe_{kind}!(\"")).collect();
        assert_eq!(of_kind, helped, "each {kind} has its help, and no other");
        counted.extend(of_kind);
    }
    let described: BTreeSet<String> = metrics(DOCS, "`").collect();
    assert_eq!(counted, described);
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_there_are() {
    let source = source();
    let histograms: BTreeSet<String> = metrics(&source, "::histogram!(\"").collect();
    let mut there_are: BTreeSet<String> = metrics(&source, "::counter!(\"").collect();
    there_are.extend(metrics(&source, "::gauge!(\""));
    for histogram in &histograms {
        there_are.extend(OF_A_HISTOGRAM.map(|end| format!("{histogram}{end}")));
    }

    for (file, text) in [("dashboard.json", DASHBOARD), ("alerts.yml", ALERTS)] {
        let asked_for: BTreeSet<String> = metrics(text, "").collect();
        assert!(!asked_for.is_empty(), "{file} asks for something");
        let unknown: Vec<_> = asked_for.difference(&there_are).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
}

/// What a query asks for by its labels: the metric, and each value of each label.
fn asked_values(query: &str) -> Vec<(String, String)> {
    let mut asked = Vec::new();
    for rest in query.split("cheops_").skip(1) {
        let Some((name, rest)) = rest.split_once('{') else { continue };
        if !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()) {
            continue;
        }
        let name = OF_A_HISTOGRAM.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let labels = rest.split_once('}').map_or(rest, |(labels, _)| labels);
        let quoted = labels.split('"').skip(1).step_by(2);
        for value in quoted.flat_map(|values| values.split('|')) {
            asked.push((format!("cheops_{name}"), value.to_owned()));
        }
    }
    asked
}

#[test]
fn dashboard_and_alerts_ask_for_labels_that_are_described() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut queries: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
    queries.push(ALERTS);
    let asked = queries.into_iter().flat_map(asked_values);
    // What whoever looks at the dashboard chooses is not for us to know.
    let asked: BTreeSet<_> = asked.filter(|(_, value)| !value.starts_with('$')).collect();
    assert!(asked.contains(&("cheops_notices_total".to_owned(), "malformed".to_owned())));
    for (metric, value) in asked {
        let mut rows = DOCS.lines().filter(|row| row.contains(&format!("`{metric}`")));
        let is_described = rows.any(|row| row.contains(&format!("`{value}`")));
        assert!(is_described, "`{value}` of `{metric}` is in no row of docs/operating.md");
    }
}

#[test]
fn the_dashboard_is_json_and_every_panel_asks_for_something() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().unwrap();
        let asks =
            targets.iter().all(|target| target["expr"].as_str().is_some_and(|e| !e.is_empty()));
        assert!(asks && !targets.is_empty(), "{}", panel["title"]);
    }
}
