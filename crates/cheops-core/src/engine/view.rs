//! What readers see of an engine: plain values, made on request, of no use to decide on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::Engine;
use super::ports::Malformed;
use super::resource::Resource;
use super::standing::{SiteStanding, Standing};
use super::verify::{Agreement, ReadHere, Unproven, unread_text};
use crate::config::Config;
use crate::model::{
    Author, IdMap, KeyId, Operation, OperationId, OperationType, Outcome, ProgramStep, Reply,
    ResourceId, SiteId, StateFloor, Status, Vector,
};
use crate::plan::{Health, SnapshotId};
use crate::resolve::{LeftOut, ListedOperations, OperationSet};

/// Another site, as this one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteView {
    /// Which.
    pub site: SiteId,
    /// Up or down, since when, last heard when (by the monotonic clock).
    pub status: SiteStatus,
    /// The round trip, if one was measured.
    pub round_trip_ms: Option<u64>,
    /// The keys of it that were shown to sign lies.
    pub set_apart: Vec<KeyId>,
    /// Resources it shares with this site.
    pub shared: usize,
    /// Resources of which it is not known to know everything.
    pub behind_on: usize,
}

/// Never more than what was really heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteStatus {
    /// Nothing was ever heard of it in this run.
    NeverHeard,
    /// It is heard.
    Up {
        /// Since when.
        since_ms: u64,
    },
    /// It is not heard; what it does is unknown since it was last heard.
    Unknown {
        /// When it was last heard.
        since_ms: u64,
    },
}

/// A resource, as this site knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceView {
    /// Which.
    pub id: ResourceId,
    /// Where it lives.
    pub sites: BTreeSet<SiteId>,
    /// How its operations are resolved.
    pub config: Arc<Config>,
    /// What runs, in order.
    pub list: Vec<OperationId>,
    /// What this site runs instead, where programs decided about some of it.
    pub decided: Option<Vec<ProgramStep>>,
    /// All operations known and not pruned, in total order.
    pub operations: Vec<OperationView>,
    /// Everything known, pruned or not.
    pub knows: Vector,
    /// What was pruned.
    pub pruned: Vector,
    /// Whether this site's application follows the list.
    pub health: Health,
    /// What this site is doing about it.
    pub progress: RunProgress,
    /// Whether every site is known to know everything and has said what became of it there, well or
    /// not, and this one has run all of it.
    pub settled: bool,
    /// How it stands at each of its sites, as far as this one knows.
    pub standings: Vec<SiteStanding>,
    /// Whether it was ended.
    pub deleted: bool,
    /// What the sites call it, if it is a resource of a service.
    pub id_map: Option<IdMap>,
    /// What this site's service called it in an incarnation of the site that is over, where nobody
    /// has said yet that it is still there.
    pub was_called: Option<String>,
    /// What keeps the next operation from being tried, if something does.
    pub waits_for: Option<String>,
    /// The state that stands for what was pruned and counts, which comes before the list.
    pub state: Option<StateFloor>,
}

/// A resource in a line: as much as can be told without a look at all its operations' content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSummary {
    /// Which.
    pub id: ResourceId,
    /// Where it lives.
    pub sites: BTreeSet<SiteId>,
    /// How many operations are known and not pruned.
    pub operations: usize,
    /// How many of them run.
    pub listed: usize,
    /// How many went wrong at some site, and nothing later has set them right.
    pub errors: usize,
    /// How it stands where it stands worst. None before any operation has said where it lives.
    pub standing: Option<SiteStanding>,
    /// Whether it was ended.
    pub deleted: bool,
    /// When something was last written on it, in milliseconds since the Unix epoch by the
    /// writer's clock.
    pub changed_ms: u64,
    /// Since when all its sites are known to have read the same state; none where they are not, or where
    /// anything else is amiss.
    pub verified_ms: Option<u64>,
    /// Why that is not known, where nothing else is amiss.
    pub unproven: Option<Unproven>,
    /// How many of the list programs left out.
    pub left_out_by_programs: usize,
    /// What somebody should look at, though nothing failed.
    pub warning: Option<RaisedWarning>,
    /// The first few of those that went wrong.
    pub troubled: Vec<OperationInTrouble>,
    /// Whether its operations are edits that are merged, of which none takes the place of others.
    pub is_merged: bool,
    /// The service that it is a resource of, if it is one's.
    pub service: Option<String>,
}

