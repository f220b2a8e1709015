//! The record of a run: a hash over everything that happened, and lines to read on request.

use std::fmt::Display;

use serde::Serialize;

/// Hashes all, and keeps lines if asked to.
#[derive(Debug)]
pub struct Trace {
    hasher: blake3::Hasher,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// With lines to read, or only the hash.
    pub fn new(keep_lines: bool) -> Self {
        Self { hasher: blake3::Hasher::new(), lines: keep_lines.then(Vec::new) }
    }

    /// Takes in something that happened at a time and place.
    pub fn note(&mut self, at_ms: u64, place: &dyn Display, what: &impl Serialize) {
        self.hasher.update(&at_ms.to_le_bytes());
        self.hasher.update(place.to_string().as_bytes());
        // Everything noted is plain data, so that encoding it cannot fail; if it ever could, the
        // hash of a replay would still be the same.
        self.hasher.update(&postcard::to_stdvec(what).unwrap_or_default());
    }

    /// Adds a line, if lines are kept; it is made only then.
    pub fn line(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }

    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }

    /// The hash over all so far. Equal seeds give equal hashes.
    pub fn hash(&self) -> String {
        self.hasher.finalize().to_hex()[..16].to_owned()
    }
}
