//! Carrying out what the engine asks for: shell commands and HTTP requests.
//!
//! Every ending is an [`Outcome`]; an exit code is data. A command runs as by `sh -c`,
//! without its text among the arguments that everyone can see, in a process group of its own, with
//! a time limit and an output limit, and nothing that it started survives it: when the shell ends,
//! the rest of its group is killed; what left the group is found by its environment, soon after;
//! when the agent ends in whatever way, its keeper ends everything that is left, also what left its
//! environment, where there are control groups; and an agent that starts ends what an earlier start
//! of it may have left all the same ([`end_leftovers`]). Who wants to start something that lasts
//! asks a service manager for it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `ask` | what a job asks for, in one command |
//! | `shell`, `streams` | one command: started, fed, listened to, ended |
//! | `edit` | documents that are merged: edited here, or merged with what another site made |
//! | `program` | programs that decide about operations made concurrently |
//! | `request` | one HTTP request to a service of the site, to which `services` leads |
//! | `fill`, `files` | placeholders, and the files they stand for |
//! | `capture`, `content` | what is printed; what the store is needed for |
//! | `start_failure` | why something was not even begun, and whether to try again |
//! | `running`, `processes`, `token`, `keeper`, `fence` | nothing survives |

mod ask;
mod capture;
mod content;
mod edit;
mod failures;
mod fence;
mod files;
mod fill;
mod keeper;
mod processes;
mod program;
mod request;
mod running;
mod settings;
mod shell;
mod start_failure;
mod streams;
mod token;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cheops_core::engine::{Event, Job, Task};
use cheops_core::model::{
    ID_PLACEHOLDER, Operation, Outcome, Payload, RequestKind, ResourceId, id_can_stand_in,
};
use tokio::sync::Semaphore;

pub use self::content::{ContentStore, Saving};
pub use self::processes::end_leftovers;
pub use self::program::{PROGRAM_LIMIT, ProgramSurroundings, program_input};
pub(crate) use self::settings::{AnswerRules, RequestSettings};
pub use self::settings::{Crowded, ExecError, ExecSettings};
pub use self::token::RunToken;

use self::ask::CommandRequest;
use self::edit::{Documents, EditEnding};
use self::failures::Failures;
use self::fence::Fence;
use self::files::RunDirectory;
use self::fill::{Insert, fill};
use self::keeper::Keeper;
use self::request::{OperationRequest, Requester};
use self::running::{RunningCommands, UnderWay};
use self::shell::{CommandEnding, Shell, ShellScript};
use self::streams::Input;

/// How long a reading command waits for room at most. Who asked for it waits along.
const ROOM_WITHIN: Duration = Duration::from_secs(5);
/// How long after a command ended what left its group may go on at most, about.
const SWEEP_AFTER: Duration = Duration::from_secs(2);

/// Runs jobs. Clones are the same executor.
#[derive(Clone)]
pub struct Executor {
    inner: Arc<ExecutorState>,
}

struct ExecutorState {
    shell: Shell,
    requester: Requester,
    content: Arc<dyn ContentStore>,
    running: Arc<RunningCommands>,
    failures: Failures,
    documents: Documents,
    /// For reading commands: anyone may ask for any number. Jobs are counted by the engine, and
    /// hooks, which may well ask for one, by who delivers them.
    room_for_shows: Semaphore,
    shows_at_once: usize,
    programs: BTreeMap<String, String>,
    site: OsString,
    scratch: PathBuf,
    time_limit: Duration,
    snapshot_limit: u64,
    sweep_is_due: AtomicBool,
    /// Before the keeper: who is inside when that is let go is ended.
    fence: Mutex<Option<Fence>>,
    keeper: Mutex<Option<Keeper>>,
}

