//! Short bodies of requests, which are part of their operation; and sites that know nothing of that.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use cheops_agent::mesh::Identity;
use cheops_api::{Action, Body, HttpAction, Submit, Upload, Wait};
use cheops_core::engine::{Record, Sealer};
use cheops_core::model::{
    Entry, EntryBody, EntryHash, EntryId, Extension, Operation, OperationId, ResourceId, SiteId,
};
use cheops_store::{StoreOptions, open};
use http::{Method, StatusCode};

use crate::cluster::{Cluster, replies, shell, until};
use crate::sample_service::{Application, config, largest_file, listen};

const SHORT: usize = 16 * 1024;

fn blobs(cluster: &Cluster, site: &str) -> PathBuf {
    cluster.dir().join(site).join("blobs")
}

/// Where a site would keep the content.
fn kept(cluster: &Cluster, site: &str, content: &[u8]) -> PathBuf {
    let name = blake3::hash(content).to_string();
    blobs(cluster, site).join(&name[..2]).join(&name[2..])
}

/// What the service of each site was sent.
#[derive(Clone, Default)]
struct BodiesHeard(Arc<Mutex<Vec<Bytes>>>);

impl BodiesHeard {
    async fn listen(&self) -> SocketAddr {
        async fn hear(State(heard): State<BodiesHeard>, body: Bytes) -> StatusCode {
            heard.0.lock().unwrap().push(body);
            StatusCode::NO_CONTENT
        }
        listen(Router::new().fallback(hear).with_state(self.clone())).await
    }

    fn is(&self, expected: &[&[u8]]) -> bool {
        *self.0.lock().unwrap() == expected
    }
}

/// Two sites, with a service each that takes everything.
async fn two() -> (Cluster, [BodiesHeard; 2]) {
    let heard = [BodiesHeard::default(), BodiesHeard::default()];
    let upstreams = [heard[0].listen().await, heard[1].listen().await];
    (Cluster::each(2, |site| config(upstreams[site], "")).await, heard)
}

