//! What it costs to resolve: one operation at a time, with and without concurrency, and from
//! scratch. The cost of an insertion must not grow with the history.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on stops")]

use std::hint::black_box;
use std::time::Duration;

use cheops_core::config::{Concurrent, Config, Resolution as Entry, Rule};
use cheops_core::model::{
    Author, EntryId, Incarnation, Operation, OperationId, OperationType, Payload, Replaces,
    ResourceId, SiteId, Stamp,
};
use cheops_core::resolve::{OperationSet, Resolution, resolve};
use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group,
    criterion_main,
};

fn kind(name: &str) -> OperationType {
    OperationType::new(name).unwrap()
}

fn redis() -> Config {
    let entry = |before: &str, after: &str, rule| {
        ((kind(before), kind(after)), Entry { rule, concurrent: Concurrent::ReplaceWins })
    };
    let matrix = [
        entry("set", "inc", Rule::KeepOrder),
        entry("inc", "set", Rule::ReverseOrder),
        entry("inc", "inc", Rule::TakeBoth),
        entry("set", "set", Rule::TakeOne),
    ];
    Config { matrix: matrix.into(), ..Config::default() }
}

fn id(site: &str, n: u64) -> OperationId {
    let author = Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(1) };
    OperationId(EntryId { author, n })
}

fn operation(site: &str, n: u64, at: u64, parents: &[OperationId], name: &str) -> Operation {
    let replaces =
        if name == "set" && !parents.is_empty() { Replaces::Past } else { Replaces::Nothing };
    Operation {
        id: id(site, n),
        resource: ResourceId::new("counter").unwrap(),
        stamp: Stamp { wall_ms: at, counter: 0 },
        claimed: Stamp { wall_ms: at, counter: 0 },
        parents: parents.to_vec(),
        kind: kind(name),
        payload: Payload::shell("redis-cli incrby x 1"),
        replaces,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    }
}

/// One site's operations, each on top of the one before, the first on `root`; every tenth is a set
/// if asked for.
fn chain(site: &str, length: u64, root: Option<OperationId>, sets: bool) -> Vec<Operation> {
    let mut parents: Vec<_> = root.into_iter().collect();
    let mut made = Vec::new();
    for n in 1..=length {
        let name = if sets && n % 10 == 0 { "set" } else { "inc" };
        made.push(operation(site, n, 10 + n, &parents, name));
        parents = vec![id(site, n)];
    }
    made
}

fn resolution_of(operations: &[Operation]) -> Resolution {
    let mut resolution = Resolution::new(redis());
    for operation in operations {
        resolution.insert(operation.clone());
    }
    resolution
}

fn set_of(operations: &[Operation]) -> OperationSet {
    let mut set = OperationSet::default();
    operations.iter().for_each(|op| set.insert(op.clone()));
    set
}

/// A few seconds each: the differences that matter here are not of a few per cent.
fn brief<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group
}

fn sequential(c: &mut Criterion) {
    let mut group = brief(c, "sequential");
    for (name, sets) in [("incs", false), ("every tenth a set", true)] {
        let operations = chain("a", 10_000, None, sets);
        group.throughput(Throughput::Elements(10_000));
        group.bench_function(name, |b| b.iter(|| resolution_of(black_box(&operations))));
    }
    group.finish();
}

/// Two sites cut off from each other: every operation of the one has 100 concurrent ones.
fn concurrent(c: &mut Criterion) {
    let mut group = brief(c, "with 100 concurrent");
    for (name, sets) in [("incs", false), ("every tenth a set", true)] {
        let mut known = vec![operation("root", 1, 1, &[], "set")];
        known.extend(chain("a", 100, Some(id("root", 1)), sets));
        let arriving = chain("b", 100, Some(id("root", 1)), sets);
        let resolution = resolution_of(&known);
        group.throughput(Throughput::Elements(100));
        group.bench_function(name, |b| {
            let insert_all = |mut resolution: Resolution| {
                for operation in &arriving {
                    resolution.insert(operation.clone());
                }
                resolution
            };
            b.iter_batched(|| resolution.clone(), insert_all, BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// When the three concurrent operations were made: any number of others fits before them.
const LATER: u64 = 1_000_000_000;

/// One more operation, with three concurrent ones, on histories of different lengths: one the
/// others leave alone, one that loses, and one that wins and replaces the whole history.
fn history(c: &mut Criterion) {
    let mut group = brief(c, "one more on a history of");
    for length in [1_000, 10_000, 100_000] {
        for (label, rival, name, at) in [
            ("inc beside incs", "inc", "inc", LATER / 2),
            ("set that loses to a set", "set", "set", LATER / 2),
            ("set that wins over a set", "set", "set", LATER * 2),
        ] {
            let known = with_three_concurrent(length, rival);
            group.bench_function(BenchmarkId::new(label, length), |b| {
                let mut resolution = resolution_of(&known);
                let mut parent = id("a", length);
                b.iter(|| {
                    let n = if parent == id("a", length) { 1 } else { parent.0.n + 1 };
                    let new = operation("d", n, at + n, std::slice::from_ref(&parent), name);
                    parent = new.id.clone();
                    resolution.insert(new)
                });
            });
        }
    }
    group.finish();
}

fn with_three_concurrent(length: u64, rival: &str) -> Vec<Operation> {
    let mut known = chain("a", length, None, false);
    let root = [id("a", length)];
    known.push(operation("b", 1, LATER, &root, "inc"));
    known.push(operation("c", 1, LATER + 1, &root, rival));
    known.push(operation("c", 2, LATER + 2, &[id("c", 1)], "inc"));
    known
}

fn from_scratch(c: &mut Criterion) {
    let mut group = brief(c, "2,000 operations from scratch");
    group.sample_size(10);
    for (name, sets) in [("incs", false), ("every tenth a set", true)] {
        let mut made = chain("a", 1_000, None, sets);
        made.extend(chain("b", 1_000, None, sets));
        let set = set_of(&made);
        group.bench_function(name, |b| b.iter(|| resolve(black_box(&set), &redis())));
    }
    group.finish();
}

criterion_group!(benches, sequential, concurrent, history, from_scratch);
criterion_main!(benches);
