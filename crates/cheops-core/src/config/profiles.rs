//! Ready-made configs for common applications.
//!
//! They hold what follows from the application's own operations. What depends on the resource
//! (`Undo`, `Check`) is the operator's to add, in a document that starts with `Profile`; so is
//! `Target`, which some need to read and write a resource's whole state.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Concurrent, Config, Handling, Resolution, Rule, StateCommands, state};
use crate::ids::OperationType;

/// A config that comes with Cheops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What it is asked for by.
    pub name: &'static str,
    /// Why its matrix is as it is.
    pub why: &'static str,
    /// The config.
    pub config: Config,
    /// How the whole state of a target is read and written.
    pub state: Option<StateCommands>,
}

/// All of them, in order of name.
pub fn profiles() -> &'static [Profile] {
    static PROFILES: LazyLock<Vec<Profile>> =
        LazyLock::new(|| OUTLINES.iter().map(ProfileOutline::profile).collect());
    &PROFILES
}

/// The one of that name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    profiles().iter().find(|profile| profile.name == name)
}

pub(super) fn names() -> Vec<&'static str> {
    profiles().iter().map(|profile| profile.name).collect()
}

/// A profile in short: each pair once, its mirror follows.
struct ProfileOutline {
    name: &'static str,
    why: &'static str,
    pairs: &'static [(&'static str, &'static str, Rule)],
    /// What its one type, `edit`, is left to with itself.
    logic: Option<&'static str>,
    types: &'static [(&'static str, Repeat)],
    /// The commands that read and write the state of `$target`.
    state: Option<(&'static str, &'static str)>,
}

/// Whether a type's operations can be run twice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// And also after others that should have come first.
    Assigns,
    Idempotent,
    Once,
}

use Repeat::{Assigns, Idempotent, Once};
use Rule::{KeepOrder, Ordered, TakeBoth, TakeOne};

