//! Why a request that spans sites has no answer.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::super::refusal::{BROKEN_OFF, ProxyRefusal, UNREACHABLE};
use super::id::NotTaken;
use super::join::Missing;

/// The code of an id that is not followed.
const BAD_ID: &str = "bad-id";

/// The id of a whole is not to be followed.
pub(super) fn not_taken(why: &NotTaken) -> ProxyRefusal {
    let refused = |status, detail: String| {
        ProxyRefusal::new(status, BAD_ID, "the id cannot be followed", detail)
    };
    match why {
        NotTaken::Unsigned => refused(
            StatusCode::FORBIDDEN,
            "the id is of an earlier version of Cheops, which did not sign ids".to_owned(),
        )
        .hint("`unsigned_cross_ids = true` in `[proxy]` of the agent's config takes such ids"),
        NotTaken::MadeUp(site) => refused(
            StatusCode::FORBIDDEN,
            format!("site `{site}` did not make this id, or not for this collection"),
        ),
        NotTaken::Unknown(site) => refused(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "the id was made by site `{site}`, which was never seen here: it cannot be checked"
            ),
        )
        .hint("it can be as soon as there was a link; `cheops sites` shows them"),
    }
}

pub(super) fn too_long(most: usize) -> ProxyRefusal {
    let detail = format!("a body that is divided over sites has at most {most} bytes");
    ProxyRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "nothing was run", detail)
        .hint("send it to one site at a time")
}

pub(super) fn not_divisible(why: &str) -> ProxyRefusal {
    let detail = format!("the body cannot be divided over sites: {why}");
    ProxyRefusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not-divisible",
        "nothing was run",
        detail,
    )
    .hint("send JSON, or to one site at a time")
}

pub(super) fn not_joinable(why: &str, was_run: bool) -> ProxyRefusal {
    let run = if was_run { "; the request was carried out" } else { "" };
    let detail = format!("the answers cannot be joined: {why}{run}");
    ProxyRefusal::new(StatusCode::BAD_GATEWAY, "not-joinable", "no one answer", detail)
        .hint("only JSON is joined; ask one site at a time")
}

/// None of the sites did what was asked, and not all of their services said why not.
pub(super) fn nobody(missing: &[Missing], never_arrived: bool) -> ProxyRefusal {
    let details: Vec<_> =
        missing.iter().map(|missing| format!("{}: {}", missing.site, missing.detail)).collect();
    let (code, title) = match never_arrived {
        true => (UNREACHABLE, "no part can be reached"),
        false => ("no-part", "no part gave an answer that counts"),
    };
    ProxyRefusal::new(StatusCode::SERVICE_UNAVAILABLE, code, title, details.join("; "))
        .hint("`cheops sites` shows which sites are connected")
        .with("sites", sites_of(missing))
}

/// A site did not make its part, or does not say under which id.
pub(super) fn not_created(
    why: &Missing,
    status: StatusCode,
    sites: Map<String, Value>,
) -> ProxyRefusal {
    let detail = format!("site `{}` did not make its part: {}", why.site, why.detail);
    let is_left = |site: &Value| site["state"] != "not made" && site["state"] != "undone";
    let left: Vec<_> =
        sites.iter().filter(|(_, site)| is_left(site)).map(|(name, _)| name.as_str()).collect();
    let hint = match left.is_empty() {
        true => "nothing is left: parts that other sites had made were deleted again".to_owned(),
        false => format!("look for what may be left at {}", left.join(", ")),
    };
    ProxyRefusal::new(status, "not-created", "not made at every site", detail)
        .hint(hint)
        .with("sites", Value::Object(sites))
}

pub(super) fn ended_early() -> ProxyRefusal {
    let detail = "the agent ended before the answer; the request may or may not have been \
                  carried out";
    ProxyRefusal::new(StatusCode::BAD_GATEWAY, BROKEN_OFF, "no answer", detail)
}

fn sites_of(missing: &[Missing]) -> Value {
    let site = |missing: &Missing| {
        let said = json!({"status": missing.status, "detail": missing.detail});
        (missing.site.to_string(), said)
    };
    Value::Object(missing.iter().map(site).collect())
}
