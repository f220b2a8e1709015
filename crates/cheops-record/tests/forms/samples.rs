//! One of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cheops_core::config::{Config, HookEvent};
use cheops_core::engine::{
    Base, Declared, Echo, Ending, Heartbeat, Malformed, Message, Notice, PastDecision, Record,
    Update,
};
use cheops_core::model::{
    Act, Asker, Author, BlobId, Chain, Declaration, Entry, EntryBody, EntryHash, EntryHeader,
    EntryId, Evidence, Extension, FileRef, Fingerprint, Header, IdMap, Incarnation, KeyId, LocalId,
    LocalName, MetaId, Operation, OperationId, OperationType, Outcome, Output, Payload, Position,
    Proof, Replaces, Reply, ResourceId, ServiceRef, SignedBy, SiteId, Stamp, StateFloor, Status,
    Vector,
};
use cheops_core::plan::{Divergence, Ended, Item, RunLog, SnapshotId, Step};

pub(crate) fn site(name: &str) -> SiteId {
    SiteId::new(name).unwrap()
}

pub(crate) fn resource(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

pub(crate) fn author(name: &str) -> Author {
    Author { site: site(name), incarnation: Incarnation(0x5f) }
}

pub(crate) fn id(name: &str, n: u64) -> EntryId {
    EntryId { author: author(name), n }
}

fn operation_id(n: u64) -> OperationId {
    OperationId(id("paris", n))
}

fn stamp(n: u64) -> Stamp {
    Stamp { wall_ms: 1_760_000_000_000 + n, counter: n }
}

fn vector() -> Vector {
    [id("lyon", 300), id("paris", 7)].into_iter().collect()
}

fn chain() -> Chain {
    [(author("lyon"), EntryHash([3; 32]))].into_iter().collect()
}

pub(crate) const AFTER_HASH: EntryHash = EntryHash([0xab; 32]);

const CONFIG: &str = r#"{"ResolutionMatrix":[
 {"Before":"set","After":"set","Result":"take-one"},
 {"Before":"set","After":"inc","Result":"take-both-keep-order","Concurrent":"keep-both"},
 {"Before":"inc","After":"inc","Result":"take-both"},
 {"Before":"inc","After":"log","Result":"ordered"},
 {"Before":"log","After":"log","Result":"logic:mine"}],
 "Types":{"inc":{"Undo":"decr","Idempotent":true,"Assigns":true,"Check":"test 1","Decompose":"split"}},
 "Snapshot":"save","Restore":"load",
 "Hooks":[{"On":"applied","Command":"echo","Types":["set"]},
          {"On":"failed","Url":"http://127.0.0.1:1/x","Run":"once"}]}"#;

pub(crate) fn config() -> Arc<Config> {
    Arc::new(Config::parse(CONFIG).unwrap().config)
}

pub(crate) fn proof() -> Proof {
    Proof {
        by: SignedBy::Author,
        key: KeyId([4; 32]),
        index: 1,
        path: vec![[5; 32], [6; 32]],
        signature: Arc::from([7, 8, 9].as_slice()),
    }
}

/// An operation with everything that one can have.
pub(crate) fn operation(payload: Payload) -> Operation {
    Operation {
        id: operation_id(9),
        resource: resource("album"),
        stamp: stamp(9),
        claimed: stamp(9),
        parents: vec![operation_id(7), OperationId(id("lyon", 300))],
        kind: OperationType::new("set").unwrap(),
        payload,
        replaces: Replaces::Past,
        declares: Some(Arc::new(Declaration {
            sites: BTreeSet::from([site("lyon"), site("paris")]),
            config: Some(config()),
        })),
        needs: BTreeSet::from([resource("parent")]),
        asked_by: Some(Asker { principal: "uid 1000 (ada)".into(), site: site("paris") }),
    }
}

fn file() -> FileRef {
    FileRef { name: "f".into(), blob: BlobId([2; 32]), size: 70_000 }
}

pub(crate) fn shell() -> Payload {
    Payload::Shell { command: "cat {f}".into(), files: vec![file()] }
}

fn http(act: Act) -> Payload {
    let meta_id = MetaId::new("m-1").unwrap();
    Payload::Http {
        service: "image".into(),
        method: "POST".into(),
        path: "/v1/things".into(),
        headers: vec![Header { name: "accept".into(), value: "text/plain".into() }],
        body: Some(file()),
        service_ref: Some(Box::new(ServiceRef { meta_id, collection: "/v1/things".into(), act })),
    }
}

