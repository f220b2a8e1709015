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

use super::place::{ConfigPlace, LineColumn, short};
use super::problem::{ConfigErrors, ConfigFault, ConfigProblem};
use super::{MAX_DOCUMENT_BYTES, MAX_ENTRIES};

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct TreeNode {
    pub(super) value: TreeValue,
    pub(super) at: Option<LineColumn>,
}

/// What stands there.
#[derive(Debug)]
pub(super) enum TreeValue {
    Nothing,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<TreeNode>),
    Map(Vec<(TreeKey, TreeNode)>),
}

/// A key and where it stands.
#[derive(Debug)]
pub(super) struct TreeKey {
    pub(super) text: String,
    pub(super) at: Option<LineColumn>,
}

impl TreeValue {
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
pub(super) fn read(text: &str) -> Result<TreeNode, ConfigErrors> {
    if text.len() > MAX_DOCUMENT_BYTES {
        let fault = ConfigFault::DocumentTooLong { bytes: text.len() };
        return Err(ConfigProblem { place: ConfigPlace::default(), fault }.into());
    }
    let read: Result<Spanned<TreeValue>, Error> =
        serde_saphyr::from_str_with_options(text, options());
    read.map(TreeNode::from).map_err(|error| problem(&error).into())
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

fn problem(error: &Error) -> ConfigProblem {
    let at = error.location().and_then(line_column);
    ConfigProblem { place: ConfigPlace { path: String::new(), at }, fault: fault(error) }
}

fn fault(error: &Error) -> ConfigFault {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => fault(error),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => ConfigFault::TooComplex,
        Error::MultipleDocuments { .. } => ConfigFault::SecondDocument,
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            ConfigFault::Repeated { key: short(key), first: short(key) }
        }
        other => {
            let formatter = UserMessageFormatter.with_localizer(&NoPlace);
            ConfigFault::Unreadable { message: other.render_with_formatter(&formatter) }
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

impl From<Spanned<TreeValue>> for TreeNode {
    fn from(read: Spanned<TreeValue>) -> Self {
        Self { value: read.value, at: line_column(read.referenced) }
    }
}

impl From<Spanned<String>> for TreeKey {
    fn from(read: Spanned<String>) -> Self {
        Self { text: read.value, at: line_column(read.referenced) }
    }
}

impl<'de> Deserialize<'de> for TreeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = TreeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Nothing)
    }

    fn visit_none<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Nothing)
    }

    fn visit_bool<E>(self, found: bool) -> Result<TreeValue, E> {
        Ok(TreeValue::Bool(found))
    }

    fn visit_i64<E>(self, found: i64) -> Result<TreeValue, E> {
        Ok(TreeValue::Number(found.to_string()))
    }

    fn visit_u64<E>(self, found: u64) -> Result<TreeValue, E> {
        Ok(TreeValue::Number(found.to_string()))
    }

    fn visit_i128<E>(self, found: i128) -> Result<TreeValue, E> {
        Ok(TreeValue::Number(found.to_string()))
    }

    fn visit_u128<E>(self, found: u128) -> Result<TreeValue, E> {
        Ok(TreeValue::Number(found.to_string()))
    }

    fn visit_f64<E>(self, found: f64) -> Result<TreeValue, E> {
        Ok(TreeValue::Number(found.to_string()))
    }

    fn visit_str<E>(self, found: &str) -> Result<TreeValue, E> {
        Ok(TreeValue::Text(found.to_owned()))
    }

    fn visit_string<E>(self, found: String) -> Result<TreeValue, E> {
        Ok(TreeValue::Text(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TreeValue, A::Error> {
        let mut nodes = Vec::new();
        while let Some(value) = list.next_element::<Spanned<TreeValue>>()? {
            nodes.push(value.into());
        }
        Ok(TreeValue::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TreeValue, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            pairs.push((key.into(), map.next_value::<Spanned<TreeValue>>()?.into()));
        }
        Ok(TreeValue::Map(pairs))
    }
}
