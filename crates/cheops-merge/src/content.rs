//! What a document says, in the shape in which two of a kind can be compared; and how what makes one
//! into another is told to loro.

use loro::{ID, LoroDoc, LoroError};

use crate::change::EditBody;
use crate::errors::NotADocument;
use crate::json::{self, Places};
use crate::marks::{self, MarkedText};
use crate::names::{DocumentForm, WriterId};
use crate::{LARGEST_CONTENT, text};

/// How a document is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Text,
    Delta,
    Json,
}

impl ContentKind {
    /// Of a document that nobody has edited yet: a text is a delta if it was and will be one.
    pub(crate) fn of(
        form: DocumentForm,
        before: &[u8],
        after: &[u8],
    ) -> Result<Self, NotADocument> {
        Ok(match form {
            DocumentForm::Json => Self::Json,
            DocumentForm::Text => match (MarkedText::parse(before)?, MarkedText::parse(after)?) {
                (Some(_), Some(_)) => Self::Delta,
                _ => Self::Text,
            },
        })
    }
}

impl EditBody {
    pub(crate) fn kind(&self) -> ContentKind {
        match self {
            Self::Text(_) => ContentKind::Text,
            Self::Delta(_) => ContentKind::Delta,
            Self::Json(_) => ContentKind::Json,
        }
    }

    /// Does it fit what is in the document? Then loro has no reason to refuse it.
    pub(crate) fn check(&self, doc: &LoroDoc) -> Result<(), &'static str> {
        let length = || doc.get_text(text::CONTAINER).len_unicode();
        match self {
            Self::Text(runs) => text::check(runs, length()).and_then(|()| text::check_plain(runs)),
            Self::Delta(runs) => text::check(runs, length()).and_then(|()| marks::check(runs)),
            Self::Json(edits) => json::check(doc, edits),
        }
    }

    /// In how many places a text is changed.
    pub(crate) fn places(&self) -> usize {
        match self {
            Self::Text(runs) | Self::Delta(runs) => runs.len(),
            Self::Json(_) => 0,
        }
    }

    /// Makes loro's operations; the last of them, or nothing if there are none.
    pub(crate) fn apply(&self, doc: &LoroDoc, writer: WriterId) -> Result<Option<ID>, LoroError> {
        doc.set_peer_id(writer.0)?;
        match self {
            Self::Text(runs) => text::apply(doc, runs)?,
            Self::Delta(runs) => {
                text::apply(doc, runs)?;
                marks::apply(doc, runs)?;
            }
            Self::Json(edits) => json::apply(doc, edits)?,
        }
        doc.commit();
        let next = doc.oplog_vv().get(&writer.0).copied().unwrap_or(0);
        Ok((next > 0).then(|| ID::new(writer.0, next - 1)))
    }
}

pub(crate) enum Content {
    Text(String),
    Delta(MarkedText),
    Json(Places),
}

impl Content {
    pub(crate) fn parse(kind: ContentKind, bytes: &[u8]) -> Result<Self, NotADocument> {
        if bytes.len() > LARGEST_CONTENT {
            return Err(NotADocument::TooLarge { found: bytes.len() });
        }
        Ok(match kind {
            ContentKind::Text => Self::Text(text::parse(bytes)?.to_owned()),
            ContentKind::Delta => {
                Self::Delta(MarkedText::parse(bytes)?.ok_or(NotADocument::NotADelta)?)
            }
            ContentKind::Json => Self::Json(Places::parse(bytes)?),
        })
    }

    /// Nothing if there is no text, or no value.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Delta(text) => text.content(),
            Self::Json(places) => places.content(),
        }
    }

    /// What makes this into `after`, which is of the same kind.
    pub(crate) fn body_to(&self, after: &Self) -> EditBody {
        match (self, after) {
            (Self::Delta(old), Self::Delta(new)) => EditBody::Delta(old.runs(new)),
            (Self::Json(old), Self::Json(new)) => EditBody::Json(old.edits(new)),
            (Self::Text(old), Self::Text(new)) => EditBody::Text(text::runs(old, new)),
            (Self::Text(_) | Self::Delta(_) | Self::Json(_), _) => EditBody::Text(Vec::new()),
        }
    }

    /// Who writes it where it is what was there before anyone edited: for equal ones the same.
    pub(crate) fn seed_writer(&self) -> WriterId {
        let purpose = match self {
            Self::Text(_) => "cheops-merge 1: a text before the first edit",
            Self::Delta(_) => "cheops-merge 1: a delta before the first edit",
            Self::Json(_) => "cheops-merge 1: a JSON document before the first edit",
        };
        WriterId::by_hash(purpose, &self.bytes())
    }

    /// Puts it into a document that has nothing; gives the last of loro's operations.
    pub(crate) fn seed(&self, doc: &LoroDoc) -> Result<Option<ID>, LoroError> {
        let nothing = match self {
            Self::Text(_) => Self::Text(String::new()),
            Self::Delta(_) => Self::Delta(MarkedText::default()),
            Self::Json(_) => Self::Json(Places::default()),
        };
        nothing.body_to(self).apply(doc, self.seed_writer())
    }
}
