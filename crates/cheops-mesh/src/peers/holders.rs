//! Two agents with one identity. Each run of an agent has a number of its own, so a run that is
//! heard again after another one was is proof that both are there at once.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// So many runs of one site are remembered: who restarts more often between two calls has other
/// troubles.
const MOST: usize = 16;
/// After so long the same is said again.
const STILL: Duration = Duration::from_secs(3_600);
/// Two that were not seen for so long may be one again.
const SHOWN_FOR: Duration = Duration::from_secs(60);

/// The runs of one site's agent that were heard, the last one last.
#[derive(Debug, Default)]
pub(super) struct AgentRuns {
    heard: Vec<(u64, SocketAddr)>,
    told: Option<Instant>,
    two: Option<(Two, Instant)>,
}

/// Where two agents with one identity are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Two {
    one: SocketAddr,
    other: SocketAddr,
}

impl fmt::Display for Two {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { one, other } = self;
        write!(f, "one agent is at {one}, another at {other}; stop one of them")
    }
}

impl AgentRuns {
    /// Whether another run was heard after that one.
    pub(super) fn is_earlier(&self, run: u64) -> bool {
        let last = self.heard.last().is_some_and(|(last, _)| *last == run);
        !last && self.heard.iter().any(|(heard, _)| *heard == run)
    }

    /// A run is heard from that address. Says where both are if there are two and that is news.
    pub(super) fn heard(&mut self, run: u64, from: SocketAddr) -> Option<Two> {
        let is_back = self.is_earlier(run);
        let last = self.heard.last().copied();
        self.heard.retain(|(heard, _)| *heard != run);
        if self.heard.len() == MOST {
            self.heard.remove(0);
        }
        self.heard.push((run, from));
        let (_, there) = last.filter(|_| is_back)?;
        self.note(Two { one: from, other: there }, Instant::now())
    }

    /// An earlier run is heard from that address, and was not let in: the last one is still there.
    pub(super) fn turned_away(&mut self, from: SocketAddr) -> Option<Two> {
        let (_, there) = *self.heard.last()?;
        self.note(Two { one: from, other: there }, Instant::now())
    }

    /// The two that were seen of late.
    pub(super) fn two(&self, now: Instant) -> Option<Two> {
        let (two, at) = self.two?;
        (now.duration_since(at) < SHOWN_FOR).then_some(two)
    }

    fn note(&mut self, two: Two, now: Instant) -> Option<Two> {
        self.two = Some((two, now));
        if self.told.is_some_and(|at| now.duration_since(at) < STILL) {
            return None;
        }
        self.told = Some(now);
        Some(two)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_heard_again_after_another_shows_two_agents_and_a_restart_does_not() {
        let at = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let mut runs = AgentRuns::default();
        assert_eq!(runs.heard(1, at(1)), None);
        assert_eq!(runs.heard(1, at(1)), None, "the same connects again");
        assert_eq!(runs.heard(2, at(1)), None, "it was restarted");
        assert_eq!(
            runs.heard(1, at(2)),
            Some(Two { one: at(2), other: at(1) }),
            "the one before is still there"
        );
        assert_eq!(runs.heard(2, at(1)), None, "it is told once");
        assert!(!runs.is_earlier(2) && !runs.is_earlier(3) && runs.is_earlier(1));
        assert_eq!(runs.turned_away(at(2)), None, "nor when one is turned away");
        let now = Instant::now();
        assert_eq!(runs.two(now), Some(Two { one: at(2), other: at(1) }));
        assert_eq!(runs.two(now + SHOWN_FOR), None, "one of them may be gone");
    }

    #[test]
    fn two_agents_are_news_again_after_a_long_while() {
        let (mut runs, begin) = (AgentRuns::default(), Instant::now());
        let at = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let two = Two { one: at(1), other: at(2) };
        for (later, expected) in [(0, true), (1, false), (3_599, false), (3_600, true)] {
            let news = runs.note(two, begin + Duration::from_secs(later));
            assert_eq!(news.is_some(), expected, "{later}");
        }
    }

    #[test]
    fn however_often_an_agent_restarts_little_is_remembered() {
        let mut runs = AgentRuns::default();
        for run in 0..1_000 {
            assert_eq!(runs.heard(run, ([10, 0, 0, 1], 1).into()), None);
        }
        assert!(runs.heard.len() <= MOST);
    }
}
