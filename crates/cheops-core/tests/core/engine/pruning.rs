//! Forgetting: history below what replaced it, what others say they forgot, and large files.

use cheops_core::engine::{Application, Declared, Malformed, Record, Submission};
use cheops_core::model::{Act, Payload, Stamp, Status};
use expect_test::expect;

use super::fixture::*;

fn lyon_replaces(lyon: &mut Other) -> News {
    lyon.learns("paris.1");
    let later = lyon.writes(op("inc").on("paris.1").replacing().at_ms(2_000_000));
    let went_well = lyon.writes(says("lyon.1", Status::Ok));
    lyon.tells([later, went_well])
}

/// Paris ran its first operation, and lyon replaced it: all know it, and it went well there.
fn replaced() -> (Site, Other) {
    let mut paris = paris();
    paris.submits(Submission { config: Some(matrix("ordered")), ..asks_for("inc") });
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    paris.so_far();
    let news = lyon_replaces(&mut lyon);
    paris.hears("lyon", news);
    (paris, lyon)
}

#[test]
fn what_was_replaced_is_forgotten_once_every_site_knows_what_replaced_it_and_it_went_well_somewhere()
 {
    let (mut paris, _) = replaced();
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon.1 inc replacing on paris.1; lyon.2 says OK of lyon.1] knows lyon.2 paris.1
          + lyon is in incarnation 1
          + lyon.1 inc replacing on paris.1
          + lyon.2 says OK of lyon.1
          + begin run lyon.1
          + pruned paris.1 (at lyon paris, config of paris.1)
          + ran [paris.1, lyon.1?], run lyon.1 begun
          note SiteUp(lyon)
          note StrangeClock(counter, lyon.1, 999996)
          job 2: run lyon.1
          tell lyon: [paris.2 says OK of paris.1] knows lyon.2 paris.2
          note LeftOut(counter, [PastDecision { operation: paris.1, by: Some(lyon.1), why: "lyon.1 was made after it and replaces all before it" }])
          note Pruned(counter, 1)
          tell lyon: alive at 4
          tell lyon: knows lyon.2 paris.2, pruned paris.1, and you?
        = list [lyon.1], InStep, Running, pruned paris.1
            lyon.1 lyon=OK
    "#]]);
}

#[test]
fn nothing_is_forgotten_while_a_site_may_not_know_or_nobody_has_run_it() {
    // It did not go well anywhere yet.
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    let replacing = || op("inc").on("paris.1").replacing().at_ms(2_000_000);
    paris.hears("lyon", lyon.tells_of(replacing()));
    assert!(!paris.story().contains("Pruned"));
    // Lyon has not said that it knows of what is below.
    let mut paris = super::fixture::paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    paris.submits(Submission { force: true, ..asks_for("inc") });
    paris.ends(2, ok());
    let mut lyon = other("lyon");
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells([]));
    assert!(!paris.story().contains("Pruned"));
    // Lyon knows something that is not known here, and may be concurrent.
    lyon.learns("paris.4 lyon.1");
    paris.hears("lyon", lyon.tells([]));
    assert!(!paris.story().contains("Pruned"));
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    assert!(paris.story().contains("Pruned"));
}

