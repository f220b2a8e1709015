//! Any batches at all: disk, memory and the core's rule of what may be forgotten agree.

use std::sync::Arc;
use std::time::Duration;

use cheops_core::engine::{LaterRecords, Notice, Record};
use cheops_core::model::{
    BlobId, Entry, EntryId, FileRef, Header, Incarnation, OperationId, Payload, Vector,
};
use cheops_core::plan::{Ended, RunLog, SnapshotId, Step};
use cheops_store::{ReadError, Seq};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{
    Clock, InMemory, OnDisk, Twin, base, incarnation_of, operation, reply, resource, site, step,
    vector, with_payload,
};

const RESOURCES: [&str; 3] = ["a", "a/paris", "é b"];
const SITES: [&str; 2] = ["paris", "lyon"];

fn any_resource() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&RESOURCES[..])
}

fn any_site() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&SITES[..])
}

fn any_id() -> impl Strategy<Value = EntryId> {
    let n = prop_oneof![9 => 1..8u64, 1 => any::<u64>()];
    let incarnation = prop_oneof![9 => Just(1u64), 1 => Just(u64::MAX)];
    (any_site(), incarnation, n)
        .prop_map(|(site, incarnation, n)| incarnation_of(site, incarnation, n))
}

fn any_vector() -> impl Strategy<Value = Vector> {
    vec(any_id(), 0..3).prop_map(vector)
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![any_id().prop_map(step), any::<u64>().prop_map(|n| Step::Snapshot(SnapshotId(n)))]
}

