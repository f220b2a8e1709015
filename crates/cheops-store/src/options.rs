//! What an operator may choose, and the clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How a store behaves. The default is right for a site; tests bring their own clock.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long pruned entries, and notices, stay readable in the feed of changes. Zero means
    /// that pruned entries are deleted at once, and notices with the next batch.
    pub audit_retention: Duration,
    /// How long the journal of a new directory is: so much can be kept between two syncs of the
    /// database. Larger batches are written, and take longer.
    pub journal_bytes: u64,
    /// What time it is.
    pub clock: WallClock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            audit_retention: Duration::from_secs(7 * 24 * 3600),
            journal_bytes: 8 << 20,
            clock: WallClock::default(),
        }
    }
}

/// Milliseconds since the Unix epoch. Rows are stamped with it, and retention is measured by it;
/// nothing else depends on it, so it may jump.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl WallClock {
    /// A clock that shows what the function says.
    pub fn new(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

/// The system's clock.
impl Default for WallClock {
    fn default() -> Self {
        Self::new(|| {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WallClock({})", self.now_ms())
    }
}
