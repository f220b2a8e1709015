//! Contents: stored once, whole or not at all, kept as long as needed and no longer.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use cheops_core::engine::Record;
use cheops_core::model::{BlobId, Entry, Extension, FileRef, OperationId, Payload, ResourceId};
use cheops_store::{BlobError, Blobs, ProgressReporter, StoreOptions, Stored};
use tempfile::tempdir;

use crate::crash::blob_files;
use crate::support::{
    Clock, OnDisk, Twin, contract, entry, id, open_paris, operation, pruned, with_payload,
};

const MINUTE: Duration = Duration::from_secs(60);

fn new() -> OnDisk {
    OnDisk::new(Clock::default().options(MINUTE))
}

fn store(blobs: &dyn Blobs, content: &[u8]) -> Stored {
    let mut writer = blobs.create().unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn name_of(content: &[u8]) -> BlobId {
    BlobId(*blake3::hash(content).as_bytes())
}

fn file_of(disk: &OnDisk, id: &BlobId) -> PathBuf {
    let name = id.to_string();
    disk.dir.path().join("blobs").join(&name[..2]).join(&name[2..])
}

/// Lets the store look for what nobody needs.
fn next_batch(disk: &mut dyn Twin) {
    disk.keep(&[entry("other", id("paris", 1))], &[]).unwrap();
}

/// A request whose body is this, with that beside it as its content.
fn request(n: u64, named: &[u8], brought: &[u8]) -> Record {
    let body = Some(FileRef::of("body", named));
    let (service, method, path) = ("kv".into(), "PUT".into(), "/".into());
    let http = Payload::Http { service, method, path, headers: vec![], body, service_ref: None };
    let Record::Entry(of, entry) = with_payload("a", id("paris", n), http) else { panic!("none") };
    let beside = Extension { name: "body".into(), must_understand: false, value: brought.to_vec() };
    let entry = Entry::new(&of, Default::default(), entry.body.clone(), vec![beside]);
    Record::Entry(of, entry.into())
}

contract! {
    fn a_content_is_named_by_its_hash_and_stored_once(disk, _clock; MINUTE) {
        let blobs = &*disk.blobs();
        let (first, second) = (store(blobs, b"hello"), store(blobs, b"hello"));
        assert_eq!((first.id, first.size), (name_of(b"hello"), 5));
        assert_eq!(second.id, first.id);
        let mut text = String::new();
        blobs.open_checked(first.id, 0).unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(blobs.size().unwrap(), 5);
    }

    fn what_is_not_here_is_no_error_to_look_for(disk, _clock; MINUTE) {
        let blobs = &*disk.blobs();
        let id = name_of(b"nowhere");
        assert!(!blobs.contains(&id));
        assert!(blobs.open_checked(id, 0).unwrap().is_none());
        let dir = tempdir().unwrap();
        let copy = dir.path().join("copy");
        assert!(matches!(blobs.copy_to(&id, &copy), Err(BlobError::Missing { .. })));
        assert!(!copy.exists());
    }

    fn a_writer_that_is_dropped_leaves_nothing(disk, _clock; MINUTE) {
        let mut writer = disk.blobs().create().unwrap();
        writer.write_all(b"half").unwrap();
        drop(writer);
        assert_eq!(disk.blobs().size().unwrap(), 0);
    }

    fn a_content_stays_while_an_operation_needs_it_and_goes_with_the_last_one(disk, _clock; MINUTE) {
        let stored = store(&*disk.blobs(), b"shared");
        let blob = stored.id;
        let body = Some(FileRef { name: "body".into(), blob, size: 6 });
        let (service, method, path) = ("kv".into(), "PUT".into(), "/".into());
        let http = Payload::Http { service, method, path, headers: vec![], body, service_ref: None };
        let (first, second) =
            (operation("a", id("paris", 1), &[blob]), with_payload("b", id("paris", 2), http));
        disk.keep(&[first, second], &[]).unwrap();
        drop(stored);
        next_batch(disk);
        disk.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        assert!(disk.blobs().contains(&blob), "the second still needs it");
        disk.restart();
        assert!(disk.blobs().contains(&blob));
        disk.keep(&[pruned("b", [id("paris", 2)])], &[]).unwrap();
        assert!(!disk.blobs().contains(&blob));
    }

    fn a_content_that_an_entry_brings_along_is_found_by_its_hash_until_that_is_pruned(disk, _clock; MINUTE) {
        let batch = [request(1, b"named", b"else"), request(2, b"named", b"named")];
        disk.keep(&batch[..1], &[]).unwrap();
        let found = |disk: &dyn Twin, content| disk.feed().inline_body(&name_of(content));
        assert_eq!(found(disk, b"named").unwrap(), None, "what it brings is not what it names");
        disk.keep(&batch[1..], &[]).unwrap();
        disk.restart();
        assert_eq!(found(disk, b"named").unwrap().as_deref(), Some(&b"named"[..]));
        assert_eq!(found(disk, b"else").unwrap(), None);
        assert_eq!(disk.blobs().size().unwrap(), 0, "there is no file");
        disk.keep(&[pruned("a", [id("paris", 2)])], &[]).unwrap();
        assert_eq!(found(disk, b"named").unwrap(), None);
    }

    fn a_content_that_every_site_has_made_use_of_goes_before_its_operation(disk, _clock; MINUTE) {
        let stored = store(&*disk.blobs(), b"large");
        let blob = stored.id;
        let batch = [operation("a", id("paris", 1), &[blob]), operation("a", id("paris", 2), &[blob])];
        disk.keep(&batch, &[]).unwrap();
        drop(stored);
        let shed = |numbers: &[u64]| {
            let operations = numbers.iter().map(|n| OperationId(id("paris", *n))).collect();
            Record::Shed(ResourceId::new("a").unwrap(), operations)
        };
        disk.keep(&[shed(&[1])], &[]).unwrap();
        next_batch(disk);
        assert!(disk.blobs().contains(&blob), "the second still needs it");
        disk.keep(&[shed(&[1, 2])], &[]).unwrap();
        next_batch(disk);
        assert!(!disk.blobs().contains(&blob));
        disk.restart();
        assert!(!disk.blobs().contains(&blob));
        let records = disk.records();
        let of_a = |record: &&Record| matches!(record, Record::Entry(of, _) if of.as_str() == "a");
        assert_eq!(records.iter().filter(of_a).count(), 2, "the operations are there");
    }

    fn an_operation_that_takes_over_a_content_in_the_batch_that_prunes_the_other_keeps_it(disk, _clock; MINUTE) {
        let stored = store(&*disk.blobs(), b"kept");
        let blob = stored.id;
        disk.keep(&[operation("a", id("paris", 1), &[blob])], &[]).unwrap();
        drop(stored);
        let batch = [pruned("a", [id("paris", 1)]), operation("a", id("paris", 2), &[blob])];
        disk.keep(&batch, &[]).unwrap();
        next_batch(disk);
        assert!(disk.blobs().contains(&blob));
    }

    fn a_pinned_content_stays_and_an_unpinned_one_that_nobody_took_goes(disk, _clock; MINUTE) {
        let stored = store(&*disk.blobs(), b"uploading");
        let blob = stored.id;
        let second = disk.blobs().pin(blob);
        next_batch(disk);
        drop(stored);
        next_batch(disk);
        assert!(disk.blobs().contains(&blob), "one pin is left");
        drop(second);
        next_batch(disk);
        assert!(!disk.blobs().contains(&blob));
    }

    fn a_content_pruned_while_it_is_uploaded_again_is_there_for_the_new_operation(disk, _clock; MINUTE) {
        let stored = store(&*disk.blobs(), b"again");
        let blob = stored.id;
        disk.keep(&[operation("a", id("paris", 1), &[blob])], &[]).unwrap();
        drop(stored);
        let again = store(&*disk.blobs(), b"again");
        disk.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        assert!(disk.blobs().contains(&blob));
        disk.keep(&[operation("a", id("paris", 2), &[blob])], &[]).unwrap();
        drop(again);
        next_batch(disk);
        assert!(disk.blobs().contains(&blob));
    }

    fn uploads_and_removals_of_one_content_never_lose_it(disk, _clock; MINUTE) {
        let blobs = disk.blobs();
        let (sender, uploads) = std::sync::mpsc::sync_channel(2);
        let uploader = std::thread::spawn(move || {
            for _ in 0..200 {
                sender.send(store(&*blobs, b"contended")).unwrap();
            }
        });
        for (n, stored) in (1..).zip(uploads) {
            let blob = stored.id;
            disk.keep(&[operation("a", id("paris", n), &[blob])], &[]).unwrap();
            drop(stored);
            assert!(disk.blobs().contains(&blob), "operation {n} has no content");
            disk.keep(&[pruned("a", [id("paris", n)])], &[]).unwrap();
        }
        uploader.join().unwrap();
        next_batch(disk);
        assert_eq!(disk.blobs().size().unwrap(), 0);
    }

    fn what_came_whole_for_an_operation_that_did_not_is_not_fetched_again(disk, _clock; MINUTE) {
        let content = b"from another site";
        let (blob, size) = (name_of(content), content.len() as u64);
        let fetch = |disk: &dyn Twin| {
            let mut partial = disk.blobs().partial(blob, size).unwrap();
            let missing = usize::try_from(size - partial.offset()).unwrap();
            partial.write_all(&content[content.len() - missing..]).unwrap();
            (missing, partial.finish().unwrap())
        };
        drop(fetch(disk));
        next_batch(disk);
        assert!(!disk.blobs().contains(&blob), "nobody refers to it");
        let (missing, arrived) = fetch(disk);
        assert_eq!(missing, 0);

        disk.keep(&[operation("a", id("lyon", 1), &[blob])], &[]).unwrap();
        drop(arrived);
        disk.keep(&[entry("other", id("paris", 2))], &[]).unwrap();
        disk.keep(&[pruned("a", [id("lyon", 1)])], &[]).unwrap();
        disk.keep(&[entry("other", id("paris", 3))], &[]).unwrap();
        assert_eq!(disk.blobs().size().unwrap(), 0, "it was of use, and is of none any more");
    }

    fn what_was_fetched_of_a_content_goes_when_it_comes_from_elsewhere_or_is_given_up(disk, _clock; MINUTE) {
        let blobs = &*disk.blobs();
        blobs.partial(name_of(b"content"), 7).unwrap().write_all(b"con").unwrap();
        let stored = store(blobs, b"content");
        assert_eq!(blobs.size().unwrap(), 7);
        drop(stored);
        let mut partial = blobs.partial(name_of(b"other"), 5).unwrap();
        partial.write_all(b"oth").unwrap();
        partial.discard().unwrap();
        assert_eq!(blobs.partial(name_of(b"other"), 5).unwrap().offset(), 0);
    }

    fn fetching_goes_on_where_it_was_left_even_after_a_restart(disk, _clock; MINUTE) {
        // No operation refers to it: one is taken in when its files are here.
        let content = b"from another site";
        let (blob, size) = (name_of(content), content.len() as u64);
        let mut partial = disk.blobs().partial(blob, size).unwrap();
        partial.write_all(&content[..5]).unwrap();
        assert!(matches!(disk.blobs().partial(blob, size), Err(BlobError::BeingFetched { .. })));
        drop(partial);
        next_batch(disk);
        disk.restart();
        let mut partial = disk.blobs().partial(blob, size).unwrap();
        assert_eq!(partial.offset(), 5);
        partial.write_all(&content[5..]).unwrap();
        let stored = partial.finish().unwrap();
        assert_eq!((stored.id, stored.size), (blob, size));
        assert!(disk.blobs().open_checked(blob, 0).unwrap().is_some());
        assert_eq!(disk.blobs().size().unwrap(), size, "it is here once");
    }

    fn what_is_fetched_too_short_is_kept_and_what_is_wrong_is_thrown_away(disk, _clock; MINUTE) {
        let blobs = &*disk.blobs();
        let blob = name_of(b"right");
        let mut partial = blobs.partial(blob, 5).unwrap();
        partial.write_all(b"wro").unwrap();
        let error = partial.finish().unwrap_err();
        assert!(matches!(error, BlobError::Incomplete { have: 3, size: 5, .. }), "{error:?}");
        let mut partial = blobs.partial(blob, 5).unwrap();
        assert_eq!(partial.offset(), 3);
        assert!(partial.write_all(b"too much").is_err());
        partial.write_all(b"ng").unwrap();
        let error = partial.finish().unwrap_err();
        assert!(matches!(error, BlobError::WrongContent { got, .. } if got == name_of(b"wrong")));
        assert!(!blobs.contains(&blob));
        assert_eq!(blobs.partial(blob, 5).unwrap().offset(), 0);
    }
}

#[test]
fn a_copy_does_not_miss_the_file_of_a_content_that_is_in_the_log() {
    let mut disk = new();
    disk.keep(&[request(1, b"named", b"named"), request(2, b"gone", b"else")], &[]).unwrap();
    let copy = disk.dir.path().join("copy");
    let copied = disk.opened().backup.to(&copy, &ProgressReporter::default()).unwrap();
    assert_eq!((copied.files, copied.missing), (0, 1));
}

#[test]
fn what_a_stop_left_behind_is_swept_when_the_store_is_opened() {
    let mut disk = new();
    let stored = store(&*disk.opened().blobs, b"needed");
    disk.keep(&[operation("a", id("paris", 1), &[stored.id])], &[]).unwrap();
    std::mem::forget(store(&*disk.opened().blobs, b"never referred to"));
    let dir = disk.dir.path().join("blobs");
    fs::write(dir.join("tmp/17"), b"half").unwrap();
    fs::write(dir.join("README"), b"not ours").unwrap();
    let blob = stored.id;
    drop(stored);
    // Stops without letting anyone clean up.
    let copy = tempdir().unwrap();
    let status = std::process::Command::new("cp")
        .arg("-r")
        .arg(disk.dir.path())
        .arg(copy.path().join("data"))
        .status();
    assert!(status.unwrap().success());
    let data = copy.path().join("data");
    let opened = open_paris(&data, StoreOptions::default()).unwrap();
    assert_eq!(blob_files(&data), [blob.to_string()]);
    assert!(opened.blobs.open_checked(blob, 0).unwrap().is_some());
    assert_eq!(fs::read_dir(data.join("blobs/tmp")).unwrap().count(), 0);
    assert!(data.join("blobs/README").exists());
}

#[test]
fn a_damaged_content_is_never_handed_out_and_can_be_stored_anew() {
    let disk = new();
    let blobs = &*disk.opened().blobs;
    let content = vec![7; 200_000];
    let stored = store(blobs, &content);
    let path = file_of(&disk, &stored.id);
    let mut damaged = content.clone();
    damaged[150_000] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let aside = disk.dir.path().join("blobs/damaged").join(stored.id.to_string());
    let is_named = |error: BlobError| matches!(&error, BlobError::Corrupt { place, .. } if *place == (&aside).into());
    let mut opened = blobs.open_checked(stored.id, 0).unwrap().unwrap();
    assert!(is_named(opened.next(usize::MAX).unwrap_err()));
    assert!(!blobs.contains(&stored.id), "so it can be fetched");
    assert_eq!(fs::read(&aside).unwrap(), damaged, "so it can be looked at");
    let copy = disk.dir.path().join("copy");
    fs::rename(&aside, &path).unwrap();
    assert!(is_named(blobs.copy_to(&stored.id, &copy).unwrap_err()));
    assert!(!copy.exists(), "a damaged copy was left");
    let again = store(blobs, &content);
    assert!(blobs.open_checked(again.id, 0).unwrap().is_some());
    assert_eq!(blobs.copy_to(&stored.id, &copy).unwrap(), 200_000);
    assert_eq!(fs::read(&copy).unwrap(), content);
}

#[test]
fn nobody_gets_the_whole_of_a_damaged_content() {
    let disk = new();
    let blobs = &*disk.opened().blobs;
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let stored = store(blobs, &content);
    let id = stored.id;
    let sent = |from: u64| {
        let mut blob = blobs.open_checked(id, from)?.expect("it is here");
        let mut sent = Vec::new();
        loop {
            match blob.next(30_000) {
                Ok(piece) if piece.is_empty() => return Ok(sent),
                Ok(mut piece) => sent.append(&mut piece),
                Err(error) => return Err(error),
            }
        }
    };
    for from in [0, 1, 30_000, 399_999, 400_000] {
        assert_eq!(sent(from).unwrap(), content[from as usize..], "from {from}");
    }

    // Also where the damage is in what was sent before, or in the length.
    let flipped = |at: usize| {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        damaged
    };
    let longer = [&content[..], b"more"].concat();
    for damaged in [flipped(5), flipped(399_999), content[..399_000].to_vec(), longer, Vec::new()] {
        fs::write(file_of(&disk, &id), damaged).unwrap();
        assert!(matches!(sent(30_000), Err(BlobError::Corrupt { .. })));
        assert!(blobs.open_checked(id, 0).unwrap().is_none(), "it is no longer offered");
    }
}

#[test]
fn a_content_is_read_once_and_damage_shows_before_its_last_byte() {
    let disk = new();
    let blobs = &*disk.opened().blobs;
    let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let id = store(blobs, &content).id;
    let mut read = Vec::new();
    blobs.open_checked(id, 0).unwrap().unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read, content);

    let mut damaged = content.clone();
    damaged[5] ^= 1;
    fs::write(file_of(&disk, &id), damaged).unwrap();
    // Nothing was read to open it: else this would fail.
    let mut blob = blobs.open_checked(id, 0).unwrap().unwrap();
    let mut read = Vec::new();
    assert!(blob.read_to_end(&mut read).is_err());
    assert!(read.len() < content.len());
}

