//! Calls that were refused. Whoever is refused calls again twice a second, for days if nobody looks:
//! the operator is warned when something new is wrong, not each time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cheops_core::causes;

use super::conduct::LogRoom;
use super::frame::LinkError;
use super::lock;

/// How many callers are remembered: anyone can call from anywhere.
const MOST: usize = 256;
/// After so long the same is said again.
const STILL: Duration = Duration::from_secs(3_600);

/// So many lines in a while: who calls from another port each time is news each time.
const MOST_LINES: u32 = 256;

/// What was last said of whom, and when.
#[derive(Debug)]
pub(super) struct RefusedCallers {
    said: Mutex<BTreeMap<SocketAddr, (String, Instant)>>,
    ourselves: AtomicBool,
    log: LogRoom,
}

impl Default for RefusedCallers {
    fn default() -> Self {
        let log = LogRoom::of(MOST_LINES);
        Self { said: Mutex::default(), ourselves: AtomicBool::default(), log }
    }
}

impl RefusedCallers {
    /// Whether this is the first time that somebody shows this site's own identity.
    pub(super) fn is_first_of_ourselves(&self) -> bool {
        !self.ourselves.swap(true, Ordering::Relaxed)
    }

    pub(super) fn note(&self, from: SocketAddr, error: &LinkError) {
        // Two sites that call each other at once need one link: whose call is over hangs up.
        if error.is_hang_up() {
            tracing::debug!(%from, "a caller hung up");
            return;
        }
        let error = causes(error);
        let is_news = self.is_news(from, error.clone(), Instant::now());
        if is_news && self.log.take("refused calls") {
            tracing::warn!(%from, error, "a call was refused");
        } else {
            tracing::debug!(%from, error, "a call was refused again");
        }
    }

    fn is_news(&self, from: SocketAddr, why: String, now: Instant) -> bool {
        let mut said = lock(&self.said);
        let before = said.get(&from);
        if before.is_some_and(|(last, at)| *last == why && now.duration_since(*at) < STILL) {
            return false;
        }
        if said.len() >= MOST {
            said.clear();
        }
        said.insert(from, (why, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_is_refused_over_and_over_is_news_once_for_each_reason() {
        let refused = RefusedCallers::default();
        let (begin, port) = (Instant::now(), |port| SocketAddr::from(([10, 0, 0, 1], port)));
        for (from, why, later_s, expected) in [
            (1, "a stranger", 0, true),
            (1, "a stranger", 1, false),
            (2, "a stranger", 1, true),
            (1, "another version", 2, true),
            (1, "another version", 3, false),
            (1, "another version", 3_700, true),
        ] {
            let now = begin + Duration::from_secs(later_s);
            let news = refused.is_news(port(from), why.to_owned(), now);
            assert_eq!(news, expected, "{from} {why} {later_s}");
        }
    }

    #[test]
    fn callers_from_everywhere_take_no_more_than_so_much_memory() {
        let refused = RefusedCallers::default();
        for port in 0..5_000 {
            refused.is_news(([10, 0, 0, 1], port).into(), String::new(), Instant::now());
        }
        assert!(lock(&refused.said).len() <= MOST);
    }
}
