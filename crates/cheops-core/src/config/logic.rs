//! What settles a pair that the matrix leaves to logic, and where that can be.
//!
//! `logic:text` and `logic:json` are of a resource as a whole: its operations are edits of one document,
//! which is merged. So all pairs of its matrix have to say so, and its state has to be readable and
//! writable. `logic:exec:NAME` asks a program about operations that were made concurrently; the state
//! before them has to be brought back for it. Where that is missing, such a pair is `ordered`, and who
//! hands the config in is told.

use serde::{Deserialize, Serialize};

use super::{Config, Doubt, Handling, Rule};
use crate::ids::OperationType;

const TEXT: &str = "text";
const JSON: &str = "json";
pub(super) const EXEC: &str = "exec:";

/// As what the edits of a resource are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergedAs {
    /// A text: what two sites inserted is there, each in one piece.
    Text,
    /// A document of JSON, member by member.
    Json,
}

/// What a name of logic stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logic<'a> {
    /// The operations are edits of one document.
    Merge(MergedAs),
    /// The site's program of that name is asked.
    Program(&'a str),
    /// Nothing that this version knows.
    Unknown(&'a str),
}

impl Rule {
    /// What the pair is left to, if it is left to logic.
    pub(super) fn logic(&self) -> Option<Logic<'_>> {
        let Self::Logic(name) = self else { return None };
        Some(match name.as_str() {
            TEXT => Logic::Merge(MergedAs::Text),
            JSON => Logic::Merge(MergedAs::Json),
            other => other.strip_prefix(EXEC).map_or(Logic::Unknown(other), Logic::Program),
        })
    }
}

/// An edit can be made again: it begins with the document as it was before.
static EDIT: Handling =
    Handling { undo: None, idempotent: true, assigns: false, check: None, decompose: None };

impl Config {
    /// As what the operations of the resource are merged, if they are.
    pub fn merged_as(&self) -> Option<MergedAs> {
        let (first, _) = self.merge_said()?;
        let all = self.matrix.values().all(|entry| entry.rule.logic() == Some(Logic::Merge(first)));
        (all && self.state.is_some()).then_some(first)
    }

    /// The program that is asked about two concurrent operations, if one is.
    pub fn program(&self, a: &OperationType, b: &OperationType) -> Option<&str> {
        self.state.as_ref()?;
        let entry = self.listed(a, b).or_else(|| self.listed(b, a))?;
        match entry.rule.logic()? {
            Logic::Program(name) => Some(name),
            Logic::Merge(_) | Logic::Unknown(_) => None,
        }
    }

    /// Whether a program is asked about any two operations.
    pub fn asks_programs(&self) -> bool {
        self.state.is_some()
            && self
                .matrix
                .values()
                .any(|entry| matches!(entry.rule.logic(), Some(Logic::Program(_))))
    }

    /// How an operation of a resource whose operations are merged is repaired.
    pub(super) fn handling_of_edits(&self) -> Option<&'static Handling> {
        self.merged_as().map(|_| &EDIT)
    }

    /// Why pairs that are left to logic are taken as ordered, if some are.
    pub fn logic_not_used(&self) -> Vec<Doubt> {
        let mut doubts: Vec<Doubt> =
            self.matrix.values().filter_map(|entry| self.doubts_logic(&entry.rule)).collect();
        doubts.dedup();
        doubts
    }

    /// Why a pair that is left to logic is taken as ordered, if it is.
    pub(super) fn doubts_logic(&self, rule: &Rule) -> Option<Doubt> {
        let Rule::Logic(name) = rule else { return None };
        let name = name.clone();
        match rule.logic()? {
            Logic::Unknown(_) => Some(Doubt::UnknownLogic { name }),
            _ if self.state.is_none() => Some(Doubt::LogicWithoutState { name }),
            Logic::Merge(_) if self.merged_as().is_none() => Some(Doubt::LogicNotOfAll { name }),
            Logic::Merge(_) | Logic::Program(_) => None,
        }
    }

    /// The first pair that says so, and by which rule.
    fn merge_said(&self) -> Option<(MergedAs, &Rule)> {
        let first = self.matrix.values().next()?;
        match first.rule.logic()? {
            Logic::Merge(form) => Some((form, &first.rule)),
            Logic::Program(_) | Logic::Unknown(_) => None,
        }
    }
}
