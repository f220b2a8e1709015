//! A state that all sites verified, and the history that it stands for.

use std::sync::Arc;

use cheops_core::engine::{
    Application, Base, Effect, Engine, Event, Job, NotUndoable, Now, Reaction, Record, Submission,
    Task, Unsigned, WaitFor,
};
use cheops_core::model::{Entry, Fingerprint, Outcome, Status, Undoing};

use super::fixture::*;

fn counter() -> Submission {
    let rules = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}],
                    "State": {"Read": "look", "Write": "put"}}"#;
    Submission { config: Some(config(rules)), ..asks_for("inc") }
}

fn more() -> Submission {
    Submission { sites: None, ..asks_for("inc") }
}

fn found(state: &str) -> Outcome {
    Outcome::success(format!("{} {}", Fingerprint::of(state.as_bytes()), state.len()))
}

fn job(effects: &[Effect], is: fn(&Task) -> bool) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Run(job) if is(&job.task) => Some(job.id.0),
        _ => None,
    })
}

fn entry_with(site: &Site, such: fn(&Entry) -> bool) -> Option<Arc<Entry>> {
    site.disk.0.iter().rev().find_map(|record| match record {
        Record::Entry(_, entry) if such(entry) => Some(entry.clone()),
        _ => None,
    })
}

fn read(site: &Site) -> Arc<Entry> {
    entry_with(site, |entry| entry.state_report().is_some()).unwrap()
}

fn kept(site: &Site) -> Option<Arc<Entry>> {
    entry_with(site, |entry| entry.kept_state().is_some())
}

/// Paris, for which so many operations are a long history, ran two, the second with that outcome; lyon did
/// as well, and both read the same after it.
fn verified_after(long: usize, second: Outcome, status: Status) -> (Site, Other) {
    let mut settings = settings("lyon");
    settings.short_history_from = long;
    let mut paris = start(settings);
    paris.at(1_000).submits(counter());
    paris.ends(1, ok());
    paris.ends(2, ok());
    let effects = paris.submits(more());
    let run = job(&effects, |task| matches!(task, Task::Run(_))).unwrap();
    paris.ends(run, second);
    let mut lyon = other("lyon");
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    let replies = [says("paris.1", Status::Ok), says("paris.3", status)];
    let replies = replies.map(|said| lyon.writes(said));
    paris.hears("lyon", lyon.tells(replies));
    let at_ms = paris.now_ms + 1_001;
    let effects = paris.ticks_at(at_ms);
    let reading = job(&effects, |task| matches!(task, Task::Read { .. })).unwrap();
    paris.ends(reading, found("two"));
    lyon.knows.join(&paris.engine.resource(&resource("counter")).unwrap().knows);
    let same = lyon.writes(says("paris.3", Status::Ok).saying_as(&read(&paris)));
    assert_eq!(kept(&paris), None, "lyon has not said what it read");
    paris.hears("lyon", lyon.tells([same]));
    (paris, lyon)
}

/// Paris keeps the state that both verified, and said so.
fn verified() -> (Site, Other) {
    verified_after(2, ok(), Status::Ok)
}

fn forgot(site: &Site) -> bool {
    let view = site.engine.resource(&resource("counter")).unwrap();
    assert_eq!(view.state.is_some(), view.list.is_empty());
    view.list.is_empty()
}

/// All sites say that they keep the state.
fn short() -> (Site, Other) {
    let (mut paris, mut lyon) = verified();
    let said = kept(&paris).unwrap();
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    assert!(!forgot(&paris));
    paris.hears("lyon", lyon.tells_of(says("paris.3", Status::Ok).saying_as(&said)));
    assert!(forgot(&paris));
    (paris, lyon)
}

#[test]
fn a_state_stands_for_its_history_when_all_sites_verified_it_and_said_that_they_keep_it() {
    let (mut paris, _) = short();
    // It stays so over a restart, and what comes next is made on what was forgotten.
    paris.restarts();
    assert!(forgot(&paris));
    paris.so_far();
    paris.submits(more());
    let story = paris.story();
    assert!(story.contains("inc on paris.3"), "{story}");
    let entries = paris.disk.compacted().entries().0.len();
    assert!(entries < 6, "{entries}");
}

