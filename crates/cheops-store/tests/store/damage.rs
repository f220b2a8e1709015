//! A medium that lies: cut files, torn writes, altered bits. Each time the store either says so or
//! holds exactly what it held after some whole batch; it never gives out anything else.

use std::fs;
use std::path::{Path, PathBuf};

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Incarnation};
use cheops_store::{OpenError, ReadError, Seq};
use tempfile::{TempDir, tempdir};

use crate::history::{LogContent, batch, content_after_each, everything, options};
use crate::support::{Clock, OnDisk, Twin, entry, id, open_paris, operation, site};

const BATCHES: u64 = 60;

/// The files of a store as a crash would leave them.
struct Image {
    db: Vec<u8>,
    wal: Vec<u8>,
    journal: Vec<u8>,
    expected: Vec<LogContent>,
}

/// How far the write-ahead log has been copied into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkpoint {
    /// Not at all.
    Never,
    /// In the middle of the history: the rest is in the write-ahead log alone.
    Halfway,
    /// All of it, and the write-ahead log is still there.
    AtTheEnd,
    /// The store was closed: there is no write-ahead log any more.
    Closed,
}

impl Image {
    /// Half of the history in the tables, the other half in the journal alone.
    fn unsettled() -> Self {
        let clock = Clock::default();
        let mut disk = OnDisk::new(options(&clock));
        for n in 1..=BATCHES {
            clock.set(n);
            let (records, notices) = batch(n);
            disk.opened_mut().log.keep(&records, &notices).unwrap();
            if n == BATCHES / 2 {
                disk.opened_mut().log.settle().unwrap();
            }
        }
        Self::of(&disk)
    }

    fn take(checkpoint: Checkpoint) -> Self {
        let clock = Clock::default();
        let mut disk = OnDisk::new(options(&clock));
        let path = disk.dir.path().join("log.db");
        for n in 1..=BATCHES {
            clock.set(n);
            let (records, notices) = batch(n);
            disk.keep(&records, &notices).unwrap();
            let is_due = match checkpoint {
                Checkpoint::Never | Checkpoint::Closed => false,
                Checkpoint::Halfway => n == BATCHES / 2,
                Checkpoint::AtTheEnd => n == BATCHES,
            };
            if is_due {
                let db = rusqlite::Connection::open(&path).unwrap();
                db.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())).unwrap();
            }
        }
        if checkpoint == Checkpoint::Closed {
            disk.stop();
        }
        Self::of(&disk)
    }

    fn of(disk: &OnDisk) -> Self {
        let read = |name: &str| fs::read(disk.dir.path().join(name)).unwrap_or_default();
        let (db, wal, journal) = (read("log.db"), read("log.db-wal"), read("journal"));
        Self { db, wal, journal, expected: content_after_each(BATCHES) }
    }

    /// As if the tables had never been behind: nothing but them says what was written.
    fn without_journal(mut self) -> Self {
        self.journal.fill(0);
        self
    }

    fn write(&self, dir: &Path) {
        fs::write(dir.join("log.db"), &self.db).unwrap();
        fs::write(dir.join("journal"), &self.journal).unwrap();
        let wal = dir.join("log.db-wal");
        if self.wal.is_empty() {
            let _none = fs::remove_file(&wal);
        } else {
            fs::write(&wal, &self.wal).unwrap();
        }
        let _stale = fs::remove_file(dir.join("log.db-shm"));
        fs::write(dir.join("site"), "cheops data directory").unwrap();
    }

    /// How many batches the store has; `None` if it says that it is damaged.
    fn open(&self, dir: &TempDir, what: &str) -> Option<usize> {
        self.write(dir.path());
        let clock = Clock::default();
        let opened = match open_paris(dir.path(), options(&clock)) {
            Ok(opened) => opened,
            Err(OpenError::Corrupt(_) | OpenError::FormatVersion { .. }) => return None,
            Err(other) => panic!("{what}: {other:?}"),
        };
        let changes = everything(|after| opened.feed.changes_since(after, None, usize::MAX));
        let last = opened.feed.last_seq().unwrap();
        let content = LogContent { records: opened.records, changes, last };
        let batches = self.expected.iter().position(|expected| content.is(expected));
        assert!(batches.is_some(), "{what}: neither refused nor what was written");
        batches
    }
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[test]
fn an_image_that_nothing_happened_to_opens_whole() {
    let dir = tempdir().unwrap();
    use Checkpoint::{AtTheEnd, Closed, Halfway, Never};
    for checkpoint in [Never, Halfway, AtTheEnd, Closed] {
        let image = Image::take(checkpoint);
        assert_eq!(image.wal.is_empty(), checkpoint == Closed);
        assert_eq!(image.open(&dir, "untouched"), Some(60), "{checkpoint:?}");
    }
}

