//! No room: writes are refused by name, reads go on, and all is well once there is room again.
//!
//! On a small file system of its own, where this machine lets us mount one in a namespace. Where
//! it does not, a limit on the size of files does nearly the same, and needs only a shell.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use cheops_core::engine::Record;
use cheops_core::model::Incarnation;
use cheops_store::{AppendError, BlobError, Opened, Seq};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::tempdir;

use crate::support::{Clock, OnDisk, Twin, entry, id, open_paris, pruned, site};

const DIR: &str = "CHEOPS_STORE_TEST_SMALL_DIR";
const ROOM: &str = "CHEOPS_STORE_TEST_ROOM";

fn assert_success(status: ExitStatus) {
    assert!(status.success(), "code {:?}, signal {:?}", status.code(), status.signal());
}

/// This test binary again, for one of the children below, after the shell did what is said.
fn script(before: &str, child: &str) -> String {
    format!("{before} exec \"$0\" full::{child} --exact --nocapture --test-threads=1")
}

#[test]
fn a_file_system_without_room_refuses_batches_by_name_until_there_is_room() {
    let dir = tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=3m none \"${DIR}\"");
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
        command.env(DIR, dir.path()).env(ROOM, "file system").status()
    };
    // The mount is gone with the child, whatever becomes of that.
    if !run(&mount).is_ok_and(|status| status.success()) {
        eprintln!("no file system can be mounted here: only the limit on files is tested");
        return;
    }
    assert_success(run(&script(&format!("{mount} &&"), "child_without_room")).unwrap());
}

#[test]
fn files_that_may_not_grow_refuse_batches_until_they_may() {
    let dir = tempdir().unwrap();
    // In blocks of 512 bytes. The signal that comes along would end the child.
    let script = script("trap '' XFSZ; ulimit -S -f 900;", "child_without_room");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    assert_success(command.env(DIR, dir.path()).env(ROOM, "file size").status().unwrap());
}

#[test]
fn tables_that_cannot_take_a_batch_over_stay_as_they_are_and_take_it_later() {
    let mut disk = OnDisk::new(Clock::default().options(Duration::from_secs(60)));
    let before = [entry("a", id("paris", 1)), Record::Incarnation(site("lyon"), Incarnation(1))];
    disk.keep(&before, &[]).unwrap();
    let changes = disk.changes(0, None, 9).unwrap();
    let db = rusqlite::Connection::open(disk.dir.path().join("log.db")).unwrap();
    db.execute_batch(
        "CREATE TRIGGER poison BEFORE INSERT ON changes WHEN new.resource = 'poison' \
         BEGIN SELECT RAISE(FAIL, 'poison'); END",
    )
    .unwrap();
    let batch = [
        entry("a", id("paris", 2)),
        Record::Incarnation(site("lyon"), Incarnation(2)),
        pruned("a", [id("paris", 1)]),
        entry("poison", id("paris", 3)),
    ];
    disk.opened_mut().log.keep(&batch, &[]).unwrap();
    assert!(disk.opened_mut().log.settle().is_err());
    assert_eq!(disk.changes(0, None, 9).unwrap(), changes);
    assert_eq!(disk.records(), [&before[..], &batch].concat(), "it is kept all the same");
    db.execute_batch("DROP TRIGGER poison").unwrap();
    disk.opened_mut().log.settle().unwrap();
    assert_eq!(disk.records(), batch);
    disk.restart();
    assert_eq!(disk.records(), batch);
}

fn big(n: u64) -> [Record; 2] {
    let long = "x".repeat(200);
    [entry(&format!("{long}{n}"), id("paris", n)), entry("a", id("paris", n))]
}

/// Batches until one is refused.
fn fill(opened: &mut Opened, mut n: u64) -> (u64, AppendError) {
    loop {
        let batch: Vec<_> = (0..50).flat_map(|_| big(n)).collect();
        match opened.log.keep(&batch, &[]) {
            Ok(()) => n += 1,
            Err(error) => return (n - 1, error),
        }
        assert!(n < 100_000, "there is no end to the room");
    }
}

#[test]
fn child_without_room() {
    let (Some(dir), Some(room)) = (std::env::var_os(DIR), std::env::var_os(ROOM)) else { return };
    let (dir, is_fs) = (Path::new(&dir).join("data"), room == "file system");
    let clock = Clock::default();
    let options = clock.options(Duration::from_secs(60));
    let mut opened = open_paris(&dir, options.clone()).unwrap();
    let ballast = ballast(&dir, is_fs);

    let (written, error) = fill(&mut opened, 1);
    assert!(written > 2, "{error:?}");
    assert_eq!(error.is_full(), is_fs, "{error:?}");
    assert!(error.hint().is_some());

    // Reads go on, and of the refused batch there is nothing.
    let expected: Vec<_> = (1..=written).flat_map(|n| (0..50).flat_map(move |_| big(n))).collect();
    let changes = opened.feed.changes_since(Seq(0), None, usize::MAX).unwrap();
    assert!(changes.items.len() <= expected.len());
    assert_eq!(opened.log.records().unwrap(), expected);
    assert!(matches!(fill(&mut opened, written + 1), (n, _) if n == written));
    if is_fs {
        let full = opened.blobs.create().and_then(|mut blob| {
            let io = |source| BlobError::Io { doing: "write", place: "".into(), source };
            blob.write_all(&vec![0; 4 << 20]).map_err(io)
        });
        assert!(full.unwrap_err().is_full());
    }

    // With room again, all goes on: in this incarnation and in the next.
    make_room(ballast);
    opened.log.keep(&big(written + 1), &[]).unwrap();
    drop(opened);
    let mut opened = open_paris(&dir, options).unwrap();
    assert_eq!(opened.records.len(), expected.len() + 2);
    opened.log.keep(&big(written + 2), &[]).unwrap();
}

/// What can be taken away to make room.
enum Ballast {
    File(PathBuf),
    Limit,
}

fn ballast(dir: &Path, is_fs: bool) -> Ballast {
    if !is_fs {
        return Ballast::Limit;
    }
    let path = dir.join("ballast");
    // As much as the log and its write-ahead log may take together.
    fs::write(&path, vec![1; 2 << 20]).unwrap();
    Ballast::File(path)
}

fn make_room(ballast: Ballast) {
    match ballast {
        Ballast::File(path) => fs::remove_file(path).unwrap(),
        Ballast::Limit => {
            let now = getrlimit(Resource::Fsize);
            setrlimit(Resource::Fsize, Rlimit { current: now.maximum, ..now }).unwrap();
        }
    }
}

#[test]
fn a_batch_that_no_journal_has_room_for_is_kept_like_any_other() {
    let mut disk = OnDisk::new(Clock::default().options(Duration::from_secs(60)));
    let small = |n| vec![entry("a", id("paris", n))];
    let large: Vec<_> = (0..400).flat_map(|_| big(2)).collect();
    for batch in [&small(1), &large, &small(3), &large] {
        disk.opened_mut().log.keep(batch, &[]).unwrap();
    }
    let expected = [small(1), large.clone(), small(3), large].concat();
    assert_eq!(disk.records(), expected);
    disk.restart();
    assert_eq!(disk.records(), expected);
}
