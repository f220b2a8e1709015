//! Bodies on their way through: as they arrive, or so that they can be sent again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body as Boxed;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

/// What can be kept in memory to be sent a second time.
const KEPT: u64 = 64 * 1024;

pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body that comes in: from a client or from another site.
pub(super) enum Arriving {
    Here(Incoming),
    FromPeer(Boxed),
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Here(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::FromPeer(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(body) => body.is_end_stream(),
            Self::FromPeer(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(body) => body.size_hint(),
            Self::FromPeer(body) => body.size_hint(),
        }
    }
}

/// A body that goes out.
pub(super) enum Sent {
    Once(Arriving),
    Whole(Full<Bytes>),
    /// It can be had back as long as nobody has read from it.
    Lent(Lent),
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Once(body) => Pin::new(body).poll_frame(context),
            Self::Whole(body) => Pin::new(body).poll_frame(context).map_err(|error| match error {}),
            Self::Lent(lent) => lent.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Once(body) => body.is_end_stream(),
            Self::Whole(body) => body.is_end_stream(),
            // Only a body that is longer than can be kept is lent.
            Self::Lent(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Once(body) => body.size_hint(),
            Self::Whole(body) => body.size_hint(),
            Self::Lent(lent) => lent.hint,
        }
    }
}

/// Shared between whoever sends it and whoever may want it back.
pub(super) struct Lent {
    body: Arc<Mutex<Owned>>,
    hint: SizeHint,
}

pub(super) struct Owned {
    body: Option<Arriving>,
    touched: bool,
}

impl Lent {
    fn poll_frame(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut owned = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        owned.touched = true;
        match &mut owned.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(Some(Err("the body was taken back".into()))),
        }
    }
}

/// A body for one attempt after the other.
pub(super) enum Supply {
    Whole(Bytes),
    Streamed { body: Arc<Mutex<Owned>>, hint: SizeHint },
}

impl Supply {
    /// Reads it if it is short; else it can be sent again only if nobody began to read it.
    pub(super) async fn of(body: Arriving) -> Result<Self, BodyError> {
        let hint = body.size_hint();
        if hint.upper().is_some_and(|upper| upper <= KEPT) {
            return Ok(Self::Whole(body.collect().await?.to_bytes()));
        }
        let owned = Owned { body: Some(body), touched: false };
        Ok(Self::Streamed { body: Arc::new(Mutex::new(owned)), hint })
    }

    /// The body once more; `None` if it is gone.
    pub(super) fn next(&self) -> Option<Sent> {
        match self {
            Self::Whole(bytes) => Some(Sent::Whole(Full::new(bytes.clone()))),
            Self::Streamed { body, hint } => {
                let touched = body.lock().unwrap_or_else(PoisonError::into_inner).touched;
                let lent = Lent { body: body.clone(), hint: *hint };
                (!touched).then_some(Sent::Lent(lent))
            }
        }
    }
}

/// A body that goes back to the client.
pub(super) type Returned = http_body_util::Either<Incoming, Boxed>;
