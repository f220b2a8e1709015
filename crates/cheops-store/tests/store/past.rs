//! History: what no site needs any more can be read for its retention, within its bound, and no longer.

use std::io::Write;
use std::time::Duration;

use cheops_core::engine::{Notice, PastDecision};
use cheops_core::model::{BlobId, OperationId};
use cheops_store::{ChangeKind, MOST_KEPT_BODY, PastFrom, Seq, StoreOptions};

use crate::support::{
    Clock, InMemory, OnDisk, Twin, contract, converged, entry, id, open_paris, operation, pruned,
    reply, resource,
};

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAY_MS: u64 = 24 * 3600 * 1000;

fn places(log: &dyn Twin, of: &str, from: PastFrom, limit: usize) -> (Vec<(u64, bool)>, bool) {
    let past = log.feed().past(&resource(of), from, limit).unwrap();
    (past.items.iter().map(|past| (past.change.seq.0, past.pruned)).collect(), past.more)
}

fn left_out(n: u64) -> Notice {
    let decision = PastDecision {
        operation: OperationId(id("paris", n)),
        by: Some(OperationId(id("paris", n + 2))),
        why: "replaced".into(),
    };
    Notice::LeftOut(resource("a"), vec![decision])
}

/// Hands in an operation with these contents.
fn hand_in(log: &mut dyn Twin, n: u64, contents: &[&[u8]]) -> Vec<BlobId> {
    let stored = contents.iter().map(|content| {
        let mut writer = log.blobs().create().unwrap();
        writer.write_all(content).unwrap();
        writer.finish().unwrap()
    });
    let stored: Vec<_> = stored.collect();
    let blobs: Vec<_> = stored.iter().map(|stored| stored.id).collect();
    log.keep(&[operation("a", id("paris", n), &blobs)], &[]).unwrap();
    drop(stored);
    log.keep(&[], &[converged("other")]).unwrap();
    blobs
}

