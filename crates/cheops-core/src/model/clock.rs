//! The hybrid logical clock: close to real time where clocks agree, never against causality where
//! they do not.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment of a hybrid clock. Ordered by time, then by the counter.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp {
    /// Milliseconds since the Unix epoch, or later if another site's clock was ahead.
    pub wall_ms: u64,
    /// Tells apart what happened in the same millisecond.
    pub counter: u64,
}

/// The latest time that anybody may claim: in the year 10889. It fits six bytes.
const LAST_CLAIM_MS: u64 = (1 << 48) - 1;
/// The greatest counter that anybody may claim.
const LAST_CLAIM_COUNTER: u64 = u32::MAX as u64;
/// No honest clock shows more, in the year 2109: who claims it moves no other site's clock.
const HORIZON_MS: u64 = 1 << 42;

impl Stamp {
    /// Whether a site may claim it. It needs no clock to tell, so that all sites tell the same.
    pub fn is_claimable(self) -> bool {
        self.wall_ms <= LAST_CLAIM_MS && self.counter <= LAST_CLAIM_COUNTER
    }

    /// Whether anything can have this place in the order: it is a claim, or so much after one that no
    /// history is as long.
    pub fn is_place(self) -> bool {
        self.wall_ms <= LAST_CLAIM_MS && self.counter < u64::MAX / 2
    }

    /// The place in the order of what claims this stamp and has that past: the claim, or just after
    /// the past where the claim is not. A claim is bounded and a place is not, so there is room
    /// after whatever anybody claims.
    #[must_use]
    pub fn placed_after(self, past: Option<Self>) -> Self {
        match past {
            Some(past) if self <= past => Self { counter: past.counter.saturating_add(1), ..past },
            _ => self,
        }
    }

    /// The next one that can be claimed; the last of all follows itself.
    fn next(self) -> Self {
        if self.counter < LAST_CLAIM_COUNTER {
            Self { counter: self.counter + 1, ..self }
        } else if self.wall_ms < LAST_CLAIM_MS {
            Self { wall_ms: self.wall_ms + 1, counter: 0 }
        } else {
            self
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.wall_ms, self.counter)
    }
}

/// One site's hybrid clock. It never reads the time: the caller hands it in.
#[derive(Debug, Clone, Default)]
pub struct HybridClock {
    last: Stamp,
}

impl HybridClock {
    /// A new stamp, later than every stamp this clock gave out or observed.
    pub fn tick(&mut self, wall_ms: u64) -> Stamp {
        let by_wall = Stamp { wall_ms: wall_ms.min(LAST_CLAIM_MS), counter: 0 };
        self.last = by_wall.max(self.last.next());
        self.last
    }

    /// Takes notice of a stamp from elsewhere, so that later ticks come after it; but for one that
    /// no clock can show.
    pub fn observe(&mut self, stamp: Stamp) {
        if stamp.wall_ms < HORIZON_MS {
            let counter = stamp.counter.min(LAST_CLAIM_COUNTER);
            self.last = self.last.max(Stamp { counter, ..stamp });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_even_when_the_wall_clock_stands_still_or_goes_back() {
        let mut clock = HybridClock::default();
        let stamps = [5, 5, 3, 9, 0].map(|wall| clock.tick(wall));
        assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
    }

    #[test]
    fn a_stamp_comes_after_everything_observed_whatever_the_skew() {
        let a_year = 365 * 24 * 3600 * 1000;
        let mut ahead = HybridClock::default();
        let mut behind = HybridClock::default();
        let first = ahead.tick(a_year);
        behind.observe(first);
        assert!(behind.tick(1) > first);
    }

    #[test]
    fn a_full_counter_moves_on_to_the_next_millisecond() {
        let mut clock = HybridClock::default();
        clock.observe(Stamp { wall_ms: 7, counter: u64::from(u32::MAX) });
        assert_eq!(clock.tick(0), Stamp { wall_ms: 8, counter: 0 });
    }

    #[test]
    fn whatever_anybody_claims_there_is_room_after_it() {
        let last = Stamp { wall_ms: LAST_CLAIM_MS, counter: LAST_CLAIM_COUNTER };
        assert!(last.is_claimable());
        assert!(!Stamp { wall_ms: LAST_CLAIM_MS + 1, counter: 0 }.is_claimable());
        assert!(!Stamp { wall_ms: 0, counter: LAST_CLAIM_COUNTER + 1 }.is_claimable());
        let mut clock = HybridClock::default();
        clock.observe(last);
        let mut place = last;
        for _ in 0..3 {
            let claim = clock.tick(1_760_000_000_000);
            assert!(claim.is_claimable() && claim < last, "no site's clock is carried away");
            let next = claim.placed_after(Some(place));
            assert!(next > place);
            place = next;
        }
    }

    #[test]
    fn a_clock_at_the_end_of_time_still_makes_claims_that_all_accept() {
        let mut clock = HybridClock::default();
        for _ in 0..3 {
            assert!(clock.tick(u64::MAX).is_claimable());
        }
    }
}
