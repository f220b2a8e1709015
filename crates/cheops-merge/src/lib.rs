//! Concurrent edits of a text or of a JSON document become one, whatever the order in which they arrive.
//!
//! A [`Document`] is what was edited so far. [`Document::edit`] says in bytes what an edit changes, and
//! [`Document::merge`] takes such bytes in at another site. Two documents that took in the same changes
//! have the same content: in any order, any of them more than once.
//!
//! What travels is what was edited, and on what: never the bytes of the library (loro) that merges. Each
//! site makes loro's operations anew, by its checked interface, so bytes from outside cannot do more than
//! an edit can. There is no IO and no clock in here; loro draws a peer id at random for each document,
//! which is replaced before it could matter.

mod change;
mod content;
mod diff;
mod document;
mod errors;
mod json;
mod marks;
mod names;
mod text;

pub use change::writers;
pub use document::Document;
pub use errors::{BadChange, BadLocal, NotADocument};
pub use names::{DocumentForm, WriterId};

/// The largest content that can be edited, in bytes.
pub const LARGEST_CONTENT: usize = 1 << 20;
/// The largest change that one edit can make, in bytes.
pub const LARGEST_CHANGE: usize = 1 << 20;
/// The largest [`Document::whole`] that is taken in, in bytes.
pub const LARGEST_WHOLE: usize = 16 << 20;