/// An operation that went wrong at some site, which nothing later has set right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationInTrouble {
    /// The operation.
    pub operation: Arc<Operation>,
    /// Where it failed, whole or in part.
    pub failed_at: Vec<SiteId>,
    /// Where nothing can tell whether it happened.
    pub in_doubt_at: Vec<SiteId>,
    /// Where it can be run again, as far as this site knows.
    pub retry_at: Vec<SiteId>,
    /// Where the state had to go back to what it was before all that it was to replace.
    pub written_over_at: Vec<SiteId>,
}

/// So many operations that went wrong are told of in a line.
const MOST_TROUBLED: usize = 5;

/// Something that nobody was told to do, and somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedWarning {
    /// The site that says so.
    pub site: SiteId,
    /// What, for people.
    pub why: String,
    /// What it is about.
    pub about: WarnedOf,
    /// Since when, in milliseconds since the Unix epoch by that site's clock.
    pub since_ms: u64,
    /// From when on it is worth somebody's time.
    pub matters_from_ms: u64,
}

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarnedOf {
    /// The state cannot be read, or is not believed.
    State,
    /// The program that decides about operations was of no use, so that they ran in the total order.
    Program,
}

/// A resource as it stands, without its operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// How its operations are resolved.
    pub config: Arc<Config>,
    /// What this site is doing about it.
    pub progress: RunProgress,
    /// How it stands at each of its sites, as far as this one knows.
    pub standings: Vec<SiteStanding>,
    /// What the sites call it, if it is a resource of a service.
    pub id_map: Option<IdMap>,
    /// What keeps the next operation from being tried, if something does.
    pub waits_for: Option<String>,
    /// What is known of its state, where the config says how that is read.
    pub proof: Option<StateProof>,
}

/// What is known of a resource's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateProof {
    /// Whether it is the same at all sites.
    pub agreement: Agreement,
    /// What was last read here, since this engine began.
    pub read_here: Option<ReadHere>,
    /// What keeps the sites' states from being known to be the same, or not.
    pub unproven: Option<Unproven>,
    /// Where a program that decides about operations was of no use, and why, if so.
    pub no_use: Option<(SiteId, String)>,
}

/// Whether a resource is held here, and for whom: no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Where it lives.
    pub sites: BTreeSet<SiteId>,
    /// Whether it was ended.
    pub deleted: bool,
    /// Whether it is a resource of a service.
    pub is_of_service: bool,
}

/// Which of a resource's operations are looked at.
#[derive(Debug, Clone, Copy)]
pub struct OperationsAsked<'a> {
    /// In which order.
    pub order: PageOrder,
    /// Those after this one in that order.
    pub after: Option<&'a OperationId>,
    /// At most so many.
    pub most: usize,
}

/// Which operations come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOrder {
    /// As they are in the total order.
    OldestFirst,
    /// The other way round.
    LatestFirst,
}

/// Where a site stands with running the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunProgress {
    /// Nothing is left to run.
    Idle,
    /// Something runs, or waits for a place.
    Running,
    /// Waits for the operator's word on an operation in doubt.
    AwaitsOperator(OperationId),
}

/// An operation with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationView {
    /// The operation.
    pub operation: Arc<Operation>,
    /// Why it is not in the list, if it is not.
    pub left_out: Option<LeftOut>,
    /// The last word of each site that replied.
    pub replies: Vec<Reply>,
}

impl OperationView {
    /// Which.
    pub fn id(&self) -> &OperationId {
        &self.operation.id
    }
}

