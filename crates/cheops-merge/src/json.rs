//! JSON documents, place by place: a map from JSON pointers to scalars and to the marks `{}` and `[]` of
//! what has members or elements, and for each list one of loro's. So members that two sites add to what
//! both made are in one object, and a member brings back what was removed around it.

use std::collections::{BTreeMap, BTreeSet};

use loro::{LoroDoc, LoroError, LoroValue, ValueOrContainer};
use serde_json::Value;

use crate::change::{JsonEdit, ListRun};
use crate::diff::{DiffStep, MOST_RUNS, steps};
use crate::errors::NotADocument;

/// The name of loro's map.
const MEMBERS: &str = "members";
/// How deep a document may be: serde_json reads no more than 127 levels.
const DEEPEST: usize = 100;
/// The longest JSON pointer, in bytes.
const LONGEST_POINTER: usize = 4096;
/// What serde_json takes for a number of its own, where it is a member.
const NOT_A_NAME: &str = "$serde_json::private::Number";

/// A document by places. Everything that was written and not removed is here, also what is not shown:
/// members of what is no object any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    members: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
}

impl Places {
    /// Of bytes; nothing in them is no document, and has no places.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NotADocument> {
        let mut places = Self::default();
        if !bytes.trim_ascii().is_empty() {
            let value: Value = serde_json::from_slice(bytes).map_err(|error| {
                NotADocument::NotJson { line: error.line(), column: error.column() }
            })?;
            places.add(String::new(), &value)?;
        }
        Ok(places)
    }

    fn add(&mut self, pointer: String, value: &Value) -> Result<(), NotADocument> {
        if !fits(&pointer, value) {
            return Err(NotADocument::TooDeep { pointer });
        }
        let own = match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.add(format!("{pointer}/{}", escaped(name)), value)?;
                }
                "{}".to_owned()
            }
            Value::Array(elements) => {
                let elements = elements.iter().map(to_line).collect();
                self.lists.insert(pointer.clone(), elements);
                "[]".to_owned()
            }
            scalar => to_line(scalar),
        };
        self.members.insert(pointer, own);
        Ok(())
    }

    /// What loro holds. `lists` are the places that ever had a list.
    pub(crate) fn of(doc: &LoroDoc, lists: &BTreeSet<String>) -> Self {
        let mut places = Self::default();
        doc.get_map(MEMBERS).for_each(|pointer, value| {
            if let Some(value) = as_text(&value) {
                places.members.insert(pointer.to_owned(), value);
            }
        });
        for pointer in lists {
            let elements = elements(doc, pointer);
            if !elements.is_empty() {
                places.lists.insert(pointer.clone(), elements);
            }
        }
        places
    }

    /// As bytes: members sorted, two spaces of indent, a newline at the end. Nothing if there is nothing.
    pub(crate) fn content(&self) -> Vec<u8> {
        let mut within: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let nonempty = self.lists.iter().filter(|(_, elements)| !elements.is_empty());
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for pointer in self.members.keys().chain(nonempty.map(|(pointer, _)| pointer)) {
            let mut place = pointer.as_str();
            while known.insert(place) {
                let Some((around, _)) = place.rsplit_once('/') else { break };
                within.entry(around).or_default().push(place);
                place = around;
            }
        }
        let Some(value) = self.value("", &within) else { return Vec::new() };
        // A value that was read or built here can be written.
        let mut bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// What somebody wrote for this place counts; where it was removed, what is in it brings it back.
    fn value(&self, pointer: &str, within: &BTreeMap<&str, Vec<&str>>) -> Option<Value> {
        let members = || -> serde_json::Map<String, Value> {
            let places = within.get(pointer).into_iter().flatten();
            places.filter_map(|place| Some((name(place), self.value(place, within)?))).collect()
        };
        let list = || {
            let elements = self.lists.get(pointer).into_iter().flatten();
            Value::Array(elements.filter_map(|text| serde_json::from_str(text).ok()).collect())
        };
        match self.members.get(pointer).map(String::as_str) {
            Some("{}") => Some(Value::Object(members())),
            Some("[]") => Some(list()),
            Some(scalar) => serde_json::from_str(scalar).ok(),
            None => {
                let members = members();
                if members.is_empty() {
                    self.lists.contains_key(pointer).then(list)
                } else {
                    Some(Value::Object(members))
                }
            }
        }
    }

    /// Where there are lists.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &String> {
        self.lists.keys()
    }

    /// What makes these into `after`.
    pub(crate) fn edits(&self, after: &Self) -> Vec<JsonEdit> {
        let mut edits = Vec::new();
        for pointer in self.members.keys().filter(|pointer| !after.members.contains_key(*pointer)) {
            edits.push(JsonEdit::Remove(pointer.clone()));
        }
        for (pointer, value) in &after.members {
            if self.members.get(pointer) != Some(value) {
                edits.push(JsonEdit::Set(pointer.clone(), value.clone()));
            }
        }
        let pointers: BTreeSet<_> = self.lists.keys().chain(after.lists.keys()).collect();
        for pointer in pointers {
            let old = self.lists.get(pointer).map_or(&[][..], Vec::as_slice);
            let new = after.lists.get(pointer).map_or(&[][..], Vec::as_slice);
            if old != new {
                edits.push(JsonEdit::List(pointer.clone(), list_runs(old, new)));
            }
        }
        edits
    }
}

