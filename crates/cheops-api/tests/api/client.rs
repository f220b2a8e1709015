//! The client against canned answers, sent in pieces.

use std::io::Write;
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::request::request;
use cheops_api::{
    Action, Client, ClientError, Cursor, Delete, ShellAction, Submit, SubmitEvent, Upload, Wait,
};

/// An agent that hears one request and answers these pieces, whatever it was asked.
struct Canned {
    address: String,
    heard: JoinHandle<String>,
}

impl Canned {
    fn answering(pieces: &[&str]) -> Self {
        let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let heard = request(&mut stream);
            for piece in pieces {
                stream.write_all(piece.as_bytes()).unwrap();
                stream.flush().unwrap();
            }
            heard
        });
        Self { address, heard }
    }

    fn client(&self) -> Client {
        Client::new(&self.address).unwrap()
    }

    fn heard(self) -> String {
        self.heard.join().unwrap()
    }
}

fn inc() -> Submit {
    Submit {
        kind: "inc".to_owned(),
        sites: Some("paris & lyon".to_owned()),
        config: None,
        profile: None,
        action: Action::Shell(ShellAction { command: "cat {f}".to_owned() }),
        force: false,
        wait: Wait::All,
        timeout_ms: 1000,
    }
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn events_are_heard_whole_however_they_arrive() {
    let agent = Canned::answering(&[
        STREAM,
        "{\"event\":\"accepted\",\"operation\":\"paris-1.1\",\"resource\":\"r\",\"sites\":[\"par",
        "is\"],\"site\":\"paris\"}\n\n{\"event\":\"reply\",\"site\":\"paris\",\"operation\":\"paris-1.1\",",
        "\"status\":\"OK\",\"exit_code\":0,\"output\":\"é\\n\",\"truncated\":false,\"time\":\"t\"}\r\n{\"event\":\"done\"}",
    ]);
    let mut events = agent.client().submit("a/b é", &inc(), &[]).await.unwrap();
    assert!(
        matches!(events.next().await, Ok(Some(SubmitEvent::Accepted { site, .. })) if site == "paris")
    );
    let Ok(Some(SubmitEvent::Reply(replied))) = events.next().await else { panic!("no reply") };
    assert_eq!((replied.reply.output.as_str(), replied.reply.exit_code), ("é\n", Some(0)));
    assert_eq!(events.next().await.unwrap(), Some(SubmitEvent::Done));
    assert_eq!(events.next().await.unwrap(), None);
    let heard = agent.heard();
    assert!(
        heard.starts_with("POST /api/v1/resources/a%2Fb%20%C3%A9/operations HTTP/1.1"),
        "{heard}"
    );
    assert!(heard.contains("content-type: application/json"), "{heard}");
}

#[tokio::test]
async fn files_are_sent_in_a_form_after_the_operation() {
    let agent = Canned::answering(&[STREAM, "{\"event\":\"done\"}\n"]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"the content").unwrap();
    let upload = Upload { name: "f".to_owned(), path: file.path().to_owned() };
    let mut events = agent.client().submit("r", &inc(), &[upload]).await.unwrap();
    assert_eq!(events.next().await.unwrap(), Some(SubmitEvent::Done));
    let heard = agent.heard();
    let operation = heard.find("name=\"operation\"").unwrap();
    let content = heard.find("the content").unwrap();
    assert!(operation < content, "{heard}");
    assert!(heard.contains("name=\"f\"; filename=\"f\""), "{heard}");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named_before_anything_is_sent() {
    let client = Client::new("http://127.0.0.1:9").unwrap();
    let upload = Upload { name: "f".to_owned(), path: "/nowhere/f".into() };
    let error = client.submit("r", &inc(), &[upload]).await.err().unwrap();
    assert!(matches!(error, ClientError::Unreadable { .. }), "{error}");
    assert_eq!(error.to_string(), "cannot read `/nowhere/f`");
}

#[tokio::test]
async fn changes_are_numbered_and_unknown_ones_passed_over() {
    let agent = Canned::answering(&[
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: hello\n\nid: 4\nevent: si",
        "te-up\ndata: {\"at\":\"t\",\"event\":\"site-up\",\ndata: \"site\":\"lyon\"}\n\nid: 5\nevent: from-the-future\ndata: {}\n\n",
        "id: 6\nevent: converged\ndata: {\"at\":\"t\",\"event\":\"converged\",\"resource\":\"r\"}\n\nid: 7\nevent: converged\n",
    ]);
    let mut changes = agent.client().changes(Some("r/s"), Some(3)).await.unwrap();
    let first = changes.next().await.unwrap().unwrap();
    assert_eq!((first.id, first.change.name()), (4, "site-up"));
    let second = changes.next().await.unwrap().unwrap();
    assert_eq!((second.id, second.change.resource()), (6, Some("r")));
    assert_eq!(changes.next().await.unwrap(), None);
    let heard = agent.heard();
    assert!(heard.starts_with("GET /api/v1/changes/r%2Fs "), "{heard}");
    assert!(heard.contains("last-event-id: 3"), "{heard}");
}

#[tokio::test]
async fn a_problem_is_passed_on_as_it_is() {
    let body = r#"{"type":"about:blank","title":"unknown resource","status":404,"detail":"`r` is not known here","hint":"give `sites`","resource":"r"}"#;
    let head = format!(
        "HTTP/1.1 404 Not Found\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let agent = Canned::answering(&[&head, body]);
    let error = agent.client().resource("r").await.unwrap_err();
    assert_eq!(error.to_string(), "`r` is not known here");
    let ClientError::Refused(problem) = error else { panic!("{error}") };
    assert_eq!((problem.status, problem.hint.as_deref()), (404, Some("give `sites`")));
    assert_eq!(problem.extensions["resource"], "r");
}

#[tokio::test]
async fn an_error_without_a_problem_is_told_by_its_text() {
    let agent = Canned::answering(&["HTTP/1.1 502 Bad Gateway\r\ncontent-length: 5\r\n\r\noops\n"]);
    let error = agent.client().sites().await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(problem) if problem.status == 502), "{error}");
    assert_eq!(error.to_string(), "oops");
}

#[tokio::test]
async fn what_is_no_agent_is_told_so() {
    let agent = Canned::answering(&["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"]);
    let error = agent.client().operations("r", &Cursor::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_end() {
    let agent = Canned::answering(&[
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "11\r\n{\"event\":\"done\"}\n\r\n",
    ]);
    let mut events = agent.client().delete("r", &Delete::default()).await.unwrap();
    assert_eq!(events.next().await.unwrap(), Some(SubmitEvent::Done));
    let error = events.next().await.unwrap_err();
    assert!(matches!(error, ClientError::BrokeOff { .. }), "{error}");
    assert!(agent.heard().starts_with("DELETE /api/v1/resources/r "));
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    // Bound and dropped: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::new(&address.to_string()).unwrap().sites().await.unwrap_err();
    assert!(matches!(&error, ClientError::Unreachable { .. }), "{error}");
    assert_eq!(error.to_string(), format!("no agent answers at `http://{address}`"));
}