#[test]
fn a_write_ahead_log_cut_anywhere_loses_whole_batches_from_the_end_or_is_refused() {
    let dir = tempdir().unwrap();
    let mut dice = Dice(1);
    for checkpoint in [Checkpoint::Never, Checkpoint::Halfway, Checkpoint::AtTheEnd] {
        let mut image = Image::take(checkpoint).without_journal();
        let whole = image.wal.clone();
        let mut found = std::collections::BTreeSet::new();
        for _ in 0..40 {
            let cut = dice.below(whole.len());
            image.wal = whole[..cut].to_vec();
            found.extend(image.open(&dir, &format!("{checkpoint:?} cut at {cut}")));
        }
        if checkpoint == Checkpoint::Never {
            assert!(found.len() > 10, "hardly anything was left: {found:?}");
        }
    }
}

#[test]
fn a_torn_page_at_the_end_of_the_write_ahead_log_takes_its_batch_along() {
    let dir = tempdir().unwrap();
    let mut image = Image::take(Checkpoint::Never).without_journal();
    let end = image.wal.len();
    // The last sectors were never written: what was there before is nothing.
    image.wal[end - 512..].fill(0);
    assert_eq!(image.open(&dir, "torn"), Some(59));
}

#[test]
fn a_bit_flipped_anywhere_is_never_taken_for_what_was_written() {
    let dir = tempdir().unwrap();
    let mut dice = Dice(2);
    for checkpoint in
        [Checkpoint::Never, Checkpoint::Halfway, Checkpoint::AtTheEnd, Checkpoint::Closed]
    {
        let mut image = Image::take(checkpoint);
        let mut refused = 0;
        for _ in 0..100 {
            let at = dice.below(image.db.len() + image.wal.len());
            let bit = 1 << dice.below(8);
            let flip = |image: &mut Image| match at.checked_sub(image.db.len()) {
                None => image.db[at] ^= bit,
                Some(at) => image.wal[at] ^= bit,
            };
            flip(&mut image);
            let found = image.open(&dir, &format!("{checkpoint:?} bit {bit} at {at}"));
            refused += usize::from(found.is_none());
            if checkpoint == Checkpoint::Closed {
                assert!(found.is_none_or(|batches| batches == 60), "an older state came back");
            }
            flip(&mut image);
        }
        // What the write-ahead log has is taken from there, up to the first altered bit. Without
        // one there is nothing to fall back to.
        assert!(refused > 10 || checkpoint != Checkpoint::Closed, "{checkpoint:?}: none refused");
    }
}

#[test]
fn a_journal_altered_anywhere_loses_nothing_but_its_last_batch_or_is_refused() {
    let dir = tempdir().unwrap();
    let mut dice = Dice(4);
    let mut image = Image::unsettled();
    let whole = image.journal.clone();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let (mut refused, mut lost) = (0, 0);
    for _ in 0..300 {
        let at = dice.below(end);
        image.journal[at] ^= 1 << dice.below(8);
        match image.open(&dir, &format!("bit at {at}")) {
            None => refused += 1,
            Some(60) => assert!(at < end / 2 + end / 10, "{at} of {end} does not matter"),
            Some(59) => lost += 1,
            Some(other) => panic!("{other} batches, with a bit at {at} of {end}"),
        }
        image.journal[at] = whole[at];
    }
    assert!(refused > 100 && lost > 0, "{refused} refused, {lost} lost");
}

#[test]
fn a_batch_torn_at_the_end_of_the_journal_was_never_acknowledged() {
    let dir = tempdir().unwrap();
    let mut image = Image::unsettled();
    let end = image.journal.iter().rposition(|byte| *byte != 0).unwrap();
    image.journal[end / 64 * 64..].fill(0);
    assert_eq!(image.open(&dir, "torn"), Some(59));
}

#[test]
fn a_journal_cut_or_gone_is_refused_and_named() {
    let dir = tempdir().unwrap();
    let mut image = Image::unsettled();
    for length in [image.journal.len() - 1, 100, 0] {
        image.journal.truncate(length);
        assert_eq!(image.open(&dir, &format!("cut to {length}")), None);
    }
    fs::remove_file(dir.path().join("journal")).unwrap();
    let error = open_paris(dir.path(), options(&Clock::default())).unwrap_err();
    let OpenError::Corrupt(corruption) = error else { panic!("{error:?}") };
    let journal = dir.path().join("journal");
    let expected = format!("the content of `{}`: ", journal.display());
    assert!(corruption.to_string().starts_with(&expected), "{corruption}");
}

