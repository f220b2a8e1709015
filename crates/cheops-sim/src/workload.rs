//! What users do: resources of every flavour, and operations that match them.
//!
//! Every flavour's config tells the truth about its commands, so that the state of an application
//! can be compared with a fresh run of the list.

use std::collections::BTreeSet;
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{Submission, Ticket, WaitFor};
use cheops_core::model::{OperationType, Payload, ResourceId, SiteId};

use crate::rng::Rng;

/// A kind of resource: how it resolves, and what is done to it.
#[derive(Debug)]
pub struct Flavour {
    /// Its name.
    pub name: &'static str,
    config: &'static str,
    /// What the operator may change the config to, and back.
    changed: Option<&'static str>,
    verbs: &'static [(&'static str, CommandKind)],
}

/// A kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandKind {
    Set,
    Inc,
    Append,
    Add,
    Take,
    Type,
}

const SET_AND_INC: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const SET_AND_INC_KEPT: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const SET_AND_APPEND: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const SET_AND_APPEND_KEPT: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

const APPLY: &str =
    r#"{"ResolutionMatrix": [{"Before": "apply", "After": "apply", "Result": "take-one"}]}"#;

const APPENDS: &str =
    r#"{"ResolutionMatrix": [{"Before": "add", "After": "add", "Result": "ordered"}]}"#;

const APPENDS_SAVED: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "ordered"}],
    "Snapshot": "save", "Restore": "bring back",
    "Types": {"add": {"Check": "is it there"}}}"#;

const SET_AND_APPEND_READ: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}],
    "State": {"Read": "save", "Write": "bring back"},
    "Types": {"set": {"Idempotent": true}, "add": {"Check": "is it there"}}}"#;

const INCS: &str =
    r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

const INCS_READ: &str = r#"{"ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "take-both"}],
    "State": {"Read": "save", "Write": "bring back"}}"#;

const INCS_UNDONE: &str = r#"{"ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "ordered"}],
    "Types": {"inc": {"Undo": "take it back", "Check": "is it there"}}}"#;

const INCS_NOT_UNDONE: &str =
    r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "ordered"}]}"#;

/// Edits of one document: here a set of words.
const DOCUMENT: &str = r#"{"ResolutionMatrix": [
    {"Before": "edit", "After": "edit", "Result": "logic:text"}],
    "State": {"Read": "save", "Write": "bring back"}}"#;

/// Appends of which a program says what becomes of them.
const DECIDED: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "logic:exec:sorted"}],
    "State": {"Read": "save", "Write": "bring back"},
    "Types": {"add": {"Check": "is it there"}}}"#;

const DECIDED_ODDLY: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "logic:exec:odd"}],
    "State": {"Read": "save", "Write": "bring back"},
    "Types": {"add": {"Check": "is it there"}}}"#;

const MEMBERS: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "take-both"}],
    "Types": {"add": {"Idempotent": true}}}"#;

const STOCK: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "take", "Result": "take-both-keep-order", "Concurrent": "keep-both"},
    {"Before": "take", "After": "set", "Result": "take-both-reverse-order", "Concurrent": "keep-both"},
    {"Before": "take", "After": "take", "Result": "ordered"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// Three types of which each wins over the next, in a circle.
const CIRCLE: &str = r#"{"ResolutionMatrix": [
    {"Before": "a", "After": "b", "Result": "take-both-keep-order"},
    {"Before": "b", "After": "a", "Result": "take-both-reverse-order"},
    {"Before": "b", "After": "c", "Result": "take-both-keep-order"},
    {"Before": "c", "After": "b", "Result": "take-both-reverse-order"},
    {"Before": "c", "After": "a", "Result": "take-both-keep-order"},
    {"Before": "a", "After": "c", "Result": "take-both-reverse-order"},
    {"Before": "a", "After": "a", "Result": "take-one"},
    {"Before": "b", "After": "b", "Result": "take-one"},
    {"Before": "c", "After": "c", "Result": "take-one"}]}"#;

