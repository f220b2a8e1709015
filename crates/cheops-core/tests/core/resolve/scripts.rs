//! Random histories: odd matrices, sites that hand in operations and talk at random, skewed
//! clocks, and orders in which all of it may arrive.

use cheops_core::config::{Concurrent, Config, Resolution as Entry, Rule};
use cheops_core::model::Operation;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;

use super::world::{World, kind};

const KINDS: [&str; 4] = ["a", "b", "c", "d"];
/// What operations may be: of a type that matrices speak of, or the end of the resource.
const DONE: [&str; 5] = ["a", "b", "c", "d", "cheops.delete"];
const SITES: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];

#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) config: Config,
    pub(crate) sites: usize,
    /// How far each site's clock is ahead.
    pub(crate) skews: Vec<u64>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Does { site: Index, kind: usize, force: bool },
    Tells { from: Index, to: Index },
}

fn rule() -> impl Strategy<Value = Rule> {
    prop_oneof![
        1 => Just(Rule::TakeBoth),
        3 => Just(Rule::TakeOne),
        3 => Just(Rule::KeepOrder),
        3 => Just(Rule::ReverseOrder),
        1 => Just(Rule::Ordered),
        1 => Just(Rule::Logic("text".to_owned())),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let concurrent = prop_oneof![Just(Concurrent::ReplaceWins), Just(Concurrent::KeepBoth)];
    (rule(), concurrent).prop_map(|(rule, concurrent)| Entry { rule, concurrent })
}

/// Any matrix over four types, also such as the parser would refuse.
pub(crate) fn config() -> impl Strategy<Value = Config> {
    let pair = (0..KINDS.len(), 0..KINDS.len());
    btree_map(pair.prop_map(|(a, b)| (kind(KINDS[a]), kind(KINDS[b]))), entry(), 0..=16)
        .prop_map(|matrix| Config { matrix, ..Config::default() })
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![20 => 0..KINDS.len(), 1 => Just(KINDS.len())];
    let does = (any::<Index>(), kind, prop::bool::weighted(0.08))
        .prop_map(|(site, kind, force)| Step::Does { site, kind, force });
    let tells = (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Step::Tells { from, to });
    prop_oneof![3 => does, 2 => tells]
}

pub(crate) fn script(steps: usize) -> impl Strategy<Value = Script> {
    let skew = prop_oneof![Just(0), 0..30_u64, Just(1_000_000)];
    (config(), 2..=SITES.len(), vec(skew, SITES.len()), vec(step(), 1..steps))
        .prop_map(|(config, sites, skews, steps)| Script { config, sites, skews, steps })
}

impl Script {
    /// The operations made, parents first.
    pub(crate) fn play(&self) -> Vec<Operation> {
        let mut world = World::new(&self.config, &SITES[..self.sites]);
        for (now, step) in (0..).zip(&self.steps) {
            match step {
                Step::Does { site, kind, force } => {
                    let site = site.index(self.sites);
                    let (name, at) = (SITES[site], now / 2 + self.skews[site]);
                    let label = format!("{}{now}", DONE[*kind]);
                    if *force {
                        world.forces(name, at, DONE[*kind], &label);
                    } else {
                        world.does(name, at, DONE[*kind], &label);
                    }
                }
                Step::Tells { from, to } => {
                    world.tells(SITES[from.index(self.sites)], SITES[to.index(self.sites)]);
                }
            }
        }
        world.made
    }
}

/// One order in which operations may arrive after their past: `choices` picks among those ready.
pub(crate) fn arrival(made: &[Operation], choices: &[Index]) -> Vec<Operation> {
    let mut left: Vec<_> = made.iter().collect();
    let mut order = Vec::new();
    let mut choices = choices.iter().cycle();
    while !left.is_empty() {
        let ready: Vec<_> = (0..left.len())
            .filter(|&i| !left.iter().any(|other| left[i].parents.contains(&other.id)))
            .collect();
        let choice = choices.next().map_or(0, |choice| choice.index(ready.len()));
        order.push(left.remove(ready[choice]).clone());
    }
    order
}
