//! The written forms of the model, as the disk and the wire have them since format 4 and protocol
//! version 3. A number that was given to a kind is never given to another.

use std::sync::Arc;

use cheops_core::config::{
    Concurrent, Config, Handling, Hook, HookAction, HookEvent, HookRun, Resolution, Rule,
    StateCommands,
};
use cheops_core::engine::{Base, Declared};
use cheops_core::model::{
    Act, Asker, Author, BROKEN_OFF_STATUS, BlobId, Chain, Declaration, Entry, EntryBody, EntryHash,
    EntryHeader, EntryId, Evidence, Extension, FileRef, Fingerprint, Header, IdMap, Incarnation,
    KeyId, LocalId, LocalName, MetaId, Operation, OperationId, OperationType, Outcome, Output,
    Payload, Position, Proof, Replaces, Reply, ResourceId, ServiceRef, SignedBy, SiteId, Stamp,
    StateFloor, Status, Vector, broken_off_header,
};

use crate::code::{
    ByteReader, Form, FormError, Writer, choices, frequent_names, kinds, names, parts,
};

frequent_names!(SiteId, OperationType);
names!(ResourceId, MetaId, LocalId);

parts!(Incarnation, 1, { 0: number });
parts!(Author, 3, { site: site, incarnation: incarnation });
parts!(EntryId, 4, { author: author, n: n });
parts!(OperationId, 4, { 0: id });
parts!(BlobId, 32, { 0: hash });
parts!(EntryHash, 32, { 0: hash });
parts!(KeyId, 32, { 0: hash });
parts!(Stamp, 2, { wall_ms: wall_ms, counter: counter });
parts!(Position, 6, { stamp: stamp, id: id });
parts!(Header, 2, { name: name, value: value });
parts!(FileRef, 34, { name: name, blob: blob, size: size });
parts!(Asker, 3, { principal: principal, site: site });
parts!(Output, 2, { text: text, truncated: truncated });
parts!(ServiceRef, 4, { meta_id: meta_id, collection: collection, act: act });

choices!(Act, "an act", { 1 => Creates, 2 => CreatesAs, 3 => Changes, 4 => Deletes });
choices!(Replaces, "a replacement", { 1 => Nothing, 2 => Past, 3 => PastByForce });

kinds!(Payload, "a payload", {
    1 => Shell { command: command, files: files },
    2 => Http {
        service: service,
        method: method,
        path: path,
        headers: headers,
        body: body,
        service_ref: service_ref,
    },
});

kinds!(Status, "a status", {
    1 => Ok {},
    2 => Ko {},
    3 => Superseded { by: by },
    4 => InDoubt {},
    5 => Partial { done: done, of: of },
});

/// Kinds like others, but for [`Outcome::BrokenOff`], which is written as the answer that it was
/// before it was an outcome of its own: who has not heard of it reads what was always there, and no
/// signature changes.
impl Form for Outcome {
    const LEAST: usize = 5;
    fn put(&self, out: &mut Vec<u8>) {
        let kind: u64 = match self {
            Self::Exited { .. } => 1,
            Self::Answered { .. } | Self::BrokenOff { .. } => 2,
            Self::TimedOut { .. } => 3,
            Self::NotYet { .. } => 4,
            Self::NotStarted { .. } => 5,
        };
        out.number(kind);
        out.section(|out| match self {
            Self::Exited { code, output } => {
                code.put(out);
                output.put(out);
            }
            Self::Answered { status, headers, output, done, local_id } => {
                status.put(out);
                headers.put(out);
                output.put(out);
                done.put(out);
                local_id.put(out);
            }
            Self::BrokenOff { reason } => {
                BROKEN_OFF_STATUS.put(out);
                vec![broken_off_header()].put(out);
                // Its text is whole, it is not what was asked for, and it names nothing.
                reason.put(out);
                false.put(out);
                false.put(out);
                None::<LocalId>.put(out);
            }
            Self::TimedOut { limit_ms } => limit_ms.put(out),
            Self::NotYet { reason, in_doubt } => {
                reason.put(out);
                in_doubt.put(out);
            }
            Self::NotStarted { reason } => reason.put(out),
        });
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        const WHAT: &str = "an outcome";
        let kind = from.number()?;
        let mut inner = from.section()?;
        let from = &mut inner;
        let made = match kind {
            1 => Self::Exited { code: Form::take(from)?, output: Form::take(from)? },
            2 => answered(
                Form::take(from)?,
                Form::take(from)?,
                Form::take(from)?,
                Form::take(from)?,
                Form::take(from)?,
            ),
            3 => Self::TimedOut { limit_ms: Form::take(from)? },
            4 => Self::NotYet { reason: Form::take(from)?, in_doubt: Form::take(from)? },
            5 => Self::NotStarted { reason: Form::take(from)? },
            kind => return Err(FormError::UnknownKind { what: WHAT, kind }),
        };
        from.knows_all(WHAT)?;
        Ok(made)
    }
}

