//! Resources of services: one engine, and what it lets others know of their ids.

use std::sync::Arc;

use crate::disk::Disk;
use cheops_core::config;
use cheops_core::engine::{
    Application, Effect, Engine, Event, Job, Now, Progress, Record, Settings, Submission, Task,
    Ticket, Unsigned, Wait,
};
use cheops_core::model::{
    Act, Author, Incarnation, LocalId, MetaId, OperationType, Outcome, Output, Payload, Replaces,
    Replica, Replicant, ResourceId, SiteId, Status,
};
use cheops_core::plan::Decision;

fn paris() -> SiteId {
    SiteId::new("paris").unwrap()
}

fn image() -> ResourceId {
    ResourceId::new("meta").unwrap()
}

struct Site {
    engine: Engine,
    disk: Disk,
    /// What requests are known by, as it was last said.
    published: Option<Arc<Replicant>>,
    /// What was to be run when it started.
    jobs: Vec<Job>,
    now_ms: u64,
}

impl Site {
    fn new() -> Self {
        Self::with(Disk::default())
    }

    fn with(disk: Disk) -> Self {
        Self::of(1, Application::MayHoldState, disk)
    }

    /// In that life, before an application that outlived the one before, or did not.
    fn of(life: u64, application: Application, disk: Disk) -> Self {
        let me = Author { site: paris(), incarnation: Incarnation(life) };
        let settings = Settings { application, ..Settings::new(me, []) };
        let now = Now { mono_ms: 0, wall_ms: 1 };
        let (engine, reaction) = Engine::recover(settings, disk.0.clone(), now);
        let mut site = Self { engine, disk, published: None, jobs: Vec::new(), now_ms: 1 };
        let Ok(effects) = reaction.commit(&mut site.disk, &Unsigned);
        site.jobs = site.note(&effects).into_iter().collect();
        site
    }

    fn note(&mut self, effects: &[Effect]) -> Option<Job> {
        let mut job = None;
        for effect in effects {
            match effect {
                Effect::Publish(_, replicant) => self.published.clone_from(replicant),
                Effect::Run(run) => job = Some(run.clone()),
                _ => {}
            }
        }
        job
    }

    fn handle(&mut self, event: Event) -> Option<Job> {
        self.now_ms += 1;
        let now = Now { mono_ms: self.now_ms, wall_ms: self.now_ms };
        let reaction = self.engine.handle(now, event);
        let Ok(effects) = reaction.commit(&mut self.disk, &Unsigned);
        self.note(&effects)
    }

    fn submit(&mut self, kind: &str, act: Act) -> Option<Job> {
        let meta_id = MetaId::new("meta").unwrap();
        let replica = Replica { meta_id, collection: "/v1/images".into(), act };
        let payload = Payload::Http {
            service: "image".into(),
            method: "POST".into(),
            path: "/v1/images".into(),
            headers: vec![],
            body: None,
            replica: Some(Box::new(replica)),
        };
        self.handle(Event::Submitted(Submission {
            ticket: Ticket(1),
            resource: image(),
            sites: Some([paris()].into()),
            config: Some(Arc::new(config::profile("http").unwrap().config.clone())),
            kind: OperationType::new(kind).unwrap(),
            payload,
            force: false,
            wait: Wait::Local,
            timeout_ms: 1_000,
            needs: Default::default(),
            asked_by: None,
        }))
    }

    fn ended(&mut self, job: &Job, status: u16, local_id: Option<&str>) -> Option<Job> {
        let outcome = Outcome::Answered {
            status,
            headers: vec![],
            output: Output::default(),
            done: status < 400,
            local_id: local_id.map(|id| LocalId::new(id).unwrap()),
        };
        self.handle(Event::Ended { job: job.id, outcome })
    }

    fn called(&self) -> Option<Option<String>> {
        let published = self.published.as_ref()?;
        Some(published.at(&paris()).map(str::to_owned))
    }
}

#[test]
fn what_a_service_calls_a_resource_is_known_from_its_answer_until_it_is_deleted() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    assert_eq!(site.called(), Some(None), "it is to be made");
    site.ended(&job, 201, Some("7"));
    assert_eq!(site.called(), Some(Some("7".to_owned())));
    let job = site.submit("delete", Act::Deletes).unwrap();
    assert_eq!(site.called(), Some(Some("7".to_owned())), "it is still there");
    site.ended(&job, 204, None);
    assert_eq!(site.called(), None);
    assert!(site.engine.resource(&image()).unwrap().deleted);
}

#[test]
fn a_deletion_that_is_refused_ends_nothing() {
    let mut site = Site::new();
    let job = site.submit("create", Act::CreatesAs).unwrap();
    site.ended(&job, 201, None);
    assert_eq!(site.called(), Some(Some("meta".to_owned())), "all sites call it so");
    let job = site.submit("delete", Act::Deletes).unwrap();
    site.ended(&job, 403, None);
    assert_eq!(site.called(), Some(Some("meta".to_owned())));
}

#[test]
fn ids_outlive_a_restart_also_of_what_was_pruned() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    site.ended(&job, 201, Some("7"));
    let mut site = Site::with(site.disk);
    assert_eq!(site.called(), Some(Some("7".to_owned())));
    // The deletion rules the creation out; what it is to delete must not be forgotten with it.
    let job = site.submit("delete", Act::Deletes).unwrap();
    let site = Site::with(site.disk);
    assert_eq!(site.called(), Some(Some("7".to_owned())));
    assert!(matches!(job.task, Task::Run(_)));
}

