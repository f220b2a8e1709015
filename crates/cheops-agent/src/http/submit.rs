//! Handing in operations, and telling what became of them as the sites reply.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_core::config::{self, Config};
use cheops_core::engine::{self, Answer, Refusal, Submission, Ticket};
use cheops_core::model::{
    Asker, Declaration, FileRef, Header, MAX_INLINE_BODY_BYTES, OperationType, OverLimit, Payload,
    ResourceId, SiteId, id_can_stand_in,
};
use cheops_mesh::{FilePin, PassedOn};
use cheops_scope::{Known, Location, LocationKind, parse_location, resolve_location};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use super::forward::{self, ResourceLocation};
use super::metered::whole;
use super::principal;
use super::refusal::HttpRefusal;
use super::services;
use super::upload::{self, ReceivedForm};
use super::wire as on_wire;
use super::{Api, LONGEST_WAIT, SharedApi, resource_id};
use crate::driver::{Driver, Stopped, SubmitUpdate};

/// Names the files of an operation that another agent passed on; they are fetched from there.
const FILES: &str = "x-cheops-files";

/// An operation with all that came with it, not yet handed in.
#[derive(Debug)]
pub(super) struct Handed {
    /// As it was written, and is passed on.
    pub(super) submit: wire::Submit,
    /// What it says of its sites.
    pub(super) sites: Option<BTreeSet<SiteId>>,
    /// The config that it brings.
    pub(super) config: Option<Arc<Config>>,
    pub(super) files: Vec<FileRef>,
    pub(super) pins: Vec<FilePin>,
    /// Who asked for it.
    pub(super) by: Asker,
}

impl Handed {
    pub(super) fn new(
        api: &Api,
        submit: wire::Submit,
        files: Vec<FileRef>,
        pins: Vec<FilePin>,
        by: Asker,
    ) -> Result<Self, HttpRefusal> {
        let sites = submit.sites.as_deref().map(|text| sites(api, text)).transpose()?;
        let config = settings(submit.config.as_ref(), submit.profile.as_deref())?;
        Ok(Self { submit, sites, config, files, pins, by })
    }
}

/// `POST .../operations`
pub(super) async fn operation(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let passed_on = request.extensions().get::<PassedOn>().cloned();
    let handed = read(&api, request, passed_on.as_ref()).await?;
    match hand_in(&api, &id, handed, passed_on.is_some()).await? {
        SubmitResult::Here(events) => Ok(as_lines(events)),
        SubmitResult::Elsewhere(response) => Ok(response),
    }
}

/// `DELETE` of a resource.
pub(super) async fn delete(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    if forward::held(&api, &id).await? == ResourceLocation::Elsewhere {
        return forward::pass_on(&api, &id, request).await;
    }
    let by = principal::asker(&api, request.extensions());
    let body = whole(request).await?;
    let delete: wire::Delete =
        if body.is_empty() { wire::Delete::default() } else { parse(&body)? };
    let submission = deletion(id, delete, by)?;
    match submit(&api.driver, &api.site, submission, Vec::new()).await? {
        Ok(events) => Ok(as_lines(events)),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(super) fn deletion(
    id: ResourceId,
    delete: wire::Delete,
    by: Asker,
) -> Result<Submission, HttpRefusal> {
    let command = delete.command.unwrap_or_else(|| on_wire::NO_COMMAND.to_owned());
    let payload = Payload::shell(command);
    within_limits(&id, &payload, None, None)?;
    Ok(Submission {
        ticket: Ticket(0),
        resource: id,
        sites: None,
        config: None,
        kind: OperationType::deletion(),
        payload,
        inline_body: None,
        force: false,
        wait: wait(delete.wait),
        timeout_ms: capped(delete.timeout_ms),
        needs: Default::default(),
        asked_by: Some(by),
    })
}

/// Works something out that may take long, while the engine's thread has other work.
pub(super) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HttpRefusal> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Stopped)?)
}

