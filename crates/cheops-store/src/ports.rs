//! What a site keeps, as everybody else sees it: ports in domain words. What is behind them is named
//! nowhere outside of this crate.
//!
//! The port for contents by hash is beside this one, with those who keep them:
//! [`Blobs`](crate::Blobs).

use std::fmt;

use cheops_core::engine::{Log, Notice, Record};
use cheops_core::model::{BlobId, EntryId, KeyId, ResourceId};

use crate::error::{AppendError, ReadError};
use crate::feed::{HistorySize, LoggedChanges, PastChange, PastChanges, PastFrom, Seq};

/// Which writer of a log this is. Whoever opens a log for writing gets a new one, and from then on
/// batches of those who opened it before are refused.
///
/// A new writer goes on where the one before stopped: nothing is lost, and the site is the same to
/// all others. That is not a new [`Incarnation`](cheops_core::model::Incarnation), which says that
/// the log itself was lost, and of which all other sites learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFence(pub(crate) u64);

/// A site's log, for its one writer: whole batches, each under the writer's [`LogFence`]. An append
/// returns when the batch is durable. Who follows the log sees it after [`SiteLog::settle`].
///
/// After an error the log is as it was before, can be read, and takes the next batch when it can; but
/// [`AppendError::Fenced`] is for good.
pub trait SiteLog: Log<Error = AppendError> + fmt::Debug + Send {
    /// Which writer this is.
    fn fence(&self) -> LogFence;

    /// Writes these as one batch: all of them or none. This is what [`Log::append`] does, for
    /// those who have records and no engine that made them.
    fn keep(&mut self, records: &[Record], notices: &[Notice]) -> Result<(), AppendError>;

    /// Shows what was kept to those who follow the log. Costs least when there is much.
    fn settle(&mut self) -> Result<(), AppendError>;

    /// Reads everything an engine is recovered from, in order, as it was given out when the log
    /// was opened; some of it may be obsolete. This is how to go on after an append failed.
    fn records(&mut self) -> Result<Vec<Record>, ReadError>;
}

/// What was written to a site's log and settled, for those who follow it, each at its own pace. Never
/// waits for the writer.
pub trait Feed: fmt::Debug + Send + Sync {
    /// Entries and notices after that place, of one resource or of all, in order. What was pruned
    /// is among them until its retention has passed; where something is missing for that reason,
    /// this is an error.
    fn changes_since(
        &self,
        after: Seq,
        resource: Option<&ResourceId>,
        limit: usize,
    ) -> Result<LoggedChanges, ReadError>;

    /// The same of all resources, for a follower that would rather miss something than what is
    /// still there: what was deleted is passed over. A place that was never given out here is of a
    /// log that was lost, and all there is comes after it.
    fn changes_left(&self, after: Seq, limit: usize) -> Result<LoggedChanges, ReadError>;

    /// Some of the history of a resource: entries, pruned or not, and notices. What is missing was
    /// dropped for its age or for want of room.
    fn past(
        &self,
        resource: &ResourceId,
        from: PastFrom,
        limit: usize,
    ) -> Result<PastChanges, ReadError>;

    /// The entry of that name, of whatever resource, as long as it is kept, pruned or not.
    fn entry(&self, id: &EntryId) -> Result<Option<PastChange>, ReadError>;

    /// What the history takes that is kept for its readers only.
    fn history_size(&self) -> HistorySize;

    /// The last place given out; what comes next comes after it.
    fn last_seq(&self) -> Result<Seq, ReadError>;

    /// How far the follower of that name has come, if it ever said so.
    fn cursor(&self, name: &str) -> Result<Option<Seq>, ReadError>;

    /// Keeps how far the follower of that name has come. A machine that loses its power may have
    /// forgotten the last steps.
    fn set_cursor(&self, name: &str, seq: Seq) -> Result<(), ReadError>;

    /// Forgets the follower of that name.
    fn remove_cursor(&self, name: &str) -> Result<(), ReadError>;

    /// Forgets the followers whose names begin like this, but for those to be kept.
    fn retain_cursors(&self, prefix: &str, keep: &dyn Fn(&str) -> bool) -> Result<(), ReadError>;

    /// The body of a request that an entry brought along, by its hash; none if no entry that is still
    /// needed did.
    fn inline_body(&self, id: &BlobId) -> Result<Option<Vec<u8>>, ReadError>;

    /// How many bytes the log takes where it is kept, without blobs and snapshots.
    fn size(&self) -> Result<u64, ReadError>;
}

/// The certificates by which entries in a site's log can be checked.
pub trait Certificates: fmt::Debug + Send + Sync {
    /// All that were kept, each under the name of its key.
    fn identities(&self) -> Result<Vec<(KeyId, Vec<u8>)>, ReadError>;

    /// Keeps a certificate: it is durable when this returns. Entries that its key signed can be
    /// checked, and passed on, after any restart.
    fn keep_identity(&self, key: KeyId, certificate: &[u8]) -> Result<(), AppendError>;
}
