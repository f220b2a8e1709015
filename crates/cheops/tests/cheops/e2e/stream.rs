//! Increments that must not happen twice, from all sites at once, while agents are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cheops_api::{
    Action, Client, Decision, HttpAction, Payload, ReplyStatus, ResourceState, Submit, SubmitEvent,
    Wait,
};

use crate::e2e::cluster::{
    COUNTER_PORT, Cluster, Counter, Setup, first, shell, until, until_within,
};

const KILLS: usize = 10;
const CLIENTS: usize = 4;
/// Long work gets a long time.
const PATIENCE: Duration = Duration::from_secs(240);
const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "inc", "After": "inc", "Result": "take-both"}]}"#;

/// What the clients were told: the key of each operation that was accepted, with its name.
#[derive(Default)]
struct AcceptedOperations {
    accepted: Mutex<BTreeMap<String, String>>,
    count: AtomicUsize,
    broken_off: AtomicUsize,
}

/// How an increment is asked for.
type Increment = fn(key: &str) -> Submit;

fn by_http(key: &str) -> Submit {
    let action = Action::Http(HttpAction {
        service: "counter".to_owned(),
        method: "POST".to_owned(),
        path: format!("/add/{key}"),
        headers: Vec::new(),
        body: None,
    });
    Submit { action, wait: Wait::Local, ..shell("inc", "") }
}

/// One line of a file per increment.
fn by_shell(key: &str) -> Submit {
    Submit { wait: Wait::Local, ..shell("inc", format!("echo {key} >> book")) }
}

