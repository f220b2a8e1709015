//! The tables, and how a connection to them is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::fault::StoreFault;

/// The format of the data directory that this version reads and writes.
pub(crate) const FORMAT: u32 = 5;
/// The last one without names: see [`add_names`].
pub(crate) const WITHOUT_NAMES: u32 = 4;
/// The one before that, which is moved to this one when it is opened.
pub(crate) const OLD_FORMAT: u32 = 3;
/// `CHEO`: what `file` and other tools may know the database by.
const APPLICATION: i32 = 0x4348_454f;

/// Every row has a place (`seq`) that is given out once, over both tables.
///
/// `spent_ms` is set from when on a row is kept for followers only: at once for notices, when they
/// are pruned for entries. The partial indexes hold only what they are for, so that history which
/// is merely kept costs nothing to those who write.
const TABLES: &str = "
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    site TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    swept_to INTEGER NOT NULL,
    digest BLOB NOT NULL,
    journal_size INTEGER NOT NULL,
    journal_key BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    spent_ms INTEGER,
    resource TEXT,
    site TEXT,
    incarnation INTEGER,
    n INTEGER,
    body BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE INDEX changes_of ON changes (resource) WHERE resource IS NOT NULL;
CREATE INDEX live_entries ON changes (resource, site, incarnation, n) WHERE kind = 1 AND spent_ms IS NULL;
CREATE INDEX spent ON changes (spent_ms) WHERE spent_ms IS NOT NULL;
CREATE TABLE state (
    seq INTEGER PRIMARY KEY,
    slot TEXT NOT NULL,
    body BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE INDEX slots ON state (slot);
CREATE TABLE blob_refs (
    blob BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (blob, seq)
) WITHOUT ROWID;
CREATE INDEX blobs_of ON blob_refs (seq);
CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    sum BLOB NOT NULL
) WITHOUT ROWID;
";

/// Since format 4: whose keys the entries are signed with.
const IDENTITIES: &str = "
CREATE TABLE identities (
    key BLOB PRIMARY KEY,
    certificate BLOB NOT NULL,
    sum BLOB NOT NULL
) WITHOUT ROWID;
";

/// Since format 5: entries are found by their names, whatever resource they are on.
const NAMES: &str = "
CREATE INDEX entries_by_name ON changes (site, incarnation, n) WHERE kind = 1;
";

/// The tables of a format.
fn tables(format: u32) -> String {
    match format {
        OLD_FORMAT => TABLES.to_string(),
        WITHOUT_NAMES => [TABLES, IDENTITIES].concat(),
        _ => [TABLES, IDENTITIES, NAMES].concat(),
    }
}

/// Makes a log of format 4 one of this format, in one step: all that is missing is an index.
pub(crate) fn add_names(db: &mut Connection) -> Result<(), StoreFault> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(NAMES)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(())
}

/// How a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    /// The one that writes; makes the file if there is none.
    Write,
    /// One of those that only read.
    Read,
}

/// Connects to the database in that file.
pub(crate) fn connect(path: &Path, access: ConnectionUse) -> Result<Connection, rusqlite::Error> {
    let flags = match access {
        ConnectionUse::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        ConnectionUse::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // Only a person's own `sqlite3` can hold a lock that we have to wait for.
    db.busy_timeout(Duration::from_secs(10))?;
    db.set_prepared_statement_cache_capacity(32);
    // Or every statement would be compiled anew for every value bound to it.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "mmap_size", 0)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    match access {
        ConnectionUse::Write => {
            db.pragma_update(None, "cache_size", -8192)?;
            let mode: String =
                db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
            if mode != "wal" {
                return Err(no_write_ahead_log(&mode));
            }
            // A commit returns when its frames are on the medium, unless its writer says that it
            // may be later.
            db.pragma_update(None, "synchronous", "FULL")?;
            db.pragma_update(None, "wal_autocheckpoint", 2000)?;
            db.pragma_update(None, "journal_size_limit", 16 << 20)?;
        }
        ConnectionUse::Read => db.pragma_update(None, "cache_size", -256)?,
    }
    Ok(db)
}

/// Without it readers and the writer would wait for each other.
fn no_write_ahead_log(mode: &str) -> rusqlite::Error {
    let what = format!("there can be no write-ahead log here, only `{mode}`");
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some(what))
}

/// Whether nothing was ever created in the database.
pub(crate) fn is_empty(db: &Connection) -> Result<bool, rusqlite::Error> {
    db.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", (), |row| row.get(0))
}

/// The format the database says it has; `None` if it is none of ours.
pub(crate) fn format(db: &Connection) -> Result<Option<u32>, rusqlite::Error> {
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application == APPLICATION).then_some(version))
}

/// Makes the tables. The caller's transaction makes that one step with what it writes into them.
pub(crate) fn create(db: &Connection) -> Result<(), rusqlite::Error> {
    db.execute_batch(&tables(FORMAT))?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", FORMAT)
}

/// Whether the tables are as that format has them. A damaged definition may still be valid SQL and
/// then mean something else.
pub(crate) fn matches_schema(db: &Connection, format: u32) -> Result<(), StoreFault> {
    let ours = Connection::open_in_memory()?;
    ours.execute_batch(&tables(format))?;
    if definitions(db)? == definitions(&ours)? {
        Ok(())
    } else {
        Err(StoreFault::table("sqlite_schema", "the tables are not those of this format"))
    }
}

fn definitions(db: &Connection) -> Result<Vec<[Option<String>; 4]>, rusqlite::Error> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
    let mut statement = db.prepare(sql)?;
    let rows =
        statement.query_map((), |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::{ConnectionUse, connect};

    /// No test can pull the plug: that a commit waits for the medium rests on these.
    #[test]
    fn what_writes_waits_for_the_medium() {
        let dir = tempfile::tempdir().unwrap();
        let db = connect(&dir.path().join("log.db"), ConnectionUse::Write).unwrap();
        let ask = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(ask("synchronous"), 2, "FULL");
        let mode: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }
}
