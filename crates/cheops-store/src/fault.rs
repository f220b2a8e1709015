//! What goes wrong inside, and how it is sorted into what callers can do something about.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{AppendError, Corruption, LogPlace, OpenError, ReadError};

/// What goes wrong inside, before it is known what for and with which file.
#[derive(Debug)]
pub(crate) enum StoreFault {
    Sql(rusqlite::Error),
    /// A transaction was whole, and committing it failed.
    Commit(rusqlite::Error),
    Damaged(LogPlace, String),
    /// What could not be done with which file.
    Io(&'static str, PathBuf, io::Error),
    /// A body is longer than a row or frame can hold.
    TooLong(usize),
    /// Another writer has opened the log since.
    Fenced,
}

impl StoreFault {
    pub(crate) fn row(
        table: &'static str,
        key: &dyn fmt::Display,
        resource: Option<&str>,
        what: impl Into<String>,
    ) -> Self {
        let resource = resource.map(ToString::to_string);
        Self::Damaged(LogPlace::Row { table, key: key.to_string(), resource }, what.into())
    }

    pub(crate) fn table(table: &'static str, what: impl Into<String>) -> Self {
        Self::Damaged(LogPlace::Table(table), what.into())
    }

    /// Whether what was to be committed may be whole in the files all the same: its end is written
    /// last, so only if writing went well and the sync did not.
    pub(crate) fn may_come_back(&self) -> bool {
        use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
        let Self::Commit(error) = self else { return false };
        error.sqlite_error().is_some_and(|error| {
            matches!(error.extended_code, SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC)
        })
    }

    /// Sorts what the database says into damage and everything else.
    fn sorted(self, path: &Path) -> Sorted {
        let damaged =
            |within, what| Sorted::Damaged(Corruption { place: path.into(), within, what });
        match self {
            Self::Sql(error) | Self::Commit(error) if says_damaged(&error) => {
                damaged(LogPlace::File, error.to_string())
            }
            Self::Sql(error) | Self::Commit(error) => Sorted::Sql(error),
            Self::Damaged(within @ LogPlace::Journal, what) => {
                let place = (&path.with_file_name("journal")).into();
                Sorted::Damaged(Corruption { place, within, what })
            }
            Self::Damaged(place, what) => damaged(place, what),
            Self::Io(doing, path, error) => Sorted::Io(doing, path, error),
            Self::TooLong(bytes) => Sorted::TooLong(bytes),
            Self::Fenced => Sorted::Fenced,
        }
    }

    pub(crate) fn into_open(self, path: &Path) -> OpenError {
        match self.sorted(path) {
            Sorted::Damaged(corruption) => OpenError::Corrupt(corruption),
            Sorted::Sql(source) => {
                OpenError::Unusable { place: path.into(), source: source.into() }
            }
            Sorted::Io(doing, path, source) => {
                OpenError::Io { doing, place: (&path).into(), source }
            }
            Sorted::TooLong(bytes) => OpenError::Corrupt(too_long(path, bytes)),
            Sorted::Fenced => {
                OpenError::Unusable { place: path.into(), source: AppendError::Fenced.into() }
            }
        }
    }

    pub(crate) fn into_read(self, path: &Path) -> ReadError {
        match self.sorted(path) {
            Sorted::Damaged(corruption) => ReadError::Corrupt(corruption),
            Sorted::Sql(source) => ReadError::Failed { place: path.into(), source: source.into() },
            Sorted::Io(_, path, source) => ReadError::Io { place: (&path).into(), source },
            Sorted::TooLong(bytes) => ReadError::Corrupt(too_long(path, bytes)),
            Sorted::Fenced => {
                ReadError::Failed { place: path.into(), source: AppendError::Fenced.into() }
            }
        }
    }

    pub(crate) fn into_append(self, path: &Path) -> AppendError {
        match self.sorted(path) {
            Sorted::Damaged(corruption) => AppendError::Corrupt(corruption),
            Sorted::TooLong(bytes) => AppendError::TooLong(bytes),
            Sorted::Fenced => AppendError::Fenced,
            Sorted::Sql(source) if says_full(&source, path) => {
                AppendError::Full { place: path.into(), source: source.into() }
            }
            Sorted::Sql(source) => {
                AppendError::Failed { place: path.into(), source: source.into() }
            }
            Sorted::Io(_, path, source) if source.kind() == io::ErrorKind::StorageFull => {
                AppendError::Full { place: (&path).into(), source: source.into() }
            }
            Sorted::Io(_, path, source) => {
                AppendError::Failed { place: (&path).into(), source: source.into() }
            }
        }
    }
}

enum Sorted {
    Damaged(Corruption),
    Sql(rusqlite::Error),
    Io(&'static str, PathBuf, io::Error),
    TooLong(usize),
    Fenced,
}

fn too_long(path: &Path, bytes: usize) -> Corruption {
    let what = format!("a record of {bytes} bytes is longer than any can be");
    Corruption { place: path.into(), within: LogPlace::File, what }
}

impl From<rusqlite::Error> for StoreFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Our statements are right for our tables: where one does not fit, the tables are not ours.
fn says_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        ConstraintViolation, DatabaseCorrupt, NotADatabase, TooBig, TypeMismatch, Unknown,
    };
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => {
            matches!(
                failure.code,
                DatabaseCorrupt
                    | NotADatabase
                    | ConstraintViolation
                    | TypeMismatch
                    | TooBig
                    | Unknown
            ) || is_short_read(failure.extended_code)
        }
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::QueryReturnedNoRows => true,
        _ => false,
    }
}

/// A page that should be there is beyond the end of the file.
fn is_short_read(extended_code: i32) -> bool {
    extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ
}

fn says_full(error: &rusqlite::Error, path: &Path) -> bool {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => true,
        // A full disk may show as a failed sync, or as a file that could not grow.
        Some(rusqlite::ErrorCode::SystemIoFailure) => has_no_room(path),
        _ => false,
    }
}

fn has_no_room(path: &Path) -> bool {
    const A_FEW_PAGES: u64 = 64 * 1024;
    let dir = path.parent().unwrap_or(path);
    rustix::fs::statvfs(dir).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < A_FEW_PAGES)
}
