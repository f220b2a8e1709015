//! Writes a data directory of today's format, with every kind of record and notice, and stops without an
//! end: `cargo run -p cheops-store --example every_record DIRECTORY`. Before the format changes, this makes
//! the directory that the next one has to open: see `tests/fixtures/format-5/README.md`.

#![allow(clippy::unwrap_used, reason = "who makes a fixture looks at it")]

#[path = "../../cheops-record/tests/forms/samples.rs"]
#[allow(dead_code, reason = "messages are not kept")]
mod samples;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cheops_core::engine::Record;
use cheops_core::model::{Entry, EntryBody, FileRef, KeyId, Payload, ResourceId};
use cheops_core::plan::SnapshotId;
use cheops_store::{Seq, StoreOptions, WallClock, open};

fn main() {
    let dir = std::env::args_os().nth(1).unwrap();
    let at = Arc::new(AtomicU64::new(1_800_000_000_000));
    let options = StoreOptions {
        audit_retention: Duration::from_secs(400 * 365 * 24 * 3600),
        journal_bytes: 64 << 10,
        clock: WallClock::new(move || at.fetch_add(1, Ordering::Relaxed)),
        ..StoreOptions::default()
    };
    let mut opened = open(dir.as_ref(), &samples::site("paris"), || 0x5f, options).unwrap();
    opened.certificates.keep_identity(KeyId([9; 32]), b"a certificate").unwrap();
    let mut file = opened.blobs.create().unwrap();
    file.write_all(b"one file").unwrap();
    let stored = file.finish().unwrap();
    let mut saved = opened.snapshots.create(&samples::resource("sample-0"), SnapshotId(0)).unwrap();
    saved.write_all(b"a saved state").unwrap();
    saved.finish().unwrap();

    let needed = FileRef { name: "f".into(), blob: stored.id, size: stored.size };
    let needs = Payload::Shell { command: "cat {f}".into(), files: vec![needed] };
    let needs = samples::entry(EntryBody::Operation(samples::operation(needs)), Vec::new(), None);
    let records = samples::records().into_iter().map(|(_, record)| record);
    let records = [Record::Entry(samples::resource("album"), needs)].into_iter().chain(records);
    let records: Vec<Record> =
        records.enumerate().map(|(at, record)| of_its_own(at, record)).collect();
    let (settled, late) = records.split_at(records.len() - 4);
    for batch in settled.chunks(8) {
        opened.log.keep(batch, &[]).unwrap();
    }
    let notices = samples::notices();
    let (settled, told_late) = notices.split_at(notices.len() - 2);
    opened.log.keep(&[], settled).unwrap();
    opened.log.settle().unwrap();
    opened.feed.set_cursor("hooks", Seq(3)).unwrap();
    // From here on it is in the journal alone.
    for batch in late.chunks(2) {
        opened.log.keep(batch, told_late).unwrap();
    }
    // As if it was killed.
    std::process::abort();
}

/// The same under a number and on a resource of its own, so that none takes another's place.
fn of_its_own(at: usize, record: Record) -> Record {
    let resource = samples::resource(&format!("sample-{at}"));
    match record {
        Record::Entry(_, entry) => {
            let entry = renumbered(&resource, at as u64 + 1, &entry);
            Record::Entry(resource, Arc::new(entry))
        }
        Record::Begun(_, step) => Record::Begun(resource, step),
        Record::Finished(_, step, ended) => Record::Finished(resource, step, ended),
        Record::Ran(_, log) => Record::Ran(resource, log),
        Record::Knows(_, site, incarnation, known) => {
            Record::Knows(resource, site, incarnation, known)
        }
        Record::EarlierIncarnation(_, site, known) => {
            Record::EarlierIncarnation(resource, site, known)
        }
        Record::Pruned(_, base) => Record::Pruned(resource, base),
        Record::Shed(_, operations) => Record::Shed(resource, operations),
        Record::Incarnation(..) | Record::SetApart(_) => record,
    }
}

fn renumbered(resource: &ResourceId, n: u64, entry: &Entry) -> Entry {
    let mut body = entry.body.clone();
    match &mut body {
        EntryBody::Operation(operation) => {
            operation.resource = resource.clone();
            operation.id.0.n = n;
        }
        EntryBody::Reply(reply) => reply.id.n = n,
    }
    let after = (0, entry.after_hash);
    let numbered = Entry::new(resource, after, body, entry.extra.clone());
    if let Some(proof) = entry.proof() {
        numbered.seal(proof.clone());
    }
    numbered
}
