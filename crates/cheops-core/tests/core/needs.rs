//! Operations that need other resources: one engine, and what it runs when.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::disk::Disk;
use cheops_core::config;
use cheops_core::engine::{
    Effect, Engine, Event, Job, Now, Settings, Submission, Ticket, Unsigned, Wait,
};
use cheops_core::model::{
    Act, Author, Incarnation, LocalId, MetaId, OperationType, Outcome, Output, Payload, Replica,
    ResourceId, SiteId, Status,
};

fn named(id: &str) -> ResourceId {
    ResourceId::new(id).unwrap()
}

struct Site {
    engine: Engine,
    disk: Disk,
    jobs: VecDeque<Job>,
    now_ms: u64,
}

impl Site {
    fn with(disk: Disk) -> Self {
        let me = Author { site: SiteId::new("paris").unwrap(), incarnation: Incarnation(1) };
        let now = Now { mono_ms: 0, wall_ms: 1 };
        let (engine, reaction) = Engine::recover(Settings::new(me, []), disk.0.clone(), now);
        let mut site = Self { engine, disk, jobs: VecDeque::new(), now_ms: 1 };
        let Ok(effects) = reaction.commit(&mut site.disk, &Unsigned);
        site.note(effects);
        site
    }

    fn note(&mut self, effects: Vec<Effect>) {
        let job = |effect| match effect {
            Effect::Run(job) => Some(job),
            _ => None,
        };
        self.jobs.extend(effects.into_iter().filter_map(job));
    }

    fn handle(&mut self, event: Event) {
        self.now_ms += 1;
        let now = Now { mono_ms: self.now_ms, wall_ms: self.now_ms };
        let reaction = self.engine.handle(now, event);
        let Ok(effects) = reaction.commit(&mut self.disk, &Unsigned);
        self.note(effects);
    }

    fn submit(&mut self, id: &str, kind: &str, act: Act, needs: &[&str]) {
        let meta_id = MetaId::new(id).unwrap();
        let replica = Replica { meta_id, collection: "/albums".into(), act };
        let payload = Payload::Http {
            service: "gallery".into(),
            method: "POST".into(),
            path: "/albums".into(),
            headers: vec![],
            body: None,
            replica: Some(Box::new(replica)),
        };
        self.handle(Event::Submitted(Submission {
            ticket: Ticket(1),
            resource: named(id),
            sites: Some([SiteId::new("paris").unwrap()].into()),
            config: Some(Arc::new(config::profile("http").unwrap().config.clone())),
            kind: OperationType::new(kind).unwrap(),
            payload,
            force: false,
            wait: Wait::Local,
            timeout_ms: 1_000,
            needs: needs.iter().map(|id| named(id)).collect(),
            asked_by: None,
        }));
    }

    /// The resource of the next job, which ends so.
    #[track_caller]
    fn end(&mut self, status: u16, local_id: Option<&str>) -> String {
        let job = self.jobs.pop_front().unwrap();
        let outcome = Outcome::Answered {
            status,
            headers: vec![],
            output: Output::default(),
            done: status < 400,
            local_id: local_id.map(|id| LocalId::new(id).unwrap()),
        };
        self.handle(Event::Ended { job: job.id, outcome });
        job.resource.to_string()
    }

    fn waits_for(&self, id: &str) -> Option<String> {
        self.engine.resource(&named(id)).unwrap().waits_for
    }

    /// The last word of this site on the first operation of a resource.
    fn said(&self, id: &str) -> Option<(Status, String)> {
        let view = self.engine.resource(&named(id)).unwrap();
        let reply = view.operations.first()?.replies.first()?.clone();
        Some((reply.status, reply.outcome.map(|it| it.text().to_owned()).unwrap_or_default()))
    }
}

#[test]
fn a_photo_waits_for_its_album_and_nobody_else_does() {
    let mut site = Site::with(Disk::default());
    site.submit("album", "post", Act::Creates, &[]);
    site.submit("photo", "post", Act::Creates, &["album"]);
    site.submit("other", "post", Act::Creates, &[]);
    assert_eq!(site.waits_for("photo").unwrap(), "needs `album`, which is not there yet");
    assert_eq!(site.jobs.len(), 2, "the album and the other");
    assert_eq!(site.end(201, Some("1")), "album");
    assert_eq!(site.waits_for("photo"), None);
    assert_eq!(site.end(201, Some("2")), "other");
    assert_eq!(site.end(201, Some("3")), "photo");
}

#[test]
fn what_waited_still_waits_after_a_restart() {
    let mut site = Site::with(Disk::default());
    site.submit("album", "create", Act::CreatesAs, &[]);
    site.submit("photo", "create", Act::CreatesAs, &["album"]);
    let mut site = Site::with(site.disk);
    assert_eq!(site.waits_for("photo").unwrap(), "needs `album`, which is not there yet");
    assert_eq!(site.end(201, None), "album", "what was cut short is run again");
    assert_eq!(site.end(201, None), "photo");
    assert!(site.jobs.is_empty());
}

#[test]
fn what_needs_something_that_failed_fails_with_its_name() {
    let mut site = Site::with(Disk::default());
    site.submit("album", "post", Act::Creates, &[]);
    site.submit("photo", "post", Act::Creates, &["album"]);
    site.end(422, None);
    let (status, why) = site.said("photo").unwrap();
    assert_eq!((status, why.as_str()), (Status::Ko, "needs `album`, which failed here"));
    assert!(site.jobs.is_empty(), "it was not even tried");
}

#[test]
fn what_needs_something_that_was_deleted_fails_and_the_rest_of_its_list_goes_on() {
    let mut site = Site::with(Disk::default());
    site.submit("album", "post", Act::Creates, &[]);
    site.end(201, Some("1"));
    site.submit("album", "delete", Act::Deletes, &[]);
    site.submit("photo", "create", Act::CreatesAs, &["album"]);
    site.submit("photo", "patch", Act::Changes, &[]);
    assert!(site.waits_for("photo").is_some(), "it is about to go");
    assert_eq!(site.end(204, None), "album");
    assert_eq!(site.said("photo").unwrap().0, Status::Ko);
    assert_eq!(site.end(404, None), "photo", "the service says what it thinks of the patch");
}

#[test]
fn what_no_site_can_wait_for_is_not_waited_for() {
    let mut site = Site::with(Disk::default());
    site.submit("photo", "post", Act::Creates, &["unheard", "photo"]);
    assert_eq!(site.end(201, Some("1")), "photo");
}

#[test]
fn a_circle_is_run_in_the_order_of_ids() {
    let mut site = Site::with(Disk::default());
    site.submit("b", "put", Act::CreatesAs, &[]);
    site.submit("a", "put", Act::CreatesAs, &["b"]);
    // It takes the place of the one above, which is all that `a` could have been content with.
    site.submit("b", "put", Act::CreatesAs, &["a"]);
    assert_eq!(site.end(201, None), "b");
    assert_eq!(site.jobs.len(), 1);
    assert_eq!(site.end(201, None), "a");
    assert_eq!(site.end(200, None), "b");
    assert!(site.jobs.is_empty());
}
