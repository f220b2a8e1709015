//! Where a resource lives, and how that changes: sites come, go, and are gone for good.
//!
//! The sites that hold a resource follow from the entries that say so (see [`HolderSet`]), so all who know
//! the same say the same. A site that comes is told everything from then on, as one that lost its disk is.
//! A site that was removed runs nothing any more; it goes on being kept in step until all holders know all
//! that it knew, and then says so: that closes its part. Who has heard that does without it. What is
//! forgotten, is forgotten only when all who are left know who left.
//!
//! What a site wrote before it knew that it was removed counts. It keeps what it knew and its application
//! what it holds, so that a site which comes back goes on from where it was.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::Engine;
use super::context::Turn;
use super::peer::Peer;
use super::ports::{Effect, Notice, Update};
use super::resource::Resource;
use super::sync::ask_next;
use super::timers::Timer;
use crate::model::{
    Author, EntryBody, EntryId, Extension, HolderSet, HoldersAsked, HoldingChange, OperationId,
    Reply, ResourceId, SiteId, Stamp, Status, Vector,
};

/// Why the sites of a resource cannot be changed so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMovable {
    /// Nobody here knows it.
    #[error("resource `{0}` is not known here")]
    Unknown(ResourceId),
    /// It is for those that hold it to say.
    #[error("resource `{resource}` is not held at this site; ask at {}", names(.sites))]
    NotHeldHere {
        /// The resource.
        resource: ResourceId,
        /// Where it lives.
        sites: BTreeSet<SiteId>,
    },
    /// Nothing is asked for.
    #[error("name the sites that are to hold `{0}`, or to hold it no more")]
    Nothing(ResourceId),
    /// It holds it.
    #[error("site `{0}` holds it already")]
    HoldsIt(SiteId),
    /// It does not.
    #[error("site `{0}` does not hold it")]
    HoldsItNot(SiteId),
    /// A site that no one has heard of.
    #[error("site `{0}` is not a site of this mesh")]
    UnknownSite(SiteId),
    /// It is gone for good.
    #[error("site `{0}` was given up for good: a site that takes its place needs another name")]
    GivenUp(SiteId),
    /// Somebody has to hold it.
    #[error("one site at least has to hold it: extend it first, or name another site to stay")]
    NobodyLeft,
    /// What changes it goes beside a reply, and there is none.
    #[error("this site has not said yet what became of any operation on it: try again when it has")]
    NothingSaid,
}

fn names(sites: &BTreeSet<SiteId>) -> String {
    sites.iter().map(|site| format!("`{site}`")).collect::<Vec<_>>().join(", ")
}

impl Engine {
    /// Whether the sites of a resource can be changed so, here; and where it would live then.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn can_change_holders(
        &self,
        id: &ResourceId,
        asked: &HoldersAsked,
    ) -> Result<BTreeSet<SiteId>, NotMovable> {
        let known = self.resources.get(id).filter(|known| !known.holders.is_empty());
        let resource = known.ok_or_else(|| NotMovable::Unknown(id.clone()))?;
        let sites = resource.holders.clone();
        if !sites.contains(&self.me().site) {
            return Err(NotMovable::NotHeldHere { resource: id.clone(), sites });
        }
        if asked.add.is_empty() && asked.remove.is_empty() {
            return Err(NotMovable::Nothing(id.clone()));
        }
        let settings = &self.context.settings;
        for site in &asked.add {
            if sites.contains(site) {
                return Err(NotMovable::HoldsIt(site.clone()));
            }
            if resource.is_given_up(site) || self.context.removed.contains(site) {
                return Err(NotMovable::GivenUp(site.clone()));
            }
            if *site != settings.me.site && !settings.peers.contains(site) {
                return Err(NotMovable::UnknownSite(site.clone()));
            }
        }
        if let Some(site) = asked.remove.iter().find(|site| !sites.contains(*site)) {
            return Err(NotMovable::HoldsItNot(site.clone()));
        }
        let then: BTreeSet<SiteId> =
            sites.union(&asked.add).filter(|site| !asked.remove.contains(*site)).cloned().collect();
        if then.is_empty() {
            return Err(NotMovable::NobodyLeft);
        }
        match resource.carrier(self.me()) {
            Some(_) => Ok(then),
            None => Err(NotMovable::NothingSaid),
        }
    }

    /// The sites that were removed from a resource and have not closed their part yet.
    pub fn leaving(&self, id: &ResourceId) -> BTreeSet<SiteId> {
        self.resources.get(id).map(|resource| resource.leaving(&self.me().site)).unwrap_or_default()
    }
}

impl Resource {
    fn said_of_holders(&self) -> Option<&HolderSet> {
        self.holder_set.as_deref()
    }

