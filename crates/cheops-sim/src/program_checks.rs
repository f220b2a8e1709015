//! An oracle of what is to come of operations about which programs decide, worked out from the operations
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use cheops_core::config::Config;
use cheops_core::engine::{OperationView, ResourceView};
use cheops_core::model::{OperationId, SiteId};

use crate::application::{SimValue, run_from};
use crate::programs::decide;
use crate::site::command_at;

/// The state that a site is to end with, where programs decide; worked out from the operations alone.
pub(crate) fn expected(view: &ResourceView, config: &Config, site: &SiteId) -> SimValue {
    let listed: Vec<&OperationView> =
        view.list.iter().filter_map(|id| view.operations.iter().find(|it| it.id() == id)).collect();
    let pasts = pasts(view);
    let knows =
        |a: &OperationId, b: &OperationId| pasts.get(a).is_some_and(|past| past.contains(b));
    let is_contested = |a: &OperationView, b: &OperationView| {
        config.program(&a.operation.kind, &b.operation.kind).is_some()
            && !knows(a.id(), b.id())
            && !knows(b.id(), a.id())
    };
    // What is contested with something before it, and all in between.
    let mut first: Vec<usize> = (0..listed.len()).collect();
    for (at, one) in listed.iter().enumerate() {
        if let Some(from) = listed[..at].iter().position(|other| is_contested(other, one)) {
            first[from..=at].iter_mut().for_each(|begin| *begin = (*begin).min(from));
        }
    }
    let mut value = SimValue::default();
    let mut at = 0;
    while at < listed.len() {
        let mut to = at + 1;
        while to < listed.len() && first[to..].iter().any(|begin| *begin < to) {
            to += 1;
        }
        let stretch = &listed[at..to];
        let plain = || stretch.iter().map(|it| command_at(&it.operation, site));
        let asked = || {
            let asked =
                stretch.iter().map(|it| (it.operation.payload.summary(), it.id().to_string()));
            decide(asked.collect(), &value.text)
        };
        value = match if stretch.len() > 1 { asked() } else { None } {
            None => run_from(value, plain()),
            Some(list) => {
                let find = |id: &str| stretch.iter().find(|it| it.id().to_string() == id);
                let command = |(id, instead): (String, Option<String>)| {
                    let own = || find(&id).map(|it| command_at(&it.operation, site).to_owned());
                    instead.or_else(own).unwrap_or_default()
                };
                let commands: Vec<String> = list.into_iter().map(command).collect();
                run_from(value, commands.iter().map(String::as_str))
            }
        };
        at = to;
    }
    value
}

/// Of each operation, all that it was made on: who writes knows what it wrote before, also a liar that does
/// not say so.
fn pasts(view: &ResourceView) -> BTreeMap<&OperationId, BTreeSet<&OperationId>> {
    let mut pasts: BTreeMap<&OperationId, BTreeSet<&OperationId>> = BTreeMap::new();
    // They come in total order, which extends causality.
    for view in &view.operations {
        let made_on = |known: &OperationId| {
            let heads = view.operation.parents.iter().chain([view.id()]);
            let mut of_the_same = heads.filter(|head| head.0.author == known.0.author);
            of_the_same.any(|head| known.0.n <= head.0.n)
        };
        let mut past: BTreeSet<&OperationId> =
            pasts.keys().copied().filter(|known| made_on(known)).collect();
        for known in past.clone() {
            past.extend(pasts.get(known).into_iter().flatten().copied());
        }
        pasts.insert(view.id(), past);
    }
    pasts
}
