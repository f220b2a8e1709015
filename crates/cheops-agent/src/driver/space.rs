//! Room on the disk: operations are refused while some is left, so that what is already under way
//! can still be brought to its end and recorded.

use std::path::PathBuf;
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

    /// A disk that does not tell is taken to have room: a failing commit is handled as well.
    fn look(&mut self) -> u64 {
        let left = rustix::fs::statvfs(&self.dir)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        self.looked = Some((Instant::now(), left));
        left
    }
}
