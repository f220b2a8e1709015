use cheops_merge::{Document, DocumentForm, NotADocument, WriterId};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Site, two};

const TEXT: DocumentForm = DocumentForm::Text;

/// From `plain *bold* plain`.
fn delta(text: &str) -> String {
    let parts = text.split('*').enumerate().filter(|(_, part)| !part.is_empty());
    let ops: Vec<_> = parts
        .map(|(i, part)| match i % 2 {
            0 => json!({"insert": part}),
            _ => json!({"insert": part, "attributes": {"bold": true}}),
        })
        .collect();
    json!({ "ops": ops }).to_string()
}

fn assert_says(found: &str, expected: &str, case: &str) {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(found), value(&delta(expected)), "{case}");
}

#[test]
fn marks_of_two_sites_are_kept_with_what_they_mark() {
    for (case, before, one, other, after) in [
        ("one marks, one types elsewhere", "a b c", "*a* b c", "a b c d", "*a* b c d"),
        ("one marks, one types within", "one two", "*one two*", "one and two", "*one and two*"),
        ("both mark", "a b c", "*a* b c", "a b *c*", "*a* b *c*"),
        ("both mark the same", "a b", "*a* b", "*a* b", "*a* b"),
        ("marks that overlap", "a b c", "*a b* c", "a *b c*", "*a b c*"),
        ("one takes a mark away", "*a* b", "a b", "*a* b c", "a b c"),
        ("what is marked goes", "a b", "*a* b", "b", "b"),
        ("one types unmarked at an end", "*a*", "*a*b", "*a*", "*a*b"),
        ("one types marked", "a", "a*b*", "a", "a*b*"),
    ] {
        let changed: Vec<_> = [one, other].into_iter().filter(|after| *after != before).collect();
        let found = match changed[..] {
            [one, other] => two(TEXT, &delta(before), &delta(one), &delta(other)),
            _ => {
                let mut site = Site::new(TEXT, 1);
                site.edit(&delta(before), &delta(changed[0]));
                site.text()
            }
        };
        assert_says(&found, after, case);
    }
}

#[test]
fn deltas_are_written_in_one_way() {
    let mut document = Document::new(TEXT);
    let written = r#"{"ops":[{"insert":"a"},{"insert":"b","attributes":{}},{"attributes":{"n":1.0,"m":null},"insert":"c"}]}"#;
    document.edit(b"", written.as_bytes(), WriterId(1)).unwrap();
    let expected = r#"{
  "ops": [
    {
      "insert": "ab"
    },
    {
      "attributes": {
        "n": 1.0
      },
      "insert": "c"
    }
  ]
}
"#;
    assert_eq!(String::from_utf8(document.content()).unwrap(), expected);
    assert_eq!(document.edit(b"", written.as_bytes(), WriterId(2)).unwrap(), b"");
}

#[test]
fn a_delta_stays_one_and_a_text_that_looks_like_one_stays_text() {
    let mut site = Site::new(TEXT, 1);
    site.edit("", &delta("a *b*"));
    for after in [
        "plain",
        "{\"ops\":[{\"insert\":{\"image\":\"x\"}}]}",
        "{\"ops\":[{\"retain\":1}]}",
        "{\"ops\":[],\"x\":1}",
    ] {
        let error = site.document.edit(b"", after.as_bytes(), WriterId(3));
        assert_eq!(error, Err(NotADocument::NotADelta), "{after}");
    }
    assert_ne!(site.edit("", ""), b"");
    assert_eq!(site.text(), "");

    let mut site = Site::new(TEXT, 1);
    site.edit("plain", &delta("a *b*"));
    assert_eq!(site.text(), delta("a *b*"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_deltas_come_to_the_same(
        before in "[ab *é😀]{0,12}",
        edits in prop::collection::vec((0..3usize, "[ab *é😀]{0,12}", 0..3usize, any::<prop::sample::Index>()), 1..8),
    ) {
        let before = delta(&before);
        let mut sites = [1, 2, 3].map(|number| Site::new(TEXT, number));
        let mut changes: Vec<Vec<u8>> = Vec::new();
        for (site, after, hears, heard) in edits {
            let change = sites[site].edit(&before, &delta(&after));
            if !change.is_empty() {
                let joined = Site::new(TEXT, 8).said_of(&delta(&after));
                prop_assert_eq!(sites[site].text(), joined);
                changes.push(change);
            }
            if !changes.is_empty() {
                sites[hears].document.merge(&changes[heard.index(changes.len())]).unwrap();
            }
        }
        if !changes.is_empty() {
            let all = crate::merged(TEXT, &changes);
            for site in &mut sites {
                for change in &changes {
                    site.document.merge(change).unwrap();
                }
                prop_assert_eq!(site.text(), all.as_str());
            }
        }
    }
}

impl Site {
    /// How a delta is written.
    fn said_of(mut self, delta: &str) -> String {
        self.edit("", delta);
        self.text()
    }
}
