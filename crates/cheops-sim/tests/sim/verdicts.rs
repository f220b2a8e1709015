//! What a site says of itself when an operation failed there that took the place of others: as
//! long as it may turn out to have failed everywhere, it is void or it is not, and nobody knows.

use crate::cluster::Cluster;
use cheops_core::engine::Notice;
use cheops_core::plan::Health;
use cheops_sim::site_name;

const COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

/// So many sites whose counter is set to 1.
fn counter(sites: usize) -> Cluster {
    let mut cluster = Cluster::new(sites, COUNTER);
    cluster.does(0, "set", "set 1");
    cluster.converges();
    cluster
}

/// How often that site said that it has diverged.
fn alarms(cluster: &Cluster, site: usize) -> usize {
    let notices = cluster.world.notices.iter().filter(|(at, _)| *at == site_name(site));
    notices.filter(|(_, notice)| matches!(notice, Notice::Diverged(..))).count()
}

fn assert_never_alarmed(cluster: &Cluster) {
    let alarmed: Vec<usize> = cluster.home().filter(|site| alarms(cluster, *site) > 0).collect();
    assert!(alarmed.is_empty(), "diverged at {alarmed:?}: {:?}", cluster.world.notices);
}

#[test]
fn a_set_that_fails_at_every_site_raises_no_alarm() {
    for sites in [1, 2, 3] {
        let mut cluster = counter(sites);
        cluster.does(0, "set", "fail");
        cluster.converges();
        assert_never_alarmed(&cluster);
        assert_eq!(cluster.value_everywhere(), "1");
        assert!(cluster.home().all(|site| cluster.view(site).health == Health::InStep));
    }
}

#[test]
fn while_a_site_is_away_those_where_a_set_failed_wait_for_its_verdict_also_over_a_restart() {
    let mut cluster = counter(3);
    cluster.isolates(2);
    let failed = cluster.does(0, "set", "fail");
    cluster.passes(10_000);
    let waits = Health::Undecided { on: failed };
    assert_eq!([cluster.view(0).health, cluster.view(1).health], [waits.clone(), waits.clone()]);

    cluster.world.crash(0);
    cluster.until("it is up again", |cluster| cluster.world.sites[0].engine.is_some());
    cluster.passes(1_000);
    assert_eq!(cluster.view(0).health, waits);

    cluster.world.network.heal_all();
    cluster.converges();
    assert_never_alarmed(&cluster);
    assert_eq!(cluster.value_everywhere(), "1");
}

#[test]
fn a_site_where_a_set_failed_says_that_it_has_diverged_once_it_succeeded_elsewhere() {
    let mut cluster = counter(2);
    cluster.isolates(0);
    cluster.does(0, "set", "paris!set 2");
    cluster.passes(10_000);
    assert_eq!((alarms(&cluster, 0), cluster.value(0).as_str()), (0, "1"));
    cluster.world.network.heal_all();
    cluster.converges();
    assert!(matches!(cluster.view(0).health, Health::Diverged { .. }));
    assert_eq!((alarms(&cluster, 0), alarms(&cluster, 1)), (1, 0));
    assert_eq!([cluster.value(0), cluster.value(1)], ["1", "2"]);
}

#[test]
fn a_site_that_has_diverged_goes_on_saying_so_when_another_set_fails() {
    let mut cluster = counter(2);
    cluster.does(0, "set", "paris!set 2");
    cluster.converges();
    assert!(matches!(cluster.view(0).health, Health::Diverged { .. }));
    cluster.isolates(0);
    let failed = cluster.does(0, "set", "fail");
    cluster.until("it failed", |cluster| cluster.status(0, &failed, 0).is_some());
    assert!(matches!(cluster.view(0).health, Health::Diverged { .. }), "void or not, it has");
}

#[test]
fn what_is_done_while_a_verdict_is_open_is_run_at_once() {
    let mut cluster = counter(2);
    cluster.isolates(0);
    for set in ["fail", "fail"] {
        cluster.does(0, "set", set);
        cluster.passes(100);
    }
    cluster.does(0, "inc", "inc 10");
    cluster.until("it is added", |cluster| cluster.value(0) == "11");
    assert!(matches!(cluster.view(0).health, Health::Undecided { .. }));
    cluster.does(0, "set", "set 5");
    cluster.until("it is set", |cluster| cluster.value(0) == "5");
    assert_eq!(cluster.view(0).health, Health::InStep);
    cluster.does(0, "set", "fail");
    cluster.passes(100);
    cluster.does(0, "inc", "inc 2");
    cluster.passes(100);

    cluster.world.network.heal_all();
    cluster.converges();
    assert_never_alarmed(&cluster);
    assert_eq!(cluster.value_everywhere(), "7");
}