fn any_entry() -> impl Strategy<Value = Record> {
    let blobs = vec((0..3u8).prop_map(|byte| BlobId([byte; 32])), 0..3);
    let http = |(of, id, body): (&str, EntryId, Option<u8>)| {
        let body =
            body.map(|byte| FileRef { name: "body".into(), blob: BlobId([byte; 32]), size: 3 });
        let headers = vec![Header { name: "x".into(), value: "y".into() }];
        let (service, method, path) = ("kv".into(), "PUT".into(), "/é?x=1".into());
        with_payload(
            of,
            id,
            Payload::Http { service, method, path, headers, body, service_ref: None },
        )
    };
    prop_oneof![
        (any_resource(), any_id(), blobs).prop_map(|(of, id, blobs)| operation(of, id, &blobs)),
        (any_resource(), any_id(), prop::option::of(0..3u8)).prop_map(http),
        (any_resource(), any_id(), any_id()).prop_map(|(of, id, to)| reply(of, id, to)),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let ended = prop_oneof![Just(Ended::Ok), Just(Ended::Ko)];
    let pair = || (any_resource(), any_site()).prop_map(|(of, at)| (resource(of), site(at)));
    let ran = |(of, begun): (&str, Vec<Step>)| {
        let mut log = RunLog::default();
        begun.iter().for_each(|step| log.begin(step));
        Record::Ran(resource(of), Box::new(log))
    };
    prop_oneof![
        6 => any_entry(),
        1 => (any_resource(), any_step()).prop_map(|(of, step)| Record::Begun(resource(of), step)),
        1 => (any_resource(), any_step(), ended)
            .prop_map(|(of, step, ended)| Record::Finished(resource(of), step, ended)),
        1 => (any_resource(), vec(any_step(), 0..2)).prop_map(ran),
        2 => (pair(), any::<u64>(), any_vector())
            .prop_map(|((of, at), incarnation, knows)| Record::Knows(of, at, Incarnation(incarnation), knows)),
        1 => (pair(), any_vector()).prop_map(|((of, at), v)| Record::EarlierIncarnation(of, at, v)),
        1 => (any_site(), any::<u64>())
            .prop_map(|(at, incarnation)| Record::Incarnation(site(at), Incarnation(incarnation))),
        2 => (any_resource(), any_vector()).prop_map(|(of, upto)| {
            Record::Pruned(resource(of), Box::new(base(upto, None)))
        }),
    ]
}

fn any_notice() -> impl Strategy<Value = Notice> {
    prop_oneof![
        any_resource().prop_map(|of| Notice::Converged(resource(of))),
        any_site().prop_map(|at| Notice::SiteDown(site(at))),
        (any_resource(), any_id())
            .prop_map(|(of, id)| Notice::InDoubt(resource(of), OperationId(id))),
    ]
}

/// A batch, how much later than the one before, and whether the machine is stopped after it.
type Batch = (Vec<Record>, Vec<Notice>, u64, bool);

fn any_batch() -> impl Strategy<Value = Batch> {
    let later = prop_oneof![Just(0), 0..60u64];
    (vec(any_record(), 0..6), vec(any_notice(), 0..3), later, prop::bool::weighted(0.2))
}

/// What no later record makes obsolete.
fn by_the_rules(all: &[Record]) -> Vec<Record> {
    let mut later = LaterRecords::default();
    let live = all.iter().rev().filter(|record| !later.make_obsolete(record));
    let mut live: Vec<_> = live.cloned().collect();
    live.reverse();
    live
}

fn same_changes(disk: &OnDisk, memory: &InMemory, after: u64, of: Option<&str>, limit: usize) {
    let of = of.map(resource);
    let found = disk.changes(after, of.as_ref(), limit);
    match (found, memory.changes(after, of.as_ref(), limit)) {
        (Ok(disk), Ok(memory)) => assert_eq!(disk, memory),
        (Err(ReadError::Gone { oldest: disk }), Err(ReadError::Gone { oldest: memory })) => {
            assert_eq!(disk, memory);
        }
        (disk, memory) => panic!("{disk:?} is not {memory:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_batches_give_the_same_on_disk_in_memory_and_by_the_rules(
        batches in vec(any_batch(), 1..12),
        retention_ms in prop_oneof![Just(0u64), 1..80u64, Just(1_000_000)],
        (after, limit, of) in (0..40u64, 0..9usize, prop::option::of(any_resource())),
    ) {
        let clock = Clock::default();
        let options = clock.options(Duration::from_millis(retention_ms));
        let (mut disk, mut memory) = (OnDisk::new(options.clone()), InMemory::new(options));
        let (mut all, mut now_ms, mut kept) = (Vec::new(), 0, 0);
        for (records, notices, later_ms, stopped) in batches {
            now_ms += later_ms;
            clock.set(now_ms);
            disk.keep(&records, &notices).unwrap();
            memory.keep(&records, &notices).unwrap();
            kept += records.len() + notices.len();
            all.extend(records);
            if stopped {
                disk.restart();
            }
            let last = disk.last();
            prop_assert_eq!(last, Seq(u64::try_from(kept).unwrap()));
            for from in [0, after, last.0] {
                same_changes(&disk, &memory, from, None, limit);
                same_changes(&disk, &memory, from, of, limit);
            }
        }
        prop_assert_eq!(memory.records(), by_the_rules(&all));
        prop_assert_eq!(disk.records(), by_the_rules(&all));
        disk.restart();
        prop_assert_eq!(disk.records(), by_the_rules(&all));
    }

    #[test]
    fn batches_taken_over_together_give_the_same_as_one_by_one(
        batches in vec(any_batch(), 1..12),
    ) {
        let options = Clock::default().options(Duration::from_secs(1));
        let (mut disk, mut memory) = (OnDisk::new(options.clone()), InMemory::new(options));
        let mut all = Vec::new();
        for (records, notices, _, settled) in batches {
            disk.opened_mut().log.keep(&records, &notices).unwrap();
            if settled {
                disk.opened_mut().log.settle().unwrap();
            }
            memory.keep(&records, &notices).unwrap();
            all.extend(records);
        }
        disk.restart();
        prop_assert_eq!(disk.records(), by_the_rules(&all));
        prop_assert_eq!(disk.last(), memory.last());
        same_changes(&disk, &memory, 0, None, usize::MAX);
    }

    #[test]
    fn a_record_is_written_and_read_as_it_is(record in any_record()) {
        let mut disk = OnDisk::new(Clock::default().options(Duration::from_secs(1)));
        disk.keep(std::slice::from_ref(&record), &[]).unwrap();
        disk.restart();
        prop_assert_eq!(disk.records(), [record]);
    }
}

#[test]
fn a_config_is_written_and_read_as_it_is() {
    use cheops_core::config::{Concurrent, Config, Handling, Resolution, Rule};
    use cheops_core::model::{Declaration, EntryBody, OperationType};
    let (set, inc) = (OperationType::new("set").unwrap(), OperationType::new("inc").unwrap());
    let mut config = Config::default();
    let rule = Rule::Logic("sort".into());
    config.matrix.insert((set.clone(), inc), Resolution { rule, concurrent: Concurrent::KeepBoth });
    config.types.insert(set, Handling { undo: Some("undo".into()), ..Handling::default() });
    let Record::Entry(of, plain) = operation("a", incarnation_of("paris", 1, 1), &[]) else {
        panic!()
    };
    let mut body = plain.body.clone();
    if let EntryBody::Operation(operation) = &mut body {
        let sites = [site("paris")].into();
        operation.declares = Some(Arc::new(Declaration { sites, config: Some(Arc::new(config)) }));
    }
    let declaring = Entry::new(&of, Default::default(), body, Vec::new());
    let record = Record::Entry(of, Arc::new(declaring));
    let mut disk = OnDisk::new(Clock::default().options(Duration::from_secs(1)));
    disk.keep(std::slice::from_ref(&record), &[]).unwrap();
    disk.restart();
    assert_eq!(disk.records(), [record]);
}
