//! Runs trials on the application: as an agent runs operations, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_agent::exec::{ExecSettings, Executor, RunToken};
use cheops_core::config::prove::{
    SampleRun, StepEnding, Trial, TrialResult, TrialResults, TrialSamples, TrialStep,
};
use cheops_core::config::{Config, StateCommands};
use cheops_core::engine::{Job, JobId, Task};
use cheops_core::model::{
    Author, EntryId, Incarnation, Operation, OperationId, Outcome, Payload, Replaces, ResourceId,
    SiteId, Stamp,
};
use cheops_core::plan::SnapshotId;
use tempfile::TempDir;

use super::states::{KeptTrialState, MAX_STATE_BYTES, States};
use crate::failure::Failure;
use crate::output::VerbOutput;
use crate::text::printable;

/// What commands find in `CHEOPS_SITE`.
const SITE: &str = "prove";
/// The last lines of what a command printed, for messages.
const PRINTED_CHARS: usize = 400;

/// Why trials ended early.
#[derive(Debug)]
pub(super) enum TrialsStopped {
    /// Somebody wanted it so.
    Interrupted,
    /// A state could not be read or written, or a sample cannot be tried.
    Broken { message: String, printed: String, hint: &'static str },
    /// Something else.
    Failure(Failure),
}

impl TrialsStopped {
    /// As the verb's failure; `also` is what is true all the same.
    pub(super) fn failure(self, also: Option<&str>) -> Failure {
        let also = also.map(|also| format!("; {also}")).unwrap_or_default();
        match self {
            Self::Interrupted => Failure::stopped(format!("stopped before all was tried{also}")),
            Self::Broken { message, printed, hint } => {
                let failure = Failure::ours(format!("{message}{also}")).hint(hint);
                if printed.is_empty() { failure } else { failure.because(printed) }
            }
            Self::Failure(failure) => failure,
        }
    }
}

impl From<Failure> for TrialsStopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs commands, and keeps the states they read.
pub(super) struct TrialRunner {
    executor: Executor,
    states: States,
    state: StateCommands,
    resource: ResourceId,
    operations: BTreeMap<SampleRun, SampleOperation>,
    starts: Vec<String>,
    limit: Duration,
    jobs: u64,
    /// How long a sample takes by itself: half of that is when a crash comes.
    took: BTreeMap<usize, Duration>,
    /// Where the executor puts files; goes with it.
    _scratch: TempDir,
}

/// An operation, and the commands that are about it.
struct SampleOperation {
    operation: Arc<Operation>,
    undo: Option<String>,
    check: Option<String>,
}

impl TrialRunner {
    pub(super) fn new(
        config: &Config,
        state: &StateCommands,
        samples: &TrialSamples,
        resource: ResourceId,
        limit: Duration,
        command: &dyn Fn(&str) -> String,
    ) -> Result<Self, Failure> {
        let cannot = |what: &str, error: Box<dyn std::error::Error>| {
            Failure::ours(format!("commands cannot be run: {what}")).because(error)
        };
        let scratch = tempfile::tempdir().map_err(|error| cannot("no folder", error.into()))?;
        let site = SiteId::new(SITE).map_err(|error| cannot("no site", error.into()))?;
        let run = RunToken::new(scratch.path()).map_err(|error| cannot("no name", error.into()))?;
        let mut settings = ExecSettings::new(site.clone(), run, scratch.path().join("files"));
        (settings.time_limit, settings.snapshot_limit) = (limit, MAX_STATE_BYTES);
        let states = States::default();
        let executor = Executor::new(settings, states.clone())
            .map_err(|error| cannot("no executor", error.into()))?;
        let mut operations = BTreeMap::new();
        for (n, sample) in samples.samples.iter().enumerate() {
            for twin in [false, true] {
                let run = SampleRun { sample: n, twin };
                let handling = config.handling(&sample.kind);
                let operation = SampleOperation {
                    operation: Arc::new(Operation {
                        id: operation_id(&site, run),
                        resource: resource.clone(),
                        stamp: Stamp { wall_ms: 0, counter: 0 },
                        claimed: Stamp { wall_ms: 0, counter: 0 },
                        parents: Vec::new(),
                        kind: sample.kind.clone(),
                        payload: Payload::Shell {
                            command: command(&sample.command),
                            files: Vec::new(),
                        },
                        replaces: Replaces::Nothing,
                        declares: None,
                        needs: BTreeSet::new(),
                        asked_by: None,
                    }),
                    undo: handling.undo.clone(),
                    check: handling.check.clone(),
                };
                operations.insert(run, operation);
            }
        }
        Ok(Self {
            executor,
            states,
            state: state.clone(),
            resource,
            operations,
            starts: samples.starts.iter().map(|start| command(start)).collect(),
            limit,
            jobs: 0,
            took: BTreeMap::new(),
            _scratch: scratch,
        })
    }

