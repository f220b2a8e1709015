//! What happens to the resources: most go well, and some in every way that things go wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use cheops_core::config::{Config, profile};
use cheops_core::engine::{Event, Job, Submission, Task, Ticket, WaitFor};
use cheops_core::model::{OperationType, Outcome, Output, Payload, ResourceId, SiteId};

use crate::mesh::{Mesh, SPAN_MS, SeedWorld};
use crate::{SeedFailure, cannot};

/// How many are made before the sites have their turn.
const AT_ONCE: u64 = 2_000;
/// What a command says that fails at the second site, and one during which the first one stops.
const FAILS: &str = "# fails at site2";
const STOPS: &str = "# site1 stops";

/// What becomes of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourceFate {
    Fine,
    Error,
    Waiting,
    Deleted,
    Diverged,
    InDoubt,
}

impl ResourceFate {
    /// Rare ones are rare, so that finding them is work.
    fn of(n: u64) -> Self {
        match n {
            _ if n % 9_973 == 11 => Self::InDoubt,
            _ if n % 4_001 == 7 => Self::Diverged,
            _ if n % 53 == 17 => Self::Deleted,
            _ if n % 41 == 5 => Self::Error,
            _ if n % 29 == 3 => Self::Waiting,
            _ => Self::Fine,
        }
    }
}

/// Kinds of resources: a name, a profile, the type that begins them, the type that goes on.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("cache/user", "redis", "set", "inc"),
    ("files/motd", "file", "set", "add"),
    ("apps/web", "kubernetes", "apply", "patch"),
    ("images/disk", "http", "put", "patch"),
];

struct SeedResource {
    n: u64,
    id: ResourceId,
    fate: ResourceFate,
    holders: Vec<usize>,
    first: OperationType,
    next: OperationType,
    config: Arc<Config>,
}

impl SeedResource {
    fn new(n: u64) -> Result<Self, SeedFailure> {
        let fate = ResourceFate::of(n);
        let (name, profiled, first, next) = match fate {
            // What overwrites nothing cannot be set right by itself.
            ResourceFate::Diverged | ResourceFate::InDoubt => ("files/log", "file", "add", "add"),
            _ => KINDS[usize::try_from(n % 4).unwrap_or_default()],
        };
        let holders = match (fate, n % 10) {
            (ResourceFate::Fine | ResourceFate::Deleted, 9) => vec![0],
            (ResourceFate::Fine | ResourceFate::Error | ResourceFate::Deleted, 0..3) => vec![0, 1],
            (ResourceFate::Waiting, 0..5) => vec![0, 2],
            _ => vec![0, 1, 2],
        };
        let kind = |name| OperationType::new(name).map_err(cannot("name a type"));
        let config = profile(profiled).map(|profile| Arc::new(profile.config.clone()));
        Ok(Self {
            n,
            id: ResourceId::new(&format!("{name}-{n:06}")).map_err(cannot("name a resource"))?,
            fate,
            holders,
            first: kind(first)?,
            next: kind(next)?,
            config: config.unwrap_or_default(),
        })
    }

    fn begins(&self, mesh: &mut Mesh) {
        let sites: BTreeSet<SiteId> =
            self.holders.iter().map(|site| mesh.name(*site).clone()).collect();
        let first = Submission {
            sites: Some(sites),
            config: Some(self.config.clone()),
            ..self.submission(&self.first, "begin")
        };
        mesh.happens(0, Event::Submitted(first));
    }

    fn goes_on(&self, mesh: &mut Mesh) {
        let last = self.holders.last().copied().unwrap_or_default();
        match self.fate {
            ResourceFate::Error => self.does(mesh, 0, &self.next, FAILS),
            ResourceFate::InDoubt => self.does(mesh, 1, &self.next, STOPS),
            ResourceFate::Waiting => self.does(mesh, 0, &self.next, "change"),
            ResourceFate::Deleted => self.does(mesh, last, &OperationType::deletion(), ":"),
            // Made at the same time, and the later one runs before the earlier one is heard of.
            ResourceFate::Diverged => {
                self.does(mesh, 1, &self.next, "earlier");
                self.does(mesh, 0, &self.next, "later");
            }
            ResourceFate::Fine if self.n.is_multiple_of(3) => {}
            ResourceFate::Fine => {
                self.does(mesh, last, &self.next, "change");
                if self.n.is_multiple_of(7) {
                    self.does(mesh, 0, &self.first, "meet");
                }
            }
        }
    }

    fn does(&self, mesh: &mut Mesh, site: usize, kind: &OperationType, what: &str) {
        mesh.later(1);
        mesh.happens(site, Event::Submitted(self.submission(kind, what)));
    }

    fn submission(&self, kind: &OperationType, what: &str) -> Submission {
        Submission {
            ticket: Ticket(0),
            resource: self.id.clone(),
            sites: None,
            config: None,
            kind: kind.clone(),
            payload: Payload::shell(format!("echo {kind} {} {what}", self.n)),
            inline_body: None,
            force: false,
            wait: WaitFor::Nothing,
            timeout_ms: 0,
            needs: Default::default(),
            asked_by: None,
        }
    }
}

/// What cannot be known from a name: who hears nothing of which resource.
#[derive(Default)]
struct Cut(BTreeSet<ResourceId>);

impl SeedWorld for Cut {
    fn reaches(&self, resource: &ResourceId, site: usize) -> bool {
        site != 2 || !self.0.contains(resource)
    }

    fn ends(&self, job: &Job, site: usize) -> Option<Outcome> {
        let command = match &job.task {
            Task::Run(operation) => operation.payload.summary(),
            _ => String::new(),
        };
        if site == 0 && command.ends_with(STOPS) {
            return None;
        }
        let code = i32::from(site == 1 && command.ends_with(FAILS));
        let said = if code == 0 { command } else { "no such file or directory".to_owned() };
        Some(Outcome::Exited { code, output: Output::whole(said + "\n") })
    }
}

/// Makes that many.
pub(crate) fn make(mesh: &mut Mesh, count: u64) -> Result<(), SeedFailure> {
    let mut world = Cut::default();
    mesh.settle(&world)?;
    let apart_ms = SPAN_MS / (count + 1) / 2;
    for begin in (0..count).step_by(AT_ONCE as usize) {
        let resources: Result<Vec<_>, _> =
            (begin..count.min(begin + AT_ONCE)).map(SeedResource::new).collect();
        let resources = resources?;
        for resource in &resources {
            resource.begins(mesh);
            mesh.later(apart_ms);
        }
        mesh.settle(&world)?;
        for resource in &resources {
            if resource.fate == ResourceFate::Waiting {
                world.0.insert(resource.id.clone());
            }
            resource.goes_on(mesh);
            mesh.later(apart_ms);
        }
        mesh.settle(&world)?;
    }
    Ok(())
}