/// A request to the service of both sites.
fn request(body: Body) -> Submit {
    let action = HttpAction {
        service: "thing".into(),
        method: "PUT".into(),
        path: "/x".into(),
        headers: Vec::new(),
        body: Some(body),
    };
    let matrix = serde_json::json!({"ResolutionMatrix": [
        {"Before": "set", "After": "set", "Result": "take-both"}]});
    let config = Some(matrix);
    Submit { action: Action::Http(action), config, ..shell("site1 & site2", "set", "") }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_body_is_part_of_its_operation_and_a_file_at_no_site() {
    let application = Application::start("").await;
    let cluster = &application.cluster;
    let (one, other) = (application.create(0, "one").await, application.create(0, "other").await);
    application.all_list(&[0, 1], &[(&one, "one"), (&other, "other")]).await;
    let send = async |id: &str, size: usize| {
        let content: Vec<u8> = (0..size).map(|n| n.to_le_bytes()[0]).collect();
        let (file, kind) = (format!("/v1/things/{id}/file"), "application/octet-stream");
        let sent = application.send(0, Method::PUT, &file, "", (kind, content.clone())).await;
        assert_eq!(sent.status, 204);
        for site in [0, 1] {
            until("the content is there", async || {
                application.ask(site, Method::GET, &file, "").await.bytes == content
            })
            .await;
        }
    };

    send(&one, SHORT).await;
    for site in ["site1", "site2"] {
        assert_eq!(largest_file(&blobs(cluster, site)), 0, "{site} has a file");
    }
    send(&other, SHORT + 1).await;
    for site in ["site1", "site2"] {
        assert_eq!(largest_file(&blobs(cluster, site)), SHORT as u64 + 1, "{site}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_was_away_or_lost_its_disk_finds_the_body_in_the_operation() {
    let (mut cluster, heard) = two().await;
    cluster.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    cluster.submit(0, "r", &submit).await;
    cluster.stop(0).await;
    cluster.start(0).await;
    cluster.start(1).await;
    until("it arrives", async || heard[1].is(&[b"short"])).await;

    cluster.stop(1).await;
    cluster.lose(1);
    cluster.start(1).await;
    until("it arrives again", async || heard[1].is(&[b"short", b"short"])).await;
    for site in ["site1", "site2"] {
        assert_eq!(largest_file(&blobs(&cluster, site)), 0, "{site} has a file");
    }
}

/// Sends that as a part of a form, to both.
async fn send_part(content: &[u8]) -> Cluster {
    let (cluster, heard) = two().await;
    let path = cluster.dir().join("sent");
    std::fs::write(&path, content).unwrap();
    let submit = request(Body::Part("sent".into()));
    let file = Upload { name: "sent".into(), path };
    let events = cluster.submit_with(0, "r", &submit, &[file]).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    assert!(heard.iter().all(|heard| heard.is(&[content])));
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_in_its_operation_is_fetched() {
    let long = vec![b'x'; SHORT + 1];
    let cluster = send_part(&long).await;
    for site in ["site1", "site2"] {
        assert!(kept(&cluster, site, &long).exists(), "{site} lacks its file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_body_that_came_as_a_part_of_a_form_is_in_its_operation_too() {
    let cluster = send_part(b"a file").await;
    assert_eq!(largest_file(&blobs(&cluster, "site2")), 0, "nothing was fetched");
}

/// Writes one more operation into the log of a site that is stopped, like the last one but for what
/// is said beside it.
fn write_another(dir: &Path, site: &str, resource: &str, beside: Vec<Extension>) {
    let (site, resource) = (SiteId::new(site).unwrap(), ResourceId::new(resource).unwrap());
    let mut opened = open(&dir.join(site.as_str()), &site, || 1, StoreOptions::default()).unwrap();
    let mut last = (0, EntryHash::UNSAID);
    let mut like: Option<Operation> = None;
    for record in &opened.records {
        let Record::Entry(_, entry) = record else { continue };
        if entry.id().author.site != site {
            continue;
        }
        last = last.max((entry.id().n, entry.hash()));
        if let EntryBody::Operation(operation) = &entry.body {
            like = Some(operation.clone());
        }
    }
    let like = like.unwrap();
    let author = like.id.0.author.clone();
    let mut stamp = like.stamp;
    stamp.counter += 1;
    let operation = Operation {
        id: OperationId(EntryId { author, n: last.0 + 1 }),
        parents: vec![like.id.clone()],
        stamp,
        claimed: stamp,
        declares: None,
        ..like
    };
    let entry = Entry::new(&resource, last, EntryBody::Operation(operation), beside);
    let identity = Identity::read(&dir.join(format!("{site}.pem"))).unwrap();
    identity.site_key().unwrap().seal(&[&entry]);
    opened.log.keep(&[Record::Entry(resource, Arc::new(entry))], &[]).unwrap();
}

/// An operation as the version before writes it names a body that its author has in another
/// operation only: whoever asks for it is in the place of a site of that version, which asks for all.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_a_body_gets_it_from_the_operation_it_is_in() {
    let (mut cluster, heard) = two().await;
    cluster.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    cluster.submit(0, "r", &submit).await;
    cluster.stop(0).await;
    write_another(&cluster.dir(), "site1", "r", Vec::new());
    assert_eq!(largest_file(&blobs(&cluster, "site1")), 0, "its author has no file");

    cluster.start(0).await;
    cluster.start(1).await;
    until("both arrive", async || heard[1].is(&[b"short", b"short"])).await;
    assert!(kept(&cluster, "site2", b"short").exists(), "it was fetched");
    until("its author gets it back", async || heard[0].is(&[b"short", b"short"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_the_body_that_is_named_are_not_used() {
    let (mut cluster, heard) = two().await;
    cluster.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    cluster.submit(0, "r", &submit).await;
    cluster.stop(0).await;
    let value = b"wrong".to_vec();
    let wrong = Extension { name: "body".into(), must_understand: false, value };
    write_another(&cluster.dir(), "site1", "r", vec![wrong]);

    cluster.start(0).await;
    cluster.start(1).await;
    for heard in &heard {
        until("what is named arrives", async || heard.0.lock().unwrap().len() == 2).await;
        assert!(heard.is(&[b"short", b"short"]), "{:?}", heard.0);
    }
}