#[test]
fn a_short_history_is_kept_and_so_is_one_with_something_that_failed() {
    assert!(kept(&verified().0).is_some());
    assert!(kept(&verified_after(3, ok(), Status::Ok).0).is_none());
    assert!(kept(&verified_after(2, ko("no"), Status::Ko).0).is_none());
}

#[test]
fn what_a_site_said_that_it_keeps_the_state_of_cannot_be_undone_or_run_again_there() {
    let (mut paris, _) = verified();
    let (on, of) = (resource("counter"), operation("paris.3"));
    assert_eq!(paris.engine.can_undo(&on, &of).unwrap_err(), NotUndoable::InState(of.clone()));
    assert!(paris.engine.can_retry(&on, &of).is_err());
    // Nor by who asked before that was so.
    paris.so_far();
    let undoing = Undoing { operation: of, back: false };
    let reaction = paris.reacts(Event::Undone { resource: on.clone(), undoing });
    paris.commit(reaction);
    assert!(!paris.story().contains("+ paris"));
    assert_eq!(paris.engine.resource(&on).unwrap().list.len(), 2);
}

#[test]
fn who_keeps_another_state_or_did_not_verify_makes_nobody_forget() {
    let (mut paris, mut lyon) = verified();
    let said = kept(&paris).unwrap();
    let mut other = Entry::clone(&said);
    let text = String::from_utf8(other.extra[0].value.clone()).unwrap();
    let state = Fingerprint::of(b"two").to_string();
    let made_up = text.replace(&state, &Fingerprint::of(b"made up").to_string());
    other.extra[0].value = made_up.into_bytes();
    paris.hears("lyon", lyon.tells_of(says("paris.3", Status::Ok).saying_as(&other)));
    assert!(!forgot(&paris));
    // A base says no more than who sends it.
    let view = paris.engine.resource(&resource("counter")).unwrap();
    let floor = other.kept_state().unwrap().floor;
    let base = Base {
        upto: view.knows.clone(),
        declared: None,
        chain: Default::default(),
        order: None,
        state: Some(Box::new(floor)),
    };
    lyon.knows = view.knows;
    let news = lyon.tells([]).changed(|update| update.base = Some(base));
    paris.hears("lyon", news);
    assert!(!forgot(&paris));
}

/// What lyon tells paris, which lost its disk: what was forgotten, and what all said of the state.
fn told_anew(paris: &Site, lyon: &Other, said: &[Arc<Entry>]) -> News {
    let Some(Record::Pruned(_, base)) =
        paris.disk.0.iter().rev().find(|record| matches!(record, Record::Pruned(..)))
    else {
        panic!()
    };
    let base = Base::clone(base);
    lyon.tells(said.to_vec()).changed(|update| update.base = Some(base))
}

fn after(paris: &Site) -> Vec<Arc<Entry>> {
    let entries = paris.disk.compacted().entries().0.into_iter();
    entries
        .filter_map(|record| match record {
            Record::Entry(_, entry) => Some(entry),
            _ => None,
        })
        .collect()
}

#[test]
fn a_site_that_lost_its_disk_writes_the_state_that_all_said_they_keep_and_nothing_else() {
    let (mut paris, mut lyon) = short();
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    let all = after(&paris);
    let without_mine: Vec<_> =
        all.iter().filter(|entry| entry.id().author.site != site("paris")).cloned().collect();
    let (made_up, told) = (told_anew(&paris, &lyon, &without_mine), told_anew(&paris, &lyon, &all));
    paris.is_reborn(2, Application::MayHoldState, Disk::default());
    // Lyon cannot say in the name of paris that it keeps it, whoever waits for how long.
    let effects = paris.hears("lyon", made_up.clone());
    assert_eq!(job(&effects, |_| true), None);
    let much_later = paris.now_ms + 60_000;
    paris.lives_until(much_later);
    assert_eq!(job(&paris.hears("lyon", made_up), |_| true), None);

    let effects = paris.hears("lyon", told);
    let writing = job(&effects, |task| matches!(task, Task::Write { .. })).unwrap();
    assert!(forgot(&paris));
    // Nothing runs before it is written, however often that fails.
    paris.submits(more());
    paris.so_far();
    paris.ends(writing, ko("no room"));
    let view = paris.engine.resource(&resource("counter")).unwrap();
    assert!(view.waits_for.unwrap().contains("could not be written: no room"));
    let at_ms = paris.now_ms + 1_000;
    let effects = paris.ticks_at(at_ms);
    let again = job(&effects, |task| matches!(task, Task::Write { .. })).unwrap();
    let effects = paris.ends(again, ok());
    assert!(job(&effects, |task| matches!(task, Task::Snapshot { .. })).is_some());
}

