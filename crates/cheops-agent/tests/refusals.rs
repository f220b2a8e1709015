//! What a user hears when the answer is no, or cannot be had.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test")]

mod stage;

use std::fmt::Debug;

use cheops_api::{ClientError, Problem, Show};
use stage::{Stage, shell, until};
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
    let stage = Stage::of(1).await;
    stage.submit(0, "fed", &shell("site1", "set", "true")).await;
    let client = stage.client(0);

    // As after a disk was lost: a reader remembers more than there is.
    for resource in [None, Some("fed")] {
        let problem = refused(client.changes(resource, Some(1_000_000)).await.map(|_| ()));

        assert_eq!(problem.status, 410, "{problem:?}");
        let oldest = problem.extensions["oldest"].as_u64().unwrap();
        let mut feed = client.changes(resource, Some(oldest)).await.unwrap();
        assert!(feed.next().await.unwrap().is_some(), "it can be followed from there on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_may_not_use_the_api() {
    let stage = Stage::of(1).await;
    let here = stage.api_address(0).to_string();
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
    let mut stage = Stage::of(2).await;
    stage.stop(1).await;

    let submit = shell("site2", "set", "true");
    let problem = refused(stage.client(0).submit("far", &submit, &[]).await.map(|_| ()));

    assert_eq!(problem.status, 503, "{problem:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_is_lost_may_have_been_taken_in() {
    let mut stage = Stage::of(2).await;
    stage.submit(1, "far", &shell("site2", "set", "true")).await;
    let began = stage.file("began");
    let command = format!("echo > {began}; sleep 1000");
    let show = Show { command, sites: None, timeout_ms: 1_000_000 };
    let near = stage.client(0);
    let asking = tokio::spawn(async move { near.show("far", &show).await });
    until("site2 is at it", async || std::fs::exists(&began).unwrap()).await;

    stage.stop(1).await;

    let problem = refused(asking.await.unwrap());
    assert_eq!((problem.status, problem.title.as_str()), (502, "the answer was lost"));
}
