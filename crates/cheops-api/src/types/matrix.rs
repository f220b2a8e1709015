//! Matrices that come with Cheops, and trying one before it is used.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A config that comes with Cheops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Profile {
    /// What it is asked for by.
    pub name: String,
    /// Why its matrix is as it is.
    pub about: String,
    /// The config, as an operator would write it.
    pub config: Value,
}

/// A config to try. Nothing is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryMatrix {
    /// The config; or its text, in JSON or YAML, so that problems have a line and a column.
    pub config: Value,
}

/// What a matrix makes of every two operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatrixTrial {
    /// Every type the config speaks of, in order of name.
    pub types: Vec<String>,
    /// Every ordered pair of them.
    pub pairs: Vec<MatrixPair>,
    /// What the config says but is probably not meant.
    pub warnings: Vec<ConfigFinding>,
    /// The config, as Cheops understands it.
    pub config: Value,
}

/// What becomes of two operations, `first` the earlier in the total order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatrixPair {
    /// The type of the first.
    pub first: String,
    /// The type of the second.
    pub second: String,
    /// The entry that decides, as `explain` names it: `(set, inc): take-both-keep-order, ...`.
    pub entry: String,
    /// Whether the matrix lists it. If not, it is `take-both`.
    pub listed: bool,
    /// What the second does to a list that it was made on and that ends with the first.
    pub in_sequence: InSequence,
    /// Types that keep the second from taking the place of a list they are in.
    pub kept: Vec<String>,
    /// If they are concurrent: what every site runs in the end, in order.
    pub list: Vec<Which>,
    /// If they are concurrent: the one that is left out, if one is.
    pub loser: Option<Which>,
    /// If they are concurrent: whether sites may run them in different orders.
    pub any_order: bool,
    /// What becomes of them if they are concurrent, as `explain` says it.
    pub sentence: String,
    /// The whole row in plain words, in sequence and concurrent.
    pub meaning: String,
}

/// One of two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The earlier in the total order.
    First,
    /// The later.
    Second,
}

/// What an operation does to the list it was made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InSequence {
    /// It is added at the end.
    Appended,
    /// It takes the place of the whole list.
    Replaces,
}

/// Something in a config that is wrong, or to be looked at again. A refused config has these as
/// `problems` of its problem document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigFinding {
    /// The keys that lead there, such as `ResolutionMatrix[2].Result`; empty for the whole.
    pub path: String,
    /// In which line of the text, counted from 1, if it was a text.
    pub line: Option<u64>,
    /// At which character of that line.
    pub column: Option<u64>,
    /// What was found.
    pub message: String,
    /// What would be right, where that can be told.
    pub remedy: Option<String>,
}
