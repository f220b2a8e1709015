//! What can go wrong with a blob.

use std::io;
use std::path::Path;

use cheops_core::model::BlobId;

use crate::error::StoragePlace;

/// Why a content could not be stored or had.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// It is not here.
    #[error("content `{id}` is not at this site")]
    Missing {
        /// Which.
        id: BlobId,
    },
    /// The file no longer holds what it is named after.
    #[error("content `{id}` is damaged: `{place}` holds something else")]
    Corrupt {
        /// Which.
        id: BlobId,
        /// Where it is now.
        place: StoragePlace,
    },
    /// What was fetched is not what was asked for, and has been thrown away.
    #[error("what was received as content `{id}` is something else, with hash `{got}`")]
    WrongContent {
        /// What was asked for.
        id: BlobId,
        /// What came.
        got: BlobId,
    },
    /// What was fetched is not all yet. It is kept, to go on from.
    #[error("content `{id}` is not complete: {have} of {size} bytes are here")]
    Incomplete {
        /// Which.
        id: BlobId,
        /// Bytes that are here.
        have: u64,
        /// Bytes there should be.
        size: u64,
    },
    /// Someone else at this site fetches it.
    #[error("content `{id}` is being fetched already")]
    BeingFetched {
        /// Which.
        id: BlobId,
    },
    /// A file or directory could not be used.
    #[error("could not {doing} `{place}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        place: StoragePlace,
        /// Why not.
        source: io::Error,
    },
}

impl BlobError {
    /// Whether there was no room, so that it helps to make some and try again.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Corrupt { .. } => {
                Some("it was put aside; another site that has it sends it again where it is needed")
            }
            Self::Io { .. } if self.is_full() => {
                Some("make room on the file system of the data directory")
            }
            _ => None,
        }
    }
}

pub(super) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    let place = path.into();
    move |source| BlobError::Io { doing, place, source }
}
