//! Many sites in one thread, with virtual time: links that take time, break, are cut one way or both.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use cheops_core::model::SiteId;
use cheops_directory::{
    Existence, GossipEffect, GossipEvent, GossipMessage, Member, MemberStart, Membership, Moment,
    OwnSite, SignedStatement, SiteDirectory,
};

use crate::keys::{Keys, key, site};

/// A mistake that someone could make, made where a member meets its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A signature is not looked at.
    BelievesAnybody,
    /// News are kept to oneself.
    PassesNothingOn,
    /// That a link is gone is not told.
    LinkDownUntold,
    /// Who was called is not told that there is a link.
    OneSideUp,
}

/// How long silence lasts until a link counts as gone.
const SILENCE_MS: u64 = 8_000;
/// How long a link that nobody wants is kept.
const SPARE_MS: u64 = 60_000;

#[derive(Debug)]
enum Happens {
    Tick(usize),
    Arrives {
        from: usize,
        to: usize,
        link: u64,
        message: GossipMessage,
    },
    Calls {
        from: usize,
        to: usize,
        failed: u32,
    },
    /// A link that was cut, or is to a site that crashed, is noticed to be gone by that one.
    Lost {
        at: usize,
        other: usize,
        link: u64,
    },
    Spare {
        one: usize,
        other: usize,
    },
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    pub(crate) members: Vec<Option<Member>>,
    names: Vec<SiteId>,
    index: BTreeMap<SiteId, usize>,
    /// What stays on the disk of a site that is down.
    disks: BTreeMap<usize, SiteDirectory>,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    what: BTreeMap<u64, Happens>,
    next: u64,
    ticks: Vec<Option<u64>>,
    /// Which end believes in which link.
    links: BTreeMap<(usize, usize), u64>,
    cuts: BTreeSet<(usize, usize)>,
    calls: BTreeSet<(usize, usize)>,
    random: u64,
    planted: Option<Planted>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) links_made: u64,
    pub(crate) refused: u64,
}

pub(crate) fn name(n: usize) -> SiteId {
    site(&format!("s{n}"))
}

fn own(n: usize) -> OwnSite {
    OwnSite {
        state: Membership::Alive,
        addresses: vec![format!("s{n}.example:8078")],
        labels: [].into(),
        services: [].into(),
        software: "0.1.0".into(),
    }
}

impl World {
    /// Sites that know the address of the first one, and nothing else.
    pub(crate) fn from_one_seed(count: usize, seed: u64, planted: Option<Planted>) -> Self {
        Self::with(count, seed, planted, &SiteDirectory::default())
    }

    /// Sites that all knew each other when they stopped, and start at once.
    pub(crate) fn that_starts_again(count: usize, seed: u64) -> Self {
        let mut all = SiteDirectory::default();
        for n in 0..count {
            let mut world = Self::with(1, 0, None, &SiteDirectory::default());
            world.rename(n);
            world.run(1_000);
            for signed in world.members[0].as_ref().unwrap().directory().statements() {
                all.apply(signed, &Keys::of(&name(n))).unwrap();
            }
        }
        Self::with(count, seed, None, &all)
    }

    fn rename(&mut self, n: usize) {
        self.names = vec![name(n)];
        self.index = [(name(n), 0)].into();
        self.starts_as(0, n, SiteDirectory::default());
    }

    fn with(count: usize, seed: u64, planted: Option<Planted>, all: &SiteDirectory) -> Self {
        let names: Vec<_> = (0..count).map(name).collect();
        let index = names.iter().cloned().enumerate().map(|(n, name)| (name, n)).collect();
        let mut world = Self {
            now_ms: 0,
            members: (0..count).map(|_| None).collect(),
            names,
            index,
            disks: BTreeMap::new(),
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            next: 0,
            ticks: vec![None; count],
            links: BTreeMap::new(),
            cuts: BTreeSet::new(),
            calls: BTreeSet::new(),
            random: seed,
            planted,
            messages: 0,
            bytes: 0,
            links_made: 0,
            refused: 0,
        };
        for n in 0..count {
            world.starts_as(n, n, all.clone());
        }
        world
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit.max(1)
    }

