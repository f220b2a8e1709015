//! Telling it: by a command, or by a request that is tried again until it is taken.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cheops_core::causes;
use cheops_core::config::HookAction;
use cheops_core::model::ResourceId;
use cheops_services::ConnectorError;
use cheops_services::connector::{Connector, IDLE, IDLE_CONNECTIONS, Roots, connector};
use http::{HeaderName, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;

use super::message::{body, delivery, signature};
use super::{DueAction, Fact, HookSettings};
use crate::exec::Executor;

const EVENT: HeaderName = HeaderName::from_static("x-cheops-event");
const DELIVERY: HeaderName = HeaderName::from_static("x-cheops-delivery");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-cheops-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-cheops-signature");
const AGENT: &str = concat!("cheops/", env!("CARGO_PKG_VERSION"));
/// What is read of an answer, so that the connection can be kept.
const ANSWER_BYTES: usize = 16 * 1024;

type WebClient = Client<Connector, Full<Bytes>>;

/// The ways to tell.
pub(super) struct Outlets {
    executor: Executor,
    plain: WebClient,
    /// Made when it is first needed: the system's certificates take time and memory.
    secure: OnceLock<Result<WebClient, ConnectorError>>,
    /// Processes are dear, and how many requests there are at once is bounded by who asks.
    room_for_commands: Semaphore,
}

impl Outlets {
    pub(super) fn new(executor: Executor, at_once: usize) -> Result<Self, ConnectorError> {
        let plain = web_client(Roots::None)?;
        let room_for_commands = Semaphore::new(at_once.max(1));
        Ok(Self { executor, plain, secure: OnceLock::new(), room_for_commands })
    }

    /// Carries out one action; whether it was.
    pub(super) async fn tell(
        &self,
        settings: &HookSettings,
        fact: &Fact,
        action: &DueAction,
    ) -> bool {
        let (kind, result) = match &action.does {
            HookAction::Command(command) => {
                ("command", self.command(settings, fact, action, command).await)
            }
            HookAction::Url(url) => ("web", self.post(settings, fact, action, url).await),
        };
        let ending = if result.is_ok() { "ok" } else { "failed" };
        metrics::counter!("cheops_hooks_total", "kind" => kind, "ending" => ending).increment(1);
        if let Err(reason) = &result {
            tracing::warn!(
                event = %fact.event,
                delivery = delivery(settings, fact, action),
                resource = fact.resource.as_ref().map(ResourceId::as_str),
                hook = ?action.owner,
                reason,
                "a hook failed"
            );
        }
        result.is_ok()
    }

    async fn command(
        &self,
        settings: &HookSettings,
        fact: &Fact,
        action: &DueAction,
        command: &str,
    ) -> Result<(), String> {
        let _room = self.room_for_commands.acquire().await;
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("CHEOPS_EVENT", fact.event.word().into()),
            ("CHEOPS_SEQ", fact.seq.to_string().into()),
            ("CHEOPS_DELIVERY", delivery(settings, fact, action).into()),
            ("CHEOPS_ABOUT_SITE", fact.site.as_str().into()),
        ];
        if let Some(operation) = &fact.operation {
            variables.push(("CHEOPS_OPERATION", operation.to_string().into()));
        }
        if let Some(kind) = &fact.kind {
            variables.push(("CHEOPS_TYPE", kind.as_str().into()));
        }
        let input = body(settings, fact, action).into();
        let limit = settings.command_limit;
        let running =
            self.executor.run_command(fact.resource.as_ref(), command, variables, input, limit);
        let outcome = running.await;
        match outcome.succeeded() {
            true => Ok(()),
            false => Err(format!("{outcome:?}")),
        }
    }

    /// Tries until it is taken, a bounded number of times.
    async fn post(
        &self,
        settings: &HookSettings,
        fact: &Fact,
        action: &DueAction,
        url: &str,
    ) -> Result<(), String> {
        let uri: Uri = url.parse().map_err(|error| format!("`{url}` is no address: {error}"))?;
        let body: Bytes = body(settings, fact, action).into();
        let mut pause = settings.first_pause;
        let mut tried = 1;
        loop {
            let request = request(settings, fact, action, &uri, &body)?;
            let result = self.attempt(&uri, request, settings.web_limit).await;
            let Err(reason) = result else { return Ok(()) };
            if tried >= settings.attempts.max(1) {
                return Err(format!("`{url}`, tried {tried} times: {reason}"));
            }
            tracing::debug!(url, tried, reason, "a web hook is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(settings.longest_pause);
            tried += 1;
        }
    }

    async fn attempt(
        &self,
        uri: &Uri,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<(), String> {
        let client = if uri.scheme_str() == Some("https") { self.secure()? } else { &self.plain };
        let asking = async {
            let answer = client.request(request).await.map_err(|error| causes(&error))?;
            let status = answer.status();
            // What it says does not matter, nor whether it says all of it.
            let _ = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
            Ok(status)
        };
        match tokio::time::timeout(limit, asking).await {
            Err(_) => Err(format!("no answer within {limit:?}")),
            Ok(Err(reason)) => Err(reason),
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(format!("it answered {status}")),
        }
    }

    fn secure(&self) -> Result<&WebClient, String> {
        let client = self.secure.get_or_init(|| web_client(Roots::Native));
        client.as_ref().map_err(|error| causes(error))
    }
}

/// A client with a pool of its own. It follows no redirects.
fn web_client(roots: Roots) -> Result<WebClient, ConnectorError> {
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector(roots)?);
    Ok(client)
}

fn request(
    settings: &HookSettings,
    fact: &Fact,
    action: &DueAction,
    uri: &Uri,
    body: &Bytes,
) -> Result<Request<Full<Bytes>>, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = now.as_secs().to_string();
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, AGENT)
        .header(EVENT, fact.event.word())
        .header(DELIVERY, delivery(settings, fact, action))
        .header(TIMESTAMP, &timestamp);
    if let Some(secret) = &action.secret {
        request = request.header(SIGNATURE, signature(secret, &timestamp, body));
    }
    request.body(Full::new(body.clone())).map_err(|error| error.to_string())
}
