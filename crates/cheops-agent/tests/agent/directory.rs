//! Sites that are in nobody's file: how they are found, used, put out, and known again after a start.

use cheops_agent::mesh;
use cheops_api::SiteState;
use cheops_core::model::{KeyId, SiteId};
use cheops_directory::{Existence, Removal, Revocation, Statement};

use crate::cluster::{Cluster, replies, shell, until};

fn site(n: usize) -> SiteId {
    SiteId::new(&format!("site{n}")).unwrap()
}

/// How the one sees the other, and what is wrong between them.
async fn seen(cluster: &Cluster, by: usize, n: usize) -> Option<(SiteState, String)> {
    let sites = cluster.client(by).sites().await.unwrap().sites;
    let seen = sites.into_iter().find(|it| it.site == site(n).as_str())?;
    Some((seen.state, seen.problem.unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_know_the_address_of_one_find_all_others_and_hold_things_together() {
    let cluster = Cluster::from_one(4).await;
    for (by, sites) in [(2, "site2 & site3"), (3, "site4 & site2"), (0, "site1 & site4")] {
        let id = format!("held-{by}");
        let events = cluster.submit(by, &id, &shell(sites, "add", "true")).await;
        assert_eq!(replies(&events).len(), 2, "{sites}: {events:?}");
        assert!(replies(&events).iter().all(|(_, status)| *status == "OK"), "{events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mesh_of_more_sites_than_have_links_sees_all_alive_and_calls_whom_an_operation_names() {
    let cluster = Cluster::from_one(14).await;
    let by_others = async || {
        let sites = cluster.client(5).sites().await.unwrap().sites;
        sites.into_iter().find(|site| site.heard_by.is_some())
    };
    until("one is heard by others only", async || by_others().await.is_some()).await;
    let far = by_others().await.unwrap().site;
    let location = format!("site6 & {far}");
    let events = cluster.submit(5, "far", &shell(&location, "add", "true")).await;
    assert!(replies(&events).iter().all(|(_, status)| *status == "OK"), "{events:?}");
    assert_eq!(replies(&events).len(), 2, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_site_knows_of_others_it_knows_after_a_start() {
    let mut cluster = Cluster::from_one(3).await;
    let kept = cluster.dir().join("site3").join("directory");
    until("it is on the disk", async || {
        let bytes = std::fs::read(&kept).unwrap_or_default();
        [&b"site1"[..], b"site2", b"site3"]
            .iter()
            .all(|name| bytes.windows(5).any(|it| it == *name))
    })
    .await;
    // The one whose address it was told is not there any more.
    cluster.stop(0).await;
    cluster.stop(2).await;
    cluster.start(2).await;
    until("the others find each other", async || {
        seen(&cluster, 2, 2).await.is_some_and(|(state, _)| state == SiteState::Up)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_removed_is_refused_everywhere_at_once_and_told_why() {
    let cluster = Cluster::from_one(4).await;
    let authority = cluster.dir().join("mesh");
    let removal = Removal { site: site(3), dead: false, when_ms: 7, asked_by: "admin".into() };
    let signed = mesh::sign(&authority, &Statement::Removal(removal)).unwrap();
    cluster.agent(1).hand_in(&signed).unwrap();
    for by in [0, 1, 3] {
        until("it is gone", async || {
            let directory = cluster.agent(by).directory();
            matches!(directory.existence(&site(3)), Existence::Removed(_))
                && seen(&cluster, by, 3).await.is_none()
        })
        .await;
    }
    until("it is told so", async || {
        let told = seen(&cluster, 2, 1).await;
        told.is_none_or(|(_, problem)| problem.contains("was removed from the mesh"))
    })
    .await;
    let refused = cluster.client(0).submit("x", &shell("site1 & site3", "add", "true"), &[]).await;
    assert!(refused.is_err(), "nothing new is held there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_is_refused_within_moments_and_no_other() {
    let cluster = Cluster::from_one(3).await;
    let key: KeyId = cluster.agent(0).directory().key(&site(3)).unwrap();
    let revocation = Revocation { site: site(3), key, when_ms: 7 };
    let authority = cluster.dir().join("mesh");
    let signed = mesh::sign(&authority, &Statement::Revocation(revocation)).unwrap();
    cluster.agent(1).hand_in(&signed).unwrap();
    for by in [0, 1] {
        until("its links are closed", async || {
            seen(&cluster, by, 3).await.is_none_or(|(state, _)| state != SiteState::Up)
        })
        .await;
    }
    until("it is told so", async || {
        let told = [seen(&cluster, 2, 1).await, seen(&cluster, 2, 2).await];
        told.iter().flatten().any(|(_, problem)| problem.contains("was revoked"))
    })
    .await;
    assert_eq!(seen(&cluster, 0, 2).await.unwrap().0, SiteState::Up);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_signed_puts_nobody_out() {
    let cluster = Cluster::from_one(2).await;
    let other = cluster.dir().join("other-mesh");
    mesh::create(&other).unwrap();
    let removal = Removal { site: site(2), dead: true, when_ms: 7, asked_by: "nobody".into() };
    let forged = mesh::sign(&other, &Statement::Removal(removal)).unwrap();
    let refused = cluster.agent(0).hand_in(&forged).unwrap_err();
    assert_eq!(refused.to_string(), "what is said of `site2` is not signed by who may say so");
    assert_eq!(seen(&cluster, 0, 2).await.unwrap().0, SiteState::Up);
}