/// Hands in that many, whatever happens to the agent meanwhile.
async fn client(
    agent: Client,
    name: String,
    id: String,
    many: usize,
    make: Increment,
    accepted_operations: Arc<AcceptedOperations>,
) {
    let mut accepted = 0;
    let mut tried = 0;
    while accepted < many {
        tried += 1;
        let key = format!("{name}-{tried}");
        if let Some(operation) = accepted_as(&agent, &id, &make(&key)).await {
            accepted += 1;
            accepted_operations.accepted.lock().unwrap().insert(key, operation);
            accepted_operations.count.fetch_add(1, Ordering::SeqCst);
        } else {
            // It may have happened or not: it is never asked for again under this key.
            accepted_operations.broken_off.fetch_add(1, Ordering::SeqCst);
            let gone = Instant::now();
            while agent.readyz().await.is_err() {
                assert!(gone.elapsed() < PATIENCE, "the agent does not come back");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// The operation's name, if its acceptance was heard; waits for what follows.
async fn accepted_as(agent: &Client, id: &str, submit: &Submit) -> Option<String> {
    let mut lines = agent.submit(id, submit, &[]).await.ok()?;
    let mut name = None;
    while let Ok(Some(event)) = lines.next().await {
        if let SubmitEvent::Accepted { operation, .. } = event {
            name = Some(operation);
        }
    }
    name
}

/// What tells whether an operation really happened at a site.
trait Books {
    fn times(&self, cluster: &Cluster, site: u8, key: &str) -> u32;
    fn heard(&self, cluster: &Cluster, site: u8) -> BTreeMap<String, u32>;
    fn sum(&self, cluster: &Cluster, site: u8) -> u64;
    /// Whether nothing that a killed agent began is still on its way.
    fn is_quiet(&self, site: u8) -> bool;
}

struct Services(Vec<Counter>);

impl Services {
    fn of(&self, site: u8) -> &Counter {
        &self.0[usize::from(site) - 1]
    }
}

impl Books for Services {
    fn times(&self, _: &Cluster, site: u8, key: &str) -> u32 {
        self.of(site).times(key)
    }

    fn heard(&self, _: &Cluster, site: u8) -> BTreeMap<String, u32> {
        self.of(site).heard()
    }

    fn sum(&self, _: &Cluster, site: u8) -> u64 {
        self.of(site).sum()
    }

    fn is_quiet(&self, site: u8) -> bool {
        self.of(site).is_alone()
    }
}

struct Files;

impl Books for Files {
    fn times(&self, cluster: &Cluster, site: u8, key: &str) -> u32 {
        self.heard(cluster, site).get(key).copied().unwrap_or_default()
    }

    fn heard(&self, cluster: &Cluster, site: u8) -> BTreeMap<String, u32> {
        let mut heard = BTreeMap::new();
        for key in cluster[site].file("book").lines() {
            *heard.entry(key.to_owned()).or_default() += 1;
        }
        heard
    }

    fn sum(&self, cluster: &Cluster, site: u8) -> u64 {
        cluster[site].file("book").lines().count() as u64
    }

    // A starting agent ends what its earlier life began before it answers.
    fn is_quiet(&self, _: u8) -> bool {
        true
    }
}

/// The key of an operation, which its command or path ends with or holds.
fn key_of(payload: &Payload) -> String {
    match payload {
        Payload::Http(request) => request.path.trim_start_matches("/add/").to_owned(),
        Payload::Shell(shell) => shell.command.split(' ').nth(1).unwrap().to_owned(),
    }
}

/// The operator: looks up what became of the operations that are in doubt at a site, and says so.
/// Their names.
async fn settle(cluster: &Cluster, site: u8, ids: &[String], books: &impl Books) -> Vec<String> {
    let mut settled = Vec::new();
    for id in ids {
        until("nothing is in doubt", async || {
            let Some(resource) = cluster[site].resource(id).await else { return false };
            let Some(awaited) = resource.awaits else { return true };
            // The agent may have had a word already that it had no time to carry out.
            if !settled.contains(&awaited) {
                let decision = decision(cluster, site, id, &awaited, books).await;
                if cluster[site].client().settle(id, &awaited, decision, None).await.is_ok() {
                    settled.push(awaited);
                }
            }
            false
        })
        .await;
    }
    settled
}

async fn decision(
    cluster: &Cluster,
    site: u8,
    id: &str,
    operation: &str,
    books: &impl Books,
) -> Decision {
    let operations = cluster[site].operations(id).await;
    let operation = operations.iter().find(|known| known.id == operation).unwrap();
    let reply = operation.replies.get(&cluster[site].name);
    assert!(reply.is_some_and(|reply| reply.status == ReplyStatus::InDoubt), "{operation:?}");
    match books.times(cluster, site, &key_of(&operation.payload)) {
        0 => Decision::Rerun,
        _ => Decision::Skip,
    }
}

/// That many increments of these counters, from all sites, agents being killed meanwhile.
async fn stream(
    mut cluster: Cluster,
    counters: usize,
    many: usize,
    make: Increment,
    books: impl Books,
) {
    let ids: Vec<String> = (0..counters).map(|n| format!("counter-{n}")).collect();
    for id in &ids {
        let begin = first(make(&format!("begin-{id}")), &cluster.everywhere(), MATRIX);
        cluster[1].does(id, &begin).await;
        cluster.converges(id).await;
    }
    let began = Instant::now();
    let accepted_operations = Arc::new(AcceptedOperations::default());
    let each = many / (usize::from(cluster.count()) * CLIENTS);
    let mut clients = tokio::task::JoinSet::new();
    for site in cluster.sites() {
        for number in 0..CLIENTS {
            let (agent, name) = (site.client().clone(), format!("{}-{number}", site.name));
            let id = ids[number % ids.len()].clone();
            clients.spawn(client(agent, name, id, each, make, Arc::clone(&accepted_operations)));
        }
    }
    let total = each * usize::from(cluster.count()) * CLIENTS;
    let mut in_doubt = 0;
    for kill in 1..=KILLS {
        until_within(PATIENCE, "the stream goes on", async || {
            accepted_operations.count.load(Ordering::SeqCst) >= kill * total / (KILLS + 1)
        })
        .await;
        let site = u8::try_from(kill % usize::from(cluster.count()) + 1).unwrap();
        let accepted = accepted_operations.count.load(Ordering::SeqCst);
        eprintln!(
            "{accepted} accepted after {:.1} s; killing {site}",
            began.elapsed().as_secs_f64()
        );
        cluster[site].kill();
        until("what was on its way has arrived", async || books.is_quiet(site)).await;
        cluster.restart(site).await;
        in_doubt += settle(&cluster, site, &ids, &books).await.len();
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    eprintln!("{total} accepted after {:.1} s", began.elapsed().as_secs_f64());
    for id in &ids {
        for number in cluster.numbers() {
            until_within(PATIENCE, "all is run", async || {
                let state = cluster[number].state(id).await;
                assert_ne!(state, Some(ResourceState::InDoubt), "not settled at site{number}");
                state == Some(ResourceState::Converged)
            })
            .await;
        }
    }
    eprintln!(
        "run everywhere after {:.1} s; {in_doubt} in doubt, {} broken off",
        began.elapsed().as_secs_f64(),
        accepted_operations.broken_off.load(Ordering::SeqCst)
    );
    check(&cluster, &accepted_operations, &ids, &books, total).await;
}

/// Everywhere the same, each once, and none lost of those that were accepted.
async fn check(
    cluster: &Cluster,
    accepted_operations: &AcceptedOperations,
    ids: &[String],
    books: &impl Books,
    total: usize,
) {
    let accepted = accepted_operations.accepted.lock().unwrap().clone();
    assert_eq!(accepted.len(), total);
    let at_first = books.heard(cluster, 1);
    for number in cluster.numbers() {
        let heard = books.heard(cluster, number);
        let twice: Vec<_> = heard.iter().filter(|(_, times)| **times != 1).collect();
        assert!(twice.is_empty(), "site{number} ran twice: {twice:?}");
        let lost: Vec<_> = accepted.iter().filter(|(key, _)| !heard.contains_key(*key)).collect();
        assert!(lost.is_empty(), "site{number} lost {} of them: {lost:?}", lost.len());
        assert!(heard.keys().eq(at_first.keys()), "site{number} ran others than site1");
        assert_eq!(books.sum(cluster, number), at_first.len() as u64);
        assert!(
            at_first.len()
                <= total + ids.len() + accepted_operations.broken_off.load(Ordering::SeqCst)
        );
    }
    let names: BTreeSet<&String> = accepted.values().collect();
    assert_eq!(names.len(), total, "no name was given twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_requests_happen_once_each_at_every_site_though_agents_are_killed() {
    let service =
        format!("[[services]]\nname = \"counter\"\nupstream = \"http://__HOST__:{COUNTER_PORT}\"");
    let mut cluster = Setup::sites(3).config(&service).set().await;
    let services = Services(cluster.sites().map(|site| Counter::listen(site.host)).collect());
    cluster.start_all().await;
    stream(cluster, 1, 10_000, by_http, services).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_commands_happen_once_each_at_every_site_though_agents_are_killed() {
    let cluster = Setup::sites(3).start().await;
    stream(cluster, 4, 1_000, by_shell, Files).await;
}
