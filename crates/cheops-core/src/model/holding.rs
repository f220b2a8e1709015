//! Where a resource lives: what changes that, as sites say beside a reply, and what it comes to.
//!
//! The sites that hold a resource are an observed-remove set over its creations and these changes: each
//! addition is a tag, and a removal takes away the tags that its author had seen. So an addition beats a
//! removal that did not know of it. Changes apply in the order of their stamps and names, which extends
//! what their authors knew; a removal that would leave nobody comes to nothing. All that any creation
//! named counts as one tag, which every removal has seen.
//!
//! It must be understood: sites that go by it and sites that do not would tell each other's secrets to
//! strangers, and drop what nobody else has.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Entry, EntryBody, EntryId, Extension, SiteId, Stamp};

const NAME: &str = "holders";

/// So long may be what is said of it.
const MOST_BYTES: usize = 64 * 1024;

/// One change of where a resource lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HoldingChange {
    /// That site holds it from now on.
    Adds(SiteId),
    /// That site holds it no more, as far as it was made to by these additions, or by its creation.
    Removes {
        /// Which site.
        site: SiteId,
        /// The additions that are taken back.
        seen: BTreeSet<EntryId>,
    },
    /// That site is gone for good: it holds nothing any more, and nobody waits for it.
    GivesUp(SiteId),
    /// Its author was removed, and has closed its part: all others hold what it knew.
    Leaves {
        /// The additions that it had heard of.
        seen: BTreeSet<EntryId>,
    },
}

impl HoldingChange {
    /// The site that it adds, if it adds one.
    pub fn added(&self) -> Option<&SiteId> {
        match self {
            Self::Adds(site) => Some(site),
            _ => None,
        }
    }

    /// As it is said.
    pub fn text(&self) -> String {
        let with = |word: &str, named: Vec<String>| {
            std::iter::once(word.to_owned()).chain(named).collect::<Vec<_>>().join(" ")
        };
        let tags = |seen: &BTreeSet<EntryId>| -> Vec<String> {
            seen.iter().map(ToString::to_string).collect()
        };
        match self {
            Self::Adds(site) => with("adds", vec![site.to_string()]),
            Self::Removes { site, seen } => {
                with("removes", [vec![site.to_string()], tags(seen)].concat())
            }
            Self::GivesUp(site) => with("gives-up", vec![site.to_string()]),
            Self::Leaves { seen } => with("leaves", tags(seen)),
        }
    }

    /// What is said so.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let word = words.next()?;
        let site = match word {
            "leaves" => None,
            _ => Some(SiteId::new(words.next()?).ok()?),
        };
        let seen: Option<BTreeSet<EntryId>> = words.map(|tag| tag.parse().ok()).collect();
        let seen = seen?;
        match (word, site) {
            ("adds", Some(site)) if seen.is_empty() => Some(Self::Adds(site)),
            ("gives-up", Some(site)) if seen.is_empty() => Some(Self::GivesUp(site)),
            ("removes", Some(site)) => Some(Self::Removes { site, seen }),
            ("leaves", None) => Some(Self::Leaves { seen }),
            _ => None,
        }
    }
}

impl Extension {
    /// What goes beside a reply.
    pub(crate) fn holding(change: &HoldingChange) -> Self {
        let value = change.text().into_bytes();
        Self { name: NAME.to_owned(), must_understand: true, value }
    }
}

impl Entry {
    /// How it changes where its resource lives, if it is a reply that does.
    pub fn changes_holders(&self) -> Option<HoldingChange> {
        let EntryBody::Reply(_) = &self.body else { return None };
        let said = self.extra.iter().find(|extension| extension.name == NAME)?;
        let fits = said.value.len() <= MOST_BYTES;
        HoldingChange::parse(std::str::from_utf8(&said.value).ok().filter(|_| fits)?)
    }
}

/// All changes of where a resource lives, by the entries that say so.
pub type HoldingChanges = BTreeMap<EntryId, (Stamp, HoldingChange)>;

/// What creations and changes come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderSet {
    /// Why each site holds it.
    held: BTreeMap<SiteId, HeldBy>,
    /// All additions of each site that holds it or ever did.
    ever: BTreeMap<SiteId, BTreeSet<EntryId>>,
    /// Sites that are gone for good, and what says so.
    gone: BTreeMap<SiteId, EntryId>,
    /// Removals that came to nothing, since they would have left nobody.
    void: BTreeSet<EntryId>,
    /// What sites said when they left, each with the additions that it had heard of.
    left: Vec<(EntryId, BTreeSet<EntryId>)>,
}

