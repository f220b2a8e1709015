//! One engine, event by event: what it makes durable, what it does, and what it refuses.

use std::sync::Arc;

use crate::disk::Disk;
use cheops_core::config::Config;
use cheops_core::engine::{
    Answer, Base, Batch, Effect, Ending, Engine, Event, Heartbeat, JobId, Log, Malformed, Message,
    Notice, Now, Reaction, Record, Refusal, Settings, Submission, Task, Ticket, Unsigned, Update,
    Wait,
};
use cheops_core::model::{
    Author, Body, Declaration, Entry, EntryHash, EntryId, Incarnation, Operation, OperationId,
    OperationType, Outcome, Payload, Replaces, Reply, ResourceId, SiteId, Stamp, Status, Vector,
};

struct FullDisk;

impl Log for FullDisk {
    type Error = &'static str;
    fn append(&mut self, _: Batch<'_>) -> Result<(), Self::Error> {
        Err("no space left")
    }
}

fn site(name: &str) -> SiteId {
    SiteId::new(name).unwrap()
}

fn author(name: &str) -> Author {
    Author { site: site(name), incarnation: Incarnation(1) }
}

fn counter() -> ResourceId {
    ResourceId::new("counter").unwrap()
}

fn inc() -> OperationType {
    OperationType::new("inc").unwrap()
}

fn now(ms: u64) -> Now {
    Now { mono_ms: ms, wall_ms: 1_000_000 + ms }
}

/// An engine at paris, with lyon and nantes as the other sites, and its disk.
struct Paris {
    engine: Engine,
    disk: Disk,
}

impl Paris {
    fn new() -> Self {
        let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
        let (engine, reaction) = Engine::recover(settings, Vec::new(), now(0));
        let mut paris = Self { engine, disk: Disk::default() };
        paris.commit(reaction);
        paris
    }

    fn commit(&mut self, reaction: Reaction) -> Vec<Effect> {
        let Ok(effects) = reaction.commit(&mut self.disk, &Unsigned);
        effects
    }

    fn handle(&mut self, ms: u64, event: Event) -> Vec<Effect> {
        let reaction = self.engine.handle(now(ms), event);
        self.commit(reaction)
    }

    fn hears(&mut self, ms: u64, from: &str, message: Message) -> Vec<Effect> {
        self.handle(ms, Event::Heard { from: site(from), message })
    }

    fn knows(&self) -> Vector {
        self.engine.resource(&counter()).map(|view| view.knows).unwrap_or_default()
    }
}

fn submission() -> Submission {
    Submission {
        ticket: Ticket(1),
        resource: counter(),
        sites: Some([site("paris"), site("lyon")].into()),
        config: None,
        kind: inc(),
        payload: Payload::shell("redis-cli incr counter"),
        force: false,
        wait: Wait::All,
        timeout_ms: 1_000,
        needs: Default::default(),
        asked_by: None,
    }
}

fn id(name: &str, n: u64) -> EntryId {
    EntryId { author: author(name), n }
}

fn from_lyon(n: u64, after: u64, parents: &[EntryId], wall_ms: u64) -> Entry {
    let sites = [site("paris"), site("lyon")].into();
    let operation = Operation {
        id: OperationId(id("lyon", n)),
        resource: counter(),
        stamp: Stamp { wall_ms, counter: 0 },
        claimed: Stamp { wall_ms, counter: 0 },
        parents: parents.iter().cloned().map(OperationId).collect(),
        kind: inc(),
        payload: Payload::shell("redis-cli incr counter"),
        replaces: Replaces::Nothing,
        declares: Some(Arc::new(Declaration { sites, config: None })),
        needs: Default::default(),
        asked_by: None,
    };
    Entry::new(&counter(), (after, EntryHash::UNSAID), Body::Operation(operation), Vec::new())
}

fn update(entries: Vec<Entry>) -> Message {
    Message::Update(Box::new(Update {
        incarnation: Incarnation(1),
        resource: counter(),
        base: None,
        knows: entries.iter().map(|entry| entry.id().clone()).collect(),
        entries: entries.into_iter().map(Arc::new).collect(),
        chain: Default::default(),
        you_may_have_run: Vector::default(),
        asks: false,
    }))
}

fn heartbeat() -> Message {
    let incarnation = Incarnation(1);
    Message::Heartbeat(Heartbeat {
        incarnation,
        sent_ms: 0,
        echo: None,
        unheard: Vec::new(),
        set_apart: Vec::new(),
    })
}

fn answers(effects: &[Effect]) -> Vec<&Answer> {
    let mut found = Vec::new();
    for effect in effects {
        if let Effect::Answer { answer, .. } = effect {
            found.push(answer);
        }
    }
    found
}

fn malformed(effects: &[Effect]) -> Option<Malformed> {
    effects.iter().find_map(|effect| match effect {
        Effect::Notify(Notice::Malformed(_, what)) => Some(*what),
        _ => None,
    })
}

