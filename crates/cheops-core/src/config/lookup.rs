//! What the rest of the core asks a config, again and again: no answer allocates.

use std::borrow::Borrow;
use std::cmp::Ordering;

use super::{Concurrent, Config, Handling, HookAction, Resolution, Rule};
use crate::ids::OperationType;

/// What holds for a pair that the matrix does not list.
static UNLISTED: Resolution =
    Resolution { rule: Rule::TakeBoth, concurrent: Concurrent::ReplaceWins };

/// What holds for every pair where there is no matrix: nobody has said that the order does not matter,
/// and two sites that differ in silence are worse than a repair.
static UNSAID: Resolution = Resolution { rule: Rule::Ordered, concurrent: Concurrent::ReplaceWins };

/// What holds for a deletion and anything else: nothing done before it or beside it stays, and
/// what comes after it in knowledge of it counts. No matrix can say otherwise.
static DELETED_FIRST: Resolution =
    Resolution { rule: Rule::KeepOrder, concurrent: Concurrent::ReplaceWins };
static DELETED_AFTER: Resolution =
    Resolution { rule: Rule::ReverseOrder, concurrent: Concurrent::ReplaceWins };
static BOTH_DELETED: Resolution =
    Resolution { rule: Rule::TakeOne, concurrent: Concurrent::ReplaceWins };

/// What holds for a type that the config does not describe.
static UNKNOWN: Handling =
    Handling { undo: None, idempotent: false, assigns: false, check: None, decompose: None };

impl Config {
    /// The matrix entry for two operations, taken in order. A pair that is not listed is
    /// `take-both`; without a matrix, every pair is `ordered`.
    pub fn resolution(&self, first: &OperationType, second: &OperationType) -> &Resolution {
        let unlisted = if self.matrix.is_empty() { &UNSAID } else { &UNLISTED };
        self.listed(first, second).unwrap_or(unlisted)
    }

    /// The matrix entry for two operations, if there is one.
    pub fn listed(&self, first: &OperationType, second: &OperationType) -> Option<&Resolution> {
        match (first.is_deletion(), second.is_deletion()) {
            (false, false) => self.matrix.get(&(first, second) as &dyn TypePair),
            (true, false) => Some(&DELETED_FIRST),
            (false, true) => Some(&DELETED_AFTER),
            (true, true) => Some(&BOTH_DELETED),
        }
    }

    /// Whether the type is of the replacing kind: what it leaves behind does not depend on what
    /// was there. The matrix says so by a `take-one` with it on either side, a
    /// `take-both-keep-order` with it before, or a `take-both-reverse-order` with it after.
    pub fn overwrites(&self, kind: &OperationType) -> bool {
        let by_matrix =
            self.matrix.iter().any(|((before, after), resolution)| match resolution.rule {
                Rule::TakeOne => before == kind || after == kind,
                Rule::KeepOrder => before == kind,
                Rule::ReverseOrder => after == kind,
                Rule::TakeBoth | Rule::Ordered | Rule::Logic(_) => false,
            });
        by_matrix || kind.is_deletion()
    }

    /// Whether two operations give the same state in either order: both pairs are `take-both`,
    /// by an entry, or by silence where neither type overwrites. (Table 5 of the report does not
    /// list set/set, and yet two sets do not commute.)
    pub fn commute(&self, a: &OperationType, b: &OperationType) -> bool {
        let (ab, ba) = (self.listed(a, b), self.listed(b, a));
        if self.merged_as().is_some() {
            return !(a.is_deletion() || b.is_deletion());
        }
        let both = [ab, ba].into_iter().flatten().all(|entry| entry.rule == Rule::TakeBoth);
        let said = ab.is_some() || ba.is_some();
        let by_silence = !(self.matrix.is_empty() || self.overwrites(a) || self.overwrites(b));
        both && (said || by_silence)
    }

    /// About how many bytes it takes when sent: never much less.
    pub(crate) fn size(&self) -> usize {
        const ENTRY: usize = 300;
        let types_of_hooks: usize = self.hooks.iter().map(|hook| 1 + hook.types.len()).sum();
        self.text_bytes() + (self.matrix.len() + self.types.len() + types_of_hooks) * ENTRY
    }

