//! How errors look to those who ask: RFC 9457 problem details, with what to do about it.

use std::error::Error;

use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use cheops_api::{PROBLEM_JSON, Problem};
use cheops_core::causes;
use cheops_core::config::{ConfigErrors, ConfigProblem};
use cheops_core::engine::Refusal;
use cheops_core::model::{ResourceId, SiteId};
use cheops_mesh::{FetchError, TunnelError};
use cheops_proxy::NoRoom;
use cheops_store::{BlobError, ReadError, Seq};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode, Uri};

use super::wire as on_wire;
use crate::driver::{NotDurable, Stopped};

/// Titled so, nothing of a request was carried out.
pub(super) const TOO_MUCH: &str = "too much is under way";

/// Why a request gets no other answer.
#[derive(Debug)]
pub(super) struct HttpRefusal(Box<Problem>);

impl HttpRefusal {
    fn new(status: StatusCode, title: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(status.as_u16(), title, detail)))
    }

    /// The request cannot be understood.
    pub(super) fn bad(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, title, detail)
    }

    /// Nobody knows who asks.
    pub(super) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "a token is needed", detail)
    }

    /// The system gives no random numbers.
    pub(super) fn no_random(error: &std::io::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no link can be made", error.to_string())
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "not allowed", detail)
    }

    pub(super) fn no_such_resource(id: &ResourceId) -> Self {
        let detail =
            format!("resource `{id}` is not known here, nor at any site that can be asked");
        Self::new(StatusCode::NOT_FOUND, "no such resource", detail)
            .hint("`cheops resources` lists those there are")
    }

    /// What stands after the path's `?` makes no sense.
    pub(super) fn bad_query(rejection: &QueryRejection) -> Self {
        // What is wrong is said by the error at the bottom; those above it only say where.
        let first: &dyn Error = rejection;
        let chain = std::iter::successors(Some(first), |&error| error.source());
        let why = chain.last().map(ToString::to_string).unwrap_or_default();
        Self::bad("bad query", format!("the query cannot be understood: {why}"))
            .hint("/openapi.json lists what can be asked for")
    }

    /// The feed never came to that place.
    pub(super) fn not_yet(place: Seq, newest: Seq, oldest: Seq) -> Self {
        let detail = format!("there is no change {} yet: the last one is {}", place.0, newest.0);
        Self::new(StatusCode::GONE, "not there yet", detail)
            .hint("did the number come from another site, or before a disk was lost?")
            .with("oldest", oldest.0)
    }

    pub(super) fn not_found(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, title, detail)
    }

    pub(super) fn conflict(title: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, title, detail)
    }

    pub(super) fn unreachable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no site can be reached", detail)
            .hint("`cheops sites` shows which sites are connected")
    }

    /// The site that was asked for by name is not there.
    pub(super) fn out_of_reach(error: &TunnelError) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "the site cannot be reached", error.to_string())
            .hint("it is asked again once it is connected; `cheops sites` shows which sites are")
    }

    /// The site that was asked for by name says nothing.
    pub(super) fn too_late(site: &SiteId) -> Self {
        let detail = format!("site `{site}` did not answer in time");
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the site did not answer", detail)
            .hint("what was asked for may have happened there: look again when it is connected")
    }

    /// All the room for reading commands is taken.
    pub(super) fn crowded(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, TOO_MUCH, detail).hint(
            "nothing was run: ask again when some are over; `jobs_at_once` in `[shell]` of the \
             agent's config is how many may run",
        )
    }

    pub(super) fn demo_is_away(why: &str) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "the demo cannot be reached", why)
            .hint("does `cheops demo` still run in its terminal?")
    }

    pub(super) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too large", detail)
    }

    pub(super) fn too_slow(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too slow", detail)
    }

    pub(super) fn broken_disk(error: &std::io::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the disk failed", causes(error))
            .logged("a file could not be written")
    }

    /// Tells the operator, where it is theirs to do something about it.
    fn logged(self, message: &str) -> Self {
        if self.0.fault().is_logged() {
            tracing::error!(error = self.0.detail, "{message}");
        }
        self
    }

    /// With what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// With more about it, for programs.
    pub(super) fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.0.extensions.insert(name.into(), value.into());
        self
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_string(&self.0).unwrap_or_default();
        (status, [(CONTENT_TYPE, PROBLEM_JSON)], body + "\n").into_response()
    }
}

impl From<Stopped> for HttpRefusal {
    fn from(stopped: Stopped) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", stopped.to_string())
    }
}

