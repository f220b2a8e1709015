//! How sites find each other over a network that delays what they say.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{Cluster, LinkLog, Network, PATIENCE, Way, replies, shell, until};
use cheops_api::{Client, Upload};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::pki_types::CertificateDer;
use tokio::net::UdpSocket;

/// What lies between two sites.
#[derive(Debug, Clone, Default)]
struct Line {
    /// Nothing gets through before so many calls were made.
    holds_calls: usize,
    /// Each way.
    takes: Duration,
    calls: BTreeSet<Vec<u8>>,
    held: Vec<Vec<u8>>,
}

impl Network for Line {
    fn crossing(&mut self, way: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        if way == Way::Back {
            return vec![datagram.to_vec()];
        }
        self.held.push(datagram.to_vec());
        self.calls.extend(connection_of(datagram));
        let is_open = self.calls.len() >= self.holds_calls;
        if is_open { std::mem::take(&mut self.held) } else { Vec::new() }
    }

    fn takes(&self) -> Duration {
        self.takes
    }
}

/// The name of the connection that a datagram of the handshake belongs to (RFC 9000, 17.2).
fn connection_of(datagram: &[u8]) -> Option<Vec<u8>> {
    let is_long = datagram.first()? & 0x80 != 0;
    let length = usize::from(*datagram.get(5)?);
    is_long.then(|| datagram.get(6..6 + length).map(<[u8]>::to_vec)).flatten()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_calls_under_way_at_once_one_becomes_the_link_and_stays() {
    let said = LinkLog::default();
    tracing::subscriber::set_global_default(said.clone()).unwrap();
    for line in [
        Line { holds_calls: 3, ..Line::default() },
        // There and back in more time than goes by between two calls.
        Line { takes: Duration::from_millis(300), ..Line::default() },
    ] {
        said.clear();

        let mut cluster = Cluster::over(line.clone(), |_| String::new()).await;
        for _ in 0..3 {
            let events = cluster.submit(0, "linked", &shell("site1 & site2", "add", "true")).await;
            assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")]);
        }

        assert_eq!(said.count("the link is up"), 2, "once at each site, {line:?}: {said:?}");
        assert_eq!(said.count("the link is down"), 0, "{line:?}: {said:?}");
        cluster.stop(0).await;
        cluster.stop(1).await;
    }
}

// On one thread, so that what it logs is not mixed with what other tests do.
#[tokio::test]
async fn two_agents_with_one_identity_are_noticed_and_do_not_take_turns() {
    let said = LinkLog::default();
    let _on_this_thread = tracing::subscriber::set_default(said.clone());
    let cluster = Cluster::of(2).await;
    let twin = cluster.start_twin(1).await;
    let seen_by = async |client: Client, site: &str| -> String {
        let sites = client.sites().await.unwrap().sites;
        let of = sites.into_iter().find(|other| other.site == site).unwrap();
        of.problem.unwrap_or_default()
    };
    until("the third site sees both", async || {
        let problem = seen_by(cluster.client(0), "site2").await;
        problem.starts_with("two agents show its identity") && problem.contains("stop one of them")
    })
    .await;
    let told = "the other side does not let this agent in";
    // The one that is kept is told as well, unless its link is just being made anew.
    until("who is not let in is told", async || said.count(told) >= 1).await;
    let again = "the other side turned this agent away again";
    until("one of them is not let in", async || said.count(again) >= 1).await;
    let before = said.count("the link is up");
    until("and stays outside", async || said.count(again) >= 3).await;
    // The one that is let in says so once, when it is sure that it stays.
    let after = said.count("the link is up");
    assert!(after <= before + 1, "{before} {after} {said:?}");
    assert!(said.count(told) <= 2, "{said:?}");
    let twins = Client::new(&format!("http://{}", twin.api_address())).unwrap();
    let holders = [seen_by(cluster.client(1), "site1").await, seen_by(twins, "site1").await];
    let apart = |problem: &&String| problem.contains("another agent shows the identity of this");
    assert!(holders.iter().filter(apart).count() <= 1, "{holders:?}");
    assert!(!seen_by(cluster.client(0), "site2").await.is_empty());

    twin.stop().await;
    let events = cluster.submit(0, "again", &shell("site1 & site2", "add", "true")).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")]);
}

// On one thread, so that what it logs is not mixed with what other tests do.
#[tokio::test]
async fn nobody_is_warned_of_a_file_that_is_merely_long_on_its_way() {
    let said = LinkLog::default();
    let _on_this_thread = tracing::subscriber::set_default(said.clone());
    let line = Line { takes: Duration::from_millis(300), ..Line::default() };
    let cluster = Cluster::over(line, |_| String::new()).await;
    // It takes several round trips, in which the other site asks for the operation again.
    let path = cluster.dir().join("long");
    std::fs::write(&path, vec![7; 4 << 20]).unwrap();
    let long = Upload { name: "long".into(), path };
    let submit = shell("site1 & site2", "add", "test -s {long}");
    let events = cluster.submit_with(0, "linked", &submit, &[long]).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")]);
    assert_eq!(said.count("the link is up"), 2, "what is said is heard: {said:?}");
    assert_eq!(said.count("a file could not be fetched"), 0, "{said:?}");
}

/// The first packet of a stranger's call.
async fn first_packet() -> Vec<u8> {
    let line = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let made = rcgen::generate_simple_self_signed(["site1".to_owned()]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()));
    let caller = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let _calling = caller.connect_with(config, line.local_addr().unwrap(), "site1").unwrap();
    let mut packet = vec![0; 2048];
    let length = line.recv(&mut packet).await.unwrap();
    packet.truncate(length);
    packet
}

/// The kind of packet that a call is answered by (RFC 9000, 17.2).
async fn answered_by(packet: &[u8], from: &str, mesh: SocketAddr) -> u8 {
    let line = UdpSocket::bind((from, 0)).await.unwrap();
    let mut answer = [0; 2048];
    let answering = async {
        loop {
            line.send_to(packet, mesh).await.unwrap();
            let answered = line.recv(&mut answer);
            // It may have been lost.
            if tokio::time::timeout(Duration::from_secs(1), answered).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, answering).await.unwrap();
    assert_ne!(answer[0] & 0x80, 0, "a packet of the handshake");
    (answer[0] & 0x30) >> 4
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_has_to_prove_its_address_before_a_handshake_begins_and_a_peer_need_not() {
    const INITIAL: u8 = 0;
    const RETRY: u8 = 3;
    let cluster = Cluster::of(2).await;
    let packet = first_packet().await;

    let mesh = cluster.mesh_address(0);
    assert_eq!(answered_by(&packet, "127.0.0.2", mesh).await, RETRY);
    assert_eq!(answered_by(&first_packet().await, "127.0.0.1", mesh).await, INITIAL);
}