fn list_runs(old: &[String], new: &[String]) -> Vec<ListRun> {
    let mut at = 0;
    let mut runs = Vec::new();
    for step in steps(old, new) {
        match step {
            DiffStep::Keep(count) => {
                at += count;
                runs.push(ListRun::Keep(count as u32));
            }
            DiffStep::Delete(count) => runs.push(ListRun::Delete(count as u32)),
            DiffStep::Insert(count) => {
                at += count;
                let values = new[at - count..at].to_vec();
                // Within what goes, as in a text.
                if let Some(ListRun::Delete(goes @ 2..)) = runs.last_mut() {
                    let behind = *goes - 1;
                    *goes = 1;
                    runs.extend([ListRun::Insert(values), ListRun::Delete(behind)]);
                } else {
                    runs.push(ListRun::Insert(values));
                }
            }
        }
    }
    runs
}

/// The places of the lists that an edit changes.
pub(crate) fn lists_of(edits: &[JsonEdit]) -> impl Iterator<Item = &String> {
    edits.iter().filter_map(|edit| match edit {
        JsonEdit::List(pointer, _) => Some(pointer),
        JsonEdit::Set(..) | JsonEdit::Remove(_) => None,
    })
}

/// Do they fit what is in the document, and could an edit have made them?
pub(crate) fn check(doc: &LoroDoc, edits: &[JsonEdit]) -> Result<(), &'static str> {
    let map = doc.get_map(MEMBERS);
    let mut touched = BTreeSet::new();
    for edit in edits {
        let (pointer, list) = match edit {
            JsonEdit::Set(pointer, value) => {
                if map.get(pointer).and_then(|had| as_text(&had)).as_ref() == Some(value) {
                    return Err("it sets what is so already");
                }
                if !is_canonical(pointer, value, |value| match value {
                    Value::Object(members) => members.is_empty(),
                    Value::Array(elements) => elements.is_empty(),
                    _ => true,
                }) {
                    return Err("it sets something else than a value");
                }
                (pointer, false)
            }
            JsonEdit::Remove(pointer) => {
                if map.get(pointer).is_none() {
                    return Err("it removes what is not there");
                }
                (pointer, false)
            }
            JsonEdit::List(pointer, runs) => {
                check_list(pointer, runs, doc.get_list(list_name(pointer)).len())?;
                (pointer, true)
            }
        };
        if !touched.insert((pointer, list)) {
            return Err("it changes one place twice");
        }
    }
    Ok(())
}

