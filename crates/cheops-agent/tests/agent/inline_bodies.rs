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
    Entry, EntryBody as Said, EntryHash, EntryId, Extension, Operation, OperationId, ResourceId,
    SiteId,
};
use cheops_store::{StoreOptions, open};
use http::{Method, StatusCode};

use crate::stage::{Stage, replies, shell, until};
use crate::things::{Application, config, largest_file, listen};

const SHORT: usize = 16 * 1024;

fn blobs(stage: &Stage, site: &str) -> PathBuf {
    stage.dir().join(site).join("blobs")
}

/// Where a site would keep the content.
fn kept(stage: &Stage, site: &str, content: &[u8]) -> PathBuf {
    let name = blake3::hash(content).to_string();
    blobs(stage, site).join(&name[..2]).join(&name[2..])
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
async fn two() -> (Stage, [BodiesHeard; 2]) {
    let heard = [BodiesHeard::default(), BodiesHeard::default()];
    let upstreams = [heard[0].listen().await, heard[1].listen().await];
    (Stage::each(2, |site| config(upstreams[site], "")).await, heard)
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
    let stage = &application.stage;
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
        assert_eq!(largest_file(&blobs(stage, site)), 0, "{site} has a file");
    }
    send(&other, SHORT + 1).await;
    for site in ["site1", "site2"] {
        assert_eq!(largest_file(&blobs(stage, site)), SHORT as u64 + 1, "{site}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_was_away_or_lost_its_disk_finds_the_body_in_the_operation() {
    let (mut stage, heard) = two().await;
    stage.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    stage.submit(0, "r", &submit).await;
    stage.stop(0).await;
    stage.start(0).await;
    stage.start(1).await;
    until("it arrives", async || heard[1].is(&[b"short"])).await;

    stage.stop(1).await;
    stage.lose(1);
    stage.start(1).await;
    until("it arrives again", async || heard[1].is(&[b"short", b"short"])).await;
    for site in ["site1", "site2"] {
        assert_eq!(largest_file(&blobs(&stage, site)), 0, "{site} has a file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_in_its_operation_is_fetched() {
    let (stage, heard) = two().await;
    let path = stage.dir().join("sent");
    std::fs::write(&path, "a file").unwrap();
    let submit = request(Body::Part("sent".into()));
    let file = Upload { name: "sent".into(), path };
    let events = stage.submit_with(0, "r", &submit, &[file]).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    assert!(heard.iter().all(|heard| heard.is(&[b"a file"])));
    for site in ["site1", "site2"] {
        assert!(kept(&stage, site, b"a file").exists(), "{site} lacks its file");
    }
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
        if let Said::Operation(operation) = &entry.body {
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
    let entry = Entry::new(&resource, last, Said::Operation(operation), beside);
    let identity = Identity::read(&dir.join(format!("{site}.pem"))).unwrap();
    identity.site_key().unwrap().seal(&[&entry]);
    opened.store.keep(&[Record::Entry(resource, Arc::new(entry))], []).unwrap();
}

/// An operation as the version before writes it names a body that its author has in another
/// operation only: whoever asks for it is in the place of a site of that version, which asks for all.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_a_body_gets_it_from_the_operation_it_is_in() {
    let (mut stage, heard) = two().await;
    stage.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    stage.submit(0, "r", &submit).await;
    stage.stop(0).await;
    write_another(&stage.dir(), "site1", "r", Vec::new());
    assert_eq!(largest_file(&blobs(&stage, "site1")), 0, "its author has no file");

    stage.start(0).await;
    stage.start(1).await;
    until("both arrive", async || heard[1].is(&[b"short", b"short"])).await;
    assert!(kept(&stage, "site2", b"short").exists(), "it was fetched");
    until("its author gets it back", async || heard[0].is(&[b"short", b"short"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_the_body_that_is_named_are_not_used() {
    let (mut stage, heard) = two().await;
    stage.stop(1).await;
    let submit = Submit { wait: Wait::Local, ..request(Body::Text("short".into())) };
    stage.submit(0, "r", &submit).await;
    stage.stop(0).await;
    let value = b"wrong".to_vec();
    let wrong = Extension { name: "body".into(), must_understand: false, value };
    write_another(&stage.dir(), "site1", "r", vec![wrong]);

    stage.start(0).await;
    stage.start(1).await;
    for heard in &heard {
        until("what is named arrives", async || heard.0.lock().unwrap().len() == 2).await;
        assert!(heard.is(&[b"short", b"short"]), "{:?}", heard.0);
    }
}
