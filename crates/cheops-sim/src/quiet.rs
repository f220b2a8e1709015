//! What must hold once all is quiet. Apart from the engine's own code, like [`crate::checks`].

use std::collections::BTreeSet;

use cheops_core::engine::{
    Agreement, OperationView, OperationsAsked, PageOrder, ResourceView, RunProgress, StateProof,
};
use cheops_core::model::{OperationId, ProgramStep, Reply, ResourceId, SiteId, Status};
use cheops_core::plan::Health;
use cheops_core::resolve::Why;

use crate::application::{SimValue, run_from};
use crate::checks::{Violation, trouble};
use crate::conflicts::{is_set_right, took_effect};
use crate::site::{SimSite, command_at};
use crate::world::World;
use crate::{program_checks, service_checks};

/// What must hold when nothing is under way any more and no fault is left.
pub fn when_quiet(world: &World) -> Result<(), Violation> {
    let liars = &world.checks.liars;
    for (resource, home) in &world.checks.homes {
        // What liars make of it is their affair; that they do not answer is no reason for others to
        // say that all is done.
        let has_liar = home.iter().any(|site| liars.contains(site));
        let home: BTreeSet<SiteId> = home.difference(liars).cloned().collect();
        let holders: Vec<(&SimSite, ResourceView)> = world
            .sites
            .iter()
            .filter(|site| home.contains(&site.id))
            .filter_map(|site| Some((site, site.engine.as_ref()?.resource(resource)?)))
            .collect();
        all_agree(resource, &home, &holders)?;
        nobody_moved_it(world, resource, &holders)?;
        all_say_the_same(resource, &home, &holders)?;
        let gave_up = service_checks::some_site_gave_up(&holders);
        for (site, view) in &holders {
            if !gave_up {
                is_done(site, view, has_liar)?;
                all_replied(site, view, &home, &holders)?;
            }
            if !world.checks.tampered.contains(resource) {
                follows_the_list(world, site, view, has_liar)?;
            }
            reads_the_same(site, view, &world.checks.dismissed)?;
        }
        if !has_liar {
            states_are_as_told(&holders)?;
        }
        nothing_lost(world, resource, &holders)?;
    }
    all_set_the_same_apart(world)?;
    service_checks::when_quiet(world)
}

/// Every honest site sets apart the same keys, whatever each of them found out by itself, and says so to who
/// asks it.
fn all_set_the_same_apart(world: &World) -> Result<(), Violation> {
    let honest = world.sites.iter().filter(|site| !site.lies);
    let asked: Vec<_> = honest
        .filter_map(|site| {
            let others = site.engine.as_ref()?.sites();
            let said = others.into_iter().flat_map(|other| other.set_apart);
            Some((site, said.collect::<BTreeSet<_>>()))
        })
        .collect();
    let Some((first, seen)) = asked.first() else { return Ok(()) };
    for (site, said) in &asked {
        if *said != site.set_apart {
            return Err(Violation(format!(
                "{} sets {:?} apart, and says {said:?}",
                site.id, site.set_apart
            )));
        }
        if said != seen {
            return Err(Violation(format!(
                "{} and {} do not set the same apart: {seen:?} and {said:?}",
                first.id, site.id
            )));
        }
    }
    Ok(())
}

fn all_agree(
    resource: &ResourceId,
    home: &BTreeSet<SiteId>,
    holders: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let Some((first, seen)) = holders.first() else { return Ok(()) };
    if holders.len() < home.len() {
        return Err(Violation(format!("{resource} did not reach all of its sites")));
    }
    for (site, view) in holders {
        if view.knows != seen.knows {
            return Err(Violation(format!(
                "{} and {} do not know the same of {resource}: {:?} and {:?}",
                first.id, site.id, seen.knows, view.knows
            )));
        }
        if view.list != seen.list {
            return Err(Violation(format!(
                "{} and {} end with different lists for {resource}: {:?} and {:?}",
                first.id, site.id, seen.list, view.list
            )));
        }
    }
    Ok(())
}

