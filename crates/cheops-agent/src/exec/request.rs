//! One HTTP request to a service of the site's own application instance.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cheops_core::causes;
use cheops_core::model::{
    Act, FileRef, Header, LocalId, OperationId, Outcome, Output, RequestKind, ServiceRef,
};
use cheops_proxy::{Naming, Towards, is_json};
use cheops_services::body::{BodyError, OutgoingBody, limit_with};
use cheops_services::headers::strip;
use cheops_services::{Endpoint, Fate, Repeating, Services, Unanswered};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::BodyExt;

use super::capture::Capture;
use super::content::{ContentStore, pieces};
use super::millis;
use super::settings::RequestSettings;
use super::start_failure::{StartFailure, passes};

const OPERATION: HeaderName = HeaderName::from_static("x-cheops-operation");

/// Headers that speak of a body that is sent anew, without trailers.
const OF_THE_BODY: [HeaderName; 3] = [header::CONTENT_LENGTH, header::TE, header::TRAILER];

/// Headers of an answer that say something of the resource, and are kept with it.
const KEPT: [HeaderName; 8] = [
    header::CONTENT_TYPE,
    header::CONTENT_LOCATION,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
];
/// The longest value of one.
const LONGEST_KEPT: usize = 4 * 1024;

/// Headers that make a request depend on what its sender saw.
const CONDITIONS: [HeaderName; 5] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
];

/// So much of an answer to a creation is looked into for the new id.
const LONGEST_CREATED: usize = 1024 * 1024;

/// From this size on, a body may be let go while its operation is kept.
const MAY_BE_GONE: u64 = 64 * 1024;

/// The longest body that is looked into for ids.
const LONGEST_READ: u64 = 1024 * 1024;

/// Sends requests that are operations to the services of the site.
pub(super) struct Requester {
    pub(super) services: Services,
    pub(super) requests: RequestSettings,
    pub(super) output_limit: usize,
}

/// A request as an operation holds it.
pub(super) struct OperationRequest<'o> {
    pub(super) operation: &'o OperationId,
    /// Whether it was begun before, and may have been carried out.
    pub(super) again: bool,
    /// By which it is known whether it may be sent again; none if it is of a type of somebody's own.
    pub(super) kind: Option<RequestKind>,
    /// Whether it was handed in at this site.
    pub(super) is_ours: bool,
    pub(super) service: &'o str,
    pub(super) method: &'o str,
    pub(super) path: &'o str,
    pub(super) headers: &'o [Header],
    pub(super) body: Option<&'o FileRef>,
    /// Its content, if the operation brought it along.
    pub(super) inline_body: Option<&'o [u8]>,
    pub(super) service_ref: Option<&'o ServiceRef>,
}

impl OperationRequest<'_> {
    /// Whether it waits to be sent again, after that came of it. Only requests that came from a
    /// proxy do: what anybody else hands in is tried once.
    fn is_sent_again_after(&self, fate: Fate) -> bool {
        let repeats =
            |service_ref: &ServiceRef| Repeating::of(service_ref.act.can_be_repeated(self.kind));
        self.service_ref.is_some_and(|service_ref| fate.allows_another(repeats(service_ref)))
    }
}

