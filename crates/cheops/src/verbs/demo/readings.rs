//! What can be read off the engines and applications on the stage, as plain data to tell.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cheops_core::engine::{Engine, OperationView, ResourceView, SiteStatus};
use cheops_core::model::{Operation, OperationId, SiteId, Status};
use cheops_core::resolve::Explanation as Why;
use cheops_sim::{Site, command_of, fresh_run};

use super::beat::{Explained, Explanation, Link, Replied, SiteReply, SiteState};
use super::stage::{SITES, Stage};

impl Stage {
    fn engines(&self) -> impl Iterator<Item = (usize, &SiteId, &Engine)> {
        let sites = self.world.sites.iter().enumerate();
        sites.filter_map(|(index, site)| Some((index, &site.id, site.engine.as_ref()?)))
    }

    fn view(&self, site: usize) -> Option<ResourceView> {
        self.world.sites.get(site)?.engine.as_ref()?.resource(&self.resource)
    }

    /// Whether every site is up, knows everything, and knows that the others do.
    pub(super) fn is_converged(&self) -> bool {
        let lists: Vec<_> = (0..SITES).filter_map(|site| self.view(site)).collect();
        lists.len() == SITES
            && lists.iter().all(|view| view.converged && view.list == lists[0].list)
    }

    /// The links, as the network has them, with what the engines measured.
    pub(super) fn links(&self) -> Vec<Link> {
        let names = self.site_names();
        let pairs = [(0, 1), (0, 2), (1, 2)];
        let link = |(a, b): (usize, usize)| Link {
            between: [names[a].clone(), names[b].clone()],
            round_trip_ms: self.round_trip_ms(a, b).or_else(|| self.round_trip_ms(b, a)),
            cut: self.world.network.is_cut(a, b) && self.world.network.is_cut(b, a),
        };
        pairs.into_iter().map(link).collect()
    }

    fn round_trip_ms(&self, from: usize, to: usize) -> Option<u64> {
        let to = &self.world.sites[to].id;
        let sites = self.world.sites[from].engine.as_ref()?.sites();
        sites.iter().find(|view| view.site == *to)?.round_trip_ms
    }

    /// Per site, those it no longer hears, and for how long it has not.
    pub(super) fn unheard(&self) -> Vec<(String, Vec<String>, u64)> {
        let silent = |(_, id, engine): (usize, &SiteId, &Engine)| {
            let views = engine.sites();
            let unknown = views.iter().filter_map(|view| match view.status {
                SiteStatus::Unknown { since_ms } => Some((view.site.to_string(), since_ms)),
                SiteStatus::Up { .. } | SiteStatus::NeverHeard => None,
            });
            let (others, since): (Vec<_>, Vec<_>) = unknown.unzip();
            let since = since.into_iter().min()?;
            Some((id.to_string(), others, self.now_ms() - since))
        };
        self.engines().filter_map(silent).collect()
    }

    /// What a site's application holds, as shown.
    pub(super) fn holds(&self, site: usize) -> String {
        let value = self.world.sites[site].application.value(&self.resource);
        (self.scenario.shown)(&value.text)
    }

    /// What every site holds and knows.
    pub(super) fn states(&self) -> Vec<SiteState> {
        let state = |(index, name): (usize, String)| SiteState {
            site: name,
            up: self.is_up(index),
            holds: self.holds(index),
            list: self
                .view(index)
                .map_or_else(Vec::new, |view| view.list.iter().map(short).collect()),
        };
        self.site_names().into_iter().enumerate().map(state).collect()
    }

    /// What a fresh run of the list gives, as shown, by the first site that is up.
    pub(super) fn fresh_run(&self) -> String {
        let view = (0..SITES).find_map(|site| self.view(site));
        let list = view.map(|view| view.list).unwrap_or_default();
        let operations = list.iter().filter_map(|id| self.world.operations.get(id));
        (self.scenario.shown)(&fresh_run(operations.map(|operation| command_of(operation))).text)
    }

    /// These operations as a site knows them, with each site's last word on them.
    pub(super) fn replies(&self, site: usize, about: &[OperationId]) -> Vec<Replied> {
        let operations = self.view(site).map(|view| view.operations).unwrap_or_default();
        let replied = |operation: &OperationView| {
            let said: BTreeMap<_, _> =
                operation.replies.iter().map(|reply| (reply.site(), &reply.status)).collect();
            let of = |site: &Site| said.get(&site.id).map(|status| site_reply(status));
            Replied {
                operation: short(operation.id()),
                command: self.typed(&operation.operation.payload.summary()).to_owned(),
                left_out_by: operation
                    .left_out
                    .as_ref()
                    .and_then(|out| Some(short(out.by.as_ref()?))),
                replies: self.world.sites.iter().map(of).collect(),
            }
        };
        operations.iter().filter(|operation| about.contains(operation.id())).map(replied).collect()
    }

    /// Why the list is what it is, once for each telling that differs.
    pub(super) fn explained(&self) -> Vec<Explained> {
        let mut tellings: Vec<Explained> = Vec::new();
        for (index, id, engine) in self.engines() {
            let Some(why) = engine.explain(&self.resource) else { continue };
            let mut telling = self.telling(index, &why);
            match tellings.iter_mut().find(|held| {
                held.operations == telling.operations && held.because == telling.because
            }) {
                Some(held) => held.sites.push(id.to_string()),
                None => {
                    telling.sites.push(id.to_string());
                    tellings.push(telling);
                }
            }
        }
        tellings
    }

    fn telling(&self, site: usize, why: &Why) -> Explained {
        let view = self.view(site);
        let known = view.as_ref().map(|view| view.operations.as_slice()).unwrap_or_default();
        let operations = known.iter().filter_map(|view| {
            let operation = self.world.operations.get(view.id())?;
            Some(self.explanation(operation, view.left_out.is_none()))
        });
        let because = why.decisions.iter().map(|decision| self.shortened(&decision.sentence));
        Explained {
            sites: Vec::new(),
            operations: operations.collect(),
            because: because.collect(),
        }
    }

    fn explanation(&self, operation: &Operation, counts: bool) -> Explanation {
        let epoch_ms = self.world.sites[0].now(0).wall_ms;
        Explanation {
            operation: short(&operation.id),
            kind: operation.kind.to_string(),
            command: self.typed(&operation.payload.summary()).to_owned(),
            at_ms: operation.stamp.wall_ms.saturating_sub(epoch_ms),
            made_on: operation.parents.iter().map(short).collect(),
            replaces: operation.replaces.past(),
            counts,
        }
    }

    /// What the user typed for what the simulated application ran.
    fn typed<'a>(&self, simulated: &'a str) -> &'a str {
        let action = self.scenario.actions().find(|action| action.simulated == simulated);
        action.map_or(simulated, |action| action.shell)
    }

    /// The same text with short names in place of ids; long ones first, since one can begin
    /// another.
    fn shortened(&self, text: &str) -> String {
        let mut ids: Vec<_> =
            self.world.operations.keys().map(|id| (id.to_string(), short(id))).collect();
        ids.sort_by_key(|(full, _)| Reverse(full.len()));
        ids.iter().fold(text.to_owned(), |text, (full, short)| text.replace(full, short))
    }
}

fn site_reply(status: &Status) -> SiteReply {
    let superseded_by = match status {
        Status::Superseded { by } => Some(short(by)),
        _ => None,
    };
    SiteReply { status: status.word(), superseded_by }
}

/// A name for an operation that is short, and unique as long as no site loses its disk.
pub(super) fn short(id: &OperationId) -> String {
    format!("{}.{}", id.site(), id.0.n)
}
