//! The one thread that owns the engine and the log.
//!
//! Events wait in bounded queues; the driver takes as many as there are, lets the engine handle
//! them, makes what they ask for durable in one commit, and only then acts. Whoever wants to look
//! at the engine hands in a question, which is answered between two commits: so nobody ever sees
//! what is not yet durable.
//!
//! If a commit fails (the disk is full), nothing of it becomes visible. The driver tries again
//! until it succeeds; meanwhile it answers questions (as if the commit had succeeded) and refuses
//! operations, and lets everything else wait. If it can never succeed, because another agent has the
//! log now, the driver ends, and whoever runs the agent hears why.

mod actuators;
mod files;
mod space;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cheops_core::engine::{
    Answer, Effect, Engine, Event, Notice, Now, Reaction, Record, Sealer, Settings, Submission,
    Task, Ticket, Uncommitted,
};
use cheops_core::model::{Entry, ResourceId};
use cheops_mesh::{Brought, FilePin};
use cheops_record::SiteKey;
use cheops_store::{AppendError, SiteLog};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Span;

pub(crate) use actuators::Actuators;
use files::HeldFiles;
use space::Space;
pub(crate) use space::room_left;

use crate::telemetry::{self, OperationSpans};

/// How many events may wait. Who has more to say has to wait itself.
const EVENTS_WAITING: usize = 4_096;
const REQUESTS_WAITING: usize = 1_024;
/// How many are handled before the first of them is made durable.
const BATCH: usize = 512;
/// How many in one turn mean that more are coming.
const BUSY: usize = 4;
/// How long to wait for them then.
const LINGER: Duration = Duration::from_micros(400);
/// How long they may be handled before what they ask for is made durable and done.
const TURN: Duration = Duration::from_millis(5);
/// How long something that nobody waits for may wait for company.
const MAY_WAIT: Duration = Duration::from_millis(200);
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// How long what is durable may wait until those who follow the log see it: much at once costs
/// the log hardly more than a little, and what was replaced meanwhile costs nothing.
const SETTLE_AFTER: Duration = Duration::from_millis(50);
/// How long if there is much of it.
const SETTLE_AT_LAST: Duration = Duration::from_millis(500);
/// How many times longer than settling took the next one waits.
const SETTLE_SHARE: u32 = 100;

/// What happened, and what must not be thrown away until it is known.
struct DriverInput {
    event: Event,
    files: Option<Brought>,
}

type EngineQuestion = Box<dyn FnOnce(&Engine, Now) + Send>;

enum DriverRequest {
    Submit(Box<Submission>, Span, mpsc::UnboundedSender<SubmitUpdate>, Vec<FilePin>),
    Ask(EngineQuestion),
    Decide(Box<Event>, EngineQuestion),
    Settle(oneshot::Sender<()>),
    Drain(oneshot::Sender<()>),
}

/// What someone who handed in an operation hears.
#[derive(Debug)]
pub(crate) enum SubmitUpdate {
    /// The engine's answer.
    Answer(Answer),
    /// The operation was refused, or may have been: it cannot be made durable now.
    NotDurable(NotDurable),
}

/// Why an operation cannot be made durable now.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotDurable {
    /// There is too little room left, and nothing was done.
    #[error("the disk is full: {left} bytes are left where {needed} are kept free")]
    NoRoom {
        /// What is left.
        left: u64,
        /// What is kept free for what is already under way.
        needed: u64,
    },
    /// The log cannot be written, and nothing was done.
    #[error("the log cannot be written at present: {0}")]
    Stuck(String),
    /// The log could not be written while the operation was on its way into it: it is carried out
    /// if the log can be written again before the agent stops.
    #[error("the log could not be written: {0}; the operation is carried out once it can be")]
    Undecided(String),
}

/// What waits for its turn at the driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DriverBacklog {
    /// What happened: messages of other sites, ends of jobs.
    pub(crate) events: usize,
    /// What somebody asks for: operations, and questions to the engine.
    pub(crate) requests: usize,
}

