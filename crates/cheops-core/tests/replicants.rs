//! Resources of services: one engine, and what it lets others know of their ids.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that cannot go on fails")]

mod disk;

use std::sync::Arc;

use cheops_core::config;
use cheops_core::engine::{
    Effect, Engine, Event, Job, Now, Settings, Submission, Task, Ticket, Unsigned, Wait,
};
use cheops_core::model::{
    Act, Author, Incarnation, LocalId, MetaId, OperationType, Outcome, Output, Payload, Replaces,
    Replica, Replicant, ResourceId, SiteId,
};
use disk::Disk;

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
    now_ms: u64,
}

impl Site {
    fn new() -> Self {
        Self::with(Disk::default())
    }

    fn with(disk: Disk) -> Self {
        let me = Author { site: paris(), incarnation: Incarnation(1) };
        let settings = Settings::new(me, []);
        let now = Now { mono_ms: 0, wall_ms: 1 };
        let (engine, reaction) = Engine::recover(settings, disk.0.clone(), now);
        let mut site = Self { engine, disk, published: None, now_ms: 1 };
        let Ok(effects) = reaction.commit(&mut site.disk, &Unsigned);
        site.note(&effects);
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
