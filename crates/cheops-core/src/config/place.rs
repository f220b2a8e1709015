//! Where in a document something stands.

use std::fmt;

/// A place in a text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Which line.
    pub line: u64,
    /// Which character of the line.
    pub column: u64,
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Where in a config something stands: by its path of keys and, where the config was read from a
/// text, by line and column too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigPlace {
    /// The keys that lead there, such as `ResolutionMatrix[2].Result`; empty for the whole.
    pub path: String,
    /// In the text.
    pub at: Option<LineColumn>,
}

impl ConfigPlace {
    /// A place in a config that was not read from a text.
    pub(super) fn path(path: impl Into<String>) -> Self {
        Self { path: path.into(), at: None }
    }

    /// The place of a key inside this one.
    pub(super) fn key(&self, key: &str, at: Option<LineColumn>) -> Self {
        let key = short(key);
        let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
        Self { path, at }
    }

    /// The place of an element of the list at this one.
    pub(super) fn index(&self, index: usize, at: Option<LineColumn>) -> Self {
        Self { path: format!("{}[{index}]", self.path), at }
    }
}

impl fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path.as_str(), self.at) {
            ("", None) => f.write_str("the config"),
            ("", Some(at)) => write!(f, "{at}"),
            (path, None) => write!(f, "`{path}`"),
            (path, Some(at)) => write!(f, "`{path}` ({at})"),
        }
    }
}

/// The start of a text, for messages: a hostile one may be a megabyte long.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
