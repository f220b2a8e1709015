//! What agents of a later version say, and what is made of it; the other way round, that they find
//! what they said as they said it.

use std::sync::Arc;

use cheops_core::engine::{Message, Record};
use cheops_core::model::{Entry, EntryBody, Extension};
use cheops_record::FormError;
use cheops_record::disk::{decode_notice, decode_record, encode_notice, encode_record};
use cheops_record::wire::{self, Frame, Received};

use crate::samples::{
    AFTER_HASH, entry, notices, operation, proof, records, resource, shell, update,
};

fn sent(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode_message(message, &mut bytes);
    bytes
}

fn entries(received: Received) -> (Vec<Arc<Entry>>, Vec<String>) {
    let told = received.left_out.iter().map(ToString::to_string).collect();
    match received.frame {
        Some(Frame::Message(Message::Update(update))) => (update.entries, told),
        other => panic!("{other:?}"),
    }
}

fn with(name: &str, must_understand: bool) -> Arc<Entry> {
    let extension = Extension { name: name.into(), must_understand, value: vec![9, 9] };
    entry(EntryBody::Operation(operation(shell())), vec![extension], Some(proof()))
}

#[test]
fn what_a_later_version_says_beside_is_kept_on_disk_and_passed_on_with_its_hash_and_proof() {
    let said = with("colour", false);
    let (heard, told) = entries(wire::decode(&sent(&update(vec![said.clone()]))).unwrap());
    assert!(told.is_empty());
    let body = encode_record(&Record::Entry(resource("album"), heard[0].clone()));
    let Record::Entry(_, kept) = decode_record(&body).unwrap() else { panic!() };
    let (relayed, _) = entries(wire::decode(&sent(&update(vec![kept]))).unwrap());
    assert_eq!(relayed, std::slice::from_ref(&said));
    assert_eq!((relayed[0].hash(), relayed[0].proof()), (said.hash(), said.proof()));
    assert_ne!(said.hash(), with("taste", false).hash(), "what is said beside is signed too");
}

#[test]
fn what_must_be_understood_and_is_not_is_refused_by_name_and_the_rest_is_taken() {
    let message = update(vec![with("colour", false), with("hold", true), with("taste", false)]);
    let (heard, told) = entries(wire::decode(&sent(&message)).unwrap());
    assert_eq!(heard.len(), 2);
    assert_eq!(
        told,
        ["entry `paris-5f.9` cannot be read: it says `hold`, which this version does not know: \
          upgrade this agent"]
    );
    let kept = encode_record(&Record::Entry(resource("album"), with("hold", true)));
    let error = decode_record(&kept).unwrap_err();
    assert!(error.is_of_a_later_version() && error.to_string().contains("`hold`"), "{error}");
}

/// The place of the kind of the only entry's body.
fn kind_of_body(bytes: &[u8]) -> usize {
    let at = bytes.windows(32).position(|window| window == AFTER_HASH.0).unwrap();
    at + 32
}

#[test]
fn an_entry_of_a_kind_that_a_later_version_made_is_refused_by_name() {
    let mut bytes = sent(&update(vec![with("colour", false)]));
    let at = kind_of_body(&bytes);
    bytes[at] = 77;
    let (heard, told) = entries(wire::decode(&bytes).unwrap());
    assert!(heard.is_empty());
    assert_eq!(
        told,
        ["entry `paris-5f.9` cannot be read: an entry of kind 77 is not known to this version: \
          upgrade this agent"]
    );
}

#[test]
fn a_payload_of_a_kind_that_a_later_version_made_is_refused_by_the_entrys_name() {
    let said = entry(EntryBody::Operation(operation(shell())), Vec::new(), Some(proof()));
    let mut bytes = sent(&update(vec![said]));
    let command = b"cat {f}";
    let at = bytes.windows(command.len()).position(|window| window == command).unwrap();
    // Before the text stand its length, the length of the payload, and the kind.
    bytes[at - 6] = 9;
    let (heard, told) = entries(wire::decode(&bytes).unwrap());
    assert!(heard.is_empty());
    assert_eq!(
        told,
        ["entry `paris-5f.9` cannot be read: a payload of kind 9 is not known to this version: \
          upgrade this agent"]
    );
}

#[test]
fn a_message_of_a_kind_that_a_later_version_made_is_passed_over_with_a_word() {
    let received = wire::decode(&[200, 1, 2, 3, 4]).unwrap();
    assert_eq!(received.frame, None);
    let told: Vec<_> = received.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["a message of kind 200 is not known to this version: upgrade this agent"]);
}

#[test]
fn what_a_later_version_adds_to_the_end_of_a_message_does_no_harm() {
    let message = update(vec![with("colour", false)]);
    let mut bytes = sent(&message);
    bytes.extend([1, 2, 3]);
    let received = wire::decode(&bytes).unwrap();
    assert_eq!((received.frame, received.left_out), (Some(Frame::Message(message)), Vec::new()));
}

#[test]
fn kinds_of_rows_that_a_later_version_made_are_named() {
    for (body, what) in [
        (decode_record(&[2, 99, 1]).unwrap_err(), "a record"),
        (decode_notice(&[2, 99, 0, 0, 0, 0]).unwrap_err(), "a notice"),
    ] {
        assert_eq!(body, FormError::UnknownKind { what, kind: 99 });
        assert!(body.is_of_a_later_version());
    }
    let mut body = encode_notice(&notices()[0]);
    body[0] = 3;
    assert_eq!(decode_notice(&body).unwrap_err(), FormError::Version(3));
    assert_eq!(decode_record(&[]).unwrap_err(), FormError::Nothing);
    let mut body = encode_record(&records()[0].1);
    body.push(0);
    assert_eq!(decode_record(&body).unwrap_err(), FormError::Trailing);
}
