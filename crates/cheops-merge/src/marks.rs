//! Texts with marks, as deltas: `{"ops": [{"insert": "bold", "attributes": {"bold": true}}, …]}`.

use std::collections::{BTreeMap, BTreeSet};

use loro::cursor::PosType;
use loro::{ExpandType, LoroDoc, LoroError, LoroValue, StyleConfig, StyleConfigMap, TextDelta};
use serde_json::Value;

use crate::change::TextRun;
use crate::diff::MOST_RUNS;
use crate::errors::NotADocument;
use crate::json::to_line;
use crate::text;

/// The marks of a part: names, and values as JSON on one line.
type Marked = BTreeMap<String, String>;

/// How many parts with different marks a delta may have.
const MOST_PARTS: usize = MOST_RUNS / 8;
/// How deep the value of a mark may be, and how long its name.
const DEEPEST: usize = 32;
const LONGEST_NAME: usize = 256;

/// A text and its marks, part by part: how many characters, and which marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MarkedText {
    text: String,
    parts: Vec<(usize, Marked)>,
}

impl MarkedText {
    /// Of a delta; `None` if it is none. Empty bytes are an empty one.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, NotADocument> {
        let mut found = Self::default();
        if bytes.is_empty() {
            return Ok(Some(found));
        }
        let Ok(Value::Object(members)) = serde_json::from_slice::<Value>(bytes) else {
            return Ok(None);
        };
        let Some(Value::Array(inserts)) = members.get("ops") else { return Ok(None) };
        let is_insert = |op: &Value| op.as_object().is_some_and(|op| op.contains_key("insert"));
        if members.len() > 1 || !inserts.iter().all(is_insert) {
            return Ok(None);
        }
        for op in inserts {
            let (text, marks) = insert(op).ok_or(NotADocument::NotADelta)?;
            found.push(text, marks);
        }
        if found.parts.len() > MOST_PARTS {
            return Err(NotADocument::TooManyMarks);
        }
        Ok(Some(found))
    }

    fn push(&mut self, text: &str, marks: Marked) {
        let count = text.chars().count();
        self.text.push_str(text);
        match self.parts.last_mut() {
            _ if count == 0 => {}
            Some((before, same)) if *same == marks => *before += count,
            _ => self.parts.push((count, marks)),
        }
    }

    pub(crate) fn of(doc: &LoroDoc) -> Self {
        let mut found = Self::default();
        for part in doc.get_text(text::CONTAINER).to_delta() {
            if let TextDelta::Insert { insert, attributes } = part {
                let marks = attributes.into_iter().flatten();
                found.push(
                    &insert,
                    marks.filter_map(|(name, value)| Some((name, written(&value)?))).collect(),
                );
            }
        }
        found
    }

    /// As bytes: as JSON documents are. Nothing if there is no text.
    pub(crate) fn content(&self) -> Vec<u8> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let mut chars = self.text.chars();
        let part = |(count, marks): &(usize, Marked)| {
            let text: String = chars.by_ref().take(*count).collect();
            let mut op = serde_json::Map::from_iter([("insert".to_owned(), Value::from(text))]);
            if !marks.is_empty() {
                let values = marks.iter().filter_map(|(name, value)| {
                    Some((name.clone(), serde_json::from_str(value).ok()?))
                });
                op.insert("attributes".to_owned(), Value::Object(values.collect()));
            }
            Value::Object(op)
        };
        let ops: Vec<Value> = self.parts.iter().map(part).collect();
        let delta = serde_json::json!({ "ops": ops });
        let mut bytes = serde_json::to_vec_pretty(&delta).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// What makes this into `after`.
    pub(crate) fn runs(&self, after: &Self) -> Vec<TextRun> {
        let (mut old, mut new) = (Parts::of(self), Parts::of(after));
        let mut runs = Vec::new();
        for run in text::runs(&self.text, &after.text) {
            match run {
                TextRun::Delete(count) => {
                    old.skip(count as usize);
                    runs.push(TextRun::Delete(count));
                }
                TextRun::Insert(text, _) => {
                    let mut chars = text.chars();
                    let mut left = text.chars().count();
                    while left > 0 {
                        let (count, marks) = new.next(left);
                        let part = chars.by_ref().take(count).collect();
                        let marks = marks.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                        runs.push(TextRun::Insert(part, marks));
                        left -= count;
                    }
                }
                TextRun::Keep(count, _) => {
                    let mut left = count as usize;
                    while left > 0 {
                        let most = old.most(new.most(left));
                        let changes = changed(old.next(most).1, new.next(most).1);
                        keep(&mut runs, most, changes);
                        left -= most;
                    }
                }
            }
        }
        runs
    }
}

fn keep(runs: &mut Vec<TextRun>, count: usize, changes: Vec<(String, Option<String>)>) {
    match runs.last_mut() {
        Some(TextRun::Keep(before, same)) if *same == changes => *before += count as u32,
        _ => runs.push(TextRun::Keep(count as u32, changes)),
    }
}

fn changed(old: &Marked, new: &Marked) -> Vec<(String, Option<String>)> {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    differ.map(|name| (name.clone(), new.get(name).cloned())).collect()
}

