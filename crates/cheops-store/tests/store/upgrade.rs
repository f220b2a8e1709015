//! Directories of format 3, made by the program that wrote it: moved to this format with all they
//! hold, wherever the move is stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Entry, EntryBody, KeyId, SealTree, SignedBy};
use cheops_core::plan::SnapshotId;
use cheops_store::{
    ChangeKind, OpenError, Opened, ProgressReporter, Seq, StoreOptions, Voucher, open,
};
use expect_test::expect_file;
use tempfile::{TempDir, tempdir};

use crate::support::{resource, site};

const LONG: Duration = Duration::from_secs(400 * 365 * 24 * 3600);

/// A copy of a directory of format 3, as the program left it.
fn old_directory(name: &str, journal_bytes: u64) -> TempDir {
    let dir = tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-3").join(name);
    copy(&fixture, dir.path());
    let journal = fs::OpenOptions::new().write(true).open(dir.path().join("journal")).unwrap();
    journal.set_len(journal_bytes).unwrap();
    dir
}

pub(crate) fn every() -> TempDir {
    old_directory("every", 32 << 10)
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

pub(crate) fn options() -> StoreOptions {
    StoreOptions { audit_retention: LONG, ..StoreOptions::default() }
}

pub(crate) fn open_every(dir: &Path, options: StoreOptions) -> Result<Opened, OpenError> {
    open(dir, &site("paris"), || panic!("it keeps its incarnation"), options)
}

/// Everything that a directory holds, as text.
pub(crate) fn all_of(opened: &Opened) -> String {
    let changes = opened.feed.changes_since(Seq::default(), None, 1000).unwrap();
    format!("{:#?}\n{:#?}", opened.records, changes.items)
}

fn kept(dir: &Path) -> PathBuf {
    dir.join("log.db.format-3")
}

#[test]
fn a_directory_with_every_kind_of_record_opens_with_all_it_held() {
    let dir = every();
    let opened = open_every(dir.path(), options()).unwrap();
    assert_eq!(opened.incarnation.0, 7);
    assert!(!opened.first_incarnation);
    // Read once, against what the program that wrote it was told to write.
    expect_file!["format-3-every.txt"].assert_eq(&all_of(&opened));
    for kind in [
        |record: &Record| matches!(record, Record::Entry(..)),
        |record: &Record| matches!(record, Record::Begun(..)),
        |record: &Record| matches!(record, Record::Finished(..)),
        |record: &Record| matches!(record, Record::Ran(..)),
        |record: &Record| matches!(record, Record::Knows(..)),
        |record: &Record| matches!(record, Record::EarlierIncarnation(..)),
        |record: &Record| matches!(record, Record::Incarnation(..)),
        |record: &Record| matches!(record, Record::Pruned(..)),
        |record: &Record| matches!(record, Record::Shed(..)),
    ] {
        assert!(opened.records.iter().any(kind));
    }
    let changes = opened.feed.changes_since(Seq::default(), None, 1000).unwrap().items;
    let notices = changes.iter().filter(|change| matches!(change.what, ChangeKind::Notice(_)));
    assert_eq!(notices.count(), 30);
    let late = resource("late");
    let is_late = |record: &&Record| record.resource() == Some(&late);
    assert_eq!(opened.records.iter().filter(is_late).count(), 5, "what was in the journal alone");
    assert_eq!(opened.feed.cursor("hooks").unwrap(), Some(Seq(3)));
    let one = BlobId(*blake3::hash(b"one file").as_bytes());
    let mut one = opened.blobs.open_checked(one, 0).unwrap().unwrap();
    assert_eq!(one.next(usize::MAX).unwrap(), b"one file");
    let saved = opened.snapshots.open_verified(&resource("shell"), SnapshotId(0)).unwrap();
    assert!(saved.is_some());
}

#[test]
fn what_it_was_moved_from_stays_until_the_next_start_found_all_of_it() {
    let dir = every();
    let first = all_of(&open_every(dir.path(), options()).unwrap());
    assert!(kept(dir.path()).exists());
    let mark = fs::read_to_string(dir.path().join("site")).unwrap();
    assert!(mark.starts_with("cheops data directory, format 5\nsite paris\n"), "{mark}");
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("log.db") & 0o777, 0o600);
    assert_eq!(all_of(&open_every(dir.path(), options()).unwrap()), first);
    assert!(!kept(dir.path()).exists());
}

#[test]
fn what_is_kept_aside_is_a_whole_log_of_the_format_before() {
    let dir = every();
    let first = all_of(&open_every(dir.path(), options()).unwrap());
    let back = every();
    for name in ["log.db-wal", "log.db"] {
        fs::remove_file(back.path().join(name)).unwrap();
    }
    fs::copy(kept(dir.path()), back.path().join("log.db")).unwrap();
    fs::write(back.path().join("journal"), vec![0; 32 << 10]).unwrap();
    assert_eq!(all_of(&open_every(back.path(), options()).unwrap()), first);
}

