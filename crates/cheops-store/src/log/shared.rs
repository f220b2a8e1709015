//! What all handles of one open data directory hold on to: the lock and the connections.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

use super::schema::{self, ConnectionUse};
use crate::fault::StoreFault;
use crate::feed::HistorySize;
use crate::files;

/// Connections for reading that are kept when nobody uses them.
const IDLE_READERS: usize = 2;

/// When something written must be on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Before anyone goes on.
    AtOnce,
    /// At some time: a machine that stops before that finds the log as it was some steps earlier.
    Later,
}

/// One open log.
#[derive(Debug)]
pub(crate) struct OpenLog {
    pub(crate) path: PathBuf,
    readers: Mutex<Vec<Connection>>,
    /// The only connection that writes, so that no two of our own wait for each other's locks.
    /// Closed after the readers: the last connection to close tidies up, and a reader cannot.
    writer: Mutex<Connection>,
    /// Nobody else may open the directory for as long as any handle is in use.
    lock: File,
    lock_path: PathBuf,
    /// What the rows take that are kept for readers only, as the writer last counted.
    history: Mutex<HistorySize>,
}

impl OpenLog {
    pub(crate) fn new(path: PathBuf, writer: Connection, lock: File) -> Self {
        let lock_path = path.with_file_name("lock");
        let (readers, history) = (Mutex::default(), Mutex::default());
        Self { path, readers, writer: Mutex::new(writer), lock, lock_path, history }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, HistorySize> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody else can take this lock, but somebody may have put another in its place, and the
    /// directory may be another: then who holds that one is the writer, and this one writes nothing
    /// any more.
    pub(crate) fn still_ours(&self) -> Result<(), StoreFault> {
        match files::is_replaced(&self.lock, &self.lock_path) {
            true => Err(StoreFault::Fenced),
            false => Ok(()),
        }
    }

    /// A panic in between leaves nothing half done: a transaction that is dropped is rolled back.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all of it in one step, or nothing.
    pub(crate) fn write<T>(
        &self,
        durable: Durable,
        what: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        let mut writer = self.writer();
        // With NORMAL only a checkpoint syncs; with FULL every commit does, and with it all those
        // before it.
        let synchronous = match durable {
            Durable::AtOnce => "FULL",
            Durable::Later => "NORMAL",
        };
        writer.pragma_update(None, "synchronous", synchronous)?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = what(&transaction)?;
        transaction.commit().map_err(StoreFault::Commit)?;
        Ok(done)
    }

    /// Copies the write-ahead log into the database, durably, all of it.
    pub(crate) fn checkpoint(&self) -> Result<(), StoreFault> {
        let writer = self.writer();
        let busy: i64 =
            writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if busy == 0 {
            return Ok(());
        }
        let error = io::Error::other("somebody reads it for too long");
        Err(StoreFault::Io("checkpoint", self.path.clone(), error))
    }

    /// Reads one state of the log, while others go on writing.
    pub(crate) fn read<T>(
        &self,
        what: impl FnOnce(&Connection) -> Result<T, StoreFault>,
    ) -> Result<T, StoreFault> {
        let idle = self.readers().pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => schema::connect(&self.path, ConnectionUse::Read)?,
        };
        let transaction = reader.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let found = what(&transaction)?;
        transaction.finish()?;
        let mut readers = self.readers();
        if readers.len() < IDLE_READERS {
            readers.push(reader);
        }
        Ok(found)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
