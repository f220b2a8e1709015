//! `around` by the distances that are measured, where one site is far from the others.

use crate::cluster;
use std::time::Duration;

use crate::cluster::{Cluster, Network, PATIENCE, Way};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

/// The one that is far, whose name comes before that of one that is near.
const FAR: usize = 1;

/// The way to it and from it.
struct LongWay;

impl Network for LongWay {
    fn crossing(&mut self, _: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        vec![datagram.to_vec()]
    }

    fn takes(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// Three sites, of which the first has no service that works.
async fn sites() -> Cluster {
    let says_its_name = |name: &'static str| {
        cluster::service(move |_| {
            let length = name.len();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}").into_bytes()
        })
    };
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let upstreams = [nobody, says_its_name("site2").await, says_its_name("site3").await];
    let service = |site: usize| {
        let upstream = upstreams[site];
        format!(
            "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
        )
    };
    let looks_at = |site, other, at| if [site, other].contains(&FAR) { LongWay.to(at) } else { at };
    Cluster::reached(3, service, looks_at).await
}

/// Asks at the first site; the status, and what is said or why nothing is.
async fn ask(cluster: &Cluster, scope: &str) -> (u16, String) {
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder().uri(format!("http://{}/", cluster.proxy_address(0, 0)));
    let request = request.header("x-scope", scope).body(Body::empty()).unwrap();
    let answer = tokio::time::timeout(PATIENCE, client.request(request)).await;
    let (head, body) = answer.expect("an answer").unwrap().into_parts();
    let said = body.collect().await.unwrap().to_bytes();
    let why = head.headers.get("x-cheops-error").map(|code| code.to_str().unwrap().to_owned());
    (head.status.as_u16(), why.unwrap_or(String::from_utf8_lossy(&said).into_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_too_far_is_not_asked_whatever_its_name_and_whoever_else_is_gone() {
    let mut cluster = sites().await;
    let near = (200, "site3".to_owned());
    let far = (200, "site2".to_owned());
    assert_eq!(ask(&cluster, "x: around(site1, 200ms)").await, near);
    assert_eq!(ask(&cluster, "x: around(site1, 30s)").await, near, "the nearest comes first");
    assert_eq!(ask(&cluster, "x: around(site3, 200ms)").await, near, "as that site measured it");
    assert_eq!(ask(&cluster, "x: around(site2, 200ms)").await, far, "nobody is far from itself");

    cluster.stop(2).await;
    let (status, code) = ask(&cluster, "x: around(site1, 200ms)").await;
    assert_eq!((status, code.as_str()), (503, "unreachable"), "nobody near enough works");
    assert_eq!(ask(&cluster, "x: around(site1, 30s)").await, far);
}
