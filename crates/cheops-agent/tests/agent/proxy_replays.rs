//! Changes of replicas that a service carried out without saying so: they are made again, and what
//! it says then is not what the user asked for.

use std::sync::atomic::Ordering;

use crate::sample_service::{Application, SCOPE};
use http::Method;
use serde_json::json;

const CHOSEN: &str = "client_chosen_id = \"/id\"";

/// The next change is carried out at both sites, and neither service says so.
fn lose_answers(application: &Application) {
    for site in [0, 1] {
        application.services[site].loses_answers.store(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_without_an_answer_is_answered_as_made() {
    let application = Application::start(CHOSEN).await;
    lose_answers(&application);
    let body = json!({ "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;

    let id = made.header("x-cheops-resource").to_owned();
    let path = format!("/v1/things/{id}");
    assert_eq!((made.status, made.header("location")), (201, path.as_str()));
    assert_eq!(made.json(), json!({ "id": id, "name": "web", "self": path }));
    assert_eq!(application.replied(&id).await, [("OK", Some(409)), ("OK", Some(409))]);
    application.all_list(&[0, 1], &[(&id, "web")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_below_a_thing_or_ended_it_without_an_answer_is_answered_as_done() {
    let application = Application::start(CHOSEN).await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;
    let path = format!("/v1/things/{id}");
    let file = format!("{path}/file");
    let changes = [(Method::PUT, &file, 409), (Method::DELETE, &path, 404)];
    for (method, path, heard) in changes {
        lose_answers(&application);
        let content = ("application/octet-stream", b"bits".to_vec());
        let done = application.send(0, method.clone(), path, "", content).await;
        assert_eq!((done.status, done.header("x-cheops-resource")), (204, id.as_str()), "{method}");
        assert_eq!(done.bytes, b"", "{method}");
        let both = [("OK", Some(heard)), ("OK", Some(heard))];
        assert_eq!(application.replied(&id).await, both, "{method}");
    }
    application.all_list(&[0, 1], &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_said_to_mean_so_is_a_refusal() {
    let already = "\n[services.already]\ndone = [422]\ngone = [410]";
    let application = Application::start(&format!("{CHOSEN}{already}")).await;
    let id = application.create(0, "web").await;
    application.all_list(&[0, 1], &[(&id, "web")]).await;

    lose_answers(&application);
    let gone = application.ask(0, Method::DELETE, &format!("/v1/things/{id}"), "").await;
    assert_eq!(gone.status, 404, "the service's own words");
    assert_eq!(application.replied(&id).await, [("KO", Some(404)), ("KO", Some(404))]);

    lose_answers(&application);
    let body = json!({ "id": "mine", "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    let resource = made.header("x-cheops-resource");
    assert_eq!((made.status, resource), (409, "thing/v1/things/mine"));
    assert_eq!(application.replied(resource).await, [("KO", Some(409)), ("KO", Some(409))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_at_the_first_try_is_the_users_to_know_of() {
    let application = Application::start(CHOSEN).await;
    application.services[0]
        .kept
        .lock()
        .unwrap()
        .insert("mine".to_owned(), json!({ "name": "own" }));
    let body = json!({ "id": "mine", "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    let resource = made.header("x-cheops-resource");
    assert_eq!((made.status, resource), (409, "thing/v1/things/mine"));
    assert_eq!(application.replied(resource).await, [("KO", Some(409)), ("OK", Some(201))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_names_its_things_is_not_asked_twice_and_the_user_hears_why() {
    let application = Application::start("").await;
    application.services[0].loses_answers.store(1, Ordering::SeqCst);
    let body = json!({ "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    assert_eq!((made.status, made.header("x-cheops-error")), (502, "broken-off"));
    let told = made.json();
    assert!(told["detail"].as_str().unwrap().contains("may or may not"), "{told}");
    let resource = told["hint"].as_str().unwrap().split(' ').nth(7).unwrap().trim_matches('`');
    assert_eq!(application.replied(resource).await, [("KO", Some(502)), ("OK", Some(201))]);
    assert_eq!([0, 1].map(|site| application.count(site)), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_client_counts_is_its_choice_too() {
    let application = Application::start(CHOSEN).await;
    let body = json!({ "id": 7, "name": "web" });
    let made = application.send_json(0, Method::POST, "/v1/things", SCOPE, &body).await;
    assert_eq!((made.status, made.header("x-cheops-resource")), (201, "thing/v1/things/7"));
    application.all_list(&[0, 1], &[("7", "web")]).await;
}
