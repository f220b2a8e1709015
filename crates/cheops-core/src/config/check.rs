//! What a config says against itself: contradictions, which make it unusable, and what is allowed
//! but probably not meant.

use std::collections::BTreeMap;

use super::circle::circles;
use super::document::{DocumentEntry, MATRIX, TYPES};
use super::place::ConfigPlace;
use super::problem::{ConfigFault, ConfigProblem};
use super::spelling::{RESULTS, is_logic_name};
use super::warning::{Doubt, Warning};
use super::{
    Concurrent, Config, Hook, MAX_COMMAND_BYTES, MAX_DOCUMENT_BYTES, MAX_ENTRIES, MAX_TYPES, Rule,
};
use crate::ids::OperationType;

/// The first entry for each pair.
pub(super) type EntryIndex<'e> =
    BTreeMap<(&'e OperationType, &'e OperationType), &'e DocumentEntry>;

/// The first entry for each pair.
pub(super) fn index(entries: &[DocumentEntry]) -> EntryIndex<'_> {
    let mut index = EntryIndex::new();
    for entry in entries {
        index.entry((&entry.before, &entry.after)).or_insert(entry);
    }
    index
}

/// Every contradiction in a matrix. Of two entries that contradict each other, the later is
/// reported.
pub(super) fn contradictions(entries: &[DocumentEntry]) -> Vec<ConfigProblem> {
    let mut seen = EntryIndex::new();
    let mut problems = Vec::new();
    for entry in entries {
        let first = seen.get(&(&entry.before, &entry.after));
        let mirror = seen.get(&(&entry.after, &entry.before));
        let faults = [
            first.map(|first| duplicate(entry, first)),
            mirror.and_then(|mirror| disagreement(entry, mirror)),
            orders_itself(entry),
            nothing_to_keep(entry),
            bad_logic(entry),
        ];
        let place = &entry.place;
        problems.extend(
            faults.into_iter().flatten().map(|fault| ConfigProblem { place: place.clone(), fault }),
        );
        seen.entry((&entry.before, &entry.after)).or_insert(entry);
    }
    problems
}

fn duplicate(entry: &DocumentEntry, first: &DocumentEntry) -> ConfigFault {
    let (before, after) = (entry.before.clone(), entry.after.clone());
    ConfigFault::DuplicatePair { before, after, first: first.place.clone() }
}

fn disagreement(entry: &DocumentEntry, mirror: &DocumentEntry) -> Option<ConfigFault> {
    if entry.before == entry.after {
        return None;
    }
    let expected = said(&mirror.rule.mirror(), mirror.concurrent);
    let found = said(&entry.rule, entry.concurrent);
    (found != expected).then(|| ConfigFault::Contradiction {
        before: entry.before.clone(),
        after: entry.after.clone(),
        found,
        mirror: mirror.place.clone(),
        mirrored: said(&mirror.rule, mirror.concurrent),
        expected,
    })
}

/// A result as it is said, with `keep-both` where that counts.
fn said(rule: &Rule, concurrent: Option<Concurrent>) -> String {
    match concurrent {
        Some(Concurrent::KeepBoth) if rule.has_order() => {
            format!("{rule}` with `Concurrent: {}", Concurrent::KeepBoth)
        }
        _ => rule.to_string(),
    }
}

fn orders_itself(entry: &DocumentEntry) -> Option<ConfigFault> {
    (entry.before == entry.after && entry.rule.has_order()).then(|| ConfigFault::OrdersItself {
        kind: entry.before.clone(),
        found: entry.rule.to_string(),
    })
}

fn nothing_to_keep(entry: &DocumentEntry) -> Option<ConfigFault> {
    (entry.concurrent == Some(Concurrent::KeepBoth) && !entry.rule.has_order())
        .then(|| ConfigFault::NothingToKeep { found: entry.rule.to_string() })
}