/// What an earlier round left behind is still in the file, whole.
#[test]
fn batches_of_an_earlier_round_through_the_journal_stay_where_they_are() {
    let dir = tempdir().unwrap();
    let mut image = Image::unsettled();
    let old = image.journal.clone();
    image.journal.fill(0);
    assert_eq!(image.open(&dir, "the journal was forgotten"), Some(30));
    // Opening began a new round: what was kept in the one before is not taken again.
    fs::write(dir.path().join("journal"), &old).unwrap();
    let opened = open_paris(dir.path(), options(&Clock::default())).unwrap();
    assert_eq!(opened.records, image.expected[30].records);
}

#[test]
fn a_page_of_an_earlier_state_is_not_taken_for_the_present_one() {
    let dir = tempdir().unwrap();
    let (old, mut image) = (Image::take(Checkpoint::Halfway), Image::take(Checkpoint::Closed));
    let new = image.db.clone();
    for (at, page) in old.db.chunks(4096).enumerate() {
        let place = at * 4096..at * 4096 + page.len();
        if new.get(place.clone()).is_none_or(|now| now == page) {
            continue;
        }
        // A write that the medium acknowledged and forgot.
        image.db = new.clone();
        image.db[place].copy_from_slice(page);
        assert_eq!(image.open(&dir, &format!("page {at} is old")), None, "page {at}");
    }
}

#[test]
fn a_database_cut_anywhere_is_refused() {
    let dir = tempdir().unwrap();
    let mut dice = Dice(3);
    let mut image = Image::take(Checkpoint::Closed);
    let whole = image.db.clone();
    let cuts = [0, 1, 100, 4095, 4096, 8192].into_iter();
    let cuts: Vec<_> = cuts.chain((0..20).map(|_| dice.below(whole.len()))).collect();
    for cut in cuts {
        image.db = whole[..cut].to_vec();
        assert_eq!(image.open(&dir, &format!("cut at {cut}")), None, "cut at {cut}");
    }
}

#[test]
fn a_database_that_is_gone_is_not_taken_for_a_new_one() {
    let clock = Clock::default();
    let mut disk = OnDisk::new(options(&clock));
    disk.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
    disk.stop();
    fs::remove_file(disk.dir.path().join("log.db")).unwrap();
    for _ in 0..2 {
        let error = open_paris(disk.dir.path(), options(&clock)).unwrap_err();
        assert!(matches!(error, OpenError::Corrupt(_)), "{error:?}");
    }
}

/// Alters the log behind the back of the store.
fn tamper(path: &Path, sql: &str) {
    let db = rusqlite::Connection::open(path).unwrap();
    assert!(db.execute(sql, ()).unwrap() > 0, "nothing was altered");
}

fn tampered(sql: &str) -> String {
    let clock = Clock::default();
    let mut disk = OnDisk::new(options(&clock));
    for n in 1..=10 {
        clock.set(n);
        let (records, notices) = batch(n);
        disk.keep(&records, &notices).unwrap();
    }
    let blob = BlobId([3; 32]);
    let incarnation = Record::Incarnation(site("nantes"), Incarnation(1));
    disk.keep(&[operation("a", id("paris", 99), &[blob]), incarnation], &[]).unwrap();
    disk.stop();
    tamper(&disk.dir.path().join("log.db"), sql);
    match open_paris(disk.dir.path(), options(&clock)) {
        Err(OpenError::Corrupt(corruption)) => corruption.to_string(),
        Err(other) => panic!("{sql}: {other:?}"),
        Ok(_) => panic!("{sql}: was not noticed"),
    }
}

