//! The OpenAPI document. Each function here stands for an endpoint and is never called: the server
//! has the real ones. A test holds this together with [`crate::paths`] and the committed copy.

#![allow(dead_code, reason = "they are there for what is written above them")]

use utoipa::{IntoParams, OpenApi};

use crate::types::{
    Backup, BackupEvent, Cross, CrossPlace, CrossSeen, CrossValue, Cursor, Delete, Demo, DemoLink,
    DryRun, DryRunAsked, ExecForm, ExecLine, Explanation, Forecast, History, HistoryAsked,
    LatestAsked, LegacyShow, LoginLink, MatrixTrial, NumberedChange, Operation, OperationRecord,
    Page, PastOperations, Problem, Profile, Resource, ResourceFilter, ResourceSummary, RunSite,
    Seen, Settle, Show, ShowAnswer, ShowForm, SiteShow, Sites, Submit, SubmitEvent, SubmitForm,
    Summary, SummaryFilter, TimedChange, TryMatrix,
};

/// The agent's HTTP API.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cheops agent",
        description = "One site's agent: submit operations, follow them, and see why things are as \
                       they are. Errors are problem details (RFC 9457). Whoever does not come by the \
                       agent's socket sends its token: `Authorization: Bearer TOKEN`, or basic \
                       authentication with any user name and the token as password.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "resources", description = "Resources and their operations"),
        (name = "sites", description = "The sites of the mesh"),
        (name = "changes", description = "Changes as they happen"),
        (name = "matrices", description = "How conflicts are resolved, before anything is"),
        (name = "demo", description = "Only in a demo: links to cut and sites to stop"),
        (name = "original", description = "What the first Cheops had, unchanged"),
        (name = "running", description = "For whoever runs the agent"),
    ),
    paths(
        sites, site, summary, resources, resource, operations, operation, submit, show, explain,
        history, past, recorded, dry_run, decide, delete, cross, all_cross, cross_value, changes, latest_changes, changes_of, profiles, matrix, demo, demo_link, demo_site, exec,
        backup, healthz, login, login_link, metrics, openapi_document, readyz, show_as_original,
    ),
    components(schemas(NumberedChange, SiteShow)),
)]
struct ApiDocument;

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    ApiDocument::openapi()
}

/// The OpenAPI document as indented JSON text, ending with a line break.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    openapi().to_pretty_json().map(|text| text + "\n")
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
struct OfResource {
    /// the resource, percent-encoded as one segment
    id: String,
}

/// All sites, as this one sees them
#[utoipa::path(get, path = "/api/v1/sites", tag = "sites", responses(
    (status = 200, description = "the sites", body = Sites),
))]
fn sites() {}

/// All sites, as that one sees them
#[utoipa::path(get, path = "/api/v1/sites/{site}", tag = "sites",
    params(("site" = String, Path, description = "who is to look")),
    responses(
        (status = 200, description = "the sites", body = Sites),
        (status = 404, description = "there is no such site", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "it cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "it did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn site() {}

/// All resources in a few numbers
#[utoipa::path(get, path = "/api/v1/summary", tag = "resources", params(SummaryFilter), responses(
    (status = 200, description = "the numbers", body = Summary),
    (status = 400, description = "a parameter is wrong", body = Problem, content_type = "application/problem+json"),
))]
fn summary() {}

/// The resources known here
///
/// In the order of their ids, unless another one is asked for.
#[utoipa::path(get, path = "/api/v1/resources", tag = "resources", params(ResourceFilter), responses(
    (status = 200, description = "a page of resources", body = Page<ResourceSummary>),
    (status = 400, description = "a parameter is wrong", body = Problem, content_type = "application/problem+json"),
))]
fn resources() {}