/// It lives where its users said, whatever a liar made of it since. (Where who made it was shown to
/// lie about that, nobody knows any more.)
fn nobody_moved_it(
    world: &World,
    resource: &ResourceId,
    holders: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let Some(home) = world.checks.homes.get(resource) else { return Ok(()) };
    for (site, view) in holders {
        if view.sites != *home && !view.sites.is_empty() {
            return Err(Violation(format!(
                "{} says that {resource} lives on {:?}, and it is to live on {home:?}",
                site.id, view.sites
            )));
        }
    }
    Ok(())
}

/// Whoever is asked, the answer is the same: how the resource stands at each of its honest sites.
fn all_say_the_same(
    resource: &ResourceId,
    home: &BTreeSet<SiteId>,
    holders: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let said = |view: &ResourceView| {
        let of_honest = view.standings.iter().filter(|it| home.contains(&it.site));
        trouble(&of_honest.cloned().collect::<Vec<_>>())
    };
    let Some((first, seen)) = holders.first() else { return Ok(()) };
    for (site, view) in holders {
        if said(view) != said(seen) {
            return Err(Violation(format!(
                "{} and {} end with {resource} standing otherwise: {:?} and {:?}",
                first.id,
                site.id,
                said(seen),
                said(view)
            )));
        }
        let has_diverged = matches!(view.health, Health::Diverged { .. });
        if has_diverged && said(seen).get(&site.id) != Some(&"diverged") {
            return Err(Violation(format!(
                "{} has diverged on {resource}, and {} does not say so",
                site.id, first.id
            )));
        }
    }
    Ok(())
}

/// Where states are read, all sites say whether they are the same, and it is so. (Not where a site has
/// diverged and says so: nobody compares its state with others.)
fn states_are_as_told(holders: &[(&SimSite, ResourceView)]) -> Result<(), Violation> {
    let in_step = |(_, view): &&(&SimSite, ResourceView)| view.health == Health::InStep;
    if !holders.iter().all(|holder| in_step(&holder)) {
        return Ok(());
    }
    let values: BTreeSet<String> =
        holders.iter().map(|(site, view)| site.application.value(&view.id).text).collect();
    for (site, view) in holders.iter().filter(|(_, view)| !view.deleted && !view.list.is_empty()) {
        let Some(proof) = proof_at(site, &view.id) else { continue };
        let is_true = match proof.agreement {
            Agreement::Verified { .. } => values.len() == 1,
            Agreement::Differs { .. } => values.len() > 1,
            // A state that never changes is not believed.
            Agreement::Unproven => holders.iter().any(|(site, view)| {
                let read = proof_at(site, &view.id).and_then(|proof| proof.read_here);
                read.is_some_and(|read| read.found.is_err())
            }),
        };
        if !is_true {
            return Err(Violation(format!(
                "{} says of the states of {}: {:?}; they are {values:?}",
                site.id, view.id, proof.agreement
            )));
        }
    }
    Ok(())
}

fn proof_at(site: &SimSite, resource: &ResourceId) -> Option<StateProof> {
    site.engine.as_ref()?.outline(resource)?.proof
}

/// Whether some site says of some resource that all have the same state.
pub(crate) fn some_state_is_verified(world: &World) -> bool {
    let mut proofs = world.sites.iter().flat_map(|site| {
        let engine = site.engine.iter();
        engine.flat_map(cheops_core::engine::Engine::resources).filter_map(|id| proof_at(site, id))
    });
    proofs.any(|proof| matches!(proof.agreement, Agreement::Verified { .. }))
}