/// Why nothing can be asked of the driver.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the agent is stopping")]
pub(crate) struct Stopped;

/// The way to the driver.
#[derive(Clone)]
pub(crate) struct Driver {
    events: mpsc::Sender<DriverInput>,
    requests: mpsc::Sender<DriverRequest>,
    /// Changes with every commit, so that followers know when to look.
    pub(crate) committed: watch::Receiver<u64>,
    /// Why the log cannot be written, if it cannot.
    pub(crate) trouble: watch::Receiver<Option<String>>,
}

impl Driver {
    /// Hands in what happened; waits while too much else does.
    pub(crate) async fn happened(&self, event: Event) -> Result<(), Stopped> {
        self.happened_with(event, None).await
    }

    /// The same, with files that it brings.
    pub(crate) async fn happened_with(
        &self,
        event: Event,
        files: Option<Brought>,
    ) -> Result<(), Stopped> {
        self.events.send(DriverInput { event, files }).await.map_err(|_closed| Stopped)
    }

    /// Hands in an operation. The ticket is filled in here.
    pub(crate) async fn submit(
        &self,
        submission: Submission,
        pins: Vec<FilePin>,
    ) -> Result<mpsc::UnboundedReceiver<SubmitUpdate>, Stopped> {
        let (updates, hears) = mpsc::unbounded_channel();
        let span = telemetry::operation_span(&submission);
        let request = DriverRequest::Submit(Box::new(submission), span, updates, pins);
        self.requests.send(request).await.map_err(|_closed| Stopped)?;
        Ok(hears)
    }

    /// Looks at the engine, at what is durable.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        self.ask_at(|engine, _| question(engine)).await
    }

    /// The same, with what time it is by the engine's clocks.
    pub(crate) async fn ask_at<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, hears) = oneshot::channel();
        let ask = DriverRequest::Ask(Box::new(move |engine, now| {
            let _gone = answer.send(question(engine, now));
        }));
        self.requests.send(ask).await.map_err(|_closed| Stopped)?;
        hears.await.map_err(|_closed| Stopped)
    }

    /// Hands in the operator's word, then looks at the engine once it is durable.
    pub(crate) async fn decide<T: Send + 'static>(
        &self,
        decision: Event,
        question: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, hears) = oneshot::channel();
        let ask: EngineQuestion = Box::new(move |engine, _| {
            let _gone = answer.send(question(engine));
        });
        let request = DriverRequest::Decide(Box::new(decision), ask);
        self.requests.send(request).await.map_err(|_closed| Stopped)?;
        hears.await.map_err(|_closed| Stopped)
    }

    /// Waits until those who follow the log can see all that is durable now.
    pub(crate) async fn settle(&self) -> Result<(), Stopped> {
        let (done, hears) = oneshot::channel();
        self.requests.send(DriverRequest::Settle(done)).await.map_err(|_closed| Stopped)?;
        hears.await.map_err(|_closed| Stopped)
    }

    /// The same as far as it can be had: where the log cannot be written, what it showed before is
    /// better than nothing.
    pub(crate) async fn settle_if_possible(&self) {
        let _no_news = self.settle().await;
    }

    /// How many events and requests wait for their turn.
    pub(crate) fn waiting(&self) -> DriverBacklog {
        DriverBacklog {
            events: self.events.max_capacity() - self.events.capacity(),
            requests: self.requests.max_capacity() - self.requests.capacity(),
        }
    }

    /// Lets what runs come to its end, starts nothing new, and stops. Whether that was possible in
    /// the time there is.
    pub(crate) async fn drain(&self, at_most: Duration) -> bool {
        let (done, hears) = oneshot::channel();
        if self.requests.send(DriverRequest::Drain(done)).await.is_err() {
            return true;
        }
        matches!(tokio::time::timeout(at_most, hears).await, Ok(Ok(())))
    }
}

