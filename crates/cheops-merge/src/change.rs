//! What an edit is in bytes: see "Changes of documents" in `docs/format.md`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::errors::BadChange;
use crate::names::{DocumentForm, WriterId};
use crate::{LARGEST_CHANGE, LARGEST_CONTENT, LARGEST_WHOLE};

/// Before everything else; changes with another first byte are of another version.
const VERSION: u8 = 1;

/// One edit: everything that is needed to make it again where its base is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DocumentEdit {
    pub(crate) writer: WriterId,
    pub(crate) base: EditBase,
    pub(crate) body: EditBody,
}

/// What an edit was made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EditBase {
    /// The content that was there before anyone edited; empty if there was none.
    Seed(Vec<u8>),
    /// What these wrote, and all that they wrote on.
    Edits(Vec<WriterId>),
}

/// What an edit changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EditBody {
    /// Of a plain text.
    Text(Vec<TextRun>),
    /// Of a delta: a text with marks.
    Delta(Vec<TextRun>),
    /// Of a JSON document.
    Json(Vec<JsonEdit>),
}

impl EditBody {
    pub(crate) fn form(&self) -> DocumentForm {
        match self {
            Self::Text(_) | Self::Delta(_) => DocumentForm::Text,
            Self::Json(_) => DocumentForm::Json,
        }
    }
}

/// The next part of a text: in characters (Unicode scalars), each kept or deleted once, from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TextRun {
    /// So many stay. With marks: these become as said, `None` takes one away.
    Keep(u32, Vec<(String, Option<String>)>),
    /// So many go.
    Delete(u32),
    /// This comes, with exactly these marks.
    Insert(String, Vec<(String, String)>),
}

/// One change of a JSON document. Places are JSON pointers; values are canonical JSON, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JsonEdit {
    /// At this place is this scalar, or `{}` or `[]` for what has members or elements.
    Set(String, String),
    /// There is nothing at this place.
    Remove(String),
    /// The list at this place changes.
    List(String, Vec<ListRun>),
}

/// The next part of a list, as [`TextRun`] of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ListRun {
    Keep(u32),
    Delete(u32),
    Insert(Vec<String>),
}

/// The edits one after the other, each with its length before it.
pub(crate) fn write(form: DocumentForm, edits: &[&DocumentEdit]) -> Vec<u8> {
    let mut bytes = vec![VERSION, form.byte()];
    for edit in edits {
        // Nothing in an edit can fail to be written to memory.
        let one = postcard::to_stdvec(edit).unwrap_or_default();
        bytes.extend(postcard::to_stdvec(&one.len()).unwrap_or_default());
        bytes.extend(one);
    }
    bytes
}

/// Reads them one at a time, so that what is in memory is not many times what came.
pub(crate) fn read(
    bytes: &[u8],
) -> Result<(DocumentForm, impl Iterator<Item = Result<DocumentEdit, BadChange>>), BadChange> {
    let unreadable = |what| Err(BadChange::Unreadable(what));
    if bytes.len() > LARGEST_WHOLE {
        return Err(BadChange::TooLarge { found: bytes.len() });
    }
    let (form, mut rest) = match bytes {
        [] => return unreadable("it is empty"),
        [VERSION, b't', rest @ ..] => (DocumentForm::Text, rest),
        [VERSION, b'j', rest @ ..] => (DocumentForm::Json, rest),
        [VERSION, ..] => return unreadable("it is of no form that there is"),
        [version, ..] => return Err(BadChange::Version(*version)),
    };
    let edits = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = next_edit(form, rest);
        // Where one cannot be read, it is not known where the next begins.
        rest = next.as_ref().map_or(&[][..], |(_, rest)| rest);
        Some(next.map(|(edit, _)| edit))
    });
    Ok((form, edits))
}

fn next_edit(form: DocumentForm, bytes: &[u8]) -> Result<(DocumentEdit, &[u8]), BadChange> {
    let cut = BadChange::Unreadable("it ends too early");
    let (length, rest) = postcard::take_from_bytes::<usize>(bytes).map_err(|_| cut.clone())?;
    if length > LARGEST_CHANGE {
        return Err(BadChange::TooLarge { found: length });
    }
    let (one, rest) = rest.split_at_checked(length).ok_or(cut)?;
    let (edit, behind) = postcard::take_from_bytes::<DocumentEdit>(one)
        .map_err(|_| BadChange::Unreadable("an edit is malformed"))?;
    if !behind.is_empty() {
        return Err(BadChange::Unreadable("there is something behind the end of an edit"));
    }
    if edit.body.form() != form {
        return Err(BadChange::OtherForm { found: edit.body.form(), expected: form });
    }
    let misfit = |reason| Err(BadChange::Misfit { writer: edit.writer, reason });
    match &edit.base {
        _ if edit.writer.reserved() => misfit("its writer has a number that is reserved"),
        EditBase::Seed(seed) if seed.len() > LARGEST_CONTENT => {
            misfit("what was there is too large")
        }
        EditBase::Edits(writers) if writers.is_empty() => misfit("it rests on nothing"),
        EditBase::Edits(writers) if writers.contains(&edit.writer) => misfit("it rests on itself"),
        _ => Ok((edit, rest)),
    }
}

/// Who wrote the edits of a change. Whoever takes a change for the word of one writer asks this first:
/// the first edit under a writer's name counts, whoever sent it.
pub fn writers(change: &[u8]) -> Result<BTreeSet<WriterId>, BadChange> {
    read(change)?.1.map(|edit| Ok(edit?.writer)).collect()
}