    /// The state there is.
    pub(super) async fn read(&mut self) -> Result<KeptTrialState, TrialsStopped> {
        let id = SnapshotId(self.jobs);
        let task = Task::Snapshot { id, command: self.state.read.clone() };
        match self.job(task).await {
            outcome if outcome.succeeded() => {
                Ok(KeptTrialState { id, bytes: self.states.take(id)? })
            }
            outcome => Err(TrialsStopped::Broken {
                message: "the state could not be read".to_owned(),
                printed: printed(&outcome),
                hint: "try the `Read` command by itself; a state of a trial is at most 16 MiB",
            }),
        }
    }

    /// Makes the resource so.
    async fn write(&mut self, state: &KeptTrialState) -> Result<(), TrialsStopped> {
        self.states.leave(state);
        let task =
            Task::Restore { id: state.id, command: self.state.write.clone(), shown_by: None };
        match self.job(task).await {
            outcome if outcome.succeeded() => Ok(()),
            outcome => Err(TrialsStopped::Broken {
                message: "the state could not be written".to_owned(),
                printed: printed(&outcome),
                hint: "try the `Write` command by itself, with what `Read` prints",
            }),
        }
    }

    /// Makes the resource so, and makes sure of it.
    pub(super) async fn put_back(&mut self, state: &KeptTrialState) -> Result<(), TrialsStopped> {
        self.write(state).await?;
        let now = self.read().await?;
        match now.bytes == state.bytes {
            true => Ok(()),
            false => Err(TrialsStopped::Broken {
                message: "what `Write` wrote is not what `Read` then gave".to_owned(),
                printed: difference(&state.bytes, &now.bytes),
                hint: "`Read` must print equal bytes for equal states, without times and the like",
            }),
        }
    }

    /// Ends whatever runs.
    pub(super) async fn stop(&self) {
        self.executor.stop().await;
    }

    /// Carries out all trials. Gives what came of each, and the states that they began with.
    pub(super) async fn try_all(
        &mut self,
        trials: &[Trial],
        before: &KeptTrialState,
        output: &mut VerbOutput,
    ) -> Result<(TrialResults, Vec<KeptTrialState>), TrialsStopped> {
        let starts = self.starts(before).await?;
        let began = Instant::now();
        let mut results = TrialResults::new();
        for (n, trial) in trials.iter().enumerate() {
            output.status(&progress(n, trials.len(), began.elapsed()));
            let start = &starts[trial.start.min(starts.len() - 1)];
            let result = self.trial(trial, start).await?;
            results.insert(trial.clone(), result);
        }
        Ok((results, starts))
    }

    /// The states to begin with: each is what its command makes of the state before, and can be
    /// written.
    async fn starts(
        &mut self,
        before: &KeptTrialState,
    ) -> Result<Vec<KeptTrialState>, TrialsStopped> {
        let mut starts = Vec::new();
        for command in self.starts.clone() {
            self.write(before).await?;
            let operation = operation_id_of(&self.resource_site()?, u64::MAX);
            let outcome = self.job(Task::Undo { operation, command: command.clone() }).await;
            if !outcome.succeeded() {
                return Err(TrialsStopped::Broken {
                    message: format!("the command for a state to begin with failed: `{command}`"),
                    printed: printed(&outcome),
                    hint: "mend it in `Start` of the samples",
                });
            }
            starts.push(self.read().await?);
        }
        if starts.is_empty() {
            starts.push(before.clone());
        }
        for start in &starts {
            self.put_back(start).await?;
        }
        Ok(starts)
    }

    fn resource_site(&self) -> Result<SiteId, Failure> {
        SiteId::new(SITE).map_err(|error| Failure::ours(error.to_string()))
    }

    async fn trial(
        &mut self,
        trial: &Trial,
        start: &KeptTrialState,
    ) -> Result<TrialResult, TrialsStopped> {
        self.write(start).await?;
        let mut endings = Vec::with_capacity(trial.steps.len());
        for (n, step) in trial.steps.iter().enumerate() {
            let again = trial.steps[..n].iter().any(|it| it.operation() == step.operation());
            endings.push(self.step(step, again, trial.steps.len() == 1).await?);
        }
        Ok(TrialResult { endings, state: self.read().await?.bytes })
    }

