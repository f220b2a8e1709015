//! What the store costs on this machine, beside what the medium costs:
//! `cargo run --release -p cheops-store --example measure [DIRECTORY]`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on fails"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cheops_core::engine::Record;
use cheops_core::model::{
    Author, Entry, EntryBody, EntryId, Incarnation, Operation, OperationId, OperationType, Payload,
    Replaces, ResourceId, SiteId, Stamp,
};
use cheops_store::{Opened, Seq, StoreOptions, open};

fn main() {
    let place = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(place).unwrap();
    sync_bare(dir.path());
    let mut next = 1;
    let mut opened = open_in(dir.path());
    for size in [1, 16, 256] {
        append(&mut opened, size, &mut next);
    }
    while next <= 100_000 {
        keep(&mut opened, 1000, &mut next);
    }
    for size in [1, 16, 256] {
        append(&mut opened, size, &mut next);
    }
    println!("resident with {next} records in the log: {}", resident());
    println!("log on disk: {} bytes", opened.feed.size().unwrap());
    follow(&opened);
    drop(opened);
    let start = Instant::now();
    let opened = open_in(dir.path());
    println!("open with {} records: {:?}", opened.records.len(), start.elapsed());
}

fn open_in(dir: &Path) -> Opened {
    open(&dir.join("data"), &SiteId::new("paris").unwrap(), || 1, StoreOptions::default()).unwrap()
}

/// What any durable append costs at least.
fn sync_bare(dir: &Path) {
    let mut file = File::create(dir.join("bare")).unwrap();
    let (rounds, start) = (500u32, Instant::now());
    for _ in 0..rounds {
        file.write_all(&[0; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    println!("bare write of 4 KiB and sync: {:?}", start.elapsed() / rounds);
}

fn append(opened: &mut Opened, size: u64, next: &mut u64) {
    let (rounds, start, first) = (500u32, Instant::now(), *next);
    for _ in 0..rounds {
        keep(opened, size, next);
    }
    let took = start.elapsed();
    println!(
        "batches of {size} after {first} records: {:?} each, {:.0} records/s",
        took / rounds,
        f64::from(rounds) * size as f64 / took.as_secs_f64(),
    );
}

fn keep(opened: &mut Opened, size: u64, next: &mut u64) {
    let records: Vec<_> = (*next..*next + size).map(entry).collect();
    opened.log.keep(&records, &[]).unwrap();
    *next += size;
}

fn follow(opened: &Opened) {
    let (start, mut after, mut count) = (Instant::now(), Seq(0), 0);
    loop {
        let changes = opened.feed.changes_since(after, None, 256).unwrap();
        count += changes.items.len();
        after = changes.next;
        if !changes.more {
            break;
        }
    }
    println!("following {count} changes from the first: {:?}", start.elapsed());
}

fn entry(n: u64) -> Record {
    let resource = ResourceId::new(&format!("resource-{}", n % 1000)).unwrap();
    let author = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
    let operation = Operation {
        id: OperationId(EntryId { author, n }),
        resource: resource.clone(),
        stamp: Stamp { wall_ms: n, counter: 0 },
        claimed: Stamp { wall_ms: n, counter: 0 },
        parents: Vec::new(),
        kind: OperationType::new("set").unwrap(),
        payload: Payload::shell("redis-cli set key value"),
        replaces: Replaces::Nothing,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    };
    Record::Entry(
        resource.clone(),
        Arc::new(Entry::new(
            &resource,
            Default::default(),
            EntryBody::Operation(operation),
            Vec::new(),
        )),
    )
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("unknown");
    line.trim_start_matches("VmRSS:").trim().to_string()
}
