//! What the sites of a resource said of its operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ports::Ending;
use crate::model::{
    Author, Entry, EntryBody, Incarnation, OperationId, Reply, SiteId, SmallMap, Status, Vector,
};

/// What the sites said of one operation.
#[derive(Debug, Default)]
pub(super) struct Replies {
    words: SmallMap<Author, AuthorReplies>,
}

/// What one author said.
#[derive(Debug)]
struct AuthorReplies {
    latest: Arc<Entry>,
    /// The latest that tells how a run ended: what is superseded for a while keeps it.
    last_run: Option<Arc<Entry>>,
    /// Whether it succeeded the first time it ran. Never changes, so that an operation cannot turn
    /// void and back as it is run again.
    first_verdict: Option<bool>,
}

impl Replies {
    /// Takes in a reply, which is in that entry.
    pub(super) fn add(&mut self, reply: &Reply, entry: &Arc<Entry>) {
        let fresh =
            || AuthorReplies { latest: Arc::clone(entry), last_run: None, first_verdict: None };
        let words = self.words.get_or_insert_with(&reply.id.author, fresh);
        words.latest = Arc::clone(entry);
        if let Some(verdict) = verdict(&reply.status) {
            words.last_run = Some(Arc::clone(entry));
            words.first_verdict.get_or_insert(verdict);
        }
    }

    fn first_verdicts(&self) -> impl Iterator<Item = bool> {
        self.words.values().filter_map(|words| words.first_verdict)
    }

    /// The last word of a site in that incarnation of its disk; in whichever, if that is not known.
    pub(super) fn of(&self, site: &SiteId, incarnation: Option<Incarnation>) -> Option<&Reply> {
        let is_alive = |author: &Author| {
            incarnation.is_none_or(|incarnation| author.incarnation == incarnation)
        };
        let of_site =
            self.words.iter().filter(|(author, _)| author.site == *site && is_alive(author));
        let replies = of_site.filter_map(|(_, words)| reply_in(&words.latest));
        replies.max_by_key(|reply| reply.stamp)
    }

    /// The last word of an author.
    pub(super) fn by(&self, author: &Author) -> Option<&Reply> {
        self.words.get(author).and_then(|words| reply_in(&words.latest))
    }

    /// What an author said of how the operation last ended there.
    pub(super) fn last_run_by(&self, author: &Author) -> Option<&Reply> {
        self.words.get(author).and_then(|words| reply_in(words.last_run.as_ref()?))
    }

    pub(super) fn succeeded_somewhere(&self) -> bool {
        self.first_verdicts().any(|ok| ok)
    }

    pub(super) fn is_partial_error(&self) -> bool {
        self.succeeded_somewhere() && self.first_verdicts().any(|ok| !ok)
    }

    /// Whether each of these sites has said something, be it in an incarnation that is over.
    pub(super) fn are_complete(&self, sites: &BTreeSet<SiteId>) -> bool {
        sites.iter().all(|site| self.words.keys().any(|author| author.site == *site))
    }

    /// What the last words of all sites come to: what asks for attention first.
    pub(super) fn ending(&self) -> Ending {
        let sites: BTreeSet<_> = self.words.keys().map(|author| &author.site).collect();
        let words = || sites.iter().filter_map(|site| self.of(site, None));
        let any = |is: fn(&Status) -> bool| words().any(|reply| is(&reply.status));
        let failed = any(|status| *status == Status::Ko);
        let succeeded = any(|status| matches!(status, Status::Ok | Status::Partial { .. }));
        if any(|status| *status == Status::InDoubt) {
            Ending::InDoubt
        } else if failed && succeeded {
            Ending::PartialError
        } else if failed {
            Ending::Failed
        } else if any(|status| matches!(status, Status::Superseded { .. })) {
            Ending::Superseded
        } else {
            Ending::Applied
        }
    }

    /// Whether it may yet turn out to have failed at each of these sites: it did wherever it ran,
    /// and at some it has not run.
    pub(super) fn may_fail_everywhere(&self, sites: &BTreeSet<SiteId>) -> bool {
        !self.succeeded_somewhere() && !self.failed_everywhere(sites)
    }

    pub(super) fn failed_everywhere(&self, sites: &BTreeSet<SiteId>) -> bool {
        let ran = self.words.iter().filter(|(_, words)| words.first_verdict.is_some());
        let ran: BTreeSet<_> = ran.map(|(author, _)| &author.site).collect();
        !self.succeeded_somewhere() && sites.iter().all(|site| ran.contains(site))
    }
}

/// What this site has said of the operations it knows.
#[derive(Debug, Default)]
pub(super) struct OwnReplies {
    pub(super) none_yet: BTreeSet<OperationId>,
    pub(super) ran: BTreeSet<OperationId>,
    pub(super) superseded: BTreeSet<OperationId>,
}

impl OwnReplies {
    pub(super) fn said(&mut self, reply: &Reply) {
        let id = &reply.operation;
        if self.none_yet.remove(id) && self.none_yet.is_empty() {
            // An empty set keeps the room it once took.
            self.none_yet = BTreeSet::new();
        }
        let superseded = matches!(reply.status, Status::Superseded { .. });
        let (now, before) = if superseded {
            (&mut self.superseded, &mut self.ran)
        } else {
            (&mut self.ran, &mut self.superseded)
        };
        before.remove(id);
        now.insert(id.clone());
    }

    pub(super) fn forget(&mut self, upto: &Vector) {
        for set in [&mut self.none_yet, &mut self.ran, &mut self.superseded] {
            set.retain(|id| !upto.includes(&id.0));
        }
    }
}

fn reply_in(entry: &Entry) -> Option<&Reply> {
    match &entry.body {
        EntryBody::Reply(reply) => Some(reply),
        EntryBody::Operation(_) => None,
    }
}

pub(super) fn verdict(status: &Status) -> Option<bool> {
    match status {
        Status::Ok | Status::Partial { .. } => Some(true),
        Status::Ko => Some(false),
        Status::Superseded { .. } | Status::InDoubt => None,
    }
}
