//! How the engine's words look on the wire.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cheops_api as wire;
use cheops_core::config::{Config, ConfigPlace};
use cheops_core::engine::{
    Agreement, Forecast, Holding, OperationInTrouble, OperationView, Outline, PastDecision,
    RaisedWarning, ResourceSummary, RunProgress, SiteStanding, Standing, StateProof, Unproven,
    WarnedOf,
};
use cheops_core::model::{
    Asker, FileRef, Operation, OperationId, Outcome, Payload, Replaces, Reply, ResourceId, SiteId,
    Status, shown_path,
};
use cheops_core::resolve::{LeftOut, Why};
use cheops_store::HistorySize;

/// What runs where nothing is to be run.
pub(super) const NO_COMMAND: &str = ":";

/// A time as people and programs write it.
pub(super) fn time(wall_ms: u64) -> String {
    // A hostile clock may show a year that has no name.
    const LAST_MS: u64 = 253_402_300_799_000;
    let time = UNIX_EPOCH + Duration::from_millis(wall_ms.min(LAST_MS));
    humantime::format_rfc3339_millis(time).to_string()
}

/// The time now, as stamps have it.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// When something was, of which the agent knows only how long ago.
pub(super) fn time_ago(ago: Duration) -> String {
    let then = SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_millis(then).to_string()
}

pub(super) fn names<'a>(sites: impl IntoIterator<Item = &'a SiteId>) -> Vec<String> {
    sites.into_iter().map(ToString::to_string).collect()
}

fn ids<'a>(ids: impl IntoIterator<Item = &'a OperationId>) -> Vec<String> {
    ids.into_iter().map(ToString::to_string).collect()
}

pub(super) fn reply(reply: &Reply) -> wire::Reply {
    let (by, parts) = match &reply.status {
        Status::Superseded { by } => (Some(by.to_string()), None),
        Status::Partial { done, of } => (None, Some((*done, *of))),
        Status::Ok | Status::Ko | Status::InDoubt => (None, None),
    };
    let outcome = reply.outcome.as_ref();
    wire::Reply {
        status: match reply.status {
            Status::Ok => wire::ReplyStatus::Ok,
            Status::Ko => wire::ReplyStatus::Ko,
            Status::Superseded { .. } => wire::ReplyStatus::Superseded,
            Status::InDoubt => wire::ReplyStatus::InDoubt,
            Status::Partial { .. } => wire::ReplyStatus::Partial,
        },
        by,
        done: parts.map(|(done, _)| done),
        of: parts.map(|(_, of)| of),
        exit_code: outcome.and_then(exit_code),
        http_status: outcome.and_then(Outcome::http_status),
        limit_ms: match outcome {
            Some(Outcome::TimedOut { limit_ms }) => Some(*limit_ms),
            _ => None,
        },
        output: outcome.map(|outcome| outcome.text().to_owned()).unwrap_or_default(),
        truncated: outcome.is_some_and(Outcome::is_truncated),
        time: time(reply.stamp.wall_ms),
    }
}

pub(super) fn exit_code(outcome: &Outcome) -> Option<i32> {
    match outcome {
        Outcome::Exited { code, .. } => Some(*code),
        _ => None,
    }
}

pub(super) fn site_reply(said: &Reply) -> wire::SiteReply {
    wire::SiteReply {
        site: said.site().to_string(),
        operation: said.operation.to_string(),
        reply: reply(said),
    }
}

fn file(file: &FileRef) -> wire::File {
    wire::File { name: file.name.clone(), size: file.size, blob: file.blob.to_string() }
}

/// Headers whose values are shown: they speak of the request, and hold nothing that lets somebody
/// else do what its sender may.
const SHOWN: [&str; 24] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "prefer",
    "range",
    "user-agent",
    "via",
    "x-cheops-operation",
    "x-cheops-scope",
    "x-openstack-request-id",
    "x-scope",
];

/// What is shown of a header. Whoever may look at operations need not be the one who made them.
fn shown(header: &cheops_core::model::Header) -> &str {
    let is_shown = SHOWN.iter().any(|name| header.name.eq_ignore_ascii_case(name));
    if is_shown { &header.value } else { "(not shown)" }
}

fn payload(payload: &Payload) -> wire::Payload {
    match payload {
        Payload::Shell { command, files } => wire::Payload::Shell(wire::ShellCommand {
            command: command.clone(),
            files: files.iter().map(file).collect(),
        }),
        Payload::Http { service, method, path, headers, body, service_ref: _ } => {
            let header = |header: &cheops_core::model::Header| {
                let (name, value) = (header.name.clone(), shown(header).to_owned());
                wire::Header { name, value }
            };
            wire::Payload::Http(wire::HttpRequest {
                service: service.clone(),
                method: method.clone(),
                path: shown_path(path).into_owned(),
                headers: headers.iter().map(header).collect(),
                body: body.as_ref().map(file),
            })
        }
    }
}

