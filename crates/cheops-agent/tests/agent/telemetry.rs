//! What an agent says of itself: numbers for Prometheus, and the lines of one operation.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, replies, service, shell, until};
use cheops_api::SubmitEvent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head of the answer to a request with this scope.
async fn ask(proxy: SocketAddr, scope: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request =
        format!("GET / HTTP/1.1\r\nhost: x\r\nx-scope: {scope}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The numbers that a site shows.
async fn metrics(cluster: &Cluster, site: usize) -> String {
    cluster.client(site).metrics().await.unwrap()
}

fn assert_shows(metrics: &str, line: &str) {
    assert!(metrics.lines().any(|shown| shown == line), "no `{line}` in\n{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_service_the_site_that_answered_and_outcome() {
    let upstream = service(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    let of_service = format!(
        "[[services]]\nname = \"image\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{upstream}\"\n"
    );
    let cluster = Cluster::with(2, &of_service).await;
    let proxy = cluster.proxy_address(0, 0);
    for (scope, status) in
        [("image: site1", "200"), ("image: site2", "200"), ("image: nowhere", "400")]
    {
        let answer = ask(proxy, scope).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{scope}: {answer}");
    }

    let metrics = metrics(&cluster, 0).await;

    for (served_by, outcome) in [("site1", "ok"), ("site2", "ok"), ("site1", "refused")] {
        let labels = format!("service=\"image\",served_by=\"{served_by}\",outcome=\"{outcome}\"");
        assert_shows(&metrics, &format!("cheops_proxy_requests_total{{{labels}}} 1"));
        let all = format!("cheops_proxy_request_seconds_bucket{{{labels},le=\"+Inf\"}} 1");
        assert_shows(&metrics, &all);
    }
    assert!(metrics.contains("# HELP cheops_proxy_request_seconds "), "{metrics}");
    assert_shows(&metrics, "# TYPE cheops_proxy_request_seconds histogram");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_the_states_of_resources_what_waits_and_how_long_commits_take() {
    let cluster = Cluster::of(1).await;
    let events = cluster.submit(0, "report", &shell("site1", "write", "true")).await;
    assert_eq!(replies(&events), [("site1", "OK")]);
    until("all is known", async || {
        let summary = cluster.client(0).summary().await.unwrap();
        summary.by_state.get("converged") == Some(&1)
    })
    .await;

    let metrics = metrics(&cluster, 0).await;

    for (state, count) in [("converged", 1), ("in-doubt", 0), ("diverged", 0), ("waiting", 0)] {
        let line = format!("cheops_resources_by_state{{state=\"{state}\"}} {count}");
        assert_shows(&metrics, &line);
    }
    for line in [
        "cheops_queue_length{queue=\"events\"} 0",
        "cheops_sites 0",
        "cheops_log_failures_total 0",
        "cheops_notices_total{about=\"in-doubt\"} 0",
        "cheops_job_seconds_count{task=\"shell\"} 1",
        "# TYPE cheops_job_seconds histogram",
        "# TYPE cheops_commit_seconds histogram",
    ] {
        assert_shows(&metrics, line);
    }
    let named = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    for line in metrics.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let name = named(line);
        let of = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let help = format!("# HELP {} ", of.unwrap_or(&name));
        assert!(metrics.contains(&help), "`{name}` has no help");
    }
}

/// What is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_an_operation_are_found_by_its_id_from_hand_in_to_the_last_reply() {
    let lines = Lines::default();
    let writer = lines.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let cluster = Cluster::of(2).await;

    let events = cluster.submit(0, "report", &shell("site1 & site2", "write", "true")).await;

    let accepted = events.iter().find_map(|event| match event {
        SubmitEvent::Accepted { operation, .. } => Some(operation.clone()),
        _ => None,
    });
    let id = accepted.expect("an operation that is accepted");
    let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let of_it: Vec<&str> = said.lines().filter(|line| line.contains(&id)).collect();
    let count = |what: &str| of_it.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count(": accepted"), 1, "{of_it:#?}");
    assert_eq!(count(": a site replied"), 2, "{of_it:#?}");
    assert_eq!(count(": every site that is waited for has replied"), 1, "{of_it:#?}");
    // At the site where it was handed in, within its span; at the other one by itself.
    assert_eq!(count(": a job ended"), 2, "{of_it:#?}");
    let within = of_it.iter().filter(|line| line.contains("operation{") && line.contains(":job{"));
    assert_eq!(within.count(), 2, "a beginning and an end: {of_it:#?}");
}