impl From<NotDurable> for HttpRefusal {
    fn from(why: NotDurable) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "cannot be made durable", why.to_string())
            .hint("make room on the disk of the agent's data directory; it goes on by itself")
    }
}

impl From<NoRoom> for HttpRefusal {
    fn from(why: NoRoom) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "no room for its files", why.to_string())
            .hint("make room on the disk of the agent's data directory")
    }
}

impl From<Refusal> for HttpRefusal {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::UnknownResource(id) => Self::no_such_resource(&id)
                .hint("a new resource needs its sites with its first operation"),
            Refusal::NotHeldHere { .. } => Self::unreachable(detail),
            Refusal::SitesDiffer { are, .. } => {
                let are: Vec<_> = are.iter().map(ToString::to_string).collect();
                Self::conflict("it lives elsewhere", detail)
                    .hint("leave the sites out, or use another id")
                    .with("sites", are)
            }
            Refusal::Deleted(_) => Self::conflict("deleted", detail).hint("or use another id"),
            Refusal::UnknownSite(_) => Self::bad("no such site", detail)
                .hint("`cheops sites` lists the sites this agent knows"),
            Refusal::Merged(_) => Self::conflict("merged", detail)
                .hint("leave out `--force`; `cheops delete` ends the resource"),
            Refusal::NeedsItself { .. } => Self::conflict("needs itself", detail)
                .hint("make one of them without naming the other, and name it in a later change"),
        }
    }
}

impl From<ConfigErrors> for HttpRefusal {
    fn from(errors: ConfigErrors) -> Self {
        let told = errors.problems().iter().map(|ConfigProblem { place, fault }| {
            on_wire::finding(place, fault.to_string(), Some(fault.remedy()))
        });
        let problems = serde_json::to_value(told.collect::<Vec<_>>()).unwrap_or_default();
        Self::bad("bad config", errors.to_string())
            .hint("`cheops matrix check` shows what is wrong with a config")
            .with("problems", problems)
    }
}

impl From<TunnelError> for HttpRefusal {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::NoLink(_) => Self::unreachable(error.to_string()),
            TunnelError::NoRoom(_) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Self::new(status, TOO_MUCH, error.to_string())
            }
            TunnelError::HeadTooLong(_) => Self::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "too long a head",
                error.to_string(),
            ),
            TunnelError::Broke { .. } => {
                Self::new(StatusCode::BAD_GATEWAY, "the answer was lost", causes(&error))
                    .hint("look at the resource before you try again")
            }
        }
    }
}

impl From<BlobError> for HttpRefusal {
    fn from(error: BlobError) -> Self {
        Self::not_stored(error.is_full(), &error)
    }
}

impl HttpRefusal {
    fn not_stored(is_full: bool, error: &dyn std::error::Error) -> Self {
        let status = if is_full {
            StatusCode::INSUFFICIENT_STORAGE
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let message = "a file could not be stored";
        Self::new(status, message, causes(error)).logged(message)
    }
}

impl From<FetchError> for HttpRefusal {
    fn from(error: FetchError) -> Self {
        let (detail, lost) = (error.to_string(), "a file of it could not be had");
        match error {
            FetchError::Link(_) => Self::unreachable(detail),
            FetchError::File(error) => Self::not_stored(error.is_full, &error),
            FetchError::NoRoom { .. } => Self::new(StatusCode::INSUFFICIENT_STORAGE, lost, detail),
            FetchError::Disk(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, lost, detail),
            FetchError::Missing | FetchError::Damaged | FetchError::Size { .. } => {
                Self::new(StatusCode::BAD_GATEWAY, lost, detail)
            }
            FetchError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail),
        }
    }
}

impl From<ReadError> for HttpRefusal {
    fn from(error: ReadError) -> Self {
        if let ReadError::Gone { oldest } = &error {
            return Self::new(StatusCode::GONE, "too long ago", error.to_string())
                .hint("read the resources anew, then follow from `oldest` on")
                .with("oldest", oldest.0);
        }
        let message = "the log could not be read";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message, causes(&error)).logged(message)
    }
}

pub(super) async fn no_such_page(uri: Uri) -> HttpRefusal {
    HttpRefusal::not_found("no such page", format!("there is nothing at `{}`", uri.path()))
        .hint("/openapi.json lists what there is")
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> HttpRefusal {
    let detail = format!("`{}` cannot be asked with {method}", uri.path());
    HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "another method is needed", detail)
        .hint("/openapi.json lists what there is")
}