impl Requester {
    /// Sends the request and takes the answer in.
    pub(super) async fn ask(
        &self,
        asked: OperationRequest<'_>,
        content: &Arc<dyn ContentStore>,
        limit: Duration,
    ) -> Outcome {
        let (mut request, endpoint) = match self.request(&asked, content).await {
            Ok(request) => request,
            Err(StartFailure::ForNow(reason)) => return not_yet(&asked, reason, false),
            Err(start_failure) => return start_failure.into(),
        };
        (self.requests.mark)(asked.service, request.headers_mut());
        let limit = asked.service_ref.map_or(limit, |_| self.requests.answer_limit);
        let limit = limit_with(asked.body.map_or(0, |body| body.size), limit);
        let deadline = tokio::time::Instant::now() + limit;
        let answer = tokio::time::timeout_at(deadline, endpoint.ask(request)).await;
        let answer = match answer {
            Err(_) if asked.is_sent_again_after(Fate::Unknown) => {
                let reason = format!("service `{}` did not answer in time", asked.service);
                return not_yet(&asked, reason, true);
            }
            Err(_) => return Outcome::TimedOut { limit_ms: millis(limit) },
            Ok(Err(error)) => return unanswered(&asked, endpoint, &error),
            Ok(Ok(answer)) => answer,
        };
        let (head, mut body) = answer.into_parts();
        if asked.is_sent_again_after(Fate::Answered(head.status)) {
            let reason = format!("service `{}` answered {}", asked.service, head.status);
            return not_yet(&asked, reason, true);
        }
        // An id may come late in an answer.
        let creates = asked.service_ref.is_some_and(|service_ref| service_ref.act == Act::Creates);
        let limit = if creates { LONGEST_CREATED } else { 0 };
        let mut output = Capture::new(self.output_limit.max(limit));
        let reading = async {
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return false };
                let whole = frame.data_ref().is_none_or(|data| output.take(data));
                if !whole {
                    return true;
                }
            }
            true
        };
        // The service has decided: what is missing of its words changes nothing about that.
        if !matches!(tokio::time::timeout_at(deadline, reading).await, Ok(true)) {
            output.cut_off();
        }
        self.outcome(&asked, &head, output.into_output())
    }

    /// What an answer comes to.
    fn outcome(&self, asked: &OperationRequest<'_>, head: &Parts, output: Output) -> Outcome {
        let status = head.status.as_u16();
        let rules = self.requests.rules.get(asked.service);
        let (Some(service_ref), Some(rules)) = (asked.service_ref, rules) else {
            return Outcome::answered(status, output);
        };
        let (method, says) = (asked.method.into(), &rules.says_already);
        let already = service_ref.act.is_already_so(method, asked.again, status, says);
        let succeeded = (200..400).contains(&status);
        let (mut done, mut local_id, mut output) = (succeeded || already, None, output);
        if service_ref.act == Act::Creates && succeeded {
            let body = serde_json::from_str(&output.text).ok();
            let id = rules.naming.local_id(head.status, &head.headers, body.as_ref());
            local_id = id.and_then(|id| LocalId::new(&id).ok());
            if local_id.is_none() {
                (done, output) = (false, nameless(asked.service, &output));
            }
        }
        if output.text.len() > self.output_limit {
            output.text.truncate(output.text.floor_char_boundary(self.output_limit));
            output.truncated = true;
        }
        Outcome::Answered { status, headers: kept(&head.headers), output, done, local_id }
    }

    async fn request(
        &self,
        asked: &OperationRequest<'_>,
        content: &Arc<dyn ContentStore>,
    ) -> Result<(Request<OutgoingBody>, &Endpoint), StartFailure> {
        let endpoint = self.services.find(asked.service);
        let endpoint = endpoint.ok_or_else(|| self.unknown(asked.service))?;
        let method = Method::from_bytes(asked.method.as_bytes())
            .map_err(|_| format!("`{}` is no HTTP method", asked.method))?;
        let replicas = &self.requests.replicas;
        let renamed = asked
            .service_ref
            .and_then(|_| replicas.rename_path(asked.service, asked.path, Towards::Service));
        let path = renamed.as_deref().unwrap_or(asked.path);
        let uri = endpoint.join(path).map_err(|error| format!("`{path}` is no path: {error}"))?;
        let mut headers = passed_on(asked.headers)?;
        endpoint.sign(&mut headers);
        if asked.service_ref.is_some() && (asked.again || !asked.is_ours) {
            // They speak of what the user saw, and that was this request's first run.
            CONDITIONS.iter().for_each(|name| drop(headers.remove(name)));
        }
        let operation = HeaderValue::try_from(asked.operation.to_string())
            .map_err(|error| error.to_string())?;
        headers.insert(OPERATION, operation);
        let body = match (asked.inline_body, asked.body) {
            (Some(content), _) => OutgoingBody::whole(Bytes::copy_from_slice(content)),
            (None, Some(file)) => opened(asked, file, content).await?,
            (None, None) => OutgoingBody::whole(Bytes::new()),
        };
        let speaks_of_ids = asked.service_ref.is_some()
            && asked.body.is_some_and(|file| file.size <= LONGEST_READ)
            && is_json(&headers)
            && replicas.renames(asked.service);
        let body = if speaks_of_ids { self.renamed(asked, body).await? } else { body };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok((request, endpoint))
    }

    /// A body with the ids by which the service of this site knows its resources.
    async fn renamed(
        &self,
        asked: &OperationRequest<'_>,
        body: OutgoingBody,
    ) -> Result<OutgoingBody, StartFailure> {
        let unread = |error: BodyError| StartFailure::because("its body cannot be read", &*error);
        let bytes = body.collect().await.map_err(unread)?.to_bytes();
        let naming = self.requests.rules.get(asked.service).map(|rules| &rules.naming);
        let renamed = self.requests.replicas.rename_body(
            asked.service,
            naming.unwrap_or(&Naming::default()),
            asked.path,
            &bytes,
            Towards::Service,
        );
        Ok(OutgoingBody::whole(renamed.map_or(bytes, Bytes::from)))
    }

    fn unknown(&self, service: &str) -> String {
        let known: Vec<_> = self.services.names().map(|name| format!("`{name}`")).collect();
        match known.as_slice() {
            [] => format!("this site has no service `{service}`: none is configured"),
            _ => format!("this site has no service `{service}`; it has {}", known.join(", ")),
        }
    }
}

