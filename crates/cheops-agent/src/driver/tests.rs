//! The driver's thread with a log in memory that can be made to fail.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cheops_core::engine::{Batch, Job, Log, Message, Refusal, WaitFor};
use cheops_core::model::{Author, IdMap, Incarnation, KeyId, OperationType, Payload, SiteId};
use cheops_core::plan::SnapshotId;
use cheops_store::{LogFence, MemoryStore, ReadError, StoragePlace, StoreOptions};

use super::*;

impl Driver {
    /// One from which each operation hears this, and nobody hears more; with how much was asked of it.
    pub(crate) fn that_says(answer: Answer) -> (Self, Arc<AtomicUsize>) {
        let (events, _nobody_listens) = mpsc::channel(1);
        let (requests, mut requests_in) = mpsc::channel(REQUESTS_WAITING);
        let (committed, trouble) = (watch::channel(0).1, watch::channel(None).1);
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Some(request) = requests_in.recv().await {
                counted.fetch_add(1, Ordering::SeqCst);
                if let DriverRequest::Submit(_, _, updates, _) = request {
                    let _gone = updates.send(SubmitUpdate::Answer(answer.clone()));
                }
            }
        });
        (Self { events, requests, committed, trouble }, asked)
    }
}

/// Acts on nothing.
struct NoHands;

impl Actuators for NoHands {
    fn run(&self, _: Job, _: Span, _: Driver) {}
    fn tell(&self, _: &SiteId, _: Message) {}
    fn set_apart(&self, _: &SiteId, _: KeyId) {}
    fn publish(&self, _: &ResourceId, _: Option<Arc<IdMap>>) {}
    fn notify(&self, _: &Notice) {}
    fn sweep_snapshots(&self, _: &Engine) {}
    fn retain_snapshots(&self, _: &ResourceId, _: Box<dyn Fn(SnapshotId) -> bool + Send>) {}
}

/// Has no room while that is so.
#[derive(Debug)]
struct FillingLog {
    log: MemoryStore,
    is_full: Arc<AtomicBool>,
}

impl Log for FillingLog {
    type Error = AppendError;

    fn append(&mut self, batch: Batch<'_>) -> Result<(), AppendError> {
        if self.is_full.load(Ordering::SeqCst) {
            let (place, source) = (StoragePlace::from("memory"), "no room".into());
            return Err(AppendError::Full { place, source });
        }
        self.log.append(batch)
    }
}

impl SiteLog for FillingLog {
    fn fence(&self) -> LogFence {
        self.log.fence()
    }

    fn keep(&mut self, records: &[Record], notices: &[Notice]) -> Result<(), AppendError> {
        self.log.keep(records, notices)
    }

    fn settle(&mut self) -> Result<(), AppendError> {
        self.log.settle()
    }

    fn records(&mut self) -> Result<Vec<Record>, ReadError> {
        self.log.records()
    }
}

fn paris() -> SiteId {
    SiteId::new("paris").unwrap()
}

fn counter() -> ResourceId {
    ResourceId::new("counter").unwrap()
}

fn inc() -> Submission {
    Submission {
        ticket: Ticket(0),
        resource: counter(),
        sites: Some([paris()].into()),
        config: None,
        kind: OperationType::new("inc").unwrap(),
        payload: Payload::shell("true"),
        inline_body: None,
        force: false,
        wait: WaitFor::Nothing,
        timeout_ms: 1,
        needs: BTreeSet::new(),
        asked_by: None,
    }
}

/// A driver, and what makes its log full.
fn started(dir: &std::path::Path) -> (Driver, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(false));
    let log = MemoryStore::new(StoreOptions::default());
    let log = FillingLog { log, is_full: Arc::clone(&is_full) };
    let me = Author { site: paris(), incarnation: Incarnation(1) };
    let (driver, _thread) = start(DriverStart {
        settings: Settings::new(me, BTreeSet::new()),
        signer: Signer(None),
        records: Vec::new(),
        log: Box::new(log),
        actuators: Box::new(NoHands),
        data_dir: dir.to_owned(),
        keep_free: 0,
    })
    .unwrap();
    (driver, is_full)
}