impl Engine {
    /// The resources this site holds.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &ResourceId> {
        self.resources.keys()
    }

    /// Those after that one, in order of name.
    pub fn ids_after(&self, after: Option<&ResourceId>) -> impl Iterator<Item = &ResourceId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.resources.range((from, Bound::Unbounded)).map(|(id, _)| id)
    }

    /// One resource.
    pub fn resource(&self, id: &ResourceId) -> Option<ResourceView> {
        self.resources.get(id).map(|resource| self.view(resource))
    }

    /// One resource in a line.
    pub fn summary(&self, id: &ResourceId) -> Option<ResourceSummary> {
        self.resources.get(id).map(|resource| self.summarize(resource))
    }

    /// For whom a resource is held, if it is.
    pub fn holding(&self, id: &ResourceId) -> Option<Holding> {
        let resource = self.resources.get(id)?;
        Some(Holding {
            sites: resource.declared.sites.clone(),
            deleted: resource.is_deleted() || resource.is_retired(),
            is_of_service: resource.declared.id_map.is_some(),
        })
    }

    /// What this site is doing about a resource.
    pub fn progress(&self, id: &ResourceId) -> Option<RunProgress> {
        self.resources.get(id).map(|resource| progress(resource))
    }

    /// What runs, in order, to be read elsewhere.
    pub fn list(&self, id: &ResourceId) -> Option<ListedOperations> {
        self.resources.get(id).map(|resource| resource.resolution.listed())
    }

    /// One resource without its operations.
    pub fn outline(&self, id: &ResourceId) -> Option<Outline> {
        let resource = self.resources.get(id)?;
        Some(Outline {
            config: resource.config(),
            progress: progress(resource),
            standings: self.standings(id)?,
            id_map: resource.names_now(&self.context.settings),
            waits_for: resource.runs.waits_for(),
            proof: resource.config().state.is_some().then(|| StateProof {
                agreement: resource.agreement(self.me()),
                read_here: resource.reads.last.clone(),
                unproven: resource.unproven(self.me()),
                no_use: resource
                    .program_failure(self.me())
                    .map(|(site, why, _)| (site.clone(), why.to_owned())),
            }),
        })
    }

    /// Some of a resource's operations, beginning after that one. One that is not known any more
    /// was pruned: everything kept comes after it, and nothing before.
    pub fn operations(
        &self,
        id: &ResourceId,
        wanted: &OperationsAsked<'_>,
    ) -> Option<Vec<OperationView>> {
        let resource = self.resources.get(id)?;
        let operations = resource.resolution.operations();
        let view = |operation| operation_view(resource, operation, self.me());
        let is_pruned = wanted.after.is_some_and(|after| !operations.contains(after));
        Some(match wanted.order {
            PageOrder::OldestFirst => {
                operations.in_order(wanted.after).take(wanted.most).map(view).collect()
            }
            PageOrder::LatestFirst if is_pruned => Vec::new(),
            PageOrder::LatestFirst => {
                operations.latest_first(wanted.after).take(wanted.most).map(view).collect()
            }
        })
    }

    /// One operation with what became of it.
    pub fn operation_view(
        &self,
        id: &ResourceId,
        operation: &OperationId,
    ) -> Option<OperationView> {
        let resource = self.resources.get(id)?;
        resource.operation(operation).map(|it| operation_view(resource, it, self.me()))
    }

    /// How a resource's operations are resolved.
    pub fn config(&self, id: &ResourceId) -> Option<Arc<Config>> {
        self.resources.get(id).map(|resource| resource.config())
    }

    /// Whether a resource may have hooks. Costs with how many different configs there are.
    pub fn has_hooks(&self) -> bool {
        self.context.rulebook.has_hooks()
    }

    /// The type of one operation, if it is known and not pruned.
    pub fn operation(&self, id: &ResourceId, operation: &OperationId) -> Option<Arc<Operation>> {
        self.resources.get(id)?.operation(operation).cloned()
    }

    /// Whether a resource has an operation of that type.
    pub fn has_type(&self, id: &ResourceId, kind: &str) -> bool {
        self.types(id).any(|of| of.as_str() == kind)
    }

    /// The types of a resource's operations.
    pub fn types(&self, id: &ResourceId) -> impl Iterator<Item = &OperationType> {
        let resources = self.resources.get(id).into_iter();
        resources.flat_map(|resource| resource.resolution.operations().kinds())
    }

    /// The last operation of a resource's list.
    pub fn last_of_list(&self, id: &ResourceId) -> Option<OperationId> {
        self.resources.get(id)?.resolution.last().map(|operation| operation.id.clone())
    }

    /// The resources held here that also live on that site, with their configs.
    pub fn resources_at(&self, site: &SiteId) -> impl Iterator<Item = (&ResourceId, Arc<Config>)> {
        let there = self.resources.values().filter(|held| held.declared.sites.contains(site));
        there.map(|resource| (&resource.id, resource.config()))
    }

    /// Tells which saved states of a resource may still be brought back, now or once they are made.
    pub fn needs_snapshot(&self, id: &ResourceId) -> impl Fn(SnapshotId) -> bool + Send + use<> {
        let log = self.resources.get(id).map(|resource| resource.runs.log.clone());
        move |snapshot| log.as_ref().is_some_and(|log| log.needs_snapshot(snapshot))
    }

    /// Whether an operation is known here, be it pruned or not.
    pub fn knows(&self, id: &ResourceId, operation: &OperationId) -> bool {
        self.resources.get(id).is_some_and(|resource| resource.knows.includes(&operation.0))
    }

    /// Whether an operation was heard and is kept in memory until its past arrives: it may yet be
    /// taken in, though the log does not have it.
    pub fn awaits_past(&self, id: &ResourceId, operation: &OperationId) -> bool {
        self.resources.get(id).is_some_and(|resource| resource.awaits_past(&operation.0))
    }

    /// What [`explain`](crate::resolve::explain) takes, as it is now: that may take long elsewhere.
    pub fn history(&self, id: &ResourceId) -> Option<(OperationSet, Arc<Config>)> {
        let resource = self.resources.get(id)?;
        Some((resource.resolution.operations().clone(), resource.config()))
    }

    /// The other sites.
    pub fn sites(&self) -> Vec<SiteView> {
        let links = self.context.links.iter();
        links
            .map(|(site, link)| SiteView {
                site: site.clone(),
                status: match (link.heard_ms, link.up) {
                    (None, _) => SiteStatus::NeverHeard,
                    (Some(_), true) => SiteStatus::Up { since_ms: link.since_ms },
                    (Some(heard), false) => SiteStatus::Unknown { since_ms: heard },
                },
                round_trip_ms: link.round_trip_ms,
                set_apart: self.context.liars.keys_of(site),
                shared: link.shared,
                behind_on: link.behind.len(),
            })
            .collect()
    }

    /// How often each site said what that cannot be, since this engine began.
    pub fn malformed(&self) -> impl Iterator<Item = (&SiteId, Malformed, u64)> {
        self.context.malformed.iter().map(|heard| (&heard.site, heard.what, heard.times))
    }

    /// How many bytes each site makes this one keep before they can be taken in: counted anew, and as
    /// they were counted when they came and went. The two are the same, whatever anybody sends.
    pub fn waiting_bytes(&self) -> (BTreeMap<SiteId, usize>, &BTreeMap<SiteId, usize>) {
        (self.context.count_waiting(&self.resources), self.context.room.taken())
    }

    /// How many entries of a resource that site is not known to know.
    pub fn behind(&self, resource: &ResourceId, site: &SiteId) -> Option<u64> {
        let resource = self.resources.get(resource)?;
        let peer = resource.peers.get(site)?;
        Some(resource.count_lacking(&peer.knows))
    }

    /// What every site of the resource is known to know, if that can be told.
    pub fn stable(&self, resource: &ResourceId) -> Option<Vector> {
        self.resources.get(resource).map(|resource| resource.stable())
    }
}

