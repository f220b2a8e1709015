//! Settings that hold several values: lists of texts, and tables whose keys are names.

use toml::de::{DeTable, DeValue};

use super::problem::SettingPlace;
use super::reader::{ConfigReader, ConfigTable, FoundSetting, Raw, shortened};

impl<'a> ConfigReader<'a> {
    /// A list of texts with a meaning.
    pub(super) fn list<T>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(Vec<T>, SettingPlace)> {
        let found = self.take(table, key)?;
        let values = self.items(&found, expected, &parse)?;
        Some((values, found.place))
    }

    /// The same, where a single text need not be in a list.
    pub(super) fn one_or_more<T>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let found = self.take(table, key)?;
        if let Raw::Value(DeValue::Array(_)) = &found.value {
            return self.items(&found, expected, &parse);
        }
        self.meaning(&found, expected, &parse).map(|value| vec![value])
    }

    fn items<T>(
        &mut self,
        found: &FoundSetting<'a>,
        expected: &str,
        parse: &impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let Raw::Value(DeValue::Array(items)) = &found.value else {
            let message = format!("found {}; expected a list of texts", found.describe());
            self.report(&found.place, &found.path, message);
            return None;
        };
        if items.is_empty() {
            let message = format!("the list is empty; expected {expected}, or leave the key out");
            self.report(&found.place, &found.path, message);
        }
        let mut values = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let place = self.place(item.span().start);
            let path = format!("{}[{i}]", found.path);
            let item = FoundSetting { place, path, value: Raw::Value(item.get_ref()) };
            values.extend(self.meaning(&item, expected, parse));
        }
        Some(values)
    }

    /// A table whose keys are names, each with a value that is a text with a meaning.
    pub(super) fn by_name<K, T>(
        &mut self,
        table: &mut ConfigTable<'a>,
        key: &'static str,
        (a_name, name): (&str, impl Fn(&str) -> Result<K, String>),
        (expected, parse): (&str, impl Fn(&str) -> Result<T, String>),
    ) -> Vec<(K, T)> {
        let Some(found) = self.take(table, key) else { return Vec::new() };
        let Raw::Value(DeValue::Table(entries)) = &found.value else {
            let message = format!(
                "found {}; expected a table whose keys are each {a_name}",
                found.describe()
            );
            self.report(&found.place, &found.path, message);
            return Vec::new();
        };
        self.named(&found.path, entries, (a_name, name), (expected, parse))
    }

    /// What such a table says.
    pub(super) fn named<K, T>(
        &mut self,
        path: &str,
        entries: &'a DeTable<'a>,
        (a_name, name): (&str, impl Fn(&str) -> Result<K, String>),
        (expected, parse): (&str, impl Fn(&str) -> Result<T, String>),
    ) -> Vec<(K, T)> {
        let mut values = Vec::new();
        for (key, value) in entries.iter() {
            let text = key.get_ref().as_ref();
            let path = format!("{path}.{}", shortened(text));
            let key = name(text).map_err(|why| {
                let place = self.place(key.span().start);
                self.report(&place, &path, format!("the key {why}; expected {a_name}"));
            });
            let place = self.place(value.span().start);
            let value = FoundSetting { place, path, value: Raw::Value(value.get_ref()) };
            let value = self.meaning(&value, expected, &parse);
            values.extend(key.ok().zip(value));
        }
        values
    }
}
