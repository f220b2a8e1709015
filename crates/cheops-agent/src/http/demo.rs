//! The demo that this agent is part of, if it is: it cuts links and stops sites, the agent only
//! passes on what its page asks for.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::CONTENT_TYPE;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::SharedApi;
use super::metered::whole;
use super::refusal::HttpRefusal;

/// How long the demo may take to answer.
const ANSWERING: Duration = Duration::from_secs(10);

pub(super) async fn pass_on(
    State(api): State<SharedApi>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let control = api.demo.as_deref().ok_or_else(|| {
        HttpRefusal::not_found("no demo", "this agent is not part of a demo")
            .hint("`cheops demo` starts one")
    })?;
    let (head, body) = request.into_parts();
    let body = whole(Request::new(body)).await?;
    let mut asked = Request::new(Body::from(body));
    (*asked.method_mut(), *asked.uri_mut()) = (head.method, head.uri);
    let kind = head.headers.get(CONTENT_TYPE).cloned();
    asked.headers_mut().extend(kind.map(|kind| (CONTENT_TYPE, kind)));
    match tokio::time::timeout(ANSWERING, answered(control, asked)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(HttpRefusal::demo_is_away(&error.to_string())),
        Err(_late) => Err(HttpRefusal::demo_is_away("it did not answer in time")),
    }
}

async fn answered(
    control: &Path,
    request: Request,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let stream = UnixStream::connect(control).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?.map(Body::new))
}
