//! What a site claims without a signature: what was forgotten, what it knows, what others wrote before
//! there were signatures. Nobody is made to forget, to believe or to be silent by it.

use std::sync::Arc;

use cheops_core::engine::{Application, Base, Declared, Message, Record, Submission};
use cheops_core::model::{
    Act, Entry, EntryHash, Evidence, IdMap, LocalId, MetaId, OperationId, Payload, Position,
    ServiceRef, Stamp, Status,
};

use super::fixture::*;

/// Nantes set it, and paris ran that. Lyon holds it too, and claims to know of a site `ys`, so that
/// nobody is ever in step with it.
fn with_a_liar() -> (Site, Other, Other) {
    let mut paris = paris();
    let (mut nantes, mut lyon) = (other("nantes"), other("lyon"));
    let first = nantes.writes(op("set").declaring("lyon nantes paris", Some(set_and_inc())));
    paris.hears("nantes", nantes.tells([first]));
    paris.ends(1, ok());
    nantes.learns("paris.1");
    lyon.learns("nantes.1 paris.1 ys.1");
    paris.hears("lyon", lyon.tells([]));
    (paris, nantes, lyon)
}

#[test]
fn what_is_held_here_and_counts_is_not_forgotten_on_one_sites_word() {
    let (mut paris, mut nantes, mut lyon) = with_a_liar();
    let second = nantes.writes(op("inc").on("nantes.1"));
    paris.hears("nantes", nantes.tells([second]));
    paris.ends(2, ok());
    lyon.learns("nantes.2 paris.2 ys.1");
    paris.hears("lyon", lyon.tells([]).pruned("nantes.2 ys.1"));
    assert!(!paris.story().contains("Pruned"));
    paris.restarts();
    let view = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(view.list, [operation("nantes.1"), operation("nantes.2")]);
}

#[test]
fn who_knows_all_that_was_forgotten_takes_no_sites_or_rules_from_who_says_so() {
    let (mut paris, mut nantes, lyon) = with_a_liar();
    let second = nantes.writes(op("set").on("nantes.1").replacing());
    paris.hears("nantes", nantes.tells([second]));
    paris.ends(2, ok());
    let before = paris.engine.resource(&resource("counter")).unwrap();
    let last = Stamp { wall_ms: (1 << 48) - 1, counter: 0 };
    let place = Position { stamp: last, id: OperationId(id("lyon.1")) };
    let declared = Declared {
        sites: sites("lyon nantes paris ys"),
        config: Some((place, matrix("take-both"))),
        id_map: None,
    };
    let claim = lyon.tells([]).knowing("nantes.2 paris.2").pruned("");
    paris.hears("lyon", claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared)));
    let after = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!((after.sites, after.config), (before.sites, before.config));
}

/// Paris runs what it was asked for, lyon has replaced it and says that this went well. So paris would
/// forget its own operation, if nantes had confirmed it; and lyon says that it has forgotten it.
fn replaced_by_a_liar(base: impl FnOnce(&mut Base)) -> (Site, Arc<Entry>) {
    let mut paris = paris();
    let at = Some(sites("lyon nantes paris"));
    paris.submits(Submission { sites: at, config: Some(set_and_inc()), ..asks_for("set") });
    let first = paris.disk.0.iter().find_map(|record| match record {
        Record::Entry(_, entry) => Some(entry.clone()),
        _ => None,
    });
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    let entries = [op("set").on("paris.1").replacing(), says("lyon.1", Status::Ok)];
    let entries = entries.map(|said| lyon.writes(said));
    paris.hears("lyon", lyon.tells(entries));
    let claim = lyon.tells([]).pruned("paris.1");
    paris.hears("lyon", claim.changed(|it| base(it.base.as_mut().unwrap())));
    assert!(paris.disk.0.iter().any(|record| matches!(record, Record::Pruned(..))));
    (paris, first.unwrap())
}

#[test]
fn nobody_tells_a_site_after_which_entry_of_its_own_it_writes_the_next() {
    let (mut paris, first) = replaced_by_a_liar(|base| {
        base.chain.set(&author("paris"), EntryHash([7; 32]));
    });
    paris.ends(1, ok());
    for _ in 0..2 {
        let next = paris.disk.0.iter().rev().find_map(|record| match record {
            Record::Entry(_, entry) if entry.id().author == author("paris") => Some(entry.clone()),
            _ => None,
        });
        let next = next.unwrap();
        assert!(next.id().n > 1);
        assert_eq!((next.after, next.after_hash), (1, first.hash()), "it would contradict itself");
        paris.restarts();
    }
}

