//! Taking in an operation from a user.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::context::Turn;
use super::ports::{Answer, Effect, Refusal, Submission, WaitFor};
use super::resource::Resource;
use super::settings::Settings;
use super::{Resources, follow_up, needs};
use crate::model::{Declaration, MAX_PARENTS, Operation, OperationId};

/// Accepts the operation, or says why not.
pub(super) fn submit(resources: &mut Resources, mut submission: Submission, turn: &mut Turn<'_>) {
    let ticket = submission.ticket;
    let known = resources.get(&submission.resource).map(Box::as_ref);
    let declares = match declaration(known, &submission, &turn.context.settings) {
        Ok(declares) => declares,
        Err(refusal) => {
            turn.effect(Effect::Answer { ticket, answer: Answer::Refused(refusal) });
            return;
        }
    };
    if !submission.needs.is_empty() {
        let of = &submission.resource;
        let sites = match &declares {
            Some(declared) => Some(&declared.sites),
            None => resources.get(of).map(|known| &known.declared.sites),
        };
        let sites = sites.cloned().unwrap_or_default();
        submission.needs = needs::that_all_hold(resources, submission.needs, of, &sites);
        if let Some(by) = needs::circle_made_by(resources, &submission) {
            let refusal = Refusal::NeedsItself { resource: submission.resource, by };
            turn.effect(Effect::Answer { ticket, answer: Answer::Refused(refusal) });
            return;
        }
    }
    let id = submission.resource.clone();
    let resource = resources.entry(id.clone()).or_insert_with(|| turn.context.new_resource(id));
    accept(resource, submission, declares, turn);
    follow_up(resource, turn);
}

/// What the operation has to declare: everything for a new resource, a changed config for one
/// that is known, and else nothing.
pub(super) fn declaration(
    known: Option<&Resource>,
    submission: &Submission,
    settings: &Settings,
) -> Result<Option<Arc<Declaration>>, Refusal> {
    let resource = submission.resource.clone();
    // What is known of it may be what a liar said, and count no more.
    let Some(known) = known.filter(|known| !known.declared.sites.is_empty()) else {
        let Some(sites) = &submission.sites else {
            return Err(Refusal::UnknownResource(resource));
        };
        if !sites.contains(&settings.me.site) {
            return Err(Refusal::NotHeldHere { resource, sites: sites.clone() });
        }
        let stranger =
            sites.iter().find(|site| **site != settings.me.site && !settings.peers.contains(*site));
        if let Some(stranger) = stranger {
            return Err(Refusal::UnknownSite(stranger.clone()));
        }
        let config = submission.config.clone();
        return Ok(Some(Arc::new(Declaration { sites: sites.clone(), config })));
    };
    if known.is_deleted() && !submission.force {
        return Err(Refusal::Deleted(resource));
    }
    if submission.force && known.merged_as().is_some() {
        return Err(Refusal::Merged(resource));
    }
    let are = known.declared.sites.clone();
    if let Some(asked) = submission.sites.as_ref().filter(|asked| **asked != are) {
        return Err(Refusal::SitesDiffer { resource, are, asked: asked.clone() });
    }
    let news = submission.config.clone().filter(|config| *config != known.config());
    Ok(news.map(|config| Arc::new(Declaration { sites: are, config: Some(config) })))
}

/// Makes an operation of it, at the end of all that this site knows. What other sites wrote is taken in
/// by [`Resource::accept`].
fn accept(
    resource: &mut Resource,
    submission: Submission,
    declares: Option<Arc<Declaration>>,
    turn: &mut Turn<'_>,
) {
    let id = OperationId(turn.context.next_entry());
    let config_replaced = declares.is_some() && !resource.declared.sites.is_empty();
    let claimed = turn.context.clock.tick(turn.now.wall_ms);
    let mut parents = resource.resolution.operations().heads();
    // There are so many only if somebody makes them; what this site did is among those it keeps.
    parents.sort_by_key(|head| head.0.author != turn.context.settings.me);
    parents.truncate(MAX_PARENTS);
    parents.sort_unstable();
    let operation = Operation {
        id: id.clone(),
        resource: submission.resource,
        stamp: claimed.placed_after(resource.order_of_past(&id, &parents)),
        claimed,
        parents,
        replaces: resource.resolution.replaces(&submission.kind, submission.force),
        kind: submission.kind,
        payload: submission.payload,
        declares,
        needs: submission.needs,
        asked_by: submission.asked_by,
    };
    resource.write_operation(operation, submission.inline_body.as_deref(), turn);
    let ticket = submission.ticket;
    turn.effect(Effect::Answer {
        ticket,
        answer: Answer::Accepted {
            operation: id.clone(),
            sites: resource.declared.sites.clone(),
            config: resource.config(),
            config_replaced,
        },
    });
    let expected: BTreeSet<_> = match submission.wait {
        WaitFor::All => resource.declared.sites.clone(),
        WaitFor::Local => [turn.context.settings.me.site.clone()].into(),
        WaitFor::Nothing => {
            turn.effect(Effect::Answer { ticket, answer: Answer::Done });
            return;
        }
    };
    let gives_up_ms = turn.now.mono_ms.saturating_add(submission.timeout_ms);
    let context = &mut *turn.context;
    context.waiting.add(ticket, &id, expected, gives_up_ms, &mut context.timers);
}
