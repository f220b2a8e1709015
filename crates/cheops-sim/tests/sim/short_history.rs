//! A history that nothing overwrites and that stays short: a state which all sites verified stands for it.

use cheops_core::engine::{Agreement, WaitFor};
use cheops_sim::Setup;

use crate::cluster::Cluster;

const SUM: &str = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}],
    "State": {"Read": "look", "Write": "put"}}"#;

/// Entries that a site's engine holds, and records that its disk does.
fn kept(cluster: &Cluster, site: usize) -> (usize, usize) {
    let view = cluster.view(site);
    (view.operations.len(), cluster.world.sites[site].disk.compacted().len())
}

fn is_verified(cluster: &Cluster, site: usize) -> bool {
    let engine = cluster.world.sites[site].engine.as_ref().unwrap();
    let proof = engine.outline(&cluster.resource).and_then(|outline| outline.proof);
    matches!(proof.unwrap().agreement, Agreement::Verified { .. })
}

fn increments(cluster: &mut Cluster, count: usize) {
    for at in 0..count {
        // Who says the config anew has all of it looked at anew.
        let again = !cluster.world.operations.is_empty();
        let mut submission = cluster.submission("inc", "inc 1");
        submission.config.take_if(|_| again);
        submission.wait = WaitFor::Nothing;
        cluster.world.submit(at % 2, submission).unwrap();
        if at % 100 == 99 {
            cluster.passes(50);
        }
    }
    cluster.passes(8_000);
}

#[test]
fn increments_of_what_is_never_set_keep_little_and_a_lost_disk_comes_back_right() {
    let setup = Setup {
        check: false,
        command_ms: (1, 1),
        adjust: |settings| settings.short_history_from = 1_000,
        ..Setup::new(2, 1)
    };
    let mut cluster = Cluster::with(setup, SUM);
    for _ in 0..5 {
        increments(&mut cluster, 1_200);
    }
    assert_eq!(cluster.value_everywhere(), "6000");
    for site in 0..2 {
        let (operations, records) = kept(&cluster, site);
        assert!(operations == 0 && records < 40, "{operations} operations, {records} records");
        assert!(is_verified(&cluster, site));
    }
    // A site that lost all it had comes back right, and knows that it is.
    cluster.world.lose_disk(1, true);
    cluster.passes(30_000);
    cluster.converges();
    assert_eq!(cluster.value_everywhere(), "6000");
    assert!(is_verified(&cluster, 0) && is_verified(&cluster, 1));
    increments(&mut cluster, 10);
    assert_eq!(cluster.value_everywhere(), "6010");
}