#[test]
fn of_what_is_known_here_nobody_else_says_where_in_the_order_it_was_or_what_it_declared() {
    let last = Stamp { wall_ms: (1 << 48) - 1, counter: 0 };
    let (mut lied_to, _) = replaced_by_a_liar(|base| {
        base.order = Some(last);
        let place = Position { stamp: last, id: operation("paris.1") };
        base.declared = Some(Declared {
            sites: sites("lyon nantes paris ys"),
            config: Some((place, matrix("ordered"))),
            id_map: None,
        });
    });
    let (mut told_the_truth, _) = replaced_by_a_liar(|_| ());
    let [one, other] = [&mut lied_to, &mut told_the_truth].map(|paris| {
        let mut nantes = other("nantes");
        nantes.learns("paris.1");
        paris.hears("nantes", nantes.tells_of(op("inc").on("paris.1").at_ms(9)));
        paris.restarts();
        let view = paris.engine.resource(&resource("counter")).unwrap();
        (view.list, view.sites, view.config)
    });
    assert_eq!(one, other);
}

#[test]
fn a_resource_does_not_speak_of_what_another_stands_for() {
    let speaks = |resource: &str, of: &str| {
        let mut paris = paris();
        let said = op("post").declaring("lyon paris", None);
        let said = said.running(request(of, Act::CreatesAs, None));
        paris.hears("lyon", other("lyon").on(resource).tells_of(said));
        let is_known = paris.engine.resources().len() == 1;
        (is_known, paris.story())
    };
    for (resource, of) in [("mine", "theirs"), ("image/images/mine", "theirs"), ("image", "images")]
    {
        let (is_known, story) = speaks(resource, of);
        assert!(!is_known && story.contains("Malformed(lyon, WrongResource)"), "{story}");
    }
    for (resource, of) in [("drawn", "drawn"), ("image/images/a%2Fb", "a/b")] {
        assert!(speaks(resource, of).0, "{resource}");
    }
    // Nor does what is said to have been forgotten of it.
    let (mut paris, mut lyon) = (paris(), other("lyon"));
    lyon.learns("ys.1");
    let Payload::Http { service_ref: Some(theirs), .. } = request("theirs", Act::Creates, None)
    else {
        unreachable!("it is a request")
    };
    let id_map = Some(IdMap::new("image", &theirs));
    let declared = Declared { sites: sites("lyon paris"), config: None, id_map };
    let claim = lyon.tells([]).pruned("ys.1");
    let claim = claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared));
    paris.hears("lyon", claim.clone());
    paris.at(16_000).hears("lyon", claim);
    assert_eq!(paris.engine.resources().len(), 0);
}

#[test]
fn nobody_tells_a_site_what_its_own_service_calls_a_thing() {
    let mut paris = paris();
    let service_ref = |act| ServiceRef {
        meta_id: MetaId::new("counter").unwrap(),
        collection: "/images".into(),
        act,
    };
    let mut id_map = IdMap::new("image", &service_ref(Act::Creates));
    id_map.name(&id("paris.9999"), &LocalId::new("8-a-stranger").unwrap());
    let declared =
        Declared { sites: sites("lyon nantes paris"), config: None, id_map: Some(id_map) };
    let mut lyon = other("lyon");
    lyon.learns("ys.1");
    let claim = lyon.tells([]).pruned("ys.1");
    let claim = claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared));
    paris.hears("lyon", claim.clone());
    paris.at(16_000).hears("lyon", claim);
    let known = paris.engine.resource(&resource("counter")).unwrap();
    let names: Vec<_> = known.id_map.iter().flat_map(IdMap::named_by).collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn names_that_no_sites_could_have_given_are_not_believed_with_the_rest() {
    let with = |collection: String, names: u64| {
        let mut paris = paris();
        let meta_id = MetaId::new("counter").unwrap();
        let service_ref = ServiceRef { meta_id, collection, act: Act::Creates };
        let mut id_map = IdMap::new("image", &service_ref);
        for n in 0..names {
            id_map.name(&id(&format!("lyon-{:x}.1", n + 1)), &LocalId::new("7").unwrap());
        }
        let declared =
            Declared { sites: sites("lyon nantes paris"), config: None, id_map: Some(id_map) };
        let mut lyon = other("lyon");
        lyon.learns("ys.1");
        let claim = lyon.tells([]).pruned("ys.1");
        let claim = claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared));
        paris.hears("lyon", claim.clone());
        paris.at(16_000).hears("lyon", claim);
        paris.engine.resource(&resource("counter")).is_some()
    };
    assert!(with("/images".into(), 4_096));
    assert!(!with("/images".into(), 4_097));
    assert!(!with("/".repeat(65_537), 1));
}

