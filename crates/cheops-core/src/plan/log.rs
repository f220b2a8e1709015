//! What ran at this site, in order. The durable memory of planning.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::view::{self, RunFate};
use super::{Ended, Item, Step};
use crate::config::Config;
use crate::model::{OperationId, Vector};

/// Runs between two snapshots: fewer cost more snapshots, more cost longer repairs.
const RUNS_PER_SNAPSHOT: u64 = 16;
/// The first one, which fits every list, and the latest ones, which save the most work.
const SNAPSHOTS_KEPT: usize = 3;

/// Names a snapshot of one resource at one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SnapshotId(pub u64);

/// What a finished run did to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEffect {
    /// It succeeded, and what it changed is there.
    Took,
    /// It failed and changed nothing.
    Refused,
}

/// The operator's word on an operation that is in doubt: because its run was cut short, or its
/// undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It is done: what it changes is there. (If the list has left it out, it is undone if it can
    /// be.)
    Skip,
    /// It is not: it runs again, if the list still has it.
    Rerun,
}

/// What is known of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trace {
    /// It took effect.
    Took,
    /// It had none.
    Refused,
    /// Begun, and how it ended is not known.
    MayHaveRun,
    /// It took effect, and its undo was begun; how that ended is not known.
    MayBeUndone,
}

impl Trace {
    pub(super) fn in_doubt(self) -> bool {
        matches!(self, Self::MayHaveRun | Self::MayBeUndone)
    }
}

/// One run, at its place in the order of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// What ran.
    pub item: Item,
    /// What is known of it.
    pub trace: Trace,
    /// Its undo failed, or would bring back a state that is no longer recorded.
    pub fixed: bool,
    /// It belongs to an incarnation of the disk that is lost: when it ran, as compared with others
    /// like it, is not known.
    pub recalled: bool,
}

/// A saved state, and the runs that lead to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its name.
    pub id: SnapshotId,
    /// The runs.
    pub runs: Vec<Run>,
}

/// How the runs of an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RunsEnding {
    last: RunEffect,
    /// How often in a row it was refused.
    refusals: u32,
}

/// What ran at this site on one resource, in order.
///
/// Every method is deterministic, so the durable form may be the value itself or the calls that
/// led to it. [`Default`] is for an application known to hold nothing of the resource; see
/// [`RunLog::unknown_before`] for one that may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLog {
    /// Oldest first. What an overwriting run wiped away stays, until it is pruned: the undo of
    /// that run would bring it back.
    pub(super) runs: Vec<Run>,
    /// The last outcome of everything that ever ended here.
    ended: BTreeMap<OperationId, RunsEnding>,
    /// Begun and not finished.
    pending: Option<Step>,
    /// Oldest first.
    pub(super) snapshots: Vec<Saved>,
    /// All that may have run in an incarnation that is lost, for as long as one of them is among
    /// the runs: even what is not there any more may have had a part in what is.
    pub(super) suspects: Vec<Item>,
    next_snapshot: u64,
    /// Runs since a snapshot was last asked for.
    since_snapshot: u64,
}

/// A run log taken apart, for who writes it down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLogParts {
    /// Oldest first.
    pub runs: Vec<Run>,
    /// The last outcome of everything that ever ended here, and how often in a row it was refused.
    pub ended: Vec<(OperationId, RunEffect, u32)>,
    /// Begun and not finished.
    pub pending: Option<Step>,
    /// Oldest first.
    pub snapshots: Vec<Saved>,
    /// All that may have run in an incarnation that is lost.
    pub suspects: Vec<Item>,
    /// The name that the next snapshot gets.
    pub next_snapshot: u64,
    /// Runs since a snapshot was last asked for.
    pub since_snapshot: u64,
}

impl From<&RunLog> for RunLogParts {
    fn from(log: &RunLog) -> Self {
        let RunLog { runs, ended, pending, snapshots, suspects, next_snapshot, since_snapshot } =
            log.clone();
        let ended =
            ended.into_iter().map(|(id, RunsEnding { last, refusals })| (id, last, refusals));
        let ended = ended.collect();
        Self { runs, ended, pending, snapshots, suspects, next_snapshot, since_snapshot }
    }
}

impl From<RunLogParts> for RunLog {
    fn from(parts: RunLogParts) -> Self {
        let RunLogParts {
            runs,
            ended,
            pending,
            snapshots,
            suspects,
            next_snapshot,
            since_snapshot,
        } = parts;
        let ended =
            ended.into_iter().map(|(id, last, refusals)| (id, RunsEnding { last, refusals }));
        let ended = ended.collect();
        Self { runs, ended, pending, snapshots, suspects, next_snapshot, since_snapshot }
    }
}

