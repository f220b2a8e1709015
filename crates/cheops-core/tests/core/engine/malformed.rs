//! What cannot be, or is nobody's business: left aside, and said with the reason.

use cheops_core::engine::{Batch, Event, Log, Malformed, Message, Record, Unsigned};
use cheops_core::model::{OperationId, Stamp, Status};
use expect_test::expect;

use super::fixture::*;

fn declared(kind: &str) -> Unwritten {
    op(kind).declaring("lyon paris", None)
}

/// Paris holds `counter` together with lyon; nantes does not. What it makes of this from there?
fn left_aside(from: &str, change: impl FnOnce(&mut Other) -> News) -> String {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.so_far();
    let before = paris.disk.0.len();
    let mut author = if from == "lyon" { lyon } else { other(from) };
    let news = change(&mut author);
    paris.hears(from, news);
    let kept = paris.disk.0[before..].iter();
    let entries = kept.filter(|it| matches!(it, Record::Entry(..)));
    assert_eq!(entries.count(), 0, "nothing of it is kept");
    let story = paris.story();
    let notes = story.lines().filter(|line| line.contains("note Malformed"));
    notes.map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_cannot_be_is_left_aside_and_said_with_the_reason() {
    use Malformed::{BeyondLimits, NoSuchTime, NumberNotAfter, WrongResource};
    type Says = fn(Unwritten) -> Unwritten;
    let rows: [(Malformed, Says); 11] = [
        (NumberNotAfter, |said| said.numbered(2, 2)),
        (NumberNotAfter, |said| said.numbered(u64::MAX, 1)),
        (NumberNotAfter, |said| said.numbered(u64::MAX / 2 + 1, 1)),
        (WrongResource, |said| said.with(|it| it.resource = resource("other"))),
        (BeyondLimits, |said| said.running(shell(&"x".repeat(2 * 1024 * 1024 + 1)))),
        (BeyondLimits, |said| said.with(|it| it.kind = "cheops.mine".parse().unwrap())),
        (BeyondLimits, |said| said.declaring("", None)),
        // Who says where a resource lives is among those.
        (BeyondLimits, |said| said.declaring("nantes paris", None)),
        (NoSuchTime, |said| said.at_ms(u64::MAX)),
        (NoSuchTime, |said| said.at_ms(1 << 48)),
        (NoSuchTime, |said| said.stamped(Stamp { wall_ms: 1, counter: 1 << 32 })),
    ];
    for (expected, says) in rows {
        let found = left_aside("lyon", |lyon| lyon.tells_of(says(op("inc").on("lyon.1"))));
        assert_eq!(found, malformed("lyon", expected));
    }
}

#[test]
fn a_resource_of_which_nothing_can_be_taken_is_not_kept_and_the_clock_goes_on() {
    let mut paris = paris();
    paris.hears("lyon", other("lyon").tells_of(declared("inc").at_ms(u64::MAX)));
    assert_eq!(paris.engine.resources().len(), 0);
    paris.so_far();
    paris.submits(asks_for("inc"));
    let made = paris.engine.operation(&resource("counter"), &operation("paris.1")).unwrap();
    assert_eq!(made.claimed.wall_ms, 1_000_003);
}

#[test]
fn a_declaration_that_names_this_site_and_not_the_one_that_tells_it_is_not_listened_to() {
    let mut paris = paris();
    let stray = other("lyon").writes(declared("inc"));
    paris.hears("nantes", other("nantes").tells([stray.clone()]).knowing("lyon.1"));
    paris.shows("counter");
    // Nor is one that does not name this site.
    let elsewhere = other("nantes").writes(op("inc").declaring("lyon nantes", None));
    paris.hears("nantes", other("nantes").tells([elsewhere]).knowing("nantes.1"));
    paris.shows("counter").told(expect![[r#"
        > nantes: [lyon.1 inc at lyon paris] knows lyon.1
          + nantes is in incarnation 1
          note SiteUp(nantes)
          tell nantes: alive at 2
        = counter: not known
        > nantes: [nantes.1 inc at lyon nantes] knows nantes.1
        = counter: not known
    "#]]);
}

#[test]
fn partial_replies_with_more_done_than_there_was_are_left_aside() {
    for (done, of) in [(2, 1), (1, 10_001)] {
        let said = says("lyon.1", Status::Partial { done, of });
        let found = left_aside("lyon", |lyon| lyon.tells_of(said));
        assert_eq!(found, malformed("lyon", Malformed::BeyondLimits), "{done} of {of}");
    }
}

#[test]
fn sites_that_do_not_hold_a_resource_are_not_listened_to_about_it() {
    let not_shared = |from| malformed(from, Malformed::NotShared);
    assert_eq!(left_aside("atlantis", |it| it.tells_of(op("inc"))), not_shared("atlantis"));
    assert_eq!(left_aside("atlantis", |it| it.asks()), not_shared("atlantis"));
    // One of the mesh may have made a resource of that name too, which is on its way.
    assert_eq!(left_aside("nantes", |it| it.tells_of(op("inc"))), "");
    assert_eq!(left_aside("nantes", |it| it.asks()), "");
    // Not if it says that it holds what it does not.
    let intrudes =
        |it: &mut Other| it.tells_of(op("inc").on("lyon.1").declaring("lyon nantes paris", None));
    assert_eq!(left_aside("nantes", intrudes), not_shared("nantes"));
}

#[test]
fn an_entry_of_a_site_that_does_not_hold_the_resource_waits_for_what_says_that_it_does() {
    let stray = other("nantes").writes(op("inc").on("lyon.1"));
    let relays = |lyon: &mut Other| lyon.tells([stray.clone()]);
    assert_eq!(left_aside("lyon", relays), "", "who passes it on may know more");

    let (mut paris, mut lyon) = (paris(), other("lyon"));
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.hears("lyon", lyon.tells([stray]));
    let made = other("nantes-2").writes(op("inc").declaring("lyon nantes paris", None));
    paris.hears("lyon", lyon.tells([made]));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.sites, sites("lyon nantes paris"));
    assert_eq!(known.list.len(), 3);
}

#[test]
fn where_a_resource_lives_is_changed_by_nothing_that_rests_on_others() {
    let (mut paris, mut lyon) = (paris(), other("lyon"));
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.hears("lyon", lyon.tells_of(op("inc").on("lyon.1").declaring("lyon nantes paris", None)));
    let known = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(known.sites, sites("lyon paris"));
    assert_eq!(known.list.len(), 2, "its command counts as any other");
}

#[test]
fn more_entries_at_once_than_four_messages_may_hold_are_not_looked_at() {
    let mut settings = settings("lyon");
    settings.entries_per_update = 1;
    let mut paris = start(settings);
    let mut lyon = other("lyon");
    let first = lyon.writes(declared("inc"));
    let more: Vec<_> = (0..4).map(|_| lyon.writes(op("inc"))).collect();
    let all = [vec![first], more].concat();
    paris.hears("lyon", lyon.tells(all.clone()));
    assert_eq!(paris.engine.resources().len(), 0);
    paris.so_far();
    paris.hears("lyon", lyon.tells(all[..4].to_vec()).knowing("lyon.4"));
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris; lyon.2 inc; lyon.3 inc; lyon.4 inc] knows lyon.4
          + lyon.1 inc at lyon paris
          + lyon.2 inc
          + lyon.3 inc
          + lyon.4 inc
          + begin run lyon.1
          + lyon knows lyon.4
          job 1: run lyon.1
          tell lyon: alive at 3
        = list [lyon.1 lyon.2 lyon.3 lyon.4], InStep, Running
            lyon.1
            lyon.2
            lyon.3
            lyon.4
    "#]]);
}

#[test]
fn more_authors_than_a_resource_can_have_are_not_looked_at() {
    let many = |lyon: &mut Other| {
        let authors = (0..4_097).map(|incarnation| format!("lyon-{:x}.1 ", incarnation + 2));
        lyon.tells([]).knowing(&authors.collect::<String>())
    };
    assert_eq!(left_aside("lyon", many), malformed("lyon", Malformed::TooMany));
}

#[test]
fn what_a_site_keeps_sending_wrong_is_said_once_a_minute_and_of_each_kind() {
    let mut paris = paris();
    for ms in [10, 20, 59_000, 60_011, 60_012] {
        paris.at(ms).hears("atlantis", beat());
    }
    paris.at(60_013).hears("ys", beat());
    let story = paris.story();
    let notes = story.lines().filter(|line| !line.contains("tell "));
    expect![[r#"
        > atlantis: alive at 0
          note Malformed(atlantis, NotShared)
        > atlantis: alive at 0
        > atlantis: alive at 0
        > atlantis: alive at 0
          note Malformed(atlantis, NotShared)
        > atlantis: alive at 0
        > ys: alive at 0
          note Malformed(ys, NotShared)"#]]
    .assert_eq(&flush_left(&notes.collect::<Vec<_>>().join("\n")));
}

/// Counts what would be made durable.
#[derive(Default)]
struct Rows {
    batches: usize,
    records: usize,
    notices: usize,
}

impl Log for Rows {
    type Error = std::convert::Infallible;
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Self::Error> {
        self.batches += 1;
        self.records += batch.records().len();
        self.notices += batch.notices().count();
        Ok(())
    }
}

#[test]
fn a_thousand_messages_that_cannot_be_cost_one_row_and_are_counted() {
    type Sends = fn(&mut Other, u64) -> News;
    let not_shared: Sends = |it, _| it.asks();
    let rows: [(&str, Malformed, Sends); 5] = [
        ("atlantis", Malformed::NotShared, not_shared),
        ("lyon", Malformed::NumberNotAfter, |it, n| {
            it.tells_of(op("inc").on("lyon.1").numbered(n, n)).knowing("lyon.1")
        }),
        ("lyon", Malformed::NoSuchTime, |it, n| {
            it.tells_of(op("inc").on("lyon.1").at_ms((1 << 48) + n)).knowing("lyon.1")
        }),
        ("lyon", Malformed::BeyondLimits, |it, _| {
            it.tells_of(op("inc").declaring("", None)).knowing("lyon.1")
        }),
        ("lyon", Malformed::TooMany, |it, n| {
            let authors = (0..4_097).map(|life| format!("lyon-{:x}.{n} ", life + 2));
            it.tells([]).knowing(&authors.collect::<String>())
        }),
    ];
    for (from, what, sends) in rows {
        let mut paris = paris();
        let mut lyon = other("lyon");
        paris.hears("lyon", lyon.tells_of(declared("inc")));
        paris.hears("nantes", beat());
        let mut sender = if from == "lyon" { lyon } else { other(from) };
        let mut log = Rows::default();
        for n in 0..1_000 {
            let message = Message::from(sends(&mut sender, n + 2));
            let heard = Event::Heard { from: site(from), message };
            let Ok(_effects) = paris.reacts(heard).commit(&mut log, &Unsigned);
        }
        let made = (log.batches, log.records, log.notices);
        assert_eq!(made, (1, 0, 1), "batches, records and notices of {from}, {what:?}");
        let heard: Vec<_> = paris.engine.malformed().collect();
        assert_eq!(heard, [(&site(from), what, 1_000)]);
    }
}

#[test]
fn numbers_that_a_site_says_it_knows_can_be_as_large_as_they_like() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(declared("inc")));
    paris.so_far();
    let huge = format!("lyon.{max} paris.{max} ys-ffffffffffffffff.{max}", max = u64::MAX);
    paris.hears("lyon", lyon.tells([]).knowing(&huge));
    paris.submits(asks_for("inc"));
    paris.told(expect![[r#"
        > lyon: knows lyon.18446744073709551615 paris.18446744073709551615 ys-ffffffffffffffff.18446744073709551615
          + lyon knows lyon.18446744073709551615 paris.18446744073709551615 ys-ffffffffffffffff.18446744073709551615
        > 1: counter inc
          + paris.1 inc on lyon.1
          answer 1: accepted as paris.1 for lyon paris
    "#]]);
}

#[test]
fn what_was_written_before_signatures_is_taken_on_anothers_word_only_where_nothing_is_known() {
    // A site that remembers nothing takes what another says was written in an old incarnation.
    let mut paris = paris();
    let mut nantes = other("nantes");
    let old = nantes.writes(op("inc").declaring("lyon nantes paris", None).vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([old]).knowing("nantes.1"));
    // An incarnation it remembers may go on so, up to what it signed itself.
    let next = nantes.writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([next]).knowing("nantes.2"));
    let signed = nantes.writes(op("inc").on("nantes.2"));
    paris.hears("nantes", nantes.tells([signed]));
    paris.so_far();
    let forged = nantes.writes(op("inc").on("nantes.3").vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([forged]).knowing("nantes.4"));
    // Nor is an incarnation believed in that nobody here has heard of, ...
    let unheard = other("nantes-9").writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.at(70_000).hears("lyon", other("lyon").tells([unheard]).knowing("nantes-9.1"));
    // ... nor one in the name of this site, which knows what it wrote.
    let ours = other("paris").writes(op("inc").on("nantes.1").vouched_by("lyon"));
    paris.at(140_000).hears("lyon", other("lyon").tells([ours]).knowing("paris.1"));
    let story = paris.story();
    let notes = story.lines().filter(|line| line.contains("Malformed") || line.contains("+ "));
    expect![[r#"
          + lyon knows nantes.4
          note Malformed(lyon, NotItsAuthors)
          + lyon knows nantes.4 nantes-9.1
          note Malformed(lyon, NotItsAuthors)
          + lyon knows nantes.4 nantes-9.1 paris.1
          note Malformed(lyon, NotItsAuthors)"#]]
    .assert_eq(&flush_left(&notes.collect::<Vec<_>>().join("\n")));
}

#[test]
fn who_makes_up_an_author_on_a_resource_of_its_own_cannot_write_as_that_one_on_any_other() {
    let mut paris = paris();
    let held = op("inc").declaring("lyon nantes paris", None);
    paris.hears("lyon", other("lyon").tells_of(held));
    // Nothing is known of that resource here, so lyon's word for nantes is all there is.
    let mut nantes = other("nantes").on("bait");
    let bait = op("inc").declaring("lyon nantes paris", None).vouched_by("lyon");
    let bait = nantes.writes(bait);
    paris.hears("lyon", other("lyon").on("bait").tells([bait]).knowing("nantes.1"));
    assert!(paris.engine.summary(&resource("bait")).is_some());
    // It proves nothing about what nantes wrote elsewhere.
    let mut nantes = other("nantes");
    let forged = nantes.writes(op("inc").numbered(2, 0).on("lyon.1").vouched_by("lyon"));
    paris.hears("lyon", other("lyon").tells([forged]).knowing("lyon.1 nantes.2"));
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon nantes paris] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon nantes paris
          + begin run lyon.1
          + lyon knows lyon.1
          note SiteUp(lyon)
          job 1: run lyon.1
          tell lyon: alive at 2 not hearing nantes
          tell nantes: alive at 2 not hearing nantes
        > lyon: bait: [nantes.1 inc at lyon nantes paris] knows nantes.1
          + bait: nantes.1 inc at lyon nantes paris
          + bait: begin run nantes.1
          + bait: lyon knows nantes.1
          job 2: bait: run nantes.1
        > lyon: [nantes.2 inc on lyon.1] knows lyon.1 nantes.2
          + lyon knows lyon.1 nantes.2
          note Malformed(lyon, NotItsAuthors)
    "#]]);
}

#[test]
fn who_lost_its_disk_hears_all_that_was_written_before_signatures_whoever_wrote_it() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    let mut nantes = other("nantes");
    let all = [
        lyon.writes(op("inc").declaring("lyon nantes paris", None).vouched_by("lyon")),
        nantes.writes(op("inc").on("lyon.1").vouched_by("lyon")),
    ];
    paris.hears("lyon", lyon.tells(all).knowing("lyon.1 nantes.1"));
    // Also later, of a resource that is known here: its author itself says so.
    let later = nantes.writes(op("inc").on("nantes.1").vouched_by("nantes"));
    paris.hears("nantes", nantes.tells([later]));
    let counted: Vec<_> = ["lyon.1", "nantes.1", "nantes.2"].map(operation).into();
    let knows = |it: &OperationId| paris.engine.knows(&resource("counter"), it);
    assert!(counted.iter().all(knows));
}
