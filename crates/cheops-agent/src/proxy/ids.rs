//! Ids of requests that say themselves under which scope they were drawn, and when: nothing has to
//! be kept for each of them, however many there are.
//!
//! An id is a UUID of version 4, as there are services that take no other. Of its bits, 60 are the
//! stamp of the scope and 62 are the moment at which it was drawn, both under a key that is drawn
//! when the agent starts. So it looks like any other: nobody else can read it, tell the next one,
//! or make one up.
//!
//! This takes the standard library's keyed hash for a random function. It is SipHash, which was made
//! to be one; and whoever could tell it from one would only send calls to a site where they may be
//! sent anyway, by spelling the scope out.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A name under which a service may speak of a request: an id of 128 bits, or what stands for one.
pub(super) type Name = u128;

/// What stands for a scope in ids: 60 bits.
pub(super) type Stamp = u64;

const STAMP_BITS: u32 = 60;
/// A moment is in nanoseconds: so many bits last for 146 years.
const MOMENT_BITS: u32 = 62;
/// The bits of the stamp that come after the version.
const AFTER_VERSION: u32 = 12;
const VERSION: u64 = 4;
const VARIANT: u64 = 0b10;

/// No id is drawn so far ahead of the clock: a moment that is was never drawn.
const AHEAD: Duration = Duration::from_secs(1);

/// Draws ids, and reads those that it drew.
#[derive(Debug)]
pub(super) struct Ids {
    key: RandomState,
    /// All moments are since then.
    start: Instant,
    /// The moment of the last id, so that no two have the same.
    last: AtomicU64,
}

/// What an id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) stamp: Stamp,
    /// How long ago it was drawn.
    pub(super) age: Duration,
}

impl Ids {
    pub(super) fn new(start: Instant) -> Self {
        Self { key: RandomState::new(), start, last: AtomicU64::new(0) }
    }

    /// A new stamp, which is no other's as far as anyone can tell.
    pub(super) fn stamp() -> Stamp {
        lowest(STAMP_BITS, uuid::Uuid::new_v4().as_u128() as u64)
    }

    /// An id that nobody has.
    pub(super) fn draw(&self, stamp: Stamp, now: Instant) -> Name {
        let moment = self.moment(now);
        let front = stamp ^ self.stamp_mask(moment);
        let back = moment ^ self.moment_mask(front);
        let high =
            front >> AFTER_VERSION << 16 | VERSION << AFTER_VERSION | lowest(AFTER_VERSION, front);
        u128::from(high) << 64 | u128::from(VARIANT << MOMENT_BITS | back)
    }

    /// What a name says. If it was not drawn here, that is nothing, or a stamp that is nobody's.
    pub(super) fn read(&self, name: Name, now: Instant) -> Option<Said> {
        let (high, low) = ((name >> 64) as u64, name as u64);
        if lowest(4, high >> AFTER_VERSION) != VERSION || low >> MOMENT_BITS != VARIANT {
            return None;
        }
        let front = high >> 16 << AFTER_VERSION | lowest(AFTER_VERSION, high);
        let moment = lowest(MOMENT_BITS, low) ^ self.moment_mask(front);
        let (drawn, now) = (Duration::from_nanos(moment), self.since_start(now));
        let stamp = front ^ self.stamp_mask(moment);
        (drawn < now + AHEAD).then(|| Said { stamp, age: now.saturating_sub(drawn) })
    }

    /// Now, or just after, so that nothing was drawn then.
    fn moment(&self, now: Instant) -> u64 {
        let now = lowest(MOMENT_BITS, self.since_start(now).as_nanos() as u64);
        let next = |last: u64| now.max(last + 1);
        let last =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    fn stamp_mask(&self, moment: u64) -> u64 {
        lowest(STAMP_BITS, self.key.hash_one((0_u8, moment)))
    }

    fn moment_mask(&self, front: u64) -> u64 {
        lowest(MOMENT_BITS, self.key.hash_one((1_u8, front)))
    }
}

const fn lowest(bits: u32, of: u64) -> u64 {
    of & (u64::MAX >> (u64::BITS - bits))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn ids() -> Ids {
        Ids::new(Instant::now())
    }

    #[test]
    fn no_moment_is_drawn_twice_not_even_at_one_time_by_several_threads() {
        let ids = ids();
        let draw_some = || (0..1_000).map(|_| ids.moment(ids.start)).collect::<Vec<_>>();
        let drawn: HashSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw_some)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(drawn.len(), 4_000);
    }

    #[test]
    fn what_one_draws_another_cannot_read() {
        let (mine, others) = (ids(), ids());
        let now = Instant::now();
        let id = mine.draw(7, now);
        assert_eq!(mine.read(id, now).unwrap().stamp, 7);
        assert!(others.read(id, now).is_none_or(|said| said.stamp != 7));
    }

    #[test]
    fn another_is_not_made_by_changing_a_bit_of_one() {
        let (ids, now) = (ids(), Instant::now());
        let id = ids.draw(7, now);
        for bit in 0..Name::BITS {
            let made_up = ids.read(id ^ 1 << bit, now);
            assert!(made_up.is_none_or(|said| said.stamp != 7), "bit {bit}");
        }
    }

    #[test]
    fn ids_of_one_stamp_have_no_part_in_common() {
        let (ids, now) = (ids(), Instant::now());
        let drawn: Vec<_> = (0..1_000).map(|_| ids.draw(7, now)).collect();
        for part in 0..8 {
            let different: HashSet<_> = drawn.iter().map(|id| (id >> (part * 16)) as u16).collect();
            // The part with the version has 4,096 values.
            assert!(different.len() > 800, "{} at {part}", different.len());
        }
    }

    #[test]
    fn an_id_that_another_thread_drew_just_ahead_is_new() {
        let ids = ids();
        let ahead = ids.draw(7, ids.start + AHEAD / 2);
        assert_eq!(ids.read(ahead, ids.start), Some(Said { stamp: 7, age: Duration::ZERO }));
        assert_eq!(ids.read(ids.draw(7, ids.start + AHEAD * 2), ids.start), None);
    }

    proptest! {
        #[test]
        fn an_id_says_its_stamp_and_its_age_and_is_a_uuid_as_services_take_them(
            stamp in 0..1_u64 << STAMP_BITS,
            drawn in 1..1_u64 << (MOMENT_BITS - 1),
            age in 0..1_u64 << (MOMENT_BITS - 2),
        ) {
            let ids = ids();
            let (drawn, age) = (ids.start + Duration::from_nanos(drawn), Duration::from_nanos(age));
            let id = ids.draw(stamp, drawn);
            prop_assert_eq!(ids.read(id, drawn + age), Some(Said { stamp, age }));
            let uuid = uuid::Uuid::from_u128(id);
            prop_assert_eq!(uuid.get_version_num(), 4);
            prop_assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
        }
    }
}
