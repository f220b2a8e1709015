//! Documents that are merged: edits made at sites that are cut from each other are all there when they
//! meet, the same everywhere.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use cheops_api::{Resource, StateAgreement, Submit, Wait};
use cheops_core::engine::Record;
use cheops_core::model::{DocumentEdit, SiteId};
use cheops_store::{StoreOptions, open};
use serde_json::json;

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, until_within, waiting_for};

/// How many edits each site makes in a cut.
const EDITS: u64 = 200;
/// All of them have to be merged at each site, in processes of their own.
const PATIENCE: Duration = Duration::from_secs(240);

const TEXT: &str = r#"{"Profile": "text", "Target": "notes"}"#;
const JSON: &str = r#"{"Profile": "json", "Target": "settings.json"}"#;

fn edit(command: impl Into<String>) -> Submit {
    waiting_for(Wait::Local, shell("edit", command))
}

/// A document that all sites have.
async fn begins(cluster: &Cluster, id: &str, config: &str, command: &str) {
    let start = first(shell("edit", command), &cluster.everywhere(), config);
    cluster[1].does(id, &start).await;
    cluster.converges(id).await;
}

async fn until_verified(cluster: &Cluster, id: &str) {
    let is_verified = |told: Resource| {
        told.proof.is_some_and(|proof| proof.agreement == StateAgreement::Verified)
    };
    for site in cluster.sites() {
        until_within(PATIENCE, &format!("{} says that {id} is verified", site.name), async || {
            site.resource(id).await.is_some_and(is_verified)
        })
        .await;
    }
}

/// Waits until a file is the same at all sites.
async fn until_same(cluster: &Cluster, name: &str, holds: impl Fn(&str) -> bool) -> String {
    until_within(PATIENCE, &format!("{name} is the same everywhere"), async || {
        let text = cluster[1].file(name);
        cluster.sites().all(|site| site.file(name) == text) && holds(&text)
    })
    .await;
    cluster[1].file(name)
}

/// The generator splitmix64: the same numbers in each run.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// What somebody may do to a text, with nothing but the tools of a shell.
fn some_command(random: &mut Scatter, word: &str) -> String {
    let line = 1 + random.below(40);
    match random.below(8) {
        0 | 1 => format!("printf '%s said é\\n' {word} >> notes"),
        2 | 3 => format!("sed -i '{line}i the line of {word}, new' notes"),
        4 => format!("sed -i '{line}s/$/ {word}/' notes"),
        5 => format!("sed -i '{line}s/[a-z]*$/{word}/' notes"),
        6 => format!("awk 'NR=={line}{{$2=\"{word}\"}}1' notes > notes.new && mv notes.new notes"),
        _ => format!("sed -i '{line}d' notes"),
    }
}

async fn makes_edits(site: &Site, number: u8) {
    let mut random = Scatter(u64::from(number));
    for n in 0..EDITS {
        let command = some_command(&mut random, &format!("word{number}x{n}"));
        site.does("notes", &edit(command)).await;
    }
}

/// What a site whose agent is stopped has recorded of the edits.
fn recorded(site: &Site) -> Vec<DocumentEdit> {
    let name = SiteId::new(&site.name).unwrap();
    let opened = open(&site.data, &name, || 1, StoreOptions::default()).unwrap();
    let edit = |record: &Record| match record {
        Record::Entry(_, entry) => entry.edit(),
        _ => None,
    };
    opened.records.iter().filter_map(edit).collect()
}

