//! What the agents beside it do, and say of it.

use cheops_api::{Cursor, Submit, Wait};
use cheops_core::model::ResourceId;

use super::RAW;
use crate::cluster::{Cluster, shell, until};

pub(crate) const AGENTS: [usize; 2] = [0, 1];

pub(crate) fn motd() -> ResourceId {
    ResourceId::new("motd").unwrap()
}

/// A resource that lives at the agents and at the raw peer.
pub(crate) async fn shared(cluster: &Cluster) {
    let sites = format!("site1 & site2 & {RAW}");
    let begin = Submit { wait: Wait::None, ..shell(&sites, "add", "true") };
    cluster.submit(0, "motd", &begin).await;
    until("both agents hold it", async || {
        operations(cluster, 0).await.len() == 1 && operations(cluster, 1).await.len() == 1
    })
    .await;
}

/// The operations of the resource that an agent knows: name, summary, who replied.
pub(crate) async fn operations(
    cluster: &Cluster,
    site: usize,
) -> Vec<(String, String, Vec<String>)> {
    let all = Cursor { limit: Some(1_000), ..Cursor::default() };
    let Ok(page) = cluster.client(site).operations("motd", &all).await else { return Vec::new() };
    let told = page.items.into_iter();
    told.map(|it| (it.id, it.summary, it.replies.into_keys().collect())).collect()
}

/// Each agent is handed one operation, and both run it.
pub(crate) async fn go_on(cluster: &Cluster, round: &str) {
    for site in AGENTS {
        let command = format!("true {round} of {site}");
        let asked = Submit { wait: Wait::None, ..shell("", "add", &command) };
        cluster.submit(site, "motd", &asked).await;
        for other in AGENTS {
            until(&format!("both ran {command}, says {other}"), async || {
                operations(cluster, other).await.iter().any(|(_, said, replied)| {
                    said.contains(&command)
                        && ["site1", "site2"].iter().all(|it| replied.iter().any(|by| by == it))
                })
            })
            .await;
        }
    }
}

/// They go on, are started anew, and go on.
pub(crate) async fn go_on_before_and_after_a_restart(cluster: &mut Cluster) {
    go_on(cluster, "before").await;
    for site in AGENTS {
        cluster.stop(site).await;
    }
    for site in AGENTS {
        cluster.start(site).await;
    }
    go_on(cluster, "after").await;
}

pub(crate) async fn counted(cluster: &Cluster, site: usize, metric: &str) -> u64 {
    let shown = cluster.client(site).metrics().await.unwrap();
    let of = shown.lines().filter(|line| line.starts_with(metric));
    of.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// The raw peer, as an agent shows it.
pub(crate) async fn seen(cluster: &Cluster, site: usize) -> cheops_api::Site {
    let sites = cluster.client(site).sites().await.unwrap().sites;
    sites.into_iter().find(|it| it.site == RAW).unwrap()
}

/// What the feed of an agent says that the raw peer said and cannot be.
pub(crate) async fn named_in_feed(cluster: &Cluster, site: usize) -> Vec<String> {
    let changes = cluster.client(site).latest_changes(1_000).await.unwrap();
    let why = changes.into_iter().filter_map(|it| match it.change {
        cheops_api::Change::Malformed { site, why } if site == RAW => Some(why),
        _ => None,
    });
    why.collect()
}
