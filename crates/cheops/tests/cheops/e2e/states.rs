//! States that are read and compared: what is in sync is proven, and what is not is told the same at
//! every site.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use cheops_api::{Resource, ResourceState, SiteStanding, Standing, StateAgreement, Submit, Wait};

use crate::e2e::cluster::{Cluster, Setup, Site, first, shell, until, waiting_for};
use crate::e2e::told_alike::told_alike;

/// Goes on with `[shell]`, where the config of a site in these tests ends.
const VERIFY_OFTEN: &str = "verify_every = \"1s\"\n";

fn with_config(submit: Submit, cluster: &Cluster, config: &str) -> Submit {
    first(submit, &cluster.everywhere(), config)
}

pub(super) async fn one_at_each_site(cluster: &Cluster, id: &str, operations: [(&str, &str); 3]) {
    for (site, (kind, command)) in cluster.sites().zip(operations) {
        site.does(id, &waiting_for(Wait::Local, shell(kind, command))).await;
    }
}

pub(super) async fn until_all_say(
    cluster: &Cluster,
    id: &str,
    what: &str,
    holds: impl Fn(&Resource) -> bool,
) {
    for site in cluster.sites() {
        let what = format!("{} says of {id}: {what}", site.name);
        until(&what, async || site.resource(id).await.is_some_and(|told| holds(&told))).await;
    }
}

pub(super) fn is_verified(told: &Resource) -> bool {
    let agreed = told.proof.as_ref().map(|proof| proof.agreement);
    told.summary.verified.is_some() && agreed == Some(StateAgreement::Verified)
}

/// The sites that have diverged, as one site tells.
pub(super) fn diverged(told: &Resource) -> Vec<&str> {
    let has = |at: &&cheops_api::SiteStanding| at.standing == Standing::Diverged;
    told.standings.iter().filter(has).map(|at| at.site.as_str()).collect()
}

