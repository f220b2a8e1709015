//! Sites that lie: how two entries of one author show it, and what follows.
//!
//! An author numbers what it writes, and each of its entries on a resource names the hash of the
//! one before. So it can write only one thing in one place. If it tells one site this and another
//! one that, the two find out as soon as they compare: each says with everything it sends which
//! hashes it knows last. Both entries are signed, and show the lie to anybody.
//!
//! It counts all that it writes, on whichever resource. So a number that it uses on two of them shows a lie
//! as well, at a site that holds both. Nothing forks by that: what it wrote stays as it is.
//!
//! What the author wrote after the fork counts nowhere from then on: sites that took the one branch
//! and sites that took the other come to the same. Who holds the key is set apart, at every site.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::context::Turn;
use super::durable::{Reaction, Record};
use super::peer::Peer;
use super::ports::{Effect, Heartbeat, Message, Notice};
use super::resource::{HeldEntry, Resource};
use super::{Resources, follow_up};
use crate::model::{
    Author, Entry, EntryId, Evidence, KeyId, Lie, Proof, ResourceId, SignedBy, SiteId, Vector,
    resource_hash,
};

/// Who was shown to lie, and by what.
#[derive(Debug, Default)]
pub(super) struct Liars {
    convicted: BTreeMap<KeyId, Convicted>,
    /// What was found while an event was handled, and has to be seen to before it is over.
    found: Vec<Evidence>,
}

#[derive(Debug)]
struct Convicted {
    site: SiteId,
    /// What shows it: one for each author and resource, the one that leaves least.
    evidence: BTreeMap<(Author, [u8; 32]), Evidence>,
}

/// So many keys are told of in a sign of life.
const MOST_KEYS_TOLD: usize = 64;
/// So much is sent at once of what shows one site's lies.
const MOST_EVIDENCE_TOLD: usize = 16;
/// So much is kept of what shows one site's lies: one is enough to set it apart.
const MOST_EVIDENCE: usize = 16_384;

impl Liars {
    /// The keys of all of them, as many as fit into a sign of life.
    pub(super) fn keys(&self) -> Vec<KeyId> {
        self.convicted.keys().take(MOST_KEYS_TOLD).copied().collect()
    }

    /// Whether that site was shown to lie.
    pub(super) fn has(&self, site: &SiteId) -> bool {
        self.convicted.values().any(|convicted| convicted.site == *site)
    }

    /// The keys of that site which were shown to sign lies.
    pub(super) fn keys_of(&self, site: &SiteId) -> Vec<KeyId> {
        let of_site = self.convicted.iter().filter(|(_, convicted)| convicted.site == *site);
        of_site.map(|(key, _)| *key).collect()
    }

    /// The last numbers that count on a resource, of authors that were shown to lie about it.
    pub(super) fn cuts_of(&self, resource: &ResourceId) -> BTreeMap<Author, u64> {
        if self.convicted.is_empty() {
            return BTreeMap::new();
        }
        let about = resource_hash(resource);
        let all = self.convicted.values().flat_map(|convicted| &convicted.evidence);
        let cuts = all.filter(|((_, resource), _)| *resource == about).filter_map(
            |((author, _), evidence)| match evidence.lie() {
                Some(Lie::Fork { after }) => Some((author.clone(), after)),
                _ => None,
            },
        );
        cuts.collect()
    }

    /// What shows that this author's entries on a resource do not count.
    fn against(&self, author: &Author, resource: [u8; 32]) -> Option<&Evidence> {
        let mut all = self.convicted.values();
        all.find_map(|convicted| convicted.evidence.get(&(author.clone(), resource)))
    }

    /// Keeps what shows a lie, if it says more than what is known; and the keys that are new.
    fn add(&mut self, evidence: &Evidence, lie: Lie) -> Option<Vec<KeyId>> {
        let (known, new): (Vec<_>, Vec<_>) =
            evidence.keys().partition(|key| self.convicted.contains_key(key));
        // Whoever holds a key that is set apart can contradict with it what the site signs with the
        // one that it was given instead: that is no reason to set this one apart as well.
        let new = if known.is_empty() { new } else { Vec::new() };
        let mut is_news = false;
        for key in known.iter().chain(&new) {
            is_news |= self.add_to(*key, evidence, lie);
        }
        is_news.then_some(new)
    }

