//! `/exec` and `/show` as the first Cheops had them, so that its clients work unchanged.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Multipart, Path, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_api::{ExecLine, ExecStatus, InputOutput, SubmitEvent};
use futures_util::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use super::refusal::Refused;
use super::submit::{self, Events, Handed, Taken, json};
use super::upload::Form;
use super::wire::config as wire_config;
use super::{Shared, resource_id, show as showing};

/// How long one line of another agent's answer may be.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

type Sent = Result<Multipart, axum::extract::multipart::MultipartRejection>;

fn form(sent: Sent) -> Result<Multipart, Refused> {
    sent.map_err(|error| {
        Refused::bad("bad form", error.body_text())
            .hint("send multipart/form-data with `command`, `sites` and `type`")
    })
}

/// `POST /exec/{id}`
pub(super) async fn exec(
    State(api): State<Shared>,
    Path(id): Path<String>,
    sent: Sent,
) -> Result<Response, Refused> {
    let id = resource_id(&id)?;
    let mut form =
        Form::read(form(sent)?, &api.blobs, &["command", "sites", "type", "config"]).await?;
    let (command, sites) = (form.take("command")?, form.take("sites")?);
    let config = form.take_optional("config").as_deref().map(submit::parse_config).transpose()?;
    let handed = Handed {
        sites: Some(submit::sites(&api, &sites)?),
        submit: wire::Submit {
            kind: form.take("type")?,
            sites: Some(sites),
            config: config.as_deref().map(wire_config),
            profile: None,
            action: wire::Action::Shell(wire::ShellAction { command: command.clone() }),
            force: false,
            wait: wire::Wait::All,
            timeout_ms: wire::DEFAULT_TIMEOUT_MS,
        },
        config,
        files: form.files,
        pins: form.pins,
    };
    let events = match submit::hand_in(&api, &id, handed, false).await? {
        Taken::Here(events) => events,
        Taken::Elsewhere(response) if response.status().is_success() => events_of(response),
        Taken::Elsewhere(response) => return Ok(response),
    };
    let lines = Lines { command, resource: id.to_string(), began: Instant::now(), known: None };
    Ok(lines.of(events))
}

/// `POST /show/{id}`
pub(super) async fn show(
    State(api): State<Shared>,
    Path(id): Path<String>,
    sent: Sent,
) -> Result<Response, Refused> {
    let id = resource_id(&id)?;
    let mut form = Form::read(form(sent)?, &api.blobs, &["command", "sites"]).await?;
    let command = form.take("command")?;
    let sites = submit::sites(&api, &form.take("sites")?)?;
    let show = wire::Show { command, sites: None, timeout_ms: wire::DEFAULT_TIMEOUT_MS };
    let shown = showing::at_all(&api, &id, &show, sites).await;
    let said = |(site, shown): (String, wire::Shown)| {
        (site, wire::SiteShow { status: shown.status, output: shown.output })
    };
    Ok(json(shown.into_iter().map(said).collect::<wire::OriginalShow>()))
}

/// What another agent says of an operation that was passed on to it.
fn events_of(response: Response) -> Events {
    let (events, hears) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut body = response.into_body().into_data_stream();
        let mut waiting = Vec::new();
        while let Some(Ok(chunk)) = body.next().await {
            waiting.extend_from_slice(&chunk);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                let Ok(event) = serde_json::from_slice(&line) else { return };
                if events.send(event).await.is_err() {
                    return;
                }
            }
            if waiting.len() > LONGEST_LINE {
                return;
            }
        }
    });
    hears
}

/// Turns what is heard of an operation into the original's lines.
struct Lines {
    command: String,
    resource: String,
    began: Instant,
    known: Option<(String, Vec<String>)>,
}

impl Lines {
    fn of(self, events: Events) -> Response {
        let lines = stream::unfold((self, events), |(mut lines, mut events)| async {
            let event = events.recv().await?;
            let said = lines.say(event);
            Some((stream::iter(said), (lines, events)))
        });
        let bytes = lines.flatten().map(|line| submit::line(&line));
        ([(CONTENT_TYPE, "application/json")], Body::from_stream(bytes)).into_response()
    }

    fn say(&mut self, event: SubmitEvent) -> Vec<ExecLine> {
        match event {
            SubmitEvent::Accepted { operation, sites, .. } => {
                self.known = Some((operation, sites));
                Vec::new()
            }
            SubmitEvent::Reply(said) => {
                vec![self.line(said.site, status(said.reply.status), said.reply.output)]
            }
            SubmitEvent::TimedOut { missing } => {
                let late = |site| self.line(site, ExecStatus::Timeout, String::new());
                missing.into_iter().map(late).collect()
            }
            SubmitEvent::Done => Vec::new(),
        }
    }

    fn line(&self, site: String, status: ExecStatus, output: String) -> ExecLine {
        let (operation, sites) = self.known.clone().unwrap_or_default();
        let input = self.command.clone();
        ExecLine {
            locations: sites,
            site,
            request_id: operation,
            resource_id: self.resource.clone(),
            status,
            cmd: InputOutput { input: input.clone(), output: output.clone() },
            input,
            output,
            execution_time: spelled(self.began.elapsed()),
            mark: wire::ReplyMark::Reply,
        }
    }
}

fn status(status: wire::ReplyStatus) -> ExecStatus {
    match status {
        wire::ReplyStatus::Ok => ExecStatus::Ok,
        wire::ReplyStatus::Ko => ExecStatus::Ko,
        wire::ReplyStatus::Superseded => ExecStatus::Superseded,
        wire::ReplyStatus::InDoubt => ExecStatus::InDoubt,
        wire::ReplyStatus::Partial => ExecStatus::Partial,
    }
}

/// A duration as the original wrote it: `12.5ms`, `3.2s`.
fn spelled(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{:.3}ms", time.as_secs_f64() * 1000.0)
    } else {
        format!("{:.3}s", time.as_secs_f64())
    }
}
