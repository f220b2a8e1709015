//! What piles up while the sites are apart is caught up with, however long they were.

use std::time::{Duration, Instant};

use cheops_api::{ResourceState, Wait};

use crate::e2e::cluster::{Cluster, Setup, first, shell, until, waiting_for};

const RESOURCES: usize = 100;
const OPERATIONS: usize = 1_000;
const AT_ONCE: usize = 8;
/// Longer than anything of a link outlasts: silence on a connection (5 s), a call (4 s), a question
/// (10 s). After such a cut nothing goes on; every link and every question is a new one.
const ALL_GIVEN_UP: Duration = Duration::from_secs(12);
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "add", "After": "add", "Result": "take-both"}]}"#;

fn id(resource: usize, round: &str) -> String {
    format!("{round}-{resource}")
}

async fn prepare(cluster: &Cluster, round: &str) {
    for resource in 0..RESOURCES {
        let begin = first(shell("add", "echo first >> __ID__"), &cluster.everywhere(), MATRIX);
        cluster[1].does(&id(resource, round), &waiting_for(Wait::Local, begin)).await;
    }
    for resource in 0..RESOURCES {
        cluster.converges(&id(resource, round)).await;
    }
}

/// All operations, spread over sites and resources, several at a time.
async fn hand_in(cluster: &Cluster, round: &str) {
    let mut handing_in = tokio::task::JoinSet::new();
    for client in 0..AT_ONCE {
        let agents: Vec<_> = cluster.sites().map(|site| site.client().clone()).collect();
        let round = round.to_owned();
        handing_in.spawn(async move {
            for operation in (0..OPERATIONS).filter(|operation| operation % AT_ONCE == client) {
                let id = id(operation % RESOURCES, &round);
                // Each resource gets some at every site.
                let agent = &agents[(operation + operation / RESOURCES) % agents.len()];
                let add = shell("add", format!("echo {operation} >> __ID__"));
                let add = waiting_for(Wait::None, add);
                let mut lines = agent.submit(&id, &add, &[]).await.unwrap();
                while lines.next().await.unwrap().is_some() {}
            }
        });
    }
    while let Some(ended) = handing_in.join_next().await {
        ended.unwrap();
    }
}

fn lines(cluster: &Cluster, site: u8, round: &str) -> usize {
    let of = |resource| cluster[site].file(&id(resource, round)).lines().count();
    (0..RESOURCES).map(of).sum()
}

/// The cut lasts until every site has noticed it, and so long at least.
async fn catches_up(cluster: &Cluster, round: &str, cut_for: Duration) {
    prepare(cluster, round).await;
    cluster.cut();
    let began = Instant::now();
    hand_in(cluster, round).await;
    let handed_in = began.elapsed();
    cluster.nobody_hears().await;
    tokio::time::sleep(cut_for.saturating_sub(began.elapsed())).await;
    let all = RESOURCES + OPERATIONS;
    for site in cluster.numbers() {
        assert!(lines(cluster, site, round) < all, "site{site} has heard of the others");
    }
    let cut = began.elapsed();
    cluster.heal();
    let healed = Instant::now();
    for site in cluster.numbers() {
        until("every operation was run everywhere", async || lines(cluster, site, round) == all)
            .await;
    }
    let run = healed.elapsed();
    for resource in 0..RESOURCES {
        cluster.converges(&id(resource, round)).await;
    }
    eprintln!(
        "{OPERATIONS} operations handed in within {:.1} s, cut for {:.1} s: all run everywhere \
         {:.2} s after the heal, known so {:.2} s after it",
        handed_in.as_secs_f64(),
        cut.as_secs_f64(),
        run.as_secs_f64(),
        healed.elapsed().as_secs_f64()
    );
    check(cluster, round).await;
}

async fn check(cluster: &Cluster, round: &str) {
    for site in cluster.sites() {
        for resource in 0..RESOURCES {
            let text = site.file(&id(resource, round));
            let mut said: Vec<&str> = text.lines().collect();
            said.sort_unstable();
            let mut want: Vec<String> = (resource..OPERATIONS)
                .step_by(RESOURCES)
                .map(|operation| operation.to_string())
                .chain(["first".to_owned()])
                .collect();
            want.sort_unstable();
            assert_eq!(said, want, "{} at {}", id(resource, round), site.name);
        }
        let states = site.resources().await;
        assert!(states.iter().all(|resource| resource.state == ResourceState::Converged));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_operations_made_during_a_cut_run_everywhere_after_it_however_long_it_was() {
    let cluster = Setup::sites(3).start().await;
    catches_up(&cluster, "short", Duration::ZERO).await;
    catches_up(&cluster, "long", ALL_GIVEN_UP).await;
}