/// One resource
#[utoipa::path(get, path = "/api/v1/resources/{id}", tag = "resources",
    params(OfResource, Seen),
    responses(
        (status = 200, description = "the resource", body = Resource),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn resource() {}

/// Its operations, in total order, with what became of them
#[utoipa::path(get, path = "/api/v1/resources/{id}/operations", tag = "resources",
    params(OfResource, Cursor),
    responses(
        (status = 200, description = "a page of operations", body = Page<Operation>),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn operations() {}

/// One operation, with what became of it
#[utoipa::path(get, path = "/api/v1/resources/{id}/operations/{operation}", tag = "resources",
    params(OfResource, Seen, ("operation" = String, Path, description = "the operation")),
    responses(
        (status = 200, description = "the operation", body = Operation),
        (status = 404, description = "it is not known here, or was pruned", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn operation() {}

/// Submit an operation
///
/// As JSON, or, if files come with it, as a form whose first part `operation` is that JSON and
/// whose other parts are the files, each with its placeholder as file name. The answer begins once the
/// operation is durable; replies follow as they arrive.
#[utoipa::path(post, path = "/api/v1/resources/{id}/operations", tag = "resources",
    params(OfResource),
    request_body(content((Submit = "application/json"), (SubmitForm = "multipart/form-data"))),
    responses(
        (status = 200, description = "one event a line", body = SubmitEvent, content_type = "application/x-ndjson"),
        (status = 400, description = "the operation is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "the resource is not known and no sites are given", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "it contradicts what is known of the resource", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "too much at once", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "not now: no room, or shutting down", body = Problem, content_type = "application/problem+json"),
    )
)]
fn submit() {}

/// Look at a resource
///
/// Runs a reading command at its sites. It becomes no operation; the feed says who asked.
#[utoipa::path(post, path = "/api/v1/resources/{id}/show", tag = "resources",
    params(OfResource),
    request_body = Show,
    responses(
        (status = 200, description = "what each site showed", body = ShowAnswer),
        (status = 400, description = "the request is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "no site has room for one more reading command, or the agent stops; nothing was run", body = Problem, content_type = "application/problem+json"),
    )
)]
fn show() {}

/// Why its list is what it is
#[utoipa::path(get, path = "/api/v1/resources/{id}/explain", tag = "resources",
    params(OfResource, Seen),
    responses(
        (status = 200, description = "operations, list and decisions", body = Explanation),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn explain() {}

/// What happened to it, the latest first
///
/// Operations, replies, decisions and news, also of what no site needs any more, as one site noted them and
/// for as long as `[audit]` of its config says.
#[utoipa::path(get, path = "/api/v1/resources/{id}/history", tag = "resources",
    params(OfResource, HistoryAsked),
    responses(
        (status = 200, description = "a page of it", body = History),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn history() {}

/// Its operations that no site needs any more, with what became of them
#[utoipa::path(get, path = "/api/v1/resources/{id}/past", tag = "resources",
    params(OfResource, Seen),
    responses(
        (status = 200, description = "the latest of them", body = PastOperations),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn past() {}

/// One operation, of whatever resource, with all that is kept of it: what sites said, files and bodies
///
/// Contents of more than 64 KiB are not shown.
#[utoipa::path(get, path = "/api/v1/operations/{operation}", tag = "resources",
    params(Seen, ("operation" = String, Path, description = "the operation")),
    responses(
        (status = 200, description = "the operation", body = OperationRecord),
        (status = 404, description = "it is not known here, or was dropped", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site to look from cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site to look from did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn recorded() {}

/// What would come of something
///
/// As the site asked knows things now; the other sites that are connected say whether they could follow.
/// Nothing is written or run.
#[utoipa::path(post, path = "/api/v1/resources/{id}/dry-run", tag = "resources",
    params(OfResource, DryRunAsked),
    request_body = DryRun,
    responses(
        (status = 200, description = "what would come of it", body = Forecast),
        (status = 400, description = "it is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "the resource is not known and no sites are given", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "it would be refused", body = Problem, content_type = "application/problem+json"),
    )
)]
fn dry_run() {}

/// Decide about an operation that failed, has an unknown result, or is to be undone
///
/// At this site or another.
#[utoipa::path(post, path = "/api/v1/resources/{id}/operations/{operation}/decision", tag = "resources",
    params(
        OfResource,
        ("operation" = String, Path, description = "the operation"),
    ),
    request_body = Settle,
    responses(
        (status = 204, description = "decided"),
        (status = 404, description = "there is no such operation here", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "it would come to nothing there; the detail says why", body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "the site cannot be reached now", body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "the site did not answer in time", body = Problem, content_type = "application/problem+json"),
    )
)]
fn decide() {}

/// Copy the data directory of this site, while it goes on
///
/// The copy can be started from in place of the original.
#[utoipa::path(post, path = "/api/v1/backup", tag = "running",
    request_body = Backup,
    responses(
        (status = 200, description = "one event a line; the last says how it ended", body = BackupEvent, content_type = "application/x-ndjson"),
        (status = 400, description = "it is not a whole path", body = Problem, content_type = "application/problem+json"),
    )
)]
fn backup() {}

/// Delete a resource
///
/// An operation that wins over every concurrent one.
#[utoipa::path(delete, path = "/api/v1/resources/{id}", tag = "resources",
    params(OfResource),
    request_body = Option<Delete>,
    responses(
        (status = 200, description = "one event a line", body = SubmitEvent, content_type = "application/x-ndjson"),
        (status = 404, description = "it is not known here", body = Problem, content_type = "application/problem+json"),
    )
)]
fn delete() {}

