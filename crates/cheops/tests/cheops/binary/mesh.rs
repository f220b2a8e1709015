//! `cheops mesh` and `cheops init`: from nothing to an agent that starts.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use expect_test::expect;

use crate::binary::running::command;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs it in the folder; what it printed, and its exit code.
    fn run(&self, arguments: &[&str]) -> (String, Option<i32>) {
        self.run_with(arguments, [])
    }

    /// The same, in another environment.
    fn run_with<const N: usize>(
        &self,
        arguments: &[&str],
        environment: [(&str, &str); N],
    ) -> (String, Option<i32>) {
        let mut command = command(arguments);
        let ran = command.envs(environment).current_dir(self.0.path()).output().unwrap();
        let (out, err) = (ran.stdout, ran.stderr);
        let printed = String::from_utf8_lossy(&out).into_owned() + &String::from_utf8_lossy(&err);
        (printed, ran.status.code())
    }
}

#[test]
fn a_mesh_an_identity_and_a_config_are_made_in_three_commands() {
    let folder = Folder::new();
    let (made, code) = folder.run(&["mesh", "new"]);
    assert_eq!(code, Some(0), "{made}");
    let (issued, code) = folder.run(&["mesh", "issue", "paris"]);
    assert_eq!(code, Some(0), "{issued}");
    let (written, code) = folder.run(&["init", "--site", "paris", "--identity", "paris.pem"]);
    assert_eq!(code, Some(0), "{written}");
    expect![[r#"
        a mesh in `mesh`; next, for each site: cheops mesh issue SITE --dir mesh
        the identity of paris in `paris.pem`; carry it there, keep it secret, then: cheops init --site paris --identity paris.pem
        `paris.toml`; name the other sites and the services in it, then: cheops agent --config paris.toml
    "#]]
    .assert_eq(&(made + &issued + &written));
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    folder.run(&["mesh", "new"]);
    let (said, code) = folder.run(&["mesh", "new"]);
    assert_eq!(code, Some(2), "{said}");
    expect![[r#"
        error: that is not possible
        because: there is a mesh in `mesh` already
        hint: its authority is kept: use another folder for another mesh
    "#]]
    .assert_eq(&said);
    folder.run(&["init", "--site", "paris"]);
    let (said, code) = folder.run(&["init", "--site", "paris"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("hint: nothing is overwritten; `--out` names another file"), "{said}");
}

#[test]
fn a_config_that_cannot_be_written_is_not_said_to_be_there() {
    let folder = Folder::new();
    let (said, code) = folder.run(&["init", "--site", "paris", "--out", "nowhere/paris.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`nowhere/paris.toml` could not be written"), "{said}");
    assert!(!said.contains("overwritten"), "{said}");
}

#[test]
fn an_agent_says_where_it_is_reached_and_where_its_proxies_are() {
    let folder = Folder::new();
    let config = r#"
        site = "paris"
        [api]
        listen = "127.0.0.1:0"
        [[services]]
        name = "compute"
        upstream = "http://127.0.0.1:1/v1"
        [[services]]
        name = "image"
        listen = "127.0.0.1:0"
        upstream = "http://127.0.0.1:9292/v2""#;
    std::fs::write(folder.0.path().join("paris.toml"), config).unwrap();
    // Nobody holds its standard input, so it ends as soon as it has begun.
    let (said, code) = folder.run(&["agent", "--config", "paris.toml", "--with-parent"]);
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("site paris: API on http://127.0.0.1:"), "{said}");
    assert!(lines[1].starts_with("service image: proxy on http://127.0.0.1:"), "{said}");
    assert!(lines[1].ends_with(", for http://127.0.0.1:9292/v2"), "{said}");
    assert!(!said.contains("compute"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_takes_room_for_more_connections_than_a_program_has_by_itself() {
    let folder = Folder::new();
    let config = "site = \"paris\"\n[api]\nlisten = \"127.0.0.1:0\"";
    std::fs::write(folder.0.path().join("paris.toml"), config).unwrap();
    let agent = format!("{} agent --config paris.toml --with-parent", env!("CARGO_BIN_EXE_cheops"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -Sn 256 && exec {agent}")]).current_dir(folder.0.path());
    let mut agent = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", agent.id())).unwrap();
    drop(agent.stdin.take());
    agent.wait().unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: Vec<u64> = files.split_whitespace().filter_map(|limit| limit.parse().ok()).collect();
    assert_eq!(files[0], files[1].min(65_536), "{said}{limits}");
}

#[test]
fn an_agent_without_its_identity_says_how_to_get_one() {
    let folder = Folder::new();
    folder.run(&["init", "--site", "paris"]);
    let (said, code) = folder.run(&["agent", "--config", "paris.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("paris.pem") && said.contains("cheops mesh issue SITE"), "{said}");
}

#[test]
fn an_agent_says_what_is_wrong_with_its_config_all_at_once() {
    let folder = Folder::new();
    std::fs::write(folder.0.path().join("bad.toml"), "site = \"a b\"\nlisten = 3\n").unwrap();
    let (said, code) = folder.run(&["agent", "--config", "bad.toml"]);
    assert_eq!(code, Some(2), "{said}");
    for part in ["bad.toml", "1:", "2:", "listen", "hint: `cheops init`"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn an_agent_with_the_identity_of_another_site_does_not_start() {
    let folder = Folder::new();
    folder.run(&["mesh", "new"]);
    folder.run(&["mesh", "issue", "lyon"]);
    folder.run(&["init", "--site", "paris", "--identity", "lyon.pem"]);
    let (said, code) = folder.run(&["agent", "--config", "paris.toml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is the identity of site `lyon`, and this is site `paris`"), "{said}");
    assert!(said.contains("cheops mesh issue paris"), "{said}");
}

#[test]
fn an_agent_that_cannot_trust_any_secure_service_says_what_is_missing() {
    let folder = Folder::new();
    let config = r#"
        site = "paris"
        [api]
        listen = "127.0.0.1:0"
        [[services]]
        name = "image"
        listen = "127.0.0.1:0"
        upstream = "https://127.0.0.1:9292""#;
    std::fs::write(folder.0.path().join("paris.toml"), config).unwrap();
    let untrusting = [("SSL_CERT_FILE", "none.pem"), ("SSL_CERT_DIR", "none")];
    let agent = ["agent", "--config", "paris.toml", "--with-parent"];
    let (said, code) = folder.run_with(&agent, untrusting);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the system's certificates cannot be read"), "{said}");
    assert!(said.contains("`ca-certificates`"), "{said}");
}
