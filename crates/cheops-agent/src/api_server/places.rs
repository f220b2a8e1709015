//! How many connections each may have: nobody takes all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a connection comes from, as far as that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ConnectionOrigin {
    Address(IpAddr),
    /// A user of this machine, by the socket.
    User(u32),
}

/// Who has how many.
#[derive(Debug, Clone)]
pub(super) struct ConnectionSlots {
    most: usize,
    taken: Arc<Mutex<HashMap<ConnectionOrigin, usize>>>,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    origin: ConnectionOrigin,
    places: ConnectionSlots,
}

impl ConnectionSlots {
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// One more for that origin, unless it has as many as it may.
    pub(super) fn take(&self, origin: ConnectionOrigin) -> Option<ConnectionSlot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(origin).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot { origin, places: self.clone() })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.origin) {
            *count -= 1;
            // Nothing is kept of who is gone.
            if *count == 0 {
                taken.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_as_many_as_it_may_gets_no_more_and_others_do() {
        let places = ConnectionSlots::new(2);
        let [one, other] =
            [ConnectionOrigin::User(1), ConnectionOrigin::Address([127, 0, 0, 1].into())];
        let first = places.take(one).unwrap();
        let _second = places.take(one).unwrap();
        assert!(places.take(one).is_none());
        let _others = places.take(other).unwrap();
        drop(first);
        assert!(places.take(one).is_some());
    }

    #[test]
    fn nothing_is_kept_of_who_is_gone() {
        let places = ConnectionSlots::new(2);
        drop(places.take(ConnectionOrigin::User(7)));
        assert!(places.taken.lock().unwrap().is_empty());
    }
}
