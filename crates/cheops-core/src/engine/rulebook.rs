//! The configs of a site's resources. Few are different: each is kept once, and made ready once,
//! however many resources have it and wherever it came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Config;
use crate::model::{Declaration, Entry, EntryBody};
use crate::resolve::Rules;

#[derive(Debug, Default)]
pub(super) struct Rulebook {
    rules: BTreeMap<Arc<Config>, Rules>,
    /// How many there may be before those that nobody has any more are looked for.
    sweep_at: usize,
}

/// So many are not worth looking for what is unused.
const FEW: usize = 16;

impl Rulebook {
    /// What a config comes to.
    pub(super) fn rules(&mut self, config: &Arc<Config>) -> Rules {
        if let Some(known) = self.rules.get(config) {
            return known.clone();
        }
        if self.rules.len() >= self.sweep_at {
            self.rules.retain(|_, rules| rules.are_shared());
            self.sweep_at = FEW.max(2 * self.rules.len());
        }
        let rules = Rules::from(Arc::clone(config));
        self.rules.insert(Arc::clone(config), rules.clone());
        rules
    }

    /// Whether one of them has hooks, or had until lately.
    pub(super) fn has_hooks(&self) -> bool {
        self.rules.keys().any(|config| !config.hooks.is_empty())
    }

    /// The entry with the config that is kept here in the place of its own copy.
    pub(super) fn share(&mut self, mut entry: Arc<Entry>) -> Arc<Entry> {
        let Some(own) = config_in(&entry) else { return entry };
        let kept = Arc::clone(self.rules(own).config());
        if !Arc::ptr_eq(own, &kept)
            && let EntryBody::Operation(operation) = &mut Arc::make_mut(&mut entry).body
            && let Some(declares) = &mut operation.declares
        {
            let sites = declares.sites.clone();
            *declares = Arc::new(Declaration { sites, config: Some(kept) });
        }
        entry
    }
}

fn config_in(entry: &Entry) -> Option<&Arc<Config>> {
    match &entry.body {
        EntryBody::Operation(operation) => operation.declares.as_ref()?.config.as_ref(),
        EntryBody::Reply(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Handling, profile};
    use crate::model::OperationType;

    fn config(n: usize) -> Arc<Config> {
        let kind = OperationType::new(&format!("t{n}")).unwrap();
        let types = [(kind, Handling::default())].into();
        Arc::new(Config { types, ..Config::default() })
    }

    #[test]
    fn equal_configs_are_kept_once() {
        let mut book = Rulebook::default();
        let redis = || Arc::new(profile("redis").unwrap().config.clone());
        let (one, other) = (book.rules(&redis()), book.rules(&redis()));
        assert!(Arc::ptr_eq(one.config(), other.config()));
        assert!(!Arc::ptr_eq(one.config(), book.rules(&config(1)).config()));
    }

    #[test]
    fn configs_that_nobody_has_any_more_are_forgotten() {
        let mut book = Rulebook::default();
        let held: Vec<_> = (0..3).map(|n| book.rules(&config(n))).collect();
        for n in 0..10_000 {
            book.rules(&config(n));
        }
        assert!(book.rules.len() <= FEW, "{}", book.rules.len());
        for (n, held) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(held.config(), book.rules(&config(n)).config()));
        }
    }
}
