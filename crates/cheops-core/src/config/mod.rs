//! How the operations of a resource are resolved and repaired, as the operator says.
//!
//! A [`Config`] is plain data: it travels between sites with the operation that declares it.
//! Operators write documents, in JSON or YAML, which [`Config::parse`] turns into configs,
//! reporting everything that is wrong at once; [`Config::to_json`] writes one back. [`profiles()`]
//! are ready-made configs, and [`Config::table`] spells out what a matrix means.
//!
//! | file | what it does |
//! | --- | --- |
//! | `lookup` | the questions `resolve`, `plan` and the engine ask |
//! | `tree` | text to a tree of values that know their place |
//! | `document` | that tree to entries, types and commands, key by key |
//! | `assemble` | entries on top of a profile, to a config |
//! | `hooks` | what is told to whom when something happens |
//! | `check`, `circle` | contradictions, and what is worth a warning |
//! | `problem`, `warning`, `place` | what is reported, and where |
//! | `logic` | what a pair that is left to logic is left to |
//! | `unlisted` | types that a matrix does not know |
//! | `prove` | whether a matrix tells the truth about its commands |

mod assemble;
mod canonical;
mod check;
mod circle;
mod document;
mod hooks;
mod logic;
mod lookup;
mod place;
mod problem;
mod profiles;
pub mod prove;
mod spelling;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod unlisted;
mod warning;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use self::assemble::Parsed;
pub use self::hooks::{Hook, HookAction, HookEvent, HookRun, url_fault};
pub use self::logic::MergedAs;
pub use self::place::{ConfigPlace, LineColumn};
pub use self::problem::{ConfigErrors, ConfigFault, ConfigProblem};
pub use self::profiles::{Profile, profile, profiles};
pub use self::table::{Meeting, PairRow, Sequence};
pub use self::unlisted::UnlistedType;
pub use self::warning::{Doubt, Warning};

use crate::ids::OperationType;

/// How many types a config may name.
pub const MAX_TYPES: usize = 64;
/// How many entries a matrix may have: every pair of [`MAX_TYPES`] types.
pub const MAX_ENTRIES: usize = MAX_TYPES * MAX_TYPES;
/// How long a command may be, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// How many hooks a config may have.
pub const MAX_HOOKS: usize = 32;
/// How long the address of a web hook may be, in bytes.
pub const MAX_URL_BYTES: usize = 2048;
/// How long a document may be, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// What to do with two operations, taken in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rule {
    /// Only one is kept.
    TakeOne,
    /// Both, in any order.
    TakeBoth,
    /// Both, in this order; the first is the replacing kind.
    KeepOrder,
    /// Both, in the reverse order; the second is the replacing kind.
    ReverseOrder,
    /// Both, in the total order.
    Ordered,
    /// Left to logic: edits that are merged, or a program of the operator. Where that cannot be, as
    /// [`Rule::Ordered`].
    Logic(String),
}

impl Rule {
    /// Whether both stay, in the total order.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Ordered | Self::Logic(_))
    }

    /// The rule for the same two operations taken the other way round.
    pub fn mirror(&self) -> Self {
        match self {
            Self::KeepOrder => Self::ReverseOrder,
            Self::ReverseOrder => Self::KeepOrder,
            Self::TakeOne | Self::TakeBoth | Self::Ordered | Self::Logic(_) => self.clone(),
        }
    }

    /// Whether one of the two is the replacing kind and the other not: only then has
    /// [`Concurrent`] a meaning.
    fn has_order(&self) -> bool {
        matches!(self, Self::KeepOrder | Self::ReverseOrder)
    }
}

/// Who stays when a replacing operation and another one are concurrent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Concurrent {
    /// The replacing one only.
    #[default]
    ReplaceWins,
    /// Both, the replacing one first.
    KeepBoth,
}

/// One entry of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resolution {
    /// In sequence, and which of two concurrent ones goes first.
    pub rule: Rule,
    /// What concurrency changes.
    pub concurrent: Concurrent,
}

impl Resolution {
    /// The entry for the same two operations taken the other way round.
    pub fn mirror(&self) -> Self {
        Self { rule: self.rule.mirror(), concurrent: self.concurrent }
    }
}

/// How operations of one type can be repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Handling {
    /// Command that takes the operation back.
    pub undo: Option<String>,
    /// Whether running it twice is as good as once.
    pub idempotent: bool,
    /// Whether it sets things to values that do not depend on what was there: then, where another
    /// has to come before it, it is simply run again after that one.
    pub assigns: bool,
    /// Command that tells whether it happened: exit 0 if it did.
    pub check: Option<String>,
    /// Command that answers with smaller steps when the operation failed.
    pub decompose: Option<String>,
}

/// Commands that read and write a resource's whole state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateCommands {
    /// Prints the state: equal states, equal bytes.
    pub read: String,
    /// Gets such a state on its standard input and makes the resource so, whatever it was.
    pub write: String,
}

/// A resource's config.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Config {
    /// The resolution matrix; a pair that is not listed is `take-both`, unless nothing is: without a
    /// matrix all pairs are `ordered`.
    pub matrix: BTreeMap<(OperationType, OperationType), Resolution>,
    /// Per type.
    pub types: BTreeMap<OperationType, Handling>,
    /// Per resource.
    pub state: Option<StateCommands>,
    /// What is told to whom, in the order of the document.
    pub hooks: Vec<Hook>,
}

impl Config {
    /// Every type the config speaks of, in order of name.
    pub fn kinds(&self) -> BTreeSet<&OperationType> {
        let paired = self.matrix.keys().flat_map(|(before, after)| [before, after]);
        paired.chain(self.types.keys()).collect()
    }
}
