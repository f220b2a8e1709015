//! What makes a config unusable. All of it is reported at once, each with its place, what was
//! found there and what would be right.

use std::fmt;

use super::place::{ConfigPlace, short};
use super::spelling::nearest;
use super::tree::TreeValue;
use super::{MAX_COMMAND_BYTES, MAX_DOCUMENT_BYTES};
use crate::ids::{IdError, OperationType};

/// Everything that is wrong with a config. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    problems: Vec<ConfigProblem>,
}

impl ConfigErrors {
    /// `Err` of these problems, if there are any.
    pub(super) fn from_all(problems: Vec<ConfigProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// One by one, in the order of the document.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }
}

impl From<ConfigProblem> for ConfigErrors {
    fn from(problem: ConfigProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => write!(f, "the config cannot be used: {only}"),
            all => {
                write!(f, "the config cannot be used, for {} reasons:", all.len())?;
                all.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
            }
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where.
    pub place: ConfigPlace,
    /// What was found there.
    pub fault: ConfigFault,
}

impl std::error::Error for ConfigProblem {}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.fault, self.fault.remedy())
    }
}

/// What was found that cannot be. It displays as what was found; [`ConfigFault::remedy`] says what would
/// be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum ConfigFault {
    /// Nobody writes such a document by hand.
    #[error("the document has {bytes} bytes")]
    DocumentTooLong { bytes: usize },
    /// Neither JSON nor YAML.
    #[error("the document cannot be read: {message}")]
    Unreadable { message: String },
    /// Made to be hard to read, probably.
    #[error("there are too many values, levels or aliases")]
    TooComplex,
    /// YAML lets several stand in one text.
    #[error("a second document begins here")]
    SecondDocument,
    /// Another kind of value was needed.
    #[error("found {found}")]
    WrongKind { found: String, expected: &'static str },
    /// A key, result, profile... that does not exist.
    #[error("unknown {what} `{found}`")]
    Unknown { what: &'static str, found: String, choices: Vec<&'static str> },
    /// A key that must be there is not.
    #[error("there is no `{key}`")]
    Missing { key: &'static str },
    /// The same key, in two spellings.
    #[error("`{key}` is given already, as `{first}`")]
    Repeated { key: String, first: String },
    /// Not the name of a type.
    #[error("{0}")]
    BadType(IdError),
    /// A name that no matrix can say anything about.
    #[error("`{0}` is kept for Cheops' own operations")]
    ReservedType(OperationType),
    /// More of something than anyone needs.
    #[error("there are {found} {what}")]
    TooMany { what: &'static str, found: usize, limit: usize },
    /// A command without a text.
    #[error("the command is empty")]
    EmptyCommand,
    /// A command that no shell takes.
    #[error("the command has {bytes} bytes")]
    CommandTooLong { bytes: usize },
    /// More than fits into a message beside everything else.
    #[error("the commands and addresses have {bytes} bytes together")]
    TextTooLong { bytes: usize },
    /// A command that no shell takes.
    #[error("the command holds the control character U+{code:04X}")]
    ControlCharacter { code: u32 },
    /// A pair that is listed twice.
    #[error("the pair `{before}`, `{after}` is listed already at {first}")]
    DuplicatePair { before: OperationType, after: OperationType, first: ConfigPlace },
    /// One entry says the opposite of another.
    #[error(
        "`{before}`, `{after}` is `{found}`, but {mirror} says that `{after}`, `{before}` is \
         `{mirrored}`"
    )]
    Contradiction {
        before: OperationType,
        after: OperationType,
        found: String,
        mirror: ConfigPlace,
        mirrored: String,
        expected: String,
    },
    /// Two of the same type cannot be told apart, so neither can go first.
    #[error("`{found}` orders `{kind}` against itself")]
    OrdersItself { kind: OperationType, found: String },
    /// It promises to keep an operation which the entry drops, or says nothing about.
    #[error("`Concurrent: keep-both` has no meaning with `{found}`")]
    NothingToKeep { found: String },
    /// One is of no use without the other.
    #[error("there is `{present}` but no `{missing}`")]
    HalfOfAPair { present: &'static str, missing: &'static str },
    /// One of the two is needed.
    #[error("there is neither `{one}` nor `{other}`")]
    Neither { one: &'static str, other: &'static str },
    /// Only one of the two can be meant.
    #[error("there are both `{one}` and `{other}`")]
    Both { one: &'static str, other: &'static str },
    /// Nothing can be posted there.
    #[error("`{found}` is no address for a web hook: {why}")]
    BadUrl { found: String, why: &'static str },
    /// Two settings that do not go together.
    #[error("`{found}` has no meaning with `{with}`")]
    MeansNothing { found: String, with: String, reason: &'static str },
    /// Two programs are named that could answer.
    #[error("what decomposes `{kind}` is given already at {first}")]
    DecomposedTwice { kind: OperationType, first: ConfigPlace },
}

impl ConfigFault {
    pub(super) fn wrong_kind(found: &TreeValue, expected: &'static str) -> Self {
        Self::WrongKind { found: found.describe(), expected }
    }

    pub(super) fn unknown(what: &'static str, found: &str, choices: &[&'static str]) -> Self {
        Self::Unknown { what, found: short(found), choices: choices.to_vec() }
    }

    /// What would be right.
    pub fn remedy(&self) -> String {
        match self {
            Self::DocumentTooLong { .. } => format!("at most {MAX_DOCUMENT_BYTES} are read"),
            Self::Unreadable { .. } => "expected JSON or YAML".to_owned(),
            Self::TooComplex => "write it out plainly".to_owned(),
            Self::SecondDocument => "expected one".to_owned(),
            Self::WrongKind { expected, .. } => format!("expected {expected}"),
            Self::Unknown { found, choices, .. } => remedy_for_unknown(found, choices),
            Self::Missing { key } => format!("add `{key}`"),
            Self::Repeated { .. } => "keep one of them".to_owned(),
            Self::BadType(_) => "such as `set` or `apply`".to_owned(),
            Self::ReservedType(_) => "what they do is fixed; leave it out".to_owned(),
            Self::TooMany { what, limit, .. } => format!("at most {limit} {what} are allowed"),
            Self::EmptyCommand => "write the command or leave the key out".to_owned(),
            Self::CommandTooLong { .. } => {
                format!("at most {MAX_COMMAND_BYTES} are allowed; put the rest into a script")
            }
            Self::TextTooLong { .. } => {
                format!("at most {MAX_DOCUMENT_BYTES} are allowed; put the rest into scripts")
            }
            Self::ControlCharacter { .. } => {
                "only tabs and line breaks can stand in a command".to_owned()
            }
            Self::DuplicatePair { .. } => "list a pair once".to_owned(),
            Self::Contradiction { expected, .. } => {
                format!(
                    "one of them must change: to agree with the other, this one is `{expected}`"
                )
            }
            Self::OrdersItself { .. } => {
                "`take-one`, `take-both`, `ordered` or `logic:<name>` fit a type and itself"
                    .to_owned()
            }
            Self::NothingToKeep { .. } => {
                "it goes with `take-both-keep-order` and `take-both-reverse-order`".to_owned()
            }
            Self::HalfOfAPair { missing, .. } => format!("add `{missing}`"),
            Self::Neither { one, other } => format!("add `{one}` or `{other}`"),
            Self::Both { .. } => "keep one of them; two hooks can do both".to_owned(),
            Self::BadUrl { .. } => "such as `https://ops.example/cheops`".to_owned(),
            Self::MeansNothing { reason, .. } => (*reason).to_owned(),
            Self::DecomposedTwice { .. } => "one program can answer for a type".to_owned(),
        }
    }
}

fn remedy_for_unknown(found: &str, choices: &[&'static str]) -> String {
    if let Some(nearest) = nearest(found, choices) {
        return format!("did you mean `{nearest}`?");
    }
    let choices: Vec<_> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    format!("expected one of {}", choices.join(", "))
}