impl Engine {
    fn view(&self, resource: &Resource) -> ResourceView {
        let settings = &self.context.settings;
        let mut operations: Vec<_> = resource
            .resolution
            .operations()
            .iter()
            .map(|operation| operation_view(resource, operation, &settings.me))
            .collect();
        operations.sort_by_key(|view| view.operation.position());
        ResourceView {
            id: resource.id.clone(),
            sites: resource.declared.sites.clone(),
            config: resource.config(),
            list: resource.resolution.list().cloned().collect(),
            decided: resource.programs.decided().map(|decided| decided.steps().collect()),
            operations,
            knows: resource.knows.clone(),
            pruned: resource.base.clone(),
            health: resource.runs.health.clone(),
            progress: progress(resource),
            settled: resource.runs.is_idle() && resource.is_done_everywhere(),
            standings: self.standings(&resource.id).unwrap_or_default(),
            deleted: resource.is_deleted() || resource.is_retired(),
            id_map: resource.names_now(settings),
            was_called: resource.was_called(settings),
            waits_for: resource.runs.waits_for(),
            state: resource.resolution.state().cloned(),
        }
    }

    fn summarize(&self, resource: &Resource) -> ResourceSummary {
        let standing = resource.worst_standing(self.me(), &self.context.links);
        let is_in_sync = standing.as_ref().is_some_and(|it| it.standing == Standing::InSync);
        let unproven = resource.unproven(self.me());
        ResourceSummary {
            id: resource.id.clone(),
            sites: resource.declared.sites.clone(),
            operations: resource.resolution.operations().len(),
            listed: resource.resolution.list().len(),
            errors: resource.in_trouble().count(),
            standing,
            left_out_by_programs: resource.programs.left_out(),
            warning: self.warning(resource, unproven.as_ref()),
            troubled: self.troubled(resource),
            is_merged: resource.config().merged_as().is_some(),
            unproven: unproven.filter(|_| is_in_sync),
            verified_ms: match resource.agreement(self.me()) {
                Agreement::Verified { since_ms } if is_in_sync => Some(since_ms),
                _ => None,
            },
            service: resource.declared.id_map.as_ref().map(|map| map.service.clone()),
            deleted: resource.is_deleted() || resource.is_retired(),
            changed_ms: resource.changed_ms(),
        }
    }
}

