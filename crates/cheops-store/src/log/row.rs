//! Rows: what is in their columns, and the checksum that covers all of them.

use cheops_core::engine::{Notice, Record};
use cheops_core::model::EntryId;
use cheops_record::{FormError, disk, v1};
use rusqlite::{Connection, params};

use crate::fault::StoreFault;
use crate::feed::{ChangeKind, Seq};
use crate::rules::SlotName;

/// `changes.kind`.
pub(crate) const ENTRY: i64 = 1;
/// `changes.kind`.
pub(crate) const NOTICE: i64 = 2;

/// A checksum. Enough of a hash to notice any accident; it does not guard against an attacker, who
/// could as well write a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum(pub(crate) [u8; 16]);

impl Checksum {
    fn of(bytes: &[u8]) -> Self {
        let whole = blake3::hash(bytes);
        Self(std::array::from_fn(|at| whole.as_bytes()[at]))
    }

    /// The checksum of a row that is spent since then, made from that of the live row: so that a
    /// row can be marked without reading its body.
    pub(crate) fn spent(self, spent_ms: i64) -> Self {
        Self::of(&[b"spent", self.0.as_slice(), &spent_ms.to_le_bytes()].concat())
    }
}

/// Puts together what a checksum is over, so that no two rows give the same bytes. To hash it in one piece
/// costs far less than in many small ones.
pub(crate) struct Summing(Vec<u8>);

/// Most rows are no longer.
const USUALLY: usize = 1024;

impl Summing {
    pub(crate) fn table(name: &str) -> Self {
        Self(Vec::with_capacity(USUALLY)).bytes(name.as_bytes())
    }

    pub(crate) fn int(mut self, value: i64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    fn optional_int(self, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.int(1).int(value),
            None => self.int(0),
        }
    }

    fn optional_text(self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.int(1).bytes(value.as_bytes()),
            None => self.int(0),
        }
    }

    pub(crate) fn sum(self) -> Checksum {
        Checksum::of(&self.0)
    }
}

/// The checksums of all rows of `changes` and `state` together: a row that is missing, or there
/// again, changes it. Adding up does not depend on the order, and so costs the same for any row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn add(&mut self, sum: Checksum) {
        self.0 = self.0.wrapping_add(u128::from_be_bytes(sum.0));
    }

    pub(crate) fn take(&mut self, sum: Checksum) {
        self.0 = self.0.wrapping_sub(u128::from_be_bytes(sum.0));
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

/// A row of `changes`, borrowed from what is written or was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeRow<'a> {
    pub(crate) seq: i64,
    pub(crate) kind: i64,
    pub(crate) at_ms: i64,
    pub(crate) spent_ms: Option<i64>,
    pub(crate) resource: Option<&'a str>,
    pub(crate) site: Option<&'a str>,
    pub(crate) incarnation: Option<i64>,
    pub(crate) n: Option<i64>,
    pub(crate) body: &'a [u8],
}

impl<'a> ChangeRow<'a> {
    /// The columns, in the order they are read.
    pub(crate) const COLUMNS: &'static str =
        "seq, kind, at_ms, spent_ms, resource, site, incarnation, n, body, sum";

    pub(crate) fn sum(&self) -> Checksum {
        let live = Summing::table("changes")
            .int(self.seq)
            .int(self.kind)
            .int(self.at_ms)
            .optional_text(self.resource)
            .optional_text(self.site)
            .optional_int(self.incarnation)
            .optional_int(self.n)
            .bytes(self.body)
            .sum();
        self.spent_ms.map_or(live, |spent_ms| live.spent(spent_ms))
    }

    /// Puts it into the table, under its checksum.
    pub(crate) fn insert(&self, db: &Connection) -> Result<Checksum, StoreFault> {
        let sql = "INSERT INTO changes \
                   (seq, kind, at_ms, spent_ms, resource, site, incarnation, n, body, sum) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let sum = self.sum();
        db.prepare_cached(sql)?.execute(params![
            self.seq,
            self.kind,
            self.at_ms,
            self.spent_ms,
            self.resource,
            self.site,
            self.incarnation,
            self.n,
            self.body,
            sum.0,
        ])?;
        Ok(sum)
    }

    /// What was read, once it is known to be what was written.
    pub(crate) fn read(row: &'a rusqlite::Row<'_>) -> Result<(Self, Checksum), StoreFault> {
        let seq: i64 = row.get(0)?;
        let whole = || -> Result<_, rusqlite::Error> {
            Ok(ChangeRow {
                seq,
                kind: row.get(1)?,
                at_ms: row.get(2)?,
                spent_ms: row.get(3)?,
                resource: row.get_ref(4)?.as_str_or_null()?,
                site: row.get_ref(5)?.as_str_or_null()?,
                incarnation: row.get(6)?,
                n: row.get(7)?,
                body: row.get_ref(8)?.as_blob()?,
            })
        };
        let columns =
            whole().map_err(|error| StoreFault::row("changes", &seq, None, error.to_string()))?;
        let sum = Checksum(row.get(9).map_err(|error| columns.damaged(error.to_string()))?);
        if sum == columns.sum() {
            Ok((columns, sum))
        } else {
            Err(columns.damaged("its checksum does not match"))
        }
    }

