//! Text, in JSON or YAML, to a tree of values that know their place.
//!
//! JSON is read as the YAML it also is, so that both give line and column. A hostile text cannot
//! make the tree much bigger than itself: aliases, depth and values are counted and limited.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::localizer::Localizer;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned, UserMessageFormatter};

use super::place::{LineColumn, Place, short};
use super::problem::{ConfigErrors, Fault, Problem};
use super::{MAX_DOCUMENT_BYTES, MAX_ENTRIES};

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Option<LineColumn>,
}

/// What stands there.
#[derive(Debug)]
pub(super) enum Value {
    Nothing,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) at: Option<LineColumn>,
}

impl Value {
    /// What was found, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Bool(found) => format!("the boolean `{found}`"),
            Self::Number(found) => format!("the number `{found}`"),
            Self::Text(found) => format!("the text `{}`", short(found)),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "an object".to_owned(),
        }
    }
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Result<Node, ConfigErrors> {
    if text.len() > MAX_DOCUMENT_BYTES {
        let fault = Fault::DocumentTooLong { bytes: text.len() };
        return Err(Problem { place: Place::default(), fault }.into());
    }
    let read: Result<Spanned<Value>, Error> = serde_saphyr::from_str_with_options(text, options());
    read.map(Node::from).map_err(|error| problem(&error).into())
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 16,
            flow_nesting_limit: 16,
            // An entry has at most nine: itself, four keys and four values.
            max_nodes: 16 * MAX_ENTRIES,
            max_events: 32 * MAX_ENTRIES,
            max_anchors: 256,
            max_aliases: 256,
            max_merge_keys: 256,
            // One is read; a second gets a message of its own.
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 2 * MAX_ENTRIES,
            max_replay_stack_depth: 8,
        },
        // Otherwise a long comment is refused.
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        // `no` is a word, as in YAML 1.2, and a type can have that name.
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn problem(error: &Error) -> Problem {
    let at = error.location().and_then(line_column);
    Problem { place: Place { path: String::new(), at }, fault: fault(error) }
}

fn fault(error: &Error) -> Fault {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => fault(error),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => Fault::TooComplex,
        Error::MultipleDocuments { .. } => Fault::SecondDocument,
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            Fault::Repeated { key: short(key), first: short(key) }
        }
        other => {
            let formatter = UserMessageFormatter.with_localizer(&NoPlace);
            Fault::Unreadable { message: other.render_with_formatter(&formatter) }
        }
    }
}

fn line_column(location: Location) -> Option<LineColumn> {
    let at = LineColumn { line: location.line(), column: location.column() };
    (location != Location::UNKNOWN).then_some(at)
}

/// Leaves the place out of the reader's messages, since every problem says its own.
struct NoPlace;

impl Localizer for NoPlace {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }

    fn alias_defined_at(&self, _: Location) -> String {
        String::new()
    }

    fn alias_used_at(&self, _: Location) -> String {
        String::new()
    }
}

impl From<Spanned<Value>> for Node {
    fn from(read: Spanned<Value>) -> Self {
        Self { value: read.value, at: line_column(read.referenced) }
    }
}

impl From<Spanned<String>> for Key {
    fn from(read: Spanned<String>) -> Self {
        Self { text: read.value, at: line_column(read.referenced) }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E>(self, found: bool) -> Result<Value, E> {
        Ok(Value::Bool(found))
    }

    fn visit_i64<E>(self, found: i64) -> Result<Value, E> {
        Ok(Value::Number(found.to_string()))
    }

    fn visit_u64<E>(self, found: u64) -> Result<Value, E> {
        Ok(Value::Number(found.to_string()))
    }

    fn visit_i128<E>(self, found: i128) -> Result<Value, E> {
        Ok(Value::Number(found.to_string()))
    }

    fn visit_u128<E>(self, found: u128) -> Result<Value, E> {
        Ok(Value::Number(found.to_string()))
    }

    fn visit_f64<E>(self, found: f64) -> Result<Value, E> {
        Ok(Value::Number(found.to_string()))
    }

    fn visit_str<E>(self, found: &str) -> Result<Value, E> {
        Ok(Value::Text(found.to_owned()))
    }

    fn visit_string<E>(self, found: String) -> Result<Value, E> {
        Ok(Value::Text(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(value) = list.next_element::<Spanned<Value>>()? {
            nodes.push(value.into());
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            pairs.push((key.into(), map.next_value::<Spanned<Value>>()?.into()));
        }
        Ok(Value::Map(pairs))
    }
}
