//! What was edited so far, and what it comes to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use loro::{ExportMode, Frontiers, ID, LoroDoc, LoroError};

use crate::change::{Edit, EditBase, EditBody, read, write};
use crate::content::{Content, ContentKind};
use crate::diff::MOST_RUNS;
use crate::errors::{BadChange, BadLocal, NotADocument};
use crate::json::{self, Places};
use crate::marks::{self, MarkedText};
use crate::names::{DocumentForm, WriterId};
use crate::text;
use crate::{LARGEST_CHANGE, LARGEST_WHOLE};

/// How many documents are kept for edits that were made on something else than what is here.
const MOST_BESIDE: usize = 4;
/// How many edits may wait for others.
const MOST_WAITING: usize = 1024;
/// How many bytes they may have.
const MOST_WAITING_BYTES: usize = 16 << 20;

/// All edits of one document that are known here.
///
/// Its content is a function of the set of edits that were merged, and of nothing else: not of their
/// order, and not of how often each came.
pub struct Document {
    form: DocumentForm,
    /// What the edits come to. It can be made from them at any time.
    doc: LoroDoc,
    /// Edits and seeds that count, and the last of loro's operations of each.
    known: BTreeMap<WriterId, KnownEdit>,
    /// The edits in the order in which they came to count: each after what it was made on.
    order: Vec<WriterId>,
    /// Edits whose base is not here yet.
    waiting: BTreeMap<WriterId, (Edit, usize)>,
    /// Whether it is a delta.
    marked: bool,
    /// Where there is a list, or was one.
    lists: BTreeSet<String>,
    /// Documents that end with an edit that was made on something else than what was here: the next one of
    /// that site is made there, and to go back to what it was made on takes as long as there are edits.
    beside: VecDeque<LoroDoc>,
}

#[derive(Clone)]
struct KnownEdit {
    /// None if it is a seed: that is in the edits which rest on it.
    edit: Option<Arc<Edit>>,
    last: ID,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("form", &self.form)
            .field("edits", &self.order)
            .field("waiting", &self.waiting.keys())
            .finish_non_exhaustive()
    }
}

impl Document {
    /// Nothing yet.
    pub fn new(form: DocumentForm) -> Self {
        Self {
            form,
            doc: loro_doc(),
            known: BTreeMap::new(),
            order: Vec::new(),
            waiting: BTreeMap::new(),
            marked: false,
            lists: BTreeSet::new(),
            beside: VecDeque::new(),
        }
    }

    /// Was nothing merged yet that counts?
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes in what [`Document::edit`] or [`Document::whole`] gave elsewhere. An edit whose base is not
    /// here waits, and counts once it is.
    pub fn merge(&mut self, change: &[u8]) -> Result<(), BadChange> {
        let (form, edits) = read(change)?;
        if form != self.form {
            return Err(BadChange::OtherForm { found: form, expected: self.form });
        }
        // What counts must not depend on what stands beside it, so the first error stops none.
        let mut outcome = Ok(());
        for edit in edits {
            outcome = outcome.and(edit.and_then(|edit| self.take_in(edit)));
        }
        outcome
    }

    /// What it says now, to be written. Nothing if it has no text, or no value: that is the same as no
    /// file.
    pub fn content(&self) -> Vec<u8> {
        self.kind().map_or_else(Vec::new, |kind| self.state(kind).bytes())
    }

    /// What makes [`Document::content`] into `after`; the document has it from then on. Nothing if they
    /// are the same. Where nobody edited yet, `before` is what was there, and goes along with the first
    /// edits: sites that begin with the same begin as one. Otherwise it has no meaning.
    pub fn edit(
        &mut self,
        before: &[u8],
        after: &[u8],
        writer: WriterId,
    ) -> Result<Vec<u8>, NotADocument> {
        if writer.reserved()
            || self.known.contains_key(&writer)
            || self.waiting.contains_key(&writer)
        {
            return Err(NotADocument::WriterUsed(writer));
        }
        let Some(edit) = self.edit_to(before, after, writer)? else { return Ok(Vec::new()) };
        // Only where others' edits made a delta of more parts than one edit may.
        if edit.body.places() > MOST_RUNS {
            return Err(NotADocument::TooManyMarks);
        }
        let change = write(self.form, &[&edit]);
        if change.len() > LARGEST_CHANGE {
            return Err(NotADocument::TooMuchChanged { found: change.len() });
        }
        let applied = self.take_in(edit);
        debug_assert_eq!(applied, Ok(()), "an edit fits what it was made on");
        Ok(change)
    }

    /// Every edit, as one change: for who has none of what they rest on.
    pub fn whole(&self) -> Result<Vec<u8>, NotADocument> {
        let known = self.order.iter().filter_map(|writer| self.known.get(writer)?.edit.as_deref());
        let edits: Vec<&Edit> = known.chain(self.waiting.values().map(|(edit, _)| edit)).collect();
        let change = write(self.form, &edits);
        if change.len() > LARGEST_WHOLE {
            return Err(NotADocument::TooMuchHistory { found: change.len() });
        }
        Ok(change)
    }

