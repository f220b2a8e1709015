//! Where everything is: one template per endpoint for the server's routes and the OpenAPI
//! document, and one function per template that fills it in for the client.

use std::fmt::Write;

/// `POST`: submit an operation, as the first Cheops had it.
pub const EXEC: &str = "/exec/{id}";
/// `POST`: look at a resource, as the first Cheops had it.
pub const LEGACY_SHOW: &str = "/show/{id}";
/// `GET`: the sites.
pub const SITES: &str = "/api/v1/sites";
/// `GET`: the sites, as one of them sees them.
pub const SITE: &str = "/api/v1/sites/{site}";
/// `GET`: all resources in a few numbers.
pub const SUMMARY: &str = "/api/v1/summary";
/// `POST`: copy the data directory of the site.
pub const BACKUP: &str = "/api/v1/backup";
/// `GET`: the matrices that come with Cheops.
pub const PROFILES: &str = "/api/v1/profiles";
/// `POST`: try a matrix.
pub const MATRIX: &str = "/api/v1/matrix";
/// `GET`: the parts of a resource over several sites.
pub const CROSS: &str = "/api/v1/cross/{id}";
/// `GET`: the resources over several sites that were made or asked for at this site.
pub const ALL_CROSS: &str = "/api/v1/cross";
/// `GET`: what a resource over several sites is now.
pub const CROSS_VALUE: &str = "/api/v1/cross/{id}/value";
/// `GET`: the demo that the agent is part of.
pub const DEMO: &str = "/api/v1/demo";
/// `POST`: cut or heal a link of the demo.
pub const DEMO_LINKS: &str = "/api/v1/demo/links";
/// `POST`: stop or start a site of the demo.
pub const DEMO_SITES: &str = "/api/v1/demo/sites";
/// `GET`: the resources.
pub const RESOURCES: &str = "/api/v1/resources";
/// `GET`, `DELETE`: one resource.
pub const RESOURCE: &str = "/api/v1/resources/{id}";
/// `GET`, between agents only: whether it is held, and for whom.
pub const HOLDING: &str = "/api/v1/resources/{id}/holding";
/// `GET`, `POST`: its operations.
pub const OPERATIONS: &str = "/api/v1/resources/{id}/operations";
/// `GET`: one of them.
pub const OPERATION: &str = "/api/v1/resources/{id}/operations/{operation}";
/// `POST`: look at it.
pub const SHOW: &str = "/api/v1/resources/{id}/show";
/// `GET`: why its list is what it is.
pub const EXPLAIN: &str = "/api/v1/resources/{id}/explain";
/// `GET`: what happened to it, a page at a time.
pub const HISTORY: &str = "/api/v1/resources/{id}/history";
/// `GET`: those of its operations that no site needs any more.
pub const PAST: &str = "/api/v1/resources/{id}/past";
/// `GET`: one operation, of whatever resource, with all that is kept of it.
pub const RECORDED: &str = "/api/v1/operations/{operation}";
/// `POST`: what would come of something; nothing is written.
pub const DRY_RUN: &str = "/api/v1/resources/{id}/dry-run";
/// `POST`: settle an operation in doubt.
pub const DECISION: &str = "/api/v1/resources/{id}/operations/{operation}/decision";
/// `GET`: the change feed.
pub const CHANGES: &str = "/api/v1/changes";
/// `GET`: the latest changes, at once.
pub const LATEST_CHANGES: &str = "/api/v1/latest-changes";
/// `GET`: the change feed of one resource.
pub const CHANGES_OF: &str = "/api/v1/changes/{id}";
/// `POST`: make a link that lets one browser in.
pub const LOGIN_LINKS: &str = "/api/v1/login-links";
/// `GET`: where such a link leads.
pub const LOGIN: &str = "/login";
/// `GET`: whether the agent runs.
pub const HEALTHZ: &str = "/healthz";
/// `GET`: whether the agent can take operations.
pub const READYZ: &str = "/readyz";
/// `GET`: numbers for Prometheus.
pub const METRICS: &str = "/metrics";
/// `GET`: the OpenAPI document.
pub const OPENAPI: &str = "/openapi.json";

/// [`EXEC`] of this resource.
pub fn exec(id: &str) -> String {
    filled(EXEC, id)
}

/// [`LEGACY_SHOW`] of this resource.
pub fn legacy_show(id: &str) -> String {
    filled(LEGACY_SHOW, id)
}

/// [`SITE`] of this name.
pub fn site(name: &str) -> String {
    SITE.replace("{site}", &segment(name))
}

/// [`HOLDING`] of this resource.
pub fn holding(id: &str) -> String {
    filled(HOLDING, id)
}

/// [`CROSS`] of this id.
pub fn cross(id: &str) -> String {
    filled(CROSS, id)
}

/// [`CROSS_VALUE`] of this id.
pub fn cross_value(id: &str) -> String {
    filled(CROSS_VALUE, id)
}

/// [`RESOURCE`] of this name.
pub fn resource(id: &str) -> String {
    filled(RESOURCE, id)
}

/// [`OPERATIONS`] of this resource.
pub fn operations(id: &str) -> String {
    filled(OPERATIONS, id)
}

/// [`OPERATION`] of this resource.
pub fn operation(id: &str, operation: &str) -> String {
    filled(OPERATION, id).replace("{operation}", &segment(operation))
}

/// [`SHOW`] of this resource.
pub fn show(id: &str) -> String {
    filled(SHOW, id)
}

/// [`HISTORY`] of this resource.
pub fn history(id: &str) -> String {
    filled(HISTORY, id)
}

/// [`PAST`] of this resource.
pub fn past(id: &str) -> String {
    filled(PAST, id)
}

/// [`RECORDED`] for this operation.
pub fn recorded(operation: &str) -> String {
    RECORDED.replace("{operation}", &segment(operation))
}

/// [`DRY_RUN`] for this resource.
pub fn dry_run(id: &str) -> String {
    filled(DRY_RUN, id)
}

/// [`EXPLAIN`] of this resource.
pub fn explain(id: &str) -> String {
    filled(EXPLAIN, id)
}

/// [`DECISION`] about this operation of this resource.
pub fn decision(id: &str, operation: &str) -> String {
    filled(DECISION, id).replace("{operation}", &segment(operation))
}

/// [`CHANGES_OF`] this resource.
pub fn changes_of(id: &str) -> String {
    filled(CHANGES_OF, id)
}

fn filled(template: &str, id: &str) -> String {
    template.replace("{id}", &segment(id))
}

/// A text as one segment of a path, or one value of a query: everything but letters, digits, `-`,
/// `.`, `_` and `~` is encoded. A segment of dots only would be taken for a way up, and is encoded.
pub fn segment(text: &str) -> String {
    let is_way_up = !text.is_empty() && text.bytes().all(|byte| byte == b'.');
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if is_plain && !is_way_up {
            encoded.push(char::from(byte));
        } else {
            // Writing into a text cannot fail.
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_whatever_is_in_it() {
        for (name, want) in [
            ("counter", "counter"),
            ("a/b", "a%2Fb"),
            ("a b?c#d", "a%20b%3Fc%23d"),
            ("é", "%C3%A9"),
            ("100%", "100%25"),
            ("{operation}", "%7Boperation%7D"),
            ("..", "%2E%2E"),
            ("a..b", "a..b"),
        ] {
            assert_eq!(segment(name), want);
            assert_eq!(resource(name), format!("/api/v1/resources/{want}"));
        }
        assert_eq!(
            decision("{operation}", "paris-5f.7"),
            "/api/v1/resources/%7Boperation%7D/operations/paris-5f.7/decision"
        );
    }
}
