//! What `docs/operating.md` lists is what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DOCS: &str = include_str!("../../../../docs/operating.md");

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

#[test]
fn every_metric_is_described_and_every_described_metric_is_one() {
    let mut source = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut source);

    let counted: BTreeSet<String> = metrics(&source, "!(\"").collect();
    let described: BTreeSet<String> = metrics(DOCS, "`").collect();

    assert_eq!(counted, described);
}

/// As `ARCHITECTURE.md` has it: whoever asks a service is not known to what leads there.
#[test]
fn the_way_to_services_knows_nobody_who_goes_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let uses = |room: &str, other: &str| {
        let mut text = String::new();
        sources(&source.join(room), &mut text);
        text.contains(&format!("crate::{other}"))
    };
    for other in ["proxy", "exec", "peers", "driver", "hooks", "http", "agent"] {
        assert!(!uses("services", other), "`services` uses `{other}`");
    }
    assert!(!uses("exec", "proxy"), "`exec` uses `proxy`");
    assert!(uses("proxy", "services") && uses("exec", "services"));
}