    /// The content if what a site holds, edited since [`Document::content`] without an operation, were
    /// merged with `changes`. It is not recorded.
    pub fn with_local(&self, found: &[u8], changes: &[&[u8]]) -> Result<Vec<u8>, BadLocal> {
        let mut copy = self.copy();
        if !self.is_empty() {
            copy.edit(&[], found, WriterId::by_hash("cheops-merge 1 local edit", found))?;
        }
        for change in changes {
            copy.merge(change)?;
        }
        if self.is_empty() {
            // Nobody edited here yet, so this is what the first edits may have been made on.
            let kind = match copy.kind() {
                Some(kind) => kind,
                None => ContentKind::of(self.form, found, found)?,
            };
            copy.plant(Content::parse(kind, found)?);
        }
        Ok(copy.content())
    }

    fn copy(&self) -> Self {
        let doc = self.doc.fork();
        marks::configure(&doc);
        Self {
            form: self.form,
            doc,
            known: self.known.clone(),
            order: self.order.clone(),
            waiting: self.waiting.clone(),
            marked: self.marked,
            lists: self.lists.clone(),
            beside: VecDeque::new(),
        }
    }

    /// The same, from its edits alone.
    fn made_again(&self) -> Self {
        let mut again = Self::new(self.form);
        let edits = self.order.iter().filter_map(|writer| self.known.get(writer)?.edit.as_deref());
        for edit in edits.chain(self.waiting.values().map(|(edit, _)| edit)) {
            // What counts here counts there, and what waits here waits there.
            let _same = again.take_in(edit.clone());
        }
        again
    }

    /// Puts in what was there before the first edit.
    fn plant(&mut self, content: Content) {
        let scratch = loro_doc();
        let planted = content.seed(&scratch).ok().flatten();
        let all = scratch.export(ExportMode::all_updates());
        if let (Some(last), Ok(bytes)) = (planted, all)
            && self.doc.import(&bytes).is_ok()
        {
            self.note_seed((content, last));
        }
    }

    /// Nothing before the first edit.
    fn kind(&self) -> Option<ContentKind> {
        match self.form {
            _ if self.is_empty() => None,
            DocumentForm::Text if self.marked => Some(ContentKind::Delta),
            DocumentForm::Text => Some(ContentKind::Text),
            DocumentForm::Json => Some(ContentKind::Json),
        }
    }

    fn state(&self, kind: ContentKind) -> Content {
        match kind {
            ContentKind::Text => Content::Text(self.doc.get_text(text::CONTAINER).to_string()),
            ContentKind::Delta => Content::Delta(MarkedText::of(&self.doc)),
            ContentKind::Json => Content::Json(Places::of(&self.doc, &self.lists)),
        }
    }

    fn edit_to(
        &self,
        before: &[u8],
        after: &[u8],
        writer: WriterId,
    ) -> Result<Option<Edit>, NotADocument> {
        let (old, kind) = match self.kind() {
            Some(kind) => (self.state(kind), kind),
            None => {
                let kind = ContentKind::of(self.form, before, after)?;
                (Content::parse(kind, before)?, kind)
            }
        };
        let new = Content::parse(kind, after)?;
        let found = old.bytes();
        if found == new.bytes() {
            return Ok(None);
        }
        let base = if self.is_empty() {
            EditBase::Seed(found)
        } else {
            EditBase::Edits(
                self.doc.oplog_frontiers().iter().map(|last| WriterId(last.peer)).collect(),
            )
        };
        Ok(Some(Edit { writer, base, body: old.body_to(&new) }))
    }

    fn take_in(&mut self, edit: Edit) -> Result<(), BadChange> {
        let writer = edit.writer;
        let had = match (self.known.get(&writer), self.waiting.get(&writer)) {
            (Some(known), _) => Some(known.edit.as_deref()),
            (None, Some((edit, _))) => Some(Some(edit)),
            (None, None) => None,
        };
        match had {
            Some(Some(same)) if *same == edit => return Ok(()),
            Some(_) => return Err(BadChange::WriterUsed(writer)),
            None => {}
        }
        if !self.rests_on_known(&edit) {
            let size = write(self.form, &[&edit]).len();
            let bytes: usize = self.waiting.values().map(|(_, size)| size).sum();
            if self.waiting.len() == MOST_WAITING || bytes + size > MOST_WAITING_BYTES {
                return Err(BadChange::TooManyWait);
            }
            self.waiting.insert(writer, (edit, size));
            return Ok(());
        }
        self.apply(edit)?;
        while let Some(next) = self.next_ready() {
            // One that does not fit counts nowhere, whether it had to wait or not.
            let _misfit = self.apply(next);
        }
        Ok(())
    }

    fn rests_on_known(&self, edit: &Edit) -> bool {
        match &edit.base {
            EditBase::Seed(_) => true,
            EditBase::Edits(writers) => {
                writers.iter().all(|writer| self.known.contains_key(writer))
            }
        }
    }