    /// Whether that site holds it, or did once.
    pub(super) fn ever_held(&self, site: &SiteId) -> bool {
        match self.said_of_holders() {
            Some(said) => said.ever_held(site),
            None => self.holders.contains(site),
        }
    }

    pub(super) fn is_given_up(&self, site: &SiteId) -> bool {
        self.said_of_holders().is_some_and(|said| said.given_up(site).is_some())
    }

    /// Whether this site is to hold it no more, as far as it knows.
    pub(super) fn is_leaving(&self, me: &SiteId) -> bool {
        !self.holders.contains(me) && self.ever_held(me)
    }

    /// Whether that site has closed its part, so that nobody waits for it. In another incarnation of its
    /// disk it may not know that it has.
    fn has_left(&self, site: &SiteId) -> bool {
        let Some(said) = self.said_of_holders() else { return false };
        let visits = self.visitors.get(site);
        let closed = |id: &EntryId| visits.is_none_or(|it| *it == id.author.incarnation);
        said.given_up(site).is_some() || said.closings(site).any(closed)
    }

    /// Whether that site is kept in step: it holds it, or has not closed its part.
    fn is_member(&self, site: &SiteId) -> bool {
        self.holders.contains(site) || self.ever_held(site) && !self.has_left(site)
    }

    fn members(&self) -> BTreeSet<SiteId> {
        match self.said_of_holders() {
            Some(said) => said.ever().filter(|site| self.is_member(site)).cloned().collect(),
            None => self.holders.clone(),
        }
    }

    /// The sites that were removed and have not closed their part, this one among them.
    pub(super) fn leaving(&self, me: &SiteId) -> BTreeSet<SiteId> {
        let mut all = self.members();
        all.retain(|site| !self.holders.contains(site));
        if all.contains(me) && self.confirmed_its_leaving(me) {
            all.remove(me);
        }
        all
    }

