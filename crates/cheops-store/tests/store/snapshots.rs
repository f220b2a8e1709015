//! Saved states: durable, checked, and only those that are wanted.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use cheops_core::plan::SnapshotId;
use cheops_store::{SnapshotError, Snapshots, StoreOptions};
use tempfile::tempdir;

use crate::support::{open_paris, resource};

fn save(snapshots: &Snapshots, of: &str, id: u64, content: &str) {
    let mut writer = snapshots.create(&resource(of), SnapshotId(id)).unwrap();
    writer.write_all(content.as_bytes()).unwrap();
    assert_eq!(writer.finish().unwrap(), content.len() as u64);
}

fn saved(snapshots: &Snapshots, of: &str, id: u64) -> Option<String> {
    let mut file = snapshots.open_verified(&resource(of), SnapshotId(id)).unwrap()?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    Some(text)
}

fn all_files(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { all_files(&path) } else { 1 }).sum()
}

#[test]
fn a_state_is_found_again_by_resource_and_number() {
    let dir = tempdir().unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    save(&opened.snapshots, "/a/é", 1, "one");
    save(&opened.snapshots, "/a/é", 12, "twelve");
    save(&opened.snapshots, "b", 1, "other");
    save(&opened.snapshots, "b", 1, "newer");
    drop(opened);
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    assert_eq!(saved(&opened.snapshots, "/a/é", 1).as_deref(), Some("one"));
    assert_eq!(saved(&opened.snapshots, "/a/é", 12).as_deref(), Some("twelve"));
    assert_eq!(saved(&opened.snapshots, "/a/é", 2), None);
    assert_eq!(saved(&opened.snapshots, "b", 1).as_deref(), Some("newer"));
    assert_eq!(saved(&opened.snapshots, "nowhere", 1), None);
    let path = opened.snapshots.path(&resource("b"), SnapshotId(1)).unwrap().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "newer");
}

#[test]
fn only_what_is_wanted_is_kept() {
    let dir = tempdir().unwrap();
    let snapshots = open_paris(dir.path(), StoreOptions::default()).unwrap().snapshots;
    for of in ["a", "b", "c"] {
        (1..=3).for_each(|id| save(&snapshots, of, id, of));
    }
    snapshots.retain(&resource("a"), |id| [1, 3].contains(&id.0)).unwrap();
    let kept =
        |of: &str| (1..=3).filter(|id| saved(&snapshots, of, *id).is_some()).collect::<Vec<_>>();
    assert_eq!((kept("a"), kept("b")), (vec![1, 3], vec![1, 2, 3]));
    snapshots.sweep(|of, id| *of == resource("b") && id == SnapshotId(2)).unwrap();
    assert_eq!((kept("a"), kept("b"), kept("c")), (vec![], vec![2], vec![]));
    snapshots.retain(&resource("b"), |_| false).unwrap();
    assert_eq!(all_files(&dir.path().join("snapshots")), 0);
    save(&snapshots, "b", 4, "anew");
    assert_eq!(saved(&snapshots, "b", 4).as_deref(), Some("anew"));
}

#[test]
fn a_state_half_written_is_not_there_and_its_remains_are_swept() {
    let dir = tempdir().unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    let mut writer = opened.snapshots.create(&resource("a"), SnapshotId(1)).unwrap();
    writer.write_all(b"half").unwrap();
    drop(writer);
    assert_eq!(saved(&opened.snapshots, "a", 1), None);
    drop(opened);
    fs::write(dir.path().join("snapshots/tmp/3"), b"left by a stop").unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    assert_eq!(opened.snapshots.size().unwrap(), 0);
}

#[test]
fn a_damaged_state_is_never_handed_out() {
    let dir = tempdir().unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    save(&opened.snapshots, "a", 1, "state");
    let path = opened.snapshots.path(&resource("a"), SnapshotId(1)).unwrap().unwrap();
    fs::write(&path, "stats").unwrap();
    let error = opened.snapshots.open_verified(&resource("a"), SnapshotId(1)).unwrap_err();
    assert!(matches!(&error, SnapshotError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("snapshot 1 of resource `a`"), "{error}");
}
