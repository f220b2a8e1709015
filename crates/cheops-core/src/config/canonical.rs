//! A config as the document that gives it, in the report's spelling.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Concurrent, Config, Handling, Hook, HookAction, HookRun, Resolution};
use crate::ids::OperationType;

impl Config {
    /// The document that [`Config::parse`] reads back as this config, where it is one that
    /// [`Config::validate`] accepts.
    #[expect(clippy::expect_used, reason = "texts, flags and maps by text are always JSON")]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(&CanonicalConfig::from(self));
        json.map(|json| escaped(&json)).expect("a document of texts and flags")
    }
}

/// Characters which JSON lets stand in a text and YAML does not, in the form that both read.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{fffe}' | '\u{ffff}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CanonicalConfig<'c> {
    resolution_matrix: Vec<CanonicalEntry<'c>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    types: BTreeMap<&'c OperationType, Type<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<CanonicalState<'c>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<CanonicalHook<'c>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CanonicalState<'c> {
    read: &'c str,
    write: &'c str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CanonicalHook<'c> {
    on: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<&'c OperationType>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CanonicalEntry<'c> {
    before: &'c OperationType,
    after: &'c OperationType,
    result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrent: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Type<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<&'c str>,
    idempotent: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    assigns: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decompose: Option<&'c str>,
}

impl<'c> From<&'c Config> for CanonicalConfig<'c> {
    fn from(config: &'c Config) -> Self {
        let state = config.state.as_ref();
        Self {
            resolution_matrix: config.matrix.iter().map(CanonicalEntry::from).collect(),
            types: config.types.iter().map(|(kind, handling)| (kind, handling.into())).collect(),
            state: state.map(|both| CanonicalState { read: &both.read, write: &both.write }),
            hooks: config.hooks.iter().map(CanonicalHook::from).collect(),
        }
    }
}

impl<'c> From<(&'c (OperationType, OperationType), &'c Resolution)> for CanonicalEntry<'c> {
    fn from(entry: (&'c (OperationType, OperationType), &'c Resolution)) -> Self {
        let ((before, after), said) = entry;
        let concurrent = (said.concurrent != Concurrent::default()).then_some(said.concurrent);
        let concurrent = concurrent.map(|concurrent| concurrent.to_string());
        Self { before, after, result: said.rule.to_string(), concurrent }
    }
}

impl<'c> From<&'c Handling> for Type<'c> {
    fn from(handling: &'c Handling) -> Self {
        Self {
            undo: handling.undo.as_deref(),
            idempotent: handling.idempotent,
            assigns: handling.assigns,
            check: handling.check.as_deref(),
            decompose: handling.decompose.as_deref(),
        }
    }
}

impl<'c> From<&'c Hook> for CanonicalHook<'c> {
    fn from(hook: &'c Hook) -> Self {
        let (command, url) = match &hook.action {
            HookAction::Command(command) => (Some(command.as_str()), None),
            HookAction::Url(url) => (None, Some(url.as_str())),
        };
        let run = (hook.run != HookRun::default()).then(|| hook.run.word());
        Self { on: hook.on.word(), command, url, run, types: hook.types.iter().collect() }
    }
}
