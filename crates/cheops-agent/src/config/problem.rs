//! What is wrong with a config file. All of it is reported at once.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a setting was found, or should have been.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingPlace {
    /// In the file; both are counted from 1.
    At {
        /// Which line.
        line: usize,
        /// Which character of it.
        column: usize,
    },
    /// In the environment, under this name.
    Variable(String),
    /// Nowhere in particular.
    File,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingProblem {
    /// Where.
    pub place: SettingPlace,
    /// The setting, such as `api.listen` or `peers[2].site`; empty for the whole file.
    pub key: String,
    /// What was found, and what would be right.
    pub message: String,
}

/// Everything that is wrong with a config. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems {
    file: PathBuf,
    problems: Vec<SettingProblem>,
}

impl ConfigProblems {
    pub(super) fn new(file: &Path, mut problems: Vec<SettingProblem>) -> Self {
        problems.sort();
        Self { file: file.to_owned(), problems }
    }

    /// One by one: first those of the file, in its order.
    pub fn problems(&self) -> &[SettingProblem] {
        &self.problems
    }
}

impl std::error::Error for ConfigProblems {}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.problems.len() {
            1 => write!(f, "the config `{file}` cannot be used:")?,
            count => write!(f, "the config `{file}` cannot be used, for {count} reasons:")?,
        }
        for SettingProblem { place, key, message } in &self.problems {
            match place {
                SettingPlace::At { line, column } => write!(f, "\n{file}:{line}:{column}: ")?,
                SettingPlace::Variable(name) => write!(f, "\nenvironment variable {name}: ")?,
                SettingPlace::File => write!(f, "\n{file}: ")?,
            }
            if !key.is_empty() {
                write!(f, "`{key}`: ")?;
            }
            f.write_str(message)?;
        }
        Ok(())
    }
}

/// What a person probably meant, or else all there is to choose from.
pub(crate) fn meant(found: &str, choices: &[&str]) -> String {
    let near = choices.iter().map(|choice| (distance(found, choice), *choice));
    match near.min() {
        Some((distance, choice)) if distance <= 1 + choice.len() / 4 => {
            format!("did you mean `{choice}`?")
        }
        _ => {
            let choices: Vec<_> = choices.iter().map(|choice| format!("`{choice}`")).collect();
            format!("expected one of {}", choices.join(", "))
        }
    }
}

/// How many letters must be added, dropped or changed to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    if a.len() > LONGEST {
        return usize::MAX;
    }
    let same = |a: char, b: char| a.eq_ignore_ascii_case(&b) || (a == '-' && b == '_');
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(!same(from, *to));
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
