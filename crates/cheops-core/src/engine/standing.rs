//! How a resource stands, at each of its sites, as far as this one knows.
//!
//! A resource is what its worst site is, at whichever site one asks. What a site said of itself travels
//! as replies do, so sites that know the same say the same; only who is not heard at present may be
//! another one at each.

use std::cmp::Reverse;

use super::Engine;
use super::context::Turn;
use super::links::Links;
use super::replies::verdict;
use super::resource::Resource;
use crate::model::{
    Author, EntryBody, EntryId, Extension, OperationId, Reply, ResourceId, SiteId, StandingReport,
    Status,
};
use crate::plan::Health;

/// How a resource stands at one site, as another one (or that one itself) can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteStanding {
    /// Which site.
    pub site: SiteId,
    /// How it stands there.
    pub standing: Standing,
    /// Since when, in milliseconds since the Unix epoch by the clock of who said so. Of one that is not
    /// known: when it was last heard, if it ever was since the start.
    pub since_ms: Option<u64>,
    /// Whether that site is heard at present: if not, this is the last that was heard.
    pub is_connected: bool,
    /// Whether the operation that failed there can be run again there, as far as this one knows.
    pub can_retry: bool,
}

/// The best first: of two sites, a resource is what the later of these says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It ran all that is known, and all is well.
    InSync,
    /// It knows of an operation and has not said what became of it.
    Running {
        /// The oldest such operation.
        operation: OperationId,
    },
    /// It does not know of everything yet, or waits for something before it goes on.
    Waiting {
        /// The oldest operation that it has not run; none where it lacks only what others said.
        operation: Option<OperationId>,
        /// For what, as far as that is known here.
        what: Option<String>,
    },
    /// It is not heard, and said nothing of trouble when it was.
    Unknown,
    /// An operation failed there, and nothing later has set it right.
    Failed {
        /// The first of them.
        operation: OperationId,
    },
    /// Nothing can tell whether an operation happened there.
    InDoubt {
        /// The first of them.
        operation: OperationId,
    },
    /// The application there does not follow the list, and that site cannot repair it.
    Diverged {
        /// Why, in its own words.
        why: String,
        /// An operation that failed there and that nothing later has set right, where that may be why
        /// its state is another one.
        failed: Option<OperationId>,
    },
}

impl Standing {
    fn badness(&self) -> u8 {
        match self {
            Self::InSync => 0,
            Self::Running { .. } => 1,
            Self::Waiting { .. } => 2,
            Self::Unknown => 3,
            Self::Failed { .. } => 4,
            Self::InDoubt { .. } => 5,
            Self::Diverged { .. } => 6,
        }
    }

    /// The operation that failed there, if it is about one.
    fn failed(&self) -> Option<&OperationId> {
        match self {
            Self::Failed { operation } => Some(operation),
            Self::Diverged { failed, .. } => failed.as_ref(),
            _ => None,
        }
    }

    /// Whether somebody has to do something about it.
    pub fn needs_a_person(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::InDoubt { .. } | Self::Diverged { .. })
    }
}

/// What a site last said of its own application.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) entry: EntryId,
    pub(super) report: StandingReport,
    pub(super) since_ms: u64,
}

impl Engine {
    /// How a resource stands at each of its sites.
    pub fn standings(&self, id: &ResourceId) -> Option<Vec<SiteStanding>> {
        let resource = self.resources.get(id)?;
        let sites = resource.declared.sites.iter();
        let links = &self.context.links;
        Some(sites.map(|site| resource.standing_at(site, self.me(), links)).collect())
    }
}

impl Resource {
    /// The standing of the site that is worst off.
    pub(super) fn worst_standing(&self, me: &Author, links: &Links) -> Option<SiteStanding> {
        let all = self.declared.sites.iter().map(|site| self.standing_at(site, me, links));
        // Of sites that are equally bad the first by name, so that all say the same one.
        all.max_by_key(|it| (it.standing.badness(), Reverse(it.site.clone())))
    }

    /// Whether each site is known to have run everything, with nothing amiss anywhere.
    pub(super) fn is_in_sync_everywhere(&self, me: &Author) -> bool {
        let sites = &self.declared.sites;
        self.runs.health == Health::InStep
            && !self.programs.are_asked()
            && self.is_done_everywhere()
            && self.has_its_state_everywhere(me)
            && sites.iter().all(|site| self.trouble_at(site, me).is_none())
    }

