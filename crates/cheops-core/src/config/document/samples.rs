//! The document with commands to try a matrix with.

use super::{DocumentReader, Field};
use crate::config::place::ConfigPlace;
use crate::config::problem::{ConfigErrors, ConfigFault, ConfigProblem};
use crate::config::prove::{MAX_SAMPLES, MAX_STARTS, Sample, TrialSamples};
use crate::config::tree::{self, TreeNode, TreeValue};

const SAMPLES: &str = "Samples";
const START: &str = "Start";

/// Reads a document of samples.
pub(in crate::config) fn read_samples(text: &str) -> Result<TrialSamples, ConfigErrors> {
    let root = tree::read(text)?;
    let mut reader = DocumentReader { problems: Vec::new() };
    let samples = reader.trial_samples(&root).unwrap_or_default();
    let mut problems: Vec<ConfigProblem> = reader.problems;
    problems.sort_by_key(|problem| (problem.place.at.is_none(), problem.place.at));
    ConfigErrors::from_all(problems)?;
    Ok(samples)
}

impl DocumentReader {
    fn trial_samples(&mut self, root: &TreeNode) -> Option<TrialSamples> {
        let place = ConfigPlace { path: String::new(), at: root.at };
        let root = Field { node: root, place };
        let [samples, start] = self.fields(&root, [SAMPLES, START])?;
        let samples = self.required(SAMPLES, samples, &root.place, Self::samples_by_type)?;
        if samples.is_empty() {
            self.report(&root.place, ConfigFault::Missing { key: SAMPLES });
        }
        self.limit("samples", samples.len(), MAX_SAMPLES, SAMPLES);
        let starts = start.map(|field| self.commands(&field)).unwrap_or_default();
        self.limit("states to start from", starts.len(), MAX_STARTS, START);
        Some(TrialSamples { samples, starts })
    }

    fn samples_by_type(&mut self, field: &Field<'_>) -> Option<Vec<Sample>> {
        let TreeValue::Map(pairs) = &field.node.value else {
            self.wrong_kind(field, "an object with a list of commands for each type");
            return None;
        };
        let mut samples = Vec::new();
        for (key, node) in pairs {
            let place = field.place.key(&key.text, key.at);
            let kind = self.named(&key.text, &place);
            let commands = self.commands(&Field { node, place });
            let Some(kind) = kind else { continue };
            samples
                .extend(commands.into_iter().map(|command| Sample { kind: kind.clone(), command }));
        }
        Some(samples)
    }

    /// A list of commands, or one.
    fn commands(&mut self, field: &Field<'_>) -> Vec<String> {
        let nodes = match &field.node.value {
            TreeValue::List(nodes) => nodes.as_slice(),
            TreeValue::Text(_) => std::slice::from_ref(field.node),
            _ => {
                self.wrong_kind(field, "a list of commands");
                return Vec::new();
            }
        };
        let mut commands = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let field = Field { node, place: field.place.index(i, node.at) };
            let Some(text) = self.text(&field) else { continue };
            if let Some(fault) = super::command_fault(text) {
                self.report(&field.place, fault);
            }
            commands.push(text.to_owned());
        }
        commands
    }

    fn limit(&mut self, what: &'static str, found: usize, limit: usize, path: &str) {
        if found > limit {
            self.report(&ConfigPlace::path(path), ConfigFault::TooMany { what, found, limit });
        }
    }
}
