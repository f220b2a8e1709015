//! What to run next, given the list and what already ran.
//!
//! [`plan`] is a pure function of the list that [`crate::resolve`] gave, of the [`RunLog`] this
//! site keeps and of the resource's config. It names one step; the site makes the intent durable
//! ([`RunLog::begin`]), runs it, records how it ended ([`RunLog::finish`]) and asks again. Nothing
//! is remembered between two calls but the log, so the list may change at any moment and the site
//! may stop at any moment.
//!
//! The aim: the application's state is the one a fresh run of the list would give, reached with
//! few runs; or the site says that it has diverged, or waits for the operator. Never neither.
//!
//! # What is taken for granted
//!
//! 1. An operation that *overwrites* (it replaces its past, or its type is of the replacing kind)
//!    and succeeds takes away the effect of all that ran before. Except where an entry of the
//!    matrix says otherwise of a type: `take-both` (the two work on different parts of the state)
//!    or `ordered` (the order counts and neither replaces the other). Whether it succeeds does not
//!    depend on what it overwrites.
//! 2. Types that commute by the matrix may be swapped: same state, same successes and failures.
//! 3. A run that failed changed nothing.
//! 4. A command's effect and its success are functions of the state it finds.
//! 5. `Undo` right after its operation, or with only commuting ones in between, gives the state
//!    without it. `Restore` gives the state of its `Snapshot`. `Check` tells the truth.
//!
//! Where the matrix lies about 1 or 2, sites may differ and not know it.

mod assess;
mod classes;
mod log;
mod repair;
mod view;
mod why;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::model::{OperationId, OperationType, Replaces};

pub use log::{Decision, Run, RunEffect, RunLog, RunLogParts, Saved, SnapshotId, Trace};
pub use why::Divergence;

/// One operation, as far as planning needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Which one.
    pub id: OperationId,
    /// Its type.
    pub kind: OperationType,
    /// Whether it replaces its past.
    pub replaces: Replaces,
}

impl Item {
    /// A state that stands for operations which are forgotten: it overwrites whatever was there.
    pub fn state(id: OperationId) -> Self {
        Self { id, kind: OperationType::state(), replaces: Replaces::PastByForce }
    }
}

/// What the site is asked to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Run the operation. Ends with [`Ended::Ok`] or [`Ended::Ko`].
    Run(Item),
    /// Run its type's `Undo` command. Ends with [`Ended::Ok`] or [`Ended::Ko`].
    Undo(Item),
    /// Run its type's `Check` command. Ends with [`Ended::ItHappened`] or [`Ended::ItDidNot`].
    Check(Item),
    /// Run the `Snapshot` command and keep what it printed under this name.
    Snapshot(SnapshotId),
    /// Run the `Restore` command on what was kept under this name.
    Restore(SnapshotId),
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// It succeeded. An operation that was run in smaller steps of which some succeeded counts as
    /// this: it has changed something. For a check, the same as [`Ended::ItHappened`].
    Ok,
    /// It failed and changed nothing. For a check, the same as [`Ended::ItDidNot`].
    Ko,
    /// The check says that the operation has taken effect.
    ItHappened,
    /// The check says that it has not; or a run that came to nothing, and is to be tried again.
    ItDidNot,
}

/// What to do, and how this site stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What to do now.
    pub next: Next,
    /// Whether the list can be followed at all.
    pub health: Health,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// All is done.
    Nothing,
    /// This step, then plan again.
    Do(Step),
    /// It is not known whether this operation took effect, and nothing but the operator's word
    /// ([`RunLog::decide`]) or an operation that overwrites it can settle that.
    AwaitOperator(OperationId),
    /// The same, and this step makes no difference to it, nor it to the step.
    Meanwhile(OperationId, Step),
}

/// How this site stands towards the list. Never stored: it follows from the list and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Following the steps leads to the state of a fresh run; with nothing left to do, this is it.
    InStep,
    /// The state differs from a fresh run, and will not if an operation that failed here turns out
    /// to have failed at every site: it is void then. [`plan`] knows of no other site and never
    /// says this; see [`crate::engine`].
    Undecided {
        /// The last such operation.
        on: OperationId,
    },
    /// The state differs, or may differ, from a fresh run, and nothing this site can do repairs it.
    Diverged {
        /// What stands in the way.
        why: Divergence,
    },
}

/// What this site should do next to follow `list`.
///
/// Linear in the list and the log, but for a logarithm. For a list that stays as it is, the number
/// of steps until [`Next::Nothing`] or [`Next::AwaitOperator`] is bounded, whatever the matrix says;
/// not, though, if an operation that succeeded fails later and the other way round without a reason
/// in the state.
///
/// An operation that stands before one that overwrote it, and has never run here, is run all the
/// same, then the rest again from the overwriting one: every operation of the list gets its
/// verdict from every site. (Not where that could not surely be repaired, which takes a matrix of
/// several parts of which one reads another; then it stays without a run, and the state is right.)
pub fn plan(list: &[Item], log: &RunLog, config: &Config) -> Plan {
    repair::plan(list, log, config)
}

/// Whether the application holds what those of the list which are `over` come to, and the rest can be run
/// after them. Costs as [`plan`] does.
pub fn has_run_all(
    list: &[Item],
    log: &RunLog,
    config: &Config,
    over: impl Fn(&OperationId) -> bool,
) -> bool {
    log.in_doubt().is_none() && repair::has_run_all(list, log, config, over)
}

/// The same as [`plan`] in the usual case, without walking the list: where the plan was
/// [`Next::Nothing`] and [`Health::InStep`], and `item` was then appended to the list.
///
/// `None` where the short cut does not hold and [`plan`] must be asked.
pub fn plan_appended(log: &RunLog, item: &Item, config: &Config) -> Option<Plan> {
    if log.in_doubt().is_some() || log.has_run(&item.id) {
        return None;
    }
    let step = log.due_snapshot(config).unwrap_or_else(|| Step::Run(item.clone()));
    Some(Plan { next: Next::Do(step), health: Health::InStep })
}