/// What is written as an answer: one, or that none came. Only what is written anew just as it was
/// read is taken for the latter.
pub(crate) fn answered(
    status: u16,
    headers: Vec<Header>,
    output: Output,
    done: bool,
    local_id: Option<LocalId>,
) -> Outcome {
    let says_so = status == BROKEN_OFF_STATUS && headers == [broken_off_header()];
    if says_so && !output.truncated && !done && local_id.is_none() {
        return Outcome::BrokenOff { reason: output.text };
    }
    Outcome::Answered { status, headers, output, done, local_id }
}

kinds!(Rule, "a rule", {
    1 => TakeOne {},
    2 => TakeBoth {},
    3 => KeepOrder {},
    4 => ReverseOrder {},
    5 => Ordered {},
    6 => Logic { 0: name },
});
choices!(Concurrent, "a rule for concurrent operations", { 1 => ReplaceWins, 2 => KeepBoth });
parts!(Resolution, 6, { rule: rule, concurrent: concurrent });
parts!(Handling, 5, {
    undo: undo,
    idempotent: idempotent,
    assigns: assigns,
    check: check,
    decompose: decompose,
});
parts!(StateCommands, 2, { read: read, write: write });
choices!(HookEvent, "an event of a hook", {
    1 => Applied,
    2 => Failed,
    3 => PartialError,
    4 => Superseded,
    5 => Diverged,
    6 => InDoubt,
    7 => Converged,
    8 => SiteDown,
    9 => SiteUp,
    10 => Differs,
    11 => Warning,
});
kinds!(HookAction, "an action of a hook", { 1 => Command { 0: text }, 2 => Url { 0: text } });
choices!(HookRun, "a place of a hook", { 1 => EachSite, 2 => Once });
parts!(Hook, 8, { on: on, action: action, run: run, types: types });

/// A config may get more parts in a later version, which change what it means: who does not know
/// them must not go by the rest.
impl Form for Config {
    const LEAST: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        let Self { matrix, types, state, hooks } = self;
        out.section(|out| {
            matrix.put(out);
            types.put(out);
            state.put(out);
            hooks.put(out);
        });
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let mut from = from.section()?;
        let matrix = Form::take(&mut from)?;
        let types = Form::take(&mut from)?;
        let state = Form::take(&mut from)?;
        let hooks = Form::take(&mut from)?;
        from.knows_all("a config")?;
        Ok(Self { matrix, types, state, hooks })
    }
}

parts!(Declaration, 2, { sites: sites, config: config });

impl Form for Vector {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(self.iter().count() as u64);
        for (author, n) in self.iter() {
            author.put(out);
            n.put(out);
        }
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        (0..few_authors(from.count(EntryId::LEAST)?)?).map(|_| EntryId::take(from)).collect()
    }
}

