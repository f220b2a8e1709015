//! Who asks: known by the socket, by a token or a session, or told by another site.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::middleware::Next;
use axum::response::Response;
use cheops_core::engine::{Event, Notice};
use cheops_core::model::{Asker, ResourceId};
use cheops_mesh::PassedOn;
use http::request::Parts;
use http::{Extensions, HeaderName, HeaderValue};

use super::refusal::HttpRefusal;
use super::{Api, SharedApi};
use crate::config::shortened;

/// Says who asked for what one agent passes on to another. What clients send of that name is taken
/// off: only sites are believed, which are known by their certificates.
pub(super) const ASKED_BY: HeaderName = HeaderName::from_static("x-cheops-asked-by");

/// Nobody's name is longer.
const LONGEST: usize = 128;

/// Who asks, as far as it can be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal(Arc<str>);

impl Principal {
    /// A user of this machine, by the socket.
    pub(crate) fn user(uid: u32) -> Self {
        Self(format!("uid:{uid}").into())
    }

    /// Whoever has the token.
    pub(crate) fn token() -> Self {
        Self("token".into())
    }

    /// Any user of this machine: the API asks for nothing.
    pub(crate) fn anyone() -> Self {
        Self("anyone".into())
    }

    /// The browser that somebody opened.
    pub(crate) fn page_of(who: &Self) -> Self {
        Self::told(&format!("{who} (page)"))
    }

    /// The same, by what is written of it.
    pub(crate) fn page_of_named(who: &str) -> Self {
        Self::page_of(&Self::told(who))
    }

    /// Whoever another site says it was.
    fn told(text: &str) -> Self {
        let text: String = text.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        Self(if text.is_empty() { "unknown".into() } else { text.into() })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// As a header has it.
    fn header(&self) -> HeaderValue {
        HeaderValue::from_bytes(self.0.as_bytes())
            .unwrap_or_else(|_never| HeaderValue::from_static("unknown"))
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who sent a request.
pub(super) fn of(extensions: &Extensions) -> Principal {
    extensions.get::<Principal>().cloned().unwrap_or_else(|| Principal::told(""))
}

/// Who sent a request, and to which site: this one, or the one that passed it on here.
pub(super) fn asker(api: &Api, extensions: &Extensions) -> Asker {
    let passed_on = extensions.get::<PassedOn>();
    let site = passed_on.map_or_else(|| api.site.clone(), |passed_on| passed_on.by.clone());
    Asker { principal: of(extensions).to_string(), site }
}

/// The same for handlers that take their request apart.
pub(super) struct AskedBy(pub(super) Asker);

impl FromRequestParts<SharedApi> for AskedBy {
    type Rejection = Infallible;

    async fn from_request_parts(head: &mut Parts, api: &SharedApi) -> Result<Self, Infallible> {
        Ok(Self(asker(api, &head.extensions)))
    }
}

/// A request that is passed on, with who asked for it. Whom another site named is told with that
/// site: whoever hears of it can be sure of this site only.
pub(super) fn named(mut request: Request, api: &Api, by: &Asker) -> Request {
    let who = match by.site == api.site {
        true => Principal::told(&by.principal),
        false => Principal::told(&format!("{} at {}", by.principal, by.site)),
    };
    request.headers_mut().insert(ASKED_BY, who.header());
    request
}

/// Leaves a record of what somebody asked for, where no operation of this site does.
pub(super) async fn record(
    api: &Api,
    resource: &ResourceId,
    by: &Asker,
    what: &str,
) -> Result<(), HttpRefusal> {
    record_of(api, Some(resource.clone()), by, what).await
}

/// The same of what is about the whole site.
pub(super) async fn record_of_site(api: &Api, by: &Asker, what: &str) -> Result<(), HttpRefusal> {
    record_of(api, None, by, what).await
}

async fn record_of(
    api: &Api,
    resource: Option<ResourceId>,
    by: &Asker,
    what: &str,
) -> Result<(), HttpRefusal> {
    let notice = Notice::Asked(resource, by.clone(), shortened(what));
    Ok(api.driver.happened(Event::Noticed(notice)).await?)
}

/// Believes a site who it asks for.
pub(super) async fn told_by_peer(mut request: Request, next: Next) -> Response {
    let said = request.headers_mut().remove(ASKED_BY);
    let text = said.map(|said| String::from_utf8_lossy(said.as_bytes()).into_owned());
    request.extensions_mut().insert(Principal::told(&text.unwrap_or_default()));
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_site_says_is_bounded_and_printable() {
        assert_eq!(Principal::told("uid:7").as_str(), "uid:7");
        assert_eq!(Principal::told("").as_str(), "unknown");
        assert_eq!(Principal::told("a\u{1b}[31mb\n").as_str(), "a[31mb");
        assert_eq!(Principal::told(&"x".repeat(1000)).as_str().len(), LONGEST);
    }
}
