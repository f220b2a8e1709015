//! The one row that says whose log this is and how far it goes.

use cheops_core::model::{Incarnation, SiteId};
use rusqlite::{Connection, params};

use super::journal::RoundKey;
use super::row::{Checksum, Digest, Summing, signed, unsigned};
use crate::fault::StoreFault;
use crate::feed::Seq;

/// Written anew with every batch, so that it says what the other tables must add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) site: SiteId,
    pub(crate) incarnation: Incarnation,
    /// The place the next row gets.
    pub(crate) next_seq: i64,
    /// The last place of which a change was deleted for its age.
    pub(crate) swept_to: i64,
    pub(crate) digest: Digest,
    pub(crate) journal: Round,
    /// How many bytes the rows take that are kept for readers only, about. Not written: whoever opens
    /// the log reads all of it, and counts.
    pub(crate) history: u64,
}

/// How batches that are not in the tables yet are told from what else is in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) size: u64,
    pub(crate) key: RoundKey,
}

impl Head {
    /// Of a log in which there is nothing yet.
    pub(crate) fn new(site: SiteId, incarnation: Incarnation, journal: Round) -> Self {
        let digest = Digest::default();
        Self { site, incarnation, next_seq: 1, swept_to: 0, digest, journal, history: 0 }
    }

    /// Takes the next place.
    pub(crate) fn take_seq(&mut self) -> i64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    pub(crate) fn last(&self) -> Seq {
        Seq(unsigned(self.next_seq - 1))
    }

    pub(crate) fn swept(&self) -> Seq {
        Seq(unsigned(self.swept_to))
    }

    pub(crate) fn load(db: &Connection) -> Result<Self, StoreFault> {
        let sql = "SELECT site, incarnation, next_seq, swept_to, digest, \
                   journal_size, journal_key, sum FROM head";
        let damaged = |what: String| StoreFault::row("head", &1, None, what);
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query(())?;
        let row = rows.next()?.ok_or_else(|| damaged("it is missing".to_string()))?;
        let whole = || -> Result<_, rusqlite::Error> {
            let site: String = row.get(0)?;
            let head = (row.get(1)?, row.get(2)?, row.get(3)?, Digest::from_bytes(row.get(4)?));
            let round = Round { size: unsigned(row.get(5)?), key: RoundKey(row.get(6)?) };
            Ok((site, head, round, Checksum(row.get(7)?)))
        };
        let (site, (incarnation, next_seq, swept_to, digest), journal, sum) =
            whole().map_err(|error| damaged(error.to_string()))?;
        let site = SiteId::new(&site).map_err(|error| damaged(error.to_string()))?;
        let incarnation = Incarnation(unsigned(incarnation));
        let head = Self { site, incarnation, next_seq, swept_to, digest, journal, history: 0 };
        if head.sum() == sum {
            Ok(head)
        } else {
            Err(damaged("its checksum does not match".to_string()))
        }
    }

    pub(crate) fn save(&self, db: &Connection) -> Result<(), StoreFault> {
        let sql = "REPLACE INTO head (id, site, incarnation, next_seq, swept_to, digest, \
                   journal_size, journal_key, sum) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)";
        db.prepare_cached(sql)?.execute(params![
            self.site.as_str(),
            signed(self.incarnation.0),
            self.next_seq,
            self.swept_to,
            self.digest.to_bytes(),
            signed(self.journal.size),
            self.journal.key.0,
            self.sum().0,
        ])?;
        Ok(())
    }

    fn sum(&self) -> Checksum {
        Summing::table("head")
            .bytes(self.site.as_str().as_bytes())
            .int(signed(self.incarnation.0))
            .int(self.next_seq)
            .int(self.swept_to)
            .bytes(&self.digest.to_bytes())
            .int(signed(self.journal.size))
            .bytes(&self.journal.key.0)
            .sum()
    }
}
