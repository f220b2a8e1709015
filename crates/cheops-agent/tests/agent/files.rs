//! Files of operations on their way between sites.

use std::path::{Path, PathBuf};

use crate::cluster::{Cluster, LinkLog, replies, shell, until};
use cheops_api::{Upload, Wait};

fn upload(cluster: &Cluster, content: &[u8]) -> Upload {
    let path = cluster.dir().join("sent");
    std::fs::write(&path, content).unwrap();
    Upload { name: "sent".into(), path }
}

/// Where a site keeps the content.
fn kept(cluster: &Cluster, site: &str, content: &[u8]) -> PathBuf {
    let name = blake3::hash(content).to_string();
    cluster.dir().join(site).join("blobs").join(&name[..2]).join(&name[2..])
}

fn damage(path: &Path) {
    let mut content = std::fs::read(path).unwrap();
    content[100] ^= 1;
    std::fs::write(path, content).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_file_may_come_with_many_operations_at_once() {
    let cluster = Cluster::of(3).await;
    let content = vec![7; 2 << 20];
    let file = upload(&cluster, &content);
    // Handed in at a site that holds none of them: all are passed on, and fetch it from there.
    let done = (0..6).map(|n| {
        let (cluster, file) = (&cluster, file.clone());
        async move {
            let submit = shell("site1 & site2", "add", "test -s {sent}");
            cluster.submit_with(2, &format!("r{n}"), &submit, &[file]).await
        }
    });
    for events in futures_util::future::join_all(done).await {
        assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    }
}

// On one thread, so that what it logs is not mixed with what other tests do.
#[tokio::test]
async fn a_file_that_is_damaged_where_it_is_sent_from_is_named_there_and_sent_once_it_is_right() {
    let said = LinkLog::default();
    let _on_this_thread = tracing::subscriber::set_default(said.clone());
    let mut cluster = Cluster::of(2).await;
    let content = vec![7; 2 << 20];
    let file = upload(&cluster, &content);
    cluster.stop(1).await;
    let mut submit = shell("site1 & site2", "add", "test -s {sent}");
    submit.wait = Wait::Local;
    cluster.submit_with(0, "r", &submit, std::slice::from_ref(&file)).await;
    damage(&kept(&cluster, "site1", &content));

    cluster.start(1).await;
    until("the site says that it cannot be sent", async || {
        said.count("a file cannot be sent to another site") > 0
    })
    .await;
    until("the other site hears so", async || said.count("a file could not be fetched") > 0).await;
    let has_none =
        std::fs::read_dir(cluster.dir().join("site2/blobs/partial")).unwrap().count() == 0;
    assert!(has_none, "what came of it is of no use");

    // It comes again, with another operation.
    let submit = shell("site1 & site2", "add", "test -s {sent}");
    let events = cluster.submit_with(0, "r", &submit, &[file]).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    assert_eq!(said.count("a file cannot be sent to another site"), 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_where_it_is_needed_comes_from_another_site() {
    let cluster = Cluster::of(2).await;
    let content = vec![7; 2 << 20];
    let file = upload(&cluster, &content);
    let submit = shell("site1 & site2", "add", "test -s {sent}");
    let events = cluster.submit_with(0, "r", &submit, std::slice::from_ref(&file)).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");

    damage(&kept(&cluster, "site2", &content));
    let events = cluster.submit_with(0, "r", &submit, std::slice::from_ref(&file)).await;
    assert_eq!(replies(&events), [("site1", "OK"), ("site2", "OK")], "{events:?}");
    assert_eq!(std::fs::read(kept(&cluster, "site2", &content)).unwrap(), content);
}