/// More authors than a resource has are not taken in one by one.
fn few_authors(count: usize) -> Result<usize, FormError> {
    const MOST_AUTHORS: usize = 16_384;
    if count > MOST_AUTHORS {
        Err(FormError::TooMany { found: count as u64, most: MOST_AUTHORS as u64 })
    } else {
        Ok(count)
    }
}

impl Form for Chain {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.number(self.iter().count() as u64);
        for (author, hash) in self.iter() {
            author.put(out);
            hash.put(out);
        }
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let least = Author::LEAST + EntryHash::LEAST;
        (0..few_authors(from.count(least)?)?).map(|_| <(Author, EntryHash)>::take(from)).collect()
    }
}

parts!(LocalName, 2, { id: id, n: n });
parts!(IdMap, 5, {
    service: service,
    meta_id: meta_id,
    collection: collection,
    local_ids: local_ids,
});
parts!(Declared, 3, { sites: sites, config: config, id_map: id_map });

/// Later versions may say more of what was forgotten; who does not know that goes by the rest.
impl Form for Base {
    const LEAST: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        // A state is said after it, by who may say it to those who know of states.
        let Self { upto, declared, chain, order, state: _ } = self;
        out.section(|out| {
            upto.put(out);
            declared.put(out);
            chain.put(out);
            order.put(out);
        });
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let mut from = from.section()?;
        Ok(Self {
            upto: Form::take(&mut from)?,
            declared: Form::take(&mut from)?,
            chain: Form::take(&mut from)?,
            order: Form::take(&mut from)?,
            state: None,
        })
    }
}

parts!(Fingerprint, 32, { 0: hash });

impl Form for StateFloor {
    const LEAST: usize = 100;
    fn put(&self, out: &mut Vec<u8>) {
        let Self { list, state, size, write, sites, heads, kinds } = self;
        out.section(|out| {
            list.put(out);
            state.put(out);
            size.put(out);
            write.put(out);
            sites.put(out);
            heads.put(out);
            kinds.put(out);
        });
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let mut from = from.section()?;
        Ok(Self {
            list: Form::take(&mut from)?,
            state: Form::take(&mut from)?,
            size: Form::take(&mut from)?,
            write: Form::take(&mut from)?,
            sites: Form::take(&mut from)?,
            heads: Form::take(&mut from)?,
            kinds: Form::take(&mut from)?,
        })
    }
}

kinds!(SignedBy, "a signer", { 1 => Author {}, 2 => Voucher { 0: site } });

impl Form for Arc<[u8]> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        out.bytes(self);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        from.bytes().map(Self::from)
    }
}

parts!(Proof, 40, { by: by, key: key, index: index, path: path, signature: signature });
parts!(EntryHeader, 100, {
    author: author,
    n: n,
    resource: resource,
    after: after,
    after_hash: after_hash,
    said: said,
});
parts!(Evidence, 280, { one: one, other: other });

/// Extensions that this version understands where they must be.
const UNDERSTOOD: [&str; 2] = ["undoes", "edit"];

impl Form for Extension {
    const LEAST: usize = 3;
    fn put(&self, out: &mut Vec<u8>) {
        let Self { name, must_understand, value } = self;
        out.text(name);
        out.flag(*must_understand);
        out.bytes(value);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        let (name, must_understand) = (from.text()?, from.flag()?);
        if must_understand && !UNDERSTOOD.contains(&name) {
            // A name of a later version is short; whoever makes up a long one need not be quoted.
            let shown = name.chars().filter(|c| !c.is_control()).take(64).collect();
            return Err(FormError::UnknownExtension(shown));
        }
        let value = from.bytes()?.to_vec();
        Ok(Self { name: name.to_owned(), must_understand, value })
    }
}

/// Whether an entry is written with its place in the order. At home it is, since the past that it
/// follows from may be forgotten there. Others work it out themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    Yes,
    No,
}

const OPERATION: u64 = 1;
const REPLY: u64 = 2;

