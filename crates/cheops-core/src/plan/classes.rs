//! Operations grouped by how they stand to each other, so that planning compares small numbers
//! instead of walking the matrix for every pair.

use std::collections::{BTreeMap, BTreeSet};

use super::Item;
use crate::config::{Config, Rule};
use crate::model::{OperationType, Replaces};

/// A group of operations that behave alike.
pub(super) type Class = usize;

/// Who a class holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Members<'a> {
    /// Operations of this type. Types the matrix does not name all behave alike and share a class,
    /// in which any of them stands for all.
    kind: &'a OperationType,
    /// Whether they overwrite whatever was there, by their own word and not by their type.
    sovereign: bool,
}

/// The classes of the operations at hand, and how they stand to each other.
pub(super) struct Classes<'a> {
    config: &'a Config,
    named: BTreeSet<&'a OperationType>,
    unnamed: Option<&'a OperationType>,
    members: Vec<Members<'a>>,
    known: BTreeMap<Members<'a>, Class>,
    commute: Vec<Vec<bool>>,
    wipes: Vec<Vec<bool>>,
}

impl<'a> Classes<'a> {
    /// Classes for these items.
    pub(super) fn new(config: &'a Config, items: impl Iterator<Item = &'a Item>) -> Self {
        let named = config.matrix.keys().flat_map(|(a, b)| [a, b]).collect();
        let mut classes = Self {
            config,
            named,
            unnamed: None,
            members: Vec::new(),
            known: BTreeMap::new(),
            commute: Vec::new(),
            wipes: Vec::new(),
        };
        items.for_each(|item| classes.admit(item));
        classes.relate();
        classes
    }

