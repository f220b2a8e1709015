//! What a log promises, asked of both stores.

use std::time::Duration;

use cheops_core::engine::{
    Engine, Event, Now, Record, Settings, Submission, Ticket, Unsigned, WaitFor,
};
use cheops_core::model::{Author, Incarnation, KeyId, OperationType, Payload, Vector};
use cheops_core::plan::Ended;
use cheops_store::{AppendError, ChangeKind, ReadError, Seq, SiteLog};

use crate::support::{
    Clock, InMemory, OnDisk, Twin, contract, converged, entry, id, incarnation_of, operation,
    pruned, reply, resource, site, step, vector,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn seqs(log: &dyn Twin, after: u64) -> Vec<u64> {
    let changes = log.changes(after, None, 1000).unwrap();
    changes.items.iter().map(|change| change.seq.0).collect()
}

contract! {
    fn records_come_back_in_the_order_they_were_written(log, _clock; DAY) {
        let first = [entry("a", id("paris", 1)), Record::Begun(resource("a"), step(id("paris", 1)))];
        let second = [
            Record::Finished(resource("a"), step(id("paris", 1)), Ended::Ok),
            reply("a", id("paris", 2), id("paris", 1)),
            Record::Incarnation(site("lyon"), Incarnation(3)),
        ];
        log.keep(&first, &[]).unwrap();
        log.keep(&second, &[converged("a")]).unwrap();
        log.restart();
        assert_eq!(log.records(), [&first[..], &second[..]].concat());
    }

    fn a_ran_takes_the_place_of_what_ran_before_it_on_the_same_resource(log, _clock; DAY) {
        let begun = |of: &str| Record::Begun(resource(of), step(id("paris", 1)));
        let ran = || Record::Ran(resource("a"), Box::default());
        log.keep(&[ran(), begun("a"), begun("b")], &[]).unwrap();
        log.keep(&[ran(), begun("a")], &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), [begun("b"), ran(), begun("a")]);
    }

    fn an_earlier_incarnation_takes_the_place_of_what_was_known_of_the_site(log, _clock; DAY) {
        let knows = |name: &str, n| {
            Record::Knows(resource("a"), site(name), Incarnation(1), vector([id("paris", n)]))
        };
        let earlier = || Record::EarlierIncarnation(resource("a"), site("lyon"), Vector::default());
        log.keep(&[knows("lyon", 1), knows("nantes", 1), knows("lyon", 2)], &[]).unwrap();
        assert_eq!(log.records(), [knows("nantes", 1), knows("lyon", 2)]);
        log.keep(&[earlier(), knows("lyon", 3)], &[]).unwrap();
        assert_eq!(log.records(), [knows("nantes", 1), earlier(), knows("lyon", 3)]);
        log.keep(&[earlier()], &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), [knows("nantes", 1), earlier()]);
    }

    fn the_last_incarnation_of_each_site_counts(log, _clock; DAY) {
        let incarnation = |name: &str, n| Record::Incarnation(site(name), Incarnation(n));
        log.keep(&[incarnation("lyon", 1), incarnation("nantes", 2), incarnation("lyon", 3)], &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), [incarnation("nantes", 2), incarnation("lyon", 3)]);
    }

    fn pruned_entries_are_not_recovered_and_others_are(log, _clock; DAY) {
        let kept = [
            entry("a", id("paris", 3)),
            entry("a", incarnation_of("paris", 2, 1)),
            entry("a", id("lyon", 1)),
            entry("b", id("paris", 1)),
        ];
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[]).unwrap();
        log.keep(&kept, &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 2)])], &[]).unwrap();
        log.restart();
        let prune = [pruned("a", [id("paris", 2)])];
        assert_eq!(log.records(), [&kept[..], &prune[..]].concat());
    }

    fn only_what_came_before_it_is_pruned(log, _clock; DAY) {
        let both = [pruned("a", [id("paris", 2)]), entry("a", id("paris", 1))];
        log.keep(&both, &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), both);
    }

    fn numbers_beyond_what_a_database_can_count_are_pruned_like_others(log, _clock; DAY) {
        let (low, high) = (entry("a", id("paris", 5)), entry("a", id("paris", u64::MAX)));
        log.keep(&[low.clone(), high.clone()], &[]).unwrap();
        let upto = [id("paris", u64::MAX - 1)];
        log.keep(&[pruned("a", upto.clone())], &[]).unwrap();
        assert_eq!(log.records(), [high, pruned("a", upto)]);
        let upto = [id("paris", u64::MAX)];
        log.keep(&[pruned("a", upto.clone())], &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), [pruned("a", upto)]);
    }

    fn changes_are_entries_and_notices_in_order(log, clock; DAY) {
        clock.set(17);
        let incarnation = Record::Incarnation(site("lyon"), Incarnation(3));
        log.keep(&[entry("a", id("paris", 1)), incarnation, entry("b", id("paris", 2))], &[converged("a")])
            .unwrap();
        log.restart();
        let changes = log.changes(0, None, 10).unwrap();
        assert_eq!(changes.items.iter().map(|change| change.at_ms).collect::<Vec<_>>(), [17; 3]);
        assert_eq!(seqs(log, 0), [1, 3, 4]);
        assert!(matches!(&changes.items[1].what, ChangeKind::Entry(of, _) if *of == resource("b")));
        assert_eq!(changes.items[2].what, ChangeKind::Notice(converged("a")));
        let of_a = log.changes(0, Some(&resource("a")), 10).unwrap();
        assert_eq!(of_a.items.iter().map(|change| change.seq.0).collect::<Vec<_>>(), [1, 4]);
    }

    fn a_follower_goes_on_where_it_was_and_sees_each_change_once(log, _clock; DAY) {
        for n in 1..=10 {
            log.keep(&[entry("a", id("paris", n)), entry("b", id("paris", n))], &[]).unwrap();
        }
        let (mut after, mut seen) = (Seq(0), Vec::new());
        loop {
            let changes = log.changes(after.0, Some(&resource("b")), 3).unwrap();
            assert!(changes.items.len() <= 3);
            seen.extend(changes.items.iter().map(|change| change.seq.0));
            after = changes.next;
            if !changes.more {
                break;
            }
        }
        assert_eq!(seen, (1..=10).map(|n| 2 * n).collect::<Vec<_>>());
        assert_eq!(after, log.last());
        assert!(log.changes(after.0, None, 10).unwrap().items.is_empty());
    }

    fn a_follower_of_a_quiet_resource_does_not_fall_behind(log, _clock; DAY) {
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[]).unwrap();
        let changes = log.changes(0, Some(&resource("quiet")), 10).unwrap();
        assert_eq!((changes.items.len(), changes.next), (0, Seq(2)));
    }

    fn places_are_never_given_out_twice(log, _clock; DAY) {
        let incarnation = |n| Record::Incarnation(site("lyon"), Incarnation(n));
        log.keep(&[incarnation(1), incarnation(2)], &[]).unwrap();
        log.keep(&[incarnation(3)], &[]).unwrap();
        log.restart();
        assert_eq!(log.last(), Seq(3));
        log.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
        assert_eq!(seqs(log, 0), [4]);
    }

    fn what_was_pruned_can_be_followed_until_its_retention_has_passed(log, clock; DAY) {
        let day = 24 * 3600 * 1000;
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[converged("a")])
            .unwrap();
        clock.set(day / 2);
        log.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        log.restart();
        assert_eq!(seqs(log, 0), [1, 2, 3]);
        // The notice has its age, and the entry has been pruned for half a day.
        clock.set(day);
        log.keep(&[entry("b", id("paris", 3))], &[]).unwrap();
        assert!(matches!(log.changes(0, None, 9), Err(ReadError::Gone { oldest: Seq(3) })));
        assert!(matches!(log.changes(2, None, 9), Err(ReadError::Gone { oldest: Seq(3) })));
        assert_eq!(seqs(log, 3), [5]);
        clock.set(day * 3 / 2);
        log.keep(&[entry("b", id("paris", 4))], &[]).unwrap();
        log.restart();
        assert!(matches!(log.changes(2, None, 9), Err(ReadError::Gone { oldest: Seq(3) })));
        let alive = [
            entry("a", id("paris", 2)),
            pruned("a", [id("paris", 1)]),
            entry("b", id("paris", 3)),
            entry("b", id("paris", 4)),
        ];
        assert_eq!(log.records(), alive);
    }

    fn without_retention_what_is_pruned_is_gone_at_once(log, _clock; Duration::ZERO) {
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 1)])], &[converged("a")]).unwrap();
        assert!(matches!(log.changes(0, None, 9), Err(ReadError::Gone { oldest: Seq(1) })));
        assert_eq!(seqs(log, 1), [2, 4]);
        log.keep(&[entry("a", id("paris", 3))], &[]).unwrap();
        assert!(matches!(log.changes(3, None, 9), Err(ReadError::Gone { oldest: Seq(4) })));
        assert_eq!(seqs(log, 4), [5]);
    }

    fn without_retention_what_hooks_have_not_seen_stays_for_an_hour(log, clock; Duration::ZERO) {
        log.set_cursor("hooks", Seq(0));
        log.keep(&[entry("a", id("paris", 1)), entry("a", id("paris", 2))], &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 1)])], &[converged("a")]).unwrap();
        log.keep(&[entry("a", id("paris", 3))], &[]).unwrap();
        assert_eq!(seqs(log, 0), [1, 2, 4, 5], "nobody was told of any of it");

        // All but one who is behind were told of it.
        log.set_cursor("hooks", Seq(5));
        log.set_cursor("hooks/url/slow", Seq(1));
        log.keep(&[entry("a", id("paris", 4))], &[]).unwrap();
        assert!(matches!(log.changes(0, None, 9), Err(ReadError::Gone { oldest: Seq(1) })));
        assert_eq!(seqs(log, 1), [2, 4, 5, 6]);

        clock.set(2 * 60 * 60 * 1000);
        log.keep(&[entry("a", id("paris", 5))], &[]).unwrap();
        assert!(matches!(log.changes(1, None, 9), Err(ReadError::Gone { oldest: Seq(4) })));
        assert_eq!(seqs(log, 4), [5, 6, 7], "who is behind for longer is not waited for");
    }

    fn a_long_history_is_swept_in_small_steps_to_its_end(log, clock; DAY) {
        let many: Vec<_> = (1..=1000).map(|n| entry("a", id("paris", n))).collect();
        log.keep(&many, &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 1000)])], &[]).unwrap();
        clock.set(2 * 24 * 3600 * 1000);
        log.keep(&[], &[converged("a")]).unwrap();
        let Err(ReadError::Gone { oldest }) = log.changes(0, None, 1) else { panic!("none swept") };
        assert!(oldest < Seq(1000), "all at once");
        for _ in 0..20 {
            log.keep(&[], &[converged("a")]).unwrap();
        }
        assert_eq!(log.changes(1000, None, 2000).unwrap().items.len(), 21);
        assert!(matches!(log.changes(0, None, 1), Err(ReadError::Gone { oldest: Seq(1000) })));
    }

    fn cursors_are_kept_by_name(log, _clock; DAY) {
        assert_eq!(log.cursor("hook"), None);
        log.set_cursor("hook", Seq(3));
        log.set_cursor("other", Seq(9));
        log.set_cursor("hook", Seq(4));
        log.restart();
        assert_eq!((log.cursor("hook"), log.cursor("other")), (Some(Seq(4)), Some(Seq(9))));
    }

    fn the_same_entry_may_be_written_twice(log, _clock; DAY) {
        let twice = [entry("a", id("paris", 1)), entry("a", id("paris", 1))];
        log.keep(&twice, &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), twice);
        log.keep(&[pruned("a", [id("paris", 1)])], &[]).unwrap();
        assert_eq!(log.records().len(), 1);
    }

    fn an_operation_that_uses_one_content_twice_is_written(log, _clock; DAY) {
        let blob = cheops_core::model::BlobId([7; 32]);
        let uses = [operation("a", id("paris", 1), &[blob, blob])];
        log.keep(&uses, &[]).unwrap();
        log.restart();
        assert_eq!(log.records(), uses);
    }
    fn who_is_behind_a_sweep_can_read_what_it_left(log, _clock; Duration::ZERO) {
        let batch =
            [entry("a", id("paris", 1)), entry("b", id("paris", 2)), entry("a", id("paris", 3))];
        log.keep(&batch, &[]).unwrap();
        log.keep(&[pruned("a", [id("paris", 3)])], &[]).unwrap();
        log.keep(&[entry("b", id("paris", 4))], &[]).unwrap();
        assert!(matches!(log.changes(0, None, 9), Err(ReadError::Gone { oldest: Seq(3) })));

        let left = |after, limit| {
            let changes = log.feed().changes_left(Seq(after), limit).unwrap();
            (changes.items.iter().map(|change| change.seq.0).collect::<Vec<_>>(), changes.next)
        };

        assert_eq!(left(0, 9), (vec![2, 5], Seq(5)));
        assert_eq!(left(0, 1), (vec![2], Seq(2)), "and goes on after it");
        assert_eq!(left(2, 1), (vec![5], Seq(5)));
        assert_eq!(left(99, 9), (vec![2, 5], Seq(5)), "of another log");
    }

    fn followers_that_are_gone_are_forgotten_and_no_others(log, _clock; DAY) {
        for name in ["hooks", "hooks/here", "hooks/gone", "other"] {
            log.set_cursor(name, Seq(3));
        }
        log.feed().retain_cursors("hooks/", &|name| name == "hooks/here").unwrap();
        log.feed().remove_cursor("other").unwrap();
        log.restart();
        let kept = ["hooks", "hooks/here", "hooks/gone", "other"].map(|name| log.cursor(name));
        assert_eq!(kept, [Some(Seq(3)), Some(Seq(3)), None, None]);
    }

    fn certificates_are_kept_by_the_names_of_their_keys(log, _clock; DAY) {
        assert!(log.certificates().identities().unwrap().is_empty());
        log.certificates().keep_identity(KeyId([2; 32]), b"lyon").unwrap();
        log.certificates().keep_identity(KeyId([1; 32]), b"nantes").unwrap();
        log.certificates().keep_identity(KeyId([1; 32]), b"nantes, again").unwrap();
        log.restart();
        let kept = log.certificates().identities().unwrap();
        let expected = [(KeyId([1; 32]), &b"nantes, again"[..]), (KeyId([2; 32]), b"lyon")];
        assert_eq!(kept, expected.map(|(key, certificate)| (key, certificate.to_vec())));
    }

    fn a_new_writer_goes_on_and_the_one_before_is_refused_for_good(log, _clock; DAY) {
        let [first, second, third] = [1, 2, 3].map(|n| entry("a", id("paris", n)));
        // Given a writer that has made something durable, and not shown it yet.
        log.log().keep(std::slice::from_ref(&first), &[]).unwrap();

        let mut before = log.take_over();

        // Then nothing of it is lost to the next one,
        assert_ne!(before.fence(), log.log().fence());
        assert_eq!(log.records(), std::slice::from_ref(&first));
        // and whatever the one before has to say, before and after that one wrote, is refused.
        let refused = |before: &mut dyn SiteLog| {
            matches!(before.keep(std::slice::from_ref(&second), &[]), Err(AppendError::Fenced))
        };
        assert!(refused(&mut *before));
        log.keep(std::slice::from_ref(&third), &[]).unwrap();
        assert!(refused(&mut *before));
        drop(before);
        log.restart();
        assert_eq!(log.records(), [first, third]);
        assert_eq!(seqs(log, 0), [1, 2]);
    }
}

