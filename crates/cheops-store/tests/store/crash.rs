//! `kill -9`: what was acknowledged is there, and nothing is there by half.
//!
//! The child is this very test binary, started again for one test that is told by its environment
//! what to do. It says on its standard error what is done.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cheops_core::model::BlobId;
use cheops_store::{Blobs, ProgressReporter, Seq, StoreOptions, Voucher};
use tempfile::tempdir;

use crate::history::{LogContent, batch, content_after_each, everything, options};
use crate::support::{Clock, id, open_paris, operation};
use crate::upgrade;

const DIR: &str = "CHEOPS_STORE_TEST_DIR";
const DO: &str = "CHEOPS_STORE_TEST_DO";

/// More than a child lives to write.
const BATCHES: u64 = 4000;

struct ChildProcess {
    child: Child,
    says: BufReader<ChildStderr>,
}

impl ChildProcess {
    fn start(what: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .env(DO, what)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stderr.take().unwrap());
        Self { child, says }
    }

    fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        // A last line that was cut off was not said.
        (self.says.read_line(&mut line).unwrap() > 0 && line.ends_with('\n'))
            .then(|| line.trim().to_string())
    }

    /// Whether it came to its end, rather than being ended.
    fn ends_well(mut self) -> bool {
        while self.next_line().is_some() {}
        self.child.wait().unwrap().success()
    }

    /// Kills it and hears what it still had said.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.next_line()).collect()
    }
}

#[test]
fn child() {
    let (Some(dir), Some(what)) = (std::env::var_os(DIR), std::env::var_os(DO)) else { return };
    match what.to_str().unwrap().split_once(' ').unwrap_or((what.to_str().unwrap(), "")) {
        ("append", _) => append(Path::new(&dir)),
        ("blobs", _) => write_blobs(Path::new(&dir)),
        ("move", stop) => move_until(Path::new(&dir), stop.parse().unwrap()),
        (other, _) => panic!("{other}"),
    }
}

/// Goes on with the history from where it was left, for ever.
fn append(dir: &Path) {
    let clock = Clock::default();
    let mut opened = open_paris(dir, options(&clock)).unwrap();
    let done = batches_in(opened.feed.last_seq().unwrap().0);
    for n in done + 1..=BATCHES {
        clock.set(n);
        let (records, notices) = batch(n);
        opened.log.keep(&records, &notices).unwrap();
        eprintln!("batch {n}");
        if n % 3 == 0 {
            opened.log.settle().unwrap();
        }
        opened.feed.set_cursor("batches", Seq(n)).unwrap();
        eprintln!("cursor {n}");
    }
}

/// What was acknowledged.
#[derive(Debug, Default)]
struct Acknowledged {
    batches: u64,
    cursor: u64,
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        match line.split_once(' ').unwrap() {
            ("batch", n) => self.batches = n.parse().unwrap(),
            ("cursor", n) => self.cursor = n.parse().unwrap(),
            _ => panic!("{line}"),
        }
    }
}

/// How many batches of the history make so many rows.
fn batches_in(rows: u64) -> u64 {
    let mut written = 0;
    for n in 1.. {
        let (records, notices) = batch(n);
        written += u64::try_from(records.len() + notices.len()).unwrap();
        if written > rows {
            return n - 1;
        }
    }
    0
}

fn content_of(dir: &Path) -> (LogContent, u64) {
    let clock = Clock::default();
    let opened = open_paris(dir, options(&clock)).unwrap();
    let changes = everything(|after| opened.feed.changes_since(after, None, usize::MAX));
    let last = opened.feed.last_seq().unwrap();
    let cursor = opened.feed.cursor("batches").unwrap().map_or(0, |seq| seq.0);
    (LogContent { records: opened.records, changes, last }, cursor)
}

#[test]
fn killed_at_any_moment_a_store_has_whole_batches_and_all_that_were_acknowledged() {
    let dir = tempdir().unwrap();
    let expected = content_after_each(1000);
    let mut acknowledged = Acknowledged::default();
    for round in 0..40u32 {
        let mut child = ChildProcess::start("append", dir.path());
        // From before the first one on: in the end the log has been through checkpoints too.
        for _ in 0..round % 25 {
            acknowledged.hear(&child.next_line().unwrap());
        }
        child.kill().iter().for_each(|line| acknowledged.hear(line));
        let (content, cursor) = content_of(dir.path());
        let batches = batches_in(content.last.0);
        assert!(batches >= acknowledged.batches, "round {round}: {batches} of {acknowledged:?}");
        assert!(content.is(&expected[usize::try_from(batches).unwrap()]), "round {round}");
        assert!(cursor >= acknowledged.cursor && cursor <= batches, "{cursor} of {acknowledged:?}");
    }
    assert!(acknowledged.batches > 200, "hardly anything was written: {acknowledged:?}");
}

