//! Verbs that talk to an agent, against nobody or against canned answers. What a real agent says is
//! tested with a real agent.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::thread::JoinHandle;

use expect_test::expect;

use crate::binary::request::request;
use crate::binary::running::{Ran, cheops, command, file};

/// Every verb that talks to an agent, with what it needs.
const VERBS: [&[&str]; 18] = [
    &["exec", "--id", "x", "--type", "set", "--", "true"],
    &["http", "--id", "x", "--type", "put", "--service", "s", "PUT", "/x"],
    &["show", "--id", "x", "--", "true"],
    &["resources"],
    &["resource", "x"],
    &["explain", "x"],
    &["watch"],
    &["sites"],
    &["delete", "x", "--yes"],
    &["settle", "x", "paris-1.1", "skip"],
    &["status"],
    &["diff", "x"],
    &["history", "x"],
    &["operation", "paris-1.1"],
    &["retry", "x", "paris-1.1"],
    &["dismiss", "x", "paris-1.1"],
    &["undo", "x", "paris-1.1"],
    &["undo", "x", "paris-1.1", "--dry-run"],
];

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// An agent that hears one request and gives this answer, whatever it was asked.
struct Canned {
    address: String,
    heard: JoinHandle<String>,
}

impl Canned {
    fn answering(status: &str, media_type: &str, body: &str) -> Self {
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\nconnection: close\r\n\r\n{body}"
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let heard = request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            heard
        });
        Self { address, heard }
    }

    fn events(lines: &[&str]) -> Self {
        Self::answering("200 OK", "application/x-ndjson", &lines.join("\n"))
    }

    /// Runs the binary against it; what came out, and what the agent heard.
    fn ran(self, arguments: &[&str]) -> (Ran, String) {
        let ran = cheops(&[&["--agent", &self.address], arguments].concat());
        (ran, self.heard.join().unwrap())
    }
}

const ACCEPTED: &str = r#"{"event":"accepted","operation":"paris-1.1","resource":"x","sites":["lyon","paris"],"site":"paris"}"#;
const OK_AT_PARIS: &str = r#"{"event":"reply","site":"paris","operation":"paris-1.1","status":"OK","exit_code":0,"output":"29\n","truncated":false,"time":"2026-01-02T03:04:05Z"}"#;
const OK_AT_LYON: &str = r#"{"event":"reply","site":"lyon","operation":"paris-1.1","status":"OK","exit_code":0,"output":"","truncated":false,"time":"2026-01-02T03:04:05Z"}"#;
const KO_AT_LYON: &str = r#"{"event":"reply","site":"lyon","operation":"paris-1.1","status":"KO","exit_code":7,"output":"no","truncated":false,"time":"2026-01-02T03:04:05Z"}"#;
const DONE: &str = r#"{"event":"done"}"#;
const EXEC: [&str; 6] = ["exec", "--id", "x", "--type", "set", "--"];