#[test]
fn a_write_that_a_stop_cut_short_is_made_again() {
    let (mut paris, mut lyon) = short();
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    let told = told_anew(&paris, &lyon, &after(&paris));
    paris.is_reborn(2, Application::Empty, Disk::default());
    paris.hears("lyon", told);
    let effects = paris.restarts();
    assert!(job(&effects, |task| matches!(task, Task::Write { .. })).is_some());
}

#[test]
fn the_state_belongs_to_the_commands_that_read_it_whatever_the_config_says_later() {
    let (mut paris, mut lyon) = short();
    let plain = matrix("take-both");
    paris.submits(Submission { config: Some(plain), sites: None, ..asks_for("inc") });
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    let told = told_anew(&paris, &lyon, &after(&paris));
    paris.is_reborn(2, Application::Empty, Disk::default());
    paris.so_far();
    paris.hears("lyon", told);
    assert!(paris.story().contains("by `put`"));
}

#[test]
fn what_replaces_all_takes_the_place_of_the_state_too() {
    let (mut paris, mut lyon) = short();
    lyon.knows = paris.engine.resource(&resource("counter")).unwrap().knows;
    let set = lyon.writes(op("set").on("paris.3").replacing().at_ms(2_000_000));
    let went_well = lyon.writes(says(&set.id().to_string().replace("-1.", "."), Status::Ok));
    paris.hears("lyon", lyon.tells([set, went_well]));
    let view = paris.engine.resource(&resource("counter")).unwrap();
    assert!(view.state.is_none() && view.list.len() == 1, "{view:?}");
    let Some(Record::Pruned(_, base)) =
        paris.disk.0.iter().rev().find(|record| matches!(record, Record::Pruned(..)))
    else {
        panic!()
    };
    assert!(base.state.is_none());
}

/// A site alone, and its disk, told of nothing but how often something was added.
struct Adding {
    engine: Engine,
    disk: Disk,
    now_ms: u64,
    sum: u64,
}

impl Adding {
    fn begins() -> Self {
        let (engine, reaction) = Engine::recover(settings(""), [], Now::default());
        let mut adding = Self { engine, disk: Disk::default(), now_ms: 0, sum: 0 };
        adding.commit(reaction);
        adding
    }

    fn commit(&mut self, reaction: Reaction) -> Vec<Job> {
        let Ok(effects) = reaction.commit(&mut self.disk, &Unsigned);
        let jobs = effects.into_iter().filter_map(|effect| match effect {
            Effect::Run(job) => Some(job),
            _ => None,
        });
        jobs.collect()
    }

    /// Handles an event, and all that is to be run for it.
    fn does(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            self.now_ms += 1;
            let now = Now { mono_ms: self.now_ms, wall_ms: self.now_ms };
            let reaction = self.engine.handle(now, event);
            for job in self.commit(reaction) {
                let outcome = match &job.task {
                    Task::Read { .. } => found(&self.sum.to_string()),
                    _ => ok(),
                };
                self.sum += u64::from(matches!(job.task, Task::Run(_)));
                events.push(Event::Ended { job: job.id, outcome });
            }
        }
    }

    fn rests(&mut self) {
        self.now_ms += 2_000;
        self.does(Event::Ticked);
        // A disk drops what it may now and then.
        self.disk = self.disk.compacted();
    }
}

#[test]
fn a_hundred_thousand_increments_of_what_is_never_set_keep_little() {
    let mut adding = Adding::begins();
    let alone = || Some(sites("paris"));
    adding.does(Event::Submitted(Submission { sites: alone(), ..counter() }));
    let mut most = 0;
    while adding.sum < 100_000 {
        for _ in 0..2_500 {
            adding.does(Event::Submitted(Submission { wait: WaitFor::Nothing, ..more() }));
        }
        adding.rests();
        most = most.max(adding.disk.0.len());
        let view = adding.engine.resource(&resource("counter")).unwrap();
        assert!(view.operations.is_empty(), "{} are kept", view.operations.len());
    }
    assert!(most < 20, "{most} records are on the disk");
}