/// The parts of a resource over several sites
///
/// Its id says which there are. Nobody is asked whether they still are there.
#[utoipa::path(get, path = "/api/v1/cross/{id}", tag = "resources",
    params(("id" = String, Path, description = "the id that users have, `cross-2...`")),
    responses(
        (status = 200, description = "its parts", body = Cross),
        (status = 404, description = "it is no such id", body = Problem, content_type = "application/problem+json"),
    )
)]
fn cross() {}

/// The resources over several sites that this site has seen
///
/// Those that were made or asked for by way of its proxies since its agent was started, the latest first, at
/// most 256. No site keeps a list of them.
#[utoipa::path(get, path = "/api/v1/cross", tag = "resources",
    responses((status = 200, description = "what was seen", body = Vec<CrossSeen>))
)]
fn all_cross() {}

/// What a resource over several sites is now
///
/// Each part is read from its site's service, as a client would, without any credentials.
#[utoipa::path(get, path = "/api/v1/cross/{id}/value", tag = "resources",
    params(
        ("id" = String, Path, description = "the id that users have, `cross-2...`"),
        CrossPlace,
    ),
    responses(
        (status = 200, description = "its parts, and what they are together", body = CrossValue),
        (status = 400, description = "there is no such place", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "it was not made there", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "it is no such id, or it was not seen here and no place is given", body = Problem, content_type = "application/problem+json"),
    )
)]
fn cross_value() {}

/// The matrices that come with Cheops
#[utoipa::path(get, path = "/api/v1/profiles", tag = "matrices", responses(
    (status = 200, description = "all of them, in order of name", body = Vec<Profile>),
))]
fn profiles() {}

/// Try a matrix
///
/// Every two types are taken as two concurrent operations of two sites, and resolved as real ones
/// would be. Nothing is kept.
#[utoipa::path(post, path = "/api/v1/matrix", tag = "matrices", request_body = TryMatrix, responses(
    (status = 200, description = "what becomes of every pair", body = MatrixTrial),
    (status = 400, description = "the config cannot be used; `problems` lists all that is wrong, each a `ConfigFinding`", body = Problem, content_type = "application/problem+json"),
))]
fn matrix() {}

/// The demo that this agent is part of
#[utoipa::path(get, path = "/api/v1/demo", tag = "demo", responses(
    (status = 200, description = "its sites and links", body = Demo),
    (status = 404, description = "this is no demo", body = Problem, content_type = "application/problem+json"),
))]
fn demo() {}

/// Cut or heal a link of the demo
///
/// The answer comes once it is done. The sites notice a little later.
#[utoipa::path(post, path = "/api/v1/demo/links", tag = "demo", request_body = DemoLink, responses(
    (status = 200, description = "the demo now", body = Demo),
    (status = 400, description = "there is no such link", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "this is no demo", body = Problem, content_type = "application/problem+json"),
))]
fn demo_link() {}

/// Stop or start a site of the demo
///
/// A site that is to stop is killed just after the answer, which may be its own last one.
#[utoipa::path(post, path = "/api/v1/demo/sites", tag = "demo", request_body = RunSite, responses(
    (status = 200, description = "the demo as it is then", body = Demo),
    (status = 400, description = "there is no such site", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "this is no demo", body = Problem, content_type = "application/problem+json"),
))]
fn demo_site() {}

/// Changes as they happen
///
/// Server-sent events: `event` is the change's name, `id` its number, `data` the change in JSON.
#[utoipa::path(get, path = "/api/v1/changes", tag = "changes",
    params(
        ("Last-Event-ID" = Option<u64>, Header, description = "go on after this event"),
        ("after" = Option<u64>, Query, description = "the same, where a header cannot be set"),
        ("standings" = Option<bool>, Query, description = "tell with each change how its resource stands (`now`, and `detail` in the feed of one resource), and when that changes without anything new (`standing`)"),
    ),
    responses(
        (status = 200, description = "events without end", body = TimedChange, content_type = "text/event-stream"),
        (status = 410, description = "what came after that event is not kept any more", body = Problem, content_type = "application/problem+json"),
    )
)]
fn changes() {}

/// The latest changes, at once: the oldest of them first
#[utoipa::path(get, path = "/api/v1/latest-changes", tag = "changes", params(LatestAsked), responses(
    (status = 200, description = "the changes, each with its place in the feed", body = Vec<NumberedChange>),
    (status = 400, description = "a parameter is wrong", body = Problem, content_type = "application/problem+json"),
))]
fn latest_changes() {}