/// What a driver starts from.
pub(crate) struct DriverStart {
    pub(crate) settings: Settings,
    pub(crate) signer: Signer,
    pub(crate) records: Vec<Record>,
    pub(crate) log: Box<dyn SiteLog>,
    pub(crate) actuators: Box<dyn Actuators>,
    pub(crate) data_dir: PathBuf,
    pub(crate) keep_free: u64,
}

/// Why an agent cannot go on, though nobody asked it to stop.
#[derive(Debug, thiserror::Error)]
pub enum AgentFailure {
    /// Its log can never be written again.
    #[error("the log can no longer be written by this agent")]
    Log(#[from] AppendError),
    /// A defect: the log is as it was at the last commit.
    #[error("the thread that decides ended by a defect; the log holds what tells more")]
    Defect,
}

impl AgentFailure {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Log(error) => error.hint(),
            Self::Defect => Some("start it again: it goes on from its log; and please report it"),
        }
    }
}

/// The driver's thread.
pub(crate) struct DriverThread {
    thread: std::thread::JoinHandle<()>,
    failed: oneshot::Receiver<AppendError>,
}

impl DriverThread {
    /// Waits until it fails. While it works, and once it was drained, that is never.
    pub(crate) async fn failed(&mut self) -> AgentFailure {
        match (&mut self.failed).await {
            Ok(error) => AgentFailure::Log(error),
            Err(_dropped) => AgentFailure::Defect,
        }
    }

    /// Waits for its end.
    pub(crate) async fn join(self) {
        let _ended = tokio::task::spawn_blocking(|| self.thread.join()).await;
    }
}

/// Starts the driver in a thread of its own, for it blocks on the disk.
pub(crate) fn start(start: DriverStart) -> std::io::Result<(Driver, DriverThread)> {
    let (events, events_in) = mpsc::channel(EVENTS_WAITING);
    let (requests, requests_in) = mpsc::channel(REQUESTS_WAITING);
    let (committed, committed_in) = watch::channel(0);
    let (trouble, trouble_in) = watch::channel(None);
    let driver = Driver { events, requests, committed: committed_in, trouble: trouble_in };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let reports_to = driver.clone();
    let (failure, failed) = oneshot::channel();
    let thread = std::thread::Builder::new().name("driver".into()).spawn(move || {
        let began = Instant::now();
        let now = now(began);
        let (engine, reaction) = Engine::recover(start.settings, start.records, now);
        start.actuators.sweep_snapshots(&engine);
        let running = DriverLoop {
            engine,
            signer: start.signer,
            log: start.log,
            actuators: start.actuators,
            space: Space::new(start.data_dir, start.keep_free),
            events: events_in,
            requests: requests_in,
            committed,
            trouble,
            began,
            tickets: BTreeMap::new(),
            spans: OperationSpans::default(),
            commit_seconds: metrics::histogram!("cheops_commit_seconds"),
            next_ticket: 0,
            draining: None,
            handled: 0,
            settle_at: None,
            settle_after: SETTLE_AFTER,
            files: HeldFiles::default(),
            driver: reports_to,
        };
        if let Err(error) = runtime.block_on(running.run(reaction)) {
            let _nobody = failure.send(error);
        }
    })?;
    Ok((driver, DriverThread { thread, failed }))
}

fn now(began: Instant) -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mono_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Now { mono_ms, wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }
}

/// Who signs what this site writes. A site without a mesh has nobody to prove anything to.
pub(crate) struct Signer(pub(crate) Option<Arc<SiteKey>>);

impl Sealer for Signer {
    fn seal(&self, entries: &[&Entry]) {
        if let Some(key) = &self.0 {
            key.seal(entries);
        }
    }
}

