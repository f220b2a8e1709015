//! Hooks: commands that run and addresses that are told when something happened.
//!
//! They come from the site's own config ([`SiteHook`]) and from the config of each resource. A
//! [`Fact`] is one thing that happened; [`Hooks::matching`] says what is to be done about it, and
//! [`Hooks::tell`] does one of these things. Facts come from the durable feed of changes, and how
//! far each target was told is kept: after a crash it may be told a second time, and the delivery
//! has the same name then.
//!
//! | file | what it does |
//! | --- | --- |
//! | `follow` | from the feed of changes to facts, and to those who are told |
//! | `target_queues` | who is told what next, so that nobody waits for another |
//! | `matching` | which hooks a fact concerns |
//! | `message` | what is told, and its signature |
//! | `not_allowed` | web hooks that may not go where they say |
//! | `deliver` | telling it: by a command, or by a request that is tried again |

mod deliver;
mod follow;
mod matching;
mod message;
mod not_allowed;
mod target_queues;

use std::sync::Arc;
use std::time::Duration;

use cheops_core::config::{Config, Hook, HookAction, HookEvent, HookRun};
use cheops_core::model::{Incarnation, OperationId, OperationType, ResourceId, SiteId};
use cheops_services::ConnectorError;

use self::deliver::Outlets;
pub(crate) use self::follow::Follower;
use self::not_allowed::NotAllowed;
use crate::config::{Allowed, Secret, SiteHook};
use crate::exec::Executor;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Fact {
    /// Its number in the feed of changes of this site's disk.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What.
    pub event: HookEvent,
    /// Whether it happened at this site, or is true of all sites.
    pub reach: Reach,
    /// To which resource.
    ///
    /// A site going down or coming up is told once without a resource, to the site's own hooks,
    /// and once with each resource that lives there and has such hooks, to those.
    pub resource: Option<ResourceId>,
    /// To which operation; with [`HookEvent::Converged`], the last of the list.
    pub operation: Option<OperationId>,
    /// That operation's type.
    pub kind: Option<OperationType>,
    /// Where it happened, or who is down or up.
    pub site: SiteId,
    /// What else is to be said.
    pub detail: serde_json::Value,
    /// The resource's config.
    pub config: Option<Arc<Config>>,
}

/// Of whom a fact is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Of this site: hooks that run at each site are told.
    Here,
    /// Of the operation as a whole, now that all sites have replied: hooks that run once are told,
    /// at the site that received it. That a resource converged is true of all sites in any case.
    All,
}

/// How hooks are run at this site.
#[derive(Debug, Clone)]
pub struct HookSettings {
    /// This site.
    pub site: SiteId,
    /// This incarnation of its disk: facts are numbered anew in each.
    pub incarnation: Incarnation,
    /// What deliveries are signed with, where a hook says nothing else; those of resources with a
    /// key made of it.
    pub secret: Option<Secret>,
    /// Where the web hooks of resources may go.
    pub allow: Vec<Allowed>,
    /// How long a command may take.
    pub command_limit: Duration,
    /// How long a receiver may take to answer.
    pub web_limit: Duration,
    /// How often a delivery is tried.
    pub attempts: usize,
    /// How long to wait before the second try; then twice as long each time, up to
    /// [`HookSettings::longest_pause`].
    pub first_pause: Duration,
    /// The longest time between two tries.
    pub longest_pause: Duration,
    /// How many commands run at once.
    pub at_once: usize,
}

impl HookSettings {
    /// The defaults.
    pub fn new(site: SiteId, incarnation: Incarnation) -> Self {
        Self {
            site,
            incarnation,
            secret: None,
            allow: Vec::new(),
            command_limit: Duration::from_secs(60),
            web_limit: Duration::from_secs(10),
            attempts: 5,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            at_once: 16,
        }
    }
}

/// One thing to do about a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAction {
    /// The how-manieth thing to do about it, from 0.
    pub n: usize,
    /// What.
    pub does: HookAction,
    /// As which kind of hook.
    pub run: HookRun,
    /// Whose hook it is.
    pub owner: Owner,
    /// What it is signed with.
    pub secret: Option<Secret>,
}

impl DueAction {
    /// Where it would go and may not, if so.
    fn refused_address(&self, allow: &[Allowed]) -> Option<&str> {
        match (&self.does, self.owner) {
            (HookAction::Url(url), Owner::Resource(_)) => {
                (!allow.iter().any(|place| place.covers(url))).then_some(url.as_str())
            }
            _ => None,
        }
    }
}

/// Whose hook something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The site's, by its place in the agent's config.
    Site(usize),
    /// The resource's, by its place in the resource's config.
    Resource(usize),
}

/// Runs hooks. Clones are the same.
#[derive(Clone)]
pub struct Hooks {
    inner: Arc<HooksState>,
}

struct HooksState {
    site_hooks: Vec<SiteHook>,
    settings: HookSettings,
    outlets: Outlets,
    not_allowed: NotAllowed,
}

impl Hooks {
    /// Makes a runner of these hooks and of those that resources have.
    ///
    /// # Errors
    ///
    /// When there can be no client for web hooks.
    pub fn new(
        site_hooks: Vec<SiteHook>,
        settings: HookSettings,
        executor: Executor,
    ) -> Result<Self, HooksError> {
        let outlets = Outlets::new(executor, settings.at_once).map_err(HooksError)?;
        let not_allowed = NotAllowed::default();
        Ok(Self { inner: Arc::new(HooksState { site_hooks, settings, outlets, not_allowed }) })
    }

    /// What is to be done about a fact: the site's hooks first, in their order. Web hooks of
    /// resources may come from any site: they go only where this one allows it.
    pub fn matching(&self, fact: &Fact) -> Vec<DueAction> {
        let HooksState { site_hooks, settings, .. } = &*self.inner;
        let mut actions = matching::matching(site_hooks, settings, fact);
        actions.retain(|action| {
            let refused = action.refused_address(&settings.allow);
            if let Some(url) = refused {
                self.inner.not_allowed.note(fact, url);
            }
            refused.is_none()
        });
        actions
    }

    /// Does one of these things, and comes back when it is done or given up; whether it was done.
    /// What failed is logged and counted; it changes nothing for anyone else.
    pub async fn tell(&self, fact: &Fact, action: &DueAction) -> bool {
        self.inner.outlets.tell(&self.inner.settings, fact, action).await
    }

    /// The site's own.
    fn site_hooks(&self) -> impl Iterator<Item = &Hook> {
        self.inner.site_hooks.iter().map(|own| &own.hook)
    }
}

/// Why hooks cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("web hooks cannot be told")]
pub struct HooksError(#[source] ConnectorError);
