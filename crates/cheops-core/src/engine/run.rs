//! Running what the list asks for at this site: one step of a resource at a time, the intent
//! durable before it and the outcome after it. What follows when it has ended is in `jobs`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::context::Turn;
use super::durable::Record;
use super::needs::{Go, Needed};
use super::ports::{Effect, Job, JobId, Notice, Task};
use super::resource::Resource;
use super::settings::Application;
use crate::model::{
    Author, BlobId, Operation, OperationId, Outcome, Payload, StateFloor, Status, Vector,
};
use crate::plan::{
    self, Decision, Divergence, Ended, Health, Item, Next, Plan, RunEffect, RunLog, Step,
};
use crate::resolve::{ListChange, Resolution};

/// What ran here, what is running, and how far behind the list that is.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) log: RunLog,
    pub(super) health: Health,
    pub(super) current: Option<Current>,
    pub(super) awaits_operator: Option<OperationId>,
    /// Whether what came since changes nothing about that.
    still_awaits: bool,
    progress: LogProgress,
    /// Who may have been left out, or taken in again, since this was last looked at.
    look_for_superseded: StandingsToCheck,
    /// Whether it was said that all sites are done.
    said_converged: bool,
    /// How often the list changed, or something was run: what was read of the application before it did
    /// says nothing of it now.
    moved: u64,
    runs_for_this_list: BTreeMap<OperationId, usize>,
    /// When to try again what could not be tried, and how often that was so.
    retry: Option<Retry>,
    /// How the needs of the next operation stand.
    pub(super) needed: Option<Needed>,
}

#[derive(Debug, Clone)]
struct Retry {
    at_ms: u64,
    times: u32,
    reason: String,
}

/// How long to wait before the first time something is tried again, and at most.
const FIRST_RETRY_MS: u64 = 500;
const LAST_RETRY_MS: u64 = 30_000;

/// The step under way.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) job: JobId,
    pub(super) step: Step,
    pub(super) phase: Phase,
}

#[derive(Debug)]
pub(super) enum Phase {
    Whole,
    /// It failed, and the operator's program is asked for smaller steps.
    Decomposing {
        failure: Outcome,
    },
    /// Smaller steps are run until one fails.
    InParts {
        left: VecDeque<String>,
        done: u32,
        of: u32,
        last: Outcome,
    },
}

/// How the log stands to the list, so that the common case need not look at all of either.
#[derive(Debug)]
enum LogProgress {
    /// The log follows the list, but for these at its end.
    Follows(VecDeque<Item>),
    /// Anything may have changed.
    Unknown,
}

/// Whose standing to look at: usually that of very few, whatever the history.
#[derive(Debug)]
enum StandingsToCheck {
    At(Vec<OperationId>),
    AtAll,
}

impl Default for StandingsToCheck {
    fn default() -> Self {
        Self::At(Vec::new())
    }
}

impl StandingsToCheck {
    fn at(&mut self, operation: &OperationId) {
        if let Self::At(operations) = self {
            operations.push(operation.clone());
        }
    }
}

impl Default for LogProgress {
    fn default() -> Self {
        Self::Follows(VecDeque::new())
    }
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            log: RunLog::default(),
            health: Health::InStep,
            current: None,
            awaits_operator: None,
            still_awaits: false,
            progress: LogProgress::default(),
            look_for_superseded: StandingsToCheck::default(),
            said_converged: false,
            moved: 0,
            runs_for_this_list: BTreeMap::new(),
            retry: None,
            needed: None,
        }
    }
}

impl Runs {
    /// `goes_on`: the operation can be run, or be run from, also if something is in doubt.
    pub(super) fn list_changed(
        &mut self,
        change: &ListChange,
        operation: &Operation,
        goes_on: bool,
    ) {
        self.said_converged = false;
        self.runs_for_this_list.clear();
        if *change != ListChange::Nothing {
            self.moved += 1;
        }
        match change {
            ListChange::Appended => {
                self.still_awaits &= !operation.replaces.past() && !goes_on;
                if let LogProgress::Follows(appended) = &mut self.progress {
                    appended.push_back(item(operation));
                }
            }
            ListChange::Nothing => self.look_for_superseded.at(&operation.id),
            ListChange::Inserted | ListChange::Rearranged => self.list_rearranged(),
        }
    }

