//! Edits of documents that are merged: the command is run where it was submitted, and what it made of
//! the document is merged everywhere else.
//!
//! A run begins with the document as it is, also with what somebody changed behind Cheops' back: that
//! goes into the next edit made here. A run that was cut short is made again from the document as it was
//! before. What is merged keeps such changes too, without telling anybody of them: then this site's state
//! is another one than the others', which is found and shown.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cheops_core::causes;
use cheops_core::config::{MergedAs, StateCommands};
use cheops_core::engine::{Job, Task};
use cheops_core::model::{Edit, EntryId, Operation, Outcome, Output, ResourceId};
use cheops_merge::{Document, DocumentForm, WriterId};

use super::ask::CommandRequest;
use super::running::UnderWay;
use super::streams::{Input, Prints};
use super::{ExecutorState, for_good};

/// How many documents are kept ready for their next edit. Others are made again from their edits.
const MOST_KEPT: usize = 64;
/// The longest document, in bytes: with as much room as a merge may need.
const LONGEST: usize = 2 * 1024 * 1024;

/// How a job that edits or merges ended.
pub(super) struct EditEnding {
    pub(super) outcome: Outcome,
    /// What an edit made of the document.
    pub(super) change: Option<Vec<u8>>,
}

/// Documents that are ready for their next edit.
#[derive(Default)]
pub(super) struct Documents {
    kept: Mutex<KeptDocuments>,
}

#[derive(Default)]
struct KeptDocuments {
    by_resource: BTreeMap<ResourceId, ReadyDocument>,
    /// The one kept longest first.
    order: VecDeque<ResourceId>,
}

/// A document with the first of its resource's edits merged.
struct ReadyDocument {
    form: DocumentForm,
    document: Document,
    merged: usize,
    last: Option<EntryId>,
}

impl ReadyDocument {
    fn new(form: DocumentForm) -> Self {
        Self { form, document: Document::new(form), merged: 0, last: None }
    }

    /// Whether all of its edits are the first of these.
    fn is_of(&self, edits: &[Edit]) -> bool {
        let last = self.merged.checked_sub(1).and_then(|at| edits.get(at));
        self.merged <= edits.len() && last.map(|edit| &edit.entry) == self.last.as_ref()
    }

    fn merge(&mut self, edits: &[Edit]) -> Result<(), String> {
        for edit in edits.iter().filter(|edit| !edit.change.is_empty()) {
            check_writer(edit)?;
            self.document.merge(&edit.change).map_err(|error| {
                format!(
                    "what `{}` says it made is no such change: {}",
                    edit.operation.site(),
                    causes(&error)
                )
            })?;
        }
        self.merged += edits.len();
        if let Some(edit) = edits.last() {
            self.last = Some(edit.entry.clone());
        }
        Ok(())
    }
}

impl Documents {
    fn take(&self, resource: &ResourceId) -> Option<ReadyDocument> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.order.retain(|other| other != resource);
        kept.by_resource.remove(resource)
    }

    fn keep(&self, resource: &ResourceId, ready: ReadyDocument) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_resource.insert(resource.clone(), ready);
        kept.order.push_back(resource.clone());
        if kept.order.len() > MOST_KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_resource.remove(&oldest);
        }
    }
}

/// Why a document could not be read, merged or written; `None` if the agent stops.
type EditFailure = Option<String>;

/// One job that edits or merges a document.
struct EditJob<'a> {
    executor: &'a ExecutorState,
    job: &'a Job,
    state: &'a StateCommands,
    under_way: &'a mut UnderWay,
}

impl ExecutorState {
    /// Edits or merges a document; `None` if the agent stops, or the job is another one.
    pub(super) async fn edit_or_merge(
        &self,
        job: &Job,
        under_way: &mut UnderWay,
    ) -> Option<EditEnding> {
        let (form, merged, state) = match &job.task {
            Task::Edit { form, merged, state, .. } | Task::Merge { form, merged, state, .. } => {
                (document_form(*form), merged, state)
            }
            _ => return None,
        };
        let ready = self.documents.take(&job.resource);
        let merged = Arc::clone(merged);
        let ready = blocking(move || ready_for(ready, form, &merged)).await;
        let mut work = EditJob { executor: self, job, state, under_way };
        let ended = match (ready, &job.task) {
            (Err(why), _) => Err(Some(why)),
            (Ok(ready), Task::Edit { operation, writer, .. }) => {
                work.edit(ready, operation, WriterId(*writer)).await
            }
            (Ok(ready), Task::Merge { new, .. }) => work.merge(ready, new).await,
            (Ok(_), _) => return None,
        };
        match ended {
            Ok((ending, ready)) => {
                if let Some(ready) = ready {
                    self.documents.keep(&job.resource, ready);
                }
                Some(ending)
            }
            Err(Some(why)) => Some(EditEnding { outcome: Outcome::failure(why), change: None }),
            Err(None) => None,
        }
    }
}

