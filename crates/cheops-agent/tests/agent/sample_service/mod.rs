//! An application of one service at three sites, each of which has its own ids for its things.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use axum::{Json, Router};
use futures_util::StreamExt;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::cluster::{Cluster, until};

/// A service that counts: no two sites have the same id for the same thing.
#[derive(Default)]
pub(crate) struct SampleService {
    pub(crate) next: Mutex<u64>,
    pub(crate) kept: Mutex<BTreeMap<String, Value>>,
    pub(crate) files: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Answers that it cannot do anything now.
    pub(crate) is_busy: AtomicBool,
    /// So many more changes are carried out without an answer.
    pub(crate) loses_answers: AtomicUsize,
    /// How long every answer takes.
    pub(crate) takes: Mutex<Duration>,
}

pub(crate) type Shared = Arc<SampleService>;

pub(crate) fn service(sample: &Shared) -> Router {
    Router::new()
        .route("/v1/things", get(list).post(create))
        .route("/v1/things/{id}", get(show).put(replace).patch(change).delete(remove))
        .route("/v1/things/{id}/file", put(upload).get(download))
        .route("/v1/things/{id}/parts/{part}", delete(take_off))
        .route("/v1/things/{id}/events", get(events))
        .route("/v1/limits/{project}", put(limit))
        .layer(from_fn_with_state(sample.clone(), take_time))
        .layer(from_fn_with_state(sample.clone(), lose_answers))
        .with_state(sample.clone())
}

async fn take_time(State(sample): State<Shared>, request: Request, next: Next) -> Response {
    let takes = *sample.takes.lock().unwrap();
    tokio::time::sleep(takes).await;
    next.run(request).await
}

async fn lose_answers(State(sample): State<Shared>, request: Request, next: Next) -> Response {
    let changes = !request.method().is_safe();
    let answer = next.run(request).await;
    let one_less = |left: usize| left.checked_sub(1);
    let order = Ordering::SeqCst;
    if changes && sample.loses_answers.fetch_update(order, order, one_less).is_ok() {
        // The connection ends with whoever works on it.
        std::panic::resume_unwind(Box::new("the answer is lost"));
    }
    answer
}

fn view(id: &str, thing: &Value) -> Value {
    let mut shown = thing.clone();
    shown["id"] = id.parse::<u64>().map_or_else(|_| json!(id), |id| json!(id));
    shown["self"] = json!(format!("/v1/things/{id}"));
    shown
}

async fn list(State(sample): State<Shared>) -> Json<Value> {
    let kept = sample.kept.lock().unwrap();
    let all: Vec<_> = kept.iter().map(|(id, thing)| view(id, thing)).collect();
    Json(json!({ "things": all }))
}

async fn create(State(sample): State<Shared>, Json(mut body): Json<Value>) -> Response {
    if !body["name"].is_string() {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "no name"}))).into_response();
    }
    let chosen = match &body["id"] {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    };
    let id = chosen.unwrap_or_else(|| {
        let mut next = sample.next.lock().unwrap();
        *next += 1;
        next.to_string()
    });
    body.as_object_mut().unwrap().remove("id");
    let mut kept = sample.kept.lock().unwrap();
    if kept.contains_key(&id) {
        return StatusCode::CONFLICT.into_response();
    }
    kept.insert(id.clone(), body.clone());
    let location = [("location", format!("/v1/things/{id}"))];
    (StatusCode::CREATED, location, Json(view(&id, &body))).into_response()
}

