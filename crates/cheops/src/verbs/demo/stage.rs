//! The simulated world, as far as the demo plays on it. What can be read off it is in `readings`.

use std::fmt;
use std::sync::Arc;

use cheops_core::config::{Config, profile};
use cheops_core::engine::{Answer, Submission, Ticket, Wait};
use cheops_core::model::{IdError, OperationId, OperationType, Payload, ResourceId, Status};
use cheops_sim::{Setup, Traffic, Violation, World};

use super::beat::Moment;
use super::scenario::{Action, Scenario};

/// How many sites there are.
pub(super) const SITES: usize = 3;
/// How long a command takes, at least and at most.
const COMMAND_MS: (u64, u64) = (5, 20);
/// Nothing takes longer than that, in simulated time.
const PATIENCE_MS: u64 = 60_000;
/// So much never happens in that time: a world that stands still must not hang the demo.
const MOST_STEPS: usize = 1_000_000;

/// Why the simulation cannot go on.
#[derive(Debug)]
pub(super) enum Halted {
    /// Something happened that must not.
    Violation(Violation),
    /// A name in a scenario is none.
    BadName(IdError),
    /// A scenario names a profile that there is not.
    NoProfile(&'static str),
    /// An operation was not accepted.
    Refused(String),
}

impl fmt::Display for Halted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => write!(f, "{violation}"),
            Self::BadName(error) => write!(f, "{error}"),
            Self::NoProfile(name) => write!(f, "there is no profile `{name}`"),
            Self::Refused(why) => write!(f, "an operation was refused: {why}"),
        }
    }
}

impl std::error::Error for Halted {}

impl From<Violation> for Halted {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<IdError> for Halted {
    fn from(error: IdError) -> Self {
        Self::BadName(error)
    }
}

/// A world with one resource.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) world: World,
    pub(super) scenario: &'static Scenario,
    pub(super) resource: ResourceId,
    config: Arc<Config>,
}

/// An operation under way.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    pub(super) ticket: Ticket,
    pub(super) id: OperationId,
    pub(super) at_ms: u64,
    pub(super) site: usize,
}

impl Stage {
    /// Three sites that have measured how far the others are.
    pub(super) fn open(scenario: &'static Scenario, seed: u64) -> Result<Self, Halted> {
        let profile = profile(scenario.profile).ok_or(Halted::NoProfile(scenario.profile))?;
        let setup = Setup { command_ms: COMMAND_MS, ..Setup::new(SITES, seed) };
        let mut stage = Self {
            world: World::new(setup),
            scenario,
            resource: ResourceId::new(scenario.resource)?,
            config: Arc::new(profile.config.clone()),
        };
        stage.until(|stage| stage.links().iter().all(|link| link.round_trip_ms.is_some()))?;
        Ok(stage)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.world.now_ms
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.world.traffic
    }

    pub(super) fn site_names(&self) -> Vec<String> {
        self.world.sites.iter().map(|site| site.id.to_string()).collect()
    }

    /// Hands in an operation at a site.
    pub(super) fn hand_in(&mut self, site: usize, action: &Action) -> Result<Handed, Halted> {
        let at_ms = self.now_ms();
        let submission = Submission {
            ticket: Ticket(0),
            resource: self.resource.clone(),
            sites: Some(self.world.sites.iter().map(|site| site.id.clone()).collect()),
            config: Some(self.config.clone()),
            kind: OperationType::new(action.kind)?,
            payload: Payload::shell(action.simulated),
            force: false,
            wait: Wait::All,
            timeout_ms: PATIENCE_MS,
        };
        let down = || Halted::Refused("the site is down".to_owned());
        let ticket = self.world.submit(site, submission).ok_or_else(down)?;
        let id = self.world.accepted(ticket).cloned();
        let id = id.ok_or_else(|| Halted::Refused(format!("{:?}", self.answers(ticket))))?;
        Ok(Handed { ticket, id, at_ms, site })
    }

    fn answers(&self, ticket: Ticket) -> &[Answer] {
        self.world.answers.get(&ticket).map_or(&[], Vec::as_slice)
    }

    /// What the receiving site itself replied to who handed it in.
    pub(super) fn reply_here(&self, handed: &Handed) -> Option<&Status> {
        let here = &self.world.sites.get(handed.site)?.id;
        self.answers(handed.ticket).iter().find_map(|answer| match answer {
            Answer::Replied(reply) if reply.site() == here => Some(&reply.status),
            _ => None,
        })
    }

    /// Whether every site has replied to who handed it in.
    pub(super) fn replied_everywhere(&self, handed: &Handed) -> bool {
        self.answers(handed.ticket).contains(&Answer::Done)
    }

    /// Lets things happen, one by one, until that holds; whether it came to hold.
    pub(super) fn until(&mut self, holds: impl Fn(&Self) -> bool) -> Result<bool, Halted> {
        let deadline = self.now_ms() + PATIENCE_MS;
        for _ in 0..MOST_STEPS {
            if holds(self) {
                return Ok(true);
            }
            if self.now_ms() >= deadline {
                break;
            }
            self.world.step()?;
        }
        Ok(false)
    }

    /// Lets so much time pass.
    pub(super) fn wait(&mut self, ms: u64) -> Result<(), Halted> {
        Ok(self.world.run_for(ms)?)
    }

    pub(super) fn cut_all_links(&mut self) {
        self.world.cut_all();
    }

    pub(super) fn heal_all_links(&mut self) {
        self.world.network.heal_all();
    }

    /// Kills a site's agent; what it was doing.
    pub(super) fn kill(&mut self, site: usize) -> Moment {
        let moment = match self.world.sites[site].running.values().next() {
            None => Moment::Idle,
            Some(running) if running.outcome.is_some() => Moment::WorkDoneNotNoted,
            Some(_) => Moment::WorkNotDone,
        };
        self.world.crash(site);
        moment
    }

    /// Whether a command has done its work at that site and the agent has not noted it yet.
    pub(super) fn is_between_work_and_note(&self, site: usize) -> bool {
        self.world.sites[site].running.values().any(|running| running.outcome.is_some())
    }

    pub(super) fn is_up(&self, site: usize) -> bool {
        self.world.sites[site].engine.is_some()
    }
}