pub(crate) fn entry(body: EntryBody, extra: Vec<Extension>, proof: Option<Proof>) -> Arc<Entry> {
    let entry = Entry::new(&resource("album"), (7, AFTER_HASH), body, extra);
    if let Some(proof) = proof {
        entry.seal(proof);
    }
    Arc::new(entry)
}

pub(crate) fn reply(status: Status, outcome: Option<Outcome>) -> Arc<Entry> {
    let (id, operation) = (id("lyon", 301), operation_id(9));
    let reply = Reply { id, stamp: stamp(10), operation, status, outcome };
    let voucher = Proof { by: SignedBy::Voucher(site("nantes")), ..proof() };
    entry(EntryBody::Reply(reply), Vec::new(), Some(voucher))
}

/// Entries of all kinds, and what they show.
pub(crate) fn entries() -> Vec<(&'static str, Arc<Entry>)> {
    let op = |payload| entry(EntryBody::Operation(operation(payload)), Vec::new(), Some(proof()));
    let bare = Operation {
        parents: Vec::new(),
        replaces: Replaces::Nothing,
        declares: None,
        needs: BTreeSet::new(),
        asked_by: None,
        ..operation(Payload::shell("true"))
    };
    let forced = Operation { replaces: Replaces::PastByForce, ..bare.clone() };
    let later = Extension { name: "note".into(), must_understand: false, value: vec![1, 2] };
    let answered = Outcome::Answered {
        status: 201,
        headers: vec![Header { name: "location".into(), value: "/v1/things/9".into() }],
        output: Output::whole("{}"),
        done: true,
        local_id: Some(LocalId::new("9").unwrap()),
    };
    let cut = Output { text: "é".into(), truncated: true };
    vec![
        ("shell", op(shell())),
        ("http creates", op(http(Act::Creates))),
        ("http creates as", op(http(Act::CreatesAs))),
        ("http changes", op(http(Act::Changes))),
        ("http deletes", op(http(Act::Deletes))),
        ("bare and unsigned", entry(EntryBody::Operation(bare.clone()), Vec::new(), None)),
        ("forced", entry(EntryBody::Operation(forced), Vec::new(), None)),
        ("with more", entry(EntryBody::Operation(bare), vec![later], Some(proof()))),
        ("reply ok", reply(Status::Ok, Some(answered))),
        ("reply ko", reply(Status::Ko, Some(Outcome::Exited { code: -9, output: cut }))),
        ("reply superseded", reply(Status::Superseded { by: operation_id(8) }, None)),
        (
            "reply in doubt",
            reply(Status::InDoubt, Some(Outcome::NotYet { reason: "busy".into(), in_doubt: true })),
        ),
        (
            "reply partial",
            reply(Status::Partial { done: 2, of: 3 }, Some(Outcome::TimedOut { limit_ms: 60_000 })),
        ),
        (
            "reply not started",
            reply(Status::Ko, Some(Outcome::NotStarted { reason: "no sh".into() })),
        ),
    ]
}

/// A config with every rule, event and kind of hook.
fn whole_config() -> Arc<Config> {
    let events = HookEvent::ALL.map(|event| format!(r#"{{"On":"{event}","Command":"echo"}}"#));
    let document = format!(
        r#"{{"ResolutionMatrix":[
            {{"Before":"set","After":"inc","Result":"take-both-keep-order"}},
            {{"Before":"inc","After":"set","Result":"take-both-reverse-order"}},
            {{"Before":"log","After":"log","Result":"logic:mine","Concurrent":"replace-wins"}}],
         "Hooks":[{}]}}"#,
        events.join(",")
    );
    Arc::new(Config::parse(&document).unwrap().config)
}

/// What this version says beside a reply or an operation, each once.
fn extensions() -> Vec<(&'static str, bool, Vec<u8>)> {
    let fingerprint = |byte: u8| Fingerprint([byte; 32]).to_string();
    let (list, state, write) = (fingerprint(1), fingerprint(2), fingerprint(3));
    let kept =
        format!("{list} {state} {write} 300\nlyon paris\nparis-5f.7\ninc\nlyon-5f.300 paris-5f.7");
    vec![
        ("undoes", true, b"paris-5f.9".to_vec()),
        ("undoes", true, b"back paris-5f.9".to_vec()),
        ("dismisses", false, b"paris-5f.9".to_vec()),
        ("standing", false, b"in step".to_vec()),
        ("standing", false, b"diverged: `a` ran before `b`".to_vec()),
        ("state", false, format!("{list} {state}").into_bytes()),
        ("keeps-state", false, kept.into_bytes()),
    ]
}

