//! Short names for long values, a clock that stands still, and a store that can be restarted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cheops_core::engine::{Base, Declared, Notice, Record};
use cheops_core::model::{
    Author, BlobId, Chain, Entry, EntryBody, EntryId, FileRef, Incarnation, Operation, OperationId,
    OperationType, Outcome, Payload, Replaces, Reply, ResourceId, SiteId, Stamp, Status, Vector,
};
use cheops_core::plan::{Item, Step};
use cheops_store::{
    AppendError, Blobs, Certificates, Feed, LoggedChanges, MemoryStore, OpenError, Opened,
    ReadError, Seq, SiteLog, StoreOptions, WallClock, open,
};
use tempfile::TempDir;

pub(crate) fn site(name: &str) -> SiteId {
    SiteId::new(name).unwrap()
}

pub(crate) fn resource(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

pub(crate) fn id(name: &str, n: u64) -> EntryId {
    incarnation_of(name, 1, n)
}

pub(crate) fn incarnation_of(name: &str, incarnation: u64, n: u64) -> EntryId {
    let author = Author { site: site(name), incarnation: Incarnation(incarnation) };
    EntryId { author, n }
}

pub(crate) fn vector(ids: impl IntoIterator<Item = EntryId>) -> Vector {
    ids.into_iter().collect()
}

pub(crate) fn operation(of: &str, id: EntryId, files: &[BlobId]) -> Record {
    let file =
        |(at, blob): (usize, &BlobId)| FileRef { name: format!("f{at}"), blob: *blob, size: 1 };
    let payload = Payload::Shell {
        command: format!("echo {id}"),
        files: files.iter().enumerate().map(file).collect(),
    };
    with_payload(of, id, payload)
}

pub(crate) fn with_payload(of: &str, id: EntryId, payload: Payload) -> Record {
    let operation = Operation {
        stamp: Stamp { wall_ms: id.n, counter: 0 },
        claimed: Stamp { wall_ms: id.n, counter: 0 },
        id: OperationId(id),
        resource: resource(of),
        parents: Vec::new(),
        kind: OperationType::new("set").unwrap(),
        payload,
        replaces: Replaces::Nothing,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    };
    let entry =
        Entry::new(&resource(of), Default::default(), EntryBody::Operation(operation), Vec::new());
    Record::Entry(resource(of), Arc::new(entry))
}

pub(crate) fn entry(of: &str, id: EntryId) -> Record {
    operation(of, id, &[])
}

pub(crate) fn reply(of: &str, id: EntryId, to: EntryId) -> Record {
    let reply = Reply {
        stamp: Stamp { wall_ms: id.n, counter: 1 },
        id,
        operation: OperationId(to),
        status: Status::Ok,
        outcome: Some(Outcome::success("done")),
    };
    Record::Entry(
        resource(of),
        Arc::new(Entry::new(
            &resource(of),
            Default::default(),
            EntryBody::Reply(reply),
            Vec::new(),
        )),
    )
}

pub(crate) fn step(id: EntryId) -> Step {
    let kind = OperationType::new("set").unwrap();
    Step::Run(Item { id: OperationId(id), kind, replaces: Replaces::Nothing })
}

pub(crate) fn pruned(of: &str, upto: impl IntoIterator<Item = EntryId>) -> Record {
    let sites = BTreeSet::from([site("paris")]);
    let declared = Some(Declared { sites, config: None, id_map: None });
    Record::Pruned(resource(of), Box::new(base(vector(upto), declared)))
}

pub(crate) fn base(upto: Vector, declared: Option<Declared>) -> Base {
    Base { upto, declared, chain: Chain::default(), order: None, state: None }
}

pub(crate) fn converged(of: &str) -> Notice {
    Notice::Converged(resource(of))
}

/// A clock that shows what it was set to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::Relaxed);
    }

    pub(crate) fn options(&self, retention: Duration) -> StoreOptions {
        let shown = Arc::clone(&self.0);
        let clock = WallClock::new(move || shown.load(Ordering::Relaxed));
        StoreOptions {
            audit_retention: retention,
            journal_bytes: 64 << 10,
            clock,
            ..StoreOptions::default()
        }
    }
}

pub(crate) fn open_paris(dir: &Path, options: StoreOptions) -> Result<Opened, OpenError> {
    open(dir, &site("paris"), || 7, options)
}