struct DriverLoop {
    engine: Engine,
    signer: Signer,
    log: Box<dyn SiteLog>,
    actuators: Box<dyn Actuators>,
    space: Space,
    events: mpsc::Receiver<DriverInput>,
    requests: mpsc::Receiver<DriverRequest>,
    committed: watch::Sender<u64>,
    trouble: watch::Sender<Option<String>>,
    began: Instant,
    tickets: BTreeMap<Ticket, mpsc::UnboundedSender<SubmitUpdate>>,
    spans: OperationSpans,
    /// Found once: it counts with every commit.
    commit_seconds: metrics::Histogram,
    next_ticket: u64,
    draining: Option<oneshot::Sender<()>>,
    /// How much there was to do in the last turn.
    handled: usize,
    /// When to show followers of the log what was made durable since they last looked.
    settle_at: Option<Instant>,
    /// How long the next of it waits for more.
    settle_after: Duration,
    files: HeldFiles,
    /// For the jobs that report their end. While the driver runs, its own queues stay open.
    driver: Driver,
}

/// What was handled and waits to become durable: the reactions to many events, joined into one, for one
/// commit.
#[derive(Default)]
struct PendingTurn {
    reaction: Reaction,
    pins: Vec<FilePin>,
    questions: Vec<EngineQuestion>,
    /// Asked after decisions, and answered only when these are durable.
    decisions: Vec<EngineQuestion>,
    submitted: Vec<Ticket>,
    /// Who waits until followers of the log see all of it.
    settling: Vec<oneshot::Sender<()>>,
    /// Since when there is something in it to make durable.
    waits_since: Option<Instant>,
}

impl PendingTurn {
    /// Whether it can be joined with what comes next: nobody waits for any of it, and not too much
    /// time has passed.
    fn may_wait(&self) -> bool {
        self.reaction.may_wait()
            && self.questions.is_empty()
            && self.decisions.is_empty()
            && self.submitted.is_empty()
            && self.settling.is_empty()
            && self.pins.is_empty()
            && self.waits_since.is_none_or(|since| since.elapsed() < MAY_WAIT)
    }
}

impl DriverLoop {
    async fn run(mut self, first: Reaction) -> Result<(), AppendError> {
        let mut turn = PendingTurn { reaction: first, ..PendingTurn::default() };
        loop {
            if self.settle_at.is_some_and(|at| at <= Instant::now()) {
                self.settle()?;
            }
            if turn.may_wait() && self.draining.is_none() {
                self.gather(&mut turn).await;
                continue;
            }
            self.make_durable(&mut turn).await?;
            if !turn.settling.is_empty() {
                self.settle()?;
            }
            if self.settle_at.is_none() {
                for done in turn.settling.drain(..) {
                    let _gone = done.send(());
                }
            }
            let waited = turn.questions.drain(..).chain(turn.decisions.drain(..));
            for question in waited {
                question(&self.engine, now(self.began));
            }
            if self.is_drained() {
                self.settle()?;
                return Ok(());
            }
            turn = PendingTurn::default();
            self.gather(&mut turn).await;
        }
    }

    /// Waits for something to do, then takes all there is, up to a batch.
    async fn gather(&mut self, turn: &mut PendingTurn) {
        self.wait(turn).await;
        if self.handled >= BUSY {
            // More is on its way: a commit for many costs hardly more than one for a few. Nothing
            // else runs on this thread.
            std::thread::sleep(LINGER);
        }
        self.handled = 1;
        let until = Instant::now() + TURN;
        while self.handled < BATCH && Instant::now() < until {
            // In turn, so that neither those who ask nor the rest of the world has to wait long.
            let (input, request) = (self.events.try_recv(), self.requests.try_recv());
            if input.is_err() && request.is_err() {
                break;
            }
            if let Ok(input) = input {
                self.take(input, turn);
                self.handled += 1;
            }
            if let Ok(request) = request {
                self.serve(request, turn);
                self.handled += 1;
            }
        }
        if turn.reaction.has_news() && turn.waits_since.is_none() {
            turn.waits_since = Some(Instant::now());
        }
    }

