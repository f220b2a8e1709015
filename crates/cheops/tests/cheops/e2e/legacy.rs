//! The first Cheops's own API, asked with curl as its users did.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::e2e::cluster::{Cluster, Setup, until};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// What curl got: the status and the body.
struct Got {
    status: u16,
    body: String,
}

impl Got {
    fn lines(&self) -> Vec<Value> {
        self.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}

/// Posts a form; `name=value` or `name=@path` each.
fn curl(cluster: &Cluster, site: u8, path: &str, parts: &[&str]) -> Got {
    let mut command = cluster.command(site, "curl");
    command.args(["--silent", "--show-error", "--no-buffer", "--write-out", "\n%{http_code}"]);
    for part in parts {
        // Only a file needs the form's own grammar, in which `;` has a meaning.
        let form = if part.contains("=@") { "--form" } else { "--form-string" };
        command.args([form, part]);
    }
    let ran =
        command.arg(format!("{}{path}", cluster[site].api)).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let (body, status) = said.rsplit_once('\n').unwrap();
    Got { status: status.parse().unwrap(), body: body.to_owned() }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Every line has the original's keys and no other; the statuses by site.
fn statuses(got: &Got, id: &str, command: &str) -> Vec<(String, String)> {
    assert_eq!(got.status, 200, "{}", got.body);
    let mut statuses = Vec::new();
    for line in got.lines() {
        let names = [
            "Locations",
            "Site",
            "RequestId",
            "ResourceId",
            "Status",
            "Cmd",
            "Input",
            "Output",
            "ExecutionTime",
            "Type",
        ];
        assert_eq!(keys(&line), BTreeSet::from(names));
        assert_eq!(keys(&line["Cmd"]), BTreeSet::from(["Input", "Output"]));
        assert_eq!((&line["ResourceId"], &line["Type"]), (&id.into(), &"REPLY".into()));
        assert_eq!((&line["Input"], &line["Cmd"]["Input"]), (&command.into(), &command.into()));
        assert_eq!(line["Output"], line["Cmd"]["Output"]);
        assert_eq!(line["Locations"], serde_json::json!(["site1", "site2", "site3"]));
        assert!(!line["RequestId"].as_str().unwrap().is_empty());
        assert!(line["ExecutionTime"].as_str().unwrap().ends_with('s'));
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        statuses.push((text("Site"), text("Status")));
    }
    statuses.sort();
    statuses
}

fn all_say(status: &str) -> Vec<(String, String)> {
    ["site1", "site2", "site3"].map(|site| (site.to_owned(), status.to_owned())).into()
}

fn file(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    format!("{name}=@{}", path.display())
}

const SITES: &str = "sites=site1&site2&site3";

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_original_work_unchanged() {
    let cluster = Setup::sites(3).without_token().start().await;
    let config = format!("config={MATRIX}");

    // Without files.
    let command = "echo one > greeting; cat greeting";
    let parts = [&format!("command={command}"), SITES, "type=set", &config];
    let got = curl(&cluster, 1, "/exec/greeting", &parts);
    assert_eq!(statuses(&got, "greeting", command), all_say("OK"));
    assert!(got.lines().iter().all(|line| line["Output"] == "one\n"), "{}", got.body);

    // With files, from another site, and without a config.
    let (a, b) = (file(&cluster.folder(), "a", "alpha"), file(&cluster.folder(), "b.yaml", "beta"));
    let command = "cat {a} {b.yaml} > greeting; cat greeting";
    let parts = [&format!("command={command}"), SITES, "type=set", &a, &b];
    let got = curl(&cluster, 2, "/exec/greeting", &parts);
    assert_eq!(statuses(&got, "greeting", command), all_say("OK"));
    assert!(got.lines().iter().all(|line| line["Output"] == "alphabeta"), "{}", got.body);

    // One that fails.
    let command = "echo no; exit 3";
    let parts = [&format!("command={command}"), SITES, "type=other", &config];
    let got = curl(&cluster, 3, "/exec/failing", &parts);
    assert_eq!(statuses(&got, "failing", command), all_say("KO"));

    // Looking.
    for parts in [vec!["command=cat greeting", SITES], vec!["command=cat greeting", SITES, &a]] {
        let got = curl(&cluster, 3, "/show/greeting", &parts);
        assert_eq!(got.status, 200);
        let shown = serde_json::json!({"Status": "OK", "Output": "alphabeta"});
        let want = serde_json::json!({"site1": shown, "site2": shown, "site3": shown});
        assert_eq!(got.json(), want);
    }
    let got = curl(&cluster, 1, "/show/greeting", &["command=exit 4", "sites=site2"]);
    assert_eq!(got.json()["site2"]["Status"], "KO", "{}", got.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_originals_api_cannot_make_sense_of_is_said_with_a_400() {
    let cluster = Setup::sites(2).without_token().start().await;
    let good = ["command=true", "sites=site1&site2", "type=set"];
    for (path, parts, names) in [
        ("/exec/x", vec![good[1], good[2]], "command"),
        ("/exec/x", vec![good[0], good[2]], "sites"),
        ("/exec/x", vec![good[0], good[1]], "type"),
        ("/exec/x", vec![good[0], "sites=site1&", good[2]], "site"),
        ("/exec/x", vec![good[0], "sites=site1&paris", good[2]], "paris"),
        ("/exec/x", vec![good[0], good[1], "type=a b"], "type"),
        ("/exec/x", vec![good[0], good[1], good[2], "config={"], ""),
        ("/exec/x", vec![good[0], good[1], good[2], r#"config={"ResolutionMatrix": 1}"#], "Matrix"),
        (
            "/exec/x",
            vec![
                good[0],
                good[1],
                good[2],
                r#"config={"ResolutionMatrix":[{"Before":"a","After":"b","Result":"take-two"}]}"#,
            ],
            "take-two",
        ),
        ("/exec/x", vec![good[0], good[1], good[2], "conifg={}"], "did you mean `config`?"),
        ("/exec/%00", good.to_vec(), ""),
        ("/show/x", vec!["sites=site1"], "command"),
        ("/show/x", vec!["command=true"], "sites"),
        ("/show/x", vec!["command=true", "sites=paris"], "paris"),
    ] {
        let got = curl(&cluster, 1, path, &parts);
        assert_eq!(got.status, 400, "{path} {parts:?}: {}", got.body);
        let problem = got.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(names), "{parts:?}: {problem}");
    }
    let got = curl(&cluster, 1, "/exec/x", &[]);
    assert!((400..500).contains(&got.status), "{}", got.body);
    assert_eq!(cluster[1].resources().await, [], "nothing of this happened");
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_do_not_reply_in_time_are_named_and_do_the_work_later() {
    let cluster = Setup::sites(3).without_token().start().await;
    cluster.cut_off(3);
    let command = "echo late >> late";
    let parts = [&format!("command={command}"), SITES, "type=set", &format!("config={MATRIX}")];
    let got = curl(&cluster, 1, "/exec/late", &parts);
    let mut want = all_say("OK");
    want[2].1 = "TIMEOUT".to_owned();
    assert_eq!(statuses(&got, "late", command), want);
    assert_eq!(cluster[3].file("late"), "");
    let got = curl(&cluster, 1, "/show/late", &["command=cat late", SITES]);
    assert_eq!(got.json()["site2"]["Output"], "late\n");
    assert_ne!(got.json()["site3"]["Status"], "OK", "{}", got.body);
    cluster.join(3);
    until("the work is done", async || cluster[3].file("late") == "late\n").await;
    cluster.converges("late").await;
}
