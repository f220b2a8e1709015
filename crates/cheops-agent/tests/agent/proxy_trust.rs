//! What a proxy believes of those who ask: whose ids stand for a scope, which hosts and sites are
//! served, and what nobody but an agent may say.

use crate::cluster;
use crate::sample_service;
use std::net::SocketAddr;

use crate::cluster::Cluster;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Version;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const X: usize = 0;
const Y: usize = 1;
/// Where a client's request to x runs, and the calls that x then makes to y.
const SCOPE: &str = "X-Scope: {x: site1, y: site2}\r\n";

/// A service that says its name and shows what it was sent, the id of the request in a header too.
async fn mirror(name: String) -> SocketAddr {
    cluster::service(move |head| {
        let id = value_in(head, "x-request-id");
        let body = format!("{name}\n{head}");
        format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Request-ID: {id}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    })
    .await
}

/// The value of a header in a text.
fn value_in(text: &str, name: &str) -> String {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value).unwrap_or_default()
}

/// What a client hears: the head of the answer, and its body.
struct Heard {
    head: String,
    body: String,
}

impl Heard {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn error(&self) -> (u16, String) {
        (self.status(), value_in(&self.head, "x-cheops-error"))
    }

    /// The service that answered.
    fn by(&self) -> &str {
        self.body.lines().next().unwrap_or_default()
    }
}

/// Sends a request by a connection of its own.
async fn ask(address: SocketAddr, headers: &str) -> Heard {
    let mut client = TcpStream::connect(address).await.unwrap();
    send(&mut client, &format!("Connection: close\r\n{headers}")).await
}

async fn send(client: &mut TcpStream, headers: &str) -> Heard {
    let host = if headers.contains("Host: ") { "" } else { "Host: x\r\n" };
    let request = format!("GET /seen HTTP/1.1\r\n{host}{headers}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&heard).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = value_in(head, "content-length").parse().unwrap_or(0);
            if body.len() >= length {
                return Heard { head: head.to_owned(), body: body.to_owned() };
            }
        }
        let read = client.read_buf(&mut heard);
        let read = tokio::time::timeout(cluster::PATIENCE, read).await.expect("an answer").unwrap();
        assert_ne!(read, 0, "it breaks off: {text}");
    }
}

