//! What a config may say but is probably not meant. Nothing is refused for it.

use std::fmt;

use super::ConfigPlace;
use crate::ids::OperationType;

/// One thing to look at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub place: ConfigPlace,
    /// What.
    pub doubt: Doubt,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.doubt)
    }
}

/// What is doubtful, and what it means as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum Doubt {
    /// The same two types the other way round are `take-both` by silence.
    #[error(
        "`{before}`, `{after}` is `{found}`, but `{after}`, `{before}` is not listed and so \
         `take-both`: `{before}` made on `{after}` is added after it, and where they are concurrent \
         and `{after}` is the earlier, both run, in any order; list it as `{mirror}`"
    )]
    MirrorMissing { before: OperationType, after: OperationType, found: String, mirror: String },
    /// A type that replaces, and no word on how it gets on with another.
    #[error(
        "`{replacing}` replaces what was there, but nothing is said of `{replacing}` and \
         `{other}`, a pair that is so `take-both`: both are kept, in any order where they are \
         concurrent; list it, for instance as `{example}`"
    )]
    ReplacingPairMissing { replacing: OperationType, other: OperationType, example: &'static str },
    /// A type with commands, but without a place in the matrix.
    #[error(
        "`{kind}` is in no entry of the matrix: it is `take-both` with every type, so its \
         operations run in any order and none is ever replaced"
    )]
    NotInMatrix { kind: OperationType },
    /// Probably one type in two spellings.
    #[error("`{one}` and `{other}` differ only by case and are two types")]
    OnlyCase { one: OperationType, other: OperationType },
    /// Concurrent operations of these types can rule each other out in a circle.
    #[error(
        "concurrent operations of the types {} can rule each other out in a circle; the last of \
         them in the total order then stays",
        names(kinds)
    )]
    Circle { kinds: Vec<OperationType> },
    /// There is nothing that would run it.
    #[error(
        "there is no logic `{name}`, and it is taken as `ordered`: both stay, in total order; there \
         are `logic:text`, `logic:json` and `logic:exec:NAME`"
    )]
    UnknownLogic { name: String },
    /// Some pairs are merged and others are not.
    #[error(
        "`logic:{name}` makes one document of all operations of a resource, but another pair of the \
         matrix says something else, so it is taken as `ordered`; say it of every pair"
    )]
    LogicNotOfAll { name: String },
    /// Nobody could merge, or go back to the state before.
    #[error(
        "`logic:{name}` needs to read and write the resource's state, so it is taken as `ordered`; \
         give `State`, or a `Profile` that has one with a `Target`"
    )]
    LogicWithoutState { name: String },
    /// The default, where it has no meaning.
    #[error("`Concurrent: replace-wins` changes nothing with `{found}`; leave it out")]
    ConcurrentWithoutEffect { found: String },
    /// Probably misspelled.
    #[error("nothing else in the config speaks of `{kind}`, to which this hook is limited")]
    HookOfUnknownType { kind: OperationType },
    /// It runs twice.
    #[error("the same hook is listed already at `{first}`; both run")]
    SameHook { first: String },
}

fn names(kinds: &[OperationType]) -> String {
    let names: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
    names.join(", ")
}