const OUTLINES: [ProfileOutline; 6] = [
    ProfileOutline {
        name: "file",
        why: "`set` (`>`) writes the whole file, so it replaces what was there and wins over a \
              concurrent `add` (`>>`); two appends do not commute, so they run in the total order \
              everywhere.",
        pairs: &[("set", "set", TakeOne), ("set", "add", KeepOrder), ("add", "add", Ordered)],
        logic: None,
        types: &[("set", Idempotent), ("add", Once)],
        state: Some(state::FILE),
    },
    ProfileOutline {
        name: "http",
        why: "`put` gives the whole resource, so the last one wins and a concurrent `patch` \
              yields; `delete` wins over everything concurrent, since what a user removed must not \
              come back by accident, while a `put` made after it creates anew; `patch` sets some \
              of it and `part` something below it (a file, a tag), so these run in the total \
              order, again where one comes late; `create` makes it under an id that it gives, so \
              it can be repeated; `post` may depend on what was there and cannot be.",
        pairs: &[
            ("put", "put", TakeOne),
            ("put", "patch", KeepOrder),
            ("put", "post", Ordered),
            ("put", "part", Ordered),
            ("delete", "delete", TakeOne),
            ("delete", "put", KeepOrder),
            ("delete", "patch", KeepOrder),
            ("delete", "post", KeepOrder),
            ("delete", "part", KeepOrder),
            ("delete", "create", KeepOrder),
            ("create", "create", Ordered),
            ("create", "part", Ordered),
            ("create", "patch", Ordered),
            ("create", "post", Ordered),
            ("create", "put", Ordered),
            ("patch", "patch", Ordered),
            ("patch", "post", Ordered),
            ("patch", "part", Ordered),
            ("part", "part", Ordered),
            ("part", "post", Ordered),
            ("post", "post", Ordered),
        ],
        logic: None,
        types: &[
            ("put", Assigns),
            ("delete", Idempotent),
            ("patch", Assigns),
            ("part", Assigns),
            ("create", Idempotent),
            ("post", Once),
        ],
        state: Some(state::HTTP),
    },
    ProfileOutline {
        name: "json",
        why: "every operation is an `edit` of one JSON document, so it is merged member by member: an \
              edit is run where it is submitted, and the other sites merge what it changed.",
        pairs: &[],
        logic: Some("json"),
        types: &[],
        state: Some(state::DOCUMENT),
    },
    ProfileOutline {
        name: "kubernetes",
        why: "`replace` gives the whole object, so the last one wins, also over `patch`, but only \
              where the object exists, so what made it is kept; `apply` sets what it names and \
              leaves the rest, and so does `patch`: these run in the total order, again where one \
              comes late; `delete` wins over everything concurrent, and what is made after it \
              builds anew (with `--ignore-not-found`, so that it can be repeated); `create` fails \
              where the object exists.",
        pairs: &[
            ("replace", "replace", TakeOne),
            ("replace", "patch", KeepOrder),
            ("replace", "apply", Ordered),
            ("replace", "create", Ordered),
            ("apply", "apply", Ordered),
            ("apply", "create", Ordered),
            ("apply", "patch", Ordered),
            ("delete", "delete", TakeOne),
            ("delete", "apply", KeepOrder),
            ("delete", "create", KeepOrder),
            ("delete", "patch", KeepOrder),
            ("delete", "replace", KeepOrder),
            ("create", "create", Ordered),
            ("create", "patch", Ordered),
            ("patch", "patch", Ordered),
        ],
        logic: None,
        types: &[
            ("replace", Idempotent),
            ("apply", Assigns),
            ("patch", Assigns),
            ("delete", Idempotent),
            ("create", Once),
        ],
        state: Some(state::KUBERNETES),
    },
    ProfileOutline {
        name: "redis",
        why: "`set` and `del` leave a value that does not depend on what was there, so they \
              replace it and win over concurrent changes; increments (`inc`) commute with each \
              other, and so do members added to a set (`sadd`) or removed from it (`srem`); adding \
              and removing do not, so they run in the total order.",
        pairs: &[
            ("set", "set", TakeOne),
            ("set", "del", TakeOne),
            ("del", "del", TakeOne),
            ("set", "inc", KeepOrder),
            ("set", "sadd", KeepOrder),
            ("set", "srem", KeepOrder),
            ("del", "inc", KeepOrder),
            ("del", "sadd", KeepOrder),
            ("del", "srem", KeepOrder),
            ("inc", "inc", TakeBoth),
            ("sadd", "sadd", TakeBoth),
            ("srem", "srem", TakeBoth),
            ("sadd", "srem", Ordered),
            // On one key, one of them fails: which one must not depend on the site.
            ("inc", "sadd", Ordered),
            ("inc", "srem", Ordered),
        ],
        logic: None,
        types: &[
            ("set", Idempotent),
            ("del", Idempotent),
            ("inc", Once),
            ("sadd", Idempotent),
            ("srem", Idempotent),
        ],
        state: Some(state::REDIS),
    },
    ProfileOutline {
        name: "text",
        why: "every operation is an `edit` of one text, so it is merged: an edit is run where it is \
              submitted, and the other sites merge what it changed, so that all that was typed is there.",
        pairs: &[],
        logic: Some("text"),
        types: &[],
        state: Some(state::DOCUMENT),
    },
];

impl ProfileOutline {
    fn profile(&self) -> Profile {
        let mut matrix = BTreeMap::new();
        for (before, after, rule) in self.pairs {
            let said = Resolution { rule: rule.clone(), concurrent: Concurrent::ReplaceWins };
            matrix.insert((kind(after), kind(before)), said.mirror());
            matrix.insert((kind(before), kind(after)), said);
        }
        if let Some(name) = self.logic {
            let said = Resolution {
                rule: Rule::Logic(name.to_owned()),
                concurrent: Concurrent::ReplaceWins,
            };
            matrix.insert((kind("edit"), kind("edit")), said);
        }
        let described = |(name, repeat): &(&str, Repeat)| {
            let (idempotent, assigns) = (*repeat != Once, *repeat == Assigns);
            (kind(name), Handling { idempotent, assigns, ..Handling::default() })
        };
        let types = self.types.iter().map(described).collect();
        let config = Config { matrix, types, ..Config::default() };
        let state = self
            .state
            .map(|(read, write)| StateCommands { read: read.to_owned(), write: write.to_owned() });
        Profile { name: self.name, why: self.why, config, state }
    }
}

#[expect(clippy::expect_used, reason = "the names above are constants, and tested")]
fn kind(name: &str) -> OperationType {
    OperationType::new(name).expect("a name of this file")
}
