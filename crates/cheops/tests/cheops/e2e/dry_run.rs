//! `--dry-run`: what would come of something is told, and nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::e2e::cluster::{Cluster, Setup, first, shell, until};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-one"},
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"}
]}"#;

/// What the logs of all sites hold, row by row of what is to stay.
fn logs(cluster: &Cluster) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = cluster
        .sites()
        .flat_map(|site| ["log.db", "log.db-wal", "journal"].map(|name| site.data.join(name)));
    files.map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect()
}

fn says(cluster: &Cluster, site: u8, arguments: &[&str]) -> (Option<i32>, String) {
    let out = cluster[site].cheops(arguments);
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_would_be_and_the_logs_stay_as_they_are_byte_for_byte() {
    let mut cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > list"), &cluster.everywhere(), MATRIX);
    cluster[1].does("list", &begin).await;
    let added = cluster[2].does("list", &shell("add", "echo more >> list")).await;
    cluster.converges("list").await;
    let fails = shell("set", "[ $CHEOPS_SITE != site2 ]");
    let failed = cluster[1].does("broken", &first(fails, &cluster.everywhere(), MATRIX)).await;
    until("all know that it failed at site2", async || {
        let known = cluster[1].resource("broken").await;
        known.is_some_and(|it| it.standings.iter().filter(|at| at.can_retry).count() == 1)
    })
    .await;
    cluster[3].stop().await;
    until("site3 is missed", async || {
        cluster[1].hears().await == 1 && cluster[2].hears().await == 1
    })
    .await;
    let exec = |kind: &'static str, rest: &[&'static str]| {
        let mut words = vec!["exec", "--id", "list", "--type", kind, "--dry-run"];
        words.extend(rest);
        words
    };
    let cases: [(Vec<&str>, Option<i32>, Vec<&str>); 12] = [
        (
            exec("add", &["--", "echo even more >> list"]),
            Some(0),
            vec!["3. new: this add: echo even more", "not connected now: site3"],
        ),
        (
            exec("set", &["--", "echo anew > list"]),
            Some(0),
            vec!["would replace all before it", "would be overridden", &added],
        ),
        (exec("add", &["--force", "--", "echo x > list"]), Some(0), vec!["by force", &added]),
        (
            vec![
                "http",
                "--id",
                "list",
                "--type",
                "add",
                "--service",
                "web",
                "PUT",
                "/x",
                "--dry-run",
            ],
            Some(0),
            vec!["3. new: this add: PUT web/x"],
        ),
        (vec!["delete", "list", "--dry-run"], Some(0), vec!["would be overridden", &added]),
        (vec!["undo", "list", &added, "--dry-run"], Some(0), vec!["it is undone", "1."]),
        (
            vec!["undo", "list", &added, "--dry-run", "--site", "site2"],
            Some(0),
            vec!["as site2 sees it", "it is undone"],
        ),
        (vec!["retry", "list", &added, "--dry-run"], Some(2), vec!["did not fail at this site"]),
        (
            vec!["retry", "broken", &failed, "--dry-run", "--site", "site2"],
            Some(0),
            vec!["as site2 sees it", "would run again at site2"],
        ),
        (vec!["dismiss", "broken", &failed, "--dry-run"], Some(0), vec!["would be let be at"]),
        (
            vec!["settle", "list", &added, "skip", "--dry-run"],
            Some(2),
            vec!["no operation of `list` has an unknown result"],
        ),
        (
            vec![
                "exec",
                "--id",
                "list",
                "--type",
                "add",
                "--sites",
                "site1 & site2",
                "--dry-run",
                "--",
                ":",
            ],
            Some(2),
            vec!["lives on"],
        ),
    ];
    let new =
        ["exec", "--id", "new", "--sites", "site1 & site2", "--type", "set", "--dry-run", "--"];
    // What was written before may come to rest while they run: what one of them wrote would be found in each
    // round.
    until("a round of dry runs leaves all logs as they are, byte for byte", async || {
        let before = logs(&cluster);
        for (words, expected, wanted) in &cases {
            let (code, text) = says(&cluster, 1, words);
            assert_eq!(code, *expected, "{words:?}: {text}");
            assert!(wanted.iter().all(|wanted| text.contains(wanted)), "{words:?}: {text}");
        }
        let (code, text) = says(&cluster, 1, &[&new[..], &[":"]].concat());
        assert!(code == Some(0) && text.contains("it would be made"), "{text}");
        logs(&cluster) == before
    })
    .await;
    assert!(cluster[1].resource("new").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_which_other_site_could_not_follow() {
    let cluster = Setup::sites(3).start().await;
    // Nothing overwrites, nothing undoes, and nobody can read the state.
    let matrix =
        r#"{"ResolutionMatrix": [{"Before": "add", "After": "add", "Result": "ordered"}]}"#;
    let begin = first(shell("add", "echo begin >> list"), &cluster.everywhere(), matrix);
    cluster[1].does("list", &begin).await;
    let at_site2 = shell("add", "[ $CHEOPS_SITE = site2 ] && echo more >> list");
    let added = cluster[1].does("list", &at_site2).await;
    for site in cluster.sites() {
        until(&format!("{} knows what became of it everywhere", site.name), async || {
            let told = site.client().operation("list", &added).await;
            told.is_ok_and(|told| told.replies.len() == 3)
        })
        .await;
    }
    // It failed at this site, where there is nothing to take out.
    let (code, text) = says(&cluster, 1, &["undo", "list", &added, "--dry-run"]);
    assert_eq!(code, Some(1), "{text}");
    for wanted in ["site2 would refuse it", "could not take", "site3 could follow, too"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let (code, text) = says(&cluster, 1, &["undo", "list", &added, "--dry-run", "--site", "site3"]);
    assert!(code == Some(0) && !text.contains("site2 would"), "one that is named: {text}");
    let more = ["exec", "--id", "list", "--type", "add", "--dry-run", "--", "echo x >> list"];
    let (code, text) = says(&cluster, 1, &more);
    assert!(code == Some(0) && text.contains("site2 and site3 could follow, too"), "{text}");
}
