//! How an operation ends at all sites, who wins, what is void, and whether a site follows the list.

use cheops_core::engine::{SiteStanding, Standing, Submission};
use cheops_core::model::Status;
use expect_test::expect;

use super::fixture::*;

/// Paris and lyon ran the same operation; so it ended here, and so there.
fn settled(here: &[cheops_core::model::Outcome], there: &[Status]) -> String {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    for (job, outcome) in here.iter().enumerate() {
        paris.ends(job as u64 + 1, outcome.clone());
    }
    let mut lyon = other("lyon");
    for status in there {
        paris.hears("lyon", lyon.tells_of(says("paris.1", status.clone())));
    }
    let story = paris.story();
    let kinds = ["Settled", "PartialError", "Converged"];
    let notes = story.lines().filter(|line| kinds.iter().any(|kind| line.contains(kind)));
    notes.map(|line| line.trim().trim_start_matches("note ")).collect::<Vec<_>>().join("; ")
}

#[test]
fn an_operation_is_settled_where_it_was_handed_in_once_all_sites_have_replied() {
    let by = operation("lyon.9");
    let rows = [
        (vec![ok()], vec![]),
        (vec![], vec![Status::Ok]),
        (vec![ok()], vec![Status::Ok]),
        (vec![ko("")], vec![Status::Ko]),
        (vec![ok()], vec![Status::Ko]),
        (vec![ok()], vec![Status::InDoubt]),
        (vec![ko("")], vec![Status::InDoubt]),
        (vec![ok()], vec![Status::Superseded { by: by.clone() }]),
        (vec![ko("")], vec![Status::Superseded { by }]),
        (vec![ok()], vec![Status::Partial { done: 1, of: 2 }]),
        (vec![ko("")], vec![Status::Partial { done: 1, of: 2 }]),
        // Once: what is said later does not settle it again, but may be a partial error.
        (vec![ok()], vec![Status::InDoubt, Status::Ko]),
        (vec![ok()], vec![Status::Ko, Status::Ok]),
    ];
    let mut table = String::new();
    for (here, there) in rows {
        let words: Vec<_> = there.iter().map(Status::word).collect();
        let ours = here.first().map_or("-", |it| if it.succeeded() { "OK" } else { "KO" });
        table += &format!("{ours} here, {words:?} there: {}\n", settled(&here, &there));
    }
    expect![[r#"
        OK here, [] there: 
        - here, ["OK"] there: 
        OK here, ["OK"] there: Settled(counter, paris.1, Applied)
        KO here, ["KO"] there: Settled(counter, paris.1, Failed)
        OK here, ["KO"] there: PartialError(counter, paris.1); Settled(counter, paris.1, PartialError)
        OK here, ["IN-DOUBT"] there: Settled(counter, paris.1, InDoubt)
        KO here, ["IN-DOUBT"] there: Settled(counter, paris.1, InDoubt)
        OK here, ["SUPERSEDED"] there: Settled(counter, paris.1, Superseded)
        KO here, ["SUPERSEDED"] there: Settled(counter, paris.1, Failed)
        OK here, ["PARTIAL"] there: Settled(counter, paris.1, Applied)
        KO here, ["PARTIAL"] there: PartialError(counter, paris.1); Settled(counter, paris.1, PartialError)
        OK here, ["IN-DOUBT", "KO"] there: Settled(counter, paris.1, InDoubt); PartialError(counter, paris.1)
        OK here, ["KO", "OK"] there: PartialError(counter, paris.1); Settled(counter, paris.1, PartialError)
    "#]].assert_eq(&flush_left(&table));
}

#[test]
fn a_resource_has_converged_once_every_site_knows_everything_and_has_replied() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.so_far();
    let mut lyon = other("lyon");
    lyon.learns("paris.2");
    // It knows of the operation and of what became of it here, but has not run it.
    paris.hears("lyon", lyon.tells([]));
    assert!(!paris.story().contains("Converged"));
    // That is said when it replies, and once, ...
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    assert_eq!(paris.story().matches("Converged").count(), 1);
    paris.hears("lyon", lyon.tells([]));
    paris.restarts();
    paris.hears("lyon", lyon.tells([]));
    assert!(!paris.story().contains("Converged"));
    // ... and again if it has something else to say of it, and all is well after that.
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko)));
    assert!(!paris.story().contains("Converged"));
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    assert_eq!(paris.story().matches("Converged").count(), 1);
}

#[test]
fn an_engine_that_starts_again_says_that_a_resource_converged_if_it_had_not() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.restarts();
    assert!(!paris.story().contains("Converged"), "lyon has not run it");
    let mut lyon = other("lyon");
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    assert!(paris.story().contains("Converged"));
}

