//! The record of a run: a hash over everything that happened, and lines to read on request.

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

/// Hashes all, and keeps lines if asked to.
#[derive(Debug)]
pub struct SimTrace {
    hasher: blake3::Hasher,
    lines: Option<Vec<String>>,
    /// Where what is noted is written before it is hashed: kept, since there are millions of them.
    written: Vec<u8>,
}

impl SimTrace {
    /// With lines to read, or only the hash.
    pub fn new(keep_lines: bool) -> Self {
        let lines = keep_lines.then(Vec::new);
        Self { hasher: blake3::Hasher::new(), lines, written: Vec::new() }
    }

    /// Takes in something that happened at a time and place.
    pub fn note(&mut self, at_ms: u64, place: &dyn Display, what: &impl Serialize) {
        let mut written = std::mem::take(&mut self.written);
        written.clear();
        written.extend(at_ms.to_le_bytes());
        // Writing to memory cannot fail.
        let _written = write!(written, "{place}");
        // Everything noted is plain data, so that encoding it cannot fail; if it ever could, the
        // hash of a replay would still be the same.
        let written = postcard::to_extend(what, written).unwrap_or_default();
        self.hasher.update(&written);
        self.written = written;
    }

    /// Whether there are lines to read.
    pub fn keeps_lines(&self) -> bool {
        self.lines.is_some()
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
