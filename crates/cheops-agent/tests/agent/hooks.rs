//! Hooks, with real commands and a real receiver.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::exec_support::Site;
use bytes::Bytes;
use cheops_agent::config::{Allowed, Pattern, Secret, SiteHook};
use cheops_agent::hooks::{Fact, HookSettings, Hooks, Reach};
use cheops_core::config::{Config, Hook, HookAction, HookEvent, HookRun};
use cheops_core::model::{Incarnation, OperationType, ResourceId, SiteId};
use futures_util::future::join_all;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::hmac;
use tokio::net::TcpListener;

const SECRET: &str = "not a very good secret";

/// What a receiver got, and what it answers to each.
struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

/// Answers with these one after the other, then 200; 0 is no answer at all.
async fn receiver(answers: &[u16]) -> Receiver {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
    let (seen, answers) = (Arc::clone(&got), answers.to_vec());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, answers) = (Arc::clone(&seen), answers.clone());
            let answer = move |asked: Request<Incoming>| {
                let (seen, answers) = (Arc::clone(&seen), answers.clone());
                async move {
                    let (parts, body) = asked.into_parts();
                    assert_eq!(parts.method, "POST");
                    let body = body.collect().await.unwrap().to_bytes();
                    let n = {
                        let mut seen = seen.lock().unwrap();
                        seen.push((parts.headers, body));
                        seen.len() - 1
                    };
                    let status = answers.get(n).copied().unwrap_or(200);
                    if status == 0 {
                        std::future::pending::<()>().await;
                    }
                    let mut response = Response::new(Full::new(Bytes::from("thanks")));
                    *response.status_mut() = status.try_into().unwrap();
                    if status == 302 {
                        response.headers_mut().insert("location", "/elsewhere".parse().unwrap());
                    }
                    Ok::<_, Infallible>(response)
                }
            };
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(serving);
        }
    });
    Receiver { address, got }
}

impl Receiver {
    fn hook(&self) -> Hook {
        hook(HookAction::Url(format!("http://{}/hook?x=1", self.address)))
    }

    fn got(&self) -> Vec<(HeaderMap, Bytes)> {
        self.got.lock().unwrap().clone()
    }
}

fn hook(action: HookAction) -> Hook {
    Hook { on: HookEvent::Failed, action, run: HookRun::EachSite, types: [].into() }
}

fn command(text: &str) -> Hook {
    hook(HookAction::Command(text.to_owned()))
}

fn hooks(site: &Site, own: Vec<SiteHook>) -> Hooks {
    hooks_with(site, own, |_| {})
}

fn hooks_with(site: &Site, own: Vec<SiteHook>, change: impl Fn(&mut HookSettings)) -> Hooks {
    let mut settings = HookSettings::new(SiteId::new("here").unwrap(), Incarnation(0xab));
    settings.secret = Some(Secret::new(SECRET).unwrap());
    settings.allow = vec![Allowed::new("*").unwrap()];
    settings.first_pause = Duration::from_millis(1);
    settings.web_limit = Duration::from_secs(30);
    settings.command_limit = Duration::from_secs(30);
    settings.attempts = 3;
    change(&mut settings);
    Hooks::new(own, settings, site.exec.clone()).unwrap()
}

fn fact(of_resource: Vec<Hook>) -> Fact {
    Fact {
        seq: 42,
        at_ms: 1_700_000_000_000,
        event: HookEvent::Failed,
        reach: Reach::Here,
        resource: Some(ResourceId::new("image/7").unwrap()),
        operation: Some("there-1.9".parse().unwrap()),
        kind: Some(OperationType::new("set").unwrap()),
        site: SiteId::new("here").unwrap(),
        detail: serde_json::json!({"code": 7}),
        config: Some(Arc::new(Config { hooks: of_resource, ..Config::default() })),
    }
}

/// How many hooks took it, and how many were given up.
#[derive(Debug, PartialEq, Eq)]
struct Done {
    succeeded: usize,
    failed: usize,
}

fn done(succeeded: usize, failed: usize) -> Done {
    Done { succeeded, failed }
}

/// Tells everyone who is to be told, side by side.
async fn tell(hooks: &Hooks, fact: &Fact) -> Done {
    let actions = hooks.matching(fact);
    let told = join_all(actions.iter().map(|action| hooks.tell(fact, action))).await;
    let succeeded = told.iter().filter(|told| **told).count();
    done(succeeded, told.len() - succeeded)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
}