    /// The same under one of its keys; whether it says more.
    fn add_to(&mut self, key: KeyId, evidence: &Evidence, lie: Lie) -> bool {
        let author = evidence.author().clone();
        let site = author.site.clone();
        let convicted = self
            .convicted
            .entry(key)
            .or_insert_with(|| Convicted { site, evidence: BTreeMap::new() });
        let about = (author, evidence.one.0.resource);
        let leaves = |lie: Option<Lie>| match lie {
            Some(Lie::Fork { after }) => after,
            _ => u64::MAX,
        };
        let known = convicted.evidence.get(&about).map(Evidence::lie);
        let is_news = known.is_none_or(|known| leaves(Some(lie)) < leaves(known));
        let has_room = known.is_some() || convicted.evidence.len() < MOST_EVIDENCE;
        if is_news && has_room {
            convicted.evidence.insert(about, evidence.clone());
        }
        is_news && has_room
    }
}

/// Sees to the lies that were found while an event was handled.
pub(super) fn convict_found(resources: &mut Resources, turn: &mut Turn<'_>) {
    while let Some(evidence) = turn.context.liars.found.pop() {
        convict(resources, &evidence, turn);
    }
}

/// Somebody was shown to lie: nothing is heard from it any more, and what it wrote after the fork
/// counts nowhere.
pub(super) fn convict(resources: &mut Resources, evidence: &Evidence, turn: &mut Turn<'_>) {
    let Some(lie) = evidence.lie() else { return };
    let Some(new) = turn.context.liars.add(evidence, lie) else { return };
    let site = evidence.author().site.clone();
    turn.record(Record::SetApart(Box::new(evidence.clone())));
    for key in new {
        turn.notify(Notice::SetApart(site.clone(), key));
        turn.effect(Effect::SetApart(site.clone(), key));
    }
    let others: Vec<SiteId> = turn
        .context
        .links
        .iter()
        .filter(|(other, link)| link.up && **other != site)
        .map(|(other, _)| other.clone())
        .collect();
    for to in others {
        let message = Message::Evidence(Box::new(evidence.clone()));
        turn.effect(Effect::Tell { to, message });
    }
    turn.context.needs.look_at_all();
    disown(resources, evidence, turn);
    for resource in
        resources.values_mut().filter(|it| resource_hash(&it.id) == evidence.one.0.resource)
    {
        follow_up(resource, turn);
    }
}

/// Drops what the author wrote on the resource after the fork.
fn disown(resources: &mut Resources, evidence: &Evidence, turn: &mut Turn<'_>) {
    let Some(Lie::Fork { after }) = evidence.lie() else { return };
    // What this site wrote itself is in its own log, and it is the operator who must find out how
    // there came to be two of it.
    if *evidence.author() == turn.context.settings.me {
        return;
    }
    let about = evidence.one.0.resource;
    for resource in resources.values_mut().filter(|it| resource_hash(&it.id) == about) {
        resource.cut_off(evidence.author(), after, turn);
    }
}

/// After the log was read: who was shown to lie before the stop still is.
pub(super) fn recall(resources: &mut Resources, evidence: &[Evidence], turn: &mut Turn<'_>) {
    for evidence in evidence {
        let Some(lie) = evidence.lie() else { continue };
        for key in turn.context.liars.add(evidence, lie).unwrap_or_default() {
            turn.effect(Effect::SetApart(evidence.author().site.clone(), key));
        }
        disown(resources, evidence, turn);
    }
}

/// Tells a site of those who lie that it does not know of yet.
pub(super) fn tell_of_liars(to: &SiteId, beat: &Heartbeat, turn: &mut Turn<'_>) {
    let unknown = turn
        .context
        .liars
        .convicted
        .iter()
        .filter(|(key, convicted)| !beat.set_apart.contains(key) && convicted.site != *to);
    let told: Vec<_> = unknown
        .flat_map(|(_, convicted)| convicted.evidence.values())
        .take(MOST_EVIDENCE_TOLD)
        .cloned()
        .collect();
    for evidence in told {
        let message = Message::Evidence(Box::new(evidence));
        turn.effect(Effect::Tell { to: to.clone(), message });
    }
}

impl Resource {
    /// Whether it does not count: its author was shown to have written something else in its place, or
    /// its site writes in too many incarnations.
    pub(super) fn is_disowned(&self, id: &EntryId) -> bool {
        id.n > self.last_that_counts(&id.author)
    }