    async fn wait(&mut self, turn: &mut PendingTurn) {
        let due =
            self.engine.next_deadline().map(|at_ms| self.began + Duration::from_millis(at_ms));
        let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
        let due = turn.waits_since.map_or(due, |since| due.min(since + MAY_WAIT));
        let due = self.settle_at.map_or(due, |at| due.min(at));
        tokio::select! {
            Some(input) = self.events.recv() => self.take(input, turn),
            Some(request) = self.requests.recv() => self.serve(request, turn),
            () = tokio::time::sleep_until(due.into()) => {
                let reaction = self.engine.handle(now(self.began), Event::Ticked);
                turn.reaction.join(reaction);
            }
        }
    }

    fn take(&mut self, input: DriverInput, turn: &mut PendingTurn) {
        turn.reaction.join(self.engine.handle(now(self.began), input.event));
        if let Some(files) = input.files {
            self.files.take(files);
        }
    }

    fn serve(&mut self, request: DriverRequest, turn: &mut PendingTurn) {
        match request {
            DriverRequest::Submit(submission, span, updates, pins) => {
                if let Err(why) = self.space.check() {
                    let _gone = updates.send(SubmitUpdate::NotDurable(why));
                    return;
                }
                self.submit(*submission, span, updates, turn);
                turn.pins.extend(pins);
            }
            DriverRequest::Ask(question) => turn.questions.push(question),
            DriverRequest::Decide(decision, question) => {
                turn.reaction.join(self.engine.handle(now(self.began), *decision));
                turn.decisions.push(question);
            }
            DriverRequest::Settle(done) => turn.settling.push(done),
            DriverRequest::Drain(done) => {
                self.engine.drain();
                self.draining = Some(done);
            }
        }
    }

    fn submit(
        &mut self,
        mut submission: Submission,
        span: Span,
        updates: mpsc::UnboundedSender<SubmitUpdate>,
        turn: &mut PendingTurn,
    ) {
        self.next_ticket += 1;
        submission.ticket = Ticket(self.next_ticket);
        self.tickets.insert(submission.ticket, updates);
        turn.submitted.push(submission.ticket);
        self.spans.begin(submission.ticket, span);
        let event = Event::Submitted(submission);
        turn.reaction.join(self.engine.handle(now(self.began), event));
    }

    /// Commits, however long it takes, and acts; unless this agent can never write the log again.
    async fn make_durable(&mut self, turn: &mut PendingTurn) -> Result<(), AppendError> {
        let free = turn.reaction.take_free();
        self.act(free);
        let mut reaction = Some(std::mem::take(&mut turn.reaction));
        let mut stuck = false;
        let has_news = reaction.as_ref().is_some_and(Reaction::has_news);
        if has_news {
            self.settle_at.get_or_insert_with(|| Instant::now() + self.settle_after);
        }
        while let Some(waiting) = reaction.take() {
            let began = Instant::now();
            match waiting.commit(&mut *self.log, &self.signer) {
                Ok(effects) => {
                    if has_news {
                        self.commit_seconds.record(began.elapsed());
                    }
                    if stuck {
                        tracing::info!("the log can be written again");
                        let _nobody = self.trouble.send(None);
                    }
                    self.act(effects);
                }
                Err(Uncommitted { error, .. }) if error.is_final() => return Err(error),
                Err(Uncommitted { error, reaction: again }) => {
                    if !stuck {
                        stuck = true;
                        self.report_trouble(&error, turn);
                    }
                    reaction = Some(again);
                    self.wait_for_room(&error).await;
                }
            }
        }
        turn.pins.clear();
        self.files.release(&self.engine);
        Ok(())
    }

