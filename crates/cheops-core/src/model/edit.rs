//! What an edit made of a document that is merged, as it goes beside its author's reply.
//!
//! The site where an operation of such a document was submitted runs its command and says what came of
//! it; the others merge that, and run nothing. So it must be understood: who ran the command instead
//! would have another document.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Author, Entry, EntryBody, EntryId, Extension, Fingerprint, OperationId};

const NAME: &str = "edit";

/// The longest change of a document that one edit may make, in bytes.
pub const MAX_EDIT_BYTES: usize = 1024 * 1024;

/// One change of a document that is merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentEdit {
    /// The reply that brought it.
    pub entry: EntryId,
    /// The operation that made it.
    pub operation: OperationId,
    /// The change, in the words of who merges; empty if it changed nothing.
    pub change: Arc<[u8]>,
}

impl DocumentEdit {
    /// The name under which its change was made.
    pub fn writer(&self) -> u64 {
        writer(&self.operation, &self.entry.author)
    }
}

/// The name under which an author changes a document by an operation: no two changes have the same, also
/// not of one operation that is run again in another incarnation.
pub(crate) fn writer(operation: &OperationId, author: &Author) -> u64 {
    let named = format!("{operation} {}", author.incarnation.0);
    let Fingerprint(hash) = Fingerprint::of(named.as_bytes());
    let number = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    // The last ones mean something to who merges.
    number.min(u64::MAX - 0x100)
}

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn edit(change: &[u8]) -> Self {
        Self { name: NAME.to_owned(), must_understand: true, value: change.to_vec() }
    }
}

impl Entry {
    /// What an operation made of its document, if this is a reply of the site where it was submitted
    /// that says so: no other site can say it.
    pub fn edit(&self) -> Option<DocumentEdit> {
        let EntryBody::Reply(reply) = &self.body else { return None };
        if reply.site() != reply.operation.site() {
            return None;
        }
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let (entry, operation) = (reply.id.clone(), reply.operation.clone());
        Some(DocumentEdit { entry, operation, change: said.value.as_slice().into() })
    }
}
