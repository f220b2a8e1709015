//! Bodies of version 1, which directories of format 3 hold: only read, and never to be changed.
//!
//! They were written by serde and postcard, straight from the types of commit 99ce964: numbers and
//! texts as in `code.rs`, kinds by their place in the type and without a length, parts without
//! names. Entries had no hashes and no signatures then: what is read here has none either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::config::{
    Concurrent, Config, Handling, Hook, HookAction, HookEvent, HookRun, Resolution, Rule,
    StateCommands,
};
use cheops_core::engine::{Base, Declared, Ending, Malformed, Notice, Record};
use cheops_core::model::{
    Act, Author, BlobId, Chain, Declaration, Entry, EntryBody, EntryHash, EntryId, FileRef, Header,
    IdMap, Incarnation, LocalId, LocalName, MetaId, Operation, OperationId, OperationType, Outcome,
    Output, Payload, Position, Replaces, Reply, ResourceId, ServiceRef, SiteId, Stamp, Status,
    Vector,
};
use cheops_core::plan::{
    Divergence, Ended, Item, Run, RunEffect, RunLog, RunLogParts, Saved, SnapshotId, Step, Trace,
};

use crate::code::{ByteReader, FormError};
use crate::form::answered;

/// The version of these bodies.
pub const VERSION: u8 = 1;

/// Reads the body of a record.
pub fn decode_record(body: &[u8]) -> Result<Record, FormError> {
    decode(body)
}

/// Reads the body of a notice.
pub fn decode_notice(body: &[u8]) -> Result<Notice, FormError> {
    decode(body)
}

fn decode<T: Old>(body: &[u8]) -> Result<T, FormError> {
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

/// Something that was written so.
trait Old: Sized {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError>;
}

macro_rules! old {
    ($($type:ty: $from:ident => $read:expr;)*) => {$(
        impl Old for $type {
            fn take($from: &mut ByteReader<'_>) -> Result<Self, FormError> {
                $read
            }
        }
    )*};
}

/// Parts, one after the other.
macro_rules! old_parts {
    ($($type:ident { $($member:tt),* $(,)? })*) => {$(
        impl Old for $type {
            fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
                Ok(Self { $($member: Old::take(from)?),* })
            }
        }
    )*};
}

/// Kinds by number, each with its parts.
macro_rules! old_kinds {
    ($($type:ident, $what:literal { $($tag:literal => $variant:ident { $($member:tt),* }),* $(,)? })*) => {$(
        impl Old for $type {
            fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
                Ok(match from.number()? {
                    $($tag => Self::$variant { $($member: Old::take(from)?),* },)*
                    kind => return Err(FormError::UnknownKind { what: $what, kind }),
                })
            }
        }
    )*};
}

old! {
    u64: from => from.number();
    u32: from => from.small();
    u16: from => from.small();
    i32: from => from.signed();
    bool: from => from.flag();
    String: from => from.text().map(str::to_owned);
    [u8; 32]: from => from.array();
    SiteId: from => Ok(Self::new(from.text()?)?);
    ResourceId: from => Ok(Self::new(from.text()?)?);
    MetaId: from => Ok(Self::new(from.text()?)?);
    LocalId: from => Ok(Self::new(from.text()?)?);
    OperationType: from => Ok(Self::new(from.text()?)?);
}

impl<T: Old> Old for Option<T> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        if from.flag()? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Old> Old for Box<T> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        T::take(from).map(Self::new)
    }
}

impl<T: Old> Old for Arc<T> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        T::take(from).map(Self::new)
    }
}

impl<A: Old, B: Old> Old for (A, B) {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Old> Old for Vec<T> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(1)?).map(|_| T::take(from)).collect()
    }
}

impl<T: Old + Ord> Old for BTreeSet<T> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(1)?).map(|_| T::take(from)).collect()
    }
}

impl<K: Old + Ord, V: Old> Old for BTreeMap<K, V> {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(2)?).map(|_| <(K, V)>::take(from)).collect()
    }
}

old_parts! {
    Incarnation { 0 }
    Author { site, incarnation }
    EntryId { author, n }
    OperationId { 0 }
    BlobId { 0 }
    Position { stamp, id }
    Header { name, value }
    FileRef { name, blob, size }
    Output { text, truncated }
    ServiceRef { meta_id, collection, act }
    Declaration { sites, config }
    Reply { id, stamp, operation, status, outcome }
    Config { matrix, types, state, hooks }
    Resolution { rule, concurrent }
    Handling { undo, idempotent, assigns, check, decompose }
    StateCommands { read, write }
    Hook { on, action, run, types }
    Declared { sites, config, id_map }
    SnapshotId { 0 }
    Item { id, kind, replaces }
    Run { item, trace, fixed, recalled }
    Saved { id, runs }
}

