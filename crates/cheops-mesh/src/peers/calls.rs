//! How many sites are called at once, and how often.
//!
//! A handshake costs both sides some milliseconds of computing. Where hundreds of sites start or come
//! back at the same moment, calls that are made again before the first ones could be answered keep
//! each other from ever being answered. So there are only so many calls at once; a call that nobody
//! answers makes room for the next after a while; and that while grows with the time that calls take
//! which are answered. Nobody calls in step: each pause is a little longer or shorter than the last.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::lock;

/// The time between two calls to a site that does not answer, if there is no haste.
const CALL_EVERY: Duration = Duration::from_millis(500);
/// How long the site with the greater name waits for the other one's call.
const WAIT_FOR_CALL: Duration = Duration::from_millis(1_500);
/// How long a call may take.
pub(super) const CALL_LASTS: Duration = Duration::from_secs(4);
/// How many calls are under way at once of which it is not known that nobody is there.
const CALLS_AT_ONCE: usize = 8;
/// How long a call is waited for before the next one is made, if there is no haste.
const ROOM_FOR: Duration = Duration::from_millis(400);

/// The calls of this site to all others.
pub(super) struct Calls {
    room: Semaphore,
    pace: Mutex<HandshakePace>,
    random: RandomState,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            room: Semaphore::new(CALLS_AT_ONCE),
            pace: Mutex::default(),
            random: RandomState::new(),
        }
    }
}

impl Calls {
    /// Waits for room for one more call. It is to be given back when the call has ended, or after
    /// the time that [`Calls::room_for`] says.
    pub(super) async fn room(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.room.acquire().await.ok()
    }

    /// How long a call keeps its room.
    pub(super) fn room_for(&self) -> Duration {
        lock(&self.pace).room_for()
    }

    /// A handshake has succeeded, after this time.
    pub(super) fn succeeded(&self, after: Duration) {
        lock(&self.pace).succeeded(after);
    }

    /// The time until that site is called again; another one for each site and each time.
    pub(super) fn pause(&self, site: &str, times: u64) -> Duration {
        let among = u32::try_from(self.random.hash_one((site, times)) % 1_000).unwrap_or_default();
        lock(&self.pace).pause(among)
    }

    /// How long to wait for the call of a site that should call first.
    pub(super) fn wait_for_theirs(&self) -> Duration {
        lock(&self.pace).wait_for_theirs()
    }
}

/// How long handshakes take at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HandshakePace {
    smoothed: Duration,
}

impl HandshakePace {
    fn succeeded(&mut self, after: Duration) {
        self.smoothed = (self.smoothed * 3 + after.min(CALL_LASTS)) / 4;
    }

    fn room_for(self) -> Duration {
        (self.smoothed * 2).clamp(ROOM_FOR, CALL_LASTS)
    }

    /// Between three and five quarters of what it is on average; `among` is below 1,000.
    fn pause(self, among: u32) -> Duration {
        let on_average = CALL_EVERY.max(self.room_for());
        on_average * 3 / 4 + on_average * among / 2_000
    }

    fn wait_for_theirs(self) -> Duration {
        WAIT_FOR_CALL.max(self.room_for() * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(handshakes: &[u32]) -> HandshakePace {
        let mut pace = HandshakePace::default();
        handshakes.iter().for_each(|ms| pace.succeeded(MS * *ms));
        pace
    }

    #[test]
    fn where_handshakes_are_quick_sites_are_called_twice_a_second() {
        for pace in [after(&[]), after(&[3]), after(&[50; 100])] {
            assert_eq!(pace.room_for(), ROOM_FOR);
            assert_eq!(
                (pace.pause(0), pace.pause(500), pace.pause(999).as_millis()),
                (375 * MS, 500 * MS, 624)
            );
            assert_eq!(pace.wait_for_theirs(), WAIT_FOR_CALL);
        }
    }

    #[test]
    fn where_handshakes_take_long_less_is_begun_and_where_they_are_quick_again_more() {
        let mut pace = after(&[1_500; 20]);
        assert!(pace.room_for() > 2_900 * MS, "{:?}", pace.room_for());
        assert!(pace.pause(500) > 2_900 * MS);
        assert!(pace.wait_for_theirs() > 5_800 * MS);
        (0..10).for_each(|_| pace.succeeded(5 * MS));
        assert_eq!(pace.room_for(), ROOM_FOR);
    }

    #[test]
    fn no_call_keeps_its_room_longer_than_it_may_take() {
        assert_eq!(after(&[3_600_000; 50]).room_for(), CALL_LASTS);
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_calls_and_then_for_as_many_as_have_ended() {
        let calls = Calls::default();
        let mut under_way = Vec::new();
        while under_way.len() < CALLS_AT_ONCE {
            under_way.push(calls.room().await.unwrap());
        }
        assert!(calls.room.try_acquire().is_err());
        under_way.pop();
        assert!(calls.room.try_acquire().is_ok());
    }

    #[test]
    fn two_sites_are_not_called_in_step() {
        let calls = Calls::default();
        let pauses = |site: &str| (0..50).map(|n| calls.pause(site, n)).collect::<Vec<_>>();
        assert_ne!(pauses("lyon"), pauses("nice"));
    }
}
