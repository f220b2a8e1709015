//! Resources over several sites: divided when they are made, put together when they are read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, until};
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cheops_api::CrossPlace;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

const SPREAD: &str = "store: site1 % site2";

/// A service that keeps things, and knows nothing of other sites.
struct Store {
    name: String,
    things: Mutex<BTreeMap<String, Value>>,
    made: AtomicUsize,
    full: AtomicBool,
    /// Makes what is asked for, and never says so.
    mute: AtomicBool,
    /// Who makes something waits as long as somebody else has it.
    door: tokio::sync::Mutex<()>,
    asked: AtomicUsize,
}

impl Store {
    fn things(&self) -> BTreeMap<String, Value> {
        self.things.lock().unwrap().clone()
    }

    fn capacities(&self) -> Vec<Value> {
        self.things().values().map(|thing| thing["capacity"].clone()).collect()
    }
}

type Site = State<Arc<Store>>;

fn not_found(id: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"error": format!("no thing {id}")}))).into_response()
}

async fn list(State(store): Site) -> Response {
    Json(json!({"things": store.things().values().collect::<Vec<_>>()})).into_response()
}

async fn create(State(store): Site, Json(mut thing): Json<Value>) -> Response {
    store.asked.fetch_add(1, Ordering::SeqCst);
    let _open = store.door.lock().await;
    if store.full.load(Ordering::SeqCst) {
        return (StatusCode::CONFLICT, Json(json!({"error": "full"}))).into_response();
    }
    let id = format!("{}-thing{}", store.name, store.made.fetch_add(1, Ordering::SeqCst));
    let link = format!("/v1/things/{id}");
    thing["id"] = json!(id);
    thing["self"] = json!(link);
    thing["used"] = json!(1);
    store.things.lock().unwrap().insert(id, thing.clone());
    assert!(!store.mute.load(Ordering::SeqCst), "its connection breaks");
    (StatusCode::CREATED, [("location", link), ("etag", "\"1\"".to_owned())], Json(thing))
        .into_response()
}

async fn show(State(store): Site, Path(id): Path<String>) -> Response {
    store.things().get(&id).map_or_else(|| not_found(&id), |it| Json(it).into_response())
}

async fn change(State(store): Site, Path(id): Path<String>, Json(change): Json<Value>) -> Response {
    let mut things = store.things.lock().unwrap();
    let Some(thing) = things.get_mut(&id) else { return not_found(&id) };
    for (name, value) in change.as_object().unwrap() {
        thing[name] = value.clone();
    }
    Json(thing.clone()).into_response()
}

async fn remove(State(store): Site, Path(id): Path<String>) -> Response {
    match store.things.lock().unwrap().remove(&id) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => not_found(&id),
    }
}

async fn listen(store: Arc<Store>) -> SocketAddr {
    let thing = get(show).patch(change).put(change).delete(remove);
    let router = Router::new()
        .route("/v1/things", get(list).post(create))
        .route("/v1/things/{id}", thing)
        .route("/v1/things/{id}/file", get(async || "no JSON at all"))
        .route("/v1/things/{id}/restart", post(async || "done"))
        .route("/v1/search", post(async || Json(json!({"hits": [{"id": "x"}]}))))
        .route("/v1/capacity", get(async || Json(json!({"capacity": 8, "used": 3}))))
        .with_state(store);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

struct Application {
    cluster: Cluster,
    stores: Vec<Arc<Store>>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    bytes: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }
}

impl Application {
    async fn of(count: usize) -> Self {
        let (mut stores, mut upstreams) = (Vec::new(), Vec::new());
        for n in 1..=count {
            let store = Arc::new(Store {
                name: format!("site{n}"),
                things: Mutex::default(),
                made: AtomicUsize::new(0),
                full: AtomicBool::new(false),
                mute: AtomicBool::new(false),
                door: tokio::sync::Mutex::default(),
                asked: AtomicUsize::new(0),
            });
            upstreams.push(listen(store.clone()).await);
            stores.push(store);
        }
        let service = |site: usize| {
            format!(
                "[proxy]\nanswer_limit = \"20s\"\n\
                 [[services]]\nname = \"store\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{0}\"\n\
                 [services.cross]\ndivide = \"/capacity\"\nsum = [\"/used\"]\nweights = {{ site1 = 2 }}\n\
                 [[services]]\nname = \"other\"\nlisten = \"127.0.0.1:0\"\nupstream = \"http://{0}\"\n",
                upstreams[site]
            )
        };
        Self { cluster: Cluster::each(count, service).await, stores }
    }

