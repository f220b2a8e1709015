//! Who holds on to a content that no entry refers to yet.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cheops_core::model::BlobId;

/// Keeps a content from being removed for as long as it lives.
#[derive(Debug)]
#[must_use = "without its pin a content may be removed at once"]
pub struct Pin {
    id: BlobId,
    pins: Arc<Pins>,
}

impl Pin {
    /// What it holds.
    pub fn id(&self) -> BlobId {
        self.id
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        Pins::pin(&self.pins, self.id)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut held = self.pins.held();
        let left = held.pins.get(&self.id).map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            held.pins.insert(self.id, left);
        } else {
            held.pins.remove(&self.id);
            held.unpinned.insert(self.id);
        }
    }
}

/// Where a content that nobody holds any more came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentOrigin {
    /// From another site, for an operation that is not here yet.
    AnotherSite,
    /// Whoever brought it was told that it was not taken, or nobody needs it any more.
    Unimportant,
}

/// All pins of an open data directory.
#[derive(Debug, Default)]
pub(super) struct Pins(Mutex<PinState>);

#[derive(Debug, Default)]
struct PinState {
    pins: BTreeMap<BlobId, usize>,
    /// Emptied with every batch, so it holds no more than what was let go of in between.
    unpinned: BTreeSet<BlobId>,
    fetched: BTreeSet<BlobId>,
    /// What came from another site, and was not seen to be needed yet.
    arrived: BTreeSet<BlobId>,
}

impl Pins {
    pub(super) fn pin(pins: &Arc<Self>, id: BlobId) -> Pin {
        *pins.held().pins.entry(id).or_default() += 1;
        Pin { id, pins: Arc::clone(pins) }
    }

    /// Does that if nobody holds the content, and lets nobody take hold of it meanwhile.
    pub(super) fn unless_pinned(&self, id: &BlobId, remove: impl FnOnce(ContentOrigin)) {
        let mut held = self.held();
        if !held.pins.contains_key(id) {
            let arrived = held.arrived.remove(id) && !held.fetched.contains(id);
            remove(if arrived { ContentOrigin::AnotherSite } else { ContentOrigin::Unimportant });
        }
    }

    /// Remembers that the content came from another site.
    pub(super) fn arrived(&self, id: BlobId) {
        self.held().arrived.insert(id);
    }

    pub(super) fn found_needed(&self, id: &BlobId) {
        self.held().arrived.remove(id);
    }

    /// Does that while nobody may take hold of anything, or start to fetch it.
    pub(super) fn alone<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.held();
        act()
    }

    pub(super) fn take_unpinned(&self) -> BTreeSet<BlobId> {
        std::mem::take(&mut self.held().unpinned)
    }

    /// Claims the fetching of a content; whether it was free.
    pub(super) fn start_fetching(&self, id: BlobId) -> bool {
        self.held().fetched.insert(id)
    }

    /// Does that if nobody fetches the content, and lets nobody start meanwhile.
    pub(super) fn unless_fetched(
        &self,
        id: &BlobId,
        remove: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<bool> {
        let held = self.held();
        if held.fetched.contains(id) { Ok(false) } else { remove() }
    }

    pub(super) fn stop_fetching(&self, id: &BlobId) {
        self.held().fetched.remove(id);
    }

    /// Every change of it is one step, so a panic elsewhere leaves nothing half done.
    fn held(&self) -> MutexGuard<'_, PinState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