#[test]
fn every_column_of_every_row_counts_and_the_damage_is_named() {
    let row = |table, sql: &str| {
        let corruption = tampered(sql);
        assert!(corruption.starts_with("row "), "{sql}: {corruption}");
        assert!(corruption.contains(&format!(" of table `{table}` ")), "{sql}: {corruption}");
    };
    for change in [
        "kind = 2 WHERE kind = 1",
        "kind = 1 WHERE kind = 2",
        "at_ms = at_ms + 1",
        "spent_ms = 3 WHERE spent_ms IS NULL",
        "spent_ms = NULL WHERE spent_ms IS NOT NULL",
        "spent_ms = spent_ms + 1 WHERE spent_ms IS NOT NULL",
        "resource = 'other'",
        "resource = NULL",
        "site = 'nantes' WHERE kind = 1",
        "incarnation = 9 WHERE kind = 1",
        "n = n + 1 WHERE kind = 1",
        "seq = seq + 1000",
        "body = body || x'00'",
        "body = x'02' || substr(body, 2)",
        "sum = randomblob(16)",
        "sum = 'text'",
    ] {
        row("changes", &format!("UPDATE changes SET {change}"));
    }
    for change in
        ["slot = 'life/x'", "body = substr(body, 2)", "sum = zeroblob(16)", "seq = seq + 1000"]
    {
        row("state", &format!("UPDATE state SET {change}"));
    }
    for change in [
        "incarnation = incarnation + 1",
        "next_seq = 1",
        "next_seq = next_seq + 1",
        "swept_to = 1000",
        "digest = zeroblob(16)",
        "site = 'lyon'",
        "site = ''",
    ] {
        row("head", &format!("UPDATE head SET {change}"));
    }
    row("head", "DELETE FROM head");
}

#[test]
fn the_resource_that_damage_is_about_is_named() {
    for (slot, resource) in [
        ("runs/long/name/of/a/resource", Some("long/name/of/a/resource")),
        ("knows/lyon/long/name/of/a/resource", Some("long/name/of/a/resource")),
        ("pruned/b", Some("b")),
        ("life/nantes", None),
    ] {
        let sql = format!("UPDATE state SET body = x'02' WHERE slot = '{slot}'");
        let about = resource.map_or(String::new(), |name| format!("(resource `{name}`) "));
        let corruption = tampered(&sql);
        assert!(corruption.contains(&format!(" of table `state` {about}of ")), "{corruption}");
    }
}

#[test]
fn rows_that_are_missing_or_moved_are_noticed() {
    for sql in [
        "DELETE FROM changes WHERE seq = (SELECT max(seq) FROM changes)",
        "DELETE FROM changes WHERE kind = 2",
        "DELETE FROM changes WHERE spent_ms IS NOT NULL",
        "DELETE FROM state WHERE seq = (SELECT min(seq) FROM state)",
    ] {
        let corruption = tampered(sql);
        assert!(corruption.starts_with("the rows of "), "{sql}: {corruption}");
    }
    for sql in ["DELETE FROM blob_refs", "INSERT INTO blob_refs VALUES (zeroblob(32), 1)"] {
        let corruption = tampered(sql);
        assert!(corruption.starts_with("table `blob_refs` of "), "{sql}: {corruption}");
    }
}

#[test]
fn tables_that_are_not_as_they_were_made_are_refused() {
    for sql in ["DROP INDEX changes_of", "CREATE TABLE more (x)", "ALTER TABLE state ADD COLUMN x"]
    {
        let clock = Clock::default();
        let mut disk = OnDisk::new(options(&clock));
        disk.stop();
        let db = rusqlite::Connection::open(disk.dir.path().join("log.db")).unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        match open_paris(disk.dir.path(), options(&clock)) {
            Err(OpenError::Corrupt(corruption)) => {
                let corruption = corruption.to_string();
                assert!(corruption.starts_with("table `sqlite_schema` of "), "{sql}: {corruption}");
            }
            other => panic!("{sql}: {:?}", other.map(|_| "opened")),
        }
    }
}

#[test]
fn damage_done_while_the_store_is_open_is_not_given_out() {
    let clock = Clock::default();
    let mut disk = OnDisk::new(options(&clock));
    disk.keep(&[entry("a", id("paris", 1)), entry("b", id("paris", 2))], &[]).unwrap();
    disk.set_cursor("hook", Seq(1));
    let path: PathBuf = disk.dir.path().join("log.db");
    tamper(&path, "UPDATE changes SET n = 7 WHERE seq = 2");
    tamper(&path, "UPDATE cursors SET seq = 0");
    let error = disk.changes(0, None, 10).unwrap_err();
    assert!(
        matches!(&error, ReadError::Corrupt(corruption)
        if corruption.to_string().contains("row 2 of table `changes` (resource `b`)")),
        "{error:?}"
    );
    assert_eq!(disk.changes(0, None, 0).unwrap().items.len(), 0);
    assert!(matches!(disk.opened_mut().log.records(), Err(ReadError::Corrupt(_))));
    assert!(matches!(disk.opened().feed.cursor("hook"), Err(ReadError::Corrupt(_))));
}
