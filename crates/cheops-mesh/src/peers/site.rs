//! One other site, as the links know it: where it is, and who needs a link to it.
//!
//! There is one while something is shared with it, while the directory wants it for a neighbour, and for a
//! while after a request needed it, or it said something itself. Otherwise it is closed, and nobody calls.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cheops_core::model::KeyId;
use tokio::sync::{Notify, mpsc};

use super::conduct::Conduct;
use super::frame::LinkError;
use super::holders::AgentRuns;
use super::link::{Candidate, PeerLink};
use super::lock;

/// So long after it was needed a link is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// So long somebody waits for one.
const NOW: Duration = Duration::from_secs(2);
/// So long after a link was lost a request does not wait for another.
const LOST_OF_LATE: Duration = Duration::from_secs(15);

/// How a link is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkPace {
    /// There need be none.
    Unneeded,
    /// As one of those that hold the mesh together.
    Calm,
    /// It is back within a second of the network.
    Brisk,
}

/// One other site.
pub(super) struct PeerSite {
    /// Where the operator says it is.
    configured: Option<String>,
    /// Where it says that it is.
    said: Mutex<Vec<String>>,
    pub(super) link: Mutex<Option<Arc<PeerLink>>>,
    pub(super) problem: Mutex<Option<String>>,
    /// Keys of it that were shown to sign lies.
    pub(super) set_apart: Mutex<BTreeSet<KeyId>>,
    /// The runs of its agent that were heard, the last one last.
    pub(super) runs: Mutex<AgentRuns>,
    /// What it sends, on whichever link.
    pub(super) conduct: Arc<Conduct>,
    /// Where it is known to be: where it is looked for, and where the link is.
    pub(super) known_at: Mutex<BTreeSet<IpAddr>>,
    pub(super) accepted: mpsc::Sender<Candidate>,
    pub(super) accepted_in: Mutex<Option<mpsc::Receiver<Candidate>>>,
    is_shared: AtomicBool,
    is_neighbour: AtomicBool,
    needed: Mutex<Option<Instant>>,
    needed_there: Mutex<Option<Instant>>,
    lost: Mutex<Option<Instant>>,
    ended: AtomicBool,
    /// Something of this has changed that its supervisor must know.
    pub(super) changed: Notify,
    /// There is a link.
    pub(super) linked: Notify,
}

impl PeerSite {
    pub(super) fn new(configured: Option<String>) -> Self {
        let (accepted, accepted_in) = mpsc::channel(4);
        Self {
            configured,
            said: Mutex::default(),
            link: Mutex::default(),
            problem: Mutex::default(),
            set_apart: Mutex::default(),
            runs: Mutex::default(),
            conduct: Arc::default(),
            known_at: Mutex::default(),
            accepted,
            accepted_in: Mutex::new(Some(accepted_in)),
            is_shared: AtomicBool::new(false),
            is_neighbour: AtomicBool::new(false),
            needed: Mutex::default(),
            needed_there: Mutex::default(),
            lost: Mutex::default(),
            ended: AtomicBool::new(false),
            changed: Notify::new(),
            linked: Notify::new(),
        }
    }

    /// Where to look for it, the first first. What the operator says counts, and nothing else then.
    pub(super) fn names(&self) -> Vec<String> {
        match &self.configured {
            Some(configured) => vec![configured.clone()],
            None => lock(&self.said).clone(),
        }
    }

    pub(super) fn is_at(&self, addresses: Vec<String>) {
        let mut said = lock(&self.said);
        if *said != addresses {
            *said = addresses;
            self.changed.notify_one();
        }
    }

    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    pub(super) fn be_neighbour(&self, is: bool) {
        if self.is_neighbour.swap(is, Ordering::Relaxed) != is {
            self.changed.notify_one();
        }
    }

    /// A request needs a link to it.
    pub(super) fn need(&self) {
        let before = lock(&self.needed).replace(Instant::now());
        if before.is_none_or(|before| before.elapsed() > KEPT_FOR) {
            self.changed.notify_one();
        }
    }

    /// The other side gave a sign that it needs the link. That is no need of this one: or each would keep it
    /// for the other.
    pub(super) fn note_needed_there(&self) {
        *lock(&self.needed_there) = Some(Instant::now());
    }

    pub(super) fn is_needed_there(&self) -> bool {
        lock(&self.needed_there).is_some_and(|at| at.elapsed() < KEPT_FOR)
    }

    /// Whether somebody waits for it.
    pub(super) fn is_needed_now(&self) -> bool {
        lock(&self.needed).is_some_and(|at| at.elapsed() < NOW)
    }

    pub(super) fn pace(&self) -> LinkPace {
        let is_needed = lock(&self.needed).is_some_and(|at| at.elapsed() < KEPT_FOR);
        if self.is_shared.load(Ordering::Relaxed) {
            LinkPace::Brisk
        } else if self.is_neighbour.load(Ordering::Relaxed) || is_needed {
            LinkPace::Calm
        } else {
            LinkPace::Unneeded
        }
    }

    /// The link is gone without anybody having wanted that.
    pub(super) fn note_lost(&self) {
        *lock(&self.lost) = Some(Instant::now());
    }

    pub(super) fn was_lost_of_late(&self) -> bool {
        lock(&self.lost).is_some_and(|at| at.elapsed() < LOST_OF_LATE)
    }

    /// Its link is closed, and it is told why.
    pub(super) fn refuse(&self, why: &LinkError) {
        *lock(&self.problem) = Some(why.to_string());
        if let Some(link) = lock(&self.link).take() {
            link.refuse(why);
        }
    }

    /// Nobody looks for it any more.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
