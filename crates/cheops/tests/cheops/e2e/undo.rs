//! Taking an operation out: at every site, concurrent or not, and back again.

use cheops_api::{Submit, Wait};

use crate::e2e::cluster::{Cluster, Setup, first, shell, until, waiting_for};

const MATRIX: &str = r#"{"ResolutionMatrix": [
    {"Before": "set", "After": "set", "Result": "take-one"},
    {"Before": "set", "After": "add", "Result": "take-both-keep-order"},
    {"Before": "add", "After": "set", "Result": "take-both-reverse-order"},
    {"Before": "add", "After": "add", "Result": "ordered"}
]}"#;

async fn reads_everywhere(cluster: &Cluster, id: &str, text: &str) {
    for site in cluster.sites() {
        until(&format!("{id} is {text:?} at {}", site.name), async || site.file(id) == text).await;
    }
    cluster.converges(id).await;
}

/// What a command of a site printed, and how it ended.
fn says(cluster: &Cluster, site: u8, arguments: &[&str]) -> (Option<i32>, String) {
    let out = cluster[site].cheops(arguments);
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_taken_out_at_every_site_and_brought_back() {
    let cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > list"), &cluster.everywhere(), MATRIX);
    let made = cluster[1].does("list", &begin).await;
    let wrong = cluster[2].does("list", &shell("add", "echo wrong >> list")).await;
    cluster[3].does("list", &shell("add", "echo right >> list")).await;
    reads_everywhere(&cluster, "list", "begin\nwrong\nright\n").await;

    // At a site that did not receive it, while another is cut off.
    cluster.cut_off(3);
    let (code, text) = says(&cluster, 1, &["undo", "list", &wrong]);
    assert_eq!(code, Some(0), "{text}");
    cluster.join(3);
    reads_everywhere(&cluster, "list", "begin\nright\n").await;
    let told = cluster[3].client().operation("list", &wrong).await.unwrap();
    let by = told.left_out.as_ref().and_then(|out| out.by.clone()).unwrap();
    for site in cluster.numbers() {
        let (_, text) = says(&cluster, site, &["explain", "list"]);
        assert!(text.contains(&format!("it was undone, by {by}")), "{text}");
    }
    let (code, text) = says(&cluster, 2, &["undo", "list", &wrong]);
    assert!(code == Some(2) && text.contains(&by), "it is undone already: {text}");

    let (code, text) = says(&cluster, 2, &["undo", "list", &by]);
    assert_eq!(code, Some(0), "{text}");
    reads_everywhere(&cluster, "list", "begin\nwrong\nright\n").await;

    // What replaced all before it, which nobody has any more.
    cluster[1].does("list", &shell("set", "echo new > list")).await;
    let (code, text) = says(&cluster, 1, &["undo", "list", &made]);
    assert_eq!(code, Some(2), "{text}");
    let last = cluster[1].does("list", &shell("set", "echo newer > list")).await;
    let (code, text) = says(&cluster, 1, &["undo", "list", &last]);
    assert!(code == Some(2) && text.contains("cheops history list"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn undoing_the_winner_of_a_conflict_lets_the_other_one_count() {
    let cluster = Setup::sites(3).start().await;
    let begin = first(shell("set", "echo begin > motd"), &cluster.everywhere(), MATRIX);
    cluster[1].does("motd", &begin).await;
    cluster.converges("motd").await;
    cluster.cut();
    cluster.nobody_hears().await;
    let local = |submit: Submit| waiting_for(Wait::Local, submit);
    let first = cluster[1].does("motd", &local(shell("set", "echo one > motd"))).await;
    let second = cluster[2].does("motd", &local(shell("set", "echo two > motd"))).await;
    cluster.heal();
    cluster.converges("motd").await;
    let (won, other) = match cluster[3].file("motd").as_str() {
        "two\n" => (second, "one\n"),
        _ => (first, "two\n"),
    };
    let (code, text) = says(&cluster, 3, &["undo", "motd", &won]);
    assert_eq!(code, Some(0), "{text}");
    reads_everywhere(&cluster, "motd", other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_site_could_not_take_back_is_refused_with_the_reason() {
    let cluster = Setup::sites(2).start().await;
    // Nothing overwrites, nothing undoes, and nobody can read the state.
    let matrix =
        r#"{"ResolutionMatrix": [{"Before": "add", "After": "add", "Result": "ordered"}]}"#;
    let begin = first(shell("add", "echo one >> list"), &cluster.everywhere(), matrix);
    let made = cluster[1].does("list", &begin).await;
    cluster.converges("list").await;
    let (code, text) = says(&cluster, 1, &["undo", "list", &made]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("could not take") && text.contains("State"), "{text}");
    cluster.converges("list").await;

    let undo = r#"{"ResolutionMatrix": [{"Before": "inc", "After": "inc", "Result": "take-both"}],
        "Types": {"inc": {"Undo": "echo back >> count"}}}"#;
    let begin = first(shell("inc", "echo one >> count"), &cluster.everywhere(), undo);
    let made = cluster[1].does("count", &begin).await;
    cluster.converges("count").await;
    let (code, text) = says(&cluster, 2, &["undo", "count", &made]);
    assert_eq!(code, Some(0), "{text}");
    reads_everywhere(&cluster, "count", "one\nback\n").await;
}