/// What makes a site one that holds a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct HeldBy {
    created: bool,
    adds: BTreeMap<EntryId, Stamp>,
}

impl HolderSet {
    /// What these come to, whatever the order in which they were heard of.
    pub fn of(created: &BTreeSet<SiteId>, changes: &HoldingChanges) -> Self {
        let mut all = Self::default();
        for site in created {
            all.ever.entry(site.clone()).or_default();
            all.held.insert(site.clone(), HeldBy { created: true, ..HeldBy::default() });
        }
        for (id, (_, change)) in changes {
            match change {
                HoldingChange::GivesUp(site) => {
                    all.gone.entry(site.clone()).or_insert_with(|| id.clone());
                }
                HoldingChange::Leaves { seen } => all.left.push((id.clone(), seen.clone())),
                HoldingChange::Adds(_) | HoldingChange::Removes { .. } => {}
            }
        }
        let mut in_order: Vec<_> = changes.iter().collect();
        in_order.sort_by_key(|(id, (stamp, _))| (*stamp, *id));
        for (id, (stamp, change)) in in_order {
            match change {
                HoldingChange::Adds(site) => {
                    all.ever.entry(site.clone()).or_default().insert(id.clone());
                    all.held.entry(site.clone()).or_default().adds.insert(id.clone(), *stamp);
                }
                HoldingChange::Removes { site, seen } => all.remove(id, site, seen),
                HoldingChange::GivesUp(_) | HoldingChange::Leaves { .. } => {}
            }
        }
        let gone = &all.gone;
        all.held.retain(|site, _| !gone.contains_key(site));
        all
    }

    fn remove(&mut self, id: &EntryId, site: &SiteId, seen: &BTreeSet<EntryId>) {
        let Some(by) = self.held.get(site) else { return };
        let mut adds = by.adds.clone();
        adds.retain(|add, _| !seen.contains(add));
        if !adds.is_empty() {
            self.held.insert(site.clone(), HeldBy { created: false, adds });
            return;
        }
        let is_other = |other: &&SiteId| *other != site && !self.gone.contains_key(*other);
        if self.held.keys().any(|other| is_other(&other)) {
            self.held.remove(site);
        } else {
            self.void.insert(id.clone());
        }
    }

    /// The sites that hold it.
    pub fn holders(&self) -> BTreeSet<SiteId> {
        self.held.keys().cloned().collect()
    }

    /// Whether that site holds it, or did once.
    pub fn ever_held(&self, site: &SiteId) -> bool {
        self.ever.contains_key(site)
    }

    /// All sites that hold it, or did once.
    pub fn ever(&self) -> impl Iterator<Item = &SiteId> {
        self.ever.keys()
    }

    /// The additions of a site, of which each makes it hold the resource that was not taken back.
    pub fn additions(&self, site: &SiteId) -> BTreeSet<EntryId> {
        self.ever.get(site).cloned().unwrap_or_default()
    }

    /// What says that a site is gone for good.
    pub fn given_up(&self, site: &SiteId) -> Option<&EntryId> {
        self.gone.get(site)
    }

    /// Where a site closed its part, since it was last made to hold the resource.
    pub fn closings<'a>(&'a self, site: &'a SiteId) -> impl Iterator<Item = &'a EntryId> {
        let ever = self.ever.get(site);
        let covers = move |seen: &BTreeSet<EntryId>| ever.is_none_or(|adds| adds.is_subset(seen));
        let of_site = self.left.iter().filter(move |(id, _)| id.author.site == *site);
        of_site.filter(move |(_, seen)| covers(seen)).map(|(id, _)| id)
    }

    /// Whether that removal came to nothing, since it would have left nobody.
    pub fn is_void(&self, removal: &EntryId) -> bool {
        self.void.contains(removal)
    }

    /// Those of the sites which held it already at that place in the order; all, if that is none. What is
    /// before it in the order does not depend on what is forgotten, as what is in its past would.
    pub fn before(&self, place: Stamp) -> BTreeSet<SiteId> {
        let was_there = |by: &HeldBy| by.created || by.adds.values().any(|added| *added < place);
        let there = self.held.iter().filter(|(_, by)| was_there(by));
        let there: BTreeSet<SiteId> = there.map(|(site, _)| site.clone()).collect();
        if there.is_empty() { self.holders() } else { there }
    }
}