#[test]
fn claims_over_many_messages_are_bounded_as_those_of_one_are() {
    let (mut paris, _, lyon) = with_a_liar();
    for round in 0..5_u64 {
        let made_up: String =
            (0..4_000).map(|i| format!("ys-{:x}.1 ", 1 + round * 4_000 + i)).collect();
        paris.hears("lyon", lyon.tells([]).knowing(&format!("nantes.1 paris.1 {made_up}")));
    }
    let authors = paris.disk.0.iter().filter_map(|record| match record {
        Record::Knows(_, _, _, knows) => Some(knows.authors()),
        _ => None,
    });
    assert!(authors.max().is_none_or(|most| most <= 4_096));
    assert!(paris.story().contains("Malformed(lyon, TooMany)"));
}

#[test]
fn nobody_vouches_for_more_than_the_author_says_it_wrote() {
    let mut paris = paris();
    let mut nantes = other("nantes");
    let declared = op("inc").declaring("lyon nantes paris", Some(matrix("take-both")));
    let first = nantes.writes(declared.vouched_by("nantes"));
    paris.hears("nantes", nantes.tells([first]));
    let mut forged = nantes.clone();
    let made_up = forged.writes(op("inc").on("nantes.1").numbered(40, 1).vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([made_up]).knowing("nantes.40"));
    let real = nantes.writes(op("inc").on("nantes.1").numbered(51, 1));
    paris.hears("nantes", nantes.tells([real]));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.list, [operation("nantes.1"), operation("nantes.51")]);
}

#[test]
fn what_others_forgot_before_a_liar_was_found_out_is_forgotten_although_it_wrote_beside_it() {
    let (mut paris, mut nantes, mut lyon) = with_a_liar();
    let second = nantes.writes(op("set").on("nantes.1").replacing());
    paris.hears("nantes", nantes.tells([second]));
    paris.ends(2, ok());
    nantes.learns("paris.2");
    // It told nantes that it knows what nantes wrote, and writes as if it did not.
    let beside = lyon.writes(op("set").on("nantes.1"));
    paris.hears("lyon", lyon.tells([beside.clone()]));
    let forgotten = nantes.tells([]).pruned("nantes.1");
    paris.hears("nantes", forgotten.clone());
    assert!(!paris.story().contains("note Pruned"));
    let elsewhere = other("lyon").on("elsewhere").writes(op("set"));
    let signed = |entry: &Entry, on| (entry.header(&resource(on)), entry.proof().unwrap().clone());
    let (one, another) = (signed(&beside, "counter"), signed(&elsewhere, "elsewhere"));
    paris.hears("nantes", Message::Evidence(Box::new(Evidence { one, other: another })));
    paris.hears("nantes", forgotten);
    assert!(paris.story().contains("note Pruned"));
}

/// What lyon says to paris, which lost its disk: that all was forgotten, up to there.
fn forgotten(upto: &str, at: &str) -> News {
    let mut lyon = other("lyon");
    lyon.learns(upto);
    let declared = Declared { sites: sites(at), config: None, id_map: None };
    let claim = lyon.tells([]).pruned(upto);
    claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared))
}

fn without_a_disk() -> Site {
    let mut settings = settings("lyon nantes");
    settings.me = author("paris-2");
    start(settings)
}

/// What nantes made and holds still.
fn held_by_nantes() -> News {
    let mut nantes = other("nantes");
    let first = nantes.writes(op("inc").declaring("lyon nantes paris", Some(matrix("take-both"))));
    nantes.tells([first])
}