contract! {
    fn what_was_pruned_is_read_page_by_page_in_either_direction(log, clock; DAY) {
        let (op, answer) = (id("paris", 1), id("paris", 2));
        log.keep(&[entry("a", op.clone()), reply("a", answer, op.clone())], &[]).unwrap();
        log.keep(&[entry("b", id("paris", 3)), entry("a", id("paris", 4))], &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 2)])], &[left_out(1)]).unwrap();
        log.restart();
        let latest = places(log, "a", PastFrom::Latest, 9);
        assert_eq!(latest, (vec![(6, false), (4, false), (2, true), (1, true)], false));
        assert_eq!(places(log, "a", PastFrom::Latest, 2), (vec![(6, false), (4, false)], true));
        let before = places(log, "a", PastFrom::Before(Seq(4)), 9);
        assert_eq!(before, (vec![(2, true), (1, true)], false));
        let after = places(log, "a", PastFrom::After(Seq(1)), 2);
        assert_eq!(after, (vec![(2, true), (4, false)], true));
        assert!(!log.feed().past(&resource("a"), PastFrom::Latest, 1).unwrap().dropped);

        // It is found by its name alone, and so is what is needed still.
        let found = log.feed().entry(&op).unwrap().unwrap();
        assert!(found.pruned && found.change.what.resource() == Some(&resource("a")));
        let live = log.feed().entry(&id("paris", 3)).unwrap().unwrap();
        assert!(!live.pruned && live.change.what.resource() == Some(&resource("b")));
        assert_eq!(log.feed().entry(&id("lyon", 1)).unwrap(), None);

        // Once its retention has passed, it is gone, and that is said.
        clock.set(DAY_MS);
        log.keep(&[], &[converged("b")]).unwrap();
        assert_eq!(places(log, "a", PastFrom::Latest, 9), (vec![(4, false)], false));
        assert!(log.feed().past(&resource("a"), PastFrom::Latest, 9).unwrap().dropped);
        assert_eq!(log.feed().entry(&op).unwrap(), None);
    }

    fn decisions_come_back_as_they_were_said(log, _clock; DAY) {
        log.keep(&[], &[left_out(1)]).unwrap();
        log.restart();
        let past = log.feed().past(&resource("a"), PastFrom::Latest, 9).unwrap();
        assert_eq!(past.items[0].change.what, ChangeKind::Notice(left_out(1)));
    }

    fn what_history_takes_is_counted_and_the_same_after_a_restart(log, clock; DAY) {
        assert_eq!(log.feed().history_size().bytes, 0);
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[]).unwrap();
        assert_eq!(log.feed().history_size().bytes, 0, "it is needed");
        log.keep(&[pruned("a", [id("paris", 1)])], &[left_out(1)]).unwrap();
        let taken = log.feed().history_size();
        assert!(taken.bytes > 300, "{taken:?}");
        log.restart();
        assert_eq!(log.feed().history_size(), taken);
        clock.set(DAY_MS);
        log.keep(&[entry("b", id("paris", 3))], &[]).unwrap();
        assert_eq!(log.feed().history_size().bytes, 0);
        assert_eq!(log.feed().history_size().cut_ms, None, "it had its time");
    }

    fn a_short_content_can_be_read_for_its_retention_after_it_is_needed(log, clock; DAY) {
        let (short, long) = (vec![7; MOST_KEPT_BODY as usize], vec![8; MOST_KEPT_BODY as usize + 1]);
        let blobs = hand_in(log, 1, &[&short, &long]);
        let (short, long) = (blobs[0], blobs[1]);
        assert_eq!(log.blobs().short(&short).unwrap().unwrap().len(), MOST_KEPT_BODY as usize);
        assert_eq!(log.blobs().short(&long).unwrap(), None);
        log.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        for _ in 0..2 {
            assert!(!log.blobs().contains(&short) && !log.blobs().contains(&long));
            assert_eq!(log.blobs().short(&short).unwrap().unwrap()[0], 7);
            assert_eq!(log.blobs().short(&long).unwrap(), None);
            assert!(log.feed().history_size().bodies >= MOST_KEPT_BODY);
            log.restart();
        }
        clock.set(DAY_MS);
        log.keep(&[entry("b", id("paris", 3))], &[]).unwrap();
        assert_eq!(log.blobs().short(&short).unwrap(), None);
        assert_eq!(log.feed().history_size().bodies, 0);
    }

    fn a_content_that_is_needed_again_is_there_again(log, _clock; DAY) {
        let blob = hand_in(log, 1, &[b"again"])[0];
        log.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        assert!(!log.blobs().contains(&blob));
        assert_eq!(hand_in(log, 2, &[b"again"]), [blob]);
        assert!(log.blobs().contains(&blob));
        assert_eq!(log.blobs().short(&blob).unwrap().unwrap(), b"again");
    }

    fn without_retention_nothing_is_kept(log, _clock; Duration::ZERO) {
        let blob = hand_in(log, 1, &[b"gone"])[0];
        log.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        assert_eq!(places(log, "a", PastFrom::Latest, 9), (vec![], false));
        assert_eq!(log.blobs().short(&blob).unwrap(), None);
        log.keep(&[entry("b", id("paris", 2))], &[]).unwrap();
        assert_eq!(log.feed().history_size().bytes, 0);
    }
}

/// Many entries on one resource, each pruned by the next batch.
fn grow(log: &mut dyn Twin, from: u64, count: u64) {
    for n in from..from + count {
        let records = [entry("a", id("paris", n + 1)), pruned("a", [id("paris", n)])];
        log.keep(&records, &[]).unwrap();
    }
}

fn bounded(most: u64) -> StoreOptions {
    StoreOptions { audit_bytes: most, ..Clock::default().options(DAY) }
}

