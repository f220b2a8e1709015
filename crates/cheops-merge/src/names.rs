//! What a document is, and who edits it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentForm {
    /// Lines and words; or a delta, `{"ops": […]}`, whose marks are merged as well.
    Text,
    /// Members and elements.
    Json,
}

impl DocumentForm {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Text => b't',
            Self::Json => b'j',
        }
    }
}

impl fmt::Display for DocumentForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "JSON",
        })
    }
}

/// Who wrote an edit: another number for each edit. It also breaks ties, so it should be a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WriterId(pub u64);

impl WriterId {
    /// The last ones have a meaning in loro.
    pub(crate) fn reserved(self) -> bool {
        self.0 >= u64::MAX - 0xff
    }

    /// From a hash, so never reserved but by a miracle; then the one below.
    pub(crate) fn by_hash(purpose: &str, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(bytes);
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        Self(u64::from_le_bytes(first).min(u64::MAX - 0x100))
    }
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