#[test]
fn who_lost_its_disk_does_not_believe_the_first_that_says_what_was_forgotten() {
    for at in ["lyon nantes paris", "lyon paris"] {
        let mut paris = without_a_disk();
        paris.hears("lyon", forgotten("nantes.9 paris.1", at));
        assert!(paris.engine.resource(&resource("counter")).is_none(), "nantes may know better");
        paris.hears("nantes", held_by_nantes());
        paris.hears("lyon", forgotten("nantes.9 paris.1", at));
        let known = paris.engine.resource(&resource("counter")).unwrap();
        assert_eq!(known.list, [operation("nantes.1")], "{at}");
        assert_eq!(known.sites, sites("lyon nantes paris"), "{at}");
        assert!(known.pruned.is_empty(), "{at}");
    }
}

#[test]
fn who_lost_its_disk_believes_what_was_forgotten_once_all_say_so_or_stay_silent() {
    let mut paris = without_a_disk();
    let claim = || forgotten("nantes.9 paris.1", "lyon nantes paris");
    paris.hears("lyon", claim());
    paris.hears("nantes", claim());
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.pruned, vector("nantes.9 paris.1"), "both say so");
    let mut paris = without_a_disk();
    paris.hears("lyon", claim());
    paris.at(14_000).hears("lyon", claim());
    assert!(paris.engine.resource(&resource("counter")).is_none());
    paris.at(16_000).hears("lyon", claim());
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.pruned, vector("nantes.9 paris.1"), "nobody else is there");
}

/// What lyon writes in these incarnations of its own, each on its own.
fn in_incarnations(numbers: impl IntoIterator<Item = u64>) -> Vec<Arc<Entry>> {
    let written = numbers.into_iter().map(|number| {
        let mut lyon = other(&format!("lyon-{number:x}"));
        lyon.writes(op("inc").declaring("lyon nantes paris", None))
    });
    written.collect()
}

/// What lyon says to paris: those entries, and what it knows of nantes.
fn tells_all(entries: &[Arc<Entry>]) -> News {
    let mut lyon = other("lyon");
    lyon.learns("nantes.1");
    entries.iter().for_each(|entry| lyon.knows.add(entry.id()));
    lyon.tells(entries.to_vec())
}

/// The incarnations of lyon that count at a site.
fn incarnations_of_lyon(of: &Site) -> Vec<u64> {
    let known = of.engine.resource(&resource("counter")).unwrap().knows;
    let of_lyon = known.iter().filter(|(author, _)| author.site == site("lyon"));
    of_lyon.map(|(author, _)| author.incarnation.0).collect()
}

fn with_nantes() -> (Site, Other) {
    let (mut paris, mut nantes) = (paris(), other("nantes"));
    let first = op("inc").declaring("lyon nantes paris", Some(matrix("take-both")));
    paris.hears("nantes", nantes.tells_of(first));
    (paris, nantes)
}

#[test]
fn nobody_silences_others_by_writing_in_ever_more_incarnations_of_its_own() {
    let (mut paris, mut nantes) = with_nantes();
    for round in 0..6_u64 {
        let last = (9 - round) << 32;
        paris.hears("lyon", tells_all(&in_incarnations(last..last + 1_000)));
    }
    assert_eq!(incarnations_of_lyon(&paris), (4 << 32..(4 << 32) + 64).collect::<Vec<_>>());
    assert!(paris.story().contains("Malformed(lyon, TooMany)"));
    paris.hears("nantes", nantes.tells_of(op("inc").on("nantes.1")));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert!(known.list.contains(&operation("nantes.2")), "nantes is heard still");
    assert!(!paris.story().contains("Malformed(nantes"));
}