/// Documents cannot say this, but configs made by a program can.
fn bad_logic(entry: &DocumentEntry) -> Option<ConfigFault> {
    match &entry.rule {
        Rule::Logic(name) if !is_logic_name(name) => {
            Some(ConfigFault::unknown("result", &entry.rule.to_string(), RESULTS))
        }
        _ => None,
    }
}

/// What is wrong with a command, if anything is.
pub(super) fn command_fault(command: &str) -> Option<ConfigFault> {
    let strange = |c: &char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    if command.trim().is_empty() {
        return Some(ConfigFault::EmptyCommand);
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Some(ConfigFault::CommandTooLong { bytes: command.len() });
    }
    let strange = command.chars().find(strange)?;
    Some(ConfigFault::ControlCharacter { code: strange.into() })
}

/// Whether a config names more types, or has more entries, than allowed.
pub(super) fn too_many(config: &Config) -> Vec<ConfigProblem> {
    let counts = [
        (MATRIX, "entries", config.matrix.len(), MAX_ENTRIES),
        (TYPES, "types", config.kinds().len(), MAX_TYPES),
    ];
    let over = counts.into_iter().filter(|(_, _, found, limit)| found > limit);
    over.map(|(path, what, found, limit)| ConfigProblem {
        place: ConfigPlace::path(path),
        fault: ConfigFault::TooMany { what, found, limit },
    })
    .collect()
}

/// Whether the texts of a config take more room than any document: one command may be meant for
/// many types.
pub(super) fn too_long(config: &Config) -> Option<ConfigProblem> {
    let bytes = config.text_bytes();
    let fault = ConfigFault::TextTooLong { bytes };
    (bytes > MAX_DOCUMENT_BYTES).then(|| ConfigProblem { place: ConfigPlace::default(), fault })
}

/// Types that no config may say anything about. A hook may wait for them.
pub(super) fn reserved(config: &Config) -> Vec<ConfigProblem> {
    let paired = config.matrix.keys().enumerate().flat_map(|(i, (before, after))| {
        let place = ConfigPlace::path(MATRIX).index(i, None);
        [(place.key("Before", None), before), (place.key("After", None), after)]
    });
    let described = config.types.keys().map(|kind| {
        let place = ConfigPlace::path(TYPES).key(kind.as_str(), None);
        (place, kind)
    });
    let ours = paired.chain(described).filter(|(_, kind)| kind.is_reserved());
    let problem = |(place, kind): (ConfigPlace, &OperationType)| {
        let fault = ConfigFault::ReservedType(kind.clone());
        ConfigProblem { place, fault }
    };
    ours.map(problem).collect()
}

/// Everything worth a second look in a config without contradictions.
///
/// Hooks are found at `hooks`, in their order.
pub(super) fn warnings(
    config: &Config,
    entries: &EntryIndex<'_>,
    hooks: &[ConfigPlace],
) -> Vec<Warning> {
    let mut warnings: Vec<_> =
        entries.values().flat_map(|entry| of_entry(entry, entries, config)).collect();
    warnings.sort_by_key(|warning| (warning.place.at.is_none(), warning.place.at));
    // What is said of a pair on top of a profile counts for its mirror too.
    warnings.dedup();
    let types = || ConfigPlace::path(TYPES);
    let matrix = || ConfigPlace::path(MATRIX);
    warnings.extend(unsaid_pairs(config).map(|doubt| Warning { place: matrix(), doubt }));
    warnings.extend(outside_matrix(config).map(|doubt| Warning { place: types(), doubt }));
    warnings
        .extend(only_case(config).map(|doubt| Warning { place: ConfigPlace::default(), doubt }));
    let circles = circles(config).into_iter().map(|kinds| Doubt::Circle { kinds });
    warnings.extend(circles.map(|doubt| Warning { place: matrix(), doubt }));
    warnings.extend(of_hooks(config, hooks));
    warnings
}