/// Writes one content after the other, in small pieces, and refers to every second one.
fn write_blobs(dir: &Path) {
    let mut opened = open_paris(dir, StoreOptions::default()).unwrap();
    let first = opened.feed.last_seq().unwrap().0 + 1;
    for n in first.. {
        let mut writer = opened.blobs.create().unwrap();
        for _ in 0..64 {
            writer.write_all(&n.to_le_bytes()).unwrap();
        }
        let stored = writer.finish().unwrap();
        eprintln!("{n} {} stored", stored.id);
        let files = if n % 2 == 0 { vec![stored.id] } else { vec![] };
        opened.log.keep(&[operation("a", id("paris", n), &files)], &[]).unwrap();
        eprintln!("{n} {} committed", stored.id);
    }
}

#[test]
fn killed_at_any_moment_every_content_referred_to_is_whole_and_no_other_is_left() {
    let dir = tempdir().unwrap();
    let mut committed = Vec::new();
    for round in 0..20usize {
        let mut child = ChildProcess::start("blobs", dir.path());
        let mut said: Vec<_> = (0..round).map(|_| child.next_line().unwrap()).collect();
        said.extend(child.kill());
        for line in said {
            let words: Vec<_> = line.split(' ').collect();
            if words[2] == "committed" && words[0].parse::<u64>().unwrap().is_multiple_of(2) {
                committed.push(words[1].to_string());
            }
        }
        let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
        let kept = blob_files(dir.path());
        for id in &committed {
            assert!(kept.contains(id), "round {round}: {id} is missing");
        }
        let referred = opened.records.len() / 2;
        assert!(kept.len() <= referred + 1, "round {round}: {} of {referred}", kept.len());
        verify_all(&*opened.blobs, &kept);
        assert_eq!(files_in(&dir.path().join("blobs/tmp")), 0, "round {round}");
    }
    assert!(committed.len() > 10, "{committed:?}");
}

fn verify_all(blobs: &dyn Blobs, names: &[String]) {
    for name in names {
        let hash = blake3::Hash::from_hex(name).unwrap();
        let mut blob = blobs.open_checked(BlobId(*hash.as_bytes()), 0).unwrap().unwrap();
        std::io::copy(&mut blob, &mut std::io::sink()).unwrap();
    }
}

fn files_in(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

pub(crate) fn blob_files(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for first in fs::read_dir(dir.join("blobs")).unwrap() {
        let first = first.unwrap();
        if first.file_name().len() == 2 {
            for rest in fs::read_dir(first.path()).unwrap() {
                let rest = rest.unwrap().file_name();
                names.push(format!("{}{}", first.file_name().display(), rest.display()));
            }
        }
    }
    names
}

/// Opens a directory of the format before, and is gone at that step: nothing is unwound, closed or
/// rolled back.
fn move_until(dir: &Path, stop: usize) {
    let step = Arc::new(AtomicUsize::new(0));
    let next = move || {
        if step.fetch_add(1, Ordering::Relaxed) == stop {
            std::process::abort();
        }
    };
    let (told, vouching) = (next.clone(), next);
    let progress = ProgressReporter::new(move |_| told());
    let vouch = Voucher::new(move |entries| {
        vouching();
        upgrade::vouch(entries);
        vouching();
    });
    let options = StoreOptions { progress, vouch, ..upgrade::options() };
    drop(upgrade::open_every(dir, options).unwrap());
}

#[test]
fn ended_at_any_step_of_the_move_from_the_format_before_all_is_there_and_vouched_for() {
    let open = |dir: &Path| {
        let vouch = Voucher::new(upgrade::vouch);
        upgrade::open_every(dir, StoreOptions { vouch, ..upgrade::options() }).unwrap()
    };
    let whole = {
        let dir = upgrade::every();
        upgrade::all_of(&open(dir.path()))
    };
    let mut stops = 0;
    loop {
        let dir = upgrade::every();
        let came_to_its_end = ChildProcess::start(&format!("move {stops}"), dir.path()).ends_well();
        for start in ["first", "second"] {
            let opened = open(dir.path());
            assert_eq!(upgrade::all_of(&opened), whole, "{start} after it ended at step {stops}");
            let entries = upgrade::entries(&opened);
            assert!(!entries.is_empty());
            assert!(entries.iter().all(|entry| entry.proof().is_some()), "step {stops}");
        }
        if came_to_its_end {
            break;
        }
        stops += 1;
    }
    // Three of them while it vouches.
    assert!(stops >= 13, "only {stops} steps were told");
}
