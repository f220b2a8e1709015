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
