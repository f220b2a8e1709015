//! One fixed history of batches, so that a child process and the test that kills it need not talk
//! about what is written.

use std::time::Duration;

use cheops_core::engine::{Notice, Record};
use cheops_core::model::Incarnation;
use cheops_core::plan::Ended;
use cheops_store::{LoggedChange, Seq, StoreOptions};

use crate::support::{
    Clock, InMemory, Twin, converged, entry, id, pruned, reply, resource, site, step, vector,
};

/// Short enough that some of the history is swept.
pub(crate) const RETENTION: Duration = Duration::from_millis(40);

/// Batch `n` of the history, from 1: written when the clock shows `n`.
pub(crate) fn batch(n: u64) -> (Vec<Record>, Vec<Notice>) {
    let of = ["a", "b", "long/name/of/a/resource"][usize::try_from(n % 3).unwrap()];
    let (op, answer) = (id("paris", 2 * n), id("paris", 2 * n + 1));
    let mut records = vec![
        entry(of, op.clone()),
        Record::Begun(resource(of), step(op.clone())),
        Record::Finished(resource(of), step(op.clone()), Ended::Ok),
        reply(of, answer, op),
        Record::Knows(resource(of), site("lyon"), Incarnation(1), vector([id("paris", n)])),
    ];
    if n.is_multiple_of(5) {
        records.push(Record::Ran(resource(of), Box::default()));
    }
    if n.is_multiple_of(7) {
        records.push(pruned(of, [id("paris", n)]));
    }
    (records, vec![converged(of)])
}

/// What a log says from outside.
#[derive(Debug, PartialEq)]
pub(crate) struct LogContent {
    pub(crate) records: Vec<Record>,
    pub(crate) changes: Vec<LoggedChange>,
    pub(crate) last: Seq,
}

impl LogContent {
    /// Whether it is what was expected. What is past its retention goes when the tables take
    /// something over: it may be there longer.
    pub(crate) fn is(&self, expected: &Self) -> bool {
        self.records == expected.records
            && self.changes.ends_with(&expected.changes)
            && self.last == expected.last
    }
}

/// What a log with the first batches of the history says, for each number of batches up to this.
pub(crate) fn content_after_each(batches: u64) -> Vec<LogContent> {
    let clock = Clock::default();
    let mut memory = InMemory::new(clock.options(RETENTION));
    let tell = |memory: &mut InMemory| LogContent {
        records: memory.records(),
        changes: everything(|after| memory.changes(after.0, None, usize::MAX)),
        last: memory.last(),
    };
    let mut told = vec![tell(&mut memory)];
    for n in 1..=batches {
        clock.set(n);
        let (records, notices) = batch(n);
        memory.keep(&records, &notices).unwrap();
        told.push(tell(&mut memory));
    }
    told
}

/// All changes there are, wherever they begin.
pub(crate) fn everything(
    since: impl Fn(Seq) -> Result<cheops_store::LoggedChanges, cheops_store::ReadError>,
) -> Vec<LoggedChange> {
    match since(Seq(0)) {
        Ok(changes) => changes.items,
        Err(cheops_store::ReadError::Gone { oldest }) => since(oldest).unwrap().items,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) fn options(clock: &Clock) -> StoreOptions {
    clock.options(RETENTION)
}
