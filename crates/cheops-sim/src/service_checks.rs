//! What must hold of things in services once all is quiet: every site has the same, and nothing was
//! refused for want of something that is there.

use std::collections::BTreeMap;

use cheops_core::engine::{OperationView, ResourceView};
use cheops_core::model::{Act, ResourceId, Status};
use cheops_core::plan::Health;

use crate::checks::Violation;
use crate::conflicts::refusals;
use crate::service::Object;
use crate::site::SimSite;
use crate::world::World;

/// Whether a site says of a service's resource that it has diverged. By the `http` profile it may then
/// leave an operation of its list without a run, and so without a reply: see
/// [`cheops_core::plan::plan`].
pub(crate) fn some_site_gave_up(holders: &[(&SimSite, ResourceView)]) -> bool {
    let gave_up = |view: &ResourceView| {
        view.id_map.is_some() && matches!(view.health, Health::Diverged { .. })
    };
    holders.iter().any(|(_, view)| gave_up(view))
}

/// The things of all services.
pub(crate) fn when_quiet(world: &World) -> Result<(), Violation> {
    let known: BTreeMap<&ResourceId, Vec<(&SimSite, ResourceView)>> = world
        .checks
        .homes
        .keys()
        .map(|resource| (resource, views(world, resource)))
        .filter(|(_, views)| views.iter().any(|(_, view)| view.id_map.is_some()))
        .collect();
    let is_clean = |resource: &ResourceId| {
        let views = known.get(resource);
        views.is_some_and(|views| views.iter().all(|(site, view)| went_well(world, site, view)))
    };
    for (resource, views) in &known {
        let needed = world.checks.needs.get(*resource);
        // Who lies may as well ask for a thing twice: the sites agree on the list, which is checked
        // elsewhere, and a service can give back nothing that it made for an entry that fell.
        let has_liar = |it: &ResourceId| world.checks.has_liar(it);
        if has_liar(resource) || needed.is_some_and(has_liar) {
            continue;
        }
        if !is_clean(resource) || needed.is_some_and(|needed| !is_clean(needed)) {
            continue;
        }
        same_everywhere(world, resource, views)?;
    }
    for (resource, views) in &known {
        let Some(needed) = world.checks.needs.get(*resource).filter(|it| is_clean(it)) else {
            continue;
        };
        if world.checks.has_liar(resource) || world.checks.has_liar(needed) {
            continue;
        }
        for (site, view) in views {
            not_refused_in_vain(site, view, needed)?;
        }
    }
    Ok(())
}

/// What each site that has a resource makes of it.
fn views<'w>(world: &'w World, resource: &ResourceId) -> Vec<(&'w SimSite, ResourceView)> {
    let view = |site: &SimSite| site.engine.as_ref()?.resource(resource);
    let honest = world.sites.iter().filter(|site| !site.lies);
    honest.filter_map(|site| Some((site, view(site)?))).collect()
}

/// What became of things in the end, for the books.
pub(crate) fn ends(world: &World) -> Vec<&'static str> {
    let mut ends = Vec::new();
    for resource in world.checks.homes.keys() {
        let view = |site: &SimSite| site.engine.as_ref()?.resource(resource);
        let views = || world.sites.iter().filter_map(view).filter(|it| it.id_map.is_some());
        if views().next().is_none() {
            continue;
        }
        let holders = world.sites.iter().filter(|it| it.service.made_by(resource).next().is_some());
        if holders.count() > 1 {
            ends.push("service: thing at several sites");
        }
        if views().all(|view| view.deleted) {
            ends.push("service: deleted everywhere");
        }
    }
    ends
}

/// Whether all that was asked for was done at that site, and nobody meddled.
fn went_well(world: &World, site: &SimSite, view: &ResourceView) -> bool {
    let is_done = |operation: &OperationView| {
        operation.replies.iter().all(|reply| {
            reply.site() != &site.id
                || matches!(reply.status, Status::Ok | Status::Superseded { .. })
        })
    };
    // Where a disk was lost and the service was not, it may hold what nobody knows of.
    let beyond_knowledge = site
        .service
        .made_by(&view.id)
        .any(|object| object.effects.iter().any(|id| !view.knows.includes(&id.0)));
    view.health == Health::InStep
        && view.operations.iter().all(is_done)
        && !beyond_knowledge
        // Nor does it know what to end there, if what made it was pruned before it came back.
        && (!world.checks.was_a_disk_lost() || view.pruned.is_empty())
        && !world.checks.may_be_unnamed.contains(&view.id)
        && !world.checks.doubted.iter().any(|(_, resource, _)| *resource == view.id)
        && !world.checks.removed_by_hand.contains(&view.id)
}

fn same_everywhere(
    world: &World,
    resource: &ResourceId,
    views: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let contents = |site: &SimSite| -> Vec<BTreeMap<String, String>> {
        let fields = |object: &Object| object.fields.clone();
        site.service.made_by(resource).map(fields).collect()
    };
    let Some((first, view)) = views.first() else { return Ok(()) };
    let expected = contents(first);
    for (site, _) in views {
        let found = contents(site);
        if found != expected {
            return Err(Violation(format!(
                "{} has {expected:?} of {resource}, and {} has {found:?}",
                first.id, site.id
            )));
        }
    }
    debug_assert!(world.checks.homes.contains_key(resource));
    if expected.len() > 1 {
        return Err(Violation(format!("{} has {resource} {} times", first.id, expected.len())));
    }
    if view.deleted && !expected.is_empty() {
        return Err(Violation(format!("{resource} was deleted, and is still at {}", first.id)));
    }
    Ok(())
}

/// A child is not refused for want of a parent that is there.
fn not_refused_in_vain(
    site: &SimSite,
    view: &ResourceView,
    needed: &ResourceId,
) -> Result<(), Violation> {
    let creates = |operation: &OperationView| {
        operation
            .operation
            .service_ref()
            .is_some_and(|(_, service_ref)| service_ref.act == Act::Creates)
    };
    let is_there = site.service.made_by(needed).next().is_some();
    let mut creations = view.operations.iter().filter(|operation| creates(operation));
    let refused = creations.any(|creation| {
        refusals(creation).any(|refusal| *refusal.site == site.id && refusal.is_unknown)
    });
    if is_there && refused {
        return Err(Violation(format!(
            "{} was refused at {} for want of {needed}, which is there",
            view.id, site.id
        )));
    }
    Ok(())
}