#[test]
fn of_two_concurrent_writes_the_later_wins_and_the_other_is_said_to_be_superseded() {
    let mut story = String::new();
    for (name, at_ms) in [("earlier", 1), ("later", 9_000_000)] {
        let mut paris = paris();
        paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
        paris.ends(1, ok());
        paris.so_far();
        let theirs = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(at_ms);
        paris.hears("lyon", other("lyon").tells_of(theirs));
        paris.shows("counter");
        story += &format!("# {name}\n{}", paris.story());
    }
    expect![[r##"
        # earlier
        > lyon: [lyon.1 inc at lyon paris with config] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris with config
          + paris.3 says SUPERSEDED by paris.1 of lyon.1
          note SiteUp(lyon)
          note Superseded(counter, lyon.1, paris.1)
          note LeftOut(counter, [PastDecision { operation: lyon.1, by: Some(paris.1), why: "paris.1 is concurrent and was written last; (inc, inc): take-one" }])
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1; paris.3 says SUPERSEDED by paris.1 of lyon.1] knows lyon.1 paris.3
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.3, and you?
        = list [paris.1], InStep, Idle
            lyon.1 paris=SUPERSEDED by paris.1 out: LastWriter by paris.1
            paris.1 paris=OK
        # later
        > lyon: [lyon.1 inc at lyon paris with config] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris with config
          + paris.3 says SUPERSEDED by lyon.1 of paris.1
          + begin run lyon.1
          note SiteUp(lyon)
          note StrangeClock(counter, lyon.1, 7999996)
          note Superseded(counter, paris.1, lyon.1)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 is concurrent and was written last; (inc, inc): take-one" }])
          job 2: run lyon.1
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1; paris.3 says SUPERSEDED by lyon.1 of paris.1] knows lyon.1 paris.3
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.3, and you?
        = list [lyon.1], InStep, Running
            paris.1 paris=SUPERSEDED by lyon.1 out: LastWriter by lyon.1
            lyon.1
    "##]].assert_eq(&flush_left(&story));
}

#[test]
fn what_wins_and_fails_everywhere_is_void_and_what_it_had_ruled_out_counts_again() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    let theirs = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(9_000_000);
    paris.hears("lyon", lyon.tells_of(theirs));
    paris.so_far();
    // It fails here: that alone proves nothing, ...
    paris.ends(2, ko("no"));
    paris.shows("counter");
    // ... it fails there too: then nothing was ever there but the first.
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ko)));
    paris.shows("counter");
    paris.told(expect![[r#"
        > job 2 ends: exit 1 no
          + end run lyon.1: Ko
          + paris.4 says KO of lyon.1: no
          note Failed(counter, lyon.1)
          tell lyon: [paris.4 says KO of lyon.1: no] knows lyon.1 paris.4
        = list [lyon.1], Undecided { on: lyon.1 }, Idle
            paris.1 paris=SUPERSEDED by lyon.1 out: LastWriter by lyon.1
            lyon.1 paris=KO
        > lyon: [lyon.2 says KO of lyon.1] knows lyon.2
          + lyon.2 says KO of lyon.1
          + paris.5 says OK of paris.1
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1; paris.3 says SUPERSEDED by lyon.1 of paris.1; paris.4 says KO of lyon.1: no] knows lyon.2 paris.4
          tell lyon: [paris.5 says OK of paris.1] knows lyon.2 paris.5
        = list [paris.1], InStep, Idle
            paris.1 paris=OK
            lyon.1 lyon=KO paris=KO out: FailedEverywhere
    "#]]);
}

#[test]
fn what_wins_fails_here_and_succeeds_elsewhere_leaves_this_site_diverged() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    let theirs = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(9_000_000);
    paris.hears("lyon", lyon.tells_of(theirs));
    paris.ends(2, ko("no"));
    paris.so_far();
    paris.hears("lyon", lyon.tells_of(says("lyon.1", Status::Ok)));
    paris.shows("counter");
    // Force clears it, at this site as everywhere.
    paris.submits(Submission { force: true, ..asks_for("inc") });
    paris.ends(3, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        > lyon: [lyon.2 says OK of lyon.1] knows lyon.2
          + lyon.2 says OK of lyon.1
          + paris.5 says KO of lyon.1: no
          note PartialError(counter, lyon.1)
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1; paris.3 says SUPERSEDED by lyon.1 of paris.1; paris.4 says KO of lyon.1: no] knows lyon.2 paris.4
          note Diverged(counter, LeftOut { ran: paris.1 })
          tell lyon: [paris.5 says KO of lyon.1: no] knows lyon.2 paris.5
        = list [lyon.1], Diverged { why: LeftOut { ran: paris.1 } }, Idle
            paris.1 paris=SUPERSEDED by lyon.1 out: LastWriter by lyon.1
            lyon.1 lyon=OK paris=KO
        > 2: counter inc by force
          + paris.6 inc by force on lyon.1 paris.1
          + begin run paris.6
          note StrangeClock(counter, paris.6, 7999993)
          answer 2: accepted as paris.6 for lyon paris
          job 3: run paris.6
          tell lyon: [paris.6 inc by force on lyon.1 paris.1] knows lyon.2 paris.6
        > job 3 ends: exit 0
          + end run paris.6: Ok
          + paris.7 says OK of paris.6
          + paris.8 says OK of paris.6
          note Applied(counter, paris.6)
          answer 2: paris says OK of paris.6
          tell lyon: [paris.7 says OK of paris.6; paris.8 says OK of paris.6] knows lyon.2 paris.8
        = list [paris.6], InStep, Idle
            paris.1 paris=SUPERSEDED by lyon.1 out: Forced by paris.6
            lyon.1 lyon=OK paris=KO out: Forced by paris.6
            paris.6 paris=OK
    "#]]);
}