    /// How long its commands and addresses are together.
    pub(super) fn text_bytes(&self) -> usize {
        let addresses = self.hooks.iter().filter_map(|hook| match &hook.action {
            HookAction::Command(_) => None,
            HookAction::Url(address) => Some(address.as_str()),
        });
        self.commands().chain(addresses).map(str::len).sum()
    }

    /// Every command it names.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let of_types = self.types.values().flat_map(|handling| {
            [&handling.undo, &handling.check, &handling.decompose].into_iter().flatten()
        });
        let state = self.state.iter().flat_map(|both| [&both.read, &both.write]);
        let hooks = self.hooks.iter().filter_map(|hook| match &hook.action {
            HookAction::Command(command) => Some(command),
            HookAction::Url(_) => None,
        });
        of_types.chain(state).chain(hooks).map(String::as_str)
    }

    /// How operations of that type are repaired.
    pub fn handling(&self, kind: &OperationType) -> &Handling {
        self.handling_of_edits().or_else(|| self.types.get(kind)).unwrap_or(&UNKNOWN)
    }
}

/// A key of the matrix, owned or borrowed, so that a lookup need not build one.
trait TypePair {
    fn key(&self) -> (&OperationType, &OperationType);
}

impl TypePair for (OperationType, OperationType) {
    fn key(&self) -> (&OperationType, &OperationType) {
        (&self.0, &self.1)
    }
}

impl TypePair for (&OperationType, &OperationType) {
    fn key(&self) -> (&OperationType, &OperationType) {
        *self
    }
}

impl<'a> Borrow<dyn TypePair + 'a> for (OperationType, OperationType) {
    fn borrow(&self) -> &(dyn TypePair + 'a) {
        self
    }
}

// A map finds a borrowed key only if it is ordered as the owned one is: by both names in turn.
impl Ord for dyn TypePair + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for dyn TypePair + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn TypePair + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for dyn TypePair + '_ {}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> OperationType {
        OperationType::new(text).unwrap()
    }

    fn config(entries: &[(&str, &str, Rule)]) -> Config {
        let entry = |(before, after, rule): &(&str, &str, Rule)| {
            let concurrent = Concurrent::ReplaceWins;
            ((kind(before), kind(after)), Resolution { rule: rule.clone(), concurrent })
        };
        Config { matrix: entries.iter().map(entry).collect(), ..Config::default() }
    }

    /// Table 5 of the report, which leaves set/set out.
    fn table_5() -> Config {
        config(&[
            ("set", "inc", Rule::KeepOrder),
            ("inc", "set", Rule::ReverseOrder),
            ("inc", "inc", Rule::TakeBoth),
        ])
    }

    #[test]
    fn every_listed_pair_is_found_and_the_others_are_take_both() {
        let config = table_5();
        for ((before, after), resolution) in &config.matrix {
            assert_eq!(config.resolution(before, after), resolution);
        }
        assert_eq!(config.resolution(&kind("set"), &kind("set")), &UNLISTED);
        assert_eq!(config.listed(&kind("set"), &kind("set")), None);
        assert_eq!(config.resolution(&kind("a"), &kind("z")), &UNLISTED);
    }

    #[test]
    fn a_type_overwrites_where_the_matrix_lets_it_replace() {
        let config = table_5();
        assert!(config.overwrites(&kind("set")));
        assert!(!config.overwrites(&kind("inc")));
        assert!(!config.overwrites(&kind("unknown")));
    }

    #[test]
    fn two_replacing_types_commute_only_if_an_entry_says_so() {
        let config = table_5();
        let mut said = config.clone();
        let take_both = UNLISTED.clone();
        said.matrix.insert((kind("set"), kind("set")), take_both);
        assert!(said.commute(&kind("set"), &kind("set")));
        assert!(config.commute(&kind("inc"), &kind("inc")));
        assert!(!config.commute(&kind("set"), &kind("inc")));
        assert!(!config.commute(&kind("set"), &kind("set")));
        assert!(!config.commute(&kind("set"), &kind("unknown")));
        assert!(config.commute(&kind("inc"), &kind("unknown")));
        assert!(
            !Config::default().commute(&kind("a"), &kind("b")),
            "without a matrix nobody has said that the order does not matter"
        );
    }

    #[test]
    fn a_type_without_a_word_on_it_has_no_commands_and_is_not_idempotent() {
        assert_eq!(table_5().handling(&kind("set")), &Handling::default());
    }
}
