//! What happened, also what no site needs any more: read from the log, where it is kept as long as
//! `[audit]` says. The engine has forgotten it, and is asked only what it still knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use cheops_api as wire;
use cheops_core::engine::{Notice, OperationView};
use cheops_core::model::{
    DocumentEdit, Entry, EntryBody, FileRef, Operation, OperationId, Reply, ResourceId, SiteId,
};
use cheops_store::{ChangeKind, MOST_KEPT_BODY, PastChange, PastFrom, ReadError};

use super::changes::change_on_wire;
use super::forward::{self, SeenBy};
use super::list::page_size;
use super::read::{QueryResult, operation_id, query};
use super::refusal::HttpRefusal;
use super::wire as on_wire;
use super::{Api, SharedApi, resource_id};
use crate::driver::Stopped;

/// How many rows of the log are looked through for operations that were pruned.
const MOST_ROWS: usize = 10_000;
/// And how many operations are told of.
const MOST_OPERATIONS: usize = 1_000;
/// How many rows are looked through for what sites said of one operation.
const MOST_ROWS_OF_ONE: usize = 5_000;
const READ_AT_ONCE: usize = 500;

/// `GET .../history`
pub(super) async fn history(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    asked: QueryResult<wire::HistoryAsked>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let asked = query(asked)?;
    let id = resource_id(&id)?;
    let request = match forward::seen_at(&api, asked.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    let from =
        asked.before.map_or(PastFrom::Latest, |seq| PastFrom::Before(cheops_store::Seq(seq)));
    if asked.before.is_none() {
        // Who has just changed something looks for that.
        api.driver.settle_if_possible().await;
    }
    let (feed, of, limit) = (api.feed.clone(), id.clone(), page_size(asked.limit));
    let page = read(move || feed.past(&of, from, limit)).await?;
    if page.items.is_empty() && asked.before.is_none() {
        // It may be held elsewhere; or the log could not show it yet.
        let wanted = id.clone();
        if api.driver.ask(move |engine| engine.config(&wanted).is_none()).await? {
            return forward::pass_on(&api, &id, request).await;
        }
    }
    let next = page.items.last().filter(|_| page.more).map(|last| last.change.seq.0);
    let cut = next.is_none() && page.dropped && !page.items.last().is_some_and(is_the_first);
    let item = |past: &PastChange| wire::HistoryItem {
        id: past.change.seq.0,
        at: on_wire::time(past.change.at_ms),
        pruned: past.pruned,
        change: change_on_wire(&past.change),
    };
    let items = page.items.iter().map(item).collect();
    let (resource, site) = (id.to_string(), api.site.to_string());
    Ok(Json(wire::History { resource, site, items, next, cut }).into_response())
}

/// Whether nothing can have been before it: the operation that made the resource.
fn is_the_first(past: &PastChange) -> bool {
    operation_in(past).is_some_and(|it| it.parents.is_empty() && it.declares.is_some())
}

fn entry_in(past: &PastChange) -> Option<&Arc<Entry>> {
    match &past.change.what {
        ChangeKind::Entry(_, entry) => Some(entry),
        ChangeKind::Notice(_) => None,
    }
}

fn operation_in(past: &PastChange) -> Option<&Operation> {
    match &entry_in(past)?.body {
        EntryBody::Operation(operation) => Some(operation),
        EntryBody::Reply(_) => None,
    }
}

fn reply_in(past: &PastChange) -> Option<&Reply> {
    match &entry_in(past)?.body {
        EntryBody::Reply(reply) => Some(reply),
        EntryBody::Operation(_) => None,
    }
}

async fn read<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, HttpRefusal> {
    Ok(tokio::task::spawn_blocking(look).await.map_err(|_| Stopped)??)
}

/// `GET .../past`
pub(super) async fn past(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    seen: QueryResult<wire::Seen>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let seen = query(seen)?;
    let id = resource_id(&id)?;
    let request = match forward::seen_at(&api, seen.at.as_deref(), request).await? {
        SeenBy::By(response) => return Ok(response),
        SeenBy::Here(request) => request,
    };
    if forward::held(&api, &id).await? == forward::ResourceLocation::Elsewhere {
        return forward::pass_on(&api, &id, request).await;
    }
    let found = past_operations(&api, &id).await?;
    let operations = found.operations.iter().map(PastOperation::on_wire).collect();
    Ok(Json(wire::PastOperations { operations, more: found.more }).into_response())
}

/// Operations that the engine has forgotten.
pub(super) struct FoundPast {
    /// In total order.
    pub(super) operations: Vec<PastOperation>,
    /// Whether there are older ones.
    pub(super) more: bool,
}

/// One of them.
pub(super) struct PastOperation {
    pub(super) operation: Arc<Operation>,
    replies: Vec<Reply>,
    decision: Option<wire::DecidedPair>,
}

impl PastOperation {
    fn on_wire(&self) -> wire::Operation {
        let (operation, replies) = (self.operation.clone(), self.replies.clone());
        let view = OperationView { operation, left_out: None, replies };
        let left_out = Some(self.left_out());
        wire::Operation { counts: false, left_out, ..on_wire::operation(&view) }
    }

    /// The same for an explanation.
    pub(super) fn explained(&self) -> wire::ExplainedOperation {
        let left_out = Some(self.left_out());
        let explained = on_wire::explained(&self.operation, None);
        wire::ExplainedOperation { counts: false, left_out, ..explained }
    }

    /// Why it does not count. What is pruned was replaced, if nothing else is known of it.
    fn left_out(&self) -> wire::LeftOut {
        match &self.decision {
            Some(decision) => {
                let why = decision.sentence.split_once(": ").map(|(_, why)| why);
                let why = why.unwrap_or(&decision.sentence).to_owned();
                wire::LeftOut { why, by: decision.winner.clone() }
            }
            None => {
                wire::LeftOut { why: "a later operation replaced all before it".into(), by: None }
            }
        }
    }
}

/// The latest operations of a resource that its engine has forgotten, as far as they are kept.
pub(super) async fn past_operations(api: &Api, id: &ResourceId) -> Result<FoundPast, HttpRefusal> {
    let (feed, of) = (api.feed.clone(), id.clone());
    let (rows, more) = read(move || {
        let mut rows: Vec<PastChange> = Vec::new();
        loop {
            let from =
                rows.last().map_or(PastFrom::Latest, |last| PastFrom::Before(last.change.seq));
            let page = feed.past(&of, from, READ_AT_ONCE)?;
            rows.extend(page.items);
            if !page.more || rows.len() >= MOST_ROWS {
                return Ok((rows, page.more));
            }
        }
    })
    .await?;
    let folded = fold(&rows);
    // The log may be a moment behind the engine, so the engine says what it still knows.
    let of = id.clone();
    let known = api.driver.ask(move |engine| engine.history(&of)).await?;
    let is_past =
        |id: &OperationId| known.as_ref().is_none_or(|(operations, _)| !operations.contains(id));
    let mut operations: Vec<_> =
        folded.into_iter().filter(|(id, _)| is_past(id)).map(|(_, past)| past).collect();
    operations.sort_by_key(|past| past.operation.position());
    let beyond = operations.len().saturating_sub(MOST_OPERATIONS);
    operations.drain(..beyond);
    Ok(FoundPast { operations, more: more || beyond > 0 })
}

/// Operations with what is said of them in these rows, the latest of which come first.
fn fold(rows: &[PastChange]) -> BTreeMap<OperationId, PastOperation> {
    let mut replies: BTreeMap<&OperationId, BTreeMap<&SiteId, &Reply>> = BTreeMap::new();
    let mut decisions = BTreeMap::new();
    let mut folded = BTreeMap::new();
    for row in rows {
        if let Some(reply) = reply_in(row) {
            let of = replies.entry(&reply.operation).or_default();
            let last = of.entry(reply.site()).or_insert(reply);
            if last.stamp < reply.stamp {
                *last = reply;
            }
        }
        if let ChangeKind::Notice(Notice::LeftOut(_, some)) = &row.change.what {
            for decision in some {
                decisions.entry(&decision.operation).or_insert(decision);
            }
        }
        if let Some(operation) = operation_in(row) {
            let said = replies.remove(&operation.id).unwrap_or_default();
            let past = PastOperation {
                operation: Arc::new(operation.clone()),
                replies: said.into_values().cloned().collect(),
                decision: decisions.get(&operation.id).map(|it| on_wire::past_decision(it)),
            };
            folded.insert(operation.id.clone(), past);
        }
    }
    folded
}

/// `GET .../operations/{operation}`, of whatever resource.
pub(super) async fn recorded(
    State(api): State<SharedApi>,
    Path(operation): Path<String>,
    seen: QueryResult<wire::Seen>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let seen = query(seen)?;
    let id = operation_id(&operation)?;
    if let SeenBy::By(response) = forward::seen_at(&api, seen.at.as_deref(), request).await? {
        return Ok(response);
    }
    let found = match find(&api, &id).await? {
        Some(found) => Some(found),
        None => {
            // It may be so new that the log does not show it yet.
            api.driver.settle().await?;
            find(&api, &id).await?
        }
    };
    match found {
        Some(found) => Ok(Json(record(&api, &id, &found).await?).into_response()),
        None => Err(HttpRefusal::not_found(
            "no such operation",
            format!("no operation `{operation}` is kept at {}", api.site),
        )
        .hint(format!(
            "a site keeps those of the resources it holds, and of what is pruned those of the last days: \
             `cheops operation {operation} --site {}` asks the one that received it",
            id.0.author.site
        ))),
    }
}

/// The row that holds an operation.
async fn find(api: &Api, id: &OperationId) -> Result<Option<PastChange>, HttpRefusal> {
    let (feed, entry) = (api.feed.clone(), id.0.clone());
    let found = read(move || feed.entry(&entry)).await?;
    Ok(found.filter(|found| operation_in(found).is_some()))
}

/// An operation that its engine has forgotten, with what is kept of it.
pub(super) async fn pruned_operation(
    api: &Api,
    of: &ResourceId,
    id: &OperationId,
) -> Result<Option<wire::Operation>, HttpRefusal> {
    let Some(found) = find(api, id).await? else { return Ok(None) };
    if found.change.what.resource() != Some(of) {
        return Ok(None);
    }
    let (rows, _) = rows_about(api, &found).await?;
    let past = fold(&rows).remove(id);
    Ok(past.as_ref().map(PastOperation::on_wire))
}

/// An operation and what comes after it on its resource, the latest first, as far as it is looked
/// through; and whether there is more.
async fn rows_about(api: &Api, found: &PastChange) -> Result<(Vec<PastChange>, bool), HttpRefusal> {
    let Some(of) = found.change.what.resource().cloned() else { return Ok((Vec::new(), false)) };
    let (feed, first) = (api.feed.clone(), found.clone());
    read(move || {
        let Some(id) = operation_in(&first).map(|it| it.id.clone()) else {
            return Ok((Vec::new(), false));
        };
        let is_about = |row: &PastChange| match &row.change.what {
            ChangeKind::Notice(Notice::LeftOut(_, some)) => {
                some.iter().any(|decision| decision.operation == id)
            }
            _ => reply_in(row).is_some_and(|reply| reply.operation == id),
        };
        let (mut rows, mut looked_at, mut after) = (vec![first.clone()], 0, first.change.seq);
        loop {
            let page = feed.past(&of, PastFrom::After(after), READ_AT_ONCE)?;
            looked_at += page.items.len();
            after = page.items.last().map_or(after, |last| last.change.seq);
            rows.extend(page.items.into_iter().filter(is_about));
            if !page.more || looked_at >= MOST_ROWS_OF_ONE {
                rows.reverse();
                return Ok((rows, page.more));
            }
        }
    })
    .await
}

async fn record(
    api: &Api,
    id: &OperationId,
    found: &PastChange,
) -> Result<wire::OperationRecord, HttpRefusal> {
    let (rows, more_said) = rows_about(api, found).await?;
    let said = rows.iter().rev().filter_map(reply_in).map(on_wire::site_reply).collect();
    let of = found.change.what.resource().cloned();
    let live = match of.clone() {
        Some(of) => {
            let id = id.clone();
            api.driver.ask(move |engine| engine.operation_view(&of, &id)).await?
        }
        None => None,
    };
    let pruned = live.is_none();
    let operation = match live {
        Some(view) => Some(on_wire::operation(&view)),
        None => fold(&rows).get(id).map(PastOperation::on_wire),
    };
    let operation =
        operation.ok_or_else(|| HttpRefusal::not_found("no such operation", format!("`{id}`")))?;
    Ok(wire::OperationRecord {
        resource: of.map(|of| of.to_string()).unwrap_or_default(),
        operation,
        noted: on_wire::time(found.change.at_ms),
        pruned,
        bodies: bodies(api, found).await?,
        edits: rows.iter().rev().filter_map(|row| Some(edit(&entry_in(row)?.edit()?))).collect(),
        said,
        more_said,
    })
}

fn edit(made: &DocumentEdit) -> wire::RecordedEdit {
    wire::RecordedEdit {
        made_by: made.writer().to_string(),
        size: made.change.len() as u64,
        base64: base64::engine::general_purpose::STANDARD.encode(&made.change),
    }
}

async fn bodies(api: &Api, found: &PastChange) -> Result<Vec<wire::RecordedBody>, HttpRefusal> {
    let (Some(entry), blobs) = (entry_in(found).cloned(), api.blobs.clone()) else {
        return Ok(Vec::new());
    };
    let look = move || {
        let EntryBody::Operation(operation) = &entry.body else { return Vec::new() };
        let content = |file: &FileRef| match entry.inline_body() {
            Some(body) => Ok(Some(body.to_vec())),
            None if file.size > MOST_KEPT_BODY => Err("it has more than 64 KiB".to_owned()),
            None => blobs.short(&file.blob).map_err(|error| error.to_string()),
        };
        operation.files().iter().map(|file| recorded_body(file, content(file))).collect()
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|_| Stopped)?)
}

fn recorded_body(file: &FileRef, content: Result<Option<Vec<u8>>, String>) -> wire::RecordedBody {
    let mut body = wire::RecordedBody {
        name: file.name.clone(),
        size: file.size,
        blob: file.blob.to_string(),
        text: None,
        base64: None,
        missing: None,
    };
    match content.map(|content| content.map(String::from_utf8)) {
        Ok(Some(Ok(text))) => body.text = Some(text),
        Ok(Some(Err(bytes))) => {
            let bytes = bytes.into_bytes();
            body.base64 = Some(base64::engine::general_purpose::STANDARD.encode(bytes));
        }
        Ok(None) => body.missing = Some("it is not kept any more".to_owned()),
        Err(why) => body.missing = Some(why),
    }
    body
}
