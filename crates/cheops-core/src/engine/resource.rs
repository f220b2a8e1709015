//! One resource as one site knows it: its entries, what they come to, and who knows what.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::context::{Context, Turn};
use super::durable::Record;
use super::early::EarlyEntries;
use super::edits::Edits;
use super::files::Files;
use super::incarnations::LastIncarnations;
use super::lies::is_signed_by_author;
use super::peer::Peer;
use super::ports::{Base, Declared, Given, Malformed, Notice, keep_later};
use super::programs::Programs;
use super::replies::{OwnReplies, Replies, verdict};
use super::run::Runs;
use super::standing::{Reported, went_well, went_wrong};
use super::undo::LastUndoing;
use super::verify::StateReads;
use crate::config::Config;
use crate::model::{
    Author, Chain, Declaration, Entry, EntryBody, EntryId, Evidence, Extension, IdMap, KeptState,
    Operation, OperationId, OperationType, Outcome, Reply, ResourceId, SharedMap, SignedBy, SiteId,
    SmallMap, Stamp, StateFloor, Status, Vector,
};
use crate::plan::RunEffect;
use crate::resolve::{ListChange, Resolution, Rules, Why};

#[derive(Debug)]
pub(super) struct Resource {
    pub(super) id: ResourceId,
    pub(super) declared: Declared,
    /// What requests are known by, as it was last said.
    pub(super) published: Option<Arc<IdMap>>,
    /// What was pruned.
    pub(super) base: Vector,
    /// The last config that an operation gave which was pruned.
    base_config: Option<Given>,
    /// The hashes of the last entries that were pruned, and the last place that one of them had.
    base_chain: Chain,
    /// The sites that operations declared which were pruned.
    pub(super) base_sites: BTreeSet<SiteId>,
    base_order: Option<Stamp>,
    /// Everything known, pruned or not.
    pub(super) knows: Vector,
    /// The same without what merely says again, for example what was read: who lacks only that is not
    /// behind in anything.
    pub(super) news: Vector,
    /// The hashes of the last entries known.
    pub(super) chain: Chain,
    pub(super) resolution: Resolution,
    pub(super) replies: BTreeMap<OperationId, Replies>,
    pub(super) peers: SmallMap<SiteId, Peer>,
    pub(super) runs: Runs,
    /// When what was heard is to be confirmed to the others.
    pub(super) confirm_ms: Option<u64>,
    pub(super) files: Files,
    pub(super) own: OwnReplies,
    /// Operations of which a site has not said what became of them, site by site.
    unanswered: SmallMap<SiteId, BTreeSet<OperationId>>,
    /// Operations that went wrong at some site, by what it last said.
    pub(super) troubled: BTreeSet<OperationId>,
    /// What was replaced by an operation that went well somewhere: whatever failed of it matters no more.
    pub(super) set_right: Vector,
    /// What sites said of their own applications.
    pub(super) reports: SmallMap<Author, Reported>,
    pub(super) reads: StateReads,
    /// The states that sites keep in the place of history, as they last said.
    pub(super) kept: SmallMap<Author, Arc<KeptState>>,
    /// Whether that may have come to something.
    pub(super) kept_is_news: bool,
    /// Operations that failed and are to be let be.
    pub(super) dismissed: BTreeSet<OperationId>,
    /// What was last said of operations that somebody took out.
    pub(super) undoings: BTreeMap<OperationId, LastUndoing>,
    pub(super) edits: Edits,
    pub(super) programs: Programs,
    entries: SmallMap<Author, SharedMap<u64, HeldEntry>>,
    arrivals: u64,
    pub(super) early: EarlyEntries,
    /// Authors that were shown to lie, and the last number of theirs that counts here.
    pub(super) cuts: BTreeMap<Author, u64>,
    pub(super) last_incarnations: LastIncarnations,
    /// Whether it is what another site says first of the resource that is being taken in.
    pub(super) hears_first: bool,
    /// Since when there is a base that was not believed yet.
    pub(super) offered_ms: Option<u64>,
    /// Who was shown how often what is known here under a name, since it knows something else.
    pub(super) shown: BTreeMap<(SiteId, EntryId), u8>,
}

/// An entry with its place in the order of arrival, which is causal.
#[derive(Debug, Clone)]
pub(super) struct HeldEntry {
    arrival: u64,
    pub(super) entry: Arc<Entry>,
}

/// What became of an entry that was handed in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryAcceptance {
    New,
    Known,
    /// Its author wrote something else in its place, and this is what shows it.
    Lie(Box<Evidence>),
    /// Its author was shown to lie, and nothing counts from there on; or it is of too many incarnations.
    Disowned,
    /// Something it rests on is missing.
    NotYet,
    Malformed(Malformed),
}

/// More than an author can ever write; a number beyond it is a mistake or an attack.
const MOST_ENTRIES: u64 = u64::MAX / 2;

/// The numbers after this one, whatever a peer said it is.
fn after(n: u64) -> (Bound<u64>, Bound<u64>) {
    (Bound::Excluded(n), Bound::Unbounded)
}

