//! One request asked of several sites at once, and what each of them said. Bodies are held in
//! memory here, so they are short.

use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::body::{Arriving, OutgoingBody};
use cheops_services::{Fate, Returned};
use futures_util::future::join_all;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    RANGE, TRAILER,
};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, StatusCode, response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::super::headers::ERROR;
use super::super::local_service::LocalService;
use super::super::refusal::{NOT_OFFERED, ProxyRefusal, UNREACHABLE};
use super::super::run::again;
use super::super::{Failed, ProxiedRequest, Proxies};
use super::join::Missing;
use super::refused;

/// The longest body of a request or an answer.
const LONGEST: usize = 4 * 1024 * 1024;

/// What one site is asked.
pub(super) struct SiteQuestion {
    pub(super) site: SiteId,
    pub(super) path: PathAndQuery,
    pub(super) body: Bytes,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct SiteResult {
    pub(super) site: SiteId,
    pub(super) outcome: AskOutcome,
}

#[derive(Debug)]
pub(super) enum AskOutcome {
    /// A service answered.
    Answered(Box<SiteAnswer>),
    /// None did. It may still have carried the request out.
    Not(Missing, Fate),
}

#[derive(Debug)]
pub(super) struct SiteAnswer {
    pub(super) head: response::Parts,
    pub(super) content: AnswerContent,
}

/// What is in an answer.
#[derive(Debug, Clone)]
pub(super) enum AnswerContent {
    Nothing,
    Json(Value),
    /// Nothing that can be joined, and why not.
    Other(Bytes, &'static str),
}

impl AnswerContent {
    pub(super) fn json(&self) -> Option<&Value> {
        match self {
            Self::Json(value) => Some(value),
            _ => None,
        }
    }
}

impl SiteResult {
    /// An answer that says that it was done.
    pub(super) fn done(&self) -> Option<&SiteAnswer> {
        let done = |status: StatusCode| status.is_success() || status == StatusCode::SEE_OTHER;
        self.answer().filter(|answer| done(answer.head.status))
    }

    /// What a service answered.
    pub(super) fn answer(&self) -> Option<&SiteAnswer> {
        match &self.outcome {
            AskOutcome::Answered(answer) => Some(answer),
            AskOutcome::Not(..) => None,
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match &self.outcome {
            AskOutcome::Answered(answer) => answer.head.status,
            AskOutcome::Not(missing, _) => {
                StatusCode::from_u16(missing.status).unwrap_or(StatusCode::BAD_GATEWAY)
            }
        }
    }

    /// Why it was not done, for people.
    pub(super) fn missing(&self) -> Missing {
        match &self.outcome {
            AskOutcome::Not(missing, _) => missing.clone(),
            AskOutcome::Answered(answer) => {
                let status = answer.head.status;
                let mut detail = format!("the service answered {status}");
                let said = match &answer.content {
                    AnswerContent::Nothing => String::new(),
                    AnswerContent::Json(value) => value.to_string(),
                    AnswerContent::Other(bytes, _) => String::from_utf8_lossy(bytes).into_owned(),
                };
                if !said.is_empty() {
                    detail.push_str(": ");
                    detail.extend(said.chars().take(300));
                }
                Missing { site: self.site.clone(), status: status.as_u16(), detail }
            }
        }
    }
}

impl Proxies {
    /// Reads a client's body, which has to be short.
    pub(super) async fn short_body(&self, body: Arriving) -> Result<Bytes, ProxyRefusal> {
        let reading = Limited::new(body, LONGEST).collect();
        match tokio::time::timeout(self.0.answer_limit, reading).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refused::too_long(LONGEST)),
            Ok(Err(error)) => Err(ProxyRefusal::broken_request(&error.to_string())),
            Err(_late) => Err(ProxyRefusal::broken_request("it did not come in time")),
        }
    }

    /// Asks all of them at once; the answers are in the order of the questions.
    pub(super) async fn ask_all(
        &self,
        service: &LocalService,
        asked: &ProxiedRequest,
        questions: Vec<SiteQuestion>,
    ) -> Vec<SiteResult> {
        join_all(questions.into_iter().map(|it| self.ask_one(service, asked, it))).await
    }

    async fn ask_one(
        &self,
        service: &LocalService,
        asked: &ProxiedRequest,
        question: SiteQuestion,
    ) -> SiteResult {
        let SiteQuestion { site, path, body } = question;
        let mut part = again(asked);
        let mut uri = part.head.uri.into_parts();
        uri.path_and_query = Some(path);
        part.head.uri = http::Uri::from_parts(uri).unwrap_or_default();
        let headers = &mut part.head.headers;
        // Answers are read here: they have to come whole, and as they are.
        for name in [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE, TRAILER, CONTENT_LENGTH] {
            headers.remove(name);
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if !body.is_empty() {
            headers.insert(CONTENT_LENGTH, body.len().into());
        }
        let attempt = self.attempt(service, &site, part, OutgoingBody::whole(body)).await;
        let outcome = match attempt {
            Ok(response) => self.read(service, &site, response).await,
            Err(failed) => not(&site, &failed),
        };
        SiteResult { site, outcome }
    }

    async fn read(
        &self,
        service: &LocalService,
        site: &SiteId,
        response: http::Response<Returned>,
    ) -> AskOutcome {
        let (head, body) = response.into_parts();
        let reading = Limited::new(body, LONGEST).collect();
        let bytes = match tokio::time::timeout(self.0.answer_limit, reading).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let content = AnswerContent::Other(Bytes::new(), "more than 4 MiB");
                return AskOutcome::Answered(Box::new(SiteAnswer { head, content }));
            }
            Ok(Err(error)) => {
                let refused = ProxyRefusal::broken_off(service.name(), site, &error.to_string());
                return not(site, &Failed { fate: Fate::Unknown, refused });
            }
            Err(_late) => return not(site, &self.too_late(service, site)),
        };
        let is_encoded = head.headers.contains_key(CONTENT_ENCODING);
        let content = match serde_json::from_slice(&bytes) {
            _ if bytes.is_empty() => AnswerContent::Nothing,
            _ if is_encoded => AnswerContent::Other(bytes, "a body in an encoding of its own"),
            Ok(value) => AnswerContent::Json(value),
            Err(_) => AnswerContent::Other(bytes, "something that is not JSON"),
        };
        if let Some(code) = head.headers.get(ERROR) {
            // Said by the agent there.
            let never = code == UNREACHABLE || code == NOT_OFFERED;
            let fate = if never { Fate::NeverArrived } else { Fate::Unknown };
            let detail = content.json().and_then(|problem| problem["detail"].as_str());
            let detail = detail.unwrap_or("its agent refused the request").to_owned();
            let status = head.status.as_u16();
            return AskOutcome::Not(Missing { site: site.clone(), status, detail }, fate);
        }
        AskOutcome::Answered(Box::new(SiteAnswer { head, content }))
    }
}

fn not(site: &SiteId, Failed { fate, refused }: &Failed) -> AskOutcome {
    let (status, detail) = (refused.status().as_u16(), refused.detail().to_owned());
    AskOutcome::Not(Missing { site: site.clone(), status, detail }, *fate)
}

/// What speaks of the bytes of one answer, and not of several that were joined.
pub(super) const OF_ONE_BODY: [HeaderName; 10] = [
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    http::header::CONTENT_TYPE,
    http::header::CONTENT_RANGE,
    http::header::ACCEPT_RANGES,
    http::header::ETAG,
    http::header::LAST_MODIFIED,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
];