    async fn ask(
        &self,
        site: usize,
        method: Method,
        path: &str,
        scope: &str,
        body: Value,
    ) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(site, method, path, scope, body).await
    }

    async fn send(
        &self,
        site: usize,
        method: Method,
        path: &str,
        scope: &str,
        body: String,
    ) -> Answer {
        Self::send_to(self.cluster.proxy_address(site, 0), method, path, scope, body).await
    }

    async fn send_to(
        proxy: SocketAddr,
        method: Method,
        path: &str,
        scope: &str,
        body: String,
    ) -> Answer {
        let uri = format!("http://{proxy}{path}");
        let mut request =
            Request::builder().method(method).uri(uri).header("content-type", "application/json");
        if !scope.is_empty() {
            request = request.header("x-scope", scope);
        }
        let client: Client<HttpConnector, Body> =
            Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, bytes }
    }

    async fn read(&self, site: usize, path: &str, scope: &str) -> Answer {
        self.ask(site, Method::GET, path, scope, Value::Null).await
    }

    /// A thing of that capacity over the first two sites: where it is.
    async fn made(&self, capacity: u32) -> String {
        let thing = json!({"name": "web", "capacity": capacity});
        let answer = self.ask(0, Method::POST, "/v1/things", SPREAD, thing).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.header("location").to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_is_divided_and_the_whole_has_an_id_of_its_own() {
    let application = Application::of(2).await;
    let thing = json!({"name": "web", "capacity": 10});
    let answer = application.ask(0, Method::POST, "/v1/things", SPREAD, thing).await;

    assert_eq!((answer.status, answer.header("x-cheops-site")), (201, "site1, site2"));
    let whole = answer.json();
    let id = whole["id"].as_str().unwrap();
    assert!(id.starts_with("cross-"), "{id}");
    assert_eq!(whole["self"], format!("/v1/things/{id}"));
    assert_eq!(answer.header("location"), format!("/v1/things/{id}"));
    assert_eq!(answer.header("etag"), "", "it was that of one part");
    assert_eq!((&whole["name"], &whole["capacity"]), (&json!("web"), &json!(10)));
    assert_eq!(whole["sites"]["site1"]["capacity"], 7, "it has twice the weight");
    assert_eq!(whole["sites"]["site2"]["id"], "site2-thing0", "an ordinary resource there");
    assert_eq!(application.stores[0].capacities(), [7]);
    assert_eq!(application.stores[1].capacities(), [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_agent_tells_the_parts_that_an_id_speaks_of() {
    let application = Application::of(3).await;
    let path = application.made(10).await;
    let id = path.rsplit('/').next().unwrap();

    let whole = application.cluster.client(2).cross(id).await.unwrap();
    let parts: Vec<_> = whole.parts.iter().map(|it| (it.site.as_str(), it.id.as_str())).collect();
    assert_eq!(parts, [("site1", "site1-thing0"), ("site2", "site2-thing0")]);

    let cut_off = application.cluster.client(2).cross(&id[..id.len() - 2]).await;
    let Err(cheops_api::ClientError::Refused(problem)) = cut_off else { panic!("{cut_off:?}") };
    assert_eq!((problem.status, problem.title.as_str()), (404, "no such id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_lists_the_wholes_it_has_seen_and_reads_each_part_and_their_sum() {
    let application = Application::of(3).await;
    let path = application.made(10).await;
    let id = path.rsplit('/').next().unwrap();
    let [here, away] = [0, 2].map(|site| application.cluster.client(site));
    let listed = here.all_cross().await.unwrap();
    let places: Vec<_> = listed.iter().map(|it| (&*it.service, &*it.collection)).collect();
    assert_eq!((listed[0].cross.id.as_str(), places), (id, vec![("store", "/v1/things")]));
    assert_eq!(listed[0].cross.parts.len(), 2);
    assert_eq!(away.all_cross().await.unwrap(), []);

    let seen = here.cross_value(id, &CrossPlace::default()).await.unwrap();
    let whole = seen.whole.as_ref().unwrap();
    assert_eq!((&whole["capacity"], &whole["used"]), (&json!(10), &json!(2)), "{whole}");
    assert!(whole.get("sites").is_none(), "that is what the parts say");
    let of = |value: &cheops_api::CrossValue, part: usize| value.parts[part].value.clone();
    assert_eq!(of(&seen, 0).unwrap()["capacity"], 7);
    assert_eq!(of(&seen, 1).unwrap()["capacity"], 3);
    let refused = async |place: &CrossPlace| match away.cross_value(id, place).await {
        Err(cheops_api::ClientError::Refused(problem)) => problem.status,
        answer => panic!("{answer:?}"),
    };
    let place = |service: &str, collection: &str| CrossPlace {
        service: Some(service.to_owned()),
        collection: Some(collection.to_owned()),
    };
    assert_eq!(refused(&CrossPlace::default()).await, 404, "it was not seen there");
    assert_eq!(refused(&place("store", "/v2/things")).await, 403, "it was not made there");
    assert_eq!(refused(&place("none", "/v1/things")).await, 400);
    assert_eq!(refused(&place("store", "v1 things")).await, 400);
    let told = away.cross_value(id, &place("store", "/v1/things")).await.unwrap();
    assert_eq!(told.whole, seen.whole);
    assert_eq!(away.all_cross().await.unwrap().len(), 1, "now it was seen there, too");

    application.stores[1].things.lock().unwrap().clear();
    let part = here.cross_value(id, &CrossPlace::default()).await.unwrap().parts.remove(1);
    assert!(part.value.is_none() && part.why_not.as_ref().unwrap().contains("404"), "{part:?}");
    application.ask(0, Method::DELETE, &path, "", Value::Null).await;
    assert_eq!(here.all_cross().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_with_another_signature_or_in_another_place_is_not_followed() {
    let application = Application::of(2).await;
    let path = application.made(10).await;
    let id = path.rsplit('/').next().unwrap();
    let read = async |site, path: &str| {
        let answer = application.read(site, path, "").await;
        (answer.status, answer.header("x-cheops-error").to_owned())
    };
    let (good, bad) = ((200, String::new()), (403, "bad-id".to_owned()));
    for site in [0, 1] {
        assert_eq!(read(site, &path).await, good);
        assert_eq!(read(site, &format!("{path}?with=all")).await, good);
        // Whoever changes a bit of it has not signed it: in the parts, and in the signature. Its
        // last bytes are the end of the signature and its length.
        for place in ["thing0", "signature"] {
            let mut bytes = URL_SAFE_NO_PAD.decode(&id["cross-2".len()..]).unwrap();
            let at = match place {
                "signature" => bytes.len() - 2,
                part => bytes.windows(part.len()).position(|it| it == part.as_bytes()).unwrap(),
            };
            bytes[at] ^= 1;
            let forged = format!("/v1/things/cross-2{}", URL_SAFE_NO_PAD.encode(bytes));
            assert_eq!(read(site, &forged).await, bad, "{place}");
        }
        // What was made as a thing is nothing else.
        for elsewhere in ["/v1/servers", "/v2/things", "/v1/things/7/parts", ""] {
            assert_eq!(read(site, &format!("{elsewhere}/{id}")).await, bad, "{elsewhere}");
        }
        let file = format!("{path}/file");
        assert_eq!(read(site, &file).await, (502, "not-joinable".to_owned()), "it was asked for");
        // Nor is it known to another service.
        let other = application.cluster.proxy_address(site, 1);
        let answer = Application::send_to(other, Method::GET, &path, "", String::new()).await;
        assert_eq!((answer.status, answer.header("x-cheops-error")), (403, "bad-id"));
    }
    assert_eq!(application.stores[0].things().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_site_reads_the_whole_whatever_the_scope_says() {
    let application = Application::of(3).await;
    let path = application.made(10).await;
    for (site, scope) in [(0, SPREAD), (1, ""), (2, ""), (2, "store: site3"), (2, SPREAD)] {
        let answer = application.read(site, &path, scope).await;
        let whole = answer.json();
        assert_eq!((answer.status, answer.header("x-cheops-site")), (200, "site1, site2"));
        assert_eq!((&whole["capacity"], &whole["used"]), (&json!(10), &json!(2)), "{whole}");
        assert_eq!(whole["self"], path);
        assert_eq!(answer.header("x-cheops-incomplete"), "");
    }
    let head = application.ask(2, Method::HEAD, &path, "", Value::Null).await;
    assert_eq!((head.status, head.header("x-cheops-site")), (200, "site1, site2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_divided_again_and_a_delete_deletes_every_part() {
    let application = Application::of(3).await;
    let path = application.made(10).await;
    let change = json!({"capacity": 30, "parent": path});
    let changed = application.ask(2, Method::PATCH, &path, "", change).await;
    assert_eq!((changed.status, &changed.json()["capacity"]), (200, &json!(30)));
    assert_eq!(application.stores[0].capacities(), [20]);
    let there = application.stores[1].things();
    assert_eq!(there["site2-thing0"]["parent"], "/v1/things/site2-thing0", "the id it has there");
    assert_eq!(changed.json()["parent"], path);

    application.stores[0].things.lock().unwrap().clear();
    let deleted = application.ask(2, Method::DELETE, &path, "", Value::Null).await;
    assert_eq!((deleted.status, deleted.header("x-cheops-site")), (204, "site1, site2"));
    assert!(application.stores[1].things().is_empty());
    for method in [Method::GET, Method::DELETE] {
        let gone = application.ask(0, method, &path, "", Value::Null).await;
        assert_eq!(gone.status, 404, "{gone:?}");
        assert_eq!(gone.header("x-cheops-error"), "", "the services say so");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_joined_and_declared_numbers_are_summed() {
    let application = Application::of(3).await;
    application.made(2).await;
    application.made(4).await;
    let answer = application.read(2, "/v1/things", "store: site2 % site1").await;
    assert_eq!((answer.status, answer.header("x-cheops-site")), (200, "site2, site1"));
    let things = answer.json();
    let ids: Vec<_> = things["things"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["site2-thing0", "site2-thing1", "site1-thing0", "site1-thing1"]);
    assert!(things.get("sites").is_none());

    let query = json!({"name": "w"});
    let found = application.ask(0, Method::POST, "/v1/search", SPREAD, query).await;
    let hits = json!({"hits": [{"id": "x"}, {"id": "x"}]});
    assert_eq!((found.status, found.json()), (200, hits), "nothing was made, so nothing is named");

    let capacity = application.read(0, "/v1/capacity", "store: site1 % site3").await.json();
    assert_eq!((&capacity["capacity"], &capacity["used"]), (&json!(16), &json!(6)));
    assert_eq!(capacity["sites"]["site3"], json!({"capacity": 8, "used": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_down_is_named_and_the_rest_goes_on() {
    let mut application = Application::of(3).await;
    let path = application.made(10).await;
    application.cluster.stop(1).await;

    let answer = application.read(2, &path, "").await;
    assert_eq!((answer.status, answer.header("x-cheops-site")), (200, "site1"));
    assert_eq!(answer.header("x-cheops-incomplete"), "site2");
    let whole = answer.json();
    assert_eq!((&whole["capacity"], &whole["incomplete"]), (&json!(7), &json!(["site2"])));
    assert_eq!(whole["sites"]["site2"]["error"]["status"], 503);
    let list = application.read(2, "/v1/things", SPREAD).await;
    assert_eq!((list.status, &list.json()["incomplete"]), (200, &json!(["site2"])));

    let deleted = application.ask(2, Method::DELETE, &path, "", Value::Null).await;
    assert_eq!((deleted.status, deleted.header("x-cheops-incomplete")), (200, "site2"));
    assert_eq!(deleted.json()["incomplete"], json!(["site2"]), "somebody may repeat it");

    application.cluster.stop(0).await;
    let nobody = application.read(2, &path, "").await;
    assert_eq!((nobody.status, nobody.header("x-cheops-error")), (503, "unreachable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_made_everywhere_is_made_nowhere() {
    let mut application = Application::of(3).await;
    let thing = || json!({"name": "web", "capacity": 10});
    application.stores[1].full.store(true, Ordering::SeqCst);
    let full = application.ask(2, Method::POST, "/v1/things", SPREAD, thing()).await;
    assert_eq!((full.status, full.header("x-cheops-error")), (409, "not-created"));
    let problem = full.json();
    assert!(problem["detail"].as_str().unwrap().contains("site `site2`"), "{problem}");
    assert_eq!(problem["sites"]["site1"], json!({"state": "undone", "id": "site1-thing0"}));
    assert_eq!(problem["sites"]["site2"]["state"], "not made");
    assert!(application.stores[0].things().is_empty());

    application.cluster.stop(1).await;
    let down = application.ask(2, Method::POST, "/v1/things", SPREAD, thing()).await;
    assert_eq!((down.status, down.header("x-cheops-error")), (503, "not-created"));
    assert_eq!(down.json()["sites"]["site1"]["state"], "undone");
    assert!(application.stores[0].things().is_empty());

    application.stores[0].full.store(true, Ordering::SeqCst);
    let scope = "store: site1 % site3";
    application.stores[2].full.store(true, Ordering::SeqCst);
    let both = application.ask(2, Method::POST, "/v1/things", scope, thing()).await;
    assert_eq!((both.status, both.json()), (409, json!({"error": "full"})), "the service's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_may_be_there_is_named() {
    let application = Application::of(2).await;
    application.stores[1].mute.store(true, Ordering::SeqCst);
    let thing = json!({"name": "web", "capacity": 10});
    let answer = application.ask(0, Method::POST, "/v1/things", SPREAD, thing).await;
    assert_eq!((answer.status, answer.header("x-cheops-error")), (502, "not-created"));
    let problem = answer.json();
    assert_eq!(problem["sites"]["site1"]["state"], "undone", "{problem}");
    assert_eq!(problem["sites"]["site2"]["state"], "unknown", "{problem}");
    assert_eq!(problem["hint"], "look for what may be left at site2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_began_comes_to_its_end_without_it() {
    let application = Application::of(2).await;
    let slow = &application.stores[1];
    for (round, full) in [true, false].into_iter().enumerate() {
        slow.full.store(full, Ordering::SeqCst);
        let door = slow.door.lock().await;
        let address = application.cluster.proxy_address(0, 0);
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST /v1/things HTTP/1.1\r\nHost: x\r\nX-Scope: {SPREAD}\r\n\
             Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"capacity\":3}}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        until("both were asked", async || {
            let asked = |store: &Arc<Store>| store.asked.load(Ordering::SeqCst) > round;
            application.stores.iter().all(asked) && !application.stores[0].things().is_empty()
        })
        .await;
        drop(client);
        // By now the agent has had its turn to see that nobody waits any more.
        application.read(0, "/v1/things", "").await;
        drop(door);
        let there = usize::from(!full);
        until("it is everywhere or nowhere", async || {
            application.stores.iter().all(|store| store.things().len() == there)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_divided_or_joined_is_refused_with_the_reason() {
    let application = Application::of(2).await;
    let path = application.made(10).await;
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(5 * 1024 * 1024));
    for (method, path, scope, body, status, code) in [
        (Method::POST, "/v1/things", SPREAD, "capacity=10", 415, "not-divisible"),
        (Method::POST, "/v1/things", SPREAD, &*long, 413, "too-large"),
        (Method::GET, &*format!("{path}/file"), "", "", 502, "not-joinable"),
        (Method::POST, &*format!("{path}/restart"), "", "{}", 502, "not-joinable"),
        (Method::GET, "/v1/things", "store: site1 % (site2 ; site1)", "", 501, "not-supported"),
        (Method::GET, "/v1/things/cross-country", "", "", 404, ""),
    ] {
        let answer = application.send(0, method, path, scope, body.to_owned()).await;
        assert_eq!((answer.status, answer.header("x-cheops-error")), (status, code), "{path}");
    }
    assert_eq!(application.stores[0].things().len(), 1);
}
