//! What can go wrong, in the words of whoever has to do something about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cheops_core::model::SiteId;

use crate::feed::Seq;

const START_EMPTY: &str = "move the data directory away and start with an empty one: the site gets \
                           its resources back from the other sites that hold them";

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
    /// A file or directory could not be used.
    #[error("could not {doing} `{}`", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The database could not be used.
    #[error("could not open the log `{}`", .path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
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
            Self::Io { .. } | Self::Database { .. } => None,
        }
    }
}

/// Why a batch was not written. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// There is no room. The store goes on reading, and writing works again once there is.
    #[error("no room left for the log `{}`", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system or the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The medium or the database failed.
    #[error("could not write to the log `{}`", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the system or the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
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

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Full { .. } => Some("make room on the file system of the data directory"),
            Self::Failed { .. } => Some("look for errors of the medium in the system's log"),
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
    /// The medium or the database failed.
    #[error("could not read the log `{}`", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the database said.
        source: rusqlite::Error,
    },
    /// A cursor could not be written.
    #[error("could not keep a cursor")]
    Cursor(#[source] Box<AppendError>),
    /// A file beside the database could not be used.
    #[error("could not use `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
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

/// Where something read was not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} of `{}`: {what}", .path.display())]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub place: LogPlace,
    /// What is wrong.
    pub what: String,
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
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
