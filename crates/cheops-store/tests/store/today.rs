//! A directory of format 5, made by the program that wrote it: it opens with all it held. Whoever
//! changes the format finds it here, and has it opened still.

use std::fs;
use std::path::Path;

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, KeyId};
use cheops_core::plan::SnapshotId;
use cheops_store::{ChangeKind, Opened, Seq, open};
use expect_test::expect_file;
use tempfile::{TempDir, tempdir};

use crate::support::{resource, site};
use crate::upgrade::{copy, options};

/// A copy of it, as it was left.
fn every() -> TempDir {
    let dir = tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-5/every"), dir.path());
    let journal = fs::OpenOptions::new().write(true).open(dir.path().join("journal")).unwrap();
    journal.set_len(64 << 10).unwrap();
    dir
}

/// Everything that it holds, a line each.
fn all_of(opened: &Opened) -> String {
    let changes = opened.feed.changes_since(Seq::default(), None, 1000).unwrap();
    let records = opened.records.iter().map(|record| format!("{record:?}\n"));
    records.chain(changes.items.iter().map(|change| format!("{change:?}\n"))).collect()
}

fn open_every(dir: &Path) -> Opened {
    open(dir, &site("paris"), || panic!("it keeps its incarnation"), options()).unwrap()
}

#[test]
fn a_directory_of_format_5_with_every_kind_of_record_opens_with_all_it_held() {
    let dir = every();
    let opened = open_every(dir.path());
    assert_eq!(opened.incarnation.0, 0x5f);
    assert!(!opened.first_incarnation);
    // Read once, against the samples that it was made of.
    expect_file!["format-5-every.txt"].assert_eq(&all_of(&opened));
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
        |record: &Record| matches!(record, Record::SetApart(..)),
    ] {
        assert!(opened.records.iter().any(kind));
    }
    let changes = opened.feed.changes_since(Seq::default(), None, 1000).unwrap().items;
    let notices = changes.iter().filter(|change| matches!(change.what, ChangeKind::Notice(_)));
    assert!(notices.count() > 30);
    assert_eq!(opened.feed.cursor("hooks").unwrap(), Some(Seq(3)));
    let kept = opened.certificates.identities().unwrap();
    assert_eq!(kept, [(KeyId([9; 32]), b"a certificate".to_vec())]);
    let one = BlobId(*blake3::hash(b"one file").as_bytes());
    let mut one = opened.blobs.open_checked(one, 0).unwrap().unwrap();
    assert_eq!(one.next(usize::MAX).unwrap(), b"one file");
    let saved = opened.snapshots.open_verified(&resource("sample-0"), SnapshotId(0)).unwrap();
    assert!(saved.is_some());
}

#[test]
fn a_directory_of_format_5_is_the_same_after_a_start_and_another() {
    let dir = every();
    let first = all_of(&open_every(dir.path()));
    assert_eq!(all_of(&open_every(dir.path())), first);
}