/// What somebody wants of the sites of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldersAsked {
    /// Sites that are to hold it, too.
    pub add: BTreeSet<SiteId>,
    /// Sites that are to hold it no more.
    pub remove: BTreeSet<SiteId>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Author, Incarnation, OperationId, Reply, ResourceId, Status};
    use super::*;

    fn site(name: &str) -> SiteId {
        SiteId::new(name).unwrap()
    }

    fn sites(names: &str) -> BTreeSet<SiteId> {
        names.split(' ').filter(|name| !name.is_empty()).map(site).collect()
    }

    fn tag(name: &str, n: u64) -> EntryId {
        EntryId { author: Author { site: site(name), incarnation: Incarnation(7) }, n }
    }

    fn at(wall_ms: u64, id: EntryId, change: HoldingChange) -> (EntryId, (Stamp, HoldingChange)) {
        (id, (Stamp { wall_ms, counter: 0 }, change))
    }

    fn removes(name: &str, seen: &[EntryId]) -> HoldingChange {
        HoldingChange::Removes { site: site(name), seen: seen.iter().cloned().collect() }
    }

    fn holders(created: &str, changes: &[(EntryId, (Stamp, HoldingChange))]) -> BTreeSet<SiteId> {
        HolderSet::of(&sites(created), &changes.iter().cloned().collect()).holders()
    }

    #[test]
    fn what_changes_is_said_beside_a_reply_and_what_nobody_understands_is_passed_over() {
        let seen = BTreeSet::from([tag("lyon", 3), tag("paris", 9)]);
        let all = [
            HoldingChange::Adds(site("nice")),
            HoldingChange::Removes { site: site("lyon"), seen: seen.clone() },
            HoldingChange::GivesUp(site("lyon")),
            HoldingChange::Leaves { seen },
            HoldingChange::Leaves { seen: BTreeSet::new() },
        ];
        let read = |beside: Extension| {
            let reply = Reply {
                id: tag("paris", 9),
                stamp: Stamp::default(),
                operation: OperationId(tag("paris", 1)),
                status: Status::Ok,
                outcome: None,
            };
            let (resource, body) = (ResourceId::new("x").unwrap(), EntryBody::Reply(reply));
            Entry::new(&resource, Default::default(), body, vec![beside]).changes_holders()
        };
        for change in all {
            let said = Extension::holding(&change);
            assert!(said.must_understand);
            assert_eq!(read(said), Some(change));
        }
        for strange in ["", "adds", "adds nice lyon-0.1", "leaves x", "gives-up", "moves nice"] {
            let value = strange.as_bytes().to_vec();
            let said = Extension { name: NAME.to_owned(), must_understand: true, value };
            assert_eq!(read(said), None, "{strange}");
        }
    }

    #[test]
    fn an_addition_beats_a_removal_that_did_not_know_of_it() {
        let add = at(5, tag("paris", 3), HoldingChange::Adds(site("nice")));
        let knowing = at(9, tag("lyon", 4), removes("nice", &[tag("paris", 3)]));
        let ignorant = at(9, tag("lyon", 4), removes("nice", &[]));
        assert_eq!(holders("lyon paris", &[add.clone(), knowing]), sites("lyon paris"));
        assert_eq!(holders("lyon paris", &[add, ignorant]), sites("lyon nice paris"));
    }

    #[test]
    fn of_removals_that_would_leave_nobody_the_last_comes_to_nothing() {
        let (first, second) = (
            at(1, tag("lyon", 3), removes("paris", &[])),
            at(2, tag("paris", 3), removes("lyon", &[])),
        );
        let changes: HoldingChanges = [first, second].into();
        let all = HolderSet::of(&sites("lyon paris"), &changes);
        assert_eq!(all.holders(), sites("lyon"));
        assert!(all.is_void(&tag("paris", 3)) && !all.is_void(&tag("lyon", 3)));
        // What came to nothing once does not come to something when another site is added.
        let mut later = changes;
        later.extend([at(3, tag("lyon", 5), HoldingChange::Adds(site("nice")))]);
        assert_eq!(HolderSet::of(&sites("lyon paris"), &later).holders(), sites("lyon nice"));
    }

    #[test]
    fn a_site_has_left_when_it_said_so_after_it_was_last_added() {
        let add = tag("paris", 5);
        let left = at(3, tag("lyon", 4), HoldingChange::Leaves { seen: BTreeSet::new() });
        let mut changes = vec![at(1, tag("paris", 3), removes("lyon", &[])), left];
        let of =
            |changes: &[_]| HolderSet::of(&sites("lyon paris"), &changes.iter().cloned().collect());
        assert_eq!(of(&changes).closings(&site("lyon")).count(), 1);
        changes.push(at(4, add, HoldingChange::Adds(site("lyon"))));
        assert_eq!(of(&changes).closings(&site("lyon")).count(), 0);
        assert_eq!(of(&changes).holders(), sites("lyon paris"));
    }

    #[test]
    fn who_is_gone_for_good_holds_nothing_any_more_whoever_adds_it() {
        let gone = at(1, tag("paris", 3), HoldingChange::GivesUp(site("lyon")));
        let back = at(2, tag("paris", 4), HoldingChange::Adds(site("lyon")));
        assert_eq!(holders("lyon paris", &[gone.clone(), back]), sites("paris"));
        // A removal of the last that is not gone comes to nothing.
        let last = at(3, tag("paris", 5), removes("paris", &[]));
        assert_eq!(holders("lyon paris", &[gone, last]), sites("paris"));
    }

    /// What a few sites do, each knowing some of what the others did before: stamps go on from what is
    /// known, as hybrid clocks do.
    fn histories() -> impl Strategy<Value = Vec<(EntryId, (Stamp, HoldingChange), BTreeSet<usize>)>>
    {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        let step = (0..3_usize, 0..5_usize, any::<bool>(), any::<u16>());
        proptest::collection::vec(step, 0..12).prop_map(|steps| {
            let mut all: Vec<(EntryId, (Stamp, HoldingChange), BTreeSet<usize>)> = Vec::new();
            for (at, (author, of, adds, known)) in steps.into_iter().enumerate() {
                let own = |id: &EntryId| id.author.site == site(NAMES[author]);
                let mut past: BTreeSet<usize> = BTreeSet::new();
                for (n, (id, _, before)) in all.iter().enumerate() {
                    if own(id) || known & (1 << n) != 0 {
                        past.insert(n);
                        past.extend(before);
                    }
                }
                let last = past.iter().map(|n| all[*n].1.0.wall_ms).max().unwrap_or(0);
                let change = if adds {
                    HoldingChange::Adds(site(NAMES[of]))
                } else {
                    let is_it = |n: &&usize| all[**n].1.1.added() == Some(&site(NAMES[of]));
                    let seen = past.iter().filter(is_it).map(|n| all[*n].0.clone()).collect();
                    HoldingChange::Removes { site: site(NAMES[of]), seen }
                };
                let stamp = Stamp { wall_ms: last + 1 + u64::from(known % 7), counter: 0 };
                all.push((tag(NAMES[author], 1 + at as u64), (stamp, change), past));
            }
            all
        })
    }

    proptest! {
        #[test]
        fn there_is_always_a_holder_and_an_addition_stands_until_who_knows_it_takes_it_back(
            all in histories()
        ) {
            let changes: HoldingChanges =
                all.iter().map(|(id, said, _)| (id.clone(), said.clone())).collect();
            let holding = HolderSet::of(&sites("a b"), &changes);
            prop_assert!(!holding.holders().is_empty());
            for (id, (_, change), _) in &all {
                let Some(added) = change.added() else { continue };
                let is_taken_back = all.iter().any(|(_, (_, other), _)| match other {
                    HoldingChange::Removes { site, seen } => site == added && seen.contains(id),
                    _ => false,
                });
                prop_assert!(is_taken_back || holding.holders().contains(added));
            }
        }

        #[test]
        fn what_came_to_nothing_for_who_knew_all_before_it_never_comes_to_something(
            all in histories()
        ) {
            // What is known after the last step, without it, and all: a removal that nobody could have
            // been concurrent to stays what it was.
            let all_of = |which: &dyn Fn(usize) -> bool| -> HoldingChanges {
                let known = all.iter().enumerate().filter(|(n, _)| which(*n));
                known.map(|(_, (id, said, _))| (id.clone(), said.clone())).collect()
            };
            for (n, (id, ..)) in all.iter().enumerate() {
                let is_after = |m: usize| all[m].2.contains(&n);
                let is_concurrent = |m: usize| m != n && !is_after(m) && !all[n].2.contains(&m);
                if (0..all.len()).any(is_concurrent) {
                    continue;
                }
                let then = HolderSet::of(&sites("a b"), &all_of(&|m| m == n || all[n].2.contains(&m)));
                let now = HolderSet::of(&sites("a b"), &all_of(&|_| true));
                prop_assert_eq!(then.is_void(id), now.is_void(id));
            }
        }
    }
}
