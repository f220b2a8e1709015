//! What the sites call a resource of a service, and whether requests that speak of it are to be
//! known here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::context::Turn;
use super::ports::Effect;
use super::resource::Resource;
use super::settings::{Application, Settings};
use crate::model::{Act, Author, IdMap, Operation, Reply};
use crate::plan::RunEffect as Effected;

impl Resource {
    /// Notes how an operation speaks of the resource, which may make anew what was deleted.
    pub(super) fn see_service_ref(
        &mut self,
        operation: &Operation,
        was_retired: bool,
        turn: &mut Turn<'_>,
    ) {
        let said = operation.service_ref().filter(|_| self.is_spoken_of(operation));
        let Some((service, service_ref)) = said else { return };
        let is_new = match &mut self.declared.id_map {
            Some(known) if known.is_spoken_of(service, service_ref) => known.see(service_ref),
            Some(_) => self.go_by_first_creation(),
            unknown => {
                *unknown = Some(IdMap::new(service, service_ref));
                true
            }
        };
        if is_new || was_retired {
            self.publish_id_map(turn);
        }
    }

    /// Of two that make things of different kinds under one name, the first in the order of all says what
    /// it stands for, at every site, whichever arrived first there. Whether that changed anything.
    fn go_by_first_creation(&mut self) -> bool {
        let spoken_of = |it: &&Arc<Operation>| self.is_spoken_of(it);
        let operations = self.resolution.operations().iter().filter(spoken_of);
        let said: Vec<_> = operations.filter_map(|it| Some((it, it.service_ref()?))).collect();
        let Some(known) = &self.declared.id_map else { return false };
        // What is forgotten came before all that is not.
        let mut of_known = said.iter().filter(|(_, (service, it))| known.is_spoken_of(service, it));
        let is_creation = |act| matches!(act, Act::Creates | Act::CreatesAs);
        let creations = said.iter().filter(|(_, (_, it))| is_creation(it.act));
        let first = creations.min_by_key(|(operation, _)| operation.position());
        let (Some(_), Some((_, (service, service_ref)))) = (of_known.next(), first) else {
            return false;
        };
        if known.is_spoken_of(service, service_ref) {
            return false;
        }
        let mut id_map = IdMap::new(service, service_ref);
        let of_it: BTreeMap<_, _> = said
            .iter()
            .filter(|(_, (service, service_ref))| id_map.is_spoken_of(service, service_ref))
            .map(|(operation, (_, service_ref))| (&operation.id, *service_ref))
            .collect();
        for service_ref in of_it.values() {
            id_map.see(service_ref);
        }
        for reply in self.replies_held().filter(|reply| of_it.contains_key(&reply.operation)) {
            let local_id = reply.outcome.as_ref().and_then(|outcome| outcome.local_id());
            if let Some(id) = local_id {
                id_map.name(&reply.id, id);
            }
        }
        self.declared.id_map = Some(id_map);
        true
    }

    /// Notes what the replying site calls the resource.
    pub(super) fn see_local_id(&mut self, reply: &Reply, turn: &mut Turn<'_>) {
        let Some(id) = reply.outcome.as_ref().and_then(|outcome| outcome.local_id()) else {
            return;
        };
        let said = self.operation(&reply.operation).cloned();
        let said = said.as_ref().and_then(|operation| operation.service_ref());
        // An id of another kind of thing leads to a stranger.
        let is_of = |known: &&mut IdMap| {
            said.is_none_or(|(service, service_ref)| known.is_spoken_of(service, service_ref))
        };
        let known = self.declared.id_map.as_mut().filter(is_of);
        if known.is_some_and(|known| known.name(&reply.id, id)) {
            self.publish_id_map(turn);
        }
    }

    /// Says what requests are to be known by from now on, if that is not what was said last.
    pub(super) fn publish_id_map(&mut self, turn: &mut Turn<'_>) {
        if self.declared.id_map.is_none() {
            return;
        }
        let known = self.names_now(&turn.context.settings).filter(|_| !self.is_retired());
        if known.as_ref() != self.published.as_deref() {
            self.published = known.map(Arc::new);
            turn.effect(Effect::Publish(self.id.clone(), self.published.clone()));
        }
    }

    /// Whoever heard what was said is gone.
    pub(super) fn publish_anew(&mut self, turn: &mut Turn<'_>) {
        self.published = None;
        self.publish_id_map(turn);
    }