/// All flavours.
pub const FLAVOURS: &[Flavour] = &[
    Flavour {
        name: "counter",
        config: SET_AND_INC,
        changed: Some(SET_AND_INC_KEPT),
        verbs: &[("set", CommandKind::Set), ("inc", CommandKind::Inc), ("inc", CommandKind::Inc)],
    },
    Flavour {
        name: "counter-kept",
        config: SET_AND_INC_KEPT,
        changed: None,
        verbs: &[("set", CommandKind::Set), ("inc", CommandKind::Inc), ("inc", CommandKind::Inc)],
    },
    Flavour {
        name: "file",
        config: SET_AND_APPEND,
        changed: Some(SET_AND_APPEND_KEPT),
        verbs: &[
            ("set", CommandKind::Set),
            ("add", CommandKind::Append),
            ("add", CommandKind::Append),
        ],
    },
    Flavour {
        name: "file-kept",
        config: SET_AND_APPEND_KEPT,
        changed: None,
        verbs: &[
            ("set", CommandKind::Set),
            ("add", CommandKind::Append),
            ("add", CommandKind::Append),
        ],
    },
    Flavour {
        name: "deployment",
        config: APPLY,
        changed: None,
        verbs: &[("apply", CommandKind::Set)],
    },
    Flavour { name: "log", config: APPENDS, changed: None, verbs: &[("add", CommandKind::Append)] },
    Flavour {
        name: "log-saved",
        config: APPENDS_SAVED,
        changed: Some(APPENDS),
        verbs: &[("add", CommandKind::Append)],
    },
    Flavour {
        name: "file-read",
        config: SET_AND_APPEND_READ,
        changed: None,
        verbs: &[
            ("set", CommandKind::Set),
            ("add", CommandKind::Append),
            ("add", CommandKind::Append),
        ],
    },
    Flavour { name: "sum", config: INCS, changed: None, verbs: &[("inc", CommandKind::Inc)] },
    Flavour {
        name: "sum-read",
        config: INCS_READ,
        changed: Some(INCS),
        verbs: &[("inc", CommandKind::Inc)],
    },
    Flavour {
        name: "sum-undone",
        config: INCS_UNDONE,
        changed: Some(INCS_NOT_UNDONE),
        verbs: &[("inc", CommandKind::Inc)],
    },
    Flavour {
        name: "members",
        config: MEMBERS,
        changed: None,
        verbs: &[("add", CommandKind::Add)],
    },
    Flavour {
        name: "document",
        config: DOCUMENT,
        changed: None,
        verbs: &[("edit", CommandKind::Type)],
    },
    Flavour {
        name: "decided",
        config: DECIDED,
        changed: None,
        verbs: &[("add", CommandKind::Append)],
    },
    Flavour {
        name: "decided-oddly",
        config: DECIDED_ODDLY,
        changed: None,
        verbs: &[("add", CommandKind::Append)],
    },
    Flavour {
        name: "stock",
        config: STOCK,
        changed: None,
        verbs: &[
            ("set", CommandKind::Set),
            ("take", CommandKind::Take),
            ("take", CommandKind::Take),
        ],
    },
    Flavour {
        name: "circle",
        config: CIRCLE,
        changed: None,
        verbs: &[("a", CommandKind::Set), ("b", CommandKind::Set), ("c", CommandKind::Set)],
    },
];

/// A resource that users work on.
#[derive(Debug)]
pub struct Subject {
    /// Its id.
    pub id: ResourceId,
    /// Where it lives, as indexes into the world's sites.
    pub home: Vec<usize>,
    sites: BTreeSet<SiteId>,
    configs: Vec<Arc<Config>>,
    config: usize,
    flavour: &'static Flavour,
    made: u64,
}

impl Subject {
    /// A resource of this flavour on those sites.
    #[allow(clippy::expect_used, reason = "the flavours above are constants, all of them tested")]
    pub fn new(number: usize, flavour: &'static Flavour, home: Vec<usize>) -> Self {
        let id = ResourceId::new(&format!("{}-{number}", flavour.name)).expect("a valid name");
        let parse = |text| Arc::new(Config::parse(text).expect("a valid config").config);
        let configs = [flavour.config].into_iter().chain(flavour.changed).map(parse).collect();
        let sites = home.iter().map(|site| crate::network::site_name(*site)).collect();
        Self { id, home, sites, configs, config: 0, flavour, made: 0 }
    }

    /// Whether its state can be read.
    pub fn is_read(&self) -> bool {
        self.configs[self.config].state.is_some()
    }

    /// Where it lives.
    pub fn sites(&self) -> &BTreeSet<SiteId> {
        &self.sites
    }

    /// Something that a user might do to it.
    pub fn operation(&mut self, rng: &mut Rng) -> Submission {
        self.made += 1;
        let force = rng.chance(15);
        if rng.chance(20) {
            // The operator has second thoughts about how conflicts are settled.
            self.config = (self.config + 1) % self.configs.len();
        }
        let (kind, verb) = *rng.pick(self.flavour.verbs);
        // What is forced has to stand on its own, as an operator's repair does.
        let verb = if force && verb != CommandKind::Type { CommandKind::Set } else { verb };
        let command = self.command(verb, rng);
        let wait = *rng.pick(&[WaitFor::All, WaitFor::Local, WaitFor::Nothing]);
        Submission {
            ticket: Ticket(0),
            resource: self.id.clone(),
            sites: Some(self.sites.clone()),
            config: Some(self.configs[self.config].clone()),
            kind: kind_named(kind),
            payload: Payload::shell(command),
            inline_body: None,
            force,
            wait,
            timeout_ms: rng.between(200, 10_000),
            needs: Default::default(),
            asked_by: None,
        }
    }

    fn command(&self, verb: CommandKind, rng: &mut Rng) -> String {
        let number = rng.between(1, 50);
        let command = match verb {
            CommandKind::Set => format!("set {}", number * 10),
            CommandKind::Inc => format!("inc {number}"),
            CommandKind::Append => format!("append {}", self.made % 10),
            CommandKind::Add => format!("add m{}", number % 7),
            CommandKind::Take => format!("take {number}"),
            CommandKind::Type => format!("add w{}", self.made),
        };
        if rng.chance(60) {
            return "fail".to_owned();
        }
        if rng.chance(30) {
            let site = crate::network::site_name(*rng.pick(&self.home));
            return format!("{site}!{command}");
        }
        command
    }
}

#[allow(clippy::expect_used, reason = "called with the constants above")]
fn kind_named(kind: &str) -> OperationType {
    OperationType::new(kind).expect("a valid type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flavour_has_a_config_that_is_accepted() {
        for (number, flavour) in FLAVOURS.iter().enumerate() {
            assert!(
                Subject::new(number, flavour, vec![0, 1]).id.as_str().starts_with(flavour.name)
            );
        }
    }
}
