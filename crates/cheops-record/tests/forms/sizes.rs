//! How much room an entry says it takes, beside what it takes when sent. A message is filled by the
//! one and refused by the other: if they differ, it is made, dropped, and made again for ever.

use std::sync::Arc;

use cheops_core::engine::{Message, Update};
use cheops_core::model::{
    Entry, EntryBody, EntryId, Extension, Header, LocalId, Operation, Outcome, Output, Payload,
    Reply, ResourceId, SiteId, Stamp, Status, Vector,
};
use cheops_record::wire;

use crate::samples;

/// How many bytes one more such entry takes in a message.
fn sent(entry: &Arc<Entry>) -> usize {
    let length = |entries: Vec<Arc<Entry>>| {
        let update = Update {
            incarnation: entry.id().author.incarnation,
            resource: samples::resource("album"),
            base: None,
            knows: Vector::default(),
            entries,
            chain: Default::default(),
            you_may_have_run: Vector::default(),
            asks: false,
        };
        let mut out = Vec::new();
        wire::encode_message(&Message::Update(Box::new(update)), &mut out);
        out.len()
    };
    length(vec![entry.clone(); 2]) - length(vec![entry.clone()])
}

fn headers(number: usize) -> Vec<Header> {
    let header = |n| Header { name: format!("x-{n}"), value: "v".repeat(n % 200) };
    (0..number).map(header).collect()
}

fn answer(headers: Vec<Header>, text: &str) -> Arc<Entry> {
    let outcome = Outcome::Answered {
        status: 201,
        headers,
        output: Output::whole(text),
        done: true,
        local_id: Some(LocalId::new(&"l".repeat(200)).unwrap()),
    };
    let (id, operation) = (samples::id("lyon", 301), samples::operation(samples::shell()).id);
    let stamp = Stamp { wall_ms: u64::MAX / 2, counter: u64::MAX / 2 };
    let status = Status::Superseded { by: operation.clone() };
    let reply = Reply { id, stamp, operation, status, outcome: Some(outcome) };
    samples::entry(EntryBody::Reply(reply), Vec::new(), Some(samples::proof()))
}

fn request(path: &str, headers: Vec<Header>) -> Arc<Entry> {
    let payload = Payload::Http {
        service: "image".into(),
        method: "POST".into(),
        path: path.into(),
        headers,
        body: None,
        service_ref: None,
    };
    let operation = Operation { needs: Default::default(), ..samples::operation(payload) };
    samples::entry(EntryBody::Operation(operation), Vec::new(), Some(samples::proof()))
}

fn of_long_names() -> Arc<Entry> {
    let site = SiteId::new(&"s".repeat(63)).unwrap();
    let mut operation = samples::operation(samples::shell());
    let id = EntryId { author: operation.id.0.author.clone(), n: u64::MAX / 2 };
    operation.id.0 = EntryId { author: cheops_core::model::Author { site, ..id.author }, ..id };
    operation.parents = vec![operation.id.clone(); 16];
    operation.needs = (0..50).map(|n| ResourceId::new(&format!("{n:-<200}")).unwrap()).collect();
    let extra = Extension { name: "later".into(), must_understand: false, value: vec![7; 5_000] };
    samples::entry(EntryBody::Operation(operation), vec![extra], Some(samples::proof()))
}

#[test]
fn an_entry_never_takes_more_room_than_it_says() {
    let mut entries: Vec<_> = samples::entries().into_iter().map(|(_, entry)| entry).collect();
    entries.extend([
        answer(headers(1_000), ""),
        answer(Vec::new(), &"t".repeat(100_000)),
        request(&"/p".repeat(4_000), Vec::new()),
        request("/", headers(100)),
        of_long_names(),
    ]);
    for entry in entries {
        assert!(sent(&entry) <= entry.size(), "{} > {}: {entry:?}", sent(&entry), entry.size());
    }
}