impl Old for Outcome {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok(match from.number()? {
            0 => Self::Exited { code: Old::take(from)?, output: Old::take(from)? },
            1 => answered(
                Old::take(from)?,
                Old::take(from)?,
                Old::take(from)?,
                Old::take(from)?,
                Old::take(from)?,
            ),
            2 => Self::TimedOut { limit_ms: Old::take(from)? },
            3 => Self::NotYet { reason: Old::take(from)?, in_doubt: Old::take(from)? },
            4 => Self::NotStarted { reason: Old::take(from)? },
            kind => return Err(FormError::UnknownKind { what: "an outcome", kind }),
        })
    }
}

old_kinds! {
    Act, "an act" { 0 => Creates {}, 1 => CreatesAs {}, 2 => Changes {}, 3 => Deletes {} }
    Replaces, "a replacement" { 0 => Nothing {}, 1 => Past {}, 2 => PastByForce {} }
    Payload, "a payload" {
        0 => Shell { command, files },
        1 => Http { service, method, path, headers, body, service_ref },
    }
    Status, "a status" {
        0 => Ok {},
        1 => Ko {},
        2 => Superseded { by },
        3 => InDoubt {},
        4 => Partial { done, of },
    }
    Rule, "a rule" {
        0 => TakeOne {},
        1 => TakeBoth {},
        2 => KeepOrder {},
        3 => ReverseOrder {},
        4 => Ordered {},
        5 => Logic { 0 },
    }
    Concurrent, "a rule for concurrent operations" { 0 => ReplaceWins {}, 1 => KeepBoth {} }
    HookEvent, "an event of a hook" {
        0 => Applied {},
        1 => Failed {},
        2 => PartialError {},
        3 => Superseded {},
        4 => Diverged {},
        5 => InDoubt {},
        6 => Converged {},
        7 => SiteDown {},
        8 => SiteUp {},
    }
    HookAction, "an action of a hook" { 0 => Command { 0 }, 1 => Url { 0 } }
    HookRun, "a place of a hook" { 0 => EachSite {}, 1 => Once {} }
    Step, "a step" {
        0 => Run { 0 },
        1 => Undo { 0 },
        2 => Check { 0 },
        3 => Snapshot { 0 },
        4 => Restore { 0 },
    }
    Ended, "an end of a step" { 0 => Ok {}, 1 => Ko {}, 2 => ItHappened {}, 3 => ItDidNot {} }
    RunEffect, "an effect" { 0 => Took {}, 1 => Refused {} }
    Trace, "a trace of a run" {
        0 => Took {},
        1 => Refused {},
        2 => MayHaveRun {},
        3 => MayBeUndone {},
    }
    Divergence, "a divergence" {
        0 => LeftOut { ran },
        1 => Order { ran, before },
        2 => Forgotten { ran },
        3 => UnknownPast {},
        4 => NoEnd { ran },
    }
    Ending, "an ending" {
        0 => Applied {},
        1 => Failed {},
        2 => PartialError {},
        3 => Superseded {},
        4 => InDoubt {},
    }
    Malformed, "a mistake" {
        0 => NotShared {},
        1 => WrongResource {},
        2 => StampBeforePast {},
        3 => NumberNotAfter {},
        4 => NoSuchTime {},
        5 => BaseBeyondKnowledge {},
        6 => TooMany {},
    }
    Notice, "a notice" {
        0 => Applied { 0, 1 },
        1 => Failed { 0, 1 },
        2 => PartialError { 0, 1 },
        3 => Superseded { 0, 1, 2 },
        4 => Diverged { 0, 1 },
        5 => InDoubt { 0, 1 },
        6 => Settled { 0, 1, 2 },
        7 => Converged { 0 },
        8 => SiteDown { 0 },
        9 => SiteUp { 0 },
        10 => SiteLostItsDisk { 0 },
        11 => StrangeClock { 0, 1, 2 },
        12 => Pruned { 0, 1 },
        13 => Malformed { 0, 1 },
    }
}

impl Old for Stamp {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let (wall_ms, counter) = (from.number()?, from.small::<u32>()?);
        Ok(Self { wall_ms, counter: u64::from(counter) })
    }
}

impl Old for Vector {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..from.count(4)?).map(|_| EntryId::take(from)).collect()
    }
}