#[test]
fn which_incarnations_count_does_not_depend_on_what_was_heard_first_nor_on_a_restart() {
    let all = in_incarnations((1..=150).map(|n| (n * 37 % 151) | 1 << 32));
    let expected: Vec<u64> = (1..=64).map(|n| n | 1 << 32).collect();
    let orders: [fn(&mut Vec<Arc<Entry>>); 4] = [
        |_| (),
        |all| all.reverse(),
        |all| all.sort_by(|a, b| a.id().cmp(b.id())),
        |all| all.sort_by(|a, b| b.id().cmp(a.id())),
    ];
    for (at_once, order) in orders.into_iter().enumerate() {
        let (mut paris, _) = with_nantes();
        let mut all = all.clone();
        order(&mut all);
        for some in all.chunks(1 + 20 * at_once) {
            paris.hears("lyon", tells_all(some));
        }
        assert_eq!(incarnations_of_lyon(&paris), expected);
        let list = paris.engine.resource(&resource("counter")).unwrap().list;
        assert_eq!(list.len(), 65);
        paris.restarts();
        assert_eq!(incarnations_of_lyon(&paris), expected);
        assert_eq!(paris.engine.resource(&resource("counter")).unwrap().list, list);
    }
}

#[test]
fn who_passes_on_what_is_of_too_many_incarnations_did_nothing_wrong_and_is_in_step() {
    let (mut paris, mut nantes) = with_nantes();
    paris.hears("lyon", tells_all(&in_incarnations((1..=64).map(|n| n | 1 << 32))));
    let last = in_incarnations([99 | 1 << 32]);
    nantes.learns("lyon-100000063.1");
    let on_it = nantes.writes(op("inc").on("lyon-100000063.1 nantes.1"));
    let both = [last[0].clone(), on_it];
    paris.hears("nantes", nantes.tells(both));
    let story = paris.story();
    assert!(!story.contains("Malformed(nantes"), "{story}");
    assert!(story.contains("Malformed(lyon, TooMany)"), "{story}");
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert!(known.list.contains(&operation("nantes.2")), "what rests on it counts");
    assert_eq!(
        known.knows.authors(),
        65 + 1 - usize::from(known.knows.last_of(&author("paris")) == 0)
    );
}

#[test]
fn what_others_vouch_for_does_not_push_out_what_a_site_signs_now() {
    let mut paris = paris();
    let mut nantes = other(&format!("nantes-{:x}", 7_u64 << 32));
    let real = nantes.writes(op("inc").declaring("lyon nantes paris", Some(matrix("take-both"))));
    let old = (1..=80_u64).map(|number| {
        let mut nantes = other(&format!("nantes-{number:x}"));
        nantes.writes(op("inc").declaring("lyon nantes paris", None).vouched_by("lyon"))
    });
    let all: Vec<_> = std::iter::once(real.clone()).chain(old).collect();
    let mut lyon = other("lyon");
    all.iter().for_each(|entry| lyon.knows.add(entry.id()));
    paris.hears("lyon", lyon.tells(all));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert!(known.knows.includes(real.id()));
    assert_eq!(known.list.len(), 64);
}

#[test]
fn who_sends_entries_knows_them_whatever_it_says() {
    let (mut paris, _) = with_nantes();
    let entries = in_incarnations((1..=900).map(|n| n << 32));
    let claimed: String = (1..=3_500_u64).map(|n| format!("lyon-{n:x}.1 ")).collect();
    paris.hears("lyon", tells_all(&entries).knowing(&claimed));
    assert!(incarnations_of_lyon(&paris).is_empty());
    assert!(paris.story().contains("Malformed(lyon, TooMany)"));
}

#[test]
fn who_writes_in_too_many_incarnations_makes_nobody_doubt_for_ever_what_it_ran() {
    for (is_one_of, doubts) in [(1, true), (100, false)] {
        let mut settings = settings("lyon nantes");
        settings.application = Application::MayHoldState;
        let mut paris = start(settings);
        let mut nantes = other("nantes");
        let first = op("inc").declaring("lyon nantes paris", Some(matrix("take-both")));
        paris.hears("nantes", nantes.tells_of(first));
        paris.hears("lyon", tells_all(&in_incarnations((1..=64).map(|n| n | 1 << 32))));
        paris.hears("nantes", nantes.tells_of(op("inc").on("nantes.1")));
        paris.so_far();
        let claim = other(&format!("lyon-{:x}", is_one_of | 1_u64 << 32)).tells([]);
        let claim = claim.changed(|it| it.you_may_have_run = vector("nantes.2"));
        paris.hears("lyon", claim);
        assert_eq!(paris.story().contains("+ ran ["), doubts, "as incarnation {is_one_of}");
    }
}
