//! From what a document says, on top of the profile it starts from, to a config.

use std::collections::BTreeMap;

use super::check::{command_fault, contradictions, index, reserved, too_long, too_many, warnings};
use super::document::{
    self, ConfigDocument, DocumentEntry, HOOKS, HookEntry, MATRIX, READ, RESTORE, SNAPSHOT, STATE,
    TARGET, TYPES, TypeEntry, VOLATILE, WRITE,
};
use super::hooks::bad_hooks;
use super::place::ConfigPlace;
use super::problem::{ConfigErrors, ConfigFault, ConfigProblem};
use super::warning::Warning;
use super::{Concurrent, Config, HookAction, Resolution, StateCommands, state, tree};
use crate::ids::OperationType;

/// A config read from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The config.
    pub config: Config,
    /// What is allowed in it but probably not meant.
    pub warnings: Vec<Warning>,
}

impl Config {
    /// Reads a document, in JSON or YAML.
    ///
    /// ```
    /// use cheops_core::config::Config;
    ///
    /// let parsed = Config::parse(
    ///     r#"{"ResolutionMatrix": [{"Before": "set", "After": "set", "Result": "take-one"}]}"#,
    /// );
    /// assert!(parsed.unwrap().warnings.is_empty());
    ///
    /// let errors = Config::parse("Profile: reddis").unwrap_err();
    /// assert_eq!(
    ///     errors.to_string(),
    ///     "the config cannot be used: `Profile` (line 1, column 10): \
    ///      unknown profile `reddis`; did you mean `redis`?"
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, in the order of the document.
    pub fn parse(text: &str) -> Result<Parsed, ConfigErrors> {
        Self::parse_about(text, None)
    }

    /// Reads a document as [`Config::parse`] does, about this target instead of the one it names.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, in the order of the document.
    pub fn parse_about(text: &str, target: Option<&str>) -> Result<Parsed, ConfigErrors> {
        let root = tree::read(text)?;
        let (mut document, mut problems) = document::read(&root);
        if let Some(target) = target {
            let place = ConfigPlace::path(TARGET);
            match command_fault(target) {
                Some(fault) => problems.push(ConfigProblem { place, fault }),
                None => document.target = Some((target.to_owned(), place)),
            }
        }
        problems.extend(contradictions(&document.entries));
        let entries = on_top_of_profile(&document);
        let kept = document.hooks.iter().filter(|entry| !entry.decomposes);
        let places: Vec<_> = kept.map(|entry| entry.place.clone()).collect();
        let (config, more) = assemble(document, &entries);
        problems.extend(more);
        problems.extend(too_many(&config));
        problems.extend(too_long(&config));
        problems.sort_by_key(|problem| (problem.place.at.is_none(), problem.place.at));
        ConfigErrors::from_all(problems)?;
        let warnings = warnings(&config, &index(&entries), &places);
        Ok(Parsed { config, warnings })
    }

    /// Checks a config that was not read from a document, and says what is probably not meant.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn validate(&self) -> Result<Vec<Warning>, ConfigErrors> {
        self.check()?;
        let entries = entries(self, |i| ConfigPlace::path(MATRIX).index(i, None));
        let places: Vec<_> =
            (0..self.hooks.len()).map(|i| ConfigPlace::path(HOOKS).index(i, None)).collect();
        Ok(warnings(self, &index(&entries), &places))
    }

    /// Checks a config that was not read from a document, such as one that another site sent: what
    /// passes is one that a document could have said.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it; where there is far too much of something, only that.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        // First: looking for the rest takes time that grows with what there is.
        let mut problems = too_many(self);
        problems.extend(too_long(self));
        ConfigErrors::from_all(std::mem::take(&mut problems))?;
        let entries = entries(self, |i| ConfigPlace::path(MATRIX).index(i, None));
        problems.extend(contradictions(&entries));
        problems.extend(reserved(self));
        problems.extend(bad_commands(self));
        problems.extend(bad_hooks(self));
        ConfigErrors::from_all(problems)
    }
}

/// The entries of a config's matrix.
fn entries(config: &Config, place: impl Fn(usize) -> ConfigPlace) -> Vec<DocumentEntry> {
    let entry = |(i, ((before, after), said)): (usize, (&(_, _), &Resolution))| DocumentEntry {
        place: place(i),
        before: Clone::clone(before),
        after: Clone::clone(after),
        rule: said.rule.clone(),
        concurrent: (said.concurrent != Concurrent::default()).then_some(said.concurrent),
    };
    config.matrix.iter().enumerate().map(entry).collect()
}

/// The profile's entries that the document does not touch, then the document's. Who restates one
/// direction of a pair restates the pair: the profile's other direction follows.
fn on_top_of_profile(document: &ConfigDocument) -> Vec<DocumentEntry> {
    let said = index(&document.entries);
    let base =
        document.profile.map(|profile| entries(&profile.config, |_| ConfigPlace::path("Profile")));
    let kept = base.into_iter().flatten().filter_map(|entry| {
        if said.contains_key(&(&entry.before, &entry.after)) {
            return None;
        }
        let restated = said.get(&(&entry.after, &entry.before)).map(|said| mirrored(said));
        Some(restated.unwrap_or(entry))
    });
    kept.chain(document.entries.iter().cloned()).collect()
}

