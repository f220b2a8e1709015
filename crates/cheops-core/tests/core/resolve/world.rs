//! A few sites that hand in operations and talk to each other when told to.

use std::collections::BTreeMap;

use cheops_core::config::{Concurrent, Config, Resolution as Entry, Rule};
use cheops_core::model::{
    Author, EntryId, HybridClock, Incarnation, Operation, OperationId, OperationType, Payload,
    ResourceId, SiteId,
};
use cheops_core::resolve::{LeftOut, Resolution, resolve};

pub(crate) fn kind(name: &str) -> OperationType {
    OperationType::new(name).unwrap()
}

/// A matrix from lines such as `set inc keep-order`; a `keep-both` at the end is the fourth field.
pub(crate) fn matrix(text: &str) -> Config {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let entries = lines.map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let rule = match words[2] {
            "take-one" => Rule::TakeOne,
            "take-both" => Rule::TakeBoth,
            "keep-order" => Rule::KeepOrder,
            "reverse-order" => Rule::ReverseOrder,
            "ordered" => Rule::Ordered,
            logic => Rule::Logic(logic.strip_prefix("logic:").unwrap().to_owned()),
        };
        let concurrent = match words.get(3) {
            Some(&"keep-both") => Concurrent::KeepBoth,
            _ => Concurrent::ReplaceWins,
        };
        ((kind(words[0]), kind(words[1])), Entry { rule, concurrent })
    });
    Config { matrix: entries.collect(), ..Config::default() }
}

/// Table 5 of the report with the entry it forgot.
pub(crate) const REDIS: &str = "
    set inc keep-order
    inc set reverse-order
    inc inc take-both
    set set take-one";

/// The same, with both kept where they are concurrent, as in the report's merges.
pub(crate) const REDIS_KEEP_BOTH: &str = "
    set inc keep-order keep-both
    inc set reverse-order keep-both
    inc inc take-both
    set set take-one";

/// Operations are told apart by their command, which is their label in lists.
pub(crate) struct World {
    sites: BTreeMap<String, Site>,
    pub(crate) made: Vec<Operation>,
    config: Config,
}

struct Site {
    author: Author,
    clock: HybridClock,
    written: u64,
    knows: Resolution,
}

impl World {
    pub(crate) fn new(config: &Config, sites: &[&str]) -> Self {
        let site = |name: &&str| {
            let author = Author { site: SiteId::new(name).unwrap(), incarnation: Incarnation(1) };
            let knows = Resolution::new(config.clone());
            let site = Site { author, clock: HybridClock::default(), written: 0, knows };
            ((*name).to_owned(), site)
        };
        Self { sites: sites.iter().map(site).collect(), made: Vec::new(), config: config.clone() }
    }

    /// An operation handed in at a site, when its clock shows this.
    pub(crate) fn does(
        &mut self,
        site: &str,
        at: u64,
        kind_name: &str,
        label: &str,
    ) -> OperationId {
        self.hands_in(site, at, kind_name, label, false)
    }

    pub(crate) fn forces(
        &mut self,
        site: &str,
        at: u64,
        kind_name: &str,
        label: &str,
    ) -> OperationId {
        self.hands_in(site, at, kind_name, label, true)
    }

    fn hands_in(
        &mut self,
        site: &str,
        at: u64,
        name: &str,
        label: &str,
        force: bool,
    ) -> OperationId {
        let site = self.sites.get_mut(site).unwrap();
        site.written += 1;
        let operation = Operation {
            id: OperationId(EntryId { author: site.author.clone(), n: site.written }),
            resource: ResourceId::new("counter").unwrap(),
            stamp: site.clock.tick(at),
            claimed: Default::default(),
            parents: site.knows.operations().heads(),
            kind: kind(name),
            payload: Payload::shell(label),
            replaces: site.knows.replaces(&kind(name), force),
            declares: None,
            needs: Default::default(),
            asked_by: None,
        };
        site.knows.insert(operation.clone());
        self.made.push(operation.clone());
        operation.id
    }

    /// One site tells another all it knows.
    pub(crate) fn tells(&mut self, from: &str, to: &str) {
        let known: Vec<_> = self.made.iter().filter(|made| self.knows(from, &made.id)).collect();
        let to = self.sites.get_mut(to).unwrap();
        for operation in known {
            to.clock.observe(operation.stamp);
            to.knows.insert(operation.clone());
        }
    }

    fn knows(&self, site: &str, id: &OperationId) -> bool {
        self.sites[site].knows.operations().contains(id)
    }

    /// Every site tells every other all it knows.
    pub(crate) fn heals(&mut self) {
        for site in self.sites.values_mut() {
            for operation in &self.made {
                site.clock.observe(operation.stamp);
                site.knows.insert(operation.clone());
            }
        }
    }

    /// An operation failed at every site, and every site heard of that.
    pub(crate) fn fails_everywhere(&mut self, id: &OperationId) {
        self.sites.values_mut().for_each(|site| {
            site.knows.mark_void(id);
        });
    }

    pub(crate) fn at(&self, site: &str) -> &Resolution {
        &self.sites[site].knows
    }

    /// The list at a site, by labels.
    pub(crate) fn list_at(&self, site: &str) -> String {
        let knows = self.at(site);
        let labels =
            knows.list().map(|id| knows.operations().operation(id).unwrap().payload.summary());
        labels.collect::<Vec<_>>().join(" ")
    }

    /// The list, which must be the same at every site and the same as from scratch.
    pub(crate) fn list(&self) -> String {
        let mut lists = self.sites.keys().map(|site| {
            let knows = self.at(site);
            assert_eq!(knows.resolved(), resolve(knows.operations(), &self.config), "at {site}");
            self.list_at(site)
        });
        let list = lists.next().unwrap();
        lists.for_each(|other| assert_eq!(other, list));
        list
    }

    /// Why an operation is left out, as every site says.
    pub(crate) fn left_out(&self, id: &OperationId) -> LeftOut {
        let mut reasons = self.sites.values().map(|site| site.knows.left_out(id).unwrap());
        let reason = reasons.next().unwrap();
        reasons.for_each(|other| assert_eq!(other, reason));
        reason
    }
}

/// Every order of three things.
pub(crate) const ORDERS: [[u64; 3]; 6] =
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
