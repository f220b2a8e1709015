//! What is on the disk: the records and notices of a log, as bodies of rows.
//!
//! A body begins with its version. This is version 2; [`crate::v1`] reads the one before.

use cheops_core::engine::{Base, Ending, Malformed, Notice, PastDecision, Record};
use cheops_core::model::ResourceId;
use cheops_core::plan::{
    Divergence, Ended, Item, Run, RunEffect, RunLog, RunLogParts, Saved, SnapshotId, Step, Trace,
};
use std::sync::Arc;

use crate::code::{ByteReader, Form, FormError, Writer, choices, kinds, parts};
use crate::form::{Placed, put_entry, take_entry};

/// The version of bodies that is written.
pub const VERSION: u8 = 2;

parts!(SnapshotId, 1, { 0: number });
parts!(Item, 7, { id: id, kind: kind, replaces: replaces });
kinds!(Step, "a step", {
    1 => Run { 0: item },
    2 => Undo { 0: item },
    3 => Check { 0: item },
    4 => Snapshot { 0: id },
    5 => Restore { 0: id },
});
choices!(Ended, "an end of a step", { 1 => Ok, 2 => Ko, 3 => ItHappened, 4 => ItDidNot });
choices!(RunEffect, "an effect", { 1 => Took, 2 => Refused });
choices!(Trace, "a trace of a run", {
    1 => Took,
    2 => Refused,
    3 => MayHaveRun,
    4 => MayBeUndone,
});
parts!(Run, 10, { item: item, trace: trace, fixed: fixed, recalled: recalled });
parts!(Saved, 2, { id: id, runs: runs });
parts!(RunLogParts, 7, {
    runs: runs,
    ended: ended,
    pending: pending,
    snapshots: snapshots,
    suspects: suspects,
    next_snapshot: next_snapshot,
    since_snapshot: since_snapshot,
});

impl Form for RunLog {
    const LEAST: usize = RunLogParts::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        RunLogParts::from(self).put(out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        RunLogParts::take(from).map(Self::from)
    }
}

/// An entry with its resource before it.
struct OnResource(ResourceId, Arc<cheops_core::model::Entry>);

impl OnResource {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let resource = ResourceId::take(from)?;
        let entry = take_entry(&resource, Placed::Yes, from)?;
        Ok(Self(resource, Arc::new(entry)))
    }
}

const ENTRY: u64 = 1;
const BEGUN: u64 = 2;
const FINISHED: u64 = 3;
const RAN: u64 = 4;
const KNOWS: u64 = 5;
const EARLIER_INCARNATION: u64 = 6;
const INCARNATION: u64 = 7;
const PRUNED: u64 = 8;
const SHED: u64 = 9;
const SET_APART: u64 = 10;
/// A version that does not know of states must not take it for one without.
const PRUNED_FOR_STATE: u64 = 11;

impl Form for Record {
    const LEAST: usize = 1;

    fn put(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Self::Entry(..) => ENTRY,
            Self::Begun(..) => BEGUN,
            Self::Finished(..) => FINISHED,
            Self::Ran(..) => RAN,
            Self::Knows(..) => KNOWS,
            Self::EarlierIncarnation(..) => EARLIER_INCARNATION,
            Self::Incarnation(..) => INCARNATION,
            Self::Pruned(_, base) if base.state.is_some() => PRUNED_FOR_STATE,
            Self::Pruned(..) => PRUNED,
            Self::Shed(..) => SHED,
            Self::SetApart(_) => SET_APART,
        };
        out.number(kind);
        match self {
            Self::Entry(resource, entry) => {
                resource.put(out);
                put_entry(entry, Placed::Yes, out);
            }
            Self::Begun(resource, step) => {
                resource.put(out);
                step.put(out);
            }
            Self::Finished(resource, step, ended) => {
                resource.put(out);
                step.put(out);
                ended.put(out);
            }
            Self::Ran(resource, log) => {
                resource.put(out);
                log.put(out);
            }
            Self::Knows(resource, site, incarnation, knows) => {
                resource.put(out);
                site.put(out);
                incarnation.put(out);
                knows.put(out);
            }
            Self::EarlierIncarnation(resource, site, knew) => {
                resource.put(out);
                site.put(out);
                knew.put(out);
            }
            Self::Incarnation(site, incarnation) => {
                site.put(out);
                incarnation.put(out);
            }
            Self::Pruned(resource, base) => {
                resource.put(out);
                base.put(out);
                if let Some(state) = &base.state {
                    state.put(out);
                }
            }
            Self::Shed(resource, operations) => {
                resource.put(out);
                operations.put(out);
            }
            Self::SetApart(evidence) => evidence.put(out),
        }
    }

    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok(match from.number()? {
            ENTRY => {
                let OnResource(resource, entry) = OnResource::take(from)?;
                Self::Entry(resource, entry)
            }
            BEGUN => Self::Begun(Form::take(from)?, Form::take(from)?),
            FINISHED => Self::Finished(Form::take(from)?, Form::take(from)?, Form::take(from)?),
            RAN => Self::Ran(Form::take(from)?, Form::take(from)?),
            KNOWS => Self::Knows(
                Form::take(from)?,
                Form::take(from)?,
                Form::take(from)?,
                Form::take(from)?,
            ),
            EARLIER_INCARNATION => {
                Self::EarlierIncarnation(Form::take(from)?, Form::take(from)?, Form::take(from)?)
            }
            INCARNATION => Self::Incarnation(Form::take(from)?, Form::take(from)?),
            PRUNED => Self::Pruned(Form::take(from)?, Form::take(from)?),
            PRUNED_FOR_STATE => {
                let (resource, base) = (Form::take(from)?, Base::take(from)?);
                let state = Some(Form::take(from)?);
                Self::Pruned(resource, Box::new(Base { state, ..base }))
            }
            SHED => Self::Shed(Form::take(from)?, Form::take(from)?),
            SET_APART => Self::SetApart(Form::take(from)?),
            kind => return Err(FormError::UnknownKind { what: "a record", kind }),
        })
    }
}

