//! Ids of requests that say themselves under which scope they were given: nothing has to be kept
//! for each of them, however many there are.
//!
//! An id is a UUID of version 4, as there are services that take no other. Of its 122 bits, 42 are a
//! keyed check of the rest, and the rest is the stamp of the scope and a number, both under a mask
//! that follows from the check and the key. So it looks like any other: nobody else can read it,
//! tell the next one, or make one up; and whoever has the key knows without any other memory that
//! it was given here, also in an earlier life of the agent.

use std::sync::atomic::{AtomicU64, Ordering};

/// A name under which a service may speak of a request: an id of 128 bits, or what stands for one.
pub(super) type Name = u128;

/// What stands for a scope in ids: 44 bits.
pub(super) type ScopeStamp = u64;

const CHECK_BITS: u32 = 42;
const STAMP_BITS: u32 = 44;
const NUMBER_BITS: u32 = 36;
/// What the check is of.
const REST_BITS: u32 = STAMP_BITS + NUMBER_BITS;
/// The bits that come after the variant.
const AFTER_VARIANT: u32 = 62;
/// The bits between the version and the variant.
const AFTER_VERSION: u32 = 12;
const VERSION: u128 = 4;
const VARIANT: u128 = 0b10;

/// What a hash by the key is for.
const OF_CHECK: u8 = 0;
const OF_MASK: u8 = 1;
const OF_STAMP: u8 = 2;

/// What ids are made with. Who has it can make them.
pub(super) type IdKey = [u8; 32];

/// Gives ids, and reads those that it gave.
#[derive(Debug)]
pub(super) struct Ids {
    key: IdKey,
    next: AtomicU64,
}

impl Ids {
    pub(super) fn new(key: IdKey) -> Self {
        // Begun anywhere, so that two lives hardly ever give the same.
        let first = uuid::Uuid::new_v4().as_u128() as u64;
        Self { key, next: AtomicU64::new(first) }
    }

    /// The stamp of a scope, the same in every life.
    pub(super) fn stamp(&self, scope: &str) -> ScopeStamp {
        let hash = blake3::Hasher::new_keyed(&self.key)
            .update(&[OF_STAMP])
            .update(scope.as_bytes())
            .finalize();
        lowest(STAMP_BITS, first_of(&hash)) as ScopeStamp
    }

    /// The stamp that is used if another scope has this one.
    pub(super) fn next_stamp(stamp: ScopeStamp) -> ScopeStamp {
        lowest(STAMP_BITS, u128::from(stamp) + 1) as ScopeStamp
    }

    /// An id that nobody has.
    pub(super) fn draw(&self, stamp: ScopeStamp) -> Name {
        let number = lowest(NUMBER_BITS, self.next.fetch_add(1, Ordering::Relaxed).into());
        let rest = u128::from(stamp) << NUMBER_BITS | number;
        let check = self.check(rest);
        let bits = check << REST_BITS | (rest ^ self.mask(check));
        let front = bits >> AFTER_VARIANT;
        let high =
            front >> AFTER_VERSION << 16 | VERSION << AFTER_VERSION | lowest(AFTER_VERSION, front);
        high << 64 | VARIANT << AFTER_VARIANT | lowest(AFTER_VARIANT, bits)
    }

    /// The stamp that a name says; `None` if it was not given with this key.
    pub(super) fn read(&self, name: Name) -> Option<ScopeStamp> {
        let (high, low) = (name >> 64, lowest(64, name));
        if lowest(4, high >> AFTER_VERSION) != VERSION || low >> AFTER_VARIANT != VARIANT {
            return None;
        }
        let front = high >> 16 << AFTER_VERSION | lowest(AFTER_VERSION, high);
        let bits = front << AFTER_VARIANT | lowest(AFTER_VARIANT, low);
        let check = bits >> REST_BITS;
        let rest = lowest(REST_BITS, bits) ^ self.mask(check);
        (self.check(rest) == check).then_some((rest >> NUMBER_BITS) as ScopeStamp)
    }

    fn check(&self, rest: u128) -> u128 {
        lowest(CHECK_BITS, self.hash(OF_CHECK, rest))
    }

    fn mask(&self, check: u128) -> u128 {
        lowest(REST_BITS, self.hash(OF_MASK, check))
    }

    fn hash(&self, of: u8, what: u128) -> u128 {
        let mut input = [of; 17];
        input[1..].copy_from_slice(&what.to_le_bytes());
        first_of(&blake3::keyed_hash(&self.key, &input))
    }
}

fn first_of(hash: &blake3::Hash) -> u128 {
    let mut first = [0; 16];
    first.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_le_bytes(first)
}

const fn lowest(bits: u32, of: u128) -> u128 {
    of & (u128::MAX >> (u128::BITS - bits))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const KEY: IdKey = [7; 32];

    #[test]
    fn no_id_is_given_twice_not_even_at_one_time_by_several_threads() {
        let ids = Ids::new(KEY);
        let draw_some = || (0..1_000).map(|_| ids.draw(7)).collect::<Vec<_>>();
        let drawn: HashSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw_some)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(drawn.len(), 4_000);
    }

    #[test]
    fn what_is_given_with_one_key_cannot_be_read_with_another() {
        let (mine, later, others) = (Ids::new(KEY), Ids::new(KEY), Ids::new([8; 32]));
        let id = mine.draw(mine.stamp("{image: lyon}"));
        assert_eq!(mine.read(id), Some(later.stamp("{image: lyon}")));
        assert_eq!(later.read(id), mine.read(id), "in a later life as well");
        assert_eq!(others.read(id), None);
    }

    #[test]
    fn another_is_not_made_by_changing_a_bit_of_one_nor_found_by_chance() {
        let ids = Ids::new(KEY);
        let id = ids.draw(7);
        for bit in 0..Name::BITS {
            assert_eq!(ids.read(id ^ 1 << bit), None, "bit {bit}");
        }
        for _ in 0..10_000 {
            assert_eq!(ids.read(uuid::Uuid::new_v4().as_u128()), None);
        }
    }

    #[test]
    fn ids_of_one_stamp_have_no_part_in_common() {
        let ids = Ids::new(KEY);
        let drawn: Vec<_> = (0..1_000).map(|_| ids.draw(7)).collect();
        for part in 0..8 {
            let different: HashSet<_> = drawn.iter().map(|id| (id >> (part * 16)) as u16).collect();
            // The part with the version has 4,096 values.
            assert!(different.len() > 800, "{} at {part}", different.len());
        }
    }

    proptest! {
        #[test]
        fn an_id_says_its_stamp_and_is_a_uuid_as_services_take_them(
            stamp in 0..1_u64 << STAMP_BITS,
        ) {
            let ids = Ids::new(KEY);
            let id = ids.draw(stamp);
            prop_assert_eq!(ids.read(id), Some(stamp));
            let uuid = uuid::Uuid::from_u128(id);
            prop_assert_eq!(uuid.get_version_num(), 4);
            prop_assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
        }
    }
}