async fn first_update(driver: &Driver) -> SubmitUpdate {
    driver.submit(inc(), Vec::new()).await.unwrap().recv().await.unwrap()
}

#[tokio::test]
async fn who_only_looks_is_answered_while_what_was_decided_waits_for_room_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, is_full) = started(dir.path());
    driver.ask(|_| ()).await.unwrap();
    is_full.store(true, Ordering::SeqCst);

    // One operation is decided and cannot be made durable, so the next are not even taken in.
    let why = first_update(&driver).await;
    assert!(matches!(why, SubmitUpdate::NotDurable(NotDurable::Undecided(_))), "{why:?}");
    let why = first_update(&driver).await;
    assert!(matches!(why, SubmitUpdate::NotDurable(NotDurable::Stuck(_))), "{why:?}");

    // Whoever looks is answered, and hears that the log has no room.
    assert_eq!(driver.ask(|engine| engine.me().site.clone()).await.unwrap(), paris());
    let mut trouble = driver.trouble.clone();
    assert!(trouble.borrow_and_update().is_some());

    // With room again, what was decided comes true, and the next is taken in.
    is_full.store(false, Ordering::SeqCst);
    trouble.changed().await.unwrap();
    assert_eq!(*trouble.borrow(), None);
    let listed = driver.ask(|engine| engine.list(&counter()).map(|list| list.ids().len()));
    assert_eq!(listed.await.unwrap(), Some(1));
    let accepted = first_update(&driver).await;
    assert!(matches!(accepted, SubmitUpdate::Answer(Answer::Accepted { .. })), "{accepted:?}");
}

#[tokio::test]
async fn operations_that_come_together_are_made_durable_together_and_each_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (driver, _) = started(dir.path());
    let elsewhere = Submission { sites: Some([SiteId::new("lyon").unwrap()].into()), ..inc() };
    let refused = driver.submit(elsewhere, Vec::new()).await.unwrap().recv().await.unwrap();
    let not_here = |update: &SubmitUpdate| {
        matches!(update, SubmitUpdate::Answer(Answer::Refused(Refusal::NotHeldHere { .. })))
    };
    assert!(not_here(&refused), "{refused:?}");
    let mut all = Vec::new();
    for _ in 0..100 {
        all.push(driver.submit(inc(), Vec::new()).await.unwrap());
    }
    let mut names = BTreeSet::new();
    for mut updates in all {
        match updates.recv().await {
            Some(SubmitUpdate::Answer(Answer::Accepted { operation, .. })) => {
                names.insert(operation);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names.len(), 100);
}

#[tokio::test]
async fn while_ten_thousand_operations_are_explained_others_are_taken_in_and_answered() {
    const MANY: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let (driver, _) = started(dir.path());
    let hand_in = async |count: usize| {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(driver.submit(inc(), Vec::new()).await.unwrap());
        }
        for mut updates in all {
            let update = updates.recv().await;
            let is_accepted =
                matches!(&update, Some(SubmitUpdate::Answer(Answer::Accepted { .. })));
            assert!(is_accepted, "{update:?}");
        }
    };
    hand_in(MANY).await;
    let asked = driver.ask(|engine| engine.history(&counter())).await.unwrap();
    let (operations, config) = asked.unwrap();
    let (begun, explaining) = oneshot::channel();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let explanation = tokio::task::spawn_blocking(move || {
        begun.send(()).unwrap();
        waits.recv().unwrap();
        cheops_core::resolve::explain(&operations, &config)
    });
    explaining.await.unwrap();
    // It is under way for as long as these take.
    hand_in(100).await;
    go_on.send(()).unwrap();
    assert_eq!(explanation.await.unwrap().list.len(), MANY, "as it was when it was asked for");
    let listed = driver.ask(|engine| engine.list(&counter()).map(|list| list.ids().len()));
    assert_eq!(listed.await.unwrap(), Some(MANY + 100));
}