/// What is counted as it comes, and shown in pages, is what the whole says.
fn reads_the_same(
    site: &SimSite,
    view: &ResourceView,
    dismissed: &BTreeSet<OperationId>,
) -> Result<(), Violation> {
    let Some(engine) = &site.engine else { return Ok(()) };
    let may_have_taken =
        |status: &Status| took_effect(status) || matches!(status, Status::Superseded { .. });
    let (least, most) = (errors_in(view, may_have_taken), errors_in(view, took_effect));
    let let_be = view.operations.iter().filter(|it| dismissed.contains(it.id())).count();
    let least = least.saturating_sub(let_be);
    let counted = engine.summary(&view.id).map_or(0, |summary| summary.errors);
    if !(least..=most).contains(&counted) {
        let id = &view.id;
        return Err(Violation(format!(
            "{} counts {counted} errors of {id}, and there are {least} to {most}",
            site.id
        )));
    }
    let page = |order| OperationsAsked { order, after: None, most: usize::MAX };
    let oldest_first = engine.operations(&view.id, &page(PageOrder::OldestFirst));
    let mut latest_first = engine.operations(&view.id, &page(PageOrder::LatestFirst));
    latest_first.iter_mut().for_each(|page| page.reverse());
    if oldest_first.as_ref() != Some(&view.operations) || latest_first != oldest_first {
        return Err(Violation(format!("{} shows {} in another order", site.id, view.id)));
    }
    Ok(())
}

/// How many operations went wrong somewhere and matter still, if that is what sets things right.
fn errors_in(view: &ResourceView, sets_right: impl Fn(&Status) -> bool) -> usize {
    let is_well = |reply: &Reply| matches!(reply.status, Status::Ok | Status::Superseded { .. });
    let matters = |it: &OperationView| match &it.left_out {
        None => true,
        Some(out) => {
            out.why == Why::FailedEverywhere
                && !(view.id_map.is_some() && view.list.is_empty())
                && !is_set_right(it.id(), view, &sets_right)
        }
    };
    let wrong = view.operations.iter().filter(|it| !it.replies.iter().all(is_well));
    wrong.filter(|it| matters(it)).count()
}

fn is_done(site: &SimSite, view: &ResourceView, has_liar: bool) -> Result<(), Violation> {
    if view.progress != RunProgress::Idle || !(view.settled || has_liar) {
        return Err(Violation(format!(
            "{} is not done with {}: {:?}, settled: {}",
            site.id, view.id, view.progress, view.settled
        )));
    }
    Ok(())
}

/// Nothing is left out in silence: every site has said something of every operation.
/// What some site has forgotten, all knew and none needed: who came back without its memory after
/// that never hears of it, and says nothing of it.
fn all_replied(
    site: &SimSite,
    view: &ResourceView,
    home: &BTreeSet<SiteId>,
    holders: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let was_forgotten =
        |id: &OperationId| holders.iter().any(|(_, view)| view.pruned.includes(&id.0));
    for operation in view.operations.iter().filter(|it| !was_forgotten(it.id())) {
        let replied: BTreeSet<&SiteId> = operation.replies.iter().map(Reply::site).collect();
        if let Some(silent) = home.iter().find(|site| !replied.contains(site)) {
            return Err(Violation(format!(
                "{} has no reply of {silent} to `{}` of {}",
                site.id,
                operation.id(),
                view.id
            )));
        }
        if !view.list.contains(operation.id()) && operation.left_out.is_none() {
            return Err(Violation(format!("`{}` is left out without a reason", operation.id())));
        }
    }
    Ok(())
}

