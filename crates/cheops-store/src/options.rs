//! What an operator may choose, and the clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cheops_core::model::Entry;

/// How a store behaves. The default is right for a site; tests bring their own clock.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How long pruned entries, and notices, stay readable in the feed of changes. Zero means
    /// that pruned entries are deleted at once, and notices with the next batch.
    pub audit_retention: Duration,
    /// How many bytes may be kept for readers of the history only: rows, and contents that no site
    /// needs any more. Beyond that the oldest is dropped before its time.
    pub audit_bytes: u64,
    /// How long the journal of a new directory is: so much can be kept between two syncs of the
    /// database. Larger batches are written, and take longer.
    pub journal_bytes: u64,
    /// What time it is.
    pub clock: WallClock,
    /// Who vouches for entries that nobody signed: those from before there were signatures. A site
    /// without others has nobody, and keeps them as they are.
    pub vouch: Voucher,
    /// Who is told how far a directory of an earlier format has been moved to this one.
    pub progress: ProgressReporter,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            audit_retention: Duration::from_secs(7 * 24 * 3600),
            audit_bytes: 1 << 30,
            journal_bytes: 8 << 20,
            clock: WallClock::default(),
            vouch: Voucher::default(),
            progress: ProgressReporter::default(),
        }
    }
}

type Vouch = dyn Fn(&[&Entry]) + Send + Sync;

/// Who vouches for entries: each that is handed to it has a proof afterwards.
#[derive(Clone, Default)]
pub struct Voucher(Option<Arc<Vouch>>);

impl Voucher {
    /// One who does it so.
    pub fn new(vouch: impl Fn(&[&Entry]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(vouch)))
    }

    pub(crate) fn get(&self) -> Option<&Vouch> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Voucher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Voucher" } else { "nobody" })
    }
}

/// How far something long has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Far {
    /// What is being done.
    pub doing: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is.
    pub of: u64,
}

/// Who is told how far something long has come.
#[derive(Clone, Default)]
pub struct ProgressReporter(Option<Arc<dyn Fn(Far) + Send + Sync>>);

impl ProgressReporter {
    /// One who is told so.
    pub fn new(tell: impl Fn(Far) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, doing: &'static str, done: u64, of: u64) {
        if let Some(tell) = &self.0 {
            tell(Far { doing, done, of });
        }
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress" } else { "nobody" })
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