#[test]
fn beyond_its_bound_the_oldest_history_goes_before_its_time_and_that_is_said() {
    let most = 20_000;
    for twin in [
        &mut OnDisk::new(bounded(most)) as &mut dyn Twin,
        &mut InMemory::new(bounded(most)) as &mut dyn Twin,
    ] {
        grow(twin, 1, 500);
        let size = twin.feed().history_size();
        assert!(size.bytes <= most && size.bytes > 1000, "{size:?}");
        assert_eq!((size.most, size.cut_ms), (most, Some(0)));
        let past = twin.feed().past(&resource("a"), PastFrom::Latest, 10_000).unwrap();
        assert!(past.dropped && past.items.len() > 10);
        assert_eq!(past.items[0].change.seq, Seq(1000 - 1), "the latest is kept");
        let live = twin.records();
        assert!(live.contains(&entry("a", id("paris", 501))), "what is needed stays");
        twin.restart();
        assert_eq!(twin.feed().history_size().bytes, size.bytes);
        assert_eq!(twin.records(), live);
    }
}

#[test]
fn contents_beyond_half_of_the_bound_go_too_the_oldest_first() {
    let clock = Clock::default();
    let options = StoreOptions { audit_bytes: 100_000, ..clock.options(DAY) };
    let mut disk = OnDisk::new(options);
    let mut blobs = Vec::new();
    for n in 1..=20u8 {
        clock.set(u64::from(n));
        let (content, n) = (vec![n; 5000], u64::from(n));
        let blob = hand_in(&mut disk, n, &[&content])[0];
        disk.keep(&[pruned("a", [id("paris", n)])], &[]).unwrap();
        blobs.push(blob);
    }
    let size = disk.feed().history_size();
    assert!(size.bodies <= 50_000, "{size:?}");
    let is_kept = |blob: &BlobId| disk.blobs().short(blob).unwrap().is_some();
    let kept: Vec<bool> = blobs.iter().map(is_kept).collect();
    assert!(kept.is_sorted() && !kept[0] && kept[19], "{kept:?}");
}

#[test]
fn a_directory_of_format_4_opens_with_all_it_held_and_entries_are_found_by_name() {
    let clock = Clock::default();
    let mut disk = OnDisk::new(clock.options(DAY));
    grow(&mut disk, 1, 10);
    let records = disk.records();
    let dir = disk.dir.path().to_path_buf();
    disk.stop();
    // All that format 4 lacks.
    let db = rusqlite::Connection::open(dir.join("log.db")).unwrap();
    db.execute_batch("DROP INDEX entries_by_name; PRAGMA user_version = 4").unwrap();
    drop(db);
    for _ in 0..2 {
        let opened = open_paris(&dir, clock.options(DAY)).unwrap();
        assert_eq!(opened.records, records);
        assert!(opened.feed.entry(&id("paris", 3)).unwrap().unwrap().pruned);
        assert!(opened.feed.history_size().bytes > 0);
    }
    let mark = std::fs::read_to_string(dir.join("site")).unwrap();
    assert!(mark.starts_with("cheops data directory, format 5\n"), "{mark}");
    drop(disk);
}

#[test]
fn what_a_sudden_stop_leaves_of_a_content_is_kept_all_the_same() {
    let clock = Clock::default();
    let mut disk = OnDisk::new(clock.options(DAY));
    let blob = hand_in(&mut disk, 1, &[b"short"])[0];
    // As if the machine had stopped between the batch and the moving of the file.
    let name = blob.to_string();
    let place = disk.dir.path().join("blobs").join(&name[..2]).join(&name[2..]);
    let aside = disk.dir.path().join("aside");
    std::fs::copy(&place, &aside).unwrap();
    disk.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
    std::fs::remove_file(disk.dir.path().join("blobs/kept").join(&name)).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    disk.restart();
    assert!(!disk.blobs().contains(&blob));
    assert_eq!(disk.blobs().short(&blob).unwrap().unwrap(), b"short");
    // Other bytes under that name are nobody's content.
    std::fs::write(disk.dir.path().join("blobs/kept").join(&name), b"other").unwrap();
    assert_eq!(disk.blobs().short(&blob).unwrap(), None);
}
