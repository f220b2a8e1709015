//! Programs that decide about operations made concurrently: what they are given, and what comes back.

use std::fs;
use std::time::Duration;

use crate::exec_support::{Site, gone, job, pids};
use cheops_core::engine::Task;
use cheops_core::model::{Fingerprint, Outcome};

/// A question as an engine may write it: in its own order, with white space.
const QUESTION: &str =
    r#"{"operations": [{"site": "a", "id": "a-1.1", "after": []}], "config": {}}"#;
/// The same as a program reads it, but for the state.
const BEGIN: &str = r#"{"config":{},"operations":[{"after":[],"id":"a-1.1","site":"a"}],"state":"#;

fn with(command: &str) -> Site {
    Site::with(|settings| {
        settings.programs.insert("decides".to_owned(), command.to_owned());
    })
}

/// The code, the line of the fingerprint, and the rest.
async fn asks(site: &Site, program: &str, read: &str) -> (i32, String, String) {
    let (program, question, read) = (program.to_owned(), QUESTION.to_owned(), read.to_owned());
    match site.exec.run(&job("thing", Task::Ask { program, question, read })).await {
        Outcome::Exited { code, output } if !output.truncated => {
            let (first, rest) = output.text.split_once('\n').unwrap();
            (code, first.to_owned(), rest.to_owned())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_reads_the_question_with_the_state_in_one_form_and_its_answer_comes_back() {
    let site = with("cat; echo a complaint >&2");
    for (read, state) in [
        ("printf 'milk\\n\"eggs\"\\n'", r#""milk\n\"eggs\"\n""#),
        ("true", r#""""#),
        ("printf 'a\\377'", r#"{"base64":"Yf8="}"#),
        ("printf %s \"$CHEOPS_RESOURCE __ID__\"", r#""thing thing""#),
        ("echo 1; echo 2 >&2", r#""1\n""#),
    ] {
        let expected = format!("{BEGIN}{state}}}");
        let fingerprint = Fingerprint::of(expected.as_bytes()).to_string();
        assert_eq!(asks(&site, "decides", read).await, (0, fingerprint, expected), "{read}");
    }
}

#[tokio::test]
async fn a_program_finds_nothing_around_it_that_differs_between_sites() {
    let (_, _, found) = asks(&with("env"), "decides", "true").await;
    let mut names: Vec<&str> =
        found.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    // `CHEOPS_RUN` is how what outlives it is found; the others come from the shell.
    names.retain(|name| !["CHEOPS_RUN", "PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert_eq!(names, ["CHEOPS_LOGIC", "LC_ALL", "PATH", "TZ"]);
    for said in ["CHEOPS_LOGIC=decides", "LC_ALL=C.UTF-8", "TZ=UTC"] {
        assert!(found.lines().any(|line| line == said), "{found}");
    }
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().canonicalize().unwrap();
    let site = Site::with(|settings| {
        settings.shell_dir = Some(there.clone());
        settings.programs.insert("decides".to_owned(), "pwd".to_owned());
    });
    let (_, _, printed) = asks(&site, "decides", "true").await;
    assert_eq!(printed, format!("{}\n", there.display()), "where commands run");
}

#[tokio::test]
async fn what_is_no_answer_says_why_and_of_which_question_or_that_it_was_not_asked() {
    let many = "head -c 65537 /dev/zero | tr '\\0' x";
    for (program, command, read, asked, why) in [
        ("decides", "echo no such item >&2; exit 3", "true", true, "exit code 3: no such item"),
        ("decides", "exit 4", "true", true, "it ended with exit code 4"),
        ("decides", "echo '[]'; kill -KILL $$", "true", true, "it ended with exit code 137"),
        ("decides", many, "true", true, "it answered with more than is read (64 KiB)"),
        ("decides", "printf '\\377'", "true", true, "it is not text (UTF-8)"),
        ("other", "true", "true", false, "this site has no program `other`"),
        ("decides", "true", "echo gone >&2; false", false, "the state could not be read: gone"),
        ("decides", "true", "head -c 3000000 /dev/zero", false, "than what a program is given"),
    ] {
        let (code, first, said) = asks(&with(command), program, read).await;
        assert_ne!(code, 0, "{command}");
        assert_eq!(first != "-", asked, "{command}: {first}");
        assert_eq!(Fingerprint::parse(&first).is_some(), asked, "{command}: {first}");
        assert!(said.contains(why), "{command}: {said}");
    }
    let room = "head -c 65536 /dev/zero | tr '\\0' x";
    let (code, _, said) = asks(&with(room), "decides", "true").await;
    assert_eq!((code, said.len()), (0, 65_536), "as much as is read");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_with_all_that_it_started() {
    // From short to long: a machine under load may need the longer one to get as far as it should.
    for limit_ms in [500, 2000, 8000] {
        let command = "sleep 1000 & echo $! > $CHEOPS_LOGIC; wait";
        let site = Site::with(|settings| {
            settings.time_limit = Duration::from_millis(limit_ms);
            settings.shell_dir = settings.scratch.parent().map(Into::into);
            settings.programs.insert("slow".to_owned(), command.to_owned());
        });
        let (code, first, said) = asks(&site, "slow", "true").await;
        assert_ne!((code, first.as_str()), (0, "-"));
        assert!(said.starts_with("it did not end within"), "{said}");
        if fs::metadata(site.path("slow")).is_ok_and(|file| file.len() > 0) {
            return gone(&pids(&site, &["slow"]).await).await;
        }
    }
    panic!("the program never got as far as it should");
}
