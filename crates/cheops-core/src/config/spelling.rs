//! Words of a document: how they are spelled, and which one was probably meant.

use std::fmt;

use super::logic::EXEC;
use super::{Concurrent, Rule};
use crate::ids::OperationType;

/// The results an entry may have, as they are written back.
pub(super) const RESULTS: &[&str] = &[
    "take-one",
    "take-both",
    "take-both-any-order",
    "take-both-keep-order",
    "take-both-reverse-order",
    "ordered",
    "logic:<name>",
];

/// What `Concurrent` may say.
pub(super) const CONCURRENTS: &[&str] = &["replace-wins", "keep-both"];

const LOGIC: &str = "logic:";

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TakeOne => "take-one",
            Self::TakeBoth => "take-both",
            Self::KeepOrder => "take-both-keep-order",
            Self::ReverseOrder => "take-both-reverse-order",
            Self::Ordered => "ordered",
            Self::Logic(name) => return write!(f, "{LOGIC}{name}"),
        })
    }
}

impl fmt::Display for Concurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReplaceWins => "replace-wins",
            Self::KeepBoth => "keep-both",
        })
    }
}

/// Reads a result, in any case and with `-` or `_`.
pub(super) fn rule(text: &str) -> Option<Rule> {
    let word = dashed(text);
    Some(match word.as_str() {
        "take-one" => Rule::TakeOne,
        "take-both" | "take-both-any-order" => Rule::TakeBoth,
        "take-both-keep-order" => Rule::KeepOrder,
        "take-both-reverse-order" => Rule::ReverseOrder,
        "ordered" => Rule::Ordered,
        _ => {
            let (prefix, name) = text.split_at_checked(LOGIC.len())?;
            let named = prefix.eq_ignore_ascii_case(LOGIC) && is_logic_name(name);
            named.then(|| Rule::Logic(name.to_owned()))?
        }
    })
}

/// Whether logic can have that name: it, or that of its program, follows the rule for types.
pub(super) fn is_logic_name(name: &str) -> bool {
    OperationType::new(name.strip_prefix(EXEC).unwrap_or(name)).is_ok()
}

/// Reads what `Concurrent` says, in any case and with `-` or `_`.
pub(super) fn concurrent(text: &str) -> Option<Concurrent> {
    match dashed(text).as_str() {
        "replace-wins" => Some(Concurrent::ReplaceWins),
        "keep-both" => Some(Concurrent::KeepBoth),
        _ => None,
    }
}

/// Whether two keys are the same word: `ResolutionMatrix`, `resolution_matrix`,
/// `resolution-matrix`.
pub(super) fn same_key(a: &str, b: &str) -> bool {
    bare(a).eq(bare(b))
}

fn bare(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|b| !matches!(b, b'-' | b'_')).map(|b| b.to_ascii_lowercase())
}

fn dashed(text: &str) -> String {
    text.to_ascii_lowercase().replace('_', "-")
}

/// The choice that was probably meant, if one is near enough.
pub(super) fn nearest<'a>(found: &str, choices: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if found.len() > LONGEST {
        return None;
    }
    let near = |choice: &&'a str| {
        let distance = distance(&dashed(found), &dashed(choice));
        (distance <= 1 + choice.len() / 4).then_some((distance, *choice))
    };
    choices.iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, choice)| choice)
}

/// How many letters must be added, dropped or changed to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_reads_back_from_what_is_written() {
        let named = Rule::Logic("Text_2".into());
        let rules = [Rule::TakeOne, Rule::TakeBoth, Rule::KeepOrder, Rule::ReverseOrder];
        for expected in rules.into_iter().chain([Rule::Ordered, named]) {
            assert_eq!(rule(&expected.to_string()), Some(expected));
        }
    }

    #[test]
    fn results_are_read_in_any_case_and_with_either_dash() {
        assert_eq!(rule("Take_Both_Keep-Order"), Some(Rule::KeepOrder));
        assert_eq!(rule("TAKE-BOTH-ANY-ORDER"), Some(Rule::TakeBoth));
        assert_eq!(rule("Logic:exec"), Some(Rule::Logic("exec".into())));
        for bad in ["", "take", "logic:", "logic: x", "logic", "é", "lögic:x"] {
            assert_eq!(rule(bad), None, "{bad}");
        }
        assert_eq!(concurrent("Keep_Both"), Some(Concurrent::KeepBoth));
    }

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("take-won", RESULTS), Some("take-one"));
        assert_eq!(nearest("Take_Both_Keeporder", RESULTS), Some("take-both-keep-order"));
        assert_eq!(nearest("last-writer-wins", RESULTS), None);
        assert_eq!(nearest(&"x".repeat(1000), RESULTS), None);
        assert_eq!(nearest("", CONCURRENTS), None);
    }

    #[test]
    fn keys_are_the_same_word_whatever_their_case_and_dashes() {
        assert!(same_key("ResolutionMatrix", "resolution_matrix"));
        assert!(!same_key("Result", "Results"));
    }
}
