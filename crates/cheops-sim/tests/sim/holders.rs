//! Sites that come to hold a resource and sites that leave it, in sentences.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use cheops_core::engine::{Event, NotMovable, Standing};
use cheops_core::model::{HoldersAsked, SiteId};
use cheops_sim::{Setup, site_name, when_quiet};

const COUNTER: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "inc", "Result": "take-both-keep-order"},
    {"Before": "inc", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "inc", "After": "inc", "Result": "take-both"},
    {"Before": "set", "After": "set", "Result": "take-one"}]}"#;

fn named(sites: &[usize]) -> BTreeSet<SiteId> {
    sites.iter().map(|site| site_name(*site)).collect()
}

fn asks(add: &[usize], remove: &[usize]) -> HoldersAsked {
    HoldersAsked { add: named(add), remove: named(remove) }
}

/// Five sites, and a resource that lives at some of them.
fn five(home: &[usize]) -> Cluster {
    Cluster::at(Setup::new(5, 1), COUNTER, home)
}

impl Cluster {
    #[track_caller]
    fn moves(&mut self, site: usize, asked: HoldersAsked) {
        let resource = self.resource.clone();
        assert!(self.world.move_resource(site, &resource, asked), "it cannot be asked for");
    }

    /// Lets time pass until it lives there, and nobody waits for anybody.
    #[track_caller]
    fn lives_at(&mut self, sites: &[usize]) {
        self.comes_to_live_at(sites);
        when_quiet(&self.world).unwrap();
    }

    /// The same, whatever a site says of it that is gone.
    #[track_caller]
    fn comes_to_live_at(&mut self, sites: &[usize]) {
        let at = named(sites);
        let sites = sites.to_vec();
        self.until("it lives there", |it| {
            sites.iter().all(|site| {
                it.world.holders_at(*site, &it.resource).as_ref() == Some(&at)
                    && it.view(*site).settled
                    && it.view(*site).leaving.is_empty()
            })
        });
    }

    fn does_where_it_lives(&mut self, site: usize, kind: &str, command: &str) {
        let submission =
            cheops_core::engine::Submission { sites: None, ..self.submission(kind, command) };
        let ticket = self.world.submit(site, submission).unwrap();
        assert!(self.world.accepted(ticket).is_some());
    }
}

#[test]
fn a_site_that_is_added_gets_all_that_was_done_and_is_in_sync_only_then() {
    let mut cluster = five(&[0, 1]);
    cluster.does(0, "set", "set 10");
    cluster.does(1, "inc", "inc 3");
    cluster.passes(2_000);
    cluster.isolates(2);
    cluster.passes(5_000);
    cluster.moves(0, asks(&[2], &[]));
    cluster.passes(5_000);
    let standing = |cluster: &Cluster| {
        let standings = cluster.view(0).standings;
        standings.into_iter().find(|it| it.site == site_name(2)).unwrap().standing
    };
    assert_ne!(standing(&cluster), Standing::InSync);
    assert_eq!(cluster.value(2), "");
    cluster.world.network.heal_all();
    cluster.lives_at(&[0, 1, 2]);
    assert_eq!(standing(&cluster), Standing::InSync);
    assert_eq!(cluster.value(2), cluster.value(0));
    cluster.does_where_it_lives(2, "inc", "inc 4");
    cluster.lives_at(&[0, 1, 2]);
    assert_eq!(cluster.value(0), cluster.value(2));
}

#[test]
fn who_comes_gets_what_overwrote_the_rest() {
    let mut cluster = five(&[0, 1]);
    for n in 0..5 {
        cluster.does(0, "inc", "inc 1");
        cluster.does(1, "set", &format!("set {n}"));
        cluster.passes(1_000);
    }
    cluster.converges();
    cluster.moves(1, asks(&[3, 4], &[]));
    cluster.lives_at(&[0, 1, 3, 4]);
    assert_eq!(cluster.value(4), "4");
}

