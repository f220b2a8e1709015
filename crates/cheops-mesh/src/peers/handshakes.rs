//! Who is let in to a handshake, of those who call at the mesh port.
//!
//! Anyone can send a first packet, under any address. A handshake costs memory and signatures, so
//! an address that is none of a peer's has to prove first that it can be answered (QUIC's Retry),
//! and only so many are under way at once, of all, of strangers and of each address. A peer saves
//! the time to prove its address, unless somebody seems to use it: then it is asked to, and so
//! nobody who merely names a peer's address keeps that peer out. Peers call again twice a second:
//! one that finds no room is late by that much.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use super::lock;

/// How many handshakes are under way at once.
const MOST: usize = 64;
/// How many of them with those who call from where no peer is known to be.
const MOST_STRANGERS: usize = 32;
/// How many with one address: several sites may be behind it.
const MOST_WITH_ONE: usize = 16;
/// How many of these though it is not proven that the address is the caller's own.
const MOST_UNPROVEN: usize = 4;

/// What becomes of a caller.
#[derive(Debug)]
pub(super) enum CallerVerdict {
    /// It has to prove that its address is its own.
    Prove,
    /// There is no room.
    Refuse,
    /// It may greet for as long as this is held.
    Enter(HandshakeSlot),
}

/// What is known of where a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) from: IpAddr,
    /// That its address is its own.
    pub(super) is_proven: bool,
    /// That a peer is there.
    pub(super) is_peers: bool,
}

/// The handshakes under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshakes(Arc<Mutex<Vec<Caller>>>);

impl Handshakes {
    /// Judges a caller.
    pub(super) fn judge(&self, caller: Caller) -> CallerVerdict {
        // As it is written where it is configured, also on a port for both kinds of addresses.
        let caller = Caller { from: caller.from.to_canonical(), ..caller };
        if !caller.is_proven && !caller.is_peers {
            return CallerVerdict::Prove;
        }
        let mut under_way = lock(&self.0);
        let mut with_it: BTreeMap<bool, usize> = BTreeMap::new();
        for known in under_way.iter().filter(|known| known.from == caller.from) {
            *with_it.entry(known.is_proven).or_default() += 1;
        }
        let unproven = with_it.get(&false).copied().unwrap_or_default();
        if !caller.is_proven && unproven >= MOST_UNPROVEN {
            return CallerVerdict::Prove;
        }
        let strangers = under_way.iter().filter(|known| !known.is_peers).count();
        let is_full = under_way.len() >= MOST
            || with_it.values().sum::<usize>() >= MOST_WITH_ONE
            || !caller.is_peers && strangers >= MOST_STRANGERS;
        if is_full {
            return CallerVerdict::Refuse;
        }
        under_way.push(caller);
        CallerVerdict::Enter(HandshakeSlot { caller, handshakes: self.clone() })
    }
}

/// Room for one handshake.
#[derive(Debug)]
pub(super) struct HandshakeSlot {
    caller: Caller,
    handshakes: Handshakes,
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut under_way = lock(&self.handshakes.0);
        if let Some(at) = under_way.iter().position(|known| *known == self.caller) {
            under_way.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(n: usize, is_proven: bool, is_peers: bool) -> Caller {
        let from = [10, 0, 0, u8::try_from(n).unwrap()].into();
        Caller { from, is_proven, is_peers }
    }

    /// Those of these calls that are let in, all at once.
    fn entered(
        handshakes: &Handshakes,
        callers: impl IntoIterator<Item = Caller>,
    ) -> Vec<HandshakeSlot> {
        let judged = callers.into_iter().map(|caller| handshakes.judge(caller));
        let places = judged.filter_map(|verdict| match verdict {
            CallerVerdict::Enter(place) => Some(place),
            CallerVerdict::Prove | CallerVerdict::Refuse => None,
        });
        places.collect()
    }

    #[test]
    fn a_stranger_proves_its_address_and_a_peer_need_not() {
        let handshakes = Handshakes::default();
        assert!(matches!(handshakes.judge(caller(1, false, false)), CallerVerdict::Prove));
        assert!(matches!(handshakes.judge(caller(1, true, false)), CallerVerdict::Enter(_)));
        assert!(matches!(handshakes.judge(caller(1, false, true)), CallerVerdict::Enter(_)));
    }

    #[test]
    fn strangers_and_single_addresses_leave_room_for_peers() {
        let handshakes = Handshakes::default();
        let one = entered(&handshakes, vec![caller(1, true, false); 100]);
        assert_eq!(one.len(), MOST_WITH_ONE);
        let mapped = Caller { from: "::ffff:10.0.0.1".parse().unwrap(), ..caller(1, true, true) };
        assert!(matches!(handshakes.judge(mapped), CallerVerdict::Refuse), "the same address");
        let others = entered(&handshakes, (2..200).map(|n| caller(n, true, false)));
        assert_eq!(one.len() + others.len(), MOST_STRANGERS);

        let peers = entered(&handshakes, (2..200).map(|n| caller(n, true, true)));
        assert_eq!(peers.len(), MOST - MOST_STRANGERS);

        drop((one, others, peers));
        assert!(lock(&handshakes.0).is_empty(), "nothing is remembered of who is gone");
    }

    #[test]
    fn who_merely_names_the_address_of_a_peer_does_not_keep_that_peer_out() {
        let handshakes = Handshakes::default();
        let forged = entered(&handshakes, vec![caller(1, false, true); 100]);
        assert_eq!(forged.len(), MOST_UNPROVEN);

        assert!(matches!(handshakes.judge(caller(1, false, true)), CallerVerdict::Prove));
        assert!(matches!(handshakes.judge(caller(1, true, true)), CallerVerdict::Enter(_)));
    }
}
