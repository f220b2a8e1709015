//! One site: the application, the log, and steps that may be cut short.

use std::collections::BTreeMap;

use cheops_core::config::Config;
use cheops_core::model::OperationId;
use cheops_core::plan::{
    Decision, Ended, Health, Item, Next, Plan, RunLog, SnapshotId, Step, plan,
};

use super::app::{App, Command, State, fresh};

/// Where a step is cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    /// The intent is durable, nothing else happened.
    BeforeEffect,
    /// It happened, and the site does not know.
    AfterEffect,
}

/// One site with one resource.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) app: App,
    pub(crate) log: RunLog,
    pub(crate) commands: BTreeMap<OperationId, Command>,
    saved: BTreeMap<SnapshotId, App>,
    config: Config,
    /// After the last step on each operation that was cut short, whether the operation's effect
    /// was there: the operator saw it.
    pub(crate) seen: BTreeMap<OperationId, bool>,
    /// Every so many repair commands, one fails.
    pub(crate) flaky: Option<usize>,
    repairs: usize,
    /// Steps done in all.
    pub(crate) steps: usize,
    /// What happened, for the reader of a failed test.
    pub(crate) story: Vec<String>,
}

/// How a site stands when it has nothing left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rest {
    InStep,
    Diverged(String),
    InDoubt(OperationId),
}

impl Site {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            app: App::default(),
            log: RunLog::default(),
            commands: BTreeMap::new(),
            saved: BTreeMap::new(),
            config: config.clone(),
            seen: BTreeMap::new(),
            flaky: None,
            repairs: 0,
            steps: 0,
            story: Vec::new(),
        }
    }

    pub(crate) fn plan(&self, list: &[Item]) -> Plan {
        plan(list, &self.log, &self.config)
    }

    pub(crate) fn fresh(&self, list: &[Item]) -> State {
        fresh(list.iter().map(|item| self.commands[&item.id]))
    }

    /// Does one step; says whether there was one.
    pub(crate) fn step(&mut self, list: &[Item], crash: Option<Crash>) -> bool {
        let (Next::Do(step) | Next::Meanwhile(_, step)) = self.plan(list).next else {
            return false;
        };
        self.steps += 1;
        self.log.begin(&step);
        if crash == Some(Crash::BeforeEffect) {
            self.see(&step, false);
            self.tell(&format!("{step:?}: {crash:?}"), list);
            return true;
        }
        let ended = self.perform(&step).unwrap_or_else(|mistake| {
            self.tell(&format!("{step:?}"), list);
            panic!("{mistake}:\n{}\n{:?}\n{:?}", self.story.join("\n"), self.app, self.log);
        });
        self.tell(&format!("{step:?}: {ended:?} {crash:?}"), list);
        match crash {
            None => self.log.finish(&step, ended),
            Some(_) => self.see(&step, ended == Ended::Ok),
        }
        true
    }

    fn see(&mut self, step: &Step, happened: bool) {
        match step {
            Step::Run(item) => self.seen.insert(item.id.clone(), happened),
            Step::Undo(item) => self.seen.insert(item.id.clone(), !happened),
            Step::Restore(_) => {
                let ids = self.commands.keys();
                self.seen = ids.map(|id| (id.clone(), self.app.has(id))).collect();
                None
            }
            Step::Check(_) | Step::Snapshot(_) => None,
        };
    }

    fn tell(&mut self, what: &str, list: &[Item]) {
        let list: Vec<_> = list.iter().map(|item| (item.id.0.n, self.commands[&item.id])).collect();
        self.story.push(format!("{what}\n    list {list:?}"));
    }

    fn perform(&mut self, step: &Step) -> Result<Ended, String> {
        if !matches!(step, Step::Run(_) | Step::Check(_)) {
            self.repairs += 1;
            if self.flaky.is_some_and(|every| self.repairs.is_multiple_of(every)) {
                return Ok(Ended::Ko);
            }
        }
        Ok(match step {
            Step::Run(item) => match self.app.run(&item.id, self.commands[&item.id])? {
                true => Ended::Ok,
                false => Ended::Ko,
            },
            Step::Undo(item) => {
                self.app.undo(&item.id)?;
                Ended::Ok
            }
            Step::Check(item) if self.app.has(&item.id) => Ended::ItHappened,
            Step::Check(_) => Ended::ItDidNot,
            Step::Snapshot(id) => {
                self.saved.insert(*id, self.app.clone());
                Ended::Ok
            }
            Step::Restore(id) => {
                self.app = self.saved[id].clone();
                Ended::Ok
            }
        })
    }

    /// Runs until nothing is left to do, and says how the site stands then.
    pub(crate) fn settle(&mut self, list: &[Item]) -> Rest {
        let bound = self.steps + 10 * (list.len() + self.commands.len() + 3).pow(2);
        while self.step(list, None) {
            assert!(
                self.steps < bound,
                "no end to it:\n{}\n{:?}\n{:?}",
                self.story.join("\n"),
                self.log,
                self.plan(list)
            );
        }
        let plan = self.plan(list);
        match (plan.next, plan.health) {
            (Next::AwaitOperator(id), _) => Rest::InDoubt(id),
            (_, Health::InStep) => Rest::InStep,
            (_, Health::Undecided { .. }) => panic!("no plan knows of other sites"),
            (_, Health::Diverged { why }) => Rest::Diverged(why.to_string()),
        }
    }

    /// The same, with an operator at hand who tells what he saw, as far as he did.
    pub(crate) fn settle_with_operator(&mut self, list: &[Item]) -> Rest {
        loop {
            let rest = self.settle(list);
            let Rest::InDoubt(id) = &rest else { return rest };
            let Some(is_there) = self.seen.remove(id) else { return rest };
            let decision = if is_there { Decision::Skip } else { Decision::Rerun };
            self.story.push(format!("{id}: {decision:?}"));
            assert!(self.log.decide(id, decision), "nothing to decide on {id}");
        }
    }
}