async fn read(
    api: &Api,
    request: Request,
    passed_on: Option<&PassedOn>,
) -> Result<Handed, HttpRefusal> {
    let by = principal::asker(api, request.extensions());
    let content_type = header(&request, CONTENT_TYPE.as_str());
    let files = header(&request, FILES);
    if content_type.is_some_and(|kind| kind.starts_with(b"multipart/")) {
        let mut form = ReceivedForm::read(request, api.upload_room(), &["operation"]).await?;
        let submit = parse(form.take("operation")?.as_bytes())?;
        form.end(&["operation"])?;
        return Handed::new(api, submit, form.files, form.pins, by);
    }
    let submit = parse(&whole(request).await?)?;
    let (files, pins) = match (files, passed_on) {
        (Some(files), Some(PassedOn { by })) => fetch(api, by, &files).await?,
        _ => (Vec::new(), Vec::new()),
    };
    Handed::new(api, submit, files, pins, by)
}

fn header(request: &Request, name: &str) -> Option<Vec<u8>> {
    request.headers().get(name).map(|value| value.as_bytes().to_vec())
}

/// Gets the files of an operation from the agent that passed it on.
async fn fetch(
    api: &Api,
    from: &SiteId,
    files: &[u8],
) -> Result<(Vec<FileRef>, Vec<FilePin>), HttpRefusal> {
    let files: Vec<FileRef> = parse(files)?;
    let pins = api.peers.fetch(from, files.clone(), &api.incoming).await?;
    Ok((files, pins))
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, HttpRefusal> {
    serde_json::from_slice(bytes).map_err(|error| HttpRefusal::bad("bad JSON", error.to_string()))
}

/// Where an operation was taken in.
pub(super) enum SubmitResult {
    Here(Events),
    Elsewhere(Response),
}

/// What is heard of an operation, beginning with its acceptance.
pub(super) type Events = mpsc::Receiver<wire::SubmitEvent>;

/// Hands an operation in here, or passes it on to the nearest site that holds the resource.
pub(super) async fn hand_in(
    api: &SharedApi,
    id: &ResourceId,
    handed: Handed,
    passed_on: bool,
) -> Result<SubmitResult, HttpRefusal> {
    let submission = submission(api, id, &handed).await?;
    // The engine knows best whether the resource is held here: it is asked first, and only once.
    let refusal = match submit(&api.driver, &api.site, submission.0, submission.1).await? {
        Ok(events) => return Ok(SubmitResult::Here(events)),
        Err(refusal) => refusal,
    };
    let holder = match &refusal {
        _ if passed_on => return Err(refusal.into()),
        Refusal::NotHeldHere { sites, .. } => api.peers.nearest(sites).into_iter().next(),
        Refusal::UnknownResource(_) => forward::nearest_holder(api, id).await,
        _ => None,
    };
    match holder {
        Some(holder) => pass_on(api, id, &holder, handed).await.map(SubmitResult::Elsewhere),
        None => Err(refusal.into()),
    }
}

async fn pass_on(
    api: &Api,
    id: &ResourceId,
    holder: &SiteId,
    handed: Handed,
) -> Result<Response, HttpRefusal> {
    let broken = |error: String| HttpRefusal::bad("cannot be passed on", error);
    let body = serde_json::to_vec(&handed.submit).map_err(|error| broken(error.to_string()))?;
    let mut request = Request::post(cheops_api::paths::operations(id.as_str()))
        .header(CONTENT_TYPE, "application/json");
    if !handed.files.is_empty() {
        let files =
            serde_json::to_string(&handed.files).map_err(|error| broken(error.to_string()))?;
        request = request.header(FILES, files);
    }
    let request = request.body(Body::from(body)).map_err(|error| broken(error.to_string()))?;
    let what = format!("an operation `{}`, passed on to {holder}", handed.submit.kind);
    principal::record(api, id, &handed.by, &what).await?;
    let request = principal::named(request, api, &handed.by);
    let response = api.peers.pass_on(holder, request).await?;
    // The other agent has fetched the files when it begins to answer.
    drop(handed.pins);
    Ok(response)
}

pub(super) async fn submission(
    api: &Api,
    id: &ResourceId,
    handed: &Handed,
) -> Result<(Submission, Vec<FilePin>), HttpRefusal> {
    let Handed { submit, sites, config, files, pins, by } = handed;
    let (files, mut pins) = (files.clone(), pins.clone());
    let kind = OperationType::new(&submit.kind)
        .map_err(|error| HttpRefusal::bad("bad type", error.to_string()))?;
    if kind.is_reserved() {
        let detail = format!("types like `{kind}` are kept for Cheops' own operations");
        return Err(HttpRefusal::bad("bad type", detail));
    }
    let mut inline_body = None;
    let payload = match &submit.action {
        wire::Action::Shell(shell) => Payload::Shell { command: shell.command.clone(), files },
        wire::Action::Http(http) => {
            services::check(api, id, sites.as_ref(), &http.service).await?;
            let body = http_body(api, http.body.clone(), files, &mut pins).await?;
            inline_body = body.inline;
            http_payload(http.clone(), body.file)
        }
    };
    within_limits(id, &payload, sites.as_ref(), config.as_deref())?;
    let submission = Submission {
        ticket: Ticket(0),
        resource: id.clone(),
        sites: sites.clone(),
        config: config.clone(),
        kind,
        payload,
        inline_body,
        force: submit.force,
        wait: wait(submit.wait),
        timeout_ms: capped(submit.timeout_ms),
        needs: Default::default(),
        asked_by: Some(by.clone()),
    };
    Ok((submission, pins))
}

/// What other sites would not take from this one is not taken from users either.
fn within_limits(
    id: &ResourceId,
    payload: &Payload,
    sites: Option<&BTreeSet<SiteId>>,
    config: Option<&Config>,
) -> Result<(), HttpRefusal> {
    payload.check_limits().map_err(|over| over_limit(&over))?;
    if let Some(sites) = sites.cloned() {
        let declared = Declaration { sites, config: None };
        declared.check_limits().map_err(|over| over_limit(&over))?;
    }
    let own = match payload {
        Payload::Shell { command, .. } => Some(command.as_str()),
        Payload::Http { .. } => None,
    };
    let of_config = config.into_iter().flat_map(Config::commands);
    own.into_iter().chain(of_config).try_for_each(|command| can_name(id, command))
}

fn over_limit(over: &OverLimit) -> HttpRefusal {
    match over {
        OverLimit::TooMuch { .. } => HttpRefusal::too_large(over.to_string()),
        _ => HttpRefusal::bad("bad operation", over.to_string()),
    }
}

/// Refuses a command that an id such as `-rf`, `/x` or `../x` would turn into another one.
pub(super) fn can_name(id: &ResourceId, command: &str) -> Result<(), HttpRefusal> {
    id_can_stand_in(command, id)
        .map_err(|unusable| HttpRefusal::bad("bad id", unusable.to_string()))
}

/// The body of a request, as an operation names it.
#[derive(Default)]
struct NamedBody {
    file: Option<FileRef>,
    /// Its content, if it goes along in the operation's entry.
    inline: Option<Arc<[u8]>>,
}

async fn http_body(
    api: &Api,
    body: Option<wire::Body>,
    files: Vec<FileRef>,
    pins: &mut Vec<FilePin>,
) -> Result<NamedBody, HttpRefusal> {
    let Some(body) = body else { return Ok(NamedBody::default()) };
    let file = match body {
        wire::Body::Part(name) => {
            let found = files.into_iter().find(|file| file.name == name);
            let file = found.ok_or_else(|| {
                HttpRefusal::bad("bad form", format!("there is no part `{name}`"))
            })?;
            if file.size <= MAX_INLINE_BODY_BYTES as u64
                && let Some(content) = upload::read_short(api.blobs.clone(), file.blob).await?
            {
                // It goes along in the entry; what is on the disk for it is nobody's any more.
                pins.clear();
                return Ok(NamedBody { file: Some(file), inline: Some(content.into()) });
            }
            file
        }
        wire::Body::Text(text) if text.len() <= MAX_INLINE_BODY_BYTES => {
            let file = Some(FileRef::of("body", text.as_bytes()));
            return Ok(NamedBody { file, inline: Some(text.into_bytes().into()) });
        }
        wire::Body::Text(text) => {
            let (file, pin) = upload::store_text(&*api.blobs, "body", text).await?;
            pins.push(pin);
            file
        }
    };
    Ok(NamedBody { file: Some(file), inline: None })
}

fn http_payload(http: wire::HttpAction, body: Option<FileRef>) -> Payload {
    let header = |header: wire::Header| Header { name: header.name, value: header.value };
    Payload::Http {
        service: http.service,
        method: http.method,
        path: http.path,
        headers: http.headers.into_iter().map(header).collect(),
        body,
        service_ref: None,
    }
}

/// The config that an operation brings, if it brings one.
fn settings(
    config: Option<&serde_json::Value>,
    profile: Option<&str>,
) -> Result<Option<Arc<Config>>, HttpRefusal> {
    if let Some(name) = profile {
        let found = config::profile(name).ok_or_else(|| {
            let known: Vec<_> = config::profiles().iter().map(|profile| profile.name).collect();
            HttpRefusal::bad("no such profile", format!("there is no profile `{name}`"))
                .hint(format!("one of {}", known.join(", ")))
        })?;
        return Ok(Some(Arc::new(found.config.clone())));
    }
    config.map(|value| parse_config(&value.to_string())).transpose()
}

/// Reads a config as an operator writes it.
pub(super) fn parse_config(text: &str) -> Result<Arc<Config>, HttpRefusal> {
    Ok(Arc::new(Config::parse(text)?.config))
}

/// The sites that a location such as `paris & lyon` names.
pub(super) fn sites(api: &Api, text: &str) -> Result<BTreeSet<SiteId>, HttpRefusal> {
    let everyone = std::iter::once(&api.site).chain(api.peers.sites());
    let known = Known::new([], everyone.cloned());
    let bad = |detail: String| {
        HttpRefusal::bad("bad sites", detail)
            .hint("an operation runs at each of its sites: `paris & lyon`")
    };
    resolve_location(text, &known).map_err(|problems| bad(problems.of_a_set().to_string()))?;
    let location = parse_location(text).map_err(|problems| bad(problems.to_string()))?;
    all_of(&location).ok_or_else(|| bad(format!("`{text}` is not a set of sites")))
}

/// The sites of a location that means all that it names.
fn all_of(location: &Location) -> Option<BTreeSet<SiteId>> {
    match &location.kind {
        LocationKind::Site(site) => Some([site.clone()].into()),
        LocationKind::Both(parts) => {
            let parts: Option<Vec<_>> = parts.iter().map(all_of).collect();
            Some(parts?.into_iter().flatten().collect())
        }
        _ => None,
    }
}

fn wait(wait: wire::Wait) -> engine::WaitFor {
    match wait {
        wire::Wait::All => engine::WaitFor::All,
        wire::Wait::Local => engine::WaitFor::Local,
        wire::Wait::None => engine::WaitFor::Nothing,
    }
}

fn capped(timeout_ms: u64) -> u64 {
    timeout_ms.min(u64::try_from(LONGEST_WAIT.as_millis()).unwrap_or(u64::MAX))
}

/// Hands a submission to the engine and waits until it is accepted or refused: once, for all that the
/// deciding thread tells waits until what it decided is durable.
async fn submit(
    driver: &Driver,
    site: &SiteId,
    submission: Submission,
    pins: Vec<FilePin>,
) -> Result<Result<Events, Refusal>, HttpRefusal> {
    let (resource, kind) = (submission.resource.clone(), submission.kind.clone());
    let misread = misread(&submission.payload);
    let mut said = driver.submit(submission, pins).await?;
    let (operation, sites, config, config_replaced) = loop {
        match said.recv().await {
            Some(SubmitUpdate::Answer(Answer::Accepted {
                operation,
                sites,
                config,
                config_replaced,
            })) => break (operation, sites, config, config_replaced),
            Some(SubmitUpdate::Answer(Answer::Refused(refusal))) => return Ok(Err(refusal)),
            Some(SubmitUpdate::Answer(_)) => {}
            Some(SubmitUpdate::NotDurable(why)) => return Err(why.into()),
            None => return Err(Stopped.into()),
        }
    };
    let sites: Vec<SiteId> = sites.into_iter().collect();
    let accepted = wire::SubmitEvent::Accepted {
        operation: operation.to_string(),
        resource: resource.to_string(),
        sites: on_wire::names(&sites),
        site: site.to_string(),
        config_replaced,
        warnings: config
            .unlisted(&kind)
            .iter()
            .map(ToString::to_string)
            .chain(config.logic_not_used().iter().map(ToString::to_string))
            .chain(misread.map(str::to_owned))
            .collect(),
    };
    // Room for everything that can be said, so that nobody is held up by a slow reader.
    let (events, hears) = mpsc::channel(sites.len() + 4);
    let _room = events.try_send(accepted);
    tokio::spawn(follow(said, events, sites));
    Ok(Ok(hears))
}

/// What a command expects that it will not find.
fn misread(payload: &Payload) -> Option<&'static str> {
    let Payload::Shell { command, .. } = payload else { return None };
    let asks = ["$target", "${target"].iter().any(|asks| command.contains(asks));
    (asks && !command.contains("target=")).then_some(
        "`$target` is there for the commands of `State` only, and empty in this one: name the thing itself",
    )
}

