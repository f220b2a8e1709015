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
    pub counter: u32,
}

impl Stamp {
    fn next(self) -> Self {
        match self.counter.checked_add(1) {
            Some(counter) => Self { counter, ..self },
            None => Self { wall_ms: self.wall_ms.saturating_add(1), counter: 0 },
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
        let by_wall = Stamp { wall_ms, counter: 0 };
        self.last = by_wall.max(self.last.next());
        self.last
    }

    /// Takes notice of a stamp from elsewhere, so that later ticks come after it.
    pub fn observe(&mut self, stamp: Stamp) {
        self.last = self.last.max(stamp);
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
        clock.observe(Stamp { wall_ms: 7, counter: u32::MAX });
        assert_eq!(clock.tick(0), Stamp { wall_ms: 8, counter: 0 });
    }
}