fn refusal(change: impl FnOnce(&mut Submission)) -> Option<Refusal> {
    let mut paris = Paris::new();
    let mut asked = submission();
    change(&mut asked);
    let effects = paris.handle(1, Event::Submitted(asked));
    assert!(paris.disk.0.is_empty(), "what is refused leaves nothing behind");
    match answers(&effects)[..] {
        [Answer::Refused(why)] => Some(why.clone()),
        _ => None,
    }
}

#[test]
fn an_operation_is_accepted_run_and_sent_only_once_it_is_durable() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", heartbeat());
    let reaction = paris.engine.handle(now(2), Event::Submitted(submission()));
    assert_eq!(reaction.records(), 2, "the operation, and the intent to run it");
    let effects = paris.commit(reaction);
    assert!(matches!(answers(&effects)[..], [Answer::Accepted(..)]));
    let runs =
        |effect: &Effect| matches!(effect, Effect::Run(job) if matches!(job.task, Task::Run(_)));
    assert_eq!(effects.iter().filter(|effect| runs(effect)).count(), 1);
    let told = |effect: &Effect| matches!(effect, Effect::Tell { to, message: Message::Update(_) } if *to == site("lyon"));
    assert_eq!(effects.iter().filter(|effect| told(effect)).count(), 1);
}

#[test]
fn what_the_disk_refuses_has_no_effects() {
    let mut paris = Paris::new();
    let reaction = paris.engine.handle(now(1), Event::Submitted(submission()));
    let failed = reaction.commit(&mut FullDisk, &Unsigned).unwrap_err();
    assert_eq!(failed.error, "no space left");
}

#[test]
fn an_engine_recovered_from_its_log_knows_what_it_knew_and_sees_what_was_cut_short() {
    let mut paris = Paris::new();
    paris.handle(1, Event::Submitted(submission()));
    let before = paris.knows();
    let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
    let (engine, reaction) = Engine::recover(settings, paris.disk.0.clone(), now(0));
    let view = engine.resource(&counter()).unwrap();
    assert!(view.knows.covers(&before));
    let effects = reaction.commit(&mut Disk::default(), &Unsigned).unwrap();
    let in_doubt = |effect: &Effect| matches!(effect, Effect::Notify(Notice::InDoubt(..)));
    assert!(effects.iter().any(in_doubt), "it may have run: {effects:?}");
}

#[test]
fn an_operation_without_sites_on_a_new_resource_is_refused() {
    let why = refusal(|asked| asked.sites = None);
    assert_eq!(why, Some(Refusal::UnknownResource(counter())));
}

#[test]
fn an_operation_on_sites_without_this_one_is_refused_and_names_them() {
    let sites = [site("lyon"), site("nantes")];
    let why = refusal(|asked| asked.sites = Some(sites.clone().into())).unwrap();
    assert_eq!(why.to_string(), "resource `counter` lives on `lyon`, `nantes`, not on this site");
}

#[test]
fn an_operation_on_a_site_nobody_knows_is_refused() {
    let why = refusal(|asked| asked.sites = Some([site("paris"), site("atlantis")].into()));
    assert_eq!(why, Some(Refusal::UnknownSite(site("atlantis"))));
}

#[test]
fn sites_that_differ_from_those_of_the_resource_are_refused() {
    let mut paris = Paris::new();
    paris.handle(1, Event::Submitted(submission()));
    let asked = Submission { sites: Some([site("paris")].into()), ..submission() };
    let effects = paris.handle(2, Event::Submitted(asked));
    assert!(matches!(answers(&effects)[..], [Answer::Refused(Refusal::SitesDiffer { .. })]));
}

#[test]
fn an_entry_waits_for_the_one_before_it() {
    let mut paris = Paris::new();
    let (first, second) = (from_lyon(1, 0, &[], 5), from_lyon(4, 1, &[id("lyon", 1)], 6));
    paris.hears(1, "lyon", update(vec![first.clone()]));
    let third = from_lyon(7, 4, &[id("lyon", 4)], 7);
    paris.hears(2, "lyon", update(vec![third]));
    assert_eq!(paris.knows().last_of(&author("lyon")), 1, "there is a gap");
    let waits = |paris: &Paris| paris.engine.awaits_past(&counter(), &OperationId(id("lyon", 7)));
    assert!(waits(&paris));
    paris.hears(3, "lyon", update(vec![second]));
    assert_eq!(paris.knows().last_of(&author("lyon")), 7, "and now there is none");
    assert!(!waits(&paris));
}

#[test]
fn what_is_heard_twice_is_made_durable_once() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    let entries =
        |disk: &Disk| disk.0.iter().filter(|record| matches!(record, Record::Entry(..))).count();
    assert_eq!(entries(&paris.disk), 1);
    paris.hears(2, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    assert_eq!(entries(&paris.disk), 1);
}