#[test]
fn what_should_have_come_first_and_cannot_any_more_is_a_divergence_said_once() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("ordered")), ..asks_for("inc") });
    paris.ends(1, ok());
    paris.so_far();
    let earlier = op("inc").declaring("lyon paris", None).at_ms(1);
    paris.hears("lyon", other("lyon").tells_of(earlier));
    paris.ends(2, ok());
    paris.shows("counter");
    paris.restarts();
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris
          + begin run lyon.1
          note SiteUp(lyon)
          note Diverged(counter, Order { ran: paris.1, before: lyon.1 })
          job 2: run lyon.1
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1] knows lyon.1 paris.2
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.2, and you?
        > job 2 ends: exit 0
          + end run lyon.1: Ok
          + paris.3 says OK of lyon.1
          + paris.4 says OK of lyon.1
          note Applied(counter, lyon.1)
          tell lyon: [paris.3 says OK of lyon.1; paris.4 says OK of lyon.1] knows lyon.1 paris.4
        = list [lyon.1 paris.1], Diverged { why: Order { ran: paris.1, before: lyon.1 } }, Idle
            lyon.1 paris=OK
            paris.1 paris=OK
        > restart
          note Diverged(counter, Order { ran: paris.1, before: lyon.1 })
    "#]]);
}

#[test]
fn what_comes_late_and_commutes_is_simply_run() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-both")), ..asks_for("inc") });
    paris.ends(1, ok());
    paris.so_far();
    let earlier = op("inc").declaring("lyon paris", Some(matrix("take-both"))).at_ms(1);
    paris.hears("lyon", other("lyon").tells_of(earlier));
    paris.ends(2, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        > lyon: [lyon.1 inc at lyon paris with config] knows lyon.1
          + lyon is in incarnation 1
          + lyon.1 inc at lyon paris with config
          + begin run lyon.1
          note SiteUp(lyon)
          job 2: run lyon.1
          tell lyon: [paris.1 inc at lyon paris with config; paris.2 says OK of paris.1] knows lyon.1 paris.2
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.2, and you?
        > job 2 ends: exit 0
          + end run lyon.1: Ok
          + paris.3 says OK of lyon.1
          note Applied(counter, lyon.1)
          tell lyon: [paris.3 says OK of lyon.1] knows lyon.1 paris.3
        = list [lyon.1 paris.1], InStep, Idle
            lyon.1 paris=OK
            paris.1 paris=OK
    "#]]);
}

#[test]
fn what_loses_while_it_runs_is_said_to_be_superseded_when_it_has_ended() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("take-one")), ..asks_for("inc") });
    let theirs = op("inc").declaring("lyon paris", Some(matrix("take-one"))).at_ms(9_000_000);
    paris.hears("lyon", other("lyon").tells_of(theirs));
    paris.so_far();
    paris.shows("counter");
    paris.ends(1, ok());
    paris.shows("counter");
    paris.told(expect![[r#"
        = list [lyon.1], InStep, Running
            paris.1 out: LastWriter by lyon.1
            lyon.1
        > job 1 ends: exit 0
          + end run paris.1: Ok
          + paris.2 says OK of paris.1
          + paris.3 says SUPERSEDED by lyon.1 of paris.1
          + begin run lyon.1
          note Applied(counter, paris.1)
          answer 1: paris says OK of paris.1
          note Superseded(counter, paris.1, lyon.1)
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 is concurrent and was written last; (inc, inc): take-one" }])
          job 2: run lyon.1
          tell lyon: [paris.2 says OK of paris.1; paris.3 says SUPERSEDED by lyon.1 of paris.1] knows lyon.1 paris.3
        = list [lyon.1], InStep, Running
            paris.1 paris=SUPERSEDED by lyon.1 out: LastWriter by lyon.1
            lyon.1
    "#]]);
}

#[test]
fn a_summary_counts_what_the_view_lists() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(set_and_inc()), ..asks_for("inc") });
    paris.ends(1, ok());
    paris.submits(asks_for("set"));
    paris.ends(2, ko("no"));
    paris.submits(asks_for("inc"));
    let it = paris.engine.summary(&resource("counter")).unwrap();
    assert_eq!((it.operations, it.listed, it.errors), (3, 2, 1));
    let standing = it.standing.as_ref().unwrap();
    assert_eq!(standing.site, site("paris"));
    assert!(matches!(standing.standing, Standing::Failed { .. }), "{standing:?}");
    assert!(!it.deleted && it.changed_ms == 1_000_006, "{it:?}");
    assert!(paris.engine.summary(&resource("unheard")).is_none());
}