    /// What an entry shows, together with one that is held: that both have one author, and cannot.
    pub(super) fn lie_in(&self, entry: &Entry) -> Option<Evidence> {
        let held = self.held_of(&entry.id().author)?;
        let is_another = |held: &&HeldEntry| held.entry.hash() != entry.hash();
        let same = held.get(&entry.id().n).filter(is_another);
        let first_after = |n: u64| held.range(n.saturating_add(1)..).next().map(|(_, held)| held);
        let next = first_after(entry.after).filter(is_another);
        let above = first_after(entry.id().n);
        let said = |held: &&HeldEntry| {
            !entry.after_hash.is_unsaid() && held.entry.hash() != entry.after_hash
        };
        let before = held.get(&entry.after).filter(said);
        let suspects = [same, next, above, before].into_iter().flatten();
        suspects.filter_map(|held| self.evidence(&held.entry, entry)).find(|it| it.lie().is_some())
    }

    fn evidence(&self, one: &Entry, other: &Entry) -> Option<Evidence> {
        let signed = |entry: &Entry| Some((entry.header(&self.id), entry.proof()?.clone()));
        Some(Evidence { one: signed(one)?, other: signed(other)? })
    }

    /// A lie was found: it is seen to when the event is over.
    pub(super) fn found_lie(&self, evidence: Evidence, turn: &mut Turn<'_>) {
        turn.context.liars.found.push(evidence);
    }

    /// Shows a site that stays behind what does not count here, and why: what it lacks may be
    /// answers to that, which it would wait for.
    pub(super) fn show_cuts(&self, to: &SiteId, turn: &mut Turn<'_>) {
        for author in self.cuts.keys().filter(|author| author.site != *to).take(MOST_EVIDENCE_TOLD)
        {
            self.show_why_disowned(author, to, turn);
        }
    }

    /// Shows that site why an entry it sent does not count here.
    pub(super) fn show_why_disowned(&self, author: &Author, to: &SiteId, turn: &mut Turn<'_>) {
        let about = resource_hash(&self.id);
        if let Some(evidence) = turn.context.liars.against(author, about).cloned() {
            let message = Message::Evidence(Box::new(evidence));
            turn.effect(Effect::Tell { to: to.clone(), message });
        }
    }

    /// The entries held here to show to a site that knows something else of their authors: in the
    /// place that it says, or over it where there is nothing here in that place. It finds the lie.
    pub(super) fn authors_that_differ(
        &self,
        knows: &Vector,
        chain: &crate::model::Chain,
    ) -> Vec<EntryId> {
        let contradicts = |(author, hash): (&Author, crate::model::EntryHash)| {
            let n = knows.last_of(author);
            let held = self.held_of(author)?;
            let (_, ours) = held.range(n.max(1)..).next()?;
            let is_another = if ours.entry.id().n == n {
                ours.entry.hash() != hash
            } else {
                ours.entry.after < n
            };
            is_another.then(|| ours.entry.id().clone())
        };
        chain.iter().filter_map(contradicts).collect()
    }

    /// Everything that the author wrote after that number counts no more.
    pub(super) fn cut_off(&mut self, author: &Author, after: u64, turn: &mut Turn<'_>) {
        if self.cuts.get(author).is_some_and(|known| *known <= after) {
            return;
        }
        self.cuts.insert(author.clone(), after);
        self.drop_what_does_not_count(turn);
        self.bound_incarnations(turn);
    }

    /// Drops what does not count any more. All else is looked at anew, as if that had never been: so
    /// sites come to the same whichever branch they had.
    pub(super) fn drop_what_does_not_count(&mut self, turn: &mut Turn<'_>) {
        let kept: Vec<Arc<Entry>> =
            self.take_entries().into_iter().filter(|it| !self.is_disowned(it.id())).collect();
        self.limit_knowledge();
        self.unprune();
        self.start_over();
        // What it all came to was said when it first came to it.
        let mut said_before = Reaction::default();
        let mut quiet = Turn { now: turn.now, context: &mut *turn.context, out: &mut said_before };
        for entry in kept {
            let entry = self.placed(entry);
            self.restore(&entry, &mut quiet);
        }
        self.see_what_is_answered(&turn.context.settings.me);
        self.recovered_edits(turn.context);
        self.runs.list_rearranged();
        self.accept_waiting(turn);
    }