async fn follow(
    mut said: mpsc::UnboundedReceiver<SubmitUpdate>,
    events: mpsc::Sender<wire::SubmitEvent>,
    mut missing: Vec<SiteId>,
) {
    let last = loop {
        match said.recv().await {
            Some(SubmitUpdate::Answer(Answer::Replied(reply))) => {
                missing.retain(|site| site != reply.site());
                let event = wire::SubmitEvent::Reply(on_wire::site_reply(&reply));
                if events.send(event).await.is_err() {
                    return;
                }
            }
            Some(SubmitUpdate::Answer(Answer::Done)) => break wire::SubmitEvent::Done,
            Some(SubmitUpdate::Answer(Answer::TimedOut { missing })) => {
                break wire::SubmitEvent::TimedOut { missing: on_wire::names(&missing) };
            }
            Some(_) => {}
            // The agent stops. The work goes on where it can.
            None => break wire::SubmitEvent::TimedOut { missing: on_wire::names(&missing) },
        }
    };
    let _gone = events.send(last).await;
}

/// One JSON document a line, as they come.
fn as_lines(events: Events) -> Response {
    let lines = stream::unfold(events, |mut events| async {
        let event = events.recv().await?;
        Some((line(&event), events))
    });
    ([(CONTENT_TYPE, wire::NDJSON)], Body::from_stream(lines)).into_response()
}

