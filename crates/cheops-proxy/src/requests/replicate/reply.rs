//! The answer to a user, from what the service of this site said.

use cheops_core::model::{Outcome, Reply, ResourceId, SiteId, Status};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::super::refusal::{BROKEN_OFF, ProxyRefusal};

/// Which resource a request became an operation on.
pub(super) const RESOURCE: HeaderName = HeaderName::from_static("x-cheops-resource");
/// Said where the service answered more than is kept.
const TRUNCATED: HeaderName = HeaderName::from_static("x-cheops-truncated");

/// Head and body.
pub(super) fn answer(
    service: &str,
    resource: &ResourceId,
    me: &SiteId,
    reply: &Reply,
) -> Result<(Parts, String), ProxyRefusal> {
    if let Status::Superseded { by } = &reply.status {
        return Err(ProxyRefusal::superseded(resource, &by.to_string()));
    }
    let (status, headers, output) = match &reply.outcome {
        Some(Outcome::Answered { status, output, done: false, .. }) if *status < 400 => {
            return Err(ProxyRefusal::failed_here(resource, &output.text));
        }
        Some(Outcome::BrokenOff { reason }) => return Err(broken_off(resource, reason)),
        Some(Outcome::Answered { status, headers, output, .. }) => (status, headers, output),
        Some(Outcome::TimedOut { limit_ms }) => {
            return Err(ProxyRefusal::too_late(service, me, limit_ms / 1000));
        }
        other => {
            let why = other.as_ref().map_or("nothing is known of it", Outcome::text);
            return Err(ProxyRefusal::failed_here(resource, why));
        }
    };
    let mut head = Response::new(()).into_parts().0;
    head.status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
    for line in headers {
        let name = HeaderName::try_from(&line.name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(&line.value)) {
            head.headers.append(name, value);
        }
    }
    if let Ok(value) = HeaderValue::try_from(resource.as_str()) {
        head.headers.insert(RESOURCE, value);
    }
    if output.truncated {
        // Half an answer would be read as a whole one.
        head.headers.insert(TRUNCATED, HeaderValue::from_static("true"));
        return Ok((head, String::new()));
    }
    Ok((head, output.text.clone()))
}

fn broken_off(resource: &ResourceId, told: &str) -> ProxyRefusal {
    ProxyRefusal::new(StatusCode::BAD_GATEWAY, BROKEN_OFF, "no answer", told)
        .hint(format!("the other sites go on; `cheops resource {resource}` shows what they did"))
}