pub(super) fn same_everywhere(cluster: &Cluster, value: impl Fn(&Site) -> String) -> String {
    let values: Vec<String> = cluster.sites().map(value).collect();
    assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "{values:?}");
    values[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_made_in_a_cut_end_equal_and_verified_with_a_target_and_without_one_all_say_they_differ()
 {
    let cluster = Setup::sites(3).start().await;
    let profile = r#"{"Profile": "file", "Target": "__ID__"}"#;
    let bare = r#"{"Profile": "file"}"#;
    // Nothing overwrites: there is no operation to begin again from.
    for (id, config) in [("with-target", profile), ("without", bare)] {
        let start = shell("add", "echo begin >> __ID__");
        cluster[1].does(id, &with_config(start, &cluster, config)).await;
        cluster.converges(id).await;
    }
    until_all_say(&cluster, "with-target", "verified", is_verified).await;
    // Nobody has said how conflicts are resolved: the order may matter.
    let silent = Submit { sites: Some(cluster.everywhere()), ..shell("say", "echo 0 > __ID__") };
    cluster[1].does("unsaid", &silent).await;
    cluster.converges("unsaid").await;
    cluster.cut();
    let appends =
        [("add", "echo 1 >> __ID__"), ("add", "echo 2 >> __ID__"), ("add", "echo 3 >> __ID__")];
    for id in ["with-target", "without", "unsaid"] {
        one_at_each_site(&cluster, id, appends).await;
    }
    cluster.nobody_hears().await;
    cluster.heal();
    until_all_say(&cluster, "with-target", "verified", is_verified).await;
    let text = same_everywhere(&cluster, |site| site.file("with-target"));
    assert_eq!(text.lines().count(), 4, "{text}");
    told_alike(&cluster, "with-target", ResourceState::Converged).await;
    for id in ["without", "unsaid"] {
        told_alike(&cluster, id, ResourceState::Diverged).await;
        let told = cluster[1].resource(id).await.unwrap();
        assert!(told.summary.verified.is_none());
    }
    let out = cluster[2].cheops(&["resource", "with-target"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("verified: all sites read the same state"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_redis_set_added_and_removed_in_a_cut_end_equal_and_verified() {
    let cluster = Setup::sites(3).with_redis().start().await;
    let config = r#"{"Profile": "redis", "Target": "team \"a\""}"#;
    let redis = |words: &str| format!("redis-cli -e -s redis.sock {words}");
    let start = shell("sadd", redis(r#"sadd 'team "a"' ann bob 'carl é'"#));
    cluster[1].does("team", &with_config(start, &cluster, config)).await;
    until_all_say(&cluster, "team", "verified", is_verified).await;
    cluster.cut();
    let operations = [
        ("srem", redis(r#"srem 'team "a"' bob"#)),
        ("sadd", redis(r#"sadd 'team "a"' dora bob"#)),
        ("srem", redis(r#"srem 'team "a"' ann dora"#)),
    ];
    let [a, b, c] = &operations;
    one_at_each_site(&cluster, "team", [(a.0, &a.1), (b.0, &b.1), (c.0, &c.1)]).await;
    cluster.nobody_hears().await;
    cluster.heal();
    until_all_say(&cluster, "team", "verified", is_verified).await;
    let sorted = |site: &Site| {
        let members = site.redis(&["smembers", r#"team "a""#]);
        let mut members: Vec<_> = members.lines().map(str::to_owned).collect();
        members.sort();
        members.join(",")
    };
    assert_eq!(same_everywhere(&cluster, sorted), "bob,carl é");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_behind_our_back_is_told_at_every_site_shown_by_diff_and_set_right_by_force() {
    let cluster = Setup::sites(3).config(VERIFY_OFTEN).start().await;
    let config = r#"{"Profile": "file", "Target": "motd"}"#;
    let start = shell("set", "echo hello > motd");
    cluster[1].does("motd", &with_config(start, &cluster, config)).await;
    until_all_say(&cluster, "motd", "verified", is_verified).await;
    assert_eq!(cluster[3].cheops(&["diff", "motd"]).status.code(), Some(0));

    cluster[2].change_file("motd", "hello, stranger\n");
    let name = cluster[2].name.clone();
    until_all_say(&cluster, "motd", "that one has diverged", |it| diverged(it) == [name.as_str()])
        .await;
    told_alike(&cluster, "motd", ResourceState::Diverged).await;
    let out = cluster[3].cheops(&["diff", "motd"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("hello, stranger") && text.contains("the sites differ"), "{text}");

    let force = Submit { force: true, ..shell("set", "echo again > motd") };
    cluster[1].does("motd", &force).await;
    until_all_say(&cluster, "motd", "verified", is_verified).await;
    told_alike(&cluster, "motd", ResourceState::Converged).await;
    assert_eq!(same_everywhere(&cluster, |site| site.file("motd")), "again\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_appends_made_in_a_cut_without_a_target_are_told_as_diverged_at_every_site() {
    let cluster = Setup::sites(3).start().await;
    let start = shell("add", "echo begin >> list");
    let profile = r#"{"Profile": "file"}"#;
    cluster[1].does("list", &with_config(start, &cluster, profile)).await;
    told_alike(&cluster, "list", ResourceState::Converged).await;
    cluster.cut();
    cluster.nobody_hears().await;
    for (number, command) in [(1, "echo left >> list"), (2, "echo right >> list")] {
        let append = waiting_for(Wait::Local, shell("add", command));
        cluster[number].does("list", &append).await;
    }
    cluster.heal();
    let standings = told_alike(&cluster, "list", ResourceState::Diverged).await;
    assert!(standings.iter().any(|at| at.standing == Standing::Diverged), "{standings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_words_said_in_a_cut_without_a_profile_are_told_as_diverged_at_every_site() {
    let cluster = Setup::sites(3).start().await;
    let start = Submit { sites: Some(cluster.everywhere()), ..shell("say", "echo > word") };
    cluster[1].does("word", &start).await;
    told_alike(&cluster, "word", ResourceState::Converged).await;
    cluster.cut_off(3);
    until("site3 hears nobody", async || cluster[3].hears().await == 0).await;
    until("nobody hears site3", async || cluster[1].hears().await == 1).await;
    for (number, word) in [(1, "AAA"), (3, "BBB")] {
        let say = waiting_for(Wait::Local, shell("say", format!("echo {word} > word")));
        cluster[number].does("word", &say).await;
    }
    // It is there that the first one arrives before the second.
    until("site2 says it as well", async || cluster[2].file("word") == "AAA\n").await;
    cluster.join(3);
    let standings = told_alike(&cluster, "word", ResourceState::Diverged).await;
    assert!(standings.iter().any(|at| at.standing == Standing::Diverged), "{standings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_at_every_site_is_told_as_failed_at_every_site_and_is_in_sync_nowhere() {
    let cluster = Setup::sites(3).start().await;
    let start = shell("set", "echo begin > list");
    cluster[1].does("list", &with_config(start, &cluster, r#"{"Profile": "file"}"#)).await;
    told_alike(&cluster, "list", ResourceState::Converged).await;
    let failed = cluster[2].does("list", &shell("add", "cat there-is-no-such-file >> list")).await;
    let standings = told_alike(&cluster, "list", ResourceState::Error).await;
    let is_it = |at: &SiteStanding| {
        let of_it = at.operation.as_ref() == Some(&failed);
        at.standing == Standing::Failed && of_it && !at.can_retry
    };
    assert!(standings.len() == 3 && standings.iter().all(is_it), "{standings:?}");
    for site in cluster.sites() {
        let out = site.cheops(&["status"]);
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.contains(&format!("cheops dismiss list {failed}")), "{text}");
    }
    let out = cluster[3].cheops(&["dismiss", "list", &failed]);
    assert!(out.status.success(), "{out:?}");
    told_alike(&cluster, "list", ResourceState::Converged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_does_not_change_when_operations_do_is_not_believed() {
    let cluster = Setup::sites(2).config(VERIFY_OFTEN).start().await;
    let config = r#"{"Profile": "file", "Target": "another"}"#;
    let start = shell("set", "echo 0 > __ID__");
    cluster[1].does("motd", &with_config(start, &cluster, config)).await;
    for n in 1..=4 {
        cluster[1].does("motd", &shell("set", format!("echo {n} > __ID__"))).await;
        // Times of one form, of one machine.
        let is_read = |told: &Resource| {
            let read = told.proof.as_ref().and_then(|proof| proof.read_here.as_deref());
            read > told.summary.last_change.as_deref()
        };
        until_all_say(&cluster, "motd", "it was read since", is_read).await;
    }
    let doubts = |told: &Resource| {
        let why = told.proof.as_ref().and_then(|proof| proof.why_not.as_deref());
        why.is_some_and(|why| why.contains("stayed the same")) && told.summary.verified.is_none()
    };
    until_all_say(&cluster, "motd", "it is not believed", doubts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_at_one_site_is_run_again_there_or_let_be_and_all_sites_say_so() {
    let cluster = Setup::sites(3).start().await;
    let config = r#"{"Profile": "file"}"#;
    let start = shell("set", "echo begin > __ID__");
    for id in ["mended", "left"] {
        cluster[1].does(id, &with_config(start.clone(), &cluster, config)).await;
        cluster.converges(id).await;
    }
    // There is no such file at the second site.
    for number in [1, 3] {
        cluster[number].change_file("needed", "more\n");
    }
    let mut failed = Vec::new();
    for id in ["mended", "left"] {
        failed.push(cluster[1].does(id, &shell("add", "cat needed >> __ID__")).await);
        let says = |told: &Resource| {
            let site2 = told.standings.iter().find(|at| at.site == "site2");
            site2.is_some_and(|at| at.standing == Standing::Failed)
        };
        until_all_say(&cluster, id, "it failed at site2", says).await;
    }
    let said = |site: &Site, arguments: &[&str]| {
        let out = site.cheops(arguments);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        (out.status.code(), text)
    };
    let (code, text) = said(&cluster[1], &["retry", "mended", &failed[0]]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--site site2"), "{text}");

    cluster[2].change_file("needed", "more\n");
    let (code, text) = said(&cluster[1], &["retry", "mended", &failed[0], "--site", "site2"]);
    assert_eq!(code, Some(0), "{text}");
    cluster.converges("mended").await;
    assert_eq!(same_everywhere(&cluster, |site| site.file("mended")), "begin\nmore\n");

    let (code, text) = said(&cluster[3], &["dismiss", "left", &failed[1]]);
    assert_eq!(code, Some(0), "{text}");
    cluster.converges("left").await;
    assert_eq!(cluster[2].file("left"), "begin\n");
    let (code, _) = said(&cluster[3], &["dismiss", "left", &failed[1]]);
    assert_eq!(code, Some(2), "there is nothing to dismiss any more");
}

/// The image store of each site, which all requests there reach as `http://image`.
struct ImageStores(Vec<std::process::Child>);

impl ImageStores {
    fn at(cluster: &Cluster) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imagery/image.mjs");
        let start = |number: u8| {
            let mut command = cluster.command(number, "node");
            command.args([program, "--listen", "127.0.0.1:0", "--client-ids", "--data"]);
            command.arg(cluster[number].files.join("images")).stdout(Stdio::piped());
            let mut process = command.spawn().expect("node runs");
            let mut line = String::new();
            BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            let port = line.trim().rsplit(':').next().unwrap();
            let leads = format!("connect-to = \"image:80:127.0.0.1:{port}\"\n");
            cluster[number].change_file("curlrc", &leads);
            process
        };
        Self(cluster.numbers().map(start).collect())
    }
}

impl Drop for ImageStores {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _gone = process.kill();
            let _gone = process.wait();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_of_a_resource_of_a_service_made_in_a_cut_end_equal_and_verified() {
    let cluster = Setup::sites(3).start().await;
    let _stores = ImageStores::at(&cluster);
    let config = r#"{"Profile": "http", "Target": "http://image/v1/images/front",
                     "Volatile": ["/created", "/self"]}"#;
    let curl = |words: &str| format!("curl -K curlrc -fsS http://image/v1/images{words}");
    let create = shell("create", curl(r#" -d '{"id":"front","name":"begin"}'"#));
    cluster[1].does("front", &with_config(create, &cluster, config)).await;
    until_all_say(&cluster, "front", "verified", is_verified).await;
    cluster.cut();
    let patch = |text: &str| curl(&format!("/front -X PATCH -d '{text}'"));
    let [a, b, c] = [
        patch(r#"{"name":"one","one":1}"#),
        patch(r#"{"name":"two","shape":"round"}"#),
        patch(r#"{"name":"three","shape":null}"#),
    ];
    one_at_each_site(&cluster, "front", [("patch", &a), ("patch", &b), ("patch", &c)]).await;
    cluster.nobody_hears().await;
    cluster.heal();
    until_all_say(&cluster, "front", "verified", is_verified).await;
    let record = |number: u8| {
        let mut command = cluster.command(number, "curl");
        command.args(["-K", "curlrc", "-fsS", "http://image/v1/images/front"]);
        let read = command.current_dir(&cluster[number].files).output().unwrap();
        let mut record: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
        record.as_object_mut().unwrap().remove("created");
        record
    };
    let first = record(1);
    assert_eq!(first["one"], 1, "what only one of them named is there: {first}");
    assert!(cluster.numbers().all(|number| record(number) == first), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_whose_state_differs_since_an_operation_failed_there_offers_to_run_that_again() {
    let cluster = Setup::sites(3).start().await;
    let config = r#"{"Profile": "file", "Target": "motd"}"#;
    let start = shell("set", "echo hello > motd");
    cluster[1].does("motd", &with_config(start, &cluster, config)).await;
    until_all_say(&cluster, "motd", "verified", is_verified).await;

    cluster[2].change_file("full", "");
    let add = cluster[1].does("motd", &shell("add", "[ ! -e full ] && echo more >> motd")).await;
    let name = cluster[2].name.clone();
    until_all_say(&cluster, "motd", "what failed there", |it| {
        diverged(it) == [name.as_str()]
            && it.standings.iter().any(|at| at.operation.as_ref() == Some(&add))
    })
    .await;
    let out = cluster[3].cheops(&["status"]);
    let text = String::from_utf8_lossy(&out.stdout);
    let way = format!("cheops retry motd {add} --site {name}");
    assert!(text.contains(&way), "{text}");

    std::fs::remove_file(cluster[2].files.join("full")).unwrap();
    let out = cluster[3].cheops(&["retry", "motd", &add, "--site", &name]);
    assert!(out.status.success(), "{out:?}");
    until_all_say(&cluster, "motd", "verified", is_verified).await;
    assert_eq!(same_everywhere(&cluster, |site| site.file("motd")), "hello\nmore\n");
}
