//! What a page about a whole mesh asks any agent for: other sites' views, numbers, and what a
//! matrix would do.

use std::collections::BTreeSet;

use crate::cluster::{Cluster, shell, until};
use cheops_api::{
    ClientError, Cursor, Decision, DemoLink, NumberedChange, Problem, ResourceFilter,
    ResourceOrder, ResourceState, SiteState, SummaryFilter, TryMatrix,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What fails at every site is as if it had never been; this fails at the second one only.
const FAILS_AT_ONE: &str = "[ $CHEOPS_SITE = site1 ]";

fn refused<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> Problem {
    match answer {
        Err(ClientError::Refused(problem)) => *problem,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_agent_tells_how_another_site_sees_the_sites() {
    let mut cluster = Cluster::of(3).await;
    cluster.submit(1, "there", &shell("site2 & site3", "set", "true")).await;
    let client = cluster.client(0);

    let seen = client.sites_seen_by("site2").await.unwrap();
    assert_eq!(seen.me, "site2");
    let of = |name: &str| seen.sites.iter().find(|site| site.site == name).unwrap();
    assert_eq!((of("site2").state, of("site2").shared), (SiteState::Myself, 1), "what it holds");
    assert_eq!((of("site3").state, of("site3").shared), (SiteState::Up, 1));
    assert_eq!(client.sites_seen_by("site1").await.unwrap().me, "site1");
    let problem = refused(client.sites_seen_by("nobody").await);
    assert_eq!((problem.status, problem.title.as_str()), (404, "no such site"));

    cluster.stop(1).await;
    let problem = refused(client.sites_seen_by("site2").await);
    assert_eq!((problem.status, problem.title.as_str()), (502, "the site cannot be reached"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_told_as_another_site_sees_it() {
    let cluster = Cluster::of(3).await;
    let mut failing = shell("site2 & site3", "set", "echo $CHEOPS_SITE; [ $CHEOPS_SITE = site2 ]");
    failing.profile = Some("file".to_owned());
    cluster.submit(1, "there", &failing).await;
    let client = cluster.client(0);
    let cursor = |site: &str| Cursor { at: Some(site.to_owned()), ..Cursor::default() };

    for site in ["site2", "site3"] {
        until("all replies are there", async || {
            let page = client.operations("there", &cursor(site)).await.unwrap();
            page.items[0].replies.len() == 2
        })
        .await;
        let resource = client.resource_at("there", site).await.unwrap();
        assert_eq!(resource.summary.sites, ["site2", "site3"]);
        assert_eq!(client.explain_at("there", site).await.unwrap().list, resource.list);
    }
    let problem = refused(client.resource_at("there", "site1").await);
    assert_eq!((problem.status, problem.title.as_str()), (404, "not held there"));
    assert_eq!(refused(client.operations("there", &cursor("site1")).await).status, 404);
    assert_eq!(refused(client.explain_at("there", "site1").await).status, 404);
    // The same question through a site that holds it as well.
    let far = cluster.client(1).resource_at("there", "site1").await;
    assert_eq!(refused(far).title, "not held there");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_told_from_either_end_a_page_at_a_time_and_one_by_one() {
    let cluster = Cluster::of(2).await;
    for n in 0..5 {
        cluster.submit(1, "log", &shell("site2", "add", &format!("echo {n}"))).await;
    }
    // Also by a site that does not hold it.
    let client = cluster.client(0);
    for (latest, expected) in [(false, "01 23 4"), (true, "43 21 0")] {
        let mut told = Vec::new();
        let mut after = None;
        loop {
            let cursor = Cursor { limit: Some(2), after, latest: Some(latest), at: None };
            let page = client.operations("log", &cursor).await.unwrap();
            let ends: Vec<_> = page.items.iter().map(|it| &it.summary[5..]).collect();
            told.push(ends.concat());
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(told.join(" "), expected);
    }
    let all = client.operations("log", &Cursor::default()).await.unwrap().items;
    assert_eq!(client.operation("log", &all[3].id).await.unwrap(), all[3]);
    // What is not known any more was pruned: all that is kept is later, and nothing is earlier.
    let gone = |latest: bool| Cursor {
        after: Some("site2-1.1".to_owned()),
        latest: Some(latest),
        ..Cursor::default()
    };
    assert_eq!(client.operations("log", &gone(false)).await.unwrap().items.len(), 5);
    assert!(client.operations("log", &gone(true)).await.unwrap().items.is_empty());

    let problem = refused(client.operation("log", "site2-1.1").await);
    assert_eq!((problem.status, problem.title.as_str()), (404, "no such operation"));
    let problem = refused(client.operation("log", "third").await);
    assert_eq!((problem.status, problem.title.as_str()), (400, "bad operation"));
    assert_eq!(refused(client.operation("nothing", "site2-1.1").await).status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_in_doubt_can_be_settled_also_at_another_site() {
    let mut cluster = Cluster::of(2).await;
    cluster.submit(0, "sure", &shell("site1 & site2", "add", "true")).await;
    let client = cluster.client(0);

    let there = client.settle("sure", "site1-1.1", Decision::Skip, Some("site2")).await;
    let problem = refused(there);
    assert_eq!((problem.status, problem.title.as_str()), (409, "nothing to settle"));

    cluster.stop(1).await;
    let there = client.settle("sure", "site1-1.1", Decision::Skip, Some("site2")).await;
    assert_eq!(refused(there).status, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_counted_by_state_site_and_type() {
    let cluster = Cluster::of(2).await;
    cluster.submit(0, "both", &shell("site1 & site2", "set", "true")).await;
    cluster.submit(0, "mine", &shell("site1", "add", "true")).await;
    cluster.submit(0, "failed", &shell("site1 & site2", "add", FAILS_AT_ONE)).await;
    cluster.submit(0, "gone", &shell("site1", "rename", "true")).await;
    let client = cluster.client(0);
    let mut deleted = client.delete("gone", &cheops_api::Delete::default()).await.unwrap();
    while deleted.next().await.unwrap().is_some() {}

    until("all is known everywhere", async || {
        let by_state = client.summary().await.unwrap().by_state;
        by_state.get("converged") == Some(&2) && by_state.get("error") == Some(&1)
    })
    .await;
    let summary = client.summary().await.unwrap();
    assert_eq!(summary.resources, 3, "what was deleted does not count");
    let by_state = [("converged", 2), ("deleted", 1), ("error", 1)];
    assert_eq!(summary.by_state, by_state.map(|(state, n)| (state.to_owned(), n)).into());
    let by_site = [("site1", 3), ("site2", 2)];
    assert_eq!(summary.by_site, by_site.map(|(site, n)| (site.to_owned(), n)).into());
    assert_eq!(summary.types, ["add", "set"]);
    assert_eq!(client.sites().await.unwrap().sites[0].shared, 4, "what site1 holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_resources_come_to_all_that_is_looked_for_and_to_nothing_twice() {
    let cluster = Cluster::of(2).await;
    for n in 0..25 {
        let (name, command) = (format!("r{n:02}"), if n % 5 == 0 { FAILS_AT_ONE } else { "true" });
        cluster.submit(0, &name, &shell("site1 & site2", "set", command)).await;
    }
    let client = cluster.client(0);
    until("all is known everywhere", async || {
        let by_state = client.summary().await.unwrap().by_state;
        by_state.keys().all(|state| ["converged", "error"].contains(&state.as_str()))
    })
    .await;
    let all = async |filter: ResourceFilter| {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let filter = ResourceFilter { after, limit: Some(3), ..filter.clone() };
            let page = client.resources(&filter).await.unwrap();
            assert!(page.items.len() <= 3);
            names.extend(page.items.into_iter().map(|item| item.id));
            match page.next {
                Some(next) => after = Some(next),
                None => return names,
            }
        }
    };

    assert_eq!(all(ResourceFilter::default()).await.len(), 25);
    let state = Some(ResourceState::Error);
    let failed = all(ResourceFilter { state, ..ResourceFilter::default() }).await;
    assert_eq!(failed, ["r00", "r05", "r10", "r15", "r20"]);
    let q = Some("r1".to_owned());
    assert_eq!(all(ResourceFilter { q: q.clone(), ..ResourceFilter::default() }).await.len(), 10);
    assert_eq!(all(ResourceFilter { q, state, ..ResourceFilter::default() }).await, ["r10", "r15"]);
    let kind = Some("add".to_owned());
    assert_eq!(all(ResourceFilter { kind, ..ResourceFilter::default() }).await, [""; 0]);

    let sort = Some(ResourceOrder::State);
    let worst = all(ResourceFilter { sort, ..ResourceFilter::default() }).await;
    assert_eq!(worst.len(), 25);
    assert_eq!(worst[..6], ["r00", "r05", "r10", "r15", "r20", "r01"]);
    let reverse = Some(true);
    let best = all(ResourceFilter { sort, reverse, ..ResourceFilter::default() }).await;
    assert!(best.iter().eq(worst.iter().rev()), "{best:?}");
    let by_name = all(ResourceFilter { reverse, ..ResourceFilter::default() }).await;
    assert_eq!(by_name[..2], ["r24", "r23"]);
    let sort = Some(ResourceOrder::Changed);
    let latest = all(ResourceFilter { sort, ..ResourceFilter::default() }).await;
    assert_eq!((latest.len(), latest.last().map(String::as_str)), (25, Some("r00")));
    let nonsense = ResourceFilter { sort, after: Some("r10".into()), ..ResourceFilter::default() };
    assert_eq!(refused(client.resources(&nonsense).await).status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_can_be_narrowed_and_says_where_somebody_is_needed() {
    let cluster = Cluster::of(2).await;
    for (name, command) in [("a1", FAILS_AT_ONE), ("a2", "true"), ("b1", FAILS_AT_ONE)] {
        cluster.submit(0, name, &shell("site1 & site2", "set", command)).await;
    }
    let client = cluster.client(0);
    until("all is known everywhere", async || {
        let by_state = client.summary().await.unwrap().by_state;
        by_state.get("converged") == Some(&1) && by_state.get("error") == Some(&2)
    })
    .await;
    let all = client.summary().await.unwrap();
    assert_eq!(all.troubled.values().sum::<u64>(), 2);
    assert_eq!(all.troubled.len(), 1, "the command fails at one of them");
    assert_eq!(all.verified, 0);
    let filter = SummaryFilter { q: Some("a".to_owned()), ..SummaryFilter::default() };
    let some = client.summary_of(&filter).await.unwrap();
    assert_eq!(some.resources, 2);
    let by_state = [("converged", 1), ("error", 1)];
    assert_eq!(some.by_state, by_state.map(|(state, n)| (state.to_owned(), n)).into());
    let filter = SummaryFilter { kind: Some("add".to_owned()), ..SummaryFilter::default() };
    assert_eq!(client.summary_of(&filter).await.unwrap().resources, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_is_told_the_latest_changes_at_once() {
    let cluster = Cluster::of(1).await;
    for name in ["a", "b"] {
        cluster.submit(0, name, &shell("site1", "set", "true")).await;
    }
    let client = cluster.client(0);
    let all = client.latest_changes(100).await.unwrap();
    assert!(all.is_sorted_by_key(|change| change.id));
    let named = |changes: &[NumberedChange]| {
        let names = changes.iter().filter_map(|change| change.change.resource());
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(named(&all), ["a", "b"].map(str::to_owned).into());
    let last = client.latest_changes(1).await.unwrap();
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].id, all.last().unwrap().id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_matrix_is_tried_before_it_is_used_and_all_that_is_wrong_with_it_is_told() {
    let cluster = Cluster::of(1).await;
    let client = cluster.client(0);
    let redis = client.profiles().await.unwrap().into_iter().find(|it| it.name == "redis").unwrap();
    assert!(redis.about.contains("`set` and `del`"));

    let trial = client.try_matrix(&TryMatrix { config: redis.config }).await.unwrap();
    assert_eq!(trial.types, ["del", "inc", "sadd", "set", "srem"]);
    assert_eq!(trial.pairs.len(), 25);

    let text = "ResolutionMatrix:\n  - {Before: set, After: set, Result: take-two}\n";
    let problem = refused(client.try_matrix(&TryMatrix { config: json!(text) }).await);
    assert_eq!((problem.status, problem.title.as_str()), (400, "bad config"));
    let first = &problem.extensions["problems"][0];
    assert_eq!((&first["path"], &first["line"]), (&json!("ResolutionMatrix[0].Result"), &json!(2)));
    assert!(first["message"].as_str().unwrap().contains("take-two"), "{first}");
    assert!(first["remedy"].as_str().unwrap().contains("take-one"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_outside_of_a_demo_has_none() {
    let cluster = Cluster::of(1).await;
    let link = DemoLink { a: "site1".to_owned(), b: "site2".to_owned(), cut: true };
    for answer in [cluster.client(0).demo().await, cluster.client(0).set_demo_link(&link).await] {
        let problem = refused(answer);
        assert_eq!((problem.status, problem.title.as_str()), (404, "no demo"));
    }
}

async fn raw(cluster: &Cluster, method: &str, path: &str) -> String {
    let here = cluster.api_address(0).to_string();
    let mut connection = TcpStream::connect(&here).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {here}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_a_page_that_nothing_from_elsewhere_can_be_in() {
    let cluster = Cluster::of(1).await;
    let page = raw(&cluster, "GET", "/").await;
    assert!(page.starts_with("http/1.1 200 "), "{page}");
    for said in [
        "content-type: text/html; charset=utf-8\r\n",
        "content-security-policy: default-src 'none'; script-src 'self';",
        "x-content-type-options: nosniff\r\n",
        "referrer-policy: no-referrer\r\n",
        "<!doctype html>",
    ] {
        assert!(page.contains(said), "{said} in {page}");
    }
    let head = raw(&cluster, "HEAD", "/").await;
    assert!(head.starts_with("http/1.1 200 ") && !head.contains("<!doctype html>"), "{head}");
    for (method, path, status) in
        [("GET", "/assets/none.js", 404), ("GET", "/nothing", 404), ("POST", "/", 405)]
    {
        let answer = raw(&cluster, method, path).await;
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
}
