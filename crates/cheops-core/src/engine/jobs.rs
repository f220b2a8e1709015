//! The end of a job and what follows: smaller steps for what failed whole, the outcome on record,
//! and the reply.

use std::collections::VecDeque;
use std::sync::Arc;

use super::context::Turn;
use super::durable::Record;
use super::ports::{Effect, Job, JobId, Notice, Task};
use super::resource::Resource;
use super::run::{Current, Phase};
use super::timers::Timer;
use crate::model::{EntryBody, Extension, Outcome, Reply, Status};
use crate::plan::{Ended, Item, Step};

/// So much of what a command printed is shown as a reason.
const MOST_SHOWN: usize = 512;

impl Resource {
    /// The job of the step under way came to its end.
    pub(super) fn ended(
        &mut self,
        job: JobId,
        outcome: Outcome,
        change: Option<Arc<[u8]>>,
        turn: &mut Turn<'_>,
    ) {
        let Some(current) = self.runs.current.take_if(|current| current.job == job) else {
            if !self.program_answered(job, &outcome, turn) {
                self.read_ended(job, &outcome, turn);
            }
            return;
        };
        match (&current.step, current.phase) {
            (step @ Step::Run(item), Phase::Whole) if item.kind.is_state() => {
                self.state_was_written(step, &outcome, turn);
            }
            (step @ Step::Run(_), Phase::Whole)
                if let Outcome::NotYet { reason, in_doubt } = &outcome =>
            {
                self.runs.not_yet(step, *in_doubt, reason.clone(), turn.now.mono_ms);
                // What was tried in vain however often takes no more room than once.
                let log = Box::new(self.runs.log.clone());
                turn.record(Record::Ran(self.id.clone(), log));
                self.set_retry(turn);
            }
            (check @ Step::Check(item), _) if let Some(why) = no_verdict(&outcome) => {
                let reason = format!("the check whether `{}` happened {why}", item.id);
                self.runs.checked_in_vain(check, reason, turn.now.mono_ms);
                self.set_retry(turn);
            }
            (Step::Run(item), Phase::Whole) => {
                self.runs.reached();
                let item = item.clone();
                let decompose = self.config().handling(&item.kind).decompose.clone();
                match decompose {
                    Some(command) if !outcome.succeeded() => {
                        self.decompose(item, command, outcome, turn);
                    }
                    _ => self.end_whole_run(item, outcome, change, turn),
                }
            }
            (Step::Run(item), Phase::Decomposing { failure }) => {
                let left = steps_of(&outcome);
                let of = u32::try_from(left.len()).unwrap_or(u32::MAX);
                self.run_parts(item.clone(), left, 0, of, failure, turn);
            }
            (Step::Run(item), Phase::InParts { left, done, of, last }) => {
                if outcome.succeeded() {
                    self.run_parts(item.clone(), left, done + 1, of, outcome, turn);
                } else {
                    let status = parts_status(done, of);
                    let shown = if done == 0 { last } else { outcome };
                    self.end_run(item.clone(), status, shown, turn);
                }
            }
            (step, _) => {
                if matches!(step, Step::Check(_)) {
                    self.runs.reached();
                }
                if matches!(step, Step::Restore(_)) && outcome.succeeded() {
                    self.tell_what_was_written_over(&outcome, turn);
                }
                let ended = ended_otherwise(step, &outcome);
                self.finish(step.clone(), ended, turn);
                if let (Step::Check(item), Ended::ItHappened) = (step, ended) {
                    self.reply_it_happened(&item.id, turn);
                }
            }
        }
    }

