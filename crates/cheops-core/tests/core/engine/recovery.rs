//! Durable first: what is handed out when, and that an engine comes back from its log at any point.
//!
//! Every story of every other file is a test of recovery too: the fixture recovers a second engine
//! after each commit, from the log whole and from what a log must keep.

use cheops_core::engine::{Batch, Effect, Engine, Event, JobId, Log, Now, Submission, Unsigned};
use cheops_core::model::{Outcome, Status};
use expect_test::expect;

use super::fixture::*;

struct FullDisk;

impl Log for FullDisk {
    type Error = &'static str;
    fn append(&mut self, _: Batch<'_>) -> Result<(), Self::Error> {
        Err("no space left")
    }
}

/// Keeps what is worth keeping beside the records.
#[derive(Default)]
struct Feed(Vec<String>, usize);

impl Log for Feed {
    type Error = std::convert::Infallible;
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Self::Error> {
        self.0.extend(batch.notices().map(|notice| format!("{notice:?}")));
        self.1 += batch.records().len();
        Ok(())
    }
}

fn submitted() -> Event {
    Event::Submitted(asks_for("inc"))
}

fn lyon_replies() -> Event {
    let message = other("lyon").tells_of(says("paris.1", Status::Ok)).into();
    Event::Heard { from: site("lyon"), message }
}

fn ended() -> Event {
    Event::Ended { job: JobId(1), outcome: ok() }
}