impl RunLog {
    /// The log of a site that lost its disk but maybe not its application: any of these
    /// operations may have run in its earlier incarnation, in any order. They are in doubt until an
    /// overwriting operation, a check or the operator settles them.
    pub fn unknown_before(suspects: impl IntoIterator<Item = Item>) -> Self {
        let mut log = Self::default();
        log.may_have_run(suspects);
        log
    }

    /// The same, learned later: before anything in this log, these may have run too. Says whether
    /// there was anything new in that.
    pub fn may_have_run(&mut self, suspects: impl IntoIterator<Item = Item>) -> bool {
        let recall = |item| Run { item, trace: Trace::MayHaveRun, fixed: false, recalled: true };
        let known: BTreeSet<_> = self.runs.iter().map(|run| run.item.id.clone()).collect();
        let new = suspects.into_iter().filter(|item| !known.contains(&item.id));
        let recalled: Vec<_> = new.map(recall).collect();
        self.suspects.extend(recalled.iter().map(|run| run.item.clone()));
        // What is in the application is in the snapshots that were taken of it.
        let saved = self.snapshots.iter_mut().map(|saved| &mut saved.runs);
        for runs in saved.chain([&mut self.runs]) {
            runs.splice(0..0, recalled.iter().cloned());
        }
        !recalled.is_empty()
    }

    /// Records that a step is about to be run. To be durable before it is.
    pub fn begin(&mut self, step: &Step) {
        match step {
            Step::Run(item) => self.begin_run(item),
            Step::Undo(item) => self.set_last(&item.id, Trace::Took, Trace::MayBeUndone),
            Step::Restore(id) if self.pending.as_ref() == Some(step) => self.doubt_since(*id),
            Step::Check(_) | Step::Snapshot(_) | Step::Restore(_) => {}
        }
        self.pending = Some(step.clone());
    }

    /// Records how the step that was begun last ended.
    pub fn finish(&mut self, step: &Step, ended: Ended) {
        self.pending = None;
        let succeeded = matches!(ended, Ended::Ok | Ended::ItHappened);
        match step {
            Step::Run(item) if ended == Ended::ItDidNot => self.settle(&item.id, false),
            Step::Run(item) => self.finish_run(item, succeeded),
            Step::Undo(item) => self.finish_undo(&item.id, succeeded),
            Step::Check(item) => self.settle(&item.id, succeeded),
            Step::Snapshot(id) => self.finish_snapshot(*id, succeeded),
            Step::Restore(id) => self.finish_restore(*id, succeeded),
        }
    }

    /// A restore was begun and cannot be ended any more, for example since the config has lost its
    /// command: what it would have brought back or taken away is in doubt. Says whether there was
    /// one.
    pub fn give_up_restore(&mut self) -> bool {
        let Some(Step::Restore(id)) = self.pending else { return false };
        self.doubt_since(id);
        self.pending = None;
        true
    }

    /// The step that was begun and not finished. After a restart, it is in doubt.
    pub fn in_doubt(&self) -> Option<&Step> {
        self.pending.as_ref()
    }

    /// Takes the operator's word on an operation that [`super::Next::AwaitOperator`] named. Says
    /// whether there was anything to decide.
    pub fn decide(&mut self, id: &OperationId, decision: Decision) -> bool {
        if self.last(id, Trace::in_doubt).is_none() {
            return false;
        }
        self.settle(id, decision == Decision::Skip);
        self.pending = None;
        true
    }

    /// Forgets that the operation was refused, as if it had not been tried. Says whether it was.
    pub fn forget_refusal(&mut self, id: &OperationId) -> bool {
        if self.outcome(id) != Some(RunEffect::Refused) {
            return false;
        }
        self.ended.remove(id);
        self.runs.retain(|run| run.item.id != *id || run.trace != Trace::Refused);
        true
    }

    /// Forgets that the operation has run, whatever came of it. Says whether it had. Only for what may run
    /// in any order, and any number of times.
    pub fn forget_run(&mut self, id: &OperationId) -> bool {
        self.runs.retain(|run| run.item.id != *id);
        self.ended.remove(id).is_some()
    }

    /// Whether a run of the operation has ended here, at any time.
    pub fn has_run(&self, id: &OperationId) -> bool {
        self.ended.contains_key(id)
    }

