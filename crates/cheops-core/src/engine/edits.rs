//! Resources whose operations are edits of one document, which is merged (`logic:text`, `logic:json`).
//!
//! The site where an edit was submitted runs its command, reads the document, and tells the others what
//! came of it, beside its reply. They run nothing: they merge that, and write the document. What was
//! merged is the same whatever its order, so nothing has to be put right; an edit of which its site has
//! said nothing yet holds up no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::{Context, Turn};
use super::durable::Record;
use super::needs::Go;
use super::ports::Task;
use super::resource::Resource;
use super::timers::Timer;
use crate::config::MergedAs;
use crate::model::{Author, DocumentEdit, Entry, Operation, OperationId, Status, writer};
use crate::plan::RunEffect;

/// What is known of the edits of one document.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// What this site's document holds, in the order in which it was merged.
    merged: Arc<Vec<DocumentEdit>>,
    merged_of: BTreeSet<OperationId>,
    /// What is known and not merged yet.
    known: BTreeMap<OperationId, Vec<DocumentEdit>>,
    /// Of which the job under way merges so many.
    under_way: usize,
    /// Edits of which their sites have not said what came of them; and how many signs of life of that site
    /// had been heard when they were first waited for.
    awaited: BTreeMap<OperationId, u64>,
    /// Of which nobody is going to say it, as far as this site can tell.
    given_up: BTreeSet<OperationId>,
    /// When to look at those that are waited for.
    look_ms: Option<u64>,
}

/// After so many signs of life, of which any would have come with what was left to say, nothing more is
/// expected: five minutes, by the usual settings, in which the site is heard.
const MOST_BEATS: u64 = 600;
/// How often to look whether that is so.
const LOOK_EVERY_MS: u64 = 60_000;

impl Edits {
    /// Whether its site has yet to say what came of it.
    pub(super) fn awaits(&self, operation: &OperationId) -> bool {
        self.awaited.contains_key(operation)
    }

    /// Whether some edit is known of which that is so.
    pub(super) fn are_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }

    fn merge(&mut self, edits: impl IntoIterator<Item = DocumentEdit>) {
        for edit in edits {
            self.merged_of.insert(edit.operation.clone());
            Arc::make_mut(&mut self.merged).push(edit);
        }
    }

    /// Takes in an edit: this site's own is in its document already.
    fn see(&mut self, edit: DocumentEdit, me: &Author) {
        if edit.entry.author == *me {
            self.merge([edit]);
        } else {
            self.known.entry(edit.operation.clone()).or_default().push(edit);
        }
    }

    fn is_of_known(&self, operation: &OperationId) -> bool {
        self.known.contains_key(operation) || self.merged_of.contains(operation)
    }
}

impl Resource {
    /// As what the operations of this resource are merged, if they are. What each site's service calls by
    /// another name is no one document.
    pub(super) fn merged_as(&self) -> Option<MergedAs> {
        self.resolution.config().merged_as().filter(|_| self.declared.id_map.is_none())
    }

    /// Takes in what an entry says came of an edit.
    pub(super) fn see_edit(&mut self, entry: &Entry, me: &Author) {
        if let Some(edit) = entry.edit() {
            self.edits.see(edit, me);
        }
    }

    /// An operation was taken in. Whether it is an edit of which its site has not said what came of it.
    pub(super) fn awaits_edit(&mut self, operation: &Operation, context: &Context) -> bool {
        let id = &operation.id;
        let awaits = self.merged_as().is_some() && self.is_untold(id, &context.settings.me);
        if awaits {
            self.edits.awaited.insert(id.clone(), context.links.beats_of(id.site()));
        }
        awaits
    }

    fn is_untold(&self, operation: &OperationId, me: &Author) -> bool {
        let site = operation.site();
        let said = self.replies.get(operation).and_then(|replies| replies.of(site, None));
        *site != me.site
            && said.is_none_or(|reply| reply.status == Status::InDoubt)
            && !self.runs.log.has_run(operation)
    }

    /// A reply was taken in: if it is what was waited for, the edit can go on here.
    pub(super) fn see_whether_told(&mut self, operation: &OperationId, me: &Author) {
        if self.edits.awaits(operation) && !self.is_untold(operation, me) {
            self.no_longer_awaits(operation);
        }
    }

    fn no_longer_awaits(&mut self, operation: &OperationId) {
        self.edits.awaited.remove(operation);
        if let Some(operation) = self.operation(operation).cloned()
            && self.resolution.counts(&operation.id)
        {
            self.runs.list_grew(&operation, true);
        }
    }