/// An entry: its name, its place, what it says, what later versions add, and whose word it is. Its
/// resource stands before it, once for many.
pub(crate) fn put_entry(entry: &Entry, placed: Placed, out: &mut Vec<u8>) {
    out.section(|out| {
        entry.id().put(out);
        entry.after.put(out);
        entry.after_hash.put(out);
        match &entry.body {
            EntryBody::Operation(operation) => {
                out.number(OPERATION);
                out.section(|out| put_operation(operation, placed, out));
            }
            EntryBody::Reply(Reply { id: _, stamp, operation, status, outcome }) => {
                out.number(REPLY);
                out.section(|out| {
                    stamp.put(out);
                    operation.put(out);
                    status.put(out);
                    outcome.put(out);
                });
            }
        }
        entry.extra.put(out);
        out.flag(entry.proof().is_some());
        if let Some(proof) = entry.proof() {
            proof.put(out);
        }
    });
}

/// Reads what [`put_entry`] wrote. What later versions made and this one cannot go by is refused,
/// by the entry's name.
pub(crate) fn take_entry(
    resource: &ResourceId,
    placed: Placed,
    from: &mut ByteReader<'_>,
) -> Result<Entry, FormError> {
    let mut from = from.section()?;
    let id = EntryId::take(&mut from)?;
    let rest = take_said(resource, &id, placed, &mut from);
    rest.map_err(|error| error.of_entry(&id))
}

fn take_said(
    resource: &ResourceId,
    id: &EntryId,
    placed: Placed,
    from: &mut ByteReader<'_>,
) -> Result<Entry, FormError> {
    let after = (u64::take(from)?, EntryHash::take(from)?);
    let kind = from.number()?;
    let mut said = from.section()?;
    // First what it says beside: that has a name.
    let extra: Vec<Extension> = Form::take(from)?;
    let body = match kind {
        OPERATION => {
            let operation = take_operation(resource, id, placed, &mut said)?;
            said.knows_all("an operation")?;
            EntryBody::Operation(operation)
        }
        REPLY => {
            let reply = Reply {
                id: id.clone(),
                stamp: Form::take(&mut said)?,
                operation: Form::take(&mut said)?,
                status: Form::take(&mut said)?,
                outcome: Form::take(&mut said)?,
            };
            said.knows_all("a reply")?;
            EntryBody::Reply(reply)
        }
        kind => return Err(FormError::UnknownKind { what: "an entry", kind }),
    };
    let proof: Option<Proof> = Form::take(from)?;
    from.knows_all("it")?;
    let entry = Entry::new(resource, after, body, extra);
    if let Some(proof) = proof {
        entry.seal(proof);
    }
    Ok(entry)
}

fn put_operation(operation: &Operation, placed: Placed, out: &mut Vec<u8>) {
    let Operation {
        id: _,
        resource: of,
        stamp,
        claimed,
        parents,
        kind,
        payload,
        replaces,
        declares,
        needs,
        asked_by,
    } = operation;
    of.put(out);
    claimed.put(out);
    if placed == Placed::Yes {
        stamp.put(out);
    }
    parents.put(out);
    kind.put(out);
    payload.put(out);
    replaces.put(out);
    declares.put(out);
    needs.put(out);
    asked_by.put(out);
}

fn take_operation(
    resource: &ResourceId,
    id: &EntryId,
    placed: Placed,
    from: &mut ByteReader<'_>,
) -> Result<Operation, FormError> {
    let of = ResourceId::take(from)?;
    // There are many operations on one resource: they share its name.
    let of = if of == *resource { resource.clone() } else { of };
    let claimed = Form::take(from)?;
    let stamp = if placed == Placed::Yes { Form::take(from)? } else { claimed };
    Ok(Operation {
        id: OperationId(id.clone()),
        resource: of,
        stamp,
        claimed,
        parents: Form::take(from)?,
        kind: Form::take(from)?,
        payload: Form::take(from)?,
        replaces: Form::take(from)?,
        declares: Form::take(from)?,
        needs: Form::take(from)?,
        asked_by: Form::take(from)?,
    })
}
