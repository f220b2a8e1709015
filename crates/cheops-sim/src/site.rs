//! One simulated site: an engine, its disk, its application, and commands under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::config::Config;
use cheops_core::engine::{Engine, Job, JobId, Now, Settings, Task};
use cheops_core::model::{
    DocumentEdit, Fingerprint, KeyId, Operation, OperationId, Outcome, Payload, ResourceId, SiteId,
};

use crate::application::{RanTwice, SimApplication, SimState};
use crate::disk::Disk;
use crate::programs;
use crate::service::SimService;
use crate::service_load::KnownIdMaps;

/// A day on which the simulated world begins.
const EPOCH_MS: u64 = 1_760_000_000_000;

/// A site and all that belongs to it.
#[derive(Debug)]
pub struct SimSite {
    /// Its name.
    pub id: SiteId,
    /// The agent's brain; none while it is down.
    pub engine: Option<Engine>,
    /// What survives a crash of the agent.
    pub disk: Disk,
    /// What survives a crash of the agent, too: it is another process.
    pub application: SimApplication,
    /// A service beside the agent; another process as well.
    pub service: SimService,
    /// What requests are known by, as the agent last said.
    pub directory: KnownIdMaps,
    /// Operations whose large bodies are gone from here.
    pub shed: BTreeSet<OperationId>,
    /// How wrong its clock is.
    pub skew_ms: i64,
    /// Counts starts of the agent, so that what belonged to an earlier one is not taken for its
    /// own.
    pub start: u64,
    /// With which the agent starts.
    pub settings: Settings,
    /// Commands under way.
    pub running: BTreeMap<JobId, RunningJob>,
    /// The keys from which it hears nothing any more.
    pub set_apart: BTreeSet<KeyId>,
    /// Whether it plays along only as long as it likes.
    pub lies: bool,
    /// Whether it took in a stamp with nothing after it; see [`crate::Bug::StampsAsClaimed`].
    pub saw_end_of_time: bool,
    /// What was last read of each resource, where that is told instead of what is read; see
    /// [`crate::Bug::StateOfAnotherList`].
    pub read_before: Option<BTreeMap<ResourceId, String>>,
    /// States that are kept on the disk, by their fingerprints.
    pub states: BTreeMap<Fingerprint, SimState>,
    /// When the next tick is scheduled.
    pub tick_ms: Option<u64>,
}

/// A command under way.
#[derive(Debug)]
pub struct RunningJob {
    /// What was asked for.
    pub job: Job,
    /// How it ended, once its effect is there.
    pub outcome: Option<Outcome>,
    /// What it made of a document, if it edits one.
    pub change: Option<Arc<[u8]>>,
}

impl SimSite {
    /// The time as this site reads it.
    pub fn now(&self, now_ms: u64) -> Now {
        let wall_ms = (EPOCH_MS + now_ms).saturating_add_signed(self.skew_ms);
        Now { mono_ms: now_ms, wall_ms }
    }

    /// What a command does, done: the moment at which the application changes.
    pub fn carry_out(
        &mut self,
        job: JobId,
        config: impl Fn(&ResourceId) -> Arc<Config>,
    ) -> Result<(), RanTwice> {
        let Some(running) = self.running.get_mut(&job) else { return Ok(()) };
        let resource = &running.job.resource;
        let application = &mut self.application;
        let outcome = match &running.job.task {
            Task::Run(operation) => {
                let again_is_fine = config(resource).handling(&operation.kind).idempotent;
                let command = command_at(operation, &self.id);
                outcome(application.run(resource, &operation.id, command, again_is_fine)?)
            }
            Task::Edit { operation, merged, .. } => {
                let command = command_at(operation, &self.id);
                let known = texts(merged);
                let done =
                    application.edit(resource, &operation.id, command, &known, running.job.again);
                running.change = done.as_ref().ok().map(|change| change.as_bytes().into());
                outcome(done)
            }
            Task::Merge { operation, merged, new, .. } => {
                let (known, new) = (texts(merged), texts(new));
                application.merge(resource, operation, &known, &new, running.job.again);
                Outcome::success("")
            }
            Task::Ask { program, question, .. } => {
                let state = application.value(resource).text;
                programs::answer(program, question, &state, &self.id)
            }
            Task::RunPart { operation, command } => {
                outcome(application.run_part(resource, &operation.id, command))
            }
            Task::Decompose { operation, .. } => Outcome::success(ones(command_of(operation))),
            Task::Undo { operation, .. } => ended(application.undo(resource, operation)),
            Task::Check { operation, .. } => ended(application.holds(resource, operation)),
            Task::Snapshot { id, .. } => {
                application.snapshot(resource, id.0);
                Outcome::success("")
            }
            Task::Restore { id, shown_by, .. } => {
                let before = application.value(resource).text;
                match (application.restore(resource, id.0), shown_by) {
                    (true, Some(_)) => Outcome::success(before),
                    (done, _) => ended(done),
                }
            }
            Task::Write { state, .. } => match self.states.get(&Fingerprint(state.0)) {
                Some(saved) => ended(application.write(resource, saved)),
                None => Outcome::failure("its content is not here"),
            },
            Task::Read { keep, .. } => {
                let mut state = application.value(resource).text;
                if let Some(before) = self.read_before.as_mut() {
                    // Planted: what was read the last time.
                    let last = before.insert(resource.clone(), state.clone());
                    state = last.unwrap_or(state);
                }
                let found = Fingerprint::of(state.as_bytes());
                if *keep {
                    self.states.insert(found, application.saved(resource));
                    Outcome::success(format!("{found} {}", state.len()))
                } else {
                    Outcome::success(found.to_string())
                }
            }
        };
        running.outcome = Some(outcome);
        Ok(())
    }
}

fn outcome(result: Result<String, String>) -> Outcome {
    match result {
        Ok(text) => Outcome::success(text),
        Err(text) => Outcome::failure(text),
    }
}

fn ended(well: bool) -> Outcome {
    if well { Outcome::success("") } else { Outcome::failure("") }
}

/// What edits made, in words.
fn texts(edits: &[DocumentEdit]) -> Vec<String> {
    edits.iter().map(|edit| String::from_utf8_lossy(&edit.change).into_owned()).collect()
}

/// The steps into which an operation is taken apart: `take 3` is three times `take 1`.
fn ones(command: &str) -> String {
    let Some((verb, count)) = command.split_once(' ') else { return String::new() };
    let count = count.parse().unwrap_or(0);
    vec![format!("{verb} 1"); count].join("\n")
}

/// The command of an operation.
pub fn command_of(operation: &Operation) -> &str {
    match &operation.payload {
        Payload::Shell { command, .. } => {
            command.rsplit_once('!').map_or(command, |(_, rest)| rest)
        }
        Payload::Http { .. } => "",
    }
}

/// The same at one site: `paris!inc 5` fails at paris, and is `inc 5` elsewhere.
pub fn command_at<'a>(operation: &'a Operation, site: &SiteId) -> &'a str {
    match &operation.payload {
        Payload::Shell { command, .. } => match command.split_once('!') {
            Some((at, _)) if at == site.as_str() => "fail",
            Some((_, rest)) => rest,
            None => command,
        },
        Payload::Http { .. } => "",
    }
}