pub(super) fn replaces(replaces: Replaces) -> wire::Replaces {
    match replaces {
        Replaces::Nothing => wire::Replaces::Nothing,
        Replaces::Past => wire::Replaces::Past,
        Replaces::PastByForce => wire::Replaces::Force,
    }
}

fn left_out(out: &LeftOut) -> wire::LeftOut {
    wire::LeftOut { why: out.to_string(), by: out.by.as_ref().map(ToString::to_string) }
}

/// What an operation does, in a line.
pub(super) fn summary_of(operation: &Operation) -> String {
    let summary = operation.payload.summary();
    // A deletion that nobody gave a command has the one that does nothing.
    match operation.kind.is_deletion() && summary == NO_COMMAND {
        true => "nothing is run".to_owned(),
        false => summary,
    }
}

pub(super) fn operation(view: &OperationView) -> wire::Operation {
    let Operation { id, stamp, parents, kind, .. } = &*view.operation;
    let replies = view.replies.iter().map(|said| (said.site().to_string(), reply(said)));
    wire::Operation {
        id: id.to_string(),
        site: id.0.author.site.to_string(),
        kind: kind.to_string(),
        time: time(stamp.wall_ms),
        stamp: stamp.to_string(),
        parents: ids(parents),
        replaces: replaces(view.operation.replaces),
        summary: summary_of(&view.operation),
        payload: payload(&view.operation.payload),
        counts: view.left_out.is_none(),
        left_out: view.left_out.as_ref().map(left_out),
        replies: replies.collect(),
        asked_by: view.operation.asked_by.as_ref().map(asker),
    }
}

/// What is said of all that an operation was made on, if it counts and replaces that.
pub(super) fn replaced(view: &OperationView) -> Option<wire::LeftOut> {
    let why = match view.operation.replaces {
        Replaces::Nothing => return None,
        Replaces::Past => Why::Replaced,
        Replaces::PastByForce => Why::Forced,
    };
    let by = Some(view.id().clone());
    view.left_out.is_none().then(|| left_out(&LeftOut { by, why }))
}

/// What would come of something.
pub(super) fn forecast(site: &SiteId, resource: &ResourceId, told: &Forecast) -> wire::Forecast {
    let decided = |(operation, why): &(OperationId, String)| wire::DecidedPair {
        operation: operation.to_string(),
        winner: None,
        counts: false,
        entry: None,
        sentence: format!("{operation} is overridden: {why}"),
    };
    wire::Forecast {
        resource: resource.to_string(),
        site: site.to_string(),
        new_resource: told.new_resource,
        config_replaced: told.new_config,
        operation: told.operation.as_ref().map(ToString::to_string),
        replaces: replaces(told.replaces),
        sites: names(&told.sites),
        not_connected: names(&told.not_heard),
        list: told
            .list
            .iter()
            .map(|operation| wire::ForecastOperation {
                id: operation.id.to_string(),
                kind: operation.kind.to_string(),
                summary: summary_of(operation),
            })
            .collect(),
        overridden: told.left_out.iter().map(decided).collect(),
        back: ids(&told.back),
        cannot_repair: told.cannot_repair.as_ref().map(ToString::to_string),
        others: Vec::new(),
    }
}

/// What is kept for readers of the history only.
pub(super) fn history_use(size: &HistorySize) -> wire::HistoryUse {
    let HistorySize { bytes, bodies, most, cut_ms } = *size;
    wire::HistoryUse { bytes, bodies, most, cut: cut_ms.map(time) }
}

/// Why an operation does not count, as it was said when it was pruned.
pub(super) fn past_decision(decision: &PastDecision) -> wire::DecidedPair {
    let PastDecision { operation, by, why } = decision;
    wire::DecidedPair {
        operation: operation.to_string(),
        winner: by.as_ref().map(ToString::to_string),
        counts: false,
        entry: None,
        sentence: format!("{operation} {}: {why}", LeftOut::verdict(by.as_ref())),
    }
}

pub(super) fn asker(asker: &Asker) -> wire::Asker {
    wire::Asker { principal: asker.principal.clone(), site: asker.site.to_string() }
}

pub(super) fn explained(operation: &Operation, out: Option<&LeftOut>) -> wire::ExplainedOperation {
    let Operation { id, stamp, parents, kind, .. } = operation;
    wire::ExplainedOperation {
        id: id.to_string(),
        site: id.0.author.site.to_string(),
        kind: kind.to_string(),
        time: time(stamp.wall_ms),
        stamp: stamp.to_string(),
        parents: ids(parents),
        replaces: replaces(operation.replaces),
        summary: summary_of(operation),
        counts: out.is_none(),
        left_out: out.map(left_out),
    }
}