    /// Shows followers of the log what became durable: that is all that is meant by it, nothing is decided
    /// (see [`SiteLog::settle`]). If the log's tables cannot be written, it
    /// takes what its journal has room for, and nobody else has to wait.
    fn settle(&mut self) -> Result<(), AppendError> {
        let began = Instant::now();
        match self.log.settle() {
            Ok(()) => {
                self.settle_at = None;
                let share = began.elapsed() * SETTLE_SHARE;
                self.settle_after = share.clamp(SETTLE_AFTER, SETTLE_AT_LAST);
                self.committed.send_modify(|commits| *commits += 1);
                self.trouble.send_if_modified(|trouble| trouble.take().is_some());
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => {
                self.settle_at = Some(Instant::now() + RETRY_AFTER);
                let news = error.to_string();
                if self.trouble.borrow().as_ref() != Some(&news) {
                    tracing::error!(%error, "changes cannot be shown to those who follow the log");
                    metrics::counter!("cheops_log_failures_total").increment(1);
                    let _nobody = self.trouble.send(Some(news));
                }
            }
        }
        Ok(())
    }

    fn report_trouble(&mut self, error: &AppendError, turn: &mut PendingTurn) {
        tracing::error!(%error, "the log cannot be written; operations are refused until it can");
        metrics::counter!("cheops_log_failures_total").increment(1);
        let _nobody = self.trouble.send(Some(error.to_string()));
        for ticket in turn.submitted.drain(..) {
            if let Some(updates) = self.tickets.remove(&ticket) {
                let _gone = updates
                    .send(SubmitUpdate::NotDurable(NotDurable::Undecided(error.to_string())));
            }
        }
        for question in turn.questions.drain(..) {
            question(&self.engine, now(self.began));
        }
    }

    /// A while in which questions are answered and operations refused.
    async fn wait_for_room(&mut self, error: &AppendError) {
        let until = tokio::time::Instant::now() + RETRY_AFTER;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                Some(request) = self.requests.recv() => match request {
                    DriverRequest::Submit(_, _, updates, _) => {
                        let why = NotDurable::Stuck(error.to_string());
                        let _gone = updates.send(SubmitUpdate::NotDurable(why));
                    }
                    DriverRequest::Ask(question) => question(&self.engine, now(self.began)),
                    // Not taken: who asked hears that nothing was decided, or shown.
                    DriverRequest::Decide(..) | DriverRequest::Settle(_) => {}
                    DriverRequest::Drain(done) => {
                        self.engine.drain();
                        self.draining = Some(done);
                    }
                },
            }
        }
    }

    fn act(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Answer { ticket, answer } => self.answer(ticket, answer),
                Effect::Run(job) => {
                    if matches!(job.task, Task::Snapshot { .. }) {
                        self.forget_snapshots(&job.resource);
                    }
                    let span = self.spans.of_job(&job);
                    self.actuators.run(job, span, self.driver.clone());
                }
                Effect::Tell { to, message } => self.actuators.tell(&to, message),
                Effect::Publish(resource, id_map) => {
                    self.actuators.publish(&resource, id_map);
                }
                Effect::SetApart(site, key) => self.actuators.set_apart(&site, key),
                Effect::Notify(notice) => {
                    if let Notice::Pruned(resource, _) = &notice {
                        self.forget_snapshots(resource);
                    }
                    self.actuators.notify(&notice);
                }
            }
        }
    }

    fn forget_snapshots(&self, resource: &ResourceId) {
        let needed = Box::new(self.engine.needs_snapshot(resource));
        self.actuators.retain_snapshots(resource, needed);
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.spans.answered(ticket, &answer);
        let last = matches!(answer, Answer::Done | Answer::TimedOut { .. } | Answer::Refused(_));
        if let Some(updates) = self.tickets.get(&ticket) {
            let _gone = updates.send(SubmitUpdate::Answer(answer));
        }
        if last {
            self.tickets.remove(&ticket);
        }
    }

    fn is_drained(&mut self) -> bool {
        if self.draining.is_none() || self.engine.running() > 0 {
            return false;
        }
        if let Some(done) = self.draining.take() {
            let _gone = done.send(());
        }
        true
    }
}