    fn damaged(&self, what: impl Into<String>) -> StoreFault {
        StoreFault::row("changes", &self.seq, self.resource, what)
    }

    pub(crate) fn decode(&self) -> Result<ChangeKind, StoreFault> {
        let decoded = match self.kind {
            ENTRY => {
                decode_record(self.body).map_err(|error| error.to_string()).and_then(|record| {
                    match record {
                        Record::Entry(resource, entry) => Ok(ChangeKind::Entry(resource, entry)),
                        _ => Err("it is marked as an entry and is none".to_string()),
                    }
                })
            }
            NOTICE => {
                decode_notice(self.body).map(ChangeKind::Notice).map_err(|error| error.to_string())
            }
            kind => Err(format!("there is no kind {kind}")),
        };
        decoded.map_err(|what| self.damaged(what))
    }

    /// Whether it is a notice of a kind that a later version made.
    pub(crate) fn is_news_of_a_later_version(&self) -> bool {
        self.kind == NOTICE
            && decode_notice(self.body).is_err_and(|error| error.is_of_a_later_version())
    }
}

/// A row of `state`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateRow<'a> {
    pub(crate) seq: i64,
    pub(crate) slot: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> StateRow<'a> {
    /// The columns, in the order they are read.
    pub(crate) const COLUMNS: &'static str = "seq, slot, body, sum";

    pub(crate) fn sum(&self) -> Checksum {
        Summing::table("state").int(self.seq).bytes(self.slot.as_bytes()).bytes(self.body).sum()
    }

    /// Puts it into the table, under its checksum.
    pub(crate) fn insert(&self, db: &Connection) -> Result<Checksum, StoreFault> {
        let sql = "INSERT INTO state (seq, slot, body, sum) VALUES (?, ?, ?, ?)";
        let sum = self.sum();
        db.prepare_cached(sql)?.execute(params![self.seq, self.slot, self.body, sum.0])?;
        Ok(sum)
    }

    /// What was read, once it is known to be what was written.
    pub(crate) fn read(row: &'a rusqlite::Row<'_>) -> Result<(Self, Checksum), StoreFault> {
        let seq: i64 = row.get(0)?;
        let whole = || -> Result<_, rusqlite::Error> {
            let slot = row.get_ref(1)?.as_str()?;
            Ok((Self { seq, slot, body: row.get_ref(2)?.as_blob()? }, Checksum(row.get(3)?)))
        };
        let (columns, sum) =
            whole().map_err(|error| StoreFault::row("state", &seq, None, error.to_string()))?;
        if sum == columns.sum() {
            Ok((columns, sum))
        } else {
            Err(columns.damaged("its checksum does not match"))
        }
    }

    fn damaged(&self, what: impl Into<String>) -> StoreFault {
        StoreFault::row("state", &self.seq, SlotName::resource_in(self.slot), what)
    }

    pub(crate) fn decode(&self) -> Result<Record, StoreFault> {
        let record = decode_record(self.body).map_err(|error| self.damaged(error.to_string()))?;
        if record.slot().is_some_and(|slot| SlotName::of(slot).as_str() == self.slot) {
            Ok(record)
        } else {
            Err(self.damaged("it is kept under the slot of another record"))
        }
    }
}

/// Reads the body of a record, of this version or of the one before.
pub(crate) fn decode_record(body: &[u8]) -> Result<Record, FormError> {
    match body.first() {
        Some(&v1::VERSION) => v1::decode_record(body),
        _ => disk::decode_record(body),
    }
}

/// Reads the body of a notice, of this version or of the one before.
pub(crate) fn decode_notice(body: &[u8]) -> Result<Notice, FormError> {
    match body.first() {
        Some(&v1::VERSION) => v1::decode_notice(body),
        _ => disk::decode_notice(body),
    }
}

/// SQLite's integers are signed. Bits are kept, so that ordinary numbers look as they are.
pub(crate) fn signed(value: u64) -> i64 {
    i64::from_le_bytes(value.to_le_bytes())
}

/// The other way.
pub(crate) fn unsigned(value: i64) -> u64 {
    u64::from_le_bytes(value.to_le_bytes())
}

/// A time, which no clock shows beyond what SQLite can hold.
pub(crate) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The columns of `n` that stand for numbers up to this one, as ranges: see [`signed`].
pub(crate) fn numbers_upto(n: u64) -> impl Iterator<Item = (i64, i64)> {
    let ordinary = (0, i64::try_from(n).unwrap_or(i64::MAX));
    let beyond = i64::try_from(n).is_err().then(|| (i64::MIN, signed(n)));
    std::iter::once(ordinary).chain(beyond)
}

/// The columns that name an entry.
pub(crate) fn name_of(id: &EntryId) -> (&str, i64, i64) {
    (id.author.site.as_str(), signed(id.author.incarnation.0), signed(id.n))
}

impl From<Seq> for i64 {
    fn from(seq: Seq) -> Self {
        // Beyond any that is given out.
        Self::try_from(seq.0).unwrap_or(Self::MAX)
    }
}