/// A config, as an operator would write it.
pub(super) fn config(config: &Config) -> serde_json::Value {
    serde_json::from_str(&config.to_json()).unwrap_or_default()
}

/// Something in a config that is wrong, or to be looked at again.
pub(super) fn finding(
    place: &ConfigPlace,
    message: String,
    remedy: Option<String>,
) -> wire::ConfigFinding {
    let (line, column) = place.at.map(|at| (at.line, at.column)).unzip();
    wire::ConfigFinding { path: place.path.clone(), line, column, message, remedy }
}

/// The one word for how a resource is: what needs someone's attention comes first, at whichever
/// site it does.
pub(super) fn state(resource: &ResourceSummary) -> wire::ResourceState {
    use wire::ResourceState as State;
    match resource.standing.as_ref().map(|worst| &worst.standing) {
        Some(Standing::Diverged { .. }) => State::Diverged,
        Some(Standing::InDoubt { .. }) => State::InDoubt,
        Some(Standing::Failed { .. }) => State::Error,
        _ if resource.deleted => State::Deleted,
        Some(Standing::Unknown) => State::Unknown,
        Some(Standing::Running { .. }) => State::Running,
        Some(Standing::Waiting { .. }) | None => State::Waiting,
        Some(Standing::InSync) => State::Converged,
    }
}

fn proof(of: &StateProof) -> wire::StateProof {
    let (agreement, since_ms, states) = match &of.agreement {
        Agreement::Verified { since_ms } => (wire::StateAgreement::Verified, Some(*since_ms), None),
        Agreement::Differs { states, since_ms } => {
            (wire::StateAgreement::Differs, Some(*since_ms), Some(states))
        }
        Agreement::Unproven => (wire::StateAgreement::Unproven, None, None),
    };
    let found = of.read_here.as_ref();
    wire::StateProof {
        agreement,
        since: since_ms.map(time),
        fingerprints: states
            .into_iter()
            .flatten()
            .map(|(site, state)| (site.to_string(), state.to_string()))
            .collect(),
        read_here: found.map(|read| time(read.at_ms)),
        why_not: match &of.unproven {
            Some(Unproven::Unread { site, why, .. }) => Some(format!("at {site}, {why}")),
            _ => found.and_then(|read| read.found.clone().err()),
        },
        logic_failed: of.no_use.as_ref().map(|(site, why)| format!("at {site}, {why}")),
    }
}

fn standing(of: &SiteStanding) -> wire::SiteStanding {
    let (standing, operation, why) = match &of.standing {
        Standing::InSync => (wire::Standing::InSync, None, None),
        Standing::Running { operation } => (wire::Standing::Running, Some(operation), None),
        Standing::Waiting { operation, what } => {
            (wire::Standing::Waiting, operation.as_ref(), what.clone())
        }
        Standing::Unknown => (wire::Standing::Unknown, None, None),
        Standing::Failed { operation } => (wire::Standing::Failed, Some(operation), None),
        Standing::InDoubt { operation } => (wire::Standing::InDoubt, Some(operation), None),
        Standing::Diverged { why, failed } => {
            (wire::Standing::Diverged, failed.as_ref(), Some(why.clone()))
        }
    };
    wire::SiteStanding {
        site: of.site.to_string(),
        standing,
        since: of.since_ms.map(time),
        why,
        operation: operation.map(ToString::to_string),
        connected: of.is_connected,
        can_retry: of.can_retry,
    }
}

/// The sites that cannot tell whether an operation that counts has happened there.
pub(super) fn doubting(operation: &OperationView) -> impl Iterator<Item = &SiteId> {
    let counts = operation.left_out.is_none();
    let in_doubt = move |said: &&Reply| counts && said.status == Status::InDoubt;
    operation.replies.iter().filter(in_doubt).map(Reply::site)
}

/// What somebody should look at, once it is worth that: what is in trouble has a way out of its own.
pub(super) fn warning(resource: &ResourceSummary) -> Option<&RaisedWarning> {
    let is_due = |warning: &&RaisedWarning| warning.matters_from_ms <= now_ms();
    let in_trouble = resource.standing.as_ref().is_some_and(|at| at.standing.needs_a_person());
    let stands = !in_trouble && !resource.deleted;
    resource.warning.as_ref().filter(is_due).filter(|_| stands)
}

fn troubled(of: &OperationInTrouble) -> wire::TroubledOperation {
    wire::TroubledOperation {
        operation: of.operation.id.to_string(),
        summary: summary_of(&of.operation),
        failed_at: names(&of.failed_at),
        in_doubt_at: names(&of.in_doubt_at),
        retry_at: names(&of.retry_at),
        written_over_at: names(&of.written_over_at),
    }
}

