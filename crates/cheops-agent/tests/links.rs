//! How sites find each other over a network that delays what they say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

mod stage;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stage::{Stage, replies, shell};
use tokio::net::UdpSocket;
use tracing::field::{Field, Visit};
use tracing::span;

/// What the agents of this process log of their links.
#[derive(Debug, Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn count(&self, message: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|said| *said == message).count()
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for Said {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("cheops_agent::peers")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// What lies between two sites.
#[derive(Debug, Clone, Copy)]
struct Network {
    /// Nothing gets through before so many calls were made.
    holds_calls: usize,
    /// Each way.
    takes: Duration,
}

impl Network {
    async fn carry(self, near: UdpSocket, to: SocketAddr) {
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        far.connect(to).await.unwrap();
        let near = Arc::new(near);
        let (mut held, mut seen) = (Vec::new(), BTreeSet::new());
        let (mut call, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
        let mut caller = None;
        loop {
            tokio::select! {
                got = near.recv_from(&mut call) => {
                    let (length, from) = got.unwrap();
                    caller = Some(from);
                    held.push(call[..length].to_vec());
                    seen.extend(connection_of(&call[..length]));
                    if seen.len() >= self.holds_calls {
                        held.drain(..).for_each(|datagram| self.send(datagram, &far, to));
                    }
                }
                got = far.recv(&mut answer) => {
                    if let (Ok(length), Some(caller)) = (got, caller) {
                        self.send(answer[..length].to_vec(), &near, caller);
                    }
                }
            }
        }
    }

    fn send(self, datagram: Vec<u8>, by: &Arc<UdpSocket>, to: SocketAddr) {
        let by = Arc::clone(by);
        tokio::spawn(async move {
            tokio::time::sleep(self.takes).await;
            let _refused = by.send_to(&datagram, to).await;
        });
    }
}

/// The name of the connection that a datagram of the handshake belongs to (RFC 9000, 17.2).
fn connection_of(datagram: &[u8]) -> Option<Vec<u8>> {
    let is_long = datagram.first()? & 0x80 != 0;
    let length = usize::from(*datagram.get(5)?);
    is_long.then(|| datagram.get(6..6 + length).map(<[u8]>::to_vec)).flatten()
}

/// Two sites, of which the first calls over this network; nobody hears the other's calls.
async fn over(network: Network) -> Stage {
    let near = StdSocket::bind("127.0.0.1:0").unwrap();
    near.set_nonblocking(true).unwrap();
    let nobody = StdSocket::bind("127.0.0.1:0").unwrap();
    let (relay, nowhere) = (near.local_addr().unwrap(), nobody.local_addr().unwrap());
    let near = Mutex::new(Some(UdpSocket::from_std(near).unwrap()));
    Stage::reached(
        2,
        |_| String::new(),
        |site, _, at| {
            if site == 1 {
                return nowhere;
            }
            let near = near.lock().unwrap().take().expect("there is one other site");
            tokio::spawn(network.carry(near, at));
            relay
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_calls_under_way_at_once_one_becomes_the_link_and_stays() {
    let said = Said::default();
    tracing::subscriber::set_global_default(said.clone()).unwrap();
    for network in [
        Network { holds_calls: 3, takes: Duration::ZERO },
        // There and back in more time than goes by between two calls.
        Network { holds_calls: 0, takes: Duration::from_millis(300) },
    ] {
        said.0.lock().unwrap().clear();

        let mut stage = over(network).await;
        for _ in 0..3 {
            let events = stage.submit(0, "linked", &shell("site1 & site2", "add", "true")).await;
            assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")]);
        }

        assert_eq!(said.count("the link is up"), 2, "once at each site, {network:?}: {said:?}");
        assert_eq!(said.count("the link is down"), 0, "{network:?}: {said:?}");
        stage.stop(0).await;
        stage.stop(1).await;
    }
}