impl Engine {
    fn troubled(&self, resource: &Resource) -> Vec<OperationInTrouble> {
        let me = self.me();
        let sites = || resource.declared.sites.iter();
        let told = |operation: &Arc<Operation>| {
            let id = &operation.id;
            let word = |site: &SiteId| Some(resource.word_of(site, id, me)?.status.clone());
            let in_doubt = |site: &&SiteId| word(site) == Some(Status::InDoubt);
            let failed =
                |site: &&SiteId| matches!(word(site), Some(Status::Ko | Status::Partial { .. }));
            OperationInTrouble {
                operation: operation.clone(),
                failed_at: sites().filter(failed).cloned().collect(),
                in_doubt_at: sites().filter(in_doubt).cloned().collect(),
                written_over_at: sites()
                    .filter(|site| {
                        let said = resource.word_of(site, id, me);
                        let outcome = said.and_then(|said| said.outcome.as_ref());
                        // What failed everywhere brought back what it was to replace.
                        resource.resolution.counts(id)
                            && outcome.is_some_and(Outcome::says_what_was_written_over)
                    })
                    .cloned()
                    .collect(),
                retry_at: sites()
                    .filter(|site| resource.may_retry(id, site, me))
                    .cloned()
                    .collect(),
            }
        };
        let known = resource.in_trouble().filter_map(|id| resource.operation(id));
        known.take(MOST_TROUBLED).map(told).collect()
    }

    fn warning(&self, resource: &Resource, unproven: Option<&Unproven>) -> Option<RaisedWarning> {
        if let Some((site, why, since_ms)) = resource.program_failure(self.me()) {
            let (site, why, about) = (site.clone(), why.to_owned(), WarnedOf::Program);
            return Some(RaisedWarning { site, why, about, since_ms, matters_from_ms: since_ms });
        }
        let Some(Unproven::Unread { site, why, since_ms }) = unproven else { return None };
        let matters_from_ms = since_ms.saturating_add(self.context.settings.verify_every_ms);
        let (site, why, about) = (site.clone(), unread_text(why), WarnedOf::State);
        Some(RaisedWarning { site, why, about, since_ms: *since_ms, matters_from_ms })
    }
}