/// The decisions of a real engine, committed to each store, bring back the same engine.
#[test]
fn an_engine_recovers_from_either_store() {
    fn submit(n: u64) -> Event {
        Event::Submitted(Submission {
            ticket: Ticket(n),
            resource: resource("a"),
            sites: Some([site("paris"), site("lyon")].into()),
            config: None,
            kind: OperationType::new("set").unwrap(),
            payload: Payload::shell("true"),
            inline_body: None,
            force: false,
            wait: WaitFor::Nothing,
            timeout_ms: 0,
            needs: Default::default(),
            asked_by: None,
        })
    }
    let me = Author { site: site("paris"), incarnation: Incarnation(7) };
    let settings = Settings::new(me, [site("lyon")]);
    let clock = Clock::default();
    let mut disk = OnDisk::new(clock.options(DAY));
    let mut memory = InMemory::new(clock.options(DAY));
    for log in [&mut disk as &mut dyn Twin, &mut memory] {
        let (mut engine, reaction) = Engine::recover(settings.clone(), [], Now::default());
        let mut reactions = vec![reaction];
        for n in 0..5 {
            reactions.push(engine.handle(Now { mono_ms: n, wall_ms: n }, submit(n)));
        }
        for reaction in reactions {
            drop(reaction.commit(log.log(), &Unsigned).map_err(|e| e.error).unwrap());
        }
    }
    disk.restart();
    assert!(disk.records().len() > 5, "{:?}", disk.records());
    assert_eq!(disk.records(), memory.records());
    assert_eq!(disk.changes(0, None, 99).unwrap(), memory.changes(0, None, 99).unwrap());
}