    /// What the sites call it, with the ids that count: those that a site gave in the incarnation
    /// it is in now. What a service was that is lost gave to one thing, the service that took its
    /// place may have given to another.
    pub(super) fn names_now(&self, settings: &Settings) -> Option<IdMap> {
        let id_map = self.declared.id_map.as_ref()?;
        let me = &settings.me;
        let earlier = self.named_in_earlier_incarnation(id_map, settings);
        Some(id_map.counting(|author| {
            if author.site == me.site {
                return author == me || Some(author) == earlier;
            }
            let incarnation = self.peers.get(&author.site).and_then(|peer| peer.incarnation);
            incarnation.is_none_or(|incarnation| incarnation == author.incarnation)
        }))
    }

    /// The earlier incarnation of this site whose id counts: where the application may have
    /// outlived it, and the operator or a check has said that what it made is there. Before that,
    /// it may not be, and the id lead to something else. Of several such incarnations nobody can
    /// tell which one the application remembers.
    fn named_in_earlier_incarnation<'a>(
        &self,
        id_map: &'a IdMap,
        settings: &Settings,
    ) -> Option<&'a Author> {
        if settings.application == Application::Empty {
            return None;
        }
        let mut incarnations = id_map.named_by().filter(|author| author.site == settings.me.site);
        let only = incarnations
            .next()
            .filter(|author| **author != settings.me && incarnations.next().is_none());
        only.filter(|_| {
            let took = |it: &&Arc<Operation>| self.runs.log.outcome(&it.id) == Some(Effected::Took);
            self.creations().any(|creation| took(&creation))
        })
    }

    /// What an earlier incarnation of this site called it, where that does not count: it may still
    /// be there.
    pub(super) fn was_called(&self, settings: &Settings) -> Option<String> {
        let known = self.names_now(settings)?;
        let id_map = self.declared.id_map.as_ref()?;
        if known.at(&settings.me.site).is_some() || settings.application == Application::Empty {
            return None;
        }
        let mut incarnations = id_map.named_by().filter(|author| author.site == settings.me.site);
        incarnations.next().filter(|_| incarnations.next().is_none())?;
        id_map.at(&settings.me.site).map(str::to_owned)
    }

    /// Operations that make it under an id that the service chooses.
    fn creations(&self) -> impl Iterator<Item = &Arc<Operation>> {
        let creates = |it: &&Arc<Operation>| {
            it.service_ref().is_some_and(|(_, service_ref)| service_ref.act == Act::Creates)
        };
        self.resolution.operations().iter().filter(creates)
    }

    /// Why a creation must not be sent, if so: this site's service has the thing already, by
    /// another one. To make it twice would take its name from what is below the first.
    pub(super) fn is_made_already(
        &self,
        operation: &Operation,
        settings: &Settings,
    ) -> Option<String> {
        let (service, service_ref) = operation.service_ref()?;
        let known = self.names_now(settings).filter(|_| service_ref.act == Act::Creates)?;
        let name = known.at(&settings.me.site)?;
        (!self.runs.log.may_have_happened(&operation.id)).then(|| {
            format!(
                "service `{service}` of this site has made `{}` already, as `{name}`",
                known.meta_id
            )
        })
    }

    /// Why a request must not be sent, if so: it speaks of what this site's service may have under
    /// an id that nobody here knows. The service would say that there is no such thing, and to
    /// believe it would be to leave the thing behind for ever.
    pub(super) fn cannot_be_named(
        &self,
        operation: &Operation,
        settings: &Settings,
    ) -> Option<String> {
        let (service, service_ref) = operation.service_ref()?;
        if matches!(service_ref.act, Act::Creates | Act::CreatesAs) {
            return None;
        }
        let known = self.names_now(settings)?;
        if known.at(&settings.me.site).is_some() {
            return None;
        }
        let mut creations = self.creations().peekable();
        let log = &self.runs.log;
        let may_have_been_made = |creation: &Arc<Operation>| {
            log.is_in_doubt(&creation.id) || log.outcome(&creation.id) == Some(Effected::Took)
        };
        let may_be_there = match creations.peek() {
            Some(_) => creations.any(may_have_been_made),
            None => {
                settings.application == Application::MayHoldState && {
                    let id_map = self.declared.id_map.as_ref()?;
                    id_map.named_by().any(|author| author.site == settings.me.site)
                }
            }
        };
        may_be_there.then(|| {
            format!(
                "service `{service}` of this site may have `{}` under an id that is not known here; \
                 end it there by hand, or make it anew by settling its creation with `rerun`",
                known.meta_id
            )
        })
    }

    /// Whether the last that was to be done here was to end it, and that was done; or all that
    /// was ever to be done failed at every site, so that it never came to be.
    pub(super) fn is_retired(&self) -> bool {
        match self.resolution.last() {
            Some(last) => {
                last.service_ref().is_some_and(|(_, service_ref)| service_ref.act == Act::Deletes)
                    && self.runs.log.outcome(&last.id) == Some(Effected::Took)
            }
            None => self.declared.id_map.is_some() && !self.replies.is_empty(),
        }
    }
}
