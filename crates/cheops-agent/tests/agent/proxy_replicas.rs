//! Resources of a service that are kept at several sites, each of which has its own id for them.

use crate::cluster;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::cluster::until;
use crate::sample_service::{Application, SCOPE, largest_file, listen, serve, service, three};
use axum::body::Body;
use axum::extract::Request;
use http::Method;
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_at_two_sites_has_one_id_at_both() {
    let application = Application::start("").await;
    let body = json!({ "name": "web", "zone": "1" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    let thing = made.json();
    let id = thing["id"].as_str().expect("a meta-id").to_owned();
    let path = format!("/v1/things/{id}");
    assert_eq!((made.status, made.header("location")), (201, path.as_str()));
    assert_eq!((thing["self"].as_str(), &thing["zone"]), (Some(path.as_str()), &json!("1")));
    assert_eq!(made.header("x-cheops-resource"), id);
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    for site in [0, 1] {
        let shown = application.ask(site, Method::GET, &path, "").await;
        assert_eq!((shown.status, &shown.json()["id"]), (200, &json!(id)));
        assert_eq!(shown.json()["self"], path);
    }
    assert_eq!([0, 1, 2].map(|site| application.count(site)), [1, 1, 0]);
    until("each site knows what the other calls it", async || {
        let shown = application.cluster.client(1).resource(&id).await.unwrap();
        let ids = shown.replicant.expect("it is a replicant").local_ids;
        let ids: Vec<_> = ids.iter().map(|(site, id)| (site.as_str(), id.as_str())).collect();
        ids == [("site1", "1"), ("site2", "101")]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_by_either_id_at_either_site_changes_both() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    let path = format!("/v1/things/{id}");

    let patch = json!({ "name": "shop" });
    let changed = application.send_json(1, Method::PATCH, &path, "", &patch).await;
    assert_eq!((changed.status, &changed.json()["id"]), (200, &json!(id)));
    application.all_list(&[0, 1], &[(&id, "shop")]).await;

    // A body that is read and sent back speaks of the meta-id; the service wants its own.
    let whole = json!({ "id": id, "name": "blog" });
    let replaced = application.send_json(0, Method::PUT, &path, "", &whole).await;
    assert_eq!(replaced.status, 200);
    application.all_list(&[0, 1], &[(&id, "blog")]).await;

    // By the id that only this site's service knows, and under a scope that names one site only.
    let by_local = "/v1/things/101";
    let patch = json!({ "name": "wiki" });
    let changed = application.send_json(1, Method::PATCH, by_local, "thing: site2", &patch).await;
    assert_eq!((changed.status, &changed.json()["id"]), (200, &json!(id)));
    application.all_list(&[0, 1], &[(&id, "wiki")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_below_a_resource_goes_with_it_and_so_does_its_end() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    let (path, file) = (format!("/v1/things/{id}"), format!("/v1/things/{id}/file"));
    let content: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let binary = ("application/octet-stream", content.clone());
    let sent = application.send(0, Method::PUT, &file, "", binary).await;
    assert_eq!(sent.status, 204);
    for site in [0, 1] {
        until("the file is there", async || {
            let got = application.ask(site, Method::GET, &file, "").await;
            got.status == 200 && got.bytes == content
        })
        .await;
    }
    for site in ["site1", "site2"] {
        let blobs = application.cluster.dir().join(site).join("blobs");
        until("what both have made use of is let go", async || largest_file(&blobs) < 64 * 1024)
            .await;
    }
    let gone = application.ask(1, Method::DELETE, &path, "").await;
    assert_eq!(gone.status, 204);
    application.all_list(&[0, 1], &[]).await;
    assert_eq!([0, 1].map(|site| application.count(site)), [0, 0]);
    assert_eq!(application.ask(0, Method::GET, &path, "").await.status, 404);
    until("the other site knows nothing of it any more", async || {
        application.ask(0, Method::DELETE, &path, "").await.status == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_called_what_its_resource_is_does_not_stand_for_it() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    let own = application.services[0].kept.lock().unwrap().keys().next().unwrap().clone();

    let part = format!("/v1/things/{id}/parts/{own}");
    let gone = application.ask(0, Method::DELETE, &part, "").await;

    assert_eq!(gone.status, 204);
    for site in [0, 1] {
        until("the part is taken off, and no more", async || {
            let kept = application.services[site].kept.lock().unwrap();
            kept.values().next().is_some_and(|thing| thing["taken off"] == true)
        })
        .await;
    }
    application.all_list(&[0, 1], &[(&id, "web")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_to_be_below_a_resource_is_its_sites_own_whatever_it_is_called() {
    let application = Application::start("collections = [\"/v1/things/*/parts\"]").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    let own = application.services[0].kept.lock().unwrap().keys().next().unwrap().clone();

    let part = format!("/v1/things/{id}/parts/{own}");
    let gone = application.ask(0, Method::DELETE, &part, "").await;

    assert_eq!((gone.status, gone.header("x-cheops-resource")), (204, ""), "no operation");
    application.all_list(&[0, 1], &[(&id, "web")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_client_chose_names_one_thing_here_and_another_there() {
    let application = Application::start("client_chosen_id = \"/id\"").await;
    let project = "0f8e1a52-7c51-4bbb-8ccc-0000000000ff";
    let path = format!("/v1/limits/{project}");
    let limited = application.send_json(0, Method::PUT, &path, SCOPE, &json!({})).await;
    let resource = format!("thing/v1/limits/{project}");
    assert_eq!((limited.status, limited.header("x-cheops-resource")), (204, resource.as_str()));

    let body = json!({ "id": project, "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    let resource = format!("thing/v1/things/{project}");
    assert_eq!((made.status, made.header("x-cheops-resource")), (201, resource.as_str()));
    application.all_list(&[0, 1], &[(project, "web")]).await;

    // Below a path that only holds such an id, a site's own things are its own.
    let elsewhere = format!("/v2/{project}/volumes");
    let asked = application.send_json(0, Method::POST, &elsewhere, "", &json!({})).await;
    assert_eq!((asked.status, asked.header("x-cheops-resource")), (404, ""), "no operation");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_does_not_end_reaches_who_waits_for_it() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    let address = application.cluster.proxy_address(0, 0);
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    let asked = Request::get(format!("http://{address}/v1/things/{id}/events"));

    let hearing = async {
        let answer = client.request(asked.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().frame().await.unwrap().unwrap().into_data().unwrap()
    };

    let first = tokio::time::timeout(cluster::PATIENCE, hearing).await.expect("the first event");
    assert_eq!(first, "{\"is\": 1}\n");
}

/// A service that answers what is made with its own id, and anything else by going over to another
/// protocol, in which it says what it was asked for.
async fn going_over() -> SocketAddr {
    let answer = |head: &str| {
        let line = head.lines().next().unwrap_or_default();
        let answer = match line.starts_with("POST") {
            true => "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\
                     Content-Length: 9\r\nConnection: close\r\n\r\n{\"id\": 7}"
                .to_owned(),
            false => format!(
                "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n{line}"
            ),
        };
        answer.into_bytes()
    };
    cluster::service(answer).await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sites_service_goes_over_to_a_protocol_under_its_own_id() {
    let upstream = going_over().await;
    let application = Application::before("", three(), &[upstream; 3]).await;
    let (scope, body) = ("thing: site2 & site3", json!({}));
    let made = application.send_json(1, Method::POST, "/v1/things", scope, &body).await;
    let id = made.json()["id"].as_str().expect("a meta-id").to_owned();

    let ask = |via: &str| {
        format!(
            "GET /v1/things/{id} HTTP/1.1\r\nHost: x\r\nX-Scope: thing: site2\r\n{via}\
             Connection: Upgrade\r\nUpgrade: shout\r\n\r\n"
        )
    };
    let talk = async |said: String| {
        let mut client = TcpStream::connect(application.cluster.proxy_address(0, 0)).await.unwrap();
        client.write_all(said.as_bytes()).await.unwrap();
        let mut heard = String::new();
        let reading = client.read_to_string(&mut heard);
        tokio::time::timeout(cluster::PATIENCE, reading).await.unwrap().unwrap();
        heard
    };
    let heard = talk(ask("")).await;
    assert!(heard.starts_with("HTTP/1.1 101 "), "{heard}");
    assert!(heard.ends_with("GET /v1/things/7 HTTP/1.1"), "{heard}");
    let heard = talk(ask("Via: 1.1 cheops-site2-thing\r\n")).await;
    assert!(heard.starts_with("HTTP/1.1 508 "), "it was there before: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_elsewhere_is_served_by_a_site_that_is_involved() {
    let application = Application::start("").await;
    let id = application.create(2, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    assert_eq!(application.count(2), 0);
    let path = format!("/v1/things/{id}");
    let alone = application.ask(2, Method::GET, &path, "").await;
    assert_eq!(alone.status, 404, "this site has none, and nobody said where to look");
    let shown = application.ask(2, Method::GET, &path, SCOPE).await;
    assert_eq!((shown.status, &shown.json()["id"]), (200, &json!(id)));
    let patch = json!({ "name": "shop" });
    let changed = application.send_json(2, Method::PATCH, &path, SCOPE, &patch).await;
    assert_eq!((changed.status, &changed.json()["id"]), (200, &json!(id)));
    application.all_list(&[0, 1], &[(&id, "shop")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_was_away_makes_up_for_it_and_keeps_its_ids() {
    let mut application = Application::start("").await;
    let first = application.create(0, "first").await;
    application.all_list(&[0, 1], &[(&first, "first")]).await;
    application.cluster.stop(1).await;
    let second = application.create(0, "second").await;
    let path = format!("/v1/things/{second}");
    let patch = json!({ "name": "changed" });
    assert_eq!(application.send_json(0, Method::PATCH, &path, "", &patch).await.status, 200);
    assert_eq!(application.count(1), 1, "it knows nothing of it");
    application.cluster.start(1).await;
    application.all_list(&[0, 1], &[(&first, "first"), (&second, "changed")]).await;
    let gone = application.ask(1, Method::DELETE, &format!("/v1/things/{first}"), "").await;
    assert_eq!(gone.status, 204, "the ids outlive a restart");
    application.all_list(&[0, 1], &[(&second, "changed")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_takes_an_id_gets_one_and_nothing_is_renamed() {
    let application = Application::start("client_chosen_id = \"/id\"").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    for site in [0, 1] {
        assert!(application.services[site].kept.lock().unwrap().contains_key(&id));
    }
    let body = json!({ "id": "mine", "name": "own" });
    let made = application.send_json(1, Method::POST, "/v1/things", SCOPE, &body).await;
    assert_eq!((made.status, &made.json()["id"]), (201, &json!("mine")));
    assert_eq!(made.header("x-cheops-resource"), "thing/v1/things/mine");
    until("it is at both", async || application.count(0) == 2 && application.count(1) == 2).await;
    let gone = application.ask(0, Method::DELETE, "/v1/things/mine", "").await;
    assert_eq!(gone.status, 204);
    application.all_list(&[0, 1], &[(&id, "web")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_refuses_is_refused_at_every_site() {
    let application = Application::start("").await;
    let refused =
        application.send_json(0, Method::POST, "/v1/things", SCOPE, &json!({"size": 1})).await;
    assert_eq!((refused.status, &refused.json()["error"]), (400, &json!("no name")));
    let id = refused.header("x-cheops-resource").to_owned();
    until("both have said so", async || {
        let first = cheops_api::Cursor::default();
        let page = application.cluster.client(0).operations(&id, &first).await.unwrap();
        let first = page.items.first().map(|operation| operation.replies.len());
        first == Some(2)
    })
    .await;
    let shown = application.ask(0, Method::GET, &format!("/v1/things/{id}"), "").await;
    assert_eq!(shown.status, 404);
    let every = cheops_api::ResourceFilter::default();
    let resources = application.cluster.client(0).resources(&every).await.unwrap();
    assert!(resources.items.is_empty(), "nothing came of it: {resources:?}");
    assert_eq!([0, 1].map(|site| application.count(site)), [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_waits_for_a_service_that_is_down_and_its_users_hear_so() {
    let services = three();
    let there = listen(service(&services[0])).await;
    // A port that is taken, where nobody listens.
    let reserved = tokio::net::TcpSocket::new_v4().unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let down = reserved.local_addr().unwrap();
    let application = Application::before("", services, &[there, down, there]).await;

    let id = application.create(0, "web").await;
    let path = format!("/v1/things/{id}");
    let patch = json!({ "name": "shop" });
    assert_eq!(application.send_json(0, Method::PATCH, &path, "", &patch).await.status, 200);
    let body = json!({ "name": "other" });
    let refused = application.send_json(1, Method::POST, "/v1/things", SCOPE, &body).await;
    assert_eq!((refused.status, refused.header("x-cheops-error")), (502, "unreachable"));
    assert_eq!(application.count(0), 1, "nothing was made anywhere");

    serve(reserved.listen(16).unwrap(), service(&application.services[1]));
    application.all_list(&[0, 1], &[(&id, "shop")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_a_service_that_is_busy_and_says_so() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    application.services[1].is_busy.store(true, Ordering::SeqCst);
    let path = format!("/v1/things/{id}");
    let patch = json!({ "name": "shop" });
    assert_eq!(application.send_json(0, Method::PATCH, &path, "", &patch).await.status, 200);
    until("the site says what it waits for", async || {
        let shown = application.cluster.client(1).resource(&id).await.unwrap();
        shown.waits_for.is_some_and(|reason| reason.contains("503"))
    })
    .await;
    assert_eq!(application.listed(1).await, [(id.clone(), "web".to_owned())]);
    application.services[1].is_busy.store(false, Ordering::SeqCst);
    application.all_list(&[0, 1], &[(&id, "shop")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_this_site_means_something_else_at_another() {
    let application = Application::start("").await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    // Another site has a thing of its own under the id that this site's service gave the replica.
    let other = json!({ "name": "other" });
    application.services[2].kept.lock().unwrap().insert("1".to_owned(), other);
    let gone = application.ask(0, Method::DELETE, "/v1/things/1", "thing: site3").await;
    assert_eq!(gone.status, 204);
    assert_eq!(application.count(2), 0);
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    // What only looks like a part of a replica's path is none.
    let body = json!({ "name": "x" });
    let put = application.send_json(0, Method::PUT, "/v1/other/1", "", &body).await;
    assert_eq!(put.status, 404, "the service has no such collection");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_keeps_at_several_sites_is_not_changed_there() {
    let application = Application::start("").await;
    application.services[0].kept.lock().unwrap().insert("9".to_owned(), json!({ "name": "own" }));
    application.services[1].kept.lock().unwrap().insert("9".to_owned(), json!({ "name": "own" }));
    let gone = application.ask(0, Method::DELETE, "/v1/things/9", SCOPE).await;
    assert_eq!((gone.status, gone.header("x-cheops-error")), (404, "unknown-replica"));
    assert_eq!([0, 1].map(|site| application.count(site)), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_given_at_two_sites_that_do_not_hear_each_other_is_in_error_until_it_is_put() {
    let mut application = Application::start("client_chosen_id = \"/id\"").await;
    let made = async |application: &Application, site: usize, name: &str| {
        let body = json!({ "id": "mine", "name": name });
        let made = application.send_json(site, Method::POST, "/v1/things", SCOPE, &body).await;
        assert_eq!(made.status, 201, "each is answered by its own site");
    };
    application.cluster.stop(1).await;
    made(&application, 0, "first").await;
    application.cluster.stop(0).await;
    application.cluster.start(1).await;
    made(&application, 1, "second").await;
    application.cluster.start(0).await;

    let resource = "thing/v1/things/mine";
    for site in [0, 1] {
        until("it is said that neither took the other's", async || {
            let shown = application.cluster.client(site).resource(resource).await.unwrap();
            shown.summary.errors == 2
        })
        .await;
    }
    assert_eq!(application.listed(0).await, [("mine".to_owned(), "first".to_owned())]);
    assert_eq!(application.listed(1).await, [("mine".to_owned(), "second".to_owned())]);
    let body = json!({ "name": "third" });
    let put = application.send_json(1, Method::PUT, "/v1/things/mine", "", &body).await;
    assert_eq!(put.status, 200);
    application.all_list(&[0, 1], &[("mine", "third")]).await;
}
