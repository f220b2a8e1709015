//! The feed of changes with how resources stand: what a page needs, so that it asks for nothing again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use cheops_api::{Change, ResourceState, Submit, TimedChange, paths};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, PATIENCE, shell};

/// A feed as a page reads it.
struct PageFeed(Lines<BufReader<TcpStream>>);

impl PageFeed {
    async fn open(cluster: &Cluster, site: usize, path: &str) -> Self {
        let here = cluster.api_address(site).to_string();
        let mut connection = TcpStream::connect(&here).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {here}\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(connection).lines();
        let status = lines.next_line().await.unwrap().unwrap();
        assert!(status.contains("200"), "{status}");
        Self(lines)
    }

    /// The data of the next event.
    async fn data(&mut self) -> String {
        let reading = async {
            loop {
                let line = self.0.next_line().await.unwrap().expect("the feed does not end");
                if let Some(data) = line.strip_prefix("data: ") {
                    return data.to_owned();
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.unwrap()
    }

    /// The next changes, up to one of which that holds.
    async fn until(&mut self, holds: impl Fn(&TimedChange) -> bool) -> Vec<TimedChange> {
        let mut seen = Vec::new();
        loop {
            let change: TimedChange = serde_json::from_str(&self.data().await).unwrap();
            let is_it = holds(&change);
            seen.push(change);
            if is_it {
                return seen;
            }
        }
    }
}

fn is_in(state: ResourceState) -> impl Fn(&TimedChange) -> bool {
    move |change| change.now.as_ref().is_some_and(|now| now.state == state)
}

fn with_standings(path: &str) -> String {
    format!("{path}?standings=true")
}

fn added(n: usize) -> Submit {
    shell("site1 & site2", "add", &format!("echo {n}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_tells_how_its_resource_is_now_to_who_asks_for_that() {
    let cluster = Cluster::of(2).await;
    let mut feed = PageFeed::open(&cluster, 0, &with_standings(paths::CHANGES)).await;
    let mut bare = PageFeed::open(&cluster, 0, paths::CHANGES).await;
    for n in 0..3 {
        cluster.submit(0, "told", &added(n)).await;
    }

    let is_last = |change: &TimedChange| {
        matches!(change.change, Change::Converged { .. })
            && is_in(ResourceState::Converged)(change)
            && change.now.as_ref().is_some_and(|now| now.operations == 3)
    };
    let seen = feed.until(is_last).await;
    let of_resource = seen.iter().filter(|change| change.change.resource() == Some("told"));
    let counts: Vec<_> =
        of_resource.map(|change| change.now.as_ref().expect("it is held").operations).collect();
    assert!(counts.is_sorted() && counts.len() > 3, "{counts:?}");
    assert!(seen.iter().all(|change| change.detail.is_none()), "only in the feed of one");
    let now = seen.last().unwrap().now.clone().unwrap();
    assert_eq!(now, cluster.client(0).resource("told").await.unwrap().summary);

    let change = bare.data().await;
    assert!(!change.contains("\"now\"") && !change.contains("standing"), "{change}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_of_one_resource_tells_all_that_its_page_shows() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(0);
    cluster.submit(0, "shown", &added(0)).await;
    let first = client.resource("shown").await.unwrap().list[0].clone();
    let path = with_standings(&paths::changes_of("shown"));
    let mut feed = PageFeed::open(&cluster, 0, &path).await;
    for n in 1..4 {
        cluster.submit(n % 2, "shown", &added(n)).await;
    }

    // How it stands now is told with changes of before: all of them are to be told.
    let told = RefCell::new(BTreeSet::new());
    let is_last = |change: &TimedChange| {
        let operation = change.detail.as_ref().and_then(|detail| detail.operation.as_ref());
        told.borrow_mut().extend(operation.map(|it| it.id.clone()).filter(|id| *id != first));
        is_in(ResourceState::Converged)(change) && told.borrow().len() == 3
    };
    let seen = feed.until(is_last).await;
    let resource = client.resource("shown").await.unwrap();
    let last = seen.last().unwrap().detail.clone().unwrap();
    assert_eq!(last.resource, resource.clone().into());
    assert_eq!(last.config, None, "it is as it was");
    let operations = seen.iter().filter_map(|change| change.detail.as_ref()?.operation.clone());
    let mut operations: BTreeMap<_, _> = operations.map(|told| (told.id.clone(), told)).collect();
    operations.remove(&resource.list[0]);
    assert!(operations.keys().eq(&resource.list[1..]) || operations.len() == 3, "{operations:?}");
    for (id, told) in operations {
        assert_eq!(told, client.operation("shown", &id).await.unwrap());
    }

    // One that replaces all before it says what is said of those, and its config with it.
    let mut forced = shell("", "set", "true");
    forced.force = true;
    forced.profile = Some("file".to_owned());
    cluster.submit(0, "shown", &forced).await;
    let is_forced = |change: &TimedChange| matches!(&change.change, Change::Operation { kind, .. } if kind == "set");
    let detail = feed.until(is_forced).await.pop().unwrap().detail.unwrap();
    let replaced = detail.replaced.expect("it replaces all before it");
    assert!(replaced.why.contains("was forced"), "{replaced:?}");
    assert_eq!(replaced.by, detail.operation.map(|told| told.id));
    assert_eq!(detail.config, Some(client.resource("shown").await.unwrap().config));
    let is_pruned = |change: &TimedChange| matches!(change.change, Change::Pruned { .. });
    let detail = feed.until(is_pruned).await.pop().unwrap().detail.unwrap();
    assert_eq!(detail.kept, Some(client.resource("shown").await.unwrap().list));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_too_long_for_a_change_is_left_to_be_asked_for() {
    let cluster = Cluster::of(1).await;
    cluster.submit(0, "long", &shell("site1", "add", "true")).await;
    let path = with_standings(&paths::changes_of("long"));
    let mut feed = PageFeed::open(&cluster, 0, &path).await;
    let command = format!("true {}", "x".repeat(20_000));
    cluster.submit(0, "long", &shell("site1", "fill", &command)).await;
    let is_long = |change: &TimedChange| matches!(&change.change, Change::Operation { kind, .. } if kind == "fill");
    let told = feed.until(is_long).await.pop().unwrap();
    assert_eq!(told.now.unwrap().operations, 2);
    assert_eq!(told.detail.unwrap().operation, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_otherwise_without_anything_new_is_told_too() {
    let mut cluster = Cluster::of(2).await;
    cluster.submit(0, "alone", &added(0)).await;
    let path = with_standings(&paths::changes_of("alone"));
    let mut feed = PageFeed::open(&cluster, 0, &path).await;
    cluster.stop(1).await;
    let seen = feed.until(is_in(ResourceState::Unknown)).await;
    let last = seen.last().unwrap();
    assert_eq!(last.change, Change::Standing { resource: "alone".to_owned() });
    let standings = &last.detail.as_ref().unwrap().resource.standings;
    assert!(standings.iter().any(|at| at.site == "site2" && !at.connected), "{standings:?}");
}