/// A body that is a file, opened before anything is sent: it may have been let go.
async fn opened(
    asked: &OperationRequest<'_>,
    file: &FileRef,
    content: &Arc<dyn ContentStore>,
) -> Result<OutgoingBody, StartFailure> {
    let (content, blob) = (Arc::clone(content), file.blob);
    let opened = tokio::task::spawn_blocking(move || content.open(&blob)).await;
    match opened.unwrap_or_else(|stopping| Err(io::Error::other(stopping))) {
        Ok(reader) => Ok(OutgoingBody::pieces(pieces(move || Ok(reader)), file.size)),
        // A replica that misses a change stays behind for good, and one of this size is not let go:
        // another site may have it yet.
        Err(error) if asked.service_ref.is_some() && file.size < MAY_BE_GONE => {
            Err(StartFailure::ForNow(format!("its body cannot be read: {}", causes(&error))))
        }
        Err(error) if passes(&error) || file.size < MAY_BE_GONE => {
            Err(StartFailure::because("its body cannot be read", &error))
        }
        Err(_) => {
            let gone = "its body is not kept any more: every site had made use of it";
            Err(gone.to_owned().into())
        }
    }
}

/// A request that got no answer. Only where no connection came about is it certain that it was
/// not carried out.
fn unanswered(asked: &OperationRequest<'_>, endpoint: &Endpoint, error: &Unanswered) -> Outcome {
    let (why, service, upstream) = (causes(error), asked.service, endpoint.upstream());
    let fate = Fate::from(error);
    if fate == Fate::NeverArrived {
        let reason = format!("service `{service}` cannot be reached at `{upstream}`: {why}");
        // A replica that misses a change stays behind for good: it waits for its service instead.
        return match asked.service_ref {
            Some(_) => not_yet(asked, reason, false),
            None if passes(error) => not_yet(asked, reason, false),
            None => Outcome::NotStarted { reason },
        };
    }
    if asked.is_sent_again_after(fate) {
        let reason = format!("service `{service}` broke off before it answered: {why}");
        return not_yet(asked, reason, true);
    }
    let reason = format!(
        "service `{service}` at `{upstream}` broke off before it answered: {why}; the request may \
         or may not have been carried out"
    );
    Outcome::BrokenOff { reason }
}

fn not_yet(asked: &OperationRequest<'_>, reason: String, in_doubt: bool) -> Outcome {
    tracing::warn!(operation = %asked.operation, reason, "a request has to wait");
    Outcome::NotYet { reason, in_doubt }
}

/// What is said where a service made something and did not say what it calls it.
fn nameless(service: &str, answer: &Output) -> Output {
    Output::whole(format!(
        "service `{service}` answered the creation, but its answer holds no id; `id` in the \
         agent's config says where it is. It answered: {}",
        answer.text
    ))
}

fn kept(headers: &HeaderMap) -> Vec<Header> {
    let line = |name: &HeaderName| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let fitting = values.filter(|value| value.len() <= LONGEST_KEPT).map(str::to_owned);
        fitting.map(|value| Header { name: name.to_string(), value }).collect::<Vec<_>>()
    };
    KEPT.iter().flat_map(line).collect()
}

fn passed_on(given: &[Header]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(given.len() + 1);
    for Header { name, value } in given {
        let wrong = || format!("header `{name}` cannot be sent");
        let key = HeaderName::try_from(name).map_err(|_| wrong())?;
        headers.append(key, HeaderValue::try_from(value).map_err(|_| wrong())?);
    }
    strip(&mut headers);
    OF_THE_BODY.iter().for_each(|name| drop(headers.remove(name)));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let given = [
            ("Connection", "close, X-Own"),
            ("X-Own", "1"),
            ("Keep-Alive", "1"),
            ("Content-Length", "7"),
            ("Proxy-Connection", "close"),
            ("TE", "trailers"),
            ("Trailer", "x-sum"),
            ("Accept", "a"),
            ("Accept", "b"),
        ];
        let given = given.map(|(name, value)| Header { name: name.into(), value: value.into() });
        let headers = passed_on(&given).unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers.get_all("accept").iter().count(), 2);
        let bad = [Header { name: "a b".to_owned(), value: String::new() }];
        assert!(passed_on(&bad).is_err());
    }
}
