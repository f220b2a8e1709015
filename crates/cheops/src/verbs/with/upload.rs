//! The body of a request that says `Expect: 100-continue`: whoever sends it wants to hear first
//! whether it is welcome, and not from us.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{HeaderMap, Request, StatusCode};
use tokio::sync::Notify;

/// A server that says nothing by then probably never will, and waits for the body itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that nobody asks for, until the server says `100 Continue`. Asking for it is what makes
/// our side say that to the program.
struct DeferredBody {
    body: Incoming,
    welcome: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl hyper::body::Body for DeferredBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(welcome) = &mut self.welcome {
            ready!(welcome.as_mut().poll(context));
            self.welcome = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The same request, its body held back if it is to be.
pub(super) fn held_back(mut request: Request<Incoming>) -> Request<Body> {
    if !is_held_back(request.headers()) {
        return request.map(Body::new);
    }
    let welcomed = Arc::new(Notify::new());
    let tells = welcomed.clone();
    hyper::ext::on_informational(&mut request, move |said| {
        if said.status() == StatusCode::CONTINUE {
            tells.notify_one();
        }
    });
    let welcome = async move {
        let _said_or_not = tokio::time::timeout(PATIENCE, welcomed.notified()).await;
    };
    request.map(|body| Body::new(DeferredBody { body, welcome: Some(Box::pin(welcome)) }))
}

fn is_held_back(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|what| what.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
