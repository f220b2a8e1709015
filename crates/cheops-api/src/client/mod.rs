//! A typed client. One connection pool per [`Client`]; HTTP/1 by a socket of this machine, by
//! loopback, or by TLS.

mod address;
mod connect;
mod error;
mod lines;
mod sse;
mod streams;
mod upload;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use address::AgentAddress;
use connect::{AgentConnector, Trusted};
use error::Cause;
pub use error::{BadAddress, ClientError};
pub use streams::{Changes, Lines};
pub use upload::Upload;
use upload::{Carried, MultipartForm, SentBytes, whole};

use crate::paths::{self, segment};
use crate::token::Token;
use crate::types::{
    Backup, BackupEvent, Cross, CrossPlace, CrossSeen, CrossValue, Cursor, Decision, Delete, Demo,
    DemoLink, DryRun, ExecForm, ExecLine, Explanation, Forecast, History, HistoryAsked,
    LatestAsked, LegacyShow, LoginLink, MatrixTrial, NumberedChange, Operation, OperationRecord,
    Page, PastOperations, Problem, Profile, Resource, ResourceFilter, ResourceSummary, RunSite,
    Seen, Settle, Show, ShowAnswer, ShowForm, Sites, Submit, SubmitEvent, Summary, SummaryFilter,
    TryMatrix,
};

/// How long a copy may be made without a word: one large file may take that.
const BACKUP_MAY_TAKE: Duration = Duration::from_secs(3_600);
const JSON: &str = "application/json";
/// How long to wait for a connection, and for the answer of an agent that has nothing to wait for.
const PATIENCE: Duration = Duration::from_secs(10);
/// An agent closes a connection on which nothing is asked for twice as long.
const IDLE: Duration = Duration::from_secs(5);
/// The change feed says at least that it is alive every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// How long the first Cheops's own API lets a client wait, at most.
const ORIGINAL_WAIT: Duration = Duration::from_secs(30);
/// No single document is longer.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
/// Nobody reads more of an error that is not written for programs.
const MAX_ERROR_CHARS: usize = 300;

/// A client of one agent.
#[derive(Debug, Clone)]
pub struct Client {
    address: AgentAddress,
    /// What lets it in, as a header has it.
    authorization: Option<HeaderValue>,
    pool: Pool<AgentConnector, Carried>,
}

/// How an agent is to be asked.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// What lets the client in, where the agent asks for it.
    pub token: Option<Token>,
    /// Certificates that vouch for the agent's, as PEM; those of the system if there are none.
    pub authorities: Option<Vec<u8>>,
}

/// A request in the making.
struct RequestBuilder {
    method: Method,
    path: String,
    headers: Vec<(http::HeaderName, String)>,
    body: Carried,
    sent: SentBytes,
    /// How long the agent may say nothing.
    patience: Duration,
}

impl RequestBuilder {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: whole(Bytes::new()),
            sent: SentBytes::default(),
            patience: PATIENCE,
        }
    }

    fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    fn header(mut self, name: http::HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn json(mut self, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        self.body = whole(serde_json::to_vec(value)?);
        Ok(self.header(CONTENT_TYPE, JSON))
    }

    fn form(mut self, form: MultipartForm) -> Self {
        let content_type = form.content_type();
        (self.body, self.sent) = form.finish();
        self.header(CONTENT_TYPE, content_type)
    }

    fn patience(mut self, more: Duration) -> Self {
        self.patience = PATIENCE.saturating_add(more);
        self
    }
}

impl Client {
    /// A client of the agent at this address, such as `http://127.0.0.1:8079` or
    /// `unix:/run/cheops/api.sock`. Nothing is sent yet.
    pub fn new(address: &str) -> Result<Self, BadAddress> {
        Self::with(address, &ClientOptions::default())
    }

