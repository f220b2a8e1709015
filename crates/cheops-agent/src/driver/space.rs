//! Room on the disk: operations are refused while some is left, so that what is already under way
//! can still be brought to its end and recorded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::NotDurable;

/// How long one look at the disk holds.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is left on the log's disk.
pub(super) struct Space {
    dir: PathBuf,
    keep_free: u64,
    looked: Option<(Instant, u64)>,
}

impl Space {
    pub(super) fn new(dir: PathBuf, keep_free: u64) -> Self {
        Self { dir, keep_free, looked: None }
    }

    /// Whether there is room for something new.
    pub(super) fn check(&mut self) -> Result<(), NotDurable> {
        let left = match self.looked {
            Some((when, left)) if when.elapsed() < LOOK_EVERY => left,
            _ => self.look(),
        };
        if left >= self.keep_free {
            return Ok(());
        }
        Err(NotDurable::NoRoom { left, needed: self.keep_free })
    }

    fn look(&mut self) -> u64 {
        let left = room_left(&self.dir);
        self.looked = Some((Instant::now(), left));
        left
    }
}

/// How much there is on the disk of that directory. One that does not tell is taken to have room:
/// what fails for want of it is handled as well.
pub(crate) fn room_left(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}