#[test]
fn numbers_from_a_peer_can_be_as_large_as_they_like() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    let mut huge = update(vec![from_lyon(u64::MAX, 1, &[], u64::MAX)]);
    if let Message::Update(update) = &mut huge {
        update.knows = [id("lyon", u64::MAX), id("paris", u64::MAX)].into_iter().collect();
    }
    let effects = paris.hears(2, "lyon", huge);
    assert_eq!(malformed(&effects), Some(Malformed::NumberNotAfter));
    let effects = paris.handle(3, Event::Submitted(submission()));
    assert!(matches!(answers(&effects)[..], [Answer::Accepted(..)]), "it goes on working");
}

#[test]
fn an_operation_that_claims_to_be_before_its_own_past_is_placed_after_it() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    let effects = paris.hears(2, "lyon", update(vec![from_lyon(2, 1, &[id("lyon", 1)], 4)]));
    assert_eq!(malformed(&effects), None);
    let view = paris.engine.resource(&counter()).unwrap();
    let stamps: Vec<_> = view.operations.iter().map(|it| it.operation.stamp).collect();
    assert_eq!(stamps, [Stamp { wall_ms: 5, counter: 0 }, Stamp { wall_ms: 5, counter: 1 }]);
}

#[test]
fn the_last_stamp_that_may_be_claimed_leaves_room_for_everybody_elses_next() {
    // Given one operation at the very end of what may be claimed,
    let mut paris = Paris::new();
    let last = Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) };
    let mut claims_the_end = from_lyon(1, 0, &[], last.wall_ms);
    if let Body::Operation(operation) = &mut claims_the_end.body {
        (operation.claimed, operation.stamp) = (last, last);
    }
    assert_eq!(malformed(&paris.hears(1, "lyon", update(vec![claims_the_end]))), None);
    // when an honest site makes the next,
    paris.handle(2, Event::Submitted(submission()));
    // then it claims an honest time, stands after that one, and anybody accepts it.
    let view = paris.engine.resource(&counter()).unwrap();
    let own = view.operations.iter().find(|it| it.id().site() == &site("paris")).unwrap();
    assert!(own.operation.claimed.is_claimable() && own.operation.claimed < last);
    assert!(own.operation.stamp > last, "{}", own.operation.stamp);
}

#[test]
fn nobody_makes_a_site_forget_what_it_knows_by_saying_that_it_can_be_forgotten() {
    let mut paris = Paris::new();
    paris.handle(1, Event::Submitted(submission()));
    let mut lie = update(Vec::new());
    if let Message::Update(update) = &mut lie {
        update.knows.add(&id("paris", 1));
        let upto = [id("paris", 1)].into_iter().collect();
        update.base = Some(Base { upto, declared: None, chain: Default::default(), order: None });
    }
    paris.hears(2, "lyon", lie);
    let view = paris.engine.resource(&counter()).unwrap();
    assert!(view.pruned.is_empty() && view.operations.len() == 1);
}

#[test]
fn an_entry_of_another_resource_is_left_aside() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    let mut stray = from_lyon(2, 1, &[id("lyon", 1)], 6);
    if let Body::Operation(operation) = &mut stray.body {
        operation.resource = ResourceId::new("other").unwrap();
    }
    let effects = paris.hears(2, "lyon", update(vec![stray]));
    assert_eq!(malformed(&effects), Some(Malformed::WrongResource));
}

#[test]
fn a_site_outside_the_mesh_or_the_resource_is_not_listened_to() {
    let mut paris = Paris::new();
    paris.handle(1, Event::Submitted(submission()));
    let before = paris.knows();
    for stranger in ["nantes", "atlantis"] {
        let mut said = from_lyon(1, 0, &[], 5);
        if let Body::Operation(operation) = &mut said.body {
            operation.declares = None;
        }
        let effects = paris.hears(2, stranger, update(vec![said]));
        assert_eq!(malformed(&effects), Some(Malformed::NotShared), "{stranger}");
    }
    assert_eq!(paris.knows(), before);
}

#[test]
fn who_asks_about_a_resource_that_is_not_known_here_is_told_so() {
    let mut paris = Paris::new();
    let mut question = update(Vec::new());
    if let Message::Update(update) = &mut question {
        update.asks = true;
    }
    let effects = paris.hears(1, "lyon", question);
    let says_nothing_is_known = |effect: &Effect| match effect {
        Effect::Tell { message: Message::Update(update), .. } => update.knows.is_empty(),
        _ => false,
    };
    assert!(effects.iter().any(says_nothing_is_known));
    assert_eq!(paris.engine.resources().count(), 0, "and nothing is kept of it");
}