#[test]
fn from_one_site_to_five_and_to_two_others() {
    let mut cluster = five(&[0]);
    cluster.does(0, "set", "set 1");
    cluster.passes(1_000);
    cluster.moves(0, asks(&[1, 2, 3, 4], &[]));
    cluster.lives_at(&[0, 1, 2, 3, 4]);
    cluster.moves(1, asks(&[], &[0, 1]));
    cluster.moves(4, asks(&[], &[2]));
    cluster.lives_at(&[3, 4]);
    let submission =
        cheops_core::engine::Submission { sites: None, ..cluster.submission("inc", "inc 1") };
    let ticket = cluster.world.submit(0, submission).unwrap();
    assert!(cluster.world.accepted(ticket).is_none(), "it does not live there any more");
    cluster.does_where_it_lives(3, "inc", "inc 1");
    cluster.lives_at(&[3, 4]);
    assert_eq!(cluster.value(4), "2");
    assert_eq!(cluster.value(0), "1", "what a site held it keeps");
    // Back again, it goes on from where it was.
    cluster.moves(4, asks(&[0], &[]));
    cluster.lives_at(&[0, 3, 4]);
    assert_eq!(cluster.value(0), "2");
}

#[test]
fn a_removed_site_that_is_cut_off_is_waited_for_and_what_it_knew_is_kept() {
    let mut cluster = five(&[0, 1, 2]);
    cluster.does(0, "set", "set 10");
    cluster.passes(2_000);
    cluster.isolates(2);
    cluster.passes(5_000);
    cluster.does(2, "inc", "inc 5");
    cluster.moves(0, asks(&[], &[2]));
    cluster.passes(10_000);
    assert_eq!(cluster.view(0).leaving, named(&[2]));
    assert!(!cluster.view(0).settled);
    cluster.world.network.heal_all();
    cluster.lives_at(&[0, 1]);
    assert_eq!(cluster.value(1), "15");
}

#[test]
fn who_waits_does_not_wait_for_a_site_that_is_removed() {
    use cheops_core::engine::{Answer, WaitFor};
    let mut cluster = five(&[0, 1, 2]);
    cluster.does(0, "set", "set 10");
    cluster.passes(2_000);
    cluster.isolates(2);
    cluster.passes(5_000);
    let ticket = cluster.asks(0, "inc", "inc 1", WaitFor::All, 600_000);
    cluster.passes(2_000);
    assert!(!cluster.world.answers[&ticket].contains(&Answer::Done));
    cluster.moves(1, asks(&[], &[2]));
    cluster.until("it is done", |it| it.world.answers[&ticket].contains(&Answer::Done));
}

#[test]
fn a_site_that_is_gone_for_good_is_not_waited_for_and_not_added_again() {
    let mut cluster = five(&[0, 1, 2]);
    cluster.does(0, "set", "set 10");
    cluster.passes(2_000);
    cluster.isolates(2);
    cluster.passes(5_000);
    cluster.does(0, "inc", "inc 1");
    cluster.passes(5_000);
    assert!(!cluster.view(0).settled);
    cluster.world.handle(0, Event::Removed(site_name(2)));
    cluster.comes_to_live_at(&[0, 1]);
    cluster.does_where_it_lives(1, "set", "set 20");
    cluster.comes_to_live_at(&[0, 1]);
    let resource = cluster.resource.clone();
    let again = cluster.engine(0).can_change_holders(&resource, &asks(&[2], &[]));
    assert_eq!(again, Err(NotMovable::GivenUp(site_name(2))));
}

#[test]
fn what_cannot_be_asked_for_is_refused_with_words() {
    let mut cluster = five(&[0, 1]);
    let resource = cluster.resource.clone();
    let refused = |cluster: &Cluster, site: usize, asked| {
        cluster.engine(site).can_change_holders(&resource, &asked).unwrap_err().to_string()
    };
    assert_eq!(refused(&cluster, 0, asks(&[2], &[])), "resource `resource-id` is not known here");
    cluster.does(0, "set", "set 10");
    cluster.passes(5_000);
    assert_eq!(
        refused(&cluster, 0, asks(&[1], &[])),
        format!("site `{}` holds it already", site_name(1))
    );
    assert_eq!(
        refused(&cluster, 0, asks(&[], &[2])),
        format!("site `{}` does not hold it", site_name(2))
    );
    assert_eq!(
        refused(&cluster, 0, asks(&[], &[0, 1])),
        "one site at least has to hold it: extend it first, or name another site to stay"
    );
    assert_eq!(
        refused(&cluster, 0, asks(&[], &[])),
        "name the sites that are to hold `resource-id`, or to hold it no more"
    );
    cluster.moves(0, asks(&[], &[1]));
    cluster.lives_at(&[0]);
    assert_eq!(
        refused(&cluster, 1, asks(&[2], &[])),
        format!("resource `resource-id` is not held at this site; ask at `{}`", site_name(0))
    );
}