    fn next_ready(&mut self) -> Option<Edit> {
        let ready = |(edit, _): &&(Edit, usize)| self.rests_on_known(edit);
        let writer = self.waiting.values().find(ready)?.0.writer;
        Some(self.waiting.remove(&writer)?.0)
    }

    /// Makes loro's operations of an edit, at the version that it was made on.
    fn apply(&mut self, edit: Edit) -> Result<(), BadChange> {
        let writer = edit.writer;
        let misfit = |reason| BadChange::Misfit { writer, reason };
        let target = self.at(&edit.base, edit.body.kind()).map_err(misfit)?;
        let made = match edit.body.check(target.doc(&self.doc)) {
            Ok(()) => edit.body.apply(target.doc(&self.doc), writer),
            Err(reason) => {
                if let EditTarget::Beside(doc, None) = target {
                    self.keep_beside(doc);
                }
                return Err(misfit(reason));
            }
        };
        let mut seed = None;
        let last = match (made, target) {
            (Ok(Some(last)), EditTarget::Here) => {
                // Who made it knows all that is here.
                self.beside.clear();
                Ok(last)
            }
            (Ok(Some(last)), EditTarget::Beside(doc, content)) => {
                seed = content;
                let imported = self.import(&doc);
                self.keep_beside(doc);
                imported.map(|()| last)
            }
            (Ok(None), _) => return Err(misfit("it changes nothing")),
            (Err(error), _) => Err(error),
        };
        let Ok(last) = last else {
            // It was checked, so there is an error in the check, or in loro; and half of it may be done.
            *self = self.made_again();
            return Err(misfit("the library that merges refuses it"));
        };
        if let Some(seed) = seed {
            self.note_seed(seed);
        }
        match &edit.body {
            EditBody::Text(_) => {}
            EditBody::Delta(_) => self.marked = true,
            EditBody::Json(edits) => self.lists.extend(json::lists_of(edits).cloned()),
        }
        self.known.insert(writer, KnownEdit { edit: Some(Arc::new(edit)), last });
        self.order.push(writer);
        Ok(())
    }

    fn keep_beside(&mut self, doc: LoroDoc) {
        if self.beside.len() == MOST_BESIDE {
            self.beside.pop_front();
        }
        self.beside.push_back(doc);
    }

    /// Where an edit can be made again: in a document that shows what it was made on, and no more.
    fn at(&mut self, base: &EditBase, kind: ContentKind) -> Result<EditTarget, &'static str> {
        match base {
            EditBase::Seed(bytes) => {
                let doc = loro_doc();
                let mut seed = None;
                if !bytes.is_empty() {
                    let content = Content::parse(kind, bytes).ok();
                    let content = content.filter(|content| content.bytes() == *bytes);
                    let content = content.ok_or("what was there before is no such document")?;
                    let last = content.seed(&doc).map_err(|_| "what was there before is odd")?;
                    seed = last.map(|last| (content, last));
                }
                Ok(EditTarget::Beside(doc, seed))
            }
            EditBase::Edits(writers) => {
                let lasts = writers.iter().filter_map(|writer| Some(self.known.get(writer)?.last));
                let base: Frontiers = lasts.collect();
                if base == self.doc.oplog_frontiers() {
                    return Ok(EditTarget::Here);
                }
                let kept = self.beside.iter().position(|doc| doc.oplog_frontiers() == base);
                if let Some(doc) = kept.and_then(|at| self.beside.remove(at)) {
                    return Ok(EditTarget::Beside(doc, None));
                }
                // What is in a base beside what rests on it, loro leaves away by itself.
                let doc = self.doc.fork_at(&base).map_err(|_| "it rests on nothing")?;
                marks::configure(&doc);
                Ok(EditTarget::Beside(doc, None))
            }
        }
    }

    fn import(&self, other: &LoroDoc) -> Result<(), LoroError> {
        let missing = ExportMode::updates_owned(self.doc.oplog_vv());
        let bytes = other.export(missing);
        let bytes = bytes.map_err(|error| LoroError::Unknown(error.to_string().into()))?;
        self.doc.import(&bytes).map(drop)
    }

    fn note_seed(&mut self, (content, last): (Content, ID)) {
        if let Content::Json(places) = &content {
            self.lists.extend(places.lists().cloned());
        }
        self.marked |= matches!(content, Content::Delta(_));
        self.known.entry(content.seed_writer()).or_insert(KnownEdit { edit: None, last });
    }
}

enum EditTarget {
    /// The document of all edits.
    Here,
    /// Another one, with what was there before, if anything was.
    Beside(LoroDoc, Option<(Content, ID)>),
}

impl EditTarget {
    fn doc<'a>(&'a self, here: &'a LoroDoc) -> &'a LoroDoc {
        match self {
            Self::Here => here,
            Self::Beside(doc, _) => doc,
        }
    }
}

fn loro_doc() -> LoroDoc {
    let doc = LoroDoc::new();
    marks::configure(&doc);
    doc
}