#[test]
fn who_sees_the_damage_late_leaves_alone_what_took_its_place() {
    let disk = new();
    let blobs = &*disk.opened().blobs;
    let stored = store(blobs, b"right");
    fs::write(file_of(&disk, &stored.id), b"wrong").unwrap();
    let mut early = blobs.open_checked(stored.id, 0).unwrap().unwrap();
    let mut late = blobs.open_checked(stored.id, 0).unwrap().unwrap();
    assert!(early.next(10).is_err());
    let again = store(blobs, b"right");
    assert!(late.next(10).is_err());
    assert!(blobs.open_checked(again.id, 0).unwrap().is_some());
}

#[test]
fn what_was_fetched_of_a_content_goes_when_nobody_went_on_with_it_for_long() {
    const DAYS_6: Duration = Duration::from_secs(6 * 24 * 60 * 60);
    let clock = Clock::default();
    let mut disk = OnDisk::new(clock.options(Duration::from_secs(60)));
    let leave = |disk: &OnDisk, content: &[u8], age: Duration| {
        let mut partial = disk.opened().blobs.partial(name_of(content), 17).unwrap();
        partial.write_all(b"from").unwrap();
        drop(partial);
        let path = disk.dir.path().join("blobs/partial").join(name_of(content).to_string());
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    };
    let recent = leave(&disk, b"recent", DAYS_6);
    let at_start = leave(&disk, b"at start", DAYS_6 * 2);
    disk.restart();
    assert_eq!([recent.exists(), at_start.exists()], [true, false]);

    let left = leave(&disk, b"left", DAYS_6 * 2);
    let again = leave(&disk, b"again", DAYS_6 * 2);
    let partial = disk.opened().blobs.partial(name_of(b"again"), 17).unwrap();
    assert_eq!(partial.offset(), 4, "whoever goes on with it is in time");
    clock.set(2 * 60 * 60 * 1000);
    next_batch(&mut disk);
    assert_eq!([recent.exists(), left.exists(), again.exists()], [true, false, true]);
}
