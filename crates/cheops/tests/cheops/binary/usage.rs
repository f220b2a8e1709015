//! What holds for every verb.

use std::process::Stdio;

use expect_test::expect;

use crate::binary::running::{cheops, command};

/// Every verb that helps, also those below another; a test holds it together with `cheops --help`.
const VERBS: [&[&str]; 31] = [
    &["demo"],
    &["agent"],
    &["mesh"],
    &["init"],
    &["status"],
    &["exec"],
    &["http"],
    &["with"],
    &["show"],
    &["diff"],
    &["resources"],
    &["resource"],
    &["history"],
    &["operation"],
    &["explain"],
    &["watch"],
    &["sites"],
    &["delete"],
    &["settle"],
    &["retry"],
    &["dismiss"],
    &["undo"],
    &["open"],
    &["backup"],
    &["scope"],
    &["matrix"],
    &["matrix", "check"],
    &["matrix", "prove"],
    &["logic"],
    &["logic", "check"],
    &["completions"],
];

#[test]
fn help_lists_the_verbs_with_examples_and_exit_codes() {
    let ran = cheops(&["--help"]);
    assert_eq!(ran.code, Some(0));
    for word in ["demo", "scope", "matrix", "completions", "Examples:", "Exit codes:"] {
        assert!(ran.out.contains(word), "{word} in {}", ran.out);
    }
}

#[test]
fn no_verb_is_left_out_of_these_tests() {
    let help = cheops(&["--help"]).out;
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: Vec<&str> = verbs
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"status"), "{help}");
    let is_tried = |verb: &&&str| VERBS.iter().any(|tried| tried[0] == **verb);
    let left_out: Vec<_> =
        verbs.iter().filter(|verb| !is_tried(verb) && **verb != "help").collect();
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn every_verb_has_help_with_examples() {
    for verb in VERBS {
        let ran = cheops(&[verb, &["--help"]].concat());
        assert_eq!(ran.code, Some(0), "{verb:?}");
        assert!(ran.out.contains("Examples:"), "{verb:?}: {}", ran.out);
    }
}

#[test]
fn help_fits_the_terminal_and_tells_once_what_all_verbs_take() {
    let told = |verb: &[&str]| {
        let mut command = command(&[verb, &["--help"]].concat());
        let ran = command.env("COLUMNS", "80").output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    };
    let all = told(&[]);
    for verb in VERBS {
        let text = told(verb);
        // A line of usage is broken by nobody.
        let too_long = |line: &&str| line.chars().count() > 80 && !line.starts_with("Usage:");
        let long: Vec<&str> = text.lines().filter(too_long).collect();
        assert!(long.is_empty(), "{verb:?}: {long:#?}");
        let is_told = text.lines().any(|line| line.trim_start().starts_with("--token-file"));
        assert!(!is_told, "{verb:?}: {text}");
        assert!(text.contains("cheops --help"), "{verb:?}: {text}");
        // Told once, and taken everywhere.
        let refused = cheops(&[verb, &["--output", "xml"]].concat());
        assert!(refused.err.contains("xml"), "{verb:?}: {}", refused.err);
    }
    assert!(all.contains("--token-file") && all.contains("--output"), "{all}");
    let long: Vec<&str> = all.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn an_unknown_verb_is_a_usage_error() {
    let ran = cheops(&["scop"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("'scope'"), "{}", ran.err);
    assert_eq!(cheops(&[]).code, Some(2));
    assert_eq!(cheops(&["matrix"]).code, Some(2));
    assert_eq!(cheops(&["--output", "xml", "demo"]).code, Some(2));
}

#[test]
fn what_is_piped_has_no_escape_codes() {
    for arguments in [
        &["demo", "cut", "nowhere"][..],
        &["--help"],
        &["scope", "image: paris & lyon"],
        &["scope", "image: &"],
        &["matrix", "profiles"],
        &["matrix", "check", "--profile", "redis"],
        &["matrix", "check", "/nowhere"],
    ] {
        let ran = cheops(arguments);
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn colours_can_be_forced_and_forbidden() {
    let coloured = |variable: &str| {
        let mut command = command(&["matrix", "profiles"]);
        let output = command.env(variable, "1").output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(coloured("CLICOLOR_FORCE"));
    assert!(!coloured("NO_COLOR"));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    for (arguments, code) in [
        (&["matrix", "show", "redis"][..], 0),
        (&["completions", "bash"], 0),
        (&["--output", "json", "scope", "image: &"], 1),
    ] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_answer_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = command(&["matrix", "show", "redis"]).stdout(full).output().unwrap();
    expect![[r#"
        error: the answer could not be written
        because: No space left on device (os error 28)
    "#]]
    .assert_eq(&String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(1));
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = cheops(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        for word in ["matrix", "kubernetes", "exec", "settle", "unknown-result", "--agent"] {
            // Fish writes options without their dashes.
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(ran.out.contains(word), "{word} for {shell}");
        }
    }
}
