//! What can go wrong, in the words of whoever has to do something about it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cheops_core::model::SiteId;

use crate::feed::Seq;

const START_EMPTY: &str = "move the data directory away and start with an empty one: the site gets \
                           its resources back from the other sites that hold them";

/// Where a store keeps something, for people to read: what is there, and how, is the store's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoragePlace(PathBuf);

impl fmt::Display for StoragePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for StoragePlace {
    fn from(path: &P) -> Self {
        Self(path.as_ref().to_path_buf())
    }
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process works on it.
    #[error("data directory `{}` is in use by another agent", .dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// It holds the log of another site.
    #[error("data directory `{}` belongs to site `{found}`, not to `{asked}`", .dir.display())]
    WrongSite {
        /// The data directory.
        dir: PathBuf,
        /// Whose it is.
        found: SiteId,
        /// Who asked.
        asked: SiteId,
    },
    /// It was written by a later version of this program, or by one from before any release.
    #[error(
        "data directory `{}` has format {found}; cheops {} reads format {understood}, and moves \
         format 3 there",
        .dir.display(), env!("CARGO_PKG_VERSION")
    )]
    FormatVersion {
        /// The data directory.
        dir: PathBuf,
        /// Its format.
        found: u32,
        /// The format this version reads and writes.
        understood: u32,
    },
    /// What was read is not what was written.
    #[error("the log of this site is damaged")]
    Corrupt(#[source] Corruption),
    /// Something in it could not be used.
    #[error("could not {doing} `{place}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        place: StoragePlace,
        /// Why not.
        source: io::Error,
    },
    /// The log could not be used.
    #[error("could not open the log `{place}`")]
    Unusable {
        /// Where it is.
        place: StoragePlace,
        /// What the medium said, or who keeps the log there.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OpenError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse { .. } => {
                Some("stop the other agent, or give this one a directory of its own")
            }
            Self::WrongSite { .. } => {
                Some("start the agent under its own name, or with another data directory")
            }
            Self::FormatVersion { found, understood, .. } if found > understood => Some(
                "start the version of cheops that wrote it, or a later one; or move the directory \
                 away and start with an empty one, to get the resources back from the other sites",
            ),
            Self::FormatVersion { .. } => Some(
                "start the version of cheops that wrote it; or move the directory away and start \
                 with an empty one, to get the resources back from the other sites",
            ),
            Self::Corrupt(_) => Some(START_EMPTY),
            Self::Io { .. } | Self::Unusable { .. } => None,
        }
    }
}

/// Why a batch was not written. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// There is no room. The store goes on reading, and writing works again once there is.
    #[error("no room left for the log `{place}`")]
    Full {
        /// Where it is.
        place: StoragePlace,
        /// What the medium said, or who keeps the log there.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The medium failed, or who keeps the log there.
    #[error("could not write to the log `{place}`")]
    Failed {
        /// Where it is.
        place: StoragePlace,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another writer has opened the log since. Nothing is lost, and the log goes on without this one.
    #[error("another writer has opened the log of this site")]
    Fenced,
    /// What is there already is not what was written.
    #[error("the log of this site is damaged")]
    Corrupt(#[source] Corruption),
    /// A record is longer than any can be.
    #[error("a record of {0} bytes is too long for the log")]
    TooLong(usize),
}

impl AppendError {
    /// Whether there was no room, so that it helps to make some and try again.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Whether this writer can never write again, so that trying is of no use.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Fenced)
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Full { .. } => Some("make room on the file system of the data directory"),
            Self::Failed { .. } => Some("look for errors of the medium in the system's log"),
            Self::Fenced => {
                Some("another agent works with the same data directory: give each one of its own")
            }
            Self::Corrupt(_) => Some(START_EMPTY),
            Self::TooLong(_) => None,
        }
    }
}

/// Why the log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Some of what was asked for is past its retention. From `oldest` on nothing is missing; what
    /// was before is to be had from the state of the resources.
    #[error("changes up to {oldest} are past their retention")]
    Gone {
        /// The earliest place to go on from.
        oldest: Seq,
    },
    /// What was read is not what was written.
    #[error("the log of this site is damaged")]
    Corrupt(#[source] Corruption),
    /// The medium failed, or who keeps the log there.
    #[error("could not read the log `{place}`")]
    Failed {
        /// Where it is.
        place: StoragePlace,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A cursor could not be written.
    #[error("could not keep a cursor")]
    Cursor(#[source] Box<AppendError>),
    /// A part of it could not be used.
    #[error("could not use `{place}`")]
    Io {
        /// Which.
        place: StoragePlace,
        /// Why not.
        source: io::Error,
    },
}

impl ReadError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Corrupt(_) => Some(START_EMPTY),
            Self::Cursor(error) => error.hint(),
            Self::Gone { .. } | Self::Failed { .. } | Self::Io { .. } => None,
        }
    }
}

/// What was read is not what was written: where, and what is wrong, for people to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{within} of `{place}`: {what}")]
pub struct Corruption {
    pub(crate) place: StoragePlace,
    pub(crate) within: LogPlace,
    pub(crate) what: String,
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogPlace {
    /// One row.
    Row {
        /// Of which table.
        table: &'static str,
        /// Its key.
        key: String,
        /// What it says of the resource it is about; this may be damaged too.
        resource: Option<String>,
    },
    /// A table as a whole.
    Table(&'static str),
    /// All rows taken together.
    Rows,
    /// The file as a whole.
    File,
    /// The batches that are on their way into the tables.
    Journal,
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { table, key, resource: Some(resource) } => {
                write!(f, "row {key} of table `{table}` (resource `{resource}`)")
            }
            Self::Row { table, key, resource: None } => write!(f, "row {key} of table `{table}`"),
            Self::Table(table) => write!(f, "table `{table}`"),
            Self::Rows => f.write_str("the rows"),
            Self::File | Self::Journal => f.write_str("the content"),
        }
    }
}