#[test]
fn a_resource_whose_declaration_cannot_be_taken_yet_is_still_unknown() {
    let mut paris = Paris::new();
    // The first operation got lost; the second declares a new config, and rests on the first.
    paris.hears(1, "lyon", update(vec![from_lyon(2, 1, &[id("lyon", 1)], 6)]));
    let mut question = update(Vec::new());
    if let Message::Update(update) = &mut question {
        update.asks = true;
    }
    let effects = paris.hears(2, "lyon", question);
    assert_eq!(malformed(&effects), None);
    let says_so = |effect: &Effect| match effect {
        Effect::Tell { message: Message::Update(said), .. } => said.knows.is_empty(),
        _ => false,
    };
    assert!(effects.iter().any(says_so), "or lyon would never send the first again: {effects:?}");
    let both = vec![from_lyon(1, 0, &[], 5), from_lyon(2, 1, &[id("lyon", 1)], 6)];
    paris.hears(3, "lyon", update(both));
    assert_eq!(paris.knows().last_of(&author("lyon")), 2);
}

#[test]
fn a_stamp_at_the_end_of_time_is_left_aside_and_the_clock_goes_on() {
    let mut paris = Paris::new();
    let effects = paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], u64::MAX)]));
    assert_eq!(malformed(&effects), Some(Malformed::NoSuchTime));
    let effects = paris.handle(2, Event::Submitted(submission()));
    assert!(matches!(answers(&effects)[..], [Answer::Accepted(..)]));
}

#[test]
fn a_base_that_its_sender_does_not_know_itself_is_left_aside() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", update(vec![from_lyon(1, 0, &[], 5)]));
    let mut lie = update(Vec::new());
    if let Message::Update(update) = &mut lie {
        let upto = [id("lyon", u64::MAX)].into_iter().collect();
        update.base = Some(Base { upto, declared: None, chain: Default::default(), order: None });
    }
    let effects = paris.hears(2, "lyon", lie);
    assert_eq!(malformed(&effects), Some(Malformed::BaseBeyondKnowledge));
    assert_eq!(paris.knows().last_of(&author("lyon")), 1);
}

#[test]
fn resources_take_turns_when_places_to_run_in_are_few() {
    let mut settings = Settings::new(author("paris"), [site("lyon")]);
    settings.jobs_at_once = 1;
    let (engine, reaction) = Engine::recover(settings, Vec::new(), now(0));
    let mut paris = Paris { engine, disk: Disk::default() };
    paris.commit(reaction);
    let on = |name: &str| Submission {
        resource: ResourceId::new(name).unwrap(),
        sites: Some([site("paris")].into()),
        ..submission()
    };
    let mut effects = Vec::new();
    for name in ["busy", "busy", "patient"] {
        effects.extend(paris.handle(1, Event::Submitted(on(name))));
    }
    let started = |effects: &[Effect]| -> Vec<_> {
        let job = |effect: &Effect| match effect {
            Effect::Run(job) => Some((job.id, job.resource.to_string())),
            _ => None,
        };
        effects.iter().filter_map(job).collect()
    };
    let first = started(&effects);
    assert_eq!(first.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["busy"]);
    let outcome = Outcome::success("");
    let effects = paris.handle(2, Event::Ended { job: first[0].0, outcome });
    let next = started(&effects);
    assert_eq!(next.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["patient"]);
}

/// Lyon made one that replaces paris' first, and it went well there: so all know that the first is
/// of no use to anybody any more.
fn lyon_replaced_the_first() -> Message {
    let mut later = from_lyon(1, 0, &[id("paris", 1)], 2_000_000);
    if let Body::Operation(operation) = &mut later.body {
        operation.replaces = Replaces::Past;
    }
    let reply = Reply {
        id: id("lyon", 2),
        stamp: Stamp { wall_ms: 2_000_001, counter: 0 },
        operation: OperationId(id("lyon", 1)),
        status: Status::Ok,
        outcome: None,
    };
    let after = (1, EntryHash::UNSAID);
    let reply = Entry::new(&counter(), after, Body::Reply(reply), Vec::new());
    let mut replaced = update(vec![later, reply]);
    if let Message::Update(update) = &mut replaced {
        update.knows.add(&id("paris", 1));
    }
    replaced
}

#[test]
fn an_operation_that_is_pruned_while_it_runs_is_replied_to_all_the_same() {
    let mut paris = Paris::new();
    let effects = paris.handle(1, Event::Submitted(submission()));
    let job = effects.iter().find_map(|effect| match effect {
        Effect::Run(job) => Some(job.id),
        _ => None,
    });
    paris.hears(2, "lyon", lyon_replaced_the_first());
    assert!(!paris.engine.resource(&counter()).unwrap().pruned.is_empty());
    let outcome = Outcome::success("");
    let effects = paris.handle(3, Event::Ended { job: job.unwrap(), outcome });
    let replied = |answer: &&Answer| matches!(answer, Answer::Replied(reply) if *reply.site() == site("paris"));
    assert!(answers(&effects).iter().any(replied), "the user waits for it: {effects:?}");
}