    /// The same, with what lets it in.
    pub fn with(address: &str, options: &ClientOptions) -> Result<Self, BadAddress> {
        let bad = |rule: &str| BadAddress::new(address, rule);
        let parsed = AgentAddress::parse(address)?;
        if options.token.is_some() && parsed.is_open_to_readers() {
            return Err(bad("a token could be read on the way there: use `https://`"));
        }
        let authorization = options.token.as_ref().map(bearer);
        let connector = match (parsed.socket(), &options.authorities) {
            (Some(path), _) => AgentConnector::Socket(path.into()),
            (None, Some(pem)) if parsed.is_https() => web(&Trusted::These(pem), address)?,
            (None, None) if parsed.is_https() => web(&Trusted::System, address)?,
            (None, _) => web(&Trusted::Nobody, address)?,
        };
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { address: parsed, authorization, pool })
    }

    /// The agent's address.
    pub fn address(&self) -> String {
        self.address.shown()
    }

    /// A link that lets one browser in, once.
    pub async fn login_link(&self) -> Result<LoginLink, ClientError> {
        self.document(RequestBuilder::new(Method::POST, paths::LOGIN_LINKS)).await
    }

    /// All sites, as this agent sees them.
    pub async fn sites(&self) -> Result<Sites, ClientError> {
        self.document(RequestBuilder::get(paths::SITES)).await
    }

    /// All sites, as that one sees them.
    pub async fn sites_seen_by(&self, site: &str) -> Result<Sites, ClientError> {
        self.document(RequestBuilder::get(paths::site(site))).await
    }

    /// All resources in a few numbers.
    pub async fn summary(&self) -> Result<Summary, ClientError> {
        self.document(RequestBuilder::get(paths::SUMMARY)).await
    }

    /// Some resources in a few numbers.
    pub async fn summary_of(&self, filter: &SummaryFilter) -> Result<Summary, ClientError> {
        self.document(RequestBuilder::get(with_query(paths::SUMMARY, filter))).await
    }

    /// The end of the feed of changes, the oldest first.
    pub async fn latest_changes(&self, limit: u32) -> Result<Vec<NumberedChange>, ClientError> {
        let asked = LatestAsked { limit: Some(limit) };
        self.document(RequestBuilder::get(with_query(paths::LATEST_CHANGES, &asked))).await
    }

    /// A page of the resources.
    pub async fn resources(
        &self,
        filter: &ResourceFilter,
    ) -> Result<Page<ResourceSummary>, ClientError> {
        let path = with_query(paths::RESOURCES, filter);
        self.document(RequestBuilder::get(path)).await
    }

    /// One resource.
    pub async fn resource(&self, id: &str) -> Result<Resource, ClientError> {
        self.document(RequestBuilder::get(paths::resource(id))).await
    }

    /// One resource, as that site sees it.
    pub async fn resource_at(&self, id: &str, site: &str) -> Result<Resource, ClientError> {
        let path = with_query(&paths::resource(id), &Seen { at: Some(site.to_owned()) });
        self.document(RequestBuilder::get(path)).await
    }

    /// A page of its operations.
    pub async fn operations(
        &self,
        id: &str,
        cursor: &Cursor,
    ) -> Result<Page<Operation>, ClientError> {
        let path = with_query(&paths::operations(id), cursor);
        self.document(RequestBuilder::get(path)).await
    }

    /// One of them.
    pub async fn operation(&self, id: &str, operation: &str) -> Result<Operation, ClientError> {
        self.document(RequestBuilder::get(paths::operation(id, operation))).await
    }

    /// Why its list is what it is.
    pub async fn explain(&self, id: &str) -> Result<Explanation, ClientError> {
        self.document(RequestBuilder::get(paths::explain(id))).await
    }

    /// Why its list is what it is, as that site sees it.
    pub async fn explain_at(&self, id: &str, site: &str) -> Result<Explanation, ClientError> {
        let path = with_query(&paths::explain(id), &Seen { at: Some(site.to_owned()) });
        self.document(RequestBuilder::get(path)).await
    }

    /// Some of what happened to it, the latest first.
    pub async fn history(&self, id: &str, asked: &HistoryAsked) -> Result<History, ClientError> {
        self.document(RequestBuilder::get(with_query(&paths::history(id), asked))).await
    }

    /// Its operations that no site needs any more.
    pub async fn past(&self, id: &str) -> Result<PastOperations, ClientError> {
        self.document(RequestBuilder::get(paths::past(id))).await
    }

    /// One operation, of whatever resource, with all that is kept of it, at that site if one is named.
    pub async fn recorded(
        &self,
        operation: &str,
        at: Option<&str>,
    ) -> Result<OperationRecord, ClientError> {
        let seen = Seen { at: at.map(str::to_owned) };
        self.document(RequestBuilder::get(with_query(&paths::recorded(operation), &seen))).await
    }

    /// The parts of a resource over several sites.
    pub async fn cross(&self, id: &str) -> Result<Cross, ClientError> {
        self.document(RequestBuilder::get(paths::cross(id))).await
    }

    /// The resources over several sites that were made or asked for at this site, the latest first.
    pub async fn all_cross(&self) -> Result<Vec<CrossSeen>, ClientError> {
        self.document(RequestBuilder::get(paths::ALL_CROSS)).await
    }

    /// What a resource over several sites is now.
    pub async fn cross_value(
        &self,
        id: &str,
        place: &CrossPlace,
    ) -> Result<CrossValue, ClientError> {
        self.document(RequestBuilder::get(with_query(&paths::cross_value(id), place))).await
    }

    /// The matrices that come with Cheops.
    pub async fn profiles(&self) -> Result<Vec<Profile>, ClientError> {
        self.document(RequestBuilder::get(paths::PROFILES)).await
    }

    /// What a matrix makes of every two operations.
    pub async fn try_matrix(&self, matrix: &TryMatrix) -> Result<MatrixTrial, ClientError> {
        let ask = RequestBuilder::new(Method::POST, paths::MATRIX);
        self.document(self.jsoned(ask, matrix)?).await
    }

    /// The demo that the agent is part of.
    pub async fn demo(&self) -> Result<Demo, ClientError> {
        self.document(RequestBuilder::get(paths::DEMO)).await
    }

    /// Cuts or heals a link of the demo.
    pub async fn set_demo_link(&self, link: &DemoLink) -> Result<Demo, ClientError> {
        let ask = RequestBuilder::new(Method::POST, paths::DEMO_LINKS);
        self.document(self.jsoned(ask, link)?).await
    }

    /// Stops or starts a site of the demo.
    pub async fn set_demo_site(&self, site: &RunSite) -> Result<Demo, ClientError> {
        let ask = RequestBuilder::new(Method::POST, paths::DEMO_SITES);
        self.document(self.jsoned(ask, site)?).await
    }

    /// Submits an operation with its files. What is told of it comes as it happens.
    pub async fn submit(
        &self,
        id: &str,
        submit: &Submit,
        files: &[Upload],
    ) -> Result<Lines<SubmitEvent>, ClientError> {
        check_files(files).await?;
        let wait = Duration::from_millis(submit.timeout_ms);
        let ask = RequestBuilder::new(Method::POST, paths::operations(id)).patience(wait);
        let ask = if files.is_empty() {
            self.jsoned(ask, submit)?
        } else {
            let operation = serde_json::to_string(submit).map_err(|error| self.broken(error))?;
            let mut form = MultipartForm::new();
            form.field("operation", Some(JSON), &operation);
            files.iter().for_each(|file| form.file(file));
            ask.form(form)
        };
        self.lines(ask).await
    }

    /// What would come of something. Nothing is written.
    pub async fn dry_run(&self, id: &str, what: &DryRun) -> Result<Forecast, ClientError> {
        let ask = RequestBuilder::new(Method::POST, paths::dry_run(id));
        self.document(self.jsoned(ask, what)?).await
    }

    /// Looks at a resource.
    pub async fn show(&self, id: &str, show: &Show) -> Result<ShowAnswer, ClientError> {
        let wait = Duration::from_millis(show.timeout_ms);
        let ask = RequestBuilder::new(Method::POST, paths::show(id)).patience(wait);
        self.document(self.jsoned(ask, show)?).await
    }

    /// Settles an operation in doubt, at the site of this agent or at another.
    pub async fn settle(
        &self,
        id: &str,
        operation: &str,
        decision: Decision,
        site: Option<&str>,
    ) -> Result<(), ClientError> {
        let ask = RequestBuilder::new(Method::POST, paths::decision(id, operation));
        let settle = Settle { decision, site: site.map(str::to_owned) };
        self.answer(self.jsoned(ask, &settle)?).await.map(drop)
    }

    /// Copies the data directory of the agent's site to a folder on its machine. What is told of it
    /// comes as it happens.
    pub async fn backup(&self, dir: &str) -> Result<Lines<BackupEvent>, ClientError> {
        // Large files are copied in silence.
        let ask =
            RequestBuilder::new(Method::POST, paths::BACKUP.to_owned()).patience(BACKUP_MAY_TAKE);
        self.lines(self.jsoned(ask, &Backup { dir: dir.to_owned() })?).await
    }

    /// Deletes a resource. What is told of it comes as it happens.
    pub async fn delete(
        &self,
        id: &str,
        delete: &Delete,
    ) -> Result<Lines<SubmitEvent>, ClientError> {
        let wait = Duration::from_millis(delete.timeout_ms);
        let ask = RequestBuilder::new(Method::DELETE, paths::resource(id)).patience(wait);
        self.lines(self.jsoned(ask, delete)?).await
    }

    /// Changes as they happen, of one resource or of all, after the one with that number.
    pub async fn changes(
        &self,
        resource: Option<&str>,
        after: Option<u64>,
    ) -> Result<Changes, ClientError> {
        let path = resource.map_or_else(|| paths::CHANGES.to_owned(), paths::changes_of);
        let mut ask = RequestBuilder::get(path).header(ACCEPT, "text/event-stream");
        if let Some(after) = after {
            let name = http::HeaderName::from_static("last-event-id");
            ask = ask.header(name, after.to_string());
        }
        let url = self.url(&ask.path);
        let answer = self.answer(ask).await?;
        Ok(Changes::new(url, answer.into_body(), SILENCE))
    }

    /// Hands in a shell operation the way of the first Cheops.
    pub async fn exec(
        &self,
        id: &str,
        form: &ExecForm,
        files: &[Upload],
    ) -> Result<Lines<ExecLine>, ClientError> {
        check_files(files).await?;
        let mut parts = MultipartForm::new();
        parts.field("command", None, &form.command);
        parts.field("sites", None, &form.sites);
        parts.field("type", None, &form.kind);
        if let Some(config) = &form.config {
            parts.field("config", None, config);
        }
        files.iter().for_each(|file| parts.file(file));
        let ask =
            RequestBuilder::new(Method::POST, paths::exec(id)).patience(ORIGINAL_WAIT).form(parts);
        self.lines(ask).await
    }

    /// Looks at a resource the way of the first Cheops.
    pub async fn legacy_show(&self, id: &str, form: &ShowForm) -> Result<LegacyShow, ClientError> {
        let mut parts = MultipartForm::new();
        parts.field("command", None, &form.command);
        parts.field("sites", None, &form.sites);
        let ask = RequestBuilder::new(Method::POST, paths::legacy_show(id));
        self.document(ask.patience(ORIGINAL_WAIT).form(parts)).await
    }

    /// Whether the agent runs.
    pub async fn healthz(&self) -> Result<(), ClientError> {
        self.answer(RequestBuilder::get(paths::HEALTHZ)).await.map(drop)
    }

    /// Whether the agent can take operations.
    pub async fn readyz(&self) -> Result<(), ClientError> {
        self.answer(RequestBuilder::get(paths::READYZ)).await.map(drop)
    }

    /// Numbers for Prometheus.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let ask = RequestBuilder::get(paths::METRICS);
        let (url, patience) = (self.url(&ask.path), ask.patience);
        let bytes = collected(&url, self.answer(ask).await?, patience).await?;
        String::from_utf8(bytes.to_vec())
            .map_err(|error| ClientError::Broken { url, source: error.into() })
    }

    /// The agent's own OpenAPI document.
    pub async fn openapi(&self) -> Result<serde_json::Value, ClientError> {
        self.document(RequestBuilder::get(paths::OPENAPI)).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address.shown())
    }

    fn broken(&self, cause: impl Into<Cause>) -> ClientError {
        ClientError::Broken { url: self.address(), source: cause.into() }
    }

    fn jsoned(
        &self,
        ask: RequestBuilder,
        value: &impl Serialize,
    ) -> Result<RequestBuilder, ClientError> {
        ask.json(value).map_err(|error| self.broken(error))
    }

    async fn lines<T: DeserializeOwned>(
        &self,
        ask: RequestBuilder,
    ) -> Result<Lines<T>, ClientError> {
        let (url, patience) = (self.url(&ask.path), ask.patience);
        let answer = self.answer(ask).await?;
        Ok(Lines::new(url, answer.into_body(), patience))
    }

    async fn document<T: DeserializeOwned>(&self, ask: RequestBuilder) -> Result<T, ClientError> {
        let (url, patience) = (self.url(&ask.path), ask.patience);
        let bytes = collected(&url, self.answer(ask).await?, patience).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ClientError::Broken { url, source: error.into() })
    }

    /// The beginning of an answer that says yes.
    async fn answer(&self, ask: RequestBuilder) -> Result<Response<Incoming>, ClientError> {
        let RequestBuilder { method, path, headers, body, sent, patience } = ask;
        let url = self.url(&path);
        let mut request =
            Request::builder().method(method).uri(format!("{}{path}", self.address.base()));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| self.broken(error))?;
        let mut response = std::pin::pin!(self.pool.request(request));
        let mut before = sent.bytes();
        let response = loop {
            match tokio::time::timeout(patience, &mut response).await {
                Ok(response) => break response,
                Err(_elapsed) if sent.bytes() > before => before = sent.bytes(),
                Err(_elapsed) => return Err(ClientError::TimedOut { url, limit: patience }),
            }
        };
        let response = response.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(&url, response, patience).await)
    }

    fn unreachable(&self, error: hyper_util::client::legacy::Error) -> ClientError {
        let url = self.address();
        if error.is_connect() {
            ClientError::Unreachable { url, source: error.into() }
        } else {
            ClientError::BrokeOff { url, source: error.into() }
        }
    }
}

