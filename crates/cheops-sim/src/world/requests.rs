//! Requests to services, at the border between an engine and its world: ids put in the place of
//! meta-ids, answers that come late or never, and what they mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use cheops_core::engine::{JobId, Task};
use cheops_core::model::{
    Act, FileRef, IdMap, LocalId, MAX_INLINE_BODY_BYTES, Operation, OperationId, Outcome, Output,
    Payload, RequestKind, ResourceId, SaysAlready,
};
use cheops_core::plan::Decision;

use super::World;
use crate::bugs::Bug;
use crate::service::ServiceRequest;
use crate::service_load::BODY;

impl World {
    /// From now on requests that speak of a resource are known at a site, or no more.
    pub(super) fn published(
        &mut self,
        site: usize,
        resource: &ResourceId,
        id_map: Option<Arc<IdMap>>,
    ) {
        let of = &mut self.sites[site];
        let name = id_map.as_ref().and_then(|known| known.at(&of.id)).map(str::to_owned);
        match id_map {
            Some(known) => {
                if name.is_some() && known.named_by().any(|author| is_earlier(author, of)) {
                    self.sometimes.saw("service: id of an earlier incarnation counts");
                }
                of.directory.insert(resource.clone(), known);
            }
            None => drop(of.directory.remove(resource)),
        }
        if let Some(name) = name {
            let first = self.first_ids.entry((site, resource.clone()));
            if *first.or_insert_with(|| name.clone()) != name {
                self.sometimes.saw("service: made anew under another id");
            }
        }
        self.every_id_leads_to_its_own(site);
    }

    /// What the service of a site calls a resource.
    fn local_name(&self, site: usize, resource: &ResourceId) -> Option<String> {
        let known = self.sites[site].directory.get(resource)?;
        let name = known.at(&self.sites[site].id)?;
        if self.setup.bug == Some(Bug::FirstIdStands) && known.local_ids.is_some() {
            return self.first_ids.get(&(site, resource.clone())).cloned();
        }
        Some(name.to_owned())
    }

    /// A path with the ids of a site's service.
    fn local_path(&self, site: usize, path: &str) -> String {
        let directory = &self.sites[site].directory;
        let local = |segment: &str| {
            let mut named = directory.iter().filter(|(_, it)| it.meta_id.as_str() == segment);
            named.next().and_then(|(resource, _)| self.local_name(site, resource))
        };
        let segments = path.split('/').map(|it| local(it).unwrap_or_else(|| it.to_owned()));
        segments.collect::<Vec<_>>().join("/")
    }

    /// A meta-id leads to its own object or nowhere.
    fn every_id_leads_to_its_own(&mut self, site: usize) {
        if !self.setup.check {
            return;
        }
        let mut stranger = None;
        for (resource, known) in &self.sites[site].directory {
            let path = format!("{}/{}", known.collection, known.meta_id);
            let local = self.local_path(site, &path);
            let found = self.sites[site].service.object(&local);
            if let Some(found) = found.filter(|found| found.made_by != *resource) {
                stranger = Some((resource.clone(), local, found.made_by.clone()));
            }
        }
        if let Some((resource, path, of)) = stranger {
            let site = self.sites[site].id.clone();
            self.checks.leads_to_another(&site, &resource, &path, &of);
        }
    }

    /// Sends a request, if the job is one; whether it is.
    pub(super) fn send_request(&mut self, site: usize, job: JobId) -> bool {
        let Some(running) = self.sites[site].running.get(&job) else { return false };
        let Task::Run(operation) = &running.job.task else { return false };
        if operation.service_ref().is_none() {
            return false;
        }
        let (operation, again) = (operation.clone(), running.job.again);
        let inline = running.job.inline_body.clone();
        let outcome = self.outcome(site, &operation, again, inline.as_deref());
        if let Some(running) = self.sites[site].running.get_mut(&job) {
            running.outcome = Some(outcome);
        }
        self.every_id_leads_to_its_own(site);
        true
    }

