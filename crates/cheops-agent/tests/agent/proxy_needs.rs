//! Things of a service that rest on others: what is needed comes first at every site, and ids belong
//! to the service that gave them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::cluster::until;
use crate::sample_service::{Application, listen, three};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Albums with photos. It refuses photos of albums that it does not know.
#[derive(Default)]
struct Gallery {
    drawn: Mutex<u64>,
    albums: Mutex<BTreeMap<String, Album>>,
}

#[derive(Default)]
struct Album {
    name: String,
    photos: Vec<String>,
}

type Shared = Arc<Gallery>;

impl Gallery {
    fn draw(&self) -> u64 {
        let mut drawn = self.drawn.lock().unwrap();
        *drawn += 1;
        *drawn
    }

    /// The names of the photos of each album, by its name.
    fn shown(&self) -> BTreeMap<String, Vec<String>> {
        let albums = self.albums.lock().unwrap();
        let sorted = |album: &Album| {
            let mut photos = album.photos.clone();
            photos.sort();
            (album.name.clone(), photos)
        };
        albums.values().map(sorted).collect()
    }
}

fn service(gallery: &Shared) -> Router {
    Router::new()
        .route("/albums", get(list).post(create))
        .route("/albums/{album}/photos", post(add))
        .with_state(gallery.clone())
}

async fn list(State(gallery): State<Shared>) -> Json<Value> {
    Json(json!(gallery.shown()))
}

async fn create(State(gallery): State<Shared>, Json(body): Json<Value>) -> Response {
    let id = gallery.draw();
    let name = body["name"].as_str().unwrap().to_owned();
    let album = Album { name, photos: Vec::new() };
    gallery.albums.lock().unwrap().insert(id.to_string(), album);
    (StatusCode::CREATED, Json(json!({ "id": id }))).into_response()
}

async fn add(
    State(gallery): State<Shared>,
    Path(album): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let id = gallery.draw();
    let mut albums = gallery.albums.lock().unwrap();
    let Some(album) = albums.get_mut(&album) else {
        return (StatusCode::NOT_FOUND, "no such album").into_response();
    };
    album.photos.push(body["name"].as_str().unwrap().to_owned());
    (StatusCode::CREATED, Json(json!({ "id": id }))).into_response()
}

const SCOPE: &str = "thing: site1 & site2";
const AT_ALL: &str = "thing: site1 & site2 & site3";

/// Three agents, each before a gallery of its own with ids of its own.
async fn galleries() -> (Application, Vec<Shared>) {
    let one =
        |site: u64| Arc::new(Gallery { drawn: Mutex::new(site * 1_000), ..Gallery::default() });
    let galleries: Vec<Shared> = (0..3).map(one).collect();
    let mut upstreams = Vec::new();
    for gallery in &galleries {
        upstreams.push(listen(service(gallery)).await);
    }
    let more = "collections = [\"/albums/*/photos\"]";
    (Application::before(more, three(), &upstreams).await, galleries)
}

async fn make(
    application: &Application,
    (site, scope): (usize, &str),
    path: &str,
    name: &str,
) -> String {
    let body = json!({ "name": name });
    let made = application.send_json(site, Method::POST, path, scope, &body).await;
    assert_eq!(made.status, 201, "{name} {}", String::from_utf8_lossy(&made.bytes));
    made.json()["id"].as_str().expect("a meta-id").to_owned()
}

/// Twenty albums of three photos each, a photo right after its album: albums by way of the first
/// site, photos by way of these in turn.
async fn fill(
    application: &Application,
    scope: &str,
    photos_at: &[usize],
) -> BTreeMap<String, Vec<String>> {
    let mut expected = BTreeMap::new();
    let mut turns = photos_at.iter().cycle();
    for album in 0..20 {
        let name = format!("album {album}");
        let id = make(application, (0, scope), "/albums", &name).await;
        let photos: Vec<String> = (0..3).map(|photo| format!("{album}.{photo}")).collect();
        for photo in &photos {
            let at = *turns.next().expect("a site");
            make(application, (at, scope), &format!("/albums/{id}/photos"), photo).await;
        }
        expected.insert(name, photos);
    }
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn photos_that_follow_their_album_at_once_are_all_there_at_the_other_site() {
    let (application, galleries) = galleries().await;
    let expected = fill(&application, SCOPE, &[0]).await;
    assert_eq!(galleries[0].shown(), expected);
    until("all sixty are at the other site", async || galleries[1].shown() == expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn photos_posted_at_once_through_other_sites_than_their_albums_are_there_at_all() {
    let (application, galleries) = galleries().await;
    let expected = fill(&application, AT_ALL, &[1, 2]).await;
    for gallery in &galleries {
        until("all sixty are at every site", async || gallery.shown() == expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_site_knows_is_left_to_the_service_at_once() {
    let (application, _galleries) = galleries().await;
    let path = "/albums/5a3f0000-aaaa-4bbb-8ccc-000000000001/photos";
    let began = Instant::now();
    for _ in 0..2 {
        let body = json!({ "name": "lost" });
        let asked = application.send_json(1, Method::POST, path, AT_ALL, &body).await;
        assert_eq!(asked.status, 404);
        assert_eq!(asked.bytes, b"no such album");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_heal_all_sixty_photos_of_twenty_albums_are_there() {
    let (mut application, galleries) = galleries().await;
    application.cluster.stop(1).await;
    let expected = fill(&application, SCOPE, &[0]).await;
    application.cluster.start(1).await;
    until("all sixty are at the site that was away", async || galleries[1].shown() == expected)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_lost_its_service_changes_what_it_made_anew_and_no_stranger() {
    let mut application = Application::start("").await;
    let (web, shop) = (application.create(0, "web").await, application.create(0, "shop").await);
    application.all_list(&[0, 1], &[(&web, "web"), (&shop, "shop")]).await;
    application.cluster.stop(1).await;
    application.cluster.lose(1);
    {
        // The new service gives the id that `web` had in the old one to somebody else.
        let mut kept = application.services[1].kept.lock().unwrap();
        kept.clear();
        kept.insert("101".to_owned(), json!({ "name": "stranger" }));
        *application.services[1].next.lock().unwrap() = 101;
    }
    application.cluster.start(1).await;
    let lists = async |expected: &[(&str, &str)]| {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        until("the rebuilt site has its own things and the stranger", async || {
            let mut listed = application.listed(1).await;
            listed.sort_unstable();
            let listed = listed.iter().map(|(id, name)| (id.as_str(), name.as_str()));
            listed.eq(expected.iter().copied())
        })
        .await;
    };
    lists(&[("101", "stranger"), (&web, "web"), (&shop, "shop")]).await;

    let (path, patch) = (format!("/v1/things/{web}"), json!({ "name": "blog" }));
    let changed = application.send_json(0, Method::PATCH, &path, "", &patch).await;
    assert_eq!(changed.status, 200);
    lists(&[("101", "stranger"), (&web, "blog"), (&shop, "shop")]).await;

    let gone = application.ask(0, Method::DELETE, &format!("/v1/things/{shop}"), "").await;
    assert_eq!(gone.status, 204);
    lists(&[("101", "stranger"), (&web, "blog")]).await;
}