/// What paris has said of its first operation, in order.
fn said_by_paris(paris: &Paris) -> Vec<Status> {
    let replies = paris.disk.0.iter().filter_map(|record| match record {
        Record::Entry(_, entry) => match &entry.body {
            Body::Reply(reply) if reply.operation.0 == id("paris", 1) => Some(reply),
            _ => None,
        },
        _ => None,
    });
    let by_paris = replies.filter(|reply| *reply.site() == site("paris"));
    by_paris.map(|reply| reply.status.clone()).collect()
}

#[test]
fn what_is_superseded_while_it_is_tried_in_vain_is_replied_to() {
    for in_doubt in [false, true] {
        // Given an operation that runs here, and another that replaces it,
        let mut paris = Paris::new();
        let job = jobs(&paris.handle(1, Event::Submitted(submission())))[0];
        let mut later = from_lyon(1, 0, &[id("paris", 1)], 2_000_000);
        if let Body::Operation(operation) = &mut later.body {
            operation.replaces = Replaces::Past;
        }
        paris.hears(2, "lyon", update(vec![later]));
        assert_eq!(said_by_paris(&paris), []);
        // when it turns out that it could not be run,
        let outcome = Outcome::NotYet { reason: "the service is away".into(), in_doubt };
        paris.handle(3, Event::Ended { job, outcome });
        // then this site says what became of it.
        let by = OperationId(id("lyon", 1));
        assert_eq!(said_by_paris(&paris), [Status::Superseded { by }], "in doubt: {in_doubt}");
    }
}

fn matrix(result: &str) -> Arc<Config> {
    let entry = format!(r#"{{"Before": "inc", "After": "inc", "Result": "{result}"}}"#);
    let text = format!(r#"{{"ResolutionMatrix": [{entry}]}}"#);
    Config::parse(&text).unwrap().config.into()
}

/// Whoever knows the same resolves by the same config, so a config must not arrive before the
/// operation that gave it.
#[test]
fn who_lost_its_memory_is_told_the_config_of_what_was_pruned_and_not_a_later_one() {
    // Given a first operation with one config, which was pruned, and a later one with another,
    let mut paris = Paris::new();
    let (first, later) = (matrix("ordered"), matrix("take-both"));
    paris.handle(1, Event::Submitted(Submission { config: Some(first.clone()), ..submission() }));
    paris.hears(2, "lyon", lyon_replaced_the_first());
    assert!(!paris.engine.resource(&counter()).unwrap().pruned.is_empty());
    paris.handle(3, Event::Submitted(Submission { config: Some(later), ..submission() }));
    // when lyon comes back without its disk and asks,
    let mut asks = update(Vec::new());
    if let Message::Update(update) = &mut asks {
        (update.incarnation, update.asks) = (Incarnation(2), true);
    }
    let effects = paris.hears(4, "lyon", asks);
    // then it hears of both in their places.
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Tell { message: Message::Update(update), .. } if update.base.is_some() => {
            Some(update)
        }
        _ => None,
    });
    let base = told.unwrap().base.clone().unwrap();
    let (position, config) = base.declared.unwrap().config.unwrap();
    assert_eq!((position.id.0, config), (id("paris", 1), first));
    // And paris knows it after a restart as well.
    let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
    let (engine, _) = Engine::recover(settings, paris.disk.0.clone(), now(5));
    let known = |engine: &Engine| {
        let view = engine.resource(&counter()).unwrap();
        (view.config, view.list, view.knows, view.pruned)
    };
    assert_eq!(known(&engine), known(&paris.engine));
}

#[test]
fn a_restore_that_was_cut_short_and_cannot_be_made_any_more_does_not_stop_the_resource() {
    // Given a site that restores a snapshot, since another site's operation has to come first,
    let mut paris = Paris::new();
    let saved = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "ordered"}],
                    "Snapshot": "save", "Restore": "bring back"}"#;
    let saved: Arc<Config> = Config::parse(saved).unwrap().config.into();
    let mut effects =
        paris.handle(1, Event::Submitted(Submission { config: Some(saved), ..submission() }));
    for ms in 2..4 {
        let job = jobs(&effects)[0];
        effects = paris.handle(ms, Event::Ended { job, outcome: Outcome::success("") });
    }
    let restores = |effect: &Effect| matches!(effect, Effect::Run(job) if matches!(job.task, Task::Restore { .. }));
    let effects = paris.hears(4, "lyon", update(vec![from_lyon(1, 0, &[], 1)]));
    assert!(effects.iter().any(restores), "{effects:?}");
    // and whose config loses the command for it, when it is killed and starts again,
    let config = Some(matrix("ordered"));
    paris.handle(5, Event::Submitted(Submission { config, ..submission() }));
    let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
    let (engine, reaction) = Engine::recover(settings, paris.disk.0.clone(), now(6));
    paris.engine = engine;
    let effects = paris.commit(reaction);
    let in_doubt = |effect: &Effect| matches!(effect, Effect::Notify(Notice::InDoubt(..)));
    assert!(effects.iter().any(in_doubt), "{effects:?}");
    // then an operation by force sets it right.
    let forced = Submission { force: true, ..submission() };
    let effects = paris.handle(7, Event::Submitted(forced));
    let is_run =
        |effect: &Effect| matches!(effect, Effect::Run(job) if matches!(job.task, Task::Run(_)));
    assert!(effects.iter().any(is_run), "{effects:?}");
}

