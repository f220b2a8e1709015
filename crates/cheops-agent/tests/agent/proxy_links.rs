//! Requests to another site while the link there gives way to another one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, Network, PATIENCE, Way};
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

/// What lies between two sites.
#[derive(Debug, Clone, Default)]
struct Line(Arc<Mutex<Connections>>);

/// Connections, by the names that their datagrams bear.
#[derive(Debug, Default)]
struct Connections {
    seen: BTreeSet<Vec<u8>>,
    lost: BTreeSet<Vec<u8>>,
}

impl Line {
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
}

impl Network for Line {
    fn crossing(&mut self, _: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        if self.lets_through(datagram) { vec![datagram.to_vec()] } else { Vec::new() }
    }
}

/// Two sites with a service each.
async fn over(line: &Line) -> Cluster {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    let service = Router::new().fallback(any(|| async { "answered" }));
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    let more = |_| {
        format!(
            "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    Cluster::over(line.clone(), more).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_at_another_site_outlives_the_link_it_was_asked_by() {
    let line = Line::default();
    let cluster = over(&line).await;
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let ask = async |method: Method| {
        let address = cluster.proxy_address(0, 0);
        let request = Request::builder().method(method).uri(format!("http://{address}/"));
        let request = request.header("x-scope", "x: site2").body(Body::empty()).unwrap();
        let answer = tokio::time::timeout(PATIENCE, client.request(request)).await;
        let (head, body) = answer.expect("an answer").unwrap().into_parts();
        (head.status.as_u16(), body.collect().await.unwrap().to_bytes())
    };

    line.lose_connections();
    let (status, said) = ask(Method::GET).await;
    assert_eq!((status, said.as_ref()), (200, &b"answered"[..]), "{said:?}");

    line.lose_connections();
    let (status, said) = ask(Method::POST).await;
    assert_eq!(status, 502, "nobody knows whether it arrived: {said:?}");
}