    /// The operation is in the list, and can be run here only when another site has said more of it.
    pub(super) fn list_waits(&mut self) {
        self.said_converged = false;
        self.runs_for_this_list.clear();
        self.moved += 1;
    }

    /// The operation stands before others in the list, and gives the same state after them.
    pub(super) fn list_grew(&mut self, operation: &Operation, goes_on: bool) {
        self.list_changed(&ListChange::Appended, operation, goes_on);
    }

    pub(super) fn list_rearranged(&mut self) {
        self.moved += 1;
        self.progress = LogProgress::Unknown;
        self.still_awaits = false;
        self.look_for_superseded = StandingsToCheck::AtAll;
        self.said_converged = false;
        self.runs_for_this_list.clear();
    }

    /// The log was read back: what was said before the stop need not be said again.
    pub(super) fn recovered(&mut self, had_converged: bool) {
        self.list_rearranged();
        self.said_converged = had_converged;
    }

    /// A site said something else than before, for example of what was in doubt there.
    pub(super) fn heard_otherwise(&mut self) {
        self.said_converged = false;
    }

    /// How often something moved.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether that operation is being run, or checked.
    pub(super) fn is_under_way(&self, id: &OperationId) -> bool {
        let step = self.current.as_ref().map(|current| &current.step);
        step.and_then(operation_of) == Some(id)
    }

    /// Forgets that the operation has run, so that it does again. Says whether it had.
    pub(super) fn forget_run(&mut self, id: &OperationId) -> bool {
        let had_run = self.log.forget_run(id);
        if had_run {
            self.progress = LogProgress::Unknown;
            self.moved += 1;
            self.said_converged = false;
        }
        had_run
    }

    pub(super) fn finished(&mut self, step: &Step, ended: Ended) {
        self.log.finish(step, ended);
        self.moved += 1;
        self.still_awaits = false;
        let was_this = |item: &Item| operation_of(step) == Some(&item.id);
        match &mut self.progress {
            LogProgress::Follows(appended) if appended.front().is_some_and(was_this) => {
                if ended != Ended::ItDidNot {
                    appended.pop_front();
                }
            }
            progress => *progress = LogProgress::Unknown,
        }
        self.no_longer_under_way(step);
    }

    /// The operation may have been superseded while the step ran, and so got no such reply then.
    fn no_longer_under_way(&mut self, step: &Step) {
        if let Some(operation) = operation_of(step) {
            self.look_for_superseded.at(operation);
        }
    }

    /// The step came to nothing, since what carries it out cannot be had; or, in doubt, maybe not
    /// to nothing. It is tried again a while later.
    pub(super) fn not_yet(&mut self, step: &Step, in_doubt: bool, reason: String, now_ms: u64) {
        let id = operation_of(step);
        if let Some(runs) = id.and_then(|id| self.runs_for_this_list.get_mut(id)) {
            // That was none.
            *runs = runs.saturating_sub(1);
        }
        // One doubt says as much as many.
        if !in_doubt || id.is_some_and(|id| self.log.doubts_again(id)) {
            self.finished(step, Ended::ItDidNot);
        } else {
            self.progress = LogProgress::Unknown;
            self.no_longer_under_way(step);
        }
        self.try_again(reason, now_ms);
    }

    /// A check came to no verdict, so that what is in doubt still is. It is made again a while
    /// later, as it would be after a crash.
    pub(super) fn checked_in_vain(&mut self, check: &Step, reason: String, now_ms: u64) {
        self.progress = LogProgress::Unknown;
        self.no_longer_under_way(check);
        self.try_again(reason, now_ms);
    }

    fn try_again(&mut self, reason: String, now_ms: u64) {
        let times = self.retry.as_ref().map_or(0, |retry| retry.times);
        let wait_ms = FIRST_RETRY_MS.saturating_mul(1 << times.min(10)).min(LAST_RETRY_MS);
        let at_ms = now_ms.saturating_add(wait_ms);
        self.retry = Some(Retry { at_ms, times: times.saturating_add(1), reason });
    }

    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.retry.as_ref().map(|retry| retry.at_ms)
    }

    /// What it waits for, if it waits for what it needs or to try something again.
    pub(super) fn waits_for(&self) -> Option<String> {
        match &self.needed {
            Some(Needed::NotYet(_, needed)) => {
                Some(format!("needs `{needed}`, which is not there yet"))
            }
            _ => self.retry.as_ref().map(|retry| retry.reason.clone()),
        }
    }

    /// What carries it out is there again.
    pub(super) fn reached(&mut self) {
        self.retry = None;
    }

    pub(super) fn retry_is_due(&self, now_ms: u64) -> bool {
        self.retry_ms().is_some_and(|at_ms| at_ms <= now_ms)
    }

    pub(super) fn is_idle(&self) -> bool {
        let nothing_appended =
            matches!(&self.progress, LogProgress::Follows(items) if items.is_empty());
        self.current.is_none() && self.awaits_operator.is_none() && nothing_appended
    }
}

