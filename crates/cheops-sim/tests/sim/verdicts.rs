//! What a site says of itself when an operation failed there that took the place of others: as
//! long as it may turn out to have failed everywhere, it is void or it is not, and nobody knows.

use crate::stage::Stage;
use cheops_core::engine::Notice;
use cheops_core::plan::Health;
use cheops_sim::site_name;

const COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// So many sites whose counter is set to 1.
fn counter(sites: usize) -> Stage {
    let mut stage = Stage::new(sites, COUNTER);
    stage.does(0, "set", "set 1");
    stage.converges();
    stage
}

/// How often that site said that it has diverged.
fn alarms(stage: &Stage, site: usize) -> usize {
    let notices = stage.world.notices.iter().filter(|(at, _)| *at == site_name(site));
    notices.filter(|(_, notice)| matches!(notice, Notice::Diverged(..))).count()
}

fn assert_never_alarmed(stage: &Stage) {
    let alarmed: Vec<usize> = stage.home().filter(|site| alarms(stage, *site) > 0).collect();
    assert!(alarmed.is_empty(), "diverged at {alarmed:?}: {:?}", stage.world.notices);
}

#[test]
fn a_set_that_fails_at_every_site_raises_no_alarm() {
    for sites in [1, 2, 3] {
        let mut stage = counter(sites);
        stage.does(0, "set", "fail");
        stage.converges();
        assert_never_alarmed(&stage);
        assert_eq!(stage.value_everywhere(), "1");
        assert!(stage.home().all(|site| stage.view(site).health == Health::InStep));
    }
}

#[test]
fn while_a_site_is_away_those_where_a_set_failed_wait_for_its_verdict_also_over_a_restart() {
    let mut stage = counter(3);
    stage.isolates(2);
    let failed = stage.does(0, "set", "fail");
    stage.passes(10_000);
    let waits = Health::Undecided { on: failed };
    assert_eq!([stage.view(0).health, stage.view(1).health], [waits.clone(), waits.clone()]);

    stage.world.crash(0);
    stage.until("it is up again", |stage| stage.world.sites[0].engine.is_some());
    stage.passes(1_000);
    assert_eq!(stage.view(0).health, waits);

    stage.world.network.heal_all();
    stage.converges();
    assert_never_alarmed(&stage);
    assert_eq!(stage.value_everywhere(), "1");
}

#[test]
fn a_site_where_a_set_failed_says_that_it_has_diverged_once_it_succeeded_elsewhere() {
    let mut stage = counter(2);
    stage.isolates(0);
    stage.does(0, "set", "paris!set 2");
    stage.passes(10_000);
    assert_eq!((alarms(&stage, 0), stage.value(0).as_str()), (0, "1"));
    stage.world.network.heal_all();
    stage.converges();
    assert!(matches!(stage.view(0).health, Health::Diverged { .. }));
    assert_eq!((alarms(&stage, 0), alarms(&stage, 1)), (1, 0));
    assert_eq!([stage.value(0), stage.value(1)], ["1", "2"]);
}

#[test]
fn a_site_that_has_diverged_goes_on_saying_so_when_another_set_fails() {
    let mut stage = counter(2);
    stage.does(0, "set", "paris!set 2");
    stage.converges();
    assert!(matches!(stage.view(0).health, Health::Diverged { .. }));
    stage.isolates(0);
    let failed = stage.does(0, "set", "fail");
    stage.until("it failed", |stage| stage.status(0, &failed, 0).is_some());
    assert!(matches!(stage.view(0).health, Health::Diverged { .. }), "void or not, it has");
}

#[test]
fn what_is_done_while_a_verdict_is_open_is_run_at_once() {
    let mut stage = counter(2);
    stage.isolates(0);
    for set in ["fail", "fail"] {
        stage.does(0, "set", set);
        stage.passes(100);
    }
    stage.does(0, "inc", "inc 10");
    stage.until("it is added", |stage| stage.value(0) == "11");
    assert!(matches!(stage.view(0).health, Health::Undecided { .. }));
    stage.does(0, "set", "set 5");
    stage.until("it is set", |stage| stage.value(0) == "5");
    assert_eq!(stage.view(0).health, Health::InStep);
    stage.does(0, "set", "fail");
    stage.passes(100);
    stage.does(0, "inc", "inc 2");
    stage.passes(100);

    stage.world.network.heal_all();
    stage.converges();
    assert_never_alarmed(&stage);
    assert_eq!(stage.value_everywhere(), "7");
}