/// The sites that an operation makes its resource on, if it makes it. It may be made by several that
/// could not hear each other, and lives where any of them said; one that rests on others changes
/// nothing of that, whatever it says, so that it does not matter what was heard first.
fn made_at(operation: &Operation) -> Option<&BTreeSet<SiteId>> {
    let declares = operation.declares.as_ref().filter(|_| operation.parents.is_empty());
    declares.map(|declares| &declares.sites)
}

impl Resource {
    pub(super) fn new(id: ResourceId, rules: Rules) -> Self {
        Self {
            id,
            declared: Declared::default(),
            published: None,
            base: Vector::default(),
            base_config: None,
            base_chain: Chain::default(),
            base_sites: BTreeSet::new(),
            base_order: None,
            knows: Vector::default(),
            news: Vector::default(),
            chain: Chain::default(),
            resolution: Resolution::new(rules),
            replies: BTreeMap::new(),
            peers: SmallMap::default(),
            runs: Runs::default(),
            confirm_ms: None,
            files: Files::default(),
            own: OwnReplies::default(),
            unanswered: SmallMap::default(),
            troubled: BTreeSet::new(),
            set_right: Vector::default(),
            reports: SmallMap::default(),
            reads: StateReads::default(),
            kept: SmallMap::default(),
            kept_is_news: false,
            dismissed: BTreeSet::new(),
            undoings: BTreeMap::new(),
            edits: Edits::default(),
            programs: Programs::default(),
            entries: SmallMap::default(),
            arrivals: 0,
            early: EarlyEntries::default(),
            cuts: BTreeMap::new(),
            last_incarnations: LastIncarnations::default(),
            hears_first: false,
            offered_ms: None,
            shown: BTreeMap::new(),
        }
    }

    pub(super) fn config(&self) -> Arc<Config> {
        self.resolution.config().clone()
    }

    /// Whether it was ended, and nobody has brought it back since.
    pub(super) fn is_deleted(&self) -> bool {
        self.resolution.last().is_some_and(|operation| operation.kind.is_deletion())
    }

    /// When something was last written on it, by its writer's clock.
    pub(super) fn changed_ms(&self) -> u64 {
        let last = self.entries.values().filter_map(|held| held.last_key_value());
        last.map(|(_, held)| held.entry.stamp().wall_ms).max().unwrap_or(0)
    }

    /// Writes an operation of this site's own.
    pub(super) fn write_operation(
        &mut self,
        operation: Operation,
        inline_body: Option<&[u8]>,
        turn: &mut Turn<'_>,
    ) {
        let beside = inline_body.map(Extension::inline_body).into_iter().collect();
        self.write(EntryBody::Operation(operation), beside, turn);
    }

    /// Writes this site's reply to an operation, unless it has said so already.
    pub(super) fn write_reply(
        &mut self,
        operation: &OperationId,
        status: Status,
        outcome: Option<Outcome>,
        turn: &mut Turn<'_>,
    ) {
        self.write_reply_with(operation, status, outcome, Vec::new(), turn);
    }

