//! A site that is asked about a resource it does not hold passes the request on.

use std::process::Output;

use serde_json::Value;

use crate::e2e::cluster::{Setup, Site, until};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The command line must end well; what it printed.
fn well(ran: &Output) -> String {
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", text(&ran.stderr));
    said
}

fn json(site: &Site, arguments: &[&str]) -> Value {
    let said = well(&site.cheops(&[&["--output", "json"], arguments].concat()));
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("no JSON: {said}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_other_sites_is_handled_through_any_site() {
    let cluster = Setup::sites(3).start().await;
    let here = &cluster[1];
    let note = cluster.folder().join("note");
    std::fs::write(&note, "from afar\n").unwrap();

    // A new one, with a file.
    let command = format!("cat {{{}}} > note", note.display());
    let said = well(&here.cheops(&[
        "exec",
        "--id",
        "afar",
        "--sites",
        "site2 & site3",
        "--type",
        "set",
        "--profile",
        "file",
        "--command",
        &command,
    ]));
    assert!(said.contains("site2") && said.contains("site3"), "{said}");
    assert!(!said.contains("site1"), "{said}");
    for site in [2, 3] {
        assert_eq!(cluster[site].file("note"), "from afar\n");
    }
    assert_eq!(here.file("note"), "", "this site has nothing to do with it");

    // A known one.
    well(&here.cheops(&[
        "exec",
        "--id",
        "afar",
        "--type",
        "add",
        "--command",
        "echo more >> note",
    ]));
    for site in [2, 3] {
        assert_eq!(cluster[site].file("note"), "from afar\nmore\n");
    }

    // Looking at it.
    let resource = json(here, &["resource", "afar"]);
    assert!(resource.to_string().contains("site2"), "{resource}");
    let explained = json(here, &["explain", "afar"]);
    assert_eq!(explained["list"].as_array().unwrap().len(), 2, "{explained}");
    let shown = json(here, &["show", "--id", "afar", "--", "cat", "note"]);
    for site in ["site2", "site3"] {
        assert_eq!(shown["sites"][site]["output"], "from afar\nmore\n", "{shown}");
    }
    assert_eq!(cluster[1].resources().await, [], "it is not held here");

    // As the original's clients do.
    let curl = std::process::Command::new("curl")
        .args(["--silent", "--form", "command=echo even more >> note", "--form", "type=add"])
        .args(["--form", "sites=site2&site3"])
        .args(["--unix-socket", here.socket.trim_start_matches("unix:")])
        .arg("http://localhost/exec/afar")
        .output()
        .unwrap();
    let lines: Vec<Value> =
        text(&curl.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line["Status"] == "OK"), "{lines:?}");

    // While one of its sites is away, the other takes it in.
    cluster.cut_off(2);
    let said = here.cheops(&[
        "exec",
        "--id",
        "afar",
        "--type",
        "add",
        "--wait",
        "local",
        "--command",
        "echo without site2 >> note",
    ]);
    well(&said);
    assert!(cluster[3].file("note").contains("without site2"));
    cluster.join(2);
    until("the site that was away has it too", async || {
        cluster[2].file("note") == cluster[3].file("note")
    })
    .await;

    // Ending it.
    well(&here.cheops(&["delete", "afar", "--yes", "--command", "rm note"]));
    for site in [2, 3] {
        assert!(!cluster[site].files.join("note").exists());
    }
    let again = here.cheops(&["exec", "--id", "afar", "--type", "add", "--command", "true"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));

    // One that nobody holds.
    let nobody = here.cheops(&["resource", "nowhere"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("nowhere"), "{}", text(&nobody.stderr));
}