/// Changes of one resource as they happen
#[utoipa::path(get, path = "/api/v1/changes/{id}", tag = "changes",
    params(
        OfResource,
        ("Last-Event-ID" = Option<u64>, Header, description = "go on after this event"),
        ("after" = Option<u64>, Query, description = "the same, where a header cannot be set"),
        ("standings" = Option<bool>, Query, description = "tell with each change how its resource stands (`now`, and `detail` in the feed of one resource), and when that changes without anything new (`standing`)"),
    ),
    responses(
        (status = 200, description = "events without end", body = TimedChange, content_type = "text/event-stream"),
        (status = 410, description = "what came after that event is not kept any more", body = Problem, content_type = "application/problem+json"),
    )
)]
fn changes_of() {}

/// Submit a shell operation, as the first Cheops had it
///
/// Waits up to 30 seconds; sites that have not replied by then get a line with `TIMEOUT`, and the
/// work goes on. Every part with a file name is a file, and that name is its placeholder, whatever
/// the part is called. Any other part that is not one of these is refused.
#[utoipa::path(post, path = "/exec/{id}", tag = "original",
    params(OfResource),
    request_body(content = ExecForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "one line per site", body = ExecLine, content_type = "application/x-ndjson"),
        (status = 400, description = "the form is wrong", body = Problem, content_type = "application/problem+json"),
    )
)]
fn exec() {}

/// Look at a resource, as the first Cheops had it
#[utoipa::path(post, path = "/show/{id}", tag = "original",
    params(OfResource),
    request_body(content = ShowForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "site by site", body = inline(LegacyShow)),
        (status = 400, description = "the form is wrong", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "no site has room for one more reading command, or the agent stops; nothing was run", body = Problem, content_type = "application/problem+json"),
    )
)]
fn show_as_original() {}

/// Make a link that lets one browser in, once
#[utoipa::path(post, path = "/api/v1/login-links", tag = "running", responses(
    (status = 200, description = "the link", body = LoginLink),
    (status = 401, description = "who asks is not known", body = Problem, content_type = "application/problem+json"),
))]
fn login_link() {}

/// Where such a link leads: to the page, with a cookie that lets the browser in
#[utoipa::path(get, path = "/login", tag = "running",
    params(("once" = String, Query, description = "what the link says")),
    responses((status = 303, description = "on to the page")),
)]
fn login() {}

/// Whether the agent runs
#[utoipa::path(get, path = "/healthz", tag = "running", responses(
    (status = 200, description = "it does"),
))]
fn healthz() {}

/// Whether the agent can take operations
#[utoipa::path(get, path = "/readyz", tag = "running", responses(
    (status = 200, description = "it can"),
    (status = 503, description = "not now", body = Problem, content_type = "application/problem+json"),
))]
fn readyz() {}

/// Numbers for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "running", responses(
    (status = 200, description = "the text format", body = String, content_type = "text/plain; version=0.0.4"),
))]
fn metrics() {}

/// This document
#[utoipa::path(get, path = "/openapi.json", tag = "running", operation_id = "openapi", responses(
    (status = 200, description = "the OpenAPI document"),
))]
fn openapi_document() {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::paths;

    #[test]
    fn every_path_is_described_and_every_described_path_is_one() {
        let described: BTreeSet<String> = openapi().paths.paths.keys().cloned().collect();
        let paths = [
            paths::EXEC,
            paths::LEGACY_SHOW,
            paths::SITES,
            paths::SITE,
            paths::SUMMARY,
            paths::BACKUP,
            paths::PROFILES,
            paths::MATRIX,
            paths::CROSS,
            paths::ALL_CROSS,
            paths::CROSS_VALUE,
            paths::DEMO,
            paths::DEMO_LINKS,
            paths::DEMO_SITES,
            paths::RESOURCES,
            paths::RESOURCE,
            paths::OPERATIONS,
            paths::OPERATION,
            paths::SHOW,
            paths::EXPLAIN,
            paths::HISTORY,
            paths::PAST,
            paths::RECORDED,
            paths::DRY_RUN,
            paths::DECISION,
            paths::CHANGES,
            paths::LATEST_CHANGES,
            paths::CHANGES_OF,
            paths::LOGIN_LINKS,
            paths::LOGIN,
            paths::HEALTHZ,
            paths::READYZ,
            paths::METRICS,
            paths::OPENAPI,
        ];
        assert_eq!(described, paths.map(str::to_owned).into());
    }

    #[test]
    fn the_committed_document_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let ours = openapi_json().unwrap();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &ours).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == ours,
            "docs/openapi.json is not what the code says; to bring it up to date: \
             UPDATE=1 cargo test -p cheops-api the_committed_document"
        );
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = serde_json::to_value(openapi()).unwrap();
        let mut references = BTreeSet::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    fn collect(value: &serde_json::Value, references: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                if let Some(serde_json::Value::String(reference)) = fields.get("$ref") {
                    references.insert(reference.clone());
                }
                fields.values().for_each(|value| collect(value, references));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|value| collect(value, references));
            }
            _ => {}
        }
    }
}