    fn standing_at(&self, site: &SiteId, me: &Author, links: &Links) -> SiteStanding {
        let link = links.get(site);
        let is_connected = *site == me.site || link.is_some_and(|link| link.up);
        let told = |standing: Standing, since_ms| SiteStanding {
            can_retry: standing.failed().is_some_and(|it| self.may_retry(it, site, me)),
            site: site.clone(),
            standing,
            since_ms,
            is_connected,
        };
        if let Some((standing, since_ms)) = self.trouble_at(site, me) {
            return told(standing, Some(since_ms));
        }
        if !is_connected {
            return told(Standing::Unknown, link.and_then(|link| link.heard_wall_ms));
        }
        match self.work_at(site, me) {
            Some((standing, since_ms)) => told(standing, since_ms),
            None => told(Standing::InSync, self.last_word_ms(site, me)),
        }
    }

    /// What went wrong at a site, the worst of it, and since when.
    fn trouble_at(&self, site: &SiteId, me: &Author) -> Option<(Standing, u64)> {
        let diverged = self.divergence_at(site, me);
        diverged.or_else(|| {
            let worst = self.worst_word_of(site, me)?;
            let operation = worst.operation.clone();
            let standing = match worst.status {
                Status::InDoubt => Standing::InDoubt { operation },
                _ => Standing::Failed { operation },
            };
            Some((standing, worst.stamp.wall_ms))
        })
    }

    /// The worst that a site said became of an operation there, if anything went wrong.
    fn worst_word_of(&self, site: &SiteId, me: &Author) -> Option<&Reply> {
        let words = self.in_trouble().filter_map(|id| self.word_of(site, id, me));
        words
            .filter(|reply| went_wrong(reply))
            .max_by_key(|reply| (reply.status == Status::InDoubt, Reverse(reply.stamp)))
    }

    fn divergence_at(&self, site: &SiteId, me: &Author) -> Option<(Standing, u64)> {
        // Also of this site: what is not said yet is no different for who asks here.
        if let Some(reported) = self.reported_by(site, me)
            && let StandingReport::Diverged { why } = &reported.report
        {
            return Some((
                Standing::Diverged { why: why.clone(), failed: None },
                reported.since_ms,
            ));
        }
        let disagrees = self.disagreement_at(site, me);
        let (why, since_ms) = disagrees.or_else(|| self.agreement(me).trouble_of(site))?;
        let worst = self.worst_word_of(site, me);
        let failed = worst.filter(|reply| reply.status != Status::InDoubt);
        let failed = failed.map(|reply| reply.operation.clone());
        Some((Standing::Diverged { why, failed }, since_ms))
    }

    /// What a site has yet to do, and since when.
    fn work_at(&self, site: &SiteId, me: &Author) -> Option<(Standing, Option<u64>)> {
        let knows = match *site == me.site {
            true => &self.knows,
            false => &self.peers.get(site)?.knows,
        };
        if *site == me.site
            && let Some(what) = self.programs.wait_for()
        {
            let operation = self.unanswered_at(site).next().cloned();
            return Some((Standing::Waiting { operation, what: Some(what) }, None));
        }
        let open = self.unanswered_at(site).next();
        let since_ms =
            open.and_then(|id| self.operation(id)).map(|operation| operation.stamp.wall_ms);
        let standing = match open {
            Some(operation) if *site == me.site => match self.runs.waits_for() {
                None => Standing::Running { operation: operation.clone() },
                what => Standing::Waiting { operation: Some(operation.clone()), what },
            },
            Some(operation) if knows.includes(&operation.0) => {
                Standing::Running { operation: operation.clone() }
            }
            Some(operation) => Standing::Waiting { operation: Some(operation.clone()), what: None },
            None if let Some(what) = self.awaits_its_state(site, me) => {
                Standing::Waiting { operation: None, what: Some(what) }
            }
            None if knows.covers(&self.news) => return None,
            None => Standing::Waiting { operation: None, what: None },
        };
        Some((standing, since_ms))
    }