pub(super) fn line(value: &impl serde::Serialize) -> Result<Bytes, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line.into())
}

/// For handlers that only need the JSON.
pub(super) fn json<T: serde::Serialize>(value: T) -> Response {
    Json(value).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use cheops_core::model::OperationId;

    use super::*;

    #[tokio::test]
    async fn an_operation_handed_in_is_one_request_to_the_deciding_thread_whatever_is_told_of_it() {
        let redis = config::profile("redis").unwrap().config.clone();
        let paris = SiteId::new("paris").unwrap();
        let operation: OperationId = "paris-1f00c0ffee.7".parse().unwrap();
        let accepted = Answer::Accepted {
            operation: operation.clone(),
            sites: [paris.clone()].into(),
            config: redis.clone().into(),
            config_replaced: true,
        };
        let (driver, requests) = Driver::that_says(accepted);
        let resource = ResourceId::new("counter").unwrap();
        let submission = Submission {
            ticket: Ticket(0),
            resource: resource.clone(),
            sites: None,
            config: Some(redis.into()),
            kind: OperationType::new("incr").unwrap(),
            payload: Payload::shell("cat \"$target\""),
            inline_body: None,
            force: false,
            wait: engine::WaitFor::All,
            timeout_ms: 1,
            needs: Default::default(),
            asked_by: None,
        };
        let mut events = submit(&driver, &paris, submission, Vec::new()).await.unwrap().unwrap();
        let Some(wire::SubmitEvent::Accepted { config_replaced, warnings, .. }) =
            events.recv().await
        else {
            panic!("it was accepted");
        };
        assert!(config_replaced);
        assert!(warnings.iter().any(|warning| warning.contains("`incr`")), "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("`$target`")), "{warnings:?}");
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn who_sets_a_variable_of_that_name_finds_it() {
        assert!(misread(&Payload::shell("target=/srv/x; cat $target")).is_none());
        assert!(misread(&Payload::shell("cat ${target}")).is_some());
        assert!(misread(&Payload::shell("cat /srv/x")).is_none());
    }
}