    /// Whether it may have taken effect here before: it did when it last ended, or whether it did
    /// is in doubt.
    pub fn may_have_happened(&self, id: &OperationId) -> bool {
        self.outcome(id) == Some(RunEffect::Took)
            || self.suspects.iter().any(|suspect| suspect.id == *id)
            || self.is_in_doubt(id)
    }

    /// Whether the last two runs are both of it and in doubt: the second says no more than the
    /// first, since nothing happened in between.
    pub fn doubts_again(&self, id: &OperationId) -> bool {
        let mut last = self.runs.iter().rev().filter(|run| run.trace != Trace::Refused);
        let mut is_one =
            || last.next().is_some_and(|run| run.item.id == *id && run.trace.in_doubt());
        is_one() && is_one()
    }

    /// Whether it was begun here, and nobody can tell whether it happened.
    pub fn is_in_doubt(&self, id: &OperationId) -> bool {
        self.last(id, Trace::in_doubt).is_some()
    }

    /// How the operation's last run ended here.
    pub fn outcome(&self, id: &OperationId) -> Option<RunEffect> {
        self.ended.get(id).map(|ending| ending.last)
    }

    /// How often in a row the operation was refused here.
    pub(super) fn refusals(&self, id: &OperationId) -> u32 {
        self.ended.get(id).map_or(0, |ending| ending.refusals)
    }

    /// The snapshots that may still be asked for; the site may drop all others.
    pub fn needs_snapshot(&self, id: SnapshotId) -> bool {
        // One that is being made is not in the log yet.
        id.0 >= self.next_snapshot || self.snapshots().any(|kept| kept == id)
    }

    /// The snapshots that may still be brought back.
    pub fn snapshots(&self) -> impl Iterator<Item = SnapshotId> {
        self.snapshots.iter().map(|saved| saved.id)
    }

    /// Forgets what cannot matter again of operations that `upto` includes and that are no longer
    /// in the list, for good: their outcomes, and their runs where no effect is left. A run whose
    /// effect is there stays, whatever became of its operation.
    pub fn prune(&mut self, upto: &Vector, list: &[Item], config: &Config) {
        let listed: BTreeSet<_> = list.iter().map(|item| &item.id).collect();
        // A state is no entry, which no vector includes.
        let is_over = |id: &OperationId| upto.includes(&id.0) || id.0.n > u64::MAX / 2;
        let gone = |id: &OperationId| is_over(id) && !listed.contains(id);
        self.ended.retain(|id, _| !gone(id));
        forget(&mut self.runs, &gone, config);
        for saved in &mut self.snapshots {
            forget(&mut saved.runs, &gone, config);
        }
        let mut saved = self.snapshots.iter().flat_map(|saved| &saved.runs);
        if !self.runs.iter().any(|run| run.recalled) && !saved.any(|run| run.recalled) {
            self.suspects.clear();
        }
    }

    /// From now on `state` stands for the runs of what is up to there: the application holds what they came
    /// to, and what ran since.
    pub fn stand_on(&mut self, upto: &Vector, state: Item) {
        let is_over = |item: &Item| upto.includes(&item.id.0) || item.kind.is_state();
        self.runs.retain(|run| !is_over(&run.item));
        let trace = Trace::Took;
        self.runs.insert(0, Run { item: state.clone(), trace, fixed: false, recalled: false });
        self.ended.retain(|id, _| !upto.includes(&id.0));
        self.ended.insert(state.id, RunsEnding { last: RunEffect::Took, refusals: 0 });
        // What led to them is not on record any more.
        self.snapshots.clear();
        self.suspects.retain(|suspect| !is_over(suspect));
    }

    /// The snapshot to take before the next run, where one is due.
    pub(super) fn due_snapshot(&self, config: &Config) -> Option<Step> {
        let never = self.next_snapshot == 0;
        // What is merged is never gone back from.
        let may_go_back = config.state.is_some() && config.merged_as().is_none();
        let due = may_go_back && (never || self.since_snapshot >= RUNS_PER_SNAPSHOT);
        due.then_some(Step::Snapshot(SnapshotId(self.next_snapshot)))
    }

    fn begin_run(&mut self, item: &Item) {
        if self.has_run(&item.id) {
            self.runs.retain(|run| run.item.id != item.id || run.trace != Trace::Refused);
        }
        let item = item.clone();
        self.runs.push(Run { item, trace: Trace::MayHaveRun, fixed: false, recalled: false });
    }