#[test]
fn a_replacement_leaves_the_creation_that_the_matrix_wants_kept() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    site.ended(&job, 201, Some("7"));
    for _ in 0..2 {
        let job = site.submit("put", Act::Changes).unwrap();
        site.ended(&job, 200, None);
    }
    let view = site.engine.resource(&image()).unwrap();
    assert_eq!(view.list.len(), 3, "a site that was away has to make it first");
    let replaces = view.operations.iter().map(|one| one.operation.replaces);
    assert!(replaces.into_iter().all(|replaces| replaces == Replaces::Nothing));
}

#[test]
fn what_was_under_way_when_the_site_stopped_is_run_again_and_said_to_be() {
    let mut site = Site::new();
    let job = site.submit("create", Act::CreatesAs).unwrap();
    assert!(!job.again);
    let mut disk = site.disk;
    let me = Author { site: paris(), incarnation: Incarnation(1) };
    let now = Now { mono_ms: 0, wall_ms: 9 };
    let (_, reaction) = Engine::recover(Settings::new(me, []), disk.0.clone(), now);
    let Ok(effects) = reaction.commit(&mut disk, &Unsigned);
    let again = effects.iter().any(|effect| matches!(effect, Effect::Run(job) if job.again));
    assert!(again, "{effects:?}");
}

/// What others remember of a site that lost its disk: what was written, and not what was run. An
/// engine that meets the words of its earlier life in its log takes them for that.
fn remembered(site: Site) -> Disk {
    Disk(site.disk.0.into_iter().filter(|record| matches!(record, Record::Entry(..))).collect())
}

#[test]
fn ids_of_a_service_that_is_lost_lead_nowhere_until_the_thing_is_made_anew() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    site.ended(&job, 201, Some("7"));
    let mut site = Site::of(2, Application::Empty, remembered(site));
    assert_eq!(site.called(), Some(None), "7 may be somebody else's now");
    let job = site.jobs.pop().expect("it is made anew");
    site.ended(&job, 201, Some("1"));
    assert_eq!(site.called(), Some(Some("1".to_owned())));
    let site = Site::of(2, Application::Empty, site.disk);
    assert_eq!(site.called(), Some(Some("1".to_owned())), "also after a restart");
}

#[test]
fn a_creation_that_is_run_again_answers_under_the_new_id() {
    let mut site = Site::new();
    site.submit("post", Act::Creates).unwrap();
    // The answer was under way when the site stopped: nobody knows whether it was made.
    let mut site = Site::with(site.disk);
    let view = site.engine.resource(&image()).unwrap();
    let Progress::AwaitsOperator(operation) = view.progress else { panic!("{:?}", view.progress) };
    let (resource, decision) = (image(), Decision::Rerun);
    let job = site.handle(Event::Decided { resource, operation, decision }).unwrap();
    site.ended(&job, 201, Some("8"));
    assert_eq!(site.called(), Some(Some("8".to_owned())));
}

#[test]
fn what_may_be_there_under_an_unknown_id_is_not_said_to_be_deleted() {
    let mut site = Site::new();
    site.submit("post", Act::Creates).unwrap();
    let mut site = Site::with(site.disk);
    assert!(site.submit("delete", Act::Deletes).is_none(), "there is nothing to send");
    let view = site.engine.resource(&image()).unwrap();
    let delete = view.operations.last().unwrap();
    assert_eq!(delete.replies.first().unwrap().status, Status::Ko);
    assert!(!view.deleted);
}

/// The operation that waits for the operator is said to have happened.
fn skipped(site: &mut Site) -> Option<Job> {
    let view = site.engine.resource(&image()).unwrap();
    let Progress::AwaitsOperator(operation) = view.progress else { panic!("{:?}", view.progress) };
    site.handle(Event::Decided { resource: image(), operation, decision: Decision::Skip })
}

#[test]
fn of_what_two_services_called_it_nobody_can_tell_which_is_there() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    site.ended(&job, 201, Some("7"));
    let mut site = Site::of(2, Application::Empty, remembered(site));
    let job = site.jobs.pop().unwrap();
    site.ended(&job, 201, Some("1"));
    let site = Site::of(3, Application::MayHoldState, remembered(site));
    // The answer was under way when the site stopped.
    let mut site = Site::of(3, Application::MayHoldState, site.disk);
    assert!(site.jobs.is_empty(), "{:?}", site.jobs);
    assert!(skipped(&mut site).is_none());
    assert_eq!(site.called(), Some(None), "7 or 1");
    assert!(site.submit("delete", Act::Deletes).is_none(), "there is nothing to send");
    let view = site.engine.resource(&image()).unwrap();
    assert_eq!(view.operations.last().unwrap().replies.first().unwrap().status, Status::Ko);
    assert!(!view.deleted);
}

#[test]
fn a_site_that_is_started_from_a_copy_says_again_what_it_ran_and_under_which_id() {
    let mut site = Site::new();
    let job = site.submit("post", Act::Creates).unwrap();
    site.ended(&job, 201, Some("7"));
    let job = site.submit("patch", Act::Changes).unwrap();
    site.ended(&job, 400, None);
    let site = Site::of(2, Application::MayHoldState, site.disk);
    assert!(site.jobs.is_empty(), "nothing is run again");
    let view = site.engine.resource(&image()).unwrap();
    let me = Author { site: paris(), incarnation: Incarnation(2) };
    let again: Vec<_> = view
        .operations
        .iter()
        .flat_map(|operation| operation.replies.iter().filter(|reply| reply.id.author == me))
        .map(|reply| reply.status.clone())
        .collect();
    assert_eq!(again, [Status::Ok, Status::Ko]);
    assert_eq!(site.called(), Some(Some("7".to_owned())));
    let before = site.disk.0.len();
    let site = Site::of(2, Application::MayHoldState, site.disk);
    assert_eq!(site.disk.0.len(), before, "it is said once");
}
