//! The library's own JavaScript, given the same changes in another order, comes to the same content.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use cheops_merge::DocumentForm;
use serde_json::{Value, json};

use crate::{Site, scatter};

/// What it says of changes that were made on one of these contents.
fn judged(form: DocumentForm, seeds: &[(&str, &str)], changes: &[Vec<u8>]) -> String {
    let ui = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui"));
    assert!(
        ui.join("node_modules/loro-crdt").exists(),
        "the judge of merges is an npm package that is not there: `npm ci` in ui, or `make ui`",
    );
    let peer = |(purpose, content): &(&str, &str)| {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(content.as_bytes());
        let first: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().unwrap();
        (BASE64.encode(content), u64::from_le_bytes(first).to_string())
    };
    let asked = json!({
        "form": if form == DocumentForm::Json { "json" } else { "text" },
        "seeds": seeds.iter().map(peer).collect::<Vec<_>>(),
        "changes": changes.iter().rev().map(|change| BASE64.encode(change)).collect::<Vec<_>>(),
    });
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

/// Three sites edit and hear each other; all changes, and what they come to.
fn story(
    form: DocumentForm,
    befores: [&str; 3],
    rounds: usize,
    edit: impl Fn(&str, u64) -> String,
) -> (Vec<Vec<u8>>, String) {
    let mut sites = [1, 2, 3].map(|number| Site::new(form, number));
    let mut changes = Vec::new();
    for round in 0..rounds {
        let random = scatter(round as u64 + 1);
        let number = (random >> 20) as usize % 3;
        let site = &mut sites[number];
        let now = if site.document.is_empty() { befores[number].to_owned() } else { site.text() };
        let change = site.edit(befores[number], &edit(&now, random));
        changes.extend((!change.is_empty()).then_some(change));
        let heard = (random >> 40) as usize % changes.len();
        sites[(random >> 30) as usize % 3].document.merge(&changes[heard]).unwrap();
    }
    for site in &mut sites {
        for change in &changes {
            site.document.merge(change).unwrap();
        }
    }
    let texts: BTreeSet<_> = sites.iter().map(Site::text).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    (changes, sites[0].text())
}

#[test]
fn another_implementation_merges_texts_to_the_same() {
    let edit = |now: &str, random: u64| {
        let mut words: Vec<_> = now.split(' ').map(str::to_owned).collect();
        let at = (random >> 8) as usize % words.len();
        match random % 4 {
            0 if words.len() > 8 => drop(words.drain(at..(at + 3).min(words.len()))),
            1 => words[at] = format!("é{}😀", random % 1000),
            2 => words.insert(at, format!("line{}\n", random % 1000)),
            _ => words.insert(at, format!("word{}", random % 1000)),
        }
        words.join(" ")
    };
    let purpose = "cheops-merge 1: a text before the first edit";
    let befores =
        ["the cat 😀 sat\non the mat\n", "the cat 😀 sat\non the mat\n", "a text of its own"];
    let (changes, text) = story(DocumentForm::Text, befores, 60, edit);
    let seeds = befores.map(|content| (purpose, content));
    assert_eq!(judged(DocumentForm::Text, &seeds, &changes), text);
}

#[test]
fn another_implementation_merges_marks_to_the_same() {
    let delta = |ops: &Value| serde_json::to_string(&json!({ "ops": ops })).unwrap();
    let edit = |now: &str, random: u64| {
        let now: Value =
            if now.is_empty() { json!({"ops": []}) } else { serde_json::from_str(now).unwrap() };
        let mut ops = now["ops"].as_array().unwrap().clone();
        let at = (random >> 8) as usize % (ops.len() + 1);
        let marks = [
            json!({"bold": true}),
            json!({"link": "x", "size": 1}),
            json!({}),
            json!({"bold": {"a": [1]}}),
        ];
        let marks = &marks[(random >> 16) as usize % 4];
        match random % 3 {
            0 if at < ops.len() && ops.len() > 4 => drop(ops.remove(at)),
            1 if at < ops.len() => ops[at]["attributes"] = marks.clone(),
            _ => ops.insert(
                at,
                json!({"insert": format!("w😀{} ", random % 1000), "attributes": marks}),
            ),
        }
        serde_json::to_string(&json!({ "ops": ops })).unwrap()
    };
    let before =
        delta(&json!([{"insert": "plain "}, {"insert": "bold ", "attributes": {"bold": true}}]));
    let mut canonical =
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(&before).unwrap()).unwrap();
    canonical.push('\n');
    let (changes, text) = story(DocumentForm::Text, [&before, &before, &canonical], 60, edit);
    let seeds = [("cheops-merge 1: a delta before the first edit", canonical.as_str())];
    let said = judged(DocumentForm::Text, &seeds, &changes);
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&said), value(&text));
}

#[test]
fn another_implementation_merges_json_to_the_same() {
    let edit = |now: &str, random: u64| {
        let mut now: Value = serde_json::from_str(now).unwrap_or(Value::Null);
        let name = ["a", "b", "l"][(random >> 8) as usize % 3];
        if !now.is_object() {
            now = json!({});
        }
        match random % 5 {
            0 => drop(now.as_object_mut().unwrap().remove(name)),
            1 => now[name] = json!(random % 100),
            2 => {
                let inner = ["x", "y/z"][(random >> 12) as usize % 2];
                if !now[name].is_object() {
                    now[name] = json!({});
                }
                now[name][inner] = json!({"n": random % 100});
            }
            3 => now[name] = json!([1, {"two": random % 100}]),
            _ => {
                if !now["l"].is_array() {
                    now["l"] = json!([]);
                }
                let list = now["l"].as_array_mut().unwrap();
                list.insert((random >> 12) as usize % (list.len() + 1), json!(random % 1000));
            }
        }
        now.to_string()
    };
    let before = "{\n  \"a\": 1,\n  \"l\": [\n    1,\n    2\n  ]\n}\n";
    let (changes, text) = story(DocumentForm::Json, [before; 3], 80, edit);
    let seeds = [("cheops-merge 1: a JSON document before the first edit", before)];
    let said = judged(DocumentForm::Json, &seeds, &changes);
    assert_eq!(
        serde_json::from_str::<Value>(&said).unwrap(),
        serde_json::from_str::<Value>(&text).unwrap()
    );
}