/// Paris took an operation in, and it came to its end at both sites: what paris is about to hear
/// of itself and of lyon.
fn run_at_both_sites() -> (Paris, Event, Event) {
    let mut paris = Paris::new();
    let effects = paris.handle(1, Event::Submitted(submission()));
    let job = effects.iter().find_map(|effect| match effect {
        Effect::Run(job) => Some(job.id),
        _ => None,
    });
    let ended = Event::Ended { job: job.unwrap(), outcome: Outcome::success("") };
    (paris, ended, lyon_replies(1, Status::Ok))
}

/// To what paris took in, in the `n`th entry that lyon writes.
fn lyon_replies(n: u64, status: Status) -> Event {
    let reply = Reply {
        id: id("lyon", n),
        stamp: Stamp { wall_ms: 2_000_000 + n, counter: 0 },
        operation: OperationId(id("paris", 1)),
        status,
        outcome: Some(Outcome::success("")),
    };
    let after = (n - 1, EntryHash::UNSAID);
    let reply = Entry::new(&counter(), after, Body::Reply(reply), Vec::new());
    Event::Heard { from: site("lyon"), message: update(vec![reply]) }
}

#[test]
fn another_sites_reply_is_told_before_it_is_durable_here() {
    let (mut paris, _, heard) = run_at_both_sites();
    let mut reaction = paris.engine.handle(now(2), heard);
    let told = reaction.take_free();
    assert!(matches!(answers(&told)[..], [Answer::Replied(_)]), "{told:?}");
    assert!(answers(&paris.commit(reaction)).is_empty(), "it is told once");
}

#[test]
fn another_sites_reply_is_not_told_before_our_own_that_came_first() {
    let (mut paris, ended, heard) = run_at_both_sites();
    let mut reaction = paris.engine.handle(now(2), ended);
    reaction.join(paris.engine.handle(now(3), heard));
    assert!(reaction.take_free().is_empty());
    let told = paris.commit(reaction);
    assert!(
        matches!(answers(&told)[..], [Answer::Replied(first), Answer::Replied(_), Answer::Done]
            if *first.site() == site("paris")),
        "{told:?}"
    );
}

/// Lyon says what it knows, and nothing new.
fn lyon_knows(what: Vector) -> Message {
    let Message::Update(mut update) = update(Vec::new()) else { unreachable!() };
    update.knows = what;
    Message::Update(update)
}

fn says_converged(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Notify(Notice::Converged(_))))
}

#[test]
fn a_resource_has_converged_once_every_site_knows_everything_and_has_replied() {
    let (mut paris, ended, heard) = run_at_both_sites();
    let converged = |paris: &Paris| paris.engine.resource(&counter()).unwrap().converged;

    // When lyon knows of the operation and of what became of it here, but has not run it.
    let mut said = says_converged(&paris.handle(2, ended));
    let everything = paris.knows();
    said |= says_converged(&paris.hears(3, "lyon", lyon_knows(everything)));
    assert!(!said && !converged(&paris), "lyon is still at it");

    // Then that is said when lyon replies, and once.
    assert!(says_converged(&paris.handle(4, heard)) && converged(&paris));
    let everything = paris.knows();
    assert!(!says_converged(&paris.hears(5, "lyon", lyon_knows(everything))));

    // And again if lyon has something else to say of it.
    assert!(says_converged(&paris.handle(6, lyon_replies(2, Status::Ko))));
}

#[test]
fn a_site_that_lost_its_disk_has_yet_to_say_how_things_stand_there() {
    // Given an operation that ran at both sites,
    let (mut paris, ended, heard) = run_at_both_sites();
    paris.handle(2, ended);
    let everything = paris.knows();
    paris.hears(3, "lyon", lyon_knows(everything));
    assert!(says_converged(&paris.handle(4, heard)));
    // when lyon comes back without its disk, and asks,
    let mut asks = update(Vec::new());
    if let Message::Update(update) = &mut asks {
        (update.incarnation, update.asks) = (Incarnation(2), true);
    }
    paris.hears(5, "lyon", asks);
    // then what it said before counts no more.
    let view = paris.engine.resource(&counter()).unwrap();
    let replied: Vec<_> = view.operations[0].replies.iter().map(Reply::site).collect();
    assert!(!view.converged && replied == [&site("paris")], "{view:?}");
}

