//! Sites that come back without their memory: another one, and this one.

use cheops_core::engine::{Application, Submission};
use cheops_core::model::Status;
use cheops_core::plan::Decision;
use expect_test::expect;

use super::fixture::*;

/// Paris and lyon ran an operation of paris, and both know it.
fn in_step() -> (Site, Other) {
    let mut paris = paris();
    paris.submits(asks_for("inc"));
    paris.ends(1, ok());
    let mut lyon = other("lyon");
    lyon.learns("paris.2");
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ok)));
    paris.so_far();
    (paris, lyon)
}

#[test]
fn a_site_that_lost_its_disk_has_yet_to_say_how_things_stand_there() {
    let (mut paris, _) = in_step();
    paris.shows("counter");
    paris.hears("lyon", other("lyon-2").asks());
    paris.shows("counter");
    paris.told(expect![[r#"
        = list [paris.1], InStep, Idle, settled
            paris.1 lyon=OK paris=OK
        > lyon: knows nothing in incarnation 2, and you?
          + lyon is in incarnation 2
          + lyon knew lyon.1 paris.2 in an earlier incarnation
          note SiteLostItsDisk(lyon)
          tell lyon: [paris.1 inc at lyon paris; paris.2 says OK of paris.1; lyon.1 says OK of paris.1] knows lyon.1 paris.2, you may have run lyon.1 paris.2
        = list [paris.1], InStep, Idle
            paris.1 paris=OK
    "#]]);
}

#[test]
fn a_sign_of_life_is_enough_to_see_it_and_it_is_asked_in_time() {
    let (mut paris, _) = in_step();
    paris.hears("lyon", beat().in_incarnation(2));
    paris.ticks_at(2_000);
    paris.told(expect![[r#"
        > lyon: alive at 0 in incarnation 2
          + lyon is in incarnation 2
          + lyon knew lyon.1 paris.2 in an earlier incarnation
          note SiteLostItsDisk(lyon)
        > 2000 ms
          tell lyon: knows lyon.1 paris.2, you may have run lyon.1 paris.2
          tell lyon: knows lyon.1 paris.2, you may have run lyon.1 paris.2, and you?
          tell lyon: alive at 2000, echo of 0 held for 1995
    "#]]);
}

#[test]
fn what_it_may_have_run_is_told_until_it_has_confirmed_all_of_it_also_after_a_restart() {
    let (mut paris, _) = in_step();
    let mut lyon = other("lyon-2");
    paris.hears("lyon", beat().in_incarnation(2));
    paris.restarts();
    paris.so_far();
    paris.hears("lyon", lyon.asks());
    lyon.learns("paris.2 lyon.1");
    paris.hears("lyon", lyon.tells([]));
    paris.hears("lyon", lyon.asks());
    paris.told(expect![[r#"
        > lyon: knows nothing in incarnation 2, and you?
          note SiteUp(lyon)
          tell lyon: [paris.1 inc at lyon paris; paris.2 says OK of paris.1; lyon.1 says OK of paris.1] knows lyon.1 paris.2, you may have run lyon.1 paris.2
          tell lyon: alive at 7
          tell nantes: alive at 7
          tell lyon: knows lyon.1 paris.2, you may have run lyon.1 paris.2, and you?
        > lyon: knows lyon.1 paris.2 in incarnation 2
          + lyon knew nothing in an earlier incarnation
          + lyon-2 knows lyon.1 paris.2
        > lyon: knows lyon.1 paris.2 in incarnation 2, and you?
          tell lyon: knows lyon.1 paris.2
    "#]]);
}

#[test]
fn a_reply_that_is_restated_in_a_new_incarnation_counts_and_the_old_one_does_not() {
    let (mut paris, _) = in_step();
    let mut lyon = other("lyon-2");
    paris.hears("lyon", beat().in_incarnation(2));
    lyon.learns("paris.2 lyon.1");
    paris.so_far();
    paris.hears("lyon", lyon.tells_of(says("paris.1", Status::Ko)));
    paris.shows("counter").told(expect![[r#"
        > lyon: [lyon-2.1 says KO of paris.1] knows lyon.1 lyon-2.1 paris.2 in incarnation 2
          + lyon-2.1 says KO of paris.1
          + lyon knew nothing in an earlier incarnation
          + lyon-2 knows lyon.1 lyon-2.1 paris.2
          note PartialError(counter, paris.1)
        = list [paris.1], InStep, Idle, settled
            paris.1 lyon-2=KO paris=OK
    "#]]);
}

#[test]
fn a_late_message_of_an_incarnation_that_is_over_is_taken_for_yet_another_loss() {
    let (mut paris, old) = in_step();
    paris.hears("lyon", beat().in_incarnation(2));
    paris.so_far();
    paris.hears("lyon", old.tells([]));
    paris.told(expect![[r#"
        > lyon: knows lyon.1 paris.2
          + lyon is in incarnation 1
          + lyon knew lyon.1 paris.2 in an earlier incarnation
          + lyon knew nothing in an earlier incarnation
          + lyon knows lyon.1 paris.2
          note SiteLostItsDisk(lyon)
          note Converged(counter)
    "#]]);
}

/// What nantes remembers of paris' first incarnation, which wrote and ran one operation.
fn remembered() -> (Other, News) {
    let mut before = other("paris");
    let mine = before.writes(op("inc").declaring("nantes paris", None));
    let ran = before.writes(says("paris.1", Status::Ok));
    let mut nantes = other("nantes");
    nantes.learns("paris.2");
    let news = nantes.tells([mine, ran]);
    (nantes, news)
}

/// Paris in its second incarnation, which has heard nothing yet.
fn reborn(application: Application) -> Site {
    let mut settings = settings("lyon nantes");
    settings.me = author("paris-2");
    settings.application = application;
    start(settings)
}

#[test]
fn a_site_gets_its_resources_back_and_doubts_what_its_application_may_hold() {
    let mut story = String::new();
    for application in [Application::MayHoldState, Application::Empty] {
        let mut paris = reborn(application);
        let (_, news) = remembered();
        paris.hears("nantes", news);
        paris.shows("counter");
        story += &format!("# {application:?}\n{}", paris.story());
    }
    expect![[r#"
        # MayHoldState
        > nantes: [paris.1 inc at nantes paris; paris.2 says OK of paris.1] knows paris.2
          + nantes is in incarnation 1
          + paris.1 inc at nantes paris
          + paris.2 says OK of paris.1
          + ran [paris.1?]
          + paris-2.1 says IN-DOUBT of paris.1
          note SiteUp(nantes)
          note InDoubt(counter, paris.1)
          tell nantes: [paris-2.1 says IN-DOUBT of paris.1] knows paris.2 paris-2.1 in incarnation 2
          tell nantes: alive at 2 in incarnation 2
        = list [paris.1], InStep, AwaitsOperator(paris.1)
            paris.1 paris-2=IN-DOUBT
        # Empty
        > nantes: [paris.1 inc at nantes paris; paris.2 says OK of paris.1] knows paris.2
          + nantes is in incarnation 1
          + paris.1 inc at nantes paris
          + paris.2 says OK of paris.1
          + begin run paris.1
          + nantes knows paris.2
          note SiteUp(nantes)
          job 1: run paris.1
          tell nantes: alive at 2 in incarnation 2
        = list [paris.1], InStep, Running
            paris.1
    "#]]
    .assert_eq(&flush_left(&story));
}

#[test]
fn numbers_of_the_earlier_incarnation_are_not_used_again_and_its_word_is_not_this_ones() {
    let mut paris = reborn(Application::Empty);
    let (_, news) = remembered();
    paris.hears("nantes", news);
    paris.so_far();
    paris.ends(1, ok());
    paris.submits(Submission { sites: None, ..asks_for("inc") });
    let story = paris.story();
    let written = story.lines().filter(|line| line.contains("+ paris"));
    expect![[r#"
          + paris-2.1 says OK of paris.1
          + paris-2.2 inc on paris.1"#]]
    .assert_eq(&flush_left(&written.collect::<Vec<_>>().join("\n")));
}

#[test]
fn what_another_says_that_this_site_may_have_run_is_doubted_and_not_run() {
    let mut paris = reborn(Application::MayHoldState);
    let mut nantes = other("nantes");
    let theirs = nantes.writes(op("inc").declaring("nantes paris", None));
    let told = nantes.tells([theirs]).changed(|it| it.you_may_have_run = vector("nantes.1"));
    paris.hears("nantes", told.clone());
    paris.hears("nantes", told);
    paris.is_told("counter", "nantes.1", Decision::Skip);
    paris.shows("counter");
    paris.told(expect![[r#"
        > nantes: [nantes.1 inc at nantes paris] knows nantes.1, you may have run nantes.1
          + nantes is in incarnation 1
          + nantes.1 inc at nantes paris
          + ran [nantes.1?]
          + paris-2.1 says IN-DOUBT of nantes.1
          note SiteUp(nantes)
          note InDoubt(counter, nantes.1)
          tell nantes: [paris-2.1 says IN-DOUBT of nantes.1] knows nantes.1 paris-2.1 in incarnation 2
          tell nantes: alive at 2 in incarnation 2
        > nantes: [nantes.1 inc at nantes paris] knows nantes.1, you may have run nantes.1
        > operator: Skip nantes.1
          + ran [nantes.1]
          + paris-2.2 says OK of nantes.1
          tell nantes: [paris-2.2 says OK of nantes.1] knows nantes.1 paris-2.2 in incarnation 2
        = list [nantes.1], InStep, Idle
            nantes.1 paris-2=OK
    "#]]);
}

#[test]
fn what_this_incarnation_ran_itself_is_not_doubted_whatever_anybody_says() {
    let (mut paris, lyon) = in_step();
    let told = lyon.tells([]).changed(|it| it.you_may_have_run = vector("paris.1"));
    paris.hears("lyon", told);
    paris.shows("counter").told(expect![[r#"
        > lyon: knows lyon.1 paris.2, you may have run paris.1
        = list [paris.1], InStep, Idle, settled
            paris.1 lyon=OK paris=OK
    "#]]);
}

#[test]
fn an_application_that_may_hold_what_was_pruned_is_diverged_until_something_overwrites_it() {
    let mut settings = settings("nantes");
    settings.me = author("paris-2");
    let mut paris = start(settings);
    let mut nantes = other("nantes");
    let mut before = other("paris");
    before.writes(op("inc").declaring("nantes paris", None));
    let kept = before.writes(op("set").on("paris.1").replacing());
    nantes.learns("paris.2");
    let declared =
        cheops_core::engine::Declared { sites: sites("nantes paris"), config: None, id_map: None };
    let news = nantes.tells([kept]).pruned("paris.1").changed(|it| {
        it.base.as_mut().unwrap().declared = Some(declared);
    });
    paris.hears("nantes", news);
    paris.so_far();
    paris.ends(1, ko("no"));
    paris.shows("counter");
    paris.submits(Submission { sites: None, force: true, ..asks_for("set") });
    paris.ends(2, ok());
    paris.shows("counter");
    let story = paris.story();
    let kept = story.lines().filter(|line| !line.contains("tell"));
    expect![[r#"
        > job 1 ends: exit 1 no
          + end run paris.2: Ko
          + paris-2.1 says KO of paris.2: no
          + paris-2.2 says IN-DOUBT of paris.2
          + paris-2.3 says IN-DOUBT of paris.2
          note Failed(counter, paris.2)
          note Diverged(counter, UnknownPast)
          note InDoubt(counter, paris.2)
        = list [paris.2], Diverged { why: UnknownPast }, AwaitsOperator(paris.2), pruned paris.1
            paris.2 paris-2=IN-DOUBT
        > 1: counter set by force
          + paris-2.4 set by force on paris.2
          + begin run paris-2.4
          answer 1: accepted as paris-2.4 for nantes paris
          job 2: run paris-2.4
        > job 2 ends: exit 0
          + end run paris-2.4: Ok
          + paris-2.5 says OK of paris-2.4
          + paris-2.6 says OK of paris-2.4
          note Applied(counter, paris-2.4)
          answer 1: paris says OK of paris-2.4
        = list [paris-2.4], InStep, Idle, pruned paris.1
            paris.2 paris-2=IN-DOUBT out: Forced by paris-2.4
            paris-2.4 paris-2=OK
    "#]]
    .assert_eq(&flush_left(&(kept.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn a_site_started_from_a_copy_of_its_disk_says_again_what_it_ran_and_runs_nothing() {
    let (mut paris, _) = in_step();
    paris.submits(asks_for("inc"));
    paris.ends(2, ko("no"));
    paris.so_far();
    let copy = paris.disk.clone();
    paris.is_reborn(2, Application::MayHoldState, copy);
    paris.shows("counter");
    paris.restarts();
    paris.told(expect![[r#"
        > restart
          + paris-2.1 says OK of paris.1
          + paris-2.2 says KO of paris.3: no
        = list [paris.1 paris.3], InStep, Idle
            paris.1 lyon=OK paris-2=OK
            paris.3 paris-2=KO
        > restart
    "#]]);
}

#[test]
fn of_what_ran_before_the_disk_was_lost_nobody_knows_the_order_and_that_is_said() {
    let mut paris = reborn(Application::MayHoldState);
    let mut nantes = other("nantes");
    let first = nantes.writes(op("inc").declaring("nantes paris", Some(matrix("ordered"))));
    let second = nantes.writes(op("inc").on("nantes.1"));
    let told = nantes.tells([first, second]);
    paris.hears("nantes", told.changed(|it| it.you_may_have_run = vector("nantes.2")));
    paris.so_far();
    paris.is_told("counter", "nantes.1", Decision::Skip);
    paris.is_told("counter", "nantes.2", Decision::Skip);
    paris.shows("counter").told(expect![[r#"
        > operator: Skip nantes.1
          + ran [nantes.1, nantes.2?]
          + paris-2.2 says OK of nantes.1
          tell nantes: [paris-2.2 says OK of nantes.1] knows nantes.2 paris-2.2 in incarnation 2
        > operator: Skip nantes.2
          + ran [nantes.1, nantes.2]
          + paris-2.3 says OK of nantes.2
          + paris-2.4 says OK of nantes.2
          note Diverged(counter, Forgotten { ran: nantes.1 })
          tell nantes: [paris-2.3 says OK of nantes.2; paris-2.4 says OK of nantes.2] knows nantes.2 paris-2.4 in incarnation 2
        = list [nantes.1 nantes.2], Diverged { why: Forgotten { ran: nantes.1 } }, Idle
            nantes.1 paris-2=OK
            nantes.2 paris-2=OK
    "#]]);
}

#[test]
fn what_is_overwritten_here_needs_no_operator_whatever_ran_before_the_disk_was_lost() {
    let mut paris = reborn(Application::MayHoldState);
    let mut nantes = other("nantes");
    let first = nantes.writes(op("inc").declaring("nantes paris", Some(set_and_inc())));
    let second = nantes.writes(op("set").on("nantes.1").replacing());
    let told = nantes.tells([first, second]);
    paris.hears("nantes", told.changed(|it| it.you_may_have_run = vector("nantes.2")));
    paris.so_far();
    paris.ends(1, ok());
    paris.shows("counter").told(expect![[r#"
        > job 1 ends: exit 0
          + end run nantes.2: Ok
          + paris-2.2 says OK of nantes.2
          + pruned nantes.1 (at nantes paris, config of nantes.1)
          + ran [nantes.2]
          note Applied(counter, nantes.2)
          tell nantes: [paris-2.2 says OK of nantes.2] knows nantes.2 paris-2.2 in incarnation 2
          note Pruned(counter, 1)
        = list [nantes.2], InStep, Idle, pruned nantes.1
            nantes.2 paris-2=OK
    "#]]);
}