fn mirrored(entry: &DocumentEntry) -> DocumentEntry {
    DocumentEntry {
        place: entry.place.clone(),
        before: entry.after.clone(),
        after: entry.before.clone(),
        rule: entry.rule.mirror(),
        concurrent: entry.concurrent.filter(|_| entry.rule.has_order()),
    }
}

/// The config, and what is missing in it or said twice.
fn assemble(document: ConfigDocument, entries: &[DocumentEntry]) -> (Config, Vec<ConfigProblem>) {
    let mut config = document.profile.map(|profile| profile.config.clone()).unwrap_or_default();
    config.matrix = index(entries).values().map(|entry| resolution(entry)).collect();
    let mut decomposed: BTreeMap<_, _> = document
        .types
        .iter()
        .filter_map(|said| Some((said.kind.clone(), said.decompose_at.clone()?)))
        .collect();
    document.types.into_iter().for_each(|said| describe(&mut config, said));
    let mut problems = Vec::new();
    for entry in document.hooks {
        problems.extend(take_hook(&mut config, entry, &mut decomposed));
    }
    // What a profile brings needs to be told of what: without a target, nothing is known of a state.
    let base = document.profile.and_then(|profile| profile.state.clone());
    let waits_for_target = base.is_some() && document.target.is_none();
    let base =
        base.filter(|_| document.target.is_some()).map(|both| (both.read, both.write)).unzip();
    let (read, write) = (document.read, document.write);
    let (volatile, volatile_at) = document.volatile.unzip();
    let volatile = volatile.unwrap_or_default();
    let half = match (read.command.over(base.0), write.command.over(base.1)) {
        (Some(read), Some(write)) => {
            let commands = StateCommands { read, write };
            config.state = Some(match &document.target {
                Some((target, _)) => state::about(&commands, target, &volatile),
                None if !volatile.is_empty() => state::without_target(&commands, &volatile),
                None => commands,
            });
            None
        }
        (None, None) => {
            let target = document.target.map(|(_, place)| (TARGET, place.at, STATE));
            let volatile_at = volatile_at.filter(|_| !waits_for_target);
            target.or_else(|| volatile_at.map(|place| (VOLATILE, place.at, STATE)))
        }
        (Some(_), None) => Some((read.key, read.at, other_half(read.key))),
        (None, Some(_)) => Some((write.key, write.at, other_half(write.key))),
    };
    problems.extend(half.map(|(present, at, missing)| ConfigProblem {
        place: ConfigPlace { at, ..ConfigPlace::path(present) },
        fault: ConfigFault::HalfOfAPair { present, missing },
    }));
    (config, problems)
}

/// The key without which that one is of no use.
fn other_half(key: &'static str) -> &'static str {
    match key {
        SNAPSHOT => RESTORE,
        RESTORE => SNAPSHOT,
        READ => WRITE,
        _ => READ,
    }
}

/// Adds a hook, or what it comes to; says which types another program answers for already.
fn take_hook(
    config: &mut Config,
    entry: HookEntry,
    decomposed: &mut BTreeMap<OperationType, ConfigPlace>,
) -> Vec<ConfigProblem> {
    let HookEntry { place, hook, decomposes } = entry;
    let HookAction::Command(command) = &hook.action else {
        config.hooks.push(hook);
        return Vec::new();
    };
    if !decomposes {
        config.hooks.push(hook);
        return Vec::new();
    }
    let mut problems = Vec::new();
    for kind in &hook.types {
        if let Some(first) = decomposed.insert(kind.clone(), place.clone()) {
            let fault = ConfigFault::DecomposedTwice { kind: kind.clone(), first };
            problems.push(ConfigProblem { place: place.clone(), fault });
        }
        config.types.entry(kind.clone()).or_default().decompose = Some(command.clone());
    }
    problems
}

fn resolution(entry: &DocumentEntry) -> ((OperationType, OperationType), Resolution) {
    let concurrent = entry.concurrent.unwrap_or_default();
    let pair = (entry.before.clone(), entry.after.clone());
    (pair, Resolution { rule: entry.rule.clone(), concurrent })
}

fn describe(config: &mut Config, said: TypeEntry) {
    let handling = config.types.entry(said.kind).or_default();
    handling.undo = said.undo.over(handling.undo.take());
    handling.idempotent = said.idempotent.over(Some(handling.idempotent)).unwrap_or_default();
    handling.assigns = said.assigns.over(Some(handling.assigns)).unwrap_or_default();
    handling.check = said.check.over(handling.check.take());
    handling.decompose = said.decompose.over(handling.decompose.take());
}

fn bad_commands(config: &Config) -> Vec<ConfigProblem> {
    let of_types = config.types.iter().flat_map(|(kind, handling)| {
        let place = ConfigPlace::path(TYPES).key(kind.as_str(), None);
        let commands = [
            ("Undo", &handling.undo),
            ("Check", &handling.check),
            ("Decompose", &handling.decompose),
        ];
        commands.map(|(key, command)| (place.key(key, None), command.as_deref()))
    });
    let both = config.state.as_ref();
    let of_resource = [
        (ConfigPlace::path(STATE).key(READ, None), both.map(|both| both.read.as_str())),
        (ConfigPlace::path(STATE).key(WRITE, None), both.map(|both| both.write.as_str())),
    ];
    let faults = of_types.chain(of_resource).filter_map(|(place, command)| {
        let fault = command_fault(command?)?;
        Some(ConfigProblem { place, fault })
    });
    faults.collect()
}
