//! What is told of a fact, and how a receiver knows that it is true.

use cheops_core::config::HookRun;
use cheops_core::model::{OperationType, ResourceId};
use ring::hmac;
use serde::Serialize;

use super::{DueAction, Fact, HookSettings};
use crate::config::Secret;

/// What a hook is told, as JSON.
#[derive(Serialize)]
struct HookMessage<'f> {
    event: &'static str,
    delivery: String,
    /// The site that tells it.
    from: &'f str,
    /// Where it happened, or who is down or up.
    site: &'f str,
    resource: Option<&'f str>,
    operation: Option<String>,
    r#type: Option<&'f str>,
    run: &'static str,
    seq: u64,
    at_ms: u64,
    detail: &'f serde_json::Value,
}

/// The name of a delivery: the same when it is tried again, and after a crash.
pub(super) fn delivery(settings: &HookSettings, fact: &Fact, action: &DueAction) -> String {
    format!("{}-{}-{}-{}", settings.site, settings.incarnation, fact.seq, action.n)
}

pub(super) fn body(settings: &HookSettings, fact: &Fact, action: &DueAction) -> Vec<u8> {
    let message = HookMessage {
        event: fact.event.word(),
        delivery: delivery(settings, fact, action),
        from: settings.site.as_str(),
        site: fact.site.as_str(),
        resource: fact.resource.as_ref().map(ResourceId::as_str),
        operation: fact.operation.as_ref().map(ToString::to_string),
        r#type: fact.kind.as_ref().map(OperationType::as_str),
        run: HookRun::word(action.run),
        seq: fact.seq,
        at_ms: fact.at_ms,
        detail: &fact.detail,
    };
    // Texts and numbers always are JSON.
    serde_json::to_vec(&message).unwrap_or_default()
}

/// `sha256=` and the HMAC of time and body, in hexadecimal digits. The time is part of it, so that
/// nobody can send an old message as a new one.
pub(super) fn signature(secret: &Secret, timestamp: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(timestamp.as_bytes());
    context.update(b".");
    context.update(body);
    let digits: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_other_programs_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let secret = Secret::new("0123456789abcdef").unwrap();
        let expected = "sha256=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23";
        assert_eq!(signature(&secret, "1700000000", br#"{"a":1}"#), expected);
    }
}