fn progress(resource: &Resource) -> RunProgress {
    match &resource.runs.awaits_operator {
        Some(operation) => RunProgress::AwaitsOperator(operation.clone()),
        None if resource.runs.is_idle() => RunProgress::Idle,
        None => RunProgress::Running,
    }
}

fn operation_view(resource: &Resource, operation: &Arc<Operation>, me: &Author) -> OperationView {
    let sites = resource.declared.sites.iter();
    let last_words = sites.filter_map(|site| resource.word_of(site, &operation.id, me).cloned());
    OperationView {
        operation: operation.clone(),
        left_out: resource.resolution.left_out(&operation.id),
        replies: last_words.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Event, JobId, Now, Settings, Submission, Ticket, WaitFor};
    use crate::model::{Incarnation, Payload, looks};

    /// A site alone, with so many operations on one resource.
    fn with_operations(count: u64) -> (Engine, ResourceId) {
        let me = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        let now = Now { mono_ms: 0, wall_ms: 1_000 };
        let (mut engine, _) = Engine::recover(Settings::new(me, BTreeSet::new()), [], now);
        let resource = ResourceId::new("counter").unwrap();
        for n in 1..=count {
            drop(engine.handle(now, handed_in(n, &resource)));
        }
        (engine, resource)
    }

    fn handed_in(n: u64, resource: &ResourceId) -> Event {
        Event::Submitted(Submission {
            ticket: Ticket(n),
            resource: resource.clone(),
            sites: Some([SiteId::new("paris").unwrap()].into()),
            config: None,
            kind: OperationType::new("inc").unwrap(),
            payload: Payload::shell("inc"),
            inline_body: None,
            force: false,
            wait: WaitFor::Nothing,
            timeout_ms: 1,
            needs: BTreeSet::new(),
            asked_by: None,
        })
    }

    #[test]
    fn whatever_is_asked_of_a_resource_costs_the_same_with_a_thousand_times_the_history() {
        let looks_at = |count: u64| {
            let (engine, id) = with_operations(count);
            let asked = |after| OperationsAsked { order: PageOrder::LatestFirst, after, most: 5 };
            let (page, last) = looks::during(|| engine.operations(&id, &asked(None)).unwrap());
            assert_eq!(last.len(), 5);
            let middle = last[4].id();
            let (next, _) = looks::during(|| engine.operations(&id, &asked(Some(middle))));
            let (one, found) = looks::during(|| engine.operation_view(&id, middle));
            assert!(found.is_some());
            let (summary, told) = looks::during(|| engine.summary(&id).unwrap());
            assert_eq!(told.operations as u64, count);
            let (types, _) = looks::during(|| engine.types(&id).count());
            let (outline, _) = looks::during(|| engine.outline(&id).unwrap());
            let (holding, _) = looks::during(|| engine.holding(&id).unwrap());
            let (list, all) = looks::during(|| engine.list(&id).unwrap());
            assert_eq!(all.ids().len() as u64, count);
            let (history, (operations, _)) = looks::during(|| engine.history(&id).unwrap());
            assert_eq!((operations.len() as u64, list, history), (count, 0, 0));
            [page, next, one, summary, types, outline, holding]
        };
        let (few, many) = (looks_at(10), looks_at(10_000));
        // Where a page begins is found by halves.
        let halves = u64::from(10_000_u64.ilog2());
        for (few, many) in few.iter().zip(many) {
            assert!(many <= few + 3 * halves, "{many} looks at operations, not {few}");
        }
    }

    #[test]
    fn whether_a_resource_has_hooks_is_known_without_a_look_at_the_resources() {
        let (mut engine, _) = with_operations(2);
        assert!(!engine.has_hooks());
        let hooked = r#"{"Hooks": [{"On": "applied", "Command": "true"}]}"#;
        let config = Some(Arc::new(Config::parse(hooked).unwrap().config));
        let other = ResourceId::new("other").unwrap();
        let Event::Submitted(first) = handed_in(9, &other) else { unreachable!() };
        let now = Now { mono_ms: 0, wall_ms: 1_000 };
        drop(engine.handle(now, Event::Submitted(Submission { config, ..first })));
        assert!(engine.has_hooks());
    }

    #[test]
    fn how_much_a_site_lacks_is_told_without_a_look_at_it() {
        let (mut engine, id) = with_operations(10);
        let lyon = SiteId::new("lyon").unwrap();
        let resource = engine.resources.get_mut(&id).unwrap();
        resource.peers.get_or_insert_with(&lyon, crate::engine::peer::Peer::default);
        let (looks, lacks) = looks::during(|| engine.behind(&id, &lyon));
        assert_eq!((looks, lacks), (0, Some(10)));
    }

    #[test]
    fn an_operation_handed_in_costs_the_same_after_a_long_history() {
        let looks_at = |count: u64| {
            let (mut engine, id) = with_operations(count);
            let now = Now { mono_ms: 0, wall_ms: 1_000 };
            let handing_in = || drop(engine.handle(now, handed_in(count + 1, &id)));
            looks::during(handing_in).0
        };
        assert_eq!(looks_at(10), looks_at(10_000));
    }

    #[test]
    fn while_a_long_history_is_explained_what_is_handed_in_costs_no_more_than_the_way_to_it() {
        let looks_at = |count: u64, is_explained: bool| {
            let (mut engine, id) = with_operations(count);
            let asked = is_explained.then(|| (engine.history(&id).unwrap(), engine.list(&id)));
            let now = Now { mono_ms: 0, wall_ms: 1_000 };
            let mut handing_in = |n: u64| {
                let (looks, _) =
                    looks::during(|| drop(engine.handle(now, handed_in(count + n, &id))));
                looks
            };
            let (first, later) = (handing_in(1), (2..=20).map(&mut handing_in).sum::<u64>());
            if let Some(((operations, config), list)) = asked {
                let told = crate::resolve::explain(&operations, &config);
                assert_eq!(told.list.len() as u64, count, "what came meanwhile is not in it");
                assert_eq!(list.unwrap().ids().len() as u64, count);
            }
            (first, later)
        };
        let (alone, reading) = (looks_at(10_000, false), looks_at(10_000, true));
        // The parts on the way from the root to the end of a tree, in the few trees that readers share.
        let way = 2 * u64::from(10_000_u64.ilog2());
        assert!(reading.0 <= alone.0 + 3 * way, "{} looks, not {}", reading.0, alone.0);
        assert!(reading.1 <= alone.1 + 6 * way, "{} looks, not {}", reading.1, alone.1);
    }

    #[test]
    fn what_would_come_of_something_is_worked_out_elsewhere() {
        let looks_at = |count: u64| {
            let (mut engine, id) = with_operations(count);
            let now = Now { mono_ms: 0, wall_ms: 1_000 };
            let Event::Submitted(submission) = handed_in(count + 1, &id) else { unreachable!() };
            let (here, basis) = looks::during(|| engine.forecast_basis(&submission, now).unwrap());
            let (there, told) = looks::during(|| basis.forecast());
            assert_eq!(told.list.len() as u64, count + 1);
            assert!(there >= 2 * count, "{there} looks where it is worked out");

            let first = engine.list(&id).unwrap().ids().next().cloned().unwrap();
            drop(engine.handle(now, Event::Ended { job: JobId(1), outcome: succeeded() }));
            let (undoing, basis) = looks::during(|| engine.can_undo(&id, &first).unwrap());
            let (there, _) = looks::during(|| basis.checked());
            assert!(there >= 2 * count, "{there} looks where it is worked out");
            [here, undoing]
        };
        let (few, many) = (looks_at(10), looks_at(1_000));
        let halves = u64::from(1_000_u64.ilog2());
        for (few, many) in few.iter().zip(many) {
            assert!(many <= few + 2 * halves, "{many} operations were looked at, not {few}");
        }
    }

    fn succeeded() -> Outcome {
        Outcome::success(String::new())
    }
}