pub(super) fn unverified(why: &Unproven) -> wire::Unverified {
    let (reason, sites, since_ms, why) = match why {
        Unproven::NoState => (wire::UnverifiedReason::NoState, Vec::new(), None, None),
        Unproven::NotYet { awaited } => {
            (wire::UnverifiedReason::NotYet, names(awaited), None, None)
        }
        Unproven::Unread { site, why, since_ms } => {
            let sites = vec![site.to_string()];
            (wire::UnverifiedReason::Unread, sites, Some(*since_ms), Some(why.clone()))
        }
    };
    wire::Unverified { reason, sites, since: since_ms.map(time), why }
}

pub(super) fn summary(resource: &ResourceSummary) -> wire::ResourceSummary {
    wire::ResourceSummary {
        id: resource.id.to_string(),
        sites: names(&resource.sites),
        operations: resource.operations as u64,
        listed: resource.listed as u64,
        state: state(resource),
        standing: resource.standing.as_ref().map(standing),
        errors: resource.errors as u64,
        last_change: (resource.changed_ms > 0).then(|| time(resource.changed_ms)),
        verified: resource.verified_ms.map(time),
        unverified: resource.unproven.as_ref().filter(|_| !resource.deleted).map(unverified),
        troubled: resource.troubled.iter().map(troubled).collect(),
        merged: resource.is_merged,
        left_out_by_programs: resource.left_out_by_programs as u64,
        warning: warning(resource).map(|warning| wire::ResourceWarning {
            about: match warning.about {
                WarnedOf::State => wire::WarningAbout::State,
                WarnedOf::Program => wire::WarningAbout::Program,
            },
            site: warning.site.to_string(),
            since: time(warning.since_ms),
            why: warning.why.clone(),
        }),
        service: resource.service.clone(),
    }
}

pub(super) fn holding(held: Option<&Holding>) -> wire::ResourceHolding {
    wire::ResourceHolding {
        held: held.is_some(),
        sites: held.map(|held| names(&held.sites)).unwrap_or_default(),
        deleted: held.is_some_and(|held| held.deleted),
        is_of_service: held.is_some_and(|held| held.is_of_service),
    }
}

pub(super) fn resource(
    me: &SiteId,
    resource: &ResourceSummary,
    outline: &Outline,
    list: Vec<String>,
    behind: BTreeMap<String, u64>,
) -> wire::Resource {
    wire::Resource {
        summary: summary(resource),
        list,
        config: config(&outline.config),
        standings: outline.standings.iter().map(standing).collect(),
        health: outline.standings.iter().find(|at| at.site == *me).and_then(|at| {
            match &at.standing {
                Standing::Diverged { why, .. } => Some(why.clone()),
                _ => None,
            }
        }),
        progress: match outline.progress {
            RunProgress::Idle => wire::Progress::Idle,
            RunProgress::Running => wire::Progress::Running,
            RunProgress::AwaitsOperator(_) => wire::Progress::AwaitsOperator,
        },
        behind,
        awaits: match &outline.progress {
            RunProgress::AwaitsOperator(operation) => Some(operation.to_string()),
            _ => None,
        },
        waits_for: outline.waits_for.clone(),
        replicant: outline.id_map.as_ref().map(|id_map| {
            let at = |site: &SiteId| Some((site.to_string(), id_map.at(site)?.to_owned()));
            wire::Replicant {
                service: id_map.service.clone(),
                meta_id: id_map.meta_id.to_string(),
                collection: id_map.collection.clone(),
                local_ids: resource.sites.iter().filter_map(at).collect(),
            }
        }),
        proof: outline.proof.as_ref().map(proof),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_requests_only_what_is_known_to_be_harmless_is_shown() {
        let headers = [
            ("Content-Type", "application/json"),
            ("X-Auth-Token", "s3cret"),
            ("Authorization", "Bearer s3cret"),
            ("X-Session", "s3cret"),
            ("Forwarded", "for=s3cret"),
        ];
        let header = |(name, value): (&str, &str)| cheops_core::model::Header {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let request = Payload::Http {
            service: "image".to_owned(),
            method: "PUT".to_owned(),
            path: "/v1/images/7?sig=s3cret&limit=1&s3cret".to_owned(),
            headers: headers.map(header).to_vec(),
            body: None,
            service_ref: None,
        };
        let shown = serde_json::to_string(&payload(&request)).unwrap();
        assert!(!shown.contains("s3cret") && shown.contains("application/json"), "{shown}");
        assert!(shown.contains("/v1/images/7?sig=…&limit=…&…"), "{shown}");
        assert_eq!(request.summary(), "PUT image/v1/images/7?sig=…&limit=…&…");
    }

    #[test]
    fn times_are_written_as_rfc_3339_and_no_clock_breaks_it() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59.000Z");
    }
}