impl EditJob<'_> {
    async fn edit(
        &mut self,
        mut ready: ReadyDocument,
        operation: &Operation,
        writer: WriterId,
    ) -> Result<(EditEnding, Option<ReadyDocument>), EditFailure> {
        // It was cut short, and may have left anything; but what was there before the first edit is nowhere
        // else.
        if self.job.again && !ready.document.is_empty() {
            self.write(ready.document.content()).await?;
        }
        let before = self.read().await?;
        let outcome =
            self.executor.operation(self.job, operation, self.under_way).await.ok_or(None)?;
        if !outcome.succeeded() {
            // What failed changed nothing.
            match self.read().await {
                Ok(left) if left == before => {}
                Ok(_) | Err(Some(_)) => self.write(before).await?,
                Err(None) => return Err(None),
            }
            return Ok((EditEnding { outcome, change: None }, Some(ready)));
        }
        let after = match self.read().await {
            Ok(after) => after,
            Err(Some(why)) => return self.put_back(before, &why).await,
            Err(None) => return Err(None),
        };
        let (was, is) = (before.clone(), after.clone());
        let edited = blocking(move || {
            let change = ready.document.edit(&was, &is, writer);
            let change = change.map_err(|error| causes(&error))?;
            let content = ready.document.content();
            Ok((change, content, ready))
        });
        match edited.await {
            Ok((change, content, ready)) => {
                if content != after {
                    self.write(content).await?;
                }
                Ok((EditEnding { outcome, change: Some(change) }, Some(ready)))
            }
            Err(why) => self.put_back(before, &why).await,
        }
    }

    /// The command made of it what is no document.
    async fn put_back(
        &mut self,
        before: Vec<u8>,
        why: &str,
    ) -> Result<(EditEnding, Option<ReadyDocument>), EditFailure> {
        self.write(before).await?;
        let why = format!("the document was put back, since it cannot be merged: {why}");
        Ok((EditEnding { outcome: Outcome::failure(why), change: None }, None))
    }

    async fn merge(
        &mut self,
        mut ready: ReadyDocument,
        new: &[Edit],
    ) -> Result<(EditEnding, Option<ReadyDocument>), EditFailure> {
        let found = self.read().await?;
        let (new, there, again) = (new.to_vec(), found.clone(), self.job.again);
        let (content, ready) = blocking(move || {
            // Cut short, it may have left anything; but what was there before the first edit is nowhere else.
            let is_as_left =
                again && !ready.document.is_empty() || ready.document.content() == there;
            let changes: Vec<&[u8]> = new.iter().map(|edit| &*edit.change).collect();
            let changes: Vec<_> = changes.into_iter().filter(|it| !it.is_empty()).collect();
            let local = (!is_as_left).then(|| ready.document.with_local(&there, &changes));
            ready.merge(&new)?;
            let merged = ready.document.content();
            let content = match local {
                Some(local) if merged != there => local.map_err(|error| causes(&error))?,
                Some(_) | None => merged,
            };
            Ok((content, ready))
        })
        .await
        .map_err(Some)?;
        if content != found {
            self.write(content).await?;
        }
        let outcome = Outcome::Exited { code: 0, output: Output::whole("merged") };
        Ok((EditEnding { outcome, change: None }, Some(ready)))
    }

    async fn read(&mut self) -> Result<Vec<u8>, EditFailure> {
        let prints = Prints::Document(LONGEST);
        let text = self.command(&self.state.read, Input::Nothing, prints, "read").await?;
        Ok(text.into_bytes())
    }

    async fn write(&mut self, content: Vec<u8>) -> Result<(), EditFailure> {
        let input = Input::Bytes(Bytes::from(content));
        self.command(&self.state.write, input, Prints::Output, "written").await.map(drop)
    }

    async fn command(
        &mut self,
        command: &str,
        input: Input,
        prints: Prints,
        what: &str,
    ) -> Result<String, EditFailure> {
        let limit = self.executor.time_limit;
        let ask = CommandRequest { input, prints, ..CommandRequest::new(command, limit) };
        let outcome = self.executor.command(Some(&self.job.resource), ask, self.under_way).await;
        match for_good(outcome.ok_or(None)?) {
            Outcome::Exited { code: 0, output } => Ok(output.text),
            Outcome::Exited { code, output } => Err(Some(format!(
                "the document could not be {what} ({code}): {}",
                output.text.trim()
            ))),
            Outcome::TimedOut { limit_ms } => {
                Err(Some(format!("the document could not be {what} within {limit_ms} ms")))
            }
            other => Err(Some(format!("the document could not be {what}: {}", other.text()))),
        }
    }
}

/// Of two changes under one name the first counts, so each has to have its own.
fn check_writer(edit: &Edit) -> Result<(), String> {
    let site = edit.operation.site();
    let writers = cheops_merge::writers(&edit.change)
        .map_err(|error| format!("what `{site}` says it made is no change: {}", causes(&error)))?;
    match writers.iter().eq([&WriterId(edit.writer())]) {
        true => Ok(()),
        false => Err(format!("`{site}` says that others made what it made")),
    }
}

/// The document with these edits merged, from the one that was kept, if that is one.
fn ready_for(
    kept: Option<ReadyDocument>,
    form: DocumentForm,
    edits: &[Edit],
) -> Result<ReadyDocument, String> {
    let kept = kept.filter(|ready| ready.form == form && ready.is_of(edits));
    let mut ready = kept.unwrap_or_else(|| ReadyDocument::new(form));
    let new = edits.get(ready.merged..).unwrap_or_default();
    ready.merge(new)?;
    Ok(ready)
}

fn document_form(form: MergedAs) -> DocumentForm {
    match form {
        MergedAs::Text => DocumentForm::Text,
        MergedAs::Json => DocumentForm::Json,
    }
}

/// Merging a long document takes a while, and must not hold up what waits for the network.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(format!("it could not be merged: {error}")))
}