#[test]
fn a_move_that_is_stopped_anywhere_loses_nothing() {
    let whole = {
        let dir = every();
        all_of(&open_every(dir.path(), options()).unwrap())
    };
    let mut stops = 0;
    loop {
        let dir = every();
        let told = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&told);
        let progress = ProgressReporter::new(move |_| {
            assert!(counted.fetch_add(1, Ordering::Relaxed) != stops, "stopped here");
        });
        let opening = || open_every(dir.path(), StoreOptions { progress, ..options() }).map(drop);
        let stopped = catch_unwind(AssertUnwindSafe(opening)).is_err();
        let again = open_every(dir.path(), options()).unwrap();
        assert_eq!(all_of(&again), whole, "stopped at step {stops}");
        drop(again);
        assert_eq!(all_of(&open_every(dir.path(), options()).unwrap()), whole);
        if !stopped {
            assert!(stops >= 9, "only {stops} steps were told");
            break;
        }
        stops += 1;
    }
}

#[test]
fn how_far_it_is_is_told() {
    let dir = every();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let progress = ProgressReporter::new(move |far| heard.lock().unwrap().push(far));
    drop(open_every(dir.path(), StoreOptions { progress, ..options() }).unwrap());
    let told = told.lock().unwrap();
    let moved: Vec<_> = told.iter().filter(|far| far.doing.contains("format 5")).collect();
    let last = moved.last().unwrap();
    assert!(last.of > 50 && last.done == last.of, "{last:?}");
    assert!(moved.is_sorted_by_key(|far| far.done));
}

/// Seals as a site does, but for a signature that means something.
pub(crate) fn vouch(entries: &[&Entry]) {
    let by = SignedBy::Voucher(site("paris"));
    let tree = SealTree::over(by, entries.iter().map(|entry| entry.hash())).unwrap();
    let signature: Arc<[u8]> = Arc::from([1, 2, 3].as_slice());
    for (index, entry) in entries.iter().enumerate() {
        entry.seal(tree.proof(index, KeyId([9; 32]), &signature));
    }
}

pub(crate) fn entries(opened: &Opened) -> Vec<Arc<Entry>> {
    let entries = opened.records.iter().filter_map(|record| match record {
        Record::Entry(_, entry) => Some(Arc::clone(entry)),
        _ => None,
    });
    entries.collect()
}

#[test]
fn who_opens_it_with_a_key_vouches_for_what_nobody_signed_once_and_for_all() {
    for opened_before_there_was_a_key in [false, true] {
        let dir = every();
        if opened_before_there_was_a_key {
            let opened = open_every(dir.path(), options()).unwrap();
            assert!(entries(&opened).iter().all(|entry| entry.proof().is_none()));
        }
        let vouch = Voucher::new(vouch);
        let opened = open_every(dir.path(), StoreOptions { vouch, ..options() }).unwrap();
        let vouched = entries(&opened);
        drop(opened);
        let nobody = Voucher::new(|_| panic!("nothing is left to vouch for"));
        let again = open_every(dir.path(), StoreOptions { vouch: nobody, ..options() }).unwrap();
        assert_eq!(entries(&again), vouched);
        for entry in entries(&again) {
            let proof = entry.proof().unwrap();
            assert_eq!(proof.by, SignedBy::Voucher(site("paris")));
            assert!(proof.root(entry.hash()).is_some());
        }
    }
}

#[test]
fn the_directories_of_two_agents_that_were_killed_open_with_what_only_they_had() {
    for (name, of, command) in
        [("paris", "counter", "echo last word"), ("lyon", "fresh", "echo fresh at lyon")]
    {
        let dir = old_directory(name, 8 << 20);
        let opened =
            open(dir.path(), &site(name), || panic!("a new incarnation"), options()).unwrap();
        let (of, had) = (resource(of), format!("{:?}", opened.records));
        assert!(had.contains(command), "{name}");
        let is_operation = |record: &&Record| {
            matches!(record, Record::Entry(_, entry) if matches!(entry.body, EntryBody::Operation(_)))
                && record.resource() == Some(&of)
        };
        assert!(opened.records.iter().filter(is_operation).count() >= 1);
    }
}

#[test]
fn the_old_directory_of_another_site_is_refused_and_left_alone() {
    let dir = every();
    let before = fs::read(dir.path().join("log.db-wal")).unwrap();
    let error = open(dir.path(), &site("lyon"), || 1, options()).unwrap_err();
    assert!(matches!(error, OpenError::WrongSite { .. }), "{error:?}");
    assert!(!kept(dir.path()).exists());
    assert!(!before.is_empty());
    drop(open_every(dir.path(), options()).unwrap());
}

#[test]
fn an_old_directory_that_is_damaged_is_refused_and_not_moved() {
    let dir = every();
    let db = rusqlite::Connection::open(dir.path().join("log.db")).unwrap();
    db.execute("UPDATE changes SET at_ms = at_ms + 1 WHERE seq = 1", ()).unwrap();
    drop(db);
    let error = open_every(dir.path(), options()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt(_)), "{error:?}");
    assert!(!kept(dir.path()).exists() && !dir.path().join("log.db.new").exists());
}