    fn outcome(
        &mut self,
        site: usize,
        operation: &Arc<Operation>,
        again: bool,
        inline: Option<&[u8]>,
    ) -> Outcome {
        let Payload::Http { method, body, service_ref: Some(service_ref), .. } = &operation.payload
        else {
            return Outcome::NotStarted { reason: "no request".to_owned() };
        };
        let act = service_ref.act;
        let is_short = |file: &FileRef| file.size <= MAX_INLINE_BODY_BYTES as u64;
        let is_a_liars = self.sites.iter().any(|of| of.lies && of.id == *operation.id.site());
        if inline.is_none() && !is_a_liars && body.as_ref().is_some_and(is_short) {
            let site = self.sites[site].id.clone();
            self.checks.came_without_body(&site, &operation.id);
        }
        if inline.is_none() && body.is_some() && !self.is_body_kept(operation) {
            self.sometimes.saw("service: body no longer kept");
            return Outcome::NotStarted { reason: "its body is not kept any more".to_owned() };
        }
        let chance = self.setup.not_yet;
        if chance > 0 && self.rng.below(100) < chance {
            let fate = self.rng.below(4);
            if fate < 2 {
                self.sometimes.saw("service: cannot be reached");
                let reason = "nobody is there".to_owned();
                return Outcome::NotYet { reason, in_doubt: false };
            }
            if fate == 2 {
                self.sometimes.saw("service: carried out, answer lost");
                self.carry_out_request(site, operation, inline);
            }
            if act.can_be_repeated(RequestKind::of(&operation.kind)) {
                let reason = "it did not answer".to_owned();
                return Outcome::NotYet { reason, in_doubt: true };
            }
            // Of what cannot be repeated, it is said that it failed, and an operator has to look.
            self.checks.may_be_unnamed.insert(operation.resource.clone());
            return Outcome::TimedOut { limit_ms: 1 };
        }
        let (status, id) = self.carry_out_request(site, operation, inline);
        let succeeded = (200..400).contains(&status);
        let already =
            act.is_already_so(method.as_str().into(), again, status, &SaysAlready::default());
        if already && !succeeded {
            self.sometimes.saw("service: says that it is so already");
        }
        if !already && !succeeded {
            self.sometimes.saw("service: refused");
        }
        let id = id.filter(|_| act == Act::Creates && succeeded);
        let local_id = id.and_then(|id| LocalId::new(&id).ok());
        let (headers, output) = (Vec::new(), Output::default());
        Outcome::Answered { status, headers, output, done: succeeded || already, local_id }
    }

    /// The moment at which the service changes: what it answers.
    fn carry_out_request(
        &mut self,
        site: usize,
        operation: &Operation,
        inline: Option<&[u8]>,
    ) -> (u16, Option<String>) {
        let Payload::Http { method, path, headers, .. } = &operation.payload else {
            return (400, None);
        };
        let line = headers.iter().find(|line| line.name == BODY).map_or("", |line| &line.value);
        let text = inline.and_then(|content| str::from_utf8(content).ok()).unwrap_or(line);
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        let body: BTreeMap<_, _> =
            pairs.map(|(name, value)| (name.to_owned(), self.local_path(site, value))).collect();
        let request = ServiceRequest {
            method,
            path: self.local_path(site, path),
            body,
            by: &operation.resource,
            operation: &operation.id,
        };
        let of = &mut self.sites[site];
        match of.service.handle(&of.id, &request) {
            Ok(answered) => (answered.status, answered.id),
            Err(stranger) => {
                let (id, resource) = (of.id.clone(), &operation.resource);
                self.checks.leads_to_another(&id, resource, &stranger.path, &stranger.of);
                (500, None)
            }
        }
    }

    /// Whether some site still has the large body of an operation.
    fn is_body_kept(&self, operation: &Operation) -> bool {
        self.sites.iter().any(|site| {
            let knows =
                |it: &cheops_core::engine::Engine| it.knows(&operation.resource, &operation.id);
            // A site that is down comes back with what it has.
            site.engine.as_ref().is_none_or(knows) && !site.shed.contains(&operation.id)
        })
    }

    /// What an operator who looks at a service says of an operation that is in doubt there; `None`
    /// for one that is no request. A thing that nobody can name is removed.
    pub(crate) fn look_at_service(
        &mut self,
        site: usize,
        resource: &ResourceId,
        operation: &OperationId,
    ) -> Option<Decision> {
        let held = self.operations.get(operation)?;
        let (_, service_ref) = held.service_ref()?;
        let creates = service_ref.act == Act::Creates;
        let path = service_ref.collection.clone();
        let holds = |object: &crate::service::Object| object.effects.contains(operation);
        if !creates {
            let is_there = self.sites[site].service.made_by(resource).any(holds);
            return Some(if is_there { Decision::Skip } else { Decision::Rerun });
        }
        let view = self.sites[site].engine.as_ref().and_then(|it| it.resource(resource))?;
        let named = view.was_called.filter(|_| view.list.contains(operation)).is_some_and(|name| {
            let path = format!("{}/{name}", self.local_path(site, &path));
            let found = self.sites[site].service.object(&path);
            found.is_some_and(|found| found.made_by == *resource)
        });
        if named {
            return Some(Decision::Skip);
        }
        for gone in self.sites[site].service.remove_by_hand(resource) {
            self.sometimes.saw("service: thing without a name removed by hand");
            self.checks.removed_by_hand.insert(gone);
        }
        Some(Decision::Rerun)
    }
}

fn is_earlier(author: &cheops_core::model::Author, site: &crate::site::SimSite) -> bool {
    author.site == site.id && *author != site.settings.me
}
