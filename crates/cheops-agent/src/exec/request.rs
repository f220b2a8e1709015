//! One HTTP request to a service of the site's own application instance.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cheops_core::model::{FileRef, Header, OperationId, Outcome};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use tokio::sync::mpsc;

use super::capture::Capture;
use super::content::{Content, pieces};
use super::web::{self, Roots};

const OPERATION: HeaderName = HeaderName::from_static("x-cheops-operation");

/// Headers that speak of one connection, or of a body that is sent anew.
const NOT_PASSED_ON: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    header::EXPECT,
];
const NOT_PASSED_ON_EITHER: [&str; 2] = ["keep-alive", "proxy-connection"];

/// The services of the site.
pub(super) struct Services {
    upstreams: BTreeMap<String, Uri>,
    client: legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, FileBody>,
    output_limit: usize,
}

/// A request as an operation holds it.
pub(super) struct Asked<'o> {
    pub(super) operation: &'o OperationId,
    pub(super) service: &'o str,
    pub(super) method: &'o str,
    pub(super) path: &'o str,
    pub(super) headers: &'o [Header],
    pub(super) body: Option<&'o FileRef>,
}

impl Services {
    pub(super) fn new(
        upstreams: BTreeMap<String, Uri>,
        output_limit: usize,
    ) -> Result<Self, String> {
        let secure = upstreams.values().any(|uri| uri.scheme_str() == Some("https"));
        let roots = if secure { Roots::Native } else { Roots::None };
        Ok(Self { upstreams, client: web::client(roots)?, output_limit })
    }

    /// Sends the request and takes the answer in.
    pub(super) async fn ask(
        &self,
        asked: Asked<'_>,
        content: &Arc<dyn Content>,
        limit: Duration,
    ) -> Outcome {
        let (request, upstream) = match self.request(&asked, content) {
            Ok(request) => request,
            Err(reason) => return Outcome::NotStarted { reason },
        };
        let deadline = tokio::time::Instant::now() + limit;
        let answer = tokio::time::timeout_at(deadline, self.client.request(request)).await;
        let answer = match answer {
            Err(_) => return Outcome::TimedOut { limit_ms: web::millis(limit) },
            Ok(Err(error)) => return broken(asked.service, upstream, &error),
            Ok(Ok(answer)) => answer,
        };
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        let mut output = Capture::new(self.output_limit);
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
        Outcome::Answered { status, output: output.into_output() }
    }

    fn request(
        &self,
        asked: &Asked<'_>,
        content: &Arc<dyn Content>,
    ) -> Result<(Request<FileBody>, &Uri), String> {
        let upstream =
            self.upstreams.get(asked.service).ok_or_else(|| self.unknown(asked.service))?;
        let method = Method::from_bytes(asked.method.as_bytes())
            .map_err(|_| format!("`{}` is no HTTP method", asked.method))?;
        let uri = address(upstream, asked.path)?;
        let mut headers = passed_on(asked.headers)?;
        let operation = HeaderValue::try_from(asked.operation.to_string())
            .map_err(|error| error.to_string())?;
        headers.insert(OPERATION, operation);
        let mut request = Request::new(asked.body.map_or(FileBody::Empty, |file| {
            let (content, blob) = (Arc::clone(content), file.blob);
            FileBody::File { pieces: pieces(move || content.open(&blob)), left: file.size }
        }));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok((request, upstream))
    }

    fn unknown(&self, service: &str) -> String {
        let known: Vec<_> = self.upstreams.keys().map(|name| format!("`{name}`")).collect();
        match known.as_slice() {
            [] => format!("this site has no service `{service}`: none is configured"),
            _ => format!("this site has no service `{service}`; it has {}", known.join(", ")),
        }
    }
}

/// A request that got no answer. Only where no connection came about is it certain that it was
/// not carried out; else it is said to be unknown, under the status by which gateways say so.
fn broken(service: &str, upstream: &Uri, error: &legacy::Error) -> Outcome {
    let why = web::causes(error);
    if error.is_connect() {
        let reason = format!("service `{service}` cannot be reached at `{upstream}`: {why}");
        return Outcome::NotStarted { reason };
    }
    let text = format!(
        "service `{service}` at `{upstream}` broke off before it answered: {why}; the request may \
         or may not have been carried out"
    );
    let output = cheops_core::model::Output::whole(text);
    Outcome::Answered { status: http::StatusCode::BAD_GATEWAY.as_u16(), output }
}

/// The service's own address, then the path.
fn address(upstream: &Uri, path: &str) -> Result<Uri, String> {
    let prefix = upstream.path().trim_end_matches('/');
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut parts = upstream.clone().into_parts();
    let joined = format!("{prefix}{slash}{path}");
    let wrong = |error: &dyn std::fmt::Display| format!("`{path}` is no path: {error}");
    parts.path_and_query = Some(joined.parse().map_err(|error| wrong(&error))?);
    Uri::from_parts(parts).map_err(|error| wrong(&error))
}

fn passed_on(given: &[Header]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(given.len() + 1);
    for Header { name, value } in given {
        let wrong = || format!("header `{name}: {value}` cannot be sent");
        let key = HeaderName::try_from(name).map_err(|_| wrong())?;
        headers.append(key, HeaderValue::try_from(value).map_err(|_| wrong())?);
    }
    let connection = headers.get_all(header::CONNECTION).into_iter();
    let named: Vec<String> = connection
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_owned()))
        .collect();
    for name in NOT_PASSED_ON {
        headers.remove(name);
    }
    for name in NOT_PASSED_ON_EITHER.into_iter().chain(named.iter().map(String::as_str)) {
        headers.remove(name);
    }
    Ok(headers)
}

/// A body that comes from the store, a piece at a time.
pub(super) enum FileBody {
    Empty,
    File { pieces: mpsc::Receiver<std::io::Result<Bytes>>, left: u64 },
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let Self::File { pieces, left } = self.get_mut() else { return Poll::Ready(None) };
        pieces.poll_recv(context).map(|piece| {
            let piece = piece?;
            if let Ok(piece) = &piece {
                *left = left.saturating_sub(piece.len() as u64);
            }
            Some(piece.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty | Self::File { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::File { left, .. } => SizeHint::with_exact(*left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_after_the_services_own() {
        let cases = [
            ("http://h:1", "/a?b=c", Ok("http://h:1/a?b=c")),
            ("http://h:1/", "a", Ok("http://h:1/a")),
            ("http://h:1/p/", "/a", Ok("http://h:1/p/a")),
            ("http://h:1/p", "/", Ok("http://h:1/p/")),
            ("http://h:1", "/a b", Err("`/a b` is no path")),
        ];
        for (upstream, path, expected) in cases {
            let found = address(&upstream.parse().unwrap(), path);
            match expected {
                Ok(expected) => assert_eq!(found.unwrap().to_string(), expected),
                Err(expected) => assert!(found.unwrap_err().starts_with(expected)),
            }
        }
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let given = [
            ("Connection", "close, X-Own"),
            ("X-Own", "1"),
            ("Keep-Alive", "1"),
            ("Content-Length", "7"),
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
