//! What sites say to each other on a link, since version 3 of the protocol.
//!
//! A frame begins with the number of its kind; how long it is stands before it on the link. Later
//! versions may make new kinds, which are passed over with a word, and may add to the end of those
//! there are. Entries are what somebody signed: of those, what a later version said beside is kept
//! and passed on as it is, and what this one cannot go by is refused by the entry's name.

use std::sync::Arc;

use cheops_core::engine::{Base, Echo, Heartbeat, Message, Update};
use cheops_core::model::{Evidence, ResourceId};

use crate::code::{ByteReader, Form, FormError, Writer, parts};
use crate::form::{Placed, put_entry, take_entry};

const HEARTBEAT: u64 = 1;
const UPDATE: u64 = 2;
const EVIDENCE: u64 = 3;
const CERTIFICATE: u64 = 4;
/// An update of which the base has a state: a version that does not know of states must not take it for
/// one without.
const UPDATE_WITH_STATE: u64 = 5;

/// So many faults of one frame are told: whoever sends more has said enough.
const MOST_TOLD: usize = 16;

/// One thing said on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// For the engine.
    Message(Message),
    /// The certificate of a site, by which entries that follow can be checked.
    Certificate(Vec<u8>),
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What of it can be understood; nothing, if it is of a kind that a later version made.
    pub frame: Option<Frame>,
    /// What was left out, and why.
    pub left_out: Vec<FormError>,
}

parts!(Echo, 2, { sent_ms: sent_ms, held_ms: held_ms });

impl Form for Heartbeat {
    const LEAST: usize = 5;
    fn put(&self, out: &mut Vec<u8>) {
        let Self { incarnation, sent_ms, echo, unheard, set_apart } = self;
        incarnation.put(out);
        sent_ms.put(out);
        echo.put(out);
        unheard.put(out);
        set_apart.put(out);
    }
    fn take(from: &mut ByteReader<'_>) -> Result<Self, FormError> {
        Ok(Self {
            incarnation: Form::take(from)?,
            sent_ms: Form::take(from)?,
            echo: Form::take(from)?,
            unheard: Form::take(from)?,
            set_apart: Form::take(from)?,
        })
    }
}

fn put_update(update: &Update, out: &mut Vec<u8>) {
    let Update { incarnation, resource, base, entries, knows, chain, you_may_have_run, asks } =
        update;
    incarnation.put(out);
    resource.put(out);
    base.put(out);
    knows.put(out);
    chain.put(out);
    you_may_have_run.put(out);
    asks.put(out);
    out.number(entries.len() as u64);
    entries.iter().for_each(|entry| put_entry(entry, Placed::No, out));
    if let Some(state) = base.as_ref().and_then(|base| base.state.as_ref()) {
        state.put(out);
    }
}

fn take_update(
    from: &mut ByteReader<'_>,
    left_out: &mut Vec<FormError>,
) -> Result<Update, FormError> {
    /// The least that an entry takes: its length, name, place, body, and the rest.
    const LEAST_ENTRY: usize = 48;
    let incarnation = Form::take(from)?;
    let resource: ResourceId = Form::take(from)?;
    let base: Option<Base> = Form::take(from)?;
    let (knows, chain) = (Form::take(from)?, Form::take(from)?);
    let (you_may_have_run, asks) = (Form::take(from)?, Form::take(from)?);
    let mut entries = Vec::new();
    for _ in 0..from.count(LEAST_ENTRY)? {
        // The length of an entry stands before it: so one that cannot be read hides none.
        match take_entry(&resource, Placed::No, from) {
            Ok(entry) => entries.push(Arc::new(entry)),
            Err(error @ FormError::Entry { .. }) if error.is_of_a_later_version() => {
                if left_out.len() < MOST_TOLD {
                    left_out.push(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Update { incarnation, resource, base, entries, knows, chain, you_may_have_run, asks })
}

/// Appends a message to a buffer.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Heartbeat(heartbeat) => {
            out.number(HEARTBEAT);
            heartbeat.put(out);
        }
        Message::Update(update) => {
            let has_state = update.base.as_ref().is_some_and(|base| base.state.is_some());
            out.number(if has_state { UPDATE_WITH_STATE } else { UPDATE });
            put_update(update, out);
        }
        Message::Evidence(evidence) => {
            out.number(EVIDENCE);
            evidence.put(out);
        }
    }
}

/// Appends a certificate to a buffer.
pub fn encode_certificate(certificate: &[u8], out: &mut Vec<u8>) {
    out.number(CERTIFICATE);
    out.bytes(certificate);
}

/// Appends a frame to a buffer.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    match frame {
        Frame::Message(message) => encode_message(message, out),
        Frame::Certificate(certificate) => encode_certificate(certificate, out),
    }
}

/// Reads a frame, whoever wrote it.
pub fn decode(bytes: &[u8]) -> Result<Received, FormError> {
    if bytes.is_empty() {
        return Err(FormError::Nothing);
    }
    let mut left_out = Vec::new();
    let frame = match take(&mut ByteReader::new(bytes), &mut left_out) {
        Ok(frame) => Some(frame),
        // It may be right for who knows more: the link is not to blame.
        Err(error) if error.is_of_a_later_version() => {
            left_out.push(error);
            None
        }
        Err(error) => return Err(error),
    };
    Ok(Received { frame, left_out })
}

fn take(from: &mut ByteReader<'_>, left_out: &mut Vec<FormError>) -> Result<Frame, FormError> {
    Ok(match from.number()? {
        HEARTBEAT => Frame::Message(Message::Heartbeat(Form::take(from)?)),
        UPDATE => Frame::Message(Message::Update(Box::new(take_update(from, left_out)?))),
        UPDATE_WITH_STATE => {
            let update = take_update(from, left_out)?;
            let state = Some(Form::take(from)?);
            let base = update.base.map(|base| Base { state, ..base });
            Frame::Message(Message::Update(Box::new(Update { base, ..update })))
        }
        EVIDENCE => {
            let evidence: Box<Evidence> = Form::take(from)?;
            Frame::Message(Message::Evidence(evidence))
        }
        CERTIFICATE => Frame::Certificate(from.bytes()?.to_vec()),
        kind => return Err(FormError::UnknownKind { what: "a message", kind }),
    })
}