/// The same of what merges documents, and decides by programs.
fn extensions_of_logic() -> Vec<(&'static str, bool, Vec<u8>)> {
    let fingerprint = |byte: u8| Fingerprint([byte; 32]).to_string();
    let (upto, input, printed) = (fingerprint(1), fingerprint(2), fingerprint(3));
    let program = format!(
        r#"{{"program":"shop","upto":"{upto}","input":"{input}","list":[{{"id":"paris-5f.9","command":"true"}}]}}"#
    );
    let of_no_use =
        format!(r#"{{"program":"shop","upto":"{upto}","failed":"no list","printed":"{printed}"}}"#);
    vec![
        ("edit", true, b"a change".to_vec()),
        ("program", false, program.into_bytes()),
        ("program", false, of_no_use.into_bytes()),
    ]
}

/// A request with a body beside it in its entry, and one with none.
fn requests() -> [(&'static str, Arc<Entry>); 2] {
    let request = |body: Option<FileRef>| match http(Act::Creates) {
        Payload::Http { service, method, path, headers, .. } => {
            Payload::Http { service, method, path, headers, body, service_ref: None }
        }
        shell @ Payload::Shell { .. } => shell,
    };
    let entry =
        |body, beside| entry(EntryBody::Operation(operation(request(body))), beside, Some(proof()));
    let content = b"short".to_vec();
    let file = FileRef::of("body", &content);
    let beside = Extension { name: "body".into(), must_understand: false, value: content };
    [
        ("http with its body beside it", entry(Some(file), vec![beside])),
        ("http without body", entry(None, Vec::new())),
    ]
}

/// Replies that have these beside them.
fn replies_with(
    extensions: Vec<(&'static str, bool, Vec<u8>)>,
    from: u64,
) -> impl Iterator<Item = (String, Arc<Entry>)> {
    let numbered = extensions.into_iter().enumerate();
    numbered.map(move |(at, (name, must_understand, value))| {
        let beside = vec![Extension { name: name.into(), must_understand, value }];
        let n = from + u64::try_from(at).unwrap();
        // Only the site where it was submitted says what an operation made of a document.
        let author = if name == "edit" { "paris" } else { "lyon" };
        let (id, operation) = (id(author, n), operation_id(9));
        let reply = Reply { id, stamp: stamp(10), operation, status: Status::Ok, outcome: None };
        let said = entry(EntryBody::Reply(reply), beside, Some(proof()));
        (format!("reply that {name} {at}"), said)
    })
}

/// What came since, apart again.
pub(crate) fn entries_of_logic() -> Vec<(String, Arc<Entry>)> {
    replies_with(extensions_of_logic(), 500).collect()
}

/// What was missing among the first ones. They stand apart, since those are all in one message.
pub(crate) fn more_entries() -> Vec<(String, Arc<Entry>)> {
    let declares =
        Declaration { sites: BTreeSet::from([site("paris")]), config: Some(whole_config()) };
    let declares = Some(Arc::new(declares));
    let whole = Operation { declares, ..operation(Payload::shell("true")) };
    let broken_off = Outcome::BrokenOff { reason: "it broke off".into() };
    let named = |(name, entry): (&str, Arc<Entry>)| (name.to_owned(), entry);
    let others = [
        ("with a whole config", entry(EntryBody::Operation(whole), Vec::new(), Some(proof()))),
        ("reply broken off", reply(Status::Ko, Some(broken_off))),
    ];
    let said = replies_with(extensions(), 400);
    requests().into_iter().chain(others).map(named).chain(said).collect()
}

/// A log in which runs left each trace there is.
fn traced_log() -> RunLog {
    let mut log = RunLog::default();
    for (n, ended) in [(1, Ended::Ok), (2, Ended::Ko), (4, Ended::Ok)] {
        let step = Step::Run(item(n));
        log.begin(&step);
        log.finish(&step, ended);
    }
    let undone = Step::Undo(item(4));
    log.begin(&undone);
    log.finish(&undone, Ended::Ko);
    log.may_have_run([item(3)]);
    log
}

fn item(n: u64) -> Item {
    let kind = OperationType::new("set").unwrap();
    Item { id: operation_id(n), kind, replaces: Replaces::Past }
}

fn run_log() -> RunLog {
    let mut log = RunLog::default();
    log.may_have_run([item(1)]);
    for (step, ended) in [
        (Step::Snapshot(SnapshotId(0)), Ended::Ok),
        (Step::Run(item(2)), Ended::Ok),
        (Step::Run(item(3)), Ended::Ko),
    ] {
        log.begin(&step);
        log.finish(&step, ended);
    }
    log.begin(&Step::Undo(item(2)));
    log
}

fn base() -> Base {
    let said = LocalName { id: LocalId::new("12").unwrap(), n: 3 };
    let local_ids = Some(BTreeMap::from([(author("paris"), said)]));
    let id_map = IdMap {
        service: "image".into(),
        meta_id: MetaId::new("m-1").unwrap(),
        collection: "/v1".into(),
        local_ids,
    };
    let given = (Position { stamp: stamp(7), id: operation_id(7) }, config());
    let declared = Declared {
        sites: BTreeSet::from([site("lyon"), site("paris")]),
        config: Some(given),
        id_map: Some(id_map),
    };
    Base {
        upto: vector(),
        declared: Some(declared),
        chain: chain(),
        order: Some(stamp(7)),
        state: None,
    }
}

/// The same, with a state that stands for what was forgotten.
fn base_with_state() -> Base {
    let state = StateFloor {
        list: Fingerprint([1; 32]),
        state: Fingerprint([2; 32]),
        size: 300,
        write: Fingerprint([3; 32]),
        sites: BTreeSet::from([site("lyon"), site("paris")]),
        heads: vec![operation_id(7)],
        kinds: vec![OperationType::new("inc").unwrap()],
    };
    Base { state: Some(Box::new(state)), ..base() }
}

pub(crate) fn evidence() -> Box<Evidence> {
    let header = |said| EntryHeader {
        author: author("lyon"),
        n: 4,
        resource: [1; 32],
        after: 3,
        after_hash: AFTER_HASH,
        said: [said; 32],
    };
    Box::new(Evidence { one: (header(1), proof()), other: (header(2), proof()) })
}

/// Records of all kinds.
pub(crate) fn records() -> Vec<(String, Record)> {
    let album = || resource("album");
    let mut records: Vec<(String, Record)> = entries()
        .into_iter()
        .map(|(name, entry)| (format!("entry: {name}"), Record::Entry(album(), entry)))
        .collect();
    let others = [
        ("begun: run", Record::Begun(album(), Step::Run(item(1)))),
        ("begun: undo", Record::Begun(album(), Step::Undo(item(1)))),
        ("begun: check", Record::Begun(album(), Step::Check(item(1)))),
        ("begun: snapshot", Record::Begun(album(), Step::Snapshot(SnapshotId(3)))),
        ("begun: restore", Record::Begun(album(), Step::Restore(SnapshotId(3)))),
        ("finished: ok", Record::Finished(album(), Step::Run(item(1)), Ended::Ok)),
        ("finished: ko", Record::Finished(album(), Step::Run(item(1)), Ended::Ko)),
        ("finished: yes", Record::Finished(album(), Step::Check(item(1)), Ended::ItHappened)),
        ("finished: no", Record::Finished(album(), Step::Check(item(1)), Ended::ItDidNot)),
        ("ran", Record::Ran(album(), Box::new(run_log()))),
        ("knows", Record::Knows(album(), site("lyon"), Incarnation(6), vector())),
        ("earlier life", Record::EarlierIncarnation(album(), site("lyon"), vector())),
        ("life", Record::Incarnation(site("lyon"), Incarnation(6))),
        ("pruned", Record::Pruned(album(), Box::new(base()))),
        ("pruned for a state", Record::Pruned(album(), Box::new(base_with_state()))),
        ("shed", Record::Shed(album(), BTreeSet::from([operation_id(1), operation_id(2)]))),
        ("set apart", Record::SetApart(evidence())),
    ];
    records.extend(others.map(|(name, record)| (name.to_owned(), record)));
    let more = more_entries().into_iter().chain(entries_of_logic());
    records.extend(
        more.map(|(name, entry)| (format!("entry: {name}"), Record::Entry(album(), entry))),
    );
    records.push(("ran: each trace".to_owned(), Record::Ran(album(), Box::new(traced_log()))));
    records
}

/// Notices of all kinds.
pub(crate) fn notices() -> Vec<Notice> {
    let (r, o) = (|| resource("album"), operation_id);
    let mut notices = vec![
        Notice::Applied(r(), o(1)),
        Notice::Failed(r(), o(1)),
        Notice::PartialError(r(), o(1)),
        Notice::Superseded(r(), o(1), o(2)),
        Notice::Diverged(r(), Divergence::LeftOut { ran: o(1) }),
        Notice::Diverged(r(), Divergence::Order { ran: o(1), before: o(2) }),
        Notice::Diverged(r(), Divergence::Forgotten { ran: o(1) }),
        Notice::Diverged(r(), Divergence::UnknownPast),
        Notice::Diverged(r(), Divergence::NoEnd { ran: o(1) }),
        Notice::InDoubt(r(), o(1)),
        Notice::Converged(r()),
        Notice::SiteDown(site("lyon")),
        Notice::SiteUp(site("lyon")),
        Notice::SiteLostItsDisk(site("lyon")),
        Notice::StrangeClock(r(), o(1), 99),
        Notice::Pruned(r(), 300),
        Notice::SetApart(site("lyon"), KeyId([4; 32])),
        Notice::SharedIdentity(site("lyon"), "two boots".into()),
        Notice::Asked(
            Some(r()),
            Asker { principal: "ada".into(), site: site("paris") },
            "show".into(),
        ),
        Notice::Asked(
            None,
            Asker { principal: "ada".into(), site: site("paris") },
            "backup".into(),
        ),
        Notice::LeftOut(
            r(),
            vec![
                PastDecision { operation: o(1), by: Some(o(2)), why: "forced".into() },
                PastDecision { operation: o(3), by: None, why: "it failed at every site".into() },
            ],
        ),
    ];
    let endings = [
        Ending::Applied,
        Ending::Failed,
        Ending::PartialError,
        Ending::Superseded,
        Ending::InDoubt,
    ];
    notices.extend(endings.map(|ending| Notice::Settled(r(), o(1), ending)));
    let mistakes = [
        Malformed::NotShared,
        Malformed::WrongResource,
        Malformed::StampBeforePast,
        Malformed::NumberNotAfter,
        Malformed::NoSuchTime,
        Malformed::BaseBeyondKnowledge,
        Malformed::TooMany,
        Malformed::BeyondLimits,
        Malformed::NotItsAuthors,
        Malformed::Unreadable,
    ];
    notices.extend(mistakes.map(|what| Notice::Malformed(site("lyon"), what)));
    notices.push(Notice::Differs(r()));
    notices.push(Notice::Warning(r(), "its state cannot be read".to_owned()));
    notices
}

pub(crate) fn update(entries: Vec<Arc<Entry>>) -> Message {
    Message::Update(Box::new(Update {
        incarnation: Incarnation(0x5f),
        resource: resource("album"),
        base: Some(base()),
        entries,
        knows: vector(),
        chain: chain(),
        you_may_have_run: vector(),
        asks: true,
    }))
}

/// Messages of all kinds.
pub(crate) fn messages() -> Vec<(&'static str, Message)> {
    let heartbeat = Heartbeat {
        incarnation: Incarnation(0x5f),
        sent_ms: 1_000,
        echo: Some(Echo { sent_ms: 900, held_ms: 20 }),
        unheard: vec![site("nantes")],
        set_apart: vec![KeyId([4; 32])],
    };
    let first =
        Heartbeat { echo: None, unheard: Vec::new(), set_apart: Vec::new(), ..heartbeat.clone() };
    let bare = Update {
        incarnation: Incarnation(1),
        resource: resource("album"),
        base: None,
        entries: Vec::new(),
        knows: Vector::default(),
        chain: Chain::default(),
        you_may_have_run: Vector::default(),
        asks: false,
    };
    vec![
        ("heartbeat", Message::Heartbeat(heartbeat)),
        ("first heartbeat", Message::Heartbeat(first)),
        ("update", update(entries().into_iter().map(|(_, entry)| entry).collect())),
        ("bare update", Message::Update(Box::new(bare.clone()))),
        (
            "update with a state",
            Message::Update(Box::new(Update { base: Some(base_with_state()), ..bare })),
        ),
        ("evidence", Message::Evidence(evidence())),
        ("update with more", update(more_entries().into_iter().map(|(_, entry)| entry).collect())),
        (
            "update with logic",
            update(entries_of_logic().into_iter().map(|(_, entry)| entry).collect()),
        ),
    ]
}
