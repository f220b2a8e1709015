//! Requests to another site while the link there gives way to another one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

mod stage;

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use stage::{PATIENCE, Stage};
use tokio::net::{TcpListener, UdpSocket};

/// What lies between two sites.
#[derive(Debug, Clone, Default)]
struct Network(Arc<Mutex<Connections>>);

/// Connections, by the names that their datagrams bear.
#[derive(Debug, Default)]
struct Connections {
    seen: BTreeSet<Vec<u8>>,
    lost: BTreeSet<Vec<u8>>,
}

impl Network {
    /// From now on nothing of the connections that there are gets through. New ones do.
    fn lose_connections(&self) {
        let connections = &mut *self.0.lock().unwrap();
        connections.lost.append(&mut connections.seen);
    }

    fn lets_through(&self, datagram: &[u8]) -> bool {
        // Those of a handshake are longer (RFC 9000, 17.2 and 17.3).
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let Some(name) = datagram.get(1..9).filter(|_| is_short) else { return true };
        let connections = &mut *self.0.lock().unwrap();
        if connections.lost.contains(name) {
            return false;
        }
        connections.seen.insert(name.to_vec());
        true
    }

    async fn carry(self, near: UdpSocket, to: SocketAddr) {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        far.connect(to).await.unwrap();
        let (mut call, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
        let mut caller = None;
        loop {
            tokio::select! {
                got = near.recv_from(&mut call) => {
                    let (length, from) = got.unwrap();
                    caller = Some(from);
                    if self.lets_through(&call[..length]) {
                        let _refused = far.send(&call[..length]).await;
                    }
                }
                got = far.recv(&mut answer) => {
                    if let (Ok(length), Some(caller)) = (got, caller)
                        && self.lets_through(&answer[..length])
                    {
                        let _refused = near.send_to(&answer[..length], caller).await;
                    }
                }
            }
        }
    }
}

/// Two sites with a service each, of which the first calls over this network; nobody hears the
/// other's calls.
async fn over(network: &Network) -> Stage {
    let near = StdSocket::bind("127.0.0.1:0").unwrap();
    near.set_nonblocking(true).unwrap();
    let nobody = StdSocket::bind("127.0.0.1:0").unwrap();
    let (relay, nowhere) = (near.local_addr().unwrap(), nobody.local_addr().unwrap());
    let near = Mutex::new(Some(UdpSocket::from_std(near).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    let service = Router::new().fallback(any(|| async { "answered" }));
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    let more = |_| {
        format!(
            "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    let looks_at = |site, _, at| {
        if site == 1 {
            return nowhere;
        }
        let near = near.lock().unwrap().take().expect("there is one other site");
        tokio::spawn(network.clone().carry(near, at));
        relay
    };
    Stage::reached(2, more, looks_at).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_at_another_site_outlives_the_link_it_was_asked_by() {
    let network = Network::default();
    let stage = over(&network).await;
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let ask = async |method: Method| {
        let address = stage.proxy_address(0, 0);
        let request = Request::builder().method(method).uri(format!("http://{address}/"));
        let request = request.header("x-scope", "x: site2").body(Body::empty()).unwrap();
        let answer = tokio::time::timeout(PATIENCE, client.request(request)).await;
        let (head, body) = answer.expect("an answer").unwrap().into_parts();
        (head.status.as_u16(), body.collect().await.unwrap().to_bytes())
    };

    network.lose_connections();
    let (status, said) = ask(Method::GET).await;
    assert_eq!((status, said.as_ref()), (200, &b"answered"[..]), "{said:?}");

    network.lose_connections();
    let (status, said) = ask(Method::POST).await;
    assert_eq!(status, 502, "nobody knows whether it arrived: {said:?}");
}
