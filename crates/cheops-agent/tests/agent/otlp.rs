//! What a collector hears of operations. It takes the process's log: one test, in a process of its own.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, shell, until};
use bytes::Bytes;
use cheops_agent::telemetry::SpanExport;
use cheops_api::SubmitEvent;
use cheops_core::model::SiteId;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tracing_subscriber::layer::SubscriberExt;

/// The bodies that came, each with its path and type.
type Heard = Arc<Mutex<Vec<(String, String, Bytes)>>>;

async fn collector() -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heard = Heard::default();
    let hears = heard.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let hears = hears.clone();
            let serve = service_fn(move |request: Request<Incoming>| {
                let hears = hears.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let kind = head.headers["content-type"].to_str().unwrap().to_owned();
                    let body = body.collect().await.unwrap().to_bytes();
                    hears.lock().unwrap().push((head.uri.path().to_owned(), kind, body));
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), serve));
        }
    });
    (address, heard)
}

/// The fields of a protobuf message that hold bytes, with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (number, rest) = bytes.split_at(end);
        *bytes = rest;
        number.iter().rev().fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f))
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => 8,
            5 => 4,
            _ => usize::try_from(varint(&mut bytes)).unwrap(),
        };
        let (content, rest) = bytes.split_at(length);
        fields.push((tag >> 3, content));
        bytes = rest;
    }
    fields
}

fn inner<'a>(bytes: &'a [u8], path: &[u64]) -> Vec<&'a [u8]> {
    path.iter().fold(vec![bytes], |all, number| {
        let found = all.into_iter().flat_map(fields);
        found.filter(|(field, _)| field == number).map(|(_, content)| content).collect()
    })
}

/// A span, as far as it is looked at here. Numbers of fields are those of OTLP's `Span`.
#[derive(Debug)]
struct Exported {
    name: String,
    id: Vec<u8>,
    parent: Vec<u8>,
    attributes: Vec<(String, String)>,
    events: Vec<String>,
    took_ns: u64,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn spans(heard: &Heard) -> Vec<Exported> {
    let heard = heard.lock().unwrap();
    let mut all = Vec::new();
    for (path, kind, body) in heard.iter() {
        assert_eq!((path.as_str(), kind.as_str()), ("/v1/traces", "application/x-protobuf"));
        for span in inner(body, &[1, 2, 2]) {
            let one = |number| inner(span, &[number]).concat();
            let time = |number| u64::from_le_bytes(one(number).try_into().unwrap());
            let attribute = |pair: &&[u8]| {
                (text(&inner(pair, &[1]).concat()), text(&inner(pair, &[2, 1]).concat()))
            };
            all.push(Exported {
                name: text(&one(5)),
                id: one(2),
                parent: one(4),
                attributes: inner(span, &[9]).iter().map(attribute).collect(),
                events: inner(span, &[11, 2]).into_iter().map(text).collect(),
                took_ns: time(8) - time(7),
            });
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_hears_of_an_operation_from_hand_in_to_the_last_reply() {
    let (address, heard) = collector().await;
    let site = SiteId::new("site1").unwrap();
    let export = SpanExport::start(&address.parse().unwrap(), &site, &Handle::current()).unwrap();
    let subscriber = tracing_subscriber::registry().with(export.layer());
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let cluster = Cluster::of(2).await;

    let events = cluster.submit(0, "report", &shell("site1 & site2", "write", "true")).await;

    let accepted = events.iter().find_map(|event| match event {
        SubmitEvent::Accepted { operation, .. } => Some(operation.clone()),
        _ => None,
    });
    let id = accepted.expect("an operation that is accepted");
    // Its span, that of its job here, and that of its job at the other site.
    until("all spans are exported", async || {
        let export = export.clone();
        tokio::task::spawn_blocking(move || export.flush()).await.unwrap();
        spans(&heard).len() == 3
    })
    .await;
    let spans = spans(&heard);
    let is_of_it = |span: &&Exported| span.attributes.contains(&("operation".into(), id.clone()));
    let of_it: Vec<&Exported> = spans.iter().filter(is_of_it).collect();
    assert_eq!(of_it.len(), 3, "{spans:#?}");
    let [whole] = *of_it.iter().filter(|span| span.name == "operation").collect::<Vec<_>>() else {
        panic!("one span of the operation: {of_it:#?}")
    };
    assert_eq!(
        whole.events,
        [
            "submitted",
            "accepted",
            "a site replied",
            "a site replied",
            "every site that is waited for has replied"
        ]
    );
    assert!(whole.took_ns > 0 && whole.parent.is_empty());
    let jobs: Vec<_> = of_it.iter().filter(|span| span.name == "job").collect();
    let within = jobs.iter().filter(|job| job.parent == whole.id);
    assert_eq!((jobs.len(), within.count()), (2, 1));
}
