//! Those who follow what is written, each at its own pace.

use std::fs;
use std::io;
use std::sync::Arc;

use cheops_core::model::{BlobId, EntryId, KeyId, ResourceId};
use rusqlite::{Connection, OptionalExtension, params};

use super::head::Head;
use super::row::{ChangeRow, Checksum, ENTRY, Summing, name_of, unsigned};
use super::shared::{Durable, OpenLog};
use crate::error::{AppendError, ReadError};
use crate::fault::StoreFault;
use crate::feed::{
    ChangeKind, HistorySize, LoggedChange, LoggedChanges, PastChange, PastChanges, PastFrom, Seq,
};
use crate::ports::{Certificates, Feed};

/// Reads the log's tables while they are written.
#[derive(Debug)]
pub(crate) struct Reader {
    shared: Arc<OpenLog>,
}

impl Reader {
    pub(crate) fn new(shared: Arc<OpenLog>) -> Self {
        Self { shared }
    }
}

impl Feed for Reader {
    fn changes_since(
        &self,
        after: Seq,
        resource: Option<&ResourceId>,
        limit: usize,
    ) -> Result<LoggedChanges, ReadError> {
        let read = |db: &Connection| {
            let head = Head::load(db)?;
            // A place that was never given out here is of a log that was lost.
            if after < head.swept() || after > head.last() {
                return Ok(Err(ReadError::Gone { oldest: head.swept() }));
            }
            let items = changes(db, after, resource, limit.saturating_add(1))?;
            Ok(Ok(LoggedChanges::new(items, after, limit, head.last())))
        };
        self.shared.read(read).map_err(|fault| fault.into_read(&self.shared.path))?
    }

    fn changes_left(&self, after: Seq, limit: usize) -> Result<LoggedChanges, ReadError> {
        let read = |db: &Connection| {
            let last = Head::load(db)?.last();
            let after = if after > last { Seq::default() } else { after };
            let items = changes(db, after, None, limit.saturating_add(1))?;
            Ok(LoggedChanges::new(items, after, limit, last))
        };
        self.shared.read(read).map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn past(
        &self,
        resource: &ResourceId,
        from: PastFrom,
        limit: usize,
    ) -> Result<PastChanges, ReadError> {
        let read = self.shared.read(|db| {
            let dropped = Head::load(db)?.swept() > Seq::default();
            let items = past(db, resource, from, limit.saturating_add(1))?;
            Ok(PastChanges::new(items, limit, dropped))
        });
        read.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn entry(&self, id: &EntryId) -> Result<Option<PastChange>, ReadError> {
        let read = self.shared.read(|db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT {} FROM changes INDEXED BY entries_by_name \
                 WHERE site = ? AND incarnation = ? AND n = ? AND kind = 1 ORDER BY seq LIMIT 1",
                ChangeRow::COLUMNS
            ))?;
            let (site, incarnation, n) = name_of(id);
            let mut rows = statement.query(params![site, incarnation, n])?;
            rows.next()?.map(past_change).transpose().map(Option::flatten)
        });
        read.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn history_size(&self) -> HistorySize {
        *self.shared.history()
    }

