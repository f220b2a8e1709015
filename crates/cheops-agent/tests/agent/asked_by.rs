//! Who asked: kept with every operation, and told where none is left.

use crate::cluster::{Cluster, PATIENCE, shell};
use cheops_api::{Change, Client, Cursor, Decision, Operation, Show};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Whoever runs this test.
fn me() -> String {
    format!("uid:{}", rustix::process::geteuid().as_raw())
}

/// A client that comes by the socket of a site's agent.
fn by_socket(cluster: &Cluster, site: usize) -> Client {
    Client::new(&format!("unix:{}", cluster.file(&format!("site{}/api.sock", site + 1)))).unwrap()
}

async fn submitted(client: &Client, id: &str, sites: &str) {
    let mut lines = client.submit(id, &shell(sites, "set", "true"), &[]).await.unwrap();
    while lines.next().await.unwrap().is_some() {}
}

async fn operations(cluster: &Cluster, site: usize, id: &str) -> Vec<Operation> {
    cluster.client(site).operations(id, &Cursor::default()).await.unwrap().items
}

/// Who asked for the first operation of a resource, as that site knows it.
async fn asked_by(cluster: &Cluster, site: usize, id: &str) -> (String, String) {
    let by = operations(cluster, site, id).await.remove(0).asked_by.unwrap();
    (by.principal, by.site)
}

/// The first record at a site of what somebody asked for that begins so: for what, who, and where.
async fn asked(
    cluster: &Cluster,
    site: usize,
    begins: &str,
) -> (Option<String>, String, String, String) {
    let mut changes = cluster.client(site).changes(None, Some(0)).await.unwrap();
    let looking = async {
        loop {
            match changes.next().await.unwrap().unwrap().change {
                Change::Asked { resource, principal, site, what } if what.starts_with(begins) => {
                    return (resource, principal, site, what);
                }
                _ => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

fn told(id: &str, who: &str, site: &str, what: &str) -> (Option<String>, String, String, String) {
    (Some(id.to_owned()), who.to_owned(), site.to_owned(), what.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_says_who_asked_for_it_at_every_site() {
    let cluster = Cluster::of(2).await;
    submitted(&by_socket(&cluster, 0), "mine", "site1 & site2").await;
    submitted(&cluster.client(1), "anyones", "site1 & site2").await;
    for site in [0, 1] {
        assert_eq!(asked_by(&cluster, site, "mine").await, (me(), "site1".to_owned()));
        let anyone = ("anyone".to_owned(), "site2".to_owned());
        assert_eq!(asked_by(&cluster, site, "anyones").await, anyone);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_says_by_which_site_and_leaves_a_record_there() {
    let cluster = Cluster::of(2).await;
    // When somebody at one site changes what lives at the other,
    submitted(&by_socket(&cluster, 0), "afar", "site2").await;
    // then that one knows who it was, and where,
    assert_eq!(asked_by(&cluster, 1, "afar").await, (me(), "site1".to_owned()));
    // and the one that passed it on says what it did.
    let record = asked(&cluster, 0, "an operation").await;
    let what = "an operation `set`, passed on to site2";
    assert_eq!(record, told("afar", &me(), "site1", what));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_leaves_a_record_at_every_site_where_it_ran() {
    let cluster = Cluster::of(2).await;
    let client = by_socket(&cluster, 0);
    submitted(&client, "file", "site1 & site2").await;
    let show = Show { command: "cat secrets".to_owned(), sites: None, timeout_ms: 5_000 };
    client.show("file", &show).await.unwrap();
    for site in [0, 1] {
        let record = asked(&cluster, site, "show").await;
        assert_eq!(record, told("file", &me(), "site1", "show: cat secrets"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_say_that_it_is_somebody_else() {
    let cluster = Cluster::of(2).await;
    let here = cluster.api_address(0).to_string();
    let body = r#"{"type":"set","sites":"site1 & site2","shell":{"command":"true"},"wait":"none"}"#;
    let request = format!(
        "POST /api/v1/resources/forged/operations HTTP/1.1\r\nHost: {here}\r\n\
         X-Cheops-Asked-By: uid:0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let mut connection = TcpStream::connect(&here).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let anyone = ("anyone".to_owned(), "site1".to_owned());
    assert_eq!(asked_by(&cluster, 0, "forged").await, anyone);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_decides_about_an_operation_or_copies_a_site_leaves_a_record() {
    let cluster = Cluster::of(2).await;
    let client = by_socket(&cluster, 0);
    let mut lines =
        client.submit("broken", &shell("site1 & site2", "set", "false"), &[]).await.unwrap();
    while lines.next().await.unwrap().is_some() {}
    let failed = operations(&cluster, 0, "broken").await.remove(0).id;
    client.settle("broken", &failed, Decision::Dismiss, Some("site2")).await.unwrap();
    let what = format!("dismiss {failed}, passed on to site2");
    assert_eq!(asked(&cluster, 0, "dismiss").await, told("broken", &me(), "site1", &what));
    let what = format!("dismiss {failed}");
    assert_eq!(asked(&cluster, 1, "dismiss").await, told("broken", &me(), "site1", &what));

    let copy = cluster.file("copy");
    let mut lines = client.backup(&copy).await.unwrap();
    while lines.next().await.unwrap().is_some() {}
    let record = asked(&cluster, 0, "backup").await;
    assert_eq!(record, (None, me(), "site1".to_owned(), format!("backup to {copy}")));
}
