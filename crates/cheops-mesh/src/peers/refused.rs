//! Calls that were refused. Whoever is refused calls again twice a second, for days if nobody looks:
//! the operator is warned when something new is wrong, not each time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cheops_core::causes;

use super::frame::LinkError;
use super::lock;

/// How many callers are remembered: anyone can call from anywhere.
const MOST: usize = 256;
/// After so long the same is said again.
const STILL: Duration = Duration::from_secs(3_600);

/// What was last said of whom, and when.
#[derive(Debug, Default)]
pub(super) struct RefusedCallers(Mutex<BTreeMap<SocketAddr, (String, Instant)>>, AtomicBool);

impl RefusedCallers {
    /// Whether this is the first time that somebody shows this site's own identity.
    pub(super) fn is_first_of_ourselves(&self) -> bool {
        !self.1.swap(true, Ordering::Relaxed)
    }

    pub(super) fn note(&self, from: SocketAddr, error: &LinkError) {
        // Two sites that call each other at once need one link: whose call is over hangs up.
        if error.is_hang_up() {
            tracing::debug!(%from, "a caller hung up");
            return;
        }
        let error = causes(error);
        if self.is_news(from, error.clone(), Instant::now()) {
            tracing::warn!(%from, error, "a call was refused");
        } else {
            tracing::debug!(%from, error, "a call was refused again");
        }
    }

    fn is_news(&self, from: SocketAddr, why: String, now: Instant) -> bool {
        let mut said = lock(&self.0);
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
        assert!(lock(&refused.0).len() <= MOST);
    }
}
