//! Reading settings one by one, from the environment or the file, and noting what is wrong.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{SettingPlace, SettingProblem, meant};

/// Looks up a variable of the environment.
pub(super) type Environment<'e> = dyn Fn(&str) -> Option<String> + 'e;

pub(super) struct ConfigReader<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a Path,
    pub(super) environment: &'a Environment<'a>,
    /// The variables that would have been heeded.
    pub(super) variables: Vec<String>,
    pub(super) problems: Vec<SettingProblem>,
}

/// A table of the file, or one that is not there: the environment may still say something.
pub(super) struct ConfigTable<'a> {
    pub(super) place: SettingPlace,
    pub(super) path: String,
    /// What the names of its variables begin with; tables of a list have none.
    prefix: Option<String>,
    pub(super) entries: Option<&'a DeTable<'a>>,
    asked: Vec<&'static str>,
}

/// A setting as it was found.
pub(super) struct FoundSetting<'a> {
    pub(super) place: SettingPlace,
    pub(super) path: String,
    pub(super) value: Raw<'a>,
}

pub(super) enum Raw<'a> {
    Variable(String),
    Value(&'a DeValue<'a>),
}

impl<'a> ConfigReader<'a> {
    pub(super) fn report(&mut self, place: &SettingPlace, key: &str, message: impl Into<String>) {
        let (place, key, message) = (place.clone(), key.to_owned(), message.into());
        self.problems.push(SettingProblem { place, key, message });
    }

