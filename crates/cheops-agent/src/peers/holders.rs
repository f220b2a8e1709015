//! Two agents with one identity. Each run of an agent has a number of its own, so a run that is
//! heard again after another one was is proof that both are there at once.

use std::net::SocketAddr;

/// So many runs of one site are remembered: who restarts more often between two calls has other
/// troubles.
const MOST: usize = 16;

/// The runs of one site's agent that were heard, the last one last.
#[derive(Debug, Default)]
pub(super) struct Runs {
    heard: Vec<(u64, SocketAddr)>,
    told: bool,
}

impl Runs {
    /// A run is heard from that address. Says where both are if there are two, once.
    pub(super) fn heard(&mut self, run: u64, from: SocketAddr) -> Option<(SocketAddr, SocketAddr)> {
        let before = self.heard.iter().position(|(heard, _)| *heard == run);
        let last = self.heard.last().copied();
        if let Some(at) = before {
            self.heard.remove(at);
        }
        if self.heard.len() == MOST {
            self.heard.remove(0);
        }
        self.heard.push((run, from));
        let (other, there) = last?;
        let is_back = before.is_some() && other != run;
        (is_back && !std::mem::replace(&mut self.told, true)).then_some((from, there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_heard_again_after_another_shows_two_agents_and_a_restart_does_not() {
        let at = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let mut runs = Runs::default();
        assert_eq!(runs.heard(1, at(1)), None);
        assert_eq!(runs.heard(1, at(1)), None, "the same connects again");
        assert_eq!(runs.heard(2, at(1)), None, "it was restarted");
        assert_eq!(runs.heard(1, at(2)), Some((at(2), at(1))), "the one before is still there");
        assert_eq!(runs.heard(2, at(1)), None, "it is told once");
    }

    #[test]
    fn however_often_an_agent_restarts_little_is_remembered() {
        let mut runs = Runs::default();
        for run in 0..1_000 {
            assert_eq!(runs.heard(run, ([10, 0, 0, 1], 1).into()), None);
        }
        assert!(runs.heard.len() <= MOST);
    }
}
