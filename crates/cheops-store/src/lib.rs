//! The log of one site on disk, and the files that go with it.
//!
//! [`open`] gives everything a site keeps, by ports in domain words: a [`SiteLog`] that takes whole
//! batches (it is an [`engine::Log`](cheops_core::engine::Log)), a [`Feed`] of what was written,
//! [`Blobs`] for the files that travel with operations, and [`Certificates`]; and [`Snapshots`] for
//! saved states of applications. [`MemoryStore`] has the same ports, for tests and simulations.
//!
//! What is promised, in order of weight:
//! 1. What a [`SiteLog`] acknowledged is there after any stop of the machine, whole batches in order.
//! 2. Damage is noticed before it is used: every row carries a checksum, all rows together carry
//!    one more, and every file is named by its hash. An altered bit is an error, never a value.
//! 3. A batch costs the same whatever lies behind it: no statement of an append scans a table.
//! 4. Who follows the changes is told when some are gone, and misses none in silence.
//!
//! The layout on disk is described in `docs/format.md`. Everything in here blocks; a caller that
//! must not wait uses a thread.

mod backup;
mod blobs;
mod error;
mod fault;
mod feed;
mod files;
mod log;
mod memory;
mod open;
mod options;
mod ports;
mod rules;
mod snapshots;

pub use backup::{BackupError, BackupMaker, Copied};
pub use blobs::{
    BlobError, BlobWriter, Blobs, CheckedBlob, MOST_KEPT_BODY, PartialBlob, Pin, Stored,
};
pub use error::{AppendError, Corruption, OpenError, ReadError, StoragePlace};
pub use feed::{
    ChangeKind, HistorySize, LoggedChange, LoggedChanges, PastChange, PastChanges, PastFrom, Seq,
};
pub use memory::MemoryStore;
pub use open::{Claim, Opened, open};
pub use options::{Far, ProgressReporter, StoreOptions, Voucher, WallClock};
pub use ports::{Certificates, Feed, LogFence, SiteLog};
pub use rules::WAITS_FOR;
pub use snapshots::{SnapshotError, SnapshotWriter, Snapshots};