    fn finish_run(&mut self, item: &Item, succeeded: bool) {
        let trace = if succeeded { Trace::Took } else { Trace::Refused };
        self.set_last(&item.id, Trace::MayHaveRun, trace);
        self.note(&item.id, succeeded);
        self.since_snapshot = self.since_snapshot.saturating_add(1);
    }

    fn finish_undo(&mut self, id: &OperationId, succeeded: bool) {
        let Some(at) = self.last(id, |trace| trace == Trace::MayBeUndone) else { return };
        if succeeded {
            self.take_away(at);
        } else {
            self.runs[at].trace = Trace::Took;
            self.runs[at].fixed = true;
        }
    }

    fn finish_restore(&mut self, id: SnapshotId, succeeded: bool) {
        let Some(at) = self.snapshots.iter().position(|saved| saved.id == id) else { return };
        if succeeded {
            self.runs.clone_from(&self.snapshots[at].runs);
        } else {
            self.snapshots.remove(at);
        }
    }

    /// What was in doubt is known now.
    fn settle(&mut self, id: &OperationId, is_there: bool) {
        let Some(at) = self.last(id, Trace::in_doubt) else { return };
        if is_there {
            self.runs[at].trace = Trace::Took;
            self.note(id, true);
        } else {
            self.take_away(at);
        }
    }

    /// Drops a run whose effect is not there (any more). What was refused since may have been so
    /// because of it, and is to be tried again.
    fn take_away(&mut self, at: usize) {
        self.runs.remove(at);
        let mut index = 0;
        self.runs.retain(|run| {
            index += 1;
            index <= at || run.trace != Trace::Refused
        });
    }

    /// A restore is begun again after a crash, or never will be: until it succeeds, the application
    /// may be as it was before, or as the snapshot has it.
    fn doubt_since(&mut self, id: SnapshotId) {
        let Some(saved) = self.snapshots.iter().find(|saved| saved.id == id) else { return };
        let same = self.runs.iter().zip(&saved.runs).take_while(|(a, b)| a == b).count();
        let either = saved.runs[same..].iter().cloned().chain(self.runs.drain(same..));
        let doubtful: Vec<_> = either
            .filter(|run| run.trace != Trace::Refused)
            .map(|run| Run { trace: Trace::MayHaveRun, recalled: true, ..run })
            .collect();
        self.suspects.extend(doubtful.iter().map(|run| run.item.clone()));
        self.runs.extend(doubtful);
    }

    fn finish_snapshot(&mut self, id: SnapshotId, succeeded: bool) {
        // A snapshot that failed is not asked for again at once.
        self.next_snapshot = id.0.saturating_add(1);
        self.since_snapshot = 0;
        if succeeded {
            self.snapshots.push(Saved { id, runs: self.runs.clone() });
        }
        if self.snapshots.len() > SNAPSHOTS_KEPT {
            self.snapshots.remove(1);
        }
    }

    fn note(&mut self, id: &OperationId, took: bool) {
        let ending = match took {
            true => RunsEnding { last: RunEffect::Took, refusals: 0 },
            false => RunsEnding {
                last: RunEffect::Refused,
                refusals: self.refusals(id).saturating_add(1),
            },
        };
        self.ended.insert(id.clone(), ending);
    }

    fn last(&self, id: &OperationId, trace: impl Fn(Trace) -> bool) -> Option<usize> {
        self.runs.iter().rposition(|run| run.item.id == *id && trace(run.trace))
    }

    fn set_last(&mut self, id: &OperationId, from: Trace, to: Trace) {
        if let Some(at) = self.last(id, |trace| trace == from) {
            self.runs[at].trace = to;
        }
    }
}

/// Drops the runs that left no effect, if one of them is gone for good. All of them, since each may
/// be the one that wiped away another; and from then on the overwriting runs cannot be undone, for
/// what that would bring back is no longer recorded.
fn forget(runs: &mut Vec<Run>, gone: &impl Fn(&OperationId) -> bool, config: &Config) {
    let fates = view::fates(runs, config);
    let wiped_and_gone = |(run, fate): (&Run, &RunFate)| fate.is_wiped && gone(&run.item.id);
    let forgets_wiped = runs.iter().zip(&fates).any(wiped_and_gone);
    let mut fates = fates.into_iter();
    runs.retain_mut(|run| {
        let Some(fate) = fates.next() else { return true };
        run.fixed |= forgets_wiped && fate.overwrites;
        let is_void = run.trace == Trace::Refused && gone(&run.item.id);
        let is_forgotten = is_void || (forgets_wiped && fate.is_wiped);
        !is_forgotten
    });
}
