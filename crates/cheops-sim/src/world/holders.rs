//! Sites that come to hold a resource, and sites that leave it.

use std::collections::BTreeSet;

use std::sync::Arc;

use cheops_core::engine::{Event, Update};
use cheops_core::model::{
    EntryId, HolderSet, HoldersAsked, HoldingChange, ResourceId, SiteId, Stamp,
};

use super::World;
use crate::bugs::Bug;

impl World {
    /// Asks a site for other sites to hold a resource, if it can be asked that. Says whether it can.
    pub fn move_resource(
        &mut self,
        site: usize,
        resource: &ResourceId,
        asked: HoldersAsked,
    ) -> bool {
        let Some(engine) = &self.sites[site].engine else { return false };
        if engine.can_change_holders(resource, &asked).is_err() {
            return false;
        }
        self.handle(site, Event::HoldersAsked { resource: resource.clone(), asked });
        true
    }

    /// Where a resource lives, as a site that holds it says.
    pub fn holders_at(&self, site: usize, resource: &ResourceId) -> Option<BTreeSet<SiteId>> {
        let held = self.sites[site].engine.as_ref()?.holding(resource)?;
        held.sites.contains(&self.sites[site].id).then_some(held.sites)
    }

    /// Whether that site knows the resource, whoever holds it.
    pub fn knows_of(&self, site: usize, resource: &ResourceId) -> bool {
        let engine = self.sites[site].engine.as_ref();
        engine.and_then(|engine| engine.lives_at(resource)).is_some_and(|it| !it.is_empty())
    }

    /// Notes what became of concurrent wishes, as far as disks still tell.
    pub(crate) fn note_how_it_moved(&mut self) {
        let mut seen = Vec::new();
        for (resource, home) in &self.checks.homes {
            for site in &self.sites {
                let changes = site.disk.holding_changes(resource);
                let all = HolderSet::of(home, &changes);
                for (id, (stamp, change)) in &changes {
                    let HoldingChange::Removes { site, seen: known } = change else { continue };
                    if all.is_void(id) {
                        seen.push("holders: a removal came to nothing");
                    }
                    let beats = |(add, (at, it)): (&EntryId, &(Stamp, HoldingChange))| {
                        it.added() == Some(site) && at < stamp && !known.contains(add)
                    };
                    if changes.iter().any(beats) {
                        seen.push("holders: an addition beat a removal");
                    }
                }
            }
        }
        seen.into_iter().for_each(|what| self.sometimes.saw(what));
    }

    /// A site wrote that others are to hold a resource, or that it has left it.
    pub(super) fn note_moved(
        &mut self,
        site: usize,
        resource: &ResourceId,
        change: &HoldingChange,
    ) {
        match change {
            HoldingChange::Adds(added) => {
                let moved = self.checks.moved.entry(resource.clone()).or_default();
                let was_left = moved.contains(added)
                    && self
                        .sites
                        .iter()
                        .any(|it| it.id == *added && it.disk.has_left(resource, added));
                moved.insert(added.clone());
                let by = &self.sites[site];
                if !by.lies && !self.checks.held_by_a_liars_word(resource, &by.id) {
                    let honest = self.checks.moved_by_honest.entry(resource.clone()).or_default();
                    honest.insert(added.clone());
                }
                self.sometimes.saw("holders: added");
                if was_left {
                    self.sometimes.saw("holders: came back");
                }
            }
            HoldingChange::Removes { .. } => {
                self.checks.moved.entry(resource.clone()).or_default();
                self.sometimes.saw("holders: removed");
            }
            HoldingChange::GivesUp(_) => {
                self.checks.moved.entry(resource.clone()).or_default();
            }
            HoldingChange::Leaves { .. } => {
                self.sometimes.saw("holders: left");
                let here = &self.sites[site];
                let known = here.engine.as_ref().and_then(|engine| engine.lives_at(resource));
                let holders = known.cloned().unwrap_or_default();
                let holders: Vec<_> =
                    self.sites.iter().filter(|it| holders.contains(&it.id) && !it.lies).collect();
                if !here.lies {
                    self.checks.left(here, &holders, resource);
                }
            }
        }
    }

    /// Makes a site take what it hears of holders as if its engine had that bug.
    pub(super) fn plant_in_holders(&self, bug: Bug, to: usize, update: &mut Update) {
        let here = &self.sites[to];
        let Some(view) = here.engine.as_ref().and_then(|it| it.resource(&update.resource)) else {
            return;
        };
        if bug == Bug::LeaverDropsEarly && view.leaving.contains(&here.id) {
            update.knows.join(&view.knows);
        }
        if bug == Bug::RemoveForgetsConcurrentAdd && to == 0 {
            let additions = here.disk.holding_changes(&update.resource);
            for entry in &mut update.entries {
                let Some(HoldingChange::Removes { site, mut seen }) = entry.changes_holders()
                else {
                    continue;
                };
                let known = additions.iter().filter(|(_, (_, it))| it.added() == Some(&site));
                seen.extend(known.map(|(id, _)| id.clone()));
                let text = HoldingChange::Removes { site, seen }.text();
                for said in &mut Arc::make_mut(entry).extra {
                    if said.name == "holders" {
                        said.value = text.clone().into_bytes();
                    }
                }
            }
        }
    }
}