    /// The sites whose word an operation waits for: those that hold it and held it before. Who came since
    /// gets what came of it.
    pub(super) fn judges_of(&self, operation: &OperationId) -> Cow<'_, BTreeSet<SiteId>> {
        let then = self.said_of_holders().and_then(|said| {
            let operation = self.operation(operation)?;
            Some(said.before(operation.stamp))
        });
        then.map_or(Cow::Borrowed(&self.holders), Cow::Owned)
    }

    /// Whether an operation failed wherever it was to run.
    pub(super) fn failed_everywhere(&self, operation: &OperationId) -> bool {
        let replies = self.replies.get(operation);
        replies.is_some_and(|replies| replies.failed_everywhere(&self.judges_of(operation)))
    }

    /// Works out anew who holds it. Says who did before.
    pub(super) fn work_out_holders(&mut self, turn: &mut Turn<'_>) -> BTreeSet<SiteId> {
        let members = self.members();
        let before = self.set_holders();
        self.share_with_members(&members, turn);
        before
    }

    /// The same before anything else is looked at anew.
    pub(super) fn set_holders(&mut self) -> BTreeSet<SiteId> {
        let declared = &self.declared;
        self.holder_set = (!declared.changes.is_empty())
            .then(|| Box::new(HolderSet::of(&declared.sites, &declared.changes)));
        let holders = match self.said_of_holders() {
            Some(said) => said.holders(),
            None => declared.sites.clone(),
        };
        std::mem::replace(&mut self.holders, holders)
    }

    /// Takes in who is to be kept in step from now on. Who is not any more is forgotten when all is known that
    /// there is to know: see [`Resource::keep_members_only`].
    fn share_with_members(&mut self, before: &BTreeSet<SiteId>, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.site.clone();
        let now = self.members();
        for site in now.difference(before).filter(|site| **site != me) {
            self.peers.get_or_insert_with(site, Peer::default);
            let context = &mut *turn.context;
            let now_ms = turn.now.mono_ms;
            let (settings, timers) = (&context.settings, &mut context.timers);
            if context.links.share(site, settings, timers, now_ms) {
                turn.effect(Effect::Shares(site.clone()));
            }
        }
        for site in before.difference(&now).filter(|site| **site != me) {
            turn.context.links.unshare(site);
        }
    }

    /// Forgets what sites know that nobody waits for.
    pub(super) fn keep_members_only(&mut self, turn: &mut Turn<'_>) {
        if self.holders.is_empty() {
            return;
        }
        let strangers: Vec<SiteId> =
            self.peers.keys().filter(|site| !self.is_member(site)).cloned().collect();
        for site in strangers {
            self.peers.remove(&site);
            if let Some(link) = turn.context.links.get_mut(&site) {
                link.behind.remove(&self.id);
                if link.asking.remove(&self.id) {
                    ask_next(&site, Timer::AskIfForgotten, turn);
                }
            }
        }
    }

    /// Somebody said something of who holds it.
    pub(super) fn take_holding_change(
        &mut self,
        change: HoldingChange,
        id: &EntryId,
        stamp: Stamp,
        turn: &mut Turn<'_>,
    ) {
        turn.context.clock.observe(stamp);
        self.declared.changes.insert(id.clone(), (stamp, change));
        let open = self.open_here(&turn.context.settings.me.site);
        let before = self.work_out_holders(turn);
        if before != self.holders {
            self.resolve_anew(self.resolution.rules().clone());
            self.holders_changed(&before, open, turn);
        }
    }

    /// Operations that were submitted here and that some site has not replied to.
    fn open_here(&self, me: &SiteId) -> Vec<OperationId> {
        let own = self.replies.iter().filter(|(id, _)| id.site() == me);
        let open = own.filter(|(id, replies)| !replies.are_complete(&self.judges_of(id)));
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Looks anew at all that waits for sites, since others hold it than before.
    fn holders_changed(
        &mut self,
        before: &BTreeSet<SiteId>,
        open: Vec<OperationId>,
        turn: &mut Turn<'_>,
    ) {
        let me = turn.context.settings.me.clone();
        if before.contains(&me.site) && !self.holders.contains(&me.site) {
            // What is forgotten from now on, this site need not know of.
            self.peers.values_mut().for_each(|peer| peer.was_in_step = false);
        }
        self.see_what_is_answered(&me);
        for id in open {
            let replies = self.replies.get(&id);
            if let Some(replies) = replies.filter(|it| it.are_complete(&self.judges_of(&id))) {
                turn.notify(Notice::Settled(self.id.clone(), id, replies.ending()));
            }
        }
        let gone: Vec<SiteId> = before.difference(&self.holders).cloned().collect();
        let operations: Vec<OperationId> =
            self.resolution.operations().iter().map(|it| it.id.clone()).collect();
        for operation in operations.iter().filter(|_| !gone.is_empty()) {
            let context = &mut *turn.context;
            let answers = context.waiting.not_waited_for(operation, &gone, &mut context.timers);
            answers.into_iter().for_each(|answer| turn.effect(answer));
        }
        self.publish_id_map(turn);
        self.runs.heard_otherwise();
    }

    /// Whether an update comes from a site whose word is not waited for, and names it as one that was added.
    pub(super) fn says_it_adds(update: &Update, site: &SiteId) -> bool {
        let by_base = update.base.iter().filter_map(|base| base.declared.as_ref());
        let said = by_base.flat_map(|declared| declared.changes.values());
        let mut said = said.map(|(_, change)| change.clone());
        let mut by_entries = update.entries.iter().filter_map(|entry| entry.changes_holders());
        said.any(|it| it.added() == Some(site)) || by_entries.any(|it| it.added() == Some(site))
    }

    /// A site that nobody waits for talks of the resource: in another incarnation of its disk, it may not
    /// know yet that it is to hold it no more.
    pub(super) fn visited_by(&mut self, site: &SiteId, update: &Update, turn: &mut Turn<'_>) {
        if self.holders.contains(site) || !self.ever_held(site) {
            return;
        }
        let members = self.members();
        self.visitors.insert(site.clone(), update.incarnation);
        self.share_with_members(&members, turn);
    }

    /// Whether all holders know that this site has closed its part.
    fn confirmed_its_leaving(&self, me: &SiteId) -> bool {
        let Some(said) = self.said_of_holders() else { return false };
        said.closings(me).any(|id| {
            let knows_it = |peer: &Peer| peer.knows.includes(id);
            self.holders.iter().all(|site| self.peers.get(site).is_some_and(knows_it))
        })
    }

    /// Closes this site's part, once all who hold it know all that this site knows.
    pub(super) fn leave_if_possible(&mut self, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.clone();
        let is_busy = self.runs.current.is_some() || self.reads.under_way.is_some();
        if !self.is_leaving(&me.site) || is_busy || self.has_own_edits(&me) {
            return;
        }
        let Some(said) = self.said_of_holders() else { return };
        let has_closed = said.closings(&me.site).any(|id| id.author == me);
        let is_confirmed =
            |site: &SiteId| self.peers.get(site).is_some_and(|peer| peer.knows.covers(&self.knows));
        // Who was shown to lie says nothing any more, and what it confirmed would mean nothing.
        let is_heard = |site: &&SiteId| turn.context.liars.keys_of(site).is_empty();
        let mut heard = self.holders.iter().filter(is_heard).peekable();
        let all_confirmed = heard.peek().is_some() && heard.all(is_confirmed);
        if has_closed || said.given_up(&me.site).is_some() || !all_confirmed {
            return;
        }
        let change = HoldingChange::Leaves { seen: said.additions(&me.site) };
        if let Some(carrier) = self.carrier(&me).or_else(|| self.carrier_of_nothing(&me)) {
            self.say_holding(&change, carrier, turn);
        }
    }

    /// Whether a site that leaves still runs what it knows: only what nobody else can tell, or if it has said
    /// nothing at all so far.
    pub(super) fn goes_on_running(&self, me: &Author) -> bool {
        !self.is_leaving(&me.site) || self.has_own_edits(me) || self.carrier(me).is_none()
    }

    /// Edits that were submitted here and that others merge by what this site makes of them.
    fn has_own_edits(&self, me: &Author) -> bool {
        let is_own = |id: &OperationId| id.0.author == *me;
        self.merged_as().is_some() && self.own.none_yet.iter().any(is_own)
    }

    /// A reply that says nothing: to an operation that does not count.
    fn carrier_of_nothing(&self, me: &Author) -> Option<Reply> {
        let mut all = self.resolution.operations().iter().map(|it| &it.id);
        let operation = all.find(|id| !self.resolution.counts(id))?.clone();
        let status = Status::Superseded { by: operation.clone() };
        let id = EntryId { author: me.clone(), n: 0 };
        Some(Reply { id, stamp: Stamp::default(), operation, status, outcome: None })
    }

    fn say_holding(&mut self, change: &HoldingChange, carrier: Reply, turn: &mut Turn<'_>) {
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, ..carrier };
        self.write(EntryBody::Reply(reply), vec![Extension::holding(change)], turn);
    }

    /// Changes the sites that hold it, as far as it can still be done.
    pub(super) fn change_holders(&mut self, asked: &HoldersAsked, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.clone();
        if !self.holders.contains(&me.site) {
            return;
        }
        let Some(carrier) = self.carrier(&me) else { return };
        for site in &asked.add {
            if !self.holders.contains(site) && !self.is_given_up(site) {
                let change = HoldingChange::Adds(site.clone());
                self.say_holding(&change, carrier.clone(), turn);
            }
        }
        for site in &asked.remove {
            if self.holders.contains(site) && self.holders.len() > 1 {
                let seen =
                    self.said_of_holders().map(|said| said.additions(site)).unwrap_or_default();
                let change = HoldingChange::Removes { site: site.clone(), seen };
                self.say_holding(&change, carrier.clone(), turn);
            }
        }
    }

    /// Says of sites that are gone for good that nobody waits for them.
    pub(super) fn give_up_removed(&mut self, turn: &mut Turn<'_>) {
        let me = turn.context.settings.me.clone();
        if turn.context.removed.is_empty() || !self.holders.contains(&me.site) {
            return;
        }
        let here = turn.context.removed.iter().filter(|site| **site != me.site);
        let here: Vec<SiteId> = here.filter(|site| self.is_member(site)).cloned().collect();
        for site in here {
            let Some(carrier) = self.carrier(&me) else { return };
            self.say_holding(&HoldingChange::GivesUp(site), carrier, turn);
        }
    }

    /// Whether all who are left know who left: what those do not know cannot come up any more.
    pub(super) fn all_know_who_left(&self) -> bool {
        let Some(said) = self.said_of_holders() else { return true };
        let is_known = |id: &EntryId| {
            self.base.includes(id) || self.peers.values().all(|peer| peer.knows.includes(id))
        };
        let mut left = said.ever().filter(|site| !self.is_member(site));
        left.all(|site| said.given_up(site).into_iter().chain(said.closings(site)).any(is_known))
    }

    /// The last number that this author wrote when it left: of what comes before, it may be told that all
    /// have forgotten it.
    pub(super) fn wrote_when_it_left(&self, me: &Author) -> u64 {
        let changes = self.declared.changes.iter().filter(|(id, _)| id.author == *me);
        let left = changes.filter(|(_, (_, it))| matches!(it, HoldingChange::Leaves { .. }));
        left.map(|(id, _)| id.n).max().unwrap_or(0)
    }

    /// What of what was said of its holders is forgotten with that.
    pub(super) fn changes_upto(&self, upto: &Vector) -> crate::model::HoldingChanges {
        let changes = self.declared.changes.iter().filter(|(id, _)| upto.includes(id));
        changes.map(|(id, said)| (id.clone(), said.clone())).collect()
    }

    /// Whether a site knows all that was said of who holds it.
    pub(super) fn knows_changes(&self, knows: &Vector) -> bool {
        self.declared.changes.keys().all(|id| knows.includes(id))
    }
}