#[test]
fn an_engine_that_starts_again_says_that_a_resource_converged_if_it_had_not() {
    let (mut paris, ended, heard) = run_at_both_sites();
    paris.handle(2, ended);
    let start_again = |paris: &mut Paris| {
        let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
        let records = paris.disk.0.clone();
        let (engine, reaction) = Engine::recover(settings, records, now(10));
        paris.engine = engine;
        says_converged(&paris.commit(reaction))
    };

    assert!(!start_again(&mut paris), "lyon has not run it");
    let everything = paris.knows();
    paris.hears(11, "lyon", lyon_knows(everything));
    assert!(says_converged(&paris.handle(12, heard)));
    assert!(!start_again(&mut paris), "it was said before the stop");
    let everything = paris.knows();
    assert!(!says_converged(&paris.hears(13, "lyon", lyon_knows(everything))));
}

#[test]
fn an_outcome_of_a_job_that_nobody_asked_for_changes_nothing() {
    let mut paris = Paris::new();
    let stray = Event::Ended { job: cheops_core::engine::JobId(99), outcome: Outcome::success("") };
    let reaction = paris.engine.handle(now(1), stray);
    assert_eq!(reaction.records(), 0);
    assert!(answers(&paris.commit(reaction)).is_empty());
}

fn told<'a>(effects: &'a [Effect], to: &str) -> Vec<&'a Message> {
    let to = site(to);
    let mut found = Vec::new();
    for effect in effects {
        if let Effect::Tell { to: listener, message } = effect
            && *listener == to
        {
            found.push(message);
        }
    }
    found
}

fn jobs(effects: &[Effect]) -> Vec<JobId> {
    let job = |effect: &Effect| match effect {
        Effect::Run(job) => Some(job.id),
        _ => None,
    };
    effects.iter().filter_map(job).collect()
}

/// The reply of lyon to an operation, as it arrives.
fn reply_of_lyon(n: u64, after: u64, operation: OperationId, status: Status) -> Message {
    let stamp = Stamp { wall_ms: 2_000_000, counter: 0 };
    let reply = Reply { id: id("lyon", n), stamp, operation, status, outcome: None };
    let after = (after, EntryHash::UNSAID);
    update(vec![Entry::new(&counter(), after, Body::Reply(reply), Vec::new())])
}

#[test]
fn a_message_stays_within_its_budget_of_bytes_but_holds_one_entry_in_any_case() {
    let mut settings = Settings::new(author("paris"), [site("lyon")]);
    settings.bytes_per_update = 5_000;
    let (mut engine, _) = Engine::recover(settings, Vec::new(), now(0));
    for length in [100, 1_500, 1_500, 1_500, 20_000, 100] {
        let payload = Payload::shell("x".repeat(length));
        let reaction =
            engine.handle(now(1), Event::Submitted(Submission { payload, ..submission() }));
        reaction.commit(&mut Disk::default(), &Unsigned).unwrap();
    }

    engine
        .handle(now(1), Event::Heard { from: site("lyon"), message: heartbeat() })
        .commit(&mut Disk::default(), &Unsigned)
        .unwrap();

    let mut sizes = Vec::new();
    let mut asks = Message::Update(Box::new(Update {
        incarnation: Incarnation(1),
        resource: counter(),
        base: None,
        knows: Vector::default(),
        entries: Vec::new(),
        chain: Default::default(),
        you_may_have_run: Vector::default(),
        asks: true,
    }));
    for _ in 0..10 {
        let heard = Event::Heard { from: site("lyon"), message: asks.clone() };
        let effects = engine.handle(now(2), heard).commit(&mut Disk::default(), &Unsigned).unwrap();
        for message in told(&effects, "lyon") {
            let (Message::Update(sent), Message::Update(next)) = (message, &mut asks) else {
                continue;
            };
            let new = sent.entries.iter().filter(|entry| !next.knows.includes(entry.id()));
            sizes.push(new.map(|entry| entry.size()).collect::<Vec<_>>());
            sent.entries.iter().for_each(|entry| next.knows.add(entry.id()));
        }
    }

    assert_eq!(sizes.iter().flatten().count(), 6, "everything arrives: {sizes:?}");
    for message in &sizes {
        let within = message.iter().sum::<usize>() <= 5_000;
        assert!(within || message.len() == 1, "{message:?}");
    }
    assert!(sizes.len() > 2, "{sizes:?}");
}