    fn inline_body(&self, id: &BlobId) -> Result<Option<Vec<u8>>, ReadError> {
        let read = self.shared.read(|db| {
            let columns = ChangeRow::COLUMNS;
            let mut statement = db.prepare_cached(&format!(
                "SELECT {columns} FROM changes \
                 WHERE seq IN (SELECT seq FROM blob_refs WHERE blob = ?)"
            ))?;
            let mut rows = statement.query(params![id.0])?;
            while let Some(row) = rows.next()? {
                let ChangeKind::Entry(_, entry) = ChangeRow::read(row)?.0.decode()? else {
                    continue;
                };
                if let Some(body) = entry.inline_body() {
                    return Ok(Some(body.to_vec()));
                }
            }
            Ok(None)
        });
        read.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn last_seq(&self) -> Result<Seq, ReadError> {
        let last = self.shared.read(|db| Ok(Head::load(db)?.last()));
        last.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn cursor(&self, name: &str) -> Result<Option<Seq>, ReadError> {
        let cursor = self.shared.read(|db| {
            let sql = "SELECT seq, sum FROM cursors WHERE name = ?";
            let mut statement = db.prepare_cached(sql)?;
            let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Checksum(row.get(1)?)));
            let Some((seq, sum)) = statement.query_row(params![name], columns).optional()? else {
                return Ok(None);
            };
            if cursor_sum(name, seq) == sum {
                Ok(Some(Seq(unsigned(seq))))
            } else {
                Err(StoreFault::row(
                    "cursors",
                    &format!("`{name}`"),
                    None,
                    "its checksum does not match",
                ))
            }
        });
        cursor.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn set_cursor(&self, name: &str, seq: Seq) -> Result<(), ReadError> {
        let seq = i64::from(seq);
        let written = self.shared.write(Durable::Later, |db| {
            let sql = "REPLACE INTO cursors (name, seq, sum) VALUES (?, ?, ?)";
            db.prepare_cached(sql)?.execute(params![name, seq, cursor_sum(name, seq).0])?;
            Ok(())
        });
        written.map_err(|fault| ReadError::Cursor(Box::new(fault.into_append(&self.shared.path))))
    }

    fn remove_cursor(&self, name: &str) -> Result<(), ReadError> {
        let removed = self.shared.write(Durable::Later, |db| {
            db.prepare_cached("DELETE FROM cursors WHERE name = ?")?.execute(params![name])?;
            Ok(())
        });
        removed.map_err(|fault| ReadError::Cursor(Box::new(fault.into_append(&self.shared.path))))
    }

    fn retain_cursors(&self, prefix: &str, keep: &dyn Fn(&str) -> bool) -> Result<(), ReadError> {
        let retained = self.shared.write(Durable::Later, |db| {
            let names = db
                .prepare_cached("SELECT name FROM cursors")?
                .query_map([], |row| row.get(0))?
                .collect::<Result<Vec<String>, _>>()?;
            for name in names.iter().filter(|name| name.starts_with(prefix) && !keep(name)) {
                db.prepare_cached("DELETE FROM cursors WHERE name = ?")?.execute(params![name])?;
            }
            Ok(())
        });
        retained.map_err(|fault| ReadError::Cursor(Box::new(fault.into_append(&self.shared.path))))
    }

    fn size(&self) -> Result<u64, ReadError> {
        ["log.db", "log.db-wal", "log.db-shm", "journal"].iter().try_fold(0, |sum, name| {
            let path = self.shared.path.with_file_name(name);
            match fs::metadata(&path) {
                Ok(metadata) => Ok(sum + metadata.len()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(sum),
                Err(source) => Err(ReadError::Io { place: (&path).into(), source }),
            }
        })
    }
}

impl Certificates for Reader {
    fn identities(&self) -> Result<Vec<(KeyId, Vec<u8>)>, ReadError> {
        let read = self.shared.read(|db| {
            let sql = "SELECT key, certificate, sum FROM identities ORDER BY key";
            let mut statement = db.prepare_cached(sql)?;
            let mut rows = statement.query(())?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let key = KeyId(row.get(0)?);
                let (certificate, sum): (Vec<u8>, _) = (row.get(1)?, Checksum(row.get(2)?));
                if identity_sum(key, &certificate) != sum {
                    let what = "its checksum does not match";
                    return Err(StoreFault::row("identities", &key, None, what));
                }
                found.push((key, certificate));
            }
            Ok(found)
        });
        read.map_err(|fault| fault.into_read(&self.shared.path))
    }

    fn keep_identity(&self, key: KeyId, certificate: &[u8]) -> Result<(), AppendError> {
        let kept = self.shared.write(Durable::AtOnce, |db| {
            let sql = "REPLACE INTO identities (key, certificate, sum) VALUES (?, ?, ?)";
            let sum = identity_sum(key, certificate);
            db.prepare_cached(sql)?.execute(params![key.0, certificate, sum.0])?;
            Ok(())
        });
        kept.map_err(|fault| fault.into_append(&self.shared.path))
    }
}

fn identity_sum(key: KeyId, certificate: &[u8]) -> Checksum {
    Summing::table("identities").bytes(&key.0).bytes(certificate).sum()
}

fn cursor_sum(name: &str, seq: i64) -> Checksum {
    Summing::table("cursors").bytes(name.as_bytes()).int(seq).sum()
}

fn changes(
    db: &Connection,
    after: Seq,
    resource: Option<&ResourceId>,
    limit: usize,
) -> Result<Vec<LoggedChange>, StoreFault> {
    let columns = ChangeRow::COLUMNS;
    let (after, limit) = (i64::from(after), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = db.prepare_cached(&match resource {
        None => format!("SELECT {columns} FROM changes WHERE seq > ? ORDER BY seq LIMIT ?"),
        Some(_) => format!(
            "SELECT {columns} FROM changes INDEXED BY changes_of \
             WHERE seq > ? AND resource = ? ORDER BY seq LIMIT ?"
        ),
    })?;
    let mut rows = match resource {
        None => statement.query(params![after, limit])?,
        Some(resource) => statement.query(params![after, resource.as_str(), limit])?,
    };
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.extend(past_change(row)?.map(|past| past.change));
    }
    Ok(items)
}

fn past(
    db: &Connection,
    resource: &ResourceId,
    from: PastFrom,
    limit: usize,
) -> Result<Vec<PastChange>, StoreFault> {
    let (place, compared, order) = match from {
        PastFrom::Latest => (i64::MAX, "<=", "DESC"),
        PastFrom::Before(before) => (i64::from(before), "<", "DESC"),
        PastFrom::After(after) => (i64::from(after), ">", "ASC"),
    };
    let columns = ChangeRow::COLUMNS;
    let mut statement = db.prepare_cached(&format!(
        "SELECT {columns} FROM changes INDEXED BY changes_of \
         WHERE resource = ? AND seq {compared} ? ORDER BY seq {order} LIMIT ?"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![resource.as_str(), place, limit])?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.extend(past_change(row)?);
    }
    Ok(items)
}

/// A row as readers see it; none if a later version made it, for who knows it.
fn past_change(row: &rusqlite::Row<'_>) -> Result<Option<PastChange>, StoreFault> {
    let (row, _) = ChangeRow::read(row)?;
    if row.is_news_of_a_later_version() {
        return Ok(None);
    }
    let (seq, at_ms) = (Seq(unsigned(row.seq)), unsigned(row.at_ms));
    let change = LoggedChange { seq, at_ms, what: row.decode()? };
    Ok(Some(PastChange { change, pruned: row.kind == ENTRY && row.spent_ms.is_some() }))
}

#[cfg(test)]
mod tests {
    use cheops_core::engine::Notice;
    use cheops_core::model::SiteId;

