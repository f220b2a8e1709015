//! A request that broke off was an answer with a header before it was an outcome of its own. What is
//! on disks, sent and signed stays what it was.

use cheops_core::engine::Record;
use cheops_core::model::{Entry, Header, Outcome, Output, ResourceId, Status};
use cheops_record::disk::{decode_record, encode_record};
use std::sync::Arc;

use crate::samples;

/// As agents wrote it before.
fn as_an_answer() -> Outcome {
    let (name, value) = ("x-cheops-error".to_owned(), "broken-off".to_owned());
    Outcome::Answered {
        status: 502,
        headers: vec![Header { name, value }],
        output: Output::whole("it broke off"),
        done: false,
        local_id: None,
    }
}

fn record(entry: &Arc<Entry>) -> Record {
    Record::Entry(ResourceId::new("album").unwrap(), entry.clone())
}

#[test]
fn what_broke_off_is_written_and_signed_as_the_answer_that_it_was() {
    let broken_off = Outcome::BrokenOff { reason: "it broke off".to_owned() };
    let [before, since] =
        [as_an_answer(), broken_off].map(|outcome| samples::reply(Status::Ko, Some(outcome)));
    let album = ResourceId::new("album").unwrap();
    assert_eq!(before.header(&album), since.header(&album), "no signature changes");
    let bytes = encode_record(&record(&before));
    assert_eq!(encode_record(&record(&since)), bytes);
    assert_eq!(decode_record(&bytes).unwrap(), record(&since), "it is read as what it is");
}

#[test]
fn an_answer_that_only_looks_like_it_is_read_as_it_was_written() {
    let Outcome::Answered { status, headers, output, done, local_id } = as_an_answer() else {
        panic!("it is one")
    };
    let answer = |status, headers, output, done| Outcome::Answered {
        status,
        headers,
        output,
        done,
        local_id: local_id.clone(),
    };
    let cut = Output { truncated: true, ..output.clone() };
    for answered in [
        answer(status, Vec::new(), output.clone(), done),
        answer(503, headers.clone(), output.clone(), done),
        answer(status, headers.clone(), cut, done),
        answer(status, headers, output, true),
    ] {
        let record = record(&samples::reply(Status::Ko, Some(answered)));
        assert_eq!(decode_record(&encode_record(&record)).unwrap(), record);
    }
}