fn of_hooks(config: &Config, places: &[ConfigPlace]) -> Vec<Warning> {
    let known = config.kinds();
    let mut seen: BTreeMap<&Hook, &ConfigPlace> = BTreeMap::new();
    let mut warnings = Vec::new();
    for (hook, place) in config.hooks.iter().zip(places) {
        // A config that speaks of no type says nothing about which there are.
        let strange = hook.types.iter().filter(|kind| !known.is_empty() && !known.contains(kind));
        let strange = strange.map(|kind| Doubt::HookOfUnknownType { kind: kind.clone() });
        let first = seen.get(hook).map(|first| Doubt::SameHook { first: first.path.clone() });
        let doubts = strange.chain(first);
        warnings.extend(doubts.map(|doubt| Warning { place: place.clone(), doubt }));
        seen.entry(hook).or_insert(place);
    }
    warnings
}

fn of_entry(
    entry: &DocumentEntry,
    entries: &EntryIndex<'_>,
    config: &Config,
) -> impl Iterator<Item = Warning> {
    let listed = entries.contains_key(&(&entry.after, &entry.before));
    let missing = !listed && entry.rule != Rule::TakeBoth;
    let missing = missing.then(|| Doubt::MirrorMissing {
        before: entry.before.clone(),
        after: entry.after.clone(),
        found: said(&entry.rule, entry.concurrent),
        mirror: said(&entry.rule.mirror(), entry.concurrent),
    });
    let idle = entry.concurrent == Some(Concurrent::ReplaceWins) && !entry.rule.has_order();
    let idle = idle.then(|| Doubt::ConcurrentWithoutEffect { found: entry.rule.to_string() });
    let logic = config.doubts_logic(&entry.rule);
    let doubts = [missing, idle, logic].into_iter().flatten();
    let place = entry.place.clone();
    doubts.map(move |doubt| Warning { place: place.clone(), doubt })
}

/// Pairs of a replacing type and another one of the matrix, or itself, that are not listed.
fn unsaid_pairs(config: &Config) -> impl Iterator<Item = Doubt> {
    let replaces: BTreeMap<_, _> =
        matrix_kinds(config).map(|kind| (kind, config.overwrites(kind))).collect();
    let pairs = replaces.clone().into_iter().flat_map(move |(one, one_replaces)| {
        let others = replaces.clone().into_iter().filter(move |(other, _)| *other >= one);
        others.map(move |(other, other_replaces)| (one, one_replaces, other, other_replaces))
    });
    pairs.filter_map(|(one, one_replaces, other, other_replaces)| {
        let said = config.listed(one, other).is_some() || config.listed(other, one).is_some();
        let (replacing, other, example) = match (said, one_replaces, other_replaces) {
            (true, _, _) | (_, false, false) => return None,
            (_, true, true) => (one, other, "take-one"),
            (_, true, false) => (one, other, "take-both-keep-order"),
            (_, false, true) => (other, one, "take-both-keep-order"),
        };
        let (replacing, other) = (replacing.clone(), other.clone());
        Some(Doubt::ReplacingPairMissing { replacing, other, example })
    })
}

fn matrix_kinds(config: &Config) -> impl Iterator<Item = &OperationType> {
    config.matrix.keys().flat_map(|(before, after)| [before, after])
}

fn outside_matrix(config: &Config) -> impl Iterator<Item = Doubt> {
    let outside = |kind: &&OperationType| matrix_kinds(config).all(|known| known != *kind);
    config.types.keys().filter(outside).map(|kind| Doubt::NotInMatrix { kind: kind.clone() })
}

fn only_case(config: &Config) -> impl Iterator<Item = Doubt> {
    let mut spellings: BTreeMap<String, &OperationType> = BTreeMap::new();
    config.kinds().into_iter().filter_map(move |kind| {
        let first = *spellings.entry(kind.as_str().to_ascii_lowercase()).or_insert(kind);
        (first != kind).then(|| Doubt::OnlyCase { one: first.clone(), other: kind.clone() })
    })
}
