//! `scripts/attack`: what its table makes of how tests end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// In the place of cargo: each test of the filter passes, unless `FAKE` says otherwise.
const CARGO: &str = r#"#!/usr/bin/env bash
for name in $(grep -oE '\(\^\|::\)[a-z0-9_]+' <<<"${*: -1}" | sed 's/.*)//'); do
  status=PASS said=
  case " $FAKE " in
    *" $name=missing "*) continue ;;
    *" $name=untried "*) said='    NOT TRIED: nobody is root' ;;
    *" $name="*) status=$(sed "s/.* $name=\([^ ]*\) .*/\1/; s/_/ /g" <<<" $FAKE ") ;;
  esac
  printf ' %s [   0.001s] (1/9) cheops-agent::agent a_module::%s\n%s\n' "$status" "$name" "$said"
done
"#;

fn attack(fake: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let cargo = folder.path().join("cargo");
    fs::write(&cargo, CARGO).unwrap();
    fs::set_permissions(&cargo, Permissions::from_mode(0o755)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/attack");
    let ran = Command::new(script).env("CARGO", cargo).env("FAKE", fake).output().unwrap();
    (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// All that stands in source files below this folder.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

#[test]
fn every_test_on_the_list_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources(&root.join("crates"));
    let script = fs::read_to_string(root.join("scripts/attack")).unwrap();
    let (_, claims) = script.split_once("claims='").unwrap();
    let (claims, _) = claims.split_once('\'').unwrap();
    let rows: Vec<_> = claims.lines().filter_map(|row| row.split_once(" | ")).collect();
    assert!(rows.len() > 30, "{claims}");
    for name in rows.iter().flat_map(|(_, tests)| tests.split_whitespace()) {
        assert!(sources.contains(&format!("fn {name}(")), "no test is called {name}");
    }
}

#[test]
fn a_claim_is_held_only_if_its_tests_were_there_tried_and_passed() {
    let (link, row) = ("a_link_lets_one_browser_in_once", "a link to the page");
    for (became, is_good, verdict) in [
        ("PASS", true, " held"),
        ("LEAK", true, " held"),
        ("untried", true, " not tried here: nobody is root"),
        ("FAIL", false, " NOT HELD"),
        ("LEAK-FAIL", false, " NOT HELD"),
        ("FAIL_+_LEAK", false, " NOT HELD"),
        ("TIMEOUT", false, " NOT HELD"),
        ("SIGSEGV", false, " NOT HELD"),
        ("missing", false, " NO SUCH TEST: a_link_lets_one_browser_in_once"),
    ] {
        let (succeeded, said) = attack(&format!("{link}={became}"));
        let line = said.lines().find(|line| line.starts_with(row)).unwrap_or_default();
        assert!(line.ends_with(verdict), "{became}: {said}");
        assert_eq!(succeeded, is_good, "{became}: {said}");
    }
}