/// What the library's own JavaScript makes of changes to an empty text.
fn judged(changes: &[DocumentEdit]) -> String {
    let ui = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui"));
    assert!(
        ui.join("node_modules/loro-crdt").exists(),
        "the judge of merges is an npm package that is not there: `npm ci` in ui, or `make ui`",
    );
    let changes = changes.iter().rev().filter(|edit| !edit.change.is_empty());
    let changes: Vec<String> = changes.map(|edit| BASE64.encode(&edit.change)).collect();
    let asked = json!({"form": "text", "seeds": [], "changes": changes});
    let mut node = Command::new("node")
        .arg(ui.join("scripts/merge-oracle.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the judge of merges needs Node, as the web UI does: install it");
    node.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let said = node.wait_with_output().unwrap();
    assert!(said.status.success(), "the judge of merges failed: {}", said.status);
    String::from_utf8(said.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_edits_made_in_a_cut_end_equal_verified_and_as_another_implementation_merges_them()
 {
    let mut cluster = Setup::sites(3).start().await;
    begins(&cluster, "notes", TEXT, "seq -f 'line %g has some words' 30 > notes").await;
    cluster.cut();
    let [a, b, c] = [1, 2, 3].map(|number| makes_edits(&cluster[number], number));
    tokio::join!(a, b, c);
    cluster.nobody_hears().await;
    let apart: Vec<String> = cluster.sites().map(|site| site.file("notes")).collect();
    assert!(apart[0] != apart[1] && apart[1] != apart[2], "nothing to merge");
    cluster.heal();
    let text = until_same(&cluster, "notes", |_| true).await;
    until_verified(&cluster, "notes").await;
    assert_eq!(until_same(&cluster, "notes", |_| true).await, text);

    // As programs are told, and as people are.
    let operations = cluster[2].operations("notes").await;
    assert_eq!(operations.len() as u64, 3 * EDITS + 1);
    let last = operations.iter().rfind(|operation| operation.site == "site2").unwrap();
    let told = cluster[1].client().recorded(&last.id, None).await.unwrap();
    let out = cluster[1].cheops(&["operation", &last.id]);
    let printed = String::from_utf8_lossy(&out.stdout).into_owned();
    let size = told.edits[0].size;
    let line = format!("edit of {size} bytes, merged at site1, site3");
    assert!(size > 0 && printed.contains(&line), "{printed}");

    assert!(cluster[1].stop().await.success());
    let edits = recorded(&cluster[1]);
    assert_eq!(edits.len() as u64, 3 * EDITS + 1);
    let edit = edits.iter().find(|edit| edit.operation.to_string() == last.id).unwrap();
    assert_eq!(told.edits[0].base64, BASE64.encode(&edit.change));
    assert_eq!(told.edits[0].made_by, edit.writer().to_string());
    assert_eq!(judged(&edits), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_typed_at_one_place_at_once_are_each_in_one_piece_also_at_a_site_that_lost_its_disk()
{
    let mut cluster = Setup::sites(3).start().await;
    begins(&cluster, "notes", TEXT, "echo 'begin end' > notes").await;
    cluster.cut();
    let typed = [(1, "three blind mice"), (2, "see how they run"), (3, "she cut off their tails")];
    for (number, words) in typed {
        for word in words.split(' ') {
            // One word after the other, as it is typed.
            cluster[number]
                .does("notes", &edit(format!("sed -i 's/ *end/ {word} end/' notes")))
                .await;
        }
    }
    cluster.nobody_hears().await;
    cluster.heal();
    let all = |text: &str| typed.iter().all(|(_, words)| text.contains(words));
    let text = until_same(&cluster, "notes", all).await;
    until_verified(&cluster, "notes").await;
    assert_eq!(text.split_whitespace().count(), 2 + 3 + 4 + 5, "{text}");

    cluster[2].kill();
    std::fs::remove_dir_all(&cluster[2].data).unwrap();
    std::fs::remove_dir_all(&cluster[2].files).unwrap();
    std::fs::create_dir_all(&cluster[2].files).unwrap();
    cluster.restart(2).await;
    cluster.all_hear().await;
    assert_eq!(until_same(&cluster, "notes", |text| !text.is_empty()).await, text);
    until_verified(&cluster, "notes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_changed_member_by_member_in_a_cut_have_every_change() {
    let cluster = Setup::sites(3).start().await;
    let begin = r#"{"theme": {"name": "light", "size": 12}, "hosts": ["a"], "old": true}"#;
    begins(&cluster, "settings", JSON, &format!("echo '{begin}' > settings.json")).await;
    cluster.cut();
    let edits = [
        (1, r#"sed -i 's/"light"/"dark"/' settings.json"#),
        (2, r#"sed -i -e 's/"size": 12/"size": 14, "bold": true/' settings.json"#),
        (2, r#"sed -i 's/"a"/"a", "b"/' settings.json"#),
        (
            3,
            r#"tr -d '\n' < settings.json | sed 's/, *"old": true//;s/"old": true, *//' > new && mv new settings.json"#,
        ),
        (3, r#"sed -i 's/"a"/"z", "a"/' settings.json"#),
    ];
    for (number, command) in edits {
        cluster[number].does("settings", &edit(command)).await;
    }
    cluster.nobody_hears().await;
    cluster.heal();
    let has_all =
        |text: &str| ["dark", "14", "bold", "\"b\"", "\"z\""].iter().all(|it| text.contains(it));
    let text = until_same(&cluster, "settings.json", has_all).await;
    until_verified(&cluster, "settings").await;
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = json!({
        "theme": {"name": "dark", "size": 14, "bold": true},
        "hosts": ["z", "a", "b"],
    });
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_in_the_middle_of_edits_loses_none_and_doubles_none() {
    let mut cluster = Setup::sites(3).start().await;
    begins(&cluster, "notes", TEXT, "echo begin > notes").await;
    let pipe = Command::new("mkfifo").arg(cluster[2].files.join("pipe")).status().unwrap();
    assert!(pipe.success());
    let mut expected = BTreeMap::from([("begin".to_owned(), 1)]);
    for round in 0..3 {
        for n in 0..5 {
            let line = format!("round{round}x{n}");
            // In the middle of one of them it is killed, when half of it is done.
            let waits = match n {
                2 => format!("[ -e began{round} ] || {{ : > began{round}; cat pipe; }}"),
                _ => ":".to_owned(),
            };
            let command = format!("echo {line} >> notes; {waits}");
            let edit = waiting_for(Wait::None, shell("edit", command));
            cluster[2].does("notes", &edit).await;
            let other = format!("other{round}x{n}");
            let edit = waiting_for(Wait::None, shell("edit", format!("sed -i '1i {other}' notes")));
            cluster[1].does("notes", &edit).await;
            expected.extend([(line, 1), (other, 1)]);
        }
        let began = cluster[2].files.join(format!("began{round}"));
        until("an edit is in its middle", async || began.exists()).await;
        cluster[2].kill();
        cluster.restart(2).await;
    }
    cluster.all_hear().await;
    let lines = |text: &str| {
        text.lines().fold(BTreeMap::new(), |mut lines, line| {
            *lines.entry(line.to_owned()).or_insert(0) += 1;
            lines
        })
    };
    let has_all = |text: &str| text.lines().count() >= expected.len();
    let text = until_same(&cluster, "notes", has_all).await;
    until_verified(&cluster, "notes").await;
    assert_eq!(lines(&text), expected);
}