    /// Who knows only what counts is not behind.
    fn limit_knowledge(&mut self) {
        self.peers.values_mut().for_each(|peer| peer.may_lack_evidence = true);
        let (mut knows, mut news) =
            (std::mem::take(&mut self.knows), std::mem::take(&mut self.news));
        let mut peers = std::mem::take(&mut self.peers);
        let of_peers = peers.values_mut().flat_map(Peer::knowledge);
        [&mut knows, &mut news]
            .into_iter()
            .chain(of_peers)
            .for_each(|it| self.limit_to_what_counts(it));
        (self.knows, self.news, self.peers) = (knows, news, peers);
    }
}

/// The numbers that other authors used in what is held here, on all resources.
#[derive(Debug, Default)]
pub(super) struct UsedNumbers(BTreeMap<Author, NumbersOfAuthor>);

#[derive(Debug, Default)]
struct NumbersOfAuthor {
    /// Also of some entries that were forgotten since.
    used: BTreeMap<u64, (Weak<Entry>, ResourceId)>,
    /// How many are looked over for those.
    look_at: usize,
}

/// So many numbers of an author are kept without a look at whether they are still needed.
const FEW_NUMBERS: usize = 1_024;

impl UsedNumbers {
    /// Takes in an entry that its author signed; and what it shows together with another one.
    fn see(&mut self, resource: &ResourceId, entry: &Arc<Entry>) -> Option<Evidence> {
        let EntryId { author, n } = entry.id();
        let numbers = self.0.entry(author.clone()).or_default();
        if numbers.used.len() >= numbers.look_at.max(FEW_NUMBERS) {
            numbers.used.retain(|_, (entry, _)| entry.strong_count() > 0);
            numbers.look_at = 2 * numbers.used.len();
        }
        let this = (Arc::downgrade(entry), resource.clone());
        let (other, on) = numbers.used.insert(*n, this).filter(|(_, on)| on != resource)?;
        let signed = |entry: &Entry, on| Some((entry.header(on), entry.proof()?.clone()));
        let evidence =
            Evidence { one: signed(&*other.upgrade()?, &on)?, other: signed(entry, resource)? };
        evidence.lie().map(|_| evidence)
    }
}

impl Resource {
    /// Looks whether the author used the number of an entry that is taken in on another resource too.
    pub(super) fn see_number(&self, entry: &Arc<Entry>, turn: &mut Turn<'_>) {
        let is_anothers = entry.id().author != turn.context.settings.me;
        if is_anothers && is_signed_by_author(entry) {
            let evidence = turn.context.used_numbers.see(&self.id, entry);
            turn.context.liars.found.extend(evidence);
        }
    }
}

/// Incarnations that began before entries were signed, as this site remembers them: only for these
/// does another site's word stand in for their author's, and only below what they signed since.
#[derive(Debug, Default)]
pub(super) struct OldIncarnations(BTreeMap<Author, u64>);

impl OldIncarnations {
    /// Takes in an entry of this site's log. What a third site vouches for may be made up, and makes nothing
    /// else of that author more likely.
    pub(super) fn see(&mut self, entry: &Entry, me: &SiteId) {
        let EntryId { author, n } = entry.id();
        let is_hearsay = entry.proof().is_some_and(|Proof { by, .. }| {
            !by.is_own_word_of(author) && *by != SignedBy::Voucher(me.clone())
        });
        if author.incarnation.is_from_before_signatures() && !is_hearsay {
            let signed = if is_signed_by_author(entry) { *n } else { u64::MAX };
            let first_signed = self.0.entry(author.clone()).or_insert(u64::MAX);
            *first_signed = signed.min(*first_signed);
        }
    }

    pub(super) fn knows(&self, author: &Author) -> bool {
        self.0.contains_key(author)
    }

    /// Whether it may be from before its author signed anything, on whichever resource.
    pub(super) fn may_have_written(&self, id: &EntryId) -> bool {
        self.0.get(&id.author).is_none_or(|first_signed| id.n < *first_signed)
    }
}

/// Whether its author itself signed it, as far as that can be told.
pub(super) fn is_signed_by_author(entry: &Entry) -> bool {
    entry.proof().is_some_and(|proof| proof.by == SignedBy::Author)
}