async fn show(State(sample): State<Shared>, Path(id): Path<String>) -> Response {
    match sample.kept.lock().unwrap().get(&id) {
        Some(thing) => Json(view(&id, thing)).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Refuses a body that speaks of another thing, as careful services do.
async fn replace(
    State(sample): State<Shared>,
    Path(id): Path<String>,
    Json(mut body): Json<Value>,
) -> Response {
    let said = body.as_object_mut().unwrap().remove("id");
    if said.is_some_and(|said| said != json!(id)) {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    match sample.kept.lock().unwrap().get_mut(&id) {
        Some(thing) => *thing = body,
        None => return StatusCode::NOT_FOUND.into_response(),
    }
    show(State(sample), Path(id)).await
}

async fn change(
    State(sample): State<Shared>,
    Path(id): Path<String>,
    Json(patch): Json<Value>,
) -> Response {
    if sample.is_busy.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match sample.kept.lock().unwrap().get_mut(&id) {
        Some(thing) => {
            for (key, value) in patch.as_object().unwrap() {
                thing[key] = value.clone();
            }
        }
        None => return StatusCode::NOT_FOUND.into_response(),
    }
    show(State(sample), Path(id)).await
}

async fn remove(State(sample): State<Shared>, Path(id): Path<String>) -> StatusCode {
    match sample.kept.lock().unwrap().remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}

/// Takes one file for each thing, and refuses another.
async fn upload(
    State(sample): State<Shared>,
    Path(id): Path<String>,
    request: Request,
) -> StatusCode {
    if !sample.kept.lock().unwrap().contains_key(&id) {
        return StatusCode::NOT_FOUND;
    }
    let bytes = request.into_body().collect().await.unwrap().to_bytes();
    let mut files = sample.files.lock().unwrap();
    if files.contains_key(&id) {
        return StatusCode::CONFLICT;
    }
    files.insert(id, bytes.to_vec());
    StatusCode::NO_CONTENT
}

async fn download(State(sample): State<Shared>, Path(id): Path<String>) -> Response {
    match sample.files.lock().unwrap().get(&id) {
        Some(bytes) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Parts of things are not kept: only that one was taken off.
async fn take_off(
    State(sample): State<Shared>,
    Path((id, _part)): Path<(String, String)>,
) -> StatusCode {
    match sample.kept.lock().unwrap().get_mut(&id) {
        Some(thing) => thing["taken off"] = json!(true),
        None => return StatusCode::NOT_FOUND,
    }
    StatusCode::NO_CONTENT
}

/// What happens to a thing, in JSON that never ends.
async fn events(State(sample): State<Shared>, Path(id): Path<String>) -> Response {
    if !sample.kept.lock().unwrap().contains_key(&id) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let first = futures_util::stream::once(async { Ok::<_, std::io::Error>("{\"is\": 1}\n") });
    let body = Body::from_stream(first.chain(futures_util::stream::pending()));
    ([("content-type", "application/json")], body).into_response()
}

async fn limit(State(sample): State<Shared>, Path(project): Path<String>) -> StatusCode {
    sample.files.lock().unwrap().insert(format!("limits/{project}"), Vec::new());
    StatusCode::NO_CONTENT
}

pub(crate) struct Application {
    pub(crate) cluster: Cluster,
    pub(crate) services: Vec<Shared>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Application {
    pub(crate) async fn start(more: &str) -> Self {
        let services = three();
        let mut upstreams = Vec::new();
        for one in &services {
            upstreams.push(listen(service(one)).await);
        }
        Self::before(more, services, &upstreams).await
    }

    /// Agents before services that are there, or not yet.
    pub(crate) async fn before(
        more: &str,
        services: Vec<Shared>,
        upstreams: &[SocketAddr],
    ) -> Self {
        let config = |site: usize| config(upstreams[site], more);
        Self { cluster: Cluster::each(3, config).await, services }
    }

    pub(crate) async fn ask(&self, site: usize, method: Method, path: &str, scope: &str) -> Answer {
        self.send(site, method, path, scope, ("", Vec::new())).await
    }

    pub(crate) async fn send(
        &self,
        site: usize,
        method: Method,
        path: &str,
        scope: &str,
        (kind, body): (&str, Vec<u8>),
    ) -> Answer {
        let address = self.cluster.proxy_address(site, 0);
        let mut request = Request::builder().method(method).uri(format!("http://{address}{path}"));
        if !scope.is_empty() {
            request = request.header("x-scope", scope);
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let client: Client<HttpConnector, Body> =
            Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: head.status.as_u16(), headers: head.headers, bytes }
    }

    pub(crate) async fn send_json(
        &self,
        site: usize,
        method: Method,
        path: &str,
        scope: &str,
        body: &Value,
    ) -> Answer {
        self.send(site, method, path, scope, ("application/json", body.to_string().into())).await
    }

    pub(crate) async fn create(&self, site: usize, name: &str) -> String {
        let body = json!({ "name": name });
        let made = self.send_json(site, Method::POST, "/v1/things", SCOPE, &body).await;
        assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.bytes));
        made.json()["id"].as_str().expect("a meta-id").to_owned()
    }

    /// What a site's proxy lists: ids and names.
    pub(crate) async fn listed(&self, site: usize) -> Vec<(String, String)> {
        let listed = self.ask(site, Method::GET, "/v1/things", "").await.json();
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let things = listed["things"].as_array().unwrap();
        things.iter().map(|thing| (text(&thing["id"]), text(&thing["name"]))).collect()
    }

    pub(crate) async fn all_list(&self, sites: &[usize], expected: &[(&str, &str)]) {
        // Each site makes them in an order of its own.
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        for site in sites {
            until("the site lists what it should", async || {
                let listed = self.listed(*site).await;
                let mut listed: Vec<_> =
                    listed.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect();
                listed.sort_unstable();
                listed == expected
            })
            .await;
        }
    }

    /// What became of the last change of a resource at the two sites that keep it.
    pub(crate) async fn replied(&self, resource: &str) -> Vec<(&'static str, Option<u16>)> {
        let last = async || {
            let every = cheops_api::Cursor::default();
            let page = self.cluster.client(0).operations(resource, &every).await.unwrap();
            page.items.last().map(|operation| operation.replies.clone()).unwrap_or_default()
        };
        until("both sites have replied", async || last().await.len() == 2).await;
        last().await.values().map(|reply| (reply.status.word(), reply.http_status)).collect()
    }

    pub(crate) fn count(&self, site: usize) -> usize {
        self.services[site].kept.lock().unwrap().len()
    }
}

/// What an agent before the service of its site is told of it.
pub(crate) fn config(upstream: SocketAddr, more: &str) -> String {
    format!(
        "[[services]]\nname = \"thing\"\nlisten = \"127.0.0.1:0\"\n\
         upstream = \"http://{upstream}\"\n{more}\n"
    )
}

/// The services of three sites, with ids that tell the sites apart.
pub(crate) fn three() -> Vec<Shared> {
    let one = |site: u64| {
        Arc::new(SampleService { next: Mutex::new(site * 100), ..SampleService::default() })
    };
    (0..3).map(one).collect()
}

pub(crate) fn largest_file(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => largest_file(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).max().unwrap_or(0)
}

pub(crate) const SCOPE: &str = "thing: site1 & site2";

pub(crate) async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, router);
    address
}

pub(crate) fn serve(listener: TcpListener, router: Router) {
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
}
