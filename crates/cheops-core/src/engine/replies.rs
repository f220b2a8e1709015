//! What the sites of a resource said of its operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ports::Ending;
use crate::model::{Author, Body, Entry, Few, OperationId, Reply, SiteId, Status, Vector};

/// What the sites said of one operation.
#[derive(Debug, Default)]
pub(super) struct Replies {
    words: Few<Author, Words>,
}

/// What one author said.
#[derive(Debug)]
struct Words {
    latest: Arc<Entry>,
    /// Whether it succeeded the first time it ran. Never changes, so that an operation cannot turn
    /// void and back as it is run again.
    first_verdict: Option<bool>,
}

impl Replies {
    /// Takes in a reply, which is in that entry.
    pub(super) fn add(&mut self, reply: &Reply, entry: &Arc<Entry>) {
        let fresh = || Words { latest: Arc::clone(entry), first_verdict: None };
        let words = self.words.get_or_insert_with(&reply.id.author, fresh);
        words.latest = Arc::clone(entry);
        words.first_verdict = words.first_verdict.or(verdict(&reply.status));
    }

    fn first_verdicts(&self) -> impl Iterator<Item = bool> {
        self.words.values().filter_map(|words| words.first_verdict)
    }

    /// The last word of a site, in whichever life of its disk it was said.
    pub(super) fn of(&self, site: &SiteId) -> Option<&Reply> {
        let of_site = self.words.iter().filter(|(author, _)| author.site == *site);
        let replies = of_site.filter_map(|(_, words)| reply_in(&words.latest));
        replies.max_by_key(|reply| reply.stamp)
    }

    /// The last word of an author.
    pub(super) fn by(&self, author: &Author) -> Option<&Reply> {
        self.words.get(author).and_then(|words| reply_in(&words.latest))
    }

    pub(super) fn succeeded_somewhere(&self) -> bool {
        self.first_verdicts().any(|ok| ok)
    }

    pub(super) fn is_partial_error(&self) -> bool {
        self.succeeded_somewhere() && self.first_verdicts().any(|ok| !ok)
    }

    /// Whether each of these sites has said something.
    pub(super) fn are_complete(&self, sites: &BTreeSet<SiteId>) -> bool {
        sites.iter().all(|site| self.words.keys().any(|author| author.site == *site))
    }

    /// Whether it came to its end at each of these sites, well or not.
    pub(super) fn ran_everywhere(&self, sites: &BTreeSet<SiteId>) -> bool {
        let ran =
            |site: &SiteId| self.of(site).is_some_and(|reply| verdict(&reply.status).is_some());
        sites.iter().all(ran)
    }

    /// What the last words of all sites come to: what asks for attention first.
    pub(super) fn ending(&self) -> Ending {
        let words = || self.words.values().filter_map(|words| reply_in(&words.latest));
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
        Body::Reply(reply) => Some(reply),
        Body::Operation(_) => None,
    }
}

pub(super) fn verdict(status: &Status) -> Option<bool> {
    match status {
        Status::Ok | Status::Partial { .. } => Some(true),
        Status::Ko => Some(false),
        Status::Superseded { .. } | Status::InDoubt => None,
    }
}