/// The application is as a fresh run of the list would leave it, or the site says that it is not.
/// Nobody is waited for any more.
fn follows_the_list(
    world: &World,
    site: &SimSite,
    view: &ResourceView,
    has_liar: bool,
) -> Result<(), Violation> {
    if let Health::Undecided { on } = &view.health
        && !has_liar
    {
        return Err(Violation(format!("{} still waits for word of `{on}`", site.id)));
    }
    let is_merged = view.config.merged_as().is_some();
    let commands: Vec<&str> = view
        .list
        .iter()
        .filter_map(|id| view.operations.iter().find(|it| it.id() == id))
        .filter(|it| !is_merged || !came_to_nothing(world, it))
        .map(|it| match is_merged {
            // What its own site made of it is what counts everywhere.
            true => command_at(&it.operation, it.id().site()),
            false => command_at(&it.operation, &site.id),
        })
        .collect();
    let begun = view.state.as_ref().map(|floor| site.states.get(&floor.state));
    let begun = match begun {
        Some(Some((value, _))) => value.clone(),
        Some(None) => {
            return Err(Violation(format!("{} lacks the state before {}", site.id, view.id)));
        }
        None => SimValue::default(),
    };
    // What was forgotten is not there to be worked out; and of an odd program nobody knows what it says.
    let is_decided = view.config.asks_programs() && view.state.is_none() && view.pruned.is_empty();
    let expected: SimValue = match view.config.asks_programs() {
        true if is_decided && !view.id.as_str().starts_with("decided-oddly") => {
            program_checks::expected(view, &view.config, &site.id)
        }
        true => run_from(begun, decided_commands(view, site).iter().map(String::as_str)),
        false => run_from(begun, commands.iter().copied()),
    };
    let found = site.application.value(&view.id);
    // Where a disk was lost and the application was not, it may hold what nobody knows of.
    let beyond_knowledge = world.checks.a_disk_was_lost
        && site.application.holds_any(&view.id, |id| !view.knows.includes(&id.0));
    // Of a document, that may have come back to all sites by a later edit.
    let came_back = is_merged && world.checks.a_disk_was_lost && holds_all(&found, &expected);
    let is_excused = beyond_knowledge || came_back;
    if found != expected && view.health == Health::InStep && !is_excused {
        return Err(Violation(format!(
            "{} says that {} is in step, but it holds `{}` where {commands:?} gives `{}`",
            site.id, view.id, found.text, expected.text
        )));
    }
    Ok(())
}

/// What a site runs by its own word, where programs decided.
fn decided_commands(view: &ResourceView, site: &SimSite) -> Vec<String> {
    let find = |id: &OperationId| view.operations.iter().find(|it| it.id() == id);
    let own = |id: &OperationId| find(id).map(|it| command_at(&it.operation, &site.id).to_owned());
    match &view.decided {
        None => view.list.iter().filter_map(own).collect(),
        Some(steps) => {
            let run = |step: &ProgramStep| step.command.clone().or_else(|| own(&step.operation));
            steps.iter().filter_map(run).collect()
        }
    }
}

/// Whether an edit made nothing of its document: it failed where it was submitted, or a liar, which need not
/// say what it made, submitted it.
fn came_to_nothing(world: &World, edit: &OperationView) -> bool {
    let site = edit.id().site();
    let own = edit.replies.iter().find(|reply| reply.site() == site);
    own.is_none_or(|reply| reply.status == Status::Ko)
        && (own.is_some() || world.checks.liars.contains(site))
}

fn holds_all(found: &SimValue, expected: &SimValue) -> bool {
    let found: BTreeSet<&str> = found.text.split(',').collect();
    expected.text.split(',').all(|word| word.is_empty() || found.contains(word))
}

fn nothing_lost(
    world: &World,
    resource: &ResourceId,
    holders: &[(&SimSite, ResourceView)],
) -> Result<(), Violation> {
    let checks = &world.checks;
    let due = checks.accepted.iter().filter(|(id, of)| {
        let by_liar = checks.liars.contains(id.site());
        *of == resource && !by_liar && !checks.excused.contains(*id)
    });
    for (operation, _) in due {
        if let Some((site, _)) = holders.iter().find(|(_, view)| !view.knows.includes(&operation.0))
        {
            return Err(Violation(format!(
                "`{operation}` of {resource} was accepted, and {} does not know it",
                site.id
            )));
        }
    }
    Ok(())
}
