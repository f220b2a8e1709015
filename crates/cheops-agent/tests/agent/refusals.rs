//! What a user hears when the answer is no, or cannot be had.

use std::fmt::Debug;

use crate::cluster::{Cluster, replies, shell, until};
use cheops_api::{ClientError, Delete, Problem, Show, Submit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn refused<T: Debug>(answer: Result<T, ClientError>) -> Problem {
    match answer {
        Err(ClientError::Refused(problem)) => *problem,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_the_feed_never_had_is_gone_and_not_waited_for() {
    let cluster = Cluster::of(1).await;
    cluster.submit(0, "fed", &shell("site1", "set", "true")).await;
    let client = cluster.client(0);

    // As after a disk was lost: a reader remembers more than there is.
    for resource in [None, Some("fed")] {
        let problem = refused(client.changes(resource, Some(1_000_000)).await.map(|_| ()));

        assert_eq!((problem.status, problem.title.as_str()), (410, "not there yet"));
        assert!(problem.detail.contains("no change 1000000 yet"), "{problem:?}");
        let oldest = problem.extensions["oldest"].as_u64().unwrap();
        let mut feed = client.changes(resource, Some(oldest)).await.unwrap();
        assert!(feed.next().await.unwrap().is_some(), "it can be followed from there on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_for_what_is_not_there_is_told_where_to_look() {
    let cluster = Cluster::of(2).await;
    let client = cluster.client(0);
    let show = Show { command: "true".to_owned(), sites: None, timeout_ms: 1_000 };
    for problem in [
        refused(client.resource("nope").await),
        refused(client.explain("nope").await),
        refused(client.show("nope", &show).await),
        refused(client.delete("nope", &Delete::default()).await.map(|_| ())),
    ] {
        assert_eq!(problem.hint.as_deref(), Some("`cheops resources` lists those there are"));
    }
    let without_sites = shell("", "set", "true");
    let problem = refused(client.submit("nope", &without_sites, &[]).await.map(|_| ()));
    assert!(problem.hint.as_ref().is_some_and(|hint| hint.contains("needs its sites")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_makes_no_sense_is_refused_in_our_own_words() {
    let cluster = Cluster::of(1).await;
    let here = cluster.api_address(0).to_string();
    for (path, said) in [
        ("/api/v1/resources?state=lost", "lost"),
        ("/api/v1/resources?sate=error", "sate"),
        ("/api/v1/changes?after=x", "invalid digit"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {here}\r\nConnection: close\r\n\r\n");
        let mut connection = TcpStream::connect(&here).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();

        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains(said) && !answer.contains("deserialize"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_may_not_use_the_api() {
    let cluster = Cluster::of(1).await;
    let here = cluster.api_address(0).to_string();
    for (origin, status) in [
        (None, 200),
        (Some(format!("http://{here}")), 200),
        (Some("http://evil.example".to_owned()), 403),
        (Some("null".to_owned()), 403),
    ] {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /api/v1/sites HTTP/1.1\r\nHost: {here}\r\n{origin}Connection: close\r\n\r\n"
        );

        let mut connection = TcpStream::connect(&here).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();

        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_a_site_that_cannot_be_reached_was_not_taken_in() {
    let mut cluster = Cluster::of(2).await;
    cluster.stop(1).await;

    let submit = shell("site2", "set", "true");
    let problem = refused(cluster.client(0).submit("far", &submit, &[]).await.map(|_| ()));

    assert_eq!(problem.status, 503, "{problem:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_may_have_been_taken_in() {
    let mut cluster = Cluster::of(2).await;
    cluster.submit(1, "far", &shell("site2", "set", "true")).await;
    let began = cluster.file("began");
    let command = format!("echo > {began}; sleep 1000");
    let show = Show { command, sites: None, timeout_ms: 1_000_000 };
    let near = cluster.client(0);
    let asking = tokio::spawn(async move { near.show("far", &show).await });
    until("site2 is at it", async || std::fs::exists(&began).unwrap()).await;

    cluster.stop(1).await;

    let problem = refused(asking.await.unwrap());
    assert_eq!((problem.status, problem.title.as_str()), (502, "the answer was lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_reading_commands_run_at_once_at_a_site_whoever_asks() {
    let cluster = Cluster::with(2, "[shell]\njobs_at_once = 1\n").await;
    cluster.submit(0, "read", &shell("site1 & site2", "set", "true")).await;
    let show = |command: &str, sites: Option<&str>, timeout_ms| Show {
        command: command.to_owned(),
        sites: sites.map(str::to_owned),
        timeout_ms,
    };
    let began = cluster.file("began");
    let long = show(&format!("echo > {began}; sleep 1000"), Some("site1"), 1_000_000);
    let near = cluster.client(0);
    let reading = tokio::spawn(async move { near.show("read", &long).await });
    until("site1 is at it", async || std::fs::exists(&began).unwrap()).await;

    for site in [0, 1] {
        let more = cluster.client(site).show("read", &show("true", Some("site1"), 100)).await;
        let problem = refused(more);
        assert_eq!((problem.status, problem.title.as_str()), (503, "too much is under way"));
        assert!(problem.detail.contains("site `site1`"), "{problem:?}");
        // What other sites show is worth having.
        let both = cluster.client(site).show("read", &show("echo me", None, 2_000)).await;
        let both = both.unwrap().sites;
        let words: Vec<_> = both.values().map(|shown| shown.status.word()).collect();
        assert_eq!(words, ["TIMEOUT", "OK"], "{both:?}");
        assert!(both["site1"].output.contains("already"), "{both:?}");
    }
    let events = cluster.submit(0, "read", &shell("", "set", "true")).await;
    assert_eq!(
        replies(&events),
        [("site1", "OK"), ("site2", "OK")],
        "operations have their own room"
    );

    reading.abort();
    until("there is room once the reader is gone", async || {
        cluster.client(1).show("read", &show("true", Some("site1"), 2_000)).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_would_turn_a_command_into_another_is_refused_when_it_is_handed_in() {
    let cluster = Cluster::of(1).await;
    let client = cluster.client(0);
    let config = |command: &str| {
        let config = serde_json::json!({ "Types": { "set": { "Undo": command } } });
        Submit { config: Some(config), ..shell("site1", "set", "true") }
    };
    for id in ["-rf", "../../etc/passwd", "a/../b", "/tmp/x", "a b; touch c", "$(touch c)"] {
        let show = Show {
            command: "cat __ID__".to_owned(),
            sites: Some("site1".to_owned()),
            timeout_ms: 1_000,
        };
        for problem in [
            refused(client.submit(id, &shell("site1", "set", "rm __ID__"), &[]).await.map(|_| ())),
            refused(client.submit(id, &config("rm '__ID__'"), &[]).await.map(|_| ())),
            refused(client.show(id, &show).await),
        ] {
            assert_eq!((problem.status, problem.title.as_str()), (400, "bad id"));
            assert!(problem.detail.contains("`__ID__`"), "{problem:?}");
        }
        let plain = shell("site1", "set", "printf %s \"$CHEOPS_RESOURCE\"");
        assert_eq!(replies(&cluster.submit(0, id, &plain).await), [("site1", "OK")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_would_fill_the_memory_is_refused_before_it_does() {
    let cluster = Cluster::of(1).await;
    let here = cluster.api_address(0).to_string();
    let part = |name: &str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n");
    let texts: String = (0..64)
        .map(|n| format!("{}\r\n{}\r\n", part(&n.to_string()), "x".repeat(65_536)))
        .collect();
    let file = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"";
    for (body, said) in [
        (part("command") + "X-Long: " + &"x".repeat(4 << 20), "without the content of a part"),
        ("x".repeat(4 << 20), "without the content of a part"),
        (texts, "bytes together"),
        (format!("{file}{}\"\r\n\r\nx\r\n", "n".repeat(2_000)), "a name is longer"),
        ((0..300).map(|n| format!("{file}{n}\"\r\n\r\nx\r\n")).collect(), "more than 272 parts"),
    ] {
        for path in ["/exec/x", "/show/x", "/api/v1/resources/x/operations"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {here}\r\nConnection: close\r\n\
                 Content-Type: multipart/form-data; boundary=b\r\n\
                 Transfer-Encoding: chunked\r\n\r\n"
            );
            let mut connection = TcpStream::connect(&here).await.unwrap();
            connection.write_all(head.as_bytes()).await.unwrap();
            let (mut answers, mut sends) = connection.split();
            // It is answered before all of it is sent, and the end never is.
            let sending = async {
                for piece in body.as_bytes().chunks(65_536) {
                    let size = format!("{:x}\r\n", piece.len());
                    for bytes in [size.as_bytes(), piece, b"\r\n"] {
                        if sends.write_all(bytes).await.is_err() {
                            return;
                        }
                    }
                }
                std::future::pending::<()>().await;
            };
            let mut answer = vec![0; 4096];
            let length = tokio::select! {
                length = answers.read(&mut answer) => length.unwrap(),
                () = sending => answers.read(&mut answer).await.unwrap_or_default(),
            };
            let answer = String::from_utf8_lossy(&answer[..length]);
            assert!(answer.starts_with("HTTP/1.1 413 "), "{path} {said}: {answer}");
            assert!(answer.contains(said), "{path} {said}: {answer}");
        }
    }
}