/// A walk over the parts of a text.
struct Parts<'a> {
    rest: &'a [(usize, Marked)],
    used: usize,
}

impl<'a> Parts<'a> {
    fn of(text: &'a MarkedText) -> Self {
        Self { rest: &text.parts, used: 0 }
    }

    /// How far the part reaches in which we are, but no further than `limit`.
    fn most(&self, limit: usize) -> usize {
        self.rest.first().map_or(limit, |(count, _)| limit.min(count - self.used))
    }

    /// At most so many characters of one part.
    fn next(&mut self, limit: usize) -> (usize, &'a Marked) {
        const NONE: &Marked = &Marked::new();
        let count = self.most(limit);
        let Some((whole, marks)) = self.rest.first() else { return (count, NONE) };
        self.used += count;
        if self.used == *whole {
            (self.rest, self.used) = (&self.rest[1..], 0);
        }
        (count, marks)
    }

    fn skip(&mut self, mut count: usize) {
        while count > 0 {
            count -= self.next(count).0;
        }
    }
}

/// The text and the marks of one insert, if it is one of text.
fn insert(op: &Value) -> Option<(&str, Marked)> {
    let op = op.as_object()?;
    let mut marks = Marked::new();
    if let Some(attributes) = op.get("attributes") {
        for (name, value) in attributes.as_object()? {
            // A mark that is null is none.
            if !value.is_null() {
                let value = to_line(value);
                is_mark(name, &value).then_some(())?;
                marks.insert(name.clone(), value);
            }
        }
    }
    let known = op.keys().all(|name| name == "insert" || name == "attributes");
    known.then_some((op.get("insert")?.as_str()?, marks))
}

fn written(value: &LoroValue) -> Option<String> {
    match value {
        LoroValue::String(text) => Some(text.to_string()),
        _ => None,
    }
}

fn is_mark(name: &str, value: &str) -> bool {
    fn deep(value: &Value, left: usize) -> bool {
        match value {
            Value::Object(members) => {
                left == 0 || members.values().any(|value| deep(value, left - 1))
            }
            Value::Array(elements) => {
                left == 0 || elements.iter().any(|value| deep(value, left - 1))
            }
            _ => false,
        }
    }
    (1..=LONGEST_NAME).contains(&name.len())
        && name != "$serde_json::private::Number"
        && serde_json::from_str::<Value>(value)
            .is_ok_and(|read| !read.is_null() && to_line(&read) == value && !deep(&read, DEEPEST))
}

/// Could an edit of a delta have these marks?
pub(crate) fn check(runs: &[TextRun]) -> Result<(), &'static str> {
    let ascending = |names: Vec<&String>| names.is_sorted_by(|one, other| one < other);
    let good = |run: &TextRun| match run {
        TextRun::Delete(_) => true,
        TextRun::Insert(_, marks) => {
            marks.iter().all(|(name, value)| is_mark(name, value))
                && ascending(marks.iter().map(|(name, _)| name).collect())
        }
        TextRun::Keep(_, changes) => {
            changes.iter().all(|(name, value)| is_mark(name, value.as_deref().unwrap_or("0")))
                && ascending(changes.iter().map(|(name, _)| name).collect())
        }
    };
    if runs.iter().all(good) { Ok(()) } else { Err("its marks are not what marks are") }
}

/// What somebody types at the end of a mark without having seen it may bear it too, but for links.
pub(crate) fn configure(doc: &LoroDoc) {
    let mut styles = StyleConfigMap::new();
    styles.insert("link".into(), StyleConfig { expand: ExpandType::None });
    doc.config_text_style(styles);
    doc.config_default_text_style(Some(StyleConfig { expand: ExpandType::After }));
}

/// Tells loro the marks, after the text: one at a time and by name, so that every site gives them the
/// same numbers. The runs were checked.
pub(crate) fn apply(doc: &LoroDoc, runs: &[TextRun]) -> Result<(), LoroError> {
    let text = doc.get_text(text::CONTAINER);
    let set = |at: usize, count: usize, name: &str, value: Option<&String>| match value {
        Some(value) => text.mark(at..at + count, name, value.as_str()),
        None => text.unmark(at..at + count, name),
    };
    let mut at = 0;
    for run in runs {
        match run {
            TextRun::Delete(_) => {}
            TextRun::Keep(count, changes) => {
                for (name, value) in changes {
                    set(at, *count as usize, name, value.as_ref())?;
                }
                at += *count as usize;
            }
            TextRun::Insert(inserted, marks) => {
                let end = at + inserted.chars().count();
                let wanted: Marked = marks.iter().cloned().collect();
                for part in text.slice_delta(at, end, PosType::Unicode)? {
                    let TextDelta::Insert { insert, attributes } = part else { continue };
                    let marks = attributes.into_iter().flatten();
                    let has =
                        marks.filter_map(|(name, value)| Some((name, written(&value)?))).collect();
                    let count = insert.chars().count();
                    for (name, value) in changed(&has, &wanted) {
                        set(at, count, &name, value.as_ref())?;
                    }
                    at += count;
                }
                at = end;
            }
        }
    }
    Ok(())
}