impl Executor {
    /// Makes one, and starts its keeper. Needs no runtime; running jobs does.
    ///
    /// # Errors
    ///
    /// When the directory for files cannot be made, or the keeper not be started.
    pub fn new(settings: ExecSettings, content: impl ContentStore) -> Result<Self, ExecError> {
        let scratch = settings.scratch()?;
        let mut fence = if settings.alone { Fence::build(&settings.run) } else { None };
        let keeper = if cfg!(target_os = "linux") {
            let dir = fence.as_ref().map(Fence::dir);
            Some(Keeper::start(&settings.run, dir).map_err(ExecError::Keeper)?)
        } else {
            None
        };
        // After the keeper was started, which has to stay outside.
        fence = fence.and_then(Fence::enter);
        let requester = Requester {
            services: settings.services,
            requests: settings.requests,
            output_limit: settings.output_limit,
        };
        let shell = Shell {
            environment: settings::inherited(),
            dir: settings.shell_dir,
            run: settings.run,
            grace: settings.grace,
            output_limit: settings.output_limit,
        };
        let inner = ExecutorState {
            shell,
            requester,
            content: Arc::new(content),
            running: Arc::new(RunningCommands::new()),
            failures: Failures::default(),
            documents: Documents::default(),
            room_for_shows: Semaphore::new(settings.shows_at_once),
            shows_at_once: settings.shows_at_once,
            programs: settings.programs,
            site: settings.site.as_str().into(),
            scratch,
            time_limit: settings.time_limit,
            snapshot_limit: settings.snapshot_limit,
            sweep_is_due: AtomicBool::new(false),
            fence: Mutex::new(fence),
            keeper: Mutex::new(keeper),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Carries out a job.
    ///
    /// A job that [`Executor::stop`] cuts short never comes back from this: whether it happened is
    /// not known, so there is no outcome to be recorded, and the engine finds it in doubt when the
    /// agent starts again. Dropped, it ends the job's command at once.
    pub async fn run(&self, job: &Job) -> Outcome {
        self.run_whole(job).await.outcome
    }

    /// Carries out a job that may edit a document: with the event that its engine is to hear.
    pub async fn run_for_engine(&self, job: &Job) -> Event {
        let EditEnding { outcome, change } = self.run_whole(job).await;
        match change {
            Some(change) => Event::Edited { job: job.id, outcome, change: change.into() },
            None => Event::Ended { job: job.id, outcome },
        }
    }

    async fn run_whole(&self, job: &Job) -> EditEnding {
        let began = Instant::now();
        let ending = match self.inner.running.enter() {
            Some(under_way) => self.carry_out(job, under_way).await,
            None => None,
        };
        let Some(ending) = ending else { return std::future::pending().await };
        let outcome = &ending.outcome;
        self.inner.failures.note(job, outcome);
        let task = word_for(&job.task);
        metrics::counter!("cheops_jobs_total", "task" => task, "ending" => word_of(outcome))
            .increment(1);
        metrics::histogram!("cheops_job_seconds", "task" => task).record(began.elapsed());
        ending
    }

    /// Runs a reading command, of which nothing is recorded. The limit is for all of it, with the
    /// time that it waits for room.
    ///
    /// # Errors
    ///
    /// When others take all the room for such commands, for some seconds or up to the limit.
    pub async fn show(
        &self,
        resource: &ResourceId,
        command: &str,
        limit: Duration,
    ) -> Result<Outcome, Crowded> {
        let asked = Instant::now();
        let room = self.inner.room_for_shows.acquire();
        let Ok(Ok(_place)) = tokio::time::timeout(limit.min(ROOM_WITHIN), room).await else {
            return Err(Crowded { at_once: self.inner.shows_at_once });
        };
        let left = limit.saturating_sub(asked.elapsed());
        Ok(self.run_command(Some(resource), command, Vec::new(), Bytes::new(), left).await)
    }

    /// Runs a command that belongs to no job: with these variables, and this to read. Who calls
    /// this sees to it that there are not too many.
    pub(crate) async fn run_command(
        &self,
        resource: Option<&ResourceId>,
        command: &str,
        variables: Vec<(&'static str, OsString)>,
        input: Bytes,
        limit: Duration,
    ) -> Outcome {
        let stopping = || Outcome::NotStarted { reason: "this agent is stopping".to_owned() };
        let Some(mut under_way) = self.inner.running.enter() else { return stopping() };
        let input = if input.is_empty() { Input::Nothing } else { Input::Bytes(input) };
        let ask = CommandRequest { variables, input, ..CommandRequest::new(command, limit) };
        let outcome = self.inner.command(resource, ask, &mut under_way).await;
        self.inner.sweep_later();
        outcome.map_or_else(stopping, for_good)
    }

    /// Ends everything that runs, lets nothing start any more, and dismisses the keeper. A command
    /// is first asked to end, and a little later made to.
    pub async fn stop(&self) {
        self.inner.running.stop().await;
        let inner = Arc::clone(&self.inner);
        let ending = tokio::task::spawn_blocking(move || {
            let fence = inner.fence.lock().unwrap_or_else(PoisonError::into_inner).take();
            let escaped = processes::end_escaped(&inner.shell.run, |_| false)
                .and_then(|_| fence.map_or(Ok(()), Fence::clear));
            let keeper = inner.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (escaped, keeper) {
                // The keeper goes on trying.
                (Err(error), _) => tracing::warn!(%error, "not all commands could be ended"),
                (Ok(()), Some(keeper)) => keeper.dismiss(),
                (Ok(()), None) => {}
            }
        });
        let _ = ending.await;
    }

    /// `None` if the agent stops.
    async fn carry_out(&self, job: &Job, mut under_way: UnderWay) -> Option<EditEnding> {
        let inner = &self.inner;
        let is_request = matches!(&job.task, Task::Run(operation)
            if matches!(operation.payload, Payload::Http { .. }));
        let ending = match &job.task {
            Task::Run(operation) => {
                let outcome = inner.operation(job, operation, &mut under_way).await;
                outcome.map(|outcome| EditEnding { outcome, change: None })
            }
            Task::Edit { .. } | Task::Merge { .. } => {
                inner.edit_or_merge(job, &mut under_way).await
            }
            Task::Ask { .. } => {
                let outcome = inner.ask(job, &mut under_way).await;
                outcome.map(|outcome| EditEnding { outcome, change: None })
            }
            Task::Restore { shown_by: Some(read), .. } => {
                let shown = CommandRequest::new(read, inner.time_limit);
                let shown = inner.command(Some(&job.resource), shown, &mut under_way).await?;
                let ask = CommandRequest::of_job(job, inner);
                let restored = inner.command(Some(&job.resource), ask, &mut under_way).await;
                restored.map(|restored| {
                    let is_known = restored.succeeded() && shown.succeeded();
                    let outcome = if is_known { shown } else { for_good(restored) };
                    EditEnding { outcome, change: None }
                })
            }
            _ => {
                let ask = CommandRequest::of_job(job, inner);
                let outcome = inner.command(Some(&job.resource), ask, &mut under_way).await;
                outcome.map(|outcome| EditEnding { outcome: for_good(outcome), change: None })
            }
        };
        drop(under_way);
        if !is_request {
            inner.sweep_later();
        }
        ending
    }
}

impl ExecutorState {
    /// Carries out an operation's command or request; `None` if the agent stops.
    async fn operation(
        &self,
        job: &Job,
        operation: &Operation,
        under_way: &mut UnderWay,
    ) -> Option<Outcome> {
        match &operation.payload {
            Payload::Http { service, method, path, headers, body, service_ref } => {
                let asked = OperationRequest {
                    operation: &operation.id,
                    again: job.again,
                    kind: RequestKind::of(&operation.kind),
                    is_ours: operation.id.0.author.site.as_str() == self.site,
                    service,
                    method,
                    path,
                    headers,
                    body: body.as_ref(),
                    inline_body: job.inline_body.as_deref(),
                    service_ref: service_ref.as_deref(),
                };
                let answer = self.requester.ask(asked, &self.content, self.time_limit);
                tokio::select! {
                    outcome = answer => Some(outcome),
                    () = under_way.stopped() => None,
                }
            }
            Payload::Shell { command, .. } => {
                let ask = CommandRequest::new(command, self.time_limit).about(operation);
                let outcome = self.command(Some(&job.resource), ask, under_way).await;
                if let Some(Outcome::NotYet { reason, .. }) = &outcome {
                    tracing::warn!(operation = %operation.id, reason, "a command has to wait");
                }
                outcome
            }
        }
    }

    /// Runs one command with all that belongs to it; `None` if the agent stops.
    async fn command(
        &self,
        resource: Option<&ResourceId>,
        ask: CommandRequest<'_>,
        under_way: &mut UnderWay,
    ) -> Option<Outcome> {
        let CommandRequest { command, operation, mut variables, files, input, prints, limit } = ask;
        let mut inserts = Vec::new();
        variables.push(("CHEOPS_SITE", self.site.clone()));
        if let Some(resource) = resource {
            if let Err(unusable) = id_can_stand_in(command, resource) {
                return Some(Outcome::NotStarted { reason: unusable.to_string() });
            }
            variables.push(("CHEOPS_RESOURCE", resource.as_str().into()));
            let id = Insert::of(resource.as_str(), "CHEOPS_RESOURCE");
            inserts.push((ID_PLACEHOLDER.to_owned(), id));
        }
        if let Some(operation) = operation {
            variables.push(("CHEOPS_OPERATION", operation.to_string().into()));
        }
        let placed = if files.is_empty() {
            None
        } else {
            match RunDirectory::place(&self.scratch, under_way.n, files, &self.content).await {
                Ok(placed) => Some(placed),
                Err(start_failure) => return Some(start_failure.into()),
            }
        };
        if let Some(placed) = &placed {
            variables.push(("CHEOPS_FILES", placed.dir.clone().into()));
            inserts.extend(placed.inserts());
        }
        let text: Cow<'_, str> = fill(command, &inserts);
        let script = ShellScript { text, variables, surroundings: None, input, prints, limit };
        let ending = self.shell.run(script, under_way).await;
        if let Some(placed) = placed {
            placed.remove().await;
        }
        outcome(ending, limit)
    }

    /// Sees to it that what left its group is ended: not with every command, since a look at all
    /// processes of the machine costs more than a command.
    fn sweep_later(self: &Arc<Self>) {
        if !cfg!(target_os = "linux") || self.sweep_is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(SWEEP_AFTER).await;
            let Some(inner) = inner.upgrade() else { return };
            // Before the look: who ends during it asks for another.
            inner.sweep_is_due.store(false, Ordering::Release);
            let sweep = tokio::task::spawn_blocking(move || {
                processes::end_escaped(&inner.shell.run, |n| inner.running.is_under_way(n))
            });
            match sweep.await {
                Ok(Ok(0)) | Err(_) => {}
                Ok(Ok(ended)) => {
                    tracing::warn!(ended, "processes outlived their command and were ended");
                }
                Ok(Err(error)) => tracing::warn!(%error, "processes outlived their command"),
            }
        });
    }
}

fn outcome(ending: CommandEnding, limit: Duration) -> Option<Outcome> {
    Some(match ending {
        CommandEnding::Exited { code, output } => Outcome::Exited { code, output },
        CommandEnding::TimedOut => Outcome::TimedOut { limit_ms: millis(limit) },
        CommandEnding::StartFailure(start_failure) => start_failure.into(),
        CommandEnding::Unseen(reason) => Outcome::NotYet { reason, in_doubt: true },
        CommandEnding::Broken(reason) => Outcome::failure(reason),
        CommandEnding::Stopped => return None,
    })
}

/// A duration as replies hold it.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Of what nobody tries again: all but whole operations.
fn for_good(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::NotYet { reason, .. } => Outcome::NotStarted { reason },
        outcome => outcome,
    }
}

fn word_for(task: &Task) -> &'static str {
    match task {
        Task::Run(operation) => match operation.payload {
            Payload::Shell { .. } => "shell",
            Payload::Http { .. } => "http",
        },
        Task::Edit { .. } => "edit",
        Task::Merge { .. } => "merge",
        Task::Ask { .. } => "ask",
        Task::RunPart { .. } => "part",
        Task::Decompose { .. } => "decompose",
        Task::Undo { .. } => "undo",
        Task::Check { .. } => "check",
        Task::Snapshot { .. } => "snapshot",
        Task::Restore { .. } => "restore",
        Task::Read { .. } => "read",
        Task::Write { .. } => "write",
    }
}

fn word_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::TimedOut { .. } => "timed-out",
        Outcome::NotYet { .. } => "not-yet",
        Outcome::NotStarted { .. } => "not-started",
        outcome if outcome.succeeded() => "ok",
        _ => "failed",
    }
}