/// As a receiver checks it.
fn verify(headers: &HeaderMap, body: &[u8], secret: &str) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = [header(headers, "x-cheops-timestamp").as_bytes(), b".", body].concat();
    let digits = header(headers, "x-cheops-signature").strip_prefix("sha256=").unwrap();
    let digits = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let tag: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    hmac::verify(&key, &signed, &tag).unwrap();
}

/// As an operator makes it: `printf 'resource:%s' ID | openssl dgst -sha256 -hmac SECRET`.
fn key_of(resource: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, format!("resource:{resource}").as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn the_hooks_of_each_resource_are_signed_with_a_key_of_its_own() {
    let (site, receiver) = (Site::new(), receiver(&[]).await);
    let hooks = hooks(&site, Vec::new());
    let one = fact(vec![receiver.hook()]);
    let other = Fact { resource: Some(ResourceId::new("image/8").unwrap()), ..one.clone() };
    assert_eq!(tell(&hooks, &one).await, done(1, 0));
    assert_eq!(tell(&hooks, &other).await, done(1, 0));
    let got = receiver.got();
    verify(&got[0].0, &got[0].1, &key_of("image/7"));
    verify(&got[1].0, &got[1].1, &key_of("image/8"));
    assert_ne!(key_of("image/7"), key_of("image/8"));
}

#[tokio::test]
async fn a_web_hook_of_a_resource_goes_only_where_the_site_allows_it() {
    let (site, allowed, other) = (Site::new(), receiver(&[]).await, receiver(&[]).await);
    let own = SiteHook { hook: other.hook(), resources: Vec::new(), secret: None };
    let both = || vec![allowed.hook(), other.hook(), command("true")];

    let nothing = hooks_with(&site, Vec::new(), |settings| settings.allow.clear());
    assert_eq!(tell(&nothing, &fact(both())).await, done(1, 0), "commands run as operations do");
    assert_eq!((allowed.got().len(), other.got().len()), (0, 0));

    let place = format!("http://{}/hook", allowed.address);
    let one = hooks_with(&site, Vec::new(), |settings| {
        settings.allow = vec![Allowed::new(&place).unwrap()];
    });
    assert_eq!(tell(&one, &fact(both())).await, done(2, 0));
    assert_eq!((allowed.got().len(), other.got().len()), (1, 0));

    // The site's own go wherever its config says.
    let sites = hooks_with(&site, vec![own], |settings| settings.allow.clear());
    assert_eq!(tell(&sites, &fact(Vec::new())).await, done(1, 0));
    assert_eq!(other.got().len(), 1);
}

#[tokio::test]
async fn a_web_hook_is_told_in_signed_json() {
    let (site, receiver) = (Site::new(), receiver(&[]).await);
    let own = SiteHook {
        hook: receiver.hook(),
        resources: vec![Pattern::new("image/*").unwrap()],
        secret: Some(Secret::new("the hook's own secret").unwrap()),
    };
    let hooks = hooks(&site, vec![own]);
    assert_eq!(tell(&hooks, &fact(vec![receiver.hook()])).await, done(2, 0));
    let mut got = receiver.got();
    got.sort_by_key(|(headers, _)| header(headers, "x-cheops-delivery").to_owned());
    for ((headers, body), (n, secret)) in
        got.iter().zip([(0, "the hook's own secret"), (1, &key_of("image/7"))])
    {
        verify(headers, body, secret);
        assert_eq!(header(headers, "content-type"), "application/json");
        assert_eq!(header(headers, "x-cheops-event"), "failed");
        let delivery = format!("here-ab-42-{n}");
        assert_eq!(header(headers, "x-cheops-delivery"), delivery);
        let message: serde_json::Value = serde_json::from_slice(body).unwrap();
        let expected = serde_json::json!({
            "event": "failed", "delivery": delivery, "from": "here", "site": "here",
            "resource": "image/7", "operation": "there-1.9", "type": "set", "run": "each-site",
            "seq": 42, "at_ms": 1_700_000_000_000_u64, "detail": {"code": 7},
        });
        assert_eq!(message, expected);
    }
}

#[tokio::test]
async fn a_web_hook_is_tried_again_under_the_same_name() {
    let (site, receiver) = (Site::new(), receiver(&[500, 0]).await);
    // A slow machine may need more tries than three.
    let hooks = hooks_with(&site, Vec::new(), |settings| {
        settings.web_limit = Duration::from_millis(500);
        settings.attempts = 20;
    });
    assert_eq!(tell(&hooks, &fact(vec![receiver.hook()])).await, done(1, 0));
    let got = receiver.got();
    assert!(got.len() >= 3, "{}", got.len());
    for (headers, body) in &got {
        assert_eq!(header(headers, "x-cheops-delivery"), "here-ab-42-0");
        assert_eq!(*body, got[0].1);
        verify(headers, body, &key_of("image/7"));
    }
}

#[tokio::test]
async fn a_receiver_that_never_takes_it_is_given_up_and_no_redirect_is_followed() {
    let (site, receiver) = (Site::new(), receiver(&[404, 302, 503]).await);
    let hooks = hooks(&site, Vec::new());
    assert_eq!(tell(&hooks, &fact(vec![receiver.hook()])).await, done(0, 1));
    assert_eq!(receiver.got().len(), 3);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_holds_nobody_else_up() {
    let (site, receiver) = (Site::new(), receiver(&[]).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = hook(HookAction::Url(format!("http://{}/", listener.local_addr().unwrap())));
    drop(listener);
    let strange = hook(HookAction::Url("http://[not-an-address/".to_owned()));
    let hooks = hooks(&site, Vec::new());
    let outcome = tell(&hooks, &fact(vec![nobody, receiver.hook(), strange])).await;
    assert_eq!(outcome, done(1, 2));
    assert_eq!(receiver.got().len(), 1);
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let (site, receiver) = (Site::new(), receiver(&[]).await);
    let hooks = hooks_with(&site, Vec::new(), |settings| settings.secret = None);
    assert_eq!(tell(&hooks, &fact(vec![receiver.hook()])).await, done(1, 0));
    assert!(!receiver.got()[0].0.contains_key("x-cheops-signature"));
}

#[tokio::test]
async fn a_command_reads_the_message_and_knows_what_it_is_about() {
    let site = Site::new();
    let told = site.path("told");
    let text = format!(
        "{{ cat; echo; echo $CHEOPS_EVENT $CHEOPS_SEQ $CHEOPS_RESOURCE $CHEOPS_OPERATION \
         $CHEOPS_TYPE $CHEOPS_SITE $CHEOPS_ABOUT_SITE $CHEOPS_DELIVERY __ID__; }} > {told}"
    );
    let hooks = hooks(&site, Vec::new());
    assert_eq!(tell(&hooks, &fact(vec![command(&text)])).await, done(1, 0));
    let told = fs::read_to_string(told).unwrap();
    let (message, variables) = told.trim_end().split_once('\n').unwrap();
    let message: serde_json::Value = serde_json::from_str(message).unwrap();
    assert_eq!(message["detail"]["code"], 7);
    let expected = "failed 42 image/7 there-1.9 set here here here-ab-42-0 image/7";
    assert_eq!(variables, expected);
}

#[tokio::test]
async fn commands_that_fail_or_hang_are_counted_and_ended() {
    let site = Site::new();
    let list = vec![command("exit 3"), command("true")];
    assert_eq!(tell(&hooks(&site, Vec::new()), &fact(list)).await, done(1, 1));
    let impatient = hooks_with(&site, Vec::new(), |settings| {
        settings.command_limit = Duration::from_millis(100);
    });
    assert_eq!(tell(&impatient, &fact(vec![command("sleep 1000")])).await, done(0, 1));
}

#[tokio::test]
async fn hooks_of_other_events_are_left_alone() {
    let site = Site::new();
    let other = Hook { on: HookEvent::Applied, ..command("true") };
    assert_eq!(tell(&hooks(&site, Vec::new()), &fact(vec![other])).await, done(0, 0));
}

#[tokio::test]
async fn a_receiver_that_cannot_prove_who_it_is_is_told_nothing() {
    let (site, receiver) = (Site::new(), receiver(&[]).await);
    let secure = hook(HookAction::Url(format!("https://{}/", receiver.address)));
    assert_eq!(tell(&hooks(&site, Vec::new()), &fact(vec![secure])).await, done(0, 1));
    assert!(receiver.got().is_empty());
}
