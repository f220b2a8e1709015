//! Properties: whatever is edited, and in whatever order it arrives, sites come to the same, and
//! nothing that nobody deleted is missing.

use std::collections::BTreeSet;

use cheops_merge::{Document, DocumentForm};
use proptest::prelude::*;
use serde_json::Value;

use crate::Site;

/// What happens at one of three sites.
#[derive(Debug, Clone)]
enum Act {
    /// At this place of what it has, so much goes, and a new word comes or not.
    Edit { site: usize, at: usize, gone: usize, comes: bool },
    /// It hears the change with this number.
    Hear { site: usize, change: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let edit = (0..3usize, 0..40usize, 0..4usize, any::<bool>())
        .prop_map(|(site, at, gone, comes)| Act::Edit { site, at, gone, comes });
    let hear = (0..3usize, 0..40usize).prop_map(|(site, change)| Act::Hear { site, change });
    prop::collection::vec(prop_oneof![edit, hear], 1..30)
}

fn beginning() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop_oneof!["[a-e]{1,3}", "\n", "é😀", "東京"], 0..12)
}

/// All changes, and what each site thinks came and went.
struct Story {
    sites: [Site; 3],
    changes: Vec<Vec<u8>>,
    came: BTreeSet<String>,
    gone: BTreeSet<String>,
}

/// Words are all different, so that each can be looked for, and none is another one made longer.
fn told(
    form: DocumentForm,
    before: &str,
    acts: &[Act],
    read: impl Fn(&str) -> Vec<String>,
    write: impl Fn(&[String]) -> String,
) -> Story {
    let mut story = Story {
        sites: [1, 2, 3].map(|number| Site::new(form, number)),
        changes: Vec::new(),
        came: read(before).into_iter().collect(),
        gone: BTreeSet::new(),
    };
    for (number, act) in acts.iter().enumerate() {
        match *act {
            Act::Edit { site, at, gone, comes } => {
                let site = &mut story.sites[site];
                let now = if site.document.is_empty() { before.to_owned() } else { site.text() };
                let mut words = read(&now);
                let at = at.min(words.len());
                let gone = gone.min(words.len() - at);
                let new = comes.then(|| format!("new{number:02}word"));
                story.gone.extend(words.splice(at..at + gone, new.clone()));
                story.came.extend(new);
                let after = write(&words);
                let change = site.edit(before, &after);
                // What it wanted, it has.
                if !site.document.is_empty() {
                    assert_eq!(read(&site.text()), words);
                }
                story.changes.extend((!change.is_empty()).then_some(change));
            }
            Act::Hear { site, change } if !story.changes.is_empty() => {
                let change = &story.changes[change % story.changes.len()];
                story.sites[site].document.merge(change).unwrap();
            }
            Act::Hear { .. } => {}
        }
    }
    story
}

impl Story {
    /// Everyone hears everything.
    fn end(&mut self) -> String {
        for site in &mut self.sites {
            for change in &self.changes {
                site.document.merge(change).unwrap();
            }
        }
        self.sites[0].text()
    }

    fn check_orders(&self, form: DocumentForm, expected: &str, order: &[prop::sample::Index]) {
        for site in &self.sites {
            assert_eq!(site.text(), expected);
        }
        let mut left: Vec<_> = self.changes.iter().collect();
        let mut document = Document::new(form);
        for index in order.iter().cycle() {
            if left.is_empty() {
                break;
            }
            document.merge(left.remove(index.index(left.len()))).unwrap();
            // Some come again.
            document.merge(&self.changes[index.index(self.changes.len())]).unwrap();
        }
        assert_eq!(String::from_utf8(document.content()).unwrap(), expected);

        let mut whole = Document::new(form);
        whole.merge(&self.sites[1].document.whole().unwrap()).unwrap();
        assert_eq!(String::from_utf8(whole.content()).unwrap(), expected);
    }
}

/// The words of a text in which each stands on its own between commas.
fn words(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_come_to_the_same_and_nothing_that_nobody_deleted_is_missing(
        count in 0..8usize, acts in acts(), order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let before: String = (0..count).map(|i| format!("old{i}word,")).collect();
        let write = |words: &[String]| words.iter().map(|word| format!("{word},")).collect::<String>();
        let mut story = told(DocumentForm::Text, &before, &acts, words, write);
        if !story.changes.is_empty() {
            let end = story.end();
            story.check_orders(DocumentForm::Text, &end, &order);
            // Two words that came at one place look like one to who deletes them.
            let deleted = |word: &String| story.gone.iter().any(|gone| gone.contains(word.as_str()));
            for word in story.came.iter().filter(|word| !deleted(word)) {
                prop_assert_eq!(end.matches(word.as_str()).count(), 1, "{} in {}", word, end);
            }
            for word in &story.gone {
                prop_assert!(!end.contains(word.as_str()), "{} in {}", word, end);
            }
        }
    }

    #[test]
    fn lists_come_to_the_same_and_nothing_that_nobody_deleted_is_missing(
        count in 0..8usize, acts in acts(), order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let before: Vec<_> = (0..count).map(|i| format!("old{i}word")).collect();
        let write = |words: &[String]| serde_json::to_string(words).unwrap();
        let read = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap();
        let mut story = told(DocumentForm::Json, &write(&before), &acts, read, write);
        if !story.changes.is_empty() {
            let end = story.end();
            story.check_orders(DocumentForm::Json, &end, &order);
            let end: BTreeSet<_> = read(&end).into_iter().collect();
            prop_assert_eq!(&end, &story.came.difference(&story.gone).cloned().collect());
        }
    }

    #[test]
    fn any_texts_come_to_the_same(
        before in beginning(), after in prop::collection::vec((0..3usize, beginning()), 1..8),
        heard in prop::collection::vec((0..3usize, any::<prop::sample::Index>()), 1..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let before = before.join(" ");
        let mut story = told(DocumentForm::Text, &before, &[], words, |_| String::new());
        let mut heard = heard.into_iter();
        for (site, text) in after {
            let text = text.join(" ");
            let change = story.sites[site].edit(&before, &text);
            if !change.is_empty() {
                prop_assert_eq!(story.sites[site].text(), text);
                story.changes.push(change);
            }
            if let Some((site, change)) = heard.next() && !story.changes.is_empty() {
                story.sites[site].document.merge(&story.changes[change.index(story.changes.len())]).unwrap();
            }
        }
        if !story.changes.is_empty() {
            let end = story.end();
            story.check_orders(DocumentForm::Text, &end, &order);
        }
    }

    #[test]
    fn any_json_comes_to_the_same(
        before in json(), after in prop::collection::vec((0..3usize, json()), 1..8),
        heard in prop::collection::vec((0..3usize, any::<prop::sample::Index>()), 1..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let before = before.to_string();
        let mut story = told(DocumentForm::Json, &before, &[], |_| Vec::new(), |_| String::new());
        let mut heard = heard.into_iter();
        for (site, value) in after {
            let change = story.sites[site].edit(&before, &value.to_string());
            if !change.is_empty() {
                let found: Value = serde_json::from_str(&story.sites[site].text()).unwrap();
                prop_assert_eq!(found, value);
                story.changes.push(change);
            }
            if let Some((site, change)) = heard.next() && !story.changes.is_empty() {
                story.sites[site].document.merge(&story.changes[change.index(story.changes.len())]).unwrap();
            }
        }
        if !story.changes.is_empty() {
            let end = story.end();
            story.check_orders(DocumentForm::Json, &end, &order);
        }
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        "[a-c/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c/~%]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