    async fn step(
        &mut self,
        step: &TrialStep,
        again: bool,
        alone: bool,
    ) -> Result<StepEnding, TrialsStopped> {
        let run = step.operation();
        let Some(sample) = self.operations.get(&run) else {
            return Err(Failure::ours("a sample is missing").into());
        };
        let (operation, id) = (Arc::clone(&sample.operation), sample.operation.id.clone());
        let (undo, check) = (sample.undo.clone(), sample.check.clone());
        let task = match step {
            TrialStep::Run(_) | TrialStep::Crash(_) => Task::Run(operation),
            TrialStep::Undo(_) => Task::Undo { operation: id, command: undo.unwrap_or_default() },
            TrialStep::Check(_) => {
                Task::Check { operation: id, command: check.unwrap_or_default() }
            }
        };
        if matches!(step, TrialStep::Crash(_)) {
            let half = self.took.get(&run.sample).copied().unwrap_or_default() / 2;
            let job = self.next_job(task, false);
            // Dropped, it ends the command at once and by force.
            let _ended = tokio::time::timeout(half, self.executor.run(&job)).await;
            return Ok(StepEnding::Crashed);
        }
        let began = Instant::now();
        let job = self.next_job(task, again);
        let outcome = self.executor.run(&job).await;
        if alone && matches!(step, TrialStep::Run(_)) {
            self.took.insert(run.sample, began.elapsed());
            if let Outcome::TimedOut { .. } = outcome {
                return Err(self.too_slow(run));
            }
        }
        Ok(match outcome.succeeded() {
            true => StepEnding::Done,
            false => StepEnding::Failed(printed(&outcome)),
        })
    }

    /// Every trial with it would take that long.
    fn too_slow(&self, run: SampleRun) -> TrialsStopped {
        let command = self.operations.get(&run).map(|it| match &it.operation.payload {
            Payload::Shell { command, .. } => command.clone(),
            Payload::Http { path, .. } => path.clone(),
        });
        let (command, limit) = (command.unwrap_or_default(), self.limit);
        TrialsStopped::Broken {
            message: format!("`{command}` did not end within {limit:?}"),
            printed: String::new(),
            hint: "`--timeout` gives it longer",
        }
    }

    async fn job(&mut self, task: Task) -> Outcome {
        let job = self.next_job(task, false);
        self.executor.run(&job).await
    }

    fn next_job(&mut self, task: Task, again: bool) -> Job {
        self.jobs += 1;
        let (id, resource) = (JobId(self.jobs), self.resource.clone());
        Job { id, resource, again, task, inline_body: None }
    }
}

fn operation_id(site: &SiteId, run: SampleRun) -> OperationId {
    let n = 2 * run.sample + usize::from(run.twin) + 1;
    operation_id_of(site, u64::try_from(n).unwrap_or(u64::MAX))
}

fn operation_id_of(site: &SiteId, n: u64) -> OperationId {
    let author = Author { site: site.clone(), incarnation: Incarnation::drawn(0) };
    OperationId(EntryId { author, n })
}

/// How far it is, and how long it takes still.
fn progress(done: usize, all: usize, elapsed: Duration) -> String {
    let told = format!("trial {} of {all}", done + 1);
    let left = u32::try_from(all - done).ok().zip(u32::try_from(done).ok().filter(|it| *it > 9));
    match left.map(|(left, done)| elapsed / done * left) {
        Some(left) if left > Duration::from_secs(90) => {
            format!("{told}, about {} min left", left.as_secs().div_ceil(60))
        }
        Some(left) => format!("{told}, about {} s left", left.as_secs() + 1),
        None => told,
    }
}

/// What a command said, for messages.
fn printed(outcome: &Outcome) -> String {
    let text = match outcome {
        Outcome::Exited { code, output } if output.text.trim().is_empty() => {
            format!("exit code {code}")
        }
        Outcome::Exited { output, .. } | Outcome::Answered { output, .. } => output.text.clone(),
        Outcome::TimedOut { limit_ms } => {
            format!("it did not end within {:?}", Duration::from_millis(*limit_ms))
        }
        Outcome::NotYet { reason, .. }
        | Outcome::NotStarted { reason }
        | Outcome::BrokenOff { reason } => reason.clone(),
    };
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(PRINTED_CHARS);
    printable(&text.chars().skip(skipped).collect::<String>())
}

/// The first line in which two states differ.
fn difference(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let (mut ones, mut others) = (one.lines(), other.lines());
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return "they differ in how lines end".to_owned(),
            (a, b) if a == b => {}
            (a, b) => {
                let told = |line: Option<&str>| match line {
                    Some(line) => format!(
                        "`{}`",
                        printable(&line.chars().take(PRINTED_CHARS).collect::<String>())
                    ),
                    None => "nothing more".to_owned(),
                };
                return format!("{} was written, and {} is there", told(a), told(b));
            }
        }
    }
}
