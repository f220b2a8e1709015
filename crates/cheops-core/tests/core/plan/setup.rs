//! Configs that tell the truth about the application, in every shade of caution.

use std::collections::BTreeMap;
use std::fmt;

use cheops_core::config::{Concurrent, Config, Handling, Resolution, Rule, StateCommands};
use cheops_core::model::{
    Author, EntryId, Incarnation, OperationId, OperationType, Replaces, SiteId,
};
use cheops_core::plan::Item;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::app::{
    Command, KINDS, really_commute, really_idempotent, really_overwrites, really_wipes,
};

pub(crate) fn kind(text: &str) -> OperationType {
    OperationType::new(text).unwrap()
}

pub(crate) fn id(n: usize) -> OperationId {
    let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
    OperationId(EntryId { author, n: n as u64 + 1 })
}

pub(crate) fn item(n: usize, command: Command) -> Item {
    Item { id: id(n), kind: kind(command.kind()), replaces: Replaces::Nothing }
}

fn resolution(rule: Rule) -> Resolution {
    Resolution { rule, concurrent: Concurrent::KeepBoth }
}

/// The rule for two types, where there is one to write down.
fn rule(first: &str, second: &str, cautious: bool) -> Option<Rule> {
    if really_commute(first, second) {
        // Silence would mean that the one that overwrites overwrites the other.
        let must_be_said = really_overwrites(first) || really_overwrites(second);
        let caution = cautious.then_some(Rule::Ordered);
        return if must_be_said { Some(Rule::TakeBoth) } else { caution };
    }
    Some(match (really_wipes(first, second), really_wipes(second, first)) {
        (true, true) => Rule::TakeOne,
        (true, false) => Rule::KeepOrder,
        (false, true) => Rule::ReverseOrder,
        (false, false) => Rule::Ordered,
    })
}

/// What an operator may say of each type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Powers {
    pub(crate) undo: bool,
    pub(crate) idempotent: bool,
    pub(crate) assigns: bool,
    pub(crate) check: bool,
}

/// A config that tells the truth about these types. `cautious` pairs are called `ordered` though
/// they commute.
pub(crate) fn config(
    kinds: &[&str],
    powers: &BTreeMap<&str, Powers>,
    cautious: &[(&str, &str)],
    snapshots: bool,
) -> Config {
    let mut config = Config::default();
    for (first, second) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (*a, *b))) {
        let is_cautious =
            cautious.contains(&(first, second)) || cautious.contains(&(second, first));
        if let Some(rule) = rule(first, second, is_cautious) {
            config.matrix.insert((kind(first), kind(second)), resolution(rule));
        }
    }
    for (name, powers) in powers {
        let handling = Handling {
            undo: powers.undo.then(|| "undo".to_owned()),
            idempotent: powers.idempotent && really_idempotent(name),
            // Whatever can be repeated here writes what depends on nothing.
            assigns: powers.assigns && really_idempotent(name),
            check: powers.check.then(|| "check".to_owned()),
            decompose: None,
        };
        config.types.insert(kind(name), handling);
    }
    let commands = || StateCommands { read: "save".into(), write: "load".into() };
    config.state = snapshots.then(commands);
    config
}

/// The types of one resource: a few of them, or those of one part of the state.
fn some_kinds() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![
        Just(vec!["set", "inc"]),
        Just(vec!["assign", "append"]),
        Just(vec!["clear", "add", "remove"]),
        Just(vec!["reset", "deposit", "withdraw"]),
        Just(vec!["append"]),
        Just(vec!["inc", "deposit", "withdraw"]),
        Just(KINDS.to_vec()),
        subsequence(KINDS.to_vec(), 1..=6),
    ]
}

fn some_powers() -> impl Strategy<Value = Powers> {
    any::<(bool, bool, bool, bool)>().prop_map(|(undo, idempotent, assigns, check)| Powers {
        undo,
        idempotent,
        assigns,
        check,
    })
}

/// Powers for every type: none, all, or a mixture.
fn all_powers() -> impl Strategy<Value = BTreeMap<&'static str, Powers>> {
    let same = |powers| KINDS.iter().map(move |name| (*name, powers)).collect();
    let every = Powers { undo: true, idempotent: true, assigns: true, check: true };
    prop_oneof![
        Just(BTreeMap::new()),
        Just(same(every)),
        Just(same(Powers { undo: true, ..Powers::default() })),
        Just(same(Powers { assigns: true, ..Powers::default() })),
        proptest::collection::vec(some_powers(), KINDS.len())
            .prop_map(|powers| KINDS.into_iter().zip(powers).collect()),
    ]
}

pub(crate) fn some_command(kinds: Vec<&'static str>) -> impl Strategy<Value = Command> {
    let letters = || select(vec!['a', 'b', 'c', 'd']);
    let of_kind =
        move |name| match name {
            "set" => prop_oneof![6 => (0..9i64).prop_map(Command::Set), 1 => Just(Command::BadSet)]
                .boxed(),
            "inc" => (1..9i64).prop_map(Command::Inc).boxed(),
            "assign" => letters().prop_map(Command::Assign).boxed(),
            "append" => letters().prop_map(Command::Append).boxed(),
            "clear" => Just(Command::Clear).boxed(),
            "add" => (0..3u8).prop_map(Command::Add).boxed(),
            "remove" => (0..3u8).prop_map(Command::Remove).boxed(),
            "reset" => (0..9i64).prop_map(Command::Reset).boxed(),
            "deposit" => (1..5i64).prop_map(Command::Deposit).boxed(),
            "withdraw" => (1..5i64).prop_map(Command::Withdraw).boxed(),
            "bill" => Just(Command::Bill).boxed(),
            _ => prop_oneof![6 => (0..9i64).prop_map(Command::Init), 1 => Just(Command::BadInit)]
                .boxed(),
        };
    select(kinds).prop_flat_map(of_kind)
}

/// A resource: its config, and the commands that may come.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) commands: Vec<Command>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.commands)?;
        for ((first, second), resolution) in &self.config.matrix {
            write!(f, "\n  {first} {second} {:?}", resolution.rule)?;
        }
        for (kind, handling) in &self.config.types {
            let Handling { undo, idempotent, assigns, check, .. } = handling;
            write!(f, "\n  {kind}: {undo:?} {idempotent:?} {assigns:?} {check:?}")?;
        }
        write!(f, "\n  {:?}", self.config.state)
    }
}

pub(crate) fn some_setup() -> impl Strategy<Value = Setup> {
    let snapshots = prop_oneof![3 => Just(false), 1 => Just(true)];
    let cautious = proptest::collection::vec((select(&KINDS[..]), select(&KINDS[..])), 0..3);
    (some_kinds(), all_powers(), cautious, snapshots).prop_flat_map(
        |(kinds, powers, cautious, snapshots)| {
            let config = config(&kinds, &powers, &cautious, snapshots);
            let commands = proptest::collection::vec(some_command(kinds.clone()), 1..=9);
            commands.prop_map(move |commands| Setup {
                config: config.clone(),
                kinds: kinds.clone(),
                commands,
            })
        },
    )
}
