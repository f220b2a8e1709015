//! Copies that are made while a site goes on, and what becomes of those who start from one.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cheops_core::model::Incarnation;
use cheops_core::plan::SnapshotId;
use cheops_store::{BackupError, ProgressReporter, StoreOptions, open};
use tempfile::tempdir;

use crate::support::{entry, id, open_paris, operation, resource, site};

fn modes_below(dir: &Path, found: &mut Vec<(bool, u32)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        found.push((path.is_dir(), fs::metadata(&path).unwrap().permissions().mode() & 0o777));
        if path.is_dir() {
            modes_below(&path, found);
        }
    }
}

#[test]
fn a_copy_holds_everything_and_begins_an_incarnation_of_its_own() {
    let (dir, place) = (tempdir().unwrap(), tempdir().unwrap());
    let to = place.path().join("deep/copy");
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    let mut content = opened.blobs.create().unwrap();
    content.write_all(b"a file").unwrap();
    let stored = content.finish().unwrap();
    opened.log.keep(&[operation("a", id("paris", 1), &[stored.id])], &[]).unwrap();
    let mut state = opened.snapshots.create(&resource("a"), SnapshotId(3)).unwrap();
    state.write_all(b"a state").unwrap();
    state.finish().unwrap();
    opened.certificates.keep_identity(cheops_core::model::KeyId([1; 32]), b"lyon").unwrap();
    opened.log.settle().unwrap();
    let copied = opened.backup.to(&to, &ProgressReporter::default()).unwrap();
    assert_eq!((copied.files, copied.missing, copied.snapshots), (1, 0, 1));
    let mut modes = Vec::new();
    modes_below(&to, &mut modes);
    assert!(modes.iter().all(|&(is_dir, mode)| mode == if is_dir { 0o700 } else { 0o600 }));

    opened.log.keep(&[entry("a", id("paris", 2))], &[]).unwrap();
    let copy = open(&to, &site("paris"), || 99, StoreOptions::default()).unwrap();
    assert_eq!(copy.records, [operation("a", id("paris", 1), &[stored.id])]);
    assert_eq!((copy.incarnation, copy.first_incarnation), (Incarnation(99), false));
    assert!(copy.blobs.open_checked(stored.id, 0).unwrap().unwrap().next(usize::MAX).is_ok());
    assert!(copy.snapshots.open_verified(&resource("a"), SnapshotId(3)).unwrap().is_some());
    assert_eq!(copy.certificates.identities().unwrap().len(), 1);
    drop(copy);
    let again =
        open(&to, &site("paris"), || panic!("drawn again"), StoreOptions::default()).unwrap();
    assert_eq!(again.incarnation, Incarnation(99), "it keeps the incarnation that it drew");
    drop(opened);
    let original = open(dir.path(), &site("paris"), || panic!(), StoreOptions::default()).unwrap();
    assert_eq!(original.incarnation, Incarnation(7), "the original goes on in its own");
}

#[test]
fn a_place_that_is_not_empty_is_refused_and_left_as_it_is() {
    let (dir, place) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(place.path().join("mine"), b"precious").unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    for to in [place.path().to_path_buf(), place.path().join("mine")] {
        let error = opened.backup.to(&to, &ProgressReporter::default()).unwrap_err();
        assert!(matches!(error, BackupError::NotEmpty(_)), "{error:?}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_copy_made_while_much_is_written_is_what_the_log_was_at_one_moment() {
    let (dir, place) = (tempdir().unwrap(), tempdir().unwrap());
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    let (backup, stop) = (opened.backup.clone(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let writing = std::thread::spawn(move || {
        let mut n = 0;
        while !stopped.load(Ordering::Relaxed) {
            n += 2;
            let both = [entry("a", id("paris", n - 1)), entry("b", id("paris", n))];
            opened.log.keep(&both, &[]).unwrap();
            opened.log.settle().unwrap();
        }
        n
    });
    let mut copies = Vec::new();
    for at in 0..4 {
        let to = place.path().join(at.to_string());
        backup.to(&to, &ProgressReporter::default()).unwrap();
        copies.push(to);
    }
    stop.store(true, Ordering::Relaxed);
    let written = writing.join().unwrap();
    let mut before = 0;
    for (at, to) in copies.iter().enumerate() {
        let incarnation = 100 + at as u64;
        let copy = open(to, &site("paris"), || incarnation, StoreOptions::default()).unwrap();
        let records = copy.records.len() as u64;
        assert!(records.is_multiple_of(2), "whole batches");
        assert!(before <= records && records <= written);
        before = records;
        assert_eq!(copy.incarnation, Incarnation(incarnation));
    }
}
