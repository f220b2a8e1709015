//! Why a change or a content is refused.

use crate::names::{DocumentForm, WriterId};
use crate::{LARGEST_CHANGE, LARGEST_CONTENT, LARGEST_WHOLE};

/// Why a change is not taken in. The document is as it was, but for a change of several edits, of which
/// the others count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadChange {
    /// It is larger than any change may be.
    #[error(
        "the change has {found} bytes; an edit may have {LARGEST_CHANGE}, several together {LARGEST_WHOLE}"
    )]
    TooLarge {
        /// How many bytes it has.
        found: usize,
    },
    /// A later version made it, or it is no change.
    #[error("the change has version {0}, which this version of the program does not know")]
    Version(u8),
    /// It is of a document of another form.
    #[error("the change is one of a {found} document, not of a {expected} document")]
    OtherForm {
        /// What it is of.
        found: DocumentForm,
        /// What the document is.
        expected: DocumentForm,
    },
    /// It cannot be read.
    #[error("the change cannot be read: {0}")]
    Unreadable(&'static str),
    /// It does not fit what it says it was made on.
    #[error("the edit of writer `{writer}` does not fit what it was made on: {reason}")]
    Misfit {
        /// Who wrote it.
        writer: WriterId,
        /// What does not fit.
        reason: &'static str,
    },
    /// There is another edit of that writer.
    #[error("there is another edit of writer `{0}`, and each writer edits once")]
    WriterUsed(WriterId),
    /// Too many changes wait for one that they rest on.
    #[error("too many changes wait for others that they rest on")]
    TooManyWait,
}

/// Why a content cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotADocument {
    /// It is too large.
    #[error("the content has {found} bytes, more than the {LARGEST_CONTENT} that can be merged")]
    TooLarge {
        /// How many bytes it has.
        found: usize,
    },
    /// What the edit changes is too large.
    #[error(
        "the edit changes so much that it takes {found} bytes, more than the {LARGEST_CHANGE} that it may"
    )]
    TooMuchChanged {
        /// How many bytes the change would have.
        found: usize,
    },
    /// A text that is none.
    #[error("the content is not UTF-8 from byte {at} on")]
    NotText {
        /// The first byte that is not.
        at: usize,
    },
    /// JSON that is none.
    #[error("the content is not JSON: line {line}, column {column}")]
    NotJson {
        /// Where it ends to be.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// JSON with too many levels, or names that are too long.
    #[error("the JSON is nested too deep, or its names are too long, at `{pointer}`")]
    TooDeep {
        /// Where.
        pointer: String,
    },
    /// The document is a delta, and this is none, or one that cannot be merged.
    #[error(
        "the document is a delta, and the content is not: `{{\"ops\": […]}}` with inserts of text alone"
    )]
    NotADelta,
    /// A delta with marks that change too often.
    #[error("the marks of the delta change in too many places")]
    TooManyMarks,
    /// That writer has edited already.
    #[error("writer `{0}` cannot edit: it is used already, or reserved")]
    WriterUsed(WriterId),
    /// The history is larger than a site would take in at once.
    #[error(
        "the history has {found} bytes, more than the {LARGEST_WHOLE} that are taken in at once"
    )]
    TooMuchHistory {
        /// How many bytes it has.
        found: usize,
    },
}

/// Why a site's own content cannot be merged with changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLocal {
    /// What the site holds is no document.
    #[error("what the site holds cannot be merged")]
    Found(#[from] NotADocument),
    /// One of the changes cannot be taken in.
    #[error("a change cannot be merged with what the site holds")]
    Change(#[from] BadChange),
}