    use super::super::row::NOTICE;
    use super::*;
    use crate::options::StoreOptions;

    #[test]
    fn a_notice_that_a_later_version_made_is_passed_over_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let site = SiteId::new("paris").unwrap();
        let mut opened = crate::open(dir.path(), &site, || 7, StoreOptions::default()).unwrap();
        opened.log.keep(&[], &[Notice::SiteUp(site.clone())]).unwrap();
        drop(opened);
        let path = dir.path().join("log.db");
        let db = super::super::connect(&path, super::super::ConnectionUse::Write).unwrap();
        let mut head = Head::load(&db).unwrap();
        let later = ChangeRow {
            seq: head.take_seq(),
            kind: NOTICE,
            at_ms: 1,
            spent_ms: Some(i64::MAX),
            resource: None,
            site: None,
            incarnation: None,
            n: None,
            body: &[cheops_record::disk::VERSION, 99, 0, 0, 0, 0],
        };
        head.digest.add(later.insert(&db).unwrap());
        head.save(&db).unwrap();
        drop(db);
        for _ in 0..2 {
            let opened = crate::open(dir.path(), &site, || 7, StoreOptions::default()).unwrap();
            let changes = opened.feed.changes_since(Seq::default(), None, 10).unwrap();
            assert_eq!((changes.items.len(), changes.next), (1, Seq(2)));
        }
    }
}