fn web(trusted: &Trusted<'_>, address: &str) -> Result<AgentConnector, BadAddress> {
    AgentConnector::web(trusted, PATIENCE).map_err(|why| BadAddress::new(address, &why))
}

fn bearer(token: &Token) -> HeaderValue {
    // A token is made of what may stand in a header.
    let value = HeaderValue::from_str(&format!("Bearer {}", token.secret()));
    let mut value = value.unwrap_or_else(|_never| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Whether a URL leads to this machine, and no further.
pub fn is_loopback(url: &str) -> bool {
    address::is_loopback(url)
}

/// The path with the fields of this value as its query.
fn with_query(path: &str, query: &impl Serialize) -> String {
    let fields = match serde_json::to_value(query) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let pairs: Vec<String> = fields
        .iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => format!("{name}={}", segment(text)),
            other => format!("{name}={}", segment(&other.to_string())),
        })
        .collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A file that cannot be read should not be found out in the middle of a request.
async fn check_files(files: &[Upload]) -> Result<(), ClientError> {
    for Upload { path, .. } in files {
        tokio::fs::File::open(path)
            .await
            .map_err(|source| ClientError::Unreadable { path: path.clone(), source })?;
    }
    Ok(())
}

async fn collected(
    url: &str,
    answer: Response<Incoming>,
    patience: Duration,
) -> Result<Bytes, ClientError> {
    let body = Limited::new(answer.into_body(), MAX_DOCUMENT_BYTES).collect();
    let url = url.to_owned();
    match tokio::time::timeout(patience, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(ClientError::BrokeOff { url, source: error }),
        Err(_elapsed) => Err(ClientError::TimedOut { url, limit: patience }),
    }
}

/// What an answer that says no says. Where it is no problem document, its text has to do.
async fn refused(url: &str, answer: Response<Incoming>, patience: Duration) -> ClientError {
    let status = answer.status();
    let bytes = match collected(url, answer, patience).await {
        Ok(bytes) => bytes,
        Err(error) => return error,
    };
    let problem = serde_json::from_slice(&bytes);
    ClientError::Refused(Box::new(problem.unwrap_or_else(|_other| unspecific(status, &bytes))))
}

fn unspecific(status: StatusCode, bytes: &[u8]) -> Problem {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.trim().chars().take(MAX_ERROR_CHARS).collect();
    let title = status.canonical_reason().unwrap_or("refused").to_lowercase();
    let detail = if text.is_empty() { format!("{title} ({})", status.as_u16()) } else { text };
    Problem::new(status.as_u16(), title, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ResourceState;

    #[test]
    fn a_token_is_not_sent_where_others_can_read_it() {
        let token = Some(Token::new("0123456789abcdef").unwrap());
        let options = ClientOptions { token, authorities: None };
        expect_test::expect![
            "`http://paris:8079` is not the address of an agent: a token could be read on the way \
             there: use `https://`"
        ]
        .assert_eq(&Client::with("http://paris:8079", &options).unwrap_err().to_string());
        for fine in ["http://127.0.0.1:8079", "unix:/run/cheops/api.sock"] {
            assert!(Client::with(fine, &options).is_ok(), "{fine}");
        }
    }

    #[test]
    fn what_is_asked_for_becomes_the_query() {
        let filter = ResourceFilter {
            limit: Some(5),
            q: Some("a&b".to_owned()),
            kind: Some("set".to_owned()),
            state: Some(ResourceState::InDoubt),
            deleted: Some(true),
            ..ResourceFilter::default()
        };
        assert_eq!(
            with_query("/r", &filter),
            "/r?deleted=true&limit=5&q=a%26b&state=in-doubt&type=set"
        );
        assert_eq!(with_query("/r", &ResourceFilter::default()), "/r");
    }
}
