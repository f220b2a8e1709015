//! Room on the disk for bodies that are kept: what is promised to one is not promised to another,
//! and what operations need to come to their end is promised to none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A body of unknown length is promised so much at a time.
const STEP: u64 = 1024 * 1024;

/// What there is for bodies. Cheap to clone.
#[derive(Clone)]
pub struct Reserve(Arc<DiskReserve>);

struct DiskReserve {
    /// How many bytes are free.
    room_left: Box<dyn Fn() -> u64 + Send + Sync>,
    stay_free: u64,
    /// To bodies that are under way, beyond what is written of them.
    promised: AtomicU64,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
#[error(
    "it takes {needed} bytes more, and {left} are free on the disk of the data directory, of which \
     {taken} are promised to others or have to stay so"
)]
pub struct NoRoom {
    needed: u64,
    left: u64,
    taken: u64,
}

/// Room for one body.
pub struct Promise {
    disk: Reserve,
    left: u64,
}

impl Reserve {
    /// On a disk with so much room, of which so much stays free.
    pub fn new(room_left: impl Fn() -> u64 + Send + Sync + 'static, stay_free: u64) -> Self {
        let (room_left, promised) = (Box::new(room_left), AtomicU64::new(0));
        Self(Arc::new(DiskReserve { room_left, stay_free, promised }))
    }

    /// Promises room for a body of that length, or for the beginning of one of unknown length.
    ///
    /// # Errors
    ///
    /// When it would not leave what has to stay free.
    pub fn promise(&self, length: Option<u64>) -> Result<Promise, NoRoom> {
        let mut promise = Promise { disk: self.clone(), left: 0 };
        promise.grow(length.unwrap_or(STEP))?;
        Ok(promise)
    }
}

impl Promise {
    fn grow(&mut self, by: u64) -> Result<(), NoRoom> {
        let disk = &self.disk.0;
        let left = (disk.room_left)();
        let (order, room) = (Ordering::SeqCst, left.saturating_sub(disk.stay_free));
        // Of two at a time that do not both fit, at most one is let in.
        let more = |promised: u64| promised.checked_add(by).filter(|all| *all <= room);
        match disk.promised.fetch_update(order, order, more) {
            Ok(_) => self.left += by,
            Err(promised) => {
                let taken = promised.saturating_add(disk.stay_free);
                return Err(NoRoom { needed: by, left, taken });
            }
        }
        Ok(())
    }

    /// So much is to be written now.
    ///
    /// # Errors
    ///
    /// When that is more than was promised, and there is no room for the rest.
    pub fn take(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if self.left < bytes {
            self.grow((bytes - self.left).max(STEP))?;
        }
        self.left -= bytes;
        // From here on the disk itself knows of it.
        self.disk.0.promised.fetch_sub(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.disk.0.promised.fetch_sub(self.left, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With so much room for bodies.
    fn with_room(room: u64) -> Reserve {
        const OTHERS: u64 = 1 << 40;
        Reserve::new(move || OTHERS + room, OTHERS)
    }

    #[test]
    fn what_is_promised_to_one_is_not_promised_to_another() {
        const GIB: u64 = 1 << 30;
        let reserve = with_room(2 * GIB);
        let first = reserve.promise(Some(GIB)).unwrap();
        let refused = reserve.promise(Some(3 * GIB / 2)).err().unwrap();
        assert_eq!(refused.needed, 3 * GIB / 2);
        drop(first);
        drop(reserve.promise(Some(3 * GIB / 2)).unwrap());
        assert_eq!(reserve.0.promised.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_body_of_unknown_length_is_promised_more_as_it_comes() {
        let reserve = with_room(1 << 30);
        let mut promise = reserve.promise(None).unwrap();
        for _ in 0..3 {
            promise.take(STEP / 2 + 1).unwrap();
        }
        assert!(reserve.promise(Some(u64::MAX)).is_err());
        drop(promise);
        assert_eq!(reserve.0.promised.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_reserve_is_promised_to_nobody() {
        let reserve = Reserve::new(|| u64::MAX, u64::MAX);
        assert!(reserve.promise(Some(1)).is_err());
        assert!(reserve.promise(None).is_err());
    }
}