#[test]
fn what_the_disk_refuses_has_no_effects_and_can_be_committed_later_with_all_of_them() {
    let mut paris = paris();
    let reaction = paris.reacts(submitted());
    assert!(reaction.has_news() && !reaction.may_wait() && reaction.records() == 2);
    let failed = reaction.commit(&mut FullDisk, &Unsigned).unwrap_err();
    assert_eq!(failed.error, "no space left");
    paris.commit(failed.reaction);
    paris.told(expect![[r#"
          + paris.1 inc at lyon paris
          + begin run paris.1
          answer 0: accepted as paris.1 for lyon paris
          job 1: run paris.1
          tell lyon: alive at 2 not hearing lyon
    "#]]);
}

#[test]
fn a_decision_without_anything_to_keep_does_not_touch_the_disk() {
    let mut paris = paris();
    for event in [Event::Ticked, Event::Reached(site("lyon")), Event::Reached(site("ys"))] {
        let reaction = paris.reacts(event);
        assert!(!reaction.has_news());
        assert!(reaction.commit(&mut FullDisk, &Unsigned).is_ok());
    }
}

#[test]
fn another_sites_reply_is_told_before_it_is_durable_here_but_not_before_ours_that_came_first() {
    let mut paris = paris();
    let reaction = paris.reacts(submitted());
    paris.commit(reaction);
    let mut alone = paris.reacts(lyon_replies());
    assert_eq!(alone.take_free().len(), 1, "it is durable there");
    assert!(alone.take_free().is_empty(), "and told once");

    let mut paris = super::fixture::paris();
    let reaction = paris.reacts(submitted());
    paris.commit(reaction);
    let mut both = paris.reacts(ended());
    both.join(paris.reacts(lyon_replies()));
    assert!(both.take_free().is_empty(), "a user hears what happened in order");
    paris.so_far();
    paris.commit(both);
    let story = paris.story();
    let answers = story.lines().filter(|line| line.contains("answer"));
    expect![[r#"
          answer 0: paris says OK of paris.1
          answer 0: lyon says OK of paris.1
          answer 0: done"#]]
    .assert_eq(&flush_left(&answers.collect::<Vec<_>>().join("\n")));
}

#[test]
fn what_only_spares_work_after_a_restart_may_wait_for_the_next_commit() {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", beat());
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    lyon.learns("paris.2");
    let heard = |news: News| Event::Heard { from: site("lyon"), message: news.into() };
    assert!(paris.reacts(heard(lyon.tells([]))).may_wait(), "only what lyon knows");
    let replied = lyon.tells_of(says("paris.1", Status::Ok));
    assert!(!paris.reacts(heard(replied)).may_wait(), "an entry");
}

#[test]
fn what_a_reply_says_is_not_kept_a_second_time_as_news() {
    let mut paris = alone();
    paris.submits(Submission { sites: Some(sites("paris")), ..asks_for("inc") });
    let mut feed = Feed::default();
    let Ok(_) = paris.reacts(ended()).commit(&mut feed, &Unsigned);
    expect![[r#"
        Settled(counter, paris-1.1, Applied)
        Converged(counter)"#]]
    .assert_eq(&flush_left(&feed.0.join("\n")));
    assert_eq!(feed.1, 2, "that it ended, and the reply");
}

#[test]
fn a_site_that_signs_leaves_nothing_unsigned_and_signs_nothing_of_others() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.hears("lyon", other("lyon").tells_of(says("paris.1", Status::Ok)));
    let keys = paris.disk.0.iter().filter_map(|record| match record {
        cheops_core::engine::Record::Entry(_, entry) => {
            Some((entry.id().to_string(), char::from(entry.proof().unwrap().key.0[0])))
        }
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    let expected = [("paris-1.1", 'p'), ("paris-1.2", 'p'), ("lyon-1.1", 'l')];
    assert_eq!(keys, expected.map(|(id, key)| (id.to_owned(), key)));
}

/// A long story with a bit of everything, cut off after so many records of its log.
fn eventful() -> Site {
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.submits(Submission { config: Some(set_and_inc()), ..asks_for("inc") });
    paris.ends(1, ok());
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    let theirs = op("inc").on("paris.1").at_ms(1_000_900);
    paris.hears("lyon", lyon.tells_of(theirs));
    paris.ends(2, ko("no"));
    paris.submits(asks_for("set"));
    paris.ends(3, not_yet(true));
    paris.ticks_at(600);
    paris.hears("lyon", lyon.tells_of(op("inc").on("lyon.2").at_ms(1_000_950)));
    paris.lives_until(1_200);
    lyon.learns("paris.9");
    paris.hears("lyon", lyon.tells_of(says("paris.4", Status::Ok)));
    paris.submits(asks_for("inc"));
    paris
}

/// What must outlive a stop, what readers see, and the log, after a start with that log.
fn started(
    settings: &cheops_core::engine::Settings,
    mut disk: Disk,
) -> (Vec<String>, String, Disk) {
    let now = Now { mono_ms: 2_000, wall_ms: 1_002_000 };
    let (engine, reaction) = Engine::recover(settings.clone(), disk.0.clone(), now);
    let Ok(_) = reaction.commit(&mut disk, &Unsigned);
    (essence(&engine), resource_text(&engine, &resource("counter")), disk)
}

#[test]
fn a_log_cut_off_after_any_record_can_be_started_from_and_more_starts_change_nothing() {
    let paris = eventful();
    assert!(paris.disk.0.len() > 15, "{}", paris.disk.0.len());
    for upto in 0..=paris.disk.0.len() {
        let cut = Disk(paris.disk.0[..upto].to_vec());
        let (known, _, disk) = started(&paris.settings, cut);
        // What the first start began is in doubt at the second; at the third nothing is new.
        let (then, seen, disk) = started(&paris.settings, disk);
        let (at_last, seen_again, disk) = started(&paris.settings, disk);
        assert_eq!((&known, &then, &seen), (&then, &at_last, &seen_again), "after {upto} records");
        let (forgetful, seen, _) = started(&paris.settings, disk.compacted());
        assert_eq!((at_last, seen_again), (forgetful, seen), "after {upto}, compacted");
    }
}

#[test]
fn a_number_is_never_used_again_whatever_was_forgotten() {
    let mut paris = alone();
    let here = |force| Submission { sites: Some(sites("paris")), force, ..asks_for("inc") };
    paris.submits(here(false));
    paris.ends(1, ok());
    paris.submits(here(true));
    paris.ends(2, ok());
    paris.disk = paris.disk.compacted();
    paris.restarts();
    paris.so_far();
    paris.submits(here(false));
    paris.told(expect![[r#"
        > 3: counter inc
          + paris.5 inc on paris.3
          + begin run paris.5
          answer 3: accepted as paris.5 for paris
          job 1: run paris.5
    "#]]);
}

#[test]
fn jobs_are_counted_from_one_in_every_engine() {
    let mut paris = alone();
    let config =
        Some(config(r#"{"ResolutionMatrix": [], "Types": {"inc": {"Idempotent": true}}}"#));
    paris.submits(Submission { sites: Some(sites("paris")), config, ..asks_for("inc") });
    let job = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Run(job) => Some(job.id),
            _ => None,
        })
    };
    assert_eq!(job(&paris.restarts()), Some(JobId(1)));
}

#[test]
fn outcomes_that_were_not_kept_are_asked_for_again_and_replies_that_were_are_not() {
    let mut paris = alone();
    let config =
        Some(config(r#"{"ResolutionMatrix": [], "Types": {"inc": {"Idempotent": true}}}"#));
    paris.submits(Submission { sites: Some(sites("paris")), config, ..asks_for("inc") });
    // The reaction to the end of the job is lost with the engine.
    let lost = paris.reacts(Event::Ended { job: JobId(1), outcome: Outcome::success("1") });
    drop(lost);
    paris.so_far();
    paris.restarts();
    paris.ends(1, ok());
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          + begin run paris.1
          job 1: run paris.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          note Applied(counter, paris.1)
          note Settled(counter, paris.1, Applied)
          note Converged(counter)
        > restart
    "#]]);
}
