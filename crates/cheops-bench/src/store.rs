//! How many records a second the store makes durable, beside the medium itself.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_core::engine::Record;
use cheops_core::model::{
    Author, Entry, EntryBody, EntryId, IdError, Incarnation, Operation, OperationId, OperationType,
    Payload, Replaces, ResourceId, SiteId, Stamp,
};
use cheops_store::{Opened, StoreOptions, open};
use serde::Serialize;

use crate::bare::sync_rate;
use crate::failure::{BenchFailure, cannot};
use crate::report::{Section, Table, number};
use crate::stats::rate;
use crate::{Bench, Report};

pub(crate) const TITLE: &str = "Durable appends of the store beside raw fsync";
const BATCHES: [u64; 3] = [1, 16, 256];

#[derive(Serialize)]
struct StoreResult {
    bare_syncs_per_second: f64,
    batches: Vec<Batches>,
}

#[derive(Serialize)]
struct Batches {
    records_each: u64,
    batches_per_second: f64,
    records_per_second: f64,
}

pub(crate) fn measure(bench: &Bench, report: &Report) -> Result<Section, BenchFailure> {
    report.remark("store: durable appends");
    let dir = tempfile::Builder::new().prefix("cheops-bench-").tempdir_in(&bench.place);
    let dir = dir.map_err(cannot("make a folder"))?;
    let bare_before = bare(dir.path(), bench.time / 2)?;
    let mut next = 1;
    let mut batches = Vec::new();
    let site = SiteId::new("site1").map_err(cannot("name a site"))?;
    let opened = open(&dir.path().join("data"), &site, || 1, StoreOptions::default());
    let mut opened = opened.map_err(cannot("open a store"))?;
    for records_each in BATCHES {
        batches.push(append(&mut opened, records_each, &mut next, bench.time)?);
    }
    // The medium is noisy: once before and once after.
    let bare_after = bare(dir.path(), bench.time / 2)?;
    section(&StoreResult { bare_syncs_per_second: f64::midpoint(bare_before, bare_after), batches })
}

fn bare(folder: &Path, time: Duration) -> Result<f64, BenchFailure> {
    sync_rate(folder, time).map_err(cannot("sync a file"))
}

fn append(
    opened: &mut Opened,
    records_each: u64,
    next: &mut u64,
    time: Duration,
) -> Result<Batches, BenchFailure> {
    let (mut spent, mut count) = (Duration::ZERO, 0);
    while spent < time {
        let records: Result<Vec<_>, _> = (*next..*next + records_each).map(entry).collect();
        let records = records.map_err(cannot("make a record"))?;
        *next += records_each;
        let start = Instant::now();
        opened.log.keep(&records, &[]).map_err(cannot("append"))?;
        spent += start.elapsed();
        count += 1;
    }
    Ok(Batches {
        records_each,
        batches_per_second: rate(count, spent),
        records_per_second: rate(count * records_each, spent),
    })
}

fn entry(n: u64) -> Result<Record, IdError> {
    let resource = ResourceId::new(&format!("resource-{}", n % 1000))?;
    let author = Author { site: SiteId::new("site1")?, incarnation: Incarnation(1) };
    let operation = Operation {
        id: OperationId(EntryId { author, n }),
        resource: resource.clone(),
        stamp: Stamp { wall_ms: n, counter: 0 },
        claimed: Stamp { wall_ms: n, counter: 0 },
        parents: Vec::new(),
        kind: OperationType::new("set")?,
        payload: Payload::shell("redis-cli set key value"),
        replaces: Replaces::Nothing,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    };
    Ok(Record::Entry(
        resource.clone(),
        Arc::new(Entry::new(
            &resource,
            Default::default(),
            EntryBody::Operation(operation),
            Vec::new(),
        )),
    ))
}

fn section(store: &StoreResult) -> Result<Section, BenchFailure> {
    let bare = store.bare_syncs_per_second;
    let mut table = Table::new(&["durable appends", "batches/s", "records/s", "batch : bare sync"]);
    table.row(vec![
        "bare: write 300 bytes, fdatasync".to_owned(),
        number(bare),
        number(bare),
        "1.00".to_owned(),
    ]);
    for batches in &store.batches {
        table.row(vec![
            format!("store, batches of {}", batches.records_each),
            number(batches.batches_per_second),
            number(batches.records_per_second),
            number(bare / batches.batches_per_second),
        ]);
    }
    Ok(Section {
        tables: vec![table],
        notes: vec!["The last column: so many bare syncs take as long as one batch.".to_owned()],
        data: serde_json::to_value(store).map_err(cannot("write JSON"))?,
        ..Section::new("store", TITLE)
    })
}
