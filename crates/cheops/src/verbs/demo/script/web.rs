//! Requests to the sample application, as any client sends them, and how they are shown.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::Script;
use crate::agent::innermost;
use crate::failure::Failure;
use crate::look::{ACCENT, BOLD, DIM, styled};
use crate::text::{hanging, printable};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_ANSWER: usize = 1024 * 1024;
/// Of an id, so much tells it from the others.
const SHOWN_OF_ID: usize = 8;
/// Longer words are ids.
const LONGEST_WORD: usize = 20;
/// What is shown of a resource.
const SHOWN: [&str; 9] =
    ["id", "name", "os", "version", "cpus", "used", "status", "error", "detail"];

/// The way to services.
pub(super) struct Web(Client<HttpConnector, Body>);

/// One request.
pub(super) struct WebRequest<'a> {
    /// Which site's proxy gets it.
    at: usize,
    service: &'static str,
    method: &'static str,
    path: &'a str,
    scope: &'a str,
    kind: &'static str,
    body: String,
}

/// What came back.
pub(super) struct WebAnswer {
    pub(super) status: u16,
    /// Which site answered, or which sites.
    pub(super) site: String,
    pub(super) body: Value,
}

impl<'a> WebRequest<'a> {
    pub(super) fn of(
        at: usize,
        service: &'static str,
        method: &'static str,
        path: &'a str,
    ) -> Self {
        Self { at, service, method, path, scope: "", kind: "", body: String::new() }
    }

    /// With a scope.
    pub(super) fn under(self, scope: &'a str) -> Self {
        Self { scope, ..self }
    }

    pub(super) fn json(self, body: &Value) -> Self {
        Self { kind: "application/json", body: body.to_string(), ..self }
    }

    pub(super) fn file(self, content: &str) -> Self {
        Self { kind: "application/octet-stream", body: content.to_owned(), ..self }
    }
}

impl Web {
    pub(super) fn new() -> Self {
        // No connection is kept: the services and agents behind it come and go.
        let mut client = Client::builder(TokioExecutor::new());
        Self(client.pool_max_idle_per_host(0).build(HttpConnector::new()))
    }