/// Two sites with the services x and y each, with more said of them.
async fn two(more: &str) -> Cluster {
    let mut mirrors = Vec::new();
    for name in ["x of site1", "y of site1", "x of site2", "y of site2"] {
        mirrors.push(mirror(name.to_owned()).await);
    }
    let services = |site: usize| {
        let service = |name: &str, upstream: SocketAddr| {
            format!(
                "[[services]]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\n\
                 upstream = \"http://{upstream}\"\n{more}\n"
            )
        };
        service("x", mirrors[2 * site]) + &service("y", mirrors[2 * site + 1])
    };
    Cluster::each(2, services).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_agent_whose_scope_is_forgotten_is_refused_and_not_run_here() {
    let mut cluster = two("").await;
    let seen = ask(cluster.proxy_address(0, X), SCOPE).await;
    let id = format!("X-Request-ID: {}\r\n", value_in(&seen.body, "x-request-id"));
    assert_eq!(ask(cluster.proxy_address(0, Y), &id).await.by(), "y of site2");

    // The service goes on with its work while its agent is started anew.
    cluster.stop(0).await;
    cluster.start(0).await;
    cluster::until("the other site is heard", async || {
        ask(cluster.proxy_address(0, Y), "X-Scope: y: site2\r\n").await.status() == 200
    })
    .await;
    let refused = ask(cluster.proxy_address(0, Y), &id).await;
    assert_eq!(refused.error(), (409, "forgotten-scope".to_owned()), "{}", refused.body);
    assert!(refused.body.contains("not remembered"), "{}", refused.body);

    ask(cluster.proxy_address(0, X), SCOPE).await;
    assert_eq!(ask(cluster.proxy_address(0, Y), &id).await.by(), "y of site2", "it is known again");
    let strange = "X-Request-ID: 0a1b2c3d-4e5f-4607-8819-2a3b4c5d6e7f\r\n";
    assert_eq!(
        ask(cluster.proxy_address(0, Y), strange).await.by(),
        "y of site1",
        "not an agent's"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_client_chose_is_nothing_to_others_and_the_services_calls_are_known_all_the_same()
 {
    let cluster = two("").await;
    let (x, y) = (cluster.proxy_address(0, X), cluster.proxy_address(0, Y));
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let ids = [
        ("X-Request-ID", "x-request-id", "chosen-by-me".to_owned()),
        (
            "X-Openstack-Request-Id",
            "x-openstack-request-id",
            "req-4bf92f35-77b3-4da6-a3ce-929d0e0e4736".to_owned(),
        ),
        ("traceparent", "traceparent", format!("00-{trace}-00f067aa0ba902b7-01")),
        ("b3", "b3", format!("{trace}-00f067aa0ba902b7-1")),
        ("X-B3-TraceId", "x-b3-traceid", trace.to_owned()),
    ];
    for (written, name, chosen) in ids {
        let chosen = format!("{written}: {chosen}\r\n");
        let mut client = TcpStream::connect(x).await.unwrap();
        let seen = send(&mut client, &format!("{SCOPE}{chosen}")).await;
        assert_eq!(seen.by(), "x of site1");

        let passed_on = format!("{written}: {}\r\n", value_in(&seen.body, name));
        assert_ne!(passed_on, chosen, "the service gets one that nobody can guess");
        assert_eq!(ask(y, &passed_on).await.by(), "y of site2", "calls of the service");
        assert_eq!(ask(y, &chosen).await.by(), "y of site1", "somebody who repeats {chosen}");
        assert_eq!(ask(x, &chosen).await.by(), "x of site1");
        if name == "x-request-id" {
            let given_back = value_in(&seen.head, name);
            assert_eq!(given_back, "chosen-by-me", "the client hears of the id that it chose");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_client_chose_is_good_for_who_has_its_token_however_the_scope_is_written() {
    let cluster = two("").await;
    let (x, y) = (cluster.proxy_address(0, X), cluster.proxy_address(0, Y));
    let mine = "X-Request-ID: chosen-by-me\r\nAuthorization: Bearer mine\r\n";
    for scope in ["{x: site1, y: site2}", "{ y:site2,x:site1 }", "{x:(site1),y:site2}"] {
        let heard = ask(x, &format!("X-Scope: {scope}\r\n{mine}")).await;
        assert_eq!(heard.by(), "x of site1", "{}", heard.body);
    }
    assert_eq!(ask(y, mine).await.by(), "y of site2", "three ways to write one scope");
    let others = "X-Request-ID: chosen-by-me\r\nAuthorization: Bearer another\r\n";
    assert_eq!(ask(y, others).await.by(), "y of site1");
    let nobodys = "X-Request-ID: chosen-by-me\r\n";
    assert_eq!(ask(y, nobodys).await.by(), "y of site1");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_clients_choose_count_for_all_where_they_are_trusted() {
    let cluster = two("trust_correlation = true").await;
    let chosen = "X-Request-ID: chosen-by-me\r\n";
    let seen = ask(cluster.proxy_address(0, X), &format!("{SCOPE}{chosen}")).await;
    assert_eq!(value_in(&seen.body, "x-request-id"), "chosen-by-me");
    assert_eq!(ask(cluster.proxy_address(0, Y), chosen).await.by(), "y of site2");
    // As well at the site that another one asked.
    let scope = "X-Scope: {x: site2, y: site1}\r\n";
    let other = "X-Request-ID: chosen-by-another\r\n";
    let seen = ask(cluster.proxy_address(0, X), &format!("{scope}{other}")).await;
    assert_eq!(seen.by(), "x of site2");
    assert_eq!(ask(cluster.proxy_address(1, Y), other).await.by(), "y of site1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_knows_the_calls_of_its_own_service_also_when_another_site_asked_it() {
    let cluster = two("").await;
    let scope = "X-Scope: {x: site2, y: site1}\r\nX-Request-ID: chosen-by-me\r\n";
    let seen = ask(cluster.proxy_address(0, X), scope).await;
    assert_eq!(
        (seen.by(), value_in(&seen.head, "x-request-id").as_str()),
        ("x of site2", "chosen-by-me")
    );
    let id = format!("X-Request-ID: {}\r\n", value_in(&seen.body, "x-request-id"));
    assert_eq!(ask(cluster.proxy_address(1, Y), &id).await.by(), "y of site1");
    assert_eq!(
        ask(cluster.proxy_address(1, Y), "X-Request-ID: chosen-by-me\r\n").await.by(),
        "y of site2"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_serves_only_the_hosts_and_origins_that_it_is_told_to() {
    let more = "hosts = [\"image.example\"]\norigins = [\"https://ui.example\"]";
    let cluster = two(more).await;
    let x = cluster.proxy_address(0, X);
    for (headers, expected) in [
        ("Host: image.example:19292\r\n", (200, "")),
        ("Host: image.example\r\nOrigin: https://ui.example\r\n", (200, "")),
        ("Host: rebound.example\r\n", (421, "wrong-host")),
        ("Host: image.example\r\nOrigin: https://evil.example\r\n", (403, "wrong-origin")),
        ("Host: image.example\r\nOrigin: null\r\n", (403, "wrong-origin")),
    ] {
        let heard = ask(x, headers).await;
        let (status, code) = expected;
        assert_eq!(heard.error(), (status, code.to_owned()), "{headers}{}", heard.body);
    }
    // By HTTP/2 the authority is the host.
    let mut client = Client::builder(TokioExecutor::new());
    let client: Client<HttpConnector, Empty<&[u8]>> = client.http2_only(true).build_http();
    let request = http::Request::builder().uri(format!("http://{x}/seen")).body(Empty::new());
    let answer = client.request(request.unwrap()).await.unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (Version::HTTP_2, 421));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("127.0.0.1"), "{body:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_a_proxy_is_offered_to_other_sites_only_if_it_says_so() {
    for (offer, expected) in [("", (403, "not-offered")), ("offer = true\n", (200, ""))] {
        let (here, there) = (mirror("here".to_owned()).await, mirror("there".to_owned()).await);
        let service = |site: usize| match site {
            0 => format!(
                "[[services]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{here}\"\n"
            ),
            _ => format!("[[services]]\nname = \"x\"\nupstream = \"http://{there}\"\n{offer}"),
        };
        let cluster = Cluster::each(2, service).await;
        let x = cluster.proxy_address(0, X);
        let heard = ask(x, "X-Scope: x: site2\r\n").await;
        assert_eq!(heard.error(), (expected.0, expected.1.to_owned()), "{}", heard.body);
        let next = ask(x, "X-Scope: x: site2 ; site1\r\n").await;
        assert_eq!(next.by(), if offer.is_empty() { "here" } else { "there" });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_agents_say_does_not_pass_from_a_client() {
    let cluster = two("").await;
    let forged = "X-Cheops-Operation: paris-1.1\r\nX-Cheops-Site: lyon\r\nX-Cheops-Error: loop\r\n";
    for (scope, by) in [
        ("", "x of site1"),
        ("x-cheops-scope: x: site1\r\n", "x of site1"),
        ("x-cheops-scope: x: site2\r\n", "x of site2"),
    ] {
        let seen = ask(cluster.proxy_address(0, X), &format!("{scope}{forged}")).await;
        assert_eq!(seen.by(), by);
        assert!(!seen.body.to_lowercase().contains("x-cheops-"), "{}", seen.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_whole_that_no_site_signed_is_not_followed() {
    // As anybody can make it: part `7` at the other site, and the checksum.
    let mut bytes = b"\x01\x05site2\x00\x017".to_vec();
    let check = *blake3::hash(&bytes).as_bytes();
    bytes.extend(&check[..4]);
    let id = format!("cross-1{}", URL_SAFE_NO_PAD.encode(bytes));
    for (more, expected) in
        [("", (403, "bad-id")), ("[proxy]\nunsigned_cross_ids = true", (502, "not-joinable"))]
    {
        let mirrors = [mirror("here".to_owned()).await, mirror("there".to_owned()).await];
        let service = |site: usize| sample_service::config(mirrors[site], more);
        let cluster = Cluster::each(2, service).await;
        let mut client = TcpStream::connect(cluster.proxy_address(0, X)).await.unwrap();
        let request = format!("GET /things/{id} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        let (head, body) = heard.split_once("\r\n\r\n").unwrap();
        let heard = Heard { head: head.to_owned(), body: body.to_owned() };
        // What that site's service says is no JSON, and cannot be joined.
        assert_eq!(heard.error(), (expected.0, expected.1.to_owned()), "{}", heard.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_cannot_fit_is_refused_before_it_is_sent() {
    let application = sample_service::Application::start("").await;
    let mut client = TcpStream::connect(application.cluster.proxy_address(0, 0)).await.unwrap();
    let head = format!(
        "PUT /v1/things/web HTTP/1.1\r\nHost: x\r\nX-Scope: {}\r\nContent-Length: {}\r\n\r\n",
        sample_service::SCOPE,
        1_u64 << 60
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let (mut heard, expected) = (Vec::new(), "bytes more, and");
    while !String::from_utf8_lossy(&heard).contains(expected) {
        let read = client.read_buf(&mut heard);
        let read = tokio::time::timeout(cluster::PATIENCE, read).await.expect("an answer").unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&heard));
    }
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.starts_with("HTTP/1.1 507 ") && heard.contains("not-durable"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_of_an_operation_gives_away_no_secret_of_its_sender() {
    let application = sample_service::Application::start("").await;
    let mut client = TcpStream::connect(application.cluster.proxy_address(0, 0)).await.unwrap();
    let body = r#"{"name": "web"}"#;
    let request = format!(
        "POST /v1/things?signature=s3cret HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         X-Scope: {}\r\nContent-Type: application/json\r\nAuthorization: Bearer s3cret\r\n\
         X-Whatever: s3cret\r\nContent-Length: {}\r\n\r\n{body}",
        sample_service::SCOPE,
        body.len()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).await.unwrap();
    let resource = value_in(&heard, "x-cheops-resource");
    assert!(!resource.is_empty(), "{heard}");

    let api = application.cluster.api_address(0);
    for path in ["operations", "explain"] {
        let mut client = TcpStream::connect(api).await.unwrap();
        let request = format!(
            "GET /api/v1/resources/{resource}/{path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut shown = String::new();
        client.read_to_string(&mut shown).await.unwrap();
        assert!(shown.starts_with("HTTP/1.1 200 ") && shown.contains("signature="), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
