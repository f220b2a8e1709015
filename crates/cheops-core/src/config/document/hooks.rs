//! The hooks of a document.

use super::super::check::command_fault;
use super::super::hooks::bad_url;
use super::super::place::ConfigPlace;
use super::super::problem::ConfigFault;
use super::super::tree::{TreeNode, TreeValue};
use super::super::{Hook, HookAction, HookEvent, HookRun, MAX_HOOKS};
use super::{DocumentReader, Field, TYPES};
use crate::ids::OperationType;

const ANSWERS: &[&str] = &["decompose"];

/// One hook.
pub(in crate::config) struct HookEntry {
    pub(in crate::config) place: ConfigPlace,
    pub(in crate::config) hook: Hook,
    /// Whether its answer is the smaller steps to run instead.
    pub(in crate::config) decomposes: bool,
}

impl DocumentReader {
    pub(super) fn hooks(&mut self, field: &Field<'_>) -> Vec<HookEntry> {
        let TreeValue::List(nodes) = &field.node.value else {
            self.wrong_kind(field, "a list of hooks");
            return Vec::new();
        };
        if nodes.len() > MAX_HOOKS {
            let fault =
                ConfigFault::TooMany { what: "hooks", found: nodes.len(), limit: MAX_HOOKS };
            self.report(&field.place, fault);
        }
        let nodes = nodes.iter().take(MAX_HOOKS).enumerate();
        nodes.filter_map(|(i, node)| self.hook(node, field.place.index(i, node.at))).collect()
    }

    fn hook(&mut self, node: &TreeNode, place: ConfigPlace) -> Option<HookEntry> {
        let keys = ["On", "Command", "Url", "Run", "Types", "Answer"];
        let field = Field { node, place };
        let [on, command, url, run, types, answer] = self.fields(&field, keys)?;
        let on = self.required("On", on, &field.place, Self::event);
        let action = self.action(command, url, &field.place);
        let run = run.map_or(Some(HookRun::EachSite), |field| {
            self.word(&field, "choice", &HookRun::WORDS, HookRun::from_word)
        });
        let types = types.map_or(Some(Vec::new()), |field| self.kinds(&field));
        let decomposes = answer.is_some_and(|field| {
            let word = |word: &str| word.eq_ignore_ascii_case("decompose").then_some(());
            self.word(&field, "answer", ANSWERS, word).is_some()
        });
        let hook =
            Hook { on: on?, action: action?, run: run?, types: types?.into_iter().collect() };
        for fault in hook.faults() {
            self.report(&field.place, fault);
        }
        let wrong = if decomposes { cannot_answer(&hook) } else { None };
        let decomposes = decomposes && wrong.is_none();
        if let Some(fault) = wrong {
            self.report(&field.place, fault);
        }
        Some(HookEntry { place: field.place, hook, decomposes })
    }

    fn event(&mut self, field: &Field<'_>) -> Option<HookEvent> {
        self.word(field, "event", &HookEvent::WORDS, HookEvent::from_word)
    }

    fn action(
        &mut self,
        command: Option<Field<'_>>,
        url: Option<Field<'_>>,
        place: &ConfigPlace,
    ) -> Option<HookAction> {
        let (one, other) = ("Command", "Url");
        match (command, url) {
            (None, None) => {
                self.report(place, ConfigFault::Neither { one, other });
                None
            }
            (Some(_), Some(_)) => {
                self.report(place, ConfigFault::Both { one, other });
                None
            }
            (Some(field), None) => {
                let text = self.text(&field)?;
                if let Some(fault) = command_fault(text) {
                    self.report(&field.place, fault);
                }
                Some(HookAction::Command(text.to_owned()))
            }
            (None, Some(field)) => {
                let text = self.text(&field)?;
                if let Some(fault) = bad_url(text) {
                    self.report(&field.place, fault);
                }
                Some(HookAction::Url(text.to_owned()))
            }
        }
    }

    fn kinds(&mut self, field: &Field<'_>) -> Option<Vec<OperationType>> {
        let TreeValue::List(nodes) = &field.node.value else {
            self.wrong_kind(field, "a list of types");
            return None;
        };
        let kinds: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(i, node)| self.any_kind(&Field { node, place: field.place.index(i, node.at) }))
            .collect();
        if kinds.is_empty() {
            let expected = "at least one type; leave the key out to mean all";
            self.report(
                &field.place,
                ConfigFault::WrongKind { found: "an empty list".into(), expected },
            );
        }
        kinds.into_iter().collect()
    }
}

/// Why a hook's answer could not be used, if it could not.
fn cannot_answer(hook: &Hook) -> Option<ConfigFault> {
    let found = "Answer: decompose".to_owned();
    let (with, reason) = if hook.on != HookEvent::Failed {
        (format!("On: {}", hook.on), "only what failed is run in smaller steps")
    } else if matches!(hook.action, HookAction::Url(_)) {
        ("Url".to_owned(), "a command answers, at each site by itself")
    } else if hook.run == HookRun::Once {
        ("Run: once".to_owned(), "each site runs its own steps; use `each-site`")
    } else if hook.types.is_empty() {
        return Some(ConfigFault::Missing { key: TYPES });
    } else {
        return None;
    };
    Some(ConfigFault::MeansNothing { found, with, reason })
}
