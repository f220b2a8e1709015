//! Tests of the config as a whole, from document to config and back.

mod checking;
mod hooks;
mod hostile;
mod meaning;
mod properties;
mod reading;

use super::{Concurrent, Config, Parsed, Resolution, Rule};
use crate::ids::OperationType;

fn kind(text: &str) -> OperationType {
    OperationType::new(text).unwrap()
}

fn said(rule: Rule) -> Resolution {
    Resolution { rule, concurrent: Concurrent::ReplaceWins }
}

fn parsed(text: &str) -> Parsed {
    Config::parse(text).unwrap_or_else(|errors| panic!("{errors}\nin {text}"))
}

/// The problems of a document, one on each line.
fn problems(text: &str) -> String {
    let errors = Config::parse(text).expect_err(text);
    errors.problems().iter().map(|problem| format!("{problem}\n")).collect()
}

/// The warnings of a document, one on each line.
fn warnings(text: &str) -> String {
    parsed(text).warnings.iter().map(|warning| format!("{warning}\n")).collect()
}