#[test]
fn an_agent_out_of_reach_is_told_with_where_it_was_sought() {
    let address = nobody();
    for verb in VERBS {
        let ran = cheops(&[&["--agent", &address], verb].concat());
        assert_eq!(ran.code, Some(3), "{verb:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{verb:?}");
        for part in [address.as_str(), "--agent URL", "CHEOPS_AGENT", "cheops demo"] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
    }
    let ran = cheops(&["--agent", &address, "sites"]);
    let said = ran.err.replace(&address, "ADDRESS");
    // What the system calls it differs.
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("because: ")).collect();
    expect![[r#"
        error: no agent answers at `ADDRESS`
        hint: `--agent URL` or CHEOPS_AGENT points to another; `cheops demo` starts one"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn programs_are_told_as_data() {
    let address = nobody();
    let ran = cheops(&["--agent", &address, "--output", "json", "sites"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(ran.json()["error"]["message"], format!("no agent answers at `{address}`"));
}

#[test]
fn the_environment_says_where_the_agent_is() {
    let address = nobody();
    let ran: Ran = command(&["sites"]).env("CHEOPS_AGENT", &address).output().unwrap().into();
    assert!(ran.err.contains(&address), "{}", ran.err);
    let ran: Ran = command(&["sites"]).env("CHEOPS_AGENT", "ftp://x").output().unwrap().into();
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("it begins with `http://`"), "{}", ran.err);
}

#[test]
fn what_cannot_be_asked_is_refused_before_anyone_is() {
    for (arguments, want) in [
        (&["exec", "--id", "x", "--type", "set"][..], "there is no command"),
        (&["exec", "--id", "x", "--type", "set", "--", ""], "the command is empty"),
        (&["exec", "--id", "", "--type", "set", "--", "true"], "not a valid resource id"),
        (&["exec", "--id", "x", "--type", "a b", "--", "true"], "not a valid operation type"),
        (&["exec", "--id", "x", "--type", "set", "--sites", "a &", "--", "true"], "--sites"),
        (&["exec", "--id", "x", "--type", "set", "--timeout", "30", "--", "true"], "unit"),
        (&["exec", "--id", "x", "--type", "set", "--wait", "some", "--", "true"], "local"),
        (&["exec", "--id", "x", "--type", "set", "--config", "/nowhere", "--", "true"], "/nowhere"),
        (&["exec", "--id", "x", "--type", "set", "--profile", "rediss", "--", "true"], "redis"),
        (&["exec", "--id", "x", "--type", "set", "--command", "a", "--", "b"], "--command"),
        (&["http", "--id", "x", "--type", "put", "--service", "s", "PUT", "x"], "begins with `/`"),
        (
            &[
                "http",
                "--id",
                "x",
                "--type",
                "p",
                "--service",
                "s",
                "PUT",
                "/x",
                "--body",
                "@/nowhere",
            ],
            "/nowhere",
        ),
        (&["show", "--id", "x"], "there is no command"),
        (&["delete", "x"], "--yes"),
        (&["settle", "x", "paris", "skip"], "paris-5f.7"),
        (&["settle", "x", "paris-1.1", "maybe"], "rerun"),
        (&["resources", "--state", "converge"], "in-sync"),
        (&["resource"], "ID"),
        (&["exce"], "'exec'"),
    ] {
        let ran = cheops(&[&["--agent", "http://127.0.0.1:9"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(want), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_bad_matrix_is_shown_where_it_is_bad() {
    let path = file("bad-matrix.json", br#"{"ResolutionMatrix": [{"Before": "a"}]}"#);
    let path = path.to_str().unwrap();
    let ran = cheops(&["exec", "--id", "x", "--type", "set", "--config", path, "--", "true"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("bad-matrix.json:1:"), "{}", ran.err);
    assert!(ran.err.contains("has 2 problems"), "{}", ran.err);
}

#[test]
fn it_is_well_only_if_every_site_says_so() {
    for (events, code) in [
        (&[ACCEPTED, OK_AT_PARIS, OK_AT_LYON, DONE][..], 0),
        (&[ACCEPTED, OK_AT_PARIS, KO_AT_LYON, DONE], 1),
        (&[ACCEPTED, OK_AT_PARIS, r#"{"event":"timed-out","missing":["lyon"]}"#], 3),
        // The agent went away in the middle.
        (&[ACCEPTED, OK_AT_PARIS], 3),
    ] {
        let (ran, _) =
            Canned::events(events).ran(&[&EXEC[..], &["redis-cli", "get", "x"]].concat());
        assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("✓ paris  OK"), "{}", ran.out);
    }
}

#[test]
fn sites_that_show_different_things_fail_only_if_asked_to() {
    let site = |name: &str, status: &str, output: &str| {
        format!(
            r#""{name}":{{"status":"{status}","exit_code":0,"output":"{output}","truncated":false}}"#
        )
    };
    let (same, other) = (site("lyon", "OK", "29"), site("lyon", "OK", "30"));
    let (failed, silent) = (site("lyon", "KO", "29"), site("lyon", "TIMEOUT", ""));
    for (lyon, plain, with_exit_code) in
        [(same, 0, 0), (other, 0, 1), (failed, 1, 1), (silent, 3, 3)]
    {
        let body = format!(r#"{{"sites":{{{lyon},{}}}}}"#, site("paris", "OK", "29"));
        let show = |options: &[&str]| {
            let agent = Canned::answering("200 OK", "application/json", &body);
            let command = ["show", "--id", "x"];
            agent.ran(&[&command, options, &["--", "redis-cli get x"]].concat()).0
        };
        let ran = show(&[]);
        assert_eq!(ran.code, Some(plain), "{}{}", ran.out, ran.err);
        let ran = show(&["--exit-code"]);
        assert_eq!(ran.code, Some(with_exit_code), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn programs_get_each_event_on_a_line() {
    let agent = Canned::events(&[ACCEPTED, OK_AT_PARIS, OK_AT_LYON, DONE]);
    let (ran, _) = agent.ran(&[&["--output", "json"], &EXEC[..], &["true"]].concat());
    assert_eq!(ran.code, Some(0));
    let events: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 4);
    assert_eq!((&events[1]["site"], &events[3]["event"]), (&"paris".into(), &"done".into()));
}

#[test]
fn what_is_typed_is_what_is_handed_in() {
    let config = file("good-matrix.yaml", b"Profile: redis\n");
    let agent = Canned::events(&[ACCEPTED, DONE]);
    let (_, heard) = agent.ran(&[
        "exec",
        "--id",
        "a/b",
        "--sites",
        "paris & lyon",
        "--type",
        "set",
        "--wait",
        "none",
        "--timeout",
        "1.5s",
        "--force",
        "--config",
        config.to_str().unwrap(),
        "--",
        "echo",
        "a b",
    ]);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /api/v1/resources/a%2Fb/operations "), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["shell"]["command"], "echo 'a b'");
    assert_eq!(body["sites"], "paris & lyon");
    assert_eq!(body["type"], "set");
    assert_eq!(body["wait"], "none");
    assert_eq!(body["timeout_ms"], 1500);
    assert_eq!(body["force"], true);
    assert!(body["config"].is_object(), "{body}");
}

#[test]
fn a_file_named_in_braces_comes_along() {
    let deploy = file("deploy.yaml", b"replicas: 3");
    let folder = deploy.parent().unwrap();
    let agent = Canned::events(&[ACCEPTED, OK_AT_PARIS, OK_AT_LYON, DONE]);
    let ran: Ran = command(&["--agent", &agent.address])
        .args(EXEC)
        .arg(format!("cat {{{}}}", Path::new("./deploy.yaml").display()))
        .current_dir(folder)
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let heard = agent.heard.join().unwrap();
    assert!(heard.contains("multipart/form-data"), "{heard}");
    assert!(heard.contains(r#""command":"cat {deploy.yaml}""#), "{heard}");
    assert!(heard.contains(r#"name="deploy.yaml""#) && heard.contains("replicas: 3"), "{heard}");
}

#[test]
fn a_file_that_is_not_there_is_refused_before_anybody_is_asked() {
    let ran: Ran = command(&["--agent", "http://127.0.0.1:9"])
        .args(EXEC)
        .arg("cat {gone.yaml}")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("`{gone.yaml}` names no file here"), "{}", ran.err);
}

#[test]
fn an_agent_that_refuses_is_quoted() {
    let agent = Canned::answering(
        "404 Not Found",
        "application/problem+json",
        r#"{"type":"about:blank","title":"unknown resource","status":404,"detail":"resource `x` is not known here; a new resource needs its sites","hint":"give `--sites`"}"#,
    );
    let (ran, _) = agent.ran(&["resource", "x"]);
    ran.check(
        2,
        &expect![[r#"
            --- aside
            error: resource `x` is not known here; a new resource needs its sites
            hint: give `--sites`
        "#]],
    );
}

#[test]
fn an_agent_that_the_environment_names_need_not_be_typed() {
    let ran: Ran =
        command(&["completions"]).env("CHEOPS_AGENT", "http://x").output().unwrap().into();
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("Usage: cheops completions"), "{}", ran.err);
    assert!(!ran.err.contains("--agent"), "{}", ran.err);
}

#[test]
fn what_goes_to_no_terminal_is_not_cut_off() {
    let address = "a-host-with-a-rather-long-name.in-a-zone-of-its-own.example:8078";
    let problem = "it cannot be reached, for a reason that takes more words than fit on one line";
    let site = |name: &str, more: &str| {
        format!(
            r#"{{"site":"{name}","state":"never-heard","since":null,"round_trip_ms":null,"shared":0,
            "behind_on":0,"entries_behind":null,"address":"{address}"{more}}}"#
        )
    };
    let sites = [site("paris", ""), site("lyon", &format!(r#","problem":"{problem}""#))].join(",");
    let body = format!(r#"{{"me":"paris","sites":[{sites}],"version":"0.1.0","demo":false}}"#);
    let (ran, _) = Canned::answering("200 OK", "application/json", &body).ran(&["sites"]);
    assert_eq!(ran.out.matches(address).count(), 2, "{}{}", ran.out, ran.err);
    // Text is wrapped as ever.
    assert!(!ran.out.contains(problem), "{}", ran.out);
}

#[test]
fn what_is_no_agent_is_told_so() {
    let (ran, _) = Canned::answering("200 OK", "text/html", "<html>").ran(&["sites"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is not what an agent"), "{}", ran.err);
}

#[test]
fn watching_goes_on_after_a_broken_connection_where_it_was() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let event = |id: u64| {
        let data = format!(r#"{{"at":"t","event":"site-up","site":"s{id}"}}"#);
        format!("id: {id}\nevent: site-up\ndata: {data}\n\n")
    };
    let agent = std::thread::spawn(move || {
        // The second time it says an event again, as an agent may that is not sure.
        [vec![1, 2], vec![2, 3]].map(|ids| {
            let (mut stream, _) = listener.accept().unwrap();
            let heard = request(&mut stream);
            let events: String = ids.into_iter().map(event).collect();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
            stream.write_all(format!("{head}\r\n\r\n{events}").as_bytes()).unwrap();
            heard
        })
    });
    let mut child = command(&["--agent", &address, "--output", "json", "watch", "a b"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen: Vec<serde_json::Value> =
        lines.take(3).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let ids: Vec<&serde_json::Value> = seen.iter().map(|change| &change["id"]).collect();
    assert_eq!(ids, [1, 2, 3]);
    let [first, second] = agent.join().unwrap();
    assert!(first.starts_with("GET /api/v1/changes/a%20b ") && !first.contains("last-event-id"));
    assert!(second.contains("last-event-id: 2"), "{second}");
}