/// How often one operation may be run for one and the same list, beyond once for each operation
/// there is: a repair may try it again after each one that it takes back.
const RUNS_TO_SPARE: usize = 8;

/// What is to be run of such a list: the state that stands for what was forgotten comes before it.
pub(super) fn items_of<'a>(
    resolution: &Resolution,
    list: impl Iterator<Item = &'a Arc<Operation>> + Clone,
) -> Vec<Item> {
    let state = resolution.state_before(list.clone().map(|operation| &operation.id));
    let state = state.and_then(StateFloor::stand_in).map(Item::state);
    state.into_iter().chain(list.map(|operation| item(operation))).collect()
}

pub(super) fn item(operation: &Operation) -> Item {
    Item { id: operation.id.clone(), kind: operation.kind.clone(), replaces: operation.replaces }
}

impl Resource {
    /// Does what the present knowledge asks for: replies to what will not run, and the next run, whose
    /// end is [`Resource::ended`].
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        if self.asks_programs() {
            self.judge_list(&self.listed_items());
        }
        match std::mem::take(&mut self.runs.look_for_superseded) {
            StandingsToCheck::At(operations) => {
                let out = operations.into_iter().filter_map(|id| {
                    let by = self.superseded_by(&id)?;
                    Some((id, by))
                });
                let out = out.collect();
                self.reply_superseded(out, turn);
            }
            StandingsToCheck::AtAll => {
                let me = turn.context.settings.me.clone();
                for (operation, status, outcome) in self.said_in_an_earlier_incarnation(&me) {
                    self.write_reply(&operation, status, outcome, turn);
                }
                for (operation, status, outcome) in self.no_longer_superseded(&me) {
                    self.write_reply(&operation, status, outcome, turn);
                }
                self.reply_superseded(self.newly_superseded(), turn);
            }
        }
        self.give_up_edits(turn);
        self.advance(turn);
        self.report_standing(turn);
        self.see_to_reading(turn);
        self.say_state_is_kept(turn);
        self.say_differs(turn);
        self.say_converged(turn);
    }

    fn reply_superseded(
        &mut self,
        superseded: Vec<(OperationId, OperationId)>,
        turn: &mut Turn<'_>,
    ) {
        for (operation, by) in superseded {
            let running =
                self.runs.current.as_ref().and_then(|current| operation_of(&current.step));
            if running == Some(&operation) {
                continue;
            }
            turn.notify(Notice::Superseded(self.id.clone(), operation.clone(), by.clone()));
            self.tell_why_left_out(&operation, turn);
            self.write_reply(&operation, Status::Superseded { by }, None, turn);
        }
    }

    fn say_converged(&mut self, turn: &mut Turn<'_>) {
        if self.runs.said_converged || !self.runs.is_idle() || self.knows.is_empty() {
            return;
        }
        if self.is_in_sync_everywhere(&turn.context.settings.me) {
            self.runs.said_converged = true;
            turn.notify(Notice::Converged(self.id.clone()));
        }
    }

    /// Starts the next step, if there is one and none is under way.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_>) {
        while self.begin_next(turn) == Begun::InVain {}
    }

    fn begin_next(&mut self, turn: &mut Turn<'_>) -> Begun {
        let waits = self.runs.retry_ms().is_some_and(|at_ms| at_ms > turn.now.mono_ms);
        // What another site says may end that.
        let undecided = matches!(self.runs.health, Health::Undecided { .. });
        let awaits_operator = self.runs.still_awaits && !undecided;
        if self.runs.current.is_some() || self.programs.is_asking() || awaits_operator || waits {
            return Begun::Enough;
        }
        self.give_up_restore(turn);
        let mut plan = self.next_plan();
        plan.health = self.judge_health(plan.health, turn);
        let plan = self.within_bounds(plan);
        self.report_health(plan.health, turn);
        if !matches!(plan.next, Next::Do(_) | Next::Meanwhile(..)) {
            // There is nothing to try again any more, nor to wait for.
            self.runs.needed = None;
            self.runs.retry = None;
        }
        match plan.next {
            Next::AwaitOperator(operation) => {
                self.report_in_doubt(operation, turn);
                self.runs.still_awaits = true;
                Begun::Enough
            }
            Next::Meanwhile(operation, step) => {
                self.report_in_doubt(operation, turn);
                self.begin(step, turn)
            }
            Next::Do(step) => {
                self.runs.awaits_operator = None;
                self.begin(step, turn)
            }
            Next::Nothing => {
                self.runs.awaits_operator = None;
                self.runs.progress = LogProgress::default();
                if let Some(stretch) = self.programs.asks_next()
                    && self.runs.health == Health::InStep
                {
                    self.ask_program(stretch, turn);
                }
                Begun::Enough
            }
        }
    }

    fn begin(&mut self, step: Step, turn: &mut Turn<'_>) -> Begun {
        match self.may_begin(&step, turn) {
            Go::On => self.start(step, turn),
            Go::Wait => {}
            Go::Fail(reason) => {
                self.fail(step, reason, turn);
                return Begun::InVain;
            }
        }
        Begun::Enough
    }

    /// Whether a step can be begun now, or must not be begun at all.
    fn may_begin(&mut self, step: &Step, turn: &mut Turn<'_>) -> Go {
        let settings = &turn.context.settings;
        let operation = match step {
            Step::Run(item) => self.operation(&item.id),
            _ => None,
        };
        let in_vain = operation.and_then(|operation| {
            let unnamed = self.cannot_be_named(operation, settings);
            unnamed.or_else(|| self.is_made_already(operation, settings))
        });
        match in_vain {
            Some(reason) => Go::Fail(reason),
            None => match operation.map(|operation| self.may_merge(operation, &settings.me)) {
                Some(Go::On) | None => self.has_what_it_needs(step, turn),
                Some(otherwise) => otherwise,
            },
        }
    }

    /// A run comes to nothing before it is begun. On record it is one that failed.
    fn fail(&mut self, step: Step, reason: String, turn: &mut Turn<'_>) {
        let Step::Run(item) = step else { return };
        *self.runs.runs_for_this_list.entry(item.id.clone()).or_default() += 1;
        let step = Step::Run(item.clone());
        self.runs.log.begin(&step);
        turn.record(Record::Begun(self.id.clone(), step));
        self.end_run(item, Status::Ko, Outcome::NotStarted { reason }, turn);
    }

    /// A crash cut a restore short, and the config has lost the command for it since.
    fn give_up_restore(&mut self, turn: &mut Turn<'_>) {
        if self.config().state.is_none() && self.runs.log.give_up_restore() {
            self.runs.progress = LogProgress::Unknown;
            turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        }
    }

    /// A plan that never comes to an end is no plan: every other bound in this engine holds by
    /// construction, this one is counted.
    fn within_bounds(&self, plan: Plan) -> Plan {
        let (Next::Do(Step::Run(item)) | Next::Meanwhile(_, Step::Run(item))) = &plan.next else {
            return plan;
        };
        let runs = self.runs.runs_for_this_list.get(&item.id).copied().unwrap_or(0);
        if runs < RUNS_TO_SPARE + self.resolution.operations().len() {
            return plan;
        }
        let why = Divergence::NoEnd { ran: item.id.clone() };
        // Whoever waits for a reply still gets one.
        let unheard = self.items().into_iter().find(|item| !self.runs.log.has_run(&item.id));
        let next = unheard.map_or(Next::Nothing, |item| Next::Do(Step::Run(item)));
        Plan { next, health: Health::Diverged { why } }
    }

    fn next_plan(&mut self) -> Plan {
        let config = self.config();
        if self.asks_programs() {
            return self.plan_by_programs();
        }
        if let LogProgress::Follows(appended) = &self.runs.progress
            && self.runs.log.in_doubt().is_none()
            && self.runs.health == Health::InStep
        {
            let Some(item) = appended.front() else {
                return Plan { next: Next::Nothing, health: Health::InStep };
            };
            if let Some(plan) = plan::plan_appended(&self.runs.log, item, &config) {
                return plan;
            }
        }
        self.runs.progress = LogProgress::Unknown;
        plan::plan(&self.items(), &self.runs.log, &config)
    }

    /// Where this site cannot come back to the state about which its program is to be asked, it has diverged;
    /// whoever waits for a reply still gets one.
    fn plan_by_programs(&mut self) -> Plan {
        self.runs.progress = LogProgress::Unknown;
        self.judge_list(&self.listed_items());
        let config = self.config();
        let plan = plan::plan(&self.items(), &self.runs.log, &config);
        let has_diverged = matches!(plan.health, Health::Diverged { .. });
        if !has_diverged || plan.next != Next::Nothing || self.programs.asks_next().is_none() {
            return plan;
        }
        self.programs.take_as_ordered(self.listed_items());
        Plan { health: plan.health, ..plan::plan(&self.items(), &self.runs.log, &config) }
    }

    /// What is to be run, as far as it is decided.
    pub(super) fn items(&self) -> Vec<Item> {
        if self.asks_programs() { self.judged_items() } else { self.listed_items() }
    }

    /// The list.
    fn listed_items(&self) -> Vec<Item> {
        let operations = self.resolution.operations();
        let listed: Vec<_> =
            self.resolution.list().filter_map(|id| operations.operation(id)).collect();
        let listed: Vec<_> =
            listed.into_iter().filter(|operation| !self.edits.awaits(&operation.id)).collect();
        items_of(&self.resolution, listed.iter().copied())
    }

    fn report_health(&mut self, health: Health, turn: &mut Turn<'_>) {
        if let Health::Diverged { why } = &health
            && self.runs.health != health
        {
            turn.notify(Notice::Diverged(self.id.clone(), why.clone()));
        }
        self.runs.health = health;
    }

    fn report_in_doubt(&mut self, operation: OperationId, turn: &mut Turn<'_>) {
        if self.runs.awaits_operator.as_ref() != Some(&operation) {
            turn.notify(Notice::InDoubt(self.id.clone(), operation.clone()));
        }
        if self.operation(&operation).is_some() {
            self.write_reply(&operation, Status::InDoubt, None, turn);
        }
        self.runs.awaits_operator = Some(operation);
    }

    fn start(&mut self, step: Step, turn: &mut Turn<'_>) {
        let Some(task) = self.task(&step, &turn.context.settings.me) else {
            // The config no longer has the command that the repair was begun with.
            let why = Divergence::UnknownPast;
            return self.report_health(Health::Diverged { why }, turn);
        };
        let Some(job) = turn.context.start_job(&self.id) else { return };
        let (mut again, mut inline_body) = (false, None);
        if let Step::Run(item) = &step {
            *self.runs.runs_for_this_list.entry(item.id.clone()).or_default() += 1;
            // Only requests to services make use of it, and not every log need be searched.
            let asks = match &task {
                Task::Run(operation) => operation.service_ref().is_some(),
                Task::Edit { .. } | Task::Merge { .. } => true,
                _ => false,
            };
            again = asks && self.runs.log.may_have_happened(&item.id);
            inline_body = self.inline_body(&item.id);
        }
        self.runs.needed = None;
        self.runs.log.begin(&step);
        turn.record(Record::Begun(self.id.clone(), step.clone()));
        self.runs.current = Some(Current { job, step, phase: Phase::Whole });
        let resource = self.id.clone();
        turn.effect(Effect::Run(Job { id: job, resource, again, task, inline_body }));
    }

    fn task(&mut self, step: &Step, me: &Author) -> Option<Task> {
        let config = self.config();
        if let Step::Run(item) = step
            && let Some(task) = self.edit_task(&item.id, me)
        {
            return Some(task);
        }
        Some(match step {
            Step::Run(item) if item.kind.is_state() => self.write_task(&item.id)?,
            Step::Run(item) => Task::Run(self.operation_to_run(&item.id)?),
            Step::Undo(item) => Task::Undo {
                operation: item.id.clone(),
                command: config.handling(&item.kind).undo.clone()?,
            },
            Step::Check(item) => Task::Check {
                operation: item.id.clone(),
                command: config.handling(&item.kind).check.clone()?,
            },
            Step::Snapshot(id) => {
                Task::Snapshot { id: *id, command: config.state.as_ref()?.read.clone() }
            }
            Step::Restore(id) => {
                let state = config.state.as_ref()?;
                let shown_by = self.failed_to_replace().map(|_| state.read.clone());
                Task::Restore { id: *id, command: state.write.clone(), shown_by }
            }
        })
    }

    /// The last operation of the list that failed here and was to replace what was before it: that does
    /// not count any more, and nothing is in its place.
    pub(super) fn failed_to_replace(&self) -> Option<OperationId> {
        let failed = |item: &Item| {
            item.replaces.past() && self.runs.log.outcome(&item.id) == Some(RunEffect::Refused)
        };
        self.items().into_iter().rev().find(failed).map(|item| item.id)
    }

    /// The operation, with the command that a program wants in the place of its own, if one does.
    fn operation_to_run(&self, id: &OperationId) -> Option<Arc<Operation>> {
        let operation = self.operation(id)?;
        let Some(command) = self.programs.command_for(id) else { return Some(operation.clone()) };
        let files = match &operation.payload {
            Payload::Shell { files, .. } => files.clone(),
            Payload::Http { .. } => Vec::new(),
        };
        let payload = Payload::Shell { command: command.clone(), files };
        Some(Arc::new(Operation { payload, ..Operation::clone(operation) }))
    }

    /// The bytes belong to the commands that held when they were read.
    fn write_task(&self, id: &OperationId) -> Option<Task> {
        let floor = self.resolution.pruned_state()?;
        let command = self.base_config()?.state.as_ref()?.write.clone();
        let is_it = floor.stand_in().as_ref() == Some(id);
        let (state, size) = (BlobId(floor.state.0), floor.size);
        is_it.then_some(Task::Write { state, size, command })
    }

    /// What was in doubt turned out to have happened.
    pub(super) fn reply_it_happened(&mut self, operation: &OperationId, turn: &mut Turn<'_>) {
        if self.operation(operation).is_some() && self.resolution.counts(operation) {
            self.write_reply(operation, Status::Ok, None, turn);
        }
        self.publish_id_map(turn);
    }

    /// The operator settles what is in doubt.
    pub(super) fn decide(&mut self, id: &OperationId, decision: Decision, turn: &mut Turn<'_>) {
        // What is under way, or being checked, is about to be known: to take it for undone now would
        // be to run it twice.
        let under_way = self.runs.current.as_ref().and_then(|current| operation_of(&current.step));
        if under_way == Some(id) || !self.runs.log.decide(id, decision) {
            return;
        }
        self.runs.progress = LogProgress::Unknown;
        self.runs.still_awaits = false;
        self.runs.look_for_superseded.at(id);
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        if decision == Decision::Skip {
            self.reply_it_happened(id, turn);
        }
    }

    /// Takes the word of a run that failed back, so that the operation is to be run.
    pub(super) fn run_again(&mut self, id: &OperationId, turn: &mut Turn<'_>) {
        let under_way = self.runs.current.as_ref().and_then(|current| operation_of(&current.step));
        if under_way == Some(id) || !self.runs.log.forget_refusal(id) {
            return;
        }
        self.runs.progress = LogProgress::Unknown;
        self.runs.moved += 1;
        self.runs.retry = None;
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
    }

    /// An earlier incarnation of this site may have run these, and its application may remember.
    pub(super) fn may_have_run(&mut self, known: &Vector, turn: &mut Turn<'_>) {
        if known.is_empty() || turn.context.settings.application == Application::Empty {
            return;
        }
        let log = &self.runs.log;
        let suspects: Vec<Item> = self
            .resolution
            .operations()
            .iter()
            .filter(|operation| known.includes(&operation.id.0) && !log.has_run(&operation.id))
            .filter(|operation| operation.id.0.author != turn.context.settings.me)
            .map(|operation| item(operation))
            .collect();
        if self.runs.log.may_have_run(suspects) {
            self.runs.still_awaits = false;
            self.runs.progress = LogProgress::Unknown;
            turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
        }
    }
}

/// What came of looking for the next step.
#[derive(Debug, PartialEq, Eq)]
enum Begun {
    /// It is begun, or none can be.
    Enough,
    /// It failed before it was begun: there may be another.
    InVain,
}

fn operation_of(step: &Step) -> Option<&OperationId> {
    match step {
        Step::Run(item) | Step::Undo(item) | Step::Check(item) => Some(&item.id),
        Step::Snapshot(_) | Step::Restore(_) => None,
    }
}