    /// The class of an item that [`Classes::new`] was given.
    pub(super) fn of(&self, item: &Item) -> Class {
        let is_named = self.named.contains(&item.kind);
        let kind = if is_named { &item.kind } else { self.unnamed.unwrap_or(&item.kind) };
        let members = Members { kind, sovereign: self.is_sovereign(item) };
        self.known.get(&members).copied().unwrap_or_default()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Whether two operations of these classes may be swapped.
    pub(super) fn commute(&self, a: Class, b: Class) -> bool {
        self.commute[a][b]
    }

    /// Whether a success of `a` takes away whatever an earlier `b` did.
    pub(super) fn wipes(&self, a: Class, b: Class) -> bool {
        self.wipes[a][b]
    }

    /// Whether operations of this class set things to values that depend on nothing, and leave
    /// the rest. Types that the matrix does not name share a class, and nothing is said of them all.
    /// What can be undone is undone instead: how often, if it ran twice, nobody could tell.
    pub(super) fn assigns(&self, class: Class) -> bool {
        let Members { kind, sovereign } = self.members[class];
        let handling = self.config.handling(kind);
        let is_said = self.named.contains(kind) && handling.assigns && handling.undo.is_none();
        is_said && !sovereign && !self.overwrites(class)
    }

    /// Whether operations of this class overwrite: whatever else they leave, not one another.
    pub(super) fn overwrites(&self, class: Class) -> bool {
        self.wipes[class][class]
    }

    /// Whether nothing but the operation's own word, and not its type, says that it overwrites;
    /// then it overwrites everything.
    fn is_sovereign(&self, item: &Item) -> bool {
        match item.replaces {
            Replaces::Nothing => false,
            Replaces::Past => !self.config.overwrites(&item.kind),
            Replaces::PastByForce => true,
        }
    }

    fn admit(&mut self, item: &'a Item) {
        let is_named = self.named.contains(&item.kind);
        let kind = if is_named { &item.kind } else { self.unnamed.get_or_insert(&item.kind) };
        let members = Members { kind, sovereign: self.is_sovereign(item) };
        let next = self.members.len();
        if *self.known.entry(members).or_insert(next) == next {
            self.members.push(members);
        }
    }

    fn relate(&mut self) {
        let table = |relation: &dyn Fn(Class, Class) -> bool| {
            let all = 0..self.members.len();
            let row = |a: Class| all.clone().map(|b| relation(a, b)).collect();
            all.clone().map(row).collect()
        };
        let commute = table(&|a, b| self.may_swap(a, b));
        let beside = self.members.iter().map(|members| self.beside(members)).collect::<Vec<_>>();
        let wipes = table(&|a, b| self.takes_away(a, b, &beside));
        (self.commute, self.wipes) = (commute, wipes);
    }

    fn may_swap(&self, a: Class, b: Class) -> bool {
        let (a, b) = (self.members[a], self.members[b]);
        !a.sovereign && !b.sovereign && self.config.commute(a.kind, b.kind)
    }

    /// The types of the matrix that commute with these operations: they work on other parts of the
    /// state, or on the same in a way that does not matter.
    fn beside(&self, members: &Members<'_>) -> BTreeSet<&'a OperationType> {
        let commutes = |other: &&OperationType| self.config.commute(members.kind, other);
        let named = self.named.iter().copied();
        named.filter(|_| !members.sovereign).filter(commutes).collect()
    }

    /// Whether a success of `a` takes away the whole of what an earlier `b` did.
    ///
    /// An `a` that commutes with some type leaves that type's part of the state alone; if `b` does
    /// not commute with that type, it may have left something there.
    fn takes_away(&self, a: Class, b: Class, beside: &[BTreeSet<&OperationType>]) -> bool {
        let (one, other) = (self.members[a], self.members[b]);
        one.sovereign
            || (self.replaces(one.kind, other.kind)
                && !self.may_swap(a, b)
                && beside[a].is_subset(&beside[b]))
    }

    /// Whether the matrix has operations of this type in the place of those: by an entry, or, for a
    /// type of the replacing kind, by silence.
    fn replaces(&self, kind: &OperationType, other: &OperationType) -> bool {
        let first = self.config.listed(kind, other).map(|entry| &entry.rule);
        let second = self.config.listed(other, kind).map(|entry| &entry.rule);
        match (first, second) {
            (None, None) => self.config.overwrites(kind),
            (Some(Rule::KeepOrder | Rule::TakeOne), _) => true,
            (_, Some(Rule::ReverseOrder | Rule::TakeOne)) => true,
            _ => false,
        }
    }
}

/// Walks operations from the last to the first, and says which are wiped away by a later one.
///
/// That it is overwritten is not enough: an operation in between may have made use of it and may
/// not be wiped away itself. Then the effect lives on in that one.
pub(super) struct Wipers<'a> {
    classes: &'a Classes<'a>,
    /// For each class of which one overwrites: the classes that live on before it.
    before: Vec<Option<Vec<bool>>>,
}

impl<'a> Wipers<'a> {
    pub(super) fn new(classes: &'a Classes<'a>) -> Self {
        Self { classes, before: vec![None; classes.count()] }
    }

    /// Whether an operation that comes before all those met so far is wiped away.
    pub(super) fn wipe(&self, class: Class) -> bool {
        let lives_on = |before: &[bool]| {
            let mut users = before.iter().enumerate().filter(|(_, lives)| **lives);
            users.any(|(user, _)| !self.classes.commute(user, class))
        };
        self.before.iter().enumerate().any(|(wiper, before)| match before {
            Some(before) => self.classes.wipes(wiper, class) && !lives_on(before),
            None => false,
        })
    }

    /// The next one lives on, or may.
    pub(super) fn meet_living(&mut self, class: Class) {
        for before in self.before.iter_mut().flatten() {
            before[class] = true;
        }
    }

    /// The next one took effect: if its class overwrites, it wiped away what came before, even if
    /// it was wiped away itself later.
    pub(super) fn meet_wiper(&mut self, class: Class) {
        if self.classes.overwrites(class) {
            self.before[class] = Some(vec![false; self.classes.count()]);
        }
    }
}