    /// Gives up what nobody is going to say: of a site that was shown to lie, or that is heard all the time
    /// and does not say it. Should it say it after all, that is merged then.
    pub(super) fn give_up_edits(&mut self, turn: &mut Turn<'_>) {
        if self.edits.awaited.is_empty() {
            return;
        }
        let Context { links, liars, .. } = &*turn.context;
        let is_in_vain = |(operation, since): (&OperationId, &u64)| {
            let site = operation.site();
            let beats = links.beats_of(site).saturating_sub(*since);
            beats >= MOST_BEATS || !liars.keys_of(site).is_empty()
        };
        let in_vain = self.edits.awaited.iter().filter(|it| is_in_vain(*it));
        let in_vain: Vec<_> = in_vain.map(|(operation, _)| operation.clone()).collect();
        for operation in in_vain {
            self.edits.given_up.insert(operation.clone());
            self.no_longer_awaits(&operation);
        }
        let now_ms = turn.now.mono_ms;
        if self.edits.are_awaited() && self.edits.look_ms.is_none_or(|look_ms| look_ms <= now_ms) {
            let look_ms = now_ms.saturating_add(LOOK_EVERY_MS);
            self.edits.look_ms = Some(look_ms);
            turn.context.timers.set(look_ms, Timer::Edits(self.id.clone()));
        }
    }

    /// The config is another one: what is waited for is looked at anew.
    pub(super) fn see_awaited(&mut self, context: &Context) {
        let me = &context.settings.me;
        let beats = |id: &OperationId| context.links.beats_of(id.site());
        let all = self.resolution.operations().iter().filter(|_| self.merged_as().is_some());
        let untold = all.filter(|operation| self.is_untold(&operation.id, me));
        let untold = untold.map(|operation| (operation.id.clone(), beats(&operation.id)));
        self.edits.awaited = untold.collect();
    }

    /// What the log says has run here is merged.
    pub(super) fn recovered_edits(&mut self, context: &Context) {
        let log = &self.runs.log;
        let done = |id: &OperationId| log.outcome(id) == Some(RunEffect::Took);
        let done: Vec<_> = self.edits.known.keys().filter(|id| done(id)).cloned().collect();
        for operation in done {
            let edits = self.edits.known.remove(&operation).unwrap_or_default();
            self.edits.merge(edits);
        }
        self.see_awaited(context);
    }

    /// Whether an operation that its own site could not carry out comes to nothing here too.
    pub(super) fn may_merge(&self, operation: &Operation, me: &Author) -> Go {
        let site = operation.id.site();
        if self.merged_as().is_none() || *site == me.site || self.edits.is_of_known(&operation.id) {
            return Go::On;
        }
        let said = self.replies.get(&operation.id).and_then(|replies| replies.of(site, None));
        match said.map(|reply| &reply.status) {
            Some(Status::Ko) => {
                Go::Fail(format!("it failed at `{site}`, where it was submitted: nothing to merge"))
            }
            // It ran there before edits were merged.
            Some(_) => Go::On,
            None if self.gave_up(&operation.id) => Go::Fail(format!(
                "`{site}`, where it was submitted, has not said what it made of the document"
            )),
            None => Go::Wait,
        }
    }

    /// Whether it was given up: a site that starts again knows it by the run that came to nothing.
    fn gave_up(&self, id: &OperationId) -> bool {
        self.edits.given_up.contains(id) || self.runs.log.has_run(id)
    }

    /// What this site does to carry out an edit; none if it is an operation like any other.
    pub(super) fn edit_task(&mut self, id: &OperationId, me: &Author) -> Option<Task> {
        let form = self.merged_as()?;
        let (operation, state) = (self.operation(id)?.clone(), self.config().state.clone()?);
        let merged = Arc::clone(&self.edits.merged);
        if self.edits.is_of_known(id) {
            let new = self.edits.known.get(id).cloned().unwrap_or_default();
            self.edits.under_way = new.len();
            return Some(Task::Merge { operation: id.clone(), form, merged, new, state });
        }
        let is_ours = id.site() == &me.site;
        let writer = writer(id, me);
        is_ours.then_some(Task::Edit { operation, form, merged, writer, state })
    }

    /// An operation has run here: what was known of it is in the document.
    pub(super) fn edit_ended(&mut self, id: &OperationId, turn: &mut Turn<'_>) {
        let under_way = std::mem::take(&mut self.edits.under_way);
        let Some(known) = self.edits.known.get_mut(id) else { return };
        let left = known.split_off(under_way.min(known.len()));
        let done = std::mem::replace(known, left);
        let is_all = known.is_empty();
        self.edits.merge(done);
        if is_all {
            self.edits.known.remove(id);
        } else {
            self.merge_again(id, turn);
        }
    }

    /// What came of an edit is told, and this site took it for done, or failed: as after the author's site
    /// has lost its disk, or was told to try again.
    pub(super) fn merge_again(&mut self, id: &OperationId, turn: &mut Turn<'_>) {
        if self.runs.is_under_way(id) || !self.runs.forget_run(id) {
            return;
        }
        turn.record(Record::Ran(self.id.clone(), Box::new(self.runs.log.clone())));
    }
}