    /// An operation that was to replace all before it failed here, so the state goes back to what it was
    /// before that: what is written over is nowhere else, and is told with the failure, to be read.
    fn tell_what_was_written_over(&mut self, restored: &Outcome, turn: &mut Turn<'_>) {
        let me = &turn.context.settings.me;
        let Some(failed) = self.failed_to_replace().filter(|_| !restored.text().is_empty()) else {
            return;
        };
        let said = self.replies.get(&failed).and_then(|replies| replies.by(me));
        let Some(reply) = said.filter(|reply| reply.status == Status::Ko).cloned() else { return };
        let Some(told) = reply.outcome.as_ref().and_then(|it| it.written_over(restored)) else {
            return;
        };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, outcome: Some(told), ..reply };
        self.write(EntryBody::Reply(reply), Vec::new(), turn);
    }

    /// A state that cannot be written yet is written a while later: nothing can be run before it.
    fn state_was_written(&mut self, step: &Step, outcome: &Outcome, turn: &mut Turn<'_>) {
        if outcome.succeeded() {
            self.runs.reached();
            return self.finish(step.clone(), Ended::Ok, turn);
        }
        let (why, in_doubt) = match outcome {
            Outcome::NotYet { reason, in_doubt } => (reason.clone(), *in_doubt),
            Outcome::NotStarted { reason } => (reason.clone(), false),
            Outcome::TimedOut { limit_ms } => (format!("it took more than {limit_ms} ms"), true),
            other => (other.text().trim().chars().take(MOST_SHOWN).collect(), true),
        };
        let reason = format!("the state that all sites verified could not be written: {why}");
        self.runs.not_yet(step, in_doubt, reason, turn.now.mono_ms);
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        self.set_retry(turn);
    }

    fn set_retry(&self, turn: &mut Turn<'_>) {
        if let Some(at_ms) = self.runs.retry_ms() {
            turn.context.timers.set(at_ms, Timer::Retry(self.id.clone()));
        }
    }

    fn decompose(&mut self, item: Item, command: String, failure: Outcome, turn: &mut Turn<'_>) {
        let Some(operation) = self.operation(&item.id).cloned() else {
            return self.end_run(item, Status::Ko, failure, turn);
        };
        let phase = Phase::Decomposing { failure };
        self.run_next(item, phase, Task::Decompose { operation, command }, turn);
    }

    /// Runs the next smaller step, or says how far they got.
    fn run_parts(
        &mut self,
        item: Item,
        mut left: VecDeque<String>,
        done: u32,
        of: u32,
        last: Outcome,
        turn: &mut Turn<'_>,
    ) {
        match (left.pop_front(), self.operation(&item.id).cloned()) {
            (Some(command), Some(operation)) => {
                let phase = Phase::InParts { left, done, of, last };
                self.run_next(item, phase, Task::RunPart { operation, command }, turn);
            }
            _ => self.end_run(item, parts_status(done, of), last, turn),
        }
    }

    /// Goes on with the step under way by another job. The step took the resource's place among
    /// the running ones already, so that it does not queue again.
    fn run_next(&mut self, item: Item, phase: Phase, task: Task, turn: &mut Turn<'_>) {
        let job = turn.context.next_job(&self.id);
        self.runs.current = Some(Current { job, step: Step::Run(item), phase });
        let resource = self.id.clone();
        turn.effect(Effect::Run(Job { id: job, resource, again: false, task, inline_body: None }));
    }

    fn end_whole_run(
        &mut self,
        item: Item,
        outcome: Outcome,
        change: Option<Arc<[u8]>>,
        turn: &mut Turn<'_>,
    ) {
        let beside = change.map(|change| Extension::edit(&change)).into_iter().collect();
        self.end_run_with(item, whole_status(&outcome), outcome, beside, turn);
    }

    pub(super) fn end_run(
        &mut self,
        item: Item,
        status: Status,
        outcome: Outcome,
        turn: &mut Turn<'_>,
    ) {
        self.end_run_with(item, status, outcome, Vec::new(), turn);
    }

    fn end_run_with(
        &mut self,
        item: Item,
        status: Status,
        outcome: Outcome,
        beside: Vec<Extension>,
        turn: &mut Turn<'_>,
    ) {
        let ended = if status == Status::Ko { Ended::Ko } else { Ended::Ok };
        let operation = item.id.clone();
        self.finish(Step::Run(item), ended, turn);
        turn.notify(match status {
            Status::Ko => Notice::Failed(self.id.clone(), operation.clone()),
            _ => Notice::Applied(self.id.clone(), operation.clone()),
        });
        if status == Status::Ok {
            self.edit_ended(&operation, turn);
        }
        self.write_reply_with(&operation, status, Some(outcome), beside, turn);
        self.publish_id_map(turn);
    }

    fn finish(&mut self, step: Step, ended: Ended, turn: &mut Turn<'_>) {
        self.runs.finished(&step, ended);
        turn.record(Record::Finished(self.id.clone(), step, ended));
    }
}

fn whole_status(outcome: &Outcome) -> Status {
    if outcome.succeeded() { Status::Ok } else { Status::Ko }
}

/// No step succeeded: nothing happened, as if it had simply failed.
fn parts_status(done: u32, of: u32) -> Status {
    if done == 0 { Status::Ko } else { Status::Partial { done, of } }
}

/// A program may print any number of steps; more than this is a mistake in it.
const MOST_STEPS: usize = 10_000;

fn steps_of(outcome: &Outcome) -> VecDeque<String> {
    let text = if outcome.succeeded() && !outcome.is_truncated() { outcome.text() } else { "" };
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // A list that is cut off, or endless, is no list: its last step might be half a command.
    let most = if lines().count() > MOST_STEPS { 0 } else { MOST_STEPS };
    lines().take(most).map(str::to_owned).collect()
}

/// Why a check told nothing, if it did not. To take that for a no would be to run something twice.
fn no_verdict(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Exited { .. } | Outcome::Answered { .. } => None,
        Outcome::BrokenOff { reason } => Some(reason.clone()),
        Outcome::TimedOut { limit_ms } => Some(format!("did not end within {limit_ms} ms")),
        Outcome::NotYet { reason, .. } | Outcome::NotStarted { reason } => {
            Some(format!("could not be begun: {reason}"))
        }
    }
}

fn ended_otherwise(step: &Step, outcome: &Outcome) -> Ended {
    match step {
        Step::Check(_) if outcome.succeeded() => Ended::ItHappened,
        Step::Check(_) => Ended::ItDidNot,
        _ if outcome.succeeded() => Ended::Ok,
        _ => Ended::Ko,
    }
}
