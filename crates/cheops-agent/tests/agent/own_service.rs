//! The way to the site's own service: by how many connections, and where it ends if it leads back.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::cluster::{PATIENCE, until};
use crate::sample_service::{Application, SCOPE, listen, service, three};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request that goes round is let through so often, so that a test which fails comes to an end.
const MOST_OPERATIONS: usize = 8;

/// Passes connections on to an address that nobody sees in a config: a balancer, or a name.
struct Balancer {
    address: SocketAddr,
    leads_to: Arc<OnceLock<SocketAddr>>,
    connections: Arc<AtomicUsize>,
    operations: Operations,
}

/// The operations whose requests came by.
type Operations = Arc<Mutex<BTreeSet<String>>>;

impl Balancer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let started = Self {
            address: listener.local_addr().unwrap(),
            leads_to: Arc::default(),
            connections: Arc::default(),
            operations: Arc::default(),
        };
        let (leads_to, connections) = (started.leads_to.clone(), started.connections.clone());
        let operations = started.operations.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let Some(to) = leads_to.get() else { continue };
                tokio::spawn(pass_on(client, *to, operations.clone()));
            }
        });
        started
    }

    fn lead_to(&self, address: SocketAddr) {
        self.leads_to.set(address).unwrap();
    }

    fn operations(&self) -> BTreeSet<String> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass_on(client: TcpStream, to: SocketAddr, operations: Operations) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    let (mut asks, mut hears) = client.into_split();
    let (mut answers, mut is_asked) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut hears).await });
    let (mut heard, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    while let Ok(read @ 1..) = asks.read(&mut piece).await {
        heard.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        let named = text.lines().filter_map(|line| line.strip_prefix("x-cheops-operation: "));
        let seen = {
            let mut seen = operations.lock().unwrap_or_else(PoisonError::into_inner);
            seen.extend(named.map(str::to_owned));
            seen.len()
        };
        if seen > MOST_OPERATIONS || is_asked.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}

/// Three sites, whose services are behind these balancers.
async fn behind(balancers: &[Balancer; 3]) -> Application {
    let upstreams = [0, 1, 2].map(|site: usize| balancers[site].address);
    Application::before("", three(), &upstreams).await
}

async fn balancers() -> [Balancer; 3] {
    [Balancer::start().await, Balancer::start().await, Balancer::start().await]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_leads_back_to_its_proxy_ends_a_replicated_request_after_one_round() {
    let balancers = balancers().await;
    let application = behind(&balancers).await;
    balancers[0].lead_to(application.cluster.proxy_address(0, 0));
    balancers[1].lead_to(listen(service(&application.services[1])).await);

    let body = json!({ "name": "web" });
    let asking = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body);
    let answer = tokio::time::timeout(PATIENCE, asking).await.expect("it comes to an end");

    assert_eq!(balancers[0].operations().len(), 1, "{:?}", balancers[0].operations());
    assert_eq!(answer.status, 508, "{}", answer.json());
    assert!(answer.json()["title"].as_str().unwrap().contains("in circles"), "{}", answer.json());
    until("the other site has carried it out", async || application.count(1) == 1).await;
    assert_eq!(balancers[1].operations(), balancers[0].operations(), "there is one operation");
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_that_lead_to_each_others_proxies_end_a_replicated_request_too() {
    let balancers = balancers().await;
    let application = behind(&balancers).await;
    balancers[0].lead_to(application.cluster.proxy_address(1, 0));
    balancers[1].lead_to(application.cluster.proxy_address(0, 0));

    let body = json!({ "name": "web" });
    let asking = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body);
    let answer = tokio::time::timeout(PATIENCE, asking).await.expect("it comes to an end");

    assert_eq!(answer.status, 508, "{}", answer.json());
    let all: BTreeSet<String> = balancers.iter().flat_map(Balancer::operations).collect();
    for operation in &all {
        for site in [0, 1] {
            let here = &balancers[site];
            until("each site has asked", async || here.operations().contains(operation)).await;
        }
    }
    let all: BTreeSet<String> = balancers.iter().flat_map(Balancer::operations).collect();
    assert!(all.len() <= 2, "no operation makes others for ever: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replicated_request_takes_one_connection() {
    let balancers = balancers().await;
    let application = behind(&balancers).await;
    for site in [0, 1] {
        balancers[site].lead_to(listen(service(&application.services[site])).await);
    }
    let id = application.create(0, "web").await;

    let shown = async || application.cluster.client(0).resource(&id).await.unwrap();
    until("both have made it", async || {
        shown().await.replicant.is_some_and(|it| it.local_ids.len() == 2)
    })
    .await;
    let connections = [0, 1].map(|site: usize| balancers[site].connections.load(Ordering::SeqCst));
    assert_eq!(connections, [1, 1]);
}