    /// The same, with something beside it.
    pub(super) fn write_reply_with(
        &mut self,
        operation: &OperationId,
        status: Status,
        outcome: Option<Outcome>,
        beside: Vec<Extension>,
        turn: &mut Turn<'_>,
    ) {
        let me = &turn.context.settings.me;
        let said = self.replies.get(operation).and_then(|replies| replies.by(me));
        if beside.is_empty() && said.is_some_and(|reply| reply.status == status) {
            return; // Nothing new.
        }
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, operation: operation.clone(), status, outcome };
        let mut beside = beside;
        beside.extend(self.unsaid_verdicts());
        self.write(EntryBody::Reply(reply), beside, turn);
    }

    pub(super) fn write(&mut self, body: EntryBody, beside: Vec<Extension>, turn: &mut Turn<'_>) {
        let me = &turn.context.settings.me;
        let after = (self.knows.last_of(me), self.chain.of(me).unwrap_or_default());
        let entry = Arc::new(Entry::new(&self.id, after, body, beside));
        let entry = turn.context.rulebook.share(entry);
        self.insert(&entry, turn);
    }

    /// Takes in an entry heard from another site, or lets it wait for what it rests on.
    pub(super) fn accept(&mut self, entry: Arc<Entry>, from: &SiteId, turn: &mut Turn<'_>) {
        match self.judge(&entry, turn.context) {
            EntryAcceptance::New => self.insert_heard(entry, turn),
            EntryAcceptance::Known => {}
            EntryAcceptance::Lie(evidence) => self.found_lie(*evidence, turn),
            EntryAcceptance::Disowned => {
                self.note_too_many(&entry.id().author, turn);
                self.show_why_disowned(&entry.id().author, from, turn);
            }
            EntryAcceptance::NotYet => self.let_wait(entry, from, turn.context),
            // Who passes it on may know of another creation that names its author, which is on its way.
            EntryAcceptance::Malformed(Malformed::NotShared) if entry.id().author.site != *from => {
                self.let_wait(entry, from, turn.context);
            }
            EntryAcceptance::Malformed(what) => turn.notify(Notice::Malformed(from.clone(), what)),
        }
    }

    /// Only what was judged is made ready to be resolved by: a config that nobody checked may be of
    /// any size.
    pub(super) fn insert_heard(&mut self, entry: Arc<Entry>, turn: &mut Turn<'_>) {
        let entry = turn.context.rulebook.share(self.placed(entry));
        self.insert(&entry, turn);
    }

    pub(super) fn judge(&self, entry: &Entry, context: &Context) -> EntryAcceptance {
        let id = entry.id();
        if self.is_disowned(id) {
            return EntryAcceptance::Disowned;
        }
        if let Some(evidence) = self.lie_in(entry) {
            return EntryAcceptance::Lie(Box::new(evidence));
        }
        if self.knows.includes(id) {
            return EntryAcceptance::Known;
        }
        if id.n <= entry.after || id.n > MOST_ENTRIES {
            return EntryAcceptance::Malformed(Malformed::NumberNotAfter);
        }
        if entry.check_limits().is_err() {
            return EntryAcceptance::Malformed(Malformed::BeyondLimits);
        }
        if !entry.claimed().is_claimable() {
            return EntryAcceptance::Malformed(Malformed::NoSuchTime);
        }
        let is_known =
            |needed: &OperationId| self.knows.includes(&needed.0) || self.is_disowned(&needed.0);
        let last = self.knows.last_of(&id.author);
        if last < entry.after || !entry.needs().iter().all(is_known) {
            return EntryAcceptance::NotYet;
        }
        if last > entry.after {
            // It was written by who did not know the last one, which is not held any more.
            return EntryAcceptance::Malformed(Malformed::NumberNotAfter);
        }
        if !self.may_be_vouched_for(entry, context) {
            return EntryAcceptance::Malformed(Malformed::NotItsAuthors);
        }
        match &entry.body {
            EntryBody::Operation(operation) if !self.is_spoken_of(operation) => {
                EntryAcceptance::Malformed(Malformed::WrongResource)
            }
            EntryBody::Operation(operation) if !Self::may_declare(operation) => {
                EntryAcceptance::Malformed(Malformed::BeyondLimits)
            }
            _ if !self.is_of_a_holder(entry) => EntryAcceptance::Malformed(Malformed::NotShared),
            _ => EntryAcceptance::New,
        }
    }

    /// Entries from before there were signatures are taken on another site's word: of incarnations
    /// that began before there were any, not in the name of this one, which knows what it wrote,
    /// nor after one that their author did sign.
    fn may_be_vouched_for(&self, entry: &Entry, context: &Context) -> bool {
        let Some(by @ SignedBy::Voucher(voucher)) = entry.proof().map(|proof| &proof.by) else {
            return true;
        };
        let (author, me) = (&entry.id().author, &context.settings.me);
        // Its author's own word, or this site's; an incarnation that this site itself remembers, or that
        // wrote here before; or, in what it hears first of a resource, any.
        let is_remembered = by.is_own_word_of(author)
            || *voucher == me.site
            || context.old_incarnations.knows(author)
            || self.knows.last_of(author) > 0
            || self.hears_first;
        if !is_remembered || !context.old_incarnations.may_have_written(entry.id()) {
            return false;
        }
        // Nobody has written more than it says itself.
        let is_claimed = |peer: &Peer| {
            peer.incarnation != Some(author.incarnation)
                || entry.id().n <= peer.knows.last_of(author)
        };
        let last = self.held_of(author).and_then(|held| held.last_key_value());
        author.incarnation.is_from_before_signatures()
            && self.peers.get(&author.site).is_none_or(is_claimed)
            && author != me
            && last.is_none_or(|(_, held)| !is_signed_by_author(&held.entry))
    }

    /// Whether an operation is about this resource, also by what it says of a service's.
    pub(super) fn is_spoken_of(&self, operation: &Operation) -> bool {
        operation.resource == self.id
            && operation.service_ref().is_none_or(|(service, it)| it.is_of(service, &self.id))
    }

    /// Whether it says where the resource lives as a user may: its author is among those.
    fn may_declare(operation: &Operation) -> bool {
        let declares = operation.declares.as_ref();
        declares.is_none_or(|declares| declares.sites.contains(operation.id.site()))
    }

    /// Only sites that hold a resource write on it.
    fn is_of_a_holder(&self, entry: &Entry) -> bool {
        let site = &entry.id().author.site;
        let made = match &entry.body {
            EntryBody::Operation(operation) => made_at(operation),
            EntryBody::Reply(_) => None,
        };
        self.declared.sites.is_empty()
            || self.declared.sites.contains(site)
            || made.is_some_and(|sites| sites.contains(site))
    }

    pub(super) fn held_of(&self, author: &Author) -> Option<&SharedMap<u64, HeldEntry>> {
        self.entries.get(author)
    }

    /// All that sites replied, as far as it is held.
    pub(super) fn replies_held(&self) -> impl Iterator<Item = &Reply> {
        let entries =
            self.entries.values().flat_map(SharedMap::values).map(|held| &held.entry.body);
        entries.filter_map(|body| match body {
            EntryBody::Reply(reply) => Some(reply),
            EntryBody::Operation(_) => None,
        })
    }

    /// Takes out all entries, in the order of their arrival.
    pub(super) fn take_entries(&mut self) -> Vec<Arc<Entry>> {
        let mut all: Vec<HeldEntry> = Vec::new();
        for held in self.entries.values_mut() {
            all.extend(std::mem::take(held).values().cloned());
        }
        self.entries = SmallMap::default();
        all.sort_by_key(|held| held.arrival);
        all.into_iter().map(|held| held.entry).collect()
    }

    /// What was pruned of what does not count any more counts as little as the rest of it.
    pub(super) fn unprune(&mut self) {
        let pruned = self.base.clone();
        let mut base = std::mem::take(&mut self.base);
        self.limit_to_what_counts(&mut base);
        self.base = base;
        for (author, n) in pruned.iter() {
            if self.base.last_of(author) < n {
                self.base_chain.remove(author);
            }
        }
    }

    /// Forgets what the entries came to, but for what was pruned and for what was run.
    pub(super) fn start_over(&mut self) {
        self.chain = self.base_chain.clone();
        self.declared.sites = self.base_sites.clone();
        self.declared.config = self.base_config.clone();
        self.resolution = self.resolution.without_operations();
        self.replies = BTreeMap::new();
        self.own = OwnReplies::default();
        self.unanswered = SmallMap::default();
        self.troubled = BTreeSet::new();
        self.dismissed = BTreeSet::new();
        self.undoings = BTreeMap::new();
        self.edits = Edits::default();
        self.programs = Programs::default();
        self.set_right = self.base.clone();
        let base = &self.base;
        // The rest is said again by what is kept.
        self.reports.retain(|_, reported| base.includes(&reported.entry));
        self.start_over_reports();
        self.kept = SmallMap::default();
        self.files.start_over();
    }

    /// The last place in the order that these have; that of what was pruned for one that was.
    /// What its author did before is in the past of whatever it does.
    pub(super) fn order_of_past(&self, id: &OperationId, parents: &[OperationId]) -> Option<Stamp> {
        let place = |id: &OperationId| match self.operation(id) {
            Some(parent) => Some(parent.stamp),
            None => self.base_order.filter(|_| self.base.includes(&id.0)),
        };
        let before = self.resolution.operations().before(id).map(|before| before.stamp);
        parents.iter().filter_map(place).max().max(before)
    }

    /// The entry of another site with its place in the order, as every site works it out.
    pub(super) fn placed(&self, mut entry: Arc<Entry>) -> Arc<Entry> {
        if let EntryBody::Operation(operation) = &entry.body {
            let place = operation
                .claimed
                .placed_after(self.order_of_past(&operation.id, &operation.parents));
            if operation.stamp != place
                && let EntryBody::Operation(operation) = &mut Arc::make_mut(&mut entry).body
            {
                operation.stamp = place;
            }
        }
        entry
    }

    pub(super) fn operation(&self, id: &OperationId) -> Option<&Arc<Operation>> {
        self.resolution.operations().operation(id)
    }

    /// The body that an operation brought along in its entry.
    pub(super) fn inline_body(&self, id: &OperationId) -> Option<Arc<[u8]>> {
        let held = self.held_of(&id.0.author)?.get(&id.0.n)?;
        held.entry.inline_body().map(Arc::from)
    }

    /// Takes in an entry, of this site or another, and has it made durable. If it is a reply, whoever
    /// waits for it is answered.
    fn insert(&mut self, entry: &Arc<Entry>, turn: &mut Turn<'_>) {
        turn.record(Record::Entry(self.id.clone(), entry.clone()));
        self.restore(entry, turn);
        if let Some(edit) =
            entry.edit().filter(|edit| edit.entry.author != turn.context.settings.me)
        {
            self.merge_again(&edit.operation, turn);
        }
        if let EntryBody::Reply(reply) = &entry.body {
            let is_anothers = reply.id.author != turn.context.settings.me;
            let context = &mut *turn.context;
            for answer in context.waiting.replied(reply, &mut context.timers) {
                if is_anothers {
                    turn.out.free_answer(answer);
                } else {
                    turn.effect(answer);
                }
            }
        }
    }

    /// Takes an entry into the state without making it durable: it is, or is about to be.
    pub(super) fn restore(&mut self, entry: &Arc<Entry>, turn: &mut Turn<'_>) {
        let id = entry.id().clone();
        if id.author == turn.context.settings.me {
            // Also one that only others remembered: its number must not be used again.
            turn.context.written = turn.context.written.max(id.n);
        }
        turn.context.old_incarnations.see(entry, &turn.context.settings.me.site);
        self.see_number(entry, turn);
        self.knows.add(&id);
        let kept = entry.kept_state();
        if entry.state_report().is_none() && kept.is_none() {
            self.news.add(&id);
        }
        self.chain.set(&id.author, entry.hash());
        self.arrivals += 1;
        let held = HeldEntry { arrival: self.arrivals, entry: entry.clone() };
        self.entries.get_or_insert_with(&id.author, SharedMap::default).insert(id.n, held);
        if let Some(report) = entry.standing_report() {
            let since_ms = entry.stamp().wall_ms;
            let reported = Reported { entry: id.clone(), report, since_ms };
            self.reports.insert(&id.author, reported);
        }
        self.see_edit(entry, &turn.context.settings.me);
        self.see_program(entry, &turn.context.settings.me);
        match &entry.body {
            EntryBody::Operation(operation) => self.take_operation(operation, turn),
            EntryBody::Reply(reply) => self.take_reply(reply, entry, turn),
        }
        // What nobody here knows is nothing to let be, and is not kept.
        if let Some(operation) = entry.dismisses().filter(|it| self.operation(it).is_some()) {
            self.dismissed.insert(operation);
        }
        if let Some(undoing) = entry.undoes() {
            self.take_undoing(undoing, (entry.stamp(), id.clone()));
        }
        if let Some(report) = entry.state_report() {
            self.see_state_report(report, &id, entry.stamp().wall_ms);
        }
        if let Some(kept) = kept {
            self.see_kept_state(&id.author, kept);
        }
    }

    fn take_operation(&mut self, operation: &Operation, turn: &mut Turn<'_>) {
        turn.context.clock.observe(operation.stamp);
        self.flag_strange_clock(operation, turn);
        self.own.none_yet.insert(operation.id.clone());
        if let Some(declaration) = &operation.declares {
            self.declare(operation, declaration, turn);
        }
        self.see_whether_answered(&operation.id, &turn.context.settings.me);
        self.files.see(operation);
        let was_retired = self.is_retired();
        let change = self.resolution.insert(operation.clone());
        self.review_undoings();
        self.see_service_ref(operation, was_retired, turn);
        // What is in doubt can be rebuilt from what overwrites it, and holds up nothing that commutes.
        let in_doubt = self.runs.awaits_operator.as_ref().and_then(|id| self.operation(id));
        let config = self.config();
        let commutes = in_doubt.is_some_and(|it| config.commute(&it.kind, &operation.kind));
        let goes_on = commutes || config.overwrites(&operation.kind);
        if change != ListChange::Nothing && self.awaits_edit(operation, turn.context) {
            self.runs.list_waits();
        } else if change == ListChange::Inserted && self.may_run_last(operation) {
            self.runs.list_grew(operation, goes_on);
        } else {
            self.runs.list_changed(&change, operation, goes_on);
        }
    }

    /// Whether an operation may run after those that stand behind it in the list: it commutes with
    /// each of them. Many concurrent ones are looked at together with everything else.
    fn may_run_last(&self, operation: &Operation) -> bool {
        let config = self.config();
        let behind: Vec<_> = self.resolution.after(&operation.id).take(MOST_BEHIND + 1).collect();
        // One that replaces is of no kind: it may do anything, and nothing commutes with it.
        let replaces = |operation: &Operation| operation.replaces.past();
        if behind.len() > MOST_BEHIND
            || replaces(operation)
            || behind.iter().any(|behind| replaces(behind))
        {
            return false;
        }
        let mut kinds: Vec<&OperationType> = behind.iter().map(|behind| &behind.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter().all(|kind| config.commute(kind, &operation.kind))
    }

    fn flag_strange_clock(&self, operation: &Operation, turn: &mut Turn<'_>) {
        let ahead = operation.claimed.wall_ms.saturating_sub(turn.now.wall_ms);
        if ahead > turn.context.settings.strange_clock_ms {
            turn.notify(Notice::StrangeClock(self.id.clone(), operation.id.clone(), ahead));
        }
    }

    fn declare(&mut self, operation: &Operation, said: &Declaration, turn: &mut Turn<'_>) {
        let config = said.config.clone().map(|config| (operation.position(), config));
        let sites = made_at(operation).cloned().unwrap_or_default();
        self.join_declared(&Declared { sites, config, id_map: None }, turn);
    }

    pub(super) fn join_declared(&mut self, said: &Declared, turn: &mut Turn<'_>) {
        let before = self.declared.sites.clone();
        if !self.declared.join(said) {
            return;
        }
        let me = turn.context.settings.me.site.clone();
        let new = self.declared.sites.difference(&before);
        for site in new.filter(|site| **site != me) {
            self.peers.get_or_insert_with(site, Peer::default);
            let context = &mut *turn.context;
            let now_ms = turn.now.mono_ms;
            context.links.share(site, &context.settings, &mut context.timers, now_ms);
        }
        let rules = match &mut self.declared.config {
            Some((_, config)) => {
                let rules = turn.context.rulebook.rules(config);
                config.clone_from(rules.config());
                rules
            }
            None => self.resolution.rules().clone(),
        };
        self.resolve_anew(rules);
        self.see_awaited(turn.context);
        if self.declared.sites != before {
            self.see_what_is_answered(&turn.context.settings.me);
        }
    }

    /// From scratch: the config or the sites changed, and with them perhaps what is void.
    pub(super) fn resolve_anew(&mut self, rules: Rules) {
        let sites = &self.declared.sites;
        let void = self.replies.iter().filter(|(_, replies)| replies.failed_everywhere(sites));
        let undone: Vec<_> = self.undone().collect();
        self.resolution = self.resolution.anew(rules, void.map(|(id, _)| id));
        for (operation, by) in undone {
            self.resolution.mark_undone(&operation, &by);
        }
        self.runs.list_rearranged();
    }

    fn take_reply(&mut self, reply: &Reply, entry: &Arc<Entry>, turn: &mut Turn<'_>) {
        self.see_local_id(reply, turn);
        if self.base.includes(&reply.operation.0) || self.is_disowned(&reply.operation.0) {
            return;
        }
        turn.context.clock.observe(reply.stamp);
        if reply.id.author == turn.context.settings.me {
            self.own.said(reply);
        }
        let replies = self.replies.entry(reply.operation.clone()).or_default();
        let was_partial = replies.is_partial_error();
        let was_settled = replies.are_complete(&self.declared.sites);
        let is_said_again =
            replies.by(&reply.id.author).is_some_and(|said| said.status == reply.status);
        replies.add(reply, entry);
        if !was_partial && replies.is_partial_error() {
            turn.notify(Notice::PartialError(self.id.clone(), reply.operation.clone()));
        }
        let is_ours = reply.operation.0.author.site == turn.context.settings.me.site;
        if is_ours && !was_settled && replies.are_complete(&self.declared.sites) {
            let ending = replies.ending();
            turn.notify(Notice::Settled(self.id.clone(), reply.operation.clone(), ending));
        }
        if was_settled && !is_said_again {
            self.runs.heard_otherwise();
        }
        let void = replies.failed_everywhere(&self.declared.sites)
            || self.undone_by(&reply.operation).is_some();
        if void != self.resolution.operations().is_void(&reply.operation) {
            self.void_changed(&reply.operation, void);
            if self.is_retired() {
                self.publish_id_map(turn);
            }
        }
        if went_well(reply)
            && let Some(past) = self.replaced_by(&reply.operation)
        {
            self.set_right.join(&past);
        }
        self.see_whether_answered(&reply.operation, &turn.context.settings.me);
        self.see_whether_told(&reply.operation, &turn.context.settings.me);
        if !is_said_again {
            self.forget_state_report(&reply.id.author);
        }
    }

    /// Everything that an operation replaced, if it did.
    fn replaced_by(&self, operation: &OperationId) -> Option<Vector> {
        let replaces = self.operation(operation).is_some_and(|it| it.replaces.past());
        self.resolution.operations().past(operation).filter(|_| replaces).cloned()
    }

    /// What a site last said of an operation, in the incarnation it is in now: what it said before
    /// it lost its disk says nothing of how it stands there. But for what failed everywhere, which
    /// is not run again.
    pub(super) fn word_of(
        &self,
        site: &SiteId,
        operation: &OperationId,
        me: &Author,
    ) -> Option<&Reply> {
        let incarnation = match *site == me.site {
            _ if self.resolution.operations().is_void(operation) => None,
            true => Some(me.incarnation),
            false => self.peers.get(site).and_then(|peer| peer.incarnation),
        };
        self.replies.get(operation)?.of(site, incarnation)
    }

    /// Looks anew at who has answered what: who is to answer, or in which incarnation, has changed.
    pub(super) fn see_what_is_answered(&mut self, me: &Author) {
        let known: Vec<_> = self.resolution.operations().iter().map(|it| it.id.clone()).collect();
        known.iter().for_each(|operation| self.see_whether_answered(operation, me));
        if !self.is_all_answered() {
            self.runs.heard_otherwise();
        }
    }

    fn see_whether_answered(&mut self, operation: &OperationId, me: &Author) {
        let has_pruned = |site: &SiteId| {
            self.peers.get(site).is_some_and(|peer| peer.pruned.includes(&operation.0))
        };
        let has_said =
            |site: &&SiteId| self.word_of(site, operation, me).is_some() || has_pruned(site);
        let (said, silent): (Vec<&SiteId>, Vec<&SiteId>) =
            self.declared.sites.iter().partition(has_said);
        for site in silent {
            let open = self.unanswered.get_or_insert_with(site, BTreeSet::new);
            open.insert(operation.clone());
        }
        for site in said {
            // An empty set keeps the room it once took.
            if let Some(open) = self.unanswered.get_mut(site)
                && open.remove(operation)
                && open.is_empty()
            {
                self.unanswered.remove(site);
            }
        }
        let mut words =
            self.declared.sites.iter().filter_map(|site| self.word_of(site, operation, me));
        if words.any(went_wrong) {
            self.troubled.insert(operation.clone());
        } else {
            self.troubled.remove(operation);
        }
    }

    pub(super) fn is_all_answered(&self) -> bool {
        self.unanswered.is_empty()
    }

    /// The operations of which a site has not said what became of them.
    pub(super) fn unanswered_at(&self, site: &SiteId) -> impl Iterator<Item = &OperationId> {
        self.unanswered.get(site).into_iter().flatten()
    }

    /// Whether every site knows everything, and has said what became of it there.
    pub(super) fn is_done_everywhere(&self) -> bool {
        self.is_all_answered() && self.peers.values().all(|it| it.knows.covers(&self.news))
    }

    fn void_changed(&mut self, operation: &OperationId, void: bool) {
        if void {
            if self.resolution.mark_void(operation) != ListChange::Nothing {
                self.runs.list_rearranged();
            }
        } else {
            self.resolve_anew(self.resolution.rules().clone());
        }
    }

    /// Operations that do not count and were not said to be superseded, with the winner: those
    /// that will not run here, and those that ran and lost to a concurrent one since. What a later
    /// operation simply replaced had its time, and its reply stands.
    pub(super) fn newly_superseded(&self) -> Vec<(OperationId, OperationId)> {
        let said_otherwise = self.own.none_yet.iter().chain(&self.own.ran);
        said_otherwise.filter_map(|id| Some((id.clone(), self.superseded_by(id)?))).collect()
    }

    /// The same for one operation.
    pub(super) fn superseded_by(&self, id: &OperationId) -> Option<OperationId> {
        if self.own.superseded.contains(id) {
            return None;
        }
        if self.resolution.counts(id) {
            return self.programs.left_out_for(id).map(|out| out.by.clone());
        }
        let out = self.resolution.left_out(id)?;
        let had_its_time =
            matches!(out.why, Why::Replaced | Why::Forced) && self.own.ran.contains(id);
        if had_its_time { None } else { out.by }
    }

    /// Operations that this site ran in an earlier incarnation, as its own log still says: it was
    /// started from a copy, which stands where it stood. Nobody counts what an earlier incarnation
    /// said, so it is said again.
    pub(super) fn said_in_an_earlier_incarnation(
        &self,
        me: &Author,
    ) -> Vec<(OperationId, Status, Option<Outcome>)> {
        let unsaid = self.own.none_yet.iter();
        unsaid
            .filter_map(|id| {
                let before = self.replies.get(id)?.of(&me.site, None)?;
                let stands = match before.status {
                    Status::InDoubt => self.runs.log.is_in_doubt(id),
                    _ => {
                        let took = self.runs.log.outcome(id)? == RunEffect::Took;
                        verdict(&before.status) == Some(took)
                    }
                };
                stands.then(|| (id.clone(), before.status.clone(), before.outcome.clone()))
            })
            .collect()
    }

    /// Operations that were said to be superseded, count again, and have run; with what was said
    /// of that run.
    pub(super) fn no_longer_superseded(
        &self,
        me: &Author,
    ) -> Vec<(OperationId, Status, Option<Outcome>)> {
        let back = self.own.superseded.iter().filter(|id| self.resolution.counts(id));
        let back = back.filter(|id| self.programs.left_out_for(id).is_none());
        back.filter_map(|id| {
            let took = self.runs.log.outcome(id)? == RunEffect::Took;
            let said = self.replies.get(id).and_then(|replies| replies.last_run_by(me));
            let (status, outcome) = match said {
                Some(reply) if verdict(&reply.status) == Some(took) => {
                    (reply.status.clone(), reply.outcome.clone())
                }
                _ => (if took { Status::Ok } else { Status::Ko }, None),
            };
            Some((id.clone(), status, outcome))
        })
        .collect()
    }

    /// Entries that a site with that knowledge lacks, in causal order, at most so many.
    pub(super) fn lacking(&self, knowledge: &Vector, most: Most) -> Vec<Arc<Entry>> {
        let mut lacking: Vec<&HeldEntry> = Vec::new();
        for (author, held) in self.entries.iter() {
            let unknown = after(knowledge.last_of(author));
            lacking.extend(held.range(unknown).map(|(_, held)| held).take(most.entries));
        }
        lacking.sort_by_key(|held| held.arrival);
        most.of(lacking.into_iter().map(|held| &held.entry))
    }

    /// This site's own entries after that number, at most so many.
    pub(super) fn own_after(&self, me: &Author, n: u64, most: Most) -> Vec<Arc<Entry>> {
        let own = self.entries.get(me).into_iter().flat_map(|held| held.range(after(n)));
        most.of(own.map(|(_, held)| &held.entry))
    }

    /// The config that held where what was pruned ends.
    pub(super) fn base_config(&self) -> Option<&Arc<Config>> {
        self.base_config.as_ref().map(|(_, config)| config)
    }

    /// What was pruned, for whoever may not have seen it.
    pub(super) fn ground(&self) -> Base {
        let declared = Declared { config: self.base_config.clone(), ..self.declared.clone() };
        let (chain, order) = (self.base_chain.clone(), self.base_order);
        let state = self.resolution.pruned_state().map(|state| Box::new(StateFloor::clone(state)));
        Base { upto: self.base.clone(), declared: Some(declared), chain, order, state }
    }

    /// Takes over what another site has pruned, or this one had before it was started.
    pub(super) fn take_base(&mut self, base: &Base) -> u64 {
        let sites = base.declared.iter().flat_map(|declared| &declared.sites);
        self.base_sites.extend(sites.cloned());
        // One that forgot more, and has no state for it, forgot what replaced the state.
        let is_later = base.upto.covers(&self.base);
        let says_other = base.state.is_some() || base.upto != self.base;
        let forgotten = self.forget(&base.upto, base.config());
        if is_later && says_other {
            self.resolution.stand_on(&base.upto, base.state.as_deref().cloned());
        }
        for (author, hash) in base.chain.iter() {
            if self.base.last_of(author) == base.upto.last_of(author) {
                self.base_chain.set(author, hash);
            }
            if self.knows.last_of(author) == base.upto.last_of(author) {
                self.chain.set(author, hash);
            }
        }
        self.base_order = self.base_order.max(base.order);
        forgotten
    }

    /// What another site's base can tell this one: nobody signed it, so nothing of what is known here.
    /// With a hash for an entry of ours, this site would sign what contradicts it; with a place, a config
    /// or a state of another, it would come to another list than those that know the same.
    pub(super) fn news_of(&self, base: &Base) -> Base {
        if self.knows.covers(&base.upto) {
            return Base::of(base.upto.clone());
        }
        let is_news =
            |(author, _): &(&Author, _)| base.upto.last_of(author) > self.knows.last_of(author);
        let chain = base.chain.iter().filter(is_news);
        let chain = chain.map(|(author, hash)| (author.clone(), hash)).collect();
        Base { chain, ..base.clone() }
    }

    /// Forgets everything up to there, but for the last config, which may be one that only who
    /// pruned it first has seen.
    pub(super) fn forget(&mut self, upto: &Vector, config: Option<&Given>) -> u64 {
        let mut upto = upto.clone();
        // Operations of others may still name in their past what does not count.
        self.limit_to_what_counts(&mut upto);
        let upto = &upto;
        keep_later(&mut self.base_config, config);
        let operations = self.resolution.operations().iter();
        for operation in operations.filter(|operation| upto.includes(&operation.id.0)) {
            let given = operation.declares.as_ref().and_then(|said| said.config.clone());
            let given = given.map(|config| (operation.position(), config));
            keep_later(&mut self.base_config, given.as_ref());
            self.base_order = self.base_order.max(Some(operation.stamp));
            self.base_sites.extend(made_at(operation).into_iter().flatten().cloned());
        }
        for (author, last) in upto.iter() {
            let held = self.entries.get(author).and_then(|held| held.range(..=last).next_back());
            if let Some((_, held)) = held {
                self.base_chain.set(author, held.entry.hash());
            }
        }
        self.base.join(upto);
        self.knows.join(upto);
        let mut forgotten = 0;
        for (author, last) in upto.iter() {
            if let Some(held) = self.entries.get_mut(author) {
                let kept = held.split_off(&last.saturating_add(1));
                forgotten += held.len() as u64;
                *held = kept;
            }
        }
        self.entries.retain(|_, held| !held.is_empty());
        self.replies.retain(|id, _| !upto.includes(&id.0));
        self.own.forget(upto);
        self.unanswered.retain(|_, open| {
            open.retain(|id| !upto.includes(&id.0));
            !open.is_empty()
        });
        self.troubled.retain(|id| !upto.includes(&id.0));
        self.dismissed.retain(|id| !upto.includes(&id.0));
        self.undoings.retain(|id, _| !upto.includes(&id.0));
        self.files.forget(upto);
        self.resolution.prune(upto);
        forgotten
    }

    /// How many entries a site with that knowledge lacks: counted without a look at them.
    pub(super) fn count_lacking(&self, knowledge: &Vector) -> u64 {
        let of = |(author, held): (&Author, &SharedMap<u64, HeldEntry>)| {
            held.range(after(knowledge.last_of(author))).len() as u64
        };
        self.entries.iter().map(of).sum()
    }
}

/// How many operations are looked at one by one before all are looked at together.
const MOST_BEHIND: usize = 1_024;

/// How much one message may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    entries: usize,
    bytes: usize,
}

impl Most {
    pub(super) fn by(settings: &super::settings::Settings) -> Self {
        Self { entries: settings.entries_per_update, bytes: settings.bytes_per_update }
    }

    /// As many from the beginning as there is room for, and one in any case.
    fn of<'a>(self, entries: impl Iterator<Item = &'a Arc<Entry>>) -> Vec<Arc<Entry>> {
        let mut bytes = 0;
        let fitting = entries.take(self.entries).enumerate().take_while(|(i, entry)| {
            bytes += entry.size();
            *i == 0 || bytes <= self.bytes
        });
        fitting.map(|(_, entry)| entry.clone()).collect()
    }
}
