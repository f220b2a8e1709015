//! What somebody at a terminal is told while handing something in: before anything is written, and when
//! they do not want to wait.

use std::process::{Command, Stdio};

use crate::e2e::cluster::{Setup, until};

const SERVICES: &str = r#"
[[services]]
name = "image"
listen = "__SITE__:19292"
upstream = "http://__SITE__:9292"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_before_anything_is_written_and_a_scope_says_who_would_run_it_now() {
    let mut cluster = Setup::sites(3).config(SERVICES).start().await;
    let told = |arguments: &[&str]| {
        let ran = cluster[1].cheops(arguments);
        let text = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8(text).unwrap())
    };
    let exec = |sites: &'static str, kind: &'static str| {
        ["exec", "--id", "x", "--profile", "file", "--sites", sites, "--type", kind, "--", "true"]
    };
    let (code, text) = told(&exec("site1 & sitee2", "set"));
    assert!(code == Some(2) && text.contains("site2"), "{text}");
    let (code, text) = told(&[
        "http",
        "--id",
        "x",
        "--sites",
        "site1 & site2",
        "--type",
        "put",
        "--service",
        "imgae",
        "PUT",
        "/x",
    ]);
    assert!(code == Some(2) && text.contains("they have `image`"), "{text}");
    assert_eq!(told(&["resource", "x"]).0, Some(2), "nothing was written");
    let (code, text) = told(&exec("site1 & site2", "append"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("does not list the type `append`"), "{text}");
    assert!(text.contains("listed are `add`, `set`"), "{text}");

    let (code, text) = told(&["scope", "image: site2 ; site3"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("As site1 sees it:") && text.contains("now at site2 ("), "{text}");
    let (code, text) = told(&["scope", "imagee: site1"]);
    assert!(code == Some(1) && text.contains("`image`"), "{text}");
    assert_eq!(told(&["scope", "image: site4"]).0, Some(1));
    cluster[2].kill();
    until("site1 knows that site2 is gone", async || {
        let ran = cluster[1].cheops(&["scope", "image: site2 ; site3"]);
        let text = String::from_utf8(ran.stdout).unwrap();
        text.contains("now at site3 (") && text.contains("site2 is not connected")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_want_to_wait_is_told_that_it_goes_on_and_it_does() {
    let cluster = Setup::sites(2).start().await;
    let command = "echo > begun; until [ -e go ]; do sleep 0.1; done; echo ended > ended";
    let sites = cluster.everywhere();
    let waiting = Command::new(env!("CARGO_BIN_EXE_cheops"))
        .args(["--agent", &cluster[1].socket, "exec", "--id", "slow", "--sites", &sites])
        .args(["--type", "set", "--command", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for site in cluster.sites() {
        until("it runs", async || site.files.join("begun").exists()).await;
    }
    let interrupt = Command::new("kill").args(["-INT", &waiting.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let ran = waiting.wait_with_output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(130), "{told}");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("is accepted and goes on; site1 and site2 have not replied"), "{told}");
    assert!(told.contains("look: cheops resource slow"), "{told}");
    for site in cluster.sites() {
        std::fs::write(site.files.join("go"), "").unwrap();
    }
    for site in cluster.sites() {
        until("it went on", async || site.files.join("ended").exists()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_up_ends_no_agent_and_is_told_in_its_log() {
    let cluster = Setup::sites(1).start().await;
    cluster[1].hang_up();
    until("the log tells of it", async || cluster[1].log_tail().contains("SIGHUP is ignored"))
        .await;
    let ran = cluster[1].cheops(&["sites"]);
    assert_eq!(ran.status.code(), Some(0), "it still answers");
}
