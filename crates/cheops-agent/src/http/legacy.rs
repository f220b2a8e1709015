//! `/exec` and `/show` as the first Cheops had them, so that its clients work unchanged.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use cheops_api as wire;
use cheops_api::{ExecLine, ExecStatus, InputOutput, SubmitEvent};
use futures_util::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use super::principal::AskedBy;
use super::refusal::HttpRefusal;
use super::submit::{self, Events, Handed, SubmitResult, json};
use super::upload::ReceivedForm;
use super::wire::{config as wire_config, names};
use super::{SharedApi, resource_id, show as showing};

/// How long one line of another agent's answer may be.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// What `/exec` takes beside files.
const TEXTS: [&str; 4] = ["command", "sites", "type", "config"];

/// `POST /exec/{id}`
pub(super) async fn exec(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    AskedBy(by): AskedBy,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let mut form = ReceivedForm::read(request, api.upload_room(), &TEXTS).await?;
    let (command, sites, kind) = (form.take("command")?, form.take("sites")?, form.take("type")?);
    let config = form.take_optional("config").as_deref().map(submit::parse_config).transpose()?;
    form.end(&TEXTS)?;
    let at = submit::sites(&api, &sites)?;
    let missing = names(&at);
    let handed = Handed {
        sites: Some(at),
        submit: wire::Submit {
            kind,
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
        by,
    };
    let events = match submit::hand_in(&api, &id, handed, false).await? {
        SubmitResult::Here(events) => events,
        SubmitResult::Elsewhere(response) if response.status().is_success() => events_of(response),
        SubmitResult::Elsewhere(response) => return Ok(response),
    };
    Ok(LegacyLines::new(command, id.to_string(), missing).of(events))
}

/// `POST /show/{id}`
pub(super) async fn show(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    AskedBy(by): AskedBy,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let id = resource_id(&id)?;
    let mut form = ReceivedForm::read(request, api.upload_room(), &["command", "sites"]).await?;
    let command = form.take("command")?;
    let sites = submit::sites(&api, &form.take("sites")?)?;
    let show = wire::Show { command, sites: None, timeout_ms: wire::DEFAULT_TIMEOUT_MS };
    let shown = showing::at_all(&api, &id, &show, sites, &by).await?;
    let said = |(site, shown): (String, wire::Shown)| {
        (site, wire::SiteShow { status: shown.status, output: shown.output })
    };
    Ok(json(shown.into_iter().map(said).collect::<wire::LegacyShow>()))
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

/// Turns what is heard of an operation into the original's lines: one for each site, whatever is
/// heard and wherever it ends.
struct LegacyLines {
    command: String,
    resource: String,
    began: Instant,
    operation: String,
    sites: Vec<String>,
    missing: Vec<String>,
}

impl LegacyLines {
    fn new(command: String, resource: String, sites: Vec<String>) -> Self {
        let (began, operation) = (Instant::now(), String::new());
        Self { command, resource, began, operation, missing: sites.clone(), sites }
    }

    fn of(self, events: Events) -> Response {
        let lines = stream::unfold((self, events), |(mut lines, mut events)| async {
            let said = match events.recv().await {
                Some(event) => lines.say(event),
                None => lines.say_who_is_missing()?,
            };
            Some((stream::iter(said), (lines, events)))
        });
        let bytes = lines.flatten().map(|line| submit::line(&line));
        ([(CONTENT_TYPE, "application/json")], Body::from_stream(bytes)).into_response()
    }

    fn say(&mut self, event: SubmitEvent) -> Vec<ExecLine> {
        match event {
            SubmitEvent::Accepted { operation, sites, .. } => {
                (self.operation, self.missing) = (operation, sites.clone());
                self.sites = sites;
                Vec::new()
            }
            SubmitEvent::Reply(said) => {
                self.missing.retain(|site| *site != said.site);
                vec![self.line(said.site, status(said.reply.status), said.reply.output)]
            }
            // Nothing comes after these, and then it is said who is missing.
            SubmitEvent::TimedOut { .. } | SubmitEvent::Done => Vec::new(),
        }
    }

    /// The last lines, once.
    fn say_who_is_missing(&mut self) -> Option<Vec<ExecLine>> {
        let missing = std::mem::take(&mut self.missing);
        let late = |site| self.line(site, ExecStatus::Timeout, String::new());
        (!missing.is_empty()).then(|| missing.into_iter().map(late).collect())
    }

    fn line(&self, site: String, status: ExecStatus, output: String) -> ExecLine {
        let input = self.command.clone();
        ExecLine {
            locations: self.sites.clone(),
            site,
            request_id: self.operation.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client hears of an operation at two sites, if this is what another agent says of it.
    async fn heard(said: &[Result<&str, &str>]) -> Vec<(String, String)> {
        let said = said.iter().map(|said| said.map(str::to_owned).map_err(str::to_owned));
        let response = Body::from_stream(stream::iter(said.collect::<Vec<_>>())).into_response();
        let sites = vec!["site1".to_owned(), "site2".to_owned()];
        let lines = LegacyLines::new("true".into(), "x".into(), sites);
        let body = lines.of(events_of(response)).into_body();
        let body = axum::body::to_bytes(body, LONGEST_LINE).await.unwrap();
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let line = |line: &[u8]| {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap();
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (text("Site"), text("Status"))
        };
        lines.map(line).collect()
    }

    #[tokio::test]
    async fn each_site_has_its_line_wherever_the_link_to_the_other_agent_breaks() {
        let accepted = SubmitEvent::Accepted {
            operation: "site1-1.1".into(),
            resource: "x".into(),
            sites: vec!["site1".into(), "site2".into()],
            site: "site1".into(),
            config_replaced: false,
            warnings: Vec::new(),
        };
        let accepted = serde_json::to_string(&accepted).unwrap() + "\n";
        let reply =
            r#"{"event":"reply","site":"site2","operation":"site1-1.1","status":"OK","time":""}"#;
        let late = r#"{"event":"timed-out","missing":["site1"]}"#;
        let (reply, late) = (format!("{reply}\n"), format!("{late}\n"));
        let (half, broken) = (&reply[..20], Err("the link broke"));
        let timeout = |site: &str| (site.to_owned(), "TIMEOUT".to_owned());
        let ok = ("site2".to_owned(), "OK".to_owned());
        for (said, expected) in [
            (vec![broken], vec![timeout("site1"), timeout("site2")]),
            (vec![Ok(&*accepted), broken], vec![timeout("site1"), timeout("site2")]),
            (vec![Ok(&*accepted), Ok(half), broken], vec![timeout("site1"), timeout("site2")]),
            (vec![Ok(&*accepted), Ok(&*reply), broken], vec![ok.clone(), timeout("site1")]),
            (vec![Ok(&*accepted), Ok(&*reply), Ok(&*late)], vec![ok.clone(), timeout("site1")]),
            (vec![Ok(&*accepted), Ok("nonsense\n")], vec![timeout("site1"), timeout("site2")]),
        ] {
            assert_eq!(heard(&said).await, expected, "{said:?}");
        }
    }
}
