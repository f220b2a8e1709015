//! Room on the disk for bodies that are kept: what is promised to one is not promised to another,
//! and what operations need to come to their end is promised to none.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::driver::room_left;

/// A body of unknown length is promised so much at a time.
const STEP: u64 = 1024 * 1024;

/// What there is for bodies. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Reserve(Arc<DiskReserve>);

#[derive(Debug)]
struct DiskReserve {
    dir: PathBuf,
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
pub(super) struct NoRoom {
    needed: u64,
    left: u64,
    taken: u64,
}

/// Room for one body.
#[derive(Debug)]
pub(super) struct Promise {
    disk: Reserve,
    left: u64,
}

impl Reserve {
    /// On the disk of that directory, of which so much stays free.
    pub(crate) fn new(dir: PathBuf, stay_free: u64) -> Self {
        Self(Arc::new(DiskReserve { dir, stay_free, promised: AtomicU64::new(0) }))
    }

    /// Promises room for a body of that length, or for the beginning of one of unknown length.
    pub(super) fn promise(&self, length: Option<u64>) -> Result<Promise, NoRoom> {
        let mut promise = Promise { disk: self.clone(), left: 0 };
        promise.grow(length.unwrap_or(STEP))?;
        Ok(promise)
    }
}

impl Promise {
    fn grow(&mut self, by: u64) -> Result<(), NoRoom> {
        let disk = &self.disk.0;
        let left = room_left(&disk.dir);
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
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), NoRoom> {
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

    /// With about so much room for bodies, on a disk that others write to as well.
    fn with_room(dir: &std::path::Path, room: u64) -> Reserve {
        Reserve::new(dir.to_owned(), room_left(dir) - room)
    }

    #[test]
    fn what_is_promised_to_one_is_not_promised_to_another() {
        const GIB: u64 = 1 << 30;
        let dir = tempfile::tempdir().unwrap();
        let reserve = with_room(dir.path(), 2 * GIB);
        let first = reserve.promise(Some(GIB)).unwrap();
        let refused = reserve.promise(Some(3 * GIB / 2)).unwrap_err();
        assert_eq!(refused.needed, 3 * GIB / 2);
        drop(first);
        drop(reserve.promise(Some(3 * GIB / 2)).unwrap());
        assert_eq!(reserve.0.promised.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_body_of_unknown_length_is_promised_more_as_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = with_room(dir.path(), 1 << 30);
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
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(dir.path().to_owned(), u64::MAX);
        assert!(reserve.promise(Some(1)).is_err());
        assert!(reserve.promise(None).is_err());
    }
}