/// Runs each of these on a new store of either kind.
macro_rules! contract {
    ($($(#[$doc:meta])* fn $name:ident($store:ident, $clock:ident; $retention:expr) $body:block)*) => {
        mod on_disk {
            use super::*;
            $(#[test] fn $name() {
                let clock = Clock::default();
                super::$name(&mut crate::support::OnDisk::new(clock.options($retention)), &clock);
            })*
        }
        mod in_memory {
            use super::*;
            $(#[test] fn $name() {
                let clock = Clock::default();
                super::$name(&mut crate::support::InMemory::new(clock.options($retention)), &clock);
            })*
        }
        $($(#[$doc])* fn $name($store: &mut dyn Twin, $clock: &Clock) $body)*
    };
}
pub(crate) use contract;

/// Either store, by its ports.
pub(crate) trait Twin {
    fn log(&mut self) -> &mut dyn SiteLog;
    fn feed(&self) -> Arc<dyn Feed>;
    fn blobs(&self) -> Arc<dyn Blobs>;
    fn certificates(&self) -> Arc<dyn Certificates>;
    /// Stops and starts, where there is something to start again from.
    fn restart(&mut self);
    /// Another writer takes over, while the one before is still there: this one.
    fn take_over(&mut self) -> Box<dyn SiteLog>;

    fn keep(&mut self, records: &[Record], notices: &[Notice]) -> Result<(), AppendError> {
        self.log().keep(records, notices)?;
        self.log().settle()
    }
    fn records(&mut self) -> Vec<Record> {
        self.log().records().unwrap()
    }
    fn changes(
        &self,
        after: u64,
        of: Option<&ResourceId>,
        limit: usize,
    ) -> Result<LoggedChanges, ReadError> {
        self.feed().changes_since(Seq(after), of, limit)
    }
    fn last(&self) -> Seq {
        self.feed().last_seq().unwrap()
    }
    fn set_cursor(&self, name: &str, seq: Seq) {
        self.feed().set_cursor(name, seq).unwrap();
    }
    fn cursor(&self, name: &str) -> Option<Seq> {
        self.feed().cursor(name).unwrap()
    }
}

/// The store that is in memory.
#[derive(Debug)]
pub(crate) struct InMemory(MemoryStore);

impl InMemory {
    pub(crate) fn new(options: StoreOptions) -> Self {
        Self(MemoryStore::new(options))
    }
}

impl Twin for InMemory {
    fn log(&mut self) -> &mut dyn SiteLog {
        &mut self.0
    }
    fn feed(&self) -> Arc<dyn Feed> {
        Arc::new(self.0.clone())
    }
    fn blobs(&self) -> Arc<dyn Blobs> {
        self.0.blobs()
    }
    fn certificates(&self) -> Arc<dyn Certificates> {
        Arc::new(self.0.clone())
    }
    fn restart(&mut self) {
        drop(self.take_over());
    }
    fn take_over(&mut self) -> Box<dyn SiteLog> {
        let next = self.0.next_writer();
        Box::new(std::mem::replace(&mut self.0, next))
    }
}

/// A store in a directory that is gone with it.
#[derive(Debug)]
pub(crate) struct OnDisk {
    pub(crate) dir: TempDir,
    options: StoreOptions,
    opened: Option<Opened>,
}

impl OnDisk {
    pub(crate) fn new(options: StoreOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let opened = Some(open_paris(dir.path(), options.clone()).unwrap());
        Self { dir, options, opened }
    }

    pub(crate) fn opened(&self) -> &Opened {
        self.opened.as_ref().unwrap()
    }

    pub(crate) fn opened_mut(&mut self) -> &mut Opened {
        self.opened.as_mut().unwrap()
    }

    pub(crate) fn stop(&mut self) {
        self.opened = None;
    }
}

impl Twin for OnDisk {
    fn log(&mut self) -> &mut dyn SiteLog {
        &mut *self.opened_mut().log
    }
    fn feed(&self) -> Arc<dyn Feed> {
        Arc::clone(&self.opened().feed)
    }
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::clone(&self.opened().blobs)
    }
    fn certificates(&self) -> Arc<dyn Certificates> {
        Arc::clone(&self.opened().certificates)
    }
    fn restart(&mut self) {
        self.stop();
        let opened = open_paris(self.dir.path(), self.options.clone()).unwrap();
        self.opened = Some(opened);
        let records = std::mem::take(&mut self.opened_mut().records);
        assert_eq!(records, self.records(), "opening gives what reading again gives");
    }
    fn take_over(&mut self) -> Box<dyn SiteLog> {
        // Somebody thinks that the one before is gone, and removes what it left.
        std::fs::remove_file(self.dir.path().join("lock")).unwrap();
        let next = open_paris(self.dir.path(), self.options.clone()).unwrap();
        self.opened.replace(next).unwrap().log
    }
}
