//! That there is a sample of everything: a kind without one is written and read by nobody until it is on
//! somebody's disk.

use std::collections::{BTreeMap, BTreeSet};

use cheops_core::config::{Concurrent, Config, HookAction, HookEvent, HookRun, Rule};
use cheops_core::engine::{Ending, Malformed, Message, Notice, Record};
use cheops_core::model::{
    Act, Entry, EntryBody, Outcome, Payload, Replaces, SignedBy, StandingReport, Status,
};
use cheops_core::plan::{Divergence, Ended, RunEffect, RunLogParts, Step, Trace};

use crate::samples::{messages, notices, records};

/// The kinds that were seen and those that there are, of each type.
#[derive(Default)]
struct Kinds(BTreeMap<&'static str, (BTreeSet<&'static str>, BTreeSet<&'static str>)>);

impl Kinds {
    fn saw(&mut self, of: &'static str, kind: &'static str, all: &[&'static str]) {
        let (seen, known) = self.0.entry(of).or_default();
        seen.insert(kind);
        known.extend(all);
    }
}

/// Notes of which kind a value is. A kind that is not named here does not compile.
macro_rules! saw {
    ($seen:expr, $value:expr, $type:ident: $($kind:ident),* $(,)?) => {{
        let kind = match $value { $($type::$kind { .. } => stringify!($kind)),* };
        $seen.saw(stringify!($type), kind, &[$(stringify!($kind)),*]);
    }};
}

fn see_config(seen: &mut Kinds, config: &Config) {
    for resolution in config.matrix.values() {
        saw!(seen, resolution.rule, Rule: TakeOne, TakeBoth, KeepOrder, ReverseOrder, Ordered, Logic);
        saw!(seen, resolution.concurrent, Concurrent: ReplaceWins, KeepBoth);
    }
    for hook in &config.hooks {
        saw!(
            seen, hook.on, HookEvent: Applied, Failed, PartialError, Superseded, Diverged, InDoubt,
            Differs, Warning, Converged, SiteDown, SiteUp
        );
        saw!(seen, hook.action, HookAction: Command, Url);
        saw!(seen, hook.run, HookRun: EachSite, Once);
    }
}

fn see_entry(seen: &mut Kinds, entry: &Entry) {
    saw!(seen, entry.body, EntryBody: Operation, Reply);
    if let Some(proof) = entry.proof() {
        saw!(seen, proof.by, SignedBy: Author, Voucher);
    }
    match &entry.body {
        EntryBody::Operation(operation) => {
            saw!(seen, operation.payload, Payload: Shell, Http);
            saw!(seen, operation.replaces, Replaces: Nothing, Past, PastByForce);
            if let Payload::Http { service_ref: Some(service_ref), .. } = &operation.payload {
                saw!(seen, service_ref.act, Act: Creates, CreatesAs, Changes, Deletes);
            }
            let config = operation.declares.as_ref().and_then(|it| it.config.as_ref());
            config.into_iter().for_each(|config| see_config(seen, config));
        }
        EntryBody::Reply(reply) => {
            saw!(seen, reply.status, Status: Ok, Ko, Superseded, InDoubt, Partial);
            if let Some(outcome) = &reply.outcome {
                saw!(
                    seen, outcome, Outcome: Exited, Answered, BrokenOff, TimedOut, NotYet, NotStarted
                );
            }
        }
    }
    if let Some(report) = entry.standing_report() {
        saw!(seen, report, StandingReport: InStep, Diverged);
    }
}

fn see_record(seen: &mut Kinds, record: &Record) {
    saw!(
        seen, record, Record: Entry, Begun, Finished, Ran, Knows, EarlierIncarnation, Incarnation,
        Pruned, Shed, SetApart
    );
    match record {
        Record::Entry(_, entry) => see_entry(seen, entry),
        Record::Begun(_, step) => saw!(seen, step, Step: Run, Undo, Check, Snapshot, Restore),
        Record::Finished(_, _, ended) => saw!(seen, ended, Ended: Ok, Ko, ItHappened, ItDidNot),
        Record::Ran(_, log) => {
            let parts = RunLogParts::from(&**log);
            for run in &parts.runs {
                saw!(seen, run.trace, Trace: Took, Refused, MayHaveRun, MayBeUndone);
            }
            for (_, effect, _) in &parts.ended {
                saw!(seen, effect, RunEffect: Took, Refused);
            }
        }
        _ => {}
    }
}

fn see_notice(seen: &mut Kinds, notice: &Notice) {
    saw!(
        seen, notice, Notice: Applied, Failed, PartialError, Superseded, Diverged, Differs, InDoubt,
        Settled, Converged, SiteDown, SiteUp, SiteLostItsDisk, StrangeClock, Pruned, Malformed,
        SetApart, SharedIdentity, Asked, LeftOut, Warning
    );
    match notice {
        Notice::Diverged(_, why) => {
            saw!(seen, why, Divergence: LeftOut, Order, Forgotten, UnknownPast, NoEnd);
        }
        Notice::Settled(_, _, ending) => {
            saw!(seen, ending, Ending: Applied, Failed, PartialError, Superseded, InDoubt);
        }
        Notice::Malformed(_, what) => saw!(
            seen, what, Malformed: NotShared, WrongResource, StampBeforePast, NumberNotAfter,
            NoSuchTime, BaseBeyondKnowledge, TooMany, BeyondLimits, NotItsAuthors, Unreadable
        ),
        _ => {}
    }
}

#[test]
fn there_is_a_sample_of_every_kind_of_everything_that_is_written() {
    let mut seen = Kinds::default();
    records().iter().for_each(|(_, record)| see_record(&mut seen, record));
    notices().iter().for_each(|notice| see_notice(&mut seen, notice));
    for (_, message) in messages() {
        saw!(seen, message, Message: Heartbeat, Update, Evidence);
    }
    for (of, (seen, known)) in seen.0 {
        let missing: Vec<_> = known.difference(&seen).collect();
        assert!(missing.is_empty(), "no sample of `{of}` is {missing:?}: add one to `samples.rs`");
    }
}

/// The names are the core's own: a sample that it does not read back is of nothing that it says.
#[test]
fn there_is_a_sample_of_everything_that_this_version_says_beside_an_entry() {
    let records = records();
    let entries: Vec<&Entry> = records
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Entry(_, entry) => Some(&**entry),
            _ => None,
        })
        .collect();
    type Reads = fn(&Entry) -> bool;
    let reads: [(&str, Reads); 10] = [
        ("undoes", |it| it.undoes().is_some_and(|it| !it.back)),
        ("undoes, back", |it| it.undoes().is_some_and(|it| it.back)),
        ("dismisses", |it| it.dismisses().is_some()),
        ("standing", |it| it.standing_report().is_some()),
        ("state", |it| it.state_report().is_some()),
        ("keeps-state", |it| it.kept_state().is_some()),
        ("body", |it| it.inline_body().is_some()),
        ("edit", |it| it.edit().is_some()),
        ("program", |it| it.program_verdict().is_some_and(|it| it.input.is_some())),
        ("program of no use", |it| it.program_verdict().is_some_and(|it| it.input.is_none())),
    ];
    for (what, reads) in reads {
        assert!(entries.iter().any(|entry| reads(entry)), "no sample says `{what}`");
    }
    let has_no_body = |entry: &&Entry| match &entry.body {
        EntryBody::Operation(operation) => {
            matches!(operation.payload, Payload::Http { body: None, .. })
        }
        EntryBody::Reply(_) => false,
    };
    assert!(entries.iter().any(has_no_body), "no sample is a request without a body");
}