#[test]
fn who_knows_what_was_pruned_is_told_how_far_and_who_does_not_what_it_declared_as_well() {
    let (mut paris, lyon) = replaced();
    paris.so_far();
    paris.hears("lyon", lyon.asks());
    paris.hears("lyon", lyon.asks().knowing("").changed(|it| it.incarnation.0 = 2));
    paris.told(expect![[r#"
        > lyon: knows lyon.2 paris.1, and you?
          tell lyon: [paris.2 says OK of paris.1] knows lyon.2 paris.2, pruned paris.1
        > lyon: knows nothing in incarnation 2, and you?
          + lyon is in incarnation 2
          + lyon knew lyon.2 paris.2 in an earlier incarnation
          note SiteLostItsDisk(lyon)
          tell lyon: [paris.2 says OK of paris.1; lyon.1 inc replacing on paris.1; lyon.2 says OK of lyon.1] knows lyon.2 paris.2, pruned paris.1 (at lyon paris, config of paris.1), you may have run lyon.2 paris.2
    "#]]);
}

#[test]
fn entries_below_what_was_pruned_are_known_when_they_come_again() {
    let (mut paris, lyon) = replaced();
    let Some(Record::Entry(_, again)) = paris.disk.entries().0.into_iter().next() else { panic!() };
    paris.so_far();
    paris.hears("lyon", lyon.tells([again]));
    paris.told(expect![[r#"
        > lyon: [paris.1 inc at lyon paris with config] knows lyon.2 paris.1
          tell lyon: [paris.2 says OK of paris.1] knows lyon.2 paris.2, pruned paris.1
    "#]]);
}

#[test]
fn a_reply_to_what_was_pruned_is_taken_and_changes_nothing() {
    let (mut paris, mut lyon) = replaced();
    paris.so_far();
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko)));
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon.3 says KO of paris.1] knows lyon.3 paris.1
          ! answer 1: lyon says KO of paris.1
          ! answer 1: done
          + lyon.3 says KO of paris.1
          tell lyon: [paris.2 says OK of paris.1] knows lyon.3 paris.2, pruned paris.1
        = list [lyon.1], InStep, Running, pruned paris.1
            lyon.1 lyon=OK
    "#]]);
}

#[test]
fn a_base_that_cannot_be_is_left_aside_and_said() {
    type Changes = fn(News) -> News;
    let rows: [(&str, Changes); 5] = [
        ("of what its sender does not know", |it| it.pruned("lyon.9")),
        ("of what this site never wrote", |it| it.knowing("lyon.1 paris.9").pruned("paris.9")),
        ("at the end of all numbers", |it| it.pruned(&format!("lyon.{}", u64::MAX))),
        ("with a place at the end of the order", |it| {
            let order = Some(Stamp { wall_ms: 5, counter: u64::MAX / 2 });
            it.pruned("lyon.1").changed(|it| it.base.as_mut().unwrap().order = order)
        }),
        ("with no site to live on", |it| {
            let declared = Some(Declared::default());
            it.pruned("lyon.1").changed(|it| it.base.as_mut().unwrap().declared = declared)
        }),
    ];
    for (what, change) in rows {
        let mut paris = paris();
        let mut lyon = other("lyon");
        paris.hears("lyon", lyon.tells_of(op("inc").declaring("lyon paris", None)));
        paris.so_far();
        paris.hears("lyon", change(lyon.tells([])));
        let story = paris.story();
        assert!(story.contains(&malformed("lyon", Malformed::BaseBeyondKnowledge)), "{what}");
        assert!(!story.contains("+ pruned"), "{what}");
    }
}

#[test]
fn nobody_makes_a_site_forget_what_it_knows_and_still_needs() {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    paris.so_far();
    paris.hears("lyon", lyon.tells([]).pruned("paris.1"));
    paris.shows("counter").told(expect![[r#"
        > lyon: knows paris.1, pruned paris.1
          + lyon is in incarnation 1
          + lyon knows paris.1
          note SiteUp(lyon)
          tell lyon: alive at 3
        = list [paris.1], InStep, Running
            paris.1
    "#]]);
}

/// Lyon replaced what paris did, it went well, and nantes and lyon forgot the rest. Paris had not
/// heard yet that nantes knows it too.
fn not_pruned_yet() -> (Site, Other) {
    let mut paris = paris();
    let at = Some(sites("lyon nantes paris"));
    paris.submits(Submission { sites: at, config: Some(matrix("ordered")), ..asks_for("inc") });
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    let news = lyon_replaces(&mut lyon);
    paris.hears("lyon", news);
    paris.ends(2, ok());
    assert!(!paris.story().contains("Pruned"));
    (paris, lyon)
}

#[test]
fn what_others_forgot_is_forgotten_although_what_replaced_it_was_replaced_since() {
    let (mut paris, lyon) = not_pruned_yet();
    paris.submits(Submission { force: true, ..asks_for("inc") });
    paris.so_far();
    // The last one has not run anywhere, and may yet turn out void; the one before has.
    paris.hears("lyon", lyon.tells([]).pruned("paris.1"));
    assert!(paris.story().contains("note Pruned(counter"));
}

#[test]
fn what_others_forgot_is_forgotten_although_one_who_lost_its_disk_knew_nothing_of_it() {
    let (mut paris, lyon) = not_pruned_yet();
    let mut nantes = other("nantes");
    paris.hears("nantes", nantes.tells_of(op("inc").declaring("lyon nantes paris", None)));
    paris.so_far();
    paris.hears("lyon", lyon.tells([]).pruned("paris.1"));
    assert!(!paris.story().contains("Pruned"), "nantes did it at the same time, and must be heard");
    // In its new incarnation it knows nothing: to that, too, everything is concurrent.
    let mut paris = not_pruned_yet().0;
    let mut reborn = other("nantes-2");
    let again = reborn.writes(op("inc").declaring("lyon nantes paris", None));
    let before = other("nantes").writes(says("paris.1", Status::Ok));
    paris.hears("nantes", reborn.tells([before, again]).knowing("nantes.1 nantes-2.1"));
    paris.so_far();
    paris.hears("lyon", lyon.tells([]).pruned("paris.1"));
    assert!(paris.story().contains("note Pruned(counter"));
}

#[test]
fn a_site_that_knows_nothing_yet_believes_a_base_and_starts_from_there() {
    // There is nobody else to hear first.
    let mut paris = start(settings("lyon"));
    let mut lyon = other("lyon");
    lyon.writes(op("set").declaring("lyon paris", None));
    let kept = lyon.writes(op("set").on("lyon.1").replacing());
    let declared = Declared { sites: sites("lyon paris"), config: None, id_map: None };
    let news = lyon.tells([kept]).pruned("lyon.1").changed(|it| {
        it.base.as_mut().unwrap().declared = Some(declared);
    });
    paris.hears("lyon", news.clone());
    paris.shows("counter");
    // Unwritten again and again, it is taken once.
    paris.hears("lyon", news);
    paris.told(expect![[r#"
        > lyon: [lyon.2 set replacing on lyon.1] knows lyon.2, pruned lyon.1 (at lyon paris)
          + lyon is in incarnation 1
          + pruned lyon.1 (at lyon paris)
          + ran []
          + lyon.2 set replacing on lyon.1
          + begin run lyon.2
          + lyon knows lyon.2
          note SiteUp(lyon)
          note Pruned(counter, 0)
          job 1: run lyon.2
          tell lyon: alive at 2
        = list [lyon.2], InStep, Running, pruned lyon.1
            lyon.2
        > lyon: [lyon.2 set replacing on lyon.1] knows lyon.2, pruned lyon.1 (at lyon paris)
    "#]]);
}

#[test]
fn a_site_that_goes_on_from_a_copy_believes_the_only_other_site_what_was_forgotten_since() {
    let mut paris = paris();
    paris.submits(Submission { config: Some(set_and_inc()), ..asks_for("set") });
    paris.ends(1, ok());
    let copy = paris.disk.clone();
    // Lyon has what the original did after the copy was made, and forgot what that replaced.
    let mut lyon = other("lyon");
    let news = {
        let mut original = other("paris");
        original.writes(op("set").declaring("lyon paris", Some(set_and_inc())));
        let last = original.writes(op("set").numbered(5, 4).on("paris.3").replacing());
        lyon.learns("paris.5");
        lyon.tells([last]).pruned("paris.4")
    };
    paris.is_reborn(2, Application::MayHoldState, copy);
    paris.hears("lyon", news);
    let view = paris.engine.resource(&resource("counter")).unwrap();
    assert_eq!(view.pruned, vector("paris.4"));
    assert_eq!(view.list, [operation("paris.5")]);
}

#[test]
fn a_base_is_not_believed_while_another_site_that_is_heard_has_what_it_says_is_forgotten() {
    let (mut nantes, mut lyon) = (other("nantes"), other("lyon"));
    let first = nantes.writes(op("set").declaring("lyon nantes paris", None));
    nantes.writes(op("set").on("nantes.1"));
    lyon.learns("nantes.9");
    let base = lyon.tells([]).pruned("nantes.9");
    let is_believed = |nantes_is_heard: bool| {
        let mut paris = paris();
        let told = nantes.tells([first.clone()]);
        paris.hears(if nantes_is_heard { "nantes" } else { "lyon" }, told);
        paris.so_far();
        paris.hears("lyon", base.clone());
        paris.story().contains("note Pruned(counter")
    };
    assert!(!is_believed(true), "nantes has two, and will send the second");
}

#[test]
fn a_base_is_not_believed_of_what_this_site_should_have_heard_of_and_has_not() {
    // It was in step with lyon, which could forget nothing since that paris has not confirmed.
    let mut paris = paris();
    let mut lyon = other("lyon");
    paris.hears("lyon", lyon.tells_of(op("set").declaring("lyon paris", None)));
    lyon.writes(op("set").on("lyon.1").replacing());
    let kept = lyon.writes(op("set").on("lyon.2").replacing());
    paris.so_far();
    paris.hears("lyon", lyon.tells([kept]).pruned("lyon.2"));
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon.3 set replacing on lyon.2] knows lyon.3, pruned lyon.2
          + lyon knows lyon.3
        = list [lyon.1], InStep, Running
            lyon.1
    "#]]);
}

#[test]
fn who_lost_its_memory_is_told_the_config_of_what_was_pruned_and_not_a_later_one() {
    let (mut paris, lyon) = replaced();
    paris.submits(Submission { config: Some(matrix("take-both")), ..asks_for("inc") });
    paris.so_far();
    // Whoever knows the same resolves by the same config, so none must arrive before its operation.
    paris.hears("lyon", lyon.asks().knowing("").changed(|it| it.incarnation.0 = 2));
    paris.told(expect![[r#"
        > lyon: knows nothing in incarnation 2, and you?
          + lyon is in incarnation 2
          + lyon knew lyon.2 paris.3 in an earlier incarnation
          note SiteLostItsDisk(lyon)
          tell lyon: [paris.2 says OK of paris.1; lyon.1 inc replacing on paris.1; lyon.2 says OK of lyon.1; paris.3 inc on lyon.1 at lyon paris with config] knows lyon.2 paris.3, pruned paris.1 (at lyon paris, config of paris.1), you may have run lyon.2 paris.3
    "#]]);
}

/// A request with a body of that size, at paris and lyon.
fn upload(size: u64) -> Submission {
    let payload = match http("counter", "put", Act::CreatesAs).payload {
        Payload::Http { service, method, path, headers, service_ref, .. } => {
            let blob = cheops_core::model::BlobId([7; 32]);
            let file = cheops_core::model::FileRef { name: "body".into(), blob, size };
            Payload::Http { service, method, path, headers, body: Some(file), service_ref }
        }
        other => other,
    };
    Submission { payload, ..asks_for("put") }
}

#[test]
fn large_files_are_let_go_once_every_site_has_made_use_of_them_and_all_know_it() {
    let mut paris = paris();
    paris.submits(upload(64 * 1024));
    paris.ends(1, answered(201, None));
    let mut lyon = other("lyon");
    lyon.learns("paris.1");
    paris.so_far();
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells([]));
    // That is said once.
    paris.hears("lyon", lyon.tells([]));
    paris.restarts();
    paris.hears("lyon", lyon.tells([]));
    paris.told(expect![[r#"
        > lyon: [lyon.1 says OK of paris.1] knows lyon.1 paris.1
          ! answer 1: lyon says OK of paris.1
          ! answer 1: done
          + lyon is in incarnation 1
          + lyon.1 says OK of paris.1
          note SiteUp(lyon)
          note Settled(counter, paris.1, Applied)
          tell lyon: [paris.2 says OK of paris.1] knows lyon.1 paris.2
          tell lyon: alive at 4
          tell lyon: knows lyon.1 paris.2, and you?
        > lyon: knows lyon.1 paris.2
          + shed files of paris.1
          + lyon knows lyon.1 paris.2
          note Converged(counter)
        > lyon: knows lyon.1 paris.2
        > restart
          publish counter everywhere
        > lyon: knows lyon.1 paris.2
          note SiteUp(lyon)
          tell lyon: alive at 8
          tell nantes: alive at 8
    "#]]);
}

#[test]
fn files_are_kept_that_are_small_or_of_commands_or_that_some_site_has_not_used() {
    use cheops_core::model::{BlobId, FileRef};
    let file = FileRef { name: "f".into(), blob: BlobId([7; 32]), size: 1 << 30 };
    let command = Payload::Shell { command: "load {f}".into(), files: vec![file] };
    let by = operation("lyon.9");
    for (what, asked, status) in [
        ("small", upload(64 * 1024 - 1), Status::Ok),
        ("of a command", Submission { payload: command, ..asks_for("put") }, Status::Ok),
        ("in doubt there", upload(1 << 30), Status::InDoubt),
        ("not run there", upload(1 << 30), Status::Superseded { by }),
    ] {
        let mut paris = paris();
        paris.submits(asked);
        paris.ends(1, answered(201, None));
        let mut lyon = other("lyon");
        lyon.learns("paris.2");
        paris.hears("lyon", lyon.tells_of(says("paris.1", status)));
        assert!(!paris.story().contains("shed"), "{what}");
    }
}