kinds!(Divergence, "a divergence", {
    1 => LeftOut { ran: ran },
    2 => Order { ran: ran, before: before },
    3 => Forgotten { ran: ran },
    4 => UnknownPast {},
    5 => NoEnd { ran: ran },
});
choices!(Ending, "an ending", {
    1 => Applied,
    2 => Failed,
    3 => PartialError,
    4 => Superseded,
    5 => InDoubt,
});
choices!(Malformed, "a mistake", {
    1 => NotShared,
    2 => WrongResource,
    3 => StampBeforePast,
    4 => NumberNotAfter,
    5 => NoSuchTime,
    6 => BaseBeyondKnowledge,
    7 => TooMany,
    8 => BeyondLimits,
    9 => NotItsAuthors,
    10 => Unreadable,
});
parts!(PastDecision, 6, { operation: operation, by: by, why: why });
kinds!(Notice, "a notice", {
    1 => Applied { 0: resource, 1: operation },
    2 => Failed { 0: resource, 1: operation },
    3 => PartialError { 0: resource, 1: operation },
    4 => Superseded { 0: resource, 1: operation, 2: by },
    5 => Diverged { 0: resource, 1: why },
    6 => InDoubt { 0: resource, 1: operation },
    7 => Settled { 0: resource, 1: operation, 2: ending },
    8 => Converged { 0: resource },
    9 => SiteDown { 0: site },
    10 => SiteUp { 0: site },
    11 => SiteLostItsDisk { 0: site },
    12 => StrangeClock { 0: resource, 1: operation, 2: ahead_ms },
    13 => Pruned { 0: resource, 1: count },
    14 => Malformed { 0: site, 1: what },
    15 => SetApart { 0: site, 1: key },
    16 => SharedIdentity { 0: site, 1: seen },
    17 => Asked { 0: resource, 1: asker, 2: what },
    18 => Differs { 0: resource },
    19 => LeftOut { 0: resource, 1: decisions },
    20 => Warning { 0: resource, 1: why },
});

fn encode<T: Form>(value: &T) -> Vec<u8> {
    let mut body = vec![VERSION];
    value.put(&mut body);
    body
}

fn decode<T: Form>(body: &[u8]) -> Result<T, FormError> {
    let mut from = ByteReader::new(body);
    if from.is_empty() {
        return Err(FormError::Nothing);
    }
    match from.byte()? {
        VERSION => {
            let value = T::take(&mut from)?;
            from.end()?;
            Ok(value)
        }
        version => Err(FormError::Version(version)),
    }
}

/// The body of a record.
pub fn encode_record(record: &Record) -> Vec<u8> {
    encode(record)
}

/// Reads what [`encode_record`] wrote.
pub fn decode_record(body: &[u8]) -> Result<Record, FormError> {
    decode(body)
}

/// The body of a notice.
pub fn encode_notice(notice: &Notice) -> Vec<u8> {
    encode(notice)
}

/// Reads what [`encode_notice`] wrote. A kind that a later version made is
/// [`FormError::UnknownKind`].
pub fn decode_notice(body: &[u8]) -> Result<Notice, FormError> {
    decode(body)
}