#[test]
fn readers_find_resources_in_order_and_by_site_and_types_as_often_as_there_are() {
    let mut paris = paris();
    for (name, at) in [("b", "paris"), ("a", "lyon paris"), ("c", "nantes paris")] {
        paris.submits(Submission {
            resource: resource(name),
            sites: Some(sites(at)),
            ..asks_for("inc")
        });
    }
    let engine = &paris.engine;
    let after = |id: Option<&str>| {
        let id = id.map(resource);
        engine.ids_after(id.as_ref()).map(ToString::to_string).collect::<String>()
    };
    assert_eq!(
        (after(None), after(Some("a")), after(Some("bb"))),
        ("abc".into(), "bc".into(), "c".into())
    );
    let at_lyon: Vec<_> =
        engine.resources_at(&site("lyon")).map(|(id, _)| id.to_string()).collect();
    assert_eq!(at_lyon, ["a"]);
    assert!(engine.has_type(&resource("a"), "inc") && !engine.has_type(&resource("a"), "set"));
    assert_eq!(engine.types(&resource("unheard")).count(), 0);
    assert_eq!(engine.last_of_list(&resource("a")), Some(operation("paris.2")));
    assert_eq!(engine.last_of_list(&resource("unheard")), None);
    assert!(engine.knows(&resource("a"), &operation("paris.2")));
    assert!(!engine.knows(&resource("b"), &operation("paris.2")));
    assert_eq!(engine.history(&resource("a")).map(|(operations, _)| operations.len()), Some(1));
    assert!(engine.config(&resource("unheard")).is_none());
}

/// How paris says that the resource stands, site by site.
fn standings(site: &Site) -> String {
    let all = site.engine.standings(&resource("counter")).unwrap();
    let told = |at: &SiteStanding| {
        let word = match &at.standing {
            Standing::InSync => "in sync".to_owned(),
            Standing::Running { operation } => format!("running {operation}"),
            Standing::Waiting { .. } => "waiting".to_owned(),
            Standing::Unknown => "unknown".to_owned(),
            Standing::Failed { operation } => format!("failed {operation}"),
            Standing::InDoubt { operation } => format!("in doubt {operation}"),
            Standing::Diverged { why, failed: None } => format!("diverged, {why}"),
            Standing::Diverged { why, failed: Some(it) } => format!("diverged, {it} failed, {why}"),
        };
        format!("{}: {word}", at.site)
    };
    all.iter().map(told).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_resource_is_in_sync_only_while_every_site_says_so_and_is_heard() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    assert_eq!(standings(&paris), "lyon: unknown; paris: running paris-1.1");
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    paris.hears("lyon", beat());
    assert_eq!(standings(&paris), "lyon: waiting; paris: in sync");
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells([]));
    assert_eq!(standings(&paris), "lyon: running paris-1.1; paris: in sync");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    assert_eq!(standings(&paris), "lyon: in sync; paris: in sync");
    let silent_for_long = paris.now_ms + 60_000;
    paris.lives_until(silent_for_long);
    assert_eq!(standings(&paris), "lyon: unknown; paris: in sync");
}

#[test]
fn what_failed_everywhere_is_trouble_until_an_operation_that_replaced_it_went_well() {
    let mut paris = alone();
    let at_paris = Some(sites("paris"));
    let first = Submission { sites: at_paris, config: Some(set_and_inc()), ..asks_for("inc") };
    paris.submits(first);
    paris.ends(1, ko("no"));
    assert_eq!(standings(&paris), "paris: failed paris-1.1");
    let again = Submission { sites: None, ..asks_for("inc") };
    paris.submits(again);
    paris.ends(2, ok());
    assert_eq!(standings(&paris), "paris: failed paris-1.1");
    paris.submits(Submission { sites: None, ..asks_for("set") });
    paris.ends(3, ok());
    assert_eq!(standings(&paris), "paris: in sync");
}