    async fn send(&self, request: Request<Body>) -> Result<WebAnswer, Failure> {
        let place = request.uri().to_string();
        let failed = |why: Box<dyn std::error::Error>| {
            Failure::ours(format!("`{place}` does not answer")).because(why)
        };
        let exchange = async {
            let response = self.0.request(request).await.map_err(|error| innermost(&error))?;
            let (head, body) = response.into_parts();
            let body = to_bytes(Body::new(body), LONGEST_ANSWER).await;
            Ok((head, body.map_err(|error| innermost(&error))?))
        };
        let late = tokio::time::timeout(PATIENCE, exchange).await;
        let (head, body) = late.map_err(|late| failed(late.into()))?.map_err(failed)?;
        let site = head.headers.get("x-cheops-site").and_then(|site| site.to_str().ok());
        Ok(WebAnswer {
            status: head.status.as_u16(),
            site: site.unwrap_or("nobody").to_owned(),
            // No body, or a file, is nothing that is looked into.
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }
}

impl WebAnswer {
    /// A field, if it is a text.
    pub(super) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// What it is, in a line.
    pub(super) fn brief(&self) -> String {
        let said = brief(&self.body);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        format!("{} from {}{said}", self.status, self.site)
    }
}

impl Script<'_> {
    /// Sends a request, and shows it and what came back.
    pub(super) async fn ask(&mut self, ask: WebRequest<'_>) -> Result<WebAnswer, Failure> {
        let (site, width) = (&self.cluster.sites[ask.at].name, self.output.width);
        let at = format!("  at {site}: ");
        let request = format!("{} {} {}", ask.method, ask.path, ask.body);
        let request = hanging(&at, shortened(&request).trim_end(), width);
        let request = request.replacen(site.as_str(), &styled(BOLD, site), 1);
        self.output.line(request)?;
        if !ask.scope.is_empty() {
            let scope = format!("    X-Scope: {}", styled(ACCENT, ask.scope));
            self.output.line(scope)?;
        }
        let answer = self.look(ask).await?;
        let said = hanging("    → ", &shortened(&answer.brief()), width);
        self.output.line(styled(DIM, printable(&said)))?;
        Ok(answer)
    }

    /// Sends a request that nobody needs to see.
    pub(super) async fn look(&self, ask: WebRequest<'_>) -> Result<WebAnswer, Failure> {
        let service = self.cluster.sites[ask.at].service(ask.service);
        let service =
            service.ok_or_else(|| Failure::ours("the sample application does not run"))?;
        self.send(format!("http://{}{}", service.proxy, ask.path), ask).await
    }

    /// The same past the agent: what the service itself says.
    pub(super) async fn look_behind(&self, ask: WebRequest<'_>) -> Result<WebAnswer, Failure> {
        let service = self.cluster.sites[ask.at].service(ask.service);
        let service =
            service.ok_or_else(|| Failure::ours("the sample application does not run"))?;
        self.send(format!("http://{}{}", service.upstream, ask.path), ask).await
    }

    async fn send(&self, place: String, ask: WebRequest<'_>) -> Result<WebAnswer, Failure> {
        let mut request = Request::builder().method(ask.method).uri(&place);
        if !ask.scope.is_empty() {
            request = request.header("x-scope", ask.scope);
        }
        if !ask.kind.is_empty() {
            request = request.header(CONTENT_TYPE, ask.kind);
        }
        let request = request.body(Body::from(ask.body));
        let request = request
            .map_err(|error| Failure::ours(format!("`{place}` is no address")).because(error))?;
        self.web.send(request).await
    }
}

/// What is worth seeing of an answer.
fn brief(body: &Value) -> String {
    let Some(members) = body.as_object() else { return String::new() };
    let mut lists = members.iter().filter_map(|(what, list)| Some((what, list.as_array()?)));
    if let Some((what, list)) = lists.find(|(what, _)| *what != "incomplete") {
        let names: Vec<_> = list.iter().filter_map(|item| item["name"].as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return format!("{what} {names}");
    }
    let shown = SHOWN.iter().filter_map(|field| match body.get(field)? {
        // What went wrong needs no name.
        Value::String(text) if ["error", "detail"].contains(field) => Some(text.clone()),
        Value::String(text) => Some(format!("{field} {text}")),
        Value::Number(number) => Some(format!("{field} {number}{}", parts_of(body, field))),
        _ => None,
    });
    let mut shown: Vec<String> = shown.collect();
    if let Some(missing) = body["incomplete"].as_array() {
        let missing: Vec<_> = missing.iter().filter_map(Value::as_str).collect();
        shown.push(format!("incomplete without {}", missing.join(", ")));
    }
    shown.join(", ")
}

/// How much of a number each site has, where there is one over several.
fn parts_of(body: &Value, field: &str) -> String {
    let sites = body["sites"].as_object().into_iter().flatten();
    let part =
        |(site, part): (&String, &Value)| Some(format!("{} at {site}", part[field].as_u64()?));
    let parts: Vec<String> = sites.filter_map(part).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// With only the beginning of ids: nobody reads more of them.
fn shortened(text: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut short = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        match word.len() > LONGEST_WORD {
            true => short.extend([&word[..SHOWN_OF_ID], "…"]),
            false => short.push_str(word),
        }
        let between = more.find(is_of_word).unwrap_or(more.len());
        short.push_str(&more[..between]);
        rest = &more[between..];
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_shown_by_their_beginning() {
        let path = "/v1/images/5a3f0000-aaaa-4bbb-8ccc-000000000001/file";
        assert_eq!(shortened(path), "/v1/images/5a3f0000…/file");
        assert_eq!(shortened("ä {\"name\":\"web\"} ö"), "ä {\"name\":\"web\"} ö");
        assert_eq!(shortened(""), "");
    }

    #[test]
    fn an_answer_is_shown_by_what_matters_of_it() {
        let list = json!({"servers": [{"name": "a"}, {"name": "b"}], "incomplete": ["site2"]});
        assert_eq!(brief(&list), "servers a, b");
        assert_eq!(brief(&json!({"images": []})), "images none");
        let whole = json!({"id": "x", "cpus": 6, "created": "today",
            "sites": {"site1": {"cpus": 4}, "site2": {"cpus": 2}}});
        assert_eq!(brief(&whole), "id x, cpus 6 (4 at site1, 2 at site2)");
        let part = json!({"cpus": 4, "incomplete": ["site2"],
            "sites": {"site1": {"cpus": 4}, "site2": {"error": {}}}});
        assert_eq!(brief(&part), "cpus 4 (4 at site1), incomplete without site2");
        assert_eq!(brief(&json!({"error": "not found"})), "not found");
        assert_eq!(brief(&Value::Null), "");
    }
}