    pub(super) fn root(&mut self, root: &'a Spanned<DeTable<'a>>) -> ConfigTable<'a> {
        let prefix = Some("CHEOPS".to_owned());
        let (place, path) = (SettingPlace::File, String::new());
        ConfigTable { place, path, prefix, entries: Some(root.get_ref()), asked: Vec::new() }
    }

    /// A setting, wherever it stands. The environment comes first.
    pub(super) fn take(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
    ) -> Option<FoundSetting<'a>> {
        let path = table.path_of(key);
        table.asked.push(key);
        if let Some(prefix) = &table.prefix {
            let variable = format!("{prefix}_{}", key.to_ascii_uppercase());
            let said = (self.environment)(&variable).filter(|said| !said.is_empty());
            self.variables.push(variable.clone());
            if let Some(said) = said {
                let place = SettingPlace::Variable(variable);
                return Some(FoundSetting { place, path, value: Raw::Variable(said) });
            }
        }
        let value = table.entries?.get(key)?;
        let place = self.place(value.span().start);
        Some(FoundSetting { place, path, value: Raw::Value(value.get_ref()) })
    }

    /// A setting that is a text with a meaning.
    pub(super) fn value<T>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(T, SettingPlace)> {
        let found = self.take(table, key)?;
        let value = self.meaning(&found, expected, &parse)?;
        Some((value, found.place))
    }

    /// One that must be there.
    pub(super) fn required<T>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(T, SettingPlace)> {
        let before = self.problems.len();
        let value = self.value(table, key, expected, parse);
        if value.is_none() && self.problems.len() == before {
            let path = table.path_of(key);
            self.report(&table.place.clone(), &path, format!("is missing; expected {expected}"));
        }
        value
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let found = self.take(table, key)?;
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let text = self.text_of(&found, &meant("", &words).replace("expected ", ""))?;
        let same = |word: &str| word.eq_ignore_ascii_case(&text.replace('_', "-"));
        let choice = choices.iter().find(|(word, _)| same(word));
        if choice.is_none() {
            let message = format!("`{}` is unknown; {}", shortened(&text), meant(&text, &words));
            self.report(&found.place, &found.path, message);
        }
        choice.map(|(_, value)| *value)
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, table: &mut ConfigTable<'a>, key: &'static str) -> Option<bool> {
        let found = self.take(table, key)?;
        let flag = match &found.value {
            Raw::Value(DeValue::Boolean(flag)) => Some(*flag),
            Raw::Variable(text) => text.parse().ok(),
            Raw::Value(_) => None,
        };
        if flag.is_none() {
            let message = format!("found {}; expected `true` or `false`", found.describe());
            self.report(&found.place, &found.path, message);
        }
        flag
    }

    /// A path; in the file it starts from the file's folder.
    pub(super) fn path(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
    ) -> Option<PathBuf> {
        let given = |text: &str| match text.trim() {
            "" => Err("names nothing".to_owned()),
            _ => Ok(PathBuf::from(text)),
        };
        let (path, place) = self.value(table, key, "a path", given)?;
        Some(match (&place, self.file.parent()) {
            (SettingPlace::At { .. }, Some(folder)) => folder.join(path),
            _ => path,
        })
    }

    /// A table, which need not be there.
    pub(super) fn table(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
    ) -> ConfigTable<'a> {
        table.asked.push(key);
        let (path, prefix) = (table.path_of(key), table.prefix_of(key));
        let mut inner = ConfigTable {
            place: SettingPlace::File,
            path,
            prefix,
            entries: None,
            asked: Vec::new(),
        };
        if let Some(value) = table.entries.and_then(|entries| entries.get(key)) {
            inner.place = self.place(value.span().start);
            match value.get_ref() {
                DeValue::Table(entries) => inner.entries = Some(entries),
                other => {
                    let message = format!("found {}; expected a table, `[{key}]`", named(other));
                    self.report(&inner.place, &inner.path, message);
                }
            }
        }
        inner
    }

    /// A list of tables.
    pub(super) fn tables(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
    ) -> Vec<ConfigTable<'a>> {
        table.asked.push(key);
        let Some(value) = table.entries.and_then(|entries| entries.get(key)) else {
            return Vec::new();
        };
        let path = table.path_of(key);
        let wrong = |found: &DeValue<'_>| {
            format!("found {}; expected tables, each under `[[{key}]]`", named(found))
        };
        let DeValue::Array(items) = value.get_ref() else {
            let place = self.place(value.span().start);
            self.report(&place, &path, wrong(value.get_ref()));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let (place, path) = (self.place(item.span().start), format!("{path}[{i}]"));
            match item.get_ref() {
                DeValue::Table(entries) => {
                    let (prefix, entries, asked) = (None, Some(entries), Vec::new());
                    tables.push(ConfigTable { place, path, prefix, entries, asked });
                }
                other => self.report(&place, &path, wrong(other)),
            }
        }
        tables
    }

    /// Reports what nobody asked for.
    pub(super) fn end(&mut self, table: &ConfigTable<'a>) {
        for key in table.entries.into_iter().flat_map(|entries| entries.keys()) {
            let name = key.get_ref().as_ref();
            if !table.asked.contains(&name) {
                let place = self.place(key.span().start);
                let message = format!("there is no such key; {}", meant(name, &table.asked));
                self.report(&place, &table.path_of(&shortened(name)), message);
            }
        }
    }

    /// What a text means, unless that cannot be told.
    pub(super) fn meaning<T>(
        &mut self,
        found: &FoundSetting<'a>,
        expected: &str,
        parse: &impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text_of(found, expected)?;
        let parsed = parse(&text).map_err(|why| {
            let message = format!("`{}` {why}; expected {expected}", shortened(&text));
            self.report(&found.place, &found.path, message);
        });
        parsed.ok()
    }

    fn text_of(&mut self, found: &FoundSetting<'a>, expected: &str) -> Option<String> {
        match &found.value {
            Raw::Variable(text) => Some(text.clone()),
            Raw::Value(DeValue::String(text)) => Some(text.to_string()),
            Raw::Value(DeValue::Integer(number)) if number.radix() == 10 => {
                Some(number.as_str().to_owned())
            }
            Raw::Value(_) => {
                let message = format!("found {}; expected {expected}", found.describe());
                self.report(&found.place, &found.path, message);
                None
            }
        }
    }

    pub(super) fn place(&self, offset: usize) -> SettingPlace {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        SettingPlace::At { line, column: before[start..].chars().count() + 1 }
    }
}

impl ConfigTable<'_> {
    /// Whether the file, or the environment, says anything of it.
    pub(super) fn is_there(&self) -> bool {
        self.entries.is_some()
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn prefix_of(&self, key: &str) -> Option<String> {
        self.prefix.as_ref().map(|prefix| format!("{prefix}_{}", key.to_ascii_uppercase()))
    }
}

impl FoundSetting<'_> {
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Raw::Variable(text) => format!("`{}`", shortened(text)),
            Raw::Value(value) => named(value),
        }
    }
}

fn named(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text `{}`", shortened(text)),
        DeValue::Integer(number) => format!("the number `{number}`"),
        DeValue::Float(number) => format!("the number `{number}`"),
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Datetime(time) => format!("the time `{time}`"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The start of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