    /// Why a site that began with nothing but a state does not hold it yet, as far as is known here.
    fn awaits_its_state(&self, site: &SiteId, me: &Author) -> Option<String> {
        if *site == me.site {
            let state = self.state_to_write()?;
            let what = || format!("the state {} is to be written first", state.state);
            return Some(self.runs.waits_for().unwrap_or_else(what));
        }
        let incarnation = self.peers.get(site)?.incarnation?;
        let author = Author { site: site.clone(), incarnation };
        // It says what it read, once it has written it.
        let is_silent = self.knows.last_of(&author) == 0;
        let what =
            || "it has not said yet that it wrote the state that all sites verified".to_owned();
        self.resolution.state().filter(|_| is_silent).map(|_| what())
    }

    /// Whether each site holds the state that stands for what was forgotten.
    fn has_its_state_everywhere(&self, me: &Author) -> bool {
        self.declared.sites.iter().all(|site| self.awaits_its_state(site, me).is_none())
    }

    /// Operations that went wrong at some site and ask for somebody: those that count, and those that
    /// failed everywhere, unless a later one that replaced them went well.
    pub(super) fn in_trouble(&self) -> impl Iterator<Item = &OperationId> {
        // Its user was told that nothing was made, and there is nothing to repair.
        let was_never_made = self.resolution.last().is_none() && self.declared.id_map.is_some();
        self.troubled.iter().filter(move |id| {
            let operations = self.resolution.operations();
            let is_void = || operations.is_void(id) && operations.undone_by(id).is_none();
            let matters = self.resolution.counts(id)
                || is_void() && !was_never_made && !self.set_right.includes(&id.0);
            matters && !self.dismissed.contains(id)
        })
    }

    /// What that site last said of its application, in the incarnation it is in now.
    fn reported_by(&self, site: &SiteId, me: &Author) -> Option<&Reported> {
        let incarnation = match *site == me.site {
            true => Some(me.incarnation),
            false => self.peers.get(site).and_then(|peer| peer.incarnation),
        };
        let is_it = |author: &Author| {
            author.site == *site && incarnation.is_none_or(|it| author.incarnation == it)
        };
        let of_site = self.reports.iter().filter(|(author, _)| is_it(author));
        of_site.map(|(_, reported)| reported).max_by_key(|reported| reported.since_ms)
    }

    /// When a site last said what became of an operation that counts.
    fn last_word_ms(&self, site: &SiteId, me: &Author) -> Option<u64> {
        let last = self.resolution.last()?;
        self.word_of(site, &last.id, me).map(|reply| reply.stamp.wall_ms)
    }

    /// Tells the others how this site stands to the list, where they would think otherwise.
    pub(super) fn report_standing(&mut self, turn: &mut Turn<'_>) {
        if !self.runs.is_idle() && self.runs.awaits_operator.is_none() {
            return; // What is left to run may yet set it right.
        }
        let report = match &self.runs.health {
            Health::InStep => StandingReport::InStep,
            Health::Diverged { why } => StandingReport::diverged(why.to_string()),
            // It may turn out to be either.
            Health::Undecided { .. } => return,
        };
        let me = &turn.context.settings.me;
        // What is pruned is not told to who comes later, nor remembered after a restart.
        let is_forgotten = |entry: &EntryId| {
            self.base.includes(entry) || self.peers.values().any(|it| it.pruned.includes(entry))
        };
        let is_known = match self.reports.get(me) {
            Some(said) if said.report != report => false,
            Some(said) => report == StandingReport::InStep || !is_forgotten(&said.entry),
            None => report == StandingReport::InStep,
        };
        if is_known {
            return;
        }
        // Without a word of ours on anything, there is nothing of ours that could be wrong.
        let Some(latest) = self.latest_own_reply(me).cloned() else { return };
        let id = turn.context.next_entry();
        let stamp = turn.context.clock.tick(turn.now.wall_ms);
        let reply = Reply { id, stamp, ..latest };
        self.write(EntryBody::Reply(reply), vec![Extension::standing(&report)], turn);
    }

    fn latest_own_reply(&self, me: &Author) -> Option<&Reply> {
        let own = self.replies.values().filter_map(|replies| replies.by(me));
        own.max_by_key(|reply| reply.stamp)
    }
}

/// Whether a reply tells of something that somebody should look at.
pub(super) fn went_wrong(reply: &Reply) -> bool {
    !matches!(reply.status, Status::Ok | Status::Superseded { .. })
}

/// Whether a reply says that the operation took effect.
pub(super) fn went_well(reply: &Reply) -> bool {
    verdict(&reply.status) == Some(true)
}
