//! The two programs as they are started by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn said(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn folders_of_three_sites_are_seeded_once_and_never_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let sites = folder.path().join("sites");
    let seed = env!("CARGO_BIN_EXE_cheops-seed");
    let arguments = [sites.to_str().unwrap(), "--resources", "30"];
    let first = run(seed, &arguments);
    assert!(first.status.success(), "{}", said(&first.stderr));
    assert!(said(&first.stdout).starts_with("30 resources in "), "{}", said(&first.stdout));
    for site in ["site1", "site2", "site3"] {
        assert!(sites.join(site).join("agent.toml").is_file(), "{site}");
    }
    let again = run(seed, &arguments);
    assert!(!again.status.success());
    assert!(said(&again.stderr).contains("cannot make the folder"), "{}", said(&again.stderr));
}

#[test]
fn a_part_that_there_is_not_is_refused_with_those_there_are() {
    let refused = run(env!("CARGO_BIN_EXE_cheops-bench"), &["--only", "everything"]);
    assert!(!refused.status.success());
    let why = said(&refused.stderr);
    assert!(why.contains("everything") && why.contains("latency"), "{why}");
}