    fn starts_as(&mut self, at: usize, n: usize, directory: SiteDirectory) {
        let believes_anybody = self.planted == Some(Planted::BelievesAnybody);
        let start = MemberStart {
            me: name(n),
            notary: Arc::new(Keys { believes_anybody, ..Keys::of(&name(n)) }),
            directory,
            number: 1_000_000 + self.now_ms,
        };
        self.members[at] = Some(Member::new(start));
        self.ticks[at] = None;
        if n != 0 {
            self.handle(at, GossipEvent::Configured([name(0)].into()));
        }
        self.handle(at, GossipEvent::Announced(own(n)));
    }

    pub(crate) fn start(&mut self, n: usize) {
        let disk = self.disks.remove(&n).unwrap_or_default();
        self.starts_as(n, n, disk);
    }

    pub(crate) fn crash(&mut self, n: usize) {
        if let Some(member) = self.members[n].take() {
            self.disks.insert(n, member.directory().clone());
        }
        for ((at, other), link) in self.links.clone() {
            if at == n {
                self.links.remove(&(at, other));
            } else if other == n {
                self.after(SILENCE_MS, Happens::Lost { at, other, link });
            }
        }
    }

    /// Nothing comes through in that direction any more. Whoever should have heard it notices first.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
        if let Some(link) = self.links.get(&(to, from)).copied() {
            self.after(SILENCE_MS, Happens::Lost { at: to, other: from, link });
            self.after(SILENCE_MS * 5 / 2, Happens::Lost { at: from, other: to, link });
        }
    }

    pub(crate) fn cut_off(&mut self, one: &[usize], other: &[usize]) {
        for one in one {
            for other in other {
                self.cut(*one, *other);
                self.cut(*other, *one);
            }
        }
    }

    pub(crate) fn heal_all(&mut self) {
        self.cuts.clear();
    }

    /// Hands something to a site as if another one that it has a link to had sent it.
    pub(crate) fn say(&mut self, from: usize, to: usize, statements: Vec<SignedStatement>) {
        let message = GossipMessage::Said { statements, left_out: Vec::new() };
        self.handle(to, GossipEvent::Heard(name(from), message));
    }

    pub(crate) fn hand_in(&mut self, at: usize, signed: &SignedStatement) {
        let now = self.now();
        let effects = self.members[at].as_mut().unwrap().hand_in(now, signed).unwrap();
        self.act(at, effects);
    }

    fn now(&self) -> Moment {
        Moment { mono_ms: self.now_ms, wall_ms: 1_000_000 + self.now_ms }
    }

    fn after(&mut self, ms: u64, what: Happens) {
        self.events.push(Reverse((self.now_ms + ms, self.next)));
        self.what.insert(self.next, what);
        self.next += 1;
    }

    pub(crate) fn run(&mut self, ms: u64) {
        let until = self.now_ms + ms;
        while let Some(Reverse((at_ms, id))) = self.events.peek().copied() {
            if at_ms > until {
                break;
            }
            self.events.pop();
            self.now_ms = at_ms;
            if let Some(what) = self.what.remove(&id) {
                self.happens(what);
            }
        }
        self.now_ms = until;
    }

    /// Runs until that holds, and says after how long; panics if it never does.
    pub(crate) fn until(&mut self, most_ms: u64, what: &str, holds: impl Fn(&Self) -> bool) -> u64 {
        let began_ms = self.now_ms;
        while !holds(self) {
            let waited = self.now_ms - began_ms;
            assert!(waited < most_ms, "not within {most_ms} ms: {what}");
            self.run(500);
        }
        self.now_ms - began_ms
    }

    fn happens(&mut self, what: Happens) {
        match what {
            Happens::Tick(at) => {
                if self.ticks[at].is_some_and(|due| due <= self.now_ms) {
                    self.ticks[at] = None;
                    self.handle(at, GossipEvent::Ticked);
                }
            }
            Happens::Arrives { from, to, link, message } => {
                if self.links.get(&(to, from)) == Some(&link) {
                    self.handle(to, GossipEvent::Heard(self.names[from].clone(), message));
                }
            }
            Happens::Calls { from, to, failed } => self.call(from, to, failed),
            Happens::Lost { at, other, link } => self.lose(at, other, link),
            Happens::Spare { one, other } => {
                if !self.wants(one, other) && !self.wants(other, one) {
                    for (at, other) in [(one, other), (other, one)] {
                        if let Some(link) = self.links.get(&(at, other)).copied() {
                            self.lose(at, other, link);
                        }
                    }
                }
            }
        }
    }

    fn wants(&self, one: usize, other: usize) -> bool {
        let member = self.members[one].as_ref();
        member.is_some_and(|member| member.wanted().contains(&self.names[other]))
    }

    fn lose(&mut self, at: usize, other: usize, link: u64) {
        if self.links.get(&(at, other)) != Some(&link) {
            return;
        }
        self.links.remove(&(at, other));
        if self.planted != Some(Planted::LinkDownUntold) {
            self.handle(at, GossipEvent::LinkDown(self.names[other].clone()));
        }
        self.calls_soon(at, other);
    }

    fn calls_soon(&mut self, from: usize, to: usize) {
        if self.wants(from, to) && self.calls.insert((from, to)) {
            let after = 20 + self.below(200);
            self.after(after, Happens::Calls { from, to, failed: 0 });
        }
    }

    fn call(&mut self, from: usize, to: usize, failed: u32) {
        self.calls.remove(&(from, to));
        if !self.wants(from, to) || self.links.contains_key(&(from, to)) {
            return;
        }
        let known =
            self.members[from].as_ref().unwrap().directory().record(&self.names[to]).is_some();
        let open = !self.cuts.contains(&(from, to)) && !self.cuts.contains(&(to, from));
        if self.members[to].is_some() && open && (known || to == 0) {
            self.links_made += 1;
            let link = self.links_made;
            let round_trip_us = 1_000 * (10 + self.below(90));
            for (at, other) in [(from, to), (to, from)] {
                self.links.insert((at, other), link);
                if at == to && self.planted == Some(Planted::OneSideUp) {
                    continue;
                }
                self.handle(at, GossipEvent::LinkUp(self.names[other].clone(), round_trip_us));
            }
        } else if self.calls.insert((from, to)) {
            let pause = (500 << failed.min(5)).min(10_000);
            let pause = pause * 3 / 4 + self.below(pause / 2);
            self.after(pause, Happens::Calls { from, to, failed: failed + 1 });
        }
    }

    pub(crate) fn handle(&mut self, at: usize, event: GossipEvent) {
        let now = self.now();
        let Some(member) = &mut self.members[at] else { return };
        let effects = member.handle(now, event);
        self.act(at, effects);
    }

    fn act(&mut self, at: usize, effects: Vec<GossipEffect>) {
        for effect in effects {
            match effect {
                GossipEffect::Send(to, message) => self.send(at, &to, message),
                GossipEffect::Want(wanted) => {
                    for other in wanted
                        .iter()
                        .filter_map(|it| self.index.get(it).copied())
                        .collect::<Vec<_>>()
                    {
                        self.calls_soon(at, other);
                    }
                    let ours = self.links.range((at, 0)..(at + 1, 0)).map(|((_, other), _)| *other);
                    for other in ours.collect::<Vec<_>>() {
                        if !self.wants(at, other) {
                            self.after(SPARE_MS, Happens::Spare { one: at, other });
                        }
                    }
                }
                GossipEffect::Refused(..) => self.refused += 1,
                GossipEffect::DirectoryChanged | GossipEffect::ReachChanged => {}
            }
        }
        let Some(due) = self.members[at].as_ref().and_then(Member::next_deadline) else { return };
        let due = due.max(self.now_ms);
        if self.ticks[at].is_none_or(|before| due < before) {
            self.ticks[at] = Some(due);
            self.after(due - self.now_ms, Happens::Tick(at));
        }
    }

    fn send(&mut self, at: usize, to: &SiteId, message: GossipMessage) {
        self.messages += 1;
        self.bytes += message.to_bytes().len() as u64;
        let Some(to) = self.index.get(to).copied() else { return };
        let Some(link) = self.links.get(&(at, to)).copied() else { return };
        let is_own = |signed: &SignedStatement| *signed.statement().site() == self.names[at];
        let message = match message {
            GossipMessage::Said { statements, left_out }
                if self.planted == Some(Planted::PassesNothingOn) =>
            {
                let statements = statements.into_iter().filter(is_own).collect();
                GossipMessage::Said { statements, left_out }
            }
            message => message,
        };
        if !self.cuts.contains(&(at, to)) {
            let delay = 5 + self.below(45);
            // What is sent on one link arrives in order.
            self.after(delay / 8 + 20, Happens::Arrives { from: at, to, link, message });
        }
    }

    pub(crate) fn up(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter_map(|(n, member)| Some((n, member.as_ref()?)))
    }

    pub(crate) fn links_per_site(&self) -> f64 {
        self.links.len() as f64 / self.up().count() as f64
    }

    /// Whether every site that is up knows of so many.
    pub(crate) fn all_know(&self, count: usize) -> bool {
        self.up().all(|(_, member)| member.directory().alive().count() == count)
    }

    /// Whether each holds alive just those that it can reach over the network.
    pub(crate) fn views_agree(&self) -> bool {
        let mut part: Vec<Option<usize>> = vec![None; self.members.len()];
        for (first, _) in self.up() {
            let mut next = if part[first].is_none() { vec![first] } else { Vec::new() };
            while let Some(at) = next.pop() {
                if part[at].replace(first).is_none() {
                    let open = |other: &usize| {
                        !self.cuts.contains(&(at, *other)) && !self.cuts.contains(&(*other, at))
                    };
                    let others = self.up().map(|(other, _)| other).filter(open);
                    next.extend(others.filter(|other| part[*other].is_none()));
                }
            }
        }
        let mut sizes = BTreeMap::<_, usize>::new();
        self.up().for_each(|(at, _)| *sizes.entry(part[at]).or_default() += 1);
        self.up().all(|(at, member)| {
            let ways = member.ways();
            let is_here = |name: &SiteId| part[self.index[name]] == part[at];
            ways.len() + 1 == sizes[&part[at]] && ways.keys().all(is_here)
        })
    }

    /// Whether nothing is known of any site but what it ever said.
    pub(crate) fn no_lie_is_believed(&self) -> bool {
        self.up().all(|(_, member)| {
            let said = |(n, name): (usize, &SiteId)| match member.directory().existence(name) {
                Existence::Exists(record) => record.addresses == own(n).addresses,
                Existence::Unknown => true,
                Existence::Left(_) | Existence::Removed(_) => false,
            };
            let is_refused = |name| member.directory().is_refused(name, key(name, 0)).is_some();
            self.names.iter().enumerate().all(said) && !self.names.iter().any(is_refused)
        })
    }

    /// Whether what is known of a site that is up is what it says.
    pub(crate) fn all_is_true(&self) -> bool {
        self.up().all(|(_, member)| {
            self.up().all(|(other, it)| {
                let name = &self.names[other];
                member.directory().record(name).is_none_or(|known| {
                    it.directory().record(name) == Some(known)
                        && known.addresses == own(other).addresses
                })
            })
        })
    }
}