/// Then an id was a site's, whichever of its incarnations said so: see [`Base`].
impl Old for IdMap {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let (service, meta_id) = (Old::take(from)?, Old::take(from)?);
        let collection = Old::take(from)?;
        let said: Option<BTreeMap<SiteId, LocalId>> = Old::take(from)?;
        let of_no_incarnation = |(site, id): (SiteId, LocalId)| {
            (Author { site, incarnation: Incarnation(0) }, LocalName { id, n: 0 })
        };
        let local_ids = said.map(|said| said.into_iter().map(of_no_incarnation).collect());
        Ok(Self { service, meta_id, collection, local_ids })
    }
}

/// Gives ids to the incarnation that said so, where a site had one only. Of several nobody can tell
/// which one it was, and an id of no incarnation leads nowhere.
fn of_their_incarnations(id_map: &mut IdMap, upto: &Vector) {
    let Some(said) = id_map.local_ids.take() else { return };
    let of_its_incarnation = |(author, name): (Author, LocalName)| {
        let mut incarnations =
            upto.iter().map(|(known, _)| known).filter(|known| known.site == author.site);
        match (incarnations.next(), incarnations.next()) {
            (Some(only), None) => (only.clone(), name),
            _ => (author, name),
        }
    };
    id_map.local_ids = Some(said.into_iter().map(of_its_incarnation).collect());
}

impl Old for Base {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let upto: Vector = Old::take(from)?;
        let mut declared: Option<Declared> = Old::take(from)?;
        if let Some(id_map) = declared.as_mut().and_then(|it| it.id_map.as_mut()) {
            of_their_incarnations(id_map, &upto);
        }
        Ok(Self { upto, declared, chain: Chain::default(), order: None, state: None })
    }
}

impl Old for RunLog {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let runs = Old::take(from)?;
        let ended: BTreeMap<OperationId, (RunEffect, u32)> = Old::take(from)?;
        let ended = ended.into_iter().map(|(id, (last, refusals))| (id, last, refusals)).collect();
        let (pending, snapshots, suspects) = (Old::take(from)?, Old::take(from)?, Old::take(from)?);
        let (next_snapshot, since_snapshot) = (from.number()?, from.number()?);
        let parts = RunLogParts {
            runs,
            ended,
            pending,
            snapshots,
            suspects,
            next_snapshot,
            since_snapshot,
        };
        Ok(parts.into())
    }
}

/// What was an operation's stamp then was its claim as well as its place.
impl Old for Operation {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let (id, resource, stamp) = (Old::take(from)?, Old::take(from)?, Old::take(from)?);
        Ok(Self {
            id,
            resource,
            stamp,
            claimed: stamp,
            parents: Old::take(from)?,
            kind: Old::take(from)?,
            payload: Old::take(from)?,
            replaces: Old::take(from)?,
            declares: Old::take(from)?,
            needs: BTreeSet::new(),
            asked_by: None,
        })
    }
}

impl Old for Record {
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok(match from.number()? {
            0 => {
                let resource = ResourceId::take(from)?;
                let entry = take_entry(&resource, from)?;
                Self::Entry(resource, Arc::new(entry))
            }
            1 => Self::Begun(Old::take(from)?, Old::take(from)?),
            2 => Self::Finished(Old::take(from)?, Old::take(from)?, Old::take(from)?),
            3 => Self::Ran(Old::take(from)?, Old::take(from)?),
            4 => {
                Self::Knows(Old::take(from)?, Old::take(from)?, Old::take(from)?, Old::take(from)?)
            }
            5 => Self::EarlierIncarnation(Old::take(from)?, Old::take(from)?, Old::take(from)?),
            6 => Self::Incarnation(Old::take(from)?, Old::take(from)?),
            7 => Self::Pruned(Old::take(from)?, Old::take(from)?),
            8 => Self::Shed(Old::take(from)?, Old::take(from)?),
            kind => return Err(FormError::UnknownKind { what: "a record", kind }),
        })
    }
}

fn take_entry(resource: &ResourceId, from: &mut ByteReader<'_>) -> Result<Entry, FormError> {
    let after = from.number()?;
    let body = match from.number()? {
        0 => EntryBody::Operation(Old::take(from)?),
        1 => EntryBody::Reply(Old::take(from)?),
        kind => return Err(FormError::UnknownKind { what: "an entry", kind }),
    };
    Ok(Entry::new(resource, (after, EntryHash::UNSAID), body, Vec::new()))
}