#[test]
fn a_deletion_wins_over_what_is_concurrent_and_only_force_brings_the_resource_back() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", heartbeat());
    paris.handle(2, Event::Submitted(submission()));
    let deletion = Submission { kind: OperationType::deletion(), ..submission() };
    paris.handle(3, Event::Submitted(deletion));
    // Made in lyon without knowledge of either, by a clock that is ahead.
    paris.hears(4, "lyon", update(vec![from_lyon(1, 0, &[], 9_000_000)]));

    let view = paris.engine.resource(&counter()).unwrap();
    assert!(view.deleted);
    assert_eq!(view.list.len(), 1, "{view:?}");
    let effects = paris.handle(5, Event::Submitted(submission()));
    assert_eq!(answers(&effects), [&Answer::Refused(Refusal::Deleted(counter()))]);
    paris.handle(6, Event::Submitted(Submission { force: true, ..submission() }));
    assert!(!paris.engine.resource(&counter()).unwrap().deleted);
}

#[test]
fn where_an_operation_was_handed_in_it_is_told_once_how_it_ended_everywhere() {
    let mut paris = Paris::new();
    paris.hears(1, "lyon", heartbeat());
    let effects = paris.handle(2, Event::Submitted(submission()));
    let operation = OperationId(id("paris", 1));
    let settled = |effects: &[Effect]| {
        let ending = |effect: &Effect| match effect {
            Effect::Notify(Notice::Settled(_, _, ending)) => Some(*ending),
            _ => None,
        };
        effects.iter().filter_map(ending).collect::<Vec<_>>()
    };

    let outcome = Outcome::success("1");
    let mine = paris.handle(3, Event::Ended { job: jobs(&effects)[0], outcome });
    let theirs = paris.hears(4, "lyon", reply_of_lyon(1, 0, operation.clone(), Status::Ko));
    let again = paris.hears(5, "lyon", reply_of_lyon(2, 1, operation, Status::Ok));

    assert_eq!(settled(&mine), []);
    assert_eq!(settled(&theirs), [Ending::PartialError]);
    assert_eq!(settled(&again), []);
}

#[test]
fn an_engine_that_drains_starts_nothing_new_and_says_when_nothing_runs_any_more() {
    let mut paris = Paris::new();
    let effects = paris.handle(1, Event::Submitted(submission()));
    assert_eq!((jobs(&effects).len(), paris.engine.running()), (1, 1));
    paris.engine.drain();
    paris.handle(2, Event::Submitted(submission()));

    let outcome = Outcome::success("1");
    let after = paris.handle(3, Event::Ended { job: jobs(&effects)[0], outcome });

    assert_eq!(jobs(&after), []);
    assert_eq!(paris.engine.running(), 0);
    let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
    let (_, reaction) = Engine::recover(settings, paris.disk.0.clone(), now(0));
    let effects = reaction.commit(&mut Disk::default(), &Unsigned).unwrap();
    assert_eq!(jobs(&effects).len(), 1, "the second one was not begun, so it is not in doubt");
}

#[test]
fn a_site_that_can_be_reached_again_hears_from_this_one_at_once() {
    let mut paris = Paris::new();
    paris.handle(1, Event::Ticked);
    assert_eq!(told(&paris.handle(2, Event::Ticked), "lyon").len(), 0);
    let effects = paris.handle(3, Event::Reached(site("lyon")));
    assert!(matches!(told(&effects, "lyon")[..], [Message::Heartbeat(_)]));
}

fn started(effects: &[Effect]) -> Option<(JobId, Task)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Run(job) => Some((job.id, job.task.clone())),
        _ => None,
    })
}

#[test]
fn a_check_that_tells_nothing_is_made_again_and_nothing_is_run_twice_for_it() {
    let checked = r#"{"ResolutionMatrix": [], "Types": {"inc": {"Check": "did it"}}}"#;
    let checked = Config::parse(checked).unwrap().config;
    let mut paris = Paris::new();
    let submitted = Submission { config: Some(Arc::new(checked)), ..submission() };
    paris.handle(1, Event::Submitted(submitted));
    // It stops while the command runs.
    let settings = Settings::new(author("paris"), [site("lyon"), site("nantes")]);
    let (engine, reaction) = Engine::recover(settings, paris.disk.0.clone(), now(2));
    paris.engine = engine;
    let effects = paris.commit(reaction);
    let check = started(&effects);
    assert!(matches!(check, Some((_, Task::Check { .. }))), "{effects:?}");

    let (job, _) = check.unwrap();
    let outcome = Outcome::TimedOut { limit_ms: 60_000 };
    let effects = paris.handle(3, Event::Ended { job, outcome });
    assert_eq!(started(&effects), None);
    let view = paris.engine.resource(&counter()).unwrap();
    let waits_for = view.waits_for.unwrap();
    assert!(waits_for.contains("did not end within 60000 ms"), "{waits_for}");

    let effects = paris.handle(10_000, Event::Ticked);
    let Some((job, Task::Check { .. })) = started(&effects) else { panic!("{effects:?}") };
    let effects = paris.handle(10_001, Event::Ended { job, outcome: Outcome::failure("") });
    assert!(matches!(started(&effects), Some((_, Task::Run(_)))), "it did not happen: {effects:?}");
    assert_eq!(paris.engine.resource(&counter()).unwrap().waits_for, None);
}