fn check_list(pointer: &str, runs: &[ListRun], length: usize) -> Result<(), &'static str> {
    if runs.len() > MOST_RUNS {
        return Err("it changes too many places of a list");
    }
    let mut covered = 0usize;
    for run in runs {
        match run {
            ListRun::Keep(0) | ListRun::Delete(0) => return Err("it keeps or deletes nothing"),
            ListRun::Keep(count) | ListRun::Delete(count) => covered += *count as usize,
            ListRun::Insert(values) => {
                let within = format!("{pointer}/0");
                if values.is_empty()
                    || !values.iter().all(|text| is_canonical(&within, text, |_| true))
                {
                    return Err("it inserts something else than values");
                }
            }
        }
    }
    if covered > length {
        return Err("it changes more elements than there are");
    }
    if !runs.iter().any(|run| !matches!(run, ListRun::Keep(_))) {
        return Err("it changes nothing in a list");
    }
    Ok(())
}

/// Tells loro. The edits were checked.
pub(crate) fn apply(doc: &LoroDoc, edits: &[JsonEdit]) -> Result<(), LoroError> {
    let map = doc.get_map(MEMBERS);
    for edit in edits {
        match edit {
            JsonEdit::Set(pointer, value) => map.insert(pointer, value.as_str())?,
            JsonEdit::Remove(pointer) => map.delete(pointer)?,
            JsonEdit::List(pointer, runs) => apply_to_list(doc, pointer, runs)?,
        }
    }
    Ok(())
}

/// From the last run to the first, as with texts.
fn apply_to_list(doc: &LoroDoc, pointer: &str, runs: &[ListRun]) -> Result<(), LoroError> {
    let list = doc.get_list(list_name(pointer));
    let mut at: usize = runs
        .iter()
        .map(|run| match run {
            ListRun::Keep(count) | ListRun::Delete(count) => *count as usize,
            ListRun::Insert(_) => 0,
        })
        .sum();
    for run in runs.iter().rev() {
        match run {
            ListRun::Keep(count) => at -= *count as usize,
            ListRun::Delete(count) => {
                at -= *count as usize;
                list.delete(at, *count as usize)?;
            }
            ListRun::Insert(values) => {
                for (i, value) in values.iter().enumerate() {
                    list.insert(at + i, value.as_str())?;
                }
            }
        }
    }
    Ok(())
}

fn elements(doc: &LoroDoc, pointer: &str) -> Vec<String> {
    let mut elements = Vec::new();
    doc.get_list(list_name(pointer)).for_each(|value| elements.extend(as_text(&value)));
    elements
}

fn as_text(value: &ValueOrContainer) -> Option<String> {
    match value {
        ValueOrContainer::Value(LoroValue::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// The name of loro's list for a place: no `/` and no NUL may be in it.
fn list_name(pointer: &str) -> String {
    format!("list {}", pointer.replace('%', "%25").replace('/', "%2F").replace('\0', "%00"))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The last name of a place.
fn name(pointer: &str) -> String {
    let last = pointer.rsplit_once('/').map_or("", |(_, last)| last);
    last.replace("~1", "/").replace("~0", "~")
}

/// Is it a place, and the text a value in its shortest form that may stand there?
fn is_canonical(pointer: &str, text: &str, allowed: impl Fn(&Value) -> bool) -> bool {
    let is_pointer = pointer.is_empty()
        || pointer.starts_with('/')
            && pointer[1..].split('/').all(|one| escaped(&name(&format!("/{one}"))) == one);
    is_pointer
        && serde_json::from_str::<Value>(text)
            .is_ok_and(|value| to_line(&value) == text && allowed(&value) && fits(pointer, &value))
}

/// May the value stand at that place? So that the whole can be read again, however it was merged.
fn fits(pointer: &str, value: &Value) -> bool {
    fn depth(value: &Value) -> usize {
        match value {
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    pointer.len() <= LONGEST_POINTER
        && pointer.split('/').all(|name| name != NOT_A_NAME)
        && pointer.matches('/').count() + depth(value) <= DEEPEST
}

/// A value in its shortest form.
pub(crate) fn to_line(value: &Value) -> String {
    value.to_string()
}
